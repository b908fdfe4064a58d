"""Estimators, read off a Gram matrix: each is a value and a row's influence on it, linear in the row's features.

Here w = pi/e is the weight of a row, D what the reward model says of the target, q what it says of the arm played, both
without the row itself, and psi = D + w (r - q).

| word | value | influence of a row |
|---|---|---|
| ips | S wr / n | (wr - V) / n |
| snips | S wr / S w | (wr - V w) / S w |
| dm | S D / n | none: its error is bias, which no row knows of |
| dr | S psi / n | (psi - V) / n |
| sndr | S D / n + S w(r-q) / S w | (D - mean D) / n + (w(r-q) - c w) / S w |
| switch, shrunk | S D / n + S w'(r-q) / n with smaller weights w' | none, for the same reason |
| replay | S vr / S v over explored rows, v = pi/c | (vr - V v) / S v |
| explored | S psi over explored rows with v for w, / their number | (x psi - V x) / S x |
| weighted | S h psi / S h | (h psi - V h) / S h |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from armlet.reference.evaluate import PLACE
from armlet.types import Float64

Estimator: TypeAlias = Literal["ips", "snips", "dm", "dr", "sndr", "switch", "shrunk", "replay", "explored", "weighted"]
"""Words for estimators."""


@dataclass(frozen=True, slots=True)
class Estimated:
    """A value, what each feature of a row adds to its error, and how many rows of equal weight would tell as much."""

    value: float
    influence: Float64 | None  # (13,): None if there is no honest error
    ess: float
    rows: float  # that say anything

    def variance(self, own: Float64) -> float:
        """Give the square of its standard error."""
        if self.influence is None or self.rows < 2:
            return math.nan
        return max(0.0, float(self.influence @ own @ self.influence)) * self.rows / (self.rows - 1.0)

    def covariance(self, other: Estimated, paired: Float64) -> float:
        """Give that with another value, from the sums F' B over the same rows."""
        if self.influence is None or other.influence is None or min(self.rows, other.rows) < 2:
            return math.nan
        free = self.rows / (self.rows - 1.0) * other.rows / (other.rows - 1.0)
        return float(self.influence @ paired @ other.influence) * math.sqrt(free)


def estimate(word: Estimator, own: Float64) -> Estimated:
    """Give an estimate from the Gram matrix of a target.

    Examples
    --------
    >>> from armlet.reference.evaluate import gram
    >>> F = np.zeros((2, 13))
    >>> F[:, 0], F[:, 1], F[:, 2] = 1.0, [2.0, 0.0], [1.0, 0.0]
    >>> estimate("ips", gram(F, F)).value, estimate("snips", gram(F, F)).value
    (0.5, 0.5)
    """
    if own[0, 0] == 0:
        return Estimated(math.nan, None, 0.0, 0.0)
    return _READ[word](own)


def _ratio(own: Float64, top: str, bottom: str, ess: float | None = None) -> Estimated:
    sums = own[0]
    total = float(sums[PLACE[bottom]])
    if total == 0.0:
        return Estimated(math.nan, None, 0.0, 0.0)
    value = float(sums[PLACE[top]]) / total
    influence = np.zeros(len(sums))
    influence[PLACE[top]], influence[PLACE[bottom]] = 1.0 / total, -value / total
    squares = float(own[PLACE[bottom], PLACE[bottom]])
    equal = total * total / squares if ess is None else ess
    return Estimated(value, influence, equal, float(sums[0]))


def _kish(own: Float64, weight: str = "w") -> float:
    squares = float(own[PLACE[weight], PLACE[weight]])
    return float(own[0, PLACE[weight]]) ** 2 / squares if squares > 0 else 0.0


def _mean(own: Float64, features: tuple[str, ...], *, honest: bool) -> Estimated:
    n = float(own[0, 0])
    value = float(sum(own[0, PLACE[name]] for name in features)) / n
    influence = np.zeros(len(own))
    for name in features:
        influence[PLACE[name]] = 1.0 / n
    influence[0] = -value / n
    return Estimated(value, influence if honest else None, _kish(own), n)


def _sndr(own: Float64) -> Estimated:
    off = _ratio(own, "wq", "w")
    model = _mean(own, ("direct",), honest=True)
    if off.influence is None or model.influence is None:
        return off
    return Estimated(model.value + off.value, model.influence + off.influence, _kish(own), model.rows)


def _explored(own: Float64) -> Estimated:
    found = _ratio(own, "xpsi", "x", _kish(own, "v"))
    return Estimated(found.value, found.influence, found.ess, float(own[0, PLACE["x"]]))


def _replay(own: Float64) -> Estimated:
    found = _ratio(own, "vr", "v")
    return Estimated(found.value, found.influence, found.ess, float(own[0, PLACE["x"]]))


_READ: Final[dict[str, Callable[[Float64], Estimated]]] = {
    "ips": lambda own: _mean(own, ("wr",), honest=True),
    "snips": lambda own: _ratio(own, "wr", "w"),
    "dm": lambda own: _mean(own, ("direct",), honest=False),
    "dr": lambda own: _mean(own, ("direct", "wq"), honest=True),
    "sndr": _sndr,
    "switch": lambda own: _mean(own, ("switch",), honest=False),
    "shrunk": lambda own: _mean(own, ("shrunk",), honest=False),
    "replay": _replay,
    "explored": _explored,
    "weighted": lambda own: _ratio(own, "hpsi", "h", float(own[0, PLACE["h"]])),
}
ESTIMATORS: Final[tuple[Estimator, ...]] = get_args(Estimator)
