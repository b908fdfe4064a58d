"""One machine for every contest: players meet the same draws of environments, and what they did becomes columns.

A contest is data around it: its scales, who plays where, how one task is played, what is claimed by which criterion.
Draws are numbered; all players of a contest meet the same ones, with the same contexts and noise. Constants are chosen
on draws from ELSEWHERE on, which judge nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from armlet.inference.intervals import bootstrap, mean_of_runs
from armlet.parallel import Seeds
from armlet.report.document import Table
from armlet.report.plots import Picture
from armlet.simulation.lab import Arrays, Lab, as_floats
from armlet.types import Estimate, Float64
from armlet_lab.runner.experiment import Claim, Outcome, Section, Statistic, Verdict
from armlet_lab.runner.hindsight import ratio_of_means

ELSEWHERE: Final = 1000  # draws from this index on are for choosing constants
THEORY: Final = -1  # in place of an index into a player's settings
Columns: TypeAlias = Mapping[str, Float64]
"""By name, a number or a row of numbers for each run."""
Part: TypeAlias = tuple[Verdict, Section]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Some draws of an environment, for one player, or for all who play there."""

    seeds: Seeds
    environment: str
    horizon: int
    first: int = 0  # draw
    runs: int = 1
    player: str = ""
    choice: int = 0  # of the player's settings, or THEORY

    @property
    def draws(self) -> range:
        """The draws by number."""
        return range(self.first, self.first + self.runs)


T = TypeVar("T", bound=Task)
Place = TypeVar("Place", bound=Hashable)


def play_all(
    lab: Lab, stage: str, play: Callable[[T], Arrays], tasks: Mapping[Place, Sequence[T]], label: str
) -> dict[Place, Columns]:
    """Play the tasks of every place in the lab and put their columns together, run after run."""
    found = iter(lab.map(stage, play, [task for mine in tasks.values() for task in mine], label))
    return {place: _join([next(found) for _ in mine]) for place, mine in tasks.items()}


def _join(parts: Sequence[Arrays]) -> Columns:
    return {name: np.concatenate([as_floats(part[name]) for part in parts]) for name in parts[0]}


class Entry(NamedTuple):
    """A player in an environment, the draws it is judged on, and those that each of its settings is tried on."""

    task: Task
    runs: int
    trials: int = 0  # none: it plays its first setting
    settings: int = 1
    theory: bool = False  # whether it also plays with the constants of its theory


class Score(NamedTuple):
    """Regret of an entry."""

    tuned: Float64  # (runs,), with the setting that did best elsewhere
    theory: Float64 | None  # (runs,)
    tried: Float64  # (settings,): means elsewhere


def tune_and_play(
    lab: Lab, play: Callable[[Task], Arrays], entries: Sequence[Entry], name: str, label: str
) -> dict[Entry, Score]:
    """Choose a setting for every entry by its mean regret elsewhere, and play the draws that are judged."""
    trials = {
        each: [replace(each.task, choice=i, first=ELSEWHERE, runs=each.trials) for i in range(each.settings)]
        for each in entries
        if each.trials
    }
    found = play_all(lab, "trials", play, trials, f"{name}: constants tried on other problems")
    tried = dict.fromkeys(entries, np.zeros(1))
    tried |= {each: columns["regret"].reshape(each.settings, -1).mean(axis=1) for each, columns in found.items()}
    chosen = {each: (int(tried[each].argmin()), *((THEORY,) if each.theory else ())) for each in entries}
    tasks = {each: [replace(each.task, choice=i, runs=each.runs) for i in chosen[each]] for each in entries}
    scores = {}
    for each, columns in play_all(lab, "play", play, tasks, f"{name}: {label}").items():
        tuned, *theory = columns["regret"].reshape(-1, each.runs)
        scores[each] = Score(tuned, theory[0] if theory else None, tried[each])
    return scores


def mean(column: Float64, rng: np.random.Generator) -> Estimate:
    """Return the mean over runs."""
    return bootstrap(mean_of_runs, column, rng=rng)


def our_claim(key: str, says: str, reading: str) -> Claim:
    """Return a claim of Armlet's own."""
    return Claim(key=key, where="Beyond the paper", says=says, reading=reading, source="Armlet")


def ratio(above: Float64, below: Float64, rng: np.random.Generator) -> Estimate:
    """Return mean over mean, runs drawn again in pairs."""
    return bootstrap(ratio_of_means, above, below, rng=rng)


def part(
    claim: Claim,
    heading: str,
    statistics: Iterable[Statistic],
    *tables: Table,
    notes: Iterable[str] = (),
    pictures: Iterable[Picture] = (),
    why: Mapping[Outcome, str] | None = None,
    conclusions: Mapping[Outcome, str] | None = None,
) -> Part:
    """Return the verdict on one claim with its section."""
    verdict = Verdict(claim=claim, statistics=tuple(statistics), explanations=why or {}, conclusions=conclusions or {})
    return verdict, Section(
        claim=claim.key, heading=heading, pictures=tuple(pictures), notes=tuple(notes), tables=tables
    )


def table(caption: str, corner: str, columns: Mapping[str, Mapping[str, Estimate | float | str]]) -> Table:
    """Return columns by name as a table: estimates with two digits, other numbers without.

    Examples
    --------
    >>> columns = {"mean": {"ads": 1234.5}, "ratio": {"ads": Estimate(1.25, 1.0, 1.5)}}
    >>> print(table("Regret", "family", columns).markdown())
    | family | mean | ratio |
    |---|---|---|
    | ads | 1,234 | 1.25 [1.00 to 1.50] |
    """

    def cell(value: Estimate | float | str) -> str:
        return value if isinstance(value, str) else f"{value:.2f}" if isinstance(value, Estimate) else f"{value:,.0f}"

    names = list(next(iter(columns.values())))
    rows = tuple((name, *(cell(column[name]) for column in columns.values())) for name in names)
    return Table(caption=caption, head=(corner, *columns), rows=rows)
