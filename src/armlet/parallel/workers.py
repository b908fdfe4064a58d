"""How the workers of an engine start and end: processes of our own, a Dask cluster, or none."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack
from types import ModuleType
from typing import ParamSpec, TypeVar

from armlet.errors import load_package

P = ParamSpec("P")
R = TypeVar("R")


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
    """End the processes of a pool, whatever they are doing."""
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
