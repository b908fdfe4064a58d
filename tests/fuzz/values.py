"""Numbers, rows, labels and columns to call with: good ones, extreme ones, wrong ones, and objects that fight back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Deed = Callable[[], Any]

EXTREMES: tuple[Any, ...] = (
    0.0,
    -0.0,
    5e-324,
    1e-300,
    -1e-100,
    1e-60,
    1e-12,
    1e12,
    -1e19,
    1e24,
    9e39,
    1e40,
    -1e40,
    2**53,
    True,
    1,
)
WRONG: tuple[Any, ...] = (
    float("nan"),
    float("inf"),
    -float("inf"),
    1.1e40,
    1e308,
    2**53 + 1,
    2**70,
    -(2**64),
    10**400,
    None,
    "1",
    b"1",
)
ODD: tuple[Any, ...] = (
    1j,
    [],
    [1.0],
    (),
    {},
    set(),
    object(),
    np.zeros(2),
    np.float32(0.5),
    np.int8(3),
    np.timedelta64(1),
    np.bool_(True),
)


def modest(answer: Any) -> Any:
    """Leave out numbers that are too large for Python itself to count with: its error would not be the library's."""
    return None if isinstance(answer, int | float) and not abs(answer) < 10**6 else answer


def instead(answer: Any, ordinary: T) -> T:
    """Return the answer of a deed; the ordinary one if it gave none."""
    return ordinary if answer is None else answer


def whole(answer: Any, ordinary: int) -> int:
    """Return the answer as a hash or a size, which Python itself requires to be an int."""
    return answer if isinstance(answer, int) else ordinary


def truth(answer: Any) -> bool:
    """Return whether two are equal, or one is less, by the answer of a deed."""
    return isinstance(answer, np.ndarray) or bool(answer)


class Fights:
    """Does its deed whenever it is looked at, and then answers what the deed gives."""

    def __init__(self, deed: Deed, inner: Any = 1.0) -> None:
        self.deed, self.inner = deed, inner

    def __float__(self) -> float:
        return instead(self.deed(), 1.0)

    def __index__(self) -> int:
        return instead(modest(self.deed()), 0)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        answer = self.deed()
        if answer is not None:
            return answer
        try:
            return np.asarray(self.inner, dtype=dtype)
        except (TypeError, ValueError):  # numpy's words, which would be this object's own
            return np.array(self.inner, dtype=object)

    def __iter__(self) -> Iterator[Any]:
        self.deed()
        return iter(self.inner if isinstance(self.inner, list) else [self.inner])

    def __len__(self) -> int:
        return whole(modest(self.deed()), len(self.inner) if isinstance(self.inner, list) else 1)

    def __getitem__(self, key: Any) -> Any:
        self.deed()
        return self.inner[key] if isinstance(self.inner, list) else self.inner

    def __eq__(self, other: object) -> bool:
        return truth(self.deed())

    def __hash__(self) -> int:
        return whole(self.deed(), 0)


class FightingFloat(float):
    """A float that does something when it is read."""

    deed: Deed

    def __float__(self) -> float:
        return instead(self.deed(), 1.0)

    def __le__(self, other: float) -> bool:
        return truth(self.deed())

    __ge__ = __le__


class FightingInt(int):
    """An int that does something when it is read."""

    deed: Deed

    def __float__(self) -> float:
        return instead(self.deed(), 1.0)

    def __index__(self) -> int:
        return instead(modest(self.deed()), 0)

    def __abs__(self) -> int:
        return whole(self.deed(), 0)

    def __hash__(self) -> int:
        return whole(self.deed(), 0)

    def __eq__(self, other: object) -> bool:
        return truth(self.deed())


class FightingStr(str):
    """A label that does something when it is compared or hashed."""

    deed: Deed

    def __hash__(self) -> int:
        return whole(self.deed(), str.__hash__(self))

    def __eq__(self, other: object) -> bool:
        self.deed()
        return str.__eq__(self, other) if isinstance(other, str) else False


class FightingList(list[Any]):
    """A list that does something when it is walked."""

    deed: Deed

    def __iter__(self) -> Iterator[Any]:
        self.deed()
        return list.__iter__(self)

    def __len__(self) -> int:
        return whole(modest(self.deed()), list.__len__(self))


class FightingTable:
    """Says that it speaks Arrow."""

    def __init__(self, deed: Deed) -> None:
        self.deed = deed

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.deed()


def pick(rng: Random, options: Sequence[Any]) -> Any:
    """Draw one of several things that need not be alike."""
    return rng.choice(options)


def armed(made: Any, deed: Deed) -> Any:
    """Return a hostile object its deed."""
    made.deed = deed
    return made


def number(rng: Random, deed: Deed, wild: bool = False) -> Any:
    """Draw a number: most of the time an ordinary one, or one of the largest and smallest there are."""
    kind = rng.random()
    if wild and kind < 0.5:
        return rng.choice(EXTREMES)
    if kind < 0.7:
        return rng.choice([0.0, 1.0, 0.5, rng.uniform(-1, 1), rng.gauss(0, 3), rng.randrange(2)])
    if kind < 0.84:
        return rng.choice(EXTREMES)
    if kind < 0.9:
        return rng.choice(WRONG)
    if kind < 0.94:
        return rng.choice(ODD)
    return hostile_number(rng, deed)


def hostile_number(rng: Random, deed: Deed) -> Any:
    """Draw a number that fights back."""
    kind = rng.randrange(3)
    if kind == 0:
        return armed(FightingFloat(0.5), deed)
    return armed(FightingInt(1), deed) if kind == 1 else Fights(deed)


def row(rng: Random, dim: int, scale: float, deed: Deed, features: tuple[str, ...] | None) -> Any:
    """Draw one context: a list, an array, a mapping; now and then of a wrong kind or length."""
    kind = rng.random()
    values: list[Any] = [scale * rng.choice((0.0, 1.0, -1.0, rng.uniform(-1, 1))) for _ in range(dim)]
    if kind < 0.35:
        return values
    if kind < 0.65:
        return np.array(values)
    if kind < 0.72 and features:
        return dict(zip(features, values, strict=True))
    if kind < 0.85:
        values[rng.randrange(dim)] = number(rng, deed)
        return tuple(values) if rng.random() < 0.3 else values
    return wrong_row(rng, dim, values, deed)


def wrong_row(rng: Random, dim: int, values: list[Any], deed: Deed) -> Any:
    """Draw a context that is none, or not an everyday one."""
    return pick(
        rng,
        [
            lambda: values[1:],
            lambda: [*values, 1.0],
            lambda: np.arange(dim).astype(rng.choice(["f4", "f2", "i8", "u1", ">f8", "O", "c16", "U3", "M8[s]"])),
            lambda: np.array([values]),
            lambda: np.array(values * 2)[::2],
            lambda: np.zeros(0),
            lambda: np.ma.masked_array(np.array(values), mask=[True] * dim),
            lambda: {"no such feature": 1.0},
            lambda: Fights(deed, values),
            lambda: armed(FightingList(values), deed),
            lambda: FightingTable(deed),
            lambda: np.array([Fights(deed)] * dim, dtype=object),
            lambda: rng.choice(WRONG + ODD),
        ],
    )()


def column(rng: Random, values: list[Any], deed: Deed) -> Any:
    """Dress a column: as it is, as an array, cut, or as something that fights back."""
    kind = rng.random()
    if kind < 0.5:
        return values
    if kind < 0.7:
        try:
            return np.array(values)
        except (ValueError, TypeError, OverflowError):
            return values
    if kind < 0.75:
        return values[1:]
    if kind < 0.8:
        return rng.choice(WRONG + ODD)
    if kind < 0.9:
        return armed(FightingList(values), deed)
    return Fights(deed, values)
