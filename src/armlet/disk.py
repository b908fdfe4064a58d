"""Where the bytes of a file go and come from: a path or a file object.

A path is written whole or not at all: beside its place, synced, then renamed into it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import reprlib
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Protocol, TypeAlias

from armlet.errors import InvalidTypeError


class Readable(Protocol):
    """A binary file object to read from."""

    def read(self) -> bytes:
        """Give all that is left."""


class Writable(Protocol):
    """A binary file object to write to."""

    def write(self, data: bytes, /) -> object:
        """Write all of these bytes."""


Source: TypeAlias = str | os.PathLike[str] | Readable
Target: TypeAlias = str | os.PathLike[str] | Writable


PRIVATE, ORDINARY = 0o600, 0o666  # modes of new files: a model holds the seed of its bandit


def origin(source: Source | bytes) -> str:
    """Say what an error calls a model: its path, or what it came from.

    Examples
    --------
    >>> origin("a.armlet"), origin(b""), origin(io.BytesIO())
    ('a.armlet', 'the bytes', 'the file object')
    """
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return "the bytes"
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "the file object"


def write_parts(target: Target, parts: Iterable[bytes]) -> None:
    """Write a model to a path, whole or not at all, or to a binary file object from where it stands.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> write_parts(file, [b"ab", b"c"])
    >>> file.getvalue()
    b'abc'
    """
    if isinstance(target, str | os.PathLike):
        write_atomically(Path(os.path.realpath(target)), parts, PRIVATE)  # through a link, to what it points at
        return
    if not hasattr(target, "write"):
        raise InvalidTypeError(f"target is {reprlib.repr(target)}; give a path or a file object opened with mode 'wb'")
    if isinstance(target, io.TextIOBase):
        raise InvalidTypeError(f"target is {target!r}, which takes text; open the file with mode 'wb'")
    if isinstance(target, io.RawIOBase):  # it may take less than it is given; a buffer gives it the rest again
        buffered = io.BufferedWriter(target)
        buffered.writelines(parts)
        buffered.detach()
        return
    for part in parts:
        target.write(part)


@contextlib.contextmanager
def opened(source: Source) -> Iterator[IO[bytes]]:
    """Open a path, or read a binary file object from where it stands to its end.

    Examples
    --------
    >>> with opened(io.BytesIO(b"abc")) as file:
    ...     file.readline()
    b'abc'
    """
    if isinstance(source, str | os.PathLike):
        with Path(source).open("rb") as file:
            yield file
        return
    if not hasattr(source, "read"):
        raise InvalidTypeError(f"source is {reprlib.repr(source)}; give a path or a file object opened with mode 'rb'")
    data = source.read()
    if not isinstance(data, bytes):
        raise InvalidTypeError(f"source reads {type(data).__name__}, not bytes; open the file with mode 'rb'")
    yield io.BytesIO(data)


def write_atomically(target: Path, parts: Iterable[bytes], mode: int = ORDINARY) -> None:
    """Write a file, whole or not at all: what was there stays as it was if anything fails.

    A new file gets this mode, less what the umask takes; one that was there keeps its own.
    """
    _check_target(target)
    temporary = target.with_name(f".armlet-{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as file:
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def write_new(target: Path, data: bytes, mode: int) -> None:
    """Write a file that is not there yet, whole or not at all; FileExistsError if it is."""
    temporary = target.with_name(f".armlet-{os.urandom(8).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        _put_in_place(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(target.parent)


def _put_in_place(temporary: Path, target: Path) -> None:
    """Give a file its name, unless there is one of that name; a rename would write over it."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError as error:  # of a file system without links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "file exists", str(target)) from error
        temporary.rename(target)


def _check_target(target: Path) -> None:
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such directory; create it first", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory; add a file name", str(target))
    if target.exists() and not target.is_file():  # a rename would put a file in place of /dev/null
        raise OSError(errno.EINVAL, "not an ordinary file; choose another path", str(target))


def sync_directory(directory: Path) -> None:
    """Let a rename in a directory outlive a power cut."""
    if os.name != "posix":
        return  # only POSIX lets a directory be opened; without this a crash could undo the rename
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
