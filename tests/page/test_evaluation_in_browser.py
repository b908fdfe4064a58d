"""The page of an evaluation in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support import browser, evaluations


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return evaluations.write_pages(evaluations.usual(), tmp_path_factory.mktemp("pages"))


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
