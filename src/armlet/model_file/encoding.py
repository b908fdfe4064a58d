"""The model file: two readable lines, then raw little-endian arrays.

    armlet model 2
    {"armlet": "0.1.0", "arrays": [{"dtype": "<f8", "name": "records", "shape": [6, 12]}], "checksum": ...}
    ... the bytes of every array in the order of "arrays", nothing between and nothing after ...

The checksum is SHA-256 over the JSON without its checksum and over all array bytes. It finds damage
and careless edits; it is no signature, so whoever can write the file can also recompute it.
Reading and writing are O(bytes); nothing is ever unpickled or executed.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import IO, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from armlet.disk import Source, Target, opened, origin, write_parts
from armlet.errors import InvalidTypeError, InvalidValueError, ModelFileError

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Array: TypeAlias = npt.NDArray[np.generic]

SCHEMA_VERSION = 2
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
    """Give the bytes of a model file.

    Parameters
    ----------
    header : mapping of str to JSON values
        Whatever describes the arrays; must come back from JSON exactly as it is, so no NaN, no tuples.
        The names schema, arrays and checksum are taken.
    arrays : mapping of str to numpy arrays
        Arrays of float64, int64, uint8 or bool, little-endian.

    Examples
    --------
    >>> data = encode_model({"clock": 7}, {"b": np.array([0.5, -1.0])})
    >>> decode_model(data)
    ({'clock': 7}, {'b': array([ 0.5, -1. ])})
    """
    return b"".join(_encode(header, arrays))


def decode_model(data: bytes) -> tuple[dict[str, Json], dict[str, Array]]:
    """Read back what `encode_model` was given, or refuse.

    Returns
    -------
    header : dict
        The header as it was passed to `encode_model`.
    arrays : dict of str to numpy arrays
        Fresh, writable arrays in C order.

    Raises
    ------
    ModelFileError
        If the bytes are no model file, are damaged, truncated or edited, or are newer than this version reads.

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
    """Write one model file, whole or not at all.

    The bytes go to a temporary file beside the path and take its place only when they are on the disk.
    A file that was there keeps its permissions, and stays as it was if anything fails. A file object is written to
    from where it stands; what it does with the bytes is its own affair.

    Parameters
    ----------
    target : str, path-like or writable binary file object
        Where to write. The directory of a path must exist.
    header, arrays
        As in `encode_model`.

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
    """Read back what `write_model` was given, or refuse.

    Parameters
    ----------
    source : str, path-like or readable binary file object
        A file written by `write_model`. A file object is read from where it stands to its end.

    Returns
    -------
    header, arrays
        As from `decode_model`.

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged, truncated or edited, or is newer than this version reads.
    OSError
        If the file cannot be opened, as `open` raises it.

    Examples
    --------
    >>> read_model(__file__)
    Traceback (most recent call last):
    armlet.errors.ModelFileError: ...: not an Armlet model file; check where it comes from
    """
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
    """Give the SHA-256 of what a model file would hold, in hexadecimal digits.

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
