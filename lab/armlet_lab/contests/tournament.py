"""A tournament for the default policy: regret of candidates as they come over that of tuned rivals, family by family.

The families are the leaderboard's environments, and what goes wrong in practice: rewards far from zero, features of
another size, heavy tails, one arm far noisier than the others, many features of which one is on, near-ties next to a
bad arm, arms that come and go, delayed rewards, rewards in blocks. Each run is another draw, the same for all policies.
The constants of rivals are the best of a small grid on other draws. The default is judged by the worst of its ratios of
means to the better rival; its constants were chosen on other seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np

from armlet.bandit import Bandit
from armlet.environments import Customers, Delayed, Environment, LinearArms, News
from armlet.environments.environment import as_rows
from armlet.inference.intervals import Estimate
from armlet.kernel import Decision
from armlet.parallel import Seeds
from armlet.policies import Greedy, LinUCB, OccasionalOptimism, OptimisticEpsilonGreedy, ThompsonSampling
from armlet.simulation.lab import Arrays, Lab, Scale
from armlet.simulation.play import draw, player, run_streams
from armlet.types import Bool, Float64, Int64, Policy
from armlet_lab.contests.contest import Columns, Entry, Task, part, ratio, table, tune_and_play
from armlet_lab.runner.arena import ARENAS
from armlet_lab.runner.experiment import Claim, Criterion, Experiment, Findings, Statistic

CANDIDATES: Final[dict[str, Policy]] = {
    "occasional optimism": OccasionalOptimism(),
    "noise max": OccasionalOptimism(noise="max"),
    "noise shrunk": OccasionalOptimism(noise="shrunk"),
    "always optimistic": OccasionalOptimism(share=1.0),
    "p = 1": OccasionalOptimism(p=1.0),
    "floor 0.02": OccasionalOptimism(floor=0.02),
    "optimistic epsilon-greedy": OptimisticEpsilonGreedy(),
    "LinUCB, 2 sd": LinUCB(alpha=2.0),
    "greedy": Greedy(),
}
"""The first is the default; those up to its floor change one word of it."""
RIVALS: Final[dict[str, tuple[Policy, ...]]] = {
    "LinUCB": tuple(LinUCB(alpha=alpha, units="free") for alpha in (0.3, 0.6, 1.0, 2.0)),
    "Thompson sampling": tuple(ThompsonSampling(v=v, units="free") for v in (0.3, 0.6, 1.0)),
}
"""What is chosen from, on other draws."""
WORST: Final = 1.6  # of the ratios of means
LOCKED: Final = 10.0  # times its family's median: a run that never left a wrong arm
BLOCKS: Final = 2.0  # feedback in blocks of 1,000 over feedback at once
DRAWN: Final = 4096  # steps drawn at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(LinearArms):
    """Linear arms with noise of a size for each arm; what a user sees of it may have another zero and another size."""

    law: Literal["sphere", "one-hot", "constant"] = "sphere"
    tail: Literal["normal", "t3", "clicks"] = "normal"
    deviations: tuple[float, ...] | float = 0.5  # of noise, one for each arm or all alike
    level: float = 0.0  # added to rewards
    size: float = 1.0  # that contexts are multiplied by

    @classmethod
    def draw(cls, rng: np.random.Generator, n_arms: int = 10, dim: int = 10, **settings: Any) -> Self:
        """Draw theta."""
        return cls(theta=as_rows(rng.normal(size=(n_arms, dim))), **settings)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:  # noqa: ARG002
        """Draw contexts, (n, d)."""
        if self.law == "one-hot":
            return np.eye(self.dim)[rng.integers(self.dim, size=n)] * self.size
        X = rng.normal(size=(n, self.dim)) if self.law == "sphere" else np.ones((n, self.dim))
        out: Float64 = self.size * X / np.linalg.norm(X, axis=1, keepdims=True)
        return out

    def means(self, X: Float64, *, start: int = 0) -> Float64:  # noqa: ARG002
        """Return expected rewards, (n, K)."""
        out: Float64 = X / self.size @ np.array(self.theta).T + self.level
        return out

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:  # noqa: ARG002
        """Draw what every arm would pay, (n, K)."""
        means = self.means(X)
        if self.tail == "clicks":
            return (rng.random(means.shape) < means).astype(np.float64)
        t3 = self.tail == "t3"
        noise = rng.standard_t(3, size=means.shape) / np.sqrt(3.0) if t3 else rng.normal(size=means.shape)
        return means + np.array(self.deviations) * noise

    def describe(self) -> list[str]:
        """Describe it in one line."""
        return [f"linear arms for the tournament: K = {self.n_arms}, d = {self.dim}, {self.law}, {self.tail} noise"]


def _near(rng: np.random.Generator) -> Plain:
    first = rng.normal(size=5)
    return Plain(theta=as_rows(np.stack([first, first + 0.02 * rng.normal(size=5), first - 2.0])))


def _chapelle_li(_: np.random.Generator) -> Plain:
    return Plain(theta=((0.5,), *((0.4,),) * 9), law="constant", tail="clicks")


FAMILIES: Final[dict[str, Callable[[np.random.Generator], Environment]]] = {
    **ARENAS,
    "clicks 3 %": Customers.draw,
    "level 100": lambda rng: Plain.draw(rng, level=100.0),
    "scale 0.02": lambda rng: Plain.draw(rng, size=0.02),
    "t3 noise": lambda rng: Plain.draw(rng, tail="t3"),
    "one-hot 50": lambda rng: Plain.draw(rng, 5, 50, law="one-hot"),
    "near-ties": _near,
    "one noisy arm": lambda rng: Plain.draw(rng, 5, 5, deviations=(5.0, 0.5, 0.5, 0.5, 0.5)),
    "news": News.draw,  # told the horizon
    "delay 1,000": lambda rng: Delayed(environment=Plain.draw(rng), delay=1000),
    "at once": _chapelle_li,
    "blocks of 1,000": _chapelle_li,
}
"""The last two are the best arm of ten by clicks, 0.5 against 0.4, without features (Chapelle and Li 2011, Table 1)."""


def draw_problem(family: str, seeds: Seeds, index: int, horizon: int) -> Environment:
    """Draw one problem of a family, for so many steps; every index is another.

    Examples
    --------
    >>> draw_problem("one-hot 50", Seeds(1), 0, 1000).dim
    50
    """
    make = partial(News.draw, horizon=horizon, life=horizon // 20) if family == "news" else FAMILIES[family]
    return make(seeds.rng("problems", family, index))


class InBlocks:
    """Plays as a user's loop would whose rewards come every 1,000 steps."""

    def __init__(self, environment: Environment, policy: Policy, seed: int) -> None:
        self.bandit = Bandit(range(environment.n_arms), environment.dim, policy=policy, seed=seed)
        self._waiting: list[tuple[Decision, float]] = []

    def play(self, X: Float64, rewards: Float64) -> tuple[Int64, Bool]:
        """Take the next steps; return the arms played, and which steps explored."""
        arms, explored = np.empty(len(X), dtype=np.int64), np.empty(len(X), dtype=np.bool_)
        for i, (x, row) in enumerate(zip(X, rewards, strict=True)):
            decision = self.bandit.decide(x)
            arms[i], explored[i] = decision.arm, decision.explored
            self._waiting.append((decision, float(row[arms[i]])))
            if self.bandit.t % 1000 == 0:
                for each in self._waiting:
                    self.bandit.learn(*each)
                self._waiting.clear()
        return arms, explored


class Round(NamedTuple):
    """So many steps: rivals' settings by `trials` problems of a family, then `runs` problems for all."""

    horizon: int
    runs: int
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each policy on each family."""

    families: tuple[str, ...] = tuple(FAMILIES)
    rounds: tuple[Round, ...] = (Round(10_000, 40, 6), Round(100_000, 10, 3))


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(families=("Figure (a)", "one noisy arm", "at once"), rounds=(Round(1000, 3, 1),)),
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
    who = (InBlocks if task.environment == "blocks of 1,000" else player)(environment, policy, seed)
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
    places = [(family, each) for family in settings.families for each in settings.rounds]
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
        for family, each in places
    }
    label = f"{len(CANDIDATES)} candidates on {len(places)} kinds of problem"
    scores = tune_and_play(lab, play, [one for each in entries.values() for one in each.values()], "Tournament", label)
    cells = [
        Cell(
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
class Cell:
    """Regret on the problems of one family, (runs,) by name."""

    family: str
    horizon: int
    candidates: Columns
    rivals: Columns

    @property
    def rival(self) -> str:
        """The better of the rivals, by its mean."""
        return min(self.rivals, key=lambda name: float(self.rivals[name].mean()))

    def ratio(self, candidate: str, rng: np.random.Generator) -> Estimate:
        """Return mean regret over that of the better rival, problems resampled."""
        return ratio(self.candidates[candidate], self.rivals[self.rival], rng)

    def locked(self, candidate: str) -> bool:
        """Return whether the worst run is far above the family's median."""
        regret = self.candidates[candidate]
        return bool(regret.max() / np.median(regret) > LOCKED)


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
    statistics = [
        Statistic(f"{cell.family}, T = {cell.horizon:,}", one, Criterion("below", WORST))
        for cell, one in zip(cells, ratios[best], strict=True)
    ]
    places = {f"{cell.family}, {cell.horizon:,}": cell for cell in cells}
    over: dict[str, Mapping[str, Estimate | str]] = {
        "better rival": {place: cell.rival for place, cell in places.items()} | {"worst": ""},
        **{
            name: {**dict(zip(places, each, strict=True)), "worst": f"{max(one.value for one in each):.2f}"}
            for name, each in ratios.items()
        },
    }
    spread = {
        name: {
            place: f"{r.mean():,.0f} / {np.median(r):,.0f} / {r.max():,.0f}"
            for place, cell in places.items()
            for r in [{**cell.candidates, **cell.rivals}[name]]
        }
        for name in (*cells[0].candidates, *cells[0].rivals)
    }
    caption = f"Mean regret over that of the better tuned rival, {len(next(iter(cells[0].rivals.values())))} problems"
    tables = (table(caption, "family, T", over), table("Regret: mean / median / worst run", "family, T", spread))
    notes = [_note(cells, name) for name in ratios]
    return Findings.of([part(claim, "A default that needs nothing set", statistics, *tables, notes=notes)])


def _note(cells: Sequence[Cell], name: str) -> str:
    locked = [f"{cell.family}, T = {cell.horizon:,}" for cell in cells if cell.locked(name)]
    found = f"in {', '.join(locked)}" if locked else "nowhere"
    means = {(cell.family, cell.horizon): float(cell.candidates[name].mean()) for cell in cells}
    pairs = [
        f"{mean / means['at once', horizon]:.2f} at T = {horizon:,}"
        for (family, horizon), mean in means.items()
        if family == "blocks of 1,000" and ("at once", horizon) in means
    ]
    blocks = f" Feedback in blocks over feedback at once (at most {BLOCKS:g}): {', '.join(pairs)}." if pairs else ""
    return f"{name}: a run above {LOCKED:g} times its family's median {found}.{blocks}"
