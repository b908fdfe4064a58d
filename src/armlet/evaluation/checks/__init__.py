"""Checks with words: what is looked at before a value is believed, in the same pass over the log.

Everything is sums, so that memory does not grow with the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armlet.evaluation.checks.check import Check, Word
from armlet.evaluation.checks.drift import Drift
from armlet.evaluation.checks.missing import Missing
from armlet.evaluation.checks.propensities import Propensities, guaranteed
from armlet.evaluation.checks.support import Support
from armlet.evaluation.rows import Rows
from armlet.types import Arm, Float64, Int64

__all__ = ["Check", "Checks", "Word"]


class Checks:
    """All checks of a log and of the targets that it values.

    Parameters
    ----------
    arms
        All arms of the log.
    dim
        Values of a context.
    targets
        Names of the targets.
    features
        Names of the values of a context.

    Examples
    --------
    >>> import numpy as np
    >>> from armlet.evaluation.rows import open_rows
    >>> from armlet.log import from_obp
    >>> draw = np.random.default_rng(1)
    >>> columns = {"action": draw.integers(2, size=500), "reward": draw.random(500), "pscore": np.full(500, 0.5)}
    >>> blocks = open_rows(from_obp({**columns, "context": draw.random((500, 1))}))
    >>> checks = Checks(blocks.arms, 1, ["always 1"])
    >>> for rows in blocks:
    ...     checks.add(rows, {"always 1": np.tile([0.0, 1.0], (len(rows), 1))})
    >>> all(check.word is Word.FINE for check in checks.found())
    True
    """

    def __init__(
        self, arms: Sequence[Arm], dim: int, targets: Sequence[str], features: Sequence[str] | None = None
    ) -> None:
        self.arms, self.features = tuple(arms), features
        n_arms = len(self.arms)
        self.propensities, self.drift, self.missing = Propensities(n_arms), Drift(dim, n_arms), Missing(n_arms)
        self.support = {name: Support(n_arms) for name in targets}

    def add(self, rows: Rows, targets: Mapping[str, Float64 | Int64]) -> None:
        """Take a block, and what each target would play in it: the arms, (n,), or the probabilities of all, (n, K)."""
        known = guaranteed(rows)
        self.propensities.add(rows, known)
        for part in (self.drift, self.missing):
            part.add(rows)
        for name, probabilities in targets.items():
            self.support[name].add(rows, known, probabilities)

    def found(self) -> tuple[Check, ...]:
        """Say what came of them; whether models were trained here, `trained.Trained` says."""
        checks = [
            *self.propensities.found(self.arms),
            *self.drift.found(self.arms, self.features),
            self.missing.found(self.arms),
        ]
        for name, support in self.support.items():
            checks += support.found(name, self.arms)
        return tuple(checks)
