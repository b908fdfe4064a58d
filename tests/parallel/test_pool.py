"""Engines: order, killed workers, errors and interrupts, the same on all of them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from armlet.parallel.pool import Engine, WorkerError, engine, map_in_order, opened


def square(value: int) -> int:
    return value * value


def pid(_: int) -> int:
    return os.getpid()


def die_once(marker: Path) -> str:
    """Kill the process the first time, and answer the second."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return marker.name


def die_if_negative(value: int) -> int:
    if value < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def refuse_negative(value: int) -> int:
    if value < 0:
        raise ArithmeticError(f"{value} is negative")
    return value


@pytest.fixture(scope="module")
def pool() -> Iterator[Engine]:
    with engine("processes", workers=2) as two:
        yield two


@pytest.mark.parametrize("name", ["serial", "threads"])
def test_results_come_in_the_order_of_the_tasks(name: str) -> None:
    with engine(name, workers=2) as where:
        assert map_in_order(square, range(50), where) == [i * i for i in range(50)]


def test_processes_give_the_same(pool: Engine) -> None:
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

    with engine("threads", workers=2) as two:
        assert map_in_order(wait_for_the_second, [0, 1], two, note) == [0, 1]
    assert finished == [1, 0]


def test_no_tasks_start_no_workers() -> None:
    def fail(_: object) -> ThreadPoolExecutor:
        raise AssertionError("nothing was to be done")

    assert map_in_order(square, [], Engine(fail, name="none")) == []


def test_an_engine_keeps_its_workers_over_calls(pool: Engine) -> None:
    first, second = (set(map_in_order(pid, range(20), pool)) for _ in range(2))
    assert len(first | second) <= 2
    assert os.getpid() not in first


def test_a_killed_worker_costs_nothing_but_time(pool: Engine, tmp_path: Path) -> None:
    markers = [tmp_path / str(i) for i in range(6)]
    markers[0].touch()
    for marker in markers[2:]:
        marker.touch()
    assert map_in_order(die_once, markers, pool) == [marker.name for marker in markers]


def test_a_task_that_keeps_killing_its_worker_is_named() -> None:
    told: dict[int, int] = {}
    with (
        engine("processes", workers=2) as two,
        pytest.raises(WorkerError, match="task 1 of 3 killed its worker 4 times"),
    ):
        map_in_order(die_if_negative, [5, -1, 7], two, told.__setitem__)
    assert told.items() <= {0: 5, 2: 7}.items()


@pytest.mark.parametrize("name", ["serial", "threads"])
def test_an_error_in_a_task_comes_out_and_finished_results_were_told(name: str) -> None:
    told: dict[int, int] = {}
    with engine(name, workers=1) as one, pytest.raises(ArithmeticError, match="-2 is negative"):
        map_in_order(refuse_negative, [1, -2, 3], one, told.__setitem__)
    assert told[0] == 1


def test_an_error_crosses_from_a_process_and_the_engine_goes_on(pool: Engine) -> None:
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

    with engine("serial") as here, pytest.raises(KeyboardInterrupt):
        map_in_order(note, range(10), here, interrupt)
    assert started == [0, 1]


def test_a_given_executor_is_used_and_left_open() -> None:
    with ThreadPoolExecutor(2) as mine:
        with opened(mine) as where:
            assert map_in_order(square, [2, 3], where) == [4, 9]
        assert mine.submit(square, 4).result() == 16


def test_a_given_executor_that_breaks_is_not_replaced() -> None:
    refused = pytest.raises(WorkerError, match="engine='processes' starts another")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as mine, opened(mine) as where, refused:
        map_in_order(die_if_negative, [-1], where)


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
        engine(name, workers=workers)


@pytest.mark.parametrize("name", ["dask", "tcp://127.0.0.1:9"])
def test_missing_dask_is_told_with_the_fix(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'armlet\[cluster\]'"):
        engine(name)


def test_dask_on_this_machine_gives_the_same() -> None:
    with engine("dask", workers=1) as where:
        assert map_in_order(square, range(5), where) == [i * i for i in range(5)]
