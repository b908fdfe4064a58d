"""What every ledger promises."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from armlet.stores import Ledger, LoopRecord, Outcome, Row, Transaction
from armlet.stores.ledger import Moment
from armlet.testing.stores.common import Place, StoreCheck, require


class _BrokenOffError(Exception):
    """Ends a transaction in the midst of it."""


@contextmanager
def _opened(place: Place) -> Iterator[Ledger]:
    ledger = place()
    try:
        yield ledger
    finally:
        ledger.close()


def _at(wall: int) -> Moment:
    """Give a moment; its steady time is another one, as after the wall clock was set."""
    return Moment(wall, wall + 1000)


def _some_loop(ledger: Ledger, name: str = "homepage") -> LoopRecord:
    with ledger.transaction() as tx:
        return tx.create(name, '{"arms": ["a"]}', b"a model")


def _fill(tx: Transaction, loop: int, ts: int = 5) -> None:
    """Write one of everything."""
    t = tx.lease(loop, 1)
    seq = tx.append(loop, _at(ts), "decide", t, {"arm": "a", "propensity": 0.1}, b"\0" * 8)
    tx.put(loop, Outcome(t=t, event=f"event {t}", seq=seq, phase="open", due=ts + 10))
    tx.keep(loop, seq, b"another model")


def _all_of(ledger: Ledger, record: LoopRecord) -> list[object]:
    """Read everything about a loop."""
    with ledger.transaction() as tx:
        found = _all_by(tx, record)
    return [*found, list(ledger.rows(record.id)), list(ledger.loops()), ledger.newest()]


def _all_by(tx: Transaction, record: LoopRecord) -> list[object]:
    require(tx.find(record.name), f"loop {record.name!r} is gone")
    outcomes = [tx.at(record.id, t) for t in range(1, 10)]
    return [tx.find(record.name), outcomes, list(tx.rows(record.id, 0)), tx.snapshot(record.id)]


def check_transactions_are_whole_or_nothing(place: Place) -> None:
    """What is raised in a transaction undoes all of it; what ends well is there after reopening."""
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        with ledger.transaction() as tx:
            _fill(tx, record.id)
        before = _all_of(ledger, record)
        with suppress(_BrokenOffError), ledger.transaction() as tx:
            tx.create("another", "{}", b"")
            _fill(tx, record.id, ts=9)
            old = tx.at(record.id, 1)
            require(old is not None, "an outcome that was put cannot be found by its step")
            tx.put(record.id, Outcome(t=1, event="event 1", seq=1, phase="learned", value=0.5))
            raise _BrokenOffError
        require(_all_of(ledger, record) == before, "a transaction that was broken off left something behind")
        with ledger.transaction() as tx:
            require(tx.lease(record.id, 1) == 2, "a transaction that was broken off kept its step of the clock")
            tx.append(record.id, _at(11), "learn", 1, {"reward": 0.1 + 0.2}, None)
        before = _all_of(ledger, record)
    with _opened(place) as ledger:
        require(_all_of(ledger, record) == before, "what was written is not what is read after reopening")


def check_calls_are_whole_or_nothing(place: Place) -> None:
    """What is raised at a savepoint undoes what was done since, and nothing else of the transaction."""
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        with ledger.transaction() as tx:
            _fill(tx, record.id)
            before = _all_by(tx, record)
            with suppress(_BrokenOffError), tx.savepoint():
                with tx.savepoint():
                    _fill(tx, record.id, ts=9)
                tx.create("another", "{}", b"")
                tx.rebase(record.id, 1, b"later")
                tx.erase(record.id, 1)
                raise _BrokenOffError
            require(_all_by(tx, record) == before, "what was raised at a savepoint left something behind")
            require(tx.lease(record.id, 1) == 2, "what was raised at a savepoint kept its step of the clock")
            with tx.savepoint():
                require(tx.append(record.id, _at(7), "learn", 1, {}, None) == 2, "a row was numbered that is not there")
        require([row.seq for row in ledger.rows(record.id)] == [1, 2], "what was not raised at a savepoint is not kept")
        require(len(ledger.loops()) == 1, "a loop was kept whose savepoint was undone")
        require(ledger.newest() == _at(7), "a time was kept whose savepoint was undone")


def check_rows_keep_their_order_and_their_values(place: Place) -> None:
    """Rows are numbered 1, 2, ... in each loop, and come back as they were written, to the last bit."""
    fields = {"arm": 7, "text": "snow ☃", "third": 1 / 3, "none": None, "eligible": ["a", 1], "explored": True}
    with _opened(place) as ledger:
        first, second = _some_loop(ledger, "first"), _some_loop(ledger, "second")
        for i in range(3):
            with ledger.transaction() as tx:
                found = [
                    tx.append(loop.id, _at(i), "decide", i + 1, fields, bytes(range(8))) for loop in (first, second)
                ]
                require(found == [i + 1, i + 1], f"rows are numbered {found}, not {[i + 1, i + 1]}")
                require(tx.last(first.id) == i + 1, f"the last row is {tx.last(first.id)}, not {i + 1}")
        expected = [Row(seq=i + 1, ts=i, kind="decide", t=i + 1, fields=fields, x=bytes(range(8))) for i in range(3)]
        for loop in (first, second):
            require(list(ledger.rows(loop.id)) == expected, "rows do not come back as they were written")
            require(list(ledger.rows(loop.id, after=2)) == expected[2:], "rows are not read from where it was asked")


def check_nobody_reads_half_a_transaction(place: Place) -> None:
    """Whoever reads while a pen is out sees none of it, or waits and sees all."""
    seen: list[int] = []
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        reader = threading.Thread(target=lambda: seen.append(len(list(ledger.rows(record.id)))))
        with ledger.transaction() as tx:
            tx.append(record.id, _at(1), "learn", 1, {}, None)
            reader.start()
            reader.join(0.05)  # one that does not wait has read by now
            tx.append(record.id, _at(1), "learn", 1, {}, None)
        reader.join()
    require(seen in ([0], [2]), f"a reader saw {seen} rows of a transaction of 2")


def check_steps_are_leased_once(place: Place) -> None:
    """No step is leased twice, nor again after a row was written for it, whoever opens the ledger."""
    leased: list[int] = []
    for _ in range(3):
        with _opened(place) as ledger:
            for steps in (1, 16, 3):
                with ledger.transaction() as tx:
                    record = tx.find("homepage") or tx.create("homepage", "{}", b"")
                    first = tx.lease(record.id, steps)
                    leased += range(first, first + steps)
                    tx.append(record.id, _at(1), "decide", first + steps - 1, {}, b"")
    require(leased[0] == 1, f"the first step is {leased[0]}, not 1")
    require(leased == sorted(set(leased)), "a step of the clock was leased twice")


def check_outcomes_are_found(place: Place) -> None:
    """An outcome is found by event, by step and when it is due; a new one takes the place of the old."""
    with _opened(place) as ledger:
        record, other = _some_loop(ledger), _some_loop(ledger, "other")
        late = Outcome(t=1, event="late", seq=1, phase="open", due=30)
        early = Outcome(t=2, event="early", seq=2, phase="open", value=-0.0, due=20)
        never = Outcome(t=3, event="never", seq=3, phase="learned", value=1e-300)
        with ledger.transaction() as tx:
            for outcome in (late, early, never):
                tx.put(record.id, outcome)
            for outcome in (late, early, never):
                require(tx.outcome(record.id, outcome.event) == outcome, "an outcome is not found by its event")
                require(tx.at(record.id, outcome.t) == outcome, "an outcome is not found by its step")
            require(tx.outcome(other.id, "late") is None, "an event of one loop is found in another")
        with ledger.transaction() as tx:
            require(list(tx.due(record.id, 19, 9)) == [], "an outcome is due before its time")
            require(list(tx.due(record.id, 30, 9)) == [early, late], "what is due is not found, the first one first")
            require(list(tx.due(record.id, 30, 1)) == [early], "more was found due than was asked for")
            tx.put(record.id, Outcome(t=2, event="early", seq=2, phase="learned", value=0.5))
            require(list(tx.due(record.id, 30, 9)) == [late], "an outcome that was settled is still due")


def _decided(tx: Transaction, loop: int, *, explored: bool = False, due: int | None = None) -> None:
    """Write a decision and what was learned from it."""
    t = tx.lease(loop, 1)
    seq = tx.append(loop, _at(t), "decide", t, {"explored": explored, "event": f"e{t}"}, b"\1" * 8)
    tx.append(loop, _at(t), "learn", t, {"of": seq, "reward": 0.5}, None)
    tx.put(loop, Outcome(t=t, event=f"e{t}", seq=seq, phase="learned", value=0.5, due=due))


def check_old_rows_can_go(place: Place) -> None:
    """What is erased or pruned is gone, what explored stays, and a loop goes on from the model that it is given."""
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        with ledger.transaction() as tx:
            for explored, due in ((True, None), (False, None), (False, 99), (False, None)):
                _decided(tx, record.id, explored=explored, due=due)
            tx.keep(record.id, 4, b"a snapshot")
        before = _all_of(ledger, record)
        with suppress(_BrokenOffError), ledger.transaction() as tx:
            _let_go(tx, record.id)
            raise _BrokenOffError
        require(_all_of(ledger, record) == before, "rows were gone though their transaction was broken off")
        with ledger.transaction() as tx:
            require(_let_go(tx, record.id) == 1, "not the one old decision that did not explore was pruned")
        require(ledger.scrub(), "nobody reads, but a scrub says that somebody is in the way")
    with _opened(place) as ledger, ledger.transaction() as tx:
        found = tx.find("homepage")
        require(found and (found.start, found.base) == (b"later", 8), "a loop does not go on from its new model")
        require(tx.snapshot(record.id) is None, "a snapshot is older than the model that a loop goes on from")
        left = [(row.kind, row.t) for row in tx.rows(record.id, 0)]
        require(("learn", 1) not in left, "what was told of a decision that was erased is still there")
        expected = [("decide", 1), ("decide", 3), ("learn", 3), ("decide", 4), ("learn", 4)]
        require(left == expected, f"rows {left} are left, not {expected}")
        first = tx.row(record.id, 1)
        require(first and first.x is None and "event" not in first.fields, "a context or event was not erased")
        known = [tx.outcome(record.id, f"e{t}") is not None for t in (1, 2, 3, 4)]
        require(known == [False, False, True, True], "an outcome is left that should be gone, or the reverse")
        require(tx.last(record.id) == 8, "the last row is another one after rows have gone")
        require(tx.append(record.id, _at(9), "learn", 3, {}, None) == 9, "a number of a row was given twice")


def _let_go(tx: Transaction, loop: int) -> int:
    for model in (b"sooner", b"later"):
        tx.rebase(loop, 8, model)
    found = tx.find("homepage")
    require(found and found.start == b"later", "a loop has not the model that it was given last")
    tx.erase(loop, 1)
    return tx.prune(loop, before=4, after=0, most=9).n


def check_old_rows_go_piece_by_piece(place: Place) -> None:
    """A piece of a prune looks at no more decisions than asked, and leaves what rows after the base are about."""
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        with ledger.transaction() as tx:
            for i in range(7):
                _decided(tx, record.id, explored=i == 1)
            tx.rebase(record.id, 10, b"later")  # so that the last two are needed to go on from it
            tx.append(record.id, _at(9), "correct", 4, {"of": 7}, None)  # and this one
        found: list[tuple[int, int | None]] = []
        after: int | None = 0
        while after is not None:
            with ledger.transaction() as tx:
                piece = tx.prune(record.id, 100, after, 3)
            found.append((piece.n, after := piece.after))
            require(len(found) < 9, "a prune has no end")
        require(found == [(2, 3), (1, 6), (0, None)], f"pieces of a prune gave {found}")
        left = [row.t for row in ledger.rows(record.id) if row.kind == "decide"]
        require(left == [2, 4, 6, 7], f"decisions {left} are left")
        with ledger.transaction() as tx:
            for _ in range(100):
                if not tx.shrink(1000):
                    return
    raise AssertionError("free space was given back without an end")


LEDGER_CHECKS: tuple[StoreCheck, ...] = (
    check_transactions_are_whole_or_nothing,
    check_calls_are_whole_or_nothing,
    check_rows_keep_their_order_and_their_values,
    check_nobody_reads_half_a_transaction,
    check_steps_are_leased_once,
    check_outcomes_are_found,
    check_old_rows_can_go,
    check_old_rows_go_piece_by_piece,
)
