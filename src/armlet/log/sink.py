"""Where the lines of a log go: a file that holds whole lines at any time, locked against other processes. O(bytes)."""

from __future__ import annotations

import os
import warnings
import weakref
from pathlib import Path
from typing import Literal, TypeAlias

from armlet.core.errors import LogError

Flush: TypeAlias = Literal["block", "line", "disk"]


class Sink:
    """A file to append lines to; what it refuses is not in it.

    Parameters
    ----------
    path
        Of the file; it is made if it is not there.
    flush
        "disk": lines are on the disk when a call returns, and survive the machine. Otherwise they are with the system,
        and survive the process.
    """

    def __init__(self, path: Path, flush: Flush) -> None:
        self._path, self._to_disk = path, flush == "disk"
        self.refusal: str | None = None
        """Why nothing more is taken, once that is so."""
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
        if self.refusal is not None:
            raise LogError(self.refusal)
        self._write(lines)
        if self._to_disk:
            self._sync()

    def sync(self) -> None:
        """Have everything on the disk."""
        if self.refusal is not None:
            raise LogError(self.refusal)
        self._sync()

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self.refusal = f"{self._path.name} is closed; open it anew"

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
            self.refusal = f"{self._path.name} did not reach the disk earlier; open it anew"
            raise LogError(f"{self._path.name} did not reach the disk: {error.strerror}; open it anew") from error

    def disown(self) -> None:
        """Refuse everything, in a forked child: the file is its parent's."""
        self.refusal = f"{self._path.name} belongs to the process that forked this one; give the child its own log"


_open: weakref.WeakSet[Sink] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for sink in _open:
        sink.disown()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _lock(fd: int, path: Path) -> None:
    import fcntl  # POSIX only, as is the promise that it keeps

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise LogError(
            f"{path.name} is being written by another bandit or process; give each a log of its own"
        ) from error
