"""The example of a router in LiteLLM, with a stand-in for the package: what is chosen, counted and kept.

`benchmarks/test_litellm.py` runs it with the package itself.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from support.litellm.runs import REQUESTS, STAND_IN, Left, served
from support.litellm.stand_in import PRICES


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Left:
    return served(STAND_IN, tmp_path_factory.mktemp("whole") / "router.db")


def test_a_router_that_was_killed_decides_as_one_that_was_not(whole: Left, tmp_path: Path) -> None:
    killed = served(STAND_IN, tmp_path / "router.db", kills=[1, 30, 70])
    assert set(killed.said) == set(whole.said)  # what was acknowledged, before a kill or after, is what counts
    assert len(whole.said) == REQUESTS < len(killed.said)
    assert killed.events == whole.events
    assert (killed.digest, killed.spending) == (whole.digest, whole.spending)


def test_every_answer_is_billed_once_and_to_the_model_that_gave_it(whole: Left) -> None:
    answers = Counter(line.split()[1] for line in whole.said)
    prices = dict(zip(("nano", "mini", "full"), PRICES.values(), strict=True))
    assert whole.spending is not None
    assert whole.spending.spent == pytest.approx(sum(prices[arm] * n for arm, n in answers.items()), rel=1e-12)


def test_a_model_that_is_down_is_stood_in_for_and_that_is_reported(whole: Left) -> None:
    chosen = {event["event"]: event["arm"] for event in whole.events if event["kind"] == "decide"}
    answered = {f"request-{n}": arm for n, arm in (line.split() for line in whole.said)}
    others = {name for name, arm in answered.items() if chosen[name] != arm}
    assert others
    assert {chosen[name] for name in others} == {"mini"}
    assert all((int(name.removeprefix("request-")) + 1) % 25 == 0 for name in others)


def test_sessions_keep_their_model_within_an_epoch(whole: Left) -> None:
    decided = [event for event in whole.events if event["kind"] == "decide"]
    kept = {(event["unit"], event["epoch"]): event["arm"] for event in decided}
    assert len(kept) < len(decided) / 3
    assert all(kept[event["unit"], event["epoch"]] == event["arm"] for event in decided)


def test_every_tenth_session_has_a_dial(whole: Left) -> None:
    dials = {event["unit"]: event.get("weights") for event in whole.events if event["kind"] == "decide"}
    thrifty = {"quality": 1.0, "cost": -1000.0}
    assert all(dials[f"session-{n}"] == (thrifty if n % 10 == 9 else None) for n in range(len(dials)))
