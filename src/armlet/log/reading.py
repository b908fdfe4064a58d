"""A log on disk, read event by event: JSON lines here, Parquet in its own room. Memory does not grow with the log.

A decision of long ago, whose reward comes only now, is found again by its step: every `STRIDE`th is remembered.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from armlet.core.errors import ArgumentError, LogError
from armlet.log.lines import decode
from armlet.log.schema import Event, Events, check_start

STRIDE: Final = 4096
_DECIDE: Final = b'"kind":"decide"'

Source: TypeAlias = Events | str | os.PathLike[str]
"""A log: its path, or what can be read as one."""


class LogFile:
    """The events of a log of JSON lines; a line that is not finished yet is left alone.

    Parameters
    ----------
    path
        Of the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.unfinished = 0
        """Bytes after the last whole line, as of the last reading."""
        self._steps: list[int] = []  # the step of every STRIDEth decision, and where its line begins
        self._offsets: list[int] = []

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start."""
        with self.path.open("rb") as file:
            line = file.readline()
        if not line.endswith(b"\n"):
            raise LogError(f"{self.name} is empty: no bandit has begun it yet", 0)
        event, _ = decode(line, 0, 0, self.name)
        check_start(event, self.name)
        return event

    def __iter__(self) -> Iterator[Event]:
        for _, event in self.placed():
            yield event

    def placed(self) -> Iterator[tuple[int, Event]]:
        """Give every event with the offset of its line; refuse a line that is not as it was written."""
        offset = crc = decisions = 0
        self.unfinished = 0
        with self.path.open("rb", buffering=2**20) as file:
            for seq, line in enumerate(file):
                if not line.endswith(b"\n"):
                    self.unfinished = len(line)
                    return
                event, crc = decode(line, seq, crc, self.name)
                if seq == 0:
                    check_start(event, self.name)
                if event["kind"] == "decide":
                    if decisions == STRIDE * len(self._steps):  # a log only grows: an earlier reading may know them
                        self._steps.append(event["t"])
                        self._offsets.append(offset)
                    decisions += 1
                yield offset, event
                offset += len(line)
        if offset == 0:
            raise LogError(f"{self.name} is empty: no bandit has begun it yet", 0)

    def at(self, offset: int) -> Event:
        """Read the event whose line begins there, unchecked."""
        with self.path.open("rb") as file:
            file.seek(offset)
            event: Event = json.loads(file.readline())
        return event

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
                event: Event = json.loads(line)
                return event
            place = data.find(wanted, place + 1)
        return None


def read(log: Source) -> Events:
    """Open a log by the ending of its name, or give back what can be read as one already.

    Parameters
    ----------
    log
        A path that ends in .parquet, any other path, which holds JSON lines, or `Events`.
    """
    if not isinstance(log, str | os.PathLike):
        if not isinstance(log, Events):
            raise TypeError(f"log is {log!r}; give a path, an armlet.Log, or what has `about` and iterates over events")
        return log
    path = Path(log)
    if not path.exists():
        raise FileNotFoundError(f"log is {path}, which does not exist")
    if path.is_dir():
        raise ArgumentError("{log} is {path}, a directory; give a file", path=path)
    if path.suffix == ".parquet":
        from armlet.log.parquet.reading import ParquetLog  # needs pyarrow

        return ParquetLog(path)
    return LogFile(path)
