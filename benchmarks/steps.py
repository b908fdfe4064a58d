"""What a decide and learn of the default costs next to its peers, in its first steps and late, as ratios.

    .venv/bin/python benchmarks/steps.py                                  # three rounds; writes results/speed/
    .venv/bin/python benchmarks/steps.py --rounds 1 --only river mabwiser

A step is one decision and one update from Python, as in worker.py; a figure is the mean CPU time of a step, re-solves
included. Each round measures every row once, in another order, next to the default of the same round; a ratio is the
median over rounds. `armlet-lab publish speed` runs this and puts its tables into the pages that quote them.
"""

import argparse
import json
import platform
import random
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter

from peers import ARMLET, BAYESIANBANDITS, CONTEXTUALBANDITS, MABWISER, OBP, RIVER, VOWPAL_WABBIT, VOWPAL_WABBIT_NEXT
from peers import Peer as Library
from report import rounds_text, significant
from timing import SIZES, Budget, Size, call
from venvs import ROOT, environment

FIRST = Budget(0, 0.0, 1_000, 5.0)
LATE = Budget(100_000, 60.0, 20_000, 1.0)
LATE_PEER = Budget(100_000, 5.0, 20_000, 1.0)  # a slow peer is measured where it is after five seconds
FRESH = 15  # new policies whose first steps are timed
WINDOWS = ("first", "late")
NO_BREAK = "\N{NO-BREAK SPACE}"
PLACES = [(size, window) for size in SIZES for window in WINDOWS]
HEADS = [f"{size.label.replace(' ', NO_BREAK)} {window}" for size in SIZES for window in WINDOWS]


@dataclass(frozen=True, slots=True)
class Row:
    """A policy of a library, by its variant in the library's adapter."""

    library: Library
    variant: str
    label: str


DEFAULT = Row(ARMLET, "default", "**Armlet, the default**")
ALGORITHM_1 = Row(ARMLET, "armlet", "Armlet, Algorithm 1, p = 32 K")
SGD = Row(RIVER, "sgd", "river, linear regressions by SGD, epsilon-greedy")
REGCB = Row(VOWPAL_WABBIT, "adf-regcb", "Vowpal Wabbit, RegCB-opt")
LINUCB = Row(MABWISER, "ucb", "MABWiser, LinUCB")
RIVALS = (
    SGD,
    Row(VOWPAL_WABBIT_NEXT, "text", "vowpal-wabbit-next, epsilon-greedy"),
    Row(VOWPAL_WABBIT, "text", "Vowpal Wabbit, epsilon-greedy"),
    REGCB,
    Row(OBP, "epsilon", "OBP, LinEpsilonGreedy"),
    Row(CONTEXTUALBANDITS, "epsilon", "contextualbandits, EpsilonGreedy"),
    LINUCB,
    Row(BAYESIANBANDITS, "ts", "bayesianbandits, Thompson sampling"),
)
QUOTED = {SGD: "river's SGD", REGCB: "Vowpal Wabbit's RegCB-opt", LINUCB: "MABWiser's LinUCB"}


@dataclass(slots=True)
class Cell:
    """A row at one size and time, with what each round measured."""

    row: Row
    size: Size
    window: str
    python: Path
    us: list[float] = field(default_factory=list)
    after: float = 0.0  # steps before the window

    @property
    def job(self) -> dict[str, str | float]:
        """Write down what the worker is asked for."""
        ours = self.row.library is ARMLET
        budget = FIRST if self.window == "first" else LATE if ours else LATE_PEER
        names = {"adapter": self.row.library.adapter, "variant": self.row.variant}
        fresh = FRESH if self.window == "first" else 0
        return {**names, "dim": self.size.dim, "n_arms": self.size.n_arms, "fresh": fresh, **asdict(budget)}

    def measure(self) -> None:
        """Add a round."""
        found = call(self.python, "worker.py", json.dumps(self.job))
        self.us.append(float(str(found["mean_us"])))
        self.after = float(str(found["warm_steps"]))


@dataclass(frozen=True, slots=True)
class Measured:
    """All cells, and what is said of them."""

    cells: list[Cell]

    def cell(self, row: Row, size: Size, window: str) -> Cell:
        """Find a cell."""
        return next(c for c in self.cells if c.row is row and c.size == size and c.window == window)

    def us(self, row: Row, size: Size, window: str) -> str:
        """Write the median over rounds of the microseconds a step."""
        return significant(statistics.median(self.cell(row, size, window).us))

    def ratio(self, row: Row, size: Size, window: str) -> float:
        """Return the median over rounds of a row's time over the default's of the same round."""
        own, default = self.cell(row, size, window).us, self.cell(DEFAULT, size, window).us
        return statistics.median(a / b for a, b in zip(own, default, strict=True))

    @property
    def rows(self) -> list[Row]:
        """List the rows, ours first."""
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def rivals(self) -> list[Row]:
        """List the rows of others."""
        return [row for row in self.rows if row.library is not ARMLET]


def times(value: float) -> str:
    """Write a ratio with two digits or as a whole number.

    Examples
    --------
    >>> times(0.634), times(3.14), times(38.2), times(4880.6)
    ('0.63', '3.1', '38', '4,881')
    """
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Lay out a table whose first column is words and the others figures."""
    rule = ["---", *("--:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *rows])


def table(found: Measured) -> str:
    """Lay out the microseconds of the default, and how many times as long the others take."""
    rows = [[DEFAULT.label, *(f"**{found.us(DEFAULT, *place)} µs**" for place in PLACES)]]
    rows += [[row.label, *(times(found.ratio(row, *place)) for place in PLACES)] for row in found.rows[1:]]
    return markdown(["times the default", *HEADS], rows)


def microseconds(found: Measured) -> str:
    """Lay out the microseconds of everyone, and say which steps were late."""
    rows = [[row.label, *(found.us(row, *place) for place in PLACES)] for row in found.rows]
    late = [cell for cell in found.cells if cell.window == "late"]
    least = min(late, key=lambda cell: cell.after)
    reached = (
        f"Late begins at step 100,000. A peer that is not there after {LATE_PEER.warm_seconds:.0f} seconds is measured "
        f"where it is, since a step costs it the same at any time: {sum(c.after < LATE.warm_steps for c in late)} of "
        f"{len(late)} figures, the earliest {least.row.label} at {least.size.label} after {least.after:,.0f} steps."
    )
    return markdown(["µs a step", *HEADS], rows) + (f"\n\n{reached}" if least.after < LATE.warm_steps else "")


def listed(texts: list[str]) -> str:
    """Write a list as a sentence has it.

    Examples
    --------
    >>> listed(["0.3", "1.2", "11"])
    '0.3, 1.2 and 11'
    """
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def conclusion(found: Measured) -> str:
    """Say in a sentence what came out."""
    own = {window: listed([found.us(DEFAULT, size, window) for size in SIZES]) for window in WINDOWS}
    least = {
        window: listed([times(min(found.ratio(row, size, window) for row in found.rivals)) for size in SIZES])
        for window in WINDOWS
    }
    return (
        f"**One decide and learn of the default takes {own['late']} µs from step 100,000 on, and {own['first']} µs in "
        f"its first 1,000 steps**, with 3 features and 6 arms, 32 and 32, and 128 and 100. The fastest of "
        f"{len(found.rivals)} peers at each size takes {least['late']} times as long late, and {least['first']} times "
        f"as long in the first steps."
    )


def quoted(found: Measured) -> str:
    """Lay out what the README quotes: the default, and those next to it in the table of mistakes."""
    rows = []
    for size in SIZES:
        own = " / ".join(found.us(DEFAULT, size, window) for window in WINDOWS)
        ratios = [" / ".join(times(found.ratio(row, size, window)) for window in WINDOWS) for row in QUOTED]
        rows.append([f"{size.dim} features, {size.n_arms} arms", f"{own} µs", *ratios])
    return markdown(["first 1,000 steps / from step 100,000 on", "the default", *QUOTED.values()], rows)


def origin(rounds: int) -> str:
    """Say where and on what it was measured."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=, with changes"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    model = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ": unknown")
    return (
        f"Medians of {rounds_text(rounds)} on commit {commit}, {model.partition(': ')[2]}, one thread, "
        f"Python {platform.python_version()}."
    )


def play(cells: list[Cell], rounds: int) -> None:
    """Measure every cell once a round, in an order of that round."""
    for turn in range(1, rounds + 1):
        order = random.Random(turn).sample(cells, len(cells))
        for i, cell in enumerate(order, 1):
            began = perf_counter()
            cell.measure()
            took = perf_counter() - began
            place = f"round {turn}/{rounds} {i:3d}/{len(order)}  {cell.row.label:50s} {cell.size.label:10s}"
            print(f"    {place} {cell.window:5s} {cell.us[-1]:12.2f} us [{took:.0f} s]", flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the default against its peers, early and late.")
    names = sorted({row.library.name for row in RIVALS})
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds (default: 3)")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"of: {', '.join(names)}")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "speed", metavar="DIR", help="where tables go")
    return parser.parse_args(arguments)


def write(found: Measured, rounds: int, folder: Path) -> None:
    """Write one file for each part of a page, and all rounds; print the parts."""
    parts = {"conclusion": conclusion(found), "peers": table(found), "microseconds": microseconds(found)}
    parts["origin"] = origin(rounds)
    if set(QUOTED) <= set(found.rows):
        parts["quoted"] = quoted(found)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in parts.items():
        (folder / f"{name}.md").write_text(text + "\n")
    raw = [
        {"row": cell.row.label, "size": cell.size.label, "window": cell.window, "us": cell.us, "after": cell.after}
        for cell in found.cells
    ]
    (folder / "steps.json").write_text(json.dumps(raw, indent=1))
    print("", *parts.values(), sep="\n\n")


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    began = perf_counter()
    rows = [DEFAULT, ALGORITHM_1, *(row for row in RIVALS if not options.only or row.library.name in options.only)]
    pythons = {
        row.library.name: Path(sys.executable) if row.library is ARMLET else environment(row.library).python
        for row in rows
    }
    found = Measured([Cell(row, *place, pythons[row.library.name]) for row in rows for place in PLACES])
    play(found.cells, options.rounds)
    write(found, options.rounds, options.out)
    print(f"\nwritten to {options.out} after {(perf_counter() - began) / 60:.1f} minutes")


if __name__ == "__main__":
    main(sys.argv[1:])
