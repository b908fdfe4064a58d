"""Off-policy evaluation: what policies would have earned, from the log of another: `armlet.evaluate`.

Two passes over the log: one finds what kind it is and sums a reward model, one sums what each row says of each target.
Then sums become answers: which estimator the log allows, which interval it deserves, and why. Memory holds a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, Final, Literal, TypeAlias, get_args, overload

from armlet.errors import ArgumentError
from armlet.evaluation.action_values import Question, value_actions
from armlet.evaluation.actions import LoggedActions, read_action_target
from armlet.evaluation.checks import (
    Word,
    check_trained,
)
from armlet.evaluation.dials.curve import ParetoCurve
from armlet.evaluation.dials.policies import DialsLike, DialTargets
from armlet.evaluation.dials.values import value_dials
from armlet.evaluation.estimators import (
    Estimator,
    EstimatorLike,
    choose_from,
)
from armlet.evaluation.judge import Judge, stands
from armlet.evaluation.model import SumTask, TargetSums, solve, sum_block
from armlet.evaluation.monitor import AnytimeIntervals, Monitor, Survey, survey_log
from armlet.evaluation.provenance import provenance
from armlet.evaluation.result import Evaluation
from armlet.evaluation.rows import Blocks
from armlet.evaluation.sources import open_rows, read_several
from armlet.evaluation.targets import (
    OWN,
    ArmTarget,
    TargetLike,
    named_targets,
    read_arm_target,
    read_order,
    through_encoders,
)
from armlet.evaluation.units import largest_unit as find_largest
from armlet.evaluation.units import refuse_units
from armlet.inference.intervals import LEVEL
from armlet.inputs.columns import is_number
from armlet.inputs.settings import Range, check_range
from armlet.log.reader import Source
from armlet.parallel import PoolLike, Progress, map_in_order, notebook_bar, opened
from armlet.types import Arm, Mode

Intervals: TypeAlias = Literal["fixed", "both"]
"""Which intervals are computed: those of one look, or also those that are anytime-valid."""
Weights: TypeAlias = Literal["refuse", "ignore"]
"""What is done with rows that were learned with a weight other than 1."""
Checking: TypeAlias = Literal["all", "none"]
"""Whether the log is checked before values are believed."""
MOST_NAMES: Final = 9  # of policies that a call is written down with


@overload
def evaluate(
    log: Source | Blocks,
    targets: TargetLike | Mapping[str, TargetLike] | Sequence[TargetLike],
    *,
    baseline: TargetLike = "logged",
    estimator: EstimatorLike = "auto",
    interval: Intervals = "both",
    level: float = LEVEL,
    reward_range: Range | None = None,
    mode: Mode = "greedy",
    weights: Weights = "refuse",
    checks: Checking = "all",
    largest_unit: int | None = None,
    arms: Iterable[Arm] | None = None,
    pool: PoolLike = "serial",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Evaluation: ...


@overload
def evaluate(
    log: Source | Blocks,
    targets: DialTargets,
    *,
    dials: DialsLike,
    curve: tuple[str, str] | None = None,
    level: float = LEVEL,
    weights: Weights = "refuse",
    checks: Checking = "all",
    arms: Iterable[Arm] | None = None,
    progress: Progress | None = None,
) -> ParetoCurve: ...


def evaluate(
    log: Source | Blocks,
    targets: TargetLike | Mapping[str, TargetLike] | Sequence[TargetLike] | DialTargets,
    *,
    dials: DialsLike | None = None,
    curve: tuple[str, str] | None = None,
    baseline: TargetLike = "logged",
    estimator: EstimatorLike = "auto",
    interval: Intervals = "both",
    level: float = LEVEL,
    reward_range: Range | None = None,
    mode: Mode = "greedy",
    weights: Weights = "refuse",
    checks: Checking = "all",
    largest_unit: int | None = None,
    arms: Iterable[Arm] | None = None,
    pool: PoolLike = "serial",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Evaluation | ParetoCurve:
    """Estimate what policies would have earned on the decisions of a log.

    Parameters
    ----------
    log
        A path, .jsonl or .parquet, an `armlet.Log`, a loop's `log`, or `Events` of any origin.
    targets
        Policies, alone, in a list, or in a mapping from names: a Bandit or the path of a model file, the label of an
        arm, "uniform", "logged", "own", or a function f(X, eligible), of contexts (n, d) and a boolean for each arm of
        `log.arms` (n, K). It returns one label a row, or probabilities by label, as a mapping or a data frame; with a
        parameter `arms` it receives the labels, and may return a matrix in their order. All are renormalised over the
        arms that were eligible. On the log of an `armlet.ActionBandit`: another one or its model file, "uniform",
        "logged", or f(x, table) -> the label of an action, or probabilities by label.
    dials
        Value bandits with outcomes under many weights of these: how many, for a sweep of one weight from nothing to all
        that counts; or weights by name, such as `[{"cost": -20.0}, {"cost": -80.0}]`, those left out as the bandits
        have them. The result is then a `ParetoCurve`. Targets may also be arms, and linear policies as arrays: (m, K,
        d), or (m, K, 1 + d) with a constant first, of scores by outcome, arm and feature; (J, m, K, d) for many.
    curve
        With dials: which outcome is drawn against which, and swept; what is worth most against what costs if left out.
    baseline
        What the others are compared with, on the same rows.
    estimator
        "auto" chooses and says why; a name of `armlet.evaluation.ESTIMATORS`, or an instance with a constant of its
        own, such as `armlet.evaluation.Switch(20)`.
    interval
        "both", or "fixed" to leave out anytime-valid intervals, which need a range of rewards.
    level
        How often an interval covers.
    reward_range
        (lowest, highest) reward there can be; that of the log if left out.
    mode
        How a bandit plays: "greedy", the arm with the highest estimate, or "exploring", as its next decision would be.
    weights
        Rows that were learned with a weight other than 1 are refused, or read as any other: "ignore".
    checks
        "all", or "none" for values alone, which is quicker.
    largest_unit
        Where decisions belong to units that share a draw: the most that a unit can have in an epoch, known beforehand,
        which anytime-valid intervals need; as many as an epoch has, if the log says how long that is.
    arms
        The order of arms in matrices without labels: those that functions return, and linear policies as arrays. Not
        needed where the arms are the numbers 0 to K - 1.
    pool, workers
        Where blocks are summed: "serial", "processes", "threads", "dask", an address or an executor; the same bytes.
    progress
        Called with how many blocks are done; each is read twice. A bar in a notebook and nothing elsewhere if left out.

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
    settings = {"estimator": estimator, "interval": interval, "level": level, "reward_range": reward_range}
    settings |= {"mode": mode, "weights": weights, "checks": checks, "largest_unit": largest_unit}
    progress = notebook_bar("evaluating") if progress is None else progress
    estimators = choose_from(estimator)
    _check_options(interval, weights, level, mode)
    if dials is not None:
        options = settings | {"baseline": baseline, "pool": pool, "workers": workers}
        return _value_dials(log, targets, dials, curve, arms, options, progress)
    if curve is not None:
        raise ArgumentError("{curve} is {value!r}, but there are no dials; give dials too, such as 20", value=curve)
    blocks = open_rows(through_encoders(log, targets, baseline))
    declared = blocks.reward_range if reward_range is None else reward_range
    if declared is not None:
        check_range(declared)
    if isinstance(blocks, LoggedActions):
        refused = {"largest_unit": largest_unit, "arms": arms, "pool": pool, "workers": workers}
        return _value_actions(blocks, targets, baseline, settings | refused, estimators, declared, progress)
    order = read_order(arms, blocks.arms)
    words = () if OWN in blocks.arms else (OWN,)
    several, own = read_several(
        targets, baseline, lambda name, target: read_arm_target(name, target, blocks.arms, mode, order), words
    )
    names = [name for name in named_targets(targets) if name not in own]
    base, largest = several[-1], _largest(blocks, largest_unit, own)
    without = blocks.has_units and largest is None  # anytime-valid intervals, for lack of a bound
    bets = declared if interval == "both" and not without else None
    sequences = None
    if bets is not None:
        sequences = AnytimeIntervals([target.name for target in several], bets, level, largest)
    monitor = Monitor(blocks, several, bets, level, largest) if checks == "all" else None
    observers = [each.add for each in (monitor, sequences) if each is not None]
    # sequences check the rewards that they read themselves
    survey = survey_log(blocks, several, observers, progress, None if sequences is not None else declared)
    survey.refuse(weights)
    trained = check_trained(several, blocks, survey.weights)
    judge = Judge(survey, blocks, level, declared, estimator, estimators)
    judge.lacks_bound = without and interval == "both" and declared is not None
    judge.trained = {str(check.target) for check in trained if check.word is not Word.FINE}
    if monitor is not None:
        judge.is_checked, judge.checks = True, (*monitor.checks.result(), *trained)
    sums = _sum(blocks, several, survey, estimators, pool, workers, progress)
    judge.refuse_deterministic(several, sums, own)
    judged, owned = judge.values(several, sums, sequences), judge.own(own)
    values = {name: judged[name].value for name in [base.name, *(target.name for target in several[:-1])]}
    return Evaluation(
        values=values | {each.value.name: each.value for each in owned},
        differences=judge.differences(several, judged, sums, owned),
        baseline=base.name,
        objective=blocks.objective,
        rows=survey.rows,
        rewarded=survey.rewarded,
        units=None if survey.units is None else len(survey.units),
        explored=survey.explored if survey.silent < survey.rows else None,
        explored_rewarded=survey.explored_rewarded if survey.silent < survey.rows else None,
        missing={arm: int(count) for arm, count in zip(blocks.arms, survey.missing, strict=False) if count},
        level=level,
        warnings=tuple(judge.warnings()),
        checks=judge.checks,
        estimates={each.name: judge.points(sums, i, judged[each.name].value) for i, each in enumerate(several)},
        paths=() if monitor is None else tuple(path for path in monitor.paths() if stands(judged[path.name].value)),
        spreads=() if monitor is None else monitor.spreads(),
        made=provenance(blocks, evaluate, targets=[*names, *own], baseline=base.name, **settings),
    )


def _value_actions(
    log: LoggedActions,
    targets: object,
    baseline: object,
    settings: Mapping[str, Any],
    estimators: Mapping[str, Estimator],
    declared: Range | None,
    progress: Progress | None,
) -> Evaluation:
    """Value policies on a log whose actions have features, and refuse options that say something of other logs."""
    options = {name: each.default for name, each in signature(evaluate).parameters.items() if name in settings}
    for name in ("largest_unit", "arms", "pool", "workers"):
        if settings[name] != options[name]:
            text = f"{{{name}}} is {{value!r}}, which a log of actions does not take; leave it out"
            raise ArgumentError(text, value=settings[name])
    question = Question(
        estimator=settings["estimator"],
        estimators=estimators,
        level=settings["level"],
        declared=declared,
        weights=settings["weights"],
        is_checked=settings["checks"] == "all",
    )
    several, _ = read_several(targets, baseline, partial(read_action_target, mode=settings["mode"]), ())
    sequences = None
    if declared is not None and settings["interval"] == "both":
        sequences = AnytimeIntervals([each.name for each in several], declared, settings["level"])
    evaluation: Evaluation = value_actions(log, several, question, sequences, progress)
    names = [name for name in evaluation.values if name != evaluation.baseline]
    return replace(evaluation, made=provenance(log, evaluate, targets=names, baseline=evaluation.baseline, **settings))


def _value_dials(
    log: Source | Blocks,
    targets: object,
    dials: DialsLike,
    curve: tuple[str, str] | None,
    arms: Iterable[Arm] | None,
    settings: Mapping[str, Any],
    progress: Progress | None,
) -> ParetoCurve:
    """Value dials, and refuse options that say something of other evaluations alone."""
    taken = {name: settings[name] for name in ("level", "weights", "checks")}
    options = {name: each.default for name, each in signature(evaluate).parameters.items() if name in settings}
    for name, value in settings.items():
        if name not in taken and value != options[name]:
            raise ArgumentError(f"{{{name}}} is {{value!r}}, which dials do not take; leave it out", value=value)
    blocks = open_rows(through_encoders(log, targets))
    order = read_order(arms, blocks.arms)
    pareto = value_dials(blocks, targets, dials, curve, order, **taken, progress=progress)
    names = list(dict.fromkeys(pareto.policies[1:]))
    made = provenance(blocks, evaluate, targets=names[:MOST_NAMES], dials=dials, curve=curve, **taken)
    return replace(pareto, made=made)


def _check_options(interval: str, weights: str, level: float, mode: str) -> None:
    if interval not in get_args(Intervals):
        raise ArgumentError("{interval} is {value!r}; choose 'fixed' or 'both'", value=interval)
    if weights not in get_args(Weights):
        raise ArgumentError("{weights} is {value!r}; choose 'refuse' or 'ignore'", value=weights)
    if mode not in get_args(Mode):
        raise ArgumentError("{mode} is {value!r}; choose 'greedy' or 'exploring'", value=mode)
    if not (is_number(level) and 0.0 < level < 1.0):
        raise ArgumentError("{level} is {value!r}; give a number between 0 and 1", value=level)


def _largest(blocks: Blocks, largest: int | None, own: Sequence[str]) -> int | None:
    """Return the most decisions that a unit can have in an epoch, None if rows have no units or nothing says it."""
    if own:
        fix = "value a model that learned from other units, or say which decisions are draws of their own"
        refuse_units(blocks, f"{own[0]!r}, what these very rows teach,", fix)
    return find_largest(blocks, largest) if blocks.has_units else None


def _sum(
    blocks: Blocks,
    targets: Sequence[ArmTarget],
    survey: Survey,
    estimators: Mapping[str, Estimator],
    pool: PoolLike,
    workers: int | None,
    progress: Progress | None,
) -> TargetSums:
    every = tuple(estimators.values())
    records = [survey.records(blocks.dim)] if survey.units is None else survey.records_without()
    models, spanning = tuple(map(solve, records)), None if survey.units is None else survey.units.spanning
    tasks = [
        SumTask(blocks.reader(i), tuple(targets), models, start, every, spanning)
        for i, start in enumerate(survey.starts)
    ]
    parts = []

    def collect(_index: int, part: TargetSums) -> None:
        parts.append(part)
        if progress is not None:
            progress(len(tasks) + len(parts), 2 * len(tasks))

    if pool == "serial" and workers is None:  # there is nothing to open
        for task in tasks:
            collect(len(parts), sum_block(task))
        return TargetSums.add(parts)
    with opened(pool, workers=workers) as place:
        return TargetSums.add(map_in_order(sum_block, tasks, place, collect))
