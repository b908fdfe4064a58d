"""The constant of p="auto", by trial on the published families: `python -m armlet_lab.paper.calibration`.

One constant is open: what predicted losses are multiplied by, `CAUTION`. Each value is tried on problems that no
published figure uses, against the best fixed p of each problem. The value whose worst family does best is the one in
`armlet.policies.auto_p`; a test holds it against the table that this prints, in
docs/how-to/how-much-to-explore.md.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from armlet.environments.families import FAMILIES, draw_problem
from armlet.kernel import AutoEvidence, AutoTunedStatistics
from armlet.parallel import Seeds, make_pool, reporter
from armlet.policies import ContextualEpsilonGreedy
from armlet.policies.auto_epsilon_greedy import EVEN, MOST, START
from armlet.report.document import Table
from armlet.simulation.lab import Arrays, Lab, as_floats
from armlet.types import Float64
from armlet_lab.runner import hindsight, together

SEEDS: Final = Seeds(4242, "calibration")  # of calibration alone
CAUTIONS: Final = (0.5, 0.7, 1.0, 1.4, 2.0)
HORIZONS: Final = (10_000, 100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """All runs of one problem."""

    family: str
    problem: int
    runs: int
    horizon: int


def play(task: Task) -> Arrays:
    """Return regret with each caution, (5,), and with every p, (runs, grid), in units of what random play loses."""
    environment, T = draw_problem(task.family, SEEDS, task.problem), task.horizon
    fixed = [ContextualEpsilonGreedy(p=p) for p in hindsight.grid_of_p(environment.n_arms, T, 2.0)]
    entries = [together.Entry.of(policy, environment) for policy in fixed]
    for caution in CAUTIONS:
        rule = AutoEvidence(horizon=float(T), caution=caution, start=START, most=MOST, even=EVEN)
        entries.append(together.Entry(rule, AutoTunedStatistics(environment.n_arms, environment.dim, units="free")))
    which = (task.family, task.problem, T)
    runs = [together.play(environment, entries, T, SEEDS, *which, run) for run in range(task.runs)]
    regret = np.array([run.regret / run.random for run in runs])
    return {"auto": regret[:, len(fixed) :].mean(axis=0), "grid": regret[:, : len(fixed)].copy()}


def calibrate(problems: int, runs: int, lab: Lab) -> Float64:
    """Return the ratio of mean regrets, "auto" over the best p in hindsight: (5, families x horizons)."""
    both = list(product(HORIZONS, FAMILIES))
    tasks = [Task(family=f, problem=i, runs=runs, horizon=T) for T, f in both for i in range(problems)]
    found = lab.map("calibration", play, tasks, f"{len(CAUTIONS)} constants on {len(tasks)} problems")
    auto = np.array([as_floats(one["auto"]) for one in found]).reshape(len(both), problems, len(CAUTIONS))
    parts = [found[i : i + problems] for i in range(0, len(found), problems)]
    best = [hindsight.best(np.array([as_floats(one["grid"]) for one in part])).mean() for part in parts]
    ratios: Float64 = (auto.mean(axis=1) / np.array(best)[:, None]).T
    return ratios


def table(ratios: Float64, problems: int, runs: int) -> Table:
    """Return the worst and the mean ratio of every caution, the best first."""
    order = np.argsort(ratios.max(axis=1), kind="stable")
    columns = [f"{family}, 1e{np.log10(T):.0f}" for T, family in product(HORIZONS, FAMILIES)]
    rows = tuple(
        (
            f"{CAUTIONS[i]:g}",
            f"{ratios[i].max():.2f}",
            columns[int(ratios[i].argmax())],
            f"{np.exp(np.log(ratios[i]).mean()):.2f}",
        )
        for i in order
    )
    caption = (
        f"Regret of p = auto over that of the best p in hindsight: {problems} problems of {len(FAMILIES)} families, "
        f"{runs} runs each, two horizons"
    )
    return Table(caption=caption, head=("caution", "worst", "there", "geometric mean"), rows=rows)


def main(arguments: list[str] | None = None) -> int:
    """Calibrate and print the table as markdown."""
    parser = argparse.ArgumentParser(prog="python -m armlet_lab.paper.calibration", description=__doc__)
    parser.add_argument("--problems", type=int, default=12, help="of each family (default 12)")
    parser.add_argument("--runs", type=int, default=8, help="of each problem, at least 2 (default 8)")
    given = parser.parse_args(arguments)
    with make_pool("processes") as where:
        lab = Lab(
            seed=SEEDS.root, name=SEEDS.place, where=where, progress=lambda what: reporter(what, stream=sys.stderr)
        )
        ratios = calibrate(given.problems, given.runs, lab)
    shown = table(ratios, given.problems, given.runs)
    print(shown.markdown())
    print(f"\n{shown.caption}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
