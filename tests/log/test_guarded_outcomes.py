"""Casts of bandits with several outcomes: all bandits have the dial, learn the parts, and spend what is played."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit, Decision
from armlet.cast.cast import SHADOW, Cast, shadows_of
from armlet.cast.control import Control
from armlet.errors import BudgetError, InvalidValueError
from support.lives import DELAY, new_router

COST = {"small": 0.1, "large": 1.0, 3: 0.5}


def twin(live: Bandit) -> Bandit:
    return new_router(policy=armlet.LinUCB(), budget=live.settings.budget, known=live.settings.outcomes.known)  # type: ignore[union-attr]


CONTROL = Control(policy=armlet.LinUCB(), share=0.4)
CASTS: dict[str, Callable[[Bandit], Cast]] = {
    "control arm": lambda live: Cast(live, control=Control(arm="large", share=0.4)),
    "control policy": lambda live: Cast(live).with_control(CONTROL, twin(live)),
    "shadow": lambda live: Cast(live).with_shadows({SHADOW: armlet.LinUCB()}, {SHADOW: twin(live)}),
    "frozen": lambda live: Cast(live).frozen(),
    "all": lambda live: (
        Cast(live)
        .with_control(CONTROL, twin(live))
        .with_shadows({name: armlet.LinUCB() for name in "ab"}, {name: twin(live) for name in "ab"})
        .frozen()
    ),
}
BUDGETS: dict[str, Any] = {
    "learned": {"budget": armlet.Budget("cost", total=9.0, horizon=60)},
    "known": {"known": {"delay": DELAY, "cost": COST}, "budget": armlet.Budget("cost", total=9.0, horizon=60)},
}


def cast_of(kind: str, budget: str) -> Cast:
    live = new_router(epoch=None, **BUDGETS[budget])
    arms: Any = ["small", "large", 3] * 4
    outcomes: Any = {"quality": np.linspace(-1.0, 1.0, 12), "cost": [COST[arm] for arm in arms]}
    learned = {name: outcomes[name] for name in live.settings.outcomes.learned}  # type: ignore[union-attr]
    live.partial_fit(np.random.default_rng(2).standard_normal((12, 3)), arms, learned, steps=0)
    return CASTS[kind](live)


def live_on(cast: Cast, budget: str, steps: int = 40) -> list[Decision]:
    rng, made = np.random.default_rng(1), []
    for t in range(1, steps + 1):
        decision, _ = cast.decide(rng.standard_normal(3), t=t, weights={"cost": -float(t)} if t % 3 == 0 else None)
        made.append(decision)
        if t % 5:
            if budget == "learned":
                cast.learn(decision, {"cost": COST[decision.arm]})
            cast.learn(decision, {"quality": float(rng.normal(0.0, 0.3))})
    return made


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("kind", CASTS)
def test_every_member_spends_what_is_played_once(kind: str, budget: str) -> None:
    cast = cast_of(kind, budget)
    made = live_on(cast, budget)
    played = [one for one in made if budget == "known" or one.reward is not None]
    spent = sum(COST[one.arm] for one in played)
    for each in cast.members:
        assert each.budget is not None
        assert each.budget.spent == pytest.approx(spent)
        assert each.budget.decisions == 40
        assert each.budget.waiting == (8 if budget == "learned" else 0)
        assert each.budget.price > 0.0  # a frozen one follows the others


@pytest.mark.parametrize("kind", CASTS)
def test_a_dial_turns_every_member(kind: str) -> None:
    """A dial by which nothing but the known cost counts: every policy plays the cheapest arm, once it has learned."""
    cast = cast_of(kind, "known")
    live_on(cast, "known")
    cheap = {"quality": 0.0, "delay": 0.0, "cost": -1e6}
    plays = [cast.decide([0.5, 0.5, 0.0], t=41 + i, weights=cheap) for i in range(200)]
    assert all(decision.weights == cheap for decision, _ in plays)
    assert {each["arm"] for _, fields in plays[-50:] for each in shadows_of(fields).values()} <= {"small"}
    live = [one for one, fields in plays if not (fields.get("control") or {}).get("played")]
    assert {one.arm for one in live if not one.explored and not one.optimistic} == {"small"}


def test_hard_budget_pays_arm_of_control() -> None:
    """The control plays its arm where the total pays it, and the live policy plays all other steps."""
    hard = armlet.Budget("cost", total=9.0, horizon=60, hard=True)
    cast = CASTS["control arm"](new_router(epoch=None, known=BUDGETS["known"]["known"], budget=hard))
    made: list[tuple[Decision, Mapping[str, Any]]] = []
    with contextlib.suppress(BudgetError):  # until it pays no arm
        made.extend(cast.decide(np.ones(3), t=t) for t in range(1, 1000))
    shares = [fields["control"]["share"] for _, fields in made]
    assert cast.live.budget is not None
    assert cast.live.budget.spent <= 9.0
    assert any(fields["control"]["played"] for _, fields in made)
    assert set(shares) == {0.4, 0.0}
    for (decision, _), share in zip(made, shares, strict=True):
        assert share == (0.4 if decision.eligible is None or "large" in decision.eligible else 0.0)


def test_bandits_of_other_outcomes_do_not_go_together() -> None:
    with pytest.raises(InvalidValueError, match="differ in outcomes or their budget"):
        Cast(new_router(), shadows={SHADOW: new_router(known={"delay": {**DELAY, "small": 9.0}})})
    with pytest.raises(InvalidValueError, match="differ in outcomes or their budget"):
        Cast(new_router(), shadows={SHADOW: new_router(budget=None)})
