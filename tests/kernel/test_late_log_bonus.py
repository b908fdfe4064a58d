"""With rewards that come late, out of order or never, the compiled log bonus is its numpy oracle to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet.inputs.settings import Ridge, Units
from armlet.reference.choice import coins
from armlet.reference.log_bonus import Noise, PacedReference
from support.examples import scaled


def oracle(n_arms: int, dim: int, **how: Any) -> PacedReference:
    return PacedReference(
        n_arms=n_arms,
        dim=dim,
        seed=7,
        ridge=Ridge("constant", 1.0),
        finds_ridge=how.get("units", "free") == "free",
        clock="evidence",
        learns_from="every step",
        **how,
    )


class Both:
    """A bandit and its oracle, with the same rows."""

    def __init__(self, n_arms: int, dim: int, *, q: float, **how: Any) -> None:
        policy = armlet.OccasionalOptimism(p=q * n_arms, **how)
        self.bandit = armlet.Bandit(range(n_arms), dim, policy=policy, seed=7)
        self.plain = oracle(n_arms, dim, p=q * n_arms, **how)
        self.pending: list[armlet.Decision] = []
        self.done: list[armlet.Decision] = []

    def decide(self, rng: np.random.Generator) -> None:
        n_arms, x = self.plain.n_arms, rng.normal(size=self.plain.dim)
        eligible = np.sort(rng.choice(n_arms, size=rng.integers(1, n_arms + 1), replace=False))
        mask = np.isin(np.arange(n_arms), eligible)
        chances = self.bandit.predict_proba([x], eligible=eligible.tolist())[0]
        law, tossed = self.plain.law(self.bandit.t + 1, x, mask), coins(7, self.bandit.t + 1)
        said, alone = law.decide(n_arms, tossed), law.decide_conditionally(n_arms, tossed)
        twin = self.bandit.copy()
        d = self.bandit.decide(x, eligible=eligible.tolist(), propensity="marginal")
        for made, expected in ((d, said), (twin.decide(x, eligible=eligible.tolist()), alone)):
            assert (made.arm, made.propensity) == (expected.arm, expected.propensity)
            assert (made.explored, made.optimistic) == (expected.explored, expected.optimistic)
            assert made.greedy == (expected.greedy if expected.explored else True)
            assert made.exploration_rate == expected.exploration_rate
            assert made.marginal == (made is d or law.share == 1.0 or law.law.rate == 1.0)
        assert chances.tolist() == law.probabilities(n_arms).tolist()
        assert chances[said.arm] == said.propensity
        self.plain.begin(said.arm)
        self.pending.append(d)

    def learn(self, rng: np.random.Generator) -> None:
        if self.pending:
            d = self.pending.pop(rng.integers(len(self.pending)))
            reward = float(int(d.arm) + rng.normal())
            self.bandit.learn(d, reward)
            self.plain.end(int(d.arm))
            self.plain.add(int(d.arm), d.x, reward)
            self.done.append(d)

    def expire(self, rng: np.random.Generator) -> None:
        if self.pending:
            d = self.pending.pop(rng.integers(len(self.pending)))
            self.bandit.expire(d)
            self.plain.end(int(d.arm))

    def forget(self, rng: np.random.Generator) -> None:
        if self.done:
            d = self.done.pop(rng.integers(len(self.done)))
            reward = d.reward
            assert reward is not None
            self.bandit.forget(d, reward)
            self.plain.add(int(d.arm), d.x, reward, -1.0)


@settings(max_examples=scaled(40))
@given(
    acts=st.lists(st.sampled_from(["decide", "decide", "decide", "learn", "learn", "expire", "forget"]), max_size=80),
    seed=st.integers(0, 2**32),
    shape=st.sampled_from([(1, 1), (2, 1), (3, 2), (6, 9)]),
    units=st.sampled_from(["free", "as given"]),
    noise=st.sampled_from(["pool", "max", "shrunk"]),
    share=st.sampled_from([0.2, 1.0]),
    q=st.sampled_from([0.1, 2.0]),
)
def test_kernel_plays_the_same_steps_as_the_reference_when_rewards_are_late_or_lost(
    acts: list[str], seed: int, shape: tuple[int, int], units: Units, noise: Noise, share: float, q: float
) -> None:
    both, rng = Both(*shape, q=q, units=units, noise=noise, share=share), np.random.default_rng(seed)
    for act in acts:
        getattr(both, act)(rng)
        assert both.bandit.state.under_way.tolist() == both.plain.under_way.tolist()
    assert both.bandit.state.n.tolist() == both.plain.n.tolist()


@pytest.mark.parametrize(("n_arms", "dim"), [(30, 12), (20, 40), (7, 66)])
def test_the_best_arm_is_that_of_the_plain_loop_with_decisions_under_way(n_arms: int, dim: int) -> None:
    """Widths are bounded before they are worked out, in three ways by size; each must bound the shrunk width too."""
    rng = np.random.default_rng(n_arms)
    policy = armlet.OccasionalOptimism(share=1.0)
    bandit, theta = armlet.Bandit(range(n_arms), dim, policy=policy, seed=1), rng.normal(size=(n_arms, dim))
    pending: list[armlet.Decision] = []
    every = np.ones(n_arms, dtype=np.bool_)
    for x in rng.normal(size=(400, dim)):
        law = policy.exploring(bandit.state, bandit.t + 1, every)
        bounds = policy.upper_bounds(bandit.state, bandit.t + 1, x)
        best = np.flatnonzero(bounds == bounds.max())
        expected = law.with_best(n_arms, lambda _: best)  # noqa: B023
        assert bandit.predict_proba([x])[0].tolist() == expected.tolist()
        pending.append(bandit.decide(x))
        if len(pending) > 60:
            d = pending.pop(rng.integers(len(pending)))
            bandit.learn(d, float(d.x @ theta[int(d.arm)] + rng.normal()))
    assert bandit.state.under_way.sum() == len(pending)
