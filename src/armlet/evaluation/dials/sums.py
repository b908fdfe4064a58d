"""Many dials of many linear policies, valued by the same rows in one pass.

A policy scores each arm by each outcome, and a dial weighs the outcomes, so all dials of a policy share its scores;
what a row adds is the same for all that play the arm that was played. O(n J (m K d + D m K)); memory one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from armlet import kernel
from armlet.errors import ArgumentError
from armlet.evaluation.rows import Rows
from armlet.inputs.columns import LARGEST
from armlet.reference import race as reference
from armlet.types import Float64, Int64


@dataclass(frozen=True, slots=True)
class DialSums:
    """What rows leave behind for J policies under D dials and q outcomes: sums about y = (1, o_1, ..., o_q).

    Only rows count whose arm the policy plays too under the dial; w is one over the probability of that arm.
    """

    rows: int  # n, all rows
    totals: Float64  # (J, D, 1 + q): sum of w y
    squares: Float64  # (J, D, 1 + q, 1 + q): sum of w^2 y y'
    agreed: Int64  # (J, D): rows that count

    @classmethod
    def zero(cls, shape: tuple[int, int], outcomes: int) -> Self:
        """Return the sums of no rows."""
        y = 1 + outcomes
        return cls(0, np.zeros((*shape, y)), np.zeros((*shape, y, y)), np.zeros(shape, dtype=np.int64))

    def __add__(self, other: Self) -> Self:
        """Return the sums of both blocks of rows."""
        return type(self)(
            self.rows + other.rows,
            self.totals + other.totals,
            self.squares + other.squares,
            self.agreed + other.agreed,
        )

    @property
    def effective_rows(self) -> Float64:
        """(sum w)^2 / sum w^2, (J, D); 0 where no row counts."""
        weights, squares = self.totals[..., 0], self.squares[..., 0, 0]
        return np.divide(weights**2, squares, out=np.zeros_like(squares), where=squares > 0.0)

    def estimate(self) -> tuple[Float64, Float64]:
        """Return self-normalised (Hajek) values (J, D, q) and covariances (J, D, q, q); NaN where no row counts."""
        weights = np.where(self.agreed > 0, self.totals[..., 0], np.nan)[..., np.newaxis]
        values = self.totals[..., 1:] / weights
        G = self.squares  # of w (o - v): w^2 (o - v)(o' - v')
        cross = values[..., :, np.newaxis] * G[..., np.newaxis, 0, 1:]
        about = G[..., 1:, 1:] - cross - np.swapaxes(cross, -1, -2) + _outer(values) * G[..., :1, :1]
        return values, about / weights[..., np.newaxis] ** 2

    def plain(self) -> tuple[Float64, Float64]:
        """Return values by inverse propensities alone, (J, D, q), and their covariances (J, D, q, q)."""
        values = self.totals[..., 1:] / self.rows
        return values, (self.squares[..., 1:, 1:] / self.rows - _outer(values)) / self.rows


def _outer(values: Float64) -> Float64:
    return np.asarray(values[..., :, np.newaxis] * values[..., np.newaxis, :])


def sum_dials(rows: Rows, weights: Float64, outcomes: Float64, thetas: npt.ArrayLike, dials: npt.ArrayLike) -> DialSums:
    """Sum weighted outcomes over the rows whose arm each policy plays under each dial.

    Parameters
    ----------
    rows
        A block of n rows, all of which count.
    weights
        (n,): one over the probability of the arm that was played.
    outcomes
        (n, q): what is to be valued, which need not be what the dials weigh.
    thetas
        (J, m, K, d), or (J, m, K, 1 + d) with a constant first: policy j scores arm a by outcome o with
        thetas[j, o, a] @ x. Arms in the order of the log. A known price is a constant.
    dials
        (D, m): under dial k a policy plays the eligible arm with the highest sum over o of dials[k, o] times its score,
        the first of several.

    Examples
    --------
    >>> from armlet.evaluation.rows import rows_of
    >>> rows = rows_of(np.ones((4, 1)), np.array([0, 1, 0, 1]), np.zeros(4), np.full(4, 0.5), n_arms=2)
    >>> quality, cost = [0.6, 0.9, 0.4, 1.0], [1.0, 3.0, 1.0, 3.0]
    >>> thetas = [[[[0.5], [0.9]], [[1.0], [3.0]]]]  # one policy: what each arm is worth, and what it costs
    >>> sums = sum_dials(rows, np.full(4, 2.0), np.column_stack([quality, cost]), thetas, [[1.0, 0.0], [1.0, -1.0]])
    >>> sums.estimate()[0].round(2).tolist(), sums.effective_rows.tolist()
    ([[[0.95, 3.0], [0.5, 1.0]]], [[2.0, 2.0]])
    """
    policies = checked_thetas(thetas, 4, rows.eligible.shape[1], rows.X.shape[1])
    w, o = _checked_columns(weights, outcomes, len(rows))
    y = np.column_stack([np.ones(len(rows)), o])
    upper = np.triu_indices(y.shape[1])
    columns = np.column_stack(
        [np.ones(len(rows)), w[:, np.newaxis] * y, (w * w)[:, np.newaxis] * y[:, upper[0]] * y[:, upper[1]]]
    )
    sums = kernel.sum_agreeing(
        scored_contexts(rows.X, policies),
        np.ascontiguousarray(rows.eligible).ravel(),
        rows.arm,
        columns,
        policies,
        _checked_dials(dials, policies.shape[1]),
    )
    squares = np.empty((*sums.shape[:2], y.shape[1], y.shape[1]))
    squares[..., upper[0], upper[1]] = squares[..., upper[1], upper[0]] = sums[..., 1 + y.shape[1] :]
    return DialSums(len(rows), sums[..., 1 : 1 + y.shape[1]].copy(), squares, sums[..., 0].astype(np.int64))


def dial_arms(rows: Rows, thetas: npt.ArrayLike, dials: npt.ArrayLike) -> Int64:
    """Return the arm that each policy plays under each dial in each row, (J, D, n), as `sum_dials` has it; by numpy.

    Examples
    --------
    >>> from armlet.evaluation.rows import rows_of
    >>> rows = rows_of(np.ones((1, 1)), np.zeros(1, dtype=np.int64), np.zeros(1), np.full(1, 0.5), n_arms=2)
    >>> dial_arms(rows, [[[[0.5], [0.9]], [[1.0], [3.0]]]], [[1.0, 0.0], [1.0, -1.0]]).tolist()
    [[[1], [0]]]
    """
    policies = checked_thetas(thetas, 4, rows.eligible.shape[1], rows.X.shape[1])
    X = scored_contexts(rows.X, policies)
    return reference.dial_arms(X, rows.eligible, policies, _checked_dials(dials, policies.shape[1]))


def sum_played(rows: Rows, columns: Float64, thetas: npt.ArrayLike, dials: npt.ArrayLike) -> tuple[Int64, Float64]:
    """Count the rows in which each policy plays each arm under each dial, and sum what the arms played have there.

    Whatever the log played: with known prices counts are what a dial would have spent, without weights. One of the arms
    is played, so all but the last are asked about: K - 1 times the work of `sum_dials`.

    Parameters
    ----------
    columns
        (K, n, c): c numbers of each row for each arm, such as what is expected of it.

    Returns
    -------
    Counts (J, D, K) and sums (J, D, c).

    Examples
    --------
    >>> from armlet.evaluation.rows import rows_of
    >>> rows = rows_of(np.ones((4, 1)), np.array([0, 1, 0, 1]), np.zeros(4), np.full(4, 0.5), n_arms=2)
    >>> prices = np.broadcast_to([[[1.0]], [[3.0]]], (2, 4, 1))
    >>> counts, spent = sum_played(rows, prices, [[[[0.5], [0.9]], [[1.0], [3.0]]]], [[1.0, 0.0], [1.0, -1.0]])
    >>> counts.tolist(), spent[..., 0].tolist()
    ([[[0, 4], [4, 0]]], [[12.0, 4.0]])
    """
    n_arms = rows.eligible.shape[1]
    policies = checked_thetas(thetas, 4, n_arms, rows.X.shape[1])
    X, weights = scored_contexts(rows.X, policies), _checked_dials(dials, policies.shape[1])
    counts = np.zeros((len(policies), len(weights), n_arms), dtype=np.int64)
    sums = np.tile(columns[-1].sum(axis=0), (len(policies), len(weights), 1))
    for arm in range(n_arms - 1):  # as if the log had played it in all rows
        may = rows.eligible[:, arm]
        played = (X[may], rows.eligible[may].ravel(), np.full(np.count_nonzero(may), arm))
        differences = np.column_stack([np.ones(len(played[0])), columns[arm, may] - columns[-1, may]])
        agreeing = kernel.sum_agreeing(*played, differences, policies, weights)
        counts[:, :, arm] = agreeing[..., 0]
        sums += agreeing[..., 1:]
    counts[:, :, -1] = len(rows) - counts.sum(axis=2)
    return counts, sums


def scored_contexts(X: Float64, policies: Float64) -> Float64:
    """Return contexts with the constant in front, if the policies have one."""
    return np.ascontiguousarray(X if policies.shape[-1] == X.shape[1] else np.column_stack([np.ones(len(X)), X]))


def checked_thetas(thetas: npt.ArrayLike, axes: int, n_arms: int, dim: int, argument: str = "thetas") -> Float64:
    """Refuse what are no linear policies of these arms and features."""
    policies = np.ascontiguousarray(thetas, dtype=np.float64)
    if policies.ndim != axes or policies.shape[-2] != n_arms or policies.shape[-1] not in (dim, dim + 1):
        text = f"{{{argument}}} has shape {{shape}}; give ({{J}}, {{arms}}, {{dim}}), or ({{J}}, {{arms}}, {{more}})"
        text += " with a constant first"
        lead = "J" if axes == 3 else "J, m"
        raise ArgumentError(text, shape=policies.shape, J=lead, arms=n_arms, dim=dim, more=dim + 1)
    if policies.size == 0 or not (np.abs(policies) <= LARGEST).all():
        text = f"{{{argument}}} has no policy, or one that is not finite; give finite numbers of at most {{most:g}}"
        raise ArgumentError(f"{text} in size", most=LARGEST)
    return policies


def _checked_dials(dials: npt.ArrayLike, n_outcomes: int) -> Float64:
    matrix = np.ascontiguousarray(dials, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != n_outcomes or len(matrix) == 0:
        text = "{dials} has shape {shape}; give (D, {outcomes}): the weights of a policy's outcomes in each dial"
        raise ArgumentError(text, shape=matrix.shape, outcomes=n_outcomes)
    if not (np.abs(matrix) <= LARGEST).all():
        raise ArgumentError(
            "{dials} has a weight that is not finite; give numbers of at most {most:g} in size", most=LARGEST
        )
    return matrix


def _checked_columns(weights: Float64, outcomes: Float64, n: int) -> tuple[Float64, Float64]:
    w, o = np.asarray(weights, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    if w.shape != (n,) or not ((w > 0.0) & (w <= LARGEST)).all():
        raise ArgumentError("{weights} has shape {shape}; give ({n},) positive finite numbers", shape=w.shape, n=n)
    if o.ndim != 2 or len(o) != n or not (np.abs(o) <= LARGEST).all():
        raise ArgumentError("{outcomes} has shape {shape}; give ({n}, q) finite numbers", shape=o.shape, n=n)
    return w, o
