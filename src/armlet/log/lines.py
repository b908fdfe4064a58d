"""An event as a line of JSON, and back. Every line ends with a check value of itself and all lines before it.

The check value, CRC-32 carried on from line to line, finds and names the line that was changed, dropped or moved by
somebody who did not mean to hide it; what proves a log against others is its seals and its replay. O(bytes).
"""

from __future__ import annotations

import json
import re
from typing import Final
from zlib import crc32

from armlet.core.errors import LogError
from armlet.core.kernel import json_line
from armlet.log.schema import HEAD, Event

_MARK: Final = b',"crc":"'
_TAIL: Final = len(_MARK) + 8 + len(b'"}\n')


class DamagedLineError(LogError):
    """A line is not the one that was written in its place."""

    def __init__(self, name: str, seq: int, kind: str, why: str) -> None:
        super().__init__(f"event {seq:,} of {name} ({kind}) cannot be trusted: {why}", seq)
        self.kind, self.why = kind, why


def encode(seq: int, kind: str, at: int, fields: Event, crc: int) -> tuple[bytes, int]:
    r"""Write an event as a line that follows one of check value `crc`; give the line and its own check value.

    Examples
    --------
    >>> encode(3, "retire_arm", 1700000000000000, {"arm": "north"}, 0)[0]
    b'{"seq":3,"kind":"retire_arm","at":1700000000000000,"arm":"north","crc":"42a5055b"}\n'
    """
    return json_line(seq, kind, at, fields, crc)


def encode_event(event: Event, crc: int) -> tuple[bytes, int]:
    """Write an event that was read, as it was written."""
    fields = {name: value for name, value in event.items() if name not in HEAD}
    return encode(event["seq"], event["kind"], event["at"], fields, crc)


def carried(line: bytes) -> int:
    """Give the check value that a line ends with, unchecked; -1 if it ends with none."""
    if line[-_TAIL : -_TAIL + len(_MARK)] != _MARK:
        return -1
    try:
        return int(line[-11:-3], 16)
    except ValueError:
        return -1


def verify(line: bytes, seq: int, crc: int, name: str) -> int:
    """Give the check value of the line of event `seq`, which follows one of check value `crc`; refuse any other."""
    found = crc32(line[:-_TAIL], crc)
    if line[-_TAIL:] != b',"crc":"%08x"}\n' % found:
        raise DamagedLineError(name, seq, _kind(line), "it is not as it was written")
    return found


def decode(line: bytes, seq: int, crc: int, name: str) -> tuple[Event, int]:
    r"""Read the line of event `seq`, which follows one of check value `crc`; refuse any other.

    Examples
    --------
    >>> line = encode(0, "add_arm", 5, {"arm": 7}, 0)[0]
    >>> decode(line, 0, 0, "a.jsonl")[0]
    {'seq': 0, 'kind': 'add_arm', 'at': 5, 'arm': 7}
    >>> decode(line.replace(b"7", b"8"), 0, 0, "a.jsonl")
    Traceback (most recent call last):
    armlet.log.lines.DamagedLineError: event 0 of a.jsonl (add_arm) cannot be trusted: it is not as it was written
    """
    found = verify(line, seq, crc, name)
    try:
        event = json.loads(line)
        if event["seq"] != seq:
            raise DamagedLineError(name, seq, _kind(line), f"its number is {event['seq']!r}")
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedLineError(name, seq, _kind(line), f"it is no event: {error}") from error
    del event["crc"]
    return event, found


def _kind(line: bytes) -> str:
    found = re.search(rb'"kind":"(\w+)"', line)
    return found[1].decode() if found else "no event"
