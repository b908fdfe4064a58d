"""The table: one per size, readable in a terminal and as Markdown."""

from dataclasses import dataclass

from peers import ARMLET
from timing import Cell, Size

HEADINGS = ("policy", "learner", "median us", "mean us", "x Armlet", "state", "import ms", "MB", "from step", "steps")
FEW_STEPS = 30
METHOD = """\
A step decides for one float64 numpy context and learns from its reward, through each library's own call for one
decision and one update; text, dicts or matrices that a library wants are made within the step. All rows meet the
same contexts and 0/1 rewards, on one thread. Algorithm 1 (Armlet and numpy) runs with p = 32 K and is measured
from step 100,000 on, where 0.2 %, 1 % and 3 % of the steps explore at the three sizes; a step costs the peers the
same at any time. The median is taken over blocks of about 20 microseconds (one step where that is longer) by the
wall clock; the mean is CPU time over all steps, re-solves included; both are the best of {rounds}. Exact ridge and
SGD learners do different work: the former keep d x d numbers per arm, the latter d. State is the bytes in arrays,
or of the model file or pickle where it does not live in arrays. Import is CPU time beyond a bare interpreter; MB is
what pip installed.
"""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a library costs before its first decision."""

    import_ms: float
    megabytes: float


def size_table(size: Size, cells: list[Cell], footprints: dict[str, Footprint]) -> list[str]:
    """Lay out the rows of one size, fastest first."""
    here = [cell for cell in cells if cell.size == size and cell.measured]
    ours = next((cell.best(size.by) for cell in here if cell.peer is ARMLET), None)
    here.sort(key=lambda cell: cell.best(size.by))
    lines = [row_texts(cell, ours, footprints.get(cell.peer.name)) for cell in here]
    figure = "mean" if size.by == "mean_us" else "median"
    title = f"## (d, K) = {size.label}: microseconds per decide + learn; ratios of the {figure} step"
    return [title, "", *aligned([list(HEADINGS), *lines]), "", *notes(size, cells)]


def row_texts(cell: Cell, ours: float | None, footprint: Footprint | None) -> list[str]:
    ratio = f"{significant(cell.best(cell.size.by) / ours)}" if ours else "-"
    return [
        cell.row.label,
        cell.row.learner.value,
        significant(cell.best("median_us")),
        significant(cell.best("mean_us")),
        ratio,
        bytes_text(cell.last("state_bytes")),
        f"{footprint.import_ms:.0f}" if footprint else "-",
        f"{footprint.megabytes:.1f}" if footprint else "-",
        f"{cell.last('warm_steps'):,.0f}",
        f"{cell.last('steps'):,.0f}",
    ]


def notes(size: Size, cells: list[Cell]) -> list[str]:
    """Say what a reader of the table must know about some rows of it."""
    said: list[str] = []
    for cell in cells:
        if cell.size != size:
            continue
        if cell.failure:
            said.append(f"- {cell.row.label}: not measured, {cell.failure}")
        elif cell.measured and cell.last("steps") < FEW_STEPS:
            seconds = cell.best("mean_us") / 1e6
            steps = f"{cell.last('steps'):.0f} measured"
            said.append(f"- {cell.row.label}: {seconds:.2g} s a step, so only {steps} in the time given")
    return [*said, ""] if said else []


def aligned(rows: list[list[str]]) -> list[str]:
    """Lay out a Markdown table with columns of equal width; numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    left = 2  # the first columns are words
    rule = ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    padded = [
        [
            text.ljust(width) if i < left else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
    return ["| " + " | ".join(row) + " |" for row in [padded[0], rule, *padded[1:]]]


def significant(value: float) -> str:
    """Write three digits, and no more decimals than they need."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def bytes_text(value: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} B"
