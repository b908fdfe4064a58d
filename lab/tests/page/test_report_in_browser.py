"""The report in a real browser: what its readers see, on a phone and on a desk, by day and by night."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from playwright.sync_api import Browser

from armlet.report import plots
from armlet.report.plots import Curve, Series
from armlet.types import Estimate
from armlet_lab.runner.experiment import Claim, Criterion, Outcome, Role, Section, Statistic, Verdict
from armlet_lab.runner.page import render
from support import browser
from support.browser import CHECKS, SCREENS, Check, Visit

NEAR, FAR = Estimate(1.0, 0.9, 1.1), Estimate(4_419_237.0, 3_669_675.0, 5_187_884.0)
FOUND = {"one": (NEAR, NEAR), "two": (FAR, NEAR), "three": (FAR, FAR), "four": (None, None)}


def draw() -> dict[str, Figure]:
    steps, settings = np.geomspace(1, 1e5, 40), (5.0, 10.0, 100.0)
    growth = 800 * np.log(steps)
    curves = [Curve(f"p = {p}", steps, np.array([growth, 0.9 * growth, 1.1 * growth]) + p) for p in (24, 120, 600)]
    series = Series("p = 60", settings, tuple(Estimate(v, 0.9 * v, 1.1 * v) for v in settings), slope=NEAR)
    return {
        "one": plots.regret(curves),
        "two": plots.power_law([series], xlabel="I", ylabel="regret"),
        "three": plots.bars(["t = 10^4", "t = 10^5"], [NEAR, None], xlabel="doubling ratio", marks={"log t": 1.0}),
    }


def section(key: str, figures: Mapping[str, Figure]) -> Section:
    caption, note = "What the figure shows. " * 5, "What is known of the runs. " * 9
    drawn = [plots.picture(figures[key], key=key, alt="A figure", caption=caption)] if key in figures else []
    return Section(claim=key, heading=f"Claim {key}: at most $K^2$", pictures=tuple(drawn), notes=(note,))


def verdict(key: str, written: Estimate | None, reading: Estimate | None) -> Verdict:
    rule = Criterion("within", 0.8, 1.3)
    return Verdict(
        claim=Claim(key=key, where="Section 6", says="Regret grows as log t. " * 3, reading="At p = 600. " * 9),
        statistics=(
            Statistic("slope / (p gap), p = 24, mean over theta", written, rule),
            Statistic("doubling ratio", reading, rule, Role.READING),
        ),
    )


def page() -> str:
    figures, verdicts = draw(), [verdict(key, *found) for key, found in FOUND.items()]
    assert {each.outcome for each in verdicts} == set(Outcome)
    sections = [section(key, figures) for key in FOUND]
    return render("What holds", sections, verdicts, {"seed": 7, "seconds": {f"experiment-{i}": i for i in range(9)}})


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.launch() as launched:
        yield launched


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page(), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=SCREENS)
def visit(request: pytest.FixtureRequest, chromium: Browser, report: Path) -> Iterator[Visit]:
    with browser.visit(chromium, report, request.param) as opened:
        yield opened


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_report_in_a_real_browser(check: Check, visit: Visit) -> None:
    check(visit)


SPOILT: dict[Check, str] = {
    browser.fits_the_screen: "<style>h1 { width: 400px }</style>",
    browser.shows_every_figure: "<style>figure text { font-size: 24px !important }</style>",
    browser.has_legible_figures: "<style>figure svg { width: 80% !important }</style>",
    browser.shows_every_verdict: "<style>.verdict.no { color: var(--ink) !important }</style>",
    browser.leads_to_every_section: "<style>#claim-three { position: fixed; top: 100vh }</style>",
    browser.has_ink_for_day_and_night: "<style>figure svg { color: #777 !important }</style>",
    browser.stands_out_from_the_paper: "<style>small { color: #808080 !important }</style>",
    browser.is_quiet: "<script>alert()</script>",
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_spoilt_report_is_noticed(check: Check, chromium: Browser, report: Path, tmp_path: Path) -> None:
    spoilt, text = tmp_path / "report.html", report.read_text(encoding="utf-8")
    spoilt.write_text(text.replace("</head>", f"{SPOILT[check]}</head>"), encoding="utf-8")
    with browser.visit(chromium, spoilt, "phone") as opened, pytest.raises(AssertionError):
        check(opened)


def test_the_reproduction_of_the_paper_in_a_real_browser(chromium: Browser, reproduction: Path) -> None:
    browser.check_page(chromium, reproduction / "report.html")
    check_height(chromium, reproduction / "report.html")


def check_height(chromium: Browser, path: Path) -> None:
    """A claim has so much room, on a desk and as the page opens, that all 28 of the paper fit into 17,000 pixels.

    The top and the end of a page take 1,000 of them.
    """
    with browser.visit(chromium, path, "desk") as opened:
        claims = opened.page.locator("section.claim").count()
        height = opened.page.locator("html").evaluate("root => root.scrollHeight")
        assert claims > 0
        assert height <= 1_000 + 16_000 / 28 * claims, f"{height} pixels for {claims} claims"


def test_a_report_opens_folded_and_prints_unfolded(chromium: Browser, report: Path) -> None:
    with browser.visit(chromium, report, "desk") as opened:
        page = opened.page
        folds, inside = page.locator("section.claim > details"), page.locator("details table, details p")
        assert folds.count() == len(FOUND)
        assert not any(each.is_visible() for each in inside.all())
        page.emulate_media(media="print")
        shown = inside.evaluate_all("all => all.map(each => each.getBoundingClientRect().height > 0)")
        assert shown
        assert all(shown)


def test_a_report_is_read_by_keyboard(chromium: Browser, report: Path) -> None:
    with browser.visit(chromium, report, "desk") as opened:
        page = opened.page
        page.keyboard.press("Tab")
        skip = page.locator(":focus")
        assert skip.inner_text() == "Skip to the content"
        assert skip.evaluate("link => link.getBoundingClientRect().left >= 0")
        first = page.locator("section.claim > details").first
        first.locator("summary").focus()
        page.keyboard.press("Enter")
        assert first.get_attribute("open") == ""
        back = page.locator("section.claim .back a").last
        back.focus()
        page.keyboard.press("Enter")
        assert page.evaluate("location.hash") == "#verdicts"
        assert page.locator("#verdicts").evaluate("each => each.getBoundingClientRect().top") < 100


def test_formulas_are_mathml_wherever_they_stand(chromium: Browser, report: Path) -> None:
    with browser.visit(chromium, report, "desk") as opened:
        places = [f"{place} math msup" for place in ("table.verdicts", "section.claim h2")]
        assert [opened.page.locator(place).count() for place in places] == [len(FOUND), len(FOUND)]
        assert "$" not in opened.page.locator("body").inner_text()


@pytest.mark.long
def test_the_whole_reproduction_in_a_real_browser(chromium: Browser, whole_reproduction: Path) -> None:
    browser.check_page(chromium, whole_reproduction / "report.html")
    check_height(chromium, whole_reproduction / "report.html")


def test_a_missing_browser_is_told_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ARMLET_BROWSER", raising=False)
    with pytest.raises(FileNotFoundError, match=r"none of chromium, .* is on the PATH; install Chromium or Chrome"):
        browser.find_browser()
    monkeypatch.setenv("ARMLET_BROWSER", "nowhere")
    with pytest.raises(FileNotFoundError, match="ARMLET_BROWSER is 'nowhere'"):
        browser.find_browser()
