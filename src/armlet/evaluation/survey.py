"""The first pass over a log: what kind it is, the sums of its reward model, and where each block's weights begin.

Checks, sequences and traces, which want rows in their order, look on here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from armlet.errors import ArgumentError
from armlet.evaluation.basis import Basis
from armlet.evaluation.model import combine, empty_records, row_sums
from armlet.evaluation.predictable import SUMS
from armlet.evaluation.rows import Blocks, Rows
from armlet.evaluation.spans import Rewards
from armlet.evaluation.sums import running_sums
from armlet.evaluation.targets import Law, Target
from armlet.inputs.columns import LEAST_CHANCE
from armlet.inputs.settings import Range
from armlet.parallel.pool import Progress, silent
from armlet.types import Bool, Float64

Look = Callable[[Rows, Mapping[str, Law]], None]
"""Told every block, and what each target would have done."""
Count = Callable[[Rows], None]
"""Told every block."""


@dataclass(slots=True)
class Survey:
    """What a log holds."""

    n_arms: int
    rows: int = 0
    rewarded: int = 0
    explored: int = 0  # rows that say that they explored
    explored_rewarded: int = 0  # those of them that have a reward
    tried: int = 0  # rewarded rows that explored, with known chances
    silent: int = 0  # rows that do not say whether they explored
    known: int = 0  # rewarded rows whose rate and chance given exploring are known
    foreign: int = 0  # rewarded rows of which nobody said whether they explored
    certain: int = 0  # rewarded rows that could not have been otherwise, though several arms were eligible
    blind: int = 0  # known rows that never explore
    turns: int = 0
    reweighted: int = 0  # rows with a weight other than 1
    weights: Float64 = field(default_factory=lambda: np.zeros(2))  # of rewarded rows: of all, and of those explored
    missing: Float64 = field(default_factory=lambda: np.zeros(0))  # (K,)
    _values: set[float] = field(default_factory=set)
    parts: list[Float64] = field(default_factory=list)  # sums of the reward model, block by block
    starts: list[Float64] = field(default_factory=list)  # (J, SUMS) each

    def add(self, rows: Rows, rewarded: Rows, basis: Basis) -> None:
        """Count a block."""
        self.rows += len(rows)
        self.rewarded += len(rewarded)
        several = basis.n_eligible > 1
        self.explored += int(np.count_nonzero(rows.explored == 1))
        self.silent += int(np.count_nonzero(rows.explored < 0))
        self.tried += int(np.count_nonzero(basis.explored))
        self.known += int(np.count_nonzero(basis.known))
        self.foreign += int(np.count_nonzero(rewarded.explored < 0))
        self.certain += int(np.count_nonzero((basis.chance >= 1.0) & several & ~basis.known))
        self.blind += int(np.count_nonzero(basis.known & (basis.rate == 0.0) & several))
        self.turns += int(np.count_nonzero(rewarded.turn))
        odd = int(np.count_nonzero(rewarded.weight != 1.0))
        self.reweighted += odd
        explored = int(np.count_nonzero(rewarded.explored == 1))
        self.explored_rewarded += explored
        self.weights += _weights(rewarded) if odd else np.array([len(rewarded), explored], dtype=np.float64)
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

    def rewards(self, declared: Range | None) -> Rewards:
        """Say what is known of rewards, those beyond this log by what was declared."""
        constant = next(iter(self._values)) if len(self._values) == 1 else None
        is_told = declared is not None and constant is not None  # one reward alone does not look like clicks
        return Rewards((0.0, 1.0) if self.binary and not is_told else declared, self.binary, constant)

    def records(self, dim: int) -> Float64:
        """Give the sums of the reward model."""
        return combine(self.parts) if self.parts else empty_records(self.n_arms, dim)


def _weights(rewarded: Rows) -> Float64:
    return np.array([rewarded.weight.sum(), rewarded.weight[rewarded.explored == 1].sum()])


def _are_among(rewards: Float64, values: set[float]) -> bool:
    if not values:
        return False
    among: Bool = np.logical_or.reduce([rewards == value for value in values])
    return bool(among.all())


def survey_log(
    blocks: Blocks,
    targets: Sequence[Target],
    looks: Sequence[Look] = (),
    progress: Progress = silent,
    counts: Sequence[Count] = (),
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
        for count in counts:
            count(rows)
        for look in looks:
            look(rows, laws)
    return found


def check_rows(rows: Rows) -> None:
    """Refuse rows that nothing can be made of."""
    _check_chances(rows, rows.propensity, "propensity")
    if (rows.explored == 1).any():
        given = rows.given_exploring
        _check_chances(rows, np.where((rows.explored == 1) & ~np.isnan(given), given, 1.0), "probability of exploring")
    everyone = bool(rows.eligible.all())
    if not everyone and (wrong := np.flatnonzero(~rows.eligible[np.arange(len(rows)), rows.arm])).size:
        raise ArgumentError("{log} plays an arm at step {t} that was not eligible", t=int(rows.t[wrong[0]]))
    finite = np.isfinite(rows.reward)
    if not finite.all():
        wrong = np.flatnonzero(~finite)
        raise ArgumentError("{log} has a reward at step {t} that is not finite", t=int(rows.t[wrong[0]]))


def _check_chances(rows: Rows, chances: Float64, name: str) -> None:
    most = 1.0 + 1e-9
    if chances.min(initial=1.0) >= LEAST_CHANCE and chances.max(initial=0.0) <= most:  # false if one is no number
        return
    wrong = int(np.flatnonzero(~((chances >= LEAST_CHANCE) & (chances <= most)))[0])
    text = (
        "{log} has a {name} of {value} at step {t}; give the probability of the arm, above 0 and at most 1 "
        "({least} or more)"
    )
    raise ArgumentError(text, name=name, value=float(chances[wrong]), t=int(rows.t[wrong]), least=LEAST_CHANCE)
