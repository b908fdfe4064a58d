"""A log of what was tried before: contexts, arms, rewards and, where they are known, propensities.

A linear model for each arm needs no weighting by propensities: given the context, why an arm was played does not bias
its regression as long as the model holds. They are used to check just that: what each arm is worth by the model
against what it is worth by inverse propensity weighting, which trusts no model. O(N d^2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armlet.errors import ArgumentError, InvalidValueError
from armlet.inputs import columns
from armlet.inputs.arrow import read_columns
from armlet.inputs.columns import check_labels
from armlet.inputs.contexts import ContextReader
from armlet.types import Arm, ArrowTable, Contexts, Float64, Int64


class Pilot:
    """A log to learn the problem from.

    Parameters
    ----------
    X
        (N, d): the contexts, as the bandit will see them; it adds a constant by itself.
    arms, rewards
        What was played at each step, and what it paid.
    propensities
        The probability with which that arm was played; only checks need it.
    arm_names
        All the arms there will be; those in the log if left out.

    Examples
    --------
    >>> pilot = Pilot([[1, 0], [1, 1], [1, 0], [1, 1]], ["a", "b", "b", "a"], [0.1, 0.9, 0.3, 0.2])
    >>> pilot.n_rows, pilot.dim, pilot.arm_names
    (4, 2, ['a', 'b'])
    >>> Pilot([[1], [1]], ["a", "b"], [0.1, 0.9], arm_names=["a", "b", "c"])
    Traceback (most recent call last):
    armlet.errors.ArgumentError: the pilot never tried arm 'c', so nothing is known of it; play it ...
    """

    __slots__ = ("X", "arm_names", "played", "propensities", "rewards")

    def __init__(
        self,
        X: Contexts,
        arms: npt.ArrayLike,
        rewards: npt.ArrayLike,
        propensities: npt.ArrayLike | None = None,
        arm_names: Iterable[Arm] | None = None,
    ) -> None:
        shape = np.shape(cast(npt.ArrayLike, X))
        if len(shape) != 2 or 0 in shape:
            raise InvalidValueError(f"X has shape {shape}; give one row of numbers for each logged step, (N, d)")
        n = shape[0]
        self.X: Float64 = ContextReader(shape[1]).matrix(X)  # (N, d)
        labels = columns.labels(arms, n)
        self.rewards: Float64 = columns.rewards(rewards, n)  # (N,)
        self.arm_names: list[Arm] = _names(labels, arm_names)
        places = {arm: place for place, arm in enumerate(self.arm_names)}
        self.played: Int64 = np.array([places[arm] for arm in labels], dtype=np.int64)  # (N,)
        self.propensities: Float64 | None = None if propensities is None else _chances(propensities, n)

    @classmethod
    def from_table(
        cls,
        table: ArrowTable,
        *,
        features: Sequence[str],
        arm: str,
        reward: str,
        propensity: str | None = None,
        arm_names: Iterable[Arm] | None = None,
    ) -> Pilot:
        """Read a log from a table of pandas, polars or Arrow, which may have more columns than are named.

        Examples
        --------
        >>> import polars
        >>> log = polars.DataFrame({"age": [0.1, 0.2], "offer": ["a", "b"], "paid": [0, 1], "day": [1, 1]})
        >>> Pilot.from_table(log, features=["age"], arm="offer", reward="paid").arm_names
        ['a', 'b']
        """
        frame = cast(Any, table)
        numeric = [*features, reward, *([] if propensity is None else [propensity])]
        _check_columns(frame, (*numeric, arm))
        values = _numbers(frame.select(numeric) if hasattr(frame, "select") else frame[numeric])
        X = np.column_stack([values[name] for name in features])
        chances = None if propensity is None else values[propensity]
        return cls(X, frame[arm], values[reward], chances, arm_names)

    def with_constant(self) -> Pilot:
        """Give the same log with a constant 1 before the features, if no weights of them are one already.

        Examples
        --------
        >>> Pilot([[0.5], [0.2]], ["a", "b"], [0.1, 0.9]).with_constant().X.tolist()
        [[1.0, 0.5], [1.0, 0.2]]
        >>> flags = Pilot([[0, 1], [1, 0]], ["a", "b"], [0.1, 0.9])
        >>> flags.with_constant() is flags
        True
        """
        ones = np.ones(self.n_rows)
        weights = np.linalg.lstsq(self.X, ones, rcond=None)[0]
        if np.abs(self.X @ weights - ones).max() < 1e-6:
            return self
        return Pilot(np.column_stack([ones, self.X]), self._labels(), self.rewards, self.propensities, self.arm_names)

    def _labels(self) -> list[Arm]:
        return [self.arm_names[place] for place in self.played.tolist()]

    @property
    def n_rows(self) -> int:
        """The number of rows, n."""
        return len(self.rewards)

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return int(self.X.shape[1])

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return len(self.arm_names)


def _check_columns(frame: Any, wanted: Iterable[str]) -> None:
    present = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
    if missing := [repr(name) for name in wanted if name not in present]:
        raise InvalidValueError(f"the table has no column {', '.join(missing)}; its columns are {present}")


def _numbers(table: ArrowTable) -> dict[str, Float64]:
    read = read_columns(table)
    for name, column in read.items():
        if column.nulls.size > 0:
            raise InvalidValueError(
                f"row {column.nulls[0]}: {name!r} is missing (null or NaN); fill it in, or drop the row"
            )
    return {name: column.values for name, column in read.items()}


def _names(labels: list[Arm], given: Iterable[Arm] | None) -> list[Arm]:
    seen = set(labels)
    names = check_labels(sorted(seen, key=lambda arm: (isinstance(arm, str), arm)) if given is None else given)
    if unknown := sorted(map(repr, seen - set(names))):
        text = "arms has {unknown}, which {arm_names} lacks; name every arm that was played"
        raise ArgumentError(text, unknown=", ".join(unknown))
    if untried := [repr(arm) for arm in names if arm not in seen]:
        what, it = ("arm", "it") if len(untried) == 1 else ("arms", "them")
        raise ArgumentError(
            "the pilot never tried {what} {untried}, so nothing is known of {it}; play {it} at random for a while, "
            "or leave {it} out of {arm_names} and add {it} later",
            what=what,
            it=it,
            untried=", ".join(untried),
        )
    if len(names) < 2:
        raise InvalidValueError(
            f"the pilot has the one arm {names[0]!r}; there is nothing to choose, give at least two"
        )
    return names


def _chances(values: npt.ArrayLike, n: int) -> Float64:
    chances = columns.rewards(values, n, "propensities")
    wrong = np.flatnonzero((chances <= 0) | (chances > 1))
    if wrong.size:
        raise InvalidValueError(
            f"propensities[{wrong[0]}] is {chances[wrong[0]]}; give probabilities above 0 and up to 1"
        )
    return chances


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCheck:
    """What always playing one arm would earn a step, by the model and by inverse propensity weighting."""

    arm: Arm
    model: float
    weighted: float
    interval: tuple[float, float]  # of `weighted`; all arms' intervals hold together with probability 95 %

    @property
    def agrees(self) -> bool:
        """Whether the model's value lies in the interval."""
        return self.interval[0] <= self.model <= self.interval[1]


def check_values(pilot: Pilot, theta: Float64) -> tuple[ArmCheck, ...]:
    """Compare the model's value of each arm with the self-normalised inverse propensity estimate."""
    if pilot.propensities is None:
        return ()
    z = NormalDist().inv_cdf(1 - 0.025 / pilot.n_arms)
    checks = []
    for a, arm in enumerate(pilot.arm_names):
        weights = (pilot.played == a) / pilot.propensities
        value = float(weights @ pilot.rewards / weights.sum())
        error = float(np.sqrt(np.square(weights * (pilot.rewards - value)).sum()) / weights.sum())
        model = float((pilot.X @ theta[a]).mean())
        checks.append(ArmCheck(arm=arm, model=model, weighted=value, interval=(value - z * error, value + z * error)))
    return tuple(checks)
