"""Casts: members decide, learn and change together or not at all; propensities are those of the mixture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit
from armlet.cast.cast import MAGIC, PAIR_MAGIC, SHADOW, Cast
from armlet.cast.control import Control
from armlet.cast.law import law_of, mix, point
from armlet.cast.model import read_cast
from armlet.errors import ArmletError, DecisionError, InternalError, InvalidValueError, ModelFileError
from armlet.types import Policy

ARMS = ["a", "b", "c"]
X = [1.0, 0.5]
SHADOWS: dict[str, Policy] = {"greedy": armlet.Greedy(), SHADOW: armlet.ThompsonSampling()}
EPSILON = armlet.FixedEpsilon(epsilon=0.3)


def learned(policy: Policy, seed: int = 7) -> Bandit:
    bandit, rng = Bandit(ARMS, 2, policy=policy, seed=seed), np.random.default_rng(3)
    for _ in range(30):
        x = [1.0, float(rng.integers(3)) / 2]
        decision = bandit.decide(x)
        bandit.learn(decision, float(rng.random() < 0.3 + 0.4 * (decision.arm == "b")))
    return bandit


def whole(live: Policy = EPSILON, control: Control | None = None) -> Cast:
    """Return a cast with everybody: a control, two shadows and a learner."""
    control = Control(policy=armlet.LinUCB(), share=0.4) if control is None else control
    player = None if control.policy is None else learned(control.policy)
    others = {name: learned(policy) for name, policy in SHADOWS.items()}
    return Cast(learned(live)).with_control(control, player).with_shadows(SHADOWS, others).frozen()


@pytest.mark.parametrize("control", [Control(arm="a", share=0.4), Control(policy=armlet.ThompsonSampling(), share=0.4)])
@pytest.mark.parametrize("live", [EPSILON, armlet.ThompsonSampling(), armlet.LinUCB()])
def test_propensities_are_those_of_the_mixture(live: Policy, control: Control) -> None:
    """Each chance is (1 - s) times the live policy's and s times the control's, and arms are drawn as often: of 4,000
    steps from one state a frequency has a standard error below sqrt(0.25 / 4000) = 0.0079; 5 of them are 0.04."""
    cast, drawn = whole(live, control), Counter[Any]()
    for t in range(31, 4031):
        one = cast.copy() if t < 35 else cast
        mine = cast.live.predict_proba([X])[0] if t == 31 else None
        decision, fields = one.decide(X, t=t, probabilities="all" if t < 35 else None)
        drawn[decision.arm] += 1
        if mine is None:
            one.expire(decision)
        else:
            assert decision.probabilities is not None
            expected = law_of(
                cast.live.copy().decide(X, t=t, probabilities="all", propensity="marginal"), cast.live.arms
            )
            theirs = point("a")
            if cast.player is not None:
                chosen = cast.player.copy().decide(X, t=t, probabilities="all", propensity="marginal")
                theirs = law_of(chosen, cast.live.arms)
            p = mix([("live", 0.6, expected), ("control", 0.4, theirs)])
            assert decision.probabilities.tolist() == p.at(cast.live.arms)
            assert decision.propensity == p.chance(decision.arm)
            assert sum(p.chances) == pytest.approx(1.0, abs=1e-12)
            assert fields["shadows"].keys() == SHADOWS.keys()
    assert all(abs(drawn[arm] / 4000 - p.chance(arm)) < 0.04 for arm in ARMS)


def test_cast_is_read_back_from_its_bytes() -> None:
    cast = whole()
    data = cast.to_bytes()
    again = read_cast(data)
    assert data.startswith(MAGIC)
    assert (again.to_bytes(), again.digest()) == (data, cast.digest())
    assert again.describe() == cast.describe()
    assert list(again.describe()["shadows"]) == ["greedy", "shadow"]
    assert [each.seed for each in again.members] == [each.seed for each in cast.members]
    pair = Cast(learned(EPSILON)).with_shadows({SHADOW: EPSILON})
    assert pair.to_bytes().startswith(PAIR_MAGIC)
    with pytest.raises(ModelFileError, match="is damaged"):
        read_cast(data[:-1])


def test_coins_of_members_differ() -> None:
    cast = whole()
    assert cast.learner is not None
    assert len({each.seed for each in cast.members}) == len(cast.members) - 1  # a learner decides nothing
    assert cast.learner.seed == cast.live.seed


CALLS: dict[str, Callable[[Cast, Any], object]] = {
    "correct": lambda cast, decision: cast.correct(decision, 1.0, 0.0),
    "forget": lambda cast, decision: cast.forget(decision, 1.0),
    "retire_arm": lambda cast, _: cast.retire_arm("b"),
    "add_arm": lambda cast, _: cast.add_arm("d"),
    "replace": lambda cast, _: cast.replace(reward_range=(-2.0, 2.0)),
}


@pytest.mark.parametrize("call", CALLS)
def test_call_that_one_member_refuses_changes_none(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cast = whole()
    decision, _ = cast.decide(X, t=31)
    cast.learn(decision, 1.0)
    before = cast.to_bytes()
    last = cast.shadows["shadow"].seed
    act = getattr(Bandit, call)

    def refuse(self: Bandit, *args: Any, **options: Any) -> None:
        if self.seed == last:
            raise DecisionError("no")
        act(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Bandit, call, refuse, raising=False)
        with pytest.raises(DecisionError, match=r"^no$"):
            CALLS[call](cast, decision)
    assert cast.to_bytes() == before
    CALLS[call](cast, decision)
    assert cast.to_bytes() != before


def test_refusal_of_first_member_changes_none() -> None:
    cast = whole()
    decision, _ = cast.decide(X, t=31)
    before = cast.to_bytes()
    for call in (lambda: cast.decide(X, t=32, eligible=["z"]), lambda: cast.learn(decision, 7e400)):
        with pytest.raises(ArmletError):
            call()
        assert cast.to_bytes() == before


def test_member_that_refuses_what_the_first_has_learned_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    cast = whole()
    decision, _ = cast.decide(X, t=31)

    def refuse(*_: Any, **__: Any) -> None:
        raise InvalidValueError("no")

    monkeypatch.setattr(cast.shadows["shadow"], "learn", refuse, raising=False)
    with pytest.raises(InternalError, match="nothing of this call was kept: one bandit of the loop refused it: no"):
        cast.learn(decision, 1.0)
