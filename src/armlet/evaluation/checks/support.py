"""Whether a log says anything of a target: what it plays must have been tried, often enough, and by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from armlet.evaluation.checks import bets
from armlet.evaluation.checks.check import Check, Word, share, tail
from armlet.evaluation.checks.propensities import ALPHA, count
from armlet.evaluation.rows import Rows
from armlet.types import Arm, Bool, Float64, Int64

FEW: Final = 30.0
"""Effective rows below which a value is shown in grey."""
UNTRIED: Final = 0.05  # of what a target does: more on arms that were never tried makes its value a guess
NOTHING: Final = 1e-9
UNMATCHED: Final = (
    "No row of this log has a reward of an arm that it would have played; there is nothing to value it by."
)


class Support:
    """What is gathered about one target, block by block.

    Parameters
    ----------
    n_arms
        K.
    """

    def __init__(self, n_arms: int) -> None:
        self._impossible = 0.0  # what it does where the logger could not, in rows
        self._rows = 0
        self._mass, self._tried = np.zeros(n_arms), np.zeros(n_arms)  # of rows in which anything was left to chance
        self._heavy = np.zeros((1, len(bets.SIZES)))
        self._loose = np.zeros(3)  # n, S w, S w^2 of rows whose exploring is not known

    def add(self, rows: Rows, known: Bool, target: Float64 | Int64) -> None:
        """Take a block, which rows are sure to explore every arm, and what the target plays: see `Checks.add`."""
        chosen = target.ndim == 1
        played = target == rows.arm if chosen else target[np.arange(len(rows)), rows.arm]
        chance: Float64 = np.asarray(played, dtype=np.float64)
        w = _weights(chance, rows)
        self._rows += len(rows)
        may_vary = known | rows.turn | (rows.propensity < 1.0)  # elsewhere `_reach` says whether it plays the same
        some = target if may_vary.all() else target[may_vary]
        self._mass += np.bincount(some, minlength=len(self._mass)) if chosen else some.sum(axis=0)
        tried = (rows.explored == 1) | (np.isnan(rows.rate) & (rows.propensity < 1.0))
        self._tried += np.bincount(rows.arm[tried], minlength=len(self._tried))
        self._add_loose(rows, ~known & ~rows.turn, target, chance, w)

    def _add_loose(self, rows: Rows, loose: Bool, target: Float64 | Int64, chance: Float64, w: Float64) -> None:
        if not loose.any():
            return
        missing = np.where(rows.propensity >= 1.0, 1.0 - chance, 0.0)
        if rows.probabilities is not None:
            plays = np.eye(rows.eligible.shape[1])[target] if target.ndim == 1 else target
            never = np.where(rows.eligible & (rows.probabilities == 0.0), plays, 0.0).sum(axis=1)
            missing = np.where(np.isnan(rows.probabilities).any(axis=1), missing, never)
        self._impossible += float(np.maximum(missing[loose], 0.0).sum())
        w = w[loose]
        self._loose += len(w), w.sum(), (w**2).sum()
        played = w[w != 0.0]  # a bet on any other row loses its stake
        for place, size in enumerate(bets.SIZES):
            lost = (len(w) - len(played)) * math.log1p(-size)
            self._heavy[0, place] += lost + float(np.log1p(size * (played - 1.0)).sum())

    def found(self, name: str, arms: Sequence[Arm]) -> list[Check]:
        """Say what came of it."""
        checks = [self._reach(name), self._untried(name, arms)]
        if self._loose[0]:
            checks.append(self._average(name))
        return checks

    def _reach(self, name: str) -> Check:
        part = self._impossible / self._rows if self._rows else 0.0
        if part <= NOTHING:
            told = "Whatever it plays, the logger might have played too."
            return Check(name="support", word=Word.FINE, sentence=told, number=0.0, unit="share", target=name)
        told = unreachable(part)
        return Check(name="support", word=Word.REFUSED, sentence=told, number=part, unit="share", target=name)

    def _untried(self, name: str, arms: Sequence[Arm]) -> Check:
        total = max(self._rows, 1)
        never = (self._tried == 0) & (self._mass > NOTHING * total)
        part = float(self._mass[never].sum()) / total
        told = "Every arm that it plays was tried by chance, where anything was left to chance."
        if never.any():
            names = ", ".join(str(arm) for arm, untried in zip(arms, never, strict=True) if untried)
            told = f"{share(part)} of what it plays was never tried by chance: {names}. Its value is a guess there."
        word = Word.REFUSED if part > UNTRIED else Word.WARNING if never.any() else Word.FINE
        return Check(name="tried", word=word, sentence=told, number=float(never.sum()), unit="arms", target=name)

    def _average(self, name: str) -> Check:
        n, s, ss = self._loose
        mean = s / n
        heavy = bets.p_value(self._heavy)
        spread = math.sqrt(max(ss - s * s / n, 1e-300))
        light = tail((s - n) / spread) if s < n else 1.0
        p = min(1.0, 2 * min(heavy, light))
        told = f"Its weights average {mean:.3g}; they should average 1."
        if p < ALPHA:
            told = (
                f"It cannot be evaluated from this log: its weights average {mean:.3g}, too far from 1 for chance. The "
                "logger hardly ever tried what it plays, or logged propensities that are not those it played by."
            )
        word = Word.REFUSED if p < ALPHA else Word.FINE
        return Check(name="weights", word=word, sentence=told, number=p, unit="p-value", target=name)


def unreachable(part: float) -> str:
    """Say that a target plays what the logger could not have played."""
    return (
        f"It cannot be evaluated from this log: {share(part)} of what it plays the logger could not have played "
        "where it is played, so nothing is known of it."
    )


def effective(name: str, rows: int, ess: float, largest: float) -> Check:
    """Say how many rows of equal weight tell as much of a target as a log does.

    Parameters
    ----------
    ess, largest
        Effective rows of the estimator that values it, and the largest weight.

    Examples
    --------
    >>> print(effective("new", 2836, 788.2, 31.0))
    rows of new: fine. 2,836 rows tell as much as 788 of equal weight; the largest weight is 31. (effective rows 788)
    """
    if largest == 0.0 or ess == 0.0:
        return Check(name="rows", word=Word.REFUSED, sentence=UNMATCHED, number=0.0, unit="effective rows", target=name)
    told = f"{rows:,} rows tell as much as {ess:,.0f} of equal weight; the largest weight is {largest:.3g}"
    told += f": fewer than {FEW:.0f}, too few for its interval to be believed." if ess < FEW else "."
    word = Word.WARNING if ess < FEW else Word.FINE
    return Check(name="rows", word=word, sentence=told, number=ess, unit="effective rows", target=name)


def _weights(chance: Float64, rows: Rows) -> Float64:
    """Give the weights of rows, 0 where the propensity is none."""
    if (rows.propensity > 0.0).all() and not rows.turn.any():
        return chance / rows.propensity
    e = np.where(rows.propensity > 0, rows.propensity, np.nan)
    return np.nan_to_num(chance / np.where(rows.turn, 1.0 / count(rows.eligible), e))
