"""The two passes over a log that a Pareto curve takes: what kind of log it is, and sums of every dial.

Values are doubly robust. A model of each outcome, arm by arm and linear in the context, says what a dial would have had
in every row; the rows in which it plays what was played say how far the model is off. Only these have weights, rate /
propensity: the exploration probability of the step over the arm's own. That is as unbiased as 1 / propensity, since the
rate is known before an arm is drawn, and never more than one over the arm's probability given exploring, however rarely
the log explores. Where rates are not known it is 1 / propensity.
O(n J K (m d + D m)), memory a block and a few numbers for every group and value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from armlet.evaluation.checks import Check
from armlet.evaluation.dials.band import GROUPS
from armlet.evaluation.dials.policies import DialPolicies, DialQuestion, Dials
from armlet.evaluation.dials.sums import DialSums, sum_dials, sum_played
from armlet.evaluation.estimators import Rewards
from armlet.evaluation.model import row_sums, solve
from armlet.evaluation.monitor import Checks, Survey
from armlet.evaluation.rows import Blocks, Design, Rows, check_rows
from armlet.evaluation.units import FOLDS, fold_of
from armlet.parallel import Progress
from armlet.types import Bool, Float64, Int64

LARGEST: Final = 2**24  # numbers that groups may keep: 128 MB
FEWEST: Final = 64  # groups


def group_count(values: int, outcomes: int) -> int:
    """Return into how many groups rows are dealt, so that the sums of all fit into memory.

    Examples
    --------
    >>> group_count(20, 2), group_count(10_000, 2), group_count(10**6, 2)
    (256, 256, 64)
    """
    return int(np.clip(LARGEST // (values * (1 + 2 * outcomes)), FEWEST, GROUPS))


@dataclass(frozen=True, slots=True)
class Weighed:
    """A block of n rows with everything that sums need, for q outcomes that are estimated."""

    rows: Rows
    complete: Bool  # (n,): which rows have all outcomes
    weights: Float64  # (n,): 0 where they do not
    certain: Bool  # (n,): which of these could not have been otherwise
    group: Int64  # (n,)
    expected: Float64  # (q, n, K): what a model that has not seen the row expects of each arm
    residuals: Float64  # (n, q): what came less what was expected of the arm; 0 where outcomes are missing


def row_weights(rows: Rows, complete: Bool, is_known: bool) -> tuple[Float64, Bool]:
    """Return the weights of rows, and which of them could not have been otherwise.

    Parameters
    ----------
    complete
        Which rows have all outcomes; the others weigh 0.
    is_known
        Whether every row of the log says at which rate it explores, and with which probabilities.
    """
    design = Design.of(rows)
    if is_known:
        return np.where(complete, design.rate / design.propensity, 0.0), np.zeros(len(rows), dtype=np.bool_)
    certain = (design.propensity >= 1.0) & (design.n_eligible > 1) & complete
    return np.where(complete, 1.0 / design.propensity, 0.0), np.asarray(certain)


class PolicySums:
    """Sums of J policies under D dials."""

    def __init__(self, policies: DialPolicies, dials: Float64, outcomes: int, groups: int) -> None:
        self._policies, self._dials = policies, dials[:1] if policies.is_arm else dials
        shape, q = (len(policies.thetas), len(self._dials)), outcomes
        # w and w (o - expected), over rows in which what was played is played
        self.matched = DialSums.zero(shape, q)
        self.groups = np.zeros((groups, *shape, 1 + q))
        self.expected = np.zeros((groups, *shape, q))  # what is expected of the arms played, over rows that tell
        self.beyond = np.zeros(shape)  # rows in which another arm is played, where none could have been
        self.played = np.zeros((*shape, len(policies.arms)), dtype=np.int64)  # over all rows

    def add(self, block: Weighed) -> None:
        """Add a block."""
        seen, may = self._policies.seen(block.rows)
        sure = block.certain & may
        if block.certain.any():
            self.beyond += np.count_nonzero(block.certain) - self._match(block, seen, np.flatnonzero(sure)).agreed
        for number, part in _parts(block.group):
            matched = self._match(block, seen, part[may[part] & (block.weights[part] > 0.0)])
            self.matched += matched
            self.groups[number] += matched.totals
            self._play(block, seen.take(part), part, number)

    def _match(self, block: Weighed, seen: Rows, part: Int64) -> DialSums:
        return sum_dials(
            seen.take(part), block.weights[part], block.residuals[part], self._policies.thetas, self._dials
        )

    def _play(self, block: Weighed, seen: Rows, part: Int64, number: int) -> None:
        expected = np.where(
            block.complete[part, np.newaxis], block.expected[:, part].transpose(2, 1, 0), 0.0
        )  # (K, n, q)
        counts, sums = sum_played(seen, expected[self._policies.arms], self._policies.thetas, self._dials)
        self.played += counts
        self.expected[number] += sums


def _parts(group: Int64) -> Iterator[tuple[int, Int64]]:
    """Yield groups and their rows."""
    order = np.argsort(group, kind="stable")
    numbers, starts = np.unique(group[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)


class LoggedSums:
    """Sums of what ran: every row that tells counts as 1."""

    def __init__(self, names: Sequence[str], groups: int, n_arms: int) -> None:
        self._names = list(names)
        self.groups = np.zeros((groups, 1 + len(names)))  # rows, and their outcomes
        self.played = np.zeros(n_arms, dtype=np.int64)  # over all rows

    def add(self, block: Weighed) -> None:
        """Add a block."""
        self.played += np.bincount(block.rows.arm, minlength=len(self.played))
        outcomes = block.rows.outcomes or {}
        columns = [
            block.complete.astype(np.float64),
            *(np.where(block.complete, outcomes[name], 0.0) for name in self._names),
        ]
        for place, column in enumerate(columns):
            self.groups[:, place] += np.bincount(block.group, weights=column, minlength=len(self.groups))


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
