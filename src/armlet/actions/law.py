"""What is played at a step: the rows that a policy may choose, with which probabilities, and the one that coins choose.

Every candidate is found deterministically from the state, the step, the context and the table, so probabilities are
exact for tables of any size: P(a) = (1 - share) [a in C] / |C| + share [a in O] / |O|, C the rows of the highest
estimate and O those of the highest bound; or the share of posterior draws that a row wins, ties within a draw shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from armlet.errors import PolicyError
from armlet.kernel import ActionRows, PairModel
from armlet.policies.shared import PairPolicy, SharedOptimism, SharedThompson
from armlet.reference.choice import below
from armlet.types import Bool, Coins, Float64, Int64


class ActionStep(NamedTuple):
    """A step as a policy sees it."""

    model: PairModel
    x: Float64
    rows: ActionRows
    t: int
    seed: int
    coins: Coins
    allowed: Bool | None
    n_allowed: int


class ActionChoice(NamedTuple):
    """The row that a policy chooses, and with which probability."""

    row: int
    propensity: float
    support: Mapping[int, float] | None  # probabilities by row; None: all that are allowed have the same
    marginal: bool
    optimistic: bool = False
    greedy: bool | None = None


def play(policy: PairPolicy, step: ActionStep, *, marginal: bool) -> ActionChoice:
    """Choose a row; with `marginal`, find all that could have been chosen."""
    if isinstance(policy, SharedThompson):
        return _play_draws(policy, step)
    return _play_kinds(policy, step) if marginal else _play_one_kind(policy, step)


def _greedy(step: ActionStep) -> list[int]:
    return _some(step.model.greedy(step.x, step.rows, step.allowed))


def _optimistic(step: ActionStep) -> list[int]:
    return _some(step.model.optimistic(step.x, step.rows, step.t, step.allowed))


def _some(rows: Int64) -> list[int]:
    """Return rows that tie; there are none if the model answers with what is not a number."""
    if len(rows) == 0:
        raise PolicyError("the model has no estimate of any action here: its sums are damaged; go back to a saved one")
    places: list[int] = rows.tolist()
    return places


def _play_one_kind(policy: SharedOptimism, step: ActionStep) -> ActionChoice:
    """Look for the candidates of the kind of step that the coin makes it, and no others."""
    optimistic = step.coins.coin < policy.share
    tied = _optimistic(step) if optimistic else _greedy(step)
    row = tied[below(step.coins.tie, len(tied))]
    is_sure = policy.share in (0.0, 1.0)  # the other kind never comes
    support = _support([(1.0, tied)], step.n_allowed)
    return ActionChoice(row, 1.0 / len(tied), support, is_sure, optimistic, None if optimistic else True)


def _play_kinds(policy: SharedOptimism, step: ActionStep) -> ActionChoice:
    optimistic = step.coins.coin < policy.share
    best, highest = _greedy(step), _optimistic(step)
    tied = highest if optimistic else best
    row = tied[below(step.coins.tie, len(tied))]
    support = _support([(1.0 - policy.share, best), (policy.share, highest)], step.n_allowed)
    propensity = 1.0 / step.n_allowed if support is None else support[row]
    return ActionChoice(row, propensity, support, True, optimistic, row in best)


def _play_draws(policy: SharedThompson, step: ActionStep) -> ActionChoice:
    model, n = step.model, policy.draws
    winners = model.draws(step.x, step.rows, step.t, step.seed, n, policy.v, step.allowed)
    won = [_some(each) for each in winners]
    tied = won[below(step.coins.pick, n)]
    row = tied[below(step.coins.tie, len(tied))]
    support = _support([(1.0 / n, rows) for rows in won], step.n_allowed)
    return ActionChoice(row, 1.0 / step.n_allowed if support is None else support[row], support, True)


def _support(parts: Sequence[tuple[float, list[int]]], n_allowed: int) -> dict[int, float] | None:
    """Return the probability of every row that some part shares; None if all parts share all rows."""
    first = parts[0][1]
    if all(rows == first for _, rows in parts):  # exactly 1 / n: shares need not add up to 1 in floats
        return None if len(first) == n_allowed else dict.fromkeys(first, 1.0 / len(first))
    chances: dict[int, float] = {}
    for share, rows in parts:
        if share > 0.0:
            each = share / len(rows)
            for row in rows:
                chances[row] = chances.get(row, 0.0) + each
    return chances


def chances_of(choice: ActionChoice, n: int, allowed: Bool | None) -> Float64:
    """Return the probability of each of n rows, (n,)."""
    if choice.support is None:
        mask = np.ones(n) if allowed is None else allowed.astype(np.float64)
        return mask * choice.propensity
    out = np.zeros(n)
    out[list(choice.support)] = list(choice.support.values())
    return out


def greedy_chances(model: PairModel, x: Float64, rows: ActionRows, allowed: Bool | None) -> Float64:
    """Return 1 for the row of the highest estimate, shared by those that tie, (n,)."""
    best, out = _some(model.greedy(x, rows, allowed)), np.zeros(len(rows))
    out[best] = 1.0 / len(best)
    return out
