"""Which rows of a log were drawn whatever the context was, and with which chance each is kept to make them uniform.

A log says so itself where its policy explores: `explored`, `exploration_propensity`, `min_exploration_probability`. One
of other origin shows it if every arm has one propensity throughout and these add up to 1, for then no context can have
moved them.
O(N K) time; memory holds one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.errors import LogError
from armlet.evaluation.rows import Blocks, Rows
from armlet.types import Arm, Bool, Float64

ROUNDED: Final = 1e-4  # propensities of other systems have a few digits


@dataclass(frozen=True, slots=True)
class Drawn:
    """How to find the rows that were drawn whatever the context, and to thin them until all arms are as likely."""

    by_arm: Float64 | None  # (K,): the propensity of every arm, where the log does not say which rows explored
    floor: float | None  # the chance that a row has in the end, where arms differ from row to row; None: as it comes

    def which(self, rows: Rows) -> Bool:
        """Say which rows can be used."""
        drawn = rows.rewarded & ~rows.turn
        return drawn if self.by_arm is not None else drawn & (rows.explored == 1)

    def chances(self, rows: Rows) -> Float64:
        """Give the chance with which each of these rows is kept: that of the rarest arm over that of its own."""
        if self.by_arm is not None:
            return np.asarray(self.by_arm.min() / self.by_arm[rows.arm])
        rarest = rows.smallest if self.floor is None else self.floor
        return np.asarray(np.minimum(rarest / rows.given_exploring, 1.0))


def drawn_rows(rows: Rows) -> tuple[Bool, Float64]:
    """Give which rows were drawn whatever the context was, and the chances of their arms.

    Where a log does not say what explored, every row counts, by its propensity. A turn of a round-robin was not drawn:
    what holds at any look must not lean on its coming round, as a sample of rows may (`Basis.drawn`).
    """
    if (rows.explored < 0).any():
        return np.ones(len(rows), dtype=np.bool_), rows.propensity
    used = (rows.explored == 1) & ~rows.turn & ~np.isnan(rows.given_exploring)
    return used, np.where(used, rows.given_exploring, 1.0)


def certain_rows(rows: Rows) -> Bool:
    """Give which rows of those that `drawn_rows` reads by their propensity could not have been otherwise.

    Examples
    --------
    >>> from armlet.evaluation.rows import rows_of
    >>> certain_rows(rows_of(np.ones((2, 1)), np.array([0, 1]), np.ones(2), np.array([1.0, 0.5])))
    array([ True, False])
    """
    if rows.propensity.max(initial=0.0) < 1.0 or not (rows.explored < 0).any():
        return np.zeros(len(rows), dtype=np.bool_)
    return np.asarray((rows.propensity >= 1.0) & ~rows.turn & (rows.eligible.sum(axis=1) > 1))


def find_drawn(blocks: Blocks) -> Drawn:
    """Read a log once to find how its arms were drawn; refuse one that does not show it, or whose contexts moved it.

    Examples
    --------
    >>> from armlet.evaluation.rows import open_rows
    >>> from armlet.log import from_obp
    >>> feedback = {"action": [1, 0, 1], "reward": [0, 1, 1], "context": [[1.0], [2.0], [3.0]]}
    >>> find_drawn(open_rows(from_obp(feedback | {"pscore": [0.75, 0.25, 0.75]}))).by_arm
    array([0.25, 0.75])
    >>> find_drawn(open_rows(from_obp(feedback | {"pscore": [0.6, 0.25, 0.75]})))
    Traceback (most recent call last):
    armlet.errors.LogError: arm 1 has propensities from 0.6 to 0.75, and the log does not say which rows ...
    """
    seen = _Seen(len(blocks.arms))
    for rows in blocks:
        seen.look(rows)
    if seen.n == 0:
        raise LogError("the log has no row with a reward; there is nothing to learn from")
    if seen.known and seen.unknown:
        raise LogError(f"{seen.unknown:,} of {seen.n:,} rows do not say whether they explored; give a log of one kind")
    return seen.by_flags() if seen.known else seen.by_propensities(blocks.arms)


class _Seen:
    def __init__(self, n_arms: int) -> None:
        self.n = self.known = self.unknown = self.usable = self.without = 0
        self._least, self._most = np.full(n_arms, np.inf), np.zeros(n_arms)
        self._floor = np.inf
        self._one: Bool | None = None
        self._differ = False

    def look(self, rows: Rows) -> None:
        some = rows.take(rows.rewarded)
        if not len(some):
            return
        if (some.weight != 1.0).any():
            raise LogError("the log has rewards with weights other than 1, whose meaning replay does not know")
        self.n += len(some)
        self.unknown += int((some.explored < 0).sum())
        self.known += int((some.explored >= 0).sum())
        np.minimum.at(self._least, some.arm, some.propensity)
        np.maximum.at(self._most, some.arm, some.propensity)
        self._one = some.eligible[0] if self._one is None else self._one
        self._differ |= bool((some.eligible != self._one).any())
        drawn = some.take((some.explored == 1) & ~some.turn)
        self.usable += len(drawn)
        self.without += int((np.isnan(drawn.given_exploring) | np.isnan(drawn.smallest)).sum())
        if len(drawn):
            self._floor = min(self._floor, float(np.fmin.reduce(drawn.smallest)))

    def by_flags(self) -> Drawn:
        if not self.usable:
            raise LogError(
                "no row of the log explored: whom it played depended on the context, so no learner can replay"
            )
        if self.without:
            raise LogError(
                f"{self.without:,} of {self.usable:,} explored rows have no exploration_propensity: what was explored "
                "may have depended on the context; log with a policy that explores whatever the context, such as "
                "Uniform"
            )
        if self._differ and not self._floor > 0:
            raise LogError(
                "arms that might be played differ from row to row, and some had no chance; leave those rows out"
            )
        # who might be played may go with the context, so every row must be as likely to be kept as any other
        return Drawn(None, self._floor if self._differ else None)

    def by_propensities(self, arms: tuple[Arm, ...]) -> Drawn:
        if self._differ:
            raise LogError(
                "the log does not say which rows explored, and arms that might be played differ from row to row"
            )
        may = np.ones(len(arms), dtype=np.bool_) if self._one is None else self._one
        for arm in np.flatnonzero(may):
            low, high = self._least[arm], self._most[arm]
            if not np.isfinite(low):
                raise LogError(f"arm {arms[arm]!r} was never played, and the log does not say which rows explored")
            if high - low > ROUNDED * high:
                raise LogError(
                    f"arm {arms[arm]!r} has propensities from {low:g} to {high:g}, and the log does not say which rows "
                    "explored: whom it played may have depended on the context"
                )
        total = float(self._most[may].sum())
        if abs(total - 1.0) > ROUNDED * may.sum():
            raise LogError(f"the propensities of all arms add up to {total:g}; they must add up to 1")
        return Drawn(np.where(may, self._most, np.inf), None)
