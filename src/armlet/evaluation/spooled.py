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
from armlet.record.arms import Roster
from armlet.record.events import Events
from armlet.record.faults import reading
from armlet.record.kinds import EXPLORATION
from armlet.record.values import Event
from armlet.types import Float64, Int64

_NAME: Final = np.dtype([("t", "<i8"), ("mark", "<u8")])
_REWARD: Final = np.dtype([("t", "<i8"), ("mark", "<u8"), ("place", "<i8"), ("reward", "<f8"), ("weight", "<f8")])
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
            with reading(getattr(events, "name", "the log")):
                for event in events:
                    self._take(event)
                self._flush()
        finally:
            self._names.close()
            self._rewards.close()
        self._settle()
        return about, tuple(self._roster.labels), self.n

    def _take(self, event: Event) -> None:
        match event["kind"]:
            case "decide":
                self._decide(event)
            case "learn" | "correct" | "forget":
                self._reward(event)
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

    def _reward(self, event: Event) -> None:
        if "played" in event:  # of another arm than the one that was decided, and chosen by nobody's coin
            return
        gone = event["kind"] == "forget"
        weight = 1.0 if gone else event.get("weight", 1.0)
        t, _, mark = event["id"].partition("-")
        for place, paid in self.paid.parts(event):
            value = np.nan if gone else paid
            self._rewards.write(struct.pack("<qQqdd", int(t), int(mark, 16), place, value, weight))

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
