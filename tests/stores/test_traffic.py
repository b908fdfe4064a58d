"""Maintenance in traffic: those who decide are served between its slices, and no call breaks another one."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import apsw
import numpy as np
import pytest

import armlet
from armlet.inputs.settings import Units
from armlet.policies.base import RidgePolicy
from armlet.reference.choice import play_drawn, shares
from armlet.stores import Loop, Memory, SQLite, Store
from armlet.stores.runner import WINDOWS
from armlet.stores.sqlite import SQLiteSession
from armlet.stores.transaction import Chore, Draft
from armlet.stores.writer import Upkeep, Writer
from armlet.types import Choice, Coins
from support.loops import Ticks
from support.stores import rebuilt

pytestmark = pytest.mark.spread


def make(store: Store, name: str = "homepage", **more: Any) -> Loop:
    given: dict[str, Any] = {"arms": ["a", "b"], "dim": 2, "policy": armlet.Algorithm1(p=6), "seed": 3}
    return store.loop(name, **(given | more))


def play(loop: Loop, n: int, start: int = 0) -> None:
    for i in range(start, start + n):
        loop.decide([1.0, i / 8], event=f"e{i}")
        loop.reward(f"e{i}", float(i % 2))


def until(holds: Callable[[], bool]) -> None:
    while not holds():
        pass


@contextmanager
def traffic(loop: Loop, threads: int = 4) -> Iterator[list[BaseException]]:
    """Let threads decide and reward meanwhile; give what was raised in them."""
    is_over, raised, answered = threading.Event(), [], [0] * threads

    def run(thread: int) -> None:
        try:
            while not is_over.is_set():
                event = f"{thread}-{answered[thread]}"
                loop.decide([1.0, thread / 8], event=event)
                assert loop.reward(event, 1.0) == "accepted"
                answered[thread] += 1
        except BaseException as error:
            raised.append(error)

    runners = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
    for runner in runners:
        runner.start()
    try:
        until(lambda: bool(raised) or min(answered) > 0)
        yield raised
        before = sum(answered)
        until(lambda: bool(raised) or sum(answered) > before)
    finally:
        is_over.set()
        for runner in runners:
            runner.join()


# --- maintenance -----------------------------------------------------------------------------------------------------


def test_forgetting_and_pruning_fail_no_call_of_others(tmp_path: Path) -> None:
    with Store(SQLite(tmp_path / "shop.db", synchronous="NORMAL")) as store:
        loop = make(store)
        play(loop, 100)
        played = time.time()  # decisions of the traffic are younger: pruned before their reward, it would be unknown
        with traffic(loop) as raised:
            assert [loop.forget(f"e{i}") for i in range(15)] == [True] * 15
            assert loop.forget_many([f"e{i}" for i in range(40)]) == 25
            assert store.prune(played) > 0
            loop.retire_arm("b")
            store.settle()
        assert raised == []
        assert loop.model().to_bytes() == rebuilt(store).to_bytes()


def test_maintenance_ends_where_no_transaction_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(Memory()) as store:
        play(make(store), 20)
        monkeypatch.setattr(store._ledger, "session", lambda: 1 / 0)
        with pytest.raises(armlet.errors.StoreError, match="nothing of this call was kept"):
            store.prune(time.time() + 60)
        monkeypatch.undo()
        assert store.prune(time.time() + 60) > 0


def test_calls_are_served_between_two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.stores.writer.SLICE", 0.0)
    order: list[str] = []
    with Store(Memory()) as store:
        writer = store._writer

        def chore() -> Chore[str]:
            for i in range(3):
                yield
                order.append(f"piece {i}")
                threading.Thread(target=writer.do, args=(lambda *_, i=i: order.append(f"call {i}"),)).start()
                until(lambda: not writer._queue.empty())
            return "done"

        assert writer.maintain(chore()) == "done"
    assert order == ["piece 0", "call 0", "piece 1", "call 1", "piece 2", "call 2"]


def test_many_forgets_share_one_scrub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.stores.writer.SLICE", 10.0)
    ledger, scrubs, may_go = SQLite(tmp_path / "shop.db", synchronous="NORMAL"), [], threading.Event()
    scrub = ledger.scrub
    ledger.scrub = lambda: scrubs.append(1) or scrub()  # type: ignore[func-returns-value,method-assign]
    with Store(ledger) as store:
        loop = make(store)
        play(loop, 20)
        blocked = threading.Thread(target=store._writer.do, args=(lambda *_: may_go.wait(),))
        threads = [threading.Thread(target=loop.forget, args=(f"e{i}",)) for i in range(8)]
        blocked.start()
        until(store._writer._queue.empty)
        for thread in threads:
            thread.start()
        until(lambda: store._writer._queue.qsize() == 8)
        may_go.set()
        for thread in (blocked, *threads):
            thread.join()
        assert len(scrubs) == 1
        assert loop.forget_many([f"e{i}" for i in range(20)]) == 12
        assert len(scrubs) == 2
        assert loop.model().to_bytes() == rebuilt(store).to_bytes()


@pytest.mark.parametrize("window", [None, 60.0])
def test_forgetting_leaves_no_byte_of_a_reward(window: float | None, tmp_path: Path) -> None:
    """Neither as text in rows nor as a number in outcomes, in the file and in SQLite's log."""
    path, ticks = tmp_path / "shop.db", Ticks(1e9)
    files = [path, path.with_name("shop.db-wal")]
    needles = [needle for value in (888.125, 777.25) for needle in (str(value).encode(), struct.pack(">d", value))]

    def found() -> list[bytes]:
        return [needle for needle in needles if any(needle in file.read_bytes() for file in files)]

    with armlet.open_store(path, wall=ticks, elapsed=ticks) as store:
        more: dict[str, Any] = {} if window is None else {"window": window, "default_reward": 0.0}
        loop = make(store, policy=armlet.LinUCB(units="as given"), aggregation="last", reward_range=(0, 1000), **more)
        play(loop, 10)
        loop.decide([0.75, 0.25], event="somebody")
        loop.decide([0.75, 0.25], event="silent")
        loop.reward("somebody", 888.125)
        ticks.now += 61
        loop.reward("somebody", 777.25)
        store.settle()
        assert len(found()) >= 4
        assert loop.forget_many(["somebody", "silent"]) == 2
        assert found() == []
        left = [row.kind for row in loop._ledger.rows(loop._runner.id) if (row.t or 0) > 10]
        assert left == ["decide", "decide"]
        play(loop, 10, 20)
        after = loop.model().to_bytes()
        assert after == rebuilt(store).to_bytes()
        assert armlet.audit(loop.log.replayable, loop.log.start).ok
    with armlet.open_store(path, wall=ticks, elapsed=ticks) as store:
        assert store.loop("homepage").model().to_bytes() == after


def test_counts_of_a_loop_do_not_keep_what_was_forgotten() -> None:
    """Even where nobody else has a reward of that arm; at a moment whose digits are not those of a reward."""
    ticks = Ticks(1e9)
    with Store(Memory(), wall=ticks, elapsed=ticks) as store:
        loop = make(store, policy=armlet.Algorithm1(p=1000), aggregation="last", reward_range=(0, 1000))
        assert loop.decide([0.75, 0.25], event="somebody").explored
        assert [loop.reward("somebody", value) for value in (888.125, 777.25)] == ["accepted", "replaced"]
        store._writer.do(lambda tx, now: loop._runner.save(loop._runner.open(tx, now)))
        assert "777.25" in tally_of(loop)
        assert loop.forget("somebody")
        assert "888" not in tally_of(loop)
        assert "777" not in tally_of(loop)


def tally_of(loop: Loop) -> str:
    """Return what a ledger keeps of a loop's counts."""
    with loop._ledger.session() as session:
        return session.tally(loop._runner.id) or ""


def test_a_reader_in_the_way_delays_a_forget_and_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shop.db"
    with Store(SQLite(path, synchronous="NORMAL")) as store:
        loop = make(store)
        play(loop, 10)
        reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        reader.execute("BEGIN; SELECT * FROM event")
        forgotten: list[bool] = []
        thread = threading.Thread(target=lambda: forgotten.append(loop.forget("e3")))
        thread.start()
        until(lambda: bool(store._writer._upkeep._unscrubbed))
        play(loop, 10, 10)
        assert forgotten == []
        reader.execute("COMMIT")
        thread.join()
        assert forgotten == [True]
        reader.execute("BEGIN; SELECT * FROM event")
        monkeypatch.setattr("armlet.stores.writer.PATIENCE", 0.0)
        with pytest.raises(armlet.errors.StoreError, match="-wal file may still contain it: somebody reads it"):
            loop.forget("e4")
        reader.close()
        assert not loop.forget("e4")  # which clears the file all the same
        assert path.with_name("shop.db-wal").stat().st_size == 0


def file_of(path: Path, n: int) -> int:
    """Make a file with so many old decisions, each with a long name; give its size."""
    with Store(SQLite(path, synchronous="NORMAL")) as store:
        loop = make(store)
        for i in range(n):
            loop.decide([1.0, 0.5], event=f"{i:0200d}")
            loop.reward(f"{i:0200d}", float(i % 2))
    return path.stat().st_size


def test_pruning_gives_space_back(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    before = file_of(path, 300)
    with armlet.open_store(path) as store:
        pruned = store.prune(time.time() + 60)
        assert path.stat().st_size < before / 4
        assert pruned > 200
        loop = store.loop("homepage")
        assert sum(row.kind == "decide" for row in loop._ledger.rows(1)) == 300 - pruned
        assert loop.model().to_bytes() == rebuilt(store).to_bytes()


def test_a_file_of_before_gives_space_back_after_a_vacuum(tmp_path: Path) -> None:
    """As docs/how-to/production.md says."""
    path = tmp_path / "shop.db"
    file_of(path, 300)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA auto_vacuum = NONE; VACUUM")
    connection.close()
    before = path.stat().st_size
    with armlet.open_store(path) as store:
        assert store.prune(time.time() + 60) > 200
    assert path.stat().st_size == before
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
    connection.close()
    assert path.stat().st_size < before / 4
    with armlet.open_store(path) as store:
        assert store.loop("homepage").decide([1.0, 0.5]).t == 301
        assert store._ledger._connection.pragma("auto_vacuum") == 2  # type: ignore[attr-defined]


def test_what_is_rewarded_while_it_is_pruned_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.stores.writer.SLICE", 0.0)
    with Store(Memory()) as store:
        loop, step, pieces, statuses = make(store), Upkeep._slice, iter(range(9)), list[str]()
        late = threading.Thread(target=lambda: statuses.append(loop.reward("late", 1.0)))
        play(loop, 80)
        assert not loop.decide([1.0, 0.5], event="late").explored

        def slice_and_reward(upkeep: Upkeep) -> None:
            step(upkeep)
            if next(pieces) == 3:  # after the first decisions have gone
                late.start()
                until(lambda: not store._writer._queue.empty())

        monkeypatch.setattr(Upkeep, "_slice", slice_and_reward)
        pruned = store.prune(time.time() + 60)
        monkeypatch.undo()
        late.join()
        assert statuses == ["accepted"]
        assert pruned > 32
        assert loop.reward("late", 1.0) == "duplicate"
        assert loop.model().to_bytes() == rebuilt(store).to_bytes()


@pytest.mark.parametrize(
    "before", [1_794_920_389_372_912_223, 1_794_920_389_372.9, -1e13, float("inf"), True]
)  # ns, ms, ...
def test_a_time_that_cannot_be_is_refused_and_harms_nothing(before: float, tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = make(store)
        play(loop, 5)
        for _ in range(2):
            with pytest.raises(ValueError, match=r"before is .* seconds .* since 1970"):
                store.prune(before)
        assert store.prune(0.0) == 0
        play(loop, 5, 5)


# --- windows ---------------------------------------------------------------------------------------------------------


def windows(store: Store, n: int) -> Loop:
    loop = make(store, policy=armlet.LinUCB(), window=60.0, default_reward=0.0)
    for i in range(n):
        loop.decide([1.0, i / 8], event=f"e{i}")
    return loop


def test_due_windows_are_closed_in_slices_and_decisions_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.stores.writer.SLICE", 0.0)
    monkeypatch.setattr(Writer, "later", lambda _, chore, __: chore.close())  # nothing between two calls
    ticks = Ticks(1e9)
    with Store(Memory(), wall=ticks, elapsed=ticks) as store:
        n = 2 * WINDOWS + 10
        loop = windows(store, n)
        ticks.now += 61
        loop.decide([1.0, 0.5], event="next")
        kinds = [row.kind for row in loop._ledger.rows(1, after=n)]
        assert kinds == [*["learn"] * WINDOWS, "decide"]
        assert loop.reward(f"e{n - 1}", 1.0) == "late"  # its window is over, though its turn had not come
        kinds = [row.kind for row in loop._ledger.rows(1, after=n + WINDOWS + 1)]
        assert kinds == [*["learn"] * (WINDOWS + 1), "correct"]
        store.settle()
        learned = [row.t for row in loop._ledger.rows(1) if row.kind == "learn"]
        assert sorted(learned, key=int) == list(range(1, n + 1))  # type: ignore[arg-type]
        model = loop.model()
        assert model.to_bytes() == rebuilt(store).to_bytes()
        assert armlet.audit(loop.log.replayable, loop.log.start).ok


def test_windows_that_a_call_leaves_open_are_closed_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.stores.writer.SLICE", 0.0)
    ticks = Ticks(1e9)
    with Store(Memory(), wall=ticks, elapsed=ticks) as store:
        loop = windows(store, 2 * WINDOWS)
        ticks.now += 61
        loop.decide([1.0, 0.5], event="next")
        until(lambda: sum(row.kind == "learn" for row in loop._ledger.rows(1)) == 2 * WINDOWS)
        assert loop.model().to_bytes() == rebuilt(store).to_bytes()


def test_a_model_has_all_windows_that_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.stores.writer.SLICE", 0.0)
    ticks = Ticks(1e9)
    with Store(Memory(), wall=ticks, elapsed=ticks) as store:
        loop = windows(store, 2 * WINDOWS)
        ticks.now += 61
        assert loop.model().state.n.sum() == 2 * WINDOWS


# --- calls -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Moody(RidgePolicy):
    """A policy of one's own that raises what it is told to."""

    mood: ClassVar[BaseException | None] = None
    ridge: float = 1.0
    units: Units = "as given"
    origin: tuple[float, ...] | None = None

    def probabilities(self, state: Any, t: int, x: Any, eligible: Any) -> Any:  # noqa: ARG002
        if Moody.mood is not None:
            raise Moody.mood
        return shares(state.scores(x), eligible)

    def decide(self, state: Any, t: int, x: Any, coins: Coins, eligible: Any) -> Choice:
        return play_drawn(self.probabilities(state, t, x, eligible), coins)


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, GeneratorExit, ZeroDivisionError])
def test_whatever_a_policy_raises_reaches_its_caller_alone(
    raised: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop, other = make(store, policy=Moody()), make(store, "other")
        play(loop, 5)
        monkeypatch.setattr(Moody, "mood", raised())
        with pytest.raises(raised):
            loop.decide([1.0, 0.5], event="e")
        assert other.decide([1.0, 0.5]).t == 1
        monkeypatch.setattr(Moody, "mood", None)
        assert loop.decide([1.0, 0.5], event="e").t == 6
        assert loop.model().to_bytes() == rebuilt(store, policy=Moody()).to_bytes()


def test_a_policy_that_uses_its_own_store_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Calling(BaseException):
        pass

    with Store(Memory()) as store:
        loop = make(store, policy=Moody())

        def call(*_: object) -> np.ndarray:
            with pytest.raises(armlet.errors.StoreError, match="must not use its own store"):
                loop.reward("e", 1.0)
            with pytest.raises(armlet.errors.StoreError, match="must not use its own store"):
                store.close()
            raise Calling

        monkeypatch.setattr(Moody, "probabilities", call)
        with pytest.raises(Calling):
            loop.decide([1.0, 0.5])


def test_a_call_that_fails_half_way_is_undone_and_others_of_its_batch_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = Draft.insert

    def fails_once(draft: Draft, outcome: Any) -> None:
        insert(draft, outcome)
        if outcome.event == "bad":
            raise ZeroDivisionError("half-way")

    monkeypatch.setattr(Draft, "insert", fails_once)
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = make(store)
        play(loop, 5)
        results = one_batch(store, loop, ("good", "bad", "better", "good"))
        refusal = "nothing of this call was kept: a fault inside the store, ZeroDivisionError: half-way"
        assert str(results.pop("bad")).startswith(refusal)
        assert results == {"good": 6, "better": 7}  # the repeat is answered as before
        assert loop.model().to_bytes() == rebuilt(store).to_bytes()
        assert [row.fields["event"] for row in loop._ledger.rows(1) if (row.t or 0) > 5] == ["good", "better"]


def test_a_call_that_the_ledger_refuses_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others of its batch are run again, each in a transaction of its own."""
    write = SQLiteSession.write

    def refuses(session: SQLiteSession, drafts: Sequence[Draft]) -> None:
        write(session, drafts)
        if any(pending.event == "bad" for draft in drafts for pending in draft.new.values()):
            raise apsw.ConstraintError("not such a row")

    monkeypatch.setattr(SQLiteSession, "write", refuses)
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = make(store)
        play(loop, 5)
        results = one_batch(store, loop, ("good", "bad", "better", "good"))
        assert results == {"good": 6, "bad": "nothing of this call was kept: not such a row", "better": 7}
        assert loop.model().to_bytes() == rebuilt(store).to_bytes()
        assert [row.fields["event"] for row in loop._ledger.rows(1) if (row.t or 0) > 5] == ["good", "better"]


def one_batch(store: Store, loop: Loop, events: Sequence[str]) -> dict[str, object]:
    """Decide in one batch, in this order; return steps, or what was raised."""
    may_go, results = threading.Event(), dict[str, object]()

    def decide(event: str) -> None:
        try:
            results[event] = loop.decide([1.0, 0.5], event=event).t
        except armlet.errors.StoreError as error:
            results[event] = str(error)

    threads = [threading.Thread(target=store._writer.do, args=(lambda *_: may_go.wait(),))]
    threads += [threading.Thread(target=decide, args=(event,)) for event in events]
    for i, thread in enumerate(threads):  # all that wait are one batch
        thread.start()
        until(lambda i=i: store._writer._queue.qsize() == i)  # type: ignore[misc]
    may_go.set()
    for thread in threads:
        thread.join()
    return results


def test_nobody_waits_for_a_thread_that_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shop.db"
    store = armlet.open_store(path)
    loop = make(store)
    play(loop, 5)

    def fail(_: Upkeep) -> None:
        raise SystemError("a fault of Armlet's")

    with monkeypatch.context() as patch:
        patch.setattr(Upkeep, "run", fail)
        loop.decide([1.0, 0.5], event="answered")
        with pytest.raises(
            armlet.errors.StoreError, match=r"SystemError|nothing of this call was kept"
        ):  # it ends meanwhile
            loop.decide([1.0, 0.5], event="later")
        with pytest.raises(armlet.errors.StoreError, match="closed, since its thread has ended: SystemError"):
            loop.decide([1.0, 0.5], event="later")
    with pytest.raises(armlet.errors.StoreError, match="its thread has ended"):
        store.close()
    with armlet.open_store(path) as store:
        assert store.loop("homepage").decide([1.0, 0.5], event="answered").t == 6


def test_no_event_takes_the_name_of_a_decision_to_come(tmp_path: Path) -> None:
    twin = armlet.Bandit(["a", "b"], 2, policy=armlet.Algorithm1(p=6), seed=3)
    ids = [twin.decide([1.0, 0.5]).id for _ in range(3)]
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = make(store)
        with pytest.raises(armlet.errors.EventError, match="the id of a decision that is still to come"):
            loop.decide([1.0, 0.5], event=ids[1])
        loop.decide([1.0, 0.5], event="9-0123456789abcdef")  # one of another loop's
        assert [loop.decide([1.0, 0.5]).id for _ in range(2)] == ids[1:]
        assert loop.decide([1.0, 0.5], event=ids[1]).t == 2  # asked again by its id


UNCLOSED = """
import sys, threading
import armlet
store = armlet.open_store(sys.argv[1])
loop = store.loop("homepage", arms=["a", "b"], dim=2, seed=1)
def decide():
    main.join()  # the interpreter is ending by then
    for i in range(20):
        loop.decide([1.0, 0.5])
main = threading.main_thread()
threading.Thread(target=decide).start()
loop.decide([1.0, 0.5])
"""


def test_a_store_that_nobody_closed_ends_in_silence(tmp_path: Path) -> None:
    command = [sys.executable, "-c", UNCLOSED, str(tmp_path / "shop.db")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("homepage")
        assert loop.model().t == 21
        assert loop.model().to_bytes() == rebuilt(store).to_bytes()
