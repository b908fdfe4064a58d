"""A copy of a database in a file, which is a store of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import armlet
from armlet.errors import StoreError
from armlet.policies import Algorithm1
from armlet.stores import SQLite, Store
from armlet.stores.ledger import Early, Moment, Pending, Want
from armlet.stores.postgresql import PostgreSQL, backup
from armlet.stores.transaction import transaction

LOOPS = ("one", "two")


def play(store: Store, first: int, n: int) -> None:
    for name in LOOPS:
        loop = store.loop(name, arms=["a", "b"], dim=2, policy=Algorithm1(p=30), seed=5)
        for i in range(first, first + n):
            loop.decide([1.0, (i % 5) / 4], event=f"e{i}")
            if i % 3:
                loop.reward(f"e{i}", (i % 4) / 4)


def test_a_copy_goes_on_as_the_original_would(ledger: PostgreSQL, tmp_path: Path) -> None:
    with Store(ledger) as store:
        play(store, 0, 30)
        ledger.backup(tmp_path / "shop.db")
        with armlet.open_store(tmp_path / "shop.db") as copy:
            before = [copy.loop(name).model().to_bytes() for name in LOOPS]
            assert before == [store.loop(name).model().to_bytes() for name in LOOPS]
            for each in (store, copy):
                play(each, 25, 20)
            after = [copy.loop(name).model().to_bytes() for name in LOOPS]
            assert after == [store.loop(name).model().to_bytes() for name in LOOPS] != before
    assert {path.name for path in tmp_path.iterdir()} <= {"shop.db", "shop.db.lock"}


def test_a_copy_has_every_row_to_the_last_bit(
    ledger: PostgreSQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "TABLES", [table._replace(page=2) for table in backup.TABLES])
    with transaction(ledger) as tx, tx.savepoint() as session:
        loops = [session.create(name, "{}", b"a model", 0).id for name in LOOPS]
    for loop in loops:
        fill(ledger, loop)
    ledger.backup(tmp_path / "copy.db")
    copy = SQLite(tmp_path / "copy.db")
    for loop in loops:
        assert list(copy.rows(loop)) == list(ledger.rows(loop))
        assert copy.head(loop) == ledger.head(loop)
        assert all_of(copy, loop) == all_of(ledger, loop)
    assert copy.loops() == ledger.loops()
    copy.close()


def fill(ledger: PostgreSQL, loop: int) -> None:
    with transaction(ledger) as tx:
        tx.enter([Want(loop)])
        draft = tx.draft(loop)
        assert draft is not None
        for t in range(1, 6):
            seq = draft.append(
                Moment(t, t), "decide", t, {"event": f"e{t}", "snow": "\u2603", "third": 1 / 3}, bytes(8)
            )
            draft.insert(Pending(t=t, event=f"e{t}", seq=seq, phase="open", value=-0.0, due=t, names=("n",), played=t))
            draft.early.append(Early("soon", 10 - t, {"value": t}))
        draft.snapshot, draft.tally = (3, b"another model"), "{}"


def all_of(ledger: PostgreSQL | SQLite, loop: int) -> list[object]:
    with transaction(ledger) as tx:
        session = tx.session
        events = [f"e{t}" for t in range(9)]
        found = [session.decided(loop, events), session.due(loop, 9, 9), session.early(loop, "soon")]
        return [*map(sorted, found[:1]), *map(list, found[1:]), session.snapshot(loop), session.tally(loop)]


def test_a_copy_that_fails_leaves_nothing_behind(ledger: PostgreSQL, tmp_path: Path) -> None:
    (tmp_path / "shop.db").write_bytes(b"mine")
    with pytest.raises(StoreError, match="exists; name a file that does not"):
        ledger.backup(tmp_path / "shop.db")
    with pytest.raises(StoreError, match="cannot be"):
        ledger.backup(tmp_path / "nowhere" / "shop.db")
    assert [path.name for path in tmp_path.iterdir()] == ["shop.db"]
    assert ledger.loops() == []
