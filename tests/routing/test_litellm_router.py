"""The example of a router in LiteLLM, with a stand-in for the package: what is chosen, counted and kept.

`benchmarks/test_litellm.py` runs it with the package itself.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import armlet
from support.litellm.runs import EXAMPLE, REQUESTS, STAND_IN, Left, served
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


@pytest.mark.parametrize("requests", [300, 400, 800])
def test_the_example_keeps_its_budget(requests: int, tmp_path: Path) -> None:
    """By epochs of 20 requests it once ended 10.5 % over."""
    command = [*STAND_IN, str(tmp_path / "router.db"), str(requests)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    with armlet.open_store(tmp_path / "router.db") as store:
        spending = store.loop("models").model().budget
    assert spending is not None
    assert said.stdout.splitlines()[-1] == repr(spending)
    assert 0.75 * spending.total <= spending.spent <= spending.total
    assert spending.decisions_left <= 0.06 * requests


def test_an_old_litellm_is_named_with_the_fix(tmp_path: Path) -> None:
    lines = (
        "import runpy, sys, types",
        "package, router = types.ModuleType('litellm'), types.ModuleType('litellm.router')",
        "router.Router, router.CustomRoutingStrategyBase = type('Router', (), {}), object",
        "sys.modules |= {'litellm': package, 'litellm.router': router}",
        "import importlib.metadata",
        "importlib.metadata.version = lambda name: '1.106.2'",
        f"sys.argv = ['router', {str(tmp_path / 'router.db')!r}, '4']",
        f"runpy.run_path({EXAMPLE!r}, run_name='__main__')",
    )
    run = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "litellm is 1.106.2, whose Router has no register_plugin; pip install --upgrade" in run.stderr
