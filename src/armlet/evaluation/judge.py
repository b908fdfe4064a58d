"""Which estimator a log allows, which interval it deserves, and why: sums become answers here."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from armlet.errors import ArgumentError, EvaluationError
from armlet.evaluation.checks import Check, Word
from armlet.evaluation.checks.support import FEW, NOTHING, UNMATCHED, effective, unreachable
from armlet.evaluation.estimators import ESTIMATORS, Estimated, Estimator, estimate
from armlet.evaluation.own import Own, own_value
from armlet.evaluation.result import Difference, Point, Value
from armlet.evaluation.rows import Blocks
from armlet.evaluation.spans import NOTHING as NOWHERE
from armlet.evaluation.spans import between, hull, in_range, interval, plain
from armlet.evaluation.sums import Sums
from armlet.evaluation.survey import Survey
from armlet.evaluation.targets import Logged, Target
from armlet.evaluation.watch import Sequences
from armlet.inference.intervals import Interval
from armlet.inputs.settings import Objective, Range
from armlet.types import Float64

FEWEST: Final = 30
"""Explored rows with a reward, below which there is no interval that can be trusted."""
TRAINED: Final = "trained on these rows"


@dataclass(frozen=True, slots=True)
class Found:
    """A value, and what it was read off."""

    value: Value
    estimated: Estimated
    own: Float64


class Judge:
    """Chooses estimators and intervals, and says why.

    Parameters
    ----------
    survey, blocks
        What the first pass found, and the log.
    level, declared, estimator
        As of `armlet.evaluate`; the range of rewards is that of the log where none was given.
    checks
        What is known before values are; None if nobody looked. Those that follow from values are added here.
    trained
        Names of targets that learned from these rows.
    """

    def __init__(
        self,
        survey: Survey,
        blocks: Blocks,
        level: float,
        declared: Range | None,
        estimator: str,
        checks: tuple[Check, ...] | None,
        trained: Collection[str],
    ) -> None:
        self.checks = checks or ()
        self._is_checked, self._trained = checks is not None, trained
        self._survey, self._blocks, self._level = survey, blocks, level
        self._rewards = survey.rewards(declared)
        self._estimator, self._why, self.doubt = choose(survey, blocks, estimator)

    def warnings(self) -> list[str]:
        """Say what a reader should know of the log."""
        s, told = self._survey, []
        if self.doubt:
            told.append(self.doubt)
        told += [str(check) for check in self.checks if check.word is not Word.FINE]
        if gone := s.rows - s.rewarded:
            told.append(f"{gone:,} of {s.rows:,} rewards are missing; values are of those that came, which may differ")
        if s.turns:
            told.append(
                f"{s.turns:,} rows had their turn in a round-robin, and are read as drawn: right if contexts do not "
                "depend on the step; log with warmup='uniform' where a log will be evaluated"
            )
        return told

    def values(self, targets: Sequence[Target], sums: Sums, sequences: Sequences | None) -> dict[str, Found]:
        """Value all targets, those that the log tells nothing of without a number."""
        found = {}
        for place, target in enumerate(targets):
            own, is_log = sums.own[place], isinstance(target, Logged)
            estimated = estimate("ips" if is_log else self._estimator, own)
            if self._is_checked and not is_log:
                about = effective(target.name, self._survey.rewarded, estimated.ess, float(sums.largest[place]))
                self.checks = (*self.checks, about)
            value = self._value(target.name, place, estimated, sums, is_log)
            # a sequence holds however few rows there are, but not where the log itself is in question
            if sequences is not None and not is_log and self.stands(value):
                value = replace(value, anytime=sequences.interval(target.name))
            found[target.name] = Found(value, estimated, own)
        return found

    def check_certain(self, targets: Sequence[Target], sums: Sums, own: Sequence[str]) -> None:
        """Refuse a log that tells nothing of any target, since all of them play what it could not have played."""
        asked = [place for place, target in enumerate(targets) if not isinstance(target, Logged)]
        reached = any(sums.beyond[place] <= self._slack for place in asked)
        if self._survey.certain and (asked or own) and not reached:
            raise EvaluationError(
                f"{self._survey.certain:,} decisions of {_policy(self._blocks)} could not have been otherwise: what "
                "another arm would have earned there nobody knows, and weights do not repair it. Log with a policy "
                "that explores at a known rate, such as armlet.Algorithm1, or OccasionalOptimism(floor=0.05)"
            )

    def own(self, names: Sequence[str]) -> list[Own]:
        """Value what these very rows teach."""
        refused = next((each.sentence for each in self.checks if each.target is None and each.word is Word.REFUSED), "")
        if not refused and self._survey.certain:
            refused = (
                f"{self._survey.certain:,} decisions could not have been otherwise, so what these rows teach cannot be "
                "valued: it may play another arm there"
            )
        return [
            own_value(self._blocks, self._survey, self._level, self._rewards, name, doubt=self.doubt, refused=refused)
            for name in names
        ]

    @property
    def _slack(self) -> float:
        return NOTHING * self._survey.rewarded

    def _value(self, name: str, place: int, estimated: Estimated, sums: Sums, is_log: bool) -> Value:
        se = math.sqrt(variance) if (variance := estimated.variance(sums.own[place])) >= 0 else math.nan
        refused = "" if is_log else self._refused(name, place, sums)
        span, note = (None, refused) if refused else self._interval(name, estimated, se, is_log)
        value, outside = (math.nan, "") if refused else in_range(estimated.value, self._rewards.range)
        return Value(
            name=name,
            value=value,
            se=math.nan if refused else se,
            interval=span,
            anytime=None,
            rows=self._survey.rewarded,
            ess=estimated.ess,
            estimator="mean" if is_log else self._estimator,
            why="the mean of the logged rewards" if is_log else self._why,
            largest_weight=float(sums.largest[place]),
            note="; ".join(filter(None, (outside, note))),
            doubtful=self._doubtful(name, estimated, is_log),
        )

    def _doubtful(self, name: str, estimated: Estimated, is_log: bool) -> str:
        if name in self._trained:
            return TRAINED
        return "too few effective rows" if self._is_checked and not is_log and estimated.ess < FEW else ""

    def stands(self, value: Value) -> bool:
        """Say whether a value may be believed, by what is known of the log and of the target's training."""
        return not math.isnan(value.value) and value.doubtful != TRAINED

    def points(self, own: Float64, value: Value) -> dict[str, Point]:
        """Give what every estimator says, as it says it; nothing where the log tells nothing."""
        out: dict[str, Point] = {}
        for word in ESTIMATORS:
            if math.isnan(value.value):
                out[word] = Point(math.nan, math.nan, None)
                continue
            found = estimate(word, own)
            se = math.sqrt(variance) if (variance := found.variance(own)) >= 0 else math.nan
            honest = found.influence is not None and not self.doubt and self.stands(value)
            out[word] = Point(found.value, se, self._span_of(word, found, se)[0] if honest else None)
        return out

    def _interval(self, name: str, estimated: Estimated, se: float, is_log: bool) -> tuple[Interval | None, str]:
        if not is_log and self.doubt:
            return None, self.doubt
        if not math.isfinite(estimated.value):
            return None, "no row of the log says anything of it"
        if name in self._trained:
            return None, "it was trained on these rows, so its value is too good; ask for 'own'"
        if estimated.influence is None:
            return None, f"{self._estimator} has a bias that no row knows of, so an interval would lie"
        return self._span_of("mean" if is_log else self._estimator, estimated, se)

    def _refused(self, name: str, place: int, sums: Sums) -> str:
        """Say why there is no number for a target; nothing if there is one."""
        about = (check for check in self.checks if check.target in (None, name))
        if told := next((check.sentence for check in about if check.word is Word.REFUSED), ""):
            return told
        if sums.beyond[place] > self._slack:
            return unreachable(float(sums.beyond[place]) / self._survey.rewarded)
        return UNMATCHED if sums.largest[place] == 0.0 else ""

    def _span_of(self, word: str, found: Estimated, se: float) -> tuple[Interval | None, str]:
        span, why = interval(found.value, se, found.ess, self._level, self._rewards)
        if span is None or word != "ips" or not self._rewards.binary:
            return span, why
        if found.value <= 0.5 or found.ess >= found.rows:
            return span, why
        # S wr knows nothing of rows without a match, so that its error does not shrink where all is clicks
        return hull(span, plain(found.value, se, found.ess, self._level), (0.0, 1.0)), why

    def differences(
        self, targets: Sequence[Target], found: Mapping[str, Found], sums: Sums, own: Sequence[Own]
    ) -> dict[str, Difference]:
        """Compare all with the last, on the same rows; what these rows teach, by what it earned on later ones."""
        base, many = found[targets[-1].name], len(targets) - 1 + len(own)
        levels = (self._level, 1 - (1 - self._level) / many) if many else ()
        out = {}
        for place, target in enumerate(targets[:-1]):
            mine = found[target.name]
            shared = mine.estimated.covariance(base.estimated, sums.paired[place])
            variance = mine.estimated.variance(mine.own) + base.estimated.variance(base.own) - 2.0 * shared
            se = math.sqrt(max(0.0, variance)) if math.isfinite(variance) else math.nan
            spans = [self._apart(mine.value, base.value, se, shared, level) for level in levels]
            out[target.name] = self._difference(mine.value, base.value, se, spans)
        is_log = isinstance(targets[-1], Logged)
        for each in own:
            spans = [self._ahead(each, base.value, level, is_log) for level in levels]
            out[each.value.name] = self._difference(each.value, base.value, math.nan, spans)
        return out

    def _difference(self, mine: Value, base: Value, se: float, spans: Sequence[Interval | None]) -> Difference:
        trusted = mine.interval is not None and base.interval is not None
        alone, adjusted = spans if trusted else (None, None)
        return Difference(
            name=mine.name,
            baseline=base.name,
            value=mine.value - base.value,
            se=se,
            interval=alone,
            adjusted=adjusted,
            verdict=verdict(mine, base, adjusted, self._blocks.objective),
        )

    def _apart(self, mine: Value, base: Value, se: float, shared: float, level: float) -> Interval | None:
        """Give the interval of a difference: plain where both values vary, else by the intervals of the two."""
        varies = self._rewards.constant is None and mine.se > 0.0 and base.se > 0.0 and se > 0.0
        if varies:
            span = plain(mine.value - base.value, se, min(mine.ess, base.ess), level)
            return None if span == NOWHERE else span
        both = mine.se * base.se
        spans = [interval(each.value, each.se, each.ess, level, self._rewards)[0] for each in (mine, base)]
        return _between((mine.value, spans[0]), (base.value, spans[1]), shared / both if both > 0.0 else 0.0)

    def _ahead(self, own: Own, base: Value, level: float, is_log: bool) -> Interval | None:
        """Compare what policies that had learned from earlier rows earned with the baseline.

        With the log's own mean by their covariance; with any other as if the two went against each other, which makes
        the interval too wide rather than too short.
        """
        ahead = own.ahead
        one = interval(ahead.value, ahead.se, ahead.ess, level, self._rewards)[0]
        other = interval(base.value, base.se, base.ess, level, self._rewards)[0]
        both = ahead.se * base.se
        known = is_log and both > 0.0
        shared = ahead.covariance(base.value, self._survey.rewarded) / both if known else -1.0
        return _between((ahead.value, one), (base.value, other), shared)


def _between(
    one: tuple[float, Interval | None], other: tuple[float, Interval | None], correlation: float
) -> Interval | None:
    if one[1] is None or other[1] is None:
        return None
    return between((one[0], one[1]), (other[0], other[1]), correlation)


def verdict(mine: Value, base: Value, adjusted: Interval | None, objective: Objective) -> str:
    """Say whether a policy is better than the baseline, once for terminal, page and data."""
    for value, name in ((mine, "it"), (base, base.name)):
        if math.isnan(value.value):
            return f"not judged: {name} cannot be valued by this log"
        if value.doubtful:
            return f"not judged: {value.doubtful}" if value is mine else f"not judged: {name}: {value.doubtful}"
    if adjusted is None:
        return "not judged: no interval can be trusted"
    if adjusted.low <= 0.0 <= adjusted.high:
        return "not clear"
    return "better" if (adjusted.low > 0.0) == (objective == "max") else "worse"


def choose(survey: Survey, blocks: Blocks, estimator: str) -> tuple[Estimator, str, str]:
    """Give the estimator, why, and what keeps its interval from being believed, if anything does."""
    known = survey.known == survey.rewarded
    _check_estimator(estimator, survey)
    doubt = ""
    if known and survey.tried < FEWEST:
        doubt = (
            f"only {survey.tried:,} explored decisions have a reward, fewer than {FEWEST}: no interval can be trusted; "
            "explore more, for instance with a floor"
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


def _check_estimator(estimator: str, survey: Survey) -> None:
    """Refuse an estimator that reads what the log does not tell: its value would be no number."""
    if estimator == "weighted" and survey.known < survey.rewarded:
        text = (
            "{estimator} is 'weighted', which needs the rate of exploring and the chance of every explored arm in all "
            "rows; {lacking} of {rows} do not tell them. Choose 'auto'"
        )
        raise ArgumentError(text, lacking=f"{survey.rewarded - survey.known:,}", rows=f"{survey.rewarded:,}")
    if estimator in ("explored", "replay") and not survey.tried:
        text = "{estimator} is {value!r}, which reads explored rows with a reward, and the log has none. Choose 'auto'"
        raise ArgumentError(text, value=estimator)
