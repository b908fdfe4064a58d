"""A process that is to be killed: threads decide and reward, and say on stdout what they were answered.

A line is written when the answer has come, so whatever stands there must be kept.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import armlet
from armlet.stores.sqlite import SQLite, SQLiteSession
from soak.environment import context, loop_of, reward

THREADS = 4


def work(path: str, number: int, known: list[str]) -> None:
    """Decide and reward until killed."""
    store = armlet.open_store(path)
    loop = loop_of(store)

    def run(thread: int) -> None:
        rng = random.Random(f"{number} {thread}")
        names = list(known)
        for i in range(10**9):
            what = rng.random()
            if what < 0.5 or not names:
                names.append(f"{number}-{thread}-{i}")
                event = names[-1]
            else:
                event = rng.choice(names[-50:])
            if what < 0.6:
                decision = loop.decide(context(event), event=event)
                tell("decide", event, [decision.id, decision.arm, decision.propensity, decision.explored])
            else:
                value = reward(event, int(rng.random() < 0.2))
                tell("reward", event, [value, loop.reward(event, value)])

    threads = [threading.Thread(target=run, args=(thread,)) for thread in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:  # only an error ends them
        each.join()


def tell(kind: str, event: str, answer: list[object]) -> None:
    """Describe what was answered; lines of less than a page are written to a pipe whole."""
    os.write(1, (json.dumps([kind, event, answer]) + "\n").encode())


def answer_too_early() -> None:
    """Break the store: of ten transactions nine are answered before they are committed."""
    ends_well, count = SQLite.session, 0

    @contextmanager
    def session(self: SQLite) -> Iterator[SQLiteSession]:
        nonlocal count
        count += 1
        if count % 10 == 0 and not self._connection.in_transaction:
            with ends_well(self) as sound:
                yield sound
            return
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        yield SQLiteSession(self._connection)
        if count % 10 == 0:
            self._connection.execute("COMMIT")

    SQLite.session = session  # type: ignore[method-assign]


if __name__ == "__main__":
    if "--too-early" in sys.argv:
        answer_too_early()
    work(sys.argv[1], int(sys.argv[2]), json.loads(sys.stdin.readline()))
