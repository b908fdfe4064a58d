"""Events as blocks of columns in files of their own: one pass over the events, then as many over columns as one likes.

Rewards are put to their decisions after the pass, in the order in which they came: the last one counts. Memory holds a
block; the files go when the reader does.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from armlet.errors import LogError
from armlet.evaluation.reading.roster import Roster
from armlet.evaluation.rows import BLOCK, EXPLORATION, Blocks, Rows, widened, without_erased
from armlet.log.faults import reading
from armlet.log.schema import Event, Events
from armlet.types import Float64, Int64

_NAME: Final = np.dtype([("t", "<i8"), ("mark", "<u8")])
_TOLD: Final = np.dtype([("t", "<i8"), ("mark", "<u8"), ("reward", "<f8"), ("weight", "<f8")])
_PAID: Final = np.dtype([("reward", "<f8"), ("weight", "<f8")])
_CHUNK: Final = 2**14
_PART: Final = 2**12  # events that are in memory at a time


class SpooledBlocks(Blocks):
    """The rows of any events.

    Parameters
    ----------
    events
        Read once, now.
    """

    def __init__(self, events: Events) -> None:
        folder = tempfile.mkdtemp(prefix="armlet-rows-")
        self._gone = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._folder = Path(folder)
        about, self.arms, self.n = _Spooler(self._folder).spool(events)
        super().__init__(about)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_gone"}

    def __len__(self) -> int:
        return -(-self.n // BLOCK)

    def __getitem__(self, block: int) -> Rows:
        with np.load(self._folder / f"{block}.npz") as saved:
            columns: dict[str, Any] = dict(saved)
        paid = np.memmap(self._folder / "paid", _PAID, mode="r")[block * BLOCK : (block + 1) * BLOCK]
        columns["reward"], columns["weight"] = np.array(paid["reward"]), np.array(paid["weight"])
        n_arms = len(self.arms)
        columns["eligible"] = widened(columns["eligible"], n_arms)
        chances = columns["probabilities"]
        columns["probabilities"] = widened(chances, n_arms) if chances.size else None
        return Rows(**without_erased(columns))


class _Spooler:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = _Written((folder / "names").open("wb"), _NAME)
        self._told = _Written((folder / "told").open("wb"), _TOLD)
        self._buffer: list[Event] = []
        self._eligible: list[Any] = []
        self._probabilities: list[Float64 | None] = []
        self._parts: list[dict[str, Any]] = []
        self.n = self._blocks = 0

    def spool(self, events: Events) -> tuple[Event, tuple[Any, ...], int]:
        """Write all columns; give what the start says, the arms and the number of rows."""
        about = dict(events.about)
        self._dim = int(about["dim"])
        self._roster = Roster(about)
        try:
            with reading(getattr(events, "name", "the log")):
                for event in events:
                    self._take(event)
                self._flush()
        finally:
            self._names.close()
            self._told.close()
        self._settle()
        return about, tuple(self._roster.labels), self.n

    def _take(self, event: Event) -> None:
        match event["kind"]:
            case "decide":
                self._decide(event)
            case "learn" | "correct" | "forget":
                self._reward(event)
            case _:
                self._roster.happen(event)

    def _decide(self, event: Event) -> None:
        self._names.add((event["t"], _mark(event["id"])))
        self._buffer.append(event)
        self._eligible.append(self._may_play(event))
        self._probabilities.append(self._chances(event))
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

    def _chances(self, event: Event) -> Float64 | None:
        if event.get("probabilities") is None:
            return None
        chances = np.zeros(len(self._roster.labels))
        if len(event["probabilities"]) != len(self._roster.order):
            n, there = len(event["probabilities"]), len(self._roster.order)
            text = f"event {event['seq']:,} has {n} probabilities, but there are {there} arms"
            raise LogError(text, event["seq"])
        chances[self._roster.order] = event["probabilities"]
        return chances

    def _reward(self, event: Event) -> None:
        if event["kind"] == "forget":
            paid, weight = np.nan, 1.0
        else:
            paid = event["new_reward" if event["kind"] == "correct" else "reward"]
            weight = event.get("weight", 1.0)
        t, _, mark = event["id"].partition("-")
        self._told.add((int(t), int(mark, 16), paid, weight))

    def _convert(self) -> None:
        """Turn events into columns, which are much smaller."""
        rows, n_arms = self._buffer, len(self._roster.labels)
        if not rows:
            return
        columns: dict[str, Any] = {"propensity": _numbers(rows, "propensity")}
        columns |= {field: _numbers(rows, name) for name, field in EXPLORATION.items()}
        columns |= {name: _truths(rows, name) for name in ("explored", "greedy")}
        columns["t"] = np.array([row["t"] for row in rows], dtype=np.int64)
        columns["arm"] = np.array([self._place(row["arm"], row) for row in rows], dtype=np.int64)
        columns["turn"] = np.array([row["design"] == "turn" for row in rows])
        columns["X"] = _contexts(rows, self._dim)
        columns["eligible"] = _stacked(self._eligible, np.zeros(n_arms, dtype=np.bool_))
        columns["probabilities"] = _stacked(self._probabilities, np.full(n_arms, np.nan))
        self._parts.append(columns)
        for kept in (self._buffer, self._eligible, self._probabilities):
            kept.clear()

    def _flush(self) -> None:
        self._convert()
        if not self._parts:
            return
        n_arms = len(self._roster.labels)
        for part in self._parts:
            part |= {name: widened(part[name], n_arms) for name in ("eligible", "probabilities")}
        columns: dict[str, Any] = {
            name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]
        }
        if np.isnan(columns["probabilities"][:, 0]).all():
            columns["probabilities"] = np.empty((0, 0))
        np.savez(self._folder / f"{self._blocks}.npz", **columns)
        self._blocks += 1
        self._parts.clear()

    def _settle(self) -> None:
        """Put the rewards to their decisions, in the order in which they came."""
        if self.n == 0:
            return
        names = np.memmap(self._folder / "names", _NAME, mode="r")
        paid = np.memmap(self._folder / "paid", _PAID, mode="w+", shape=(self.n,))
        paid["reward"], paid["weight"] = np.nan, 1.0
        if (self._folder / "told").stat().st_size:
            told = np.memmap(self._folder / "told", _TOLD, mode="r")
            find = _Finder(names)
            for begin in range(0, len(told), _CHUNK):
                some = np.asarray(told[begin : begin + _CHUNK])
                rows = find(some["t"], some["mark"])
                for name in ("reward", "weight"):
                    paid[name][rows[rows >= 0]] = some[name][rows >= 0]  # of several the last stays
        paid.flush()


class _Written:
    """Records on their way into a file."""

    def __init__(self, file: IO[bytes], kind: Any) -> None:
        self._file, self._kind = file, kind
        self._held: list[tuple[Any, ...]] = []

    def add(self, record: tuple[Any, ...]) -> None:
        self._held.append(record)
        if len(self._held) == _CHUNK:
            self._write()

    def _write(self) -> None:
        self._file.write(np.array(self._held, dtype=self._kind).tobytes())
        self._held.clear()

    def close(self) -> None:
        self._write()
        self._file.close()


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


def _mark(name: str) -> int:
    return int(name.partition("-")[2], 16)


def _numbers(rows: Iterable[Event], name: str) -> Float64:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)


def _truths(rows: Iterable[Event], name: str) -> Any:
    return np.array([-1 if row[name] is None else row[name] for row in rows], dtype=np.int8)


def _contexts(rows: list[Event], dim: int) -> Float64:
    X = np.full((len(rows), dim), np.nan)
    for i, row in enumerate(rows):
        if row["x"] is not None:
            X[i] = row["x"]
    return X


def _stacked(given: list[Any], empty: Any) -> Any:
    out = np.zeros((len(given), len(empty)), dtype=empty.dtype)
    for i, row in enumerate(given):
        if row is None:
            out[i] = empty
        else:
            out[i, : len(row)] = row
    return out
