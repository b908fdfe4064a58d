"""Who is better on tables: one paired test over orders, corrected for the number of tables.

Rows within an order are dependent: a run that was led astray errs in many of them. So an order gives one number, the
difference of two shares of mistakes. Orders of a table are drawn independently, so Student's t over them keeps its
level regardless of what happens within an order, as far as the shape of the differences allows; a test simulates that.
It speaks of other orders of this table, not of other tables. A spread below half a mistake is taken for half a mistake:
few orders may agree by chance. (Flipping signs would assume less, but five orders have no p-value below 1/16.)

Over tables, Benjamini and Hochberg's rule: of the tables that are called won or lost at most 5 % are called wrongly, on
average, a wrong sign counted as wrong. It needs independent p-values, and they are: each table has orders of its own.
Holm's rule guards against a single wrong call among all tables; no conclusion here hangs on a single table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from armlet.inference.intervals import t_tail
from armlet.types import Float64, Int64
from armlet_lab.contests import vowpal

LEVEL: Final = 0.05
SINGLE: Final = "VW, best setting of all in hindsight"
PER_TABLE: Final = "VW, best setting of each table in hindsight"


@dataclass(frozen=True, eq=False)
class Runs:
    """What one contender did on one table."""

    mistakes: tuple[Float64, ...]  # for every order, (n,): 1 where it was wrong, in the order of play

    @cached_property
    def errors(self) -> Float64:
        """The share of mistakes in every order."""
        return np.array([each.mean() for each in self.mistakes])

    @property
    def error(self) -> float:
        """The share of mistakes."""
        return float(self.errors.mean())

    def first(self, rows: int) -> Runs:
        """Return the same runs up to so many rows."""
        return Runs(tuple(each[:rows] for each in self.mistakes))


def p_value(ours: Runs, theirs: Runs) -> float:
    """Return the two-sided p-value of the paired difference over orders; 1 for a single order.

    Examples
    --------
    >>> few, many = (Runs(tuple(np.repeat([1.0, 0.0], [n + i, 100 - n - i]) for i in range(5))) for n in (20, 40))
    >>> p_value(few, many) < 0.001, p_value(few, few)
    (True, 1.0)
    """
    differences = ours.errors - theirs.errors
    orders = len(differences)
    if orders < 2:
        return 1.0  # one run says nothing of the next
    spread = max(float(differences.std(ddof=1)), 0.5 / len(ours.mistakes[0]))
    return min(1.0, 2 * t_tail(abs(float(differences.mean())) / spread * math.sqrt(orders), orders - 1))


def called(p_values: Sequence[float]) -> list[bool]:
    """Return which of the p-values Benjamini and Hochberg's rule takes for differences.

    Examples
    --------
    >>> called([0.04, 0.001, 0.02, 0.9])
    [False, True, True, False]
    """
    ranked = sorted(p_values)
    bound = max((p for i, p in enumerate(ranked, start=1) if p <= LEVEL * i / len(ranked)), default=-1.0)
    return [p <= bound for p in p_values]


def winners(ours: Sequence[Runs], theirs: Sequence[Runs]) -> Int64:
    """Return for every table 1 if we are better, -1 if they are, 0 if the test cannot tell."""
    pairs = list(zip(ours, theirs, strict=True))
    better = np.array([np.sign(other.error - mine.error) for mine, other in pairs], np.int64)
    return better * np.array(called([p_value(*pair) for pair in pairs]), np.int64)


def extra_mistakes(ours: Runs, theirs: Runs) -> float:
    """Return how many mistakes more we made in an order, on average."""
    return (ours.error - theirs.error) * len(ours.mistakes[0])


class Ground(NamedTuple):
    """A table, in numbers."""

    name: str
    n: int
    played: int  # rows, in each shuffle
    n_arms: int
    place: int = 0  # among the tables of its kind

    @property
    def uniform(self) -> float:
        """The share of mistakes of uniform play."""
        return 1 - 1 / self.n_arms

    @property
    def chose(self) -> bool:
        """Whether constants of the default were chosen on this table, among others."""
        return self.place % 2 == 0


@dataclass(frozen=True, eq=False)
class Field:
    """All that was played on one table."""

    ground: Ground
    runs: Mapping[str, Runs]

    @cached_property
    def best(self) -> float:
        """The least share of mistakes of any contender or setting."""
        return min(each.error for each in self.runs.values())

    def norm(self, name: str) -> float:
        """Place a contender between the best, 0, and uniform play, 1; all are 0 where nobody beats it."""
        room = self.ground.uniform - self.best
        return (self.runs[name].error - self.best) / room if room > 0 else 0.0


def with_hindsight(fields: Sequence[Field]) -> list[Field]:
    """Add the one setting of Vowpal Wabbit that is best over all these tables, and the best of each."""
    theirs = [name for name in fields[0].runs if name.startswith("VW")]
    if len(theirs) <= len(vowpal.USUAL):
        return list(fields)
    single = best_of(fields, "VW")
    out = []
    for field in fields:
        each = min(theirs, key=lambda name: field.runs[name].error)
        out.append(Field(field.ground, {**field.runs, SINGLE: field.runs[single], PER_TABLE: field.runs[each]}))
    return out


def best_of(fields: Sequence[Field], maker: str) -> str:
    """Return the setting of a rival that has the least mean norm over these tables."""
    theirs = [name for name in fields[0].runs if name.startswith(maker) and name not in (SINGLE, PER_TABLE)]
    return min(theirs, key=lambda name: float(np.mean([field.norm(name) for field in fields])))
