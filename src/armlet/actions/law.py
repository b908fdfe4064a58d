"""What is played at a step: the rows that a policy may choose, with which probabilities, and the one that coins choose.

Every candidate is found deterministically from the state, the step, the context and the table, so probabilities are
exact for tables of any size: P(a) = (1 - share) [a in C] / |C| + share [a in O] / |O|, C the rows of the highest
estimate and O those of the highest bound; or the share of posterior draws that a row wins, ties within a draw shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from armlet.actions.policies import ActionPolicy, SharedOptimism, SharedThompson
from armlet.errors import PolicyError
from armlet.kernel import ActionRows, PairModel
from armlet.reference.choice import below
from armlet.types import Bool, Coins, Float64, Int64


class Asked(NamedTuple):
    """A question to a policy."""

    model: PairModel
    x: Float64
    rows: ActionRows
    t: int
    seed: int
    coins: Coins
    allowed: Bool | None
    n_allowed: int


class Played(NamedTuple):
    """What a policy answers."""

    row: int
    propensity: float
    support: Mapping[int, float] | None  # probabilities by row; None: all that are allowed have the same
    marginal: bool
    optimistic: bool = False
    greedy: bool | None = None


def play(policy: ActionPolicy, asked: Asked, *, marginal: bool) -> Played:
    """Choose a row; with `marginal`, find all that could have been chosen."""
    if isinstance(policy, SharedThompson):
        return _play_draws(policy, asked)
    return _play_kinds(policy, asked) if marginal else _play_one_kind(policy, asked)


def _greedy(asked: Asked) -> list[int]:
    return _some(asked.model.greedy(asked.x, asked.rows, asked.allowed))


def _optimistic(asked: Asked) -> list[int]:
    return _some(asked.model.optimistic(asked.x, asked.rows, asked.t, asked.allowed))


def _some(rows: Int64) -> list[int]:
    """Return rows that tie; there are none if the model answers with what is not a number."""
    if len(rows) == 0:
        raise PolicyError("the model has no estimate of any action here: its sums are damaged; go back to a saved one")
    found: list[int] = rows.tolist()
    return found


def _play_one_kind(policy: SharedOptimism, asked: Asked) -> Played:
    """Look for the candidates of the kind of step that the coin makes it, and no others."""
    optimistic = asked.coins.coin < policy.share
    tied = _optimistic(asked) if optimistic else _greedy(asked)
    row = tied[below(asked.coins.tie, len(tied))]
    is_sure = policy.share in (0.0, 1.0)  # the other kind never comes
    support = _support([(1.0, tied)], asked.n_allowed)
    return Played(row, 1.0 / len(tied), support, is_sure, optimistic, None if optimistic else True)


def _play_kinds(policy: SharedOptimism, asked: Asked) -> Played:
    optimistic = asked.coins.coin < policy.share
    best, highest = _greedy(asked), _optimistic(asked)
    tied = highest if optimistic else best
    row = tied[below(asked.coins.tie, len(tied))]
    support = _support([(1.0 - policy.share, best), (policy.share, highest)], asked.n_allowed)
    propensity = 1.0 / asked.n_allowed if support is None else support[row]
    return Played(row, propensity, support, True, optimistic, row in best)


def _play_draws(policy: SharedThompson, asked: Asked) -> Played:
    model, n = asked.model, policy.draws
    winners = model.draws(asked.x, asked.rows, asked.t, asked.seed, n, policy.v, asked.allowed)
    won = [_some(each) for each in winners]
    tied = won[below(asked.coins.pick, n)]
    row = tied[below(asked.coins.tie, len(tied))]
    support = _support([(1.0 / n, rows) for rows in won], asked.n_allowed)
    return Played(row, 1.0 / asked.n_allowed if support is None else support[row], support, True)


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


def chances_of(played: Played, n: int, allowed: Bool | None) -> Float64:
    """Return the probability of each of n rows, (n,)."""
    if played.support is None:
        mask = np.ones(n) if allowed is None else allowed.astype(np.float64)
        return mask * played.propensity
    out = np.zeros(n)
    out[list(played.support)] = list(played.support.values())
    return out


def greedy_chances(model: PairModel, x: Float64, rows: ActionRows, allowed: Bool | None) -> Float64:
    """Return 1 for the row of the highest estimate, shared by those that tie, (n,)."""
    best, out = _some(model.greedy(x, rows, allowed)), np.zeros(len(rows))
    out[best] = 1.0 / len(best)
    return out
