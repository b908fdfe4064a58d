"""Lab and shelf: the same arrays and the same bytes whatever the engine, and nothing is computed twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from armlet.errors import load_pyarrow
from armlet.parallel import Pool, WorkerError, make_pool
from armlet.simulation.lab import Archive, Arrays, Lab, Shelf, Unfinished


@dataclass(frozen=True)
class Draw:
    seed: int
    index: int
    rule: tuple[str, float] = ("normal", 0.5)


@dataclass(frozen=True)
class Fatal:
    index: int
    marker: str  # the worker that finds no such file leaves one and dies


DRAWS = [Draw(7, index) for index in range(6)]


def draw(task: Draw) -> Arrays:
    rng = np.random.default_rng([task.seed, task.index])
    return {"floats": rng.normal(size=(3, 2)), "ints": rng.integers(9, size=4), "bools": rng.random(5) < task.rule[1]}


def die_once(task: Fatal) -> Arrays:
    if not Path(task.marker).exists():
        Path(task.marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"index": np.array([task.index])}


class Counted:
    """Draws, counts, and is interrupted before one of the tasks."""

    def __init__(self, interrupted: int | None = None) -> None:
        self.calls: list[int] = []
        self._interrupted = interrupted

    def __call__(self, task: Draw) -> Arrays:
        if task.index == self._interrupted:
            raise KeyboardInterrupt
        self.calls.append(task.index)
        return draw(task)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with make_pool("processes", workers=2) as two:
        yield two


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    """Return the table of a run that nothing disturbed."""
    Lab(seed=7, shelf=Shelf(tmp_path / "whole")).map("play", draw, DRAWS)
    return (tmp_path / "whole" / "play.parquet").read_bytes()


def interrupt(folder: Path, before: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        Lab(seed=7, shelf=Shelf(folder)).map("play", Counted(interrupted=before), DRAWS)


def assert_same(found: list[Arrays], expected: list[Arrays]) -> None:
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.keys() == theirs.keys()
        for name, array in ours.items():
            assert array.dtype == theirs[name].dtype
            np.testing.assert_array_equal(array, theirs[name], strict=True)


def test_a_lab_gives_what_the_function_gives_in_the_order_of_the_tasks(pool: Pool) -> None:
    expected = [draw(task) for task in DRAWS]
    with make_pool("serial") as here:
        for where in (None, here, pool):
            assert_same(Lab(seed=7, where=where).map("play", draw, DRAWS), expected)
    assert_same(Lab(seed=7, where=pool).alone("play", draw, DRAWS), expected)


def test_alone_stays_in_this_process(pool: Pool) -> None:
    counted = Counted()  # another process would count a copy
    Lab(seed=7, where=pool).alone("play", counted, DRAWS)
    assert counted.calls == [0, 1, 2, 3, 4, 5]


def test_the_table_does_not_depend_on_the_engine(pool: Pool, tmp_path: Path, whole: bytes) -> None:
    Lab(seed=7, where=pool, shelf=Shelf(tmp_path / "pool")).map("play", draw, DRAWS)
    assert (tmp_path / "pool" / "play.parquet").read_bytes() == whole


def test_a_killed_worker_ends_the_run_and_the_same_call_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    tables = []
    for name in ("killed", "calm"):  # the second meets the marker of the first
        tasks = [Fatal(index, str(tmp_path / ("marker" if index == 2 else "."))) for index in range(6)]
        with make_pool("processes", workers=1) as pool:
            lab = Lab(seed=7, where=pool, shelf=Shelf(tmp_path / name))
            if name == "killed":
                with pytest.raises(WorkerError, match="a worker of processes died"):
                    lab.map("play", die_once, tasks)
                assert not (tmp_path / name / "play.parquet").exists()
            found = lab.map("play", die_once, tasks)
        assert [each["index"].tolist() for each in found] == [[index] for index in range(6)]
        tables.append((tmp_path / name / "play.parquet").read_bytes())
    assert (tmp_path / "marker").exists()  # someone died
    assert tables[0] == tables[1]


def test_an_interrupted_map_goes_on_where_it_was_and_ends_in_the_same_bytes(tmp_path: Path, whole: bytes) -> None:
    interrupt(tmp_path, before=4)
    assert not (tmp_path / "play.parquet").exists()
    again = Counted()
    reports: list[tuple[int, int]] = []
    lab = Lab(seed=7, shelf=Shelf(tmp_path), progress=lambda _: lambda done, total: reports.append((done, total)))
    assert_same(lab.map("play", again, DRAWS), [draw(task) for task in DRAWS])
    assert again.calls == [4, 5]
    assert reports == [(4, 6), (5, 6), (6, 6)]
    assert (tmp_path / "play.parquet").read_bytes() == whole
    assert not (tmp_path / "play").exists()  # the table has taken the place of the single tasks


def test_what_a_table_holds_is_not_computed_again(tmp_path: Path) -> None:
    counted = Counted()
    first, second = (Lab(seed=7, shelf=Shelf(tmp_path)).map("play", counted, DRAWS) for _ in range(2))
    assert counted.calls == [0, 1, 2, 3, 4, 5]
    assert_same(second, first)


def test_a_kill_after_the_last_task_and_before_the_table_costs_no_table(tmp_path: Path, whole: bytes) -> None:
    shelf, counted = Shelf(tmp_path), Counted()
    for task in DRAWS:
        shelf.keep("play", task, draw(task))
    assert_same(Lab(seed=7, shelf=shelf).map("play", counted, DRAWS), [draw(task) for task in DRAWS])
    assert counted.calls == []
    assert (tmp_path / "play.parquet").read_bytes() == whole


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda _: b"", lambda data: data[:-1] + b"\x05"])
def test_a_damaged_task_is_computed_again(damage: Callable[[bytes], bytes], tmp_path: Path, whole: bytes) -> None:
    interrupt(tmp_path, before=1)  # only the first is finished
    (chunk,) = (tmp_path / "play").iterdir()
    chunk.write_bytes(damage(chunk.read_bytes()))
    again = Counted()
    Lab(seed=7, shelf=Shelf(tmp_path)).map("play", again, DRAWS)
    assert again.calls == [0, 1, 2, 3, 4, 5]
    assert (tmp_path / "play.parquet").read_bytes() == whole


def test_other_settings_and_other_stages_are_other_tasks(tmp_path: Path) -> None:
    counted, shelf = Counted(), Shelf(tmp_path)
    for stage, seed in (("play", 7), ("play", 8), ("again", 7)):
        Lab(seed=seed, shelf=shelf).map(stage, counted, [Draw(seed, 0)])
    assert counted.calls == [0, 0, 0]


def test_a_cleared_shelf_knows_nothing(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "data")
    Lab(seed=7, shelf=shelf).map("play", draw, DRAWS)
    shelf.clear()
    assert shelf.find("play", DRAWS) == {}


def test_an_archive_computes_nothing(tmp_path: Path) -> None:
    interrupt(tmp_path, before=4)
    counted = Counted()
    with pytest.raises(Unfinished, match="tasks still to be computed: 2"):
        Archive(seed=7, shelf=Shelf(tmp_path)).map("play", counted, DRAWS)
    with pytest.raises(Unfinished, match="tasks still to be computed: 6"):
        Archive(seed=7).alone("play", counted, DRAWS)
    assert counted.calls == []


def test_an_archive_finds_what_was_computed(tmp_path: Path) -> None:
    made = Lab(seed=7, shelf=Shelf(tmp_path)).map("play", draw, DRAWS)
    assert_same(Archive(seed=7, shelf=Shelf(tmp_path)).map("play", draw, DRAWS), made)


@pytest.mark.parametrize("kept", ["single", "table"])
def test_arrays_come_back_as_they_were(kept: str, tmp_path: Path) -> None:
    floats = np.array([0.1, 1.0, 1 / 3, -0.0, 5e-324, np.inf, np.nan])
    arrays = {
        f"{name}{len(array.shape)}": array
        for flat in (floats, np.array([-(2**63), 0, 2**63 - 1]), np.array([True, False]))
        for name, array in ((flat.dtype.name, flat), (flat.dtype.name, np.stack([flat, flat[::-1]])))
    }
    shelf, task = Shelf(tmp_path), Draw(7, 0)
    shelf.keep("play", task, arrays)
    if kept == "table":
        shelf.close("play", [task], [arrays])
    found = shelf.find("play", [task])
    assert_same([found[0]], [arrays])
    assert np.signbit(found[0]["float641"].astype(float)[3])


def test_the_table_can_be_read_without_armlet(tmp_path: Path) -> None:
    Lab(seed=7, shelf=Shelf(tmp_path)).map("play", draw, DRAWS)
    rows = load_pyarrow()[1].read_table(tmp_path / "play.parquet").to_pylist()
    assert [row["index"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert rows[0]["rule"] == '["normal", 0.5]'
    assert rows[3]["found.floats"] == np.asarray(draw(DRAWS[3])["floats"]).tolist()


def test_no_two_tasks_may_be_alike() -> None:
    counted = Counted()
    with pytest.raises(ValueError, match=r"tasks 1 and 6 of stage 'play' are alike, Draw\(seed=7, index=1"):
        Lab(seed=7).map("play", counted, [*DRAWS, DRAWS[1]])
    assert counted.calls == []


def test_no_tasks_find_nothing(tmp_path: Path) -> None:
    assert Lab(seed=7, shelf=Shelf(tmp_path)).map("play", draw, []) == []


@dataclass(frozen=True)
class Bounded:
    most: float


def note(task: Bounded) -> Arrays:
    return {"is_finite": np.array([np.isfinite(task.most)])}


def test_a_table_takes_infinite_settings_beside_finite_ones(tmp_path: Path) -> None:
    tasks = [Bounded(2.0), Bounded(float("inf"))]
    Lab(seed=7, shelf=Shelf(tmp_path)).map("note", note, tasks)
    found = Archive(seed=7, shelf=Shelf(tmp_path)).map("note", note, tasks)
    assert [bool(arrays["is_finite"][0]) for arrays in found] == [True, False]
