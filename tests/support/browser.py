"""A report in a real browser: how to open one, and what must be true of any.

Each check takes a visit and fails if the page breaks the promise in the check's name; `check_page` runs them all, on
a phone and on a desk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page, expect, sync_playwright

PATIENCE = 30_000  # milliseconds, on a machine that is busy
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (  # no word to the network, and no card to draw with
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SCREENS: dict[str, dict[str, Any]] = {
    "phone": {"viewport": {"width": 360, "height": 740}, "device_scale_factor": 2, "is_mobile": True},
    "desk": {"viewport": {"width": 1280, "height": 900}},
}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def find_browser() -> str:
    """Return the path of a browser that is installed here."""
    wanted = os.environ.get("ARMLET_BROWSER")
    for program in (wanted,) if wanted else PROGRAMS:
        if path := shutil.which(program):
            return path
    tried = f"ARMLET_BROWSER is {wanted!r}" if wanted else f"none of {', '.join(PROGRAMS)} is on the PATH"
    raise FileNotFoundError(
        f"no browser to open the report with: {tried}; install Chromium or Chrome (Debian: apt-get install chromium), "
        "or set ARMLET_BROWSER to its path"
    )


@contextmanager
def launch() -> Iterator[Browser]:
    """Start the browser without a window."""
    program, sandbox = find_browser(), os.geteuid() != 0  # as root, Chromium has no sandbox to offer
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS, chromium_sandbox=sandbox)
        yield browser
        browser.close()


@dataclass(frozen=True, slots=True)
class Visit:
    """A page that is open, and everything it said or asked for besides itself."""

    page: Page
    noise: list[str] = field(default_factory=list)

    def listen(self, url: str) -> None:
        page, hear = self.page, self.noise.append
        page.on("console", lambda said: hear(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: hear(f"error: {error}"))
        page.on("request", lambda asked: hear(f"request: {asked.url}") if asked.url != url else None)
        page.on("requestfailed", lambda asked: hear(f"failed: {asked.url}"))


@contextmanager
def visit(browser: Browser, report: Path, screen: str) -> Iterator[Visit]:
    """Open a report from disk, by day."""
    context = browser.new_context(color_scheme="light", **SCREENS[screen])
    opened, url = Visit(context.new_page()), report.resolve().as_uri()
    opened.listen(url)
    opened.page.goto(url)
    yield opened
    context.close()


def is_quiet(visit: Visit) -> None:
    """No error, no warning, no other word in the console; nothing is loaded but the file itself."""
    assert not visit.noise, visit.noise


def unfold(visit: Visit) -> None:
    """Open all that is folded."""
    visit.page.locator("details").evaluate_all("all => all.forEach(each => { each.open = true })")


def fits_the_screen(visit: Visit) -> None:
    """Nobody has to scroll sideways, whatever is unfolded, and a phone shows the page at its own width."""
    unfold(visit)
    wide, shown = visit.page.locator("html").evaluate("root => [root.scrollWidth, root.clientWidth]")
    screen = visit.page.evaluate("screen.width")
    assert wide <= shown == screen, f"{wide} pixels wide and seen as {shown}, on a screen of {screen}"


def shows_every_figure(visit: Visit) -> None:
    """Every figure has a size, lies within the screen's width and cuts off none of its words."""
    unfold(visit)
    assert visit.page.locator("figure").count() == visit.page.locator("figure > svg").count() > 0
    unseen = visit.page.evaluate(_UNSEEN)
    assert not unseen, f"hidden or cut off: {unseen}"


def has_legible_figures(visit: Visit) -> None:
    """Letters in figures are at least 10 pixels tall, also where the figure has shrunk."""
    unfold(visit)
    sizes = visit.page.locator("figure text").evaluate_all(_SIZES)
    assert min(sizes) >= 10, f"letters of {min(sizes):.1f} pixels"


def shows_every_verdict(visit: Visit) -> None:
    """Verdicts are seen above and again in their sections, in a colour that only their outcome has."""
    page, colour = visit.page, "all => all.map(each => getComputedStyle(each).color)"
    hidden = [verdict for verdict in page.locator(".verdict").all() if not verdict.is_visible()]
    assert not hidden, f"hidden: {hidden}"
    verdicts = page.locator("tbody .verdict").all_inner_texts()
    assert verdicts == page.locator("section .verdict").all_inner_texts() != []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        pairs = set(zip(verdicts, page.locator("tbody .verdict").evaluate_all(colour), strict=True))
        ink = page.locator("body").evaluate_all(colour)
        assert len(pairs) == len(set(verdicts)) == len({shade for _, shade in pairs} - set(ink)), (ink, pairs)


def leads_to_every_section(visit: Visit) -> None:
    """Each link of the overview goes to a section that bears its name."""
    for link in visit.page.locator("tbody a").all():
        link.click()
        section = visit.page.locator(str(link.get_attribute("href")))
        expect(section.locator("h2")).to_be_in_viewport()
        expect(section.locator("h2")).to_have_text(str(link.text_content()))


def has_ink_for_day_and_night(visit: Visit) -> None:
    """Axes and words of figures take another colour on a dark page."""
    inks: list[list[str]] = []
    for scheme in SCHEMES:
        visit.page.emulate_media(color_scheme=scheme)
        inks.append(
            visit.page.locator("figure text").evaluate_all("all => all.map(each => getComputedStyle(each).fill)")
        )
    assert all(day != night for day, night in zip(*inks, strict=True)), "the same ink by day and by night"


def stands_out_from_the_paper(visit: Visit) -> None:
    """Every word, in figures too, has a contrast of at least 4.5 to 1, by day and by night (WCAG 2.2, 1.4.3)."""
    for scheme in SCHEMES:
        visit.page.emulate_media(color_scheme=scheme)
        faint = visit.page.evaluate(_FAINT)
        assert not faint, f"hard to read on a {scheme} page: {faint}"


Check = Callable[[Visit], None]
CHECKS: tuple[Check, ...] = (
    fits_the_screen,
    shows_every_figure,
    has_legible_figures,
    shows_every_verdict,
    leads_to_every_section,
    has_ink_for_day_and_night,
    stands_out_from_the_paper,
    is_quiet,  # the last, so that it hears the others
)


def check_page(browser: Browser, report: Path) -> None:
    """Run every check on a report, on every screen."""
    for screen in SCREENS:
        with visit(browser, report, screen) as opened:
            for check in CHECKS:
                check(opened)


_UNSEEN = """() => [...document.querySelectorAll("figure > svg")].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  const whole = svg.checkVisibility() && frame.width > 0 && frame.height > 0;
  const inside = frame.left >= 0 && frame.right <= document.documentElement.clientWidth;
  const cut = [...svg.querySelectorAll("text")].filter(text => {
    const box = text.getBoundingClientRect();
    return Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom) > 1;
  });
  return [...(whole && inside ? [] : [svg.ariaLabel]), ...cut.map(text => text.textContent)];
})"""

_SIZES = """all => all.map(text => {
  const {a, b} = text.getScreenCTM();
  return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
})"""

_FAINT = """() => {
  const brush = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const light = colours => {  // relative luminance of colours laid over each other on white
    for (const colour of ["white", ...colours]) { brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...brush.getImageData(0, 0, 1, 1).data].map(
      value => value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const papers = element =>
    element ? [...papers(element.parentElement), getComputedStyle(element).backgroundColor] : [];
  const contrast = element => {
    const {color, fill} = getComputedStyle(element), under = papers(element);
    const [low, high] = [light(under), light([...under, element.closest("svg") ? fill : color])].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  return [...document.body.querySelectorAll("*")]
    .filter(element => [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim()))
    .filter(element => contrast(element) < 4.5)
    .map(element => `${element.textContent}: ${contrast(element).toFixed(2)}`);
}"""
