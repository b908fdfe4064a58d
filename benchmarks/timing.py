"""Runs the workers: every policy at every size, in shuffled rounds, and keeps the best of the rounds.

The machine may be busy or change its speed, which hits whatever runs at that moment. So each cell of the table
is measured once per round, each round in another order, and the quickest round counts: for every row alike.
"""

import json
import random
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter

from peers import Peer, Row
from startup import one_thread
from venvs import HERE, last_line

SLOW_SECONDS = 15.0  # a cell that took longer is not measured again
TIMEOUT_SECONDS = 180.0
Figures = dict[str, float]


class WorkerError(Exception):
    """A worker that failed; the message is its last word."""


@dataclass(frozen=True, slots=True)
class Size:
    """Dimension d, number of arms K, and which figure the ratios are made of."""

    dim: int
    n_arms: int
    by: str  # "median_us", or "mean_us" where re-solves are a large part of the cost

    @property
    def label(self) -> str:
        """Name the size as (d, K)."""
        return f"({self.dim}, {self.n_arms})"


SIZES = (Size(3, 6, "median_us"), Size(32, 32, "median_us"), Size(128, 100, "mean_us"))


@dataclass(frozen=True, slots=True)
class Budget:
    """Steps before the window and in it, each with the seconds after which it ends early."""

    warm_steps: int
    warm_seconds: float
    steps: int
    seconds: float


LATE = Budget(100_000, 60.0, 50_000, 3.0)  # at t = 10^5 with p = 32 K: 0.2 %, 1 % and 3 % of the steps explore
ANY_TIME = Budget(2_000, 2.0, 20_000, 2.0)  # a step costs a peer the same at any t, once all arms were tried


@dataclass(slots=True)
class Cell:
    """One row of the table at one size, with what each round measured."""

    peer: Peer
    row: Row
    size: Size
    python: Path
    rounds: list[Figures] = field(default_factory=list)
    failure: str = ""
    slow: bool = False

    @property
    def measured(self) -> bool:
        """Return whether any round gave figures."""
        return bool(self.rounds)

    def best(self, figure: str) -> float:
        """Return a figure of the round where it was smallest."""
        return min(turn[figure] for turn in self.rounds)

    def last(self, figure: str) -> float:
        """Return a figure of the last round."""
        return self.rounds[-1][figure]

    @property
    def job(self) -> dict[str, str | float]:
        """Write down what the worker is asked for."""
        budget = LATE if self.row.depends_on_t else ANY_TIME
        names = {"adapter": self.peer.adapter, "variant": self.row.variant}
        return {**names, "dim": self.size.dim, "n_arms": self.size.n_arms, **asdict(budget)}


def call(python: Path, script: str, *arguments: str, timeout: float = TIMEOUT_SECONDS) -> dict[str, object]:
    """Run a script of this folder with a given Python; return the JSON that it prints last."""
    command = [str(python), str(HERE / script), *arguments]
    try:
        done = subprocess.run(command, cwd=HERE, env=one_thread(), capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise WorkerError(f"took longer than {timeout:.0f} s") from None
    if done.returncode != 0:
        raise WorkerError(last_line(done.stderr))
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


def measure(cells: list[Cell], rounds: int) -> None:
    """Fill in what the rounds measured, or why a cell could not be measured."""
    for turn in range(1, rounds + 1):
        open_cells = [cell for cell in cells if not cell.failure and not cell.slow]
        random.Random(turn).shuffle(open_cells)
        for i, cell in enumerate(open_cells, 1):
            started = perf_counter()
            measure_once(cell)
            took = perf_counter() - started
            cell.slow = took > SLOW_SECONDS and not cell.row.depends_on_t
            place = f"round {turn}/{rounds} {i:3d}/{len(open_cells)}"
            print(f"    {place}  {cell.row.label:42s} {cell.size.label:10s} {outcome(cell)} [{took:.0f} s]", flush=True)


def measure_once(cell: Cell) -> None:
    try:
        answer = call(cell.python, "worker.py", json.dumps(cell.job))
    except WorkerError as error:
        cell.failure = str(error)
    else:
        cell.rounds.append({name: float(str(value)) for name, value in answer.items()})


def outcome(cell: Cell) -> str:
    if cell.failure:
        return f"failed: {cell.failure}"
    turn = cell.rounds[-1]
    return f"{turn['median_us']:12.2f} us median, {turn['mean_us']:12.2f} mean, {turn['steps']:.0f} steps"
