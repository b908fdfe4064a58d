"""A store: durable loops by name, and what concerns all of them."""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Self

from armlet.cast.cast import Cast
from armlet.cast.model import read_cast
from armlet.disk import check_path
from armlet.errors import (
    ArmletError,
    InvalidTypeError,
    InvalidValueError,
    LostDigitsWarning,
    StoreError,
    UnknownNameError,
    refusing,
)
from armlet.inputs.columns import check_text, listed
from armlet.inputs.options import taking
from armlet.report.notebook import fragment, note, table
from armlet.stores import maintenance
from armlet.stores.asking import MOST, WORDS, Rewarding, named, reward_of, rewarding
from armlet.stores.ledger import Ledger, LoopRecord, Moment, Want
from armlet.stores.loop import Loop
from armlet.stores.rewards import Status
from armlet.stores.runner import LoopRunner
from armlet.stores.spec import LoopSpec
from armlet.stores.stats import WriterStats, prometheus
from armlet.stores.terms import GOING
from armlet.stores.transaction import Chore, Transaction
from armlet.stores.writer import LATEST, LONGEST_STOP, SECOND, Clock, Writer
from armlet.types import Policy

if TYPE_CHECKING:
    pass

PAGES: Final = 16  # given back in one piece of a chore
DELETED: Final = 1000  # rows of a loop, in one piece
DEADLINE: Final = 10.0  # seconds, of calls to a database
MEMORY: Final = 1 << 28  # bytes of bandits that are kept awake; the others are made again from their snapshots

log = logging.getLogger("armlet.store")


class Store:
    """Durable loops by name; `armlet.open_store` opens one in a file.

    Parameters
    ----------
    ledger
        Where loops are kept.
    wall, elapsed
        The clocks: seconds since 1970, which rows are stamped with, and seconds since any moment, which windows go by.
    deadline
        Seconds that a call may take; None for no limit. One that was not begun in time was not kept; of one that was
        begun, nobody knows: it raises an UncertainError, and may be repeated. To open a loop, to maintain one and to
        close the store take the time that they need.
    queue
        How many decisions and rewards may wait; None for no limit. Further ones are refused at once with a
        QueueFullError, and nothing of them is kept. A batch counts for as many as it has; maintenance is not counted.
    memory
        About how many bytes loops may take; those that were not used for the longest time are let go, and are read from
        their snapshots when they are used again.
    longest_stop
        How long the wall clock may say that the store was not used before it is not believed; then windows, and
        discounts by time, go on from where they were.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        wall: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
        deadline: float | None = None,
        queue: int | None = None,
        memory: int = MEMORY,
        longest_stop: timedelta = LONGEST_STOP,
    ) -> None:
        if not isinstance(longest_stop, timedelta) or longest_stop < LONGEST_STOP:
            raise InvalidValueError(f"longest_stop is {longest_stop!r}; give a timedelta of 7 days or more")
        if queue is not None and (type(queue) is not int or queue < 1):
            raise InvalidValueError(f"queue is {queue!r}; give how many calls may wait, at least 1, or None")
        self._ledger, self._memory = ledger, memory
        self._runners: dict[str, LoopRunner] = {}
        self._awake: dict[LoopRunner, int] = {}  # about how many bytes each takes; the one used last is the last
        self._bytes = 0
        self._mending: dict[LoopRunner, threading.Thread] = {}
        self._is_closed = False
        clock = Clock(ledger.newest(), wall, elapsed, longest_stop)
        self._writer = Writer(ledger, clock, self._stale, self._tend, deadline, queue)

    @taking(LoopSpec, "loop")
    def loop(self, spec: LoopSpec) -> Loop:
        """Make a loop, or go on with the one of this name: with its name alone, or with what it is made with.

        A loop that is there keeps all that is not said. The list of arms may be another one than before; anything else
        that is said otherwise is refused, or changed with `on_change="apply"`.

        Parameters
        ----------
        {options}

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8))
        ...     loop = store.loop("homepage", arms=["c", "a"], dim=1, policy=armlet.Algorithm1(p=8))
        ...     loop.model().arms, loop.model().arms.retired
        ...     store.loop("homepage", arms=["a", "b"], dim=2, policy=armlet.Algorithm1(p=8))
        Traceback (most recent call last):
        armlet.errors.LoopStateError: dim is 2, but loop 'homepage' was made with 1; give that, or ...
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("films", features=["age"], action_features=["genre", "year"], seed=1)
        ...     films = {"Alien": {"genre": 1.0, "year": 1979.0}, "Heat": {"genre": 0.0, "year": 1995.0}}
        ...     decision = loop.decide({"age": 31.0}, actions=films, event="visit-17")
        ...     loop.reward("visit-17", 1.0), decision.arm in films
        ('accepted', True)
        """
        return self.open(spec)

    def open(self, spec: LoopSpec) -> Loop:
        """Make a loop, or go on with it, as `loop` does with the same options."""
        with refusing():
            made = spec.cast()
        runner, done = self._writer.do(lambda tx, now: self._open(tx, now, spec, made), deadline=None)
        for what in done:  # and kept
            log.info("loop %s: %s", spec.name, what)
        loop = Loop(runner, self._writer, self._ledger)
        if (runner.terms.lost_digits or runner.lost_digits) and (why := loop._mend()):
            warnings.warn(why, LostDigitsWarning, stacklevel=2)
        return loop

    async def areward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Status | Exception]:
        """Record rewards of several loops, each by itself, without a thread that waits.

        Parameters
        ----------
        rewards
            Mappings with the arguments of `Loop.reward` and the name of the loop, which must be in use: loop, event,
            value and perhaps name, rank, played. 10,000 at most.

        Returns
        -------
        list
            The status of each, durable on return; where one is refused, the error instead, while the others count.

        Examples
        --------
        >>> import asyncio
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     for name in ("home", "basket"):
        ...         _ = store.loop(name, arms=["a", "b"], dim=1, seed=1).decide([1.0], event="order-17")
        ...     rewards = [{"loop": name, "event": "order-17", "value": 1.0} for name in ("home", "basket", "exit")]
        ...     asyncio.run(store.areward_many(rewards))
        ['accepted', 'accepted', UnknownNameError("rewards has loop 'exit', which is not in use; open it first...")]
        """
        with refusing():
            given = listed("rewards", rewards)
            if len(given) > MOST:
                raise InvalidValueError(f"rewards has {len(given):,} items; give {MOST:,} at most at once")
        asked = [self._rewarding(each) for each in given]
        found = iter(await self._writer.acall_each([each for each in asked if not isinstance(each, Exception)]))
        return [each if isinstance(each, Exception) else next(found) for each in asked]

    def _rewarding(self, given: object) -> Rewarding | Exception:
        """Return what to do with a reward, or why it is refused."""
        try:
            with refusing():
                if not isinstance(given, Mapping) or "loop" not in given:
                    raise InvalidTypeError(f"rewards has {given!r}; give mappings with loop, {WORDS}")
                runner = self._runners.get(given["loop"])
                if runner is None or not runner.is_in_use:
                    raise UnknownNameError(
                        f"rewards has loop {given['loop']!r}, which is not in use; open it first, with Store.loop"
                    )
                rest = {name: value for name, value in given.items() if name != "loop"}
                return rewarding(runner, *reward_of(*named(rest)))
        except ArmletError as error:
            return error

    def _open(self, tx: Transaction, now: Moment, spec: LoopSpec, made: Cast | None) -> tuple[LoopRunner, list[str]]:
        record, done = tx.session.find(spec.name), []
        if record is None:
            record = self._create(tx, spec, made)
            done.append("made")
        runner = self._runners.get(spec.name)
        if runner is None or runner.id != record.id or runner.is_gone:
            runner = self._runner_of(record, spec.own_policy)
        runner.open(tx, now)
        if made is not None:
            change = maintenance.differences(spec, made.live, runner.terms, runner.cast)
            if change is not None:
                maintenance.change(runner, tx, now, change)
                done.append(f"changed {', '.join(change.names)}")
        if spec.arms is not None and (changes := maintenance.arms_to(runner, tx, now, spec.arms)):
            maintenance.add_rows(runner, tx, now, changes)
        runner.is_in_use = True
        self._runners[spec.name] = runner
        return runner, done

    def _create(self, tx: Transaction, spec: LoopSpec, made: Cast | None) -> LoopRecord:
        if made is None:
            raise StoreError(f"there is no loop {spec.name!r}; give arms, or features of actions, to make it")
        terms = spec.terms.with_guards(0, made.describe())
        return tx.session.create(spec.name, terms.to_json(), made.to_bytes(), made.live.t)

    def _runner_of(self, record: LoopRecord, own: Policy | None) -> LoopRunner:
        return LoopRunner(record, own, self._writer, is_shared=self._ledger.is_shared)

    def delete(self, name: str) -> bool:
        """Delete a loop with all its rows, in slices between which other calls are served; return whether it was there.

        Whoever still has the loop is refused from then on. What was deleted is overwritten in the store's files; where
        SQLite has moved rows between pages before, a copy may stay in the unused part of a page until the file is
        vacuumed. Backups are not touched.
        """
        was_there = self._writer.maintain(self._deleting(check_text("name", name)), scrubs=True)
        if was_there:
            log.info("loop %s: deleted", name)
        return was_there

    def _deleting(self, name: str) -> Chore[bool]:
        tx, _ = yield
        record = tx.session.find(name)
        if record is None:
            return False
        runner = self._runners.pop(name, None)
        if runner is not None:
            runner.is_gone = True
        tx.enter([Want(record.id)])
        tx.direct(record.id).describe(record.id, GOING)  # if it is broken off, nobody goes on with what is left
        while True:
            tx.enter([Want(record.id)])
            if not tx.direct(record.id).delete(record.id, DELETED):
                return True
            tx, _ = yield

    @property
    def loops(self) -> list[str]:
        """The names of its loops, the oldest first."""
        return [record.name for record in self._ledger.loops()]

    def settle(self) -> None:
        """Close all windows that have run out, in all loops in use; any call to a loop closes some of that loop."""
        self._writer.maintain(self._settling())

    def _settling(self) -> Chore[None]:
        for runner in list(self._runners.values()):
            yield from runner.settling()

    def prune(self, before: float | datetime) -> int:
        """Delete decisions that are older and did not explore, with their rewards; return how many.

        Explored ones stay: they are what estimates rest on, and what other policies can be judged by. So do decisions
        whose window is open, or that get a reward meanwhile. What was learned is not touched. Decisions without a
        reward are expired before they go, as `Bandit.expire` does; a reward for what is gone is answered "unknown". It
        works in slices between which other calls are served, and gives space back to the file system; if it is broken
        off by an error, some are deleted, and the next one goes on.

        Parameters
        ----------
        before
            A datetime with a time zone, or seconds since 1970.
        """
        with refusing():
            until = _microseconds(before)
        return self._writer.maintain(self._pruning(until), scrubs=True)

    def _pruning(self, before: int) -> Chore[int]:
        tx, _ = yield
        records = [each for name in self.loops if (each := tx.session.find(name)) is not None and each.about != GOING]
        for each in records:  # before any is pruned: one whose policy is not known here is refused
            if each.name not in self._runners:
                read_cast(each.start)
        pruned = 0
        for each in records:
            pruned += yield from self._pruning_one(each, before)
        while True:
            tx, _ = yield
            if not tx.session.shrink(PAGES):
                return pruned

    def _pruning_one(self, record: LoopRecord, before: int) -> Chore[int]:
        runner = self._runners.get(record.name)
        if runner is None:  # there for all to see, since it may be opened meanwhile
            runner = self._runners[record.name] = self._runner_of(record, None)
        try:
            return (yield from maintenance.pruning(runner, before))
        finally:
            if not runner.is_in_use:
                self._runners.pop(record.name, None)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy everything into a new file, as it is at one moment, while loops go on."""
        if not isinstance(path, str | os.PathLike):
            raise InvalidTypeError(f"path is {path!r}; give the path of a new file, such as 'shop-copy.db'")
        self._ledger.backup(Path(path))

    def close(self) -> None:
        """Answer all that is waiting, keep snapshots for a quick start, and close the file; twice is fine."""
        if self._is_closed:
            return
        self._writer.check_caller()  # before anything is closed
        for thread in list(self._mending.values()):
            thread.join()
        self._is_closed = True
        runners = sorted(self._runners.values(), key=lambda runner: runner.id)

        def save(tx: Transaction, now: Moment) -> None:
            for runner in runners:
                if not runner.is_asleep:
                    runner.rest(tx, now)

        try:
            self._writer.do(save, deadline=None)
        finally:
            if self._writer.close():
                self._ledger.close()

    def metrics(self) -> str:
        """Return the stats of all loops in use, and of the store itself, in Prometheus' text format."""
        runners = sorted(self._runners.values(), key=lambda runner: runner.name)
        loops = [Loop(runner, self._writer, self._ledger).stats() for runner in runners if runner.is_in_use]
        return prometheus(loops, self._writer_stats())

    def _writer_stats(self) -> WriterStats:
        counts = self._writer.counts
        return WriterStats(
            commits=counts.commits,
            calls=counts.calls,
            failed=counts.failures,
            faults=counts.faults,
            largest_batch=counts.largest,
            commit_seconds=counts.seconds,
            queue_depth=self._writer.depth,
        )

    def _tend(self, tx: Transaction, now: Moment) -> None:
        """Look after the loops that were used in a batch."""
        for runner in self._writer.entered:
            if runner.lost_digits and runner not in self._mending and runner.is_in_use:
                self._mending[runner] = threading.Thread(target=self._mend, args=(runner,), name="armlet refit")
                self._mending[runner].daemon = True
                self._mending[runner].start()
        self._let_some_sleep(tx, now)

    def _mend(self, runner: LoopRunner) -> None:
        """Let a loop learn its rows again, in a thread of its own, while others use it."""
        try:
            if why := Loop(runner, self._writer, self._ledger)._mend():
                log.warning("loop %s: %s", runner.name, why)
        except StoreError as error:  # the terms have it, or the rows: whoever opens the loop tries again
            log.warning("loop %s: its rows could not be learned again: %s", runner.name, error)
        finally:
            del self._mending[runner]

    def _let_some_sleep(self, tx: Transaction, now: Moment) -> None:
        """Let go of loops that were not used for the longest time, if all of them take too much memory."""
        for runner in self._writer.entered:
            size = runner.memory
            self._bytes += size - self._awake.pop(runner, 0)
            if size:
                self._awake[runner] = size
        self._writer.entered.clear()
        if self._bytes <= self._memory:
            return
        for runner in list(self._awake)[:-1]:
            if self._bytes <= self._memory // 2:
                return
            if tx.draft(runner.id) is None:
                if self._ledger.is_shared:  # nobody locks loops out of order: others write snapshots too
                    runner.let_go()
                else:
                    runner.rest(tx, now)
                self._bytes -= self._awake.pop(runner)

    def _stale(self) -> None:
        for runner in self._runners.values():
            runner.stale()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"loops in use: {len(self._runners):,}"
        return f"<{type(self).__name__} in {type(self._ledger).__name__}, {state}>"

    def _repr_html_(self) -> str:
        if self._is_closed:
            return fragment(repr(self))
        used = dict(self._runners)  # which the thread that writes may change
        rows = [runner.text() for runner in used.values()]
        others = [name for name in self.loops if name not in used]
        left = note(f"not in use: {', '.join(others)}" if others else "")
        return fragment(repr(self), table({"in use": rows}) if rows else "", left)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _microseconds(moment: float | datetime) -> int:
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise InvalidValueError(
                f"before is {moment!r}, which has no time zone; give one, such as tzinfo=datetime.UTC"
            )
        moment = moment.timestamp()
    if isinstance(moment, bool) or not isinstance(moment, (int, float)) or not -LATEST <= moment <= LATEST:
        raise InvalidValueError(
            f"before is {moment!r}; give a datetime with a time zone, or seconds (not milliseconds) since 1970, "
            f"up to {LATEST:.0f}"
        )
    return int(moment * SECOND)


def open_store(
    path: str | os.PathLike[str],
    *,
    deadline: float | None = None,
    queue: int | None = None,
    wall: Callable[[], float] = time.time,
    elapsed: Callable[[], float] = time.monotonic,
    longest_stop: timedelta = LONGEST_STOP,
) -> Store:
    """Open a store in a file, or make one; or in a PostgreSQL database, for any number of replicas.

    Every call is durable on return: it survives the process and the machine. A file may be open in one process at a
    time, and needs the extra `store`; a database needs `postgresql`.

    Parameters
    ----------
    path
        The file. Next to it are `-wal` and `-shm` files of SQLite's, and a `.lock` with a megabyte in reserve, for a
        full disk. Or the address of a database, "postgresql://user@host/name".
    deadline
        Seconds that a call may take, as for `armlet.stores.Store`; 10 if left out for a database, no limit for a file.
    queue
        How many decisions and rewards may wait, as for `armlet.stores.Store`; no limit if left out.
    wall, elapsed
        The clocks: seconds since 1970, which rows are stamped with, and seconds since any moment, which windows go by.
        For tests.
    longest_stop
        How long the wall clock may say that the store was not used before it is not believed, as for
        `armlet.stores.Store`: give more after a longer pause.

    Examples
    --------
    >>> import armlet
    >>> with armlet.open_store("shop.db") as store:
    ...     loop = store.loop("homepage", arms=["sale", "new"], features=["age"], policy=armlet.Algorithm1(p=8), seed=1)
    ...     decision = loop.decide({"age": 3.0}, event="order-17")
    ...     loop.reward("order-17", 1.0)
    'accepted'
    """
    ledger: Ledger
    if isinstance(path, str) and path.startswith(("postgresql://", "postgres://")):
        deadline = DEADLINE if deadline is None else deadline
        ledger = load_ledger("postgresql", "psycopg").PostgreSQL(path, deadline=deadline)
    else:
        ledger = load_ledger("sqlite", "apsw").SQLite(_file(path))
    try:
        return Store(ledger, wall=wall, elapsed=elapsed, deadline=deadline, queue=queue, longest_stop=longest_stop)
    except BaseException:
        ledger.close()
        raise


def _file(path: str | os.PathLike[str]) -> Path:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str):
        raise InvalidTypeError(f"path is {path!r}; give the path of a file, such as 'shop.db'")
    if name in ("", ":memory:") or name.startswith("file:") or "://" in name or "\0" in name:
        raise StoreError(
            f"path is {name!r}; give the path of a file, such as 'shop.db'. "
            "For a store that ends with the process: armlet.stores.Store(armlet.stores.Memory())"
        )
    check_path("path", name)
    return Path(name)


def load_ledger(name: str, package: str) -> ModuleType:
    """Import a ledger that needs a package of its own."""
    try:
        return import_module(f"armlet.stores.{name}")
    except ModuleNotFoundError as error:
        if error.name not in (package, "msgspec"):
            raise
        extra, where = ("store", "a file") if package == "apsw" else ("postgresql", "a database")
        raise StoreError(
            f"a store in {where} needs {error.name}; install it with: pip install 'armlet[{extra}]'"
        ) from error
