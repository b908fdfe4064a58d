"""What policies would have earned, from the log of another: `armlet.evaluate`.

Two passes over the log: one that says what kind it is and sums a reward model, one that sums what each row says of each
target. Memory holds a block of rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from armlet.core.errors import ArgumentError, EvaluationError
from armlet.core.intervals import LEVEL, Interval
from armlet.core.rewards import Range, check_range
from armlet.core.types import Float64
from armlet.evaluation.checks import Check, Word
from armlet.evaluation.estimators import ESTIMATORS, Estimated, Estimator, estimate
from armlet.evaluation.model import solve
from armlet.evaluation.own import own_value
from armlet.evaluation.result import Difference, Evaluation, Value, Verdict
from armlet.evaluation.rows import Blocks, open_rows
from armlet.evaluation.spans import plain, wilson
from armlet.evaluation.sums import MOST, SHRINK, Sums, SumTask, add_sums, sum_block
from armlet.evaluation.survey import Survey, survey_log
from armlet.evaluation.targets import Logged, Playing, Target, TargetLike, read_target, split_own
from armlet.evaluation.watch import Sequences, Watch
from armlet.log.reading import Source
from armlet.parallel.pool import PoolLike, map_in_order, opened
from armlet.parallel.progress import Progress, silent

Spans: TypeAlias = Literal["fixed", "both"]
"""Which intervals are computed: those of one look, or also those that hold at every look."""
Weights: TypeAlias = Literal["refuse", "ignore"]
"""What is done with rows that were learned with a weight other than 1."""

Checking: TypeAlias = Literal["all", "none"]
"""Whether the log is looked at before values are believed."""

FEWEST: Final = 30
"""Explored rows, or effective ones, below which there is no interval that can be trusted."""


def evaluate(
    log: Source | Blocks,
    targets: TargetLike | Mapping[str, TargetLike] | Sequence[TargetLike],
    *,
    baseline: TargetLike = "logged",
    estimator: Estimator | Literal["auto"] = "auto",
    interval: Spans = "both",
    level: float = LEVEL,
    reward_range: Range | None = None,
    playing: Playing = "greedy",
    weights: Weights = "refuse",
    checks: Checking = "all",
    most: float = MOST,
    shrink: float = SHRINK,
    pool: PoolLike = "serial",
    workers: int | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Say what policies would have earned on the decisions of a log.

    Parameters
    ----------
    log
        A path, .jsonl or .parquet, an `armlet.Log`, a loop's `log`, or `Events` of any origin.
    targets
        Policies, alone, in a list, or in a mapping from names: a Bandit or the path of a model file, the label of an
        arm, "uniform", "logged", "own", or f(X, eligible) -> (n, K) probabilities. All are renormalised over the arms
        that were eligible.
    baseline
        What the others are compared with, on the same rows.
    estimator
        "auto" chooses and says why; see `armlet.evaluation.estimators`.
    interval
        "both", or "fixed" to leave out intervals that hold at every look, which need a range of rewards.
    level
        How often an interval covers.
    reward_range
        (lowest, highest) reward there can be; that of the log if left out.
    playing
        How a bandit plays: "greedy", what looks best to it, or "exploring", as its next decision would be made.
    weights
        Rows that were learned with a weight other than 1 are refused, or read as any other: "ignore".
    checks
        "all", or "none" for values alone, which is quicker.
    most, shrink
        The constants of the estimators "switch" and "shrunk".
    pool, workers
        Where blocks are summed: "serial", "processes", "threads", "dask", an address or an executor; the same bytes.
    progress
        Told how many blocks are done; each is read twice.

    Examples
    --------
    >>> import numpy as np
    >>> import armlet
    >>> rng = np.random.default_rng(1)
    >>> arms, clicks = rng.integers(2, size=1000), rng.random(1000)
    >>> feedback = {"action": arms, "reward": clicks < 0.2 + 0.3 * arms, "pscore": np.full(1000, 0.5)}
    >>> log = armlet.log.from_obp({**feedback, "context": np.ones((1000, 1))})
    >>> result = armlet.evaluate(log, {"always 1": 1}, reward_range=(0, 1))
    >>> found = result["always 1"]
    >>> f"{found.value:.2f} [{found.interval.low:.2f}, {found.interval.high:.2f}] by {found.estimator}"
    '0.49 [0.45, 0.54] by dr'
    >>> result.differences["always 1"].verdict
    'better'
    """
    _check_words(estimator, interval, weights, level)
    blocks = open_rows(log)
    declared = blocks.reward_range if reward_range is None else reward_range
    if declared is not None:
        check_range(declared, "refuse")
    wanted, own = split_own(targets, blocks.arms, playing)
    base = read_target(_base_name(baseline), baseline, blocks.arms, playing)
    several = [target for target in wanted if target.name != base.name] + [base]
    sequences = None
    if interval == "both" and declared is not None:
        sequences = Sequences([target.name for target in several], declared, level)
    watch = Watch(blocks, several) if checks == "all" else None
    looks = [each.look for each in (watch, sequences) if each is not None]
    survey = survey_log(blocks, several, looks, progress)
    _check_log(survey, weights)
    said = () if watch is None else watch.checks()
    sums = _sum(_tasks(blocks, several, survey, most, shrink), pool, workers, progress)
    judge = _Judge(survey, blocks, level, declared, estimator, said)
    found = judge.values(several, sums, sequences)
    values = {target.name: found[target.name].value for target in [*several[-1:], *several[:-1]]}
    return Evaluation(
        values=values | {name: own_value(blocks, survey, level, declared, name) for name in own},
        differences=judge.differences(several, found, sums),
        baseline=base.name,
        objective=blocks.objective,
        rows=survey.rows,
        rewarded=survey.rewarded,
        explored=survey.explored,
        missing={arm: int(count) for arm, count in zip(blocks.arms, survey.missing, strict=False) if count},
        level=level,
        warnings=tuple(judge.warnings()),
        checks=said,
        paths=() if watch is None else watch.paths(),
        spreads=() if watch is None else watch.spreads(),
    )


def _base_name(baseline: object) -> str:
    return baseline.name if isinstance(baseline, Target) else baseline if isinstance(baseline, str) else "baseline"


def _check_words(estimator: str, interval: str, weights: str, level: float) -> None:
    if estimator != "auto" and estimator not in ESTIMATORS:
        raise ArgumentError("{estimator} is {value!r}; choose 'auto' or one of {all}", value=estimator, all=ESTIMATORS)
    if interval not in get_args(Spans):
        raise ArgumentError("{interval} is {value!r}; choose 'fixed' or 'both'", value=interval)
    if weights not in get_args(Weights):
        raise ArgumentError("{weights} is {value!r}; choose 'refuse' or 'ignore'", value=weights)
    if not 0.0 < level < 1.0:
        raise ArgumentError("{level} is {value!r}; give a number between 0 and 1", value=level)


def _check_log(survey: Survey, weights: Weights) -> None:
    if survey.rewarded == 0:
        what = "has no decisions" if survey.rows == 0 else f"has no reward for any of its {survey.rows:,} decisions"
        raise EvaluationError(f"the log {what}, so nothing can be valued; wait for rewards, or give another log")
    if survey.reweighted and weights == "refuse":
        raise EvaluationError(
            f"{survey.reweighted:,} rows have a weight other than 1, which may mean anything; say weights='ignore' to "
            "read them as any other row"
        )


def _tasks(blocks: Blocks, targets: Sequence[Target], survey: Survey, most: float, shrink: float) -> list[SumTask]:
    model = solve(survey.records(blocks.dim))
    return [
        SumTask(
            blocks=blocks,
            block=block,
            targets=tuple(targets),
            baseline=len(targets) - 1,
            model=model,
            starts=survey.starts[block],
            most=most,
            shrink=shrink,
        )
        for block in range(len(blocks))
    ]


def _sum(tasks: list[SumTask], pool: PoolLike, workers: int | None, progress: Progress) -> Sums:
    done = 0

    def count(_index: int, _sums: Sums) -> None:
        nonlocal done
        done += 1
        progress(len(tasks) + done, 2 * len(tasks))

    with opened(pool, workers=workers) as place:
        return add_sums(map_in_order(sum_block, tasks, place, count))


@dataclass(frozen=True, slots=True)
class _Found:
    value: Value
    estimated: Estimated
    own: Float64


class _Judge:
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
        self._estimator, self._why, self._doubt = _choose(survey, blocks, estimator)

    def warnings(self) -> list[str]:
        """Say what a reader should know of the log."""
        s, told = self._survey, []
        if self._doubt:
            told.append(self._doubt)
        told += [str(check) for check in self._checks if check.word is not Word.FINE]
        if gone := s.rows - s.rewarded:
            told.append(f"{gone:,} of {s.rows:,} rewards are missing; values are of those that came, which may differ")
        if s.turns:
            told.append(
                f"{s.turns:,} rows had their turn in a round-robin, and are read as drawn: right if contexts do not "
                "depend on the step; log with warmup='uniform' where a log will be evaluated"
            )
        return told

    def values(self, targets: Sequence[Target], sums: Sums, sequences: Sequences | None) -> dict[str, _Found]:
        """Value all targets."""
        found = {}
        for place, target in enumerate(targets):
            own = sums.own[place]
            is_log = isinstance(target, Logged)
            estimated = estimate("ips" if is_log else self._estimator, own)
            se = math.sqrt(variance) if (variance := estimated.variance(own)) >= 0 else math.nan
            span, note = self._interval(target.name, estimated, se, is_log)
            anytime = None if sequences is None or is_log else sequences.interval(target.name)
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
            found[target.name] = _Found(value, estimated, own)
        return found

    def _interval(self, name: str, estimated: Estimated, se: float, is_log: bool) -> tuple[Interval | None, str]:
        if not is_log and self._doubt:
            return None, self._doubt
        if not is_log and (refused := self._refused(name)):
            return None, refused
        if not math.isfinite(estimated.value):
            return None, "no row of the log says anything of it"
        if estimated.influence is None:
            return None, f"{self._estimator} has a bias that no row knows of, so an interval would lie"
        return self._span(estimated.value, se, estimated.ess), ""

    def _refused(self, name: str) -> str:
        about = (check for check in self._checks if check.target in (None, name))
        return next((check.sentence for check in about if check.word is Word.REFUSED), "")

    def _span(self, value: float, se: float, ess: float) -> Interval:
        ends = (0.0, 1.0) if self._survey.binary else self._declared if se == 0.0 else None
        if ends is not None:
            return wilson(value, se, ess, self._level, ends)
        span = plain(value, se, ess, self._level)
        if self._declared is not None:
            return Interval(max(span.low, self._declared[0]), min(span.high, self._declared[1]))
        return span

    def differences(self, targets: Sequence[Target], found: Mapping[str, _Found], sums: Sums) -> dict[str, Difference]:
        """Compare all with the last, on the same rows."""
        base = found[targets[-1].name]
        out = {}
        for place, target in enumerate(targets[:-1]):
            mine = found[target.name]
            one = mine.estimated.variance(mine.own)
            shared = mine.estimated.covariance(base.estimated, sums.paired[place])
            variance = one + base.estimated.variance(base.own) - 2.0 * shared
            se = math.sqrt(max(0.0, variance)) if math.isfinite(variance) else math.nan
            out[target.name] = self._difference(mine, base, se, len(targets) - 1)
        return out

    def _difference(self, mine: _Found, base: _Found, se: float, many: int) -> Difference:
        value = mine.value.value - base.value.value
        ess = min(mine.value.ess, base.value.ess)
        trusted = mine.value.interval is not None and base.value.interval is not None
        alone = plain(value, se, ess, self._level) if trusted else None
        adjusted = plain(value, se, ess, 1.0 - (1.0 - self._level) / many) if trusted else None
        return Difference(
            name=mine.value.name,
            baseline=base.value.name,
            value=value,
            se=se,
            interval=alone,
            adjusted=adjusted,
            verdict=_verdict(adjusted, 1.0 if self._blocks.objective == "max" else -1.0),
        )


def _verdict(interval: Interval | None, sign: float) -> Verdict:
    if interval is None or interval.low <= 0.0 <= interval.high:
        return "not clear"
    return "better" if sign * interval.low > 0.0 else "worse"


def _choose(survey: Survey, blocks: Blocks, estimator: str) -> tuple[Estimator, str, str]:
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
