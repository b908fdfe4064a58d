"""A forked child gives up the locks and files of its parent. One hook, and one locked file, for logs and stores.

A child has a copy of every lock, perhaps held by a thread that it does not have, and shares every open file with its
parent, file locks included: an flock lives until the last copy of its descriptor is closed.
"""

from __future__ import annotations

import os
import stat
import weakref
from pathlib import Path
from typing import Protocol


class Forked(Protocol):
    """What holds a lock or a descriptor."""

    def forked(self) -> None:
        """Give up, in the child, what belongs to the parent; nothing here may wait for a lock."""


_held: weakref.WeakSet[Forked] = weakref.WeakSet()


def give_up_in_children(holder: Forked) -> None:
    """Have `holder.forked()` called in every child that is forked from now on, for as long as the holder lives."""
    _held.add(holder)


def _after_fork_in_child() -> None:
    for holder in list(_held):
        holder.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class LockedFile:
    """An open file that this process alone may write, until it is closed; a forked child lets go of it at once.

    Parameters
    ----------
    path
        Of an ordinary file, no symbolic link; it is made if it is not there.
    mode
        Of a file that is made.
    append
        Whether what is written goes to its end.

    Raises
    ------
    BlockingIOError
        If another one has it.
    OSError
        If it cannot be opened, or is no ordinary file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.lock"
    >>> lock = LockedFile(path, 0o600)
    >>> lock.is_new
    True
    >>> LockedFile(path, 0o600)
    Traceback (most recent call last):
    BlockingIOError: [Errno 11] Resource temporarily unavailable
    >>> lock.close()
    """

    def __init__(self, path: Path, mode: int, *, append: bool = False) -> None:
        import fcntl  # POSIX only, as is the promise that it keeps

        self.path, self.fd = path, -1
        give_up_in_children(self)
        while self.fd < 0:
            self.fd, self.is_new = _open(path, mode, os.O_APPEND if append else 0)
            try:
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not self.is_there():  # the one who made it has removed it meanwhile
                    self.close()
            except BaseException:
                self.close()
                raise

    def is_there(self) -> bool:
        """Whether its name still leads to it."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(self.fd))

    def remove(self) -> None:
        """Remove the file if it was made here and its name still leads to it."""
        if self.is_new and self.fd >= 0 and self.is_there():
            self.path.unlink()

    def close(self) -> None:
        """Let go of the file and of its lock, also where a child that did not give it up still lives."""
        if self.fd >= 0:
            import fcntl

            fd, self.fd = self.fd, -1
            try:
                fcntl.flock(fd, fcntl.LOCK_UN)
            finally:
                os.close(fd)

    def forked(self) -> None:
        """Close the child's copy; the lock stays the parent's."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)


def _open(path: Path, mode: int, flags: int) -> tuple[int, bool]:
    """Open an ordinary file; say whether it was made for that."""
    flags |= os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe must not make us wait
    try:
        return os.open(path, flags | os.O_CREAT | os.O_EXCL, mode), True
    except FileExistsError:
        pass
    kind = path.lstat().st_mode
    if not stat.S_ISREG(kind):  # looked at before it is opened: opening some devices has effects
        what = "a symbolic link" if stat.S_ISLNK(kind) else "not an ordinary file"
        raise OSError(22, f"is {what}; name an ordinary file", str(path))
    fd = os.open(path, flags)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd, False
    os.close(fd)
    raise OSError(22, "is not an ordinary file; name another one", str(path))
