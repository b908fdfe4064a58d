"""The lines of a log on their way into its file: numbered, carrying on the check value before, sealed now and then.

A line costs about what its digits cost; whatever cannot be written leaves journal and file as they were.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from time import time_ns
from typing import Any, Final

from armlet.errors import BusyError, LogError
from armlet.kernel import HeldLines, json_line
from armlet.log.lines import LONGEST
from armlet.log.schema import Event, check_fields
from armlet.log.sealing import Sealer
from armlet.log.sink import Flush, Sink
from armlet.log.tail import Stretch
from armlet.types import __version__

BLOCK: Final = 2**16  # bytes that wait for the system if lines are flushed by blocks
FROM_KERNEL: Final = frozenset({"decide", "learn"})
"""Kinds of which the kernel makes all fields, so that they hold what their kind holds; all others are checked."""


class Journal:
    """Takes events and writes them down.

    Parameters
    ----------
    path
        Of the file; it is made if it is not there.
    flush
        As of `armlet.Log`.
    """

    def __init__(self, path: Path, flush: Flush) -> None:
        self.sink = Sink(path, flush)
        self.sealed = 0
        """How many events there were at the last checkpoint, that one included."""
        self.is_closed = False
        """Whether its last line is a checkpoint that was written when it was closed."""
        self._name, self._by_block = path.name, flush == "block"
        self._busy = False  # in the middle of a change, as a signal handler of the same thread may find it
        self._lines = HeldLines(0, 0)
        self._sealer = Sealer(b"")

    @property
    def seq(self) -> int:
        """The number of the next event."""
        return self._lines.seq

    def seal_by(self, start: bytes) -> None:
        """Have the key of the seals from the bytes of the start model."""
        self._sealer = Sealer(start)

    def follow(self, stretch: Stretch) -> None:
        """Go on after the last lines of a file, which are sealed again with what follows."""
        self._lines.rewind(stretch.seq, stretch.crc, 0)
        self._sealer.add(b"".join(stretch.lines))
        self.sealed, self.is_closed = stretch.sealed, stretch.is_closed

    def append(self, kind: str, fields: Event) -> int:
        """Take an event, or refuse it; give the number of the next one."""
        if kind in FROM_KERNEL and self._by_block:
            if self._lines.nbytes >= BLOCK or self.sink.refusal is not None or self._busy:
                self._make_room()
            self.is_closed = False
            return self._lines.add(kind, fields)
        return self.append_all(kind, [fields])

    def append_all(self, kind: str, many: list[Event]) -> int:
        """Take several events of a kind, all or none; give the number of the next one."""
        if kind not in FROM_KERNEL:
            for fields in many:
                check_fields(kind, fields, self._name)
        self._make_room()
        self._busy = True
        before = (self._lines.seq, self._lines.crc, self._lines.nbytes)
        try:
            for fields in many:
                self._add(kind, fields)
            if not self._by_block:
                self._drain()
        except BaseException:
            self._lines.rewind(*before)
            raise
        finally:
            self._busy = False
        self.is_closed = self.is_closed and not many
        return self._lines.seq

    def _add(self, kind: str, fields: Event) -> None:
        before = self._lines.nbytes
        self._lines.add(kind, fields)
        if self._lines.nbytes - before > LONGEST:
            raise LogError(f"{self._name} takes no event of more than {LONGEST:,} bytes; give fewer rows at a time")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse another call from inside of one, by a signal handler: lines would be lost between them."""
        if self._busy:
            raise BusyError(f"{self._name} is being written by this very thread; write to it after that")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _make_room(self) -> None:
        if self.sink.refusal is not None:
            raise LogError(self.sink.refusal)
        if self._lines.nbytes >= BLOCK or self._busy:
            self.drain()

    def checkpoint(self, digest: str, *, closing: bool = False) -> None:
        """Write down the state, and a seal of all lines since the last one; say so if the log is closed by it."""
        with self._alone():
            self._drain()
            head = (self.seq, "checkpoint", time_ns() // 1000)
            fields: dict[str, Any] = {"digest": digest, "version": __version__}
            fields |= {"closed": True} if closing else {}
            bare, _ = json_line(*head, fields, self._lines.crc)
            line, crc = json_line(*head, {**fields, "seal": self._sealer.seal(bare)}, self._lines.crc)
            self.sink.put(line)
            self._sealer.restart()
            self._sealer.add(line)
            self._lines.rewind(self.seq + 1, crc, 0)
            self.sealed, self.is_closed = self.seq, closing

    def drain(self) -> None:
        """Give the system what waits for it; what cannot be written goes on waiting."""
        with self._alone():
            self._drain()

    def _drain(self) -> None:
        if self._lines.nbytes:
            lines = self._lines.lines()
            self.sink.put(lines)
            self._sealer.add(lines)
            self._lines.rewind(self._lines.seq, self._lines.crc, 0)

    def close(self) -> None:
        """Write what waits, if that is still possible, and let go of the file."""
        with contextlib.suppress(LogError):
            self._drain()
        self.sink.close()
