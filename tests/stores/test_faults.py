"""What stores survive: kill -9, a full disk, clocks that jump, threads that race, damaged rows, forks."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import apsw
import pytest

import armlet
from armlet.stores import Loop, SQLite, Store
from armlet.stores.writer import ClockWarning
from soak import traffic
from soak.kill import soak
from soak.oracle import LostError
from support.loops import Ticks
from support.stores import rebuilt

DAY = 86_400.0


def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    report = soak(tmp_path / "soak.db", kills=5, filled=500)
    assert report.kills == 5
    assert min(report.decisions - 500, report.repeats, report.rewards, report.learned) > 20


BROKEN = {
    "answers too early": "and then|was decided, and|nobody asked|is not kept|is not the sum",
    "rank ignored": "nothing conflicts with|nothing outranks|two values",
    "snapshot off by one": "is not what its rows say|is not the sum",
}


@pytest.mark.parametrize("sabotage", BROKEN)
def test_the_soak_finds_a_store_that_breaks_a_promise(sabotage: str, tmp_path: Path) -> None:
    with pytest.raises(LostError, match=BROKEN[sabotage]):
        soak(tmp_path / "soak.db", 50, filled=200, sabotage=sabotage)  # ends with the check that finds it


def test_a_store_is_exact_after_maintenance_in_traffic(tmp_path: Path) -> None:
    """How long decisions take is for `make soak` to judge, on a machine that does nothing else."""
    report = traffic.soak(tmp_path / "soak.db", rounds=2, seconds=0.3)
    assert min(report.forgotten, report.windows, report.changes) > 0


def make(store: Store, **more: object) -> Loop:
    return store.loop("homepage", arms=["a", "b"], dim=2, policy=armlet.LinUCB(), seed=3, **more)  # type: ignore[arg-type]


def fill(loop: Loop, record: list[str]) -> str:
    """Decide and reward until that is refused; give the words."""
    for i in range(len(record), 400):
        try:
            record.append(loop.decide([1.0, i / 8], event=f"e{i}").id)
            loop.reward(f"e{i}", 0.5)
        except armlet.errors.StoreError as error:
            return str(error)
    raise AssertionError("the disk was never full")


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    ledger = SQLite(tmp_path / "shop.db")
    with Store(ledger) as store:
        loop = make(store)
        record = [loop.decide([1.0, i / 8], event=f"e{i}").id for i in range(20)]
        pages = ledger._connection.pragma("page_count")
        ledger._connection.pragma("max_page_count", pages)
        refusal = fill(loop, record)
        assert "nothing of this call was kept" in refusal
        assert "full" in refusal
        with pytest.raises(armlet.errors.StoreError, match="full"):
            loop.decide([0.0, 0.0], event="still full" * 20)
        before = loop.model()
        assert before.to_bytes() == rebuilt(store).to_bytes()
        ledger._connection.pragma("max_page_count", 2**31)  # somebody has made room
        assert loop.decide([1.0, 0.0], event="room").t == before.t + 1
        again = [loop.decide([1.0, i / 8], event=f"e{i}").id for i in range(len(record))]
        assert again == record
        after = loop.model().to_bytes()
        assert after == rebuilt(store).to_bytes()
    with armlet.open_store(tmp_path / "shop.db") as store:
        assert store.loop("homepage").model().to_bytes() == after


def test_an_error_of_the_disk_ends_the_store(tmp_path: Path) -> None:
    """A disk that has failed to write may not know what it has: nothing is tried again before a fresh start."""
    ledger = SQLite(tmp_path / "shop.db")
    store = Store(ledger)
    loop = make(store)
    first = loop.decide([1.0, 0.5], event="e").id

    def fail(*_: object) -> bool:
        raise apsw.IOError("disk I/O error")

    ledger._connection.set_commit_hook(fail)
    with pytest.raises(armlet.errors.StoreError, match="disk I/O error"):
        loop.decide([1.0, 0.5], event="f")
    ledger._connection.set_commit_hook(None)
    with pytest.raises(armlet.errors.StoreError, match="failed before"):
        loop.decide([1.0, 0.5], event="f")
    with pytest.raises(armlet.errors.StoreError, match="failed before"):
        store.close()
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("homepage")
        assert loop.decide([1.0, 0.5], event="e").id == first
        assert loop.decide([1.0, 0.5], event="f").t == 2


@pytest.mark.parametrize("jump", [-3 * DAY, -DAY, DAY])
def test_windows_close_on_time_when_the_wall_clock_jumps(jump: float, tmp_path: Path) -> None:
    wall, elapsed = Ticks(1e9), Ticks(50.0)
    with armlet.open_store(tmp_path / "shop.db", wall=wall, elapsed=elapsed) as store:
        loop = make(store, window=600.0, default_reward=0.0)
        loop.decide([1.0, 0.5], event="e")
        wall.now += jump  # nobody asks it again
        elapsed.now += 599
        assert loop.model().state.n.sum() == 0
        elapsed.now += 1
        assert loop.model().state.n.sum() == 1
        elapsed.now += DAY
        assert loop.model().state.n.sum() == 1
        assert [row.kind for row in loop._ledger.rows(1)] == ["decide", "learn"]


@pytest.mark.parametrize(
    ("jump", "left", "words"),
    [
        (-365 * DAY, 600, "365.0 days before the newest row"),
        (-DAY, 600, "1.0 days before"),
        (-1.0, 600, None),
        (100.0, 500, None),
        (DAY, 0, None),
        (7 * DAY + 1, 600, "7.0 days after the newest row"),
        (365 * DAY, 600, "365.0 days after"),
    ],
)
def test_windows_stay_open_no_longer_after_a_restart_than_the_clocks_can_tell(
    jump: float, left: int, words: str | None, tmp_path: Path
) -> None:
    """Set back while nobody ran, or far ahead, the clock is not believed: windows go on from where they were."""
    wall, elapsed = Ticks(1e9), Ticks(50.0)
    with armlet.open_store(tmp_path / "shop.db", wall=wall, elapsed=elapsed) as store:
        make(store, window=600.0, default_reward=0.0).decide([1.0, 0.5], event="e")
    wall.now += jump
    elapsed.now = 7.0
    with opened(tmp_path / "shop.db", wall, elapsed, words) as store:
        loop = store.loop("homepage")
        for now, learned in ((left - 1, 0), (left, 1), (left + 1, 1)):
            elapsed.now = 7.0 + now
            if now >= 0:
                assert loop.model().state.n.sum() == learned
        assert [row.ts for row in loop._ledger.rows(1)] == [10**15, round(wall.now * 1e6)]


def opened(path: Path, wall: Ticks, elapsed: Ticks, words: str | None = None) -> Store:
    """Open a store, with a warning that has these words, or with none."""
    if words is None:
        return armlet.open_store(path, wall=wall, elapsed=elapsed)
    with pytest.warns(ClockWarning, match=words):
        return armlet.open_store(path, wall=wall, elapsed=elapsed)


def test_a_boot_with_the_clock_a_year_ahead_leaves_no_trace_after_the_next(tmp_path: Path) -> None:
    wall, elapsed = Ticks(1e9), Ticks(50.0)
    with opened(tmp_path / "shop.db", wall, elapsed) as store:
        make(store, window=600.0, default_reward=0.0).decide([1.0, 0.5], event="before")
    wall.now += 365 * DAY
    with opened(tmp_path / "shop.db", wall, elapsed, "days after the newest row") as store:
        loop = store.loop("homepage")
        loop.decide([1.0, 0.5], event="ahead")
        assert loop.reward("before", 1.0) == "accepted"
    wall.now -= 365 * DAY
    with opened(tmp_path / "shop.db", wall, elapsed, "days before the newest row") as store:
        loop = store.loop("homepage")
        loop.decide([1.0, 0.5], event="after")
        elapsed.now += 599
        assert loop.model().state.n.sum() == 0
        elapsed.now += 1
        wall.now += 600
        assert loop.model().state.n.sum() == 3
        stamps = {row.fields.get("event", row.kind): row.ts for row in loop._ledger.rows(1)}
        assert stamps["after"] == 10**15
        assert stamps["learn"] == 10**15 + 600 * 10**6
    with opened(tmp_path / "shop.db", wall, elapsed) as store:  # and there is nothing left to warn of
        assert store.loop("homepage").model().state.n.sum() == 3


def test_a_clock_that_is_set_right_while_a_store_is_open_stamps_right_from_then_on(tmp_path: Path) -> None:
    wall, elapsed = Ticks(0.0), Ticks(50.0)  # no network yet
    with opened(tmp_path / "shop.db", wall, elapsed) as store:
        loop = make(store, window=600.0, default_reward=0.0)
        loop.decide([1.0, 0.5], event="e")
        wall.now = 1e9
        loop.decide([1.0, 0.5], event="f")
        assert [row.ts for row in loop._ledger.rows(1)] == [0, 10**15]
        elapsed.now += 599
        assert loop.model().state.n.sum() == 0


def test_threads_that_race_for_one_event_get_one_answer(tmp_path: Path) -> None:
    answers: list[str] = []
    statuses: list[str] = []
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = make(store)

        def race() -> None:
            for i in range(10):
                answers.append(loop.decide([1.0, 0.5], event=f"e{i}").id)
                statuses.append(loop.reward(f"e{i}", 0.5))

        threads = [threading.Thread(target=race) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 80
        assert len(set(answers)) == 10
        assert statuses.count("accepted") == 10
        assert statuses.count("duplicate") == 70
        model = loop.model()
        assert (model.t, model.state.n.sum()) == (10, 10)
        assert model.to_bytes() == rebuilt(store).to_bytes()


def test_a_damaged_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with armlet.open_store(path) as store:
        loop = make(store)
        for i in range(5):
            loop.decide([1.0, 0.5], event=f"e{i}")
            loop.reward(f"e{i}", 0.5)
    connection = apsw.Connection(str(path))
    connection.execute("""UPDATE event SET fields = replace(fields, '0.5', '0.7') WHERE seq = 6""")
    connection.execute("DELETE FROM snapshot")
    connection.close()
    with (
        armlet.open_store(path) as store,
        pytest.raises(armlet.errors.StoreError, match="row 6 of the loop is damaged"),
    ):
        store.loop("homepage")


def test_a_damaged_snapshot_is_made_again_from_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with armlet.open_store(path) as store:
        loop = make(store)
        for i in range(5):
            loop.decide([1.0, 0.5], event=f"e{i}")
            loop.reward(f"e{i}", 0.5)
        before = loop.model().to_bytes()
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE snapshot SET model = CAST(substr(model, 1, length(model) - 8) || zeroblob(8) AS BLOB)")
    assert connection.changes() == 1
    connection.close()
    with armlet.open_store(path) as store:
        assert store.loop("homepage").model().to_bytes() == before


def test_a_child_of_a_fork_is_told_to_open_its_own(tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = make(store)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                loop.decide([1.0, 0.5])
            except armlet.errors.StoreError as error:
                os.write(write, str(error).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as answer:
            assert b"opened before a fork" in answer.read()
        os.waitpid(child, 0)
        assert loop.decide([1.0, 0.5]).t == 1


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = armlet.open_store(tmp_path / "shop.db")
    loop = make(store)
    store.close()
    with pytest.raises(armlet.errors.StoreError, match="closed"):
        loop.decide([1.0, 0.5])
    for call in (lambda: store.loops, lambda: loop.log, lambda: store.backup(tmp_path / "copy.db")):
        with pytest.raises(armlet.errors.StoreError, match="closed"):
            call()
    store.close()  # once more is fine
    with armlet.open_store(tmp_path / "shop.db") as store:
        store.close()
