"""What store.py and growth.py print, and their tables."""

import statistics
from typing import TypedDict

from report import aligned

STORE_HEADINGS = (
    "store",
    "callers are",
    "callers",
    "pairs/s",
    "of rounds",
    "client us",
    "server us",
    "first quarter",
    "last quarter",
    "calls a commit",
    "trips a commit",
    "rows",
)
STORE_METHOD = """\
Each caller decides and then reports the reward, again and again; both are durable on return. With two replicas, each
has so many callers, and figures are of both together. CPU time is that of a pair, of all client processes and of all of
the server's; the quarters are of both. Figures are medians over rounds.
"""


GROWTH_HEADINGS = ("rows", "MB of memory", "CPU us a pair", "pairs/s", "file MB", "WAL MB")


class StoreRow(TypedDict):
    """What store.py prints of one row: medians over rounds; CPU time in microseconds a pair."""

    name: str
    door: str
    callers: int
    rates: list[float]  # pairs a second, round by round
    rate: float
    pairs: int
    client_us: float
    server_us: float | None  # None if there is no server, or it is not of this machine
    first_us: float  # of both, in the first quarter
    last_us: float
    batch: float  # calls a commit
    trips: float | None  # round trips a commit


class StoreReport(TypedDict):
    """What store.py prints; ratios are by callers and door, round by round."""

    seconds: float  # a row
    rows: list[StoreRow]
    one_loop: dict[str, list[float]]
    one_loop_equal_load: dict[str, list[float]]
    two_loops: dict[str, list[float]]


class Grown(TypedDict):
    """What a store takes when it has so many rows; CPU time and rate are since the last look."""

    rows: int
    rss_mb: float
    file_mb: float
    wal_mb: float
    rate: float  # pairs a second
    cpu_us: float  # a pair


class Started(TypedDict):
    """What it takes to have a loop's model again."""

    check_seconds: float  # to open the file, which is checked
    seconds: float
    cpu_seconds: float
    rss_mb: float
    most_mb: float
    before_mb: float  # of a process that has imported Armlet


class ManyLoops(TypedDict):
    """What many loops in one store take."""

    loops: int
    made_mb: float
    rss_mb: list[float]  # while they are used, twice
    most_mb: float
    cpu_us: list[float]  # a pair, the first time and the second
    open_seconds: float
    file_mb: float


class GrowthReport(TypedDict):
    """What growth.py prints."""

    grown: list[Grown]
    started: Started
    replayed: Started
    many: ManyLoops | None


def store_table(report: StoreReport) -> list[str]:
    """Lay out durable pairs a second, what they cost, and how two replicas do next to one."""
    rows = [store_texts(row) for row in report["rows"]]
    title = "## Durable decisions and rewards, d = 32, K = 8: pairs a second, and CPU time of a pair"
    ratios = [
        *ratio_lines("two replicas on one loop, in rates of one with as many callers as each", report["one_loop"]),
        *ratio_lines("the same, of one with as many callers as both", report["one_loop_equal_load"]),
        *ratio_lines("two replicas on two loops, of one with as many callers as each", report["two_loops"]),
    ]
    return [title, "", STORE_METHOD, *aligned([list(STORE_HEADINGS), *rows]), "", *ratios, ""]


def store_texts(row: StoreRow) -> list[str]:
    server, trips = row["server_us"], row["trips"]
    return [
        row["name"],
        row["door"],
        str(row["callers"]),
        f"{row['rate']:,.0f}",
        f"{min(row['rates']):,.0f} to {max(row['rates']):,.0f}",
        f"{row['client_us']:.0f}",
        "-" if server is None else f"{server:.0f}",
        f"{row['first_us']:.0f}",
        f"{row['last_us']:.0f}",
        f"{row['batch']:.1f}",
        "-" if trips is None else f"{trips:.2f}",
        f"{2 * row['pairs']:,}",
    ]


def ratio_lines(text: str, by_callers: dict[str, list[float]]) -> list[str]:
    """Write one line of medians with the lowest and the highest of the rounds."""
    shown = [
        f"{callers} {statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"
        for callers, found in by_callers.items()
    ]
    return [f"- {text}: {'; '.join(shown)}"] if shown else []


def growth_table(report: GrowthReport) -> list[str]:
    """Lay out what a loop takes as it grows, its restart and replay, and many loops."""
    rows = [growth_texts(each) for each in report["grown"]]
    title = "## A store that grows: SQLite NORMAL, 64 callers, d = 8, K = 5"
    us = 1e6 * report["replayed"]["cpu_seconds"] / report["grown"][-1]["rows"]
    lines = [
        started_line("start from the snapshot", report["started"]),
        f"{started_line('replay of all rows', report['replayed'])}; {us:.2f} us of CPU time a row",
        *([] if report["many"] is None else [many_line(report["many"])]),
    ]
    return [title, "", *aligned([list(GROWTH_HEADINGS), *rows]), "", *(f"- {line}" for line in lines), ""]


def growth_texts(grown: Grown) -> list[str]:
    memory, sizes = f"{grown['rss_mb']:.0f}", [f"{grown['file_mb']:.1f}", f"{grown['wal_mb']:.1f}"]
    return [f"{grown['rows']:,}", memory, f"{grown['cpu_us']:.1f}", f"{grown['rate']:,.0f}", *sizes]


def started_line(text: str, found: Started) -> str:
    check, seconds = found["check_seconds"], found["seconds"]
    memory = f"{found['rss_mb']:.0f} MB, {found['most_mb']:.0f} at most, {found['before_mb']:.0f} before"
    return f"{text}: {seconds:.3g} s, after {check:.3g} s to open the file; {memory}"


def many_line(found: ManyLoops) -> str:
    memory = ", ".join(f"{each:.0f}" for each in found["rss_mb"])
    first, second = found["cpu_us"]
    return (
        f"{found['loops']:,} loops: {found['made_mb']:.0f} MB when all are made, then {memory} while they are used "
        f"twice, {found['most_mb']:.0f} at most; {first:.0f} us a pair, {second:.0f} the second time; "
        f"file {found['file_mb']:.0f} MB, opened in {found['open_seconds']:.3g} s"
    )
