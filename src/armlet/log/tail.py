"""The end of a log of JSON lines, from its last checkpoint on: all that is needed to continue it. O(one stretch)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from armlet.errors import LogError
from armlet.log.faults import check_ordinary, reading
from armlet.log.lines import PIECE, carried, check_head, decode, parse

_CHECKPOINT: Final = re.compile(rb'\n(\{"seq":[0-9]+,"kind":"checkpoint",[^\n]*\n)')


class Stretch(NamedTuple):
    """The lines since the last seal, and what the next line follows."""

    lines: list[bytes]  # from the last checkpoint's own on, or from the start
    seq: int  # of the next event
    crc: int  # of the last line
    sealed: int  # the number of the event after the last checkpoint
    end: int  # bytes of whole lines in the file
    digest: str | None  # of the state after the last event, where that is the checkpoint
    is_closed: bool  # whether that was written when the log was closed


def last_stretch(path: Path) -> Stretch:
    """Read a log's lines from the last checkpoint on, and check that they follow each other."""
    check_ordinary(path, "log")
    with reading(path.name):
        begin, data = _read_back(path)
        end = data.rfind(b"\n") + 1
        if end == 0:
            raise LogError(
                f"{path.name} has no whole line: it is no log, or a crash left nothing of it; begin a new one", 0
            )
        found = [match.start(1) for match in _CHECKPOINT.finditer(data[:end])]
        lines = data[found[-1] if found else 0 : end].splitlines(keepends=True)
        return _checked(lines, begin + end, not found, path.name)


def _read_back(path: Path) -> tuple[int, bytes]:
    """Read from the end back to a whole checkpoint's line, or to the beginning; say where that is."""
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
