"""All that a loop says of itself is folded from its rows: without snapshots and tallies, the page is the same.

Three things have no rows, and are left out here: answers that no row says (unknown, early, duplicate, conflict), the
values of decisions that were forgotten or pruned, and what was compared before the model that the rows go on from.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

import armlet
from armlet.service.page import loop_page
from armlet.service.page.html import View, Viewer
from armlet.stores import SQLite, Store
from armlet.stores.overview import details
from armlet.stores.sqlite.ledger import SQLiteReader
from armlet.stores.stats import Stats
from support.loops import Ticks, context, ticking

NOW = 2_000_000_000


def with_windows(store: Store, ticks: Ticks) -> None:
    """Rewards in time, late, corrected, of other arms than decided; other rules, arms and ranges."""
    loop = store.loop("a", arms=["a", "b", "c"], dim=2, seed=1, window=20.0, default_reward=0.0, aggregation="last")
    for i in range(200):
        ticks.now += 1.0
        loop.decide(context(i, 2), event=f"e{i}", eligible=["a", "b"] if i % 7 == 0 else None)
        if i % 3:
            loop.reward(f"e{i}", i % 9 / 9, played="b" if i % 20 == 1 else None)
        if i % 11 == 0 and i > 30:
            loop.reward(f"e{i - 30}", 0.5, name="late", played="a" if i % 3 == 0 else None)
        if i == 90:
            loop.change(reward_range=(-2.0, 2.0), window=10.0)
        if i == 120:
            loop.add_arm("d")
            loop.retire_arm("c")


def with_outcomes(store: Store, ticks: Ticks) -> None:
    """Parts of rewards that come one by one, other weights, units."""
    loop = store.loop(
        *("a",), arms=["a", "b"], dim=2, seed=2, outcomes={"clicks": 1.0, "cost": -0.5, "delay": -0.1}, epoch=50,
        known={"delay": {"a": 0.1, "b": 0.9}}, window=30.0, default_reward={"clicks": 0.0},
        policy=armlet.OccasionalOptimism(floor=0.2),
    )  # fmt: skip
    for i in range(200):
        ticks.now += 1.0
        loop.decide(context(i, 2), event=f"e{i}", unit=f"u{i % 7}")
        if i % 3:
            loop.reward(f"e{i}", {"cost": i % 4 / 4})
        if i % 4 == 1:
            loop.reward(f"e{i}", {"clicks": 1.0})
        if i % 10 == 9 and i > 40:
            loop.reward(f"e{i - 35}", {"cost": 0.75}, name="bill", rank=1)
        if i == 100:
            loop.change(outcomes={"clicks": 2.0, "cost": -0.5, "delay": -0.1})


def with_actions(store: Store, ticks: Ticks) -> None:
    """Actions that come with each decision, baselines, deferred decisions, tables with a name."""
    loop = store.loop("a", features=["age"], action_features=["price"], seed=3)
    loop.prepare("all", {f"item {k}": [k / 8] for k in range(6)})
    for i in range(150):
        ticks.now += 1.0
        own = {f"item {i + k}": [k / 4] for k in range(3)}
        options = {"baseline": f"item {i}"} if i % 5 == 0 else {"defer": True} if i % 5 == 1 else {}
        loop.decide([i % 8 / 8], "all" if i % 5 == 3 else own, event=f"e{i}", **options)
        if i % 10 == 6:
            loop.activate(f"e{i}")
        if i % 3 == 0:
            loop.reward(f"e{i}", i % 4 / 4)


def said(path: Path, ticks: Ticks) -> tuple[str, Stats, bytes]:
    """Return what is said of the loop next to any process: its details, its stats, and its page."""
    with SQLiteReader(path).view() as view:
        (record,) = view.loops()
        found = replace(details(view, record, NOW), rows_since_snapshot=0)
    with ticking(SQLite(path), ticks) as store:
        stats = replace(store.loop("a").stats(), rows_since_snapshot=0, size=0, oldest_open=None)
        page = loop_page(View(found, NOW, Viewer(is_admin=True, has_key=False)), "1")
    return repr(found.to_dict()), stats, page


@pytest.mark.parametrize("live", [with_windows, with_outcomes, with_actions])
def test_rows_alone_lead_to_the_same_page(live: Callable[[Store, Ticks], None], tmp_path: Path) -> None:
    path, ticks = tmp_path / "shop.db", Ticks()
    with ticking(SQLite(path), ticks) as store:
        live(store, ticks)
        ticks.now += 100.0
        loop = store.loop("a")
        loop.model()  # when all windows are closed
        tally = loop._runner.tally.to_json()
    before = said(path, ticks)
    database = apsw.Connection(str(path))
    for table in ("snapshot", "tally"):
        assert list(database.execute(f"DELETE FROM {table} RETURNING 1"))
    database.close()
    assert said(path, ticks) == before
    with ticking(SQLite(path), ticks) as store:
        loop = store.loop("a")
        loop.stats()
        assert json.loads(loop._runner.tally.to_json()) == json.loads(tally)
