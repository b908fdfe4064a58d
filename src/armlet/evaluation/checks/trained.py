"""Whether a target was trained on the rows that value it: then its value is of what it remembers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from armlet.errors import EvaluationError
from armlet.evaluation.checks.check import Check, Word
from armlet.evaluation.rows import Blocks, Rows
from armlet.evaluation.targets import Played, Target
from armlet.types import Arm, Bool, Float64

FEWEST: Final = 20  # rows: fewer may be as many by chance
SLACK: Final = 1e-6  # rows of an arm, where weights were summed


class Trained:
    """How many rows of every arm a model that learns from this log has: from explored rows, or from all.

    Parameters
    ----------
    n_arms
        K.
    """

    def __init__(self, n_arms: int) -> None:
        self._learned = np.zeros((2, n_arms))

    def add(self, rows: Rows) -> None:
        """Take a block."""
        rewarded, explored = rows.rewarded, rows.explored == 1
        if explored.any():
            self._learned[0] += self._count(rows, rewarded & explored)
        self._learned[1] += self._count(rows, rewarded)

    def _count(self, rows: Rows, which: Bool) -> Float64:
        arms, weights = (rows.arm, rows.weight) if which.all() else (rows.arm[which], rows.weight[which])
        one = (weights == 1.0).all()
        return np.bincount(arms, weights=None if one else weights, minlength=self._learned.shape[1]).astype(np.float64)

    def found(self, name: str, arms: Collection[Arm], *, rows: Mapping[Arm, float]) -> Check:
        """Say whether a target learned from this log, by how many rows of each arm it has; none if it has no sums."""
        mine = np.array([rows.get(arm, 0.0) for arm in arms])
        if any(each.sum() >= FEWEST and np.allclose(mine, each, rtol=0, atol=SLACK) for each in self._learned):
            return _told(name, "It has learned exactly as many rows of every arm as this log holds", float(mine.sum()))
        told = "Nothing says that it was trained on these rows."
        return Check(name="trained here", word=Word.FINE, sentence=told, number=0.0, unit="rows", target=name)


def _told(name: str, why: str, rows: float) -> Check:
    told = (
        f"{why}, so it was trained on the rows that value it here, and its value is too good. "
        'Ask for "own", the honest value of a model from its own rows.'
    )
    return Check(name="trained here", word=Word.WARNING, sentence=told, number=rows, unit="rows", target=name)


def check_trained(targets: Sequence[Target], blocks: Blocks, totals: Iterable[float]) -> tuple[Check, ...]:
    """Say of every model that counts its rows whether it learned from this log.

    Parameters
    ----------
    totals
        How many rows a model may have that did: rows are read, arm by arm, only for one that has as many.
    """
    models = {each: rows for each in targets if isinstance(each, Played) and (rows := each.learned())}
    trained = Trained(len(blocks.arms))
    have = [sum(rows.get(arm, 0.0) for arm in blocks.arms) for rows in models.values()]
    if any(abs(mine - total) <= SLACK * len(blocks.arms) for mine in have for total in totals):
        for block in blocks:
            trained.add(block)
    return tuple(trained.found(each.name, blocks.arms, rows=rows) for each, rows in models.items())


def refuse_trained(candidate: Target, trained: Trained, arms: tuple[Arm, ...]) -> None:
    """Refuse a candidate that remembers the rows it would be valued by: it would win by its memory."""
    if not isinstance(candidate, Played) or not (rows := candidate.learned()):
        return
    if trained.found("candidate", arms, rows=rows).word is not Word.FINE:
        raise EvaluationError(
            "the candidate has learned exactly as many rows of every arm as this log holds, so it was trained on them; "
            'give rows that came after its training, or ask armlet.evaluate(log, "own") what it is worth'
        )
