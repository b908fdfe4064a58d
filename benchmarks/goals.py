"""What Armlet set out to reach, next to what was measured. A goal that was missed is printed as missed."""

from dataclasses import dataclass
from itertools import product
from typing import TypedDict

import numpy as np

from armlet.inference.intervals import paired_difference
from peers import ALGORITHM_1, ARMLET, OURS, Rule
from report import (
    COLD_STEPS,
    ClicksReport,
    ColdReport,
    DefaultReport,
    InputsReport,
    LoggedReport,
    SimulationReport,
    UnitsReport,
    batch_us,
    cold_us,
    default_ratio,
    significant,
    units_ratio,
)
from serve_report import BATCH as SERVED_AT_ONCE
from serve_report import Figure, ServeReport, ratios
from store_report import GrowthReport, StoreReport, StoreRow
from timing import SIZES, Cell

TIMES_FASTER = {(3, 6): 30.0, (32, 32): 30.0, (128, 100): 20.0}
RULE_TIMES_FASTER = {(3, 6): 20.0, (32, 32): 20.0, (128, 100): 10.0}
# the peers' rule that is held against ours; none has OFUL, whose steps are those of LinUCB with a radius worked out
RIVAL_RULES = {Rule.LINUCB: Rule.LINUCB, Rule.OFUL: Rule.LINUCB, Rule.THOMPSON: Rule.THOMPSON}
DEFAULT_TIMES_FASTER = {("(128, 100)", 2_000): 2.0, ("(128, 100)", 100_000): 8.0}  # than LinUCB
DEFAULT_MEMORY = 3.0  # times its sums
COLD, COLD_BATCH = 2.0, 2.0  # solves in a decide; times LinUCB
INPUT_TIMES = {"dict": 3.0}  # the others 1.5
LOGGED_US, LEARNED_US, AUDITED = 10.0, 2.0, 10_000.0
SAVED, MEMORY = 1.1, 2.5
SHARED, WAITING = 3.0, 0.7  # durable decisions: 16 threads against one, and against commits that a power cut can lose
ONE_LOOP, TWO_LOOPS = 0.85, 1.6  # of what one replica serves, with as many callers as each of two
TRIPS, LAST_QUARTER, GROWN_ROWS = 6.0, 1.5, 10_000
ROWS_MB, ROWS_CPU = 30.0, 1.5  # of a loop that has grown tenfold
RAW_DECIDE, RAW_REWARD, RAW_BATCH, MABWISER = 2.75, 3.0, 1.0, 4.0  # over HTTP, at 64 connections
LOOPS_MB = 600.0  # `Store` keeps 2^28 bytes of loops by default, by an estimate
FLAT = 1.5  # the slowest window against the fastest; a cost that grew with t would be 10^4 times apart
BATCH = 1.5
EVALUATED_FEW, EVALUATED, MANY_ROWS, AGREED = 4.0, 8.0, 1e6, 1e-9  # times, below that many rows and from there on
FREE_UNITS = 1.3
IMPORT_MS = 20.0
COMMAND_LINE = 2.0
SIMULATED, SIMULATED_NUMPY, SIMULATED_FLOOR = 200.0, 20.0, 3.0
FAR = 10.0
TWO_WORKERS = 1.7
FITTED, GROWN_MB = 4e6, 60.0  # rows a second and core; a tenth of the rows is 26 MB at least


class Window(TypedDict):
    """One window of flat.py."""

    t: int
    ns: float
    explored: float


class FilesReport(TypedDict):
    """What files.py prints."""

    rows: int
    sums: dict[str, float]  # rows a second
    fits: dict[str, dict[str, float]]  # rate and megabytes of each


class FlatReport(TypedDict):
    """What flat.py prints."""

    windows: list[Window]
    state: dict[str, dict[str, float]]
    start: dict[str, float]


BatchReport = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal: what it asks, whether it was met, and the figure."""

    text: str
    met: bool
    figure: str

    @property
    def line(self) -> str:
        """Describe it in one line."""
        return f"- {'met    ' if self.met else 'NOT MET'}  {self.text}: {self.figure}"


def speed_goals(cells: list[Cell]) -> list[Goal]:
    """Compare with every peer, and with the same algorithm in numpy, at each size."""
    goals: list[Goal] = []
    for size in SIZES:
        here = [cell for cell in cells if cell.size == size and cell.measured]
        ours = [cell for cell in here if cell.row is ALGORITHM_1]
        peers = [cell for cell in here if cell.peer not in OURS]
        cached = [cell for cell in here if cell.row.variant == "cached"]
        if ours and peers:
            least = TIMES_FASTER[size.dim, size.n_arms]
            text = f"at least {least:.0f} times faster than every peer at {size.label}"
            goals.append(peer_goal(text, least, ours[0], peers))
        if ours and cached:
            ratio = cached[0].best(size.by) / ours[0].best(size.by)
            goals.append(Goal(f"faster than cached numpy at {size.label}", ratio > 1, f"{ratio:.2f} times"))
    return goals


def rule_goals(cells: list[Cell]) -> list[Goal]:
    """Compare LinUCB, OFUL and Thompson sampling with the peers' own, at each size."""
    goals: list[Goal] = []
    for size, (rule, rival) in product(SIZES, RIVAL_RULES.items()):
        here = [cell for cell in cells if cell.size == size and cell.measured]
        ours = [cell for cell in here if cell.peer is ARMLET and cell.row.rule is rule]
        peers = [cell for cell in here if cell.peer not in OURS and cell.row.rule is rival]
        if ours and peers:
            least = RULE_TIMES_FASTER[size.dim, size.n_arms]
            text = f"{rule} at least {least:.0f} times faster than every peer's {rival} at {size.label}"
            goals.append(peer_goal(text, least, ours[0], peers))
    return goals


def default_goals(report: DefaultReport) -> list[Goal]:
    """Hold the default against LinUCB and its own sums."""
    goals: list[Goal] = []
    for stage in report:
        where = f"at {stage['size']} after {stage['rows']:,} rows"
        if (least := DEFAULT_TIMES_FASTER.get((stage["size"], stage["rows"]))) is not None:
            ratio = default_ratio(stage, "LinUCB")
            text = f"the default at least {least:.0f} times faster than LinUCB {where}"
            goals.append(Goal(text, ratio >= least, f"{significant(ratio)} times"))
    shown = ", ".join(f"{stage['size']} {stage['memory']:.2f}" for stage in report)
    text = f"the default takes at most {DEFAULT_MEMORY:.0f} times the memory of its sums"
    return [*goals, Goal(text, max(stage["memory"] for stage in report) <= DEFAULT_MEMORY, shown)]


def cold_goals(report: ColdReport) -> list[Goal]:
    """Hold decides of a new bandit against a solve, and a log learned at once against LinUCB."""
    solve, goals = float(np.median(report["solve_us"])), []
    for window, steps, most in (("first", f"the first {COLD_STEPS} steps", COLD), ("after", "the steps after", 1.0)):
        longest = cold_us(report["free"], window, "decide")[1] / solve
        text = f"no decide of {steps} at {report['size']} takes more than {most:.0f} solves of an arm"
        goals.append(Goal(text, longest <= most, f"{longest:.2f} of one"))
    ratio = batch_us(report, "default") / batch_us(report, "LinUCB")
    text = f"partial_fit of the default at {report['batch']['size']} within {COLD_BATCH:.0f} times that of LinUCB"
    return [*goals, Goal(text, ratio <= COLD_BATCH, f"{ratio:.2f} times")]


def inputs_goals(report: InputsReport) -> list[Goal]:
    """Hold every kind of reward against a float, and every kind of context against a float64 row."""
    goals: list[Goal] = []
    for part, kinds in report.items():
        plainest, *others = kinds
        for name in others:
            most, ratio = INPUT_TIMES.get(name, 1.5), kinds[name] / kinds[plainest]
            text = f"a step with a {part} as {name} within {most:g} times that with {plainest}"
            goals.append(Goal(text, ratio <= most, f"{ratio:.2f} times"))
    return goals


def peer_goal(text: str, least: float, ours: Cell, peers: list[Cell]) -> Goal:
    """Hold one cell of ours against the three fastest of the peers' at its size."""
    by = ours.size.by
    closest = sorted(peers, key=lambda cell: cell.best(by))[:3]
    ratios = [cell.best(by) / ours.best(by) for cell in closest]
    named = [f"{cell.row.label} {significant(ratio)}" for cell, ratio in zip(closest, ratios, strict=True)]
    what = "mean" if by == "mean_us" else "median"
    return Goal(f"{text}, by the {what} step", ratios[0] >= least, "; ".join(named))


def flat_goals(report: FlatReport) -> list[Goal]:
    times = [window["ns"] for window in report["windows"]]
    spread = max(times) / min(times)
    shown = ", ".join(f"{time:.0f}" for time in times)
    return [
        Goal(
            f"time per step flat from t = 10^2 to 10^6 (slowest at most {FLAT} times the fastest)",
            spread <= FLAT,
            f"{spread:.2f} ({shown} ns)",
        ),
        *state_goals(report["state"]),
        *start_goals(report["start"]),
    ]


def store_goals(report: StoreReport) -> list[Goal]:
    """Hold callers that share commits, and two replicas, against one."""
    rates = {(row["name"], row["callers"]): row["rate"] for row in report["rows"] if row["door"] == "threads"}
    shared = rates["SQLite FULL", 16] / rates["SQLite FULL", 1]
    waiting = rates["SQLite FULL", 16] / rates["SQLite NORMAL", 16]
    trips = max(row["trips"] or 0.0 for row in report["rows"])
    return [
        Goal(f"16 threads get at least {SHARED} times the durable answers of one", shared >= SHARED, f"{shared:.1f}"),
        Goal(
            f"16 threads get at least {WAITING} times as many on disk as with synchronous=NORMAL",
            waiting >= WAITING,
            f"{waiting:.2f}",
        ),
        replica_goal("one loop", ONE_LOOP, report["one_loop"]),
        replica_goal("two loops", TWO_LOOPS, report["two_loops"]),
        Goal(f"at most {TRIPS:.0f} round trips a batch to PostgreSQL", trips <= TRIPS, f"{trips:.2f}"),
        *quarter_goals([row for row in report["rows"] if 2 * row["pairs"] >= GROWN_ROWS]),
    ]


def quarter_goals(rows: list[StoreRow]) -> list[Goal]:
    """Hold the end of each cell with many rows against its start; there is none where none has as many."""
    if not rows:
        return []
    worst = max(rows, key=lambda row: row["last_us"] / row["first_us"])
    ratio = worst["last_us"] / worst["first_us"]
    text = (
        f"CPU time of a pair in the last quarter of {GROWN_ROWS:,} rows at most {LAST_QUARTER} times that of the first"
    )
    where = f"{worst['name']}, {worst['callers']} {worst['door']}"
    return [Goal(text, ratio <= LAST_QUARTER, f"{ratio:.2f} ({where})")]


def replica_goal(where: str, least: float, by_callers: dict[str, list[float]]) -> Goal:
    """Hold the lowest median over rounds against the goal."""
    medians = {callers: float(np.median(found)) for callers, found in by_callers.items()}
    shown = ", ".join(f"{callers} {ratio:.2f}" for callers, ratio in medians.items())
    return Goal(f"two replicas on {where} at least {least} of one", min(medians.values()) >= least, shown)


def serve_goals(report: ServeReport) -> list[Goal]:
    """Hold our server against a raw request and against MABWiser in FastAPI; none where they were not measured."""
    decide, reward = Figure("sqlite", "decide"), Figure("sqlite", "reward")
    peer, batch = (Figure("mabwiser", "decide"), Figure("mabwiser", "reward")), Figure("sqlite", "batch")
    raw_decide, raw_reward = Figure("raw", "decide"), Figure("raw", "reward")
    at_once = f"a decision in a batch of {SERVED_AT_ONCE} at most one raw request"
    pair = f"a decision and its reward at least {MABWISER:g} times less than FastAPI + MABWiser"
    asked = [
        (f"a decision at most {RAW_DECIDE} raw requests", RAW_DECIDE, (decide,), (raw_decide,)),
        (f"a reward at most {RAW_REWARD:g} raw requests", RAW_REWARD, (reward,), (raw_reward,)),
        (at_once, RAW_BATCH, (batch,), (raw_decide,)),
        (pair, 1.0 / MABWISER, (decide, reward), peer),
    ]
    found = [(text, most, ratios(report, of, by)) for text, most, of, by in asked]
    return [serve_goal(text, most, each) for text, most, each in found if each is not None]


def serve_goal(text: str, most: float, found: list[float]) -> Goal:
    median = float(np.median(found))
    return Goal(f"{text}, 64 connections", median <= most, f"{median:.2f} ({min(found):.2f} to {max(found):.2f})")


def growth_goals(report: GrowthReport) -> list[Goal]:
    """Hold a grown loop against itself when it was a tenth as large, and many loops against a bound."""
    first, last, found = report["grown"][0], report["grown"][-1], report["many"]
    more, ratio = last["rss_mb"] - first["rss_mb"], last["cpu_us"] / first["cpu_us"]
    goals = [
        Goal(f"ten times the rows take at most {ROWS_MB:.0f} MB more memory", more <= ROWS_MB, f"{more:.0f} MB"),
        Goal(f"and at most {ROWS_CPU} times the CPU time of a pair", ratio <= ROWS_CPU, f"{ratio:.2f}"),
    ]
    if found is not None:
        most = found["most_mb"]
        text = f"{found['loops']:,} loops in one store take at most {LOOPS_MB:.0f} MB"
        goals.append(Goal(text, most <= LOOPS_MB, f"{most:.0f} MB"))
    return goals


def state_goals(state: dict[str, dict[str, float]]) -> list[Goal]:
    goals: list[Goal] = []
    for name, most in (("saved", SAVED), ("memory", MEMORY)):
        ratios = {size: held[name] / held["needed"] for size, held in state.items()}
        shown = ", ".join(f"{size} {ratio:.3f}" for size, ratio in ratios.items())
        text = f"{name} state at most {most} times K (d (d + 1) / 2 + d + 3) doubles"
        goals.append(Goal(text, max(ratios.values()) <= most, shown))
    return goals


def start_goals(start: dict[str, float]) -> list[Goal]:
    extra = start["armlet beyond numpy"]
    shown = f"{extra:.1f} ms (numpy {start['numpy']:.0f}, armlet {start['armlet']:.0f})"
    goals = [Goal(f"import armlet within {IMPORT_MS:.0f} ms of import numpy", extra <= IMPORT_MS, shown)]
    for command in ("armlet --version", "armlet --help"):
        ratio = start[command] / start["numpy"]
        text = f"{command} at most {COMMAND_LINE:.0f} times the CPU time of importing numpy"
        goals.append(Goal(text, ratio <= COMMAND_LINE, f"{ratio:.2f} times"))
    return goals


def batch_goals(report: BatchReport) -> list[Goal]:
    goals: list[Goal] = []
    for size, row in report.items():
        rival = min(row["numpy"], row["numpy in chunks"])
        ratio = rival / row["armlet"]
        figures = f"{row['armlet']:.0f} ns a row; numpy {row['numpy']:.0f}, in chunks {row['numpy in chunks']:.0f}"
        text = f"batch decisions at least {BATCH} times as fast as numpy at {size}"
        goals.append(Goal(text, ratio >= BATCH, f"{ratio:.2f} times ({figures})"))
        right = row["differ"] == row["checked"] == row["armlet_right"]
        differ = f"{row['differ']:.0f} of 10^6 rows differ from numpy's"
        if row["differ"]:
            differ += f", exact arithmetic agrees with ours in {row['armlet_right']:.0f} of {row['checked']:.0f}"
        goals.append(Goal(f"batch arms identical to the float64 argmax at {size}", right, differ))
    return goals


def evaluate_goals(report: dict[str, float]) -> list[Goal]:
    """Hold the slowest way in, with checks, against OBP's four points and one interval, by CPU time."""
    ways = {name.removesuffix("_faster"): ratio for name, ratio in report.items() if name.endswith("_faster")}
    least = EVALUATED if report["rows"] >= MANY_ROWS else EVALUATED_FEW
    figures = ", ".join(f"{name} {ratio:.1f} times ({report[name]:.3g} s)" for name, ratio in ways.items())
    text = f"a table of {report['rows']:.0e} rows valued with {least:.0f} times less CPU time than by OBP"
    return [
        Goal(text, min(ways.values()) >= least, f"{figures}; OBP {report['obp']:.3g} s"),
        Goal(f"values within {AGREED:.0e} of OBP's", report["apart"] <= AGREED, f"{report['apart']:.1e}"),
    ]


def units_goals(report: UnitsReport) -> list[Goal]:
    """Hold the dearest policy at each size against the goal."""
    goals: list[Goal] = []
    for size, named in report.items():
        ratios = {name: units_ratio(times) for name, times in named.items()}
        shown = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
        text = f"free units at most {FREE_UNITS} times units as given at {size}, by the mean late step"
        goals.append(Goal(text, max(ratios.values()) <= FREE_UNITS, shown))
    return goals


def files_goals(report: FilesReport) -> list[Goal]:
    rows, sums, goals = report["rows"], report["sums"], []
    for units in ("as given", "free"):
        ratio = sums[units] / sums["numpy X'X"]
        which = f", {units}, {rows:.0e} rows"
        fits = [(name, fit["rate"]) for name, fit in report["fits"].items() if name.endswith(which)]
        figures = "; ".join(f"{name} {rate / 1e6:.1f} million" for name, rate in fits)
        figures += f"; the sums alone {sums[units] / 1e6:.1f} million, {ratio:.2f} of numpy's X'X"
        text = f"fit reads and learns {FITTED / 1e6:.0f} million rows a second and core, units {units}"
        goals.append(Goal(text, max(rate for _, rate in fits) >= FITTED, figures))
    for form in ("binary", "columns"):
        small, large = (report["fits"][f"{form}, free, {n:.0e} rows"]["megabytes"] for n in (rows // 10, rows))
        text = f"fit takes no more memory for ten times the rows, {form}"
        goals.append(Goal(text, large - small <= GROWN_MB, f"{small:.0f} MB, then {large:.0f} MB for {rows:.0e} rows"))
    return goals


def logged_goals(report: LoggedReport) -> list[Goal]:
    """Hold a logged step, a row of a log, and the slowest audit of a compiled policy against what was promised."""
    steps, learned = report["steps"], report["learned"]
    compiled = [audit for audit in report["audits"] if audit["compiled"]]
    shown = f"{steps['block']:.1f} us; by lines {steps['line']:.1f}, without a log {steps['none']:.2f}"
    figures = ", ".join(f"{name} {us:.2f} us" for name, us in learned.items())
    goals = [
        Goal(f"decide and learn with a log at most {LOGGED_US:.0f} us, by blocks", steps["block"] <= LOGGED_US, shown),
        Goal(
            f"partial_fit of a table at most {LEARNED_US:.0f} us a row, d = 32",
            max(learned.values()) <= LEARNED_US,
            figures,
        ),
    ]
    if compiled:
        slowest = min(compiled, key=lambda audit: min(audit["rates"]))
        text = f"audits of compiled policies at least {AUDITED:,.0f} decisions a second"
        figure = f"{min(slowest['rates']):,.0f} ({slowest['policy'].split('(')[0]}, the slowest of {len(compiled)})"
        goals.append(Goal(text, min(slowest["rates"]) >= AUDITED, figure))
    return goals


def clicks_goals(report: ClicksReport) -> list[Goal]:
    """Compare the first row of ours with every row of the peers, one by one; an interval must lie above 0."""
    if not report["peers"]:
        return []
    ours, rates = next(iter(report["ours"].items()))
    rng = np.random.default_rng(1)
    leads = {label: paired_difference(rates, theirs, rng) for label, theirs in report["peers"].items()}
    label, least = min(leads.items(), key=lambda item: item[1].low)
    shown = f"{100 * least.value:+.3f} [{100 * least.low:+.3f} to {100 * least.high:+.3f}] percentage points on {label}"
    text = f"{ours}: more clicks than every default of Vowpal Wabbit in {report['steps']:,} steps"
    return [Goal(text, least.low > 0, shown)]


def simulation_goals(report: SimulationReport) -> list[Goal]:
    """Compare whole simulations with the fastest peer's loop, with numpy, and with their random numbers alone."""
    steps = {name: min(times) for name, times in report["steps"].items()}
    ours = steps["armlet"]
    cached, floor = steps["cached"] / ours, ours / steps["numbers"]
    shown = f"{cached:.1f} times; {steps['stretches'] / ours:.1f} where numpy takes stretches at a time"
    below = f"{floor:.2f} times ({ours:.1f} and {steps['numbers']:.1f} ns a step)"
    return [
        *rival_goals(report["peers"], ours),
        Goal(f"simulation at least {SIMULATED_NUMPY:.0f} times cached numpy", cached >= SIMULATED_NUMPY, shown),
        Goal(
            f"simulation at most {SIMULATED_FLOOR:.0f} times drawing three numbers a step in numpy",
            floor <= SIMULATED_FLOOR,
            f"{below}; {ours / steps['philox']:.2f} times drawing the words that it does draw",
        ),
        far_goal(report["events"]),
        *worker_goals(report["workers"]),
    ]


def rival_goals(peers: dict[str, list[float]], ours: float) -> list[Goal]:
    if not peers:
        return []
    ratios = sorted((min(times) / ours, label) for label, times in peers.items())
    shown = "; ".join(f"{label} {significant(ratio)}" for ratio, label in ratios)
    text = f"simulation at least {SIMULATED:.0f} times the fastest peer's loop, its environment not charged to the peer"
    return [Goal(text, ratios[0][0] >= SIMULATED, shown)]


def far_goal(events: dict[str, list[float]]) -> Goal:
    near, far = min(events["near"]), min(events["far"])
    text = f"event-driven simulation of T = 10^12 at most {FAR:.0f} times T = 10^5"
    return Goal(text, far / near <= FAR, f"{far / near:.2f} times ({far:,.0f} and {near:,.0f} us a run)")


def worker_goals(workers: dict[str, list[float]]) -> list[Goal]:
    goals: list[Goal] = []
    given = f"the machine gave two threads up to {max(workers['cores']):.2f} cores"
    for name in ("processes", "threads"):
        one, two = workers[f"{name} 1"], workers[f"{name} 2"]
        ratio = min(one) / min(two)
        each = ", ".join(f"{a / b:.2f}" for a, b in zip(one, two, strict=True))
        text = f"two workers at least {TWO_WORKERS} times the throughput of one, {name}"
        goals.append(Goal(text, ratio >= TWO_WORKERS, f"{ratio:.2f} times (round by round {each}; {given})"))
    return goals
