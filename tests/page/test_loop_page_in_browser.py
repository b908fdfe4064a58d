"""The page of a loop in a real browser, from a real server: it is live, quiet, and fits every screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from playwright import sync_api
from playwright.sync_api import Browser

import armlet
from armlet.service.keys import digest
from armlet.stores import Control
from support import browser
from support.service.pages import HOSTILE, make_loop, make_router, play, route
from support.service.servers import ServerProcess, ask, serving

SCREENS: dict[str, dict[str, Any]] = {
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True},
    "desk": {"viewport": {"width": 1280, "height": 900}},
}
VIOLATIONS = """window.violations = [];
document.addEventListener("securitypolicyviolation", each => window.violations.push(each.violatedDirective));"""
SIZES = """all => all.filter(text => text.getScreenCTM()).map(text => {
  const {a, b} = text.getScreenCTM();
  return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
})"""

CUT = """all => all.filter(text => {
  const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
  return Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom) > 0.5;
}).map(text => text.textContent)"""


@dataclass
class Opened:
    """A page that is open, and everything that it said."""

    page: sync_api.Page
    noise: list[str] = field(default_factory=list)

    def is_quiet(self) -> None:
        assert not self.noise, self.noise
        assert self.page.evaluate("window.violations") == []

    def fits(self) -> None:
        browser.fits_the_screen(browser.Visit(self.page))


@contextmanager
def opened(
    chromium: Browser, url: str, screen: str = "desk", scheme: Literal["light", "dark"] = "light", **options: Any
) -> Iterator[Opened]:
    context = chromium.new_context(color_scheme=scheme, **SCREENS[screen], **options)
    context.set_default_timeout(browser.PATIENCE)
    context.add_init_script(VIOLATIONS)
    found = Opened(context.new_page())
    found.page.on("console", lambda said: found.noise.append(f"{said.type}: {said.text}"))
    found.page.on("pageerror", lambda error: found.noise.append(f"error: {error}"))
    found.page.on("dialog", lambda dialog: found.noise.append(f"dialog: {dialog.message}"))
    found.page.goto(url)
    yield found
    context.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.launch() as launched:
        yield launched


def fill(path: Path) -> None:
    """Make loops: played, with hostile labels, never played, with outcomes and a budget, with a catalogue."""
    with armlet.open_store(path) as store:
        play(make_loop(store, control=Control(arm="sale", share=0.2)), 600)
        policy = armlet.ContextualEpsilonGreedy(p=1.0, floor=0.2)
        features = [name for name in HOSTILE if name.strip()]
        hostile = store.loop("hostile", arms=HOSTILE, features=features, policy=policy, seed=1)
        X = np.random.default_rng(1).normal(size=(60, len(features)))
        names = [f"{HOSTILE[at % 8]}{at}"[-200:] for at in range(60)]
        for start in range(0, 60, 20):
            hostile.decide_many(X[start : start + 20], events=names[start : start + 20])
            hostile.reward_many([(name, 0.5) for name in names[start : start + 20]])
        make_loop(store, HOSTILE[1], arms=("a", "b"))
        route(make_router(store), 60)
        films = store.loop("films", features=["user.age"], action_features=["year"], seed=1)
        films.prepare("all", {f"{HOSTILE[at % len(HOSTILE)]} {at}": [at] for at in range(60)})
        for at in range(60):
            films.decide([0.5], event=f"visit-{at}", actions="all")
            films.reward(f"visit-{at}", at % 3 / 2)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("shop")
    fill(folder / "shop.db")
    with serving("shop.db", folder=folder) as server:
        yield server


def decide(server: ServerProcess, event: str) -> None:
    """Let a client decide and report a reward."""
    told = {"context": {"age": 0.5, "basket": -1.0}, "event": event}
    assert ask(server.url, "POST", "/v1/loops/home/decide", told).status == 200
    reward = {"items": [{"loop": "home", "event": event, "value": 1.0}]}
    assert ask(server.url, "POST", "/v1/rewards", reward).json == {"items": [{"status": "accepted"}]}


@pytest.mark.parametrize("scheme", browser.SCHEMES)
@pytest.mark.parametrize("screen", SCREENS)
def test_the_page_is_live_quiet_and_fits(
    chromium: Browser, server: ServerProcess, screen: str, scheme: Literal["light", "dark"]
) -> None:
    with opened(chromium, f"{server.url}/loops/home", screen, scheme) as found:
        page = found.page
        sync_api.expect(page.locator("#live")).to_have_text("Live")
        sync_api.expect(page.locator("#answers h2")).to_have_count(2)
        page.locator("#coefficients summary").click()
        page.evaluate("window.loaded = 'once'")
        n = int(page.locator("#title strong").inner_text())
        decide(server, f"{screen}-{scheme}")
        sync_api.expect(page.locator("#title strong")).to_have_text(str(n + 1))
        sync_api.expect(page.locator("#last tbody tr").first).to_contain_text(f"{screen}-{scheme}")
        assert page.evaluate("window.loaded") == "once"  # parts were replaced, and not the page
        sync_api.expect(page.locator("#coefficients table")).to_be_visible()  # what was opened stays open
        found.fits()
        browser.stands_out_from_the_paper(browser.Visit(page))
        assert min(page.locator("svg.chart text").evaluate_all(SIZES)) >= 10
        assert page.locator("svg.chart text").evaluate_all(CUT) == []
        found.is_quiet()


@pytest.mark.parametrize("scheme", browser.SCHEMES)
@pytest.mark.parametrize("screen", SCREENS)
def test_outcomes_and_what_is_spent_are_live_and_fit(
    chromium: Browser, server: ServerProcess, screen: str, scheme: Literal["light", "dark"]
) -> None:
    with opened(chromium, f"{server.url}/loops/router", screen, scheme) as found:
        page = found.page
        sync_api.expect(page.locator("#live")).to_have_text("Live")
        sync_api.expect(page.locator("#outcomes > table > tbody > tr")).to_have_count(2)
        page.locator("#outcomes-by-arm summary").click()
        sync_api.expect(page.locator("#budget svg")).to_be_visible()
        n = int(page.locator("#title strong").inner_text())
        asked = {"context": [0.5], "event": f"{screen}-{scheme}", "weights": {"cost": 0.0}}
        assert ask(server.url, "POST", "/v1/loops/router/decide", asked).status == 200
        told = f"After {n + 1} of the 1,000 decisions"
        sync_api.expect(page.locator("#budget")).to_contain_text(told)
        sync_api.expect(page.locator("#outcomes-by-arm table")).to_be_visible()  # what was opened stays open
        found.fits()
        browser.stands_out_from_the_paper(browser.Visit(page))
        found.is_quiet()


@pytest.mark.parametrize("scheme", browser.SCHEMES)
@pytest.mark.parametrize("screen", SCREENS)
def test_actions_agreement_and_features_are_live_and_fit(
    chromium: Browser, server: ServerProcess, screen: str, scheme: Literal["light", "dark"]
) -> None:
    with opened(chromium, f"{server.url}/loops/films", screen, scheme) as found:
        page = found.page
        sync_api.expect(page.locator("#live")).to_have_text("Live")
        sync_api.expect(page.locator("#arms > table > tbody > tr")).not_to_have_count(0)
        asked = {"context": [0.5], "event": f"{screen}-{scheme}", "actions": {"a": [1.0]}, "baseline": "a"}
        assert ask(server.url, "POST", "/v1/loops/films/decide", asked).status == 200
        sync_api.expect(page.locator("#exploring")).to_contain_text("Agreement with the baseline")
        told = {"actions": [{"id": "a", "features": [{HOSTILE[0] * 3: 1.0}]}], "contextFeatures": [{HOSTILE[1]: 1.0}]}
        assert ask(server.url, "POST", "/v1/loops/films/personalizer/v1.0/rank", told).status == 201
        page.locator("#feature-names summary").click()
        sync_api.expect(page.locator("#features table")).to_be_visible()
        found.fits()
        browser.stands_out_from_the_paper(browser.Visit(page))
        found.is_quiet()


@pytest.mark.parametrize("screen", SCREENS)
def test_hostile_labels_break_neither_page_nor_layout(chromium: Browser, server: ServerProcess, screen: str) -> None:
    with opened(chromium, f"{server.url}/loops", screen) as found:
        sync_api.expect(found.page.locator("#loops tbody tr")).to_have_count(5)
        found.fits()
        found.page.get_by_role("link", name="hostile").click()
        sync_api.expect(found.page.locator("h1")).to_have_text("hostile")
        sync_api.expect(found.page.locator("#arms > table > tbody > tr")).to_have_count(len(HOSTILE))
        sync_api.expect(found.page.locator("#live")).to_have_text("Live")
        found.fits()
        found.page.locator("#coefficients summary").click()
        found.fits()
        found.is_quiet()


def test_a_loop_that_was_never_played_has_a_page_too(chromium: Browser, server: ServerProcess) -> None:
    with opened(chromium, f"{server.url}/loops") as found:
        found.page.get_by_role("link", name="alert(1)").click()
        sync_api.expect(found.page.locator("#answers")).to_contain_text("Nothing to say")
        sync_api.expect(found.page.locator("#live")).to_have_text("Live")
        found.fits()
        found.is_quiet()


def test_the_page_works_without_scripts_and_with_keys_alone(chromium: Browser, server: ServerProcess) -> None:
    with opened(chromium, f"{server.url}/loops/home", java_script_enabled=False) as found:
        sync_api.expect(found.page.locator("#title")).to_contain_text("decisions")
        sync_api.expect(found.page.locator(".chart.wide")).to_be_visible()
        sync_api.expect(found.page.locator("#live")).to_be_hidden()
        found.page.keyboard.press("Tab")
        sync_api.expect(found.page.locator(".skip")).to_be_focused()
        sync_api.expect(found.page.locator(".skip")).to_be_in_viewport()
        assert not found.noise


def test_the_page_says_when_the_server_is_gone_and_goes_on_when_it_is_back(chromium: Browser, tmp_path: Path) -> None:
    fill(tmp_path / "shop.db")
    with serving("shop.db", folder=tmp_path) as first, opened(chromium, f"{first.url}/loops/home") as found:
        sync_api.expect(found.page.locator("#live")).to_have_text("Live")
        assert first.stop() == 0  # streams do not hold it up
        sync_api.expect(found.page.locator("#live")).to_have_text("Reconnecting")
        sync_api.expect(found.page.locator("#title strong")).to_have_text("600")
        second = ServerProcess("shop.db", "--port", first.url.rpartition(":")[2], folder=tmp_path)
        try:
            second.wait_until_ready()
            decide(second, "after the restart")
            sync_api.expect(found.page.locator("#title strong")).to_have_text("601")
            sync_api.expect(found.page.locator("#live")).to_have_text("Live")
        finally:
            second.kill()


def test_the_page_tries_again_after_a_refusal(chromium: Browser, server: ServerProcess) -> None:
    with opened(chromium, "about:blank") as found:
        page = found.page
        page.route("**/stream", lambda route: route.fulfill(status=503), times=1)
        page.goto(f"{server.url}/loops/home")
        sync_api.expect(page.locator("#live")).to_have_text("Not live")
        sync_api.expect(page.locator("#live")).to_have_text("Live")


def test_logging_in_with_a_key(chromium: Browser, tmp_path: Path) -> None:
    fill(tmp_path / "shop.db")
    settings = ['store = "shop.db"', "[keys.reader]", f'sha256 = "{digest("a key").hex()}"', 'scopes = ["read"]']
    (tmp_path / "armlet.toml").write_text("\n".join(settings))
    with (
        serving("armlet.toml", folder=tmp_path) as server,
        opened(chromium, f"{server.url}/loops/home", "phone") as found,
    ):
        page, key = found.page, found.page.get_by_label("Key", exact=True)
        sync_api.expect(page.get_by_role("heading", name="Log in with a key")).to_be_visible()
        sync_api.expect(key).to_be_focused()  # typed before, the browser complains that it cannot move the focus
        key.fill("another key")
        page.get_by_role("button", name="Log in").click()
        sync_api.expect(page.get_by_role("alert")).to_contain_text("not a key")
        sync_api.expect(key).to_be_focused()
        found.noise.clear()  # the browser itself tells of the status 401
        key.fill("a key")
        page.keyboard.press("Enter")
        sync_api.expect(page.locator("h1")).to_have_text("home")
        sync_api.expect(page.locator("#live")).to_have_text("Live")
        assert page.evaluate("document.cookie") == ""  # scripts cannot read it
        assert "secret-event" not in page.content()
        page.get_by_role("button", name="Log out").click()
        page.goto(f"{server.url}/loops/home")
        sync_api.expect(key).to_be_focused()
        found.fits()
        found.is_quiet()
