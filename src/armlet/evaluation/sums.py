"""One pass over a block: for every target the Gram matrix of its rows' features, and that with the baseline's.

Values, standard errors and paired differences of all estimators are read off these. Blocks are summed on their own, in
the order of rows, and then added exactly rounded: any pool of workers gives the same bytes. O(n (d^2 + J K d)) a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.evaluation.basis import Basis
from armlet.evaluation.model import Opinion, RewardModel, Said, combine
from armlet.evaluation.predictable import contributions, row_weights
from armlet.evaluation.rows import Blocks, Rows
from armlet.evaluation.targets import Law, Logged, Target, chance_of_played
from armlet.kernel import gram, row_features, sum_features
from armlet.reference.evaluate import ALL, AS_LOGGED, Parts
from armlet.types import Bool, Float64

MOST: Final = 10.0
"""The weight above which Switch-DR trusts its model alone, unless said otherwise."""
SHRINK: Final = 1.0
"""The constant of DRos, unless said otherwise."""


@dataclass(frozen=True, slots=True)
class Sums:
    """What a pass leaves, for J targets."""

    own: Float64  # (J, 13, 13): F' F
    paired: Float64  # (J, 13, 13): F' B, for the features B of the baseline
    largest: Float64  # (J,): the largest weight
    beyond: Float64  # (J,): what a target does where the log could do nothing else, in rows


@dataclass(frozen=True, slots=True, kw_only=True)
class SumTask:
    """A block to be summed, and by what."""

    blocks: Blocks
    block: int
    targets: tuple[Target, ...]
    baseline: int
    model: RewardModel
    starts: Float64  # (J, SUMS): of the running sums
    most: float = MOST
    shrink: float = SHRINK

    @property
    def dials(self) -> tuple[float, float]:
        """The constants of Switch-DR and DRos."""
        return self.most, self.shrink


def sum_block(task: SumTask) -> Sums:
    """Sum one block."""
    rows = task.blocks[task.block]
    if not rows.rewarded.all():
        rows = rows.take(rows.rewarded)
    basis = Basis.of(rows)
    said = Said(rows, basis.learned, task.model)
    parts = [
        None if isinstance(target, Logged) else _parts(rows, basis, said.of(target), start)
        for target, start in zip(task.targets, task.starts, strict=True)
    ]
    beyond = np.array([_beyond(basis, part) for part in parts])
    if parts[task.baseline] is None and len(parts) > 1:
        return _beside_logged(parts, task, beyond)
    features = [row_features(*(_logged(rows, basis) if part is None else part), *task.dials) for part in parts]
    base = features[task.baseline]
    own = [gram(F, F) for F in features]
    return Sums(
        own=np.stack(own),
        paired=np.stack([G if F is base else gram(F, base) for F, G in zip(features, own, strict=True)]),
        largest=np.array([F[:, 1].max(initial=0.0) for F in features]),
        beyond=beyond,
    )


def _beyond(basis: Basis, part: Parts | None) -> float:
    """Say how often a target plays another arm where the log could have played no other: there nothing is known."""
    if part is None or basis.chance.max(initial=0.0) < 1.0:
        return 0.0
    certain = (basis.chance >= 1.0) & ~basis.known & (basis.n_eligible > 1)
    return float(np.maximum(1.0 - part.pi[certain], 0.0).sum())


def _beside_logged(parts: Sequence[Parts | None], task: SumTask, beyond: Float64) -> Sums:
    """Sum without writing features down: those of the log itself are 1, the reward, or 0."""
    found = [None if part is None else sum_features(*part, *task.dials) for part in parts]
    some = next(each[0] for each in found if each is not None)
    log = some[np.ix_(AS_LOGGED, AS_LOGGED)]
    return Sums(
        own=np.stack([log if each is None else each[0][np.ix_(ALL, ALL)] for each in found]),
        paired=np.stack([log if each is None else each[0][np.ix_(ALL, AS_LOGGED)] for each in found]),
        largest=np.array([min(1.0, log[0, 0]) if each is None else each[1] for each in found]),
        beyond=beyond,
    )


def _logged(rows: Rows, basis: Basis) -> Parts:
    """Give what makes its value the mean of what came, whatever the estimator."""
    ones, r, chance = np.ones(len(rows)), rows.reward, basis.chance
    return Parts(chance, r, r, chance, chance, ones, r, ones)


def _parts(rows: Rows, basis: Basis, opinion: Opinion, start: Float64) -> Parts:
    law, pi, direct, played = opinion
    h = np.zeros(len(rows))
    if basis.known.all():
        h = row_weights(contributions(law, pi, basis), start, basis)
    explored = basis.explored.astype(np.float64)
    return Parts(pi, direct, rows.reward, basis.chance, basis.given, explored, played, h)


def add_sums(parts: Sequence[Sums]) -> Sums:
    """Add the sums of blocks, exactly rounded."""
    return Sums(
        combine([part.own for part in parts]),
        combine([part.paired for part in parts]),
        np.max([part.largest for part in parts], axis=0),
        combine([part.beyond for part in parts]),
    )


def running_sums(law: Law, rows: Rows, basis: Basis) -> Float64:
    """Give what a block adds to the running sums of a target, (SUMS,)."""
    added = contributions(law, chance_of_played(law, rows.arm), basis)
    total: Float64 = np.cumsum(np.vstack([np.zeros(added.shape[1]), added]), axis=0)[-1]
    return total


def is_deterministic(law: Law) -> bool:
    """Say whether a law plays one arm in every row."""
    if law.ndim == 1:
        return True
    certain: Bool = (law == 0.0) | (law == 1.0)
    return bool(certain.all())
