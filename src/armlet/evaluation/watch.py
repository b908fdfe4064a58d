"""Whoever wants the rows of a log in their order, beside the sums: checks, sequences, and how values came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armlet.evaluation.basis import Basis
from armlet.evaluation.checks import Check, Checks
from armlet.evaluation.plots import Path, Weighed
from armlet.evaluation.rows import Blocks, Rows
from armlet.evaluation.sums import is_deterministic
from armlet.evaluation.targets import Law, Logged, Target, chance_of_played
from armlet.evaluation.traces import Running, Spread
from armlet.inference.intervals import Interval
from armlet.inference.sequences import MeanSequence
from armlet.inputs.settings import Range


class Watch:
    """Looks at every block once.

    Parameters
    ----------
    blocks, targets
        The log, and what is valued by it.
    reward_range
        What rewards lie between, for a sequence beside each value as it settled; None leaves it out.
    """

    def __init__(self, blocks: Blocks, targets: Sequence[Target], reward_range: Range | None = None) -> None:
        self._targets = [target for target in targets if not isinstance(target, Logged)]
        names = [target.name for target in self._targets]
        self._checks = Checks(blocks.arms, blocks.dim, names, blocks.features)
        self._spreads = {name: Spread() for name in names}
        self._running = {name: Running(reward_range) for name in names}

    def look(self, rows: Rows, laws: Mapping[str, Law]) -> None:
        """Take a block."""
        self._checks.add(rows, {target.name: laws[target.name] for target in self._targets})
        paid = rows.rewarded
        rewarded = rows if paid.all() else rows.take(paid)
        basis = Basis.of(rewarded)
        for target in self._targets:
            pi = chance_of_played(laws[target.name][paid], rewarded.arm)
            self._spreads[target.name].add(pi / basis.chance)
            used, chance = basis.drawn()
            self._running[target.name].add(rewarded.reward[used], pi[used] / chance[used])

    def checks(self) -> tuple[Check, ...]:
        """Say what the checks found."""
        return self._checks.found()

    def paths(self) -> tuple[Path, ...]:
        """Give what values were after so many rows."""
        return tuple(running.found(name) for name, running in self._running.items())

    def spreads(self) -> tuple[Weighed, ...]:
        """Give how weights are spread."""
        return tuple(spread.found(name) for name, spread in self._spreads.items())


class Sequences:
    """Anytime-valid intervals: one confidence sequence a target.

    They bet on rows whose arm was drawn by chance that ignored the context, or where that is not known on all rows.
    Where all arms were alike and a target plays one arm, its rows are those that match, and weigh the same.

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

    def look(self, rows: Rows, laws: Mapping[str, Law]) -> None:
        """Take a block."""
        paid = rows.rewarded
        rewarded = rows if paid.all() else rows.take(paid)
        basis = Basis.of(rewarded)
        used, chance = basis.drawn()
        m = basis.n_eligible[used]
        if m.size and self._arms is None:
            self._arms = float(m[0])
        self._even = self._even and bool((m == self._arms).all() and np.allclose(chance[used] * m, 1.0, rtol=1e-9))
        rewards = rewarded.reward[used]
        for name, sequence in self._weighted.items():
            law = laws[name][paid]
            pi = chance_of_played(law, rewarded.arm)[used]
            sequence.add(rewards, weights=pi / chance[used])
            if not is_deterministic(law):
                self._uneven.add(name)
            elif self._even and name not in self._uneven:
                self._matched[name].add(rewards[pi == 1.0])

    def interval(self, name: str) -> Interval:
        """Give the interval after the last row."""
        if self._even and name not in self._uneven:
            return self._matched[name].interval()
        return self._weighted[name].interval()
