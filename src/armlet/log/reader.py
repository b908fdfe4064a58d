"""The reader of a log on disk, event by event: JSON lines here, Parquet in `parquet`. Memory does not grow with it.

A decision of long ago, whose reward comes only now, is found again by its step: that of every block is remembered.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias

from armlet.errors import InvalidTypeError, LogError
from armlet.inputs.table import Table
from armlet.log.imported import TableLog
from armlet.record.arms import ArmLabels
from armlet.record.block import Block, BlockReader
from armlet.record.events import Events
from armlet.record.faults import check_ordinary, reading
from armlet.record.jsonl import PIECE, carried, check_head, decode, parse, read_lines, read_pieces
from armlet.record.values import Event

if TYPE_CHECKING:
    from armlet.log.parquet import ParquetLog

_DECIDE: Final = b'"kind":"decide"'
_CHECKPOINT: Final = re.compile(rb'\n(\{"seq":[0-9]+,"kind":"checkpoint",[^\n]*)(?=\n)')  # one may follow another

Source: TypeAlias = Events | Table | str | os.PathLike[str]
"""A log: its path, a table of decisions, or what can be read as one."""


class LogFile(ArmLabels):
    """The events of a log of JSON lines; a line that is not finished yet is left alone."""

    sealed: ClassVar = True
    """Whether its events must be sealed: a property of the reader, never of the file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.unfinished = 0
        """Bytes after the last whole line, as of the last reading."""
        self._steps: list[int] = []  # the first step of every block, and where its lines begin
        self._offsets: list[int] = []

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start."""
        with reading(self.name), self._open() as file:
            line = next(read_lines(file, self.name))
            if not line.endswith(b"\n"):
                raise LogError(f"{self.name} is empty: no bandit has begun it yet", 0)
            return decode(line, 0, 0, self.name)[0]

    def __repr__(self) -> str:
        return f"LogFile({str(self.path)!r})"

    def _repr_html_(self) -> str:
        return log_html(repr(self), self.path, lambda: self)

    def _open(self) -> IO[bytes]:
        check_ordinary(self.path, "log")
        return self.path.open("rb", buffering=2**20)

    def __iter__(self) -> Iterator[Event]:
        for _, event in self.with_lines():
            yield event

    def with_lines(self) -> Iterator[tuple[bytes, Event]]:
        """Yield every event with its line; refuse a line that is not as it was written."""
        for block in self.blocks():
            yield from block.with_lines()

    def blocks(self, end: int | None = None) -> Iterator[Block]:
        """Yield all events in blocks of columns; refuse a line that is not as it was written, after those before it.

        `end` is where the lines end that are read, if those after it are not.
        """
        reader, offset, self.unfinished = BlockReader(self.name), 0, 0
        with reading(self.name), self._open() as file:
            for data in read_pieces(file, self.name, lambda: reader.seq, end):
                if not data.endswith(b"\n"):
                    self.unfinished = len(data)
                    break
                for block in reader.read(data):
                    self._note_steps(block, offset)
                    yield block
                    offset += len(block.lines)
        if offset == 0:
            raise LogError(f"{self.name} is empty: no bandit has begun it yet", 0)

    def _note_steps(self, block: Block, offset: int) -> None:
        """Remember where a block is; a log only grows, so that an earlier reading may know it."""
        if not self._offsets or offset > self._offsets[-1]:
            steps = [*block.t[:1].tolist(), *(event["t"] for event in block.others if event["kind"] == "decide")]
            if steps:
                self._steps.append(min(steps))
                self._offsets.append(offset)

    def find(self, decision: str) -> Event | None:
        """Find a decision by its id among those read so far; None if it is not there."""
        block = bisect_right(self._steps, int(decision.partition("-")[0])) - 1
        if block < 0:
            return None
        end = self._offsets[block + 1] if block + 1 < len(self._offsets) else None
        with self.path.open("rb") as file:
            file.seek(self._offsets[block])
            data = file.read() if end is None else file.read(end - self._offsets[block])
        wanted = f',"id":"{decision}",'.encode()
        place = data.find(wanted)
        while place >= 0:
            line = data[data.rfind(b"\n", 0, place) + 1 : data.find(b"\n", place)]
            if _DECIDE in line[: line.find(wanted)]:
                return parse(line + b"\n", None, self.name)
            place = data.find(wanted, place + 1)
        return None


def log_html(title: str, path: Path, open_log: Callable[[], LogFile | ParquetLog]) -> str:
    """Return a log as a notebook shows it: what it is of, from its first event, and how large it is; O(1)."""
    from armlet.report import notebook  # not before something is shown

    try:
        about = open_log().about
    except LogError as error:
        return notebook.fragment(title, notebook.note(str(error)))
    policy = about.get("policy") or {}
    if "action_dim" in about:
        played = {"actions": f"tables of {_features(about, 'action_')}"}
    else:
        played = {"arms": notebook.listed(about.get("arms") or [])}
    texts = {
        "policy": policy.get("name"),
        **played,
        "features": _features(about),
        "objective": about.get("objective"),
        "size": f"{path.stat().st_size:,} bytes",
        "start model": f"{path.stem}.start.armlet",
    }
    return notebook.fragment(title, notebook.facts(texts))


def _features(about: Mapping[str, Any], whose: str = "") -> str:
    from armlet.report import notebook

    names = about.get(f"{whose}features")
    return notebook.listed(names) if names else f"{about.get(f'{whose}dim')} without names"


def read(log: Source) -> Events:
    """Open a log by the ending of its name; return what can be read as one already.

    Parameters
    ----------
    log
        A path that ends in .parquet, any other path, which holds JSON lines, an `armlet.Table`, or `Events`.
    """
    if isinstance(log, Table):
        return TableLog(log)
    if not isinstance(log, str | os.PathLike):
        if not isinstance(log, Events):
            raise InvalidTypeError(
                f"log is {log!r}; give a path, an armlet.Log, an armlet.Table, or events: `about`, and iteration"
            )
        return log
    return read_file(Path(log))


def read_file(path: Path) -> LogFile | ParquetLog:
    """Open a log on disk by the ending of its name."""
    check_ordinary(path, "log")
    if path.suffix == ".parquet":
        from armlet.log.parquet import ParquetLog  # needs pyarrow

        return ParquetLog(path)
    return LogFile(path)


# ---- the end of a log


class Stretch(NamedTuple):
    """The lines since the last seal, and what the next line follows: all that is needed to continue a log."""

    lines: list[bytes]  # from the last checkpoint's own on, or from the start
    seq: int  # of the next event
    crc: int  # of the last line
    sealed: int  # the number of the event after the last checkpoint
    end: int  # bytes of whole lines in the file
    digest: str | None  # of the state after the last event, where that is the checkpoint
    is_closed: bool  # whether that was written when the log was closed


def last_stretch(path: Path) -> Stretch:
    """Read a log's lines from the last checkpoint on, and check that they follow each other. O(one stretch)."""
    check_ordinary(path, "log")
    with reading(path.name):
        begin, data = _read_back(path)
        end = data.rfind(b"\n") + 1
        if end == 0:
            raise LogError(
                f"{path.name} has no whole line: it is not a log, or a crash left nothing of it; begin a new one", 0
            )
        starts = [match.start(1) for match in _CHECKPOINT.finditer(data[:end])]
        lines = data[starts[-1] if starts else 0 : end].splitlines(keepends=True)
        return _checked(lines, begin + end, not starts, path.name)


def _read_back(path: Path) -> tuple[int, bytes]:
    """Read from the end back to a whole checkpoint's line, or to the beginning; return where that is, and the bytes."""
    begin = path.stat().st_size
    parts: list[bytes] = []
    with path.open("rb") as file:
        check_head(file.read(256), path.name)
        while begin:
            step = min(PIECE, begin)
            begin -= step
            file.seek(begin)
            parts.insert(0, file.read(step))
            if _CHECKPOINT.search(b"".join(parts[:2])):
                break
    return begin, b"".join(parts)


def _checked(lines: list[bytes], end: int, from_start: bool, name: str) -> Stretch:
    if from_start:
        event, crc = decode(lines[0], 0, 0, name)
    else:
        event, crc = parse(lines[0], None, name), carried(lines[0])
    first, kind = event["seq"], event["kind"]
    for seq, line in enumerate(lines[1:], first + 1):
        event, crc = decode(line, seq, crc, name)
    sealed = first + 1 if kind == "checkpoint" else 0
    last = event if event["kind"] == "checkpoint" else {}
    return Stretch(lines, first + len(lines), crc, sealed, end, last.get("digest"), last.get("closed", False))
