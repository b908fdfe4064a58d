"""Contextual UCB: its promises for every search and history, Algorithm 2 written the long way, limits, and files."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from armlet.bandit import Bandit
from armlet.environments.paper import FigureA, Section7
from armlet.errors import DecisionError
from armlet.loading import load
from armlet.policies.contextual_ucb import ContextualUCB
from armlet.policies.subset_search import HistoryLimitError
from armlet.policies.uniform import Uniform
from armlet.simulation.run import simulate
from armlet.testing.policies import Check
from armlet.types import Float64, Interaction
from support.contract import checks

pytestmark = pytest.mark.spread

EVERYONE = np.ones(3, dtype=bool)
POLICIES = [  # and those of the registry's contract, with other histories
    ContextualUCB(search="counts"),
    ContextualUCB(search="relaxed", p=9),
    ContextualUCB(search="exact", history="explored", p=1, history_limit=16),
]


@pytest.mark.parametrize("check", checks(), ids=lambda check: str(check.__name__))
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_policy_keeps_its_promises(policy: ContextualUCB, check: Check) -> None:
    check(policy, 3, 2)


def printed_index(X: Float64, r: Float64, x: Float64, t: int) -> float:
    """The inner loop of Algorithm 2, word for word."""
    best, index = math.inf, math.inf
    for size in range(1, len(X) + 1):
        for T in itertools.combinations(range(len(X)), size):
            rows, n = list(T), size
            M = np.eye(len(x)) / math.sqrt(n) + X[rows].T @ X[rows] / n
            inverse = np.linalg.inv(M)
            c = math.log(t) / n * float(x @ inverse @ inverse @ x)
            if c < best * (1 - 1e-12):
                theta_hat = inverse @ (X[rows].T @ r[rows] / n)
                best, index = c, float(x @ theta_hat) + math.sqrt(c)
    return index


@pytest.mark.parametrize("search", ["exact", "counts", "relaxed"])
def test_indices_are_those_of_algorithm_2(search: str) -> None:
    rng = np.random.default_rng(4)
    policy = ContextualUCB(search=search)  # type: ignore[arg-type]
    state = policy.init(3, 3)
    X, r = rng.normal(size=(14, 3)), rng.normal(size=14)
    for t in range(14):
        policy.update(state, Interaction(t=t + 1, x=X[t], arm=t % 2, reward=float(r[t])))
    x = rng.normal(size=3)
    expected = [printed_index(X[arm::2], r[arm::2], x, 15) for arm in range(2)]
    found = policy.upper_bounds(state, 15, x)
    np.testing.assert_allclose(found[:2], expected, rtol=1e-9)
    assert found[2] == math.inf  # nothing is known of it


def test_the_first_p_steps_go_by_turns() -> None:
    bandit = Bandit(range(3), 2, policy=ContextualUCB(p=7), seed=1)
    arms = []
    for _ in range(7):
        decision = bandit.decide([1.0, 0.5])
        arms.append(decision.arm)
        bandit.learn(decision, 0.0)
    assert arms == [1, 2, 0, 1, 2, 0, 1]


@pytest.mark.parametrize("search", ["relaxed", "counts"])
def test_a_full_history_is_refused_and_says_what_to_do(search: str) -> None:
    policy = ContextualUCB(search=search, history_limit=5)  # type: ignore[arg-type]
    state, rng = policy.init(1, 2), np.random.default_rng(0)
    rows = [Interaction(t=t, x=rng.normal(size=2) * t, arm=0, reward=1.0) for t in range(1, 7)]
    for row in rows[:5]:
        policy.update(state, row)
    before = state.arrays()
    with pytest.raises(HistoryLimitError, match=r"history_limit is 5; raise it.*counts.*explored"):
        policy.update(state, rows[5])
    assert all(np.array_equal(before[name], array) for name, array in state.arrays().items())


def test_any_row_can_be_taken_back_or_corrected() -> None:
    for policy in (ContextualUCB(), ContextualUCB(search="counts")):
        rng = np.random.default_rng(3)
        rows = [
            Interaction(t=t, x=rng.integers(0, 3, 2).astype(np.float64), arm=0, reward=float(t)) for t in range(1, 20)
        ]
        state, expected = policy.init(1, 2), policy.init(1, 2)
        for row in rows:
            policy.update(state, row)
        gone, wrong = rows[4], rows[7]
        policy.update(state, Interaction(t=5, x=gone.x, arm=0, reward=gone.reward, weight=-1.0))
        policy.update(state, Interaction(t=8, x=wrong.x, arm=0, reward=99.0, replaces=wrong.reward))
        for row in rows:
            reward = 99.0 if row is wrong else row.reward
            if row is not gone:
                policy.update(expected, Interaction(t=row.t, x=row.x, arm=0, reward=reward))
        for name, array in state.arrays().items():
            if policy == ContextualUCB():  # in order of arrival, whatever was taken back
                assert np.array_equal(array, expected.arrays()[name])
        assert state.past(0).sums.sum() == pytest.approx(expected.past(0).sums.sum())
        with pytest.raises(DecisionError, match="no such row"):
            policy.update(state, Interaction(t=1, x=np.array([9.0, 9.0]), arm=0, reward=0.0, weight=-1.0))


def test_counts_take_no_more_memory_with_time() -> None:
    environment = Section7.draw(np.random.default_rng(1), n_arms=2)
    bandit, rng = Bandit(range(2), 2, policy=ContextualUCB(search="counts"), seed=2), np.random.default_rng(5)
    X = environment.contexts(rng, 3000)
    sizes = []
    for x, rewards in zip(X, environment.rewards(rng, X), strict=True):
        decision = bandit.decide(x)
        bandit.learn(decision, float(rewards[int(decision.arm)]))
        sizes.append(bandit.state.nbytes)
    assert len(set(sizes[1000:])) == 1


@pytest.mark.parametrize("search", ["relaxed", "counts"])
def test_merged_histories_are_those_of_all_rows(search: str) -> None:
    rng, policy = np.random.default_rng(4), ContextualUCB(search=search)  # type: ignore[arg-type]
    rows = [
        Interaction(t=t, x=rng.integers(0, 3, 2).astype(np.float64), arm=t % 2, reward=float(t)) for t in range(1, 40)
    ]
    mine, other, whole = (policy.init(2, 2) for _ in range(3))
    for row in rows:
        policy.update(mine if row.t <= 20 else other, row)
        policy.update(whole, row)
    mine.merge(other, [0, 1])
    assert all(np.array_equal(array, whole.arrays()[name]) for name, array in mine.arrays().items())


def test_saved_policies_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    for policy in POLICIES:
        bandit = Bandit(range(3), 2, policy=policy, seed=3)
        for x in rng.integers(-1, 2, (60, 2)) * 1.0:
            bandit.learn(bandit.decide(x), float(rng.normal()))
        bandit.save(tmp_path / "model.armlet")
        twin = load(tmp_path / "model.armlet", policy=policy)
        for x in rng.integers(-1, 2, (20, 2)) * 1.0:
            assert repr(bandit.decide(x)) == repr(twin.decide(x))


def test_it_remembers_the_rare_context_that_algorithm_1_forgets() -> None:
    policy = ContextualUCB(search="counts")
    state, rare = policy.init(1, 2), np.array([1.0, 1.0])
    for t in range(1, 3001):
        x = rare if t % 100 == 0 else np.array([1.0, 0.0])
        policy.update(state, Interaction(t=t, x=x, arm=0, reward=float(x @ [0.2, 1.0])))
    everything = state.past(0)
    n = everything.counts.sum()
    A = (everything.rows.T * everything.counts) @ everything.rows
    forgetful = rare @ np.linalg.solve(math.sqrt(n) * np.eye(2) + A, everything.sums @ everything.rows)
    chosen = policy.subset(everything, rare)
    theta_hat = np.linalg.solve(math.sqrt(30) * np.eye(2) + 30 * np.outer(rare, rare), 30 * 1.2 * rare)
    assert chosen.n == 30
    # the truth is 1.2; shrinkage by sqrt(30) remains, by 1 / (1 + 1 / (2 sqrt(30))) = 0.92
    assert float(rare @ theta_hat) == pytest.approx(1.2 * 0.9164, rel=1e-3)
    assert forgetful < 0.75 < rare @ theta_hat


def test_it_beats_uniform_play_on_figure_a() -> None:
    policy = ContextualUCB(search="relaxed", alpha=0.3)
    environment = FigureA.draw(np.random.default_rng(3))
    runs = {"horizon": 1000, "runs": 2, "seed": 1, "method": "python", "engine": "serial"}
    regret = simulate(environment, policy, **runs).regret[:, -1].mean()  # type: ignore[arg-type]
    floor = simulate(environment, Uniform(), **runs).regret[:, -1].mean()  # type: ignore[arg-type]
    assert regret < 0.5 * floor


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search": "best"}, "search is 'best'; choose 'exact', 'relaxed' or 'counts'"),
        ({"history": "some"}, "history is 'some'; choose 'all' or 'explored'"),
        ({"search": ["exact"]}, "search is .'exact'.; choose 'exact'"),
        ({"alpha": -1.0}, "alpha is -1.0"),
        ({"history": "explored"}, "p is 0.0 but history is 'explored'"),
        ({"search": "exact", "history_limit": 17}, "history_limit is 17 but search='exact'"),
        ({"history_limit": 0}, "history_limit is 0"),
        ({"p": math.nan}, "p is nan"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ContextualUCB(**settings)  # type: ignore[arg-type]


def test_there_is_no_single_theta_hat() -> None:
    policy = ContextualUCB()
    with pytest.raises(TypeError, match="depends on the context"):
        policy.estimates(policy.init(1, 1))
