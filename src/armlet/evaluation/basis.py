"""What estimators need of a row beside the target: chances as they were when the arm was drawn, in one place.

A turn of a round-robin is logged with propensity 1, which is true and useless: had the turn fallen otherwise, another
arm would have been played. Where contexts do not know the step, it is a draw of one of the m eligible arms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from armlet.evaluation.rows import Rows
from armlet.types import Bool, Float64


@dataclass(frozen=True, slots=True)
class Basis:
    """Chances of rows that have a reward, (n,) each."""

    chance: Float64  # of the arm, over all coins
    given: Float64  # the same given that the step explores; 1 where that is not known
    rate: Float64  # of exploring; NaN where it is not known
    explored: Bool  # coins or a turn chose
    n_eligible: Float64  # m
    learned: Bool  # the reward model has the row
    known: Bool  # rate and chance given exploring are known
    step: Float64
    whole: bool  # every arm of the log was eligible in every row

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Read them off rows that all have a reward."""
        step, whole = rows.t.astype(np.float64), bool(rows.eligible.all())
        m = np.full(len(rows), float(rows.eligible.shape[1])) if whole else rows.eligible.sum(axis=1).astype(np.float64)
        turns, said = rows.turn.any(), rows.explored >= 0
        chance = np.where(rows.turn, 1.0 / m, rows.propensity) if turns else rows.propensity
        if not said.any():  # nothing but propensities is known
            return cls(chance, np.ones(len(m)), rows.rate, said, m, ~said, said, step, whole)
        explored = rows.explored == 1
        given = np.where(rows.turn, 1.0 / m, rows.given_exploring) if turns else rows.given_exploring
        rate = np.where(rows.turn, 1.0, rows.rate) if turns else rows.rate
        known = said & ~np.isnan(rate) & ~np.isnan(given)
        return cls(
            chance=chance,
            given=np.where(np.isnan(given), 1.0, given),
            rate=rate,
            explored=explored & known,
            n_eligible=m,
            learned=np.where(known, explored, ~said),
            known=known,
            step=step,
            whole=whole,
        )

    def drawn(self) -> tuple[Bool, Float64]:
        """Give the rows whose arm was drawn whatever the context was, or all, and the chances of the arms drawn."""
        if self.known.all():
            return self.explored, self.given
        return np.ones(len(self.chance), dtype=np.bool_), self.chance
