"""Many loops in one store: those that nobody uses are let go, and are exact when they are used again; and deletion."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import apsw
import pytest

import armlet
from armlet.errors import StoreError
from armlet.stores import Loop, SQLite, Store
from armlet.stores.store import DELETED
from armlet.testing.stores import Place, _Failing
from support.loops import Learned, assert_learned, assert_replays, context, reward

UCB = armlet.LinUCB(units="as given")
MADE: dict[str, Any] = {"arms": ["a", "b"], "dim": 2, "policy": UCB, "seed": 3}
SMALL = 500_000  # bytes: about 24 loops


def awake(store: Store) -> int:
    """Return about how many bytes loops take."""
    return sum(runner.memory for runner in store._runners.values())


def most_of_one(store: Store) -> int:
    return max(runner.memory for runner in store._runners.values())


@pytest.mark.parametrize("n", [300, pytest.param(10_000, marks=pytest.mark.long)])
def test_loops_that_are_let_go_are_exact_when_they_are_used_again(place: Place, n: int) -> None:
    rows: list[list[Learned]] = [[] for _ in range(n)]

    def step(loop: Loop, k: int) -> None:
        i = k + len(rows[k])
        arm = loop.decide(context(i, 2), event=f"e{i}").arm
        assert loop.reward(f"e{i}", reward(i)) == "accepted"
        rows[k].append(Learned(context(i, 2), arm, reward(i)))

    with Store(place(), memory=SMALL) as store:
        loops = [store.loop(f"loop {k}", **MADE) for k in range(n)]
        for part in (range(n), range(0, n, 7), range(n - 1, -1, -3)):
            for k in part:
                step(loops[k], k)
                if k % (n // 30) == 0:  # it looks at all of them
                    assert awake(store) <= SMALL + most_of_one(store)
        assert sum(runner.is_asleep for runner in store._runners.values()) >= n - 2 * SMALL // 20_000
        for k in range(n):
            assert_learned(loops[k].model(), rows[k])
        for k in range(0, n, n // 10):
            assert_replays(store, loops[k])
            assert loops[k].stats().decisions == len(rows[k])
    with Store(place(), memory=SMALL) as store:
        for k in range(0, n, n // 20):
            loop = store.loop(f"loop {k}")
            step(loop, k)
            assert_learned(loop.model(), rows[k])


def test_the_loop_that_was_used_last_stays_awake(place: Place) -> None:
    with Store(place(), memory=1) as store:
        loops = [store.loop(f"loop {k}", **MADE) for k in range(5)]
        for k in (3, 1, 4, 1):
            loops[k].decide(context(k, 2))
            assert [loop._runner.is_asleep for loop in loops] == [j != k for j in range(5)]
        assert [loop.model().t for loop in loops] == [0, 2, 0, 1, 1]


def test_a_sleeping_loop_keeps_its_rules_windows_and_early_rewards(place: Place) -> None:
    with Store(place(), memory=1) as store:
        loop = store.loop("homepage", **MADE, aggregation="sum", early_window=60.0)
        other = store.loop("other", **MADE)
        decision = loop.decide(context(1, 2), event="e")
        loop.reward("e", 0.25, name="click")
        loop.reward("f", 0.5)
        other.decide(context(1, 2))
        assert loop._runner.is_asleep
        assert [loop.reward("e", 0.25, name=name) for name in ("click", "paid")] == ["duplicate", "accepted"]
        other.decide(context(1, 2))
        again = loop.decide(context(2, 2), event="f")
        rows = [Learned(context(1, 2), decision.arm, 0.5), Learned(context(2, 2), again.arm, 0.5)]
        assert_learned(loop.model(), rows)


def test_what_was_counted_is_the_same_after_a_failure_a_sleep_and_a_restart(place: Place) -> None:
    failing = _Failing(place())
    with Store(failing, memory=1) as store:
        loop, other = (store.loop(name, **MADE) for name in ("homepage", "other"))
        for i in range(6):
            loop.decide(context(i, 2), event=f"e{i}")
            loop.reward(f"e{i}", reward(i))
        failing.fails = True
        with pytest.raises(StoreError):
            loop.decide(context(9, 2))
        failing.fails = False
        other.decide(context(1, 2))
        loop.reward("e1", reward(1))
        loop.forget("e2")
        tally = loop._runner.tally
        assert (tally.traffic.decisions, tally.traffic.known, tally.open) == (6, 6, 0)
        assert tally.traffic.statuses == {"accepted": 6, "duplicate": 1}
        counted = tally.to_json()
        other.decide(context(1, 2))
        assert loop._runner.is_asleep
        loop.model()
        assert loop._runner.tally.to_json() == counted
    with Store(place()) as store:
        loop = store.loop("homepage")
        assert loop._runner.tally.to_json() == counted


# --- deletion --------------------------------------------------------------------------------------------------------


def test_a_loop_that_was_deleted_is_gone_for_all_who_have_it(place: Place) -> None:
    with Store(place()) as store:
        loop, other = (store.loop(name, **MADE) for name in ("homepage", "other"))
        for each in (loop, other):
            each.decide(context(1, 2), event="e")
            each.reward("e", 0.5)
        assert store.delete("homepage") is True
        assert store.delete("homepage") is False
        assert store.loops == ["other"]
        calls: tuple[Callable[[], object], ...] = (
            lambda: loop.decide(context(1, 2), event="e"),
            lambda: loop.reward("e", 0.5),
            lambda: loop.decide_many([context(1, 2)]),
            lambda: loop.forget("e"),
            lambda: loop.add_arm("c"),
            lambda: loop.change(aggregation="last"),
            lambda: loop.change(policy=armlet.OFUL(), how="refit"),
            lambda: loop.model(),
            lambda: loop.log,
            lambda: store.loop("homepage"),
        )
        refused(calls)
        again = store.loop("homepage", **(MADE | {"arms": ["x", "y"]}))
        refused(calls[:-1])
        assert again.reward("e", 0.5) == "unknown"
        assert again.decide(context(1, 2), event="e").t == 1
        assert_replays(store, again)
        assert_replays(store, other)
        assert other.reward("e", 0.5) == "duplicate"
    with Store(place()) as store:
        assert list(store.loop("homepage").model().arms) == ["x", "y"]


def refused(calls: Iterable[Callable[[], object]]) -> None:
    for call in calls:
        with pytest.raises(StoreError, match=r"there is no .*loop|was deleted"):
            call()


def test_a_loop_is_deleted_in_traffic_and_made_again(place: Place) -> None:
    n = 2 * DELETED + 500
    with Store(place()) as store:
        loop, other = (store.loop(name, **MADE) for name in ("homepage", "other"))
        loop.decide_many([context(i, 2) for i in range(n)], events=[f"e{i}" for i in range(n)])
        stop, steps, odd = threading.Event(), [], []

        def traffic(each: Loop) -> None:
            i = 0
            while not stop.is_set():
                try:
                    steps.append((each.name, each.decide(context(i, 2), event=f"t{i}").t))
                    each.reward(f"t{i}", reward(i))
                except StoreError as error:
                    if each is other or "homepage" not in str(error):
                        odd.append(error)
                i += 1

        threads = [threading.Thread(target=traffic, args=(each,)) for each in (loop, loop, other)]
        for thread in threads:
            thread.start()
        assert store.delete("homepage")
        again = store.loop("homepage", **MADE)
        assert again.decide(context(1, 2), event="e1").t == 1
        stop.set()
        for thread in threads:
            thread.join()
        assert odd == []
        assert again.model().t == 1
        assert_replays(store, again)
        assert_replays(store, other)


def test_a_deletion_that_was_broken_off_says_so_and_can_be_finished(place: Place) -> None:
    n = 2 * DELETED + 500
    failing = _Failing(place())
    with Store(failing) as store:
        loop, other = (store.loop(name, **MADE) for name in ("homepage", "other"))
        loop.decide_many([context(i, 2) for i in range(n)])
        other.decide(context(1, 2))
        chore = store._deleting("homepage")
        store._writer.do(lambda tx, now: (next(chore), chore.send((tx, now))))
        chore.close()
    with Store(place()) as store:
        for given in ({}, MADE):
            with pytest.raises(
                StoreError, match=r"is being deleted; wait, or finish it with store.delete\('homepage'\)"
            ):
                store.loop("homepage", **given)
        store.prune(0.0)
        assert store.loop("other").model().t == 1
        assert store.delete("homepage")
        assert store.loops == ["other"]
        assert store.loop("homepage", **MADE).decide(context(1, 2)).t == 1


def test_nothing_of_a_loop_that_was_deleted_is_left_in_a_file(tmp_path: Path) -> None:
    secret: dict[str, Any] = {
        "arms": ["arm-secret", "b"],
        "features": ["one", "feature-secret"],
        "policy": UCB,
        "seed": 3,
    }
    with Store(SQLite(tmp_path / "shop.db")) as store:
        loop = store.loop("loop-secret", **secret, early_window=600.0)
        kept = store.loop("kept", **MADE)
        for i in range(50):
            loop.decide([1.0, 1234.5], event=f"event-secret-{i}")
            loop.reward(f"event-secret-{i}", 0.5, name=f"name-secret-{i}")
            kept.decide(context(i, 2), event=f"kept-{i}")
        loop.reward("early-secret", 0.5)
        loop.model()
        loop.change(aggregation="last")
        assert found(tmp_path, b"secret") > 0
        assert store.delete("loop-secret")
        assert (tmp_path / "shop.db-wal").stat().st_size == 0
        assert_replays(store, kept)
    connection = apsw.Connection(str(tmp_path / "shop.db"))
    for table in ("event", "outcome", "early", "snapshot", "tally", "head"):
        assert connection.execute(f"SELECT count(*) FROM {table} WHERE loop != {kept._runner.id}").get == 0
    connection.execute("VACUUM")  # where SQLite has moved rows, a copy may lie in an unused part of a page until then
    connection.close()
    assert found(tmp_path, b"secret") == 0
    assert found(tmp_path, b"kept-7") > 0


def found(folder: Path, word: bytes) -> int:
    return sum(path.read_bytes().count(word) for path in folder.iterdir())
