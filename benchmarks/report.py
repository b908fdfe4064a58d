"""The table: one per size, readable in a terminal and as Markdown."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from armlet.inference.intervals import bootstrap
from peers import ALGORITHM_1, ARMLET, Learner, Rule
from timing import Cell, Size

HEADINGS = (
    "policy",
    "learner",
    "median us",
    "mean us",
    "x Armlet",
    "x same rule",
    "state",
    "import ms",
    "MB",
    "from step",
    "steps",
)
FEW_STEPS = 30
METHOD = """\
A step decides for one float64 numpy context and learns from its reward, through each library's own call for one
decision and one update; text, dicts or matrices that a library wants are made within the step. All rows meet the same
contexts and 0/1 rewards, on one thread. Algorithm 1 (Armlet and numpy) runs with p = 32 K and is measured from step
100,000 on, where 0.2 %, 1 % and 3 % of the steps explore at the three sizes; a step costs the peers the same at any
time once all arms were tried, so they are measured after up to 2,000 steps, and Armlet's LinUCB, OFUL and Thompson
sampling with them. That favours contextualbandits' LinUCB and LinTS at (128, 100), which have tried few arms by then
and work on those alone. The default has nothing set and two rows, from step 100,000 on and as early as the peers,
because it solves less and less often. Armlet's Thompson sampling includes exact
propensities. "x Armlet" is against Algorithm 1, "x same rule" against Armlet's own row of that rule. The median is
taken over blocks of about 20 microseconds (one step where that is longer) by the wall clock; the mean is CPU time over
all steps, re-solves included; both are the best of {rounds}. Exact ridge and SGD learners do different work: the former
keep d x d numbers per arm, the latter d. State is the bytes in arrays, or of the model file or pickle where it does not
live in arrays. Import is CPU time beyond a bare interpreter; MB is what pip installed.
"""


SIMULATION_HEADINGS = (
    "simulation of Figure (a)",
    "environment's draws",
    "ns a step",
    "worst round",
    "steps a second",
    "x Armlet",
)
SIMULATION_ROWS = {
    "numbers": ("three random numbers a step, numpy's SFC64", "only these"),
    "philox": ("the kernel's five random words a step, numpy's Philox", "only these"),
    "armlet": ("Armlet, method steps, engine serial", "included"),
    "stretches": ("numpy, cached, a stretch of exploit steps at a time", "included"),
    "cached": ("numpy, cached estimates, step by step", "included"),
    "printed": ("numpy, as printed", "included"),
}
SIMULATION_METHOD = """\
Figure (a), K = 6, d = 3, p = 120: 10 runs of 10^5 steps through `simulate`, on one thread, with environment, regret
curves and results. The numpy loops simulate the same steps and agree with each other on the regret; taking stretches at
a time needs an environment of few contexts, as the kernel does. Peers only decide and learn, over contexts and rewards
of the same environment that were drawn before: 20,000 steps from step 2,000 on, the median step by the wall clock. The
other rows are CPU time, the quickest of up to 15 repetitions. All are the best of {rounds}; the worst round tells how
the machine behaved. Workers run 240 times 10^6 steps by the wall clock, on pools that were started and used before.
"""


CLICKS_HEADINGS = ("two customers, two actions", "learner", "clicks %", "95 % interval", "of the gain %")
CLICKS_METHOD = """\
Two kinds of customer, two actions: each kind clicks on the action that it likes 4 % of the time and on the other one
3 %, and the kinds like different actions. {steps:,} customers, {environments} environments, the same for all rows.
Clicks are the mean probability of the actions played, so that luck does not count; the interval is a bootstrap over
environments. The gain is what lies between random play ({random:.2%}) and knowing everything ({best:.2%}). Vowpal
Wabbit has its defaults but for what the row says, and costs of -1 and 0; `-q ca` adds the products of customer and
action, which the adf format needs to tell the kinds apart; `-l` is a learning rate that was chosen on other
environments of this kind. p = 1000 was set by hand.
"""


UnitsReport = dict[str, dict[str, dict[str, list[float]]]]  # size, policy, "as given" and "free": us a step each round

UNITS_HEADINGS = ("policy", "(d, K)", "as given us", "free us", "free / as given")
UNITS_METHOD = """\
CPU time of a late step in the compiled loop, on gaussian contexts that need no other units; the best of {rounds}. The
ratio is the median of the rounds, in which the two take turns.
"""


class ClicksReport(TypedDict):
    """What clicks.py prints; a list has one click rate for each environment."""

    steps: int
    random: float
    best: float
    ours: dict[str, list[float]]
    peers: dict[str, list[float]]  # with their defaults
    tuned: dict[str, list[float]]
    failed: dict[str, str]


class DefaultStage(TypedDict):
    """What default.py prints of one size, after so many rows."""

    size: str
    rows: int
    us: dict[str, list[float]]  # a step, round by round
    memory: float  # of the default, in those of its sums


DefaultReport = list[DefaultStage]
InputsReport = dict[str, dict[str, float]]  # of rewards and of contexts: us a step by kind, the plainest first

COLD_STEPS = 100  # of a new bandit
ColdRound = dict[str, dict[str, tuple[float, float]]]  # "first", "after": "decide", "learn": mean and longest us
Batches = dict[str, list[float]]  # us a row, log after log


class BatchStage(TypedDict):
    """What a row of a log that is learned at once takes."""

    size: str
    us: Batches


ColdReport = TypedDict(
    "ColdReport",
    {"size": str, "solve_us": list[float], "free": list[ColdRound], "as given": list[ColdRound], "batch": BatchStage},
)


class AuditReport(TypedDict):
    """What an audit says; lists are of JSON lines, then Parquet."""

    policy: str
    decisions: int
    compiled: bool
    rates: list[float]  # decisions a second of CPU time
    bytes: list[float]  # a decision


class LoggedReport(TypedDict):
    """What logged.py prints."""

    steps: dict[str, float]  # us of decide and learn; "none" is without a log
    learned: dict[str, float]  # us a row of partial_fit of a table
    audits: list[AuditReport]


class SimulationReport(TypedDict):
    """What simulation.py prints; a list has one figure for each round."""

    steps: dict[str, list[float]]  # ns per step
    peers: dict[str, list[float]]  # ns per step
    events: dict[str, list[float]]  # us per run
    workers: dict[str, list[float]]  # ns per step; "cores": processors that two threads were given
    failed: dict[str, str]


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a library costs before its first decision."""

    import_ms: float
    megabytes: float


def size_table(size: Size, cells: list[Cell], footprints: dict[str, Footprint]) -> list[str]:
    """Lay out the rows of one size, fastest first."""
    here = [cell for cell in cells if cell.size == size and cell.measured]
    ours = next((cell.best(size.by) for cell in here if cell.row is ALGORITHM_1), None)
    rules = {cell.row.rule: cell.best(size.by) for cell in here if cell.peer is ARMLET}
    here.sort(key=lambda cell: cell.best(size.by))
    lines = [row_texts(cell, ours, rules, footprints.get(cell.peer.name)) for cell in here]
    figure = "mean" if size.by == "mean_us" else "median"
    title = f"## (d, K) = {size.label}: microseconds per decide + learn; ratios of the {figure} step"
    return [title, "", *aligned([list(HEADINGS), *lines]), "", *notes(size, cells)]


def row_texts(cell: Cell, ours: float | None, rules: dict[Rule, float], footprint: Footprint | None) -> list[str]:
    same = None if cell.row.rule is Rule.OTHER else rules.get(cell.row.rule)
    return [
        cell.row.label,
        cell.row.learner.value,
        significant(cell.best("median_us")),
        significant(cell.best("mean_us")),
        times_text(cell, ours),
        times_text(cell, same),
        bytes_text(cell.last("state_bytes")),
        f"{footprint.import_ms:.0f}" if footprint else "-",
        f"{footprint.megabytes:.1f}" if footprint else "-",
        f"{cell.last('warm_steps'):,.0f}",
        f"{cell.last('steps'):,.0f}",
    ]


def times_text(cell: Cell, reference: float | None) -> str:
    return significant(cell.best(cell.size.by) / reference) if reference else "-"


def notes(size: Size, cells: list[Cell]) -> list[str]:
    """Describe what a reader of the table must know about some rows of it."""
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


def simulation_table(report: SimulationReport) -> list[str]:
    """Lay out the ways to simulate, fastest first."""
    named = [(*SIMULATION_ROWS[name], times) for name, times in report["steps"].items()]
    named += [(label, "not charged", times) for label, times in report["peers"].items()]
    named.sort(key=lambda row: min(row[2]))
    ours = min(report["steps"]["armlet"])
    rows = [simulation_texts(label, draws, times, ours) for label, draws, times in named]
    failed = [f"- {label}: not measured, {reason}" for label, reason in report["failed"].items()]
    method = SIMULATION_METHOD.format(rounds=rounds_text(len(report["steps"]["armlet"])))
    title = "## Simulation: nanoseconds per step"
    return [title, "", method, *aligned([list(SIMULATION_HEADINGS), *rows]), "", *failed, *([""] if failed else [])]


def simulation_texts(label: str, draws: str, times: list[float], ours: float) -> list[str]:
    best = min(times)
    return [label, draws, significant(best), significant(max(times)), f"{1e9 / best:,.0f}", significant(best / ours)]


def units_table(report: UnitsReport) -> list[str]:
    """Lay out what a late step costs in both forms, size by size."""
    rows = [
        [name, size, *(significant(min(times[form])) for form in ("as given", "free")), f"{units_ratio(times):.2f}"]
        for size, named in report.items()
        for name, times in named.items()
    ]
    rounds = len(next(iter(next(iter(report.values())).values()))["free"])
    title = "## Free units: microseconds per decide + learn"
    return [title, "", UNITS_METHOD.format(rounds=rounds_text(rounds)), *aligned([list(UNITS_HEADINGS), *rows]), ""]


def units_ratio(times: dict[str, list[float]]) -> float:
    """Take the median over rounds of free over as given."""
    return float(np.median(np.array(times["free"]) / np.array(times["as given"])))


def default_table(report: DefaultReport) -> list[str]:
    """Lay out what a step of the default costs, stage by stage."""
    rows = [
        [
            stage["size"],
            f"{stage['rows']:,}",
            *(significant(min(times)) for times in stage["us"].values()),
            f"{default_ratio(stage, 'LinUCB'):.2f}",
        ]
        for stage in report
    ]
    names = ("default us", "LinUCB us", "LinUCB / default")
    method = "CPU time, free units; the best of the rounds, and the median of their ratios, in which all take turns."
    title = "## The default policy: microseconds per decide + learn"
    return [title, "", method, "", *aligned([["(d, K)", "after rows", *names], *rows]), ""]


def cold_us(rounds: list[ColdRound], window: str, part: str) -> tuple[float, float]:
    """Return the mean and the longest time of a call, each the median of the rounds."""
    mean, longest = np.median([one[window][part] for one in rounds], axis=0).tolist()
    return mean, longest


def batch_us(report: ColdReport, name: str) -> float:
    """Return what a row of a log takes on top of another: the median of the rounds, without the first log."""
    return float(np.median(report["batch"]["us"][name][1:]))


def cold_table(report: ColdReport) -> list[str]:
    """Lay out the first steps with long contexts, and logs that are learned at once."""
    windows = {"first": f"first {COLD_STEPS}", "after": "the next 900"}
    rows = [
        [report["size"], units, steps, part, *(significant(us) for us in cold_us(rounds, window, part))]
        for units, rounds in (("free", report["free"]), ("as given", report["as given"]))
        for window, steps in windows.items()
        for part in ("decide", "learn")
    ]
    solve = f"CPU time, the median of the rounds; a solve of one arm takes {np.median(report['solve_us']):.0f} us."
    batch = [[report["batch"]["size"], name, significant(batch_us(report, name))] for name in report["batch"]["us"]]
    heading = ["(d, K)", "units", "steps", "call", "mean us", "longest us"]
    return [
        "## The default policy: its first steps, and logs learned at once",
        *("", solve, "", *aligned([heading, *rows])),
        *("", *aligned([["(d, K)", "partial_fit of", "us a row"], *batch]), ""),
    ]


def default_ratio(stage: DefaultStage, rival: str) -> float:
    """Take the median over rounds of a rival's time over the default's."""
    return float(np.median(np.array(stage["us"][rival]) / np.array(stage["us"]["default"])))


def inputs_table(report: InputsReport) -> list[str]:
    """Lay out what a step costs by the kind of its reward and of its context, and times the first of each."""
    rows = [
        [part, name, f"{us:.3f}", f"{us / next(iter(kinds.values())):.2f}"]
        for part, kinds in report.items()
        for name, us in kinds.items()
    ]
    method = "CPU time at (3, 6), the median of rounds in which all take turns; the ratio is to the first of its kind."
    title = "## Kinds of rewards and contexts: microseconds per decide + learn"
    return [title, "", method, "", *aligned([["", "given as", "us", "ratio"], *rows]), ""]


def logged_table(report: LoggedReport) -> list[str]:
    """Lay out how fast every policy that was audited is."""
    rows = [
        [audit["policy"], f"{audit['decisions']:,}", *(f"{rate:,.0f}" for rate in audit["rates"])]
        for audit in report["audits"]
    ]
    headings = ["policy", "decisions", "JSON lines", "Parquet"]
    title = "## Audits, bit for bit: decisions a second of CPU time"
    return [title, "", *aligned([headings, *rows]), ""]


def clicks_table(report: ClicksReport) -> list[str]:
    """Lay out who earned how many clicks, most first."""
    named = [
        (label, Learner.NONE if label == "random play" else Learner.RIDGE, r) for label, r in report["ours"].items()
    ]
    named += [(label, Learner.SGD, rates) for label, rates in (report["peers"] | report["tuned"]).items()]
    named.sort(key=lambda row: -sum(row[2]))
    rows = [[label, learner.value, *clicks_texts(rates, report)] for label, learner, rates in named]
    failed = [f"- {label}: not measured, {reason}" for label, reason in report["failed"].items()]
    figures = {name: report[name] for name in ("steps", "random", "best")}
    method = CLICKS_METHOD.format(environments=len(named[0][2]), **figures)
    title = f"## Clicks earned in {report['steps']:,} steps"
    return [title, "", method, *aligned([list(CLICKS_HEADINGS), *rows]), "", *failed, *([""] if failed else [])]


def clicks_texts(rates: list[float], report: ClicksReport) -> list[str]:
    found = bootstrap(lambda each: each.mean(-1), rates, rng=np.random.default_rng(1))
    gained = (found.value - report["random"]) / (report["best"] - report["random"])
    interval = f"{100 * found.low:.2f} to {100 * found.high:.2f}"
    return [f"{100 * found.value:.3f}", interval, str(round(100 * gained))]


def rounds_text(rounds: int) -> str:
    return "one round" if rounds == 1 else f"{rounds} rounds"


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
