"""Several outcomes of every decision: how they weigh, which of them are known, and their ranges.

The worth of a row is the weighted sum of its outcomes, more is better. What is known of every arm, as a list price is,
is given and not learned. Weights may be others at any decision, since estimates are linear in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, cast

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs import columns
from armlet.inputs.columns import LARGEST
from armlet.inputs.settings import Range, ends, number
from armlet.types import Arm, Float64

MOST: Final = 64  # outcomes
ADVICE: Final = "give a weight for every outcome, such as {'quality': 1.0, 'cost': -40.0}"


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What is observed of every decision.

    Parameters
    ----------
    weights
        By name, in order: what one unit of it is worth.
    known
        By name of an outcome that is known: its value for every arm.
    ranges
        By name of an outcome that is learned: (lowest, highest); values outside are refused.

    Examples
    --------
    >>> outcomes = Outcomes({"quality": 1, "cost": -40}, known={"cost": {"small": 0.125, "large": 0.5}})
    >>> outcomes.learned, outcomes.worth({"quality": 21.0}, "large")
    (('quality',), 1.0)
    """

    weights: Mapping[str, float]
    known: Mapping[str, Mapping[Arm, float]] = field(default_factory=dict)
    ranges: Mapping[str, Range] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _weights(self.weights))
        object.__setattr__(self, "known", _prices(self.known, self.weights))
        if not self.learned:
            raise InvalidValueError(f"known has {list(self.known)}, which is every outcome; leave one to be learned")
        object.__setattr__(self, "ranges", _ranges(self.ranges, self.weights, self.known))

    @property
    def learned(self) -> tuple[str, ...]:
        """The names of those that are learned, in order."""
        return tuple(name for name in self.weights if name not in self.known)

    @property
    def engine(self) -> tuple[Any, ...]:
        """What the engine is made with."""
        prices = {name: dict(one) for name, one in self.known.items()}  # its own, which nobody else can change
        return list(self.weights), list(self.weights.values()), prices, dict(self.ranges)

    def with_weights(self, weights: Mapping[str, float]) -> Self:
        """Return the same outcomes with other weights; those left out stay."""
        if isinstance(weights, Mapping):
            _check_names("outcomes", weights, self.weights)
            weights = {**self.weights, **weights}
        return replace(self, weights=weights)

    def with_known(self, known: Mapping[str, Mapping[Arm, float]]) -> Self:
        """Return the same outcomes with other prices."""
        changed = replace(self, known=known)
        if set(changed.known) != set(self.known):
            raise InvalidValueError(
                f"known has {list(changed.known)}, but what is known is {list(self.known)}; give other values of "
                "these, or start a new bandit"
            )
        return changed

    def check_arms(self, arms: Iterable[Arm]) -> None:
        """Refuse arms whose value of a known outcome is missing."""
        for name, prices in self.known.items():
            for arm in arms:
                if arm not in prices:
                    raise InvalidValueError(f"known has no {name} of arm {arm!r}; give it for every arm")

    def worth(self, observed: Mapping[str, float], arm: Arm) -> float:
        """Return what a row is worth by the usual weights; nan if an outcome is missing."""
        values = {**observed, **{name: prices[arm] for name, prices in self.known.items()}}
        return math.fsum(weight * values.get(name, math.nan) for name, weight in self.weights.items())

    def reward_range(self) -> Range | None:
        """Return the lowest and the highest worth, if every outcome has a range."""
        ends_of = {**self.ranges, **{name: _extremes(prices) for name, prices in self.known.items()}}
        if set(ends_of) != set(self.weights):
            return None
        both = [sorted(weight * end for end in ends_of[name]) for name, weight in self.weights.items()]
        low, high = (math.fsum(pair[i] for pair in both) for i in (0, 1))
        return (low, high) if low < high else None

    def matrix(
        self,
        given: object,
        n_rows: int,
        name: str = "rewards",
        read: Callable[[Any, int, str], Float64] = columns.rewards,
    ) -> Float64:
        """Return columns of the learned outcomes, by name, as (n, m); `read` reads one of them."""
        if not isinstance(given, Mapping):
            raise InvalidTypeError(
                f"{name} is {type(given).__name__}; give a column for each outcome, such as "
                f"{{{self.learned[0]!r}: [...]}}"
            )
        _check_names(name, given, self.learned)
        if missing := [one for one in self.learned if one not in given]:
            raise InvalidValueError(f"{name} has no {missing[0]!r}; give a column for each of {list(self.learned)}")
        values = [read(given[one], n_rows, f"{name}[{one!r}]") for one in self.learned]
        return np.ascontiguousarray(np.column_stack(values))

    def worths(self, observed: Mapping[str, npt.NDArray[np.float64]], arms: Iterable[Arm]) -> Float64:
        """Return what rows are worth by the usual weights, from a column for each learned outcome and their arms."""
        played = list(arms)
        total = np.zeros(len(played))
        for name, weight in self.weights.items():
            values = np.array([self.known[name][arm] for arm in played]) if name in self.known else observed[name]
            total += weight * values
        return total

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types; in pairs, since the order counts and labels may be numbers."""
        fields: dict[str, Any] = {"weights": [[name, weight] for name, weight in self.weights.items()]}
        if self.known:
            fields["known"] = {name: [[arm, price] for arm, price in one.items()] for name, one in self.known.items()}
        if self.ranges:
            fields["ranges"] = {name: list(pair) for name, pair in self.ranges.items()}
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave."""
        known = {name: dict(pairs) for name, pairs in fields.get("known", {}).items()}
        return cls(dict(fields["weights"]), known, fields.get("ranges", {}))


def read_outcomes(
    outcomes: Mapping[str, float] | None,
    known: Mapping[str, Mapping[Arm, float]] | None,
    reward_range: object,
) -> Outcomes | None:
    """Return what a bandit is given, or None if it has one reward.

    Examples
    --------
    >>> read_outcomes(None, {"cost": {"a": 1.0}}, None)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: known is {'cost': {'a': 1.0}}, but there are no outcomes; give outcomes too, or ...
    """
    if outcomes is None:
        if known is not None:
            raise InvalidValueError(
                f"known is {known!r}, but there are no outcomes; give outcomes too, or leave it out"
            )
        return None
    if reward_range is not None and not isinstance(reward_range, Mapping):
        raise InvalidValueError(
            f"reward_range is {reward_range!r}; with outcomes give one for each by name, such as {{'quality': (0, 1)}}"
        )
    return Outcomes(outcomes, {} if known is None else known, {} if reward_range is None else reward_range)


def _weight(name: str, value: object) -> float:
    return float(cast(float, number(-LARGEST, LARGEST, fix="give a finite number")(name, value)))


def _weights(outcomes: object) -> dict[str, float]:
    if not isinstance(outcomes, Mapping) or not 1 <= len(outcomes) <= MOST:
        raise InvalidValueError(f"outcomes is {outcomes!r}; {ADVICE}")
    for name in outcomes:
        if not isinstance(name, str) or not name:
            raise InvalidValueError(f"outcomes has {name!r}; outcomes have names, {ADVICE}")
        columns.check_utf8("the name of an outcome", name)
    weights = {str.__str__(name): _weight(f"outcomes[{name!r}]", value) for name, value in outcomes.items()}
    if not any(weights.values()):
        raise InvalidValueError(f"outcomes is {outcomes!r}, which weighs nothing; {ADVICE}")
    return weights


def _prices(known: object, weights: Mapping[str, float]) -> dict[str, dict[Arm, float]]:
    advice = "give the value for every arm, such as {'cost': {'small': 0.001, 'large': 0.03}}"
    if not isinstance(known, Mapping):
        raise InvalidTypeError(f"known is {known!r}; {advice}")
    _check_names("known", known, weights)
    out: dict[str, dict[Arm, float]] = {}
    for name, prices in known.items():
        if not isinstance(prices, Mapping) or not prices:
            raise InvalidTypeError(f"known[{name!r}] is {prices!r}; {advice}")
        labels = [columns.plain_label(columns.check_label(arm)) for arm in prices]
        values = [_weight(f"known[{name!r}][{arm!r}]", price) for arm, price in prices.items()]
        out[name] = dict(zip(labels, values, strict=True))
    return out


def _ranges(ranges: Mapping[str, Any], weights: Mapping[str, float], known: Mapping[str, object]) -> dict[str, Range]:
    _check_names("reward_range", ranges, weights)
    for name in ranges:
        if name in known:
            raise InvalidValueError(f"reward_range has {name!r}, which is known; leave it out")
    return {name: ends(f"reward_range[{name!r}]", pair) for name, pair in ranges.items()}


def _check_names(argument: str, keys: Iterable[object], names: Iterable[object]) -> None:
    allowed = list(names)
    for name in keys:
        if name not in allowed:
            raise InvalidValueError(f"{argument} has {name!r}, which is no outcome; the outcomes are {allowed}")


def _extremes(prices: Mapping[Arm, float]) -> Range:
    return min(prices.values()), max(prices.values())
