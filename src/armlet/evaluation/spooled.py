"""The rows of any events: read once, event by event, into temporary files.

A reward may come, or be corrected, long after its decision, so rewards are put to their decisions at the end.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np

from armlet.errors import LogError
from armlet.evaluation.paid import Paid, widen_range
from armlet.evaluation.rows import BLOCK, Blocks, Rows, without_erased
from armlet.evaluation.units import unit_codes
from armlet.inputs.feature_change import FeatureChange
from armlet.log.reader import LogFile
from armlet.record.arms import Roster
from armlet.record.block import DECIDE, LEARN, OTHER, Block
from armlet.record.events import Events
from armlet.record.faults import reading
from armlet.record.kinds import EXPLORATION
from armlet.record.values import Event
from armlet.types import Float64, Int64

_NAME: Final = np.dtype([("t", "<i8"), ("mark", "<u8")])
_REWARD: Final = np.dtype([("t", "<i8"), ("mark", "<u8"), ("place", "<i8"), ("reward", "<f8"), ("weight", "<f8")])
REWARDS: Final = frozenset({"learn", "correct", "forget"})
_CHUNK: Final = 2**14
_PART: Final = 2**12  # events that are in memory at a time


class SpooledBlocks(Blocks):
    """The rows of any events, read once, now; the temporary files go when the reader does."""

    def __init__(self, events: Events) -> None:
        folder = tempfile.mkdtemp(prefix="armlet-rows-")
        self._gone = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._folder = Path(folder)
        spooler = _Spooler(self._folder)
        about, self.arms, self.n = spooler.spool(events)
        super().__init__(about)
        self.name, self.period = name_of(events, about), spooler.period
        self._units, self._paid = spooler.has_units, spooler.paid

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_gone"}

    @property
    def has_units(self) -> bool:
        """Whether a decision names a unit."""
        return self._units

    def __len__(self) -> int:
        return -(-self.n // BLOCK)

    def _read(self, block: int) -> Rows:
        with np.load(self._folder / f"{block}.npz") as saved:
            columns: dict[str, Any] = dict(saved)
        paid = np.memmap(self._folder / "paid", self._paid.dtype, mode="r")[block * BLOCK : (block + 1) * BLOCK]
        columns |= {"weight": np.array(paid["weight"])} | self._paid.read(paid, columns.pop("prices"))
        columns["weight"][np.isnan(columns["reward"])] = 1.0
        if not self._units:
            columns |= {"unit": None, "epoch": None}
        n_arms = len(self.arms)
        columns["eligible"] = _widened(columns["eligible"], n_arms)
        probabilities = columns["probabilities"]
        columns["probabilities"] = _widened(probabilities, n_arms) if probabilities.size else None
        return Rows(**without_erased(columns))


class _Spooler:
    """Writes columns block by block; rewards are put to their decisions at the end, in the order they came."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names, self._rewards = (folder / "names").open("wb"), (folder / "rewards").open("wb")
        self._buffer: list[Event] = []
        self._eligible: list[Any] = []
        self._probabilities: list[Float64 | None] = []
        self._prices: list[list[float]] = []
        self._parts: list[dict[str, Any]] = []
        self.n = self._blocks = 0
        self.has_units = False
        self.period: tuple[int, int] | None = None

    def spool(self, events: Events) -> tuple[Event, tuple[Any, ...], int]:
        """Write all columns; return the fields of the start, the arms and the number of rows."""
        self._about = about = dict(events.about)
        self._dim = int(about["dim"])
        self._roster = Roster(about)
        self.paid = Paid(about)
        try:
            with reading(name_of(events, about)):
                if isinstance(events, LogFile):
                    for block in events.blocks():
                        self._take_block(block)
                else:
                    for event in events:
                        self._take(event)
                self._flush()
        finally:
            self._names.close()
            self._rewards.close()
        self._settle()
        return about, tuple(self._roster.labels), self.n

    def _take_block(self, block: Block) -> None:
        """Take events that are columns already; in a block all decisions are made with the same arms and features."""
        if any(event["kind"] == "decide" for event in block.others):  # in lines that only the exact reader takes
            for _, event in block.with_lines():
                self._take(event)
            return
        self._convert()
        columns = self._decided(block)
        start = 0
        while start < len(block.t):  # a block of rows ends where it must
            room = BLOCK - self.n % BLOCK
            part = {name: column[start : start + room] for name, column in columns.items()}
            self._parts.append(part)
            start, self.n = start + room, self.n + len(part["t"])
            if self.n % BLOCK == 0:
                self._flush()
        self._rewarded(block)
        for event in block.others:
            if event["kind"] not in REWARDS:
                self._take(event)

    def _decided(self, block: Block) -> dict[str, Any]:
        """Return the columns of a block's decisions, and write their names."""
        names, n_arms, m = np.empty(len(block.t), dtype=_NAME), len(self._roster.labels), len(block.t)
        names["t"], names["mark"] = block.t, block.mark
        self._names.write(names.tobytes())
        at = block.at[block.kind == DECIDE]
        if (at := at[at != 0]).size:  # 0 where times are not known
            first, last = self.period or (at[0], at[0])
            self.period = (min(int(first), int(at.min())), max(int(last), int(at.max())))
        places = np.array([self._roster.places.get(label, -1) for label in block.labels] or [-1], dtype=np.int64)
        arm = places[block.arm]
        for named, ends in ((arm, None), (places[block.eligible], block.eligible_ends)):
            self._refuse_unknown(block, named, ends)
        eligible = np.zeros((m, n_arms), dtype=np.bool_)
        lengths = np.diff(block.eligible_ends)
        eligible[np.repeat(np.arange(m), lengths), places[block.eligible]] = True
        eligible[lengths == 0] = self._roster.active()
        prices = np.array([self.paid.prices(label) for label in self._roster.labels], dtype=np.float64)
        units = [None if unit < 0 else block.texts[unit] for unit in block.unit.tolist()]
        self.has_units = self.has_units or bool((block.unit >= 0).any())
        epochs = [None if epoch < 0 else epoch for epoch in block.epoch.tolist()]
        return {
            "t": block.t,
            "propensity": block.propensity,
            "explored": block.explored,
            "exploration_rate": block.exploration_rate,
            "exploration_propensity": block.exploration_propensity,
            "min_exploration_probability": block.min_exploration_probability,
            "greedy": block.greedy,
            "arm": arm,
            "turn": block.design == (block.texts.index("turn") if "turn" in block.texts else -2),
            "X": np.where(block.has_x[:, np.newaxis], block.X, np.nan),
            "eligible": eligible,
            "probabilities": self._probabilities_of(block, n_arms),
            "prices": prices.reshape(n_arms, -1)[arm],
            "unit": unit_codes(units, epochs, block.t),
            "epoch": block.epoch,
        }

    def _refuse_unknown(self, block: Block, places: Int64, ends: Int64 | None) -> None:
        wrong = np.flatnonzero(places < 0)
        if wrong.size:
            row = int(wrong[0]) if ends is None else int(np.searchsorted(ends, wrong[0], side="right")) - 1
            event = block.event_of(int(block.places(DECIDE)[row]))
            for arm in (event["arm"], *(event["eligible"] or ())):
                self._place(arm, event)

    def _probabilities_of(self, block: Block, n_arms: int) -> Float64:
        """Return the probabilities of all arms, (m, K), NaN where they are not there."""
        lengths, order = np.diff(block.probabilities_ends), self._roster.order
        out = np.full((len(lengths), n_arms), np.nan)
        wrong = np.flatnonzero((lengths != 0) & (lengths != len(order)))
        if wrong.size:
            self._all_probabilities(block.event_of(int(block.places(DECIDE)[wrong[0]])))
        stated = np.flatnonzero(lengths)
        out[stated] = 0.0
        out[stated[:, np.newaxis], order] = block.probabilities.reshape(len(stated), len(order))
        return out

    def _rewarded(self, block: Block) -> None:
        """Write rewards, corrected and forgotten ones too, in the order in which they came."""
        rewards = np.zeros(len(block.reward), dtype=_REWARD)
        rewards["t"], rewards["mark"] = block.learn_t, block.learn_mark
        rewards["reward"], rewards["weight"] = block.reward, block.weight
        where, at = [block.places(LEARN)], block.places(OTHER)
        more = [rewards]
        for place, event in zip(at.tolist(), block.others, strict=True):
            if event["kind"] in REWARDS:
                parts = np.array(self._reward_of(event), dtype=_REWARD)
                more.append(parts)
                where.append(np.full(len(parts), place))
        order = np.argsort(np.concatenate(where), kind="stable")
        self._rewards.write(np.concatenate(more)[order].tobytes())

    def _take(self, event: Event) -> None:
        match event["kind"]:
            case "decide":
                self._decide(event)
            case kind if kind in REWARDS:
                self._rewards.write(np.array(self._reward_of(event), dtype=_REWARD).tobytes())
            case "replace":
                self._replace(event)
            case _:
                self._roster.apply(event)

    def _decide(self, event: Event) -> None:
        self._names.write(struct.pack("<qQ", event["t"], int(event["id"].partition("-")[2], 16)))
        self._buffer.append(event)
        self._prices.append(self.paid.prices(event["arm"]))
        self.has_units = self.has_units or event.get("unit") is not None
        if at := event.get("at"):  # 0 where times are not known
            first, last = self.period or (at, at)
            self.period = (min(first, at), max(last, at))
        self._eligible.append(self._may_play(event))
        self._probabilities.append(self._all_probabilities(event))
        self.n += 1
        if self.n % _PART == 0:
            self._convert()
        if self.n % BLOCK == 0:
            self._flush()

    def _may_play(self, event: Event) -> Any:
        if event["eligible"] is None:
            return self._roster.active()
        plays = np.zeros(len(self._roster.labels), dtype=np.bool_)
        plays[[self._place(arm, event) for arm in event["eligible"]]] = True
        return plays

    def _place(self, arm: Any, event: Event) -> int:
        place = self._roster.places.get(arm)
        if place is None:
            raise LogError(f"event {event['seq']:,} names arm {arm!r}, which the log does not have", event["seq"])
        return place

    def _all_probabilities(self, event: Event) -> Float64 | None:
        values, order = event.get("probabilities"), self._roster.order
        if values is None:
            return None
        if len(values) != len(order):
            text = f"event {event['seq']:,} has {len(values)} probabilities, but there are {len(order)} arms"
            raise LogError(text, event["seq"])
        probabilities = np.zeros(len(self._roster.labels))
        probabilities[order] = values
        return probabilities

    def _reward_of(self, event: Event) -> list[tuple[int, int, int, float, float]]:
        """Return what an event says of a reward, part by part."""
        if "played" in event:  # of another arm than the one that was decided, and chosen by nobody's coin
            return []
        gone = event["kind"] == "forget"
        weight = 1.0 if gone else event.get("weight", 1.0)
        t, _, mark = event["id"].partition("-")
        return [
            (int(t), int(mark, 16), place, np.nan if gone else paid, weight) for place, paid in self.paid.parts(event)
        ]

    def _replace(self, event: Event) -> None:
        """Carry the rows so far to other features, as the bandit did with what it had learned from them."""
        widen_range(self._about, event)
        if "outcomes" in event:
            self.paid.replace(event["outcomes"])
        if "features" not in event:
            return
        self._convert()
        change = FeatureChange.between(self._about.get("features"), event["features"], event.get("fill"), dim=self._dim)
        for part in self._parts:
            part["X"] = change.carry(part["X"])
        for block in range(self._blocks):
            with np.load(self._folder / f"{block}.npz") as saved:
                columns: dict[str, Any] = dict(saved)
            np.savez(self._folder / f"{block}.npz", **columns | {"X": change.carry(columns["X"])})
        self._dim = change.dim
        self._about |= {"dim": change.dim, "features": list(change.after)}

    def _convert(self) -> None:
        """Turn events into columns, which are much smaller."""
        rows, n_arms = self._buffer, len(self._roster.labels)
        if not rows:
            return
        columns: dict[str, Any] = {
            name: np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)
            for name in ("propensity", *EXPLORATION)
        }
        for name in ("explored", "greedy"):
            columns[name] = np.array([-1 if row[name] is None else row[name] for row in rows], dtype=np.int8)
        columns["t"] = np.array([row["t"] for row in rows], dtype=np.int64)
        columns["arm"] = np.array([self._place(row["arm"], row) for row in rows], dtype=np.int64)
        columns["turn"] = np.array([row["design"] == "turn" for row in rows])
        columns["X"] = _stacked([row["x"] for row in rows], np.full(self._dim, np.nan), exact=True)
        columns["eligible"] = _stacked(self._eligible, np.zeros(n_arms, dtype=np.bool_))
        columns["probabilities"] = _stacked(self._probabilities, np.full(n_arms, np.nan))
        columns["prices"] = np.array(self._prices, dtype=np.float64).reshape(len(rows), -1)
        epochs = [row.get("epoch") for row in rows]
        columns["unit"] = unit_codes([row.get("unit") for row in rows], epochs, columns["t"])
        columns["epoch"] = np.array([-1 if each is None else each for each in epochs], dtype=np.int64)
        self._parts.append(columns)
        for buffer in (self._buffer, self._eligible, self._probabilities, self._prices):
            buffer.clear()

    def _flush(self) -> None:
        self._convert()
        if not self._parts:
            return
        n_arms = len(self._roster.labels)
        for part in self._parts:
            part |= {name: _widened(part[name], n_arms) for name in ("eligible", "probabilities")}
        columns: dict[str, Any] = {
            name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]
        }
        if np.isnan(columns["probabilities"][:, 0]).all():
            columns["probabilities"] = np.empty((0, 0))
        np.savez(self._folder / f"{self._blocks}.npz", **columns)
        self._blocks += 1
        self._parts.clear()

    def _settle(self) -> None:
        if self.n == 0:
            return
        names = np.memmap(self._folder / "names", _NAME, mode="r")
        paid = np.memmap(self._folder / "paid", self.paid.dtype, mode="w+", shape=(self.n,))
        paid["parts"], paid["weight"] = np.nan, 1.0
        if (self._folder / "rewards").stat().st_size:
            rewards = np.memmap(self._folder / "rewards", _REWARD, mode="r")
            find = _Finder(names)
            for begin in range(0, len(rewards), _CHUNK):
                some = np.asarray(rewards[begin : begin + _CHUNK])
                rows = find(some["t"], some["mark"])
                rows, some = rows[rows >= 0], some[rows >= 0]
                paid["parts"][rows, some["place"]] = some["reward"]  # of several the last stays
                paid["weight"][rows] = some["weight"]
        paid.flush()


def name_of(events: Events, about: Event) -> str:
    """Return what a log is called: its file, its loop, or where it comes from."""
    loop = about.get("loop")
    return str(getattr(events, "name", None) or (f"loop {loop}" if loop else about.get("origin")) or "events in memory")


class _Finder:
    """Finds rows by the names of decisions; -1 for those that the log does not have."""

    def __init__(self, names: Any) -> None:
        self._names = names
        t = names["t"]
        rises = all(bool((np.diff(t[i : i + BLOCK + 1]) > 0).all()) for i in range(0, len(t), BLOCK))
        self._order: Int64 | None = None if rises else np.argsort(t, kind="stable")
        self._t = t if self._order is None else t[self._order]

    def __call__(self, t: Int64, mark: Any) -> Int64:
        at = np.minimum(np.searchsorted(self._t, t, side="right") - 1, len(self._t) - 1)
        rows = at if self._order is None else self._order[at]
        same = (self._names["t"][rows] == t) & (self._names["mark"][rows] == mark)
        return np.where((at >= 0) & same, rows, -1)


def _stacked(rows: Iterable[Any], empty: Any, *, exact: bool = False) -> Any:
    """Stack rows, `empty` for those that are None; shorter ones are filled with zeros, or refused if `exact`."""
    rows = list(rows)
    out = np.zeros((len(rows), len(empty)), dtype=empty.dtype)
    for i, row in enumerate(rows):
        if row is None:
            out[i] = empty
        elif exact:
            out[i] = row
        else:
            out[i, : len(row)] = row
    return out


def _widened(columns: Any, n_arms: int) -> Any:
    """Add columns for arms that came later: none of them was there yet."""
    wide = np.zeros((len(columns), n_arms), dtype=columns.dtype)
    wide[:, : columns.shape[1]] = columns
    if columns.dtype == np.float64:
        wide[np.isnan(columns[:, 0])] = np.nan
    return wide
