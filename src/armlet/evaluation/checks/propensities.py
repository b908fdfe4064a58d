"""Whether logged chances can be true: what cannot be at all, row by row, and what is too unlikely, by betting.

Chances are tested where they do not depend on the context: on explored rows, by the chance of the arm given that the
step explores. Where another system logged, weights of 1/propensity have to average 1 for every arm; if they average too
little that can also mean that the logger hardly ever tried something, and then the log is not accused of a lie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from armlet.evaluation.checks import bets
from armlet.evaluation.checks.check import Check, Word, share, tail
from armlet.evaluation.rows import Rows
from armlet.types import Arm, Bool, Float64, Int64

ALPHA: Final = 0.002
"""Right chances are accused at most that often."""
EVEN: Final = 20.0  # times: propensities of one arm that differ by more are no design but a choice
TOLERANCE: Final = 1e-9
CERTAIN: Final = 0.9  # of all rows: where more have a propensity of 1, ties are all that chance decides
ROUNDED: Final = 1e-6  # sums of probabilities that were written down


class Propensities:
    """What is gathered of logged chances, block by block.

    Parameters
    ----------
    n_arms
        K.
    """

    def __init__(self, n_arms: int) -> None:
        self.rows = self.impossible = self.turns = self.certain = self.known = self.tested = 0
        self.first: int | None = None  # the step of the first impossible row
        self._draws = np.zeros((n_arms, len(bets.BOTH)))
        self._exploring = np.zeros(2)  # rows that a coin chose to explore, and how many there should be
        self._explored = 0  # rows that explored, by a coin or for certain
        self._drawn = np.zeros((2, n_arms))  # of rows with all probabilities: plays, and how many there should be
        self._other = _Weights(n_arms)

    def add(self, rows: Rows, known: Bool) -> None:
        """Take a block, and which of its rows are sure to explore every arm with a known chance."""
        wrong = _impossible(rows)
        if wrong.any() and self.first is None:
            self.first = int(rows.t[wrong][0])
        self.rows += len(rows)
        self.impossible += int(wrong.sum())
        self.turns += int(rows.turn.sum())
        coins = ~rows.turn & ~wrong
        known = coins & known
        self.known += int(known.sum())
        self.certain += int((coins & ~known & (rows.propensity == 1.0) & (count(rows.eligible) > 1)).sum())
        self._add_exploring(rows, known)
        self._add_others(rows, coins & ~known)

    def _add_exploring(self, rows: Rows, known: Bool) -> None:
        self._explored += int((rows.explored == 1).sum())
        tossed = known & (rows.rate < 1.0) & (rows.explored >= 0)
        self._exploring += (rows.explored[tossed] == 1).sum(), rows.rate[tossed].sum()
        drawn = known & (rows.explored == 1)
        self.tested += int(drawn.sum())
        given = rows.given_exploring[drawn]
        self._draws += bets.on_draws(rows.arm[drawn], given, rows.smallest[drawn], rows.eligible[drawn])

    def _add_others(self, rows: Rows, others: Bool) -> None:
        if not others.any():
            return
        if rows.probabilities is not None:
            told = others & ~np.isnan(rows.probabilities).any(axis=1)
            self._drawn[0] += np.bincount(rows.arm[told], minlength=self._drawn.shape[1])
            self._drawn[1] += rows.probabilities[told].sum(axis=0)
            others = others & ~told
        self._other.add(rows, others)

    def found(self, arms: Sequence[Arm]) -> list[Check]:
        """Say what came of it."""
        return [self._possible(), self._true(arms), self._often(), *self._evaluable()]

    def _possible(self) -> Check:
        told = (
            "Every propensity lies in (0, 1], fits its parts, and is of an eligible arm."
            if not self.impossible
            else f"{self.impossible:,} rows, the first at step {self.first:,}, have a propensity outside (0, 1], one "
            "that does not fit rate and probabilities, or an arm that was not eligible: read the log anew."
        )
        word = Word.REFUSED if self.impossible else Word.FINE
        return Check(name="possible", word=word, sentence=told, number=self.impossible, unit="rows")

    def _true(self, arms: Sequence[Arm]) -> Check:
        tests = {
            "explored": self._draws,
            "probabilities": bets.on_counts(*self._drawn),
            "weights": self._other.too_heavy(),
        }
        worst = min(tests, key=lambda name: bets.p_value(tests[name]))
        p = min(1.0, len(tests) * bets.p_value(tests[worst]))
        light, z = self._other.too_light()
        if self._other.is_design and (chance := min(1.0, 2 * len(arms) * tail(z))) < min(p, ALPHA):
            return _accused(arms[light], chance)
        if p < ALPHA:
            return _accused(arms[int(tests[worst].max(axis=1).argmax())], p)
        told = f"Arms were drawn as often as logged, in the {self._number_tested():,} rows that can be tested."
        return Check(name="propensities", word=Word.FINE, sentence=told, number=p, unit="p-value")

    def _number_tested(self) -> int:
        return self.tested + int(self._drawn[0].sum()) + self._other.n

    def _often(self) -> Check:
        count, expected = self._exploring
        p = bets.p_value(bets.on_counts(self._exploring[:1], self._exploring[1:]))
        fine = p >= ALPHA
        if not expected:
            told = "No decision tossed a coin whether to explore, so there is nothing to compare."
        else:
            sure = self._explored - int(count)
            told = f"Of {self._explored:,} explored decisions {count:,.0f} were chosen by a coin"
            told += f" and {sure:,} for certain" if sure else ""
            told += f"; {expected:,.1f} were expected by coin"
            told += "." if fine else ": the logged rates are not those by which it explored."
        word = Word.FINE if fine else Word.REFUSED
        return Check(name="explored share", word=word, sentence=told, number=p, unit="p-value")

    def _evaluable(self) -> list[Check]:
        others = self.rows - self.turns - self.known
        if not self.certain or self.known or self.certain < CERTAIN * others:
            return []
        told = (
            f"In {share(self.certain / others)} of the rows of this log nothing was left to chance: it tells only of "
            "targets that play the same arms there. To value others, let a policy decide that explores, such as "
            "ContextualEpsilonGreedy with floor=0.02."
        )
        number = self.certain / others
        return [Check(name="evaluable", word=Word.WARNING, sentence=told, number=number, unit="share")]


class _Weights:
    """1/propensity of rows whose design is not known, by arm."""

    def __init__(self, n_arms: int) -> None:
        self._logs = np.zeros((n_arms, len(bets.SIZES)))
        self._sums = np.zeros((3, n_arms))  # rows in which it was eligible, S w, S w^2
        self._least, self._most = np.full(n_arms, np.inf), np.zeros(n_arms)
        self.n = 0

    def add(self, rows: Rows, which: Bool) -> None:
        whole = bool(which.all())
        if not which.any():
            return
        some = rows if whole else rows.take(which)
        arm, e, eligible = some.arm, some.propensity, some.eligible
        n_arms = eligible.shape[1]
        self.n += len(arm)
        least = 1.0 / np.maximum(2.0, count(eligible))  # only sets the size of bets that it is more likely
        self._logs += bets.on_draws(arm, np.maximum(e, 1e-300), least, eligible, bets.SIZES)
        w = 1.0 / e
        self._sums += [
            bets.count_arms(eligible),
            *(np.bincount(arm, weights=weights, minlength=n_arms) for weights in (w, w * w)),
        ]
        np.minimum.at(self._least, arm, e)
        np.maximum.at(self._most, arm, e)

    def too_heavy(self) -> Float64:
        """Give the logarithms of wealth of bets that weights average more than 1."""
        return self._logs

    def too_light(self) -> tuple[int, float]:
        """Give the arm whose weights average least, in standard errors below 1, and that number."""
        n, s, ss = self._sums
        spread = np.sqrt(np.maximum(ss - 2 * s + n, 1e-300))
        z = np.where(n >= 100, (s - n) / spread, 0.0)
        return int(z.argmin()), float(z.min(initial=0.0))

    @property
    def is_design(self) -> bool:
        """Whether every arm has propensities of about one size: then nothing rare can make up for what is missing."""
        fixed = (self._most > 0) & (self._most < 1.0) & (self._most <= EVEN * self._least)
        return bool(self.n and fixed.all())


def guaranteed(rows: Rows) -> Bool:
    """Say which rows explore every eligible arm with a known, positive chance."""
    if np.isnan(rows.rate).all():
        return np.zeros(len(rows), dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        return np.asarray((rows.rate > 0.0) & (rows.smallest > 0.0) & (rows.given_exploring > 0.0) & ~rows.turn)


def count(eligible: Bool) -> Int64:
    """Count the eligible arms of every row."""
    n, n_arms = eligible.shape
    return np.full(n, n_arms) if eligible.all() else np.count_nonzero(eligible, axis=1)


def _impossible(rows: Rows) -> Bool:
    e, n = rows.propensity, np.arange(len(rows))
    wrong = ~((e > 0.0) & (e <= 1.0 + TOLERANCE)) | ~rows.eligible[n, rows.arm]
    with np.errstate(invalid="ignore"):
        if not np.isnan(rows.rate).all():
            low = rows.rate * rows.given_exploring  # NaN where they are not known
            wrong |= (e < low - TOLERANCE) | (e > low + (1.0 - rows.rate) + TOLERANCE)
            wrong |= (rows.greedy == 0) & (np.abs(e - low) > TOLERANCE)
        if rows.probabilities is not None:
            chances = rows.probabilities
            wrong |= np.abs(chances.sum(axis=1) - 1.0) > ROUNDED
            wrong |= np.abs(chances[n, rows.arm] - e) > ROUNDED
            wrong |= (np.where(rows.eligible, 0.0, chances) > ROUNDED).any(axis=1)
    return np.asarray(wrong)


def _accused(arm: Arm, p: float) -> Check:
    told = (
        f"The logged propensities are wrong: {arm} was not drawn as often as they say. If they are right, a log looks "
        f"like this at most once in {_times(p)}. Nothing can be valued by them."
    )
    return Check(name="propensities", word=Word.REFUSED, sentence=told, number=p, unit="p-value")


def _times(p: float) -> str:
    return "a million" if p < 1e-6 else f"{math.floor(1 / p):,}"
