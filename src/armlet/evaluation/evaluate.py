"""What policies would have earned, from the log of another: `armlet.evaluate`.

Two passes over the log: one that says what kind it is and sums a reward model, one that sums what each row says of each
target. Memory holds a block of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, TypeAlias, get_args

from armlet.errors import ArgumentError, EvaluationError
from armlet.evaluation.checks import Word
from armlet.evaluation.checks.trained import check_trained
from armlet.evaluation.estimators import ESTIMATORS, Estimator
from armlet.evaluation.judge import Judge
from armlet.evaluation.model import solve
from armlet.evaluation.reading.raw import through_encoders
from armlet.evaluation.result import Evaluation
from armlet.evaluation.rows import Blocks, Rows, open_rows
from armlet.evaluation.sums import MOST, SHRINK, Sums, SumTask, add_sums, sum_block
from armlet.evaluation.survey import Survey, survey_log
from armlet.evaluation.targets import Playing, Target, TargetLike, read_target, split_own
from armlet.evaluation.watch import Sequences, Watch
from armlet.inference.intervals import LEVEL
from armlet.inference.sequences import in_range
from armlet.inputs.settings import Range, check_range
from armlet.log.reader import Source
from armlet.parallel.pool import PoolLike, Progress, map_in_order, opened, silent

Spans: TypeAlias = Literal["fixed", "both"]
"""Which intervals are computed: those of one look, or also those that hold at every look."""
Weights: TypeAlias = Literal["refuse", "ignore"]
"""What is done with rows that were learned with a weight other than 1."""

Checking: TypeAlias = Literal["all", "none"]
"""Whether the log is looked at before values are believed."""


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
    blocks = open_rows(through_encoders(log, targets, baseline))
    declared = blocks.reward_range if reward_range is None else reward_range
    if declared is not None:
        check_range(declared)
    wanted, own = split_own(targets, blocks.arms, playing)
    base = read_target(_base_name(baseline), baseline, blocks.arms, playing)
    several = [target for target in wanted if target.name != base.name] + [base]
    sequences = None
    if interval == "both" and declared is not None:
        sequences = Sequences([target.name for target in several], declared, level)
    watch = Watch(blocks, several, declared if interval == "both" else None) if checks == "all" else None
    looks = [each.look for each in (watch, sequences) if each is not None]
    # a sequence checks rewards itself
    counts = [partial(_check_rewards, declared)] if declared is not None and sequences is None else []
    survey = survey_log(blocks, several, looks, progress, counts)
    _check_log(survey, weights)
    learned = check_trained(several, blocks, survey.weights)
    said = None if watch is None else (*watch.checks(), *learned)
    names = {str(check.target) for check in learned if check.word is not Word.FINE}
    judge = Judge(survey, blocks, level, declared, estimator, said, names)
    sums = _sum(_tasks(blocks, several, survey, most, shrink), pool, workers, progress)
    judge.check_certain(several, sums, own)
    found, owned = judge.values(several, sums, sequences), judge.own(own)
    values = {name: found[name].value for name in [base.name, *(target.name for target in several[:-1])]}
    return Evaluation(
        values=values | {each.value.name: each.value for each in owned},
        differences=judge.differences(several, found, sums, owned),
        baseline=base.name,
        objective=blocks.objective,
        rows=survey.rows,
        rewarded=survey.rewarded,
        explored=survey.explored if survey.silent < survey.rows else None,
        explored_rewarded=survey.explored_rewarded if survey.silent < survey.rows else None,
        missing={arm: int(count) for arm, count in zip(blocks.arms, survey.missing, strict=False) if count},
        level=level,
        warnings=tuple(judge.warnings()),
        checks=judge.checks,
        estimates={each.name: judge.points(sums.own[i], found[each.name].value) for i, each in enumerate(several)},
        paths=() if watch is None else tuple(path for path in watch.paths() if judge.stands(found[path.name].value)),
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


def _check_rewards(declared: Range, rows: Rows) -> None:
    in_range(rows.reward[rows.rewarded], declared)


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
