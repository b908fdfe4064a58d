"""What commands share at the command line: counts and ranges in words, and how a command fails."""

from __future__ import annotations

import argparse
from decimal import Decimal
from typing import Final, NoReturn

THOUSANDS: Final = {"k": 10**3, "m": 10**6}  # what may follow a count
MOST: Final = 10**18  # of a count: steps have 64 bits


def count(text: str) -> int:
    """Read a whole number, also as 1e5, 50k or 2M.

    Examples
    --------
    >>> count("100000"), count("1e5"), count("10_000"), count("50k"), count("2.5M")
    (100000, 100000, 10000, 50000, 2500000)
    """
    unit = THOUSANDS.get(text.strip()[-1:].lower(), 1)
    try:
        value = unit * Decimal(text.strip()[:-1] if unit > 1 else text)
        if value.is_finite() and abs(value) < MOST and value == int(value):
            return int(value)
    except ArithmeticError:  # no number, or one beyond all bounds
        pass
    raise argparse.ArgumentTypeError(f"invalid count: {text!r}; write a whole number, such as 50000, 50k or 5e4")


def between(text: str) -> float | tuple[float, float]:
    """Read a number, or the lowest and the highest with two dots between them.

    Examples
    --------
    >>> between("5"), between("0.02..0.05")
    (5, (0.02, 0.05))
    """
    low, dots, high = text.partition("..")
    try:
        return (_number(low), _number(high)) if dots else _number(low)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid range: {text!r}; write a number, or two as in 0.02..0.05") from None


def names(text: str) -> tuple[str, ...]:
    """Read names with commas between them.

    Examples
    --------
    >>> names("age, country")
    ('age', 'country')
    """
    return tuple(name.strip() for name in text.split(","))


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add what says where tasks run."""
    names = "processes, threads, serial, dask, or the address of a Dask scheduler"
    parser.add_argument("--engine", default="processes", help=f"where to compute: {names}; default: processes")
    parser.add_argument("--workers", type=count, metavar="N", help="default: as many as there are processors")


def fail(arguments: argparse.Namespace, error: Exception, *extras: str, code: int = 1) -> NoReturn:
    """End with an exit code and one line; a missing module that no extra provides is a defect of ours and stays one."""
    if isinstance(error, ModuleNotFoundError) and error.name not in extras:
        raise error
    if isinstance(error, BrokenPipeError):  # no failure: nobody reads on
        raise error
    parser: argparse.ArgumentParser = arguments.parser
    parser.exit(code, f"{parser.prog}: error: {_words(error)}\n")


def _words(error: Exception) -> str:
    """Say what the system says of a file, without its number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


def _number(text: str) -> float:
    return int(text) if text.strip().isdecimal() else float(text)
