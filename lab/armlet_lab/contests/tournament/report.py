"""What follows from a tournament: each candidate's ratios to the better tuned rival, and a verdict on the worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.inference.intervals import Estimate, bootstrap
from armlet.report.tables import Table
from armlet.types import Float64
from armlet_lab.runner.experiment import Claim, Criterion, Findings, Section, Statistic, Verdict
from armlet_lab.runner.hindsight import ratio_of_means

WORST: Final = 1.6  # of the ratios of means
LOCKED: Final = 10.0  # times its family's median: a run that never left a wrong arm
BLOCKS: Final = 2.0  # feedback in blocks of 1,000 over feedback at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Regret on the problems of one family, (runs,) by name."""

    family: str
    horizon: int
    candidates: Mapping[str, Float64]
    rivals: Mapping[str, Float64]

    @property
    def rival(self) -> str:
        """The better of the rivals, by its mean."""
        return min(self.rivals, key=lambda name: float(self.rivals[name].mean()))

    def ratio(self, candidate: str, rng: np.random.Generator) -> Estimate:
        """Give mean regret over that of the better rival, problems resampled."""
        return bootstrap(ratio_of_means, self.candidates[candidate], self.rivals[self.rival], rng=rng)

    def locked(self, candidate: str) -> float:
        """Give the worst run over the family's median."""
        regret = self.candidates[candidate]
        return float(regret.max() / np.median(regret))


def judge(cells: Sequence[Cell], rng: np.random.Generator) -> Findings:
    """Judge the first candidate, and show all."""
    ratios = {name: [cell.ratio(name, rng) for cell in cells] for name in cells[0].candidates}
    best = next(iter(ratios))
    claim = Claim(
        key="tournament",
        where="Armlet's default",
        says=f"{best}, with nothing set, does nearly as well as the better of LinUCB and Thompson sampling, tuned.",
        reading=f"Mean regret at most {WORST:g} times that of the better rival in every family, tuned on other draws.",
    )
    below = Criterion("below", WORST)
    statistics = tuple(
        Statistic(f"{cell.family}, T = {cell.horizon:,}", one, below)
        for cell, one in zip(cells, ratios[best], strict=True)
    )
    section = Section(
        claim=claim.key,
        heading="A default that needs nothing set",
        notes=_notes(cells),
        tables=(_ratios(cells, ratios), _runs(cells)),
    )
    return Findings((Verdict(claim=claim, statistics=statistics),), (section,))


def _ratios(cells: Sequence[Cell], ratios: Mapping[str, Sequence[Estimate]]) -> Table:
    rows = [
        (f"{cell.family}, {cell.horizon:,}", cell.rival, *(_show(ratios[name][i]) for name in ratios))
        for i, cell in enumerate(cells)
    ]
    worst = ("worst", "", *(f"{max(one.value for one in ratios[name]):.2f}" for name in ratios))
    caption = f"Mean regret over that of the better tuned rival, {len(next(iter(cells[0].rivals.values())))} problems"
    return Table(caption=caption, head=("family, T", "better rival", *ratios), rows=(*rows, worst))


def _runs(cells: Sequence[Cell]) -> Table:
    names = [*cells[0].candidates, *cells[0].rivals]
    rows = tuple(
        (f"{cell.family}, {cell.horizon:,}", *(_spread({**cell.candidates, **cell.rivals}[name]) for name in names))
        for cell in cells
    )
    return Table(caption="Regret: mean / median / worst run", head=("family, T", *names), rows=rows)


def _notes(cells: Sequence[Cell]) -> tuple[str, ...]:
    notes = []
    for name in cells[0].candidates:
        locked = [f"{cell.family}, T = {cell.horizon:,}" for cell in cells if cell.locked(name) > LOCKED]
        found = f"in {', '.join(locked)}" if locked else "nowhere"
        notes.append(f"{name}: a run above {LOCKED:g} times its family's median {found}.{_blocks(cells, name)}")
    return tuple(notes)


def _blocks(cells: Sequence[Cell], name: str) -> str:
    means = {(cell.family, cell.horizon): float(cell.candidates[name].mean()) for cell in cells}
    pairs = [
        (horizon, mean / means["at once", horizon])
        for (family, horizon), mean in means.items()
        if family == "blocks of 1,000" and ("at once", horizon) in means
    ]
    told = ", ".join(f"{ratio:.2f} at T = {horizon:,}" for horizon, ratio in pairs)
    return f" Feedback in blocks over feedback at once (at most {BLOCKS:g}): {told}." if pairs else ""


def _show(one: Estimate) -> str:
    return f"{one.value:.2f} [{one.low:.2f} to {one.high:.2f}]"


def _spread(regret: Float64) -> str:
    return f"{regret.mean():,.0f} / {np.median(regret):,.0f} / {regret.max():,.0f}"
