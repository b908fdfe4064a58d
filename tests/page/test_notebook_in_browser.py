"""What objects show in a notebook, in a real browser: legible by day and by night, and no wider than the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support import browser
from support.notebook.kernel import CELLS, SETUP, run
from support.notebook.page import as_page

CHECKS = (browser.fits_the_screen, browser.stands_out_from_the_paper)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shown = run({"setup": SETUP, **CELLS})
    path = tmp_path_factory.mktemp("notebook") / "notebook.html"
    path.write_text(as_page({name: shown[name][0] for name in CELLS}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.launch() as launched:
        yield launched


@pytest.mark.parametrize("screen", browser.SCREENS)
def test_a_notebook_in_a_real_browser(chromium: Browser, page: Path, screen: str) -> None:
    with browser.visit(chromium, page, screen) as opened:
        for check in CHECKS:
            check(opened)
        tables = opened.page.locator(".armlet-shown table")
        assert tables.count() > 15
        style = "all => all.map(each => getComputedStyle(each).textAlign)"
        assert set(tables.locator("th").evaluate_all(style)) == {"left", "right"}
        assert set(tables.locator("td:not(.armlet-number)").evaluate_all(style)) == {"left"}  # not JupyterLab's own
