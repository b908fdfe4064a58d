"""Which rewards did not come: a value speaks of those that did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from armlet.evaluation.checks.check import Check, Word, share, tail
from armlet.evaluation.rows import Rows
from armlet.types import Arm

ALPHA: Final = 1e-4
MANY: Final = 0.5  # of all rewards


class Missing:
    """Rows and missing rewards by arm.

    Parameters
    ----------
    n_arms
        K.
    """

    def __init__(self, n_arms: int) -> None:
        self._counts = np.zeros((2, n_arms))

    def add(self, rows: Rows) -> None:
        """Take a block."""
        for place, which in enumerate((np.ones(len(rows), dtype=np.bool_), ~rows.rewarded)):
            self._counts[place] += np.bincount(rows.arm[which], minlength=self._counts.shape[1])

    def found(self, arms: Sequence[Arm]) -> Check:
        """Say what came of it."""
        n, gone = self._counts
        total, missing = float(n.sum()), float(gone.sum())
        if not missing:
            return _check(Word.FINE, "Every decision has its reward.", 0.0)
        part = missing / total
        told = f"{missing:,.0f} rewards, {share(part)}, did not come; they are left out, never taken for 0."
        rest, spread = total - n, np.sqrt(np.maximum(part * (1 - part), 1e-300))
        usable = (n >= 20) & (rest >= 20)
        with np.errstate(invalid="ignore", divide="ignore"):
            z = np.abs(gone / n - (missing - gone) / rest) / (spread * np.sqrt(1 / n + 1 / rest))
        z = np.where(usable, z, 0.0)
        worst = int(z.argmax())
        if len(arms) * tail(float(z[worst])) < ALPHA:
            told += (
                f" Not by chance: {arms[worst]} lacks {share(float(gone[worst] / n[worst]))} of its own. If it is the "
                "good or the bad ones that are lacking, every value here is biased."
            )
            return _check(Word.WARNING, told, missing)
        if part > MANY:
            return _check(Word.WARNING, f"{told} Wait for more of them, if they are only late.", missing)
        return _check(Word.FINE, f"{told} No arm lacks more than others.", missing)


def _check(word: Word, told: str, number: float) -> Check:
    return Check(name="missing rewards", word=word, sentence=told, number=number, unit="rows")
