"""Results one by one, in the order of the tasks, regardless of the order in which they done."""

from __future__ import annotations

import threading

import pytest

from armlet import parallel
from armlet.parallel import each_in_order, make_pool


def test_results_come_in_the_order_of_the_tasks_and_no_more_wait_than_the_pool_is_wide() -> None:
    asked, second_done = list[int](), threading.Event()

    def work(task: int) -> int:
        asked.append(task)
        if task == 0:
            assert second_done.wait(30)
        if task == 1:
            second_done.set()
        return task

    with make_pool("threads", workers=2) as two:
        results = each_in_order(work, range(100), two)
        assert next(results) == 0
        assert max(asked) < two.width
        assert list(results) == list(range(1, 100))


def test_an_error_ends_it_and_names_itself() -> None:
    def work(task: int) -> float:
        return 1 / (3 - task)

    with make_pool("serial") as here, pytest.raises(ZeroDivisionError):
        list(each_in_order(work, range(9), here))


def test_a_wide_pool_is_given_no_more_than_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "AHEAD", 3)
    started = list[int]()
    with make_pool("serial") as here:
        here.width = 1000
        results = each_in_order(lambda task: started.append(task) or task, range(50), here)  # type: ignore[func-returns-value]
        assert next(results) == 0
        assert started == [0, 1, 2]
        results.close()  # type: ignore[attr-defined]
