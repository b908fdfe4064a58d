"""The value of a model on its own rows: what the randomized rows of a log teach, for "own" of `armlet.evaluate`.

Valued on its own rows a policy looks as good as the luck that it learned. Sums make the policy without one row exact in
closed form: only the score of the arm that the row played changes, to (f - h r) / (1 - h), where f = z' M^-1 b and
h = z' M^-1 z with the ridge that one row fewer has. The mean over rows of what such policies earn is the point. Its
plain standard error is too small where there is nothing to learn, so the interval is that of the progressive value:
from a third of the rows on, what the policy learned from earlier rows earns on the next ones. O(n K d + n d^2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from armlet.errors import EvaluationError
from armlet.evaluation.estimators import Rewards, mean_interval
from armlet.evaluation.model import row_sums, unpack
from armlet.evaluation.result import Value
from armlet.evaluation.rows import Blocks, Design, Rows
from armlet.types import Float64

if TYPE_CHECKING:
    from armlet.evaluation.monitor import Survey

BEGIN: Final = 1 / 3
"""The share of rows that the progressive value learns from before it counts."""
GROWTH: Final = 1.02
"""Its policy is learned again when its rows have grown so much."""
WHY: Final = "exact leave-one-out of the linear policy that drawn rows of this log teach"


class LinearPolicy(NamedTuple):
    """Ridge regression for each arm, in the units that the log's policy sees."""

    theta: Float64  # (K, D)
    rows: Float64  # (K,)
    A: Float64  # (K, D, D)
    b: Float64  # (K, D)
    turn: Float64  # (D, d + 1): z = turn (1, x)
    base: float  # rewards are taken from here on

    def contexts(self, X: Float64) -> Float64:
        """Return z for every row, (n, D)."""
        return np.asarray(np.column_stack([np.ones(len(X)), X]) @ self.turn.T)


class Ratio:
    """S v r / S v, its error and its effective rows, from sums."""

    def __init__(self) -> None:
        self.v = self.vv = self.vr = self.vrr = self.vvr = self.vvrr = 0.0

    def add(self, v: Float64, r: Float64) -> None:
        """Add rows."""
        self.v += math.fsum(v)
        self.vv += math.fsum(v * v)
        self.vr += math.fsum(v * r)
        self.vrr += math.fsum(v * r * r)
        self.vvr += math.fsum(v * v * r)
        self.vvrr += math.fsum(v * v * r * r)

    @property
    def value(self) -> float:
        """The weighted mean."""
        return self.vr / self.v if self.v > 0 else math.nan

    @property
    def se(self) -> float:
        """Its standard error."""
        if not self.v > 0:
            return math.nan
        V = self.value
        return math.sqrt(max(0.0, self.vvrr - 2 * V * self.vvr + V * V * self.vv)) / self.v

    def covariance(self, mean: float, n: int) -> float:
        """Return the covariance with the mean of the rewards of n rows, these among them."""
        if not self.v > 0:
            return math.nan
        return (self.vrr - (self.value + mean) * self.vr + self.value * mean * self.v) / (self.v * n)

    @property
    def ess(self) -> float:
        """As many rows of equal weight tell as much."""
        return self.v * self.v / self.vv if self.vv > 0 else 0.0


class SelfEvaluation(NamedTuple):
    """The value of what the randomized rows of a log teach, and what policies taught by earlier rows earned."""

    value: Value
    ahead: Ratio


def self_evaluate(
    blocks: Blocks, survey: Survey, level: float, rewards: Rewards, name: str, *, doubt: str, refused: str
) -> SelfEvaluation:
    """Value the policy that the randomized rows of a log teach.

    `doubt` and `refused` say why there is no interval, or no number at all; they are empty if there is.
    """
    if adaptive := survey.rewarded - survey.known - survey.foreign:
        raise EvaluationError(
            f"{name!r} is what drawn rows teach, but {adaptive:,} rows chose their arm by what had been learned. Log "
            "with a policy that explores at a known rate, such as armlet.Algorithm1, or OccasionalOptimism(floor=0.05)"
        )
    units, sign = _units(blocks), 1.0 if blocks.objective == "max" else -1.0
    learned = learn(survey.records(blocks.dim), units)
    left_out, n = Ratio(), 0
    for block in blocks:
        rows, chance = _randomized(block)
        left_out.add(_match_weights(leave_one_out(learned, rows), rows, chance, sign), rows.reward)
        n += len(rows)
    ahead = _progressive(blocks, n, units, sign)
    span, why = mean_interval(ahead.value, ahead.se, ahead.ess, level, rewards)
    note = "its interval is of the progressive value, which learns from earlier rows alone"
    if span is not None and not span.low <= left_out.value <= span.high:
        note += ", and misses the point, which learns from more"
    value = Value(
        name=name,
        value=math.nan if refused else left_out.value,
        se=math.nan if refused else left_out.se,
        interval=None if refused or doubt else span,
        anytime=None,
        rows=survey.rewarded,
        ess=left_out.ess,
        estimator="leave one out",
        why=WHY,
        largest_weight=math.nan,
        note=refused or doubt or why or note,
    )
    return SelfEvaluation(value, ahead)


def _units(blocks: Blocks) -> str:
    settings = {} if blocks.policy is None else blocks.policy["settings"]
    name = "" if blocks.policy is None else blocks.policy["name"]
    return str(settings.get("units", "as given" if name == "Algorithm1" else "free"))


def _randomized(block: Rows) -> tuple[Rows, Float64]:
    """Return the rows that were drawn regardless of the context, and the probabilities of their arms."""
    paid = block.take(block.rewarded)
    used, chance = Design.of(paid).randomized()
    return paid.take(used), chance[used]


def learn(records: Float64, units: str) -> LinearPolicy:
    """Solve (sqrt(n) I + A) theta = b for every arm, as Algorithm 1 does, in its units."""
    A, b = unpack(records)
    n = records[:, 0]
    turn, base = _turn(A, records, units)
    b = (b - base * A[:, 0, :]) @ turn.T  # S (r - base) y, since y begins with 1
    A = turn @ A @ turn.T
    theta = np.stack([_solve(A[a], b[a], n[a]) for a in range(len(n))])
    return LinearPolicy(theta, n, A, b, turn, base)


def _turn(A: Float64, records: Float64, units: str) -> tuple[Float64, float]:
    size = A.shape[1]
    total, n = A.sum(axis=0), float(records[:, 0].sum())
    if units == "as given" or n == 0.0:
        return np.eye(size)[1:], 0.0
    mean = total[0, 1:] / n
    variance = np.maximum(np.diag(total)[1:] / n - mean * mean, 0.0)
    scale = np.where(variance > 1e-12 * np.maximum(1.0, mean * mean), 1.0 / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
    turn = np.zeros((size, size))
    turn[0, 0] = 1.0
    turn[1:, 0] = -mean * scale
    turn[np.arange(1, size), np.arange(1, size)] = scale
    return turn, float(records[:, 1].sum()) / n


def _solve(A: Float64, b: Float64, n: float) -> Float64:
    if n == 0:
        return np.zeros(len(b))
    return np.asarray(np.linalg.solve(A + math.sqrt(n) * np.eye(len(b)), b), dtype=np.float64)


def leave_one_out(learned: LinearPolicy, rows: Rows) -> Float64:
    """Return the scores of all arms, (n, K), that of the arm played without the row itself.

    Examples
    --------
    >>> from armlet.evaluation.rows import rows_of
    >>> rng = np.random.default_rng(1)
    >>> rows = rows_of(rng.normal(size=(9, 2)), np.arange(9) % 2, rng.normal(size=9), np.full(9, 0.5))
    >>> def learn_from(which):
    ...     return learn(row_sums(rows, which), "as given")
    >>> quick = leave_one_out(learn_from(np.ones(9, dtype=bool)), rows)[4, 0]
    >>> slow = learn_from(np.arange(9) != 4).theta[0] @ rows.X[4]
    >>> abs(quick - slow) < 1e-12
    np.True_
    """
    Z = learned.contexts(rows.X)
    scores = Z @ learned.theta.T
    for arm, n in enumerate(learned.rows):
        mine = np.flatnonzero(rows.arm == arm)
        if n < 2 or not mine.size:
            scores[mine, arm] = 0.0
            continue
        inverse = np.linalg.inv(learned.A[arm] + math.sqrt(n - 1) * np.eye(Z.shape[1]))
        z, r = Z[mine], rows.reward[mine] - learned.base
        h = np.einsum("ij,jk,ik->i", z, inverse, z)
        scores[mine, arm] = (z @ (inverse @ learned.b[arm]) - h * r) / (1.0 - h)
    return scores


def _match_weights(scores: Float64, rows: Rows, chance: Float64, sign: float) -> Float64:
    """Return 1/chance where the policy plays what was played, 0 elsewhere."""
    best = np.where(rows.eligible, sign * scores, -np.inf).argmax(axis=1)
    return np.where(best == rows.arm, 1.0 / chance, 0.0)


def _progressive(blocks: Blocks, n: int, units: str, sign: float) -> Ratio:
    """Value, from a third of the rows on, what earlier rows have taught."""
    ahead, seen = Ratio(), 0
    records: Float64 | None = None
    next_cut = max(1, math.ceil(BEGIN * n))
    learned: LinearPolicy | None = None
    for block in blocks:
        for part in _parts(_randomized(block)[0], seen, next_cut):
            if learned is not None:
                chance = Design.of(part).randomized()[1]
                scores = learned.contexts(part.X) @ learned.theta.T
                ahead.add(_match_weights(scores, part, chance, sign), part.reward)
            added = row_sums(part, np.ones(len(part), dtype=np.bool_))
            records = added if records is None else records + added
            seen += len(part)
            if seen >= next_cut:
                learned = learn(records, units)
                next_cut = math.ceil(max(GROWTH * seen, seen + 1))
    return ahead


def _parts(rows: Rows, seen: int, cut: int) -> Iterator[Rows]:
    """Cut rows where the policy is learned again."""
    at = 0
    while at < len(rows):
        end = min(len(rows), at + max(1, cut - seen - at))
        yield rows.take(slice(at, end))
        at = end
        if seen + at >= cut:
            cut = math.ceil(max(GROWTH * (seen + at), seen + at + 1))
