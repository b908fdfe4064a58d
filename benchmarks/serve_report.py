"""What serve.py prints, and its table."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from report import aligned

BATCH = 64  # decisions or rewards of a request
KINDS = {
    "decide": "decide",
    "reward": "reward",
    "batch": f"decide, {BATCH} at once",
    "rewards": f"reward, {BATCH} at once",
}
SERVE_METHOD = """\
CPU time of the whole server process, user and system, a decision or a reward, while so many connections are kept busy;
after the "+", that of PostgreSQL's own processes. Medians over rounds; ratios are to a raw request of the same kind.
"""


class ServeRow(TypedDict):
    """Microseconds of CPU time a decision or a reward, round by round."""

    server: str  # short
    name: str
    kind: str  # of KINDS
    connections: int
    us: list[float]
    database_us: list[float]  # of PostgreSQL's own processes; none if there is none


class ServeReport(TypedDict):
    """What serve.py prints."""

    rows: list[ServeRow]


class Figure(NamedTuple):
    """Which row."""

    server: str
    kind: str
    connections: int = 64


def ratios(report: ServeReport, of: Sequence[Figure], by: Sequence[Figure]) -> list[float] | None:
    """Return the sum of some figures by that of others, round by round; None if one of them was not measured."""
    known = {Figure(row["server"], row["kind"], row["connections"]): row["us"] for row in report["rows"]}
    if any(figure not in known for figure in (*of, *by)):
        return None
    top = zip(*(known[figure] for figure in of), strict=True)
    bottom = zip(*(known[figure] for figure in by), strict=True)
    return [sum(ours) / sum(theirs) for ours, theirs in zip(top, bottom, strict=True)]


def serve_table(report: ServeReport) -> list[str]:
    """Lay out CPU time by server, kind of request and connections."""
    counts = sorted({row["connections"] for row in report["rows"]})
    texts = [["server", "request", *(f"at {count}" for count in counts), *(f"by raw, {count}" for count in counts)]]
    for server, kind in dict.fromkeys((row["server"], row["kind"]) for row in report["rows"]):
        rows = [row for row in report["rows"] if (row["server"], row["kind"]) == (server, kind)]
        texts.append([rows[0]["name"], KINDS[kind], *map(cost, rows), *(by_raw(report, row) for row in rows)])
    title = "## A request over HTTP, d = 16, K = 10: CPU time of the server in microseconds, by connections"
    return [title, "", SERVE_METHOD, *aligned(texts), ""]


def cost(row: ServeRow) -> str:
    beside = f" + {statistics.median(row['database_us']):.0f}" if row["database_us"] else ""
    return f"{statistics.median(row['us']):.0f}{beside}"


def by_raw(report: ServeReport, row: ServeRow) -> str:
    kind = "decide" if row["kind"] in ("decide", "batch") else "reward"
    ours = Figure(row["server"], row["kind"], row["connections"])
    found = ratios(report, [ours], [Figure("raw", kind, row["connections"])])
    return "-" if found is None else f"{statistics.median(found):.2f}"
