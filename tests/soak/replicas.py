"""Two replicas of one store in PostgreSQL, and faults: they die or stand still, the database crashes or is cut off.

Replica 1 reaches the database through a proxy, which cuts its connections. After each fault both have to go on, and
after a few of them they are held, so that what they know can be compared with each other and with what was answered.
"""

from __future__ import annotations

import json
import random
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, Final

from psycopg.conninfo import make_conninfo

from armlet.stores.postgresql.schema import COMMIT
from soak.environment import make_loops
from soak.inspection import inspect, wait_for_windows
from soak.kill import FILLED, Report, Say, fill, say_nothing, start, stream, task
from soak.oracle import LostError, Oracle, differences, require
from soak.worker import DEADLINE, open_store
from support.postgresql import Proxy, Server

CHECK_EVERY: Final = 5  # faults
PATIENCE: Final = 60.0  # seconds until a replica answers again
STOPPED: Final = DEADLINE + 0.5  # seconds that a replica stands still


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What was survived."""

    faults: Mapping[str, int]
    refused: int  # calls of which nothing was kept
    uncertain: int
    report: Report

    def __str__(self) -> str:
        told = ", ".join(f"{n} x {kind}" for kind, n in self.faults.items())
        return (
            f"two replicas, {sum(self.faults.values())} faults ({told}); {self.refused} calls were refused and "
            f"{self.uncertain} uncertain, all repeated; {self.report}; digests equal, audits ok"
        )


class Replica:
    """A worker that is started again when it was killed; what it says goes to the oracle."""

    def __init__(self, slot: int, place: str, oracle: Oracle, lock: threading.Condition, sabotage: list[str]) -> None:
        self.slot, self._place, self._oracle, self._sabotage = slot, place, oracle, sabotage
        self._changed = lock  # of the oracle, and of what follows
        self._said: dict[str, Any] = {}
        self.answers = 0
        self._error: BaseException | None = None
        self.number = -1
        self.start()

    def start(self) -> None:
        """Start it, and let it first repeat what was not answered."""
        self.number += 1
        self.is_closed = False
        self._worker = start(self._place, self.slot, *self._sabotage)
        with self._changed:
            stream(self._worker.stdin).write(task(self._oracle, self.slot, self.number))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            for line in stream(self._worker.stdout):
                kind, *words = json.loads(line)
                with self._changed:
                    self._hear(kind, words)
        except BaseException as error:
            self._error = error
        with self._changed:
            self._changed.notify_all()

    def _hear(self, kind: str, words: list[Any]) -> None:
        if kind in ("ask", "answer"):
            getattr(self._oracle, kind)(*words)
            self.answers += kind == "answer"
        else:
            self._said[kind] = words[0] if words else True
        self._changed.notify_all()

    def kill(self) -> None:
        """Kill it, and hear what it has said until then."""
        self.is_closed = True
        self._worker.kill()
        self._reader.join()
        self._end()

    def _end(self) -> None:
        """Raise what was wrong with it, unless it was killed."""
        with self._worker as worker:
            why = stream(worker.stderr).read()
        if self._error is not None:
            raise self._error
        if worker.returncode != -signal.SIGKILL:
            raise LostError(f"replica {self.slot} ended by itself: {why}")

    def send_signal(self, which: signal.Signals) -> None:
        """Stop it, or let it go on."""
        self._worker.send_signal(which)

    def order(self, command: str) -> None:
        """Tell it to do something."""
        stream(self._worker.stdin).write(f"{command}\n")

    def wait(self, holds: Callable[[], object], what: str) -> None:
        """Wait until something holds of what it says."""
        with self._changed:
            is_there = self._changed.wait_for(lambda: holds() or self._is_over(), PATIENCE)
        if self._is_over():
            self.kill()
        require(is_there, f"replica {self.slot} has not {what} within {PATIENCE:g} seconds")

    def _is_over(self) -> bool:
        return self._error is not None or self._worker.poll() is not None

    def wait_for(self, said: str) -> Any:
        """Wait until it says something that it was told to say."""
        self.wait(lambda: said in self._said, f"said {said!r}")
        return self._said.pop(said)

    def wait_for_answers(self, n: int) -> None:
        """Wait until it has been answered so many calls more."""
        end = self.answers + n
        self.wait(lambda: self.answers >= end, f"been answered {n} calls")


class Soak:
    """A database, two replicas, and what can happen to them."""

    def __init__(self, server: Server, schema: str, seed: int, filled: int, sabotage: str | None) -> None:
        self._server, self._schema, self._rng = server, schema, random.Random(seed)
        self.oracle = Oracle()
        conninfo = make_conninfo(server.conninfo, application_name=schema)
        self._place = f"{schema} {conninfo}"
        with open_store(self._place) as store:
            make_loops(store)
            fill(store, self.oracle, filled)
        self._proxy = Proxy(conninfo)
        places, lock = (self._place, f"{schema} {self._proxy.conninfo}"), threading.Condition()
        told = [sabotage] if sabotage else []
        self._replicas = [Replica(slot, place, self.oracle, lock, told) for slot, place in enumerate(places)]

    @property
    def faults(self) -> dict[str, Callable[[], None]]:
        """What can happen, by name."""
        return {
            "kill -9": self._kill,
            "database crashed": lambda: self._server.restart(self._schema),
            "connections cut": self._cut,
            "answer of COMMIT lost": self._lose_answer,
            "session ended": self._end_session,
            "replica stopped": self._stop,
        }

    def suffer(self, name: str) -> None:
        """Let something happen in the midst of traffic; both replicas have to go on."""
        for replica in self._replicas:
            replica.wait_for_answers(self._rng.randrange(5, 120))
        self.faults[name]()
        for replica in self._replicas:
            replica.wait_for_answers(5)

    def _kill(self) -> None:
        replica = self._rng.choice(self._replicas)
        replica.kill()
        replica.start()

    def _cut(self) -> None:
        self._proxy.refuse()
        self._replicas[0].wait_for_answers(5)
        self._proxy.accept()

    def _lose_answer(self) -> None:
        """Let a commit through, but not its answer."""
        before = self._proxy.cuts
        self._proxy.cuts_after = COMMIT.name
        self._replicas[0].wait(lambda: self._proxy.cuts > before, "gone on while answers of the other one are lost")
        self._proxy.cuts_after = None

    def _end_session(self) -> None:
        self._server.run(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s
            ORDER BY random() LIMIT 1""",
            self._schema,
        )

    def _stop(self) -> None:
        """Let a replica stand still for longer than its deadline; the other one goes on meanwhile."""
        stopped, other = self._rng.sample(self._replicas, 2)
        end = monotonic() + STOPPED
        stopped.send_signal(signal.SIGSTOP)
        try:
            other.wait_for_answers(5)
            sleep(max(0.0, end - monotonic()))
        finally:
            stopped.send_signal(signal.SIGCONT)

    def check(self) -> tuple[int, int]:
        """Hold both replicas and compare them, and all of the database with what was answered."""
        for replica in self._replicas:
            replica.order("pause")
        for replica in self._replicas:
            replica.wait_for("paused")
        with open_store(self._place) as store:
            wait_for_windows(store)
            for replica in self._replicas:
                replica.order("digest")
            said = [replica.wait_for("digests") for replica in self._replicas]
            found = inspect(store, self.oracle)
            said.append({name: store.loop(name).model().digest() for name in said[0]})
        require(not differences(said), f"replicas differ in {differences(said)}")
        for replica in self._replicas:
            replica.order("go")
        return found

    def close(self) -> None:
        """Kill both replicas."""
        try:
            for replica in self._replicas:
                if not replica.is_closed:
                    replica.kill()
        finally:
            self._proxy.close()


@contextmanager
def _running(server: Server, seed: int, filled: int, sabotage: str | None) -> Iterator[Soak]:
    with server.schema() as schema:
        running = Soak(server, schema, seed, filled, sabotage)
        try:
            yield running
        finally:
            running.close()


def soak(
    server: Server,
    faults: int,
    seed: int = 0,
    *,
    filled: int = FILLED,
    sabotage: str | None = None,
    say: Say = say_nothing,
) -> Faults:
    """Let so much happen; raise LostError when the replicas say anything else than they have answered."""
    found = (0, 0)
    with _running(server, seed, filled, sabotage) as running:
        names = list(running.faults)
        suffered = dict.fromkeys(names, 0)
        for number in range(faults):
            name = names[number % len(names)]
            running.suffer(name)
            suffered[name] += 1
            if number % CHECK_EVERY == CHECK_EVERY - 1 or number == faults - 1:
                found = running.check()
                say(f"{number + 1} of {faults} faults, {len(running.oracle.decided)} decisions, {found[0]} learned")
        counts, kills = running.oracle.counts, suffered["kill -9"]
        report = Report.of(running.oracle, kills, *found)
    return Faults(faults=suffered, refused=counts["refused"], uncertain=counts["uncertain"], report=report)
