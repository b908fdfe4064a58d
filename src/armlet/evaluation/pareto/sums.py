"""Sums of a log for a Pareto curve: of every policy under every dial, and of what ran, by group of rows.

Values are doubly robust. A model of each outcome, arm by arm and linear in the context, says what a dial would have had
in every row; the rows in which it plays what was played say how far the model is off. Only these have weights, rate /
propensity: the exploration probability of the step over the arm's own. That is as unbiased as 1 / propensity, since the
rate is known before an arm is drawn, and never more than one over the arm's probability given exploring, however rarely
the log explores. Where rates are not known it is 1 / propensity.
O(n J K (m d + D m)), memory a block and a few numbers for every group and value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.evaluation.dials import DialSums, sum_dials, sum_played
from armlet.evaluation.pareto.band import GROUPS
from armlet.evaluation.pareto.policies import DialPolicies
from armlet.evaluation.rows import Design, Rows
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
