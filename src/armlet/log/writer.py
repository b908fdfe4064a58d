"""The writer of a log: events become lines, numbered, chained by check values, sealed now and then, in a locked file.

The file holds whole lines at any time. A line costs about what its digits cost; an event that cannot be written leaves
journal and file as they were. O(bytes).
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import time_ns
from typing import Any, Final, Literal, TypeAlias

from armlet.disk import LockedFile, give_up_in_children
from armlet.errors import BusyError, LogError
from armlet.kernel import HeldLines, json_line
from armlet.log.events import LONGEST, Event, Sealer, check_fields, explain
from armlet.log.reader import Stretch
from armlet.types import __version__

Flush: TypeAlias = Literal["block", "line", "disk"]

BLOCK: Final = 2**16  # bytes that wait for the system if lines are flushed by blocks
FROM_KERNEL: Final = frozenset({"decide", "learn"})
"""Kinds of which bandits make all fields, so that they hold what their kind holds; all others are checked."""


class Sink:
    """A file to append lines to; what it refuses is not in it."""

    def __init__(self, path: Path, flush: Flush) -> None:
        self._path, self._to_disk = path, flush == "disk"
        self.refusal: str | None = None
        """Why nothing more is taken, once that is so."""
        try:
            self._file = LockedFile(path, 0o666, append=True)
            self.size = os.fstat(self._file.fd).st_size
        except BlockingIOError as error:
            raise LogError(
                f"{path.name} is being written by another bandit or process; give each a log of its own"
            ) from error
        except OSError as error:
            raise LogError(f"{path.name} cannot be opened: {explain(error)}") from error
        give_up_in_children(self)

    def cut(self, size: int) -> None:
        """Cut off what a crash left of a line, with a warning."""
        lost = self.size - size
        self.truncate(size)
        warnings.warn(
            f"{self._path.name} ended in the middle of a line, as after a crash: its last {lost:,} bytes were cut off",
            stacklevel=5,
        )

    def truncate(self, size: int) -> None:
        """Keep so many bytes."""
        os.ftruncate(self._file.fd, size)
        self.size = size

    def put(self, lines: bytes) -> None:
        """Append whole lines, or refuse them and stay as it was."""
        if self.refusal is not None:
            raise LogError(self.refusal)
        left = memoryview(lines)
        try:
            while left:
                left = left[os.write(self._file.fd, left) :]
        except BaseException as error:
            os.ftruncate(self._file.fd, self.size)  # no half of a line stays
            if not isinstance(error, OSError):
                raise
            raise LogError(f"{self._path.name} cannot be written: {error.strerror}; nothing was logged") from error
        self.size += len(lines)
        if self._to_disk:
            self.sync()

    def sync(self) -> None:
        """Have everything on the disk."""
        if self.refusal is not None:
            raise LogError(self.refusal)
        try:
            os.fsync(self._file.fd)
        except OSError as error:
            # the system may have dropped the pages: a later success would prove nothing
            self.refusal = f"{self._path.name} did not reach the disk earlier; open it again"
            raise LogError(f"{self._path.name} did not reach the disk: {error.strerror}; open it again") from error

    def remove(self) -> None:
        """Undo the making of the file: remove it, or leave it empty if it was there before."""
        if self.refusal is None:
            self.truncate(0)
            self._file.remove()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
        self.refusal = self.refusal or f"{self._path.name} is closed; open it again"

    def forked(self) -> None:
        """Refuse everything, in a forked child: the file is its parent's."""
        self.refusal = f"{self._path.name} belongs to the process that forked this one; give the child its own log"


class Journal:
    """Takes events and writes them down."""

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
    def events(self) -> int:
        """How many events it has taken, those before it was opened included."""
        return self._lines.seq

    def seal_by(self, start: bytes) -> None:
        """Take the key of the seals from the bytes of the start model."""
        self._sealer = Sealer(start)

    def follow(self, stretch: Stretch) -> None:
        """Go on after the last lines of a file, which are sealed again with what follows."""
        self._lines.rewind(stretch.seq, stretch.crc, 0)
        self._sealer.add(b"".join(stretch.lines))
        self.sealed, self.is_closed = stretch.sealed, stretch.is_closed

    def append(self, kind: str, fields: Event) -> int:
        """Take an event, or refuse it; return the number of the next one."""
        if kind in FROM_KERNEL and self._by_block:
            if self._lines.nbytes >= BLOCK or self.sink.refusal is not None or self._busy:
                self._make_room()
            self.is_closed = False
            return self._lines.add(kind, fields)
        return self.append_all(kind, [fields])

    def append_all(self, kind: str, many: list[Event]) -> int:
        """Take several events of a kind, all or none; return the number of the next one."""
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
        """Write down the state, and a seal of all lines since the last one; and whether the log is closed by it."""
        with self._alone():
            self._drain()
            seq = self._lines.seq
            head = (seq, "checkpoint", time_ns() // 1000)
            fields: dict[str, Any] = {"digest": digest, "version": __version__}
            fields |= {"closed": True} if closing else {}
            bare, _ = json_line(*head, fields, self._lines.crc)
            line, crc = json_line(*head, {**fields, "seal": self._sealer.seal(bare)}, self._lines.crc)
            self.sink.put(line)
            self._sealer.restart()
            self._sealer.add(line)
            self._lines.rewind(seq + 1, crc, 0)
            self.sealed, self.is_closed = seq + 1, closing

    def drain(self) -> None:
        """Pass what waits to the system; what cannot be written goes on waiting."""
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
