"""Where tasks run: here, in a pool of processes, or on a Dask cluster; the results are the same.

Anything that is a `concurrent.futures.Executor` will do. What this module adds is that a killed worker costs no more
than the tasks it held, that results come back in the order of the tasks whatever the order they finished in, and that
an interrupt stops at once and keeps what was finished.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from typing import Generic, Self, TypeAlias, TypeVar

from armlet.core.errors import ArmletError
from armlet.parallel import workers as local

T = TypeVar("T")
R = TypeVar("R")

STRIKES = 3  # breaks of a pool that a task may have been part of before it has to run alone
EVERYTHING = 1_000_000  # tasks handed over at a time to an engine that queues them itself


class WorkerError(ArmletError):
    """Workers died or were lost, and starting others did not help."""


class Engine:
    """An executor that is made when first needed, and made anew after it broke.

    Get one from `engine`; use it in a `with` statement to keep its workers over several calls.
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
        """Give the executor, made now if there is none."""
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


EngineLike: TypeAlias = str | Executor | Engine


def engine(name: str = "processes", *, workers: int | None = None) -> Engine:
    """Make an engine by its name.

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
    >>> with engine("serial") as here:
    ...     map_in_order(abs, [-3, 2, -1], here)
    [3, 2, 1]
    >>> engine("spark")
    Traceback (most recent call last):
    ValueError: engine is 'spark'; choose 'processes', 'threads', 'serial' or 'dask', or give a scheduler's address ...
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}; give at least 1, or leave it out")
    if "://" in name:
        return _scheduler(name, workers)
    n = workers or local.processors()
    match name:
        case "processes":
            return Engine(lambda stack: local.start_pool(stack, n), name=name, width=2 * n, kill=local.kill_pool)
        case "threads":
            return Engine(lambda stack: stack.enter_context(ThreadPoolExecutor(n)), name=name, width=2 * n)
        case "serial":
            return Engine(lambda _: local.Serial(), name=name, width=1)
        case "dask":
            local.distributed()  # better now than later, if it is missing
            return Engine(lambda stack: local.start_dask(stack, n), name=name)
    raise ValueError(
        f"engine is {name!r}; choose 'processes', 'threads', 'serial' or 'dask', "
        "or give a scheduler's address as in 'tcp://host:8786'"
    )


def _scheduler(address: str, workers: int | None) -> Engine:
    if workers is not None:
        raise ValueError(f"workers is {workers}, but the scheduler at {address} has its own; leave it out")
    local.distributed()
    return Engine(lambda stack: local.join_dask(stack, address), name=address)


@contextmanager
def opened(choice: EngineLike, *, workers: int | None = None) -> Iterator[Engine]:
    """Open an engine by name and close it afterwards; an engine or executor that is given stays open.

    Examples
    --------
    >>> with ThreadPoolExecutor(2) as mine, opened(mine) as engine:
    ...     map_in_order(str.upper, ["a", "b"], engine)
    ['A', 'B']
    """
    if isinstance(choice, Engine):
        yield choice
    elif isinstance(choice, Executor):
        given = [choice]
        yield Engine(lambda _: _only(given), name=type(choice).__name__)
    else:
        with engine(choice, workers=workers) as own:
            yield own


def map_in_order(
    function: Callable[[T], R],
    tasks: Sequence[T],
    engine: Engine,
    on_done: Callable[[int, R], None] = lambda _index, _result: None,
) -> list[R]:
    """Run a function over tasks and give the results in the order of the tasks.

    Parameters
    ----------
    function
        Importable by name, as are the tasks' types, if the engine uses other processes.
    tasks
        What to run; each may be run more than once if workers die, so it must not matter how often.
    engine
        Where to run them.
    on_done
        Told the index and result of each task as it finishes, in the calling thread. Whatever was told is
        all that remains after an interrupt or an error, which cancel the rest.

    Examples
    --------
    >>> with engine("threads", workers=2) as two:
    ...     map_in_order(len, ["one", "three"], two, lambda index, result: None)
    [3, 5]
    """
    return _Map(function, tasks, engine, on_done).run()


class _Map(Generic[T, R]):
    """One call of `map_in_order`: what waits, what runs, what is done."""

    def __init__(
        self, function: Callable[[T], R], tasks: Sequence[T], engine: Engine, on_done: Callable[[int, R], None]
    ) -> None:
        self._function, self._tasks, self._engine, self._on_done = function, tasks, engine, on_done
        self._waiting = deque(range(len(tasks)))
        self._running: dict[Future[R], int] = {}
        self._ended: SimpleQueue[Future[R]] = SimpleQueue()
        self._results: dict[int, R] = {}
        self._lost: Counter[int] = Counter()  # by task: pools that broke while they had it
        self._broken = False

    def run(self) -> list[R]:
        try:
            while self._waiting or self._running:
                self._hand_over()
                if self._running:
                    self._take(self._ended.get())
                elif self._broken:
                    self._engine.discard()
                    self._broken = False
        except BaseException:
            for future in self._running:
                future.cancel()
            self._engine.discard()
            raise
        return [self._results[index] for index in range(len(self._tasks))]

    def _hand_over(self) -> None:
        while self._waiting and not self._broken and len(self._running) < self._room():
            index = self._waiting[0]
            try:
                future = self._engine.executor().submit(self._function, self._tasks[index])
            except BrokenExecutor:  # a worker died since; those that run will say so too
                self._broken = True
                return
            self._waiting.popleft()
            self._running[future] = index
            future.add_done_callback(self._ended.put)

    def _room(self) -> int:
        # a task that was there at every break runs alone, which tells it from its neighbours
        if self._lost and any(self._lost[index] >= STRIKES for index in self._running.values()):
            return 0
        return 1 if self._lost[self._waiting[0]] >= STRIKES else self._engine.width

    def _take(self, future: Future[R]) -> None:
        index = self._running.pop(future)
        try:
            result = future.result()
        except BrokenExecutor as error:
            self._lose(index, error)
            return
        except CancelledError as error:
            raise WorkerError(f"{self._engine.name} gave up task {index}; is its scheduler still running?") from error
        self._results[index] = result
        self._on_done(index, result)

    def _lose(self, index: int, error: BrokenExecutor) -> None:
        self._broken = True
        self._lost[index] += 1
        if self._lost[index] > STRIKES:
            raise WorkerError(
                f"task {index} of {len(self._tasks)} killed its worker {self._lost[index]} times, the last time alone; "
                "is memory short? A script that starts processes needs `if __name__ == '__main__':` around its calls"
            ) from error
        self._waiting.appendleft(index)


def _only(given: list[Executor]) -> Executor:
    if not given:
        raise WorkerError("the executor that was passed broke; engine='processes' starts another one when that happens")
    return given.pop()
