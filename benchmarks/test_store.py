"""The benchmarks of stores: figures by marks, ratios by rounds, tables, goals, and a run of the least that there is."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import growth
import store
from goals import Goal, growth_goals, store_goals
from run import PARTS
from store import ONE, ONE_LOOP, SETTINGS, TWO_LOOPS, Cell, Figures, Server
from store_report import Grown, GrowthReport, ManyLoops, Started, StoreReport, growth_table, store_table
from store_worker import Job, Mark
from writer import compare, medians


def figures(rate: float, *, trips: float = 2.0, last_us: float = 100.0) -> Figures:
    return Figures(
        rate=rate,
        pairs=8000,
        client_us=60.0,
        server_us=40.0,
        first_us=100.0,
        last_us=last_us,
        batch=16.0,
        trips=trips,
    )


def report(one_loop: float = 0.9, two_loops: float = 1.7, *, trips: float = 2.0, last_us: float = 100.0) -> StoreReport:
    """Return a report in which a caller alone gets 100 pairs a second, and several 1,000."""
    times = {ONE_LOOP: one_loop, TWO_LOOPS: two_loops}
    taken = {}
    for cell in store.cells():
        rate = (100.0 if cell.callers == 1 else 1000.0) * times.get(cell.setting, 1.0)
        taken[cell] = [figures(rate, trips=trips, last_us=last_us)] * 3
    return store.report_of(taken, 4.0)


def grown(more_mb: float = 5.0, *, cpu_us: float = 80.0, most_mb: float = 300.0) -> GrowthReport:
    started: Started = {
        "check_seconds": 1.0,
        "seconds": 0.5,
        "cpu_seconds": 0.4,
        "rss_mb": 60.0,
        "most_mb": 70.0,
        "before_mb": 50.0,
    }
    first: Grown = {"rows": 10, "rss_mb": 60.0, "file_mb": 1.0, "wal_mb": 4.0, "rate": 9.0, "cpu_us": 80.0}
    last: Grown = {**first, "rows": 100, "rss_mb": 60.0 + more_mb, "cpu_us": cpu_us}
    many: ManyLoops = {
        "loops": 3,
        "made_mb": 1.0,
        "rss_mb": [2.0],
        "most_mb": most_mb,
        "cpu_us": [1.0, 2.0],
        "open_seconds": 0.1,
        "file_mb": 1.0,
    }
    return {"grown": [first, last], "started": started, "replayed": started, "many": many}


# ---- figures


def test_figures_are_of_all_replicas_and_the_server() -> None:
    replicas = [
        [Mark(10.0 + k, n * (1.0 + 0.1 * k), 100 * n * k, 10 * n * k, 200 * n * k, 20 * n * k) for k in range(5)]
        for n in (1, 3)
    ]
    found = store.figures(replicas, [5.0, 5.1, 5.2, 5.3, 5.8])
    assert (found.rate, found.pairs, found.batch, found.trips) == (400.0, 1600, 20.0, 2.0)
    assert [found.client_us, found.server_us] == pytest.approx([1000.0, 500.0])
    assert [found.first_us, found.last_us] == pytest.approx([1e6 * 0.5 / 400, 1e6 * 0.9 / 400])


def test_a_server_that_is_not_seen_has_no_figure() -> None:
    marks = [Mark(at=float(k), cpu=0.1 * k, pairs=k, commits=k, calls=k, trips=0) for k in range(5)]
    found = store.figures([marks], [None] * 5)
    assert found.server_us is None
    assert found.first_us == pytest.approx(1e5)


def test_the_cpu_time_of_a_server_includes_children_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    child = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"]
    script = f"import subprocess; subprocess.run({child!r}); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        monkeypatch.setattr(store, "find_postmaster", lambda _: parent.pid)
        server = Server("")
        assert parent.stdout is not None
        parent.stdout.readline()
        assert (server.cpu() or 0.0) >= 0.3
        parent.communicate(b"\n")


def test_what_is_compared_is_measured_next_to_each_other() -> None:
    cells = store.cells()
    assert len(set(cells)) == len(cells) == 2 * (len(SETTINGS) * 3 + 1)
    for setting in (ONE_LOOP, TWO_LOOPS):
        for cell in (cell for cell in cells if cell.setting is setting):
            assert 0 < cells.index(cell) - cells.index(cell._replace(setting=ONE)) <= 2


def test_ratios_are_of_one_round() -> None:
    taken = {cell: [figures(100.0), figures(10.0)] for cell in store.cells()}
    taken[Cell(ONE_LOOP, "async", 64)] = [figures(80.0), figures(11.0)]
    taken[Cell(ONE, "async", 128)] = [figures(160.0), figures(22.0)]
    assert store.ratios(taken, ONE_LOOP)["64 async"] == [0.8, 1.1]
    assert store.ratios(taken, ONE_LOOP, 2) == {"64 threads": [1.0, 1.0], "64 async": [0.5, 0.5]}


def test_replicas_of_two_loops_have_one_each() -> None:
    jobs = store.jobs_of(Cell(TWO_LOOPS, "async", 16), "bench")
    assert [(job.loop, job.replica, job.callers) for job in jobs] == [("loop-0", 0, 16), ("loop-1", 1, 16)]
    assert {job.loop for job in store.jobs_of(Cell(ONE_LOOP, "async", 16), "bench")} == {"loop-0"}


# ---- goals and tables


def missed(goals: list[Goal]) -> list[int]:
    return [i for i, goal in enumerate(goals) if not goal.met]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (report(), []),
        (report(one_loop=0.84), [2]),
        (report(two_loops=1.59), [3]),
        (report(trips=6.1), [4]),
        (report(last_us=151.0), [5]),
    ],
)
def test_each_goal_of_a_store_can_be_missed(found: StoreReport, expected: list[int]) -> None:
    assert missed(store_goals(found)) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [(grown(), []), (grown(31.0), [0]), (grown(cpu_us=121.0), [1]), (grown(most_mb=601.0), [2])],
)
def test_each_goal_of_growth_can_be_missed(found: GrowthReport, expected: list[int]) -> None:
    assert missed(growth_goals(found)) == expected


def test_reports_are_laid_out_as_json_brings_them() -> None:
    for name, found in (("store", report()), ("growth", grown())):
        plain = json.loads(json.dumps(found))
        assert PARTS[name].table(plain) == (store_table(plain) if name == "store" else growth_table(plain))
        assert len(PARTS[name].goals(plain)) > 2


def test_a_table_has_a_row_for_each_cell_and_a_line_for_each_ratio() -> None:
    lines = store_table(report())
    assert len([line for line in lines if line.startswith("| ")]) == len(store.cells()) + 2
    assert [line for line in lines if line.startswith("- two replicas on one loop")] == [
        "- two replicas on one loop, in rates of one with as many callers as each: "
        + "; ".join(f"{n} {door} 0.90 (0.90 to 0.90)" for door in ("threads", "async") for n in (1, 16, 64))
    ]


def test_trees_are_compared_by_medians() -> None:
    old, new = [{"replay": cost} for cost in (4.0, 9.0, 2.0)], [{"replay": cost} for cost in (1.0, 1.0, 7.0)]
    assert compare(medians(old), medians(new)) == {"replay": {"old": 4.0, "new": 1.0, "ratio": 0.25}}


# ---- a run


def test_a_replica_counts_what_its_callers_did(tmp_path: Path) -> None:
    for door in store.DOORS:
        place = tmp_path / f"{door}.db"
        job = Job(ledger="NORMAL", place=str(place), loop="a", replica=0, door=door, callers=4)
        with tempfile.TemporaryFile("w+") as errors, store.Replica(job, "", errors) as replica:
            assert replica.line() == "ready\n"
            replica.tell(f"{time.monotonic() + 0.1} 0.2")
            marks = [Mark(*each) for each in json.loads(replica.line())]
        assert [mark.pairs for mark in marks] == sorted(mark.pairs for mark in marks)
        assert all(mark.calls >= 2 * mark.pairs for mark in marks)  # pairs are counted later, and looked at before
        assert marks[-1].trips == 0 < marks[-1].pairs


def test_a_replica_that_fails_says_why(tmp_path: Path) -> None:
    job = Job(ledger="NORMAL", place=str(tmp_path / "no" / "a.db"), loop="a", replica=0, door="async", callers=1)
    with (
        tempfile.TemporaryFile("w+") as errors,
        pytest.raises(SystemExit, match="StoreError"),
        store.Replica(job, "", errors) as replica,
    ):
        replica.line()


def test_a_store_that_grows_is_started_and_replayed_to_the_same_model(tmp_path: Path) -> None:
    found = growth.measure(tmp_path, 640, 20)
    assert [each["rows"] for each in found["grown"]] == [128 * k for k in range(1, 11)]
    assert found["many"] is not None
    assert (found["many"]["loops"], len(found["many"]["rss_mb"])) == (20, 10)
