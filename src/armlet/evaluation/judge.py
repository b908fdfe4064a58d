"""From sums to answers: which estimator a log allows, which interval a value deserves, and why; how values compare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from armlet.errors import ArgumentError, EvaluationError
from armlet.evaluation.checks import (
    FEW,
    NEGLIGIBLE,
    TRAINED,
    UNMATCHED,
    Check,
    Word,
    check_ess,
    unreachable,
)
from armlet.evaluation.estimators import (
    EVERYWHERE,
    Estimated,
    Estimator,
    EstimatorLike,
    clamp,
    difference_interval,
    estimate,
    hull,
    mean_interval,
    places_of,
    t_interval,
)
from armlet.evaluation.model import TargetSums
from armlet.evaluation.monitor import AnytimeIntervals, Survey, logger_of
from armlet.evaluation.own import SelfEvaluation, self_evaluate
from armlet.evaluation.result import Difference, Point, Value
from armlet.evaluation.rows import Blocks
from armlet.evaluation.targets import Target
from armlet.inputs.settings import Objective, Range
from armlet.types import Float64, Interval


@dataclass(frozen=True, slots=True)
class JudgedValue:
    """A value, and what it was read off."""

    value: Value
    estimated: Estimated
    spread: Float64  # what its error is read off: products of row features, summed over units first where there are any


class Judge:
    """Chooses the estimator among all, and intervals, with the reasons; `declared` is the range of rewards, if any."""

    def __init__(
        self,
        survey: Survey,
        blocks: Blocks,
        level: float,
        declared: Range | None,
        estimator: EstimatorLike,
        estimators: Mapping[str, Estimator],
    ) -> None:
        self.checks: tuple[Check, ...] = ()  # those that follow from values are added here
        self.is_checked = self.lacks_bound = False
        self.trained: set[str] = set()  # names of targets that learned from these rows
        self._survey, self._blocks, self._level = survey, blocks, level
        self._rewards = survey.rewards(declared)
        self._all, self._places = estimators, places_of(estimators.values())
        self._estimator, self._why, self.doubt = choose(survey, blocks, estimator, estimators)

    def warnings(self) -> list[str]:
        """Return what a reader should know of the log."""
        s = self._survey
        lines = [self.doubt] if self.doubt else []
        lines += [str(check) for check in self.checks if check.word is not Word.FINE]
        if gone := s.rows - s.rewarded:
            lines.append(f"{gone:,} of {s.rows:,} rewards are missing; values are of those that came, which may differ")
        if s.turns:
            lines.append(
                f"{s.turns:,} rows had their turn in a round-robin, and are read as drawn: right if contexts do not "
                "depend on the step; log with warmup='uniform' where a log will be evaluated"
            )
        if self.lacks_bound:
            lines.append(
                "decisions of a unit share a draw, so anytime-valid intervals need the most that one can have in an "
                "epoch, known beforehand: give largest_unit"
            )
        return lines

    def values(
        self, targets: Sequence[Target], sums: TargetSums, sequences: AnytimeIntervals | None
    ) -> dict[str, JudgedValue]:
        """Value all targets, those that the log tells nothing of without a number."""
        values = {}
        for place, target in enumerate(targets):
            is_log, spread = target.is_log, _spread(sums, place)
            estimated = self._estimated("ips" if is_log else self._estimator, sums, place)
            if self.is_checked and not is_log:
                about = check_ess(target.name, self._survey.rewarded, estimated.ess, float(sums.largest[place]))
                self.checks = (*self.checks, about)
            value = self._value(target.name, place, estimated, sums, is_log)
            # a sequence holds however few rows there are, but not where the log itself is in question
            if sequences is not None and not is_log and stands(value):
                value = replace(value, anytime=sequences.interval(target.name))
            values[target.name] = JudgedValue(value, estimated, spread)
        return values

    def _estimated(self, estimator: EstimatorLike, sums: TargetSums, place: int) -> Estimated:
        """Return an estimate; where rows have units, with so many rows that say anything as there are units."""
        estimated, units = estimate(estimator, sums.own[place], self._places), self._survey.units
        if units is None or estimated.influence is None:
            return estimated
        alone, together = estimated.variance(sums.own[place]), estimated.variance(_spread(sums, place))
        times = together / alone if alone > 0.0 else 1.0  # the design effect
        ess = min(estimated.ess / max(1.0, times), float(len(units)))
        return replace(estimated, ess=ess, rows=min(estimated.rows, float(len(units))))

    def refuse_deterministic(self, targets: Sequence[Target], sums: TargetSums, own: Sequence[str]) -> None:
        """Refuse a log that tells nothing of any target, since all of them play what it could not have played."""
        places = [place for place, target in enumerate(targets) if not target.is_log]
        reached = any(sums.beyond[place] <= self._slack for place in places)
        if self._survey.certain and (places or own) and not reached:
            raise EvaluationError(
                f"{self._survey.certain:,} decisions of {logger_of(self._blocks)} could not have been otherwise: what "
                "another arm would have earned there nobody knows, and weights do not repair it. Log with a policy "
                "that explores at a known rate, such as armlet.Algorithm1, or OccasionalOptimism(floor=0.05)"
            )

    def own(self, names: Sequence[str]) -> list[SelfEvaluation]:
        """Value what these very rows teach."""
        refused = next((each.sentence for each in self.checks if each.target is None and each.word is Word.REFUSED), "")
        if not refused and self._survey.certain:
            refused = (
                f"{self._survey.certain:,} decisions could not have been otherwise, so what these rows teach cannot be "
                "valued: it may play another arm there"
            )
        args = (self._blocks, self._survey, self._level, self._rewards)
        return [self_evaluate(*args, name, doubt=self.doubt, refused=refused) for name in names]

    @property
    def _slack(self) -> float:
        return NEGLIGIBLE * self._survey.rewarded

    def _value(self, name: str, place: int, estimated: Estimated, sums: TargetSums, is_log: bool) -> Value:
        se = estimated.standard_error(_spread(sums, place))
        refused = "" if is_log else self._refused(name, place, sums)
        span, note = (None, refused) if refused else self._interval(name, estimated, se, is_log)
        value, outside = (math.nan, "") if refused else clamp(estimated.value, self._rewards.range)
        return Value(
            name=name,
            value=value,
            se=math.nan if refused else se,
            interval=span,
            anytime=None,
            rows=self._survey.rewarded,
            ess=estimated.ess,
            estimator="mean" if is_log else self._estimator.name,
            why="the mean of the logged rewards" if is_log else self._why,
            largest_weight=float(sums.largest[place]),
            note="; ".join(filter(None, (outside, note))),
            doubtful=self._doubtful(name, estimated, is_log),
        )

    def _doubtful(self, name: str, estimated: Estimated, is_log: bool) -> str:
        if name in self.trained:
            return TRAINED
        return "too few effective rows" if self.is_checked and not is_log and estimated.ess < FEW else ""

    def points(self, sums: TargetSums, place: int, value: Value) -> dict[str, Point]:
        """Return what every estimator says, as it says it; nothing where the log tells nothing."""
        if math.isnan(value.value):
            return dict.fromkeys(self._all, Point(math.nan, math.nan, None))
        out: dict[str, Point] = {}
        for name, estimator in self._all.items():
            estimated = self._estimated(estimator, sums, place)
            se = estimated.standard_error(_spread(sums, place))
            honest = estimated.influence is not None and not self.doubt and stands(value)
            span = self._span(estimated, se, counts_misses=estimator.counts_misses) if honest else (None, "")
            out[name] = Point(estimated.value, se, span[0])
        return out

    def _interval(self, name: str, estimated: Estimated, se: float, is_log: bool) -> tuple[Interval | None, str]:
        if not is_log and self.doubt:
            return None, self.doubt
        if not math.isfinite(estimated.value):
            return None, "no row of the log says anything of it"
        if name in self.trained:
            return None, "it was trained on these rows, so its value is too good; ask for 'own'"
        if estimated.influence is None:
            return None, f"{self._estimator.name} has a bias that no row knows of, so an interval would lie"
        return self._span(estimated, se, counts_misses=is_log or self._estimator.counts_misses)

    def _refused(self, name: str, place: int, sums: TargetSums) -> str:
        """Return why there is no number for a target; nothing if there is one."""
        about = (check for check in self.checks if check.target in (None, name))
        if sentence := next((check.sentence for check in about if check.word is Word.REFUSED), ""):
            return sentence
        if sums.beyond[place] > self._slack:
            return unreachable(float(sums.beyond[place]) / self._survey.rewarded)
        return UNMATCHED if sums.largest[place] == 0.0 else ""

    def _span(self, estimated: Estimated, se: float, *, counts_misses: bool) -> tuple[Interval | None, str]:
        span, why = mean_interval(estimated.value, se, estimated.ess, self._level, self._rewards)
        if (
            span is None
            or counts_misses
            or not self._rewards.binary
            or estimated.value <= 0.5
            or estimated.ess >= estimated.rows
        ):
            return span, why
        # the error does not shrink where all is clicks
        return hull(span, t_interval(estimated.value, se, estimated.ess, self._level), (0.0, 1.0)), why

    def differences(
        self,
        targets: Sequence[Target],
        values: Mapping[str, JudgedValue],
        sums: TargetSums,
        own: Sequence[SelfEvaluation],
    ) -> dict[str, Difference]:
        """Compare all with the last, on the same rows; what these rows teach, by what it earned on later ones."""
        base, many = values[targets[-1].name], len(targets) - 1 + len(own)
        levels = (self._level, 1 - (1 - self._level) / many) if many else ()
        out = {}
        for place, target in enumerate(targets[:-1]):
            mine = values[target.name]
            paired = sums.paired[place] if sums.units is None else sums.units.paired[place]
            shared = mine.estimated.covariance(base.estimated, paired)
            variance = mine.estimated.variance(mine.spread) + base.estimated.variance(base.spread) - 2.0 * shared
            se = math.sqrt(max(0.0, variance)) if math.isfinite(variance) else math.nan
            spans = [self._apart(mine.value, base.value, se, shared, level) for level in levels]
            out[target.name] = self._difference(mine.value, base.value, se, spans)
        is_log = targets[-1].is_log
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
        """Return the interval of a difference: by its own error where both values vary, else by the two intervals."""
        varies = self._rewards.constant is None and mine.se > 0.0 and base.se > 0.0 and se > 0.0
        if varies:
            span = t_interval(mine.value - base.value, se, min(mine.ess, base.ess), level)
            return None if span == EVERYWHERE else span
        both = mine.se * base.se
        ends = [mean_interval(each.value, each.se, each.ess, level, self._rewards)[0] for each in (mine, base)]
        return difference_interval((mine.value, ends[0]), (base.value, ends[1]), shared / both if both > 0.0 else 0.0)

    def _ahead(self, own: SelfEvaluation, base: Value, level: float, is_log: bool) -> Interval | None:
        """Compare what policies that had learned from earlier rows earned with the baseline.

        With the log's own mean by their covariance; with any other as if the two went against each other, which makes
        the interval too wide rather than too short.
        """
        ahead = own.ahead
        one = mean_interval(ahead.value, ahead.se, ahead.ess, level, self._rewards)[0]
        other = mean_interval(base.value, base.se, base.ess, level, self._rewards)[0]
        both = ahead.se * base.se
        known = is_log and both > 0.0
        shared = ahead.covariance(base.value, self._survey.rewarded) / both if known else -1.0
        return difference_interval((ahead.value, one), (base.value, other), shared)


def _spread(sums: TargetSums, place: int) -> Float64:
    """Return the products of features that the error of a value is read off."""
    own: Float64 = (sums.own if sums.units is None else sums.units.own)[place]
    return own


def stands(value: Value) -> bool:
    """Return whether a value may be believed, by what is known of the log and of the target's training."""
    return not math.isnan(value.value) and value.doubtful != TRAINED


def verdict(mine: Value, base: Value, adjusted: Interval | None, objective: Objective) -> str:
    """Return whether a policy is better than the baseline, once for terminal, page and data."""
    for value, name in ((mine, ""), (base, f"{base.name} ")):
        if math.isnan(value.value):
            return f"not judged: {name}cannot be valued by this log"
        if value.doubtful:
            return f"not judged: {value.doubtful}" if value is mine else f"not judged: {base.name}: {value.doubtful}"
    if adjusted is None:
        return "not judged: no interval can be trusted"
    if adjusted.low <= 0.0 <= adjusted.high:
        return "not clear"
    return "better" if (adjusted.low > 0.0) == (objective == "max") else "worse"


def choose(
    survey: Survey, blocks: Blocks, estimator: EstimatorLike, estimators: Mapping[str, Estimator]
) -> tuple[Estimator, str, str]:
    """Return the estimator, why, and what keeps its interval from being believed, if anything does."""
    known, doubt = survey.is_known, survey.doubt(blocks)
    if estimator != "auto":
        chosen = estimator if isinstance(estimator, Estimator) else estimators[estimator]
        _refuse_unknown(chosen, survey)
        return chosen, "it was asked for", doubt
    if known:
        why = "the rate of exploring and the chance of every explored arm are known in all rows"
        return estimators["weighted"], why, doubt
    if doubt:
        return estimators["snips"], "propensities are all that is known, and depend on what was learned", doubt
    what = "rows" if survey.units is None else "units"
    return estimators["dr"], f"propensities are all that is known; {what} are taken as independent", doubt


def _refuse_unknown(estimator: Estimator, survey: Survey) -> None:
    """Refuse an estimator that reads what the log does not hold: its value would be NaN."""
    if estimator.needs == "exploration rates" and survey.known < survey.rewarded:
        text = (
            "{estimator} is {value!r}, which needs the rate of exploring and the chance of every explored arm in all "
            "rows; {lacking} of {rows} do not tell them. Choose 'auto'"
        )
        lacking, rows = f"{survey.rewarded - survey.known:,}", f"{survey.rewarded:,}"
        raise ArgumentError(text, value=estimator.name, lacking=lacking, rows=rows)
    if estimator.needs == "explored rows" and not survey.tried:
        text = "{estimator} is {value!r}, which reads explored rows with a reward, and the log has none. Choose 'auto'"
        raise ArgumentError(text, value=estimator.name)
