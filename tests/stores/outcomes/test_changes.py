"""Loops with outcomes that change: weights, prices with the arms that have them, budgets, policies and guards."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

import armlet
from armlet.errors import BudgetError, EventError, InvalidTypeError, InvalidValueError, LoopStateError
from armlet.stores import Control, Loop, Store
from armlet.testing.stores import Place
from support.loops import Ticks, ticking
from support.stores import rebuilt

WEIGHTS = {"quality": 1.0, "cost": -4.0}
PRICES: dict[str, dict[str | int, float]] = {"cost": {"a": 0.25, "b": 0.5}}
BUDGET = armlet.Budget("cost", total=20.0, horizon=100)


def make(store: Store, **how: Any) -> Loop:
    given: dict[str, Any] = {"arms": ["a", "b"], "dim": 1, "policy": armlet.LinUCB(), "outcomes": WEIGHTS, "seed": 5}
    return store.loop("router", **given | how)


def play(loop: Loop, start: int = 0, n: int = 20, **how: Any) -> None:
    names = loop.model().settings.outcomes.learned  # type: ignore[union-attr]
    for i in range(start, start + n):
        loop.decide([(i % 5) / 4], event=f"e{i}", **how)
        for at, name in enumerate(names):
            loop.reward(f"e{i}", {name: ((i + at) % 4) / 4})


def check(store: Store) -> None:
    """Check that rows and log lead to what a loop knows, with its guards."""
    loop = store.loop("router")
    loop.model()
    digest = store._runners["router"].cast.digest()
    assert rebuilt(store, "router").digest() == digest
    assert armlet.audit(loop.log.replayable, loop.log.start).digest == digest


# ---- dials


def test_an_event_has_one_dial(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store)
        first = loop.decide([1.0], event="e", weights={"cost": -8.0})
        plain = loop.decide([1.0], event="plain")
        same: list[Any] = [{"cost": -8.0}, {"quality": 1.0, "cost": -8.0}, {"cost": -8}]
        for weights in same:
            assert loop.decide([1.0], event="e", weights=weights).id == first.id
        others: list[Any] = [{"cost": -9.0}, {"quality": 2.0, "cost": -8.0}, {}, None]
        for weights in others:
            with pytest.raises(EventError, match="another context, unit, weights or other eligible arms"):
                loop.decide([1.0], event="e", weights=weights)
        with pytest.raises(EventError, match="weights"):
            loop.decide([1.0], event="plain", weights={"cost": -4.0})
        loop.change(outcomes={"quality": 3.0})
        again = loop.decide([1.0], event="e", weights={"cost": -8.0})  # the same call, though it would mean another now
        assert (again.id, again.weights) == (first.id, {"quality": 1.0, "cost": -8.0})
        assert loop.decide([1.0], event="plain").id == plain.id
        assert loop.decide([1.0], event="new", weights={"cost": -8.0}).weights == {"quality": 3.0, "cost": -8.0}
        with pytest.raises(InvalidTypeError, match=r"weights is 3.0; give them by outcome"):
            loop.decide([1.0], weights=3.0)  # type: ignore[call-overload]
        with pytest.raises(InvalidValueError, match="there is no outcome 'speed'"):
            loop.decide([1.0], weights={"speed": 3.0})
        assert loop.model().t == 3


def test_dials_and_parts_without_a_thread_that_waits(place: Place) -> None:
    async def work(loop: Loop) -> list[Any]:
        made = await loop.adecide([1.0], event="e", weights={"cost": -8.0})
        many = await loop.adecide_many([[1.0]], events=["f"], weights={"cost": -8.0})
        statuses = [await loop.areward("e", {"cost": 0.5}), *await loop.areward_many([("e", {"quality": 0.5})])]
        store_statuses = await store.areward_many([{"loop": "router", "event": "f", "value": {"cost": 0.5}}])
        return [made.weights, many[0].weights, *statuses, *store_statuses]

    with Store(place()) as store:
        dial = {"quality": 1.0, "cost": -8.0}
        assert asyncio.run(work(make(store))) == [dial, dial, "accepted", "accepted", "accepted"]


# ---- weights, prices, budgets


def test_weights_that_change_are_a_row(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store)
        play(loop)
        loop.change(outcomes={"cost": -400.0}, reward_range={"quality": (-2.0, 2.0)})
        several = loop.model().settings.outcomes
        assert several is not None
        assert several.weights == {"quality": 1.0, "cost": -400.0}
        assert several.ranges == {"quality": (-2.0, 2.0), "cost": (-1.0, 1.0)}
        play(loop, 20)
        assert loop.reward("e3", {"quality": 0.5}, rank=1) == "replaced"
        check(store)
        changed = loop.details().changes[0].text
        assert changed.startswith("outcomes: ")
    with Store(place()) as store:
        with pytest.raises(LoopStateError, match=r"outcomes is .*-4.0.* but loop 'router' has .*-400.0"):
            make(store, reward_range={"quality": (-2.0, 2.0)})
        with pytest.raises(LoopStateError, match=r"reward_range is .* but loop 'router' has .*-2.0"):
            make(store, outcomes={**WEIGHTS, "cost": -400.0}, reward_range={"quality": (-3.0, 3.0)})
        loop = make(store, on_change="apply")
        assert loop.model().settings.outcomes.weights == WEIGHTS  # type: ignore[union-attr]
        same = store.loop("router", arms=["a", "b"], dim=1, policy=armlet.LinUCB())  # which says nothing of outcomes
        assert same.model().settings == loop.model().settings
        with pytest.raises(LoopStateError, match=r"outcomes is .* but loop 'router' was made with"):
            make(store, outcomes={**WEIGHTS, "speed": 1.0})
        check(store)


def test_arms_come_with_their_prices(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store, known=PRICES)
        play(loop)
        with pytest.raises(InvalidValueError, match="known has no cost of arm 'c'"):
            loop.add_arm("c")
        loop.add_arm("c", known={"cost": 0.125})
        loop.change(arms=["a", "c", "d"], known={"cost": {"d": 0.75, "a": 0.5}})
        assert loop.model().arms.retired == ["b"]
        prices = loop.model().settings.outcomes.known["cost"]  # type: ignore[union-attr]
        assert prices == {"a": 0.5, "b": 0.5, "c": 0.125, "d": 0.75}
        play(loop, 20)
        check(store)
        before = loop.version()
        for how, words in (
            ({"known": {"speed": {"a": 1.0}}}, "known has 'speed', which is no outcome"),
            ({"known": {"cost": 3.0}}, r"known\['cost'\] is 3.0"),
            ({"outcomes": {"speed": 1.0}}, "outcomes has 'speed', which is no outcome"),
            ({"reward_range": (0, 1)}, "give one for each outcome by name"),
            ({"budget": armlet.Budget("speed", total=1.0, horizon=9)}, "budget is of 'speed', which is no outcome"),
        ):
            with pytest.raises((InvalidValueError, InvalidTypeError), match=words):
                loop.change(**how)
        assert loop.version() == before
        again = {"cost": {"a": 0.5, "c": 0.125, "d": 0.75, "e": 1.0}}
        loop = make(store, arms=["a", "c", "d", "e"], known=again)  # a price of a new arm comes with the arm
        assert "e" in loop.model().arms
        with pytest.raises(LoopStateError, match=r"known is \{'cost': \{'a': 0.25\}\}, but loop 'router' has"):
            make(store, known=PRICES)
        check(store)


def test_one_reward_has_no_outcomes_to_change(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", arms=["a"], dim=1)
        for how in ({"outcomes": WEIGHTS}, {"known": PRICES}, {"budget": BUDGET}):
            with pytest.raises(InvalidValueError, match="the bandit has one reward"):
                loop.change(**how)


def test_a_budget_that_changes_goes_on_from_what_was_spent(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store, known=PRICES, budget=BUDGET)
        play(loop)
        before = loop.stats().budget
        assert before is not None
        assert before.spent > 0
        loop.change(budget=armlet.Budget("cost", total=40.0, horizon=200))
        after = loop.stats().budget
        assert after is not None
        assert (after.spent, after.total, after.decisions_left) == (before.spent, 40.0, 180)
        with pytest.raises(LoopStateError, match="budget is None, but loop 'router' has Budget"):
            make(store, known=PRICES, budget=None)
        play(loop, 20)
        check(store)
        text = store.metrics()
        assert f'armlet_budget_spent{{loop="router",outcome="cost"}} {loop.stats().budget.spent}' in text  # type: ignore[union-attr]
        assert 'armlet_mean_outcome{loop="router",outcome="quality",arm="a",arm_type="str"}' in text
        assert "budget: " in str(loop.stats())
        assert loop.stats().to_dict()["budget"]["total"] == 40.0
        assert loop.health() == []


def test_a_hard_budget_is_answered_and_nothing_is_written(place: Place) -> None:
    hard = armlet.Budget("cost", total=1.0, horizon=100, hard=True)
    with Store(place()) as store:
        loop = make(store, known=PRICES, budget=hard)
        with suppress(BudgetError):
            for i in range(9):
                loop.decide([0.5], event=f"e{i}")
        before = loop.version(), loop.model().digest()
        spent = loop.stats().budget
        assert spent is not None
        assert 0.75 < spent.spent <= 1.0
        for ask in (lambda: loop.decide([0.5], event="more"), lambda: loop.decide_many([[0.5]] * 3)):
            with pytest.raises(BudgetError, match="the budget is hard"):
                ask()
        assert (loop.version(), loop.model().digest()) == before
        check(store)
    with Store(place()) as store:
        with pytest.raises(InvalidValueError, match="budget is hard, but nothing bounds 'cost'"):
            store.loop("other", arms=["a"], dim=1, outcomes=WEIGHTS, budget=hard)
        loop = store.loop("other", arms=["a"], dim=1, outcomes=WEIGHTS, budget=hard, reward_range={"cost": (0, 0.5)})
        loop.decide_many([[0.5]] * 2)
        with pytest.raises(BudgetError):
            loop.decide([0.5])


# ---- policies, guards, models, forgetting


@pytest.mark.parametrize("known", [PRICES, None], ids=["known", "learned"])
def test_guards_keep_the_budget(known: Any, place: Place) -> None:
    """What is spent is what was played, by whomever; a frozen policy goes by the price of now."""
    with Store(place()) as store:
        loop = make(store, known=known, budget=BUDGET, control=Control(arm="a", share=0.3), outcomes=WEIGHTS)
        play(loop)
        loop.change(shadow=armlet.ThompsonSampling(), how="refit")
        play(loop, 20)
        check(store)
        loop.promote(gate="off", control=0.2)
        play(loop, 40)
        check(store)
        loop.change(control=None)
        loop.freeze()
        play(loop, 60)
        loop.change(budget=armlet.Budget("cost", total=40.0, horizon=200))
        check(store)
        loop.thaw()
        check(store)
        arms = {row.fields["event"]: row.fields["arm"] for row in loop._ledger.rows(1) if row.kind == "decide"}
        costs = [PRICES["cost"][arm] if known else ((i + 1) % 4) / 4 for i, arm in enumerate(arms.values())]
        budget = loop.stats().budget
        assert budget is not None
        assert (budget.spent, budget.waiting, budget.decisions_left) == (sum(costs), 0, 120)


def test_a_loop_starts_from_a_model_with_outcomes(place: Place) -> None:
    model = armlet.Bandit(["a", "b"], 1, outcomes=WEIGHTS, known=PRICES, budget=BUDGET, seed=5)
    for i in range(9):
        model.learn(model.decide([i / 9]), {"quality": i / 9})
    with Store(place()) as store:
        loop = store.loop("router", model=model, window=9.0)
        now = loop.model()
        assert (now.budget, now.settings.outcomes.ranges) == (model.budget, {"quality": (-1.0, 1.0)})  # type: ignore[union-attr]
        assert store.loop("router", model=model, window=9.0, reward_range={"quality": (-1, 1)}).name == "router"
        with pytest.raises(InvalidValueError, match="outcomes is given, but the model has its own"):
            store.loop("other", model=model, outcomes=WEIGHTS)
        check(store)


def test_what_is_forgotten_takes_its_parts_along(place: Place) -> None:
    with Store(place()) as store:
        loop = make(store, budget=BUDGET)
        play(loop)
        loop.decide([1.0], event="half")
        loop.reward("half", {"cost": 0.5})
        budget, n = loop.stats().budget, {one.outcome: one.values for one in loop.stats().outcomes if one.arm is None}
        assert loop.forget_many(["half", "e3"]) == 2
        after = {one.outcome: one.values for one in loop.stats().outcomes if one.arm is None}
        assert after == {"cost": n["cost"] - 2, "quality": n["quality"] - 1}
        assert loop.stats().budget == budget  # what was spent stays spent
        assert loop.reward("half", {"quality": 0.5}) == "unknown"
        assert loop.model().state.n.sum() == 19
        check(store)
        last = loop.details().last[1]  # the last one is forgotten
        assert last.parts == {"quality": 0.75, "cost": 0.0}
        assert last.reward is None


def test_a_loop_whose_parts_come_apart_is_healthy_until_they_stop(place: Place) -> None:
    """Costs come at once, qualities after half a minute; a decision counts once as rewarded."""
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        loop = make(store, policy=armlet.FixedEpsilon(epsilon=0.2))
        for i in range(400):
            loop.decide([(i % 7) / 7], event=f"e{i}")
            loop.reward(f"e{i}", {"cost": (i % 5) / 5})
            if i >= 10:
                loop.reward(f"e{i - 10}", {"quality": (i % 3) / 3})
            clock.now += 3.0
        assert loop.health() == []
        stats = loop.stats()
        assert stats.open == 10
        assert stats.rewarded_by_age[-1][1] == 1.0
        for i in range(400, 500):
            loop.decide([(i % 7) / 7], event=f"e{i}")
            clock.now += 3.0
        assert [alarm.rule for alarm in loop.health()] == ["silence"]
        details = loop.details()
        assert "alarm" in str(details)
        assert "router" in loop._repr_html_()
        assert [len(one.parts or {}) for one in details.last] == [0] * 20
