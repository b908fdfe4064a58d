"""Guards of bandits with several outcomes: both bandits have the dial, learn the parts, and spend what is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit, Decision
from armlet.errors import InvalidValueError
from armlet.log.guarded import Control, GuardedBandit, guard, read_guarded, second_of
from support.lives import DELAY, new_router

COST = {"small": 0.1, "large": 1.0, 3: 0.5}


def twin(live: Bandit) -> Bandit:
    return new_router(policy=armlet.LinUCB(), budget=live.settings.budget, known=live.settings.outcomes.known)  # type: ignore[union-attr]


GUARDS: dict[str, Callable[[Bandit], Bandit]] = {
    "control arm": lambda live: guard(live, control=Control(arm="large", share=0.4)),
    "control policy": lambda live: guard(
        live, control=Control(policy=armlet.LinUCB(), share=0.4), second=twin(live), role="control"
    ),
    "shadow": lambda live: guard(live, second=twin(live), role="shadow"),
    "frozen": lambda live: guard(live, second=live, role="learner"),
}
BUDGETS: dict[str, Any] = {
    "learned": {"budget": armlet.Budget("cost", total=9.0, horizon=60)},
    "known": {"known": {"delay": DELAY, "cost": COST}, "budget": armlet.Budget("cost", total=9.0, horizon=60)},
}


def guarded(guards: str, budget: str) -> GuardedBandit:
    live = new_router(epoch=None, **BUDGETS[budget])
    arms: Any = ["small", "large", 3] * 4
    outcomes: Any = {"quality": np.linspace(-1.0, 1.0, 12), "cost": [COST[arm] for arm in arms]}
    learned = {name: outcomes[name] for name in live.settings.outcomes.learned}  # type: ignore[union-attr]
    live.partial_fit(np.random.default_rng(2).standard_normal((12, 3)), arms, learned, steps=0)
    made = GUARDS[guards](live)
    assert isinstance(made, GuardedBandit)
    return made


def live_on(bandit: GuardedBandit, budget: str, steps: int = 40) -> list[Decision]:
    rng, made = np.random.default_rng(1), []
    for t in range(1, steps + 1):
        decision, _ = bandit.play(rng.standard_normal(3), t=t, weights={"cost": -float(t)} if t % 3 == 0 else None)
        made.append(decision)
        if t % 5:
            if budget == "learned":
                bandit.learn(decision, {"cost": COST[decision.arm]})
            bandit.learn(decision, {"quality": float(rng.normal(0.0, 0.3))})
    return made


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("guards", GUARDS)
def test_what_is_played_is_spent_once_by_both(guards: str, budget: str) -> None:
    bandit = guarded(guards, budget)
    made = live_on(bandit, budget)
    played = [one for one in made if budget == "known" or one.reward is not None]
    spent = sum(COST[one.arm] for one in played)
    for each in (bandit, second_of(bandit)):
        if each is not None:
            assert each.budget is not None
            assert each.budget.spent == pytest.approx(spent)
            assert each.budget.decisions == 40
            assert each.budget.waiting == (8 if budget == "learned" else 0)
    assert bandit.budget is not None
    assert bandit.budget.price > 0.0  # of which a frozen one is told, too


@pytest.mark.parametrize("guards", GUARDS)
def test_a_dial_turns_both(guards: str) -> None:
    """A dial by which nothing but the known cost counts: every policy plays the cheapest arm, once it has learned."""
    bandit = guarded(guards, "known")
    live_on(bandit, "known")
    cheap = {"quality": 0.0, "delay": 0.0, "cost": -1e6}
    plays = [bandit.play([0.5, 0.5, 0.0], t=41 + i, weights=cheap) for i in range(200)]
    assert all(decision.weights == cheap for decision, _ in plays)
    if guards == "shadow":
        assert {told["shadow"]["arm"] for _, told in plays[-50:]} == {"small"}
    live = [one for one, told in plays if not (told.get("control") or {}).get("played")]
    assert {one.arm for one in live if not one.explored and not one.optimistic} == {"small"}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("guards", GUARDS)
def test_a_guarded_bandit_with_outcomes_is_read_back(guards: str, budget: str) -> None:
    bandit = guarded(guards, budget)
    live_on(bandit, budget)
    assert read_guarded(bandit.to_bytes()).digest() == bandit.digest()


def test_one_arm_cannot_keep_a_hard_budget() -> None:
    hard = armlet.Budget("cost", total=9.0, horizon=60, hard=True)
    with pytest.raises(InvalidValueError, match="control is the arm 'large', but the budget is hard"):
        GUARDS["control arm"](new_router(known=BUDGETS["known"]["known"], budget=hard))
    bandit = guarded("control arm", "known")
    before = bandit.digest()
    with pytest.raises(InvalidValueError, match="give a policy as control"):
        bandit.replace(budget=hard)
    assert bandit.digest() == before


def test_bandits_of_other_outcomes_do_not_go_together() -> None:
    with pytest.raises(InvalidValueError, match="differ in outcomes or their budget"):
        guard(new_router(), second=new_router(known={"delay": {**DELAY, "small": 9.0}}), role="shadow")
    with pytest.raises(InvalidValueError, match="differ in outcomes or their budget"):
        guard(new_router(), second=new_router(budget=None), role="shadow")
