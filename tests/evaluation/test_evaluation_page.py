"""The page of an evaluation: what it shows and what it holds back, in a real browser too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from armlet.core.intervals import Interval
from armlet.evaluation.checks import Check, Checks, Word
from armlet.evaluation.page import Difference, Story, Valued, limits, render
from armlet.evaluation.traces import Running, Spread
from armlet.policies import ContextualEpsilonGreedy
from support import browser
from support.decided import played

TARGETS = {"logged": None, "always 0": 0, "always 1": 1, "always 2": 2}


@pytest.fixture(scope="module")
def usual() -> Story:
    """A log of a bandit and four policies, one of which has too little support."""
    rows = played(ContextualEpsilonGreedy(p=40, floor=0.05), 1500)
    checks = Checks(range(3), 3, list(TARGETS))
    paths, spreads, told = [], [], []
    chances = {name: np.tile(np.eye(3)[arm or 0], (len(rows), 1)) for name, arm in TARGETS.items()}
    chances["logged"] = np.eye(3)[rows.arm]
    checks.add(rows, chances)
    for name, probabilities in chances.items():
        w = probabilities[np.arange(len(rows)), rows.arm] / rows.propensity if name != "logged" else np.ones(len(rows))
        running, spread = Running((0.0, 1.0)), Spread()
        running.add(rows.reward, w)
        spread.add(w)
        paths.append(running.found(name))
        spreads.append(spread.found(name))
        value, end = float((w * rows.reward).sum() / w.sum()), paths[-1]
        told.append(
            Valued(
                name=name,
                value=value,
                fixed=Interval(value - 0.06, value + 0.06),
                anytime=Interval(float(end.low[-1]), float(end.high[-1])),
                rows=len(rows),
                ess=checks.support[name].ess,
                estimator="doubly robust, weighted",
            )
        )
    few = Check(name="rows", word=Word.WARNING, sentence="Few.", number=12.0, unit="effective rows", target="always 2")
    kept = tuple(each for each in checks.found() if (each.name, each.target) != ("rows", "always 2"))
    return Story(
        title="What four policies would have earned",
        unit="reward",
        policies=told,
        baseline="logged",
        differences=[
            Difference(name=each.name, value=each.value - told[0].value, interval=Interval(-0.1, 0.05))
            for each in told[1:]
        ],
        paths=paths,
        weights=spreads,
        checks=(*kept, few),
        rows=len(rows),
        manifest={"made by": "a test", "log": "decisions.jsonl"},
    )


@pytest.fixture(scope="module")
def far(usual: Story) -> Story:
    """The same with names that would like to be HTML, a policy that is refused, no sequences and no baseline."""
    refused = Check(
        name="support",
        word=Word.REFUSED,
        sentence="It cannot be evaluated from this log: <b>all</b> of what it plays was never tried.",
        number=1.0,
        unit="share",
        target="<b>a long name of a policy</b> & more",
    )
    policies = [replace(each, anytime=None) for each in usual.policies]
    policies[1] = replace(policies[1], name="<b>a long name of a policy</b> & more", value=987.654)
    return replace(usual, policies=policies, baseline=None, paths=(), weights=(), checks=(*usual.checks, refused))


@pytest.fixture(scope="module")
def pages(usual: Story, far: Story, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    bare = replace(
        usual, policies=usual.policies[:1], differences=(), checks=(), paths=usual.paths[:1], weights=usual.weights[1:2]
    )
    for name, story in {"usual": usual, "far": far, "bare": bare}.items():
        (folder / f"{name}.html").write_text(render(story), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in ("usual", "far", "bare")}


@pytest.mark.parametrize("name", ["usual", "far", "bare"])
def test_nothing_is_loaded_from_anywhere(pages: dict[str, Path], name: str) -> None:
    text = pages[name].read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"'&]*", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"<(script|link|img|iframe|object|image|b)\b", text)


def test_the_same_story_gives_the_same_bytes(usual: Story) -> None:
    assert render(usual) == render(usual)


def test_a_refused_policy_has_neither_value_nor_interval(pages: dict[str, Path]) -> None:
    text = pages["far"].read_text(encoding="utf-8")
    assert "refused: see the checks" in text
    assert "988" not in text
    assert "987.654" not in text


def test_every_check_is_told_with_its_word_and_number(pages: dict[str, Path], usual: Story) -> None:
    text = pages["usual"].read_text(encoding="utf-8")
    for check in usual.checks:
        assert check.sentence.replace("'", "&#x27;") in text
    assert text.count('<tr role="row"><th') >= len(usual.checks)


def test_limits_depend_on_what_was_found(usual: Story, far: Story) -> None:
    assert not any("No range of rewards" in told for told in limits(usual))
    assert any("No range of rewards" in told for told in limits(far))
    drifted = Check(name="drift of rewards", word=Word.WARNING, sentence="It drifts.", number=0.0, unit="p-value")
    assert any("The world changed" in told for told in limits(replace(usual, checks=(drifted,))))


def test_little_support_is_grey(pages: dict[str, Path]) -> None:
    assert "too little support" in pages["usual"].read_text(encoding="utf-8")
    assert "too little support" not in pages["bare"].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.launch() as launched:
        yield launched


CHECKS = [
    check for check in browser.CHECKS if check not in (browser.shows_every_verdict, browser.leads_to_every_section)
]
"""There is no overview of claims on this page."""


@pytest.mark.parametrize("name", ["usual", "far", "bare"])
@pytest.mark.parametrize("screen", browser.SCREENS)
def test_the_page_in_a_real_browser(chromium: Browser, pages: dict[str, Path], name: str, screen: str) -> None:
    with browser.visit(chromium, pages[name], screen) as opened:
        for check in CHECKS:
            check(opened)
        assert opened.page.locator("figure").count() == {"usual": 3, "far": 1, "bare": 3}[name]
