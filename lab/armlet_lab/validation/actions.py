"""How often 95 % intervals cover where actions have features: by the law that logged, and by how near a target is.

Every step has 20 fresh actions. Means are bilinear in (1, x) and (1, z) up to their ends; rewards lie in [0, 1]. The
policy that logs learns meanwhile. "near": the best action by the true means. "far": the best by the features of the
action alone, which the log hardly plays. In reach: how much of what a target plays the log could have played; beyond
it an interval allows any reward. "error": of the doubly robust value, root mean square.
Run as a module it prints a table: python -m armlet_lab.validation.actions --runs 500
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

import armlet
from armlet.evaluation.result import Value
from armlet.parallel import Seeds
from armlet.policies.shared import PairPolicy
from armlet.types import Arm, Float64

STEPS: Final = 1000
ACTIONS: Final = 20
DIM: Final = 2
ACTION_DIM: Final = 3
LAWS: Final[dict[str, PairPolicy]] = {
    "SharedOptimism()": armlet.SharedOptimism(),
    "SharedThompson(draws=20)": armlet.SharedThompson(draws=20),
}
TARGETS: Final = ("near", "far")


class Catalogue:
    """Fresh actions at every step; the same means for all seeds."""

    def __init__(self, seed: int) -> None:
        self._rng = Seeds(seed, "actions").rng("actions")
        self.theta = Seeds(3, "actions").rng("means").normal(size=(1 + DIM, 1 + ACTION_DIM)) / 15

    def step(self) -> tuple[Float64, armlet.ActionTable]:
        """Draw a context and actions."""
        Z = self._rng.normal(size=(ACTIONS, ACTION_DIM))
        return self._rng.normal(size=DIM), armlet.ActionTable(range(ACTIONS), Z)

    def means(self, x: Float64, table: armlet.ActionTable, theta: Float64 | None = None) -> Float64:
        """Return what is expected of every action."""
        used = self.theta if theta is None else theta
        ones = np.column_stack([np.ones(len(table)), table.features])
        return np.clip(0.5 + np.append(1.0, x) @ used @ ones.T, 0.1, 0.9)

    def reward(self, mean: float) -> float:
        """Draw a reward."""
        return float(mean + self._rng.uniform(-0.1, 0.1))

    def play(self, target: str, x: Float64, table: armlet.ActionTable) -> Arm:
        """Play as a target does."""
        theta = self.theta if target == "near" else np.outer(np.eye(1 + DIM)[0], self.theta[0])
        ones = np.column_stack([np.ones(len(table)), table.features])
        return table.labels[int(np.argmax(np.append(1.0, x) @ theta @ ones.T))]


@dataclass(frozen=True, slots=True)
class TargetCoverage:
    """What one log says of a target; or many logs, on average."""

    reach: float
    covers: float
    width: float
    error: float  # root mean square

    @classmethod
    def mean(cls, several: Sequence[TargetCoverage]) -> TargetCoverage:
        """Return what many logs say."""
        columns = np.array([(each.reach, each.covers, each.width, each.error**2) for each in several])
        reach, covers, width, square = columns.mean(axis=0).tolist()
        return cls(reach, covers, width, float(np.sqrt(square)))


def coverage(seed: int, law: str, steps: int = STEPS) -> dict[str, TargetCoverage]:
    """Log a run, and value both targets by it."""
    with tempfile.TemporaryDirectory() as folder:
        return _coverage(seed, law, Path(folder) / "log.jsonl", steps)


def _coverage(seed: int, law: str, path: Path, steps: int) -> dict[str, TargetCoverage]:
    world = Catalogue(seed)
    truth = dict.fromkeys(TARGETS, 0.0)
    with armlet.Log(path) as log:
        bandit = armlet.ActionBandit(DIM, ACTION_DIM, policy=LAWS[law], reward_range=(0, 1), seed=seed, log=log)
        for _ in range(steps):
            x, table = world.step()
            means, decision = world.means(x, table), bandit.decide(x, table)
            bandit.learn(decision, world.reward(float(means[table.place(decision.arm)])))
            for name in TARGETS:
                truth[name] += float(means[table.place(world.play(name, x, table))]) / steps
    plays = {name: lambda x, table, name=name: world.play(name, x, table) for name in TARGETS}
    result = armlet.evaluate(path, plays)
    reach = {check.target: check.number for check in result.checks if check.name == "coverage"}
    return {name: _compared(result[name], truth[name], reach[name]) for name in TARGETS}


def _compared(value: Value, truth: float, reach: float) -> TargetCoverage:
    low, high = value.interval or (-np.inf, np.inf)
    return TargetCoverage(reach, float(low <= truth <= high), high - low, abs(value.value - truth))


def table(seeds: Sequence[int], steps: int = STEPS) -> Iterator[tuple[str, str, TargetCoverage]]:
    """Yield every law and target, with what logs of all seeds say on average.

    Examples
    --------
    >>> [(law, target, row.covers) for law, target, row in table(range(1), steps=30)][:2]
    [('SharedOptimism()', 'near', 1.0), ('SharedOptimism()', 'far', 1.0)]
    """
    for law in LAWS:
        runs = [coverage(seed, law, steps) for seed in seeds]
        for name in TARGETS:
            yield law, name, TargetCoverage.mean([run[name] for run in runs])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of intervals on logs of actions with features.")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    a = parser.parse_args()
    print(f"95 % intervals in {a.runs:,} logs of {STEPS:,} decisions, seeds from {a.first}")
    print(f"{'logged by':<26} {'target':<6} {'in reach':>8} {'coverage':>8} {'width':>8} {'error':>8}")
    for law, name, row in table(range(a.first, a.first + a.runs)):
        numbers = f"{row.reach:8.2f} {row.covers:8.3f} {row.width:8.3f} {row.error:8.4f}"
        print(f"{law:<26} {name:<6} {numbers}", flush=True)


if __name__ == "__main__":
    main()
