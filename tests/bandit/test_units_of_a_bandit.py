"""What a bandit says of units, and the law that only exploits."""

from __future__ import annotations

import numpy as np
import pytest

import armlet
from armlet.inputs.settings import Units
from armlet.types import Policy

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 3))
ARMS = RNG.integers(0, 4, size=60)
REWARDS = X[:, 0] * (ARMS - 1.5) + 100.0


def make(policy: Policy, **settings: object) -> armlet.Bandit:
    return armlet.Bandit(range(4), 3, policy=policy, seed=1, **settings)  # type: ignore[arg-type]


def test_a_bandit_says_its_units() -> None:
    assert make(armlet.LinUCB()).settings.units == "free"
    assert make(armlet.LinUCB(units="as given")).settings.units == "as given"
    assert make(armlet.Algorithm1(p=60)).settings.units == "as given"


@pytest.mark.parametrize("units", ["free", "as given"])
def test_units_of_a_bandit_are_a_setting_of_its_policy(units: Units) -> None:
    bandit = make(armlet.Greedy(), units=units)
    assert bandit.settings.units == units
    assert bandit.policy == armlet.Greedy(units=units)
    assert armlet.from_bytes(bandit.to_bytes()).settings.units == units


@pytest.mark.parametrize("policy", [armlet.OFUL(), armlet.Uniform()], ids=repr)
def test_free_units_are_refused_where_a_policy_cannot(policy: Policy) -> None:
    assert make(policy, units="as given").settings.units == "as given"
    with pytest.raises(ValueError, match=r"units is 'free', but \w+ takes units as given; leave units out"):
        make(policy, units="free")


def test_other_words_are_refused() -> None:
    with pytest.raises(ValueError, match="units is 'metric'; choose 'free' or 'as given'"):
        make(armlet.Greedy(), units="metric")


@pytest.mark.parametrize("units", ["free", "as given"])
def test_the_greedy_law_is_predict_as_probabilities(units: Units) -> None:
    bandit = make(armlet.Greedy(units=units))
    bandit.partial_fit(X, ARMS, REWARDS)
    for eligible in (None, [0, 2]):
        law = bandit.predict_proba(X, eligible=eligible, mode="greedy")
        assert np.array_equal(np.argmax(law, axis=1), bandit.predict(X, eligible=eligible))
        assert np.array_equal(np.sort(law, axis=1)[:, -1], np.ones(60))
        assert np.array_equal(law, bandit.predict_proba(X, eligible=eligible)), "greedy has nothing but this law"


def test_the_greedy_law_shares_among_arms_that_tie() -> None:
    bandit = make(armlet.Greedy())
    bandit.retire_arm(3)
    np.testing.assert_array_equal(
        bandit.predict_proba(X[:2], mode="greedy"), np.tile([1 / 3, 1 / 3, 1 / 3, 0.0], (2, 1))
    )


def test_the_greedy_law_is_not_the_turn_of_a_warm_up() -> None:
    bandit = make(armlet.Algorithm1(p=1000))
    bandit.partial_fit(X, ARMS, REWARDS, explored=True)
    turns, learned = bandit.predict_proba(X), bandit.predict_proba(X, mode="greedy")
    assert len(np.unique(turns, axis=0)) == 1, "regardless of the context"
    assert len(np.unique(learned, axis=0)) > 1
    with pytest.raises(ValueError, match="mode is 'eager'; choose one of 'exploring', 'greedy'"):
        bandit.predict_proba(X, mode="eager")  # type: ignore[arg-type]


def test_expectations_are_in_the_units_of_the_user() -> None:
    bandit = make(armlet.Greedy(ridge=1e-6))
    x = np.column_stack([X, np.ones(60)])
    bandit.partial_fit(X, ARMS, REWARDS)
    seen = bandit.predict_expectations(X)
    for arm in range(4):
        rows = arm == ARMS
        slopes = np.linalg.lstsq(x[rows], REWARDS[rows], rcond=None)[0]
        # the intercept has a row at the mean of all rewards: that moves it by less than the spread over the rows
        assert np.abs(seen[:, arm] - x @ slopes).max() < 2.0
