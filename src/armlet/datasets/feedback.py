"""Decisions that somebody really made, and what came of them: one reward a row, and the chance of the arm."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armlet.types import Arm, Float64, Int64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feedback:
    """Rows of context, arm, reward and propensity. `armlet.log.from_dataset` makes a log of them.

    Examples
    --------
    >>> some = Feedback(name="ads", X=np.ones((2, 1)), arms=np.array([1, 0]), rewards=np.array([0.0, 1.0]),
    ...                 propensities=np.array([0.5, 0.5]), labels=("a", "b"), features=("one",))
    >>> len(some), some.n_arms, some.dim, some.as_obp()["action"].tolist()
    (2, 2, 1, [1, 0])
    """

    name: str
    X: Float64  # (n, d)
    arms: Int64  # (n,): the index of the arm that was played
    rewards: Float64
    propensities: Float64  # the chance that the arm of the row had, given its context
    labels: tuple[Arm, ...]
    features: tuple[str, ...]
    slots: Int64 | None = None  # where on the page, from 1; None if there is one place only
    at: Int64 | None = None  # microseconds since 1970

    @property
    def n_arms(self) -> int:
        """How many arms there are, K."""
        return len(self.labels)

    @property
    def dim(self) -> int:
        """How many numbers a context has, d."""
        return len(self.features)

    def __len__(self) -> int:
        return len(self.arms)

    def as_obp(self) -> dict[str, Any]:
        """Give the rows as the Open Bandit Pipeline calls them; `armlet.log.from_obp` reads that too."""
        position = None if self.slots is None else self.slots - 1
        counts = {"n_rounds": len(self), "n_actions": self.n_arms}
        columns = {"context": self.X, "action": self.arms, "reward": self.rewards, "pscore": self.propensities}
        return {**counts, **columns, "position": position}


def columns_of(text: str) -> dict[str, list[str]]:
    """Read comma-separated text with a head, column by column.

    Examples
    --------
    >>> columns_of("age,arm" + chr(10) + "31,a" + chr(10) + "44,b" + chr(10))
    {'age': ['31', '44'], 'arm': ['a', 'b']}
    """
    head, *rows = csv.reader(io.StringIO(text))
    return dict(zip(head, map(list, zip(*rows, strict=True)), strict=True))


def numbers(column: Sequence[str]) -> Float64:
    """Read a column of numbers."""
    return np.array(column, dtype=np.float64)
