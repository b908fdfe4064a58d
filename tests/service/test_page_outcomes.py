"""What the page of a loop says of several outcomes, and of what is spent against a budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import armlet
from armlet.inputs.budget import Spending
from armlet.stores import Memory, Store
from armlet.stores.overview import Details
from support.service.pages import HOSTILE, details, make_router, route, shown


@pytest.fixture(scope="module")
def found() -> Details:
    with Store(Memory()) as store:
        loop = make_router(store)
        route(loop, 400)
        return loop.details()


def spending(**how: Any) -> Spending:
    budget = armlet.Budget("cost", **{"total": 250.0, "horizon": 100_000, **how.pop("budget", {})})
    return Spending(budget, **{"price": 12.5, "spent": 100.0, "decisions": 40_000, "waiting": 0, **how})


def test_a_loop_with_one_reward_has_neither_outcomes_nor_a_budget() -> None:
    parts = shown(details(40)).parts
    assert "outcomes" not in parts
    assert "budget" not in parts


def test_every_outcome_has_its_weight_mean_and_count(found: Details) -> None:
    text = shown(found).parts["outcomes"]
    [quality] = [each for each in found.outcomes if each.outcome == "quality" and each.arm is None]
    assert quality.mean is not None
    assert f"quality1{quality.mean:.4f}400" in text
    assert "cost known−50.0" in text
    assert "cost0.030.001" in text or "cost0.0010.03" in text  # by arm


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (spending(), "100 of 250 cost spent (40\u00a0%)"),
        (spending(), "After 40,000 of the 100,000 decisions of the horizon, that is as planned (100)."),
        (spending(), "150 is left, 0.0025 for each decision to come."),
        (spending(), "The price of one cost is 12.5: it counts as −17.5 rather than −5."),
        (spending(spent=130.0), "that is 30 more than planned (100)."),
        (spending(spent=70.0), "that is 30 less than planned (100)."),
        (spending(price=0.0), "The price of one cost is 0: the budget does not bind now."),
        (spending(waiting=1234), "Of 1,234 decisions it is not yet reported."),
        (
            spending(spent=260.0, decisions=100_000),
            "−10 is left, and no decision is to come: the price stays as it is.",
        ),
        (spending(budget={"horizon": None, "period": 100_000}), "of the 100,000 decisions of this period,"),
        (spending(budget={"hard": True}), "The budget is hard: arms that could exceed it are not played"),
        (spending(spent=0.0, decisions=0), "0 of 250 cost spent (0\u00a0%)"),
    ],
)
def test_what_is_spent_is_said_against_the_plan(found: Details, now: Spending, words: str) -> None:
    assert words in shown(replace(found, budget=now)).parts["budget"]


@pytest.mark.parametrize(("spent", "decisions"), [(0.0, 0), (100.0, 40_000), (500.0, 90_000), (-3.0, 10), (1e300, 1)])
def test_the_bar_stays_within_its_picture(found: Details, spent: float, decisions: int) -> None:
    seen = shown(replace(found, budget=spending(spent=spent, decisions=decisions)))
    bar = seen.html.partition('id="budget"')[2].partition("</svg>")[0]
    numbers = [float(text) for name in ("width", "x1", "x2") for text in _values(bar, name)]
    assert len(numbers) == 4
    assert all(0.0 <= number <= 240.0 for number in numbers)


def _values(html: str, name: str) -> list[str]:
    return [each.partition('"')[0] for each in html.split(f' {name}="')[1:]]


def test_hostile_names_of_outcomes_are_text() -> None:
    names = [name for name in HOSTILE if name.strip()]
    weights: dict[str, float] = dict.fromkeys(names, -1.0)
    with Store(Memory()) as store:
        budget = armlet.Budget(names[1], total=5.0, horizon=100)
        loop = store.loop("hostile", arms=HOSTILE, dim=1, outcomes=weights, budget=budget, seed=1)
        for at in range(30):
            loop.decide([1.0], event=f"r-{at}")
            loop.reward(f"r-{at}", dict.fromkeys(names, 0.5))
        seen = shown(loop.details())
    assert "script" not in {tag for tag in seen.tags if tag == "script" and seen.tags[tag] > 1}
    assert "<script>alert" not in seen.html
    assert "alert(1)" in seen.parts["outcomes"]
    assert "alert(1)" in seen.parts["budget"]


def test_defaults_by_outcome_are_told(found: Details) -> None:
    terms = {**found.terms, "window": 60.0, "default_reward": {"quality": 0.5}}
    assert "1\u00a0min, then the reward is quality 0.5" in shown(replace(found, terms=terms)).parts["settings"]
    terms["default_reward"] = {}
    assert "then outcomes that were not reported stay unknown" in shown(replace(found, terms=terms)).parts["settings"]
