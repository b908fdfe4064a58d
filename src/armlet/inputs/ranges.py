"""Ranges of features: a value that cannot be right is refused, or clipped, where contexts are read.

A range belongs to a feature by its name: (low, high) refuses values outside, (low, high, "clip") takes the nearer end
instead. Contexts are read before they are normalized, and after they are encoded. O(d) a row.
"""

from __future__ import annotations

import reprlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np

from armlet.errors import InvalidTypeError, InvalidValueError, choices
from armlet.inputs.columns import LARGEST
from armlet.types import Bool, Float64

FeatureRange: TypeAlias = tuple[float, float] | tuple[float, float, Literal["refuse", "clip"]]
"""The lowest and the highest value of a feature; "clip" takes the nearer end for a value outside, "refuse" is usual."""
GivenRanges: TypeAlias = Mapping[str, FeatureRange]

FIX: Final = (
    f"give (lowest, highest), two numbers that differ, of at most {LARGEST:g} in size, or (lowest, highest, 'clip')"
)


class FeatureRanges(Mapping[str, FeatureRange]):
    """The ranges of some features, in the order of all features, and how many values lay outside.

    Counts are of the bandit or the loop that reads contexts with this object; what is saved has the ranges alone.

    Examples
    --------
    >>> ranges = FeatureRanges({"age": (0.0, 120.0), "income": (0.0, 1e6, "clip")}, ("age", "income"))
    >>> ranges.within(np.array([31.0, 5e6]), "context"), ranges.counts["income"]
    (array([3.1e+01, 1.0e+06]), {'refused': 0, 'clipped': 1})
    >>> ranges.within(np.array([-1.0, 0.0]), "context")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: context['age'] is -1.0 but feature_range has (0.0, 120.0) for it; ...
    """

    __slots__ = ("_clips", "_counts", "_lock", "_places", "_ranges", "features", "high", "low")

    def __init__(self, ranges: GivenRanges, features: tuple[str, ...]) -> None:
        self._ranges, self.features = dict(ranges), features
        self._places = [features.index(name) for name in ranges]
        self._clips = np.array([len(each) == 3 for each in ranges.values()], dtype=np.bool_)
        self.low, self.high = np.full(len(features), -np.inf), np.full(len(features), np.inf)  # (d,)
        for place, each in zip(self._places, ranges.values(), strict=True):
            self.low[place], self.high[place] = each[0], each[1]
        self._counts = {name: [0, 0] for name in ranges}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> FeatureRange:
        return self._ranges[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __eq__(self, other: object) -> bool:
        return self._ranges == dict(other) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._ranges.items()))

    def __repr__(self) -> str:
        return repr(self._ranges)

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureRanges, (self._ranges, self.features)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """How many values of each feature were refused and clipped."""
        return {name: {"refused": n[0], "clipped": n[1]} for name, n in self._counts.items()}

    def apart(self) -> FeatureRanges:
        """Return the same ranges with counts of their own."""
        return FeatureRanges(self._ranges, self.features)

    def count_on(self, other: FeatureRanges | None) -> None:
        """Continue the counts of another one, of features that have a range in both."""
        if other is None:
            return
        for name in self._counts.keys() & other._counts.keys():
            self._counts[name] = other._counts[name]
        self._lock = other._lock

    def to_dict(self) -> dict[str, Any]:
        """Return the ranges in plain JSON types, which `check_feature_range` takes."""
        return {name: list(each) for name, each in self._ranges.items()}

    def within(self, values: Float64, what: str) -> Float64:
        """Return a row or a matrix whose values lie in their ranges: itself, or a clipped copy; or refuse it."""
        ours = values[..., self._places]
        outside = (ours < self.low[self._places]) | (ours > self.high[self._places])
        if not outside.any():
            return values
        rows = outside.reshape(-1, len(self._places))
        refused = rows & ~self._clips
        if refused.any():
            self._count(0, refused)
            raise self._refusal(ours.reshape(rows.shape), refused, what, is_matrix=values.ndim > 1)
        self._count(1, rows)
        return np.clip(values, self.low, self.high)

    def refused(self, row: Float64) -> list[str]:
        """Return the features of a row that would be refused, without counting them."""
        places = zip(self._ranges.items(), self._places, strict=True)
        return [name for (name, each), at in places if len(each) == 2 and not each[0] <= row[at] <= each[1]]

    def _count(self, place: int, rows: Bool) -> None:
        with self._lock:
            for name, n in zip(self._ranges, rows.sum(axis=0).tolist(), strict=True):
                self._counts[name][place] += n

    def _refusal(self, values: Float64, refused: Bool, what: str, *, is_matrix: bool) -> InvalidValueError:
        row, column = np.argwhere(refused)[0].tolist()
        name, where = list(self._ranges)[column], f"row {row}: " if is_matrix else ""
        return InvalidValueError(
            f"{where}{what}[{name!r}] is {values[row, column]} but feature_range has {self[name]} for it; mend it "
            "where it is made, or take a wider range, or one that clips: replace(feature_range=...), of a loop "
            "change(feature_range=...)"
        )


def check_feature_range(ranges: object, features: tuple[str, ...] | None) -> FeatureRanges | None:
    """Return ranges in the order of the features, or refuse them; None if there are none.

    Examples
    --------
    >>> check_feature_range({"income": [0, 1e6, "clip"], "age": (0, 120)}, ("age", "income"))
    {'age': (0.0, 120.0), 'income': (0.0, 1000000.0, 'clip')}
    >>> check_feature_range({"aeg": (0, 120)}, ("age", "income"))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: feature_range has 'aeg', which is not a feature; did you mean 'age'?
    """
    if ranges is None or (isinstance(ranges, FeatureRanges) and ranges.features == features):
        return ranges
    if not isinstance(ranges, Mapping):
        raise InvalidTypeError(
            f"feature_range is {reprlib.repr(ranges)}; give ranges by feature name, such as {{'age': (0, 120)}}"
        )
    if not ranges:
        return None
    if features is None:
        raise InvalidValueError(
            f"feature_range is {reprlib.repr(ranges)}, but features have no names; give features=[...] too"
        )
    for name in ranges:
        if name not in features:
            hint = choices(str(name), features)
            raise InvalidValueError(f"feature_range has {name!r}, which is not a feature; {hint}")
    return FeatureRanges({name: _range(name, ranges[name]) for name in features if name in ranges}, features)


def _range(name: str, value: object) -> FeatureRange:
    try:
        if isinstance(value, str | bytes | Mapping):
            raise TypeError
        first, second, *word = cast("Iterable[Any]", value)
        if isinstance(first, str) or isinstance(second, str) or word not in ([], ["refuse"], ["clip"]):
            raise TypeError
        low, high = float(first), float(second)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValueError(f"feature_range[{name!r}] is {reprlib.repr(value)}; {FIX}") from None
    if not -LARGEST <= low < high <= LARGEST:
        raise InvalidValueError(f"feature_range[{name!r}] is {reprlib.repr(value)}; {FIX}")
    return (low, high, "clip") if word == ["clip"] else (low, high)
