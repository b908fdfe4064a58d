"""Files: read and written whole, locked by one process, and the format of a model file.

A path is written whole or not at all: next to its place, synced, then renamed into it. All is O(bytes).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import re
import reprlib
import stat
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError, ModelFileError


class Readable(Protocol):
    """A binary file object to read from."""

    def read(self) -> bytes:
        """Return all that is left."""


class Writable(Protocol):
    """A binary file object to write to."""

    def write(self, data: bytes, /) -> object:
        """Write all of these bytes."""


Source: TypeAlias = str | os.PathLike[str] | Readable
Target: TypeAlias = str | os.PathLike[str] | Writable


def check_path(name: str, path: str | os.PathLike[str]) -> None:
    r"""Refuse a path that no file can have.

    Examples
    --------
    >>> check_path("target", "a\0.armlet")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: target is 'a\x00.armlet'; give a path of text without a null character
    """
    text = os.fspath(path)
    if not isinstance(text, str) or "\0" in text:
        raise InvalidValueError(f"{name} is {reprlib.repr(text)}; give a path of text without a null character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise InvalidValueError(f"{name} is {reprlib.repr(text)}; give a path that can be written as UTF-8") from error


PRIVATE, ORDINARY = 0o600, 0o666  # modes of new files: a model holds the seed of its bandit


def origin(source: Source | bytes) -> str:
    """Return what an error calls a model: its path, or what it came from.

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
        check_path("target", target)
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
        check_path("source", source)
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
    """Link a file to its name, unless there is one of that name; a rename would write over it."""
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


# ---- the model file: two readable lines, then raw little-endian arrays
#
#     armlet model 3
#     {"armlet": "0.1.0", "arrays": [{"dtype": "<f8", "name": "records", "shape": [6, 12]}], "checksum": ...}
#     ... the bytes of every array in the order of "arrays", nothing between and nothing after ...
#
# The checksum is SHA-256 over the JSON without its checksum and over all array bytes. It finds damage and careless
# edits; it is no signature, so anyone who can write the file can also recompute it. Nothing is unpickled or executed.

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Array: TypeAlias = npt.NDArray[np.generic]

SCHEMA_VERSION = 3
MAX_HEADER_BYTES = 1 << 26  # a million long arm labels fit; a binary file without newlines does not
DTYPES = ("<f8", "<i8", "|u1", "|b1")
RESERVED = ("schema", "arrays", "checksum")

_MAGIC = f"armlet model {SCHEMA_VERSION}\n".encode()
_MAGIC_LINE = re.compile(rb"armlet model ([1-9][0-9]{0,8})\n")
_RESTORE = "restore a copy or save the model again"


class _Entry(NamedTuple):
    """One array as the header describes it."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize  # Python integers: never overflows


def encode_model(header: Mapping[str, Json], arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of a model file.

    The header must come back from JSON exactly as it is, so no NaN and no tuples; the names schema, arrays and checksum
    are taken. Arrays are of float64, int64, uint8 or bool, little-endian.

    Examples
    --------
    >>> data = encode_model({"clock": 7}, {"b": np.array([0.5, -1.0])})
    >>> decode_model(data)
    ({'clock': 7}, {'b': array([ 0.5, -1. ])})
    """
    return b"".join(_encode(header, arrays))


def decode_model(data: bytes) -> tuple[dict[str, Json], dict[str, Array]]:
    """Return the header and the arrays that `encode_model` was given, fresh and writable in C order.

    Raises ModelFileError if the bytes are no model file, are damaged, truncated or edited, or have another schema.

    Examples
    --------
    >>> decode_model(b"PK")
    Traceback (most recent call last):
    armlet.errors.ModelFileError: the bytes: not an Armlet model file; check where it comes from
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidTypeError(f"data is {reprlib.repr(data)} ({type(data).__name__}); give the bytes of a model file")
    return _named(origin(data), io.BytesIO(data))


def write_model(target: Target, header: Mapping[str, Json], arrays: Mapping[str, Array]) -> None:
    """Write one model file, whole or not at all, to a path or to a binary file object from its current position.

    The bytes go to a temporary file next to the path and replace it only when they are on the disk. A file that was
    there keeps its permissions, and stays as it was if anything fails.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(f"{folder}/m.armlet", {"clock": 7}, {"b": np.array([0.5, -1.0])})
    ...     header, arrays = read_model(f"{folder}/m.armlet")
    >>> header, arrays
    ({'clock': 7}, {'b': array([ 0.5, -1. ])})
    """
    parts = _encode(header, arrays)  # everything that can be refused is refused before the disk is touched
    write_parts(target, parts)


def read_model(source: Source) -> tuple[dict[str, Json], dict[str, Array]]:
    """Return the header and the arrays that `write_model` was given, or raise as `decode_model` does."""
    with opened(source) as file:
        return _named(origin(source), file)


def _named(name: str, file: IO[bytes]) -> tuple[dict[str, Json], dict[str, Array]]:
    try:
        return _decode(file)
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from None
    except MemoryError as error:
        raise ModelFileError(f"{name}: there is not enough memory to read it") from error


def digest(header: Mapping[str, Json], arrays: Mapping[str, Array]) -> str:
    """Return the SHA-256 of what a model file would hold, in hexadecimal digits.

    Examples
    --------
    >>> digest({"clock": 7}, {"b": np.array([0.5])}) == digest({"clock": 7}, {"b": np.array([0.25])})
    False
    """
    _check_header(header)
    body = [_array_bytes(name, array) for name, array in arrays.items()]
    return _checksum({**header, "arrays": _listed(arrays)}, body).removeprefix("sha256:")


def _listed(arrays: Mapping[str, Array]) -> list[Json]:
    return [{"name": name, "dtype": array.dtype.str, "shape": list(array.shape)} for name, array in arrays.items()]


def _encode(header: Mapping[str, Json], arrays: Mapping[str, Array]) -> list[bytes]:
    _check_header(header)
    body = [_array_bytes(name, array) for name, array in arrays.items()]
    full: dict[str, Json] = {**header, "schema": SCHEMA_VERSION, "arrays": _listed(arrays)}
    line = _canonical({**full, "checksum": _checksum(full, body)})
    if len(line) > MAX_HEADER_BYTES:
        raise InvalidValueError(f"header takes {len(line)} bytes as JSON; {MAX_HEADER_BYTES} is the most that is read")
    return [_MAGIC, line, *body]


def _check_header(header: Mapping[str, Json]) -> None:
    for name in RESERVED:
        if name in header:
            raise InvalidValueError(f"header has the name {name!r}, which the file uses itself; choose another")
    try:
        faithful = json.loads(_canonical(header)) == header
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError(f"header is not JSON: {error}") from error
    if not faithful:
        raise InvalidValueError(f"header comes back from JSON changed; use str keys and lists only: {header!r:.500}")


def _array_bytes(name: str, array: Array) -> bytes:
    if not isinstance(name, str):
        raise InvalidTypeError(f"array {name!r} is named by a {type(name).__name__}; give a str")
    if array.dtype.str not in DTYPES:
        raise InvalidValueError(f"array {name!r} has dtype {array.dtype.str}; use one of {', '.join(DTYPES)}")
    return array.tobytes(order="C")


def _canonical(header: Mapping[str, Json]) -> bytes:
    text = json.dumps(dict(header), sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def _checksum(header: Mapping[str, Json], body: Iterable[bytes]) -> str:
    digest = hashlib.sha256(_canonical(header))
    for part in body:
        digest.update(part)
    return f"sha256:{digest.hexdigest()}"


def _decode(file: IO[bytes]) -> tuple[dict[str, Json], dict[str, Array]]:
    _check_magic(file.readline(len(_MAGIC) + 16))
    header = _read_header(file)
    checksum = header.pop("checksum", None)
    entries = _entries(header.get("arrays"))
    body = file.read()
    _check_size(len(body), sum(entry.nbytes for entry in entries))
    if checksum != _checksum(header, [body]):
        raise ModelFileError(f"the checksum does not match, the file was damaged or edited; {_RESTORE}")
    if header.get("schema") != SCHEMA_VERSION:
        raise ModelFileError(f"its two lines name different schema versions; {_RESTORE}")
    return {name: value for name, value in header.items() if name not in RESERVED}, _arrays(entries, body)


def _check_size(held: int, expected: int) -> None:
    if held < expected:
        raise ModelFileError(f"truncated, {held} of {expected} bytes of arrays are left; {_RESTORE}")
    if held > expected:
        raise ModelFileError(f"{held - expected} bytes follow the arrays, the file was altered; {_RESTORE}")


def _check_magic(line: bytes) -> None:
    if not line:
        raise ModelFileError(f"the file is empty; {_RESTORE}")
    match = _MAGIC_LINE.fullmatch(line)
    if match is None:
        if _MAGIC.startswith(line):
            raise ModelFileError(f"truncated in the first line; {_RESTORE}")
        raise ModelFileError("not an Armlet model file; check where it comes from")
    if int(match[1]) > SCHEMA_VERSION:
        raise ModelFileError(
            f"written with schema {int(match[1])}, this version reads up to {SCHEMA_VERSION}; upgrade armlet"
        )
    if int(match[1]) < SCHEMA_VERSION:
        raise ModelFileError(
            f"written with schema {int(match[1])} by a development version before 0.1.0, which is not read any more; "
            "train the bandit again"
        )


def _read_header(file: IO[bytes]) -> dict[str, Json]:
    line = file.readline(MAX_HEADER_BYTES + 1)
    if len(line) > MAX_HEADER_BYTES:
        raise ModelFileError(f"the header line is longer than {MAX_HEADER_BYTES} bytes; {_RESTORE}")
    if not line.endswith(b"\n"):
        raise ModelFileError(f"truncated in the header; {_RESTORE}")
    try:
        header = json.loads(line)
        # only the one spelling that `write_model` produces: no doubled keys, no NaN, no stray spaces
        if isinstance(header, dict) and _canonical(header) == line:
            return header
    except (ValueError, RecursionError):
        pass
    raise ModelFileError(f"the header is not the JSON object that was written; {_RESTORE}")


def _entries(listed: Json) -> list[_Entry]:
    if not isinstance(listed, list):
        raise ModelFileError(f"the header lists no arrays; {_RESTORE}")
    entries = [_entry(item) for item in listed]
    if len({entry.name for entry in entries}) < len(entries):
        raise ModelFileError(f"two arrays have the same name; {_RESTORE}")
    return entries


def _entry(item: Json) -> _Entry:
    match item:
        case {"name": str(name), "dtype": str(dtype), "shape": list(shape), **rest} if not rest:
            # numpy's own limits: 64 dimensions, each of which an int64 counts
            sizes = tuple(size for size in shape if type(size) is int and 0 <= size < 2**63)
            if dtype in DTYPES and len(sizes) == len(shape) <= 64:
                return _Entry(name, dtype, sizes)
    raise ModelFileError(f"the header describes an array that cannot be, {item!r:.200}; {_RESTORE}")


def _arrays(entries: Iterable[_Entry], body: bytes) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    start = 0
    for entry in entries:
        arrays[entry.name] = _array(entry, body[start : start + entry.nbytes])
        start += entry.nbytes
    return arrays


def _array(entry: _Entry, data: bytes) -> Array:
    flat = np.frombuffer(data, dtype=np.uint8)
    if entry.dtype == "|b1" and flat.max(initial=0) > 1:
        raise ModelFileError(f"array {entry.name!r} has a truth value that is neither 0 nor 1; {_RESTORE}")
    try:
        return flat.view(entry.dtype).reshape(entry.shape).copy()
    except ValueError:  # empty, with other dimensions too long even for nothing
        raise ModelFileError(f"array {entry.name!r} cannot have shape {entry.shape}; {_RESTORE}") from None


# ---- locks: a forked child has a copy of every lock, perhaps held by a thread that it does not have, and shares every
# open file with its parent, file locks included: an flock lives until the last copy of its descriptor is closed.
# So a child gives up the locks and files of its parent, by one hook for logs and stores


class Forked(Protocol):
    """What holds a lock or a descriptor."""

    def forked(self) -> None:
        """Return up, in the child, what belongs to the parent; nothing here may wait for a lock."""


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
            status = self.path.lstat()
        except FileNotFoundError:
            return False
        return os.path.samestat(status, os.fstat(self.fd))

    def remove(self) -> None:
        """Remove the file if it was made here and its name still leads to it."""
        if self.is_new and self.fd >= 0 and self.is_there():
            self.path.unlink()

    def close(self) -> None:
        """Let go of the file and of its lock, also where a child that did not give it up still lives."""
        if self.fd >= 0:
            import fcntl

            with contextlib.suppress(OSError):
                fcntl.flock(self.fd, fcntl.LOCK_UN)  # first: another may have the file, whatever interrupts the rest
            fd, self.fd = self.fd, -1
            os.close(fd)

    def __del__(self) -> None:
        if (fd := getattr(self, "fd", -1)) >= 0:  # its owner was interrupted before it could close it
            self.fd = -1
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
