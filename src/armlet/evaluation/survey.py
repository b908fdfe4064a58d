"""The first pass over a log: what kind it is, the sums of its reward model, and where each block's weights begin.

Checks, sequences and traces, which want rows in their order, look on here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from armlet.core.errors import ArgumentError
from armlet.core.types import Bool, Float64
from armlet.evaluation.basis import Basis
from armlet.evaluation.model import combine, empty_records, row_sums
from armlet.evaluation.predictable import SUMS
from armlet.evaluation.rows import Blocks, Rows
from armlet.evaluation.sums import running_sums
from armlet.evaluation.targets import Law, Target
from armlet.parallel.progress import Progress, silent

Look = Callable[[Rows, Mapping[str, Law]], None]
"""Told every block, and what each target would have done."""


@dataclass(slots=True)
class Survey:
    """What a log holds."""

    n_arms: int
    rows: int = 0
    rewarded: int = 0
    explored: int = 0
    known: int = 0  # rewarded rows whose rate and chance given exploring are known
    foreign: int = 0  # rewarded rows of which nobody said whether they explored
    certain: int = 0  # rewarded rows that could not have been otherwise, though several arms were eligible
    blind: int = 0  # known rows that never explore
    turns: int = 0
    reweighted: int = 0  # rows with a weight other than 1
    missing: Float64 = field(default_factory=lambda: np.zeros(0))  # (K,)
    _values: set[float] = field(default_factory=set)
    parts: list[Float64] = field(default_factory=list)  # sums of the reward model, block by block
    starts: list[Float64] = field(default_factory=list)  # (J, SUMS) each

    def add(self, rows: Rows, rewarded: Rows, basis: Basis) -> None:
        """Count a block."""
        self.rows += len(rows)
        self.rewarded += len(rewarded)
        several = basis.n_eligible > 1
        self.explored += int(np.count_nonzero(basis.explored))
        self.known += int(np.count_nonzero(basis.known))
        self.foreign += int(np.count_nonzero(rewarded.explored < 0))
        self.certain += int(np.count_nonzero((basis.chance >= 1.0) & several & ~basis.known))
        self.blind += int(np.count_nonzero(basis.known & (basis.rate == 0.0) & several))
        self.turns += int(np.count_nonzero(rewarded.turn))
        self.reweighted += int(np.count_nonzero(rewarded.weight != 1.0))
        silent = rows.arm[:0] if len(rewarded) == len(rows) else rows.arm[~rows.rewarded]
        gone = np.bincount(silent, minlength=self.n_arms).astype(np.float64)
        self.missing = gone if self.missing.size == 0 else self.missing + gone
        if len(self._values) <= 2 and not _are_among(rewarded.reward, self._values):
            self._values |= set(np.unique(rewarded.reward)[:3].tolist())
        self.parts.append(row_sums(rewarded, basis.learned))

    @property
    def binary(self) -> bool:
        """Whether all rewards are 0 or 1."""
        return bool(self._values) and self._values <= {0.0, 1.0}

    def records(self, dim: int) -> Float64:
        """Give the sums of the reward model."""
        return combine(self.parts) if self.parts else empty_records(self.n_arms, dim)


def _are_among(rewards: Float64, values: set[float]) -> bool:
    if not values:
        return False
    among: Bool = np.logical_or.reduce([rewards == value for value in values])
    return bool(among.all())


def survey_log(
    blocks: Blocks, targets: Sequence[Target], looks: Sequence[Look] = (), progress: Progress = silent
) -> Survey:
    """Read a log once."""
    found = Survey(len(blocks.arms))
    start = np.zeros((len(targets), SUMS))
    for number, rows in enumerate(blocks):
        progress(number, 2 * len(blocks))
        mask = rows.rewarded
        paid = rows if mask.all() else rows.take(mask)
        check_rows(paid)
        basis = Basis.of(paid)
        found.add(rows, paid, basis)
        found.starts.append(start)
        needs = basis.known.all()
        laws = {target.name: target.law(rows) for target in targets} if needs or looks else {}
        if needs:
            start = start + np.stack([running_sums(laws[target.name][mask], paid, basis) for target in targets])
        for look in looks:
            look(rows, laws)
    return found


def check_rows(rows: Rows) -> None:
    """Refuse rows that nothing can be made of."""
    fine = (rows.propensity > 0.0) & (rows.propensity <= 1.0 + 1e-9)
    if not fine.all():
        wrong = np.flatnonzero(~fine)
        text = "{log} has a propensity of {value} at step {t}; give the probability of the arm, above 0 and at most 1"
        raise ArgumentError(text, value=float(rows.propensity[wrong[0]]), t=int(rows.t[wrong[0]]))
    everyone = rows.eligible.all()
    if not everyone and (wrong := np.flatnonzero(~rows.eligible[np.arange(len(rows)), rows.arm])).size:
        raise ArgumentError("{log} plays an arm at step {t} that was not eligible", t=int(rows.t[wrong[0]]))
    finite = np.isfinite(rows.reward)
    if not finite.all():
        wrong = np.flatnonzero(~finite)
        raise ArgumentError("{log} has a reward at step {t} that is not finite", t=int(rows.t[wrong[0]]))
