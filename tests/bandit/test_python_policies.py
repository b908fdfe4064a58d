"""Policies written in Python: what they answer is checked, what they override is played, and they leave no garbage."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from armlet import Bandit, LinUCB
from armlet.errors import PolicyError
from armlet.kernel import Schedule
from armlet.policies.base import compiled_rule
from armlet.policies.fixed_epsilon import FixedEpsilon
from armlet.policies.uniform import Uniform
from armlet.types import Bool, Choice, Coins, Float64, Int64, Interaction

ANSWER: list[Any] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Rogue(FixedEpsilon):
    """Answers whatever the test wants."""

    def decide(self, state: Any, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        return ANSWER[0] if ANSWER else FixedEpsilon.decide(self, state, t, x, coins, eligible)

    def probabilities(self, state: Any, t: int, x: Float64, eligible: Bool) -> Float64:
        return ANSWER[0] if ANSWER else FixedEpsilon.probabilities(self, state, t, x, eligible)

    def estimates(self, state: Any) -> Float64:
        return ANSWER[0] if ANSWER else FixedEpsilon.estimates(self, state)


def rogue(answer: Any) -> Bandit:
    ANSWER.clear()
    bandit = Bandit(["a", "b", "c"], 2, policy=Rogue(), seed=1)
    bandit.learn(bandit.decide([1.0, 2.0]), 1.0)
    bandit.retire_arm("c")
    ANSWER.append(answer)
    return bandit


CHOICES: dict[str, tuple[Any, str]] = {
    "beyond the last": (Choice(3, 0.5, True), r"Rogue\.decide at step 2 chose arm 3 of 3 arms; choose one of \[0, 1\]"),
    "negative": (Choice(-1, 0.5, True), "chose arm -1"),
    "huge": (Choice(2**40, 0.5, True), "chose arm 1099511627776"),
    "beyond 64 bits": (Choice(2**70, 0.5, True), "chose arm"),
    "retired": (Choice(2, 0.5, True), "chose arm 2"),
    "a label": (Choice("a", 0.5, True), "chose arm 'a'"),  # type: ignore[arg-type]
    "none": (Choice(None, 0.5, True), "chose arm None"),  # type: ignore[arg-type]
    "no chance": (Choice(0, 0.0, True), r"gave the propensity 0\.0; it must be above 0"),
    "more than 1": (Choice(0, 1.5, True), r"gave the propensity 1\.5"),
    "nan": (Choice(0, float("nan"), True), "gave the propensity nan"),
    "text": (Choice(0, "half", True), "gave the propensity 'half'"),  # type: ignore[arg-type]
    "long tag": (Choice(0, 0.5, True, 2**40), "gave the tag"),
    "no choice": (0, r"gave 0; give a Choice\(arm, propensity, explored\)"),
    "nothing": (None, "gave None"),
    "too short": ((0,), r"gave \(0,\)"),
}


@pytest.mark.parametrize("case", CHOICES)
def test_choice_that_cannot_be_is_refused_with_policy_step_and_value(case: str) -> None:
    answer, message = CHOICES[case]
    bandit = rogue(answer)
    before = bandit.to_bytes()
    with pytest.raises(PolicyError, match=message):
        bandit.decide([1.0, 2.0])
    with pytest.raises(PolicyError, match=message):
        bandit.decide_many([[1.0, 2.0]])
    assert bandit.to_bytes() == before


def test_numbers_of_numpy_are_as_good_as_pythons_own() -> None:
    decision = rogue((np.int64(1), np.float32(0.5), np.bool_(True))).decide([1.0, 2.0])
    assert (decision.arm, decision.propensity, decision.explored, decision.tag) == ("b", 0.5, True, 0)


CHANCES: dict[str, tuple[Any, str]] = {
    "do not sum to 1": (
        np.array([0.5, 0.6, 0.0]),
        r"Rogue\.probabilities at step 2 gave probabilities that sum to 1\.1",
    ),
    "negative": (np.array([-0.5, 1.5, 0.0]), r"gave -0\.5 to arm 0"),
    "nan": (np.array([np.nan, 1.0, 0.0]), "gave nan to arm 0"),
    "of a retired arm": (np.array([0.5, 0.4, 0.1]), r"gave 0\.1 to arm 2, which is not eligible"),
    "too few": (np.array([1.0]), "one number for each of the 3 arms"),
    "integers": (np.array([1, 0, 0]), "give a float64 array"),
    "no array": ([1.0, 0.0, 0.0], "give a float64 array"),
}


@pytest.mark.parametrize("case", CHANCES)
def test_probabilities_that_are_none_are_refused(case: str) -> None:
    answer, message = CHANCES[case]
    with pytest.raises(PolicyError, match=message):
        rogue(answer).predict_proba([[1.0, 2.0]])


@pytest.mark.parametrize("answer", [np.ones((2, 2)), np.ones(6), np.ones((3, 2), dtype=np.int64), None])
def test_estimates_of_another_shape_are_refused(answer: Any) -> None:
    for call in (lambda: rogue(answer).predict([[1.0, 2.0]]), lambda: rogue(answer).predict_expectations([[1.0, 2.0]])):
        with pytest.raises(PolicyError, match=r"(?s)Rogue\.estimates gave .*; give a C-contiguous float64 array"):
            call()


# ---- what a subclass overrides is played


@dataclass(frozen=True, slots=True, kw_only=True)
class LastArm(LinUCB):
    """Overrides the choice of a compiled policy."""

    def decide(self, state: Any, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        return Choice(int(np.flatnonzero(eligible)[-1]), 1.0, False)

    def probabilities(self, state: Any, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        chances = np.zeros(len(eligible))
        chances[np.flatnonzero(eligible)[-1]] = 1.0
        return chances


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubling(LinUCB):
    """Overrides what a compiled policy learns."""

    def update(self, state: Any, interaction: Interaction) -> None:
        LinUCB.update(self, state, interaction)
        LinUCB.update(self, state, interaction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pessimist(LinUCB):
    """Overrides a helper of a compiled policy."""

    def upper_bounds(self, state: Any, x: Float64, arms: Int64 | None = None) -> Float64:
        return -LinUCB.upper_bounds(self, state, x, arms)


def test_subclass_of_a_compiled_policy_is_played_as_written() -> None:
    last = Bandit(["a", "b", "c"], 1, policy=LastArm(), seed=1)
    assert {last.decide([1.0]).arm for _ in range(20)} == {"c"}
    assert last.predict_proba([[1.0]]).tolist() == [[0.0, 0.0, 1.0]]
    doubled = Bandit(["a", "b"], 1, policy=Doubling(), seed=1)
    doubled.learn(doubled.decide([1.0]), 1.0)
    assert doubled.state.n.sum() == 2.0
    gloomy = Bandit(["a", "b"], 1, policy=Pessimist(units="as given"), seed=1)
    gloomy.partial_fit([[1.0]] * 9, ["a"] * 9, [5.0] * 9)
    assert gloomy.decide([1.0]).arm == "b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tame(LinUCB):
    """Changes a default and nothing else."""

    alpha: float | None = 0.1

    def check(self, n_arms: int, dim: int, t: int) -> None:
        pass


def test_subclass_that_keeps_the_law_stays_compiled() -> None:
    ours, theirs = (Bandit(["a", "b"], 1, policy=p, seed=1) for p in (Tame(), LinUCB(alpha=0.1)))
    assert [ours.decide([1.0]).id for _ in range(5)] == [theirs.decide([1.0]).id for _ in range(5)]
    assert compiled_rule(Tame()) is not None


class Copied(Uniform):
    """A copy of the smallest policy, with its rule left in."""

    def rule(self) -> Schedule:
        return Schedule(2.0, round_robin=True, learn_always=False)


def test_rule_of_a_policy_that_is_not_armlets_own_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"Copied\.rule\(\) gives a Schedule.*return None, and its own decide"):
        Bandit(["a", "b"], 1, policy=Copied(), seed=1)


# ---- garbage

LEAKS = """
import gc, weakref
from dataclasses import dataclass
import armlet
from armlet.policies.fixed_epsilon import FixedEpsilon

@dataclass(frozen=True, kw_only=True)
class Mine(FixedEpsilon):
    pass

class Shop(armlet.Bandit):
    pass

at_module_level = armlet.Bandit(["a", "b"], 2, policy=Mine(), seed=1)
at_module_level.learn(at_module_level.decide([1.0, 2.0]), 1.0)
compiled = armlet.Bandit(["a", "b"], 2, policy=armlet.LinUCB(), seed=1)

def cycle(policy):
    shop = Shop(["a", "b"], 2, policy=policy, seed=1)
    shop.itself = shop
    shop.state.owner = shop
    return weakref.ref(policy) if policy.__class__ is Mine else None

def class_cycle():
    class Local(FixedEpsilon):
        def decide(self, state, t, x, coins, eligible):
            assert Local.shop.policy is self
            return super().decide(state, t, x, coins, eligible)

    Local.shop = Shop(["a", "b"], 2, policy=Local(), seed=1)
    Local.shop.learn(Local.shop.decide([1.0, 2.0]), 1.0)
    return weakref.ref(Local.shop), weakref.ref(Local)

gone = [cycle(Mine()) for _ in range(20)]
[cycle(armlet.LinUCB()) for _ in range(20)]
through_class = [ref for _ in range(20) for ref in class_cycle()]
gc.collect()
print([ref() for ref in gone].count(None), [ref() for ref in through_class].count(None))
print(sum(isinstance(o, Shop) for o in gc.get_objects()))
"""


def test_garbage_collector_sees_through_a_bandit() -> None:
    done = subprocess.run([sys.executable, "-c", LEAKS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "20 40\n0\n", "")
