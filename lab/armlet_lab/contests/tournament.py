"""A tournament for the default policy: regret of candidates as they come over that of tuned rivals, family by family.

Each run is another draw of a family of problems (`problems.py`), the same for all policies. The constants of rivals are
the best of a small grid on other draws. The default is judged by the geometric mean over families of its ratios of mean
regret to the better rival, by the worst of them, and by its runs that never left a wrong arm, next to those of the
default that it replaced. Its constants were chosen on other seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from armlet.inference.intervals import bootstrap
from armlet.policies import Greedy, LinUCB, OccasionalOptimism, ThompsonSampling
from armlet.simulation.lab import Arrays, Lab, Scale
from armlet.simulation.play import draw, run_streams
from armlet.types import Estimate, Float64, Policy
from armlet_lab.contests.contest import Columns, Entry, Part, Task, our_claim, part, ratio, table, tune_and_play
from armlet_lab.contests.problems import FAMILIES, MADE, WITH_HORIZON, draw_problem, make_player
from armlet_lab.runner.experiment import Criterion, Experiment, Findings, Statistic, certain, conclude

BEFORE: Final = "ridge 1, width 0.7"
CANDIDATES: Final[dict[str, Policy]] = {
    "occasional optimism": OccasionalOptimism(),
    BEFORE: OccasionalOptimism(ridge=1.0, width_scale=0.7),
    "width 0.7": OccasionalOptimism(width_scale=0.7),
    "width 1.15": OccasionalOptimism(width_scale=1.15),
    "noise shrunk": OccasionalOptimism(noise="shrunk"),
    "floor 0.02": OccasionalOptimism(floor=0.02),
    "LinUCB, 2 sd": LinUCB(alpha=2.0),
    "greedy": Greedy(),
}
"""The first is the default, the second nearly what was the default before; those up to its floor change one word."""
RIVALS: Final[dict[str, tuple[Policy, ...]]] = {
    "LinUCB": tuple(LinUCB(alpha=alpha, units="free") for alpha in (0.3, 0.6, 1.0, 2.0)),
    "Thompson sampling": tuple(ThompsonSampling(v=v, units="free") for v in (0.3, 0.6, 1.0)),
}
"""What is chosen from, on other draws."""
MEAN: Final = 1.05  # of the ratios of means, geometric, over the families that were not made to show a fault
WORST: Final = 1.4  # of the ratios of means
LOCKED: Final = 10.0  # times its family's median: a run that never left a wrong arm
TAIL: Final = 1.4  # such runs of 1,000, by the median of BEFORE
DRAWN: Final = 4096  # steps drawn at a time


class Round(NamedTuple):
    """So many steps: rivals' settings by `trials` problems of a family, then `runs` problems for all."""

    horizon: int
    runs: int
    trials: int
    families: tuple[str, ...]


ALL: Final = (*FAMILIES, *WITH_HORIZON)
SHORT: Final = (
    *("gaussian 20 x 30", "one-hot 50", "100 arms", "embeddings", "news", "newcomers, late rewards", "delay 1,000"),
    *("level 100", "scale 0.02", "t3 noise"),
)
"""Not played for long: they cost most, or differ from gaussian 10 x 10 in units and tails alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each policy on each family."""

    rounds: tuple[Round, ...] = (
        Round(10_000, 100, 10, ALL),
        Round(100_000, 40, 10, tuple(family for family in ALL if family not in SHORT)),
    )


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(rounds=(Round(1000, 3, 1, ("Figure (a)", "one noisy arm", "at once")),)),
    "full": Settings(),
}


def play(task: Task) -> Arrays:
    """Play each problem of a task once: regret, (runs,)."""
    policy = RIVALS[task.player][task.choice] if task.player in RIVALS else CANDIDATES[task.player]
    return {"regret": np.array([regret(policy, task, problem) for problem in task.draws])}


def regret(policy: Policy, task: Task, problem: int) -> float:
    """Play one run, rewards coming as the family says."""
    environment = draw_problem(task.environment, task.seeds, problem, task.horizon)
    contexts, noise, seed = run_streams(task.seeds, task.environment, problem)
    who = make_player(task.environment, environment, policy, seed)
    total = 0.0
    for _, X, rewards, losses in draw(environment, contexts, noise, task.horizon, DRAWN):
        arms, _ = who.play(X, rewards)
        total += float(losses[np.arange(len(X)), arms].sum())
    return total


def run(lab: Lab) -> Findings:
    """Run the contest at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Choose the rivals' constants, play all, and judge."""
    entries = {
        (family, each.horizon): {
            name: Entry(
                Task(seeds=lab.seeds, environment=family, horizon=each.horizon, player=name),
                runs=each.runs,
                trials=each.trials if name in RIVALS else 0,
                settings=len(RIVALS.get(name, "1")),
            )
            for name in (*CANDIDATES, *RIVALS)
        }
        for each in settings.rounds
        for family in each.families
    }
    label = f"{len(CANDIDATES)} candidates on {len(entries)} kinds of problem"
    scores = tune_and_play(lab, play, [one for each in entries.values() for one in each.values()], "Tournament", label)
    cells = [
        TournamentCell(
            family=family,
            horizon=horizon,
            candidates={name: scores[each[name]].tuned for name in CANDIDATES},
            rivals={name: scores[each[name]].tuned for name in RIVALS},
        )
        for (family, horizon), each in entries.items()
    ]
    return judge(cells, lab.rng("resampling"))


EXPERIMENT: Final = Experiment("tournament", "Tournament: which policy needs nothing set", run)


@dataclass(frozen=True, slots=True, kw_only=True)
class TournamentCell:
    """Regret on the problems of one family, (runs,) by name."""

    family: str
    horizon: int
    candidates: Columns
    rivals: Columns

    @property
    def name(self) -> str:
        """The family and how many steps it was played."""
        return f"{self.family}, {self.horizon:,}"

    @property
    def rival(self) -> str:
        """The better of the rivals, by its mean."""
        return min(self.rivals, key=lambda name: float(self.rivals[name].mean()))

    def ratio(self, candidate: str, rng: np.random.Generator) -> Estimate:
        """Return mean regret over that of the better rival, problems resampled."""
        return ratio(self.candidates[candidate], self.rivals[self.rival], rng)

    def tail(self, candidate: str) -> float:
        """Return the worst run over the median."""
        regret = self.candidates[candidate]
        return float(regret.max() / np.median(regret))

    def locked(self, candidate: str) -> int:
        """Count the runs that are far above the median of what was the default before."""
        return int((self.candidates[candidate] > LOCKED * np.median(self.candidates[BEFORE])).sum())


def _geometric(cells: Sequence[TournamentCell], candidate: str, rng: np.random.Generator) -> Estimate:
    """Return the geometric mean over families of mean regret over that of the better rival."""

    def of(*columns: Float64) -> Float64:
        means = np.stack([column.mean(axis=-1) for column in columns])
        out: Float64 = np.exp(np.log(means[: len(cells)] / means[len(cells) :]).mean(axis=0))
        return out

    mine, theirs = [cell.candidates[candidate] for cell in cells], [cell.rivals[cell.rival] for cell in cells]
    return bootstrap(of, *mine, *theirs, rng=rng)


def _medians(cells: Sequence[TournamentCell], candidate: str) -> float:
    ratios = [np.median(cell.candidates[candidate]) / np.median(cell.rivals[cell.rival]) for cell in cells]
    return float(np.exp(np.log(ratios).mean()))


def judge(cells: Sequence[TournamentCell], rng: np.random.Generator) -> Findings:
    """Judge the first candidate, and show all."""
    return Findings.of([_means(cells, rng), _families(cells, rng), _tails(cells)])


def _by_horizon(cells: Sequence[TournamentCell]) -> dict[str, list[TournamentCell]]:
    return {
        f"T = {horizon:,}": [cell for cell in cells if cell.horizon == horizon]
        for horizon in dict.fromkeys(cell.horizon for cell in cells)
    }


def _means(cells: Sequence[TournamentCell], rng: np.random.Generator) -> Part:
    names = list(cells[0].candidates)
    claim = our_claim(
        "tournament-mean",
        f"{names[0]}, with nothing set, does as well as the better of LinUCB and Thompson sampling, tuned.",
        f"Geometric mean over families of mean regret over the better rival's at most {MEAN:g}, without the families "
        "that were made to show a fault.",
    )
    statistics: list[Statistic] = []
    columns: dict[str, Mapping[str, Estimate | str]] = {}
    for T, here in _by_horizon(cells).items():
        kept = [cell for cell in here if cell.family not in MADE]
        found = {name: _geometric(kept, name, rng) for name in names}
        statistics.append(Statistic(f"{len(kept)} families, {T}", found[names[0]], Criterion("below", MEAN)))
        columns |= {
            f"{len(kept)} families, {T}": found,
            f"ratio of medians, {T}": {name: f"{_medians(kept, name):.2f}" for name in names},
            f"all {len(here)}, {T}": {name: _geometric(here, name, rng) for name in names},
        }
    caption = "Regret over that of the better tuned rival, geometric mean over families"
    ends = conclude(
        "the default, with nothing set, regrets as little as the better of tuned LinUCB and Thompson sampling",
        "the default, with nothing set, regrets more than the better of tuned LinUCB and Thompson sampling",
    )
    heading = "A default that needs nothing set"
    return part(claim, heading, statistics, table(caption, "policy", columns), conclusions=ends)


def _families(cells: Sequence[TournamentCell], rng: np.random.Generator) -> Part:
    names = list(cells[0].candidates)
    claim = our_claim(
        "tournament-families",
        f"{names[0]}, with nothing set, is far from the better of the tuned rivals in no family.",
        f"Mean regret at most {WORST:g} times that of the better rival in every family, tuned on other draws.",
    )
    ratios = {name: {cell.name: cell.ratio(name, rng) for cell in cells} for name in names}
    above = [f"{where} {one:.2f}" for where, one in ratios[names[0]].items() if one.value > WORST]
    notes = [f"{names[0]} above {WORST:g} times the better rival: {'; '.join(above) or 'nowhere'}."]
    shown = {
        name: {
            **{where: one if name in names[:2] else f"{one.value:.2f}" for where, one in found.items()},
            "worst": f"{max(one.value for one in found.values()):.2f}",
        }
        for name, found in ratios.items()
    }
    rivals = {"better rival": {**{cell.name: cell.rival for cell in cells}, "worst": ""}}
    caption = f"Mean regret over that of the better tuned rival, {_runs(cells)}"
    statistics = [
        Statistic(f"{cell.family}, T = {cell.horizon:,}", ratios[names[0]][cell.name], Criterion("below", WORST))
        for cell in cells
    ]
    ends = conclude("it is near the better rival in every family", "in some families it is far from the better rival")
    shown_table = table(caption, "family, T", {**rivals, **shown})
    return part(claim, "Near the better rival in every family", statistics, shown_table, notes=notes, conclusions=ends)


def _tails(cells: Sequence[TournamentCell]) -> Part:
    names, horizons = list(cells[0].candidates), _by_horizon(cells)
    claim = our_claim(
        "tournament-tails",
        f"{names[0]} hardly ever stays with a wrong arm, and in long runs no more than what it replaced.",
        f"Of the short runs, at most {TAIL:g} of 1,000 above {LOCKED:g} times the median that {BEFORE} has in their "
        f"family. In long ones the worst run over the median, geometric mean over families, at most {BEFORE}'s.",
    )
    (T, short), (late, long) = next(iter(horizons.items())), list(horizons.items())[-1]
    rate = 1000 * sum(cell.locked(names[0]) for cell in short) / _count(short)
    longer = _geometric_tail(long, names[0]) / _geometric_tail(long, BEFORE)
    statistics = [
        Statistic(f"such runs of 1,000, {T}", certain(rate), Criterion("below", TAIL)),
        Statistic(f"worst over median over {BEFORE}'s, {late}", certain(longer), Criterion("within", 0.0, 1.0)),
    ]
    columns: dict[str, Mapping[str, str]] = {}
    for where, here in horizons.items():
        columns |= {
            f"such runs of {_count(here):,}, {where}": {n: f"{sum(cell.locked(n) for cell in here)}" for n in names},
            f"worst run / median, {where}": {n: f"{_geometric_tail(here, n):.1f}" for n in names},
            f"the largest, {where}": {n: _largest(here, n) for n in names},
        }
    regret = {
        name: {
            cell.name: f"{r.mean():,.0f} / {np.median(r):,.0f} / {r.max():,.0f}"
            for cell in cells
            for r in [{**cell.candidates, **cell.rivals}[name]]
        }
        for name in (*names, *cells[0].rivals)
    }
    caption = f"Runs above {LOCKED:g} times the median of {BEFORE} in their family, and worst runs"
    return part(
        claim,
        "Hardly any run goes wrong",
        statistics,
        table(caption, "policy", columns),
        table(f"Regret: mean / median / worst run, {_runs(cells)}", "family, T", regret),
    )


def _count(cells: Sequence[TournamentCell]) -> int:
    return sum(len(cell.candidates[BEFORE]) for cell in cells)


def _geometric_tail(cells: Sequence[TournamentCell], name: str) -> float:
    return float(np.exp(np.mean([np.log(cell.tail(name)) for cell in cells])))


def _largest(cells: Sequence[TournamentCell], name: str) -> str:
    worst = max(cells, key=lambda cell: cell.tail(name))
    return f"{worst.tail(name):.0f} ({worst.family})"


def _runs(cells: Sequence[TournamentCell]) -> str:
    return ", ".join(f"{len(each[0].candidates[BEFORE])} problems at {T}" for T, each in _by_horizon(cells).items())
