"""Interrupts and signal handlers at every line, and faults at every system call, of calls that change a bandit: what
must hold after them.

A world is a bandit with or without a log, and the decisions that its caller holds. A call is made again in new
worlds, and broken off at its first line of Python, its second, and so on. After each, the bandit, its file and the
decisions are as before the call or as after it; the next call works; and the log passes its audit. A handler that uses
the bandit gets what it asks for, and the call that it comes into is made or refused.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import armlet
from armlet.errors import ArmletError
from armlet.log.writer import Flush

SOURCE: Final = str(Path(armlet.__file__).parent)
LAST: Final = 9_000  # lines that no call has


@dataclass(slots=True)
class World:
    """A bandit, its log if it has one, and what its caller holds."""

    folder: Path
    flush: Flush | None
    bandit: Any = None
    log: Any = None  # an armlet.Log
    held: dict[str, Any] = field(default_factory=dict)

    def open(self) -> dict[str, Any]:
        """Return the argument that gives a bandit a new log, if it is to have one."""
        if self.flush is None:
            return {}
        self.log = armlet.Log(self.folder / "a.jsonl", flush=self.flush)
        return {"log": self.log}

    def facts(self) -> tuple[Any, ...]:
        """Return what a change is seen by: the bandit as a file, and decisions as records."""
        records = [held.to_dict() for held in self.held.values() if hasattr(held, "learned")]
        return self.bandit.to_bytes(), records


@dataclass(frozen=True, slots=True)
class Call:
    """A call that changes something, the world that it needs, and one that must work after it."""

    name: str
    make: Callable[[World], None]
    call: Callable[[World], object]
    then: Callable[[World], object]
    steps: tuple[Callable[[World], object], ...] = ()  # those that it may have made in part
    begins: bool = False  # it makes the bandit, so that it is called again


class Breaker:
    """Has something happen at a line of Armlet's own, or of a policy's, counted from the beginning of a call."""

    def __init__(self, place: int, happen: Callable[[str], object], *, collects: bool = False) -> None:
        self.place, self.happen, self.collects, self.seen = place, happen, collects, 0
        self._tracer = self._call  # held: CPython 3.11 goes on with one that it let go of when a finaliser raised in it

    def _line(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            self.seen += 1
            if self.seen == self.place:
                sys.settrace(None)
                self.happen(f"at {Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
        return self._line

    def _call(self, frame: FrameType, _: str, __: object) -> Any:
        name = frame.f_code.co_filename
        if frame.f_code.co_name == "__del__" and not self.collects:  # what is raised there is printed, and lost
            return None
        is_ours = name.startswith(SOURCE) or name.endswith("in_python.py")
        return self._line if is_ours else None

    def run(self, call: Callable[[], object]) -> BaseException | None:
        """Make a call; return what was raised in it."""
        before, thresholds = sys.gettrace(), gc.get_threshold()
        if self.collects:
            gc.set_threshold(1, 1, 1)
        else:
            gc.disable()  # so that all lines are those of the call
        sys.settrace(self._tracer)
        try:
            call()
        except BaseException as error:
            return error.with_traceback(None)  # which holds what the call has left
        finally:
            sys.settrace(before)
            gc.set_threshold(*thresholds)
            gc.enable()
        return None


@dataclass(slots=True)
class System:
    """The system calls of a writer, one of which fails: before it does anything, or half-way."""

    place: int = 0
    make: Callable[[], BaseException] = MemoryError
    half: bool = False
    seen: int = 0

    def _next(self) -> bool:
        self.seen += 1
        return self.seen == self.place

    def write(self, fd: int, data: Any, *, real: Callable[[int, Any], int] = os.write) -> int:
        """Write, or fail."""
        if self._next():
            if self.half:
                real(fd, bytes(data)[: len(data) // 2])
            raise self.make()
        return real(fd, data)

    def fsync(self, _: int) -> None:
        """Do nothing, since nothing here outlives the process; or fail."""
        if self._next():
            raise self.make()

    def ftruncate(self, fd: int, size: int, *, real: Callable[[int, int], None] = os.ftruncate) -> None:
        """Cut, or fail."""
        if self._next():
            raise self.make()
        real(fd, size)

    def run(self, call: Callable[[], object]) -> BaseException | None:
        """Make a call with these in place of the system's; return what was raised in it."""
        before = {name: getattr(os, name) for name in ("write", "fsync", "ftruncate")}
        gc.disable()  # so that none is of a log that is collected
        for name in before:
            setattr(os, name, getattr(self, name))
        try:
            call()
        except BaseException as error:
            return error.with_traceback(None)
        finally:
            for name, real in before.items():
                setattr(os, name, real)
            gc.enable()
        return None


class Harness:
    """Breaks calls off at every place, and tells what is wrong afterwards."""

    def __init__(self, call: Call, flush: Flush | None) -> None:
        self.call, self.flush = call, flush
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112 - nothing outlives a test
        self.folder = Path(tempfile.mkdtemp(prefix="armlet-", dir=memory))
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._worlds = 0
        self._allowed = [] if call.begins else self._states()
        self.broken = 0
        """How many calls were broken off."""

    def _world(self) -> World:
        self._worlds += 1
        folder = self.folder / str(self._worlds)
        folder.mkdir()
        world = World(folder, self.flush)
        self.call.make(world)
        return world

    def _states(self) -> list[tuple[Any, ...]]:
        states = [self._world().facts()]
        for steps in range(1, len(self.call.steps)):
            world = self._world()
            for step in self.call.steps[:steps]:
                step(world)
            states.append(world.facts())
        world = self._world()
        self.call.call(world)
        return [*states, world.facts()]

    def count(self) -> int:
        """Return how many lines a call has."""
        world, breaker = self._world(), Breaker(0, lambda _: None)
        raised = breaker.run(lambda: self.call.call(world))
        assert raised is None, raised
        return breaker.seen

    def lines(
        self, error: type[BaseException] = KeyboardInterrupt, *, collects: bool = False, every: int = 1
    ) -> Iterator[str]:
        """Yield what is wrong after an error at every line, and in finalisers too if it `collects`."""

        def interrupt(where: str) -> None:
            raise error(where)

        total = 0 if collects else self.count()
        for place in range(1, LAST, every):
            world, breaker = self._world(), Breaker(place, interrupt, collects=collects)
            raised = breaker.run(lambda world=world: self.call.call(world))  # type: ignore[misc]
            if breaker.seen < place:
                if place <= total:
                    yield f"{self.call.name} has {total} lines, and {breaker.seen} after it was broken off"
                return
            lost = error("in a finaliser")
            if not isinstance(raised or lost, error | ArmletError):
                yield f"{self._where(raised or lost)}: raised {raised!r}"
            yield from self._judged(world, raised or lost)
        yield f"{self.call.name} has more lines than {LAST}"

    def handlers(self, act: Callable[[World], object]) -> Iterator[str]:
        """Yield what is wrong after a signal handler used the bandit at every line."""
        for place in range(1, LAST):
            world, places = self._world(), list[str]()

            def use(where: str, world: World = world, places: list[str] = places) -> None:
                places.append(where)
                act(world)

            raised = Breaker(place, use).run(lambda world=world: self.call.call(world))  # type: ignore[misc]
            if not places:
                return
            self.broken += 1
            if not isinstance(raised, ArmletError | None):  # a refusal, by what it finds
                yield f"{self._where(raised)}: raised {raised!r}"
            yield from (f"{self.call.name}, {places}: {what}" for what in self._differs(world))

    def system_calls(self, make: Callable[[], BaseException], *, half: bool = False) -> Iterator[str]:
        """Yield what is wrong after an error of every system call."""
        for place in range(1, LAST):
            world, system = self._world(), System(place, make, half)
            raised = system.run(lambda world=world: self.call.call(world))  # type: ignore[misc]
            if system.seen < place:
                return
            if raised is None and not (isinstance(make(), OSError) or half):
                yield f"{self.call.name}: nothing was raised at system call {place}"
            yield from self._judged(world, raised or make())

    def _where(self, raised: BaseException) -> str:
        return f"{self.call.name}, flush={self.flush}, {raised}"

    def _judged(self, world: World, raised: BaseException) -> Iterator[str]:
        self.broken += 1
        try:
            yield from (f"{self._where(raised)}: {what}" for what in self._faults(world))
        except (ArmletError, ArithmeticError, LookupError, AttributeError) as error:
            yield f"{self._where(raised)}: then {type(error).__name__}: {error}"

    def _faults(self, world: World) -> Iterator[str]:
        if self.call.begins:
            if world.log is not None:
                world.log.close()
            self.call.call(world)
            world.held.clear()
        elif world.facts() not in self._allowed:
            yield f"the bandit is neither as before nor as after: {world.facts()}"
        yield from self._differs(world)

    def _differs(self, world: World) -> Iterator[str]:
        """Use the bandit, and audit its log."""
        if world.log is None:
            self.call.then(world)
            return
        if world.log._journal is None or world.log._journal.refusal is not None:
            yield from self._resumed(world)
        self.call.then(world)
        world.log.close()
        policy: Any = world.held.get("policy")
        found = armlet.audit(world.log.path, world.log.start_path, policy=policy)
        if not found.ok:
            yield f"the audit says {found.status}: {found.mismatch or found}"
        elif found.digest != world.bandit.digest():
            yield "the log leads to another state"

    def _resumed(self, world: World) -> Iterator[str]:
        """Go on with the log as another process would, since it takes nothing more."""
        assert world.log is not None
        world.log.close()
        before = world.bandit.digest()
        world.log = armlet.Log(world.log.path, flush=self.flush or "block")
        policy: Any = world.held.get("policy")
        world.bandit = armlet.log.resume(world.log, kind=type(world.bandit), policy=policy)
        if world.bandit.digest() != before:
            yield "what is resumed is another state"


def faults(call: Call, flush: Flush | None) -> list[str]:
    """Return all that is wrong after a KeyboardInterrupt at every line of a call."""
    return list(Harness(call, flush).lines())


Errors = Mapping[str, Callable[[], BaseException]]
ERRORS: Final[Errors] = {
    "KeyboardInterrupt": KeyboardInterrupt,
    "MemoryError": MemoryError,
    "full": lambda: OSError(28, "No space left on device"),
}
