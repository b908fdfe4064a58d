"""What is raised where a log cannot be read, and the reason in one line."""

from __future__ import annotations

import contextlib
import reprlib
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from armlet.errors import ArgumentError, ArmletError, LogError


class InvalidEventError(LogError):
    """An event holds what its kind cannot hold."""

    def __init__(self, name: str, seq: int, kind: str, why: str) -> None:
        super().__init__(f"event {seq:,} of {name} ({kind}) is not valid: {why}", seq)
        self.at, self.kind, self.why = seq, kind, why


class DamagedLineError(InvalidEventError):
    """A line is not the one that was written in its place."""


class NotALogError(LogError):
    """A file is not a log: nothing says that it ever was one."""


class MissingFileError(LogError, FileNotFoundError):
    """A log, or a file that belongs to it, is not there."""


FAULTS: Final = (
    OSError,
    EOFError,
    ValueError,  # of json, UTF-8, base64 and most of Arrow
    TypeError,
    LookupError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    NotImplementedError,
    struct.error,
    zlib.error,
)
"""What damaged bytes make readers raise: files, JSON, gzip, Arrow, numpy and the bandit that plays an event."""
REASON: Final = 300  # characters of a reason: it may hold any text of a file


@contextlib.contextmanager
def reading(name: str, done: str = "read") -> Iterator[None]:
    """Raise a LogError about the file where something else would be raised; `done` is what could not be.

    Examples
    --------
    >>> with reading("a.parquet"):
    ...     {}["seq"]
    Traceback (most recent call last):
    armlet.errors.LogError: a.parquet cannot be read: 'seq' is missing
    """
    try:
        yield
    except (ArmletError, ArgumentError):
        raise
    except Exception as error:
        if not is_fault(error):
            raise
        raise LogError(f"{name} cannot be {done}: {explain(error)}") from error


def is_fault(error: Exception) -> bool:
    """Whether damaged bytes can be the reason for an error."""
    return isinstance(error, FAULTS) or type(error).__module__.startswith("pyarrow")


def explain(error: Exception) -> str:
    """Return the message of an error in one line, a missing field included."""
    if isinstance(error, KeyError) and not isinstance(error, ArmletError):
        message = error.args[0] if error.args else ""
        is_name = isinstance(message, str) and " " not in message  # else a sentence, such as that there is no such arm
        return (f"{message!r} is missing" if is_name else str(message))[:REASON]
    if isinstance(error, UnicodeEncodeError):
        text = reprlib.repr(error.object)
        return f"{text} cannot be written as UTF-8; give other text"
    if isinstance(error, RecursionError):
        return "it nests too deeply"
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error).strip().partition("\n")[0][:REASON] or type(error).__name__


def check_ordinary(path: Path, what: str) -> None:
    """Refuse a path where there is no ordinary file to be read."""
    if not path.exists():
        raise MissingFileError(f"{what} is {path}, which does not exist")
    if path.is_dir():
        raise NotALogError(f"{what} is {path}, a directory; give a file")
    if not path.is_file():
        raise NotALogError(f"{what} is {path}, a device or a pipe; give an ordinary file")


def shorten(value: object) -> str:
    """Return a value as the text of an error has it, whatever a file holds."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of too many digits, or lists in lists
        return "too long to be told"
    return text if len(text) <= 80 else f"{text[:80]}..."
