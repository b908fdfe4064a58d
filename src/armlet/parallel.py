"""Tasks that run long: where they run, how far they are, and randomness that does not depend on either.

They run here, in a pool of processes, or on a Dask cluster; the results are the same.

Anything that is a `concurrent.futures.Executor` will do, such as a Dask client's, `client.get_executor()`. What this
module adds is that results come back in the order of the tasks, in whichever order they finish, that an interrupt stops
at once and keeps what was finished, and a report of how far it is. Dask gives the tasks of a dead worker to others; a
pool of processes ends the run with one sentence, and a run that kept what it finished continues from there.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from html import escape
from importlib import import_module
from queue import SimpleQueue
from types import ModuleType
from typing import Any, ParamSpec, Protocol, Self, TextIO, TypeAlias, TypeVar

import numpy as np

from armlet.errors import ArmletError, InvalidValueError, load_package
from armlet.inputs.settings import check_seed

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

EVERYTHING = 1_000_000  # tasks handed over at a time to an executor that queues them itself
AHEAD = 256  # results that may wait for the one before them


class WorkerError(ArmletError):
    """Workers died or were lost."""


class Pool:
    """An executor that is made when first needed, and made again after a call that failed.

    Get one from `make_pool`; use it in a `with` statement to keep its workers over several calls.
    """

    def __init__(
        self,
        make: Callable[[ExitStack], Executor],
        *,
        name: str,
        width: int = EVERYTHING,
        kill: Callable[[Executor], None] = lambda _: None,
    ) -> None:
        self.name = name
        self.width = width  # how many tasks it is given at a time
        self._make, self._kill = make, kill
        self._executor: Executor | None = None
        self._stack = ExitStack()

    def executor(self) -> Executor:
        """Return the executor, made now if there is none."""
        if self._executor is None:
            self._executor = self._make(self._stack)
        return self._executor

    def discard(self) -> None:
        """Drop the executor and what it is running; the next one is new."""
        if self._executor is not None:
            self._kill(self._executor)
        self.close()

    def close(self) -> None:
        """Let the workers go."""
        self._executor = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


PoolLike: TypeAlias = str | Executor | Pool


def make_pool(name: str = "processes", *, workers: int | None = None) -> Pool:
    """Make a pool by the name of its engine.

    Parameters
    ----------
    name
        "processes", "threads", "serial", "dask" for a cluster on this machine, or the address of a
        `dask.distributed` scheduler, such as "tcp://10.0.0.5:8786".
    workers
        How many processes or threads; as many as there are processors if left out. A scheduler that is
        addressed has workers of its own.

    Examples
    --------
    >>> with make_pool("serial") as here:
    ...     map_in_order(abs, [-3, 2, -1], here)
    [3, 2, 1]
    >>> make_pool("spark")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: engine is 'spark'; choose 'processes', 'threads', 'serial' or 'dask', or ...
    """
    if workers is not None and workers < 1:
        raise InvalidValueError(f"workers is {workers}; give at least 1, or leave it out")
    if "://" in name:
        return _scheduler(name, workers)
    n = workers or processors()
    match name:
        case "processes":
            return Pool(lambda stack: start_pool(stack, n), name=name, width=2 * n, kill=kill_pool)
        case "threads":
            return Pool(lambda stack: stack.enter_context(ThreadPoolExecutor(n)), name=name, width=2 * n)
        case "serial":
            return Pool(lambda _: Serial(), name=name, width=1)
        case "dask":
            distributed()  # better now than later, if it is missing
            return Pool(lambda stack: start_dask(stack, n), name=name)
    raise InvalidValueError(
        f"engine is {name!r}; choose 'processes', 'threads', 'serial' or 'dask', "
        "or give a scheduler's address as in 'tcp://host:8786'"
    )


def _scheduler(address: str, workers: int | None) -> Pool:
    if workers is not None:
        raise InvalidValueError(f"workers is {workers}, but the scheduler at {address} has its own; leave it out")
    distributed()
    return Pool(lambda stack: join_dask(stack, address), name=address)


@contextmanager
def opened(choice: PoolLike, *, workers: int | None = None) -> Iterator[Pool]:
    """Open a pool by name and close it afterwards; a pool or executor that is given stays open.

    Examples
    --------
    >>> with ThreadPoolExecutor(2) as mine, opened(mine) as pool:
    ...     map_in_order(str.upper, ["a", "b"], pool)
    ['A', 'B']
    """
    if isinstance(choice, Pool):
        yield choice
    elif isinstance(choice, Executor):
        yield Pool(lambda _: choice, name=type(choice).__name__)
    else:
        with make_pool(choice, workers=workers) as own:
            yield own


def map_in_order(
    function: Callable[[T], R],
    tasks: Sequence[T],
    pool: Pool,
    on_done: Callable[[int, R], None] = lambda _index, _result: None,
) -> list[R]:
    """Run a function over tasks and give the results in the order of the tasks.

    Parameters
    ----------
    function
        Importable by name, as are the tasks' types, if the workers are other processes.
    tasks
        What to run; Dask runs one again if its worker dies, so it must not matter how often.
    pool
        Where to run them.
    on_done
        Receives the index and result of each task as it finishes, in the calling thread. What it received is
        all that remains after an interrupt or an error, which cancel the rest.

    Examples
    --------
    >>> with make_pool("threads", workers=2) as two:
    ...     map_in_order(len, ["one", "three"], two, lambda index, result: None)
    [3, 5]
    """
    waiting, running, results = deque(range(len(tasks))), dict[Future[R], int](), dict[int, R]()
    ended: SimpleQueue[Future[R]] = SimpleQueue()
    try:
        while waiting or running:
            while waiting and len(running) < pool.width:
                future = pool.executor().submit(function, tasks[waiting[0]])
                running[future] = waiting.popleft()
                future.add_done_callback(ended.put)
            future = ended.get()
            index = running.pop(future)
            results[index] = future.result()
            on_done(index, results[index])
    except BaseException as error:
        for future in running:
            future.cancel()
        pool.discard()
        if isinstance(error, BrokenExecutor | CancelledError):
            raise WorkerError(_lost(error, pool, len(tasks) - len(results))) from error
        raise
    return [results[index] for index in range(len(tasks))]


def each_in_order(function: Callable[[T], R], tasks: Sequence[T], pool: Pool) -> Iterator[R]:
    """Run a function over tasks and give the results in the order of the tasks, each as soon as it can be given.

    Results that are not asked for yet are as few as the pool is wide, and never more than `AHEAD`: memory does not
    grow with the number of tasks. An error, an interrupt or an end of asking cancels the rest.

    Parameters
    ----------
    function, tasks, pool
        As in `map_in_order`.

    Examples
    --------
    >>> with make_pool("threads", workers=2) as two:
    ...     sum(each_in_order(len, ["one", "three"], two))
    8
    """
    running: deque[Future[R]] = deque()
    waiting, done = deque(tasks), 0
    is_over = False
    try:
        while waiting or running:
            while waiting and len(running) < min(pool.width, AHEAD):
                running.append(pool.executor().submit(function, waiting.popleft()))
            result = running.popleft().result()
            done += 1
            yield result
        is_over = True
    except (BrokenExecutor, CancelledError) as error:
        raise WorkerError(_lost(error, pool, len(tasks) - done)) from error
    finally:
        if not is_over:
            for future in running:
                future.cancel()
            pool.discard()


def _lost(error: BrokenExecutor | CancelledError, pool: Pool, left: int) -> str:
    if isinstance(error, CancelledError):
        return f"{pool.name} gave up with tasks still to be done: {left}; is its scheduler still running?"
    return (
        f"a worker of {pool.name} died with tasks still to be done: {left}; is memory short, or does a script lack "
        "`if __name__ == '__main__':` around its calls? What was kept in a folder is not computed again"
    )


def processors() -> int:
    """Count those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Serial(Executor):
    """Runs a task when it is submitted.

    Examples
    --------
    >>> Serial().submit(abs, -3).result()
    3
    """

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run it before returning: the future holds its result, or its exception."""
        future: Future[R] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def start_pool(stack: ExitStack, workers: int) -> ProcessPoolExecutor:
    """Start processes that know nothing of this one but its modules; the stack ends them."""
    context = multiprocessing.get_context("spawn")  # a fork would copy locks that threads of ours hold
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # for the children: BLAS threads of many workers stand in each other's way
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)
    stack.callback(pool.shutdown, cancel_futures=True)
    return pool


def kill_pool(pool: Executor) -> None:
    """End the processes of a pool at once."""
    # there is no public way to end running workers before Python 3.14
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.kill()


def _start_worker() -> None:
    """Leave interrupts to the parent, and end when it ends, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def start_dask(stack: ExitStack, workers: int) -> Executor:
    """Start a Dask cluster of processes on this machine; the stack ends it."""
    # a port of its own choice, as another cluster on this machine may have the usual one
    cluster = distributed().LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    return join_dask(stack, stack.enter_context(cluster))


def join_dask(stack: ExitStack, where: object) -> Executor:
    """Connect to a Dask scheduler, given by its address or its cluster; the stack disconnects."""
    client = stack.enter_context(distributed().Client(where, set_as_default=False))
    executor: Executor = client.get_executor()
    return executor


def distributed() -> ModuleType:
    """Import Dask's distributed engine, or say how to get it."""
    return load_package("distributed", "this engine needs Dask's")


Clock: TypeAlias = Callable[[], float]

BAR = 24  # characters
PAUSE = 5.0  # seconds between two lines where a line cannot be renewed
LINGER = 1.0  # seconds until a notebook shows a bar
BLINK = 0.2  # seconds between two of its states

Show: TypeAlias = Callable[[Mapping[str, str]], None]


class Progress(Protocol):
    """Receives how much is done of how much; `done` may start above 0 if some was done before."""

    def __call__(self, done: int, total: int) -> None:
        """Take note; called in the thread that waits for results, whenever there are more."""


def silent(done: int, total: int) -> None:
    """Describe nothing.

    Examples
    --------
    >>> silent(1, 2)
    """


def reporter(what: str, *, stream: TextIO | None = None, clock: Clock = time.monotonic) -> Progress:
    """Report what is being done on a stream: in place on a terminal, in lines otherwise.

    Without a stream that is stderr, or in a notebook a bar below the cell.

    Examples
    --------
    >>> ticks = iter([0.0, 10.0, 40.0])
    >>> report = reporter("simulating", stream=sys.stdout, clock=lambda: next(ticks))
    >>> for done in (0, 5, 20):
    ...     report(done, 20)
    simulating: 0 %
    simulating: 25 %, about 30 s left
    simulating: done in 40 s
    """
    if stream is None and (cell := notebook_cell()) is not None:
        return _Shown(what, cell, clock)
    out = sys.stderr if stream is None else stream
    return _Line(what, out, clock) if out.isatty() else _Lines(what, out, clock)


def notebook_bar(what: str) -> Progress:
    """Return the default target of progress reports: a bar in a notebook, nothing elsewhere.

    Examples
    --------
    >>> notebook_bar("simulating") is silent
    True
    """
    cell = notebook_cell()
    return silent if cell is None else _Shown(what, cell, time.monotonic)


def notebook_cell() -> Show | None:
    """Return what shows a mime bundle below the running cell of a notebook, and renews it; None if there is none."""
    module = sys.modules.get("IPython")  # in a notebook it is there; elsewhere it need not be loaded
    shell = None if module is None else module.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):  # a terminal has a shell without a kernel
        return None
    display = import_module("IPython.display").display
    handle: Any = None

    def show(bundle: Mapping[str, str]) -> None:
        nonlocal handle
        if handle is None:
            handle = display(bundle, raw=True, display_id=True)
        else:
            handle.update(bundle, raw=True)

    return show


def spell(seconds: float) -> str:
    """Put a time into words.

    Examples
    --------
    >>> spell(0.24), spell(42), spell(200), spell(7300)
    ('0.2 s', '42 s', '3 min 20 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class _Report:
    """What all kinds know: when it began, with how much, and so how fast it goes."""

    def __init__(self, what: str, clock: Clock) -> None:
        self._what, self._clock = what, clock
        self._now = 0.0
        self._began: tuple[float, int] | None = None

    def _words(self, done: int, total: int) -> str:
        now = self._now = self._clock()
        if self._began is None:
            self._began = now, done
        start, before = self._began
        if done == total:
            return f"{self._what}: done in {spell(now - start)}"
        words = f"{self._what}: {100 * done // total} %"
        if done == before:  # what was done earlier says nothing of today's speed
            return words
        return f"{words}, about {spell((now - start) / (done - before) * (total - done))} left"


class _Line(_Report):
    def __init__(self, what: str, stream: TextIO, clock: Clock) -> None:
        super().__init__(what, clock)
        self._stream = stream

    def __call__(self, done: int, total: int) -> None:
        filled = BAR * done // max(total, 1)
        line = f"[{'#' * filled:{BAR}}] {self._words(done, total)}"
        width = shutil.get_terminal_size().columns - 1  # a full line would wrap and could not be renewed
        self._stream.write(f"\r{line[:width]:{width}}" + ("\n" if done == total else ""))
        self._stream.flush()


class _Lines(_Report):
    def __init__(self, what: str, stream: TextIO, clock: Clock) -> None:
        super().__init__(what, clock)
        self._stream = stream
        self._written: float | None = None  # when the last line was written

    def __call__(self, done: int, total: int) -> None:
        words = self._words(done, total)
        if self._written is None or done == total or self._now - self._written >= PAUSE:
            self._stream.write(words + "\n")
            self._stream.flush()
            self._written = self._now


class _Shown(_Report):
    """A bar in a notebook. What is over within `LINGER` shows none, and a bar is renewed every `BLINK` at most."""

    def __init__(self, what: str, show: Show, clock: Clock) -> None:
        super().__init__(what, clock)
        self._show = show
        self._due: float | None = None  # when to show it next
        self._is_shown = False

    def __call__(self, done: int, total: int) -> None:
        words = self._words(done, total)
        if self._due is None:
            self._due = self._now + LINGER
        if self._now >= self._due or (done == total and self._is_shown):
            bar = f'<progress max="{max(total, 1)}" value="{done}" style="width: 16em"></progress>'
            self._show({"text/plain": words, "text/html": f"<div>{bar} {escape(words)}</div>"})
            self._due, self._is_shown = self._now + BLINK, True


# ---- randomness by word: every place that draws says what for, and no two places share a stream. It is a function
# of the seed, of where it is asked for, of a word and of the numbers or names behind it: the same in any process and in
# any order. What is asked for is spelled out whole for numpy's `SeedSequence`, not hashed first, so two that differ
# anywhere cannot meet on the way there


@dataclass(frozen=True, slots=True)
class Seeds:
    """All the randomness of one place, to be handed to what draws; frozen and small, so tasks can carry it.

    Parameters
    ----------
    root
        The seed that a user gave.
    place
        Who asks, such as the name of an experiment: two places may use the same word.

    Examples
    --------
    >>> seeds = Seeds(7, "fig-a")
    >>> bool(seeds.rng("worlds", 3).random() == Seeds(7, "fig-a").rng("worlds", 3).random())
    True
    >>> len({seeds.seed("worlds", 3), seeds.seed("worlds", 4), seeds.seed("runs", 3), Seeds(7).seed("worlds", 3)})
    4
    """

    root: int
    place: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", check_seed(self.root))

    def rng(self, word: str, *which: int | str) -> np.random.Generator:
        """Return the generator of a word, and of the number or name of what is drawn."""
        return np.random.default_rng(self._sequence(word, which))

    def seed(self, word: str, *which: int | str) -> int:
        """Return 64 bits instead, for what takes a seed; a word is asked for one or the other, not both."""
        return int(self._sequence(word, which).generate_state(1, np.uint64)[0])

    def _sequence(self, word: str, which: tuple[int | str, ...]) -> np.random.SeedSequence:
        spelled = [part for each in (self.place, word, *which) for part in _spell(each)]
        return np.random.SeedSequence(self.root, spawn_key=spelled)


def _spell(part: int | str) -> Iterator[int]:
    """Write a name or a number in words of 32 bits that say where they end: no two lists of them are spelled alike."""
    if isinstance(part, str):
        letters = part.encode()
        yield 1 + len(letters)
        for start in range(0, len(letters), 4):
            yield int.from_bytes(letters[start : start + 4], "little")
        return
    if not 0 <= part < 2**64:
        raise InvalidValueError(f"a stream is numbered {part}; give a number from 0 to 2^64 - 1, or a name")
    yield 0
    yield from (int(part) & 0xFFFFFFFF, int(part) >> 32)
