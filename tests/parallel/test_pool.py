"""Engines: order, killed workers, errors and interrupts, the same on all of them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

from armlet.parallel import Pool, WorkerError, make_pool, map_in_order, opened


def square(value: int) -> int:
    return value * value


def pid(_: int) -> int:
    return os.getpid()


def die_if_negative(value: int) -> int:
    if value < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def refuse_negative(value: int) -> int:
    if value < 0:
        raise ArithmeticError(f"{value} is negative")
    return value


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with make_pool("processes", workers=2) as two:
        yield two


@pytest.mark.parametrize("name", ["serial", "threads"])
def test_results_come_in_the_order_of_the_tasks(name: str) -> None:
    with make_pool(name, workers=2) as where:
        assert map_in_order(square, range(50), where) == [i * i for i in range(50)]


def test_processes_give_the_same(pool: Pool) -> None:
    assert map_in_order(square, range(50), pool) == [i * i for i in range(50)]


def test_order_does_not_depend_on_which_task_finishes_first() -> None:
    second_is_done = threading.Event()

    def wait_for_the_second(index: int) -> int:
        if index == 0:
            assert second_is_done.wait(30)
        return index

    finished = []

    def note(index: int, _: int) -> None:
        finished.append(index)
        second_is_done.set()

    with make_pool("threads", workers=2) as two:
        assert map_in_order(wait_for_the_second, [0, 1], two, note) == [0, 1]
    assert finished == [1, 0]


def test_no_tasks_start_no_workers() -> None:
    def fail(_: object) -> ThreadPoolExecutor:
        raise AssertionError("nothing was to be done")

    assert map_in_order(square, [], Pool(fail, name="none")) == []


def test_an_engine_keeps_its_workers_over_calls(pool: Pool) -> None:
    first, second = (set(map_in_order(pid, range(20), pool)) for _ in range(2))
    assert len(first | second) <= 2
    assert os.getpid() not in first


def test_a_killed_worker_ends_the_call_with_one_sentence_and_the_next_has_workers() -> None:
    results: dict[int, int] = {}
    with make_pool("processes", workers=2) as two:
        with pytest.raises(WorkerError, match=r"a worker of processes died with tasks still to be done: [123];") as one:
            map_in_order(die_if_negative, [5, -1, 7], two, results.__setitem__)
        assert "\n" not in str(one.value)
        assert results.items() <= {0: 5, 2: 7}.items()
        assert map_in_order(die_if_negative, [5, 7], two) == [5, 7]


@pytest.mark.parametrize("name", ["serial", "threads"])
def test_an_error_in_a_task_comes_out_and_finished_results_were_told(name: str) -> None:
    results: dict[int, int] = {}
    with make_pool(name, workers=1) as one, pytest.raises(ArithmeticError, match="-2 is negative"):
        map_in_order(refuse_negative, [1, -2, 3], one, results.__setitem__)
    assert results[0] == 1


def test_an_error_crosses_from_a_process_and_the_engine_goes_on(pool: Pool) -> None:
    with pytest.raises(ArithmeticError, match="-2 is negative"):
        map_in_order(refuse_negative, [1, -2, 3], pool)
    assert map_in_order(refuse_negative, [4, 5], pool) == [4, 5]


def test_an_interrupt_cancels_what_waits() -> None:
    def interrupt(index: int, _: int) -> None:
        if index == 1:
            raise KeyboardInterrupt

    started = []

    def note(index: int) -> int:
        started.append(index)
        return index

    with make_pool("serial") as here, pytest.raises(KeyboardInterrupt):
        map_in_order(note, range(10), here, interrupt)
    assert started == [0, 1]


def test_a_given_executor_is_used_and_left_open() -> None:
    with ThreadPoolExecutor(2) as mine:
        with opened(mine) as where:
            assert map_in_order(square, [2, 3], where) == [4, 9]
        assert mine.submit(square, 4).result() == 16


def test_a_given_executor_that_breaks_is_not_replaced() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as mine, opened(mine) as where:
        for tasks in ([-1], [1]):
            with pytest.raises(WorkerError, match="a worker of ProcessPoolExecutor died"):
                map_in_order(die_if_negative, tasks, where)


@pytest.mark.parametrize(
    ("name", "workers", "message"),
    [
        ("spark", None, "engine is 'spark'; choose 'processes', 'threads', 'serial' or 'dask'"),
        ("processes", 0, "workers is 0; give at least 1"),
        ("tcp://127.0.0.1:9", 2, "workers is 2, but the scheduler at tcp://127.0.0.1:9 has its own"),
    ],
)
def test_what_cannot_be_is_refused(name: str, workers: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_pool(name, workers=workers)


@pytest.mark.parametrize("name", ["dask", "tcp://127.0.0.1:9"])
def test_missing_dask_is_told_with_the_fix(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'armlet\[cluster\]'"):
        make_pool(name)


def test_dask_on_this_machine_gives_the_same() -> None:
    with make_pool("dask", workers=1) as where:
        assert map_in_order(square, range(5), where) == [i * i for i in range(5)]
        executor = where.executor()
        assert isinstance(executor, Executor)
        with opened(executor) as given:  # as a user passes client.get_executor()
            assert map_in_order(square, range(5), given) == [i * i for i in range(5)]
        assert executor.submit(square, 3).result() == 9
        with make_pool("dask", workers=1) as beside:  # two clusters do not fight over a port
            assert map_in_order(square, [3], beside) == [9]
