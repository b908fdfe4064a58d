"""A process that is to be killed: threads call a store, and say on stdout what they ask and what they are answered.

A line is written before a call, and one when its answer has come: what was answered must be kept, and what was asked
and not answered is asked again, by the next worker first of all. Thread 0 forgets, prunes and changes as well.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import armlet
from armlet.errors import InvalidValueError, StoreError, UncertainError
from armlet.stores import Store, runner
from soak.environment import CHANGING, LOOPS, change_of, is_private, kind_of, loop_of, named_context, reward, terms
from soak.sabotage import SABOTAGES

THREADS: Final = 4
SPACING: Final = 15  # rows between snapshots
DEADLINE: Final = 2.0  # seconds, of calls to a database
AGE: Final = 20.0  # seconds after which a decision is pruned
FRESH: Final = AGE / 2  # nobody asks about what may be pruned soon
PAUSE: Final = 0.02  # seconds, before a call that failed is repeated
LAST: Final = 100  # events that are asked about
UPKEEP: Final = 0.06  # share of thread 0's calls
TRIES: Final = 20  # of a context, while features change

T = TypeVar("T")
Call = list[Any]  # its kind, and its arguments


def tell(*words: object) -> None:
    """Write a line; lines of less than a page are written to a pipe whole."""
    os.write(1, (json.dumps(words) + "\n").encode())


def open_store(place: str) -> Store:
    """Open a store in a file, or in a schema of a database: "schema conninfo"."""
    if not place.startswith("armlet_"):
        return armlet.open_store(place)
    from armlet.stores.postgresql import PostgreSQL

    schema, conninfo = place.split(" ", 1)
    return Store(PostgreSQL(conninfo, schema=schema, deadline=DEADLINE), deadline=DEADLINE)


def until_kept(work: Callable[[], T], *, is_shared: bool) -> tuple[T, int, int]:
    """Repeat a call until a database that goes away is back; return how often nothing was kept, or nobody knew."""
    refused = uncertain = 0
    while True:
        try:
            return work(), refused, uncertain
        except StoreError as error:
            if not is_shared:
                raise
            uncertain += isinstance(error, UncertainError)
            refused += not isinstance(error, UncertainError)
        time.sleep(PAUSE)


class Client:
    """The calls of a store, as lines name them."""

    def __init__(self, place: str) -> None:
        self.is_shared = place.startswith("armlet_")
        self.store = self._patiently(partial(open_store, place))
        self.loops = {name: self._patiently(partial(self.store.loop, name)) for name in LOOPS}
        self._changes = dict.fromkeys(LOOPS, 0)  # of features

    def _patiently(self, work: Callable[[], T]) -> T:
        return until_kept(work, is_shared=self.is_shared)[0]

    def call(self, key: str, call: Call) -> None:
        """Call until it is answered, and say so."""
        answer, refused, uncertain = until_kept(lambda: self.answer(call), is_shared=self.is_shared)
        tell("answer", key, answer, refused, uncertain)

    def answer(self, call: Call) -> Any:
        """Call."""
        kind, *words = call
        work: Callable[..., Any] = getattr(self, f"_{kind}")
        return work(*words)

    def _decide(self, event: str) -> list[Any]:
        name = loop_of(event)
        for _ in range(TRIES):
            try:
                decision = self.loops[name].decide(named_context(event, self._changes[name]), event=event)
            except InvalidValueError:  # features have changed
                self._changes[name] = change_of(self.loops[name].model())
                continue
            about = [decision.id, decision.t, decision.arm, decision.propensity, decision.explored]
            return [*about, decision.x.tolist()]
        raise RuntimeError(f"the features of {name} change all the time")

    def _reward(self, event: str, value: float, rank: int) -> str:
        return self.loops[loop_of(event)].reward(event, value, rank=rank)

    def _forget(self, event: str) -> bool:
        return self.loops[loop_of(event)].forget(event)

    def _prune(self, before: float) -> int:
        return self.store.prune(before)

    def _change(self, name: str, number: int) -> None:
        self.loops[name].change(**terms(name, kind_of(name, number), number))

    def digests(self) -> dict[str, str]:
        """Return the digest of each loop, once nothing is under way."""
        return {name: self._patiently(loop.model).digest() for name, loop in self.loops.items()}


class Gate:
    """Lets threads go on, or holds them between two calls."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_closed, self._held = False, 0

    def enter(self) -> None:
        """Go on, if one may."""
        with self._changed:
            self._held += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_closed)
            self._held -= 1

    def close(self) -> None:
        """Hold all threads, and wait until they are."""
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: self._held == THREADS)

    def open(self) -> None:
        """Let them go on."""
        with self._changed:
            self._is_closed = False
            self._changed.notify_all()


class Events:
    """Events that may be asked about, as long as they are fresh."""

    def __init__(self, events: Iterable[tuple[float, str]] = ()) -> None:
        self._lock, self._events = threading.Lock(), deque(events)

    def add(self, event: str) -> None:
        """Add one that was just decided."""
        with self._lock:
            self._events.append((time.time(), event))

    def pick(self, rng: random.Random, *, takes: bool = False) -> str | None:
        """Return one of the last ones, or None; `takes`: nobody gets it again."""
        with self._lock:
            while self._events and self._events[0][0] < time.time() - FRESH:
                self._events.popleft()
            if not self._events:
                return None
            i = rng.randrange(max(0, len(self._events) - LAST), len(self._events))
            event = self._events[i][1]
            if takes:
                del self._events[i]
            return event


class Traffic:
    """What threads ask: about events that all of them know, and some that are a thread's own."""

    def __init__(self, client: Client, gate: Gate, slot: int, told: Mapping[str, Any]) -> None:
        self._client, self._gate, self._slot = client, gate, slot
        self._mark, self._changes = f"{slot}.{told['number']}", told["changes"]
        self._known = Events(map(tuple, told["known"]))

    def run(self, thread: int) -> None:
        """Call until killed."""
        key, own = f"{self._mark}.{thread}", Events()
        rng = random.Random(key)
        for i in range(10**9):
            self._gate.enter()
            new = f"{key}.{i}"
            call = self._upkeep(rng, own) if thread == 0 and rng.random() < UPKEEP else None
            call = self._next(rng, own, new) if call is None else call
            tell("ask", key, time.time(), call)
            self._client.call(key, call)
            if call == ["decide", new]:
                (own if is_private(new) else self._known).add(new)

    def _next(self, rng: random.Random, own: Events, new: str) -> Call:
        """Decide, repeat a decision, or reward one."""
        what = rng.random()
        event = (own if rng.random() < 0.15 else self._known).pick(rng)
        if event is None or what < 0.5:
            return ["decide", new]
        if what < 0.6:
            return ["decide", event]
        rank = int(rng.random() < 0.3)
        return ["reward", event, reward(event, int(rng.random() < 0.2), rank), rank]

    def _upkeep(self, rng: random.Random, own: Events) -> Call | None:
        """Forget, change or prune."""
        what = rng.random()
        if what < 0.1:
            return ["prune", time.time() - AGE]
        if what < 0.5 and self._slot == 0:  # one after the other, so that it is known which was last
            self._changes += 1
            return ["change", rng.choice(CHANGING), self._changes]
        event = own.pick(rng, takes=True)
        return None if event is None else ["forget", event]


def _guard(work: Callable[[int], None], thread: int) -> None:
    """End the process with the reason if a thread ends."""
    try:
        work(thread)
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)


def work(place: str, slot: int, told: Mapping[str, Any]) -> None:
    """Repeat what was not answered, then let threads call, and obey what comes on stdin."""
    client, gate = Client(place), Gate()
    for key, call in told["open"]:
        client.call(key, call)
    traffic = Traffic(client, gate, slot, told)
    for thread in range(THREADS):
        threading.Thread(target=_guard, args=(traffic.run, thread), daemon=True).start()
    for line in sys.stdin:
        if line == "pause\n":
            gate.close()
            tell("paused")
        elif line == "digest\n":
            tell("digests", client.digests())
        else:
            gate.open()
    os._exit(0)  # nobody is there any more


if __name__ == "__main__":
    runner.SPACING = SPACING  # type: ignore[misc]
    for name in sys.argv[3:]:
        SABOTAGES[name]()
    work(sys.argv[1], int(sys.argv[2]), json.loads(sys.stdin.readline()))
