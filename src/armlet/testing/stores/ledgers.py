"""What every ledger promises."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from armlet.stores import Kept, Ledger, Outcome, Pen, Row
from armlet.stores.clock import Moment
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


def _some_loop(ledger: Ledger, name: str = "homepage") -> Kept:
    with ledger.writing() as pen:
        return pen.create(name, '{"arms": ["a"]}', b"a model")


def _fill(pen: Pen, loop: int, ts: int = 5) -> None:
    """Write one of everything."""
    t = pen.lease(loop, 1)
    seq = pen.append(loop, _at(ts), "decide", t, {"arm": "a", "propensity": 0.1}, b"\0" * 8)
    pen.put(loop, Outcome(t=t, event=f"event {t}", seq=seq, phase="open", due=ts + 10))
    pen.keep(loop, seq, b"another model")


def _all_of(ledger: Ledger, kept: Kept) -> list[object]:
    """Read everything about a loop."""
    with ledger.writing() as pen:
        found = _all_by(pen, kept)
    return [*found, list(ledger.rows(kept.id)), list(ledger.loops()), ledger.newest()]


def _all_by(pen: Pen, kept: Kept) -> list[object]:
    require(pen.kept(kept.name), f"loop {kept.name!r} is gone")
    outcomes = [pen.at(kept.id, t) for t in range(1, 10)]
    return [pen.kept(kept.name), outcomes, list(pen.rows(kept.id, 0)), pen.snapshot(kept.id)]


def check_transactions_are_whole_or_nothing(place: Place) -> None:
    """What is raised in a transaction undoes all of it; what ends well is there after reopening."""
    with _opened(place) as ledger:
        kept = _some_loop(ledger)
        with ledger.writing() as pen:
            _fill(pen, kept.id)
        before = _all_of(ledger, kept)
        with suppress(_BrokenOffError), ledger.writing() as pen:
            pen.create("another", "{}", b"")
            _fill(pen, kept.id, ts=9)
            old = pen.at(kept.id, 1)
            require(old is not None, "an outcome that was put cannot be found by its step")
            pen.put(kept.id, Outcome(t=1, event="event 1", seq=1, phase="learned", value=0.5))
            raise _BrokenOffError
        require(_all_of(ledger, kept) == before, "a transaction that was broken off left something behind")
        with ledger.writing() as pen:
            require(pen.lease(kept.id, 1) == 2, "a transaction that was broken off kept its step of the clock")
            pen.append(kept.id, _at(11), "learn", 1, {"reward": 0.1 + 0.2}, None)
        before = _all_of(ledger, kept)
    with _opened(place) as ledger:
        require(_all_of(ledger, kept) == before, "what was written is not what is read after reopening")


def check_calls_are_whole_or_nothing(place: Place) -> None:
    """What is raised at a savepoint undoes what was done since, and nothing else of the transaction."""
    with _opened(place) as ledger:
        kept = _some_loop(ledger)
        with ledger.writing() as pen:
            _fill(pen, kept.id)
            before = _all_by(pen, kept)
            with suppress(_BrokenOffError), pen.savepoint():
                with pen.savepoint():
                    _fill(pen, kept.id, ts=9)
                pen.create("another", "{}", b"")
                pen.rebase(kept.id, 1, b"later")
                pen.erase(kept.id, 1)
                raise _BrokenOffError
            require(_all_by(pen, kept) == before, "what was raised at a savepoint left something behind")
            require(pen.lease(kept.id, 1) == 2, "what was raised at a savepoint kept its step of the clock")
            with pen.savepoint():
                require(pen.append(kept.id, _at(7), "learn", 1, {}, None) == 2, "a row was numbered that is not there")
        require([row.seq for row in ledger.rows(kept.id)] == [1, 2], "what was not raised at a savepoint is not kept")
        require(len(ledger.loops()) == 1, "a loop was kept whose savepoint was undone")
        require(ledger.newest() == _at(7), "a time was kept whose savepoint was undone")


def check_rows_keep_their_order_and_their_values(place: Place) -> None:
    """Rows are numbered 1, 2, ... in each loop, and come back as they were written, to the last bit."""
    fields = {"arm": 7, "text": "snow ☃", "third": 1 / 3, "none": None, "eligible": ["a", 1], "explored": True}
    with _opened(place) as ledger:
        first, second = _some_loop(ledger, "first"), _some_loop(ledger, "second")
        for i in range(3):
            with ledger.writing() as pen:
                found = [
                    pen.append(loop.id, _at(i), "decide", i + 1, fields, bytes(range(8))) for loop in (first, second)
                ]
                require(found == [i + 1, i + 1], f"rows are numbered {found}, not {[i + 1, i + 1]}")
                require(pen.last(first.id) == i + 1, f"the last row is {pen.last(first.id)}, not {i + 1}")
        expected = [Row(seq=i + 1, ts=i, kind="decide", t=i + 1, fields=fields, x=bytes(range(8))) for i in range(3)]
        for loop in (first, second):
            require(list(ledger.rows(loop.id)) == expected, "rows do not come back as they were written")
            require(list(ledger.rows(loop.id, after=2)) == expected[2:], "rows are not read from where it was asked")


def check_nobody_reads_half_a_transaction(place: Place) -> None:
    """Whoever reads while a pen is out sees none of it, or waits and sees all."""
    seen: list[int] = []
    with _opened(place) as ledger:
        kept = _some_loop(ledger)
        reader = threading.Thread(target=lambda: seen.append(len(list(ledger.rows(kept.id)))))
        with ledger.writing() as pen:
            pen.append(kept.id, _at(1), "learn", 1, {}, None)
            reader.start()
            reader.join(0.05)  # one that does not wait has read by now
            pen.append(kept.id, _at(1), "learn", 1, {}, None)
        reader.join()
    require(seen in ([0], [2]), f"a reader saw {seen} rows of a transaction of 2")


def check_steps_are_leased_once(place: Place) -> None:
    """No step is leased twice, nor again after a row was written for it, whoever opens the ledger."""
    leased: list[int] = []
    for _ in range(3):
        with _opened(place) as ledger:
            for steps in (1, 16, 3):
                with ledger.writing() as pen:
                    kept = pen.kept("homepage") or pen.create("homepage", "{}", b"")
                    first = pen.lease(kept.id, steps)
                    leased += range(first, first + steps)
                    pen.append(kept.id, _at(1), "decide", first + steps - 1, {}, b"")
    require(leased[0] == 1, f"the first step is {leased[0]}, not 1")
    require(leased == sorted(set(leased)), "a step of the clock was leased twice")


def check_outcomes_are_found(place: Place) -> None:
    """An outcome is found by event, by step and when it is due; a new one takes the place of the old."""
    with _opened(place) as ledger:
        kept, other = _some_loop(ledger), _some_loop(ledger, "other")
        late = Outcome(t=1, event="late", seq=1, phase="open", due=30)
        early = Outcome(t=2, event="early", seq=2, phase="open", value=-0.0, due=20)
        never = Outcome(t=3, event="never", seq=3, phase="learned", value=1e-300)
        with ledger.writing() as pen:
            for outcome in (late, early, never):
                pen.put(kept.id, outcome)
            for outcome in (late, early, never):
                require(pen.outcome(kept.id, outcome.event) == outcome, "an outcome is not found by its event")
                require(pen.at(kept.id, outcome.t) == outcome, "an outcome is not found by its step")
            require(pen.outcome(other.id, "late") is None, "an event of one loop is found in another")
        with ledger.writing() as pen:
            require(list(pen.due(kept.id, 19, 9)) == [], "an outcome is due before its time")
            require(list(pen.due(kept.id, 30, 9)) == [early, late], "what is due is not found, the first one first")
            require(list(pen.due(kept.id, 30, 1)) == [early], "more was found due than was asked for")
            pen.put(kept.id, Outcome(t=2, event="early", seq=2, phase="learned", value=0.5))
            require(list(pen.due(kept.id, 30, 9)) == [late], "an outcome that was settled is still due")


def _decided(pen: Pen, loop: int, *, explored: bool = False, due: int | None = None) -> None:
    """Write a decision and what was learned from it."""
    t = pen.lease(loop, 1)
    seq = pen.append(loop, _at(t), "decide", t, {"explored": explored, "event": f"e{t}"}, b"\1" * 8)
    pen.append(loop, _at(t), "learn", t, {"of": seq, "reward": 0.5}, None)
    pen.put(loop, Outcome(t=t, event=f"e{t}", seq=seq, phase="learned", value=0.5, due=due))


def check_old_rows_can_go(place: Place) -> None:
    """What is erased or pruned is gone, what explored stays, and a loop goes on from the model that it is given."""
    with _opened(place) as ledger:
        kept = _some_loop(ledger)
        with ledger.writing() as pen:
            for explored, due in ((True, None), (False, None), (False, 99), (False, None)):
                _decided(pen, kept.id, explored=explored, due=due)
            pen.keep(kept.id, 4, b"a snapshot")
        before = _all_of(ledger, kept)
        with suppress(_BrokenOffError), ledger.writing() as pen:
            _let_go(pen, kept.id)
            raise _BrokenOffError
        require(_all_of(ledger, kept) == before, "rows were gone though their transaction was broken off")
        with ledger.writing() as pen:
            require(_let_go(pen, kept.id) == 1, "not the one old decision that did not explore was pruned")
        require(ledger.scrub(), "nobody reads, but a scrub says that somebody is in the way")
    with _opened(place) as ledger, ledger.writing() as pen:
        found = pen.kept("homepage")
        require(found and (found.start, found.base) == (b"later", 8), "a loop does not go on from its new model")
        require(pen.snapshot(kept.id) is None, "a snapshot is older than the model that a loop goes on from")
        left = [(row.kind, row.t) for row in pen.rows(kept.id, 0)]
        require(("learn", 1) not in left, "what was told of a decision that was erased is still there")
        expected = [("decide", 1), ("decide", 3), ("learn", 3), ("decide", 4), ("learn", 4)]
        require(left == expected, f"rows {left} are left, not {expected}")
        first = pen.row(kept.id, 1)
        require(first and first.x is None and "event" not in first.fields, "a context or event was not erased")
        known = [pen.outcome(kept.id, f"e{t}") is not None for t in (1, 2, 3, 4)]
        require(known == [False, False, True, True], "an outcome is left that should be gone, or the reverse")
        require(pen.last(kept.id) == 8, "the last row is another one after rows have gone")
        require(pen.append(kept.id, _at(9), "learn", 3, {}, None) == 9, "a number of a row was given twice")


def _let_go(pen: Pen, loop: int) -> int:
    for model in (b"sooner", b"later"):
        pen.rebase(loop, 8, model)
    found = pen.kept("homepage")
    require(found and found.start == b"later", "a loop has not the model that it was given last")
    pen.erase(loop, 1)
    return pen.prune(loop, before=4, after=0, most=9).n


def check_old_rows_go_piece_by_piece(place: Place) -> None:
    """A piece of a prune looks at no more decisions than asked, and leaves what rows after the base are about."""
    with _opened(place) as ledger:
        kept = _some_loop(ledger)
        with ledger.writing() as pen:
            for i in range(7):
                _decided(pen, kept.id, explored=i == 1)
            pen.rebase(kept.id, 10, b"later")  # so that the last two are needed to go on from it
            pen.append(kept.id, _at(9), "correct", 4, {"of": 7}, None)  # and this one
        found: list[tuple[int, int | None]] = []
        after: int | None = 0
        while after is not None:
            with ledger.writing() as pen:
                piece = pen.prune(kept.id, 100, after, 3)
            found.append((piece.n, after := piece.after))
            require(len(found) < 9, "a prune has no end")
        require(found == [(2, 3), (1, 6), (0, None)], f"pieces of a prune gave {found}")
        left = [row.t for row in ledger.rows(kept.id) if row.kind == "decide"]
        require(left == [2, 4, 6, 7], f"decisions {left} are left")
        with ledger.writing() as pen:
            for _ in range(100):
                if not pen.shrink(1000):
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
