"""Random lives of durable loops, with arms or with actions: see `armlet.testing.lives`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from armlet import stores
from armlet.actions.table import ActionTable
from armlet.bandit import Bandit
from armlet.policies import FixedEpsilon, Greedy, LinUCB, ThompsonSampling
from armlet.record.values import Event
from armlet.stores import Control, Ledger, Memory, Store
from armlet.stores.ledger import Row
from armlet.testing.lives import POOL, Configuration, Life, drawn_table, other_settings
from armlet.testing.promises import Options
from armlet.types import Float64, Policy

NAME = "loop"
OTHERS: tuple[Policy, ...] = (
    LinUCB(),
    FixedEpsilon(epsilon=0.4),
    Greedy(discount=0.97),
    ThompsonSampling(half_life=30),
    LinUCB(half_life="2 hours"),
)
"""Policies that learn the log again, as shadow, control or live."""


class LoopLife(Life):
    """The life of a loop; a durable one is in SQLite, and is closed and opened again where it rests."""

    def __init__(self, case: Configuration, folder: Path | None = None) -> None:
        super().__init__(case)
        self._path = None if folder is None else folder / f"{case.number}.db"
        self.ledger, self.store = self._open()
        self.loop = self.store.loop(NAME, **case.options)
        self.rows: list[Row] = []  # as they were written, before any was forgotten
        self.before: dict[str, Bandit] = {}  # the model when it decided, by id
        self.asked: dict[str, Options] = {}  # the options of that decision
        self._ids: dict[str, str] = {}  # by event
        self._n = 0
        self._window: float | None = case.options.get("window")
        self.start: Any = self.loop.model()
        self.several = getattr(self.start.settings, "outcomes", None)

    def _open(self) -> tuple[Ledger, Store]:
        ledger: Ledger = Memory() if self._path is None else stores.SQLite(self._path, synchronous="NORMAL")
        return ledger, Store(ledger, wall=self.clock, elapsed=self.clock)

    def rest(self) -> None:
        """Close the store, and open it again."""
        if self._path is None:
            return
        self.store.close()
        self.ledger, self.store = self._open()
        self.loop = self.store.loop(NAME)

    def state(self) -> object:
        """Return what a refused call must leave as it was."""
        return self.loop.version()

    def read(self) -> None:
        """Read the rows that were written since."""
        last = self.rows[-1].seq if self.rows else 0
        self.rows += list(self.ledger.rows(self.loop._runner.id, last))

    def step(self) -> None:
        """Decide, reward some, and now and then something else."""
        self.decide()
        self.read()
        for _ in range(int(self.rng.integers(4))):
            self.reward_one("reward")
        self.read()
        if self.chance(0.3):
            self.happen(self.happenings())
            self.read()
        if self.chance(0.06):
            self.met["restart"] += 1
            self.rest()

    def context(self) -> Float64:
        """Draw a context of the features of now."""
        return self.rng.integers(-8, 9, size=self.loop.model().settings.dim) / 4

    def event(self) -> str:
        """Draw an event: one of the last, rarely one that is to come."""
        return f"e{max(self._n + int(self.rng.integers(1, 3)) - int(self.rng.exponential(6)), 1)}"

    def decide(self) -> None:
        """Decide once, with options; and now and then the same again."""
        model: Any = self.loop.model()
        options: Options = {}
        active = [arm for arm in model.arms if arm not in model.arms.retired]
        if self.chance(0.2):
            options["eligible"] = [arm for arm in active if self.chance(0.6)] or active[:1]
        if self.chance(0.25) and model.settings.epoch is not None:
            options["unit"] = f"session {self.rng.integers(4)}"
        if self.several is not None and self.chance(0.25):
            options["weights"] = {"cost": -float(self.rng.integers(5))}
        if self.chance(0.2):
            options["probabilities"] = "all"
        self._n += 1
        x, event = self.context(), f"e{self._n}"
        made = self.call("decide", self.loop.decide, x, event=event, **options)
        if made is None:
            return
        self.before[made.id], self.asked[made.id], self._ids[event] = model, options, made.id
        self.met.update(name for name in ("unit", "weights", "eligible") if name in options)
        if self.chance(0.2):
            again = self.call("decide again", self.loop.decide, x, event=event, **options)
            if again is None or again.id != made.id:
                raise AssertionError(f"event {event} was decided twice: {made} and {again}")

    def reward_one(self, name: str) -> None:
        """Report a reward, or parts of one, of any event."""
        options: Options = {"rank": 1} if self.chance(0.15) else {}
        names = None
        if self.several is not None and self.chance(0.5):
            names = [self.pick(self.several.learned)]
        if self.chance(0.2):
            options["name"] = f"m{self.rng.integers(3)}"
        if self.chance(0.08):
            options["played"] = self.pick(list(self.start.arms))
        status = self.call(name, self.loop.reward, self.event(), self.reward(names), **options)
        if status is not None:
            self.met[f"reward {status}"] += 1
        self.met.update(each for each in ("rank", "played") if each in options)

    def happenings(self) -> dict[str, Callable[[str], object]]:
        """Return what can happen, by name."""
        loop, change = self.loop, self.loop.change
        arms, settings = list(loop.model().arms), loop.model().settings
        return {
            "forget": self._forget,
            "add_arm": lambda name: self.call(name, loop.add_arm, "d", **self._prices_of_one()),
            "retire_arm": lambda name: self.call(name, loop.retire_arm, self.pick([*arms, "nowhere"])),
            "restore_arm": lambda name: self.call(name, loop.restore_arm, self.pick(arms)),
            "policy": lambda name: self.call(name, change, policy=other_settings(loop.model().policy)),
            "refit": lambda name: self._refit(name, policy=self.pick([*OTHERS, loop.model().policy])),
            "features": lambda name: self.call(name, change, **self.other_features(settings.features)),
            "ranges": self._ranges,
            "outcomes": lambda name: self.call(name, change, outcomes={"gain": float(self.rng.integers(1, 4))}),
            "known": lambda name: self.call(name, change, known=self.other_prices(arms)),
            "budget": lambda name: self.call(name, change, budget=self.pick([None, self.other_budget()])),
            "window": self._change_window,
            "aggregation": lambda name: self.call(name, change, aggregation=self.pick(["first", "last", "sum"])),
            "early": lambda name: self.call(name, change, early_window=self.pick([None, 500.0, 50_000.0])),
            "control": self._control,
            "shadow": self._shadow,
            "freeze": lambda name: self.call(name, self.pick([loop.freeze, loop.thaw])),
            "thaw": lambda name: self.call(name, loop.thaw),
            "promote": lambda name: self.call(
                name,
                loop.promote,
                gate=self.pick(["off", "better"]),
                shadow=self.pick([None, "other"]),
                **self.pick([{}, {"control": 0.25}]),
            ),
            "settle": lambda name: self.call(name, self.store.settle),
            "look": self.look,
            "reward_many": self._many_rewards,
            "bill": lambda name: self.call(name, loop.bill, self.event(), abs(self.value())),
            "contexts": lambda name: self.call(name, change, feature_range=self.other_contexts()),
            "decide_many": self._many,
        }

    def _refit(self, name: str, **how: Any) -> None:
        """Let policies learn the log again: all of those here can learn any."""
        self.call(name, self.loop.change, **how, how="refit")
        if "which cannot learn the log" in self.answers[-1]:
            raise AssertionError(f"a loop cannot be learned again: {self.answers[-1]}")

    def _forget(self, name: str) -> None:
        """Forget an event; its rows are overwritten, so that what was read of them is marked."""
        event = self.event()
        if self.call(name, self.loop.forget, event):
            self.read()
            fields = {"id": self._ids.get(event, "")}
            self.rows.append(Row(self.rows[-1].seq, 0, "erase", None, fields))

    def look(self, name: str) -> None:
        """Ask for all there is to see."""
        for read in (self.loop.stats, self.loop.health, self.loop.details, self.loop.gains, self.loop.model):
            before = len(self.answers)
            self.call(name, read)
            del self.answers[before:]  # sizes and times of a store are its own

    def _prices_of_one(self) -> Options:
        known = {} if self.several is None else dict.fromkeys(self.several.known, 0.5)
        return {"known": known} if known else {}

    def _ranges(self, name: str) -> None:
        """Change ranges, often to the same again, as a script that applies its settings does."""
        given = self.other_range()
        for _ in range(self.pick([1, 2])):
            self.call(name, self.loop.change, reward_range=given)

    def _change_window(self, name: str) -> None:
        default = self.reward() if self.chance(0.7) else None
        none: Options = {"window": None, "default_reward": None}
        how = self.pick([{"window": 3000.0}, none, {"default_reward": default}])
        self.call(name, self.loop.change, **how)

    def _control(self, name: str) -> None:
        policy = self.pick(OTHERS)
        control = self.pick([None, Control(arm="a", share=0.3), Control(policy=policy, share=0.3)])
        how = {"how": "refit"} if control is not None and control.policy is not None else {}
        self.call(name, self.loop.change, control=control, **how)

    def _shadow(self, name: str) -> None:
        policy = self.pick([None, *OTHERS])
        if policy is None:
            self.call(name, self.loop.change, shadow=None)
        elif self.chance(0.5):
            self._refit(name, shadow=policy)
        else:
            self._refit(name, shadow={"shadow": policy, "other": self.pick(OTHERS)})

    def _many_rewards(self, name: str) -> None:
        rewards = [{"event": self.event(), "value": self.reward(), "rank": int(self.rng.integers(2))} for _ in range(3)]
        self.call(name, self.loop.reward_many, rewards)

    def _many(self, name: str) -> None:
        X = np.array([self.context() for _ in range(3)])
        events = [f"e{self._n + 1 + i}" for i in range(3)]
        made = self.call(name, self.loop.decide_many, X, events=events)
        if made is not None:
            self._n += 3
            self._ids |= {event: each.id for event, each in zip(events, made, strict=True)}


def plain_events(rows: Iterable[Row]) -> Iterator[Event]:
    """Return rows as events that `Plain` takes: contexts as arrays, times in minutes, the live policy's own choices."""
    for row in rows:
        fields = dict(row.fields)
        if row.kind == "change":
            yield from ({"kind": "replace", **each} for each in fields["replaces"])
        elif row.kind == "decide":
            control = fields.get("control", {})
            choice = {"live": control.get("live", fields["arm"]), "is_own": not control.get("played", False)}
            x = np.frombuffer(row.x or b"")
            parts = {"z": x[fields["dim"] :]} if "dim" in fields else {}
            x = x[: fields.get("dim")]
            yield {"kind": "decide", "t": row.t, "x": x, **parts, **fields, "tag": row.ts // 60_000_000, **choice}
        else:
            yield {"kind": row.kind, **fields}


class ActionLoopLife(LoopLife):
    """The life of a loop whose actions come with each decision."""

    table: ActionTable

    def __init__(self, case: Configuration, folder: Path | None = None) -> None:
        super().__init__(case, folder)
        self.table = drawn_table(self.rng, 6)
        self.loop.prepare("all", self.table)

    def decide(self) -> None:
        """Decide among actions, with options; and now and then the same again."""
        table: Any = self.pick([self.table, "all", drawn_table(self.rng, 4)])
        labels = list((self.table if isinstance(table, str) else table).labels)
        options: Options = {"actions": table}
        if self.chance(0.2):
            options["eligible"] = labels[: int(self.rng.integers(1, 4))]
        if self.chance(0.2):
            options["baseline"] = self.pick(options.get("eligible", labels))
        if self.chance(0.2):
            options["defer"] = True
        if self.chance(0.2):
            options["probabilities"] = "all"
        self._n += 1
        x, event = self.context(), f"e{self._n}"
        made = self.call("decide", self.loop.decide, x, event=event, **options)
        if made is not None and self.chance(0.2):
            again = self.call("decide again", self.loop.decide, x, event=event, **options)
            if again is None or again.id != made.id:
                raise AssertionError(f"event {event} was decided twice: {made} and {again}")
        if made is not None and made.probabilities is not None and abs(made.probabilities.sum() - 1.0) > 1e-9:
            raise AssertionError(f"the probabilities of {made} sum to {made.probabilities.sum()}")
        if made is not None:
            self._ids[event] = made.id
            self.met.update(name for name in ("baseline", "defer", "eligible") if name in options)

    def reward_one(self, name: str) -> None:
        """Report a reward of any event, or let one count that was deferred."""
        options = {"rank": 1} if self.chance(0.15) else {}
        self.call(name, self.loop.reward, self.event(), self.reward(), **options)
        if self.chance(0.1):
            self.call("activate", self.loop.activate, self.event())

    def happenings(self) -> dict[str, Callable[[str], object]]:
        """Return what can happen, by name."""
        loop, change = self.loop, self.loop.change
        return {
            "forget": self._forget,
            "prepare": self._prepare,
            "policy": lambda name: self.call(name, change, policy=loop.model().policy),
            "refit": lambda name: self._refit(name, policy=loop.model().policy),
            "ranges": self._ranges,
            "window": self._change_window,
            "early": lambda name: self.call(name, change, early_window=self.pick([None, 500.0, 50_000.0])),
            "aggregation": lambda name: self.call(name, change, aggregation=self.pick(["first", "last", "sum"])),
            "features": lambda name: self.call(name, change, **self.other_features(POOL[:2])),
            "freeze": lambda name: self.call(name, loop.freeze),
            "shadow": self._shadow,
            "look": self.look,
            "settle": lambda name: self.call(name, self.store.settle),
        }

    def _prepare(self, name: str) -> None:
        gone = self.pick(list(self.table.labels))
        self.table = self.table.changed(add=drawn_table(self.rng, 2), remove=[gone])
        self.call(name, self.loop.prepare, "all", self.table)
