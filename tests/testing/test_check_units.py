"""The contract of free units over the registry, and its own power to refuse."""

from __future__ import annotations

import pytest

from armlet.kernel import Statistics
from armlet.policies import Algorithm1, ContextualEpsilonGreedy, LinUCB, ThompsonSampling
from armlet.testing import CHANGES, check_units
from armlet.testing.units import UnitChange, check_change
from armlet.types import Bool, Choice, Coins, Float64, Policy
from support.in_python import InPython
from support.policies import DIM, N_ARMS, every_policy

FREE = [policy for policy in every_policy() if getattr(policy, "units", "as given") == "free"]


def name_of(value: object) -> str:
    return value.name if isinstance(value, UnitChange) else type(value).__name__


@pytest.mark.parametrize("change", CHANGES, ids=name_of)
@pytest.mark.parametrize("policy", FREE, ids=name_of)
def test_units_are_free_where_a_policy_says_so(policy: Policy, change: UnitChange) -> None:
    check_change(policy, change, N_ARMS, DIM)


@pytest.mark.parametrize("n_arms", [1, 7])
@pytest.mark.parametrize("dim", [1, 8])
def test_units_are_free_in_other_sizes(n_arms: int, dim: int) -> None:
    check_units(LinUCB(units="free"), n_arms=n_arms, dim=dim)


def test_units_are_free_by_default_in_the_policies_that_can() -> None:
    names = {type(policy).__name__ for policy in FREE}
    assert names >= {
        "ContextualEpsilonGreedy",
        "AllDataEpsilonGreedy",
        "FixedEpsilon",
        "Greedy",
        "LinUCB",
        "SquareCB",
        "ThompsonSampling",
    }


# --- the contract refuses --------------------------------------------------------------------------------------------

AS_GIVEN: list[Policy] = [
    Algorithm1(p=20),
    ContextualEpsilonGreedy(p=20, units="as given"),
    LinUCB(units="as given"),
    ThompsonSampling(units="as given"),
]
NEUTRAL = ("rewards times a power of two",)  # a ridge is as strong in any scale of rewards


@pytest.mark.filterwarnings("ignore:.*lie so far from zero:RuntimeWarning")  # as they should
@pytest.mark.parametrize("change", [change for change in CHANGES if change.name not in NEUTRAL], ids=name_of)
@pytest.mark.parametrize("policy", AS_GIVEN, ids=name_of)
def test_units_as_given_are_refused(policy: Policy, change: UnitChange) -> None:
    with pytest.raises(AssertionError, match=change.name):
        check_change(policy, change, N_ARMS, DIM)
    with pytest.raises(AssertionError):
        check_units(policy)


@pytest.mark.parametrize("policy", [LinUCB(units="as given"), ThompsonSampling(units="as given")], ids=name_of)
def test_widths_that_do_not_grow_with_rewards_are_refused(policy: Policy) -> None:
    with pytest.raises(AssertionError, match="rewards times a power of two"):
        check_change(policy, CHANGES[-2], N_ARMS, DIM)


class Trembles(InPython):
    """Its propensities depend on the size of features, by a hair that only equality to the last bit sees."""

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        choice = super().decide(state, t, x, coins, eligible)
        return choice._replace(propensity=choice.propensity * (1 - 1e-9 * min(1.0, abs(float(x[0])))))


def test_powers_of_two_must_not_change_a_bit() -> None:
    policy = Trembles(p=1e9)  # it plays at random, so arms are the same in all units
    close, exact = (UnitChange(name="twice", scales=(2.0,), exact=exact) for exact in (False, True))
    with pytest.raises(AssertionError, match="expectations"):  # which come last: arms and propensities are close enough
        check_change(policy, close, N_ARMS, DIM)
    with pytest.raises(AssertionError, match="twice: step 1 played arm"):
        check_change(policy, exact, N_ARMS, DIM)


def test_expectations_must_speak_the_users_units() -> None:
    policy = Algorithm1(p=1e9)  # the same arms with the same chances whatever the units
    with pytest.raises(AssertionError, match="plus 100: expectations differ by"):
        check_units(policy)
