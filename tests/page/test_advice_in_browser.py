"""The page of `armlet advise` in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support import advices, browser

CHECKS = [
    check for check in browser.CHECKS if check not in (browser.shows_every_verdict, browser.leads_to_every_section)
]
"""A page of advice has no verdicts and no overview."""
OPEN = "document.querySelectorAll('details').forEach(each => { each.open = true })"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.launch() as launched:
        yield launched


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return advices.write_pages(advices.usual(), tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("name", ["usual", "far", "near"])
@pytest.mark.parametrize("screen", browser.SCREENS)
def test_the_page_in_a_real_browser(chromium: Browser, pages: dict[str, Path], name: str, screen: str) -> None:
    with browser.visit(chromium, pages[name], screen) as opened:
        assert opened.page.locator("figure:visible").count() == 1  # the others are folded
        opened.page.evaluate(OPEN)
        for check in CHECKS:
            check(opened)
        assert opened.page.locator("figure").count() == 3
