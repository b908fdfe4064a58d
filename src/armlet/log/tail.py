"""The end of a log of JSON lines, from its last checkpoint on: all that is needed to continue it. O(one stretch)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple

from armlet.core.errors import LogError
from armlet.log.lines import carried, decode
from armlet.log.schema import check_start

_STEP: Final = 2**20
_CHECKPOINT: Final = b'"kind":"checkpoint"'


class Stretch(NamedTuple):
    """The lines since the last seal, and what the next line follows."""

    lines: list[bytes]  # from the last checkpoint's own on, or from the start
    seq: int  # of the next event
    crc: int  # of the last line
    sealed: int  # the number of the event after the last checkpoint
    end: int  # bytes of whole lines in the file
    digest: str | None  # of the state after the last event, where that is the checkpoint


def last_stretch(path: Path) -> Stretch:
    """Read a log's lines from the last checkpoint on, and check that they follow each other."""
    size = path.stat().st_size
    with path.open("rb") as file:
        begin, data = size, b""
        while begin and not _whole_stretch(data):
            step = min(_STEP, begin)
            begin -= step
            file.seek(begin)
            data = file.read(step) + data
    end = data.rfind(b"\n") + 1
    if end == 0:
        raise LogError(
            f"{path.name} has no whole line: it is no log, or a crash left nothing of it; begin a new one", 0
        )
    lines = data[:end].splitlines(keepends=True)
    place = _last_checkpoint(lines) if begin or _last_checkpoint(lines) else 0
    return _checked(lines[place:], begin + end, place == 0 and begin == 0, path.name)


def _whole_stretch(data: bytes) -> bool:
    """Say whether a checkpoint's line is in the data from its beginning on."""
    place = data.rfind(_CHECKPOINT)
    return place >= 0 and data.rfind(b"\n", 0, place) >= 0 and data.find(b"\n", place) >= 0


def _last_checkpoint(lines: list[bytes]) -> int:
    return max((i for i, line in enumerate(lines) if _CHECKPOINT in line[:60]), default=0)


def _checked(lines: list[bytes], end: int, from_start: bool, name: str) -> Stretch:
    try:
        first = json.loads(lines[0])
        seq, kind = int(first["seq"]), str(first["kind"])
    except (ValueError, KeyError, TypeError):
        raise LogError(f"{name} is no log of Armlet: a line of it is no event") from None
    if from_start:
        check_start(first, name)
        _, crc = decode(lines[0], 0, 0, name)
    else:
        crc = carried(lines[0])
    event = first
    for at, line in enumerate(lines[1:], seq + 1):
        event, crc = decode(line, at, crc, name)
    sealed = seq + 1 if kind == "checkpoint" else 0
    digest = event["digest"] if event["kind"] == "checkpoint" else None
    return Stretch(lines, seq + len(lines), crc, sealed, end, digest)
