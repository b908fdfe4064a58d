"""Optimistic epsilon-greedy against its definition written out in numpy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from armlet import Bandit, kernel
from armlet.errors import DecisionError, MergeError
from armlet.inputs.settings import Units
from armlet.kernel import Decision
from armlet.loading import from_bytes
from armlet.types import Bool, Float64, Int64, Interaction
from armlet_lab.literature.optimistic_epsilon_greedy import ALL, SOLVED, OptimisticEpsilonGreedy

K, D = 4, 3
SETTINGS = [{}, {"p": 10.0, "growth": 0.5}, {"width_scale": 0.0}, {"ridge": 5.0, "width_scale": 7.0}]


def environment(steps: int, seed: int = 3, dim: int = D) -> tuple[Float64, Float64]:
    """Contexts of few values, zeros among them, so that bounds tie; and noisy rewards."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, size=(steps, dim)).astype(np.float64)
    return X, X @ rng.normal(size=(K, dim)).T + rng.normal(size=(steps, K))


def play(bandit: Bandit, X: Float64, rewards: Float64) -> list[Decision]:
    """Play all of it; give the decisions."""
    decisions = []
    for x, row in zip(X, rewards, strict=True):
        decisions.append(bandit.decide(x))
        bandit.learn(decisions[-1], float(row[int(decisions[-1].arm)]))
    return decisions


@dataclass
class LongHand:
    """Rows kept as they are; everything else is worked out from them with numpy's inverse, arm by arm."""

    policy: OptimisticEpsilonGreedy
    rows: list[list[tuple[Float64, float]]] = field(default_factory=lambda: [[] for _ in range(K)])
    solved: list[int] = field(default_factory=lambda: [0] * K)  # how many of an arm's rows were solved for

    def learn(self, arm: int, x: Float64, reward: float) -> None:
        self.rows[arm].append((x, reward))
        if len(self.rows[arm]) >= (1 + self.policy.growth) * self.solved[arm]:
            self.solved[arm] = len(self.rows[arm])

    def fit(self, arm: int) -> tuple[Float64, Float64, float]:
        """Return theta_hat, V^-1 and the sum of squared residuals."""
        some = self.rows[arm][: self.solved[arm]]
        X = np.array([x for x, _ in some]).reshape(len(some), D)
        r = np.array([reward for _, reward in some])
        inverse = np.linalg.inv(self.policy.ridge * np.eye(D) + X.T @ X)
        theta = inverse @ (X.T @ r)
        return theta, inverse, float(((r - X @ theta) ** 2).sum())

    def noise(self) -> float:
        known = [arm for arm in range(K) if self.solved[arm] > D]
        if known:
            spare = sum(self.solved[arm] - D for arm in known)
            # with a ridge, sum r^2 - b'theta - ridge |theta|^2 is the sum of squared residuals itself
            return float(np.sqrt(sum(self.fit(arm)[2] for arm in known) / spare))
        seen = [reward for arm in range(K) for _, reward in self.rows[arm][: self.solved[arm]]]
        return float(np.sqrt(np.mean(np.square(seen)))) if seen else 1.0

    def inflation(self) -> Float64:
        """Compare the squares of rough widths with those of widths, over the rows that an arm was solved for."""
        out = np.full(K, np.inf)
        for arm in np.flatnonzero(self.solved).tolist():
            X, inverse = np.array([x for x, _ in self.rows[arm][: self.solved[arm]]]), self.fit(arm)[1]
            widths = np.einsum("ni,ij,nj->", X, inverse, X)
            out[arm] = (X**2 @ inverse.diagonal()).sum() / widths if widths > 1e-9 else np.inf
        return out

    def bounds(self, x: Float64) -> tuple[Float64, Float64]:
        """Return the rough bounds and the exact ones."""
        radius = self.policy.width_scale * self.noise()
        fits = [self.fit(arm)[:2] for arm in range(K)]
        rough = [x @ theta + radius * np.sqrt((x**2 * inverse.diagonal()).sum()) for theta, inverse in fits]
        return np.array(rough), np.array([x @ theta + radius * np.sqrt(x @ inverse @ x) for theta, inverse in fits])


def lead(rough: Float64, exact: Float64, inflation: Float64) -> tuple[int, float]:
    """Return the arm that stays in the lead, and by how much some choice on the way was decided."""
    bounds, looked, margin = rough.copy(), set(np.flatnonzero(inflation < 1.5).tolist()), np.abs(inflation - 1.5).min()
    while True:
        order = np.argsort(bounds)
        margin = min(margin, bounds[order[-1]] - bounds[order[-2]])
        if (arm := int(order[-1])) in looked:
            return arm, float(margin)
        looked.add(arm)
        bounds[arm] = exact[arm]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_decisions_follow_the_definition(settings: dict[str, Any]) -> None:
    policy = OptimisticEpsilonGreedy(**settings, units="as given")
    bandit, byhand = Bandit(range(K), D, policy=policy, seed=1), LongHand(policy)
    (X, rewards), p, agreed = environment(600), settings.get("p", K), 0
    for t, (x, row) in enumerate(zip(X, rewards, strict=True), 1):
        coins, decision = kernel.coins(1, t), bandit.decide(x)
        explores = t <= np.ceil(p) or coins.coin < p / t
        assert decision.explored == explores
        if t <= np.ceil(p):
            assert (decision.arm, decision.propensity) == (t % K, 1.0)
        elif explores:
            assert decision.arm == (coins.pick * K) >> 64
        else:
            arm, margin = lead(*byhand.bounds(x), byhand.inflation())
            if margin > 1e-9:  # numpy's inverse and ours round apart, by far less than this
                assert decision.arm == arm
                assert decision.propensity == pytest.approx(1 - p / t + p / t / K, rel=1e-12)
                agreed += 1
        bandit.learn(decision, float(row[int(decision.arm)]))
        byhand.learn(int(decision.arm), x, float(row[int(decision.arm)]))
        assert bandit.state[SOLVED].n.tolist() == byhand.solved
    assert agreed > 400  # contexts of zeros, one in 27, and unknown arms tie


@pytest.mark.parametrize("units", ["free", "as given"])
@pytest.mark.parametrize("dim", [1, 3, 9])
def test_a_state_that_was_kept_or_copied_plays_on_alike(dim: int, units: Units) -> None:
    X, rewards = environment(300, seed=dim, dim=dim)
    bandit = Bandit(range(K), dim, policy=OptimisticEpsilonGreedy(units=units), seed=9)
    play(bandit, X[:200], rewards[:200])
    loaded, copied = from_bytes(bandit.to_bytes()), bandit.copy()
    arms = [(d.arm, d.propensity) for d in play(bandit, X[200:], rewards[200:])]
    for other in (loaded, copied):
        assert [(d.arm, d.propensity) for d in play(other, X[200:], rewards[200:])] == arms
        assert other.to_bytes() == bandit.to_bytes()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_estimates_widths_and_noise_are_those_of_the_rows_solved_for(settings: dict[str, Any]) -> None:
    policy = OptimisticEpsilonGreedy(**settings, units="as given")
    state, byhand, (X, rewards) = policy.init(K, D), LongHand(policy), environment(300)
    for t, (x, row) in enumerate(zip(X, rewards, strict=True), 1):
        arm = t * t % (K - 1)  # the last arm is never played
        policy.update(state, Interaction(t=t, x=x, arm=arm, reward=float(row[arm])))
        byhand.learn(arm, x, float(row[arm]))
        if t in (1, 2, 7, 30, 299):
            assert state[SOLVED].noise() == pytest.approx(byhand.noise(), rel=1e-9)
            for found, expected in zip(
                (policy.rough_bounds(state, x), policy.upper_bounds(state, x)), byhand.bounds(x), strict=True
            ):
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
            thetas = [byhand.fit(arm)[0] for arm in range(K)]
            np.testing.assert_allclose(policy.estimates(state), thetas, rtol=1e-9, atol=1e-9)


def test_solves_are_few() -> None:
    policy, rng = OptimisticEpsilonGreedy(), np.random.default_rng(4)
    state, solves = policy.init(1, D), 0
    for t in range(1, 5001):
        before = state[SOLVED].n[0]
        policy.update(state, Interaction(t=t, x=rng.normal(size=D), arm=0, reward=0.0))
        solves += state[SOLVED].n[0] != before
        assert state[ALL].n[0] < 1.1 * state[SOLVED].n[0]
    assert solves <= 1 + np.log(5000) / np.log(1.1)


def test_a_wrongly_low_estimate_is_found_out() -> None:
    """The first ten rewards of the better arm are poor: greed on all rows would leave it for good."""
    X, means = np.ones((4000, 1)), np.array([0.5, 1.0])
    rewards = means + 0.3 * np.random.default_rng(5).normal(size=(4000, 2))
    bandit = Bandit(range(2), 1, policy=OptimisticEpsilonGreedy(), seed=1)
    for _ in range(10):
        bandit.policy.update(bandit.state, Interaction(t=1, x=np.ones(1), arm=1, reward=0.2))
    arms = np.array([decision.arm for decision in play(bandit, X, rewards)])
    assert (arms[-1000:] == 1).mean() > 0.99


def test_arms_are_played_as_often_as_propensities_say() -> None:
    """At one step of one state, over 5000 seeds: within 5 standard deviations, an error in 10^6 for each arm."""
    policy, (X, rewards) = OptimisticEpsilonGreedy(p=20), environment(60)
    bandit = Bandit(range(K), D, policy=policy, seed=3)
    play(bandit, X[:59], rewards[:59])
    every: Bool = np.ones(K, dtype=np.bool_)
    chances = policy.probabilities(bandit.state, 60, X[59], every)
    n = 5_000
    played: Int64 = np.zeros(K, dtype=np.int64)
    for seed in range(n):
        played[policy.decide(bandit.state, 60, X[59], kernel.coins(seed, 60), every).arm] += 1
    assert chances.min() > 0
    assert (np.abs(played - n * chances) <= 5 * np.sqrt(n * chances * (1 - chances))).all()


def test_rewards_of_another_scale_lead_to_the_same_arms() -> None:
    X, rewards = environment(500)
    one, other = (Bandit(range(K), D, policy=OptimisticEpsilonGreedy(), seed=1) for _ in range(2))
    arms = [d.arm for d in play(one, X, rewards)]
    assert arms == [d.arm for d in play(other, X, 1024.0 * rewards)]  # a power of two scales without rounding


def test_memory_does_not_grow() -> None:
    bandit, (X, rewards) = Bandit(range(K), D, policy=OptimisticEpsilonGreedy(), seed=1), environment(3000)
    play(bandit, X[:10], rewards[:10])
    held = bandit.state.nbytes
    play(bandit, X[10:], rewards[10:])
    assert bandit.state.nbytes == held


def test_merging_and_forgetting_are_refused() -> None:
    one, other = (Bandit(range(K), D, policy=OptimisticEpsilonGreedy(), seed=seed) for seed in (1, 2))
    decision, (_, rewards) = play(one, *environment(50))[-1], environment(50)
    reward = float(rewards[-1][int(decision.arm)])
    before = one.state.arrays()["records"]
    with pytest.raises(MergeError, match="order of its rows"):
        one.merge(other)
    with pytest.raises(DecisionError, match="cannot take back"):
        one.forget(decision, reward)
    with pytest.raises(DecisionError, match="cannot take back"):
        one.correct(decision, reward, 0.0)
    assert np.array_equal(one.state.arrays()["records"], before)


def test_a_p_below_the_number_of_arms_is_refused() -> None:
    with pytest.raises(ValueError, match="p is 2 but there are 4 arms"):
        Bandit(range(K), D, policy=OptimisticEpsilonGreedy(p=2), seed=1)
