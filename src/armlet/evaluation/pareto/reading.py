"""The two passes over a log that a Pareto curve takes: what kind of log it is, and the sums of every dial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from armlet.evaluation.checks import Check
from armlet.evaluation.estimators import Rewards
from armlet.evaluation.model import row_sums, solve
from armlet.evaluation.monitor import Checks, Survey
from armlet.evaluation.pareto.policies import DialQuestion
from armlet.evaluation.pareto.sums import LoggedSums, PolicySums, Weighed, group_count, row_weights
from armlet.evaluation.pareto.sweep import Dials
from armlet.evaluation.rows import Blocks, Design, Rows, check_rows
from armlet.evaluation.units import FOLDS, fold_of
from armlet.parallel import Progress
from armlet.types import Bool, Float64, Int64


@dataclass(slots=True)
class DialSurvey:
    """What the first pass finds: what kind of log it is, checks, and what outcomes look like."""

    names: tuple[str, ...]  # of the outcomes that rows must have
    log: Survey
    checks: tuple[Check, ...] = ()
    seen: dict[str, set[float]] = field(default_factory=dict)  # some values of each outcome
    records: Float64 = field(default_factory=lambda: np.zeros(0))  # (FOLDS, q, K, ...): sums of models by fold

    def rewards(self, name: str, question: DialQuestion) -> Rewards:
        """Return what is known of the values of an outcome."""
        declared, seen = question.ranges.get(name), self.seen[name]
        binary = seen == {0.0, 1.0}
        return Rewards((0.0, 1.0) if binary else declared, binary, next(iter(seen)) if len(seen) == 1 else None)

    def add(self, rows: Rows, fold: Int64) -> None:
        """Add rows that have all outcomes, and their folds."""
        design, outcomes = Design.of(rows), rows.outcomes or {}
        for name, values in self.seen.items():
            if len(values) < 3:
                values |= set(np.unique(outcomes[name])[:3].tolist())
        paid = [replace(rows, reward=outcomes[name]) for name in self.names]
        sums = [[row_sums(one, design.learned & (fold == each)) for one in paid] for each in range(FOLDS)]
        self.records = np.array(sums) + (self.records if self.records.size else 0.0)

    def models(self) -> Float64:
        """Return what is expected of arms without each fold: (FOLDS, q, K, 1 + d), for (1, x)."""
        whole = self.records.sum(axis=0)
        return np.array([[solve(one).theta for one in whole - self.records[each]] for each in range(FOLDS)])


def complete_rows(rows: Rows, names: Sequence[str]) -> tuple[Rows, Bool]:
    """Return rows whose reward is NaN where an outcome is missing, and which rows have all outcomes."""
    outcomes = rows.outcomes or {}
    missing = [np.isnan(outcomes[name]) if name in outcomes else np.ones(len(rows), dtype=np.bool_) for name in names]
    complete = np.asarray(~np.logical_or.reduce(missing))
    return replace(rows, reward=np.where(complete, np.nan_to_num(rows.reward), np.nan)), complete


def folds_of(rows: Rows, first: int) -> Int64:
    """Return the fold of every row, by its unit or by its place in the log."""
    return fold_of(rows.unit if rows.unit is not None else first + np.arange(len(rows)))


def survey_dials(blocks: Blocks, names: tuple[str, ...], checking: str, progress: Progress | None) -> DialSurvey:
    """Read a log once, and check it unless that is "none"."""
    checks = None if checking == "none" else Checks(blocks.arms, blocks.dim, [], blocks.features)
    survey = DialSurvey(names, Survey(len(blocks.arms)), seen={name: set() for name in names})
    for number, whole in enumerate(blocks):
        if progress is not None:
            progress(number, 2 * len(blocks))
        first = survey.log.rows
        rows, complete = complete_rows(whole, names)
        paid = rows.with_reward()
        check_rows(paid)
        survey.log.add(rows, paid, Design.of(paid))
        survey.add(paid, folds_of(whole, first)[complete])
        if checks is not None:
            checks.add(rows, {})
    survey.checks = () if checks is None else checks.result()
    return survey


@dataclass(slots=True)
class DialTotals:
    """What the second pass sums."""

    logged: LoggedSums
    policies: list[PolicySums]


def sum_log(
    blocks: Blocks, question: DialQuestion, dials: Dials, survey: DialSurvey, progress: Progress | None
) -> DialTotals:
    """Read a log again, and sum what every dial plays."""
    names, matrix = survey.names, dials.matrix
    points = sum(len(each.thetas) * (1 if each.is_arm else len(matrix)) for each in question.policies)
    count = group_count(points, len(names))
    logged = LoggedSums(names, count, len(blocks.arms))
    sums = DialTotals(logged, [PolicySums(each, matrix, len(names), count) for each in question.policies])
    models, first = survey.models(), 0
    for number, rows in enumerate(blocks):
        complete = complete_rows(rows, names)[1]
        weights, certain = row_weights(rows, complete, survey.log.is_known)
        expected, residuals = _expected(rows, complete, names, models, folds_of(rows, first))
        group = _groups(rows, first, survey.log.rows, count)
        block = Weighed(rows, complete, weights, certain, group, expected, residuals)
        sums.logged.add(block)
        for each in sums.policies:
            each.add(block)
        first += len(rows)
        if progress is not None:
            progress(len(blocks) + number + 1, 2 * len(blocks))
    return sums


def _groups(rows: Rows, first: int, n: int, count: int) -> Int64:
    """Deal rows to groups: runs of rows one after the other, or units."""
    if rows.unit is not None:
        return np.asarray(rows.unit % count)
    return (first + np.arange(len(rows))) * count // n


def _expected(
    rows: Rows, complete: Bool, names: Sequence[str], models: Float64, fold: Int64
) -> tuple[Float64, Float64]:
    """Return what a model without a row's fold expects of each arm, (q, n, K), and what came less that, (n, q)."""
    X, outcomes = np.column_stack([np.ones(len(rows)), rows.X]), rows.outcomes or {}
    expected = np.empty((len(names), len(rows), models.shape[2]))
    for each in range(FOLDS):
        some = fold == each
        expected[:, some] = np.einsum("nd,qkd->qnk", X[some], models[each])
    each_row = np.arange(len(rows))
    came = np.column_stack([np.where(complete, outcomes[name], 0.0) for name in names])
    return expected, np.where(complete[:, np.newaxis], came - expected[:, each_row, rows.arm].T, 0.0)
