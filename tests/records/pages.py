"""The part `pages`: what people look at, as HTML with one tag a line; figures of matplotlib are cut out."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

import armlet
from armlet.evaluation.gate import gate
from armlet.evaluation.rows import HeldBlocks
from armlet.policies import ContextualEpsilonGreedy
from armlet.report.result import Result
from armlet.service.page import list_page, loop_page
from armlet.service.page.html import View, Viewer
from armlet.stores import Control, Loop, Memory, Store
from records.evaluations import rewarded
from records.record import Texts
from records.shops import FILMS, Shop
from support import advices
from support.decided import played
from support.stores.lived import Ticks

FIGURE: Final = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
ASSET: Final = re.compile(r"(page)[.-][0-9a-f]{6,}[.](css|js)")
INLINE: Final = re.compile(r"<(style|script)>.*?</\1>", re.DOTALL)
BETWEEN: Final = re.compile(r">\s*<")


def make() -> Texts:
    """Render all pages."""
    return {f"pages_{name}.html": text for name, text in [*_loops(), *_files()]}


def normalised(html: str, *, has_figures: bool = True) -> str:
    """Return a page with one tag a line, without what depends on the version or on how figures are drawn."""
    text = INLINE.sub(r"<\1>(cut)</\1>", ASSET.sub(r"\1.(hash).\2", html))
    text = text if has_figures else FIGURE.sub("<svg>(cut)</svg>", text)
    return BETWEEN.sub(">\n<", text.replace(f"Armlet {armlet.__version__}", "Armlet (version)")) + "\n"


# ---- loops


def _loops() -> Iterator[tuple[str, str]]:
    ticks = Ticks()
    ledger = Memory()
    shop = Shop(lambda: ledger, ticks)
    shop.live()
    with shop.store as store:
        found = [store.loop(life.name).details() for life in shop.lives]
    now = round(ticks.now * 1e6)
    for details in found[:3]:
        page = loop_page(View(details, now, Viewer(is_admin=True, has_key=False)), "1.0")
        yield details.name, normalised(page.decode())
    yield "list", normalised(list_page(found, ["asleep"], now, Viewer(is_admin=False, has_key=True)).decode())
    for make in (_home, _catalogue):
        with _store() as (store, ticks):
            details = make(store, ticks).details()
        page = loop_page(View(details, round(ticks.now * 1e6), Viewer(is_admin=False, has_key=True)), "1.0")
        yield details.name, normalised(page.decode())


@contextmanager
def _store() -> Iterator[tuple[Store, Ticks]]:
    ticks, ledger = Ticks(), Memory()
    with Store(ledger, wall=ticks, elapsed=ticks) as store:
        yield store, ticks


def _home(store: Store, ticks: Ticks) -> Loop:
    """Play a loop with a control, in which one arm is better by context."""
    loop = store.loop(
        "home",
        arms=["sale", "new", "old"],
        features=["age", "basket"],
        policy=ContextualEpsilonGreedy(p=1.0, floor=0.2),
        reward_range=(0.0, 1.0),
        seed=1,
        control=Control(arm="old", share=0.2),
    )
    rng = np.random.default_rng(1)
    for start in range(0, 1200, 20):
        ticks.now += 60.0
        X = rng.integers(-8, 9, size=(20, 2)) / 4
        events = [f"visit {start + at}" for at in range(20)]
        made = loop.decide_many(X, events=events)
        best = [loop.model().arms[0] if x[0] > 0 else "new" for x in X]
        paid = rng.random(20) < [0.7 if each.arm == one else 0.3 for each, one in zip(made, best, strict=True)]
        ticks.now += 5.0
        loop.reward_many([(event, float(value)) for event, value in zip(events[:18], paid, strict=False)])
    return loop


def _catalogue(store: Store, ticks: Ticks) -> Loop:
    """Play a loop of actions whose table changes, with baselines and deferred decisions."""
    loop = store.loop("catalogue", features=["age"], action_features=["genre", "year"], seed=1)
    table = loop.prepare("all", FILMS)
    rng = np.random.default_rng(1)
    for i in range(300):
        ticks.now += 30.0
        if i == 150:
            table = loop.prepare("all", table.changed(remove=["Heat"]))
        how: dict[str, Any] = {"baseline": "Up"} if i % 10 == 3 else {"defer": True} if i % 10 == 7 else {}
        decision = loop.decide([float(rng.integers(-8, 9)) / 4], "all", event=f"e{i}", **how)
        if rng.random() < 0.8:
            loop.reward(f"e{i}", float(rng.random() < (0.7 if decision.arm == "Ran" else 0.3)))
    return loop


# ---- files


def _files() -> Iterator[tuple[str, str]]:
    rows = played(ContextualEpsilonGreedy(p=40, floor=0.05), 1500)
    log = HeldBlocks(rows, range(3), {"reward_range": (0.0, 1.0)})
    results: dict[str, Result] = {
        "evaluation": armlet.evaluate(log, {"always 0": 0, "always 1": 1, "even": "uniform"}),
        "gate": gate(log, 1),
        "curve": rewarded(),
        "advice": advices.usual(),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, result in results.items():
            path = Path(folder) / f"{name}.html"
            result.save(path)
            yield name, normalised(path.read_text(encoding="utf-8"), has_figures=False)
