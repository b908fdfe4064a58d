"""Mirrors kernel/state/fading/: sums of rows that fade, with everything in the open.

A row counts half as much with every half-life since its decision. Sums are as of the whole half-life that began last,
in which a row of now weighs from 1 to 2: bringing them to a later one divides them by a power of two, so their digits
do not depend on when, or how often, that was done, and rows of any order add up. To look at them as of now multiplies
them by what is left of a row of then, at a clock of 64 ticks to a half-life; the ridge stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from armlet.reference.elementary import exp
from armlet.reference.linear import BEYOND_ANY, solve
from armlet.reference.schedule import Reference, set_multiples
from armlet.types import Float64

TICKS: Final = 64
"""To a half-life."""
FOREVER: Final = 200
"""Half-lives, after which nothing is left."""
LN2: Final = 0.6931471805599453


def power(part: float, whole: int) -> float:
    """Return 2^(part + whole), |part| < 1; 0 if that is next to nothing.

    Examples
    --------
    >>> power(0.5, -1) == power(0.5, 0) / 2, power(0.0, 3), power(0.0, -201)
    (True, 8.0, 0.0)
    """
    return 0.0 if whole < -FOREVER else math.ldexp(exp(part * LN2), min(whole, FOREVER))


def weight(time: float, base: int) -> float:
    """Return what a row of a time, in half-lives, weighs in sums as of a whole half-life.

    Examples
    --------
    >>> weight(7.0, 7), weight(5.0, 7)
    (1.0, 0.25)
    """
    return power(time - math.floor(time), math.floor(time) - base)


def fade(now: int, base: int) -> float:
    """Return what sums as of a whole half-life are multiplied by at a tick.

    Examples
    --------
    >>> fade(7 * 64, 7), fade(9 * 64, 7)
    (1.0, 0.25)
    """
    passed = min(now - base * TICKS, FOREVER * TICKS)
    return power(-(passed % TICKS) / TICKS, -(passed // TICKS))


@dataclass(slots=True)
class FadingReference(Reference):
    """Sums of every step that fade, and the estimates and weighted widths that D-LinUCB looks at.

    Examples
    --------
    >>> state = FadingReference(1, 1, p=0.0, seed=1, half_life=10.0)
    >>> state.add(0, np.array([1.0]), 3.0, t=10)
    >>> state.add(0, np.array([1.0]), 5.0, t=20)
    >>> state.as_of(30)
    >>> float(state.rows[0])  # a quarter and a half
    0.75
    """

    half_life: float = 1.0  # steps
    tick: int = 0  # of the latest decision that was learned
    now: int = 0  # the tick as of which all is looked at
    A2: Float64 = field(init=False)  # (K, D, D): A with squared weights

    def __post_init__(self) -> None:
        Reference.__post_init__(self)
        self.A2 = np.zeros_like(self.A)

    @property
    def fade(self) -> float:
        """What sums are multiplied by where they are looked at."""
        return fade(self.now, self.tick // TICKS)

    @property
    def rows(self) -> Float64:
        """(K,): how many rows are left."""
        return self.fade * self.n

    def as_of(self, t: int) -> None:
        """Look at everything as of a step, or as of the clock if that is later."""
        self.now = max(math.floor(t / self.half_life * TICKS), self.tick)

    def advance(self, tick: int) -> None:
        """Bring the sums to a later clock."""
        if tick <= self.tick:
            return
        halvings = tick // TICKS - self.tick // TICKS
        self.tick, self.now = tick, max(self.now, tick)
        factor = math.ldexp(1.0, -min(halvings, 2 * FOREVER))
        for sums in (self.n, self.A, self.b, self.sum_r, self.sum_rr):
            sums *= factor
        self.A2 *= factor * factor
        if self.free is not None:
            self.free.left *= factor

    def add(self, arm: int, x: Float64, reward: float, weight: float = 1.0, t: int = 0) -> None:
        """Record the row of a decision of step t."""
        time = t / self.half_life
        self.advance(math.floor(time * TICKS))
        Reference.add(self, arm, x, reward, weight * _weight(time, self.tick // TICKS))

    def _add_outer(self, arm: int, x: Float64, weight: float) -> None:
        Reference._add_outer(self, arm, x, weight)
        self.A2[arm] += weight * abs(weight) * np.outer(x, x)

    def _squared_weights(self) -> Mapping[int, float]:
        """Return the sum of squared weights; as given, where no column counts rows, from the largest column."""
        weights = {}
        for arm, n in enumerate(self.n.tolist()):
            columns, squares = np.diag(self.A[arm]), np.diag(self.A2[arm])
            largest = 0 if self.free is not None else int(columns.argmax())
            weights[arm] = float(n * (squares[largest] / columns[largest])) if columns[largest] > 0.0 else 0.0
        return weights

    def _empty(self, arm: int) -> None:
        Reference._empty(self, arm)
        self.A2[arm] = 0.0

    def _set_multiples(self, constants: Mapping[int, float]) -> None:
        Reference._set_multiples(self, constants)
        set_multiples(self.A2, constants)

    def _system(self, arm: int) -> tuple[Float64, Float64]:
        A, b = (self.A[arm], self.b[arm]) if self.free is None else self.free.system(self.A[arm], self.b[arm])
        A, b = self.fade * A, self.fade * b
        shift = self.ridge.shift(float(self.rows[arm]) if self.free is None else max(float(self.rows[arm]), 1.0))
        if self.free is not None:
            A[0, 0] += 1.0 - shift
        return A + shift * np.eye(self.size), b

    def spread(self, arm: int) -> Float64:
        """Return V^-1 (A2 + penalties) V^-1."""
        V = self._system(arm)[0]
        A2 = self.A2[arm] if self.free is None else self.free.system(self.A2[arm], self.b[arm])[0]
        shift = self.ridge.shift(float(self.rows[arm]) if self.free is None else max(float(self.rows[arm]), 1.0))
        V2 = self.fade * self.fade * A2 + shift * np.eye(self.size)
        if self.free is not None:
            V2[0, 0] += 1.0 - shift
        half = np.array([solve(V, column) for column in V2.T])  # rows are V^-1 of columns
        return np.array([solve(V, column) for column in half.T])

    def widths(self, x: Float64) -> Float64:
        """Return sqrt(x' V^-1 (A2 + penalties) V^-1 x) of every arm."""
        return np.array([_root(self.spread(arm), self.view(x)) for arm in range(self.n_arms)])


_weight = weight


def _root(M: Float64, x: Float64) -> float:
    """Return sqrt(x'Mx), summed in the order of the kernel."""
    square = 0.0
    for k in range(len(x)):
        below = 0.0
        for i in range(k + 1, len(x)):
            below += M[k, i] * x[i]
        square += x[k] * (M[k, k] * x[k] + 2.0 * below)
    square = max(square, 0.0)
    return math.sqrt(square) if square <= BEYOND_ANY * BEYOND_ANY else BEYOND_ANY
