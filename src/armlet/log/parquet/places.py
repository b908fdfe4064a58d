"""Where in a log the events of each decision are, kept in files beside what is written: memory stays flat."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import numpy as np

from armlet.types import Int64

_HEAD: Final = re.compile(
    rb'\{"seq":\d+,"kind":"(decide|learn|correct|forget|note)","at":\d+,"id":"(\d+)-([0-9a-f]{16})"'
)
_KINDS: Final = {b"decide": 0, b"learn": 1, b"correct": 2, b"forget": 3, b"note": 4}
_NAME: Final = np.dtype([("t", "<i8"), ("mark", "<u8")])
_HAPPENED: Final = np.dtype([("t", "<i8"), ("mark", "<u8"), ("kind", "<i8"), ("offset", "<i8")])
_CHUNK: Final = 2**18


class Places:
    """The offsets of the first reward, the last change of it and the last note of every decision, in the order made.

    Parameters
    ----------
    folder
        Where its files may be.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._decisions: IO[bytes] = (folder / "decisions").open("wb")
        self._happened: IO[bytes] = (folder / "happened").open("wb")
        self._names: Any = np.empty(0, _NAME)
        self._offsets: Int64 = np.empty((0, 3), np.int64)

    def note(self, line: bytes, offset: int) -> bool:
        """Note what a line is about, if it is about a decision."""
        found = _HEAD.match(line)
        if found is None:
            return False
        kind, t, mark = _KINDS[found[1]], int(found[2]), int(found[3], 16)
        if kind == 0:
            self._decisions.write(np.array((t, mark), _NAME).tobytes())
        else:
            self._happened.write(np.array((t, mark, kind, offset), _HAPPENED).tobytes())
        return True

    def settle(self) -> None:
        """Have the events of each decision ready."""
        self._decisions.close()
        self._happened.close()
        if (self._folder / "decisions").stat().st_size == 0:
            return
        self._names = np.memmap(self._folder / "decisions", _NAME, mode="r")
        shape = (len(self._names), 3)
        self._offsets = np.memmap(self._folder / "offsets", np.int64, mode="w+", shape=shape)
        if (self._folder / "happened").stat().st_size:
            happened = np.memmap(self._folder / "happened", _HAPPENED, mode="r")
            for begin in range(0, len(happened), _CHUNK):
                self._place(np.asarray(happened[begin : begin + _CHUNK]))

    def _place(self, happened: Any) -> None:
        rows = self._rows(happened["t"], happened["mark"])
        found = rows >= 0
        rows, kind, offset = rows[found], happened["kind"][found], happened["offset"][found]
        first_of, at = np.unique(rows[kind == 1], return_index=True)
        new = self._offsets[first_of, 0] == 0
        self._offsets[first_of[new], 0] = offset[kind == 1][at[new]]
        later = (kind != 4) & (self._offsets[rows, 0] != offset)
        self._offsets[rows[later], 1] = offset[later]  # of several the last stays
        self._offsets[rows[kind == 4], 2] = offset[kind == 4]

    def _rows(self, t: Any, mark: Any) -> Int64:
        """Give the rows of decisions by name; -1 for those that the log does not have."""
        rows: Int64 = np.searchsorted(self._names["t"], t)
        inside = np.minimum(rows, len(self._names) - 1)
        same = (self._names["t"][inside] == t) & (self._names["mark"][inside] == mark)
        return np.where(same, inside, -1)

    def of(self, row: int) -> list[int]:
        """Give the offsets of a decision's first reward, its last change and the last note; 0 if there is none."""
        offsets: list[int] = self._offsets[row].tolist()
        return offsets

    def first(self, name: str) -> int:
        """Give the offset of the first reward of a decision; 0 if the log does not have it."""
        if len(self._names) == 0:
            return 0
        t, _, mark = name.partition("-")
        row = self._rows(np.int64(int(t)), np.uint64(int(mark, 16)))
        return int(self._offsets[row, 0]) if row >= 0 else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._decisions.close()
        self._happened.close()
        del self._names, self._offsets  # which are mapped, before the folder goes
