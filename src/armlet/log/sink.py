"""Where the lines of a log go: a file that holds whole lines at any time, locked against other processes. O(bytes)."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Literal, TypeAlias

from armlet.errors import LogError
from armlet.log.faults import explain
from armlet.parallel.forks import LockedFile, give_up_in_children

Flush: TypeAlias = Literal["block", "line", "disk"]


class Sink:
    """A file to append lines to; what it refuses is not in it.

    Parameters
    ----------
    path
        Of an ordinary file; it is made if it is not there.
    flush
        "disk": lines are on the disk when a call returns, and survive the machine. Otherwise they are with the system,
        and survive the process.
    """

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
        """Cut off what a crash left of a line, and say so."""
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
        self._write(lines)
        if self._to_disk:
            self._sync()

    def sync(self) -> None:
        """Have everything on the disk."""
        if self.refusal is not None:
            raise LogError(self.refusal)
        self._sync()

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

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file.fd, left) :]
        except BaseException as error:
            os.ftruncate(self._file.fd, self.size)  # no half of a line stays
            if not isinstance(error, OSError):
                raise
            raise LogError(f"{self._path.name} cannot be written: {error.strerror}; nothing was logged") from error
        self.size += len(data)

    def _sync(self) -> None:
        try:
            os.fsync(self._file.fd)
        except OSError as error:
            # the system may have dropped the pages: a later success would prove nothing
            self.refusal = f"{self._path.name} did not reach the disk earlier; open it again"
            raise LogError(f"{self._path.name} did not reach the disk: {error.strerror}; open it again") from error
