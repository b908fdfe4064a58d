"""Loops to look at, and their pages as a reader of HTML sees them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import numpy as np

import armlet
from armlet.service.page import loop_page
from armlet.service.page.html import View, Viewer
from armlet.stores import Control, Loop, Memory, Store
from armlet.stores.overview import Details

VOID = {"meta", "link", "input", "br"}
LONG = "a" * 256
HOSTILE = (
    LONG,
    '"><script>alert(1)</script>',
    "'onload=alert(1) x='",
    "line\nbreak\ttab",
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd",
    "&lt;b&gt;&amp;",
    "</style></title></svg>",
    "\x00\x1b[31m",
    " ",
)


def play(loop: Loop, n: int, *, first: int = 0) -> None:
    """Make decisions with two features, twenty at a time, and report a reward of most."""
    rng = np.random.default_rng([1, first])
    arms = loop.model().arms
    for start in range(first, first + n, 20):
        X = rng.normal(size=(min(20, first + n - start), 2))
        events = [f"secret-event-{start + at}" for at in range(len(X))]
        rewards = []
        for x, event, decision in zip(X, events, loop.decide_many(X, events=events), strict=True):
            is_best = arms.index(decision.arm) == (x[0] > 0)
            rewards.append((event, float(rng.random() < (0.6 if is_best else 0.3))))
        loop.reward_many([each for each in rewards if rng.random() < 0.9])


def make_loop(
    store: Store,
    name: str = "home",
    arms: tuple[armlet.types.Arm, ...] = ("sale", "new"),
    control: Control | None = None,
) -> Loop:
    """Make a loop that explores a fifth of its decisions."""
    return store.loop(
        name,
        arms=arms,
        features=["age", "basket"],
        policy=armlet.ContextualEpsilonGreedy(p=1.0, floor=0.2),
        reward_range=(0.0, 1.0),
        seed=1,
        control=control,
    )


def make_router(store: Store, **more: Any) -> Loop:
    """Make a loop with a quality that is judged, a cost that is known and has a budget, and epochs."""
    how: dict[str, Any] = {
        "outcomes": {"quality": 1.0, "cost": -5.0},
        "known": {"cost": {"small": 0.001, "large": 0.03}},
        "budget": armlet.Budget("cost", total=10.0, horizon=1000),
        "epoch": 100,
        **more,
    }
    policy = armlet.ContextualEpsilonGreedy(p=1.0, floor=0.2)
    return store.loop("router", arms=["small", "large"], features=["tokens"], policy=policy, seed=1, **how)


def route(loop: Loop, n: int) -> None:
    """Make decisions, and judge them; the better arm is the costlier one."""
    rng = np.random.default_rng(2)
    for at, tokens in enumerate(rng.normal(size=n)):
        decision = loop.decide([tokens], event=f"request-{at}", unit=f"session-{at % 40}")
        loop.reward(f"request-{at}", {"quality": float(decision.arm == "large") * 0.4 + 0.5 * rng.random()})


def details(n: int = 400) -> Details:
    """Return the details of a loop that was played."""
    with Store(Memory()) as store:
        loop = make_loop(store)
        if n:
            play(loop, n)
        return loop.details()


def shown(found: Details, *, is_admin: bool = True) -> Seen:
    """Return the page of a loop, read."""
    body = loop_page(View(found, time.time_ns() // 1000, Viewer(is_admin, has_key=False)), "1.0")
    return read(body.decode())


@dataclass
class Seen:
    """A page as it was read."""

    html: str
    text: str = ""
    tags: Counter[str] = field(default_factory=Counter)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)  # tag, name, value
    headings: list[str] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)  # text by the id of a part

    def values(self, name: str) -> list[str]:
        """Return the values of an attribute, wherever it is."""
        return [value for _, each, value in self.attributes if each == name]


class _Reader(HTMLParser):
    """Reads a page strictly: what is opened is closed, in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = Seen(html)
        self._open: list[str] = []
        self._part: tuple[str, int] | None = None
        self.feed(html)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert len(given) == len(attrs), (tag, attrs)
        self.seen.tags[tag] += 1
        self.seen.attributes += [(tag, name, value) for name, value in given.items()]
        if tag not in VOID:
            self._open.append(tag)
        if "data-part" in given:
            self._part = (given["id"], len(self._open))
            self.seen.parts[given["id"]] = ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, (tag, self._open)
        if self._part is not None and len(self._open) < self._part[1]:
            self._part = None

    def handle_data(self, data: str) -> None:
        self.seen.text += data
        if self._open and self._open[-1] in ("h1", "h2", "bdi") and data.strip():
            self.seen.headings.append(data)
        if self._part is not None:
            self.seen.parts[self._part[0]] += data


def read(html: str) -> Seen:
    """Read a page; a tag that is not closed, or closed twice, fails."""
    return _Reader(html).seen
