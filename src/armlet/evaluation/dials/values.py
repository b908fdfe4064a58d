"""What policies with outcomes would have had of each under every dial, from one log: `armlet.evaluate(..., dials=)`.

From sums to values, the intervals that they deserve, and which of them stand. Values are weighted means of the rows in
which a policy plays what was played; what is known of arms, such as prices, is counted over all rows, and is exact.
Memory holds a block, and some hundred sums for every value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from armlet.errors import EvaluationError
from armlet.evaluation.checks import (
    ALPHA,
    FEW,
    NEGLIGIBLE,
    TRAINED,
    UNMATCHED,
    Check,
    Word,
    check_trained,
    tail,
    unreachable,
)
from armlet.evaluation.dials.band import joint_level
from armlet.evaluation.dials.curve import LOGGED, ParetoCurve, standings
from armlet.evaluation.dials.policies import DialQuestion, Dials, DialsLike, lay_dials, read_policies
from armlet.evaluation.dials.sums import DialSums
from armlet.evaluation.dials.totals import DialSurvey, DialTotals, LoggedSums, PolicySums, sum_log, survey_dials
from armlet.evaluation.estimators import Rewards, mean_interval
from armlet.evaluation.rows import Blocks
from armlet.evaluation.targets import BanditTarget
from armlet.parallel import Progress
from armlet.types import Arm, Bool, Float64, Int64, Interval

LEAST: Final = 0.01  # of all weight that lies outside of a group


@dataclass(frozen=True, slots=True)
class Estimates:
    """P values of q outcomes."""

    values: Float64  # (P, q)
    influences: Float64  # (G, P, q): what each group of rows adds to their errors
    ess: Float64  # (P, q): so many rows of its own would tell as much

    @classmethod
    def of_log(cls, sums: LoggedSums, units: int | None) -> Estimates:
        """Return what ran: plain means."""
        rows = sums.groups[:, :1].sum()
        values = sums.groups[:, 1:].sum(axis=0) / rows
        influences = (sums.groups[:, 1:] - values * sums.groups[:, :1]) / rows
        ess = np.full(values.shape, rows if units is None else min(rows, units))
        return cls(values[np.newaxis], influences[:, np.newaxis], ess[np.newaxis])

    @classmethod
    def of(cls, sums: PolicySums, rows: Float64, units: int | None) -> Estimates:
        """Return what policies would have had: self-normalised doubly robust means.

        Parameters
        ----------
        rows
            (G,): how many of each group tell.
        units
            How many there are, where rows have units.
        """
        n, count = rows.sum(), rows[:, np.newaxis, np.newaxis, np.newaxis]
        off, covariances = sums.matched.estimate()  # by how much models are off, where there is something to see it by
        weights = np.where(sums.matched.agreed > 0, sums.matched.totals[..., 0], np.nan)[..., np.newaxis]
        expected = sums.expected.sum(axis=0) / n
        part = sums.groups[..., :1]
        # as far as each group moves them by being there: the jackknife, since a group that weighs much hides its error
        corrections = (sums.groups[..., 1:] - off * part) / weights / np.maximum(1.0 - part / weights, LEAST)
        influences = (sums.expected - expected * count) / n + corrections
        ess = np.broadcast_to(sums.matched.effective_rows[..., np.newaxis], off.shape)
        if units is not None:
            alone, together = np.einsum("...ii->...i", covariances), (corrections**2).sum(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                times = np.where(alone > 0.0, np.maximum(1.0, together / alone), 1.0)  # the design effect
            ess = np.minimum(ess / times, float(units))
        q = off.shape[-1]
        flat = np.nan_to_num(influences).reshape(len(rows), -1, q)
        return cls((expected + off).reshape(-1, q), flat, np.asarray(ess).reshape(-1, q))

    @classmethod
    def joined(cls, parts: Sequence[Estimates]) -> Estimates:
        """Return the values of several sums, one after the other."""
        return cls(
            np.concatenate([each.values for each in parts]),
            np.concatenate([each.influences for each in parts], axis=1),
            np.concatenate([each.ess for each in parts]),
        )

    def se(self, groups: int) -> Float64:
        """Return standard errors, (P, q), by so many groups that have rows."""
        return np.asarray(np.sqrt((self.influences**2).sum(axis=0) * groups / max(1, groups - 1)))

    def effective_groups(self) -> Float64:
        """Return how many groups of equal squares would say as much about errors, (P, q): Kish's count, of u^2.

        It is a third of the groups where they are alike and normal, and fewer where few make up most of an error: then
        the error is known badly, and its quantile is that of a t with as few degrees of freedom.
        """
        squares, fourth = (self.influences**2).sum(axis=0), (self.influences**4).sum(axis=0)
        return np.asarray(np.divide(squares**2, fourth, out=np.ones_like(squares), where=fourth > 0.0))

    def skewness(self) -> Float64:
        """Return the skewness of errors, (P, q); 0 where there is no error."""
        squares, cubes = (self.influences**2).sum(axis=0), (self.influences**3).sum(axis=0)
        return np.asarray(np.divide(cubes, squares**1.5, out=np.zeros_like(cubes), where=squares > 0.0))


class DialValues:
    """Turns sums into a curve: which values stand, which intervals they deserve, and why."""

    def __init__(
        self, question: DialQuestion, dials: Dials, survey: DialSurvey, sums: DialTotals, level: float
    ) -> None:
        self._question, self._dials, self._survey, self._sums, self._level = question, dials, survey, sums, level
        units = None if survey.log.units is None else len(survey.log.units)
        rows = sums.logged.groups[:, 0]
        self._groups = int(np.count_nonzero(rows))
        each = [Estimates.of(part, rows, units) for part in sums.policies]
        self._estimates = Estimates.joined([Estimates.of_log(sums.logged, units), *each])

    def curve(self, trained: Mapping[str, str], doubt: str) -> dict[str, Any]:
        """Return the fields of a `ParetoCurve` that say what was found.

        Parameters
        ----------
        trained
            By policy that learned from these rows: why it has no interval.
        doubt
            Why nothing has, if so.
        """
        names, weights, called = self._labels()
        refused = ["", *self._refused()]
        estimates = self._estimates
        few = ["too few effective rows" if ess < FEW else "" for ess in estimates.ess.min(axis=1, initial=np.inf)]
        notes = [no or doubt or trained.get(name, "") for no, name in zip(refused, names, strict=True)]
        notes = few[:1] + [note or about for note, about in zip(notes[1:], few[1:], strict=True)]
        estimates.values[[bool(each) for each in refused]] = np.nan
        stands = np.array([not note for note in notes])
        values, low, high, each = self._intervals(stands)
        ends = [self._oriented(part) for part in (values, low, high)]
        judged = stands & np.isfinite(np.concatenate(ends, axis=1)).all(axis=1)
        return {
            "policies": tuple(names),
            "weights": tuple(weights),
            "dials": tuple(called),
            "values": values,
            "low": low,
            "high": high,
            "each": each,
            "effective_rows": estimates.ess.min(axis=1, initial=np.inf),
            "standing": standings(ends[0], np.minimum(*ends[1:]), np.maximum(*ends[1:]), judged),
            "notes": tuple(notes),
        }

    def _oriented(self, parts: Mapping[str, Float64]) -> Float64:
        """Return both outcomes of the curve so that more is better, (P, 2)."""
        both = zip(self._dials.curve, self._dials.senses, strict=True)
        return np.column_stack([sense * parts[name] for name, sense in both])

    def _labels(self) -> tuple[list[str], list[Mapping[str, float] | None], list[str]]:
        """Return the policies of all values, their dials, and what these are called."""
        names: list[str] = [LOGGED]
        weights: list[Mapping[str, float] | None] = [None]
        called = [self._dials.called(dial) for dial in self._dials.weights]
        texts = [""]
        for policies in self._question.policies:
            for name in policies.names:
                names += [name] if policies.is_arm else [name] * len(called)
                weights += [None] if policies.is_arm else self._dials.weights
                texts += [""] if policies.is_arm else called
        return names, weights, texts

    def _refused(self) -> Iterator[str]:
        """Yield for every value of a policy why it has no number; nothing if it has one."""
        rows, slack = self._survey.log.rewarded, NEGLIGIBLE * self._survey.log.rewarded
        alpha = ALPHA / len(self._estimates.values)
        for part in self._sums.policies:
            average, p = _weights(part.matched, rows)
            tested = not self._survey.log.is_known and self._survey.log.units is None
            for beyond, agreed, mean, chance in zip(
                part.beyond.flat, part.matched.agreed.flat, average.flat, p.flat, strict=True
            ):
                if beyond > slack:
                    yield unreachable(float(beyond) / rows)
                elif agreed == 0:
                    yield UNMATCHED
                elif tested and chance < alpha:
                    yield f"its weights average {mean:.3g}, too far from 1 for chance: the log hardly ever tried it"
                else:
                    yield ""

    def _intervals(self, stands: Bool) -> tuple[dict[str, Float64], dict[str, Float64], dict[str, Float64], float]:
        """Return values and the ends of intervals by outcome, and the level of each interval."""
        estimates, names = self._estimates, self._survey.names
        errors, skewness = estimates.se(self._groups), estimates.skewness()
        counts = np.minimum(estimates.ess, estimates.effective_groups())
        spent = {name: self._spent(name) for name in self._question.names}
        which = np.column_stack([stands & np.isnan(spent[name]) for name in names])
        each = joint_level(estimates.influences.reshape(len(estimates.influences), -1), which.ravel(), self._level)
        values, low, high = ({name: spent[name].copy() for name in spent} for _ in range(3))  # NaN where estimated
        for place, name in enumerate(names):
            rewards = self._survey.rewards(name, self._question)
            estimated = np.isnan(spent[name])
            values[name][estimated] = estimates.values[estimated, place]
            for at in np.flatnonzero(which[:, place]).tolist():
                value, se, ess = (float(part[at, place]) for part in (estimates.values, errors, counts))
                ends = mean_interval(value, se, ess, each, rewards)[0]
                if ends is not None:
                    low[name][at], high[name][at] = _skewed(ends, se, float(skewness[at, place]), each, rewards)
        return values, low, high, each

    def _spent(self, name: str) -> Float64:
        """Return what every value has of a known outcome, counted over all decisions; NaN where it is not known."""
        rows = max(1, self._survey.log.rows)
        first = next((each for each in self._question.policies if name in each.prices), None)
        ran = np.nan if first is None else _paid(self._sums.logged.played, first.prices[name]) / rows
        parts = [np.array([ran])]
        for policies, part in zip(self._question.policies, self._sums.policies, strict=True):
            if name in policies.prices:
                parts.append((part.played @ policies.prices[name][policies.arms] / rows).ravel())
            else:
                parts.append(np.full(part.beyond.size, np.nan))
        return np.concatenate(parts)


def _skewed(ends: Interval, se: float, skewness: float, level: float, rewards: Rewards) -> Interval:
    """Move the end out where a long tail of rows may not have been seen, by the first term of Edgeworth's expansion.

    A dial that seldom plays what is dear has too low a cost and too small an error at once, when the log has few of
    these rows (Johnson, 1978). Wilson's interval of clicks has room for that already.
    """
    if rewards.binary or rewards.constant is not None:
        return ends
    z = NormalDist().inv_cdf(0.5 + level / 2)
    more = se * skewness * (2.0 * z * z + 1.0) / 6.0
    least, most = rewards.range or (-math.inf, math.inf)
    return Interval(max(least, ends.low + min(more, 0.0)), min(most, ends.high + max(more, 0.0)))


def _paid(played: Int64, prices: Float64) -> float:
    """Return what plays of all arms cost; NaN if the price of one that was played is not known."""
    return float(played[played > 0] @ prices[played > 0])


def _weights(sums: DialSums, rows: int) -> tuple[Float64, Float64]:
    """Return what weights average, which should be 1, and how likely so far away is by chance."""
    mean = sums.totals[..., 0] / rows
    spread = np.sqrt(np.maximum(sums.squares[..., 0, 0] / rows - mean**2, 0.0) / rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.where(spread > 0.0, (mean - 1.0) / spread, np.where(mean == 1.0, 0.0, np.inf))
    return mean, np.vectorize(tail)(z)


def value_dials(
    blocks: Blocks,
    targets: object,
    dials: DialsLike,
    curve: tuple[str, str] | None,
    order: tuple[Arm, ...] | None,
    *,
    level: float,
    weights: str,
    checks: str,
    progress: Progress | None,
) -> ParetoCurve:
    """Value policies under dials."""
    question = read_policies(targets, blocks, order)
    laid = lay_dials(dials, curve, question, blocks)
    survey = survey_dials(blocks, question.estimated, checks, progress)
    survey.log.refuse(weights)
    _refuse_checked(survey.checks)
    doubt = survey.log.doubt(blocks)
    bandits = [BanditTarget(each.names[0], each.bandit, blocks.arms) for each in question.policies if each.bandit]
    about = () if checks == "none" else check_trained(bandits, blocks, survey.log.weights)
    trained = {str(check.target): TRAINED for check in about if check.word is not Word.FINE}
    sums = sum_log(blocks, question, laid, survey, progress)
    units = survey.log.units
    return ParetoCurve(
        **DialValues(question, laid, survey, sums, level).curve(trained, doubt),
        curve=laid.curve,
        senses=laid.senses,
        counted=tuple(name for name in question.names if name not in question.estimated),
        rows=survey.log.rows,
        told=survey.log.rewarded,
        units=None if units is None else len(units),
        level=level,
        checks=(*survey.checks, *about),
        warnings=tuple(_warnings(survey, doubt, about)),
    )


def _refuse_checked(checks: tuple[Check, ...]) -> None:
    """Refuse a log that a check refuses: nothing can be valued by it."""
    refused = next((check for check in checks if check.word is Word.REFUSED), None)
    if refused is not None:
        raise EvaluationError(f"the check of {refused.name!r} refuses this log: {refused.sentence}")


def _warnings(survey: DialSurvey, doubt: str, about: tuple[Check, ...]) -> Iterator[str]:
    if doubt:
        yield doubt
    yield from (str(check) for check in (*survey.checks, *about) if check.word is not Word.FINE)
    if gone := survey.log.rows - survey.log.rewarded:
        yield f"{gone:,} of {survey.log.rows:,} decisions lack an outcome; values are of the others, which may differ"
