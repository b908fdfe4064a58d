"""What every store promises, as checks that can be run over any of them.

`check_store` runs over Armlet's own ledgers in its tests; run it over one of your own in yours. Checks of the ledger
come first, then those of loops that are kept in it. They raise AssertionError with the promise that was broken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias

from armlet.bandit import Bandit
from armlet.core.errors import EventError, StoreError
from armlet.policies import Algorithm1, ContextualEpsilonGreedy, LinUCB
from armlet.stores import Aggregation, Kept, Ledger, Outcome, Pen, Row, Status, Store
from armlet.stores.replay import rebuild

Place: TypeAlias = Callable[[], Ledger]
"""Opens a ledger; called again after it was closed, it opens the same one, with what was written."""

StoreCheck: TypeAlias = Callable[[Place], None]


class _BrokenOffError(Exception):
    """Ends a transaction in the midst of it."""


def _require(holds: object, promise: str) -> None:
    if not holds:
        raise AssertionError(promise)


@contextmanager
def _opened(place: Place) -> Iterator[Ledger]:
    ledger = place()
    try:
        yield ledger
    finally:
        ledger.close()


def _some_loop(ledger: Ledger, name: str = "homepage") -> Kept:
    with ledger.writing() as pen:
        return pen.create(name, '{"arms": ["a"]}', b"a model")


def _fill(pen: Pen, loop: int, ts: int = 5) -> None:
    """Write one of everything."""
    t = pen.lease(loop, 1)
    seq = pen.append(loop, ts, "decide", t, {"arm": "a", "propensity": 0.1}, b"\0" * 8)
    pen.put(loop, Outcome(t=t, event=f"event {t}", seq=seq, phase="open", due=ts + 10))
    pen.keep(loop, seq, b"another model")


def _all_of(ledger: Ledger, kept: Kept) -> list[object]:
    """Read everything about a loop."""
    with ledger.writing() as pen:
        _require(pen.kept(kept.name), f"loop {kept.name!r} is gone")
        outcomes = [pen.at(kept.id, t) for t in range(1, 10)]
        found = [pen.kept(kept.name), outcomes, list(pen.rows(kept.id, 0)), pen.snapshot(kept.id)]
    return [*found, list(ledger.rows(kept.id)), list(ledger.loops()), ledger.newest()]


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
            _require(old is not None, "an outcome that was put cannot be found by its step")
            pen.put(kept.id, Outcome(t=1, event="event 1", seq=1, phase="learned", value=0.5))
            raise _BrokenOffError
        _require(_all_of(ledger, kept) == before, "a transaction that was broken off left something behind")
        with ledger.writing() as pen:
            _require(pen.lease(kept.id, 1) == 2, "a transaction that was broken off kept its step of the clock")
            pen.append(kept.id, 11, "learn", 1, {"reward": 0.1 + 0.2}, None)
        before = _all_of(ledger, kept)
    with _opened(place) as ledger:
        _require(_all_of(ledger, kept) == before, "what was written is not what is read after reopening")


def check_rows_keep_their_order_and_their_values(place: Place) -> None:
    """Rows are numbered 1, 2, ... in each loop, and come back as they were written, to the last bit."""
    fields = {"arm": 7, "text": "snow ☃", "third": 1 / 3, "none": None, "eligible": ["a", 1], "explored": True}
    with _opened(place) as ledger:
        first, second = _some_loop(ledger, "first"), _some_loop(ledger, "second")
        for i in range(3):
            with ledger.writing() as pen:
                found = [pen.append(loop.id, i, "decide", i + 1, fields, bytes(range(8))) for loop in (first, second)]
                _require(found == [i + 1, i + 1], f"rows are numbered {found}, not {[i + 1, i + 1]}")
        expected = [Row(seq=i + 1, ts=i, kind="decide", t=i + 1, fields=fields, x=bytes(range(8))) for i in range(3)]
        for loop in (first, second):
            _require(list(ledger.rows(loop.id)) == expected, "rows do not come back as they were written")
            _require(list(ledger.rows(loop.id, after=2)) == expected[2:], "rows are not read from where it was asked")


def check_nobody_reads_half_a_transaction(place: Place) -> None:
    """Whoever reads while a pen is out sees none of it, or waits and sees all."""
    seen: list[int] = []
    with _opened(place) as ledger:
        kept = _some_loop(ledger)
        reader = threading.Thread(target=lambda: seen.append(len(list(ledger.rows(kept.id)))))
        with ledger.writing() as pen:
            pen.append(kept.id, 1, "learn", 1, {}, None)
            reader.start()
            reader.join(0.05)  # one that does not wait has read by now
            pen.append(kept.id, 1, "learn", 1, {}, None)
        reader.join()
    _require(seen in ([0], [2]), f"a reader saw {seen} rows of a transaction of 2")


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
                    pen.append(kept.id, 1, "decide", first + steps - 1, {}, b"")
    _require(leased[0] == 1, f"the first step is {leased[0]}, not 1")
    _require(leased == sorted(set(leased)), "a step of the clock was leased twice")


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
                _require(pen.outcome(kept.id, outcome.event) == outcome, "an outcome is not found by its event")
                _require(pen.at(kept.id, outcome.t) == outcome, "an outcome is not found by its step")
            _require(pen.outcome(other.id, "late") is None, "an event of one loop is found in another")
        with ledger.writing() as pen:
            _require(list(pen.due(kept.id, 19, 9)) == [], "an outcome is due before its time")
            _require(list(pen.due(kept.id, 30, 9)) == [early, late], "what is due is not found, the first one first")
            _require(list(pen.due(kept.id, 30, 1)) == [early], "more was found due than was asked for")
            pen.put(kept.id, Outcome(t=2, event="early", seq=2, phase="learned", value=0.5))
            _require(list(pen.due(kept.id, 30, 9)) == [late], "an outcome that was settled is still due")


def check_old_rows_can_go(place: Place) -> None:
    """What is erased or pruned is gone, what explored stays, and a loop goes on from the model that it is given."""
    with _opened(place) as ledger:
        kept = _some_loop(ledger)
        with ledger.writing() as pen:
            for explored, due in ((True, None), (False, None), (False, 99), (False, None)):
                t = pen.lease(kept.id, 1)
                seq = pen.append(kept.id, t, "decide", t, {"explored": explored, "event": f"e{t}"}, b"\1" * 8)
                pen.put(kept.id, Outcome(t=t, event=f"e{t}", seq=seq, phase="open", due=due))
            pen.append(kept.id, 4, "learn", 2, {"of": 2}, None)
            pen.keep(kept.id, 4, b"a snapshot")
        before = _all_of(ledger, kept)
        with suppress(_BrokenOffError), ledger.writing() as pen:
            _let_go(pen, kept.id)
            raise _BrokenOffError
        _require(_all_of(ledger, kept) == before, "rows were gone though their transaction was broken off")
        with ledger.writing() as pen:
            _require(_let_go(pen, kept.id) == 1, "not the one old decision that did not explore was pruned")
        ledger.scrub()
    with _opened(place) as ledger, ledger.writing() as pen:
        found = pen.kept("homepage")
        _require(found and (found.start, found.base) == (b"later", 5), "a loop does not go on from its new model")
        _require(pen.snapshot(kept.id) is None, "a snapshot is older than the model that a loop goes on from")
        _require([row.seq for row in pen.rows(kept.id, 0)] == [1, 3, 4], "other rows are left than should be")
        first = pen.row(kept.id, 1)
        _require(first and first.x is None and "event" not in first.fields, "a context or event was not erased")
        left = [pen.outcome(kept.id, f"e{t}") is not None for t in (1, 2, 3, 4)]
        _require(left == [False, False, True, True], "an outcome is left that should be gone, or the reverse")
        _require(pen.append(kept.id, 9, "learn", 3, {}, None) == 6, "a number of a row was given twice")


def _let_go(pen: Pen, loop: int) -> int:
    pen.rebase(loop, 5, b"later")
    pen.erase(loop, 1)
    return pen.prune(loop, before=4)


# ---- loops

ARMS = ["a", "b", "c"]
SEVERAL: tuple[tuple[Aggregation, Status, float], ...] = (  # what a second reward is, and what then counts
    ("first", "conflict", 0.5),
    ("last", "replaced", 0.25),
    ("sum", "accepted", 0.75),
)


class _Ticks:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _play(store: Store, name: str, start: int, n: int) -> None:
    """Decide and reward, some twice and some never, with arms that come and go."""
    loop = store.loop(name)
    for i in range(start, start + n):
        eligible = ["a", "c"] if i % 7 == 3 else None
        loop.decide([1.0, (i % 5) / 4], event=f"e{i}", eligible=eligible)
        if i % 3:
            loop.reward(f"e{i - i % 2}", (i % 4) / 4)
        if i % 20 == 10:
            loop.retire_arm("b")
        if i % 20 == 15:
            loop.restore_arm("b")


def _replayed(store: Store, name: str) -> Bandit:
    def work(pen: Pen, _: int) -> Bandit:
        kept = pen.kept(name)
        if kept is None:
            raise AssertionError(f"loop {name!r} is gone")
        return rebuild(pen, kept)

    return store._writer.do(work)


def check_state_is_what_the_rows_say(place: Place) -> None:
    """Bit for bit: the living bandit, the one after a restart, and the replay without a snapshot."""
    policies = {"one": Algorithm1(p=30), "auto": ContextualEpsilonGreedy(p="auto"), "ucb": LinUCB()}
    for part in range(3):
        with Store(place()) as store:
            for name, policy in policies.items():
                loop = store.loop(name, arms=ARMS, dim=2, policy=policy, seed=5)
                before = loop.model().to_bytes()
                _require(before == _replayed(store, name).to_bytes(), f"{name}: a restart is not the replay")
                _play(store, name, 40 * part, 40)
                after = loop.model().to_bytes()
                _require(after == _replayed(store, name).to_bytes(), f"{name}: the living one is not the replay")
                _require(before != after, f"{name}: nothing was learned")


def check_events_are_idempotent(place: Place) -> None:
    """The same event with the same context has the same answer, after a restart too; with another it is refused."""
    with Store(place()) as store:
        loop = store.loop("homepage", arms=ARMS, dim=2, policy=Algorithm1(p=30), seed=5)
        first = loop.decide([1.0, 0.5], event="e")
    with Store(place()) as store:
        loop = store.loop("homepage")
        again = loop.decide([1.0, 0.5], event="e")
        same = (again.id, again.arm, again.propensity) == (first.id, first.arm, first.propensity)
        _require(same, "an event that was asked again had another answer")
        for x, eligible in (([1.0, 0.25], None), ([1.0, 0.5], ["a"])):
            try:
                loop.decide(x, event="e", eligible=eligible)
            except EventError:
                continue
            raise AssertionError("an event was decided again for another context")
        _require(loop.model().t == 1, "an event that was asked again took a step of the clock")


def check_rewards_count_once(place: Place) -> None:
    """Rewards are accepted once, and answered for what they are."""
    with Store(place()) as store:
        for how, again, total in SEVERAL:
            loop = store.loop(
                how, arms=["a"], dim=1, policy=LinUCB(units="as given"), aggregation=how, reward_range=(0, 1), seed=5
            )
            _require(loop.reward("e", 0.5) == "unknown", "a reward without a decision is not unknown")
            loop.decide([1.0], event="e")
            _require(loop.reward("e", 1.5) == "out_of_range", "a reward outside of the range was taken")
            _require(loop.reward("e", 0.5) == "accepted", "a reward was not accepted")
            if how != "sum":
                _require(loop.reward("e", 0.5) == "duplicate", "a reward that was told twice is not a duplicate")
            status = loop.reward("e", 0.25)
            _require(status == again, f"a second reward is {status}, not {again}, where the {how} counts")
            state = loop.model().state
            _require(
                (state.n[0], state.b[0, 0]) == (1.0, total), f"{state.b[0, 0]} was learned, not the {how}: {total}"
            )


def check_windows_close_once(place: Place) -> None:
    """A row is learned when its window closes, with the default if nothing came; a late reward replaces it."""
    ticks = _Ticks()
    with Store(place(), wall=ticks, elapsed=ticks) as store:
        loop = store.loop(
            "homepage", arms=["a"], dim=1, policy=LinUCB(units="as given"), window=60.0, default_reward=0.0, seed=5
        )
        for event in ("told", "silent"):
            loop.decide([1.0], event=event)
        _require(loop.reward("told", 0.5) == "accepted", "a reward in its window was not accepted")
        ticks.now += 59.9
        _require(loop.model().state.n[0] == 0, "a row was learned before its window closed")
        ticks.now += 0.2
        state = loop.model().state
        _require((state.n[0], state.b[0, 0]) == (2.0, 0.5), "windows that closed were not learned, or not as told")
    ticks.now -= 86_400.0  # the wall clock is set back while nobody looks
    with Store(place(), wall=ticks, elapsed=ticks) as store:
        loop = store.loop("homepage")
        ticks.now += 3600.0
        _require(loop.reward("silent", 1.0) == "late", "a reward after its window is not late")
        _require(loop.reward("silent", 1.0) == "duplicate", "a late reward that was told twice is not a duplicate")
        state = loop.model().state
        _require((state.n[0], state.b[0, 0]) == (2.0, 1.5), "a late reward did not replace the default")


def check_loops_go_on_after_a_failure(place: Place) -> None:
    """A transaction that fails is answered with a StoreError, and leaves what was there; the next one works."""
    failing = _Failing(place())
    with Store(failing) as store:
        failing.fails = True
        with suppress(StoreError):
            store.loop("homepage", arms=["other"], dim=1, policy=LinUCB(), window=9.0, default_reward=0.0)
        failing.fails = False
        _require(store.loops == [], "a loop was kept in a transaction that failed")
        loop = store.loop("homepage", arms=ARMS, dim=2, policy=Algorithm1(p=30), seed=5)
        _play(store, "homepage", 0, 20)
        _require(loop.model().state.n.sum() > 0, "a loop keeps to the terms of one that was not kept")
        before = loop.model().to_bytes()
        for call in (lambda: loop.decide([1.0, 0.0], event="new"), lambda: loop.reward("e3", 0.75)):
            failing.fails = True
            try:
                call()
            except StoreError:
                pass
            else:
                raise AssertionError("a call was answered though nothing was kept")
            failing.fails = False
            _require(loop.model().to_bytes() == before, "a transaction that failed left something in memory")
        _require(loop.decide([1.0, 0.0], event="new").t == 21, "a transaction that failed took a step of the clock")
        _require(loop.model().to_bytes() == _replayed(store, "homepage").to_bytes(), "it did not recover")


class _Failing:
    """A ledger that can be told to fail at the end of each transaction."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self.fails = ledger, False
        self.failures = (*ledger.failures, OSError)
        self.newest, self.loops, self.rows, self.scrub = ledger.newest, ledger.loops, ledger.rows, ledger.scrub
        self.decided, self.backup, self.close = ledger.decided, ledger.backup, ledger.close

    @contextmanager
    def writing(self) -> Iterator[Pen]:
        with self._ledger.writing() as pen:
            yield pen
            if self.fails:
                raise OSError("no space left")


STORE_CHECKS: tuple[StoreCheck, ...] = (
    check_transactions_are_whole_or_nothing,
    check_rows_keep_their_order_and_their_values,
    check_nobody_reads_half_a_transaction,
    check_steps_are_leased_once,
    check_outcomes_are_found,
    check_old_rows_can_go,
    check_state_is_what_the_rows_say,
    check_events_are_idempotent,
    check_rewards_count_once,
    check_windows_close_once,
    check_loops_go_on_after_a_failure,
)


def check_store(new: Callable[[], Place]) -> None:
    """Run every check over a kind of ledger, each over one of its own.

    Parameters
    ----------
    new
        Gives a place where no ledger is yet: a function that opens it, the same one again after it was closed.

    Examples
    --------
    >>> from armlet.stores import Memory
    >>> from armlet.testing import check_store
    >>> def new():
    ...     ledger = Memory()
    ...     return lambda: ledger
    >>> check_store(new)
    """
    for check in STORE_CHECKS:
        check(new())
