"""The contract over the whole registry, and the contract's own power to refuse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import armlet
from armlet.kernel import Optimism, Schedule
from armlet.policies import Algorithm1, FixedEpsilon, LinUCB, ThompsonSampling, Uniform
from armlet.reference.choice import play_best, play_drawn
from armlet.testing import check_policy
from armlet.testing.policies import CHECKS, Check, check_frequencies
from armlet.types import Bool, Choice, Coins, Float64, Interaction, Policy
from support.contract import checks
from support.policies import DIM, N_ARMS, TESTED, every_policy

pytestmark = pytest.mark.spread


@pytest.mark.parametrize("check", CHECKS if TESTED == "library" else checks(), ids=lambda check: str(check.__name__))
@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_policy_keeps_its_promises(policy: Policy, check: Check) -> None:
    check(policy, N_ARMS, DIM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faulty(Algorithm1):
    """Run in Python, so that faults can be planted."""

    def rule(self) -> None:  # type: ignore[override]
        return None


class BoastsOfPropensity(Faulty):
    def decide(self, state: armlet.Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        choice = Faulty.decide(self, state, t, x, coins, eligible)
        return choice._replace(propensity=min(1.0, choice.propensity * 1.5))


class IgnoresEligibility(Faulty):
    def decide(self, state: armlet.Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        return Faulty.decide(self, state, t, x, coins, np.ones_like(eligible))


class LearnsWhileDeciding(Faulty):
    def decide(self, state: armlet.Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        state.add(0, x, 1.0)
        return Faulty.decide(self, state, t, x, coins, eligible)


class NeverPlaysTheLastArm(Faulty):
    def decide(self, state: armlet.Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        choice = Faulty.decide(self, state, t, x, coins, eligible)
        return choice._replace(arm=0) if choice.arm == N_ARMS - 1 and eligible.all() else choice


class RollsItsOwnDice(Faulty):
    def update(self, state: armlet.Statistics, interaction: Interaction) -> None:
        state.add(interaction.arm, interaction.x, float(np.random.default_rng().normal()))


@pytest.mark.parametrize(
    "fault", [BoastsOfPropensity, IgnoresEligibility, LearnsWhileDeciding, NeverPlaysTheLastArm, RollsItsOwnDice]
)
def test_contract_refuses_a_faulty_policy(fault: type[Faulty]) -> None:
    with pytest.raises(AssertionError):
        check_policy(fault(p=20, warmup="uniform"), n_arms=N_ARMS, dim=DIM)


class PlaysTheFirstArmTooOften(FixedEpsilon):
    """Off by 0.08 at chances of 1/4."""

    def decide(self, state: armlet.Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        choice = FixedEpsilon.decide(self, state, t, x, coins, eligible)
        return choice._replace(arm=0) if coins.coin < 0.08 / 0.75 else choice


def test_frequencies_tell_an_arm_that_is_played_a_little_too_often() -> None:
    with pytest.raises(AssertionError, match="arms, and ranks, were played"):
        check_frequencies(PlaysTheFirstArmTooOften(epsilon=1.0), N_ARMS, DIM)


class PlaysTheLowestBound(LinUCB):
    def decide(self, state: armlet.Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        return play_best(-self.upper_bounds(state, x), eligible, coins)


class ForgetsRewards(LinUCB):
    def update(self, state: armlet.Statistics, interaction: Interaction) -> None:
        state.add(interaction.arm, interaction.x, 0.0 * interaction.reward + interaction.t % 2)


class SpreadsOnlyWhereItDecides(ThompsonSampling):
    def deviations(self, state: armlet.Statistics, t: int, x: Float64) -> Float64:
        return 2 * ThompsonSampling.deviations(self, state, t, x)

    def probabilities(self, state: armlet.Statistics, t: int, x: Float64, eligible: Bool) -> Float64:
        return ThompsonSampling(v=self.v).probabilities(state, t, x, eligible)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribesAnother(LinUCB):
    """A law of its own, and to the kernel a wider one."""

    def rule(self) -> Optimism:
        return Optimism.constant(3 * self.width_factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOfUniform(Uniform):
    """Started from a copy of uniform.py, with its rule() left in."""

    def rule(self) -> Schedule:
        return Uniform.rule(self)

    def decide(self, state: armlet.Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        return Choice(int(np.flatnonzero(eligible)[0]), 1.0 / np.count_nonzero(eligible), True)


@pytest.mark.parametrize(
    "faulty",
    [
        PlaysTheLowestBound(alpha=0.5),
        ForgetsRewards(alpha=0.5),
        SpreadsOnlyWhereItDecides(v=0.5),
        DescribesAnother(alpha=0.5),
        CopyOfUniform(),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_contract_refuses_a_compiled_policy_that_is_played_otherwise_than_it_says(faulty: Policy) -> None:
    # refused when the bandit is made (TypeError), or by the contract: passed over by the engine or asked by it, none of
    # these says one thing in all of its methods
    with pytest.raises((AssertionError, TypeError)):
        check_policy(faulty, n_arms=N_ARMS, dim=DIM)


def test_the_same_policy_without_a_fault_passes() -> None:
    check_policy(Faulty(p=20, warmup="uniform"), n_arms=N_ARMS, dim=DIM)


@pytest.mark.parametrize("p", [0, -1, 0.5, float("nan"), float("inf"), "many", None, True])
def test_p_must_be_a_number_of_at_least_one(p: object) -> None:
    with pytest.raises(ValueError, match="p is"):
        Algorithm1(p=p)  # type: ignore[arg-type]


def test_wrong_settings_are_named() -> None:
    with pytest.raises(ValueError, match="warmup is 'random'; choose 'round-robin' or 'uniform'"):
        Algorithm1(p=5, warmup="random")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ridge is -1; choose 'paper', '1/n' or a positive number from 1e-40"):
        Algorithm1(p=5, ridge=-1)
    with pytest.raises(TypeError, match="policy is the class Algorithm1; pass an instance"):
        armlet.Bandit(range(4), 3, policy=Algorithm1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"theta has shape \(2, 3\) but there are 4 arms of dim 3"):
        armlet.Bandit(range(4), 3, policy=armlet.Oracle(theta=[[1, 2, 3], [4, 5, 6]]))


def test_bandit_that_was_not_set_up_says_so() -> None:
    class Forgetful(armlet.Bandit):
        def __init__(self) -> None:
            pass

    with pytest.raises(TypeError, match=r"must call super\(\).__init__"):
        Forgetful().decide([1.0])


def test_a_coin_next_to_one_plays_the_last_arm_that_has_a_chance() -> None:
    coins = Coins(1 - 2**-53, 0, 0, 0)
    assert play_drawn(np.array([0.1] * 10), coins).arm == 9
    assert play_drawn(np.array([0.7, 0.3, 0.0]), coins).arm == 1
