"""The lock of a store: one process at a time, told by a file beside it; and a little room for a full disk in that file.

The lock ends with the process whatever ends it. What it reserves is given back to the disk where SQLite finds none, so
that a store on a full disk can still be opened, read and pruned.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from armlet.errors import StoreError
from armlet.parallel.forks import give_up_in_children

RESERVE = 1 << 20  # bytes


class FileLock:
    """The lock beside a file, from when it is made until it is closed.

    Parameters
    ----------
    path
        The file, as `os.path.realpath` gives it: through two links it is the same one.
    name
        What errors call the file.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path = Path(f"{path}.lock")
        self._descriptor, self._is_mine = self._open(name)
        give_up_in_children(self)

    def _open(self, name: str) -> tuple[int, bool]:
        while True:
            is_mine = not self._path.exists()
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                raise StoreError(f"{name} cannot be opened: {error}") from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_there(descriptor):
                    return descriptor, is_mine
            except BlockingIOError as error:
                os.close(descriptor)
                raise StoreError(f"{name} is open already, here or in another process; close it there first") from error
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # whoever made it has withdrawn it meanwhile

    def _is_there(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def reserve(self) -> bool:
        """Keep room on the disk; tell whether there is any."""
        try:
            os.posix_fallocate(self._descriptor, 0, RESERVE)
        except OSError:
            self.release()
            return False
        return True

    def release(self) -> bool:
        """Give the room back; tell whether there was any."""
        held = os.fstat(self._descriptor).st_size > 0
        os.ftruncate(self._descriptor, 0)
        return held

    def withdraw(self) -> None:
        """Close it, and leave nothing behind that was not there before."""
        if self._is_mine and self._descriptor >= 0:
            self._path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let others have it; also if a child of a fork still holds the descriptor."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def forked(self) -> None:
        """Close the child's copy; the lock stays the parent's."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
