"""Where experiments and simulations are computed: their tasks on any engine, kept as they finish.

An experiment is settings, tasks made from them, and an analysis of what the tasks found. The lab does the rest:
whatever the engine and the number of workers, the same tasks give the same arrays, and one that was found before is
not computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import numpy as np

from armlet.errors import ArmletError, InvalidValueError
from armlet.parallel.pool import Pool, make_pool, map_in_order
from armlet.parallel.progress import Progress, silent
from armlet.parallel.seeds import Seeds
from armlet.simulation.shelf import Arrays, Shelf

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Scale: TypeAlias = Literal["quick", "full"]
T = TypeVar("T", bound="DataclassInstance")


class Unfinished(ArmletError):  # noqa: N818 - it is a state of affairs
    """What an experiment needs has not been computed, and computing was not asked for."""


def _mute(_: str) -> Progress:
    return silent


def _one(_: object) -> int:
    return 1


class Lab:
    """Runs the tasks of one experiment, or of one simulation.

    Parameters
    ----------
    seed
        Of everything that is drawn; `rng` and `seeds` hand it out by word.
    name
        Of the experiment: those with different names draw differently, whatever words they use.
    scale
        "quick" or "full": which of its settings the experiment takes.
    where
        The engine; this process if left out.
    shelf
        What keeps finished tasks; nothing is kept if left out.
    progress
        Told what is being done, it gives a `Progress` to tell how far; silent if left out.

    Examples
    --------
    >>> import dataclasses
    >>> import numpy as np
    >>> @dataclasses.dataclass(frozen=True)
    ... class Task:
    ...     number: int
    >>> def square(task: Task) -> Arrays:
    ...     return {"square": np.array([task.number**2])}
    >>> Lab(seed=1).map("squares", square, [Task(2), Task(3)])
    [{'square': array([4])}, {'square': array([9])}]
    """

    def __init__(
        self,
        *,
        seed: int,
        name: str = "",
        scale: Scale = "quick",
        where: Pool | None = None,
        shelf: Shelf | None = None,
        progress: Callable[[str], Progress] = _mute,
    ) -> None:
        self.seeds, self.scale = Seeds(seed, name), scale
        self._where, self._shelf, self._progress = where, shelf, progress

    def rng(self, word: str, *which: int | str) -> np.random.Generator:
        """Give the generator of a word, such as lab.rng("worlds", 3); tasks carry `seeds`, which give the same."""
        return self.seeds.rng(word, *which)

    def map(
        self,
        stage: str,
        function: Callable[[T], Arrays],
        tasks: Sequence[T],
        label: str = "",
        amount: Callable[[T], int] = _one,
    ) -> list[Arrays]:
        """Run a function over tasks and give what each found, in order.

        Parameters
        ----------
        stage
            Names the table that is kept; one word for each call within an experiment.
        function
            Importable by name; gives arrays of numbers that follow from the task alone.
        tasks
            Frozen dataclasses of plain data, each a few seconds of work at most, no two alike.
        label
            What is being done, for people to read.
        amount
            How much of the whole a task is, for those who are told how far it is; one if left out.
        """
        return self._run(stage, function, tasks, label, self._where, amount)

    def alone(self, stage: str, function: Callable[[T], Arrays], tasks: Sequence[T], label: str = "") -> list[Arrays]:
        """Do the same in this process, one task after the other, while nothing else runs: for measuring time."""
        return self._run(stage, function, tasks, label, None)

    def _run(
        self,
        stage: str,
        function: Callable[[T], Arrays],
        tasks: Sequence[T],
        label: str,
        where: Pool | None,
        amount: Callable[[T], int] = _one,
    ) -> list[Arrays]:
        _check_tasks(stage, tasks)
        report = self._progress(label or stage)
        found = {} if self._shelf is None else self._shelf.find(stage, tasks)
        missing = [index for index in range(len(tasks)) if index not in found]
        done, total = sum(amount(tasks[index]) for index in found), sum(map(amount, tasks))
        report(done, total)

        def keep(place: int, arrays: Arrays) -> None:
            nonlocal done
            index = missing[place]
            found[index] = arrays
            if self._shelf is not None:
                self._shelf.keep(stage, tasks[index], arrays)
            done += amount(tasks[index])
            report(done, total)

        if missing:
            self._compute(function, [tasks[index] for index in missing], where, keep)
        results = [found[index] for index in range(len(tasks))]
        if self._shelf is not None and (missing or self._shelf.is_open(stage)):
            self._shelf.close(stage, tasks, results)
        return results

    def _compute(
        self,
        function: Callable[[T], Arrays],
        tasks: Sequence[T],
        where: Pool | None,
        keep: Callable[[int, Arrays], None],
    ) -> None:
        if where is None:
            with make_pool("serial") as here:
                map_in_order(function, tasks, here, keep)
        else:
            map_in_order(function, tasks, where, keep)


def _check_tasks(stage: str, tasks: Sequence[DataclassInstance]) -> None:
    first: dict[DataclassInstance, int] = {}
    for index, task in enumerate(tasks):
        if (before := first.setdefault(task, index)) != index:
            raise InvalidValueError(f"tasks {before} and {index} of stage {stage!r} are alike, {task}; give each once")


class Archive(Lab):
    """A lab that only looks up: what was not computed before is missing."""

    def _compute(
        self,
        function: Callable[[T], Arrays],  # noqa: ARG002
        tasks: Sequence[T],
        where: Pool | None,  # noqa: ARG002
        keep: Callable[[int, Arrays], None],  # noqa: ARG002
    ) -> None:
        raise Unfinished(f"tasks still to be computed: {len(tasks)}")
