"""Checks: what is looked at before a value is believed, in the same pass over the log.

- whether logged propensities can be true: what is impossible, row by row, and what is too unlikely, by betting;
- whether the log says anything of a target: what it plays must have been explored, often enough;
- whether a target was trained on the rows that value it.

Everything is sums, so that memory does not grow with the log.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

import numpy as np

from armlet.errors import EvaluationError
from armlet.evaluation.rows import Blocks, Rows
from armlet.evaluation.targets import ArmLaw, Target
from armlet.inference.betting import BOTH, SIZES, bet_on_counts, bet_on_draws, p_value, rows_by_arm
from armlet.types import Arm, Bool, Float64, Int64

ALPHA: Final = 0.002
"""Right propensities are accused at most that often."""
FEW: Final = 30.0
"""Effective rows below which a value is shown in grey."""
NEGLIGIBLE: Final = 1e-9
UNMATCHED: Final = (
    "No row of this log has a reward of an arm that it would have played; there is nothing to value it by."
)
EVEN: Final = 20.0  # times: propensities of one arm that differ by more are not a design but a choice
TOLERANCE: Final = 1e-9
CERTAIN: Final = 0.9  # of all rows: where more have a propensity of 1, ties are all that chance decides
ROUNDED: Final = 1e-6  # sums of probabilities that were written down
UNTRIED: Final = 0.05  # of what a target does: more on arms that were never explored makes its value a guess
FEWEST_TRAINED: Final = 20  # rows: fewer may be as many by chance
SLACK: Final = 1e-6  # rows of an arm, where weights were summed
TRAINED: Final = "trained on these rows"


class Word(StrEnum):
    """The outcome of a check."""

    FINE = "fine"
    WARNING = "warning"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at before a value is believed.

    Examples
    --------
    >>> print(Check(name="propensities", word=Word.FINE, sentence="They fit.", number=0.4, unit="p-value"))
    propensities: fine. They fit. (p-value 0.4)
    """

    name: str
    word: Word
    sentence: str
    number: float
    unit: Literal["p-value", "rows", "arms", "share", "effective rows"]
    target: str | None = None  # whose value it is about; None for the log as a whole

    def __str__(self) -> str:
        whose = "" if self.target is None else f" of {self.target}"
        return f"{self.name}{whose}: {self.word}. {self.sentence} ({self.unit} {shown(self.number)})"


def shown(number: float) -> str:
    """Format the number of a check.

    Examples
    --------
    >>> shown(12345.0), shown(0.01234), shown(3e-9), shown(float("nan"))
    ('12,345', '0.012', '3e-09', 'not known')
    """
    if math.isnan(number):
        return "not known"
    return f"{number:,.0f}" if number == round(number) else f"{number:.2g}" if abs(number) < 10 else f"{number:,.0f}"


def tail(z: float) -> float:
    """Return the probability that a standard normal is farther from 0 than z.

    Examples
    --------
    >>> round(tail(1.959964), 6)
    0.05
    """
    return math.erfc(abs(z) / math.sqrt(2))


def share(part: float) -> str:
    """Format a share as a percentage.

    Examples
    --------
    >>> share(0.1234), share(0.0004), share(1.0)
    ('12 %', '0.04 %', '100 %')
    """
    percent = 100 * part
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.2g} %"


def _arms_by_row(eligible: Bool) -> Int64:
    """Count the eligible arms of every row, (n,)."""
    n, n_arms = eligible.shape
    return np.full(n, n_arms) if eligible.all() else np.count_nonzero(eligible, axis=1)


class Propensities:
    """Whether logged propensities can be true.

    They are tested where they do not depend on the context: on explored rows, by the probability of the arm given that
    the step explores. Where another system logged, weights of 1/propensity have to average 1 for every arm; if they
    average too little that can also mean that the logger hardly ever tried something, and then the log is not accused.
    """

    def __init__(self, n_arms: int) -> None:
        self.rows = self.impossible = self.turns = self.certain = self.known = self.tested = 0
        self.first: int | None = None  # the step of the first impossible row
        self._draws = np.zeros((n_arms, len(BOTH)))
        self._exploring = np.zeros(2)  # rows that a coin chose to explore, and how many there should be
        self._explored = 0  # rows that explored, by a coin or for certain
        self._drawn = np.zeros((2, n_arms))  # of rows with all probabilities: plays, and how many there should be
        self._other = _Weights(n_arms)

    def add(self, rows: Rows, known: Bool, draws: Bool) -> None:
        """Add a block, which of its rows are sure to explore every arm with a known probability, and which are draws.

        Of a unit, whose decisions share a coin, that is the first: the others would repeat what it says.
        """
        wrong = _impossible(rows)
        if wrong.any() and self.first is None:
            self.first = int(rows.t[wrong][0])
        self.rows += int(draws.sum())
        self.impossible += int(wrong.sum())
        self.turns += int((rows.turn & draws).sum())
        coins = ~rows.turn & ~wrong & draws
        known = coins & known
        self.known += int(known.sum())
        self.certain += int((coins & ~known & (rows.propensity == 1.0) & (_arms_by_row(rows.eligible) > 1)).sum())
        self._explored += int(((rows.explored == 1) & draws).sum())
        self._add_exploring(rows, known)
        self._add_others(rows, coins & ~known)

    def _add_exploring(self, rows: Rows, known: Bool) -> None:
        tossed = known & (rows.exploration_rate < 1.0) & (rows.explored >= 0)
        self._exploring += (rows.explored[tossed] == 1).sum(), rows.exploration_rate[tossed].sum()
        drawn = known & (rows.explored == 1)
        self.tested += int(drawn.sum())
        chances = rows.exploration_propensity[drawn]
        self._draws += bet_on_draws(
            rows.arm[drawn], chances, rows.min_exploration_probability[drawn], rows.eligible[drawn]
        )

    def _add_others(self, rows: Rows, others: Bool) -> None:
        if not others.any():
            return
        if rows.probabilities is not None:
            stated = others & ~np.isnan(rows.probabilities).any(axis=1)
            self._drawn[0] += np.bincount(rows.arm[stated], minlength=self._drawn.shape[1])
            self._drawn[1] += rows.probabilities[stated].sum(axis=0)
            others = others & ~stated
        self._other.add(rows, others)

    def result(self, arms: Sequence[Arm]) -> list[Check]:
        """Return the checks after the last block."""
        return [self._possible(), self._true(arms), self._often(), *self._evaluable()]

    def _possible(self) -> Check:
        sentence = (
            "Every propensity lies in (0, 1], fits its parts, and is of an eligible arm."
            if not self.impossible
            else f"{self.impossible:,} rows, the first at step {self.first:,}, have a propensity outside (0, 1], one "
            "that does not fit rate and probabilities, or an arm that was not eligible: read the log again."
        )
        word = Word.REFUSED if self.impossible else Word.FINE
        return Check(name="possible", word=word, sentence=sentence, number=self.impossible, unit="rows")

    def _true(self, arms: Sequence[Arm]) -> Check:
        tests = (self._draws, bet_on_counts(*self._drawn), self._other.too_heavy)
        worst = min(tests, key=p_value)
        p = min(1.0, len(tests) * p_value(worst))
        light, z = self._other.too_light()
        if self._other.is_design and (chance := min(1.0, 2 * len(arms) * tail(z))) < min(p, ALPHA):
            return _accused(arms[light], chance)
        if p < ALPHA:
            return _accused(arms[int(worst.max(axis=1).argmax())], p)
        tested = self.tested + int(self._drawn[0].sum()) + self._other.n
        sentence = f"Arms were drawn as often as logged, in the {tested:,} rows that can be tested."
        return Check(name="propensities", word=Word.FINE, sentence=sentence, number=p, unit="p-value")

    def _often(self) -> Check:
        count, expected = self._exploring
        p = p_value(bet_on_counts(self._exploring[:1], self._exploring[1:]))
        fine = p >= ALPHA
        if not expected:
            sentence = "No decision tossed a coin whether to explore, so there is nothing to compare."
        else:
            sure = self._explored - int(count)
            sentence = f"Of {self._explored:,} explored decisions {count:,.0f} were chosen by a coin"
            sentence += f" and {sure:,} for certain" if sure else ""
            sentence += f"; {expected:,.1f} were expected by coin"
            sentence += "." if fine else ": the logged rates are not those by which it explored."
        word = Word.FINE if fine else Word.REFUSED
        return Check(name="explored share", word=word, sentence=sentence, number=p, unit="p-value")

    def _evaluable(self) -> list[Check]:
        others = self.rows - self.turns - self.known
        if not self.certain or self.known or self.certain < CERTAIN * others:
            return []
        part = self.certain / others
        sentence = (
            f"In {share(part)} of the rows of this log nothing was left to chance: it tells only of "
            "targets that play the same arms there. To value others, let a policy decide that explores, such as "
            "ContextualEpsilonGreedy with floor=0.02."
        )
        return [Check(name="evaluable", word=Word.WARNING, sentence=sentence, number=part, unit="share")]


class _Weights:
    """1/propensity of rows whose design is not known, by arm."""

    def __init__(self, n_arms: int) -> None:
        self.too_heavy = np.zeros((n_arms, len(SIZES)))  # logarithms of wealth of bets that weights average more than 1
        self._sums = np.zeros((3, n_arms))  # rows in which it was eligible, S w, S w^2
        self._least, self._most = np.full(n_arms, np.inf), np.zeros(n_arms)
        self.n = self._chosen = 0  # rows; those whose policy chose by itself, and may have left any arm out

    def add(self, rows: Rows, which: Bool) -> None:
        if not which.any():
            return
        some = rows if which.all() else rows.take(which)
        arm, e, eligible = some.arm, some.propensity, some.eligible
        n_arms = eligible.shape[1]
        self.n += len(arm)
        self._chosen += int((some.explored >= 0).sum())
        least = 1.0 / np.maximum(2.0, _arms_by_row(eligible))  # only sets the size of bets that it is more likely
        self.too_heavy += bet_on_draws(arm, np.maximum(e, 1e-300), least, eligible, SIZES)
        w = 1.0 / e
        self._sums += [
            rows_by_arm(eligible),
            *(np.bincount(arm, weights=weights, minlength=n_arms) for weights in (w, w * w)),
        ]
        np.minimum.at(self._least, arm, e)
        np.maximum.at(self._most, arm, e)

    def too_light(self) -> tuple[int, float]:
        """Return the arm whose weights average least, in standard errors below 1, and that number."""
        n, s, ss = self._sums
        spread = np.sqrt(np.maximum(ss - 2 * s + n, 1e-300))
        z = np.where(n >= 100, (s - n) / spread, 0.0)
        return int(z.argmin()), float(z.min(initial=0.0))

    @property
    def is_design(self) -> bool:
        """Whether every arm has propensities of about one size: then nothing rare can make up for what is missing."""
        fixed = (self._most > 0) & (self._most < 1.0) & (self._most <= EVEN * self._least)
        return bool(self.n and not self._chosen and fixed.all())


def explores_every_arm(rows: Rows) -> Bool:
    """Return which rows explore every eligible arm with a known, positive probability."""
    if np.isnan(rows.exploration_rate).all():
        return np.zeros(len(rows), dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        return np.asarray(
            (rows.exploration_rate > 0.0)
            & (rows.min_exploration_probability > 0.0)
            & ((rows.exploration_propensity > 0.0) | (rows.explored == 0))  # a control's row needs none
            & ~rows.turn
        )


def _impossible(rows: Rows) -> Bool:
    e, n = rows.propensity, np.arange(len(rows))
    wrong = ~((e > 0.0) & (e <= 1.0 + TOLERANCE)) | ~rows.eligible[n, rows.arm]
    with np.errstate(invalid="ignore"):
        if not np.isnan(rows.exploration_rate).all():
            low = rows.exploration_rate * rows.exploration_propensity  # NaN where they are not known
            wrong |= (e < low - TOLERANCE) | (e > low + (1.0 - rows.exploration_rate) + TOLERANCE)
            wrong |= (rows.greedy == 0) & (np.abs(e - low) > TOLERANCE)
        if rows.probabilities is not None:
            wrong |= np.abs(rows.probabilities.sum(axis=1) - 1.0) > ROUNDED
            wrong |= np.abs(rows.probabilities[n, rows.arm] - e) > ROUNDED
            wrong |= (np.where(rows.eligible, 0.0, rows.probabilities) > ROUNDED).any(axis=1)
    return np.asarray(wrong)


def _accused(arm: Arm, p: float) -> Check:
    times = "a million" if p < 1e-6 else f"{math.floor(1 / p):,}"
    sentence = (
        f"The logged propensities are wrong: {arm} was not drawn as often as they say. If they are right, a log looks "
        f"like this at most once in {times}. Nothing can be valued by them."
    )
    return Check(name="propensities", word=Word.REFUSED, sentence=sentence, number=p, unit="p-value")


class Support:
    """Whether a log says anything of one target."""

    def __init__(self, n_arms: int) -> None:
        self._impossible = 0.0  # what it does where the logger could not, in rows
        self._rows = 0
        self._mass, self._tried = np.zeros(n_arms), np.zeros(n_arms)  # of rows in which anything was left to chance
        self._heavy = np.zeros((1, len(SIZES)))
        self._loose = np.zeros(3)  # n, S w, S w^2 of rows whose exploring is not known

    def add(self, rows: Rows, known: Bool, draws: Bool, law: ArmLaw) -> None:
        """Add a block, which rows are sure to explore every arm, which are draws, and what the target plays.

        See `Propensities.add` and `Checks.add`.
        """
        chance, target = law.played, law.dist
        w = _weights(chance, rows)
        self._rows += len(rows)
        may_vary = known | rows.turn | (rows.propensity < 1.0)  # elsewhere `_reach` says whether it plays the same
        some = target if may_vary.all() else target[may_vary]
        self._mass += np.bincount(some, minlength=len(self._mass)) if target.ndim == 1 else some.sum(axis=0)
        tried = (rows.explored == 1) | (np.isnan(rows.exploration_rate) & (rows.propensity < 1.0))
        self._tried += np.bincount(rows.arm[tried], minlength=len(self._tried))
        loose = ~known & ~rows.turn
        if loose.any():
            self._add_missing(rows, loose, target, chance)
            self._add_loose(w[loose & draws])

    def _add_missing(self, rows: Rows, loose: Bool, target: Float64 | Int64, chance: Float64) -> None:
        missing = np.where(rows.propensity >= 1.0, 1.0 - chance, 0.0)
        if rows.probabilities is not None:
            plays = np.eye(rows.eligible.shape[1])[target] if target.ndim == 1 else target
            never = np.where(rows.eligible & (rows.probabilities == 0.0), plays, 0.0).sum(axis=1)
            missing = np.where(np.isnan(rows.probabilities).any(axis=1), missing, never)
        self._impossible += float(np.maximum(missing[loose], 0.0).sum())

    def _add_loose(self, w: Float64) -> None:
        self._loose += len(w), w.sum(), (w**2).sum()
        played = w[w != 0.0]  # a bet on any other row loses its stake
        for place, size in enumerate(SIZES):
            lost = (len(w) - len(played)) * math.log1p(-size)
            self._heavy[0, place] += lost + float(np.log1p(size * (played - 1.0)).sum())

    def result(self, name: str, arms: Sequence[Arm]) -> list[Check]:
        """Return the checks after the last block."""
        checks = [self._reach(name), self._untried(name, arms)]
        if self._loose[0]:
            checks.append(self._average(name))
        return checks

    def _reach(self, name: str) -> Check:
        part = self._impossible / self._rows if self._rows else 0.0
        if part <= NEGLIGIBLE:
            sentence = "Everything it plays, the logger might have played too."
            return Check(name="support", word=Word.FINE, sentence=sentence, number=0.0, unit="share", target=name)
        sentence = unreachable(part)
        return Check(name="support", word=Word.REFUSED, sentence=sentence, number=part, unit="share", target=name)

    def _untried(self, name: str, arms: Sequence[Arm]) -> Check:
        total = max(self._rows, 1)
        never = (self._tried == 0) & (self._mass > NEGLIGIBLE * total)
        part = float(self._mass[never].sum()) / total
        sentence = "Every arm that it plays was tried by chance, where anything was left to chance."
        if never.any():
            names = ", ".join(str(arm) for arm, untried in zip(arms, never, strict=True) if untried)
            sentence = f"{share(part)} of what it plays was never tried by chance: {names}. Its value is a guess there."
        word = Word.REFUSED if part > UNTRIED else Word.WARNING if never.any() else Word.FINE
        return Check(name="tried", word=word, sentence=sentence, number=float(never.sum()), unit="arms", target=name)

    def _average(self, name: str) -> Check:
        n, s, ss = self._loose
        mean = s / n
        spread = math.sqrt(max(ss - s * s / n, 1e-300))
        light = tail((s - n) / spread) if s < n else 1.0
        p = min(1.0, 2 * min(p_value(self._heavy), light))
        sentence = f"Its weights average {mean:.3g}; they should average 1."
        if p < ALPHA:
            sentence = (
                f"It cannot be evaluated from this log: its weights average {mean:.3g}, too far from 1 for chance. The "
                "logger hardly ever tried what it plays, or logged propensities that are not those it played by."
            )
        word = Word.REFUSED if p < ALPHA else Word.FINE
        return Check(name="weights", word=word, sentence=sentence, number=p, unit="p-value", target=name)


def _weights(chance: Float64, rows: Rows) -> Float64:
    """Return the weights of rows, 0 where the propensity is invalid."""
    if (rows.propensity > 0.0).all() and not rows.turn.any():
        return chance / rows.propensity
    e = np.where(rows.propensity > 0, rows.propensity, np.nan)
    return np.nan_to_num(chance / np.where(rows.turn, 1.0 / _arms_by_row(rows.eligible), e))


def unreachable(part: float) -> str:
    """Return the sentence that a target plays what the logger could not have played."""
    return (
        f"It cannot be evaluated from this log: {share(part)} of what it plays the logger could not have played "
        "where it is played, so nothing is known of it."
    )


def check_ess(name: str, rows: int, ess: float, largest: float) -> Check:
    """Check how many rows of equal weight tell as much of a target as a log does; `largest` is the largest weight.

    Examples
    --------
    >>> print(check_ess("new", 2836, 788.2, 31.0))
    rows of new: fine. 2,836 rows tell as much as 788 of equal weight; the largest weight is 31. (effective rows 788)
    """
    if largest == 0.0 or ess == 0.0:
        return Check(name="rows", word=Word.REFUSED, sentence=UNMATCHED, number=0.0, unit="effective rows", target=name)
    sentence = f"{rows:,} rows tell as much as {ess:,.0f} of equal weight; the largest weight is {largest:.3g}"
    sentence += f": fewer than {FEW:.0f}, too few for its interval to be believed." if ess < FEW else "."
    word = Word.WARNING if ess < FEW else Word.FINE
    return Check(name="rows", word=word, sentence=sentence, number=ess, unit="effective rows", target=name)


class Trained:
    """How many rows of every arm a model that learns from this log has: from explored rows, or from all."""

    def __init__(self, n_arms: int) -> None:
        self._learned = np.zeros((2, n_arms))

    def add(self, rows: Rows) -> None:
        """Add a block."""
        rewarded, explored = rows.rewarded, rows.explored == 1
        if explored.any():
            self._learned[0] += self._count(rows, rewarded & explored)
        self._learned[1] += self._count(rows, rewarded)

    def _count(self, rows: Rows, which: Bool) -> Float64:
        arms, weights = (rows.arm, rows.weight) if which.all() else (rows.arm[which], rows.weight[which])
        one = (weights == 1.0).all()
        return np.bincount(arms, weights=None if one else weights, minlength=self._learned.shape[1]).astype(np.float64)

    def result(self, name: str, arms: Collection[Arm], *, rows: Mapping[Arm, float]) -> Check:
        """Check whether a target learned from this log, by how many rows of each arm it has; none if it has no sums."""
        mine = np.array([rows.get(arm, 0.0) for arm in arms])
        if any(each.sum() >= FEWEST_TRAINED and np.allclose(mine, each, rtol=0, atol=SLACK) for each in self._learned):
            sentence = (
                "It has learned exactly as many rows of every arm as this log holds, so it was trained on the rows "
                "that value it here, and its value is too good. "
                'Ask for "own", the honest value of a model from its own rows.'
            )
            word, number = Word.WARNING, float(mine.sum())
        else:
            word, sentence, number = Word.FINE, "Nothing says that it was trained on these rows.", 0.0
        return Check(name="trained here", word=word, sentence=sentence, number=number, unit="rows", target=name)


def check_trained(targets: Sequence[Target], blocks: Blocks, totals: Iterable[float]) -> tuple[Check, ...]:
    """Check of every model that counts its rows whether it learned from this log.

    `totals` are how many rows a model may have that did: rows are read, arm by arm, only for one that has as many.
    """
    models = {each: rows for each in targets if (rows := each.learned())}
    trained = Trained(len(blocks.arms))
    have = [sum(rows.get(arm, 0.0) for arm in blocks.arms) for rows in models.values()]
    if any(abs(mine - total) <= SLACK * len(blocks.arms) for mine in have for total in totals):
        for block in blocks:
            trained.add(block)
    return tuple(trained.result(each.name, blocks.arms, rows=rows) for each, rows in models.items())


def refuse_trained(candidate: Target, trained: Trained, arms: tuple[Arm, ...]) -> None:
    """Refuse a candidate that remembers the rows it would be valued by: it would win by its memory."""
    if not (rows := candidate.learned()):
        return
    if trained.result("candidate", arms, rows=rows).word is not Word.FINE:
        raise EvaluationError(
            "the candidate has learned exactly as many rows of every arm as this log holds, so it was trained on them; "
            'give rows that came after its training, or ask armlet.evaluate(log, "own") what it is worth'
        )
