"""Old rows are pruned, people are forgotten, files are copied and brought up to date: the state stays what it was."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import apsw
import numpy as np
import pytest

import armlet
from armlet.errors import StoreError
from armlet.stores import Loop, SQLite, Store, writer
from armlet.stores.maintenance import FORGOTTEN
from armlet.stores.sqlite import ledger as sqlite_ledger
from armlet.stores.sqlite.ledger import VERSION
from armlet.testing.stores import Place, _Failing
from support.loops import Ticks
from support.stores import rebuilt


def rows_of(loop: Loop) -> list[tuple[str, int | None]]:
    return [(row.kind, row.t) for row in loop._ledger.rows(loop._runner.id)]


def play(loop: Loop, start: int, n: int) -> list[armlet.Decision]:
    decisions = []
    for i in range(start, start + n):
        decisions.append(loop.decide([1.0, i / 8], event=f"e{i}"))
        loop.reward(f"e{i}", float(i % 2))
    return decisions


def make(store: Store, policy: armlet.Policy, name: str = "homepage") -> Loop:
    return store.loop(name, arms=["a", "b"], dim=2, policy=policy, seed=3)


@pytest.mark.parametrize("policy", [armlet.Algorithm1(p=6), armlet.LinUCB()])
def test_pruning_keeps_what_explored_and_what_was_learned(policy: armlet.Policy, tmp_path: Path) -> None:
    ticks = Ticks(1e9)
    path = tmp_path / "shop.db"
    with armlet.open_store(path, wall=ticks, elapsed=ticks) as store:
        loop = make(store, policy)
        old = play(loop, 0, 60)
        ticks.now += 100
        new = play(loop, 60, 20)
        before = loop.model().to_bytes()
        pruned = store.prune(datetime.fromtimestamp(1e9 + 50, UTC))
        record = [decision.t for decision in old if decision.explored] + [decision.t for decision in new]
        assert pruned == 80 - len(record) > 0
        assert [t for kind, t in rows_of(loop) if kind == "decide"] == record
        assert [t for kind, t in rows_of(loop) if kind == "learn"] == record
        assert loop.model().to_bytes() == before == rebuilt(store).to_bytes()
        gone = next(i for i, decision in enumerate(old) if not decision.explored)
        assert loop.reward(f"e{gone}", 1.0) == "unknown"
        play(loop, 80, 20)
        after = loop.model().to_bytes()
        assert rebuilt(store).to_bytes() == after
    with armlet.open_store(path, wall=ticks, elapsed=ticks) as store:
        assert store.loop("homepage").model().to_bytes() == after


def test_open_windows_are_not_pruned(tmp_path: Path) -> None:
    ticks = Ticks(1e9)
    with armlet.open_store(tmp_path / "shop.db", wall=ticks, elapsed=ticks) as store:
        loop = store.loop("homepage", arms=["a"], dim=1, policy=armlet.LinUCB(), window=60.0, default_reward=0.0)
        loop.decide([1.0], event="e")
        ticks.now += 30
        assert store.prune(1e9 + 20) == 0
        assert loop.reward("e", 1.0) == "accepted"
        ticks.now += 31
        assert store.prune(1e9 + 20) == 1
        assert loop.model().state.n.tolist() == [1.0]


def test_a_time_without_a_zone_is_refused(tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        with pytest.raises(ValueError, match=r"no time zone"):
            store.prune(datetime(2026, 1, 1))
        with pytest.raises(ValueError, match=r"before is nan"):
            store.prune(float("nan"))


def test_forgetting_unlearns_and_leaves_no_byte_of_the_context(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    mark = 0.7310585786300049
    needle, name = struct.pack("<d", mark), "a-person-with-a-name"
    with armlet.open_store(path) as store:
        loop = make(store, armlet.LinUCB(units="as given"))
        play(loop, 0, 30)
        decision = loop.decide([1.0, mark], event=name)
        play(loop, 30, 5)
        without = loop.model()
        loop.reward(name, 0.5)
        files = [path, path.with_name("shop.db-wal")]
        assert any(needle in file.read_bytes() for file in files)
        assert loop.forget(name)
        assert not loop.forget(name)
        assert not any(needle in file.read_bytes() or name.encode() in file.read_bytes() for file in files)
        np.testing.assert_allclose(loop.model().state.b, without.state.b, rtol=1e-13)
        assert loop.model().state.n.tolist() == without.state.n.tolist()
        assert loop.reward(name, 0.5) == "unknown"
        row = next(row for row in loop._ledger.rows(loop._runner.id) if row.t == decision.t)
        assert (row.fields["arm"], row.x) == (decision.arm, None)
        play(loop, 35, 10)
        after = loop.model().to_bytes()
        assert rebuilt(store).to_bytes() == after
    with armlet.open_store(path) as store:
        assert store.loop("homepage").model().to_bytes() == after


def test_forgetting_before_a_reward_deletes_only(tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = make(store, armlet.OFUL())  # which does not count what is under way
        loop.decide([1.0, 0.5], event="e")
        before = loop.model().to_bytes()
        assert loop.forget("e")
        assert loop.model().to_bytes() == before == rebuilt(store).to_bytes()
        assert loop.decide([1.0, 0.25], event="e").t == 2  # it is a new event now


def test_a_backup_is_a_store_of_its_own(tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = make(store, armlet.LinUCB())
        play(loop, 0, 20)
        then = loop.model().to_bytes()
        store.backup(tmp_path / "copy.db")
        play(loop, 20, 5)
        with pytest.raises(armlet.errors.StoreError, match=r"copy.db exists"):
            store.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600  # it holds seeds
    with armlet.open_store(tmp_path / "copy.db") as store:
        assert store.loop("homepage").model().to_bytes() == then == rebuilt(store).to_bytes()


def test_a_backup_in_traffic_goes_on_exactly_from_its_moment(tmp_path: Path) -> None:
    """What is restored is a prefix of what was written, and answers from there on as the store itself did."""
    copy = tmp_path / "copy.db"
    with Store(SQLite(tmp_path / "shop.db", synchronous="NORMAL"), wall=lambda: 1e9, elapsed=lambda: 0.0) as store:
        loop = make(store, armlet.LinUCB())
        play(loop, 0, 50)
        decisions: list[armlet.Decision] = []
        with ThreadPoolExecutor(1) as other:
            traffic = other.submit(lambda: decisions.extend(play(loop, 50, 150)))
            while (head := store._ledger.head(loop._runner.id)) is None or head.seq < 110:
                pass
            store.backup(copy)
            traffic.result()
        rows, final = list(store._ledger.rows(loop._runner.id)), loop.model().to_bytes()
        decided = {decision.t: decision.id for decision in decisions}
    with Store(SQLite(copy, synchronous="NORMAL"), wall=lambda: 1e9, elapsed=lambda: 0.0) as store:
        loop = store.loop("homepage")
        kept = list(store._ledger.rows(loop._runner.id))
        assert kept == rows[: len(kept)]
        assert len(kept) >= 110
        assert rebuilt(store).to_bytes() == loop.model().to_bytes()
        assert armlet.audit(loop.log.replayable, loop.log.start).digest == loop.model().digest()
        again = {decision.t: decision.id for decision in play(loop, loop.model().t - 1, 201 - loop.model().t)}
        assert {t: decided[t] for t in again if t > 50} == {t: name for t, name in again.items() if t > 50}
        assert list(store._ledger.rows(loop._runner.id)) == rows
        assert loop.model().to_bytes() == final


def test_a_backup_restored_over_a_store_that_was_lost_knows_what_was_told_before(tmp_path: Path) -> None:
    path, copy = tmp_path / "shop.db", tmp_path / "copy.db"
    with armlet.open_store(path) as store:
        loop = make(store, armlet.Algorithm1(p=6))
        before = play(loop, 0, 20)
        waiting = loop.decide([1.0, 0.5], event="waits")
        store.backup(copy)
        assert loop.reward("waits", 1.0) == "accepted"  # after the backup: lost with the store
        play(loop, 20, 5)
    for file in tmp_path.glob("shop.db*"):
        file.unlink()
    copy.rename(path)
    with armlet.open_store(path) as store:
        loop = store.loop("homepage")
        assert [loop.decide(d.x, event=f"e{i}").id for i, d in enumerate(before)] == [d.id for d in before]
        assert [loop.reward(f"e{i}", float(i % 2)) for i in range(20)] == ["duplicate"] * 20
        assert loop.decide(waiting.x, event="waits").id == waiting.id
        assert loop.reward("waits", 1.0) == "accepted"
        assert loop.reward("e20", 1.0) == "unknown"
        assert loop.decide([1.0, 0.0], event="e20").t == waiting.t + 1
        assert loop.model().to_bytes() == rebuilt(store).to_bytes()


@pytest.mark.parametrize("version", [1, 5, VERSION + 1])
def test_a_file_of_another_version_is_refused_and_left_alone(version: int, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    armlet.open_store(path).close()
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", version)
    connection.close()
    before = path.read_bytes()
    known = f"6 and {VERSION - 1} and {VERSION}"
    message = f"shop.db is a store of version {version}; this Armlet reads {known} only: use the one that wrote it"
    with pytest.raises(armlet.errors.StoreError, match=message):
        armlet.open_store(path)
    assert path.read_bytes() == before


def test_tables_that_cannot_be_made_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shop.db"
    tables = f"{sqlite_ledger.TABLES[VERSION]} INSERT INTO nowhere VALUES (1);"
    monkeypatch.setattr(sqlite_ledger, "TABLES", {VERSION: tables})
    with pytest.raises(armlet.errors.StoreError, match=r"cannot be opened: .*nowhere"):
        armlet.open_store(path)
    assert list(tmp_path.iterdir()) == []
    path.touch()  # of somebody else
    with pytest.raises(armlet.errors.StoreError, match=r"cannot be opened: .*nowhere"):
        armlet.open_store(path)
    monkeypatch.undo()
    with armlet.open_store(path) as store:
        assert store.loops == []


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE people (name)")
    connection.close()
    with pytest.raises(armlet.errors.StoreError, match=r"not one of Armlet's"):
        armlet.open_store(path)
    text = tmp_path / "notes.txt"
    text.write_text("no database at all, but long enough to be looked at " * 20)
    with pytest.raises(armlet.errors.StoreError, match=r"cannot be opened: .*not a database"):
        armlet.open_store(text)
    assert text.read_text().startswith("no database at all")
    with pytest.raises(armlet.errors.StoreError, match=r"cannot be opened"):
        armlet.open_store(tmp_path / "nowhere" / "shop.db")


def test_what_is_broken_off_is_not_called_undone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maintenance is many transactions: when one fails, those before it stay done."""
    ledger = _Failing(place())
    with Store(ledger) as store:
        loop = store.loop("homepage", arms=["a", "b"], dim=1, seed=1)
        events = [f"e{i}" for i in range(20)]
        loop.decide_many([[1.0]] * 20, events=events)
        monkeypatch.setattr(writer, "SLICE", 0.0)  # a piece a transaction
        run = writer.Upkeep._slice

        def fail_after_one(self: writer.Upkeep) -> None:
            run(self)
            ledger.fails = True

        monkeypatch.setattr(writer.Upkeep, "_slice", fail_after_one)
        with pytest.raises(StoreError, match="broken off, and what was done before stays done; ask again: no space"):
            loop.forget_many(events)
        with pytest.raises(StoreError, match="nothing of this call was kept: no space"):
            loop.forget_many(events)
        monkeypatch.undo()
        ledger.fails = False
        assert loop.forget_many(events) == 20 - FORGOTTEN
