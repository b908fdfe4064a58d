"""The lives of six loops with every kind of row: the same calls over any ledger, by clocks of their own."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeAlias

import numpy as np

import armlet
from armlet.actions.table import ActionTable
from armlet.cast.model import read_cast
from armlet.log.replaying import play_all
from armlet.stores import Control, Ledger, Loop, Store
from armlet.stores.ledger import Row
from armlet.stores.verify import verify
from records.record import short
from records.scribe import Scribe
from support.stores import rebuilt
from support.stores.lived import Ticks

EVERY: Final = 50  # rows from one look at a loop to the next
Opener: TypeAlias = Callable[[], Ledger]
PRICES: Final = {"small": 0.25, "large": 1.0, "huge": 2.0}


class Life:
    """The life of one loop."""

    name: str

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.scribe = Scribe()
        self.looks: dict[str, dict[str, str]] = {}
        self.tallies: dict[str, Any] = {}
        self._seen = 0
        self.loop: Loop = shop.store.loop(self.name, **self.options())

    def options(self) -> dict[str, Any]:
        """Return what it is made with."""
        raise NotImplementedError

    def step(self, i: int) -> None:
        """Do what happens at a step."""
        raise NotImplementedError

    def call(self, verb: str, /, *given: Any, **options: Any) -> Any:
        """Make a call of the loop."""
        answer = self.scribe.call(verb, getattr(self.loop, verb), *given, **options)
        self.look()
        return answer

    def look(self) -> None:
        """Write down what a loop knows, once in so many rows."""
        seq, _ = self.loop.version()
        if seq // EVERY > self._seen // EVERY:
            self.looks[f"{seq:04}"] = known(self.loop)
            self.tallies[f"{seq:04}"] = json.loads(self.loop._runner.tally.to_json())
        self._seen = seq

    def reopen(self) -> None:
        """Go on with the loop after a restart."""
        self.loop = self.shop.store.loop(self.name)


def known(loop: Loop) -> dict[str, str]:
    """Return what a loop knows: the digest of its model, of all that runs along, and hashes of what is counted."""
    model = loop.model().digest()
    whole = loop._runner.cast.digest()
    tally = json.loads(loop._runner.tally.to_json())
    parts = {f"tally.{name}": short(json.dumps(value, sort_keys=True)) for name, value in tally.items()}
    return {"model": model, "whole": whole, **parts}


class Shop:
    """A store with six loops, which are opened again now and then."""

    def __init__(self, opener: Opener, ticks: Ticks | None = None) -> None:
        self.opener, self.ticks = opener, ticks or Ticks()
        self.store = self._open()
        self.lives: list[Life] = []
        self.before: dict[str, dict[str, Any]] = {}  # what there was before rows were pruned
        self.rows: dict[str, list[str]] = {}  # the same, as text

    def _open(self) -> Store:
        return Store(self.opener(), wall=self.ticks, elapsed=self.ticks)

    def live(self, last: int = 160) -> None:
        """Let all loops live together for so many steps, with restarts, and old rows pruned."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a cost outside of its range
            self.lives = [kind(self) for kind in (Arms, Router, Films, Genres, Fading, Sticky)]
            for i in range(1, last + 1):
                self.ticks.now += 2.0
                for life in self.lives:
                    life.step(i)
                if i in (45, 90):
                    self.reopen()
                if i == 130:
                    self.before = {life.name: rows_of(self.store, life.name) for life in self.lives}
                    self.rows = {life.name: [*map(line_of, read_rows(self.store, life.name))] for life in self.lives}
                    self.lives[0].scribe.call("store.prune", self.store.prune, self.ticks.now - 150.0)

    def reopen(self) -> None:
        """Close the store, and open it again."""
        self.store.close()
        self.store = self._open()
        for life in self.lives:
            life.reopen()


def context(i: int) -> list[float]:
    """Return two features, in eighths."""
    return [((i * 5) % 17 - 8) / 8, ((i * 11) % 13 - 6) / 8]


# ---- arms, one reward


class Arms(Life):
    """Arms with windows, early, named and ranked rewards, guards, freezing, other features and policies."""

    name = "arms"

    def options(self) -> dict[str, Any]:
        return {
            "arms": ["a", "b", 3],
            "features": ["age", "visits"],
            "policy": armlet.ContextualEpsilonGreedy(p=6, floor=0.2),
            "window": 40.0,
            "default_reward": 0.25,
            "aggregation": "last",
            "early_window": 60.0,
            "reward_range": (0, 1),
            "feature_range": {"age": (-0.875, 0.875, "clip")},
            "control": Control(arm="a", share=0.2),
            "seed": 1,
        }

    def x(self, i: int) -> Any:
        return dict(zip(self.features, [*context(i), 0.5], strict=False)) if i % 3 else [*context(i), 0.5][: self.dim]

    features: tuple[str, ...] = ("age", "visits")

    @property
    def dim(self) -> int:
        return len(self.features)

    def step(self, i: int) -> None:
        how: dict[str, Any] = {"probabilities": "all"} if i % 10 == 4 else {}
        how |= {"eligible": ["a", 3]} if i % 10 == 7 else {}
        if i % 20 == 13:
            self.call("decide_many", [self.x(j) for j in (i, i + 3)], events=[f"e{i}", f"more {i}"])
        else:
            self.call("decide", self.x(i), event=f"e{i}", **how)
        if i % 20 == 1:
            self.call("decide", self.x(i), event=f"e{i}", **how)
        self._reward(i)
        for at, name, given, options in self.changes():
            if at == i:
                self.call(name, *given, **options)
        if i == 48:
            self.features = ("age", "visits", "hour")
        if i == 112:
            self.features = ("visits", "age")

    def _reward(self, i: int) -> None:
        value = (i * 7 % 5) / 4
        if i % 4 != 3:
            self.call("reward", f"e{i}", value, **({"name": f"m{i}"} if i % 3 == 0 else {}))
        if i % 9 == 5:
            self.call("reward", f"e{i - 4}", 0.75, rank=1)
            self.call("reward", f"e{i - 4}", 0.5)
        if i % 11 == 6:
            self.call("reward", f"e{i + 2}", 0.5, name=f"m{i + 2}")
        if i % 13 == 8:
            self.call("reward", f"e{i - 1}", 1.0, played=3)
        if i % 16 == 12 and i > 25:
            self.call("reward", f"e{i - 25}", 1.0, played="a")  # its default was learned for another arm
        if i % 27 == 4:
            late = f"e{i - 3}" if i < 40 else f"e{i - 25}"
            self.call("reward_many", [(late, 1.0), {"event": "never", "value": 0.0}, (f"e{i}", 7.5)])

    def changes(self) -> list[tuple[int, str, tuple[Any, ...], dict[str, Any]]]:
        shadow: dict[str, Any] = {"shadow": armlet.LinUCB(alpha=0.5), "how": "refit"}
        return [
            (12, "add_arm", ("new",), {}),
            (18, "retire_arm", ("b",), {}),
            (22, "restore_arm", ("b",), {}),
            (24, "change", (), {"arms": ["a", "b", 3]}),
            (30, "change", (), {"policy": armlet.ContextualEpsilonGreedy(p=9, floor=0.25)}),
            (34, "change", (), {"window": 30.0, "default_reward": 0.5, "early_window": 80.0}),
            (36, "change", (), {"reward_range": (-1.0, 2.0)}),
            (38, "change", (), {"feature_range": {"visits": (-0.75, 0.75, "clip")}}),
            (40, "change", (), {"control": None}),
            (42, "change", (), {"control": None}),
            (48, "change", (), {"features": ["age", "visits", "hour"], "fill": {"hour": 0.5}}),
            (54, "change", (), shadow),
            (66, "promote", (), {}),
            (70, "promote", (), {"gate": "off", "control": 0.25}),
            (78, "change", (), {"control": Control(arm=3, share=0.25)}),
            (82, "freeze", (), {}),
            (88, "forget", ("e80",), {}),
            (92, "forget", ("e87",), {}),
            (94, "thaw", (), {}),
            (98, "change", (), {"policy": armlet.FixedEpsilon(epsilon=0.3), "how": "refit"}),
            (102, "change", (), {"control": Control(policy=armlet.Greedy(), share=0.25), "how": "refit"}),
            (108, "change", (), {"control": None, "aggregation": "sum"}),
            (112, "change", (), {"features": ["visits", "age"], "feature_range": None}),
            (116, "change", (), {"window": None, "default_reward": None}),
            (120, "forget_many", (["e1", "e2", "e117", "e118", "nowhere"],), {}),
            (124, "change", (), {"shadow": armlet.ThompsonSampling(v=0.3), "how": "refit"}),
            (134, "freeze", (), {}),
            (140, "thaw", (), {}),
            (146, "change", (), {"shadow": None}),
            (150, "change", (), {"policy": armlet.LinUCB(half_life="2 hours"), "how": "refit"}),
        ]


# ---- several outcomes


class Router(Life):
    """Outcomes with known prices, a hard budget, bills, dials, units, parts that come apart, and a control."""

    name = "router"

    def options(self) -> dict[str, Any]:
        return {
            "arms": ["small", "large"],
            "features": ["tokens", "depth"],
            "policy": armlet.ContextualEpsilonGreedy(p=6, floor=0.2),
            "outcomes": {"quality": 1.0, "cost": -0.5, "delay": -0.25},
            "known": {"delay": {"small": 0.25, "large": 1.0}},
            "reward_range": {"quality": (0, 1), "cost": (0, 2)},
            "budget": armlet.Budget("cost", total=90.0, horizon=160),
            "window": 50.0,
            "default_reward": {"quality": 0.0},
            "early_window": 60.0,
            "epoch": 20,
            "seed": 2,
        }

    def step(self, i: int) -> None:
        how: dict[str, Any] = {"unit": f"session {i % 4}"} if i % 3 == 0 else {}
        how |= {"weights": {"cost": -2.0}} if i % 5 == 2 else {}
        how |= {"probabilities": "all"} if i % 10 == 4 else {}
        if i % 25 == 14:
            rows = [context(i), context(i + 1)]
            self.call("decide_many", rows, events=[f"e{i}", f"more {i}"], units=["session 1", None])
        else:
            self.call("decide", context(i), event=f"e{i}", **how)
        if i % 4 == 0:
            self.call("reward", f"e{i}", {"quality": (i * 3 % 5) / 4, "cost": (i % 3) / 2})
        elif i % 4 == 1:
            self.call("reward", f"e{i}", {"cost": 0.5 + (i % 2) / 4})
        elif i % 4 == 2:
            self.call("reward", f"e{i - 1}", {"quality": 1.0}, name=f"m{i}")
            self.call("reward", f"e{i}", {"quality": 0.5}, **({"played": "small"} if i % 8 == 6 else {}))
        if i % 16 == 0 and i > 29:
            self.call("reward", f"e{i - 29}", {"quality": 0.25, "cost": 0.5}, played="large")
        if i % 12 == 5:
            self.call("bill", f"e{i - 2}", 1.5)
            self.call("reward", f"e{i - 4}", {"quality": 0.25, "cost": 0.75}, rank=1)
        if i % 17 == 9:
            self.call("reward", f"e{i + 1}", {"cost": 0.125})
            self.call("reward", f"e{i - 1}", {"quality": 9.0})
        for at, name, given, options in self.changes():
            if at == i:
                self.call(name, *given, **options)

    def changes(self) -> list[tuple[int, str, tuple[Any, ...], dict[str, Any]]]:
        hard = armlet.Budget("cost", total=150.0, horizon=160, hard=True)
        spent = armlet.Budget("cost", total=20.0, period=40, hard=True)
        return [
            (15, "add_arm", ("huge",), {"known": {"delay": 2.0}}),
            (22, "retire_arm", ("large",), {}),
            (26, "restore_arm", ("large",), {}),
            (33, "change", (), {"outcomes": {"quality": 2.0}}),
            (37, "change", (), {"known": {"delay": {"small": 0.125, "large": 1.25, "huge": 2.5}}}),
            (41, "change", (), {"reward_range": {"quality": (-1.0, 1.0)}}),
            (48, "change", (), {"control": Control(arm="small", share=0.25)}),
            (58, "change", (), {"control": None}),
            (60, "change", (), {"budget": hard}),
            (66, "change", (), {"shadow": armlet.LinUCB(), "how": "refit"}),
            (74, "promote", (), {"gate": "off"}),
            (80, "freeze", (), {}),
            (86, "forget", ("e84",), {}),
            (90, "thaw", (), {}),
            (96, "change", (), {"default_reward": {"quality": 0.5, "cost": 0.25}}),
            (100, "forget_many", (["e97", "e98"],), {}),
            (104, "change", (), {"features": ["tokens"]}),
            (105, "change", (), {"features": ["tokens", "depth"], "fill": {"depth": 0.25}}),
            (110, "change", (), {"aggregation": "sum"}),
            (116, "change", (), {"policy": armlet.FixedEpsilon(epsilon=0.25), "how": "refit"}),
            (126, "change", (), {"budget": spent}),
            (134, "change", (), {"budget": None}),
            (140, "change", (), {"window": None, "default_reward": None}),
            (148, "change", (), {"control": Control(arm="huge", share=0.25), "shadow": None}),
        ]


# ---- actions


FILMS: Final = {
    "Alien": {"genre": 1.0, "year": 0.5},
    "Heat": {"genre": 0.0, "year": 1.5},
    "Ran": {"genre": -1.0, "year": 1.0},
    "Up": {"genre": 0.5, "year": 2.0},
}


class Films(Life):
    """Actions with features: tables that are prepared, changed and removed, baselines, deferred decisions, windows."""

    name = "films"

    def options(self) -> dict[str, Any]:
        return {
            "features": ["age", "visits"],
            "action_features": ["genre", "year"],
            "policy": armlet.SharedOptimism(),
            "window": 40.0,
            "default_reward": 0.0,
            "early_window": 50.0,
            "reward_range": (-1, 1),
            "seed": 3,
        }

    def step(self, i: int) -> None:
        if i == 1:
            self.table: ActionTable = self.call("prepare", "all", FILMS)
        if i % 20 == 10:
            film: dict[armlet.types.Arm, Any] = {f"film {i}": {"genre": (i % 7) / 4, "year": (i % 5) / 4}}
            self.table = self.call("prepare", "all", self.table.changed(add=film, remove=[self.table.labels[0]]))
        how: dict[str, Any] = {"eligible": list(self.table.labels[:2])} if i % 9 == 3 else {}
        how |= {"baseline": self.table.labels[1]} if i % 8 == 5 else {}
        how |= {"defer": True} if i % 6 == 2 else {}
        how |= {"probabilities": "all"} if i % 10 == 4 else {}
        tables = (self.table, "all", {"Up": FILMS["Up"], "Ran": FILMS["Ran"]}) if not how else (self.table, "all")
        if i % 30 == 16:
            self.call("decide_many", [context(i), context(i + 1)], "all", events=[f"e{i}", f"more {i}"])
        else:
            self.call("decide", context(i), tables[i % len(tables)], event=f"e{i}", **how)
        if i % 4 != 3:
            self.call("reward", f"e{i}", (i * 7 % 9 - 4) / 4)
        if i % 6 == 4:
            self.call("activate", f"e{i - 2}")
        if i % 12 == 7:
            self.call("reward", f"e{i - 5}", 0.5, rank=1)
            self.call("reward", f"e{i + 2}", 0.25)
        for at, name, given, options in self.changes():
            if at == i:
                self.call(name, *given, **options)

    def changes(self) -> list[tuple[int, str, tuple[Any, ...], dict[str, Any]]]:
        refit: dict[str, Any] = {"policy": armlet.SharedOptimism(), "how": "refit"}
        return [
            (20, "prepare", ("sale", {"Alien": FILMS["Alien"], "Up": FILMS["Up"]}), {}),
            (26, "decide", (context(26), "sale"), {"event": "sale 26"}),
            (32, "remove_table", ("sale",), {}),
            (33, "decide", (context(33), "sale"), {"event": "sale 33"}),
            (34, "tables", (), {}),
            (40, "forget", ("e38",), {}),
            (56, "change", (), {"reward_range": (-2.0, 2.0)}),
            (60, "change", (), {"window": 30.0, "default_reward": 0.25}),
            (70, "change", (), refit),
            (76, "change", (), {"aggregation": "last"}),
            (84, "forget_many", (["e80", "e81", "e82"],), {}),
            (92, "activate", ("nowhere",), {}),
            (96, "change", (), {"shadow": armlet.SharedThompson(), "how": "refit"}),
            (98, "freeze", (), {}),
            (120, "change", (), {"window": None, "default_reward": None}),
            (144, "change", (), {"early_window": None}),
        ]


class Genres(Life):
    """A second loop of actions, with another policy, and costs instead of rewards."""

    name = "genres"

    def options(self) -> dict[str, Any]:
        return {
            "features": ["age", "visits"],
            "action_features": ["genre", "year"],
            "policy": armlet.SharedThompson(v=0.5, intercepts=False),
            "objective": "min",
            "aggregation": "sum",
            "seed": 4,
        }

    def step(self, i: int) -> None:
        if i % 3:
            return
        self.call("decide", context(i), FILMS if i % 2 else dict(list(FILMS.items())[:3]), event=f"e{i}")
        self.call("reward", f"e{i}", (i % 8) / 16)
        if i % 9 == 0:
            self.call("reward", f"e{i - 3}", 0.125)
        if i == 60:
            self.call("change", policy=armlet.SharedThompson(v=1.0, intercepts=False))


# ---- fading


class Fading(Life):
    """A model that was trained before, fading by time and by steps, units, epochs by the clock, costs."""

    name = "fading"

    def options(self) -> dict[str, Any]:
        policy = armlet.LinUCB(half_life="3 hours")
        bandit = armlet.Bandit(["x", "y"], features=["u", "v"], policy=policy, objective="min", seed=5)
        for i in range(20):
            decision = bandit.decide(context(i), at=self.shop.ticks.now - 3600.0)
            bandit.learn(decision, (i % 5) / 4)
        return {"model": bandit, "aggregation": "last"}

    def step(self, i: int) -> None:
        self.shop.ticks.now += 600.0 if i % 40 == 0 else 0.0
        self.call("decide", context(i), event=f"e{i}")
        if i % 5 != 3:
            self.call("reward", f"e{i}", (i * 3 % 8) / 8)
        if i % 7 == 6:
            self.call("reward", f"e{i - 3}", 0.5)
        if i == 40:
            self.call("change", policy=armlet.LinUCB(half_life="2 hours"))
        if i == 70:
            self.call("change", policy=armlet.ThompsonSampling(discount=0.97), how="refit")
        if i == 100:
            self.call("forget", "e98")
        if i == 110:
            self.call("change", policy=armlet.LinUCB(half_life=60), how="refit")
        if i == 120:
            self.call("change", shadow=armlet.Greedy(discount=0.9), how="refit")
        if i == 140:
            self.call("change", features=["v", "u", "w"])
        if i == 141:
            self.call("change", features=["v", "u"])


class Sticky(Life):
    """Units that keep their arm by the clock of the wall, and labels that differ by type alone."""

    name = "sticky"

    def options(self) -> dict[str, Any]:
        return {"arms": ["1", 1, "b"], "dim": 2, "epoch": timedelta(minutes=1), "normalize": "l2", "seed": 6}

    def step(self, i: int) -> None:
        if i % 2:
            return
        self.call("decide", context(i), event=f"e{i}", unit=f"user {i % 6}")
        if i % 4 == 0:
            self.call("reward", f"e{i}", (i % 5) / 5)
        if i == 50:
            self.call("retire_arm", 1)
        if i == 80:
            self.call("forget", "e72")


# ---- what is recorded


def facts_of(store: Store, name: str) -> dict[str, Any]:
    """Return all that a store says of a loop; sizes in bytes are left out."""
    loop = store.loop(name)
    return {
        "at end": known(loop),
        "health": [each.text for each in loop.health()],
        "rows": rows_of(store, name),
        "stats": replace(loop.stats(), size=0, rows_since_snapshot=0).to_dict(),
        "tables": {name: table.hash for name, table in tables.items()} if (tables := _tables(loop)) else {},
        "tally": json.loads(loop._runner.tally.to_json()),
        "verified": {**verify(store._ledger, name).to_dict(), "snapshot": None},
    }


def _tables(loop: Loop) -> dict[str, ActionTable]:
    return {} if loop.action_reader is None else loop.tables()


def rows_of(store: Store, name: str) -> dict[str, Any]:
    """Return hashes of the rows of a loop and of its log, and what they lead to when they are played again."""
    loop = store.loop(name)
    rows = read_rows(store, name)
    events = list(loop.log)
    again = read_cast(loop.log.start)
    play_all(loop.log.replayable, again)
    audited = armlet.audit(loop.log.replayable, loop.log.start)
    return {
        "audit": str(audited),
        "events by kind": dict(Counter(event["kind"] for event in events)),
        "log": short("\n".join(json.dumps(event, sort_keys=True) for event in events)),
        "rebuilt": rebuilt(store, name).digest(),
        "replayed": again.digest(),
        "rows": short("\n".join(map(line_of, rows))),
        "rows by kind": dict(Counter(row.kind for row in rows)),
    }


def read_rows(store: Store, name: str) -> list[Row]:
    """Return all rows of a loop that are left."""
    record = next(each for each in store._ledger.loops() if each.name == name)
    return list(store._ledger.rows(record.id, 0))


def line_of(row: Row) -> str:
    """Return all that a row holds, as text."""
    x = "" if row.x is None else np.frombuffer(row.x, dtype="<f8").tolist()
    return f"{row.seq} {row.ts} {row.kind} {row.t} {json.dumps(dict(row.fields), sort_keys=True)} {x}"
