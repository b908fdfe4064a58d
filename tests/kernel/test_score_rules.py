"""Rules that look at scores alone, constant rates and inverse gaps: what the kernel plays is what the policies say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet.kernel import ConstantRate, InverseGaps
from armlet.policies.base import compiled_rule
from armlet.testing.policies import check_law
from armlet.types import Policy
from support.examples import scaled

units = st.sampled_from(["free", "as given"])
sizes = st.one_of(st.none(), st.sampled_from([0.0, 1e-40, 0.3, 5.0, 1e6, 1e40]))
policies = st.one_of(
    st.builds(armlet.Greedy, units=units, ridge=st.sampled_from([1.0, 0.1, "paper", "1/n"])),
    st.builds(
        armlet.FixedEpsilon,
        epsilon=st.sampled_from([0.0, 1e-300, 0.1, 0.3, 0.7, 1.0]),
        units=units,
        ridge=st.sampled_from([1.0, "paper", "1/n"]),
    ),
    st.builds(armlet.SquareCB, gamma=sizes, gamma_scale=sizes, units=units, ridge=st.sampled_from([1.0, 0.01])),
    st.builds(armlet.SquareCB, gamma=sizes, units=st.just("as given"), ridge=st.sampled_from(["paper", "1/n"])),
)


@settings(max_examples=scaled(20))
@given(policies, st.sampled_from([1, 2, 3, 7, 9, 20, 40]), st.sampled_from([1, 3, 8]))
def test_kernel_plays_what_the_policy_says(policy: Policy, n_arms: int, dim: int) -> None:
    assert compiled_rule(policy) is not None
    check_law(policy, n_arms, dim)


@settings(max_examples=scaled(20))
@given(policies, st.integers(0, 2**32))
def test_a_batch_is_decided_as_step_by_step(policy: Policy, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bandit = armlet.Bandit(range(5), 3, policy=policy, seed=seed)
    X = rng.integers(-1, 2, size=(60, 3)).astype(float)
    bandit.partial_fit(X[:30], rng.integers(5, size=30), rng.normal(size=30))
    twin = bandit.copy()
    together = list(bandit.decide_many(X, eligible=[0, 2, 3]))
    assert [d.to_dict() for d in together] == [twin.decide(x, eligible=[0, 2, 3]).to_dict() for x in X]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConstantRate(1.5), r"rate is 1.5; it must lie in \[0, 1\], or be None"),
        (lambda: ConstantRate(float("nan")), "rate is nan"),
        (lambda: InverseGaps(gamma=-1.0, grows=True, by_noise=False), "gamma is -1.0"),
        (lambda: InverseGaps(gamma=float("inf"), grows=False, by_noise=True), "gamma is inf"),
    ],
)
def test_a_rule_that_is_none_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
