"""Handwritten digits with rows that another logged first: 600 of them with uniform arms, then 1,197 decisions.

A learner is given the log in one `fit` and plays the rest online; what counts is its mean reward there. Pixels run from
0 to 16 as the table has them, or from 0 to 1, as many would scale them: a ridge of 1 is another prior in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from armlet.parallel import Seeds
from armlet.simulation.lab import Lab
from armlet.types import Estimate, Float64
from armlet_lab.contests import mabwiser
from armlet_lab.contests.classification import DIGITS, Side, Task, load, play
from armlet_lab.contests.contest import Part, mean, our_claim, part, play_all, table
from armlet_lab.runner.experiment import Criterion, Role, Statistic, certain

LOGGED: Final = 600
UNITS: Final = {"pixels from 0 to 16": 1.0, "pixels from 0 to 1": 1 / 16}
RIVAL: Final = mabwiser.USUAL[0].label
FLOOR: Final = "Uniform"


def find(policies: Sequence[str], shuffles: int, lab: Lab, rivals: Lab) -> Part:
    """Play our policies and MABWiser's LinUCB, and judge the first policy."""
    common: dict[str, Any] = {"seeds": lab.seeds, "environment": DIGITS, "horizon": len(load(DIGITS)), "logged": LOGGED}
    rewards: dict[tuple[str, str], Float64] = {}  # by player and unit: (shuffles,)

    def gather(where: Lab, side: Side, players: Sequence[str], version: str = "") -> None:
        tasks = {
            (player, word): [Task(player=player, side=side, unit=unit, runs=shuffles, version=version, **common)]
            for player in players
            for word, unit in UNITS.items()
        }
        found = play_all(where, f"digits-{side}", play, tasks, f"Bake-off: digits after {LOGGED} logged rows, {side}")
        for (player, word), columns in found.items():
            names = [player] if side == "armlet" else [each.label for each in mabwiser.GROUPS[player]]
            for i, name in enumerate(names):
                rewards[name, word] = 1 - columns["errors"][i :: len(names)]

    gather(rivals, "mabwiser", ["mabwiser"], mabwiser.VERSION)
    gather(lab, "armlet", policies)
    return judge(rewards, policies[0], lab.seeds)


def judge(rewards: dict[tuple[str, str], Float64], ours: str, seeds: Seeds) -> Part:
    """Hold a policy against MABWiser's LinUCB as it comes, in the same orders, with pixels from 0 to 1."""
    claim = our_claim(
        "bakeoff-digits",
        f"{ours}: after {LOGGED} logged rows of digits it goes on no worse than MABWiser's LinUCB as it comes.",
        "Mean reward after the log, within 0.005, with pixels from 0 to 1, where a ridge of 1 suits LinUCB.",
    )
    unit = list(UNITS)[-1]
    statistics = [
        Statistic(
            f"mean reward of {ours} minus that of {RIVAL}",
            _mean(rewards[ours, unit] - rewards[RIVAL, unit], seeds, "difference"),
            Criterion("above", -0.005),
        )
    ]
    if (FLOOR, unit) in rewards:
        floor = _mean(rewards[FLOOR, unit], seeds, FLOOR)
        statistics.append(
            Statistic("mean reward of uniform play", floor, Criterion("within", 0.08, 0.12), Role.CONTROL)
        )
    best = sorted({name for name, _ in rewards}, key=lambda name: -float(rewards[name, unit].mean()))
    columns = {word: {name: f"{_mean(rewards[name, word], seeds, name):.3f}" for name in best} for word in UNITS}
    shown = table(f"Mean reward after {LOGGED} logged rows, 95 % over orders", "", columns)
    return part(claim, f"Bake-off, digits after {LOGGED} logged rows", statistics, shown)


def _mean(column: Float64, seeds: Seeds, *which: str) -> Estimate:
    return mean(column, seeds.rng("orders drawn again", *which)) if len(column) > 1 else certain(float(column[0]))
