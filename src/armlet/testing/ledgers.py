"""What every ledger of a store promises, as checks; `armlet.testing.check_store` runs them, and then those of loops.

They write what no loop would, read it back, and raise AssertionError with the promise that was broken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TypeAlias

from armlet.stores import Ledger, LoopRecord, Moment, Pending, Row
from armlet.stores.ledger import Early, Part, Want
from armlet.stores.transaction import Draft, Transaction, transaction

Place: TypeAlias = Callable[[], Ledger]
"""Opens a ledger; called again after it was closed, it opens the same one, with what was written."""

StoreCheck: TypeAlias = Callable[[Place], None]


def require(holds: object, promise: str) -> None:
    """Raise AssertionError with the promise if it was broken."""
    if not holds:
        raise AssertionError(promise)


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
    """Return a moment; its steady time is another one, as after the wall clock was set."""
    return Moment(wall, wall + 1000)


def _some_loop(ledger: Ledger, name: str = "homepage", clock: int = 0) -> LoopRecord:
    with transaction(ledger) as tx, tx.savepoint() as session:
        return session.create(name, '{"arms": ["a"]}', b"a model", clock)


def entered(tx: Transaction, loop: int) -> Draft:
    """Lock a loop."""
    tx.enter([Want(loop)])
    draft = tx.draft(loop)
    if draft is None:
        raise AssertionError(f"loop {loop} cannot be entered")
    return draft


def _fill(tx: Transaction, loop: int, ts: int = 5) -> None:
    """Write one of everything."""
    draft = entered(tx, loop)
    t = draft.clock + 1
    seq = draft.append(_at(ts), "decide", t, {"arm": "a", "propensity": 0.1, "explored": False}, b"\0" * 8)
    draft.insert(Pending(t=t, event=f"event {t}", seq=seq, phase="open", due=ts + 10))
    draft.early.append(Early(f"early {t}", ts + 20, {"value": 0.5}))
    draft.snapshot = (seq, b"another model")
    draft.tally = f'{{"decisions": {t}}}'


def _all_of(ledger: Ledger, record: LoopRecord) -> list[object]:
    """Read everything about a loop."""
    with transaction(ledger) as tx:
        found = _all_by(tx, record)
    read = [list(ledger.rows(record.id)), list(ledger.loops()), ledger.newest(), ledger.head(record.id)]
    return [*found, *read, [ledger.decided(record.id, t) for t in range(1, 10)]]


def _all_by(tx: Transaction, record: LoopRecord) -> list[object]:
    with tx.savepoint() as session:
        require(session.find(record.name), f"loop {record.name!r} is gone")
        entered = session.enter([Want(record.id)])
        decided = sorted(session.decided(record.id, [f"{name} {t}" for t in range(10) for name in ("event", "e")]))
        early = [list(session.early(record.id, f"early {t}")) for t in range(10)]
        due = list(session.due(record.id, 10**9, 99))
        rows = list(session.rows(record.id, 0))
        found = [session.find(record.name), session.snapshot(record.id), session.tally(record.id)]
        return [*found, entered, decided, early, due, rows]


def check_transactions_are_whole_or_nothing(place: Place) -> None:
    """What is raised in a transaction undoes all of it; what ends well is there after reopening."""
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        with transaction(ledger) as tx:
            _fill(tx, record.id)
        before = _all_of(ledger, record)
        with suppress(_BrokenOffError), transaction(ledger) as tx:
            with tx.savepoint() as session:
                session.create("another", "{}", b"", 0)
            _fill(tx, record.id, ts=9)
            draft = entered(tx, record.id)
            draft.change(Pending(t=1, event="event 1", seq=1, phase="learned", value=0.5))
            draft.arrived.append(("early 1", 1))
            tx.flush()
            raise _BrokenOffError
        require(_all_of(ledger, record) == before, "a transaction that was broken off left something behind")
        with transaction(ledger) as tx:
            draft = entered(tx, record.id)
            require(draft.clock == 1, "a transaction that was broken off kept its step of the clock")
            draft.append(_at(11), "learn", 1, {"reward": 0.1 + 0.2}, None)
            draft.change(Pending(t=1, event="event 1", seq=1, phase="learned", value=0.1 + 0.2))
            draft.arrived.append(("early 1", 1))
        before = _all_of(ledger, record)
    with _opened(place) as ledger:
        require(_all_of(ledger, record) == before, "what was written is not what is read after reopening")
        head = ledger.head(record.id)
        require(head and head.early == 0, "an early reward that has arrived is still counted")
        require(head and head.tallied == 1, "the last row that a tally has counted is another one")
        with ledger.session() as session:
            require(session.tally(record.id) == '{"decisions": 1}', "counts of calls are not kept")
            require(list(session.early(record.id, "early 1")) == [], "an early reward that has arrived still waits")


def check_calls_are_whole_or_nothing(place: Place) -> None:
    """What is undone in a draft, or raised at a savepoint, is not written; the rest of the transaction is."""
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        with transaction(ledger) as tx:
            _fill(tx, record.id)
            before = _all_by(tx, record)
            with suppress(_BrokenOffError), tx.savepoint() as session:
                _fill(tx, record.id, ts=9)
                session.create("another", "{}", b"", 0)
                session.rebase(record.id, 1, b"later")
                session.describe(record.id, "{}")
                session.erase(record.id, 1)
                raise _BrokenOffError
            require(_all_by(tx, record) == before, "what was raised at a savepoint left something behind")
            draft = entered(tx, record.id)
            mark = draft.mark()
            _fill(tx, record.id, ts=9)
            draft.undo(mark)
            require(draft.clock == 1, "a call that was undone kept its step of the clock")
            require(draft.append(_at(7), "learn", 1, {}, None) == 2, "a row was numbered that is not there")
        require([row.seq for row in ledger.rows(record.id)] == [1, 2], "what was not undone is not kept")
        require(len(ledger.loops()) == 1, "a loop was kept whose savepoint was undone")
        require(ledger.newest() == _at(7), "a time was kept whose savepoint was undone")


def check_rows_keep_their_order_and_their_values(place: Place) -> None:
    """Rows are numbered 1, 2, ... in each loop, and come back as they were written, to the last bit."""
    fields = {"arm": 7, "text": "snow ☃", "third": 1 / 3, "none": None, "eligible": ["a", 1], "explored": True}
    with _opened(place) as ledger:
        loops = _some_loop(ledger, "first").id, _some_loop(ledger, "second").id
        for i in range(3):
            with transaction(ledger) as tx:
                tx.enter([Want(loop) for loop in loops])
                found = [entered(tx, loop).append(_at(i), "decide", i + 1, fields, bytes(range(8))) for loop in loops]
                require(found == [i + 1, i + 1], f"rows are numbered {found}, not {[i + 1, i + 1]}")
        expected = [Row(seq=i + 1, ts=i, kind="decide", t=i + 1, fields=fields, x=bytes(range(8))) for i in range(3)]
        for loop in loops:
            require(list(ledger.rows(loop)) == expected, "rows do not come back as they were written")
            require(list(ledger.rows(loop, after=2)) == expected[2:], "rows are not read from where it was asked")
        with ledger.session() as session:
            found_again = session.enter([Want(loops[0], after=1), Want(loops[1])])
            rows = [list(each.rows) for each in found_again if each is not None]
            require(rows == [expected[1:], []], "who enters a loop does not get the rows of others, or gets his own")
            require(session.enter([Want(loops[1] + 7)]) == [None], "a loop was entered that is not there")


def check_nobody_reads_half_a_transaction(place: Place) -> None:
    """A reader during a transaction sees none of it, or waits and sees all."""
    seen: list[int] = []
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        reader = threading.Thread(target=lambda: seen.append(len(list(ledger.rows(record.id)))))
        with transaction(ledger) as tx:
            entered(tx, record.id).append(_at(1), "learn", 1, {}, None)
            tx.flush()
            reader.start()
            reader.join(0.05)  # one that does not wait has read by now
            entered(tx, record.id).append(_at(1), "learn", 1, {}, None)
        reader.join()
    require(seen in ([0], [2]), f"a reader saw {seen} rows of a transaction of 2")


def check_the_clock_goes_forward_only(place: Place) -> None:
    """Every step is decided once, from the one after that of the model, no matter who opens the ledger."""
    steps: list[int] = []
    with _opened(place) as ledger:
        record = _some_loop(ledger, clock=40)
    for _ in range(3):
        with _opened(place) as ledger, transaction(ledger) as tx:
            for _ in range(2):
                draft = entered(tx, record.id)
                steps.append(draft.clock + 1)
                draft.append(_at(1), "decide", draft.clock + 1, {}, b"")
                tx.flush()
    require(steps == [41, 42, 43, 44, 45, 46], f"steps {steps} were decided, not 41 to 46")


def check_changes_count_epochs(place: Place) -> None:
    """What changes a loop without a row counts up its epoch, so that nobody goes on with what he remembers."""
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        epochs = [_epoch(ledger, record)]
        with transaction(ledger) as tx:
            _fill(tx, record.id)
        require(_epoch(ledger, record) == epochs[0], "an epoch was counted up by a row")
        for change in ("describe", "rebase"):
            with transaction(ledger) as tx, tx.savepoint() as session:
                session.enter([Want(record.id)])
                session.describe(record.id, "{}") if change == "describe" else session.rebase(record.id, 1, b"later")
            epochs.append(_epoch(ledger, record))
        require(epochs == sorted(set(epochs)), f"epochs are {epochs} after new rules and a new model")
        found = next(iter(ledger.loops()))
        require((found.about, found.start, found.base) == ("{}", b"later", 1), "rules or a model were not kept")


def _epoch(ledger: Ledger, record: LoopRecord) -> int:
    head = ledger.head(record.id)
    return -1 if head is None else head.epoch


def check_outcomes_are_found(place: Place) -> None:
    """An outcome is found by event and when it is due; a new one takes the place of the old."""
    with _opened(place) as ledger:
        loops = _some_loop(ledger).id, _some_loop(ledger, "other").id
        late = Pending(t=1, event="late", seq=1, phase="open", due=30, rank=2, names=("a", "ü"), played="b")
        early = Pending(t=2, event="early", seq=2, phase="open", value=-0.0, due=20, played=7)
        never = Pending(t=3, event="never", seq=3, phase="learned", value=1e-300)
        with transaction(ledger) as tx:
            draft = entered(tx, loops[0])
            for outcome in (late, early, never):
                draft.append(_at(1), "decide", outcome.t, {"event": outcome.event, "explored": True}, b"")
                draft.insert(outcome)
        with ledger.session() as session:
            session.enter([Want(loop) for loop in loops])
            for outcome in (late, early, never):
                found = session.decided(loops[0], [outcome.event, "nobody"])
                require([each.pending for each in found] == [outcome], "an outcome is not found by its event")
                require([each.row.seq for each in found] == [outcome.seq], "an outcome has the row of another")
            many = session.decided(loops[0], [*(f"nobody {i}" for i in range(700)), "late", "never"])
            require({each.pending for each in many} == {late, never}, "outcomes are not found among many events")
            require(session.decided(loops[1], ["late"]) == [], "an event of one loop is found in another")
            require(list(session.due(loops[0], 19, 9)) == [], "an outcome is due before its time")
            due = [each.pending for each in session.due(loops[0], 30, 9)]
            require(due == [early, late], "what is due is not found, the first one first")
            due = [each.pending for each in session.due(loops[0], 30, 1)]
            require(due == [early], "more was found due than was asked for, or not the first")
            wanted = session.enter([Want(loops[0], events=["never", "nobody"], due=20, most=9)])[0]
            require(
                wanted and [each.pending for each in wanted.decided] == [never], "an event is not found on entering"
            )
            require(wanted and [each.pending for each in wanted.due] == [early], "what is due is not found on entering")
        with transaction(ledger) as tx:
            draft = entered(tx, loops[0])
            draft.change(Pending(t=2, event="early", seq=2, phase="learned", value=0.5))
            tx.flush()
            due = [each.pending for each in tx.session.due(loops[0], 30, 9)]
            require(due == [late], "an outcome that was settled is still due")
        steps = [None if (row := ledger.decided(loops[0], t)) is None else row.seq for t in (1, 2, 3, 4)]
        require(steps == [1, 2, 3, None], "a decision is not found by its step")


def check_early_rewards_wait(place: Place) -> None:
    """Rewards before their decision are found in the order in which they came, and go when it is time."""
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        rewards = [Early("e", 30, {"value": 0.5}), Early("e", 20, {"value": 1.0}), Early("f", 10, {"value": 0.0})]
        with transaction(ledger) as tx:
            entered(tx, record.id).early.extend(rewards)
        with transaction(ledger) as tx, tx.savepoint() as session:
            session.enter([Want(record.id)])
            require(list(session.early(record.id, "e")) == rewards[:2], "early rewards are not found in their order")
            require(session.drop_early(record.id, 10, 9) == 1, "not the one early reward that was over was dropped")
            require(list(session.early(record.id, "f")) == [], "an early reward is there after its time")
        head = ledger.head(record.id)
        require(head and head.early == 2, "early rewards are not counted")


def check_loops_can_be_deleted(place: Place) -> None:
    """All of a loop goes, piece by piece, and nothing of another one."""
    with _opened(place) as ledger:
        record, other = _some_loop(ledger), _some_loop(ledger, "other")
        for loop in (record, other):
            with transaction(ledger) as tx:
                for _ in range(5):
                    _fill(tx, loop.id)
        kept = list(ledger.rows(other.id))
        pieces, is_more = 0, True
        while is_more and pieces < 99:
            with transaction(ledger) as tx, tx.savepoint() as session:
                session.enter([Want(record.id)])
                is_more = session.delete(record.id, 2)
            pieces += 1
        require(2 <= pieces < 50, f"a loop of 5 rows was deleted in {pieces} pieces of 2")
        require([each.name for each in ledger.loops()] == ["other"], "a loop that was deleted is still there")
        require(ledger.head(record.id) is None, "a loop that was deleted has a head")
        require(list(ledger.rows(other.id)) == kept, "rows of another loop were deleted")
        again = _some_loop(ledger)
        require(list(ledger.rows(again.id)) == [], "a new loop has the rows of one that was deleted")
        with transaction(ledger) as tx:
            _, snapshot, tally, _, *rest = _all_by(tx, again)
        left = [snapshot, tally, *rest]
        require(left == [None, None, [], [[]] * 10, [], []], f"a new loop has {left} of one that was deleted")


def _decided(tx: Transaction, loop: int, *, explored: bool = False, due: int | None = None) -> None:
    """Write a decision and what was learned from it."""
    draft = entered(tx, loop)
    t = draft.clock + 1
    seq = draft.append(_at(t), "decide", t, {"explored": explored, "event": f"e {t}"}, b"\1" * 8)
    draft.append(_at(t), "learn", t, {"of": seq, "reward": 0.5}, None)
    draft.insert(Pending(t=t, event=f"e {t}", seq=seq, phase="learned", value=0.5, due=due))


def check_old_rows_can_go(place: Place) -> None:
    """What is erased or pruned is gone, what explored stays, and a loop goes on from the model that it is given."""
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        with transaction(ledger) as tx:
            for explored, due in ((True, None), (False, None), (False, 99), (False, None)):
                _decided(tx, record.id, explored=explored, due=due)
            entered(tx, record.id).snapshot = (4, b"a snapshot")
        before = _all_of(ledger, record)
        with suppress(_BrokenOffError), transaction(ledger) as tx:
            _let_go(tx, record.id)
            raise _BrokenOffError
        require(_all_of(ledger, record) == before, "rows were gone though their transaction was broken off")
        with transaction(ledger) as tx:
            require(_let_go(tx, record.id) == 1, "not the one old decision that did not explore was pruned")
        require(ledger.scrub(), "nobody reads, but a scrub says that somebody is in the way")
    with _opened(place) as ledger, transaction(ledger) as tx:
        session = tx.session
        found = session.find("homepage")
        require(found and (found.start, found.base) == (b"later", 8), "a loop does not go on from its new model")
        require(session.snapshot(record.id) is None, "a snapshot is older than the model that a loop goes on from")
        rows = list(session.rows(record.id, 0))
        picked = session.pick(record.id, [999, *(row.seq for row in rows)])
        require(sorted(picked) == rows, "rows that are picked by their numbers are others")
        for t in (1, 3, 4):
            about = [row for row in rows if row.t == t and row.kind != "decide"]
            require(session.heard(record.id, t) == about, f"the rows about step {t} are others, or not in order")
        left = [(row.kind, row.t) for row in rows]
        require(("learn", 1) not in left, "what was told of a decision that was erased is still there")
        expected = [("decide", 1), ("decide", 3), ("learn", 3), ("decide", 4), ("learn", 4)]
        require(left == expected, f"rows {left} are left, not {expected}")
        first = session.row(record.id, 1)
        require(first and first.x is None and "event" not in first.fields, "a context or event was not erased")
        known = [len(session.decided(record.id, [f"e {t}"])) for t in (1, 2, 3, 4)]
        require(known == [0, 0, 1, 1], "an outcome is left that should be gone, or the reverse")
        draft = entered(tx, record.id)
        require(draft.entered.head.outcomes == 2, "outcomes that are gone are still counted")
        require(draft.append(_at(9), "learn", 3, {}, None) == 9, "a number of a row was given twice")


def _let_go(tx: Transaction, loop: int) -> int:
    with tx.savepoint() as session:
        session.enter([Want(loop)])
        for model in (b"sooner", b"later"):
            session.rebase(loop, 8, model)
        found = session.find("homepage")
        require(found and found.start == b"later", "a loop has not the model that it was given last")
        session.erase(loop, 1)
        return session.prune(loop, before=4, after=0, most=9).n


def check_old_rows_go_piece_by_piece(place: Place) -> None:
    """A piece of a prune looks at no more decisions than asked, and leaves what rows after the base are about."""
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        with transaction(ledger) as tx:
            for i in range(7):
                _decided(tx, record.id, explored=i == 1)
            with tx.savepoint() as session:
                session.enter([Want(record.id)])
                session.rebase(record.id, 10, b"later")  # so that the last two are needed to go on from it
            entered(tx, record.id).append(_at(9), "correct", 4, {"of": 7}, None)  # and this one
        found: list[tuple[int, int | None]] = []
        after: int | None = 0
        while after is not None:
            with transaction(ledger) as tx, tx.savepoint() as session:
                session.enter([Want(record.id)])
                piece = session.prune(record.id, 100, after, 3)
            found.append((piece.n, after := piece.after))
            require(len(found) < 9, "a prune has no end")
        require(found == [(2, 3), (1, 6), (0, None)], f"pieces of a prune gave {found}")
        left = [row.t for row in ledger.rows(record.id) if row.kind == "decide"]
        require(left == [2, 4, 6, 7], f"decisions {left} are left")
        _check_what_waits_stays(ledger, record.id)
        with ledger.session() as session:
            for _ in range(100):
                if not session.shrink(1000):
                    return
    raise AssertionError("free space was given back without an end")


def _check_what_waits_stays(ledger: Ledger, loop: int) -> None:
    with transaction(ledger) as tx:
        draft = entered(tx, loop)
        t = draft.clock + 1
        seq = draft.append(_at(t), "decide", t, {"explored": False, "event": "waits"}, None)
        outcome = Pending(t=t, event="waits", seq=seq, phase="open")
        draft.insert(outcome)
        with tx.savepoint() as session:
            session.enter([Want(loop)])
            session.rebase(loop, seq, b"later still")
            piece = session.prune(loop, 100, t - 1, 3)
        waiting = [each.pending for each in piece.open]
        require((piece.n, waiting) == (0, [outcome]), f"pruning a decision that is waited for gave {piece}")
    with transaction(ledger) as tx:
        require(len(tx.session.decided(loop, ["waits"])) == 1, "a decision that is waited for was pruned")
        entered(tx, loop).change(outcome._replace(phase="expired"))
        with tx.savepoint() as session:
            session.enter([Want(loop)])
            piece = session.prune(loop, 100, t - 1, 3)
        require((piece.n, piece.open) == (1, ()), f"pruning a decision that has expired gave {piece}")
        require(len(tx.session.decided(loop, ["waits"])) == 0, "a decision that has expired was not pruned")


def check_rows_can_be_dropped(place: Place) -> None:
    """Rows go by their numbers, in whole transactions, and no others with them; no number is given again."""
    with _opened(place) as ledger:
        record, other = _some_loop(ledger), _some_loop(ledger, "other")
        for loop in (record, other):
            with transaction(ledger) as tx:
                for _ in range(4):
                    _fill(tx, loop.id)
        before = [row.seq for row in ledger.rows(record.id)]
        gone = before[1:3]
        with suppress(_BrokenOffError), transaction(ledger) as tx:
            _drop_rows(tx, record.id, gone)
            raise _BrokenOffError
        found = [row.seq for row in ledger.rows(record.id)]
        require(found == before, "rows were dropped though their transaction was broken off")
        with transaction(ledger) as tx:
            _drop_rows(tx, record.id, gone)
        found = [row.seq for row in ledger.rows(record.id)]
        require(
            found == [seq for seq in before if seq not in gone], f"rows {found} of {before} are left without {gone}"
        )
        require([row.seq for row in ledger.rows(other.id)] == before, "rows of another loop were dropped")
    with _opened(place) as ledger, transaction(ledger) as tx:
        number = entered(tx, record.id).append(_at(9), "learn", 1, {}, None)
        require(number == before[-1] + 1, "the number of a row that was dropped was given again")


def _drop_rows(tx: Transaction, loop: int, seqs: Sequence[int]) -> None:
    with tx.savepoint() as session:
        session.enter([Want(loop)])
        session.drop_rows(loop, seqs)


def check_parts_are_kept(place: Place) -> None:
    """Parts of a reward come back as they were written: values, ranks and names, and who has them."""
    cost = Part(1 / 3, "learned", 2, ("a", "ü"))
    several = {"cost": cost, "quality": Part(0.5, "held"), "late": Part(0.0, "default", 1)}
    with _opened(place) as ledger:
        record = _some_loop(ledger)
        with transaction(ledger) as tx:
            _fill(tx, record.id)
            entered(tx, record.id).change(Pending(t=1, event="event 1", seq=1, phase="open", due=15, parts=several))
    with _opened(place) as ledger, transaction(ledger) as tx:
        for found in (tx.session.decided(record.id, ["event 1"]), tx.session.due(record.id, 15, 9)):
            _check_parts(found[0].pending if found else None, several)
        other = {"cost": cost._replace(names=(*cost.names, "b"), rank=3)}
        entered(tx, record.id).change(Pending(t=1, event="event 1", seq=1, phase="learned", parts=other))
        tx.flush()
        _check_parts(tx.session.decided(record.id, ["event 1"])[0].pending, other)
        entered(tx, record.id).change(Pending(t=1, event="event 1", seq=1, phase="open"))
        tx.flush()
        require(tx.session.decided(record.id, ["event 1"])[0].pending.parts is None, "parts are left that were dropped")


def _check_parts(outcome: Pending | None, expected: Mapping[str, Part]) -> None:
    found = {} if outcome is None else dict(outcome.parts or {})
    require(found.keys() == expected.keys(), f"a reward has the parts {list(found)}, not {list(expected)}")
    for name, part in expected.items():
        for field in Part._fields:
            now, then = getattr(found[name], field), getattr(part, field)
            require(now == then, f"the {field} of a part is {now!r}, not {then!r}")


LEDGER_CHECKS: tuple[StoreCheck, ...] = (
    check_transactions_are_whole_or_nothing,
    check_calls_are_whole_or_nothing,
    check_rows_keep_their_order_and_their_values,
    check_nobody_reads_half_a_transaction,
    check_the_clock_goes_forward_only,
    check_changes_count_epochs,
    check_outcomes_are_found,
    check_parts_are_kept,
    check_early_rewards_wait,
    check_loops_can_be_deleted,
    check_old_rows_can_go,
    check_old_rows_go_piece_by_piece,
    check_rows_can_be_dropped,
)
