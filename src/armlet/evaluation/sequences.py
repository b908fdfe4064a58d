"""Anytime-valid intervals of targets' values: confidence sequences over rows as they come.

They bet on rows whose arm was drawn by chance that ignored the context, or where that is not known on all rows. Where
all arms were alike and a target plays one arm, its rows are those that match, and weigh the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armlet.core.intervals import Interval
from armlet.core.rewards import Range
from armlet.core.sequences import MeanSequence
from armlet.core.types import Bool, Float64
from armlet.evaluation.basis import Basis
from armlet.evaluation.rows import Rows
from armlet.evaluation.sums import is_deterministic
from armlet.evaluation.targets import Law, chance_of_played


class Sequences:
    """One sequence a target.

    Parameters
    ----------
    names
        Of the targets.
    reward_range, level
        As of `MeanSequence`.
    """

    def __init__(self, names: Sequence[str], reward_range: Range, level: float) -> None:
        self._weighted = {name: MeanSequence(reward_range, level=level) for name in names}
        self._matched = {name: MeanSequence(reward_range, scores="within", level=level) for name in names}
        self._arms: float | None = None  # that were eligible in every row so far
        self._even = True
        self._uneven: set[str] = set()

    def add(self, rows: Rows, laws: Mapping[str, Law]) -> None:
        """Take a block of rows with rewards."""
        basis = Basis.of(rows)
        used: Bool = basis.explored if basis.known.all() else np.ones(len(rows), dtype=np.bool_)
        chance: Float64 = basis.given if basis.known.all() else basis.chance
        m = basis.n_eligible[used]
        if m.size and self._arms is None:
            self._arms = float(m[0])
        self._even = self._even and bool((m == self._arms).all() and np.allclose(chance[used] * m, 1.0, rtol=1e-9))
        rewards = rows.reward[used]
        for name, sequence in self._weighted.items():
            pi = chance_of_played(laws[name], rows.arm)[used]
            sequence.add(rewards, weights=pi / chance[used])
            if not is_deterministic(laws[name]):
                self._uneven.add(name)
            elif self._even and name not in self._uneven:
                self._matched[name].add(rewards[pi == 1.0])

    def interval(self, name: str) -> Interval:
        """Give the interval after the last row."""
        if self._even and name not in self._uneven:
            return self._matched[name].interval()
        return self._weighted[name].interval()
