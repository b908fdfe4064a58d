"""The benchmark of the server: ratios by rounds, its table and goals, and a run of the least that there is."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import serve
from goals import serve_goals
from run import PARTS
from serve import SETTINGS, Asked, Cell, Served, Spent
from serve_client import RefusedError, connected, decisions, run
from serve_report import Figure, ServeReport, ratios, serve_table
from store import Server as Database

COSTS = {"bare": 1.0, "raw": 1.0, "echo": 2.0, "mabwiser": 8.0, "sqlite": 2.0, "postgresql": 2.0}


def report(**ours: float) -> ServeReport:
    """Return a report of three rounds, each on a slower machine, in which a raw request costs one."""
    cells = [
        Cell(server, connections, kind)
        for server in SETTINGS
        for connections in serve.CONNECTIONS
        for kind in (("decide", "reward", "batch", "rewards") if SETTINGS[server].is_store else ("decide", "reward"))
    ]
    rounds = [{cell: Spent(k * cost_of(cell, ours), 1.0, 10) for cell in cells} for k in (1.0, 2.0, 3.0)]
    return serve.report_of(rounds, Asked(list(SETTINGS), serve.CONNECTIONS, 3, 1, 1.0))


def cost_of(cell: Cell, ours: dict[str, float]) -> float:
    if cell.server == "sqlite" and cell.kind in ours:
        return ours[cell.kind]
    return 0.5 if cell.kind in ("batch", "rewards") else COSTS[cell.server]


def test_ratios_are_of_one_round() -> None:
    found = report()
    assert ratios(found, [Figure("sqlite", "decide")], [Figure("raw", "decide")]) == [2.0] * 3
    both = [Figure("mabwiser", "decide"), Figure("mabwiser", "reward")]
    assert ratios(found, [Figure("sqlite", "decide")], both) == [0.125] * 3
    assert ratios(found, [Figure("sqlite", "decide", 2)], both) is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (report(), []),
        (report(decide=2.76, reward=1.0), [0]),
        (report(reward=3.01, decide=0.5), [1]),
        (report(batch=1.01), [2]),
        (report(decide=2.1), [3]),
    ],
)
def test_each_goal_can_be_missed(found: ServeReport, expected: list[int]) -> None:
    assert [i for i, goal in enumerate(serve_goals(found)) if not goal.met] == expected


def test_what_was_not_measured_has_no_goal() -> None:
    found = report()
    rows = [row for row in found["rows"] if row["server"] in ("raw", "sqlite")]
    assert len(serve_goals({"rows": rows})) == 3
    assert serve_goals({"rows": []}) == []


def test_a_table_has_a_row_for_each_kind_of_request() -> None:
    plain = json.loads(json.dumps(report()))
    lines = PARTS["serve"].table(plain)
    assert lines == serve_table(plain)
    assert len([line for line in lines if line.startswith("| ")]) == 2 + 4 * 2 + 2 * 4
    assert "+" in next(line for line in lines if "PostgreSQL " in line)


@pytest.mark.parametrize("server", ["raw", "sqlite"])
def test_a_server_answers_all_kinds_of_requests(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.find_postmaster", lambda _: None)
    monkeypatch.setattr("serve.SECONDS", 60.0)  # of a busy machine
    with Served(server, str(tmp_path / "bench.db"), Database("")) as served:
        found = asyncio.run(served.measure(4, 130))
    counts = {"decide": 130, "reward": 130} | ({"batch": 256, "rewards": 256} if server == "sqlite" else {})
    assert {kind: each.items for kind, each in found.items()} == counts
    assert all(each.cpu > 0.0 for each in found.values())


def test_what_a_server_refuses_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.find_postmaster", lambda _: None)

    async def ask(port: int) -> None:
        async with connected(port, 1) as opened:
            with pytest.raises(RefusedError, match=r"^HTTP/1\.1 4"):
                await run(opened, decisions([""]), b"", 5.0)

    with Served("sqlite", str(tmp_path / "bench.db"), Database("")) as served:
        asyncio.run(ask(served.port))


def test_a_server_that_cannot_start_ends_the_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.find_postmaster", lambda _: None)
    with pytest.raises(SystemExit, match="the server of 'armlet serve, SQLite FULL' has ended"):
        Served("sqlite", str(tmp_path / "no" / "bench.db"), Database(""))


def test_it_runs() -> None:
    script = Path(serve.__file__)
    with tempfile.TemporaryFile("w+") as errors:
        said = subprocess.run(
            [sys.executable, str(script), "--quick", "--servers", "bare,raw", "--connections", "1"],
            stdout=subprocess.PIPE,
            stderr=errors,
            check=True,
        )
    assert [row["server"] for row in json.loads(said.stdout)["rows"]] == ["bare", "bare", "raw", "raw"]
