"""GreedyFirst, which is greedy until its estimates prove poor, and then forces steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armlet import Bandit
from armlet.environments import FigureA
from armlet.errors import DecisionError, MergeError
from armlet.loading import load
from armlet.policies.greedy import Greedy
from armlet.simulation.run import simulate
from armlet.types import Float64
from armlet_lab.literature.greedy_first import GreedyFirst, GreedyFirstState
from armlet_lab.literature.ols_bandit import forced_arm
from support.contract import check_settings


def best_of(scores: Float64, among: list[int]) -> list[float]:
    """Share 1 among the highest scores, the long way."""
    top = max(scores[arm] for arm in among)
    winners = [arm for arm in among if scores[arm] == top]
    return [1 / len(winners) if arm in winners else 0.0 for arm in range(len(scores))]


def solved(rows: list[tuple[Float64, float]], dim: int, ridge: float) -> Float64:
    """Ridge regression from the rows themselves."""
    X, r = np.array([x for x, _ in rows]).reshape(len(rows), dim), np.array([reward for _, reward in rows])
    return np.asarray(np.linalg.solve(ridge * np.eye(dim) + X.T @ X, X.T @ r), dtype=np.float64)


@pytest.mark.parametrize(("n_arms", "q"), [(2, 1), (3, 2), (6, 5)])
def test_forced_steps_are_those_of_the_definition(n_arms: int, q: int) -> None:
    steps = 5000
    forced: dict[int, int] = {}
    for i in range(1, n_arms + 1):
        for n in range(20):
            for j in range(q * (i - 1) + 1, q * i + 1):
                forced[(2**n - 1) * n_arms * q + j] = i - 1
    assert [forced_arm(t, n_arms, q) for t in range(1, steps)] == [forced.get(t) for t in range(1, steps)]


def test_forced_steps_of_each_arm_grow_by_q_for_every_doubling() -> None:
    counts = [[sum(forced_arm(t, 2, 3) == arm for t in range(1, 6 * 2**n + 1)) for arm in range(2)] for n in range(8)]
    assert counts == [[3 * (n + 1)] * 2 for n in range(8)]


class LongWay:
    """Greedy-First from the rows themselves."""

    def __init__(self, policy: GreedyFirst, n_arms: int, dim: int, first: int) -> None:
        self.policy, self.dim, self.first = policy, dim, first
        self.rows: list[list[tuple[Float64, float]]] = [[] for _ in range(n_arms)]
        self.forced: list[list[tuple[Float64, float]]] = [[] for _ in range(n_arms)]
        self.switched: int | None = None

    def chances(self, t: int, x: Float64) -> list[float]:
        arms = list(range(len(self.rows)))
        if self.switched is not None:
            arm = forced_arm(t - self.switched, len(arms), self.policy.q)
            if arm is not None:
                return [float(a == arm) for a in arms]
            scores = [float(x @ self.solve(own)) for own in self.forced]
            arms = [a for a in arms if scores[a] >= max(scores) - self.policy.h / 2]
        return best_of(np.array([x @ self.solve(own) for own in self.rows]), arms)

    def solve(self, rows: list[tuple[Float64, float]]) -> Float64:
        assert isinstance(self.policy.ridge, float)
        return solved(rows, self.dim, self.policy.ridge)

    def learn(self, t: int, x: Float64, arm: int, reward: float, forced: bool) -> None:
        self.rows[arm].append((x, reward))
        if forced:
            self.forced[arm].append((x, reward))
        smallest = min(
            np.linalg.eigvalsh(sum((np.outer(x, x) for x, _ in own), np.zeros((2, 2))))[0] for own in self.rows
        )
        if self.switched is None and t >= self.first and smallest < self.policy.lambda0 * t / 4:
            self.switched = t


@pytest.mark.parametrize("lambda0", [0.05, 0.4, 5.0])
def test_greedy_first_plays_as_written_the_long_way(lambda0: float) -> None:
    rng = np.random.default_rng(12)
    policy = GreedyFirst(lambda0=lambda0, t0=20, q=2, h=0.5, ridge=0.1)
    bandit, long_way, theta = (
        Bandit(range(3), 2, policy=policy, seed=5),
        LongWay(policy, 3, 2, 20),
        rng.normal(size=(3, 2)),
    )
    for t in range(1, 251):
        x = rng.normal(size=2)
        assert bandit.predict_proba([x])[0].tolist() == long_way.chances(t, x)
        decision = bandit.decide(x)
        arm = int(decision.arm)
        reward = float(theta[arm] @ x + 0.5 * rng.normal())
        bandit.learn(decision, reward)
        long_way.learn(t, x, arm, reward, decision.explored)
    assert bandit.state.switched == (-1 if long_way.switched is None else long_way.switched)
    assert (long_way.switched == 20) == (lambda0 == 5.0)


def test_greedy_first_stays_greedy_where_contexts_are_diverse() -> None:
    """Two arms, gaussian contexts: each arm is best on a half-space, so both keep seeing all directions."""
    rng = np.random.default_rng(1)
    bandit, theta = Bandit(range(2), 3, policy=GreedyFirst(), seed=1), np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    for _ in range(1000):
        x = rng.normal(size=3)
        decision = bandit.decide(x)
        assert not decision.explored
        bandit.learn(decision, float(theta[int(decision.arm)] @ x + 0.1 * rng.normal()))
    assert bandit.state.switched == -1


def test_greedy_first_frees_itself_where_greedy_locks_in() -> None:
    policy = GreedyFirst(t0=10)
    bandit, played = Bandit(range(2), 1, policy=policy, seed=1), []
    for _ in range(500):
        decision = bandit.decide([1.0])
        played.append(decision.arm)
        bandit.learn(decision, [0.1, 1.0][int(decision.arm)])
    assert bandit.state.switched == 10
    assert played[-1] == 1


def test_greedy_first_that_never_switches_is_greedy() -> None:
    rng = np.random.default_rng(1)
    first, greedy = (
        Bandit(range(3), 2, policy=policy, seed=4)
        for policy in (GreedyFirst(lambda0=0.0, ridge=1.0), Greedy(ridge=1.0, units="as given"))
    )
    for x in rng.normal(size=(200, 2)):
        one, other = first.decide(x), greedy.decide(x)
        assert one.arm == other.arm
        for bandit, decision in ((first, one), (greedy, other)):
            bandit.learn(decision, float(x[0] * (1 + int(decision.arm))))


def switched_bandit() -> Bandit:
    bandit = Bandit(range(3), 1, policy=GreedyFirst(t0=1, q=1), seed=2)
    bandit.learn(bandit.decide([1.0]), 1.0)
    assert bandit.state.switched == 1
    return bandit


def test_the_switch_survives_a_file(tmp_path: Path) -> None:
    bandit = switched_bandit()
    bandit.save(tmp_path / "model.armlet")
    assert load(tmp_path / "model.armlet", policy=bandit.policy).state.switched == 1


def test_the_switch_cannot_be_taken_back_or_added() -> None:
    bandit = switched_bandit()
    decision = bandit.decide([1.0])
    bandit.learn(decision, 1.0)
    with pytest.raises(DecisionError, match="GreedyFirst"):
        bandit.forget(decision, 1.0)
    with pytest.raises(MergeError, match="GreedyFirst switches at a step of its own"):
        bandit.merge(switched_bandit())


def test_a_forced_step_is_free_if_its_arm_cannot_play() -> None:
    bandit = switched_bandit()
    assert bandit.decide([1.0]).explored  # arm 0
    assert not bandit.decide([1.0], eligible=[0, 2]).explored  # it was arm 1's turn
    assert bandit.decide([1.0]).explored  # arm 2


def test_a_damaged_step_of_switching_is_refused() -> None:
    state: GreedyFirstState = GreedyFirst().init(2, 1)
    with pytest.raises(ValueError, match="switched"):
        state.restore_arrays(state.arrays() | {"switched": np.array([-7])})


def test_greedy_locks_in_on_figure_a_and_greedy_first_does_not() -> None:
    """Picked for it: coin-flip contexts are not diverse enough, and in two of three runs greedy goes astray."""
    environment = FigureA.draw(np.random.default_rng(6))
    greedy, first = (
        simulate(environment, policy, horizon=2000, runs=3, seed=1, method="python", engine="serial")
        for policy in (Greedy(units="as given"), GreedyFirst())
    )
    growth = (greedy.at(2000) - greedy.at(1000)) / greedy.at(1000)
    assert np.count_nonzero(abs(growth - 1) < 0.1) >= 2  # linear: the second half costs what the first did
    assert first.at(2000).mean() < 0.6 * greedy.at(2000).mean()


@pytest.mark.parametrize("policy", [GreedyFirst(), GreedyFirst(lambda0=1.0, t0=0, q=1, h=0.1, ridge=1.0)], ids=repr)
def test_policy_keeps_its_promises(policy: GreedyFirst) -> None:
    check_settings(policy, n_arms=4, dim=3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lambda0": -1.0}, "lambda0 is -1.0; give a number from 0 to 1e\\+40"),
        ({"h": "wide"}, "h is 'wide'; give a number from 0 to 1e\\+40"),
        ({"q": 0}, "q is 0; give a whole number of at least 1"),
        ({"t0": -1}, "t0 is -1; give a whole number of at least 0, or None"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GreedyFirst(**settings)
