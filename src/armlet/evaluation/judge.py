"""Which estimator a log allows, which interval it deserves, and why: sums become answers here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from armlet.core.errors import EvaluationError
from armlet.core.intervals import Interval
from armlet.core.rewards import Range
from armlet.core.types import Float64
from armlet.evaluation.checks import Check, Word
from armlet.evaluation.estimators import ESTIMATORS, Estimated, Estimator, estimate
from armlet.evaluation.result import Difference, Point, Value, Verdict
from armlet.evaluation.rows import Blocks
from armlet.evaluation.spans import between, hull, plain, wilson
from armlet.evaluation.sums import Sums
from armlet.evaluation.survey import Survey
from armlet.evaluation.targets import Logged, Target
from armlet.evaluation.watch import Sequences

FEWEST: Final = 30
"""Explored rows, or effective ones, below which there is no interval that can be trusted."""


@dataclass(frozen=True, slots=True)
class Found:
    """A value, and what it was read off."""

    value: Value
    estimated: Estimated
    own: Float64


class Judge:
    """Chooses estimators and intervals, and says why."""

    def __init__(
        self,
        survey: Survey,
        blocks: Blocks,
        level: float,
        declared: Range | None,
        estimator: str,
        checks: tuple[Check, ...],
    ) -> None:
        self._checks = checks
        self._survey, self._blocks, self._level, self._declared = survey, blocks, level, declared
        self._estimator, self._why, self.doubt = choose(survey, blocks, estimator)

    def warnings(self) -> list[str]:
        """Say what a reader should know of the log."""
        s, told = self._survey, []
        if self.doubt:
            told.append(self.doubt)
        told += [str(check) for check in self._checks if check.word is not Word.FINE]
        if gone := s.rows - s.rewarded:
            told.append(f"{gone:,} of {s.rows:,} rewards are missing; values are of those that came, which may differ")
        if s.turns:
            told.append(
                f"{s.turns:,} rows had their turn in a round-robin, and are read as drawn: right if contexts do not "
                "depend on the step; log with warmup='uniform' where a log will be evaluated"
            )
        return told

    def values(self, targets: Sequence[Target], sums: Sums, sequences: Sequences | None) -> dict[str, Found]:
        """Value all targets."""
        found = {}
        for place, target in enumerate(targets):
            own = sums.own[place]
            is_log = isinstance(target, Logged)
            estimated = estimate("ips" if is_log else self._estimator, own)
            se = math.sqrt(variance) if (variance := estimated.variance(own)) >= 0 else math.nan
            span, note = self._interval(target.name, estimated, se, is_log)
            # a sequence holds however few rows there are, but not where the log itself is in question
            barred = sequences is None or is_log or bool(self._refused(target.name))
            anytime = None if sequences is None or barred else sequences.interval(target.name)
            value = Value(
                name=target.name,
                value=estimated.value,
                se=se,
                interval=span,
                anytime=anytime,
                rows=self._survey.rewarded,
                ess=estimated.ess,
                estimator="mean" if is_log else self._estimator,
                why="what was played was played" if is_log else self._why,
                largest_weight=float(sums.largest[place]),
                note=note,
            )
            found[target.name] = Found(value, estimated, own)
        return found

    def points(self, own: Float64) -> dict[str, Point]:
        """Give what every estimator says."""
        out: dict[str, Point] = {}
        for word in ESTIMATORS:
            found = estimate(word, own)
            se = math.sqrt(variance) if (variance := found.variance(own)) >= 0 else math.nan
            honest = found.influence is not None and not self.doubt
            out[word] = Point(found.value, se, self._span_of(word, found, se) if honest else None)
        return out

    def _interval(self, name: str, estimated: Estimated, se: float, is_log: bool) -> tuple[Interval | None, str]:
        if not is_log and self.doubt:
            return None, self.doubt
        if not is_log and (refused := self._refused(name)):
            return None, refused
        if not math.isfinite(estimated.value):
            return None, "no row of the log says anything of it"
        if estimated.influence is None:
            return None, f"{self._estimator} has a bias that no row knows of, so an interval would lie"
        return self._span_of("mean" if is_log else self._estimator, estimated, se), ""

    def _refused(self, name: str) -> str:
        about = (check for check in self._checks if check.target in (None, name))
        return next((check.sentence for check in about if check.word is Word.REFUSED), "")

    def _span_of(self, word: str, found: Estimated, se: float) -> Interval:
        span = self._span(found.value, se, found.ess)
        if word != "ips" or not self._survey.binary or found.value <= 0.5 or found.ess >= found.rows:
            return span
        # S wr knows nothing of rows without a match, so that its error does not shrink where all is clicks
        return hull(span, plain(found.value, se, found.ess, self._level), (0.0, 1.0))

    def _span(self, value: float, se: float, ess: float, level: float | None = None) -> Interval:
        level = self._level if level is None else level
        ends = (0.0, 1.0) if self._survey.binary else self._declared if se == 0.0 else None
        if ends is not None:
            return wilson(value, se, ess, level, ends)
        span = plain(value, se, ess, level)
        if self._declared is not None:
            return Interval(max(span.low, self._declared[0]), min(span.high, self._declared[1]))
        return span

    def differences(self, targets: Sequence[Target], found: Mapping[str, Found], sums: Sums) -> dict[str, Difference]:
        """Compare all with the last, on the same rows."""
        base = found[targets[-1].name]
        out = {}
        for place, target in enumerate(targets[:-1]):
            mine = found[target.name]
            one = mine.estimated.variance(mine.own)
            shared = mine.estimated.covariance(base.estimated, sums.paired[place])
            variance = one + base.estimated.variance(base.own) - 2.0 * shared
            se = math.sqrt(max(0.0, variance)) if math.isfinite(variance) else math.nan
            out[target.name] = self._difference(mine, base, se, shared, len(targets) - 1)
        return out

    def _difference(self, mine: Found, base: Found, se: float, shared: float, many: int) -> Difference:
        trusted = mine.value.interval is not None and base.value.interval is not None
        alone = self._apart(mine.value, base.value, se, shared, self._level) if trusted else None
        adjusted = self._apart(mine.value, base.value, se, shared, 1 - (1 - self._level) / many) if trusted else None
        value = mine.value.value - base.value.value
        return Difference(
            name=mine.value.name,
            baseline=base.value.name,
            value=value,
            se=se,
            interval=alone,
            adjusted=adjusted,
            verdict=_verdict(adjusted, 1.0 if self._blocks.objective == "max" else -1.0),
        )

    def _apart(self, mine: Value, base: Value, se: float, shared: float, level: float) -> Interval:
        """Give the interval of a difference: plain where both values vary, else by the intervals of the two."""
        if mine.se > 0.0 and base.se > 0.0 and se > 0.0:
            return plain(mine.value - base.value, se, min(mine.ess, base.ess), level)
        both = mine.se * base.se
        spans = [self._span(each.value, each.se, each.ess, level) for each in (mine, base)]
        return between((mine.value, spans[0]), (base.value, spans[1]), shared / both if both > 0.0 else 0.0)


def _verdict(interval: Interval | None, sign: float) -> Verdict:
    if interval is None or interval.low <= 0.0 <= interval.high:
        return "not clear"
    return "better" if sign * interval.low > 0.0 else "worse"


def choose(survey: Survey, blocks: Blocks, estimator: str) -> tuple[Estimator, str, str]:
    """Give the estimator, why, and what keeps its interval from being believed, if anything does."""
    known = survey.known == survey.rewarded
    if survey.certain:
        what = _policy(blocks)
        raise EvaluationError(
            f"{survey.certain:,} decisions of {what} could not have been otherwise: what another arm would have earned "
            "there nobody knows, and weights do not repair it. Log with a policy that explores at a known rate, such "
            "as armlet.Algorithm1, or OccasionalOptimism(floor=0.05)"
        )
    doubt = ""
    if known and survey.explored < FEWEST:
        doubt = (
            f"only {survey.explored:,} rows explored, fewer than {FEWEST}: no interval can be trusted; explore more, "
            "for instance with a floor"
        )
    elif not known and survey.foreign < survey.rewarded:
        doubt = (
            f"{_policy(blocks)} chose by what it had learned, without exploring at a known rate: intervals of its log "
            "cover far less often than they say, so none is given"
        )
    if estimator != "auto":
        return estimator, "it was asked for", doubt  # type: ignore[return-value]
    if known:
        return "weighted", "the rate of exploring and the chance of every explored arm are known in all rows", doubt
    if doubt:
        return "snips", "propensities are all that is known, and depend on what was learned", doubt
    return "dr", "propensities are all that is known; rows are taken as independent", doubt


def _policy(blocks: Blocks) -> str:
    return "the log" if blocks.policy is None else str(blocks.policy["name"])
