"""The lines of a log: an event as a line of JSON, and back.

Every line ends with a check value of itself and all lines before it. The check value, CRC-32 carried on from line to
line, finds and names a line that was changed, dropped or moved by accident; what proves a log against others is its
seals and its replay. A line is read only if the event in it is written as the same bytes: nothing can be in a line that
its reader does not see. O(bytes).
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from gzip import GzipFile
from typing import IO, Final

from armlet.errors import LogError
from armlet.kernel import json_line
from armlet.record.contradictions import Shape
from armlet.record.events import check_event, check_start
from armlet.record.faults import DamagedLineError, InvalidEventError, NotALogError, explain
from armlet.record.kinds import FORMAT
from armlet.record.values import HEAD, Event

PIECE: Final = 2**20  # bytes of a line that are read before its beginning is looked at
BATCH: Final = 2**22  # bytes that are read at a time
LONGEST: Final = 2**30  # bytes of a line: a batch of rows is one event
CHANGED: Final = "its check value differs: it was changed, dropped or moved after it was written"
_MARK: Final = b',"crc":"'
_TAIL: Final = len(_MARK) + 8 + len(b'"}\n')
_BEGINNING: Final = b'{"seq":0,"kind":"start","at":'


def encode_event(event: Event, crc: int) -> tuple[bytes, int]:
    r"""Return the line of an event that follows one of check value `crc`, and its own check value.

    Examples
    --------
    >>> encode_event({"seq": 3, "kind": "retire_arm", "at": 1700000000000000, "arm": "north"}, 0)[0]
    b'{"seq":3,"kind":"retire_arm","at":1700000000000000,"arm":"north","crc":"42a5055b"}\n'
    """
    fields = {name: value for name, value in event.items() if name not in HEAD}
    return json_line(event["seq"], event["kind"], event["at"], fields, crc)


def encode_checked(event: Event, seq: int, crc: int, name: str, shape: Shape | None = None) -> tuple[bytes, int]:
    """Encode an event of any origin, or refuse it by name."""
    check_event(event, seq, name, shape)
    return _encode(event, crc, name)


def _encode(event: Event, crc: int, name: str) -> tuple[bytes, int]:
    try:
        return encode_event(event, crc)
    except (ValueError, TypeError) as error:
        why = f"it cannot be written: {explain(error)}"
        raise InvalidEventError(name, event["seq"], event["kind"], why) from error


def read_lines(file: IO[bytes] | GzipFile, name: str) -> Iterator[bytes]:
    """Yield the lines of a file, the last one perhaps without its end; refuse a file that is not a log."""
    for seq in itertools.count():
        line = file.readline(PIECE)
        if seq == 0:
            check_head(line, name)
        elif not line:
            return
        if len(line) == PIECE and not line.endswith(b"\n"):
            line += _rest(file, line, seq, name)
        yield line


def check_head(data: bytes, name: str) -> None:
    """Refuse the beginning of a file that is not that of a log."""
    if not data:
        raise LogError(f"{name} is empty: no bandit has begun it yet", 0)
    if not data.startswith(_BEGINNING[: len(data)]) and FORMAT.encode() not in data:  # else a log that was changed
        raise NotALogError(
            f"{name} is not an Armlet log: its first line is not an event; for other formats: armlet log import"
        )


def is_beginning(file: IO[bytes]) -> bool:
    """Whether a file is the beginning of a log, with nothing after its first line."""
    line = file.readline(LONGEST)
    return bool(line) and line.startswith(_BEGINNING[: len(line)]) and not file.read(1)


def _rest(file: IO[bytes] | GzipFile, begin: bytes, seq: int, name: str) -> bytes:
    check_length(begin, seq, name)
    rest = file.readline(LONGEST)
    check_length(begin, seq, name, len(begin) + len(rest))
    return rest


def check_length(begin: bytes, seq: int, name: str, size: int | None = None) -> None:
    """Refuse the line of an event that begins so and has at least so many bytes, if none is so long."""
    size = len(begin) if size is None else size
    if size >= PIECE and not begin.startswith(b'{"seq":'):
        raise DamagedLineError(name, seq, "not an event", f"it is not an event, and longer than {PIECE:,} bytes")
    if size >= LONGEST:
        raise DamagedLineError(name, seq, _kind_of(begin), f"it is longer than {LONGEST:,} bytes")


def read_pieces(file: IO[bytes], name: str, seq: Callable[[], int], end: int | None = None) -> Iterator[bytes]:
    """Yield the lines of a file, many at a time, and last what follows them; refuse a file that is not a log.

    `seq` returns the number of the next event, once those of all lines so far were read; `end` is where lines end that
    are read.
    """
    left = sys.maxsize if end is None else end
    data = file.read(min(BATCH, left))
    check_head(data[: data.find(b"\n") + 1 or PIECE], name)
    while data:
        end = data.rfind(b"\n") + 1
        if end:
            yield data[:end]
        rest = [data[end:]] if end < len(data) else []
        while rest and not rest[-1].endswith(b"\n"):
            check_length(rest[0], seq(), name, sum(map(len, rest)))
            if not (more := file.readline(BATCH)):
                yield b"".join(rest)
                return
            rest.append(more)
        if rest:
            yield b"".join(rest)
        left -= len(data) + sum(map(len, rest[1:]))
        data = file.read(min(BATCH, left))


def carried(line: bytes) -> int:
    """Return the check value that a line ends with, unchecked; -1 if it ends with none."""
    if line[-_TAIL : -_TAIL + len(_MARK)] != _MARK:
        return -1
    try:
        return int(line[-11:-3], 16)
    except ValueError:
        return -1


def decode(line: bytes, seq: int, crc: int, name: str, shape: Shape | None = None) -> tuple[Event, int]:
    r"""Read the line of event `seq`, which follows one of check value `crc`; refuse any other.

    Examples
    --------
    >>> line = encode_event({"seq": 0, "kind": "advance", "at": 5, "t": 7}, 0)[0]
    >>> decode(line, 0, 0, "a.jsonl")[0]
    {'seq': 0, 'kind': 'advance', 'at': 5, 't': 7}
    >>> decode(line.replace(b"7", b"8"), 0, 0, "a.jsonl")
    Traceback (most recent call last):
    armlet.record.faults.DamagedLineError: event 0 of a.jsonl (advance) is not valid: its check value differs: ...
    """
    own = zlib.crc32(line[:-_TAIL], crc)
    if line[-_TAIL:] != b',"crc":"%08x"}\n' % own:
        raise DamagedLineError(name, seq, _kind_of(line), CHANGED)
    return parse(line, seq, name, shape), own


def parse(line: bytes, seq: int | None, name: str, shape: Shape | None = None) -> Event:
    """Read the event of a line without comparing its check value; of any number, if `seq` is None."""
    event: Event
    try:
        event = json.loads(line.decode())
        number = event["seq"] if seq is None else seq
        if event["kind"] == "start":
            check_start(event, name)
        del event["crc"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedLineError(name, seq or 0, _kind_of(line), f"it is not an event: {explain(error)}") from error
    check_event(event, number, name, shape)
    if _encode(event, 0, name)[0][:-_TAIL] != line[:-_TAIL]:
        why = "it would not be written with these bytes: a key is there twice, or the spelling is not Armlet's"
        raise DamagedLineError(name, number, event["kind"], why)
    return event


def _kind_of(line: bytes) -> str:
    match = re.search(rb'"kind":"(\w{1,20})"', line[:200])
    return match[1].decode(errors="replace") if match else "not an event"
