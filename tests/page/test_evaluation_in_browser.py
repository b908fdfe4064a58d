"""The pages of evaluations, gates, searches and replayed learners in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support import browser, evaluations

FIGURES = {"usual": 3, "far": 1, "bare": 3, "gate": 1, "search": 1, "replay": 1}
TALLEST = {"phone": 2600, "desk": 1900}
"""Pixels of a page as it opens."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return evaluations.write_pages(evaluations.usual(), folder) | evaluations.write_others(folder)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.launch() as launched:
        yield launched


CHECKS = [
    check for check in browser.CHECKS if check not in (browser.shows_every_verdict, browser.leads_to_every_section)
]
"""There is no overview of claims on these pages."""


def folds(opened: browser.Visit) -> list[bool]:
    """Return which folded parts can be seen."""
    inside = opened.page.locator("details > :not(summary)")
    return [each.is_visible() for each in inside.all()]


def check_folds(opened: browser.Visit, screen: str) -> None:
    """What is folded is closed on a screen and open in print; a link, or a click on its heading, opens a part."""
    page = opened.page
    assert page.locator("header .answer").is_visible()
    assert page.locator("figure").first.is_visible()
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height <= TALLEST[screen], f"{height} pixels as it opens"
    assert set(folds(opened)) == {False}
    page.emulate_media(media="print")
    assert set(folds(opened)) == {True}
    page.emulate_media(media="screen")
    links = page.locator("nav a")
    (links if links.count() else page.locator("summary")).last.click()
    assert folds(opened)[-1]


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("screen", browser.SCREENS)
def test_the_page_in_a_real_browser(chromium: Browser, pages: dict[str, Path], name: str, screen: str) -> None:
    with browser.visit(chromium, pages[name], screen) as opened:
        check_folds(opened, screen)
        browser.fits_the_screen(opened)
        opened.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        for check in CHECKS:
            check(opened)
        assert opened.page.locator("figure").count() == FIGURES[name]
