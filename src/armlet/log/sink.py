"""Where the lines of a log go: a file that holds whole lines at any time, locked against other processes. O(bytes)."""

from __future__ import annotations

import os
import warnings
import weakref
from pathlib import Path
from typing import Final, Literal, TypeAlias

from armlet.core.errors import LogError

Flush: TypeAlias = Literal["block", "line", "disk"]

BLOCK: Final = 2**16  # bytes that wait for the system if lines are flushed by blocks


class Sink:
    """A file to append lines to; what it refuses is not in it.

    Parameters
    ----------
    path
        Of the file; it is made if it is not there.
    flush
        "block": lines wait until they fill a block, and are lost if the process is killed; "line": every line is with
        the system when the call returns, and survives the process; "disk": it is on the disk, and survives the machine.
    """

    def __init__(self, path: Path, flush: Flush) -> None:
        self._path, self._flush = path, flush
        self._held: list[bytes] = []
        self._bytes_held = 0
        self._refusal: str | None = None  # why nothing more is taken, once that is so
        self._is_child = False
        _open.add(self)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            _lock(self._fd, path)
            self.size = os.fstat(self._fd).st_size
        except BaseException:
            os.close(self._fd)
            raise

    def cut(self, size: int) -> None:
        """Cut off what a crash left of a line, and say so."""
        lost = self.size - size
        os.ftruncate(self._fd, size)
        self.size = size
        warnings.warn(
            f"{self._path.name} ended in the middle of a line, as after a crash: its last {lost:,} bytes were cut off",
            stacklevel=5,
        )

    def put(self, lines: bytes) -> None:
        """Append whole lines, or refuse them and stay as it was."""
        if self._refusal is not None:
            raise LogError(self._refusal)
        if self._flush == "block":
            if self._bytes_held >= BLOCK:
                self.drain()
            self._held.append(lines)
            self._bytes_held += len(lines)
            return
        self._write(lines)
        if self._flush == "disk":
            self._sync()

    def drain(self) -> None:
        """Give the system what waits for it; what cannot be written goes on waiting."""
        if self._held:
            self._write(b"".join(self._held))
            self._held.clear()
            self._bytes_held = 0

    def sync(self) -> None:
        """Have everything on the disk."""
        if self._refusal is not None:
            raise LogError(self._refusal)
        self.drain()
        self._sync()

    def close(self) -> None:
        """Write what waits, and let go of the file; a forked child only lets go."""
        if self._fd < 0:
            return
        try:
            if not self._is_child:
                self.drain()
        finally:
            os.close(self._fd)
            self._fd = -1
            self._refusal = f"{self._path.name} is closed; open it anew"

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError as error:
            os.ftruncate(self._fd, self.size)  # no half of a line stays
            raise LogError(f"{self._path.name} cannot be written: {error.strerror}; nothing was logged") from error
        self.size += len(data)

    def _sync(self) -> None:
        try:
            os.fsync(self._fd)
        except OSError as error:
            # the system may have dropped the pages: a later success would prove nothing
            self._refusal = f"{self._path.name} did not reach the disk earlier; open it anew"
            raise LogError(f"{self._path.name} did not reach the disk: {error.strerror}; open it anew") from error

    def _disown(self) -> None:
        """In a forked child: lines that wait are the parent's to write."""
        self._is_child = True
        self._held.clear()
        self._refusal = f"{self._path.name} belongs to the process that forked this one; give the child its own log"


_open: weakref.WeakSet[Sink] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for sink in _open:
        sink._disown()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _lock(fd: int, path: Path) -> None:
    import fcntl  # POSIX only, as is the promise that it keeps

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise LogError(
            f"{path.name} is being written by another bandit or process; give each a log of its own"
        ) from error
