"""What a reward model expects of a target, row by row: one model over pairs, which has learned from earlier rows alone.

A model of the rows before a decision knows nothing of its coin, action or reward, so an estimate that leans on it stays
unbiased although the policy that logged learned meanwhile. It is brought up to date between growing blocks of rows:
O(n (D^2 + m D)) in all, m the actions that targets may play.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.evaluation.actions import ActionTarget, LoggedAction, LoggedActions, RowLaw, TableLaw, TableRows
from armlet.kernel import ActionRows, PairModel
from armlet.parallel import Progress
from armlet.policies.shared import MOST_TERMS
from armlet.reference.evaluate import Parts
from armlet.types import Float64, Int64

FIRST: Final = 16  # rows that the model learns at once, at least
GROWTH: Final = 8  # so many times fewer than it has seen, later


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a target, (n,) each."""

    pi: Float64  # its probability of the action that was played
    played: Float64  # what the model expects of that action
    direct: Float64  # what it expects of the target where the log could have played the same
    beyond: Float64  # how much of what it plays the log could not have played
    imagined: Float64  # what the model expects of that part

    def parts(self, facts: Facts, fill: float | None) -> Parts:
        """Return what features of rows are made of; `fill` is what is put for what was out of reach, if anything is."""
        ones, zeros = np.ones(len(self.pi)), np.zeros(len(self.pi))
        direct = self.direct + (self.imagined if fill is None else self.beyond * fill)
        return Parts(self.pi, direct, facts.reward, facts.propensity, ones, zeros, self.played, zeros)


@dataclass(frozen=True, slots=True)
class Facts:
    """What rows say regardless of targets, (n,) each."""

    step: Float64
    reward: Float64
    propensity: Float64
    weight: Float64
    possible: Float64  # 1 if its propensity can be true
    likeliest: Float64  # 1 if no other action was likelier than the one that was played; NaN if there was no other
    due: Float64  # the probability of that; NaN likewise

    def logged(self) -> Parts:
        """Return parts that make the value of every estimator the mean reward."""
        e, r, ones = self.propensity, self.reward, np.ones(len(self.reward))
        return Parts(e, r, r, e, e, np.zeros(len(r)), r, ones)


def expect(
    log: LoggedActions,
    targets: Sequence[ActionTarget],
    observers: Sequence[Callable[[TableRows, Mapping[str, TableLaw]], None]],
    progress: Progress | None,
) -> tuple[Facts, list[Expected]]:
    """Ask all targets about all rows, and a model of earlier rows what comes of it."""
    model = _model(log)
    facts: list[tuple[float, ...]] = []
    expectations: list[list[tuple[float, ...]]] = [[] for _ in targets]
    waiting: list[tuple[int, Float64, Float64, float]] = []  # rows that the model is still to learn
    for block in log:
        rows = block.with_reward()
        laws = [target.law(rows) for target in targets]
        for observer in observers:
            observer(rows, {target.name: law for target, law in zip(targets, laws, strict=True)})
        for i, row in enumerate(rows.actions):
            facts.append(_facts(row))
            for law, expected in zip(laws, expectations, strict=True):
                expected.append(_expect(model, row, law.rows[i]))
            waiting.append((int(row.table.keys[row.place]), row.x, row.table.features[row.place], row.reward))
            if len(waiting) >= max(FIRST, len(facts) // GROWTH):
                for key, x, z, reward in waiting:
                    model.add(key, x, z, reward, 1.0)
                waiting.clear()
                if progress is not None:
                    progress(len(facts), log.n)
    columns = [Expected(*np.array(each, dtype=np.float64).reshape(-1, 5).T.copy()) for each in expectations]
    return Facts(*np.array(facts, dtype=np.float64).reshape(-1, 7).T.copy()), columns


def _facts(row: LoggedAction) -> tuple[float, ...]:
    chances = [] if row.support is None else list(row.support.values())
    most = max(chances, default=np.nan)
    is_open = len(chances) > 1 and min(chances) < most
    likeliest = float(row.propensity == most) if is_open else np.nan
    due = sum(chance for chance in chances if chance == most) if is_open else np.nan
    return row.t, row.reward, row.propensity, row.weight, float(row.is_possible), likeliest, due


def _model(log: LoggedActions) -> PairModel:
    """Return a model that knows nothing, of all products where there are not too many."""
    dx, dz = log.dim, log.action_dim
    all_pairs = np.array([(i, j) for i in range(1, dx + 1) for j in range(1, dz + 1)], dtype=np.int64)
    is_small = (1 + dx) * (1 + dz) <= MOST_TERMS
    return PairModel(dx, dz, all_pairs.reshape(-1, 2) if is_small else all_pairs[:0].reshape(0, 2), intercepts=True)


def _expect(model: PairModel, row: LoggedAction, law: RowLaw) -> tuple[float, float, float, float, float]:
    in_reach = np.array([row.reach(int(place)) > 0.0 for place in law.places], dtype=np.bool_)
    estimates = _estimates(model, row, np.append(law.places, row.place))
    shares = law.chances * estimates[:-1]
    return (
        law.of(row.place),
        float(estimates[-1]),
        float(shares[in_reach].sum()),
        float(law.chances[~in_reach].sum()),
        float(shares[~in_reach].sum()),
    )


def _estimates(model: PairModel, row: LoggedAction, places: Int64) -> Float64:
    """Return what the model expects of some actions of a row, of which one may come twice."""
    some, which = np.unique(places, return_inverse=True)
    rows = ActionRows(np.ascontiguousarray(row.table.features[some]), np.ascontiguousarray(row.table.keys[some]))
    estimates: Float64 = np.asarray(model.estimates(row.x, rows))[which]
    return estimates
