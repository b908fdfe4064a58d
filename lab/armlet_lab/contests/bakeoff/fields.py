"""What was played on every table: how far from the best each contender was, and who beats whom over all tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.inference.intervals import Estimate, bootstrap, mean_of_runs
from armlet.parallel.seeds import Seeds
from armlet.types import Float64
from armlet_lab.contests.bakeoff import vowpal
from armlet_lab.contests.bakeoff.comparing import Runs, Test, tally

SINGLE: Final = "VW, best setting of all in hindsight"
PER_TABLE: Final = "VW, best setting of each table in hindsight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A table, in numbers."""

    name: str
    n: int
    played: int  # rows, in each shuffle
    n_arms: int

    @property
    def uniform(self) -> float:
        """The share of mistakes of uniform play."""
        return 1 - 1 / self.n_arms


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """All that was played on one table."""

    ground: Ground
    runs: Mapping[str, Runs]

    @property
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
    single = min(theirs, key=lambda name: np.mean([field.norm(name) for field in fields]))
    out = []
    for field in fields:
        each = min(theirs, key=lambda name: field.runs[name].error)
        out.append(Field(field.ground, {**field.runs, SINGLE: field.runs[single], PER_TABLE: field.runs[each]}))
    return out


def norms(fields: Sequence[Field], name: str) -> Float64:
    """Give the norm of a contender on every table."""
    return np.array([field.norm(name) for field in fields])


def tallied(fields: Sequence[Field], name: str, other: str, test: Test) -> tuple[int, int]:
    """Count the tables that one wins from another, and loses."""
    return tally([field.runs[name] for field in fields], [field.runs[other] for field in fields], test)


def mean_norm(fields: Sequence[Field], name: str, seeds: Seeds) -> Estimate:
    """Give the mean norm, and its interval over tables: they are what is independent here."""
    found = norms(fields, name)
    if len(found) < 2:
        return exact(float(found.mean()))
    return bootstrap(mean_of_runs, found, rng=seeds.rng("tables drawn again", name))


def exact(value: float) -> Estimate:
    """Give a number that nothing is uncertain about."""
    return Estimate(value, value, value)
