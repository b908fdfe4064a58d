"""The contract of several outcomes refuses bandits and policies with a fault planted in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit
from armlet.errors import InvalidValueError
from armlet.policies import LinUCB
from armlet.testing import outcomes
from armlet.testing.outcomes import OUTCOME_CHECKS, check_outcomes

FAULTS: dict[type[Bandit], str] = {}


def refused_by(promise: str) -> Callable[[type[Bandit]], type[Bandit]]:
    def note(faulty: type[Bandit]) -> type[Bandit]:
        FAULTS[faulty] = promise
        return faulty

    return note


@refused_by("a dial gave")
class IgnoresTheDial(Bandit):
    def decide(self, x: Any, **how: Any) -> Any:
        how.pop("weights", None)
        return super().decide(x, **how)


@refused_by("a dial left something behind")
class TurnsTheDialForGood(Bandit):
    def decide(self, x: Any, **how: Any) -> Any:
        if how.get("weights") is not None:
            self.replace(outcomes=how.pop("weights"))
        return super().decide(x, **how)


@refused_by("was learned before all of its outcomes had come")
class FillsInWhatIsMissing(Bandit):
    def learn(self, decision: Any, reward: Any, **how: Any) -> None:
        if isinstance(reward, dict) and reward and not decision.learned:
            super().learn(decision, {**dict.fromkeys(outcomes.WEIGHTS, 0.0), **reward}, **how)


@refused_by("was refused but changed the state")
class LearnsBeforeItLooks(Bandit):
    def learn(self, decision: Any, reward: Any, **how: Any) -> None:
        if reward == {"cost": 0.1, "price": 1.0}:
            super().learn(super().decide(decision.x), dict.fromkeys(outcomes.WEIGHTS, 1.0))
        super().learn(decision, reward, **how)


@refused_by("forgetting did not undo")
class ForgetsOneRowForAnother(Bandit):
    def forget(self, decision: Any, reward: Any) -> None:
        super().forget(decision, reward)
        super().partial_fit([decision.x], [decision.arm], {name: [1.0] for name in outcomes.WEIGHTS}, explored=True)


@refused_by("merged states differ")
class MergesTwice(Bandit):
    def merge(self, other: Bandit) -> None:
        super().merge(other)
        super().merge(other.copy(seed=99))


@refused_by("after save and load")
class LosesWhatWasSpent(Bandit):
    def to_bytes(self) -> bytes:
        twin = self.copy()
        twin._restore_spending(np.zeros(10))
        return Bandit.to_bytes(twin)


@pytest.mark.parametrize("faulty", FAULTS, ids=lambda faulty: str(faulty.__name__))
def test_a_bandit_with_a_fault_is_refused(faulty: type[Bandit], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "Bandit", faulty)
    with pytest.raises(AssertionError, match=FAULTS[faulty]):
        check_outcomes(armlet.LinUCB(), 4, 3)


class PlayedInPython(LinUCB):
    def upper_bounds(self, state: Any, x: Any, arms: Any = None) -> Any:
        return super().upper_bounds(state, x, arms) + 1.0


def test_a_policy_that_is_asked_in_python_says_that_it_learns_from_one_reward() -> None:
    check_outcomes(PlayedInPython(), 4, 3)
    with pytest.raises(InvalidValueError, match=r"PlayedInPython.* asked in Python and learns from one reward"):
        Bandit(["a", "b"], 1, policy=PlayedInPython(), outcomes={"quality": 1.0, "cost": -1.0})


def test_without_a_fault_all_is_kept() -> None:
    for check in OUTCOME_CHECKS:
        check(armlet.OccasionalOptimism(), 3, 17)
