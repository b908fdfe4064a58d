"""A change of features: which of them stay, go and come, by name, and what a row from before is afterwards.

A bandit applies it to its sums (`armlet.policies.carrying`); a log, a store or an evaluation carries rows that were
written before. O(d) a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.columns import LARGEST
from armlet.inputs.contexts import feature_names
from armlet.types import Float64

if TYPE_CHECKING:
    from armlet.inputs.encoder import Encoder

Fill = Mapping[str, float]
"""What rows from before have in features that are new; 0 in those that it leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureChange:
    """From the features of before to those of now.

    Examples
    --------
    >>> change = FeatureChange.between(["age", "height"], ["height", "weight"], {"weight": 70.0})
    >>> change.carry([31.0, 1.7])
    array([ 1.7, 70. ])
    >>> change.dropped, change.added
    (('age',), {'weight': 70.0})
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    sources: tuple[int, ...]  # of every feature of now: its place before; -1 if it is new
    fills: tuple[float, ...]  # of every feature of now: what rows from before have there, if it is new

    @classmethod
    def between(
        cls, before: Sequence[str] | None, after: Iterable[str], fill: Fill | None = None, *, dim: int | None = None
    ) -> FeatureChange:
        """Match features by name.

        Parameters
        ----------
        before
            The names so far. None if there are none: then `after` must name all `dim` of them, in their order.
        after
            The names from now on.
        fill
            What rows from before have in features that are new.
        dim
            How many features there were, if they had no names.
        """
        names = cast("tuple[str, ...]", feature_names(after, None)[0])
        old = _named(names, dim) if before is None else tuple(before)
        added = _checked_fill({} if fill is None else fill, [name for name in names if name not in old])
        places = {name: place for place, name in enumerate(old)}
        return cls(
            before=old,
            after=names,
            sources=tuple(places.get(name, -1) for name in names),
            fills=tuple(added.get(name, 0.0) for name in names),
        )

    @property
    def dim(self) -> int:
        """How many features there are now."""
        return len(self.after)

    @property
    def added(self) -> dict[str, float]:
        """The features that are new, and what rows from before have there."""
        features = zip(self.after, self.sources, self.fills, strict=True)
        return {name: value for name, source, value in features if source < 0}

    @property
    def dropped(self) -> tuple[str, ...]:
        """The features that are no longer there."""
        return tuple(name for name in self.before if name not in self.after)

    def carry(self, x: npt.ArrayLike) -> Float64:
        """Return a row from before, (d,), or rows, (n, d), as they are now."""
        rows: Float64 = np.asarray(x, dtype=np.float64)
        if not rows.ndim or rows.shape[-1] != len(self.before):
            raise InvalidValueError(
                f"x has shape {rows.shape}; give rows of the {len(self.before)} features that there were before"
            )
        is_new = np.array(self.sources) < 0
        carried = rows[..., np.where(is_new, 0, self.sources)]
        return np.ascontiguousarray(np.where(is_new, np.array(self.fills), carried))


def _named(names: tuple[str, ...], dim: int | None) -> tuple[str, ...]:
    """Return the names that the features of before get, which had none: those of now, if they are as many."""
    if len(names) != dim:
        raise InvalidValueError(
            f"features has {len(names)} names, but the bandit has {dim} features without names, so nobody can tell "
            f"which of them stay; first name all {dim} in their order, then replace them"
        )
    return names


def _checked_fill(fill: Fill, added: Sequence[str]) -> dict[str, float]:
    if not isinstance(fill, Mapping):
        raise InvalidTypeError(f"fill is {fill!r}; give a mapping from new features to what rows from before have")
    for name, value in fill.items():
        if name not in added:
            names = ", ".join(map(repr, added)) or "there is none"
            raise InvalidValueError(f"fill has {name!r}, which is not a new feature; new are: {names}")
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not is_number or not abs(value) <= LARGEST:
            raise InvalidValueError(f"fill[{name!r}] is {value!r}; give a finite number of at most {LARGEST:g} in size")
    return {name: float(value) for name, value in fill.items()}


def check_same_buckets(before: Encoder | None, after: Encoder) -> None:
    """Refuse an encoder whose numbers have the names of others: those of a column that is hashed to other buckets.

    Examples
    --------
    >>> from armlet.inputs.encoder import Encoder
    >>> one, other = (Encoder(hashed={"city": n}).fit({"city": ["Oslo"]}) for n in (4, 8))
    >>> check_same_buckets(one, other)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: encoder hashes 'city' to 8 buckets, but the bandit has 4, in which texts lie ...
    """
    old = {} if before is None else _buckets(before)
    for column, n in _buckets(after).items():
        if old.get(column, n) != n:
            raise InvalidValueError(
                f"encoder hashes {column!r} to {n} buckets, but the bandit has {old[column]}, in which texts lie "
                f"elsewhere; keep {old[column]}, or refit a new bandit from the log"
            )


def _buckets(encoder: Encoder) -> dict[str, int]:
    columns: list[dict[str, Any]] = encoder.to_dict()["columns"]
    return {each["column"]: each["n"] for each in columns if each["kind"] == "buckets"}
