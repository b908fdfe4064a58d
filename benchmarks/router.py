"""Routing real prompts between three language models within a budget: Armlet and ParetoBandit in the same run.

    python benchmarks/router.py --quick      # 3 seeds, three budgets: a minute
    python benchmarks/router.py              # 20 seeds: seven minutes of one core; writes results/router/
    python benchmarks/router.py --tune       # ParetoBandit's settings on the validation half alone: four minutes

`armlet-lab publish router` runs this and puts its tables into docs/results/router.md. The prompts come with the wheel
of ParetoBandit (`armlet data fetch router`), which is installed into an environment of its own and run there by
router_worker.py. Contexts are the same for both: ParetoBandit's own 25 principal components of MiniLM's embeddings.

The protocol is that of ParetoBandit's paper: the validation half is routed first, in a random order, and not measured;
then the test half, learning on. Seven budgets a prompt, in equal ratios from what the cheapest model costs on the
validation half to what the dearest does. Each seed is another order of the prompts, the same for all.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from time import thread_time
from typing import Any, Literal, NamedTuple

import numpy as np

import armlet
from armlet import datasets
from armlet.types import Float64, Int64
from armlet_lab.contests.embeddings import Halves, router_embeddings
from armlet_lab.runner.venvs import Recipe
from armlet_lab.runner.venvs import environment as make
from budgets import seeds_of
from router_report import Report, write
from timing import call
from venvs import PINS, ROOT

RECIPE = Recipe(name="paretobandit", requires=("paretobandit",), constraints=PINS.read_text())
OUT = ROOT / "results" / "router"
MODELS = ("Llama 3.1 8B", "Mistral Large", "Gemini 2.5 Pro")
SECOND = (3.0e-4, 6.62e-4, 1.87e-3)  # the budgets of its authors where something changes
FORCED = 20  # prompts that its authors send to a newcomer before it is asked
HOUR = 3600.0

PUBLISHED = {"priors": "warmup"}  # its defaults: what its authors chose for this very portfolio
SCRATCH = {"priors": "none", "alpha": 0.05, "forgetting_factor": 0.997}  # what they chose for a cold start
TUNED: dict[str, Any] = {"priors": "warmup", "alpha": 0.05, "forgetting_factor": 1.0, "lr": 0.005}  # by --tune
GRID = [
    {"priors": priors, "alpha": alpha, "forgetting_factor": gamma, "lr": lr, "mode": mode}
    for priors in ("warmup", "none")
    for alpha in (0.01, 0.05, 0.25)
    for gamma in (0.997, 1.0)
    for lr in (0.005, 0.01, 0.05)
    for mode in ("adaptive", "soft")
]


class Data(NamedTuple):
    """All prompts, those of the validation half first, and the answers of every model."""

    X: Float64  # (n, 26): the last column is 1
    quality: Float64  # (n, 3)
    cost: Float64  # (n, 3), in dollars
    n_validation: int

    @property
    def first(self) -> slice:
        """The validation half."""
        return slice(0, self.n_validation)

    def budgets(self) -> tuple[float, ...]:
        """Return the seven of the paper: dollars a prompt."""
        means = self.cost[self.first].mean(axis=0)
        return tuple(np.geomspace(means.min(), means.max(), 7).tolist())


@dataclass(frozen=True, slots=True)
class Scene:
    """Which prompts come, from where on they are measured, and what happens half-way through the test half."""

    key: str  # of its part of the page
    name: str
    halves: Literal["both", "test", "validation"] = "both"
    scale: tuple[float, ...] | None = None  # what prices of models are multiplied by
    newcomer: int | None = None  # a model that is not there before

    def order(self, data: Data, seed: int) -> Int64:
        """Return the prompts in the order of a seed."""
        rng = np.random.default_rng([29, 1, seed])
        n, m = data.n_validation, len(data.X) - data.n_validation
        first, second = rng.permutation(n), n + rng.permutation(m)
        parts = {"both": (first, second), "test": (second,), "validation": (first,)}[self.halves]
        return np.concatenate(parts).astype(np.int64)

    def lengths(self, data: Data) -> tuple[int, int]:
        """Return how many prompts have a first budget, and how many a second one, which is measured."""
        n, m = data.n_validation, len(data.X) - data.n_validation
        return {"both": (n, m), "test": (0, m), "validation": (n // 3, n - n // 3)}[self.halves]

    @property
    def changes(self) -> bool:
        """Whether anything happens half-way."""
        return self.scale is not None or self.newcomer is not None

    def change_at(self, data: Data) -> int:
        """Return the place in the order at which it happens; what comes before is not measured then."""
        before, measured = self.lengths(data)
        return before + measured // 2 if self.changes else before

    def costs(self, data: Data, order: Int64) -> Float64:
        """Return what every model charges for the prompts in their order, (n, 3)."""
        late = np.arange(len(order))[:, None] >= self.change_at(data)
        return data.cost[order] * np.where(late, self.scale or 1.0, 1.0)


STILL = Scene("still", "after the validation half")
COLD = Scene("cold", "from the first prompt", halves="test")
RISES = Scene("rises", "Mistral costs ten times as much", scale=(1.0, 10.0, 1.0))
FALLS = Scene("falls", "Gemini costs a tenth", scale=(1.0, 1.0, 0.1))
COMES = Scene("comes", "Mistral comes", newcomer=1)
CHOOSING = Scene("choosing", "for choosing", halves="validation")


@dataclass(frozen=True, slots=True, eq=False)
class Player:
    """Who routes: ParetoBandit with settings, or Armlet, whose settings are None and where nothing is set."""

    name: str
    settings: dict[str, Any] | None = None
    known: bool = False  # Armlet: prices are given, the mean dollars of a call on the validation half
    told: bool = True  # of a price that changes: ParetoBandit's registry, Armlet's known prices
    forced: int = 0  # prompts sent to a newcomer unasked


LEARNED = Player("Armlet")
KNOWN = Player("Armlet, known prices", known=True)
PARETO = Player("ParetoBandit", PUBLISHED)
TUNED_PARETO = Player("ParetoBandit, tuned", TUNED)
ACTS: dict[Scene, tuple[Player, ...]] = {
    STILL: (LEARNED, KNOWN, PARETO, Player("ParetoBandit, from scratch", SCRATCH), TUNED_PARETO),
    COLD: (LEARNED, PARETO, Player("ParetoBandit, from scratch", SCRATCH), TUNED_PARETO),
    RISES: (LEARNED, KNOWN, PARETO, Player("ParetoBandit, not told", PUBLISHED, told=False), TUNED_PARETO),
    FALLS: (LEARNED, KNOWN, PARETO, Player("ParetoBandit, not told", PUBLISHED, told=False), TUNED_PARETO),
    COMES: (
        LEARNED,
        KNOWN,
        replace(PARETO, name=f"ParetoBandit, {FORCED} forced", forced=FORCED),
        replace(PARETO, name="ParetoBandit, none forced"),
        replace(TUNED_PARETO, name=f"ParetoBandit, tuned, {FORCED} forced", forced=FORCED),
    ),
}


class Run(NamedTuple):
    """One player in one scene, with one budget on one seed."""

    scene: Scene
    player: Player
    budget: float  # dollars a prompt
    seed: int


class Played(NamedTuple):
    """What was measured of a run."""

    quality: float  # a prompt
    cost: float  # dollars a prompt
    shares: Float64  # (3,): of the models
    us: float  # CPU time of a decision and its learning


def play(run: Run, data: Data) -> tuple[Int64, float]:
    """Let Armlet route; return the models, and microseconds of CPU a prompt."""
    scene, known = run.scene, None
    order = scene.order(data, run.seed)
    X, quality, cost = data.X[order, :-1], data.quality[order], scene.costs(data, order)
    before, measured = scene.lengths(data)
    prices = data.cost[data.first].mean(axis=0)

    def priced(scale: Sequence[float]) -> dict[str, dict[str | int, float]]:
        return {"cost": dict(enumerate((prices * scale).tolist()))}

    if run.player.known:
        known = priced((1.0, 1.0, 1.0))
    bandit = armlet.Bandit(
        [arm for arm in range(len(MODELS)) if arm != scene.newcomer],
        X.shape[1],
        outcomes={"quality": 1.0, "cost": 0.0},
        known=known,
        budget=armlet.Budget("cost", total=run.budget * (before or measured), horizon=before or measured),
        seed=run.seed,
    )
    arms, at = np.empty(len(order), dtype=np.int64), scene.change_at(data)
    started = thread_time()
    for t, x in enumerate(X):
        if t == before and before and bandit.budget is not None:  # as much again for each prompt to come
            total = bandit.budget.spent + run.budget * measured
            bandit.replace(budget=armlet.Budget("cost", total=total, horizon=before + measured))
        if t == at and scene.scale is not None and known is not None:
            bandit.replace(known=priced(scene.scale))
        if t == at and scene.newcomer is not None:
            bandit.add_arm(scene.newcomer)
        decision = bandit.decide(x)
        arms[t] = arm = int(decision.arm)
        paid = {"quality": float(quality[t, arm])}
        bandit.learn(decision, paid if known is not None else {**paid, "cost": float(cost[t, arm])})
    return arms, 1e6 * (thread_time() - started) / len(order)


def ask(runs: Sequence[Run], data: Data, python: Path) -> Iterator[tuple[Int64, float]]:
    """Let ParetoBandit route, in its own environment; runs are of one scene."""
    scene = runs[0].scene
    seeds = sorted({run.seed for run in runs})
    tasks = [{**_task(run, data), "order": seeds.index(run.seed)} for run in runs]
    with tempfile.TemporaryDirectory() as folder:
        rows, asked, out = (str(Path(folder) / name) for name in ("rows.npz", "tasks.json", "out.npz"))
        orders = np.array([scene.order(data, seed) for seed in seeds])
        np.savez(rows, X=data.X, quality=data.quality, cost=data.cost, orders=orders)
        Path(asked).write_text(json.dumps(tasks))
        call(python, "router_worker.py", "play", rows, asked, out, timeout=HOUR)
        with np.load(out) as held:
            yield from zip(held["arms"].astype(np.int64), held["us"].tolist(), strict=True)


def _task(run: Run, data: Data) -> dict[str, Any]:
    """Write down what the worker is asked for."""
    scene, player, at = run.scene, run.player, run.scene.change_at(data)
    change = {"at": at, "scale": scene.scale, "told": player.told}
    newcomer = {"at": at, "arm": scene.newcomer, "forced": player.forced}
    return {
        "settings": player.settings,
        "budget": run.budget,
        "seed": run.seed,
        "change": None if scene.scale is None else change,
        "newcomer": None if scene.newcomer is None else newcomer,
    }


def score(run: Run, arms: Int64, us: float, data: Data) -> Played:
    """Measure what was played, from where the scene is measured."""
    order, since = run.scene.order(data, run.seed), run.scene.change_at(data)
    at = np.arange(len(order)), arms
    quality, cost = data.quality[order][at][since:], run.scene.costs(data, order)[at][since:]
    shares = np.bincount(arms[since:], minlength=len(MODELS)) / len(quality)
    return Played(float(quality.mean()), float(cost.mean()), shares, us)


def routed(
    scene: Scene, player: Player, budgets: Iterable[float], seeds: range, data: Data, python: Path
) -> list[Played]:
    """Play one player in one scene, budget by budget, seed by seed."""
    runs = [Run(scene, player, budget, seed) for budget in budgets for seed in seeds]
    found = (play(run, data) for run in runs) if player.settings is None else ask(runs, data, python)
    return [score(run, arms, us, data) for run, (arms, us) in zip(runs, found, strict=True)]


def load(python: Path) -> Data:
    """Return the prompts with ParetoBandit's features, which are computed in its environment."""
    datasets.fetch(datasets.ROUTER)
    halves = [datasets.router("validation"), datasets.router("test")]
    embedded: Halves = router_embeddings()
    with tempfile.TemporaryDirectory() as folder:
        given, made = (str(Path(folder) / name) for name in ("embeddings.npy", "features.npy"))
        np.save(given, np.concatenate(embedded))
        call(python, "router_worker.py", "features", given, made)
        X = np.load(made)
    quality, cost = (np.concatenate([getattr(half, name) for half in halves]) for name in ("quality", "cost"))
    return Data(X, quality, cost, len(halves[0]))


def tune(data: Data, seeds: range, python: Path) -> None:
    """Print ParetoBandit's settings by quality at equal money on the validation half, over its budgets."""
    budgets = data.budgets()
    runs = [Run(CHOOSING, Player("", each), budget, seed) for each in GRID for budget in budgets for seed in seeds]
    played = [score(run, arms, us, data) for run, (arms, us) in zip(runs, ask(runs, data, python), strict=True)]
    report, size, found = Report(CHOOSING, data, budgets, len(seeds)), len(budgets) * len(seeds), []
    for place, settings in enumerate(GRID):
        mine = played[place * size : (place + 1) * size]
        found.append((float(report.at_equal_money(mine).mean()), settings, report.spends(mine).mean(axis=1)))
    for worth, settings, spends in sorted(found, key=lambda each: -each[0]):
        settings_text = " ".join(f"{name}={value}" for name, value in settings.items())
        print(f"{worth:.4f}  {settings_text:60}  spend / budget {' '.join(f'{each:.2f}' for each in spends)}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, metavar="FIRST-LAST", help="100-119; to choose by, 0-2")
    parser.add_argument("--quick", action="store_true", help="three seeds and the three budgets of changes alone")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 8), metavar="N")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER")
    given = parser.parse_args(arguments)
    seeds: range = given.seeds or seeds_of("0-2" if given.tune else "100-102" if given.quick else "100-119")
    if len(seeds) < 2:
        parser.error("--seeds: give at least two, such as 100-119")
    python = make(RECIPE, ROOT / ".venvs" / RECIPE.name, lambda words: print(f"    {words}", flush=True)).python
    data = load(python)
    if given.tune:
        tune(data, seeds, python)
        return
    few = SECOND if given.quick else data.budgets()
    reports = {scene: Report(scene, data, SECOND if scene.changes else few, len(seeds)) for scene in ACTS}
    with ThreadPoolExecutor(given.processes) as pool:  # each waits for a worker
        found = {
            (scene, player): pool.submit(routed, scene, player, reports[scene].budgets, seeds, data, python)
            for scene, players in ACTS.items()
            for player in players
        }
        for (scene, player), each in found.items():
            reports[scene].add(player, each.result())
            print(f"    {scene.name}: {player.name}", flush=True)
    write(reports, seeds, MODELS, given.out)


if __name__ == "__main__":
    main()
