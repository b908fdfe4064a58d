"""One pass over a block: reward model, row weights, and for every target the sums that all estimators are read off.

The reward model is a ridge regression for each arm on (1, x). Where exploring ignores the context, explored rows are
alike regardless of what was learned, so a model without row t is independent of the coin, the arm and the reward of
step t: the estimates that use it are cross-fitted exactly, by one solve an arm.

Blocks are summed on their own, in the order of rows, and then added exactly rounded: any pool of workers returns the
same bytes. O(n (d^2 + J K d)) a block of n rows for J targets, O(K d^2) memory for the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from armlet.evaluation.estimators import Estimator, kernel_constants
from armlet.evaluation.rows import Design, Rows
from armlet.evaluation.targets import ActionDist, ArmLaw, ArmTarget, BanditTarget, prob_of_played
from armlet.evaluation.units import FOLDS, UnitSums, fold_of
from armlet.kernel import gram, predict_played, predict_target, row_features, sum_features, sum_rows, value_greedy
from armlet.reference import evaluate as reference
from armlet.reference.evaluate import ALL, AS_LOGGED, Parts
from armlet.types import Bool, Float64, Int64

RIDGE: Final = 1.0
"""Constant: one that changes with the number of rows would not be the same without one of them."""
RUNNING: Final = 9
"""Explored rows and their sum of pi^2/c^2; exploited rows and their sums of pi^2 and of pi^2/c. Where eligible arms
differ also the rows, their sum of m, and of t^8 and t^8 times the rate, where t is the step."""


@dataclass(frozen=True, slots=True)
class RewardModel:
    """What is expected of every arm."""

    theta: Float64  # (K, d + 1): for (1, x)
    inverse: Float64  # (K, d + 1, d + 1): of sum y y' + ridge I


class Prediction(NamedTuple):
    """Of a target, by a reward model: (n,) each."""

    dist: ActionDist  # or (n, K)
    pi: Float64  # its probability of the arm that was played
    direct: Float64  # what it is expected to earn, by a model that has not seen the row either
    played: Float64  # what was expected of that arm, without the row itself; 0 where pi is 0


class Predictions:
    """Predictions of a reward model for one block, of rows that have a reward; `learned`: those the model has.

    A bandit that plays the best by x' theta is asked in the kernel, where a context is read once for its arm and for
    both predictions. The prediction for the arm that was played has no weight where the target would not have played
    it, so there it is left out: O(n K d) for a bandit, and d^2 for every row that it would have played.
    """

    def __init__(self, rows: Rows, learned: Bool, model: RewardModel) -> None:
        self._rows, self._learned, self._model = rows, learned, model
        self._played: Float64 | None = None  # of all rows, once a target has asked about most

    def of(self, target: ArmTarget) -> Prediction:
        """Predict what a target earns."""
        greedy = self._greedy(target) if isinstance(target, BanditTarget) else None
        if greedy is not None:
            return greedy
        rows, model = self._rows, self._model
        dist = target.action_dist(rows)
        pi = prob_of_played(dist, rows.arm)
        played = self._where(pi > 0.0)
        direct = predict_target(model.theta, model.inverse, rows.X, dist, rows.arm, played)
        return Prediction(dist, pi, direct, played)

    def _where(self, which: Bool) -> Float64:
        """Predict the arms played, without the row itself where it was learned; 0 may stand for rows not asked."""
        rows, model = self._rows, self._model
        columns = (rows.X, rows.arm, rows.reward, self._learned)
        if self._played is None and 2 * np.count_nonzero(which) <= len(which):
            some, out = np.flatnonzero(which), np.zeros(len(rows))
            out[some] = predict_played(model.theta, model.inverse, *(column[some] for column in columns))
            return out
        if self._played is None:
            self._played = predict_played(model.theta, model.inverse, *columns)
        return self._played

    def _greedy(self, target: BanditTarget) -> Prediction | None:
        rows, model = self._rows, self._model
        slopes = target.slopes(rows)
        if slopes is None or not len(rows):
            return None
        best, direct, played = value_greedy(
            *slopes, model.theta, model.inverse, rows.X, rows.arm, rows.reward, self._learned
        )
        if (best < 0).any():  # arms that tie share a row
            return None
        best = best.view(np.int64)
        return Prediction(best, prob_of_played(best, rows.arm), direct, played)


def empty_records(n_arms: int, dim: int) -> Float64:
    """Return the sums of no rows."""
    size = dim + 1
    return np.zeros((n_arms, 3 + size + size * (size + 1) // 2))


def row_sums(rows: Rows, learned: Bool) -> Float64:
    """Return the sums of the rows that a model learns from, arm by arm."""
    n_arms = rows.eligible.shape[1]
    if learned.all():
        return sum_rows(rows.X, rows.arm, rows.reward, n_arms)
    return sum_rows(rows.X, np.where(learned, rows.arm, -1), np.where(learned, rows.reward, 0.0), n_arms)


def unpack(records: Float64) -> tuple[Float64, Float64]:
    """Return sum y y', (K, d + 1, d + 1), and sum r y, (K, d + 1), where y = (1, x)."""
    size = round((math.sqrt(9 + 8 * (records.shape[1] - 3)) - 3) / 2)
    upper = np.triu_indices(size)
    A = np.zeros((len(records), size, size))
    A[:, upper[0], upper[1]] = A[:, upper[1], upper[0]] = records[:, 3 + size :]
    return A, records[:, 3 : 3 + size]


def solve(records: Float64, ridge: float = RIDGE) -> RewardModel:
    """Solve (A + ridge I) theta = b for every arm."""
    V, b = unpack(records)
    V += ridge * np.eye(V.shape[1])
    inverse = np.ascontiguousarray(np.linalg.inv(V))
    return RewardModel(np.ascontiguousarray(np.linalg.solve(V, b[:, :, None])[:, :, 0]), inverse)


def combine(parts: Sequence[Float64]) -> Float64:
    """Add arrays entry by entry, exactly rounded, in whichever pieces they came.

    Every addition leaves a remainder that is a float64 too, and so does the addition of remainders. Where what is left
    of those cannot change the sum, it is the rounded one; elsewhere `math.fsum` decides.

    Examples
    --------
    >>> combine([np.array([1.0, 0.1]), np.array([1e100, 0.2]), np.array([-1e100, 0.3])])
    array([1. , 0.6])
    """
    if len(parts) == 1:
        return parts[0]
    total, rest, lost = parts[0], np.zeros(parts[0].shape), np.zeros(parts[0].shape)
    for part in parts[1:]:
        total, left = _added(total, part)
        rest, gone = _added(rest, left)
        lost = lost + np.abs(gone)
    slack = np.where(lost == 0.0, 0.0, 2.0 * (lost + np.finfo(np.float64).eps * np.abs(rest)))
    low, high = total + (rest - slack), total + (rest + slack)
    for place in zip(*np.nonzero(~(low == high)), strict=True):  # and where something is NaN
        low[place] = math.fsum(float(part[place]) for part in parts)
    return low


def _added(a: Float64, b: Float64) -> tuple[Float64, Float64]:
    """Return a + b, rounded, and what that leaves (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def contributions(dist: ActionDist, pi: Float64, design: Design) -> Float64:
    """Return what each row adds to the running sums, (RUNNING, n)."""
    m, c, x = design.n_eligible, design.given, design.explored
    squares = np.ones(len(pi)) if dist.ndim == 1 else np.einsum("ij,ij->i", dist, dist)
    even = c == 1.0 / m
    spread = np.where(even, m * squares, (pi / c) ** 2)  # where all arms are alike, the mean over arms is known
    exploited = np.where(x, 0.0, pi * pi)
    out = np.zeros((RUNNING, len(pi)))
    out[:5] = x, np.where(x, spread, 0.0), ~x, exploited, exploited / c
    if not design.whole:
        late = (design.step**2) ** 4
        out[5:] = np.ones(len(pi)), m, late, late * design.rate
    return out


def running_sums(law: ArmLaw, rows: Rows, design: Design) -> Float64:
    """Return what a block adds to the running sums of a target, (RUNNING,); by fold of units, (FOLDS, RUNNING)."""
    added = contributions(law.dist, law.played, design)
    if rows.unit is not None:
        fold = fold_of(rows.unit)
        return np.stack([_last_sum(added[:, fold == each]) for each in range(FOLDS)])
    return _last_sum(added)


def _last_sum(added: Float64) -> Float64:
    return _sums_before(added, np.zeros(len(added)), len(added))[:, -1]


def _sums_before(added: Float64, start: Float64, count: int) -> Float64:
    """Return some running sums before each row and after the last, (count, n + 1): added one row after the other."""
    sums = np.empty((count, added.shape[1] + 1))
    sums[:, 0], sums[:, 1:] = start[:count], added[:count]
    return np.cumsum(sums, axis=1, out=sums)


def row_weights(added: Float64, start: Float64, design: Design) -> Float64:
    """Return h_t = 1 / E_t[w^2] for every row, (n,), from the sums of all rows before the first, (RUNNING,).

    Late rows of a log explore seldom, so that they report on an arm which was not best with a heavy weight w. Given the
    past and the rate, E_t[w^2] = g / (1 - rate + rate/m) + rest / rate, where g is how often the target plays what the
    log exploits, and rest the sum of pi(a|x)^2 / c(a) over the other arms, c being the probability given exploring.
    Both are running means over *earlier* rows: weights that knew the arm of their own row would bias what they weigh.
    So would weights that knew which arms were eligible in their row, since a target is worth more where more may be
    played, and the rate goes with them. Where that differs, rate and m are means over earlier rows too, late rows first
    in weight: the rate falls.

    Examples
    --------
    >>> ones = np.ones(3)
    >>> design = Design(ones / 2, ones / 2, ones, ones == 1, 2 * ones, ones == 1, ones == 1, ones, whole=True)
    >>> pi = np.array([1.0, 0.0, 1.0])
    >>> row_weights(contributions(np.array([0, 0, 0]), pi, design), np.zeros(RUNNING), design)
    array([0.5, 0.5, 0.5])
    """
    before = _sums_before(added, start, 5 if design.whole else RUNNING)[:, :-1]
    explored, spread, exploited, g, played = before[:5]
    m, rate = (design.n_eligible, design.rate) if design.whole else _usual(before[5:], design)
    spread = (spread + m) / (explored + 1.0)
    g = (g + 0.5) / (exploited + 1.0)
    played = (played + 0.5 * m) / (exploited + 1.0)
    rest = np.maximum(spread - played, 0.5 * m / (exploited + 1.0))
    with np.errstate(divide="ignore"):
        mixed = g / (1.0 - rate + rate / m) + rest / rate  # infinite, and so without weight, where nothing is explored
    return np.where(design.known, 1.0 / np.where(rate >= 1.0, spread, mixed), 0.0)


def _usual(before: Float64, design: Design) -> tuple[Float64, Float64]:
    """Return what m and the rate usually were before each row; its own for the first, which has none before it."""
    rows, m, late, rates = before
    first = rows == 0.0
    with np.errstate(invalid="ignore"):
        return np.where(first, design.n_eligible, m / rows), np.where(first, design.rate, rates / late)


@dataclass(frozen=True, slots=True)
class TargetSums:
    """What a pass leaves, for J targets."""

    own: Float64  # (J, 13, 13): F' F; wider if an estimator has columns that the kernel lacks
    paired: Float64  # (J, 13, 13): F' B, for the features B of the baseline
    largest: Float64  # (J,): the largest weight
    beyond: Float64  # (J,): how often a target plays another arm where the log could play no other, in rows
    units: UnitSums | None = None  # of features summed over units first, where rows have units: what errors go by

    @classmethod
    def add(cls, parts: Sequence[TargetSums]) -> TargetSums:
        """Add the sums of blocks, exactly rounded."""
        units = [part.units for part in parts if part.units is not None]
        return cls(
            combine([part.own for part in parts]),
            combine([part.paired for part in parts]),
            np.max([part.largest for part in parts], axis=0),
            combine([part.beyond for part in parts]),
            UnitSums.add(units, reference.gram, combine) if units else None,
        )


@dataclass(frozen=True, slots=True)
class SumTask:
    """A block to be summed for targets, the last of which is the baseline."""

    read: Callable[[], Rows]
    targets: tuple[ArmTarget, ...]
    models: tuple[RewardModel, ...]  # one; where rows have units one for each fold, which has not seen it
    starts: Float64  # (J, RUNNING): of the running sums; (J, FOLDS, RUNNING) where rows have units
    estimators: tuple[Estimator, ...]
    spanning: Int64 | None = None  # units that have rows in several blocks, sorted; None if rows have no units


def sum_block(task: SumTask) -> TargetSums:
    """Sum one block."""
    rows = task.read().with_reward()
    design = Design.of(rows)
    parts = _parts_of(task, rows, design)
    beyond = np.array([_beyond(design, part) for part in parts])
    if (
        parts[-1] is None
        and len(parts) > 1
        and rows.unit is None
        and not any(each.has_column for each in task.estimators)
    ):
        return _next_to_logged(parts, kernel_constants(task.estimators), beyond)
    features = features_of([_logged(rows, design) if part is None else part for part in parts], task.estimators)
    sums = sum_products(features, beyond)
    if rows.unit is None or task.spanning is None:
        return sums
    return replace(sums, units=UnitSums.of(rows.unit, features, task.spanning, reference.gram))


def features_of(parts: Sequence[Parts], estimators: Sequence[Estimator]) -> list[Float64]:
    """Return the features of rows for every target, (n, 13) each; more if estimators have columns of their own."""
    constants, extra = kernel_constants(estimators), [each for each in estimators if each.has_column]
    features = [row_features(*part, **constants) for part in parts]
    if not extra:
        return features
    columns = [[each.column(part) for each in extra] for part in parts]
    return [np.column_stack([F, *more]) for F, more in zip(features, columns, strict=True)]


def sum_products(features: Sequence[Float64], beyond: Float64) -> TargetSums:
    """Sum the products of features for every target, the last of which is the baseline."""
    base = features[-1]
    product = gram if base.shape[1] == len(reference.FEATURES) else reference.gram  # the kernel's has 13 columns
    own = [product(F, F) for F in features]
    return TargetSums(
        own=np.stack(own),
        paired=np.stack([G if F is base else product(F, base) for F, G in zip(features, own, strict=True)]),
        largest=np.array([F[:, 1].max(initial=0.0) for F in features]),
        beyond=beyond,
    )


def _parts_of(task: SumTask, rows: Rows, design: Design) -> list[Parts | None]:
    """Return what the features of every target are made of; None for the log itself."""
    pairs = list(zip(task.targets, task.starts, strict=True))
    if rows.unit is not None:
        return [None if each.is_log else _unit_parts(task, rows, design, each, at) for each, at in pairs]
    predictions = Predictions(rows, design.learned, task.models[0])
    return [None if each.is_log else _parts(rows, design, predictions.of(each), at) for each, at in pairs]


def _unit_parts(task: SumTask, rows: Rows, design: Design, target: ArmTarget, start: Float64) -> Parts:
    """Return the parts of rows that have units: each fold by the model and the running sums of the others."""
    fold, n = fold_of(np.asarray(rows.unit)), len(rows)
    pi, direct, played, h, added = *(np.zeros(n) for _ in range(4)), np.zeros((RUNNING, n))
    for each, model in enumerate(task.models):
        some = np.flatnonzero(fold == each)
        part = rows.take(some)
        expected = Predictions(part, np.zeros(len(part), dtype=np.bool_), model).of(target)
        pi[some], direct[some], played[some] = expected.pi, expected.direct, expected.played
        added[:, some] = contributions(expected.dist, expected.pi, replace(Design.of(part), whole=design.whole))
    if design.known.all():
        for each in range(FOLDS):
            mine = fold == each
            others = np.where(mine, 0.0, added)
            h[mine] = row_weights(others, np.delete(start, each, axis=0).sum(axis=0), design)[mine]
    explored = design.explored.astype(np.float64)
    return Parts(pi, direct, rows.reward, design.propensity, design.given, explored, played, h)


def _beyond(design: Design, part: Parts | None) -> float:
    if part is None or design.propensity.max(initial=0.0) < 1.0:
        return 0.0
    certain = (design.propensity >= 1.0) & ~design.known & (design.n_eligible > 1)
    return float(np.maximum(1.0 - part.pi[certain], 0.0).sum())


def _next_to_logged(parts: Sequence[Parts | None], constants: dict[str, float], beyond: Float64) -> TargetSums:
    """Sum without writing features down: those of the log itself are 1, the reward, or 0."""
    sums = [None if part is None else sum_features(*part, **constants) for part in parts]
    some = next(each[0] for each in sums if each is not None)
    log = some[np.ix_(AS_LOGGED, AS_LOGGED)]
    return TargetSums(
        own=np.stack([log if each is None else each[0][np.ix_(ALL, ALL)] for each in sums]),
        paired=np.stack([log if each is None else each[0][np.ix_(ALL, AS_LOGGED)] for each in sums]),
        largest=np.array([min(1.0, log[0, 0]) if each is None else each[1] for each in sums]),
        beyond=beyond,
    )


def _logged(rows: Rows, design: Design) -> Parts:
    """Return parts that make the value of every estimator the mean reward."""
    ones, r, propensity = np.ones(len(rows)), rows.reward, design.propensity
    return Parts(propensity, r, r, propensity, propensity, ones, r, ones)


def _parts(rows: Rows, design: Design, prediction: Prediction, start: Float64) -> Parts:
    dist, pi, direct, played = prediction
    h = np.zeros(len(rows))
    if design.known.all():
        h = row_weights(contributions(dist, pi, design), start, design)
    explored = design.explored.astype(np.float64)
    return Parts(pi, direct, rows.reward, design.propensity, design.given, explored, played, h)
