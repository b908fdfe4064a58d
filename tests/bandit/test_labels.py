"""Labels and names are looked up, not compared one by one: the cost of many is the cost of each."""

from __future__ import annotations

import io
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest

from armlet import Bandit, Uniform, disk, model_file
from armlet.inputs import columns
from armlet.inputs.contexts import ContextReader, feature_names
from armlet.policies import find_policy

MANY = 2000


class Counted(str):
    """A string that counts how often it is compared with another or hashed."""

    looks = 0
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        Counted.looks += 1
        return str.__hash__(self)


def counted() -> list[Any]:
    return [Counted(f"arm {i}") for i in range(MANY)]


def looks(call: Callable[[], object]) -> int:
    Counted.looks = 0
    call()
    return Counted.looks


@pytest.mark.parametrize("call", [columns.check_labels, lambda names: feature_names(names, None)])
def test_checking_names_looks_at_each_a_few_times(call: Callable[[list[Any]], object]) -> None:
    names = counted()
    assert MANY <= looks(lambda: call(names)) <= 4 * MANY


def test_making_masking_and_indexing_look_at_each_a_few_times() -> None:
    names = counted()
    held: list[Bandit] = []
    assert MANY <= looks(lambda: held.append(Bandit(names, 1, policy=Uniform(), seed=1))) <= 8 * MANY
    bandit = held[0]
    assert looks(lambda: bandit.decide([0.5], eligible=names)) <= 8 * MANY
    rows = [[0.5]] * MANY
    assert looks(lambda: bandit.partial_fit(rows, names, [1.0] * MANY, explored=True)) <= 8 * MANY


def test_reading_contexts_by_name_looks_at_each_a_few_times() -> None:
    names = counted()
    reader = ContextReader(MANY, tuple(names))
    row = dict.fromkeys(names, 0.5)
    assert MANY <= looks(lambda: reader.row(row)) <= 8 * MANY


def test_a_file_is_read_with_a_few_looks_at_each_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels come out of a file as plain strings; they are made to count where the model is put together."""
    file = io.BytesIO()
    Bandit(range(MANY), 1, policy=Uniform(), seed=1).save(file)
    header, found = disk.decode_model(file.getvalue())
    names = counted()
    changed = {**header, "arms": names, "retired": names[: MANY // 2]}
    monkeypatch.setattr(disk, "decode_model", lambda _: (changed, found))
    assert MANY <= looks(lambda: model_file.decode(b"", find_policy, None)) <= 8 * MANY


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["b", "a", "b", "a", "c"], "arms has a, b more than once; labels must differ"),
        ([1, 2, 1], "arms has 1 more than once"),
        (["1", 1, "1", 1], "arms has 1 more than once"),
    ],
)
def test_labels_that_are_alike_are_named(labels: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        columns.check_labels(labels)
    assert columns.check_labels(["1", 1]) == ["1", 1]


def test_the_first_name_that_comes_twice_is_named() -> None:
    with pytest.raises(ValueError, match="features has 'v' more than once"):
        feature_names(["u", "v", "w", "v", "u", "v"][1:], None)


def test_a_span_of_time_is_no_label() -> None:
    with pytest.raises(TypeError, match="timedelta64; use a str or an int"):
        columns.check_labels([np.timedelta64(3, "D"), 1])


class Side(str, Enum):  # noqa: UP042 - one that prints as its value would prove nothing
    """A string that prints as something else."""

    LEFT = "left"
    RIGHT = "right"


def test_members_of_an_enumeration_name_the_arms_that_they_hold() -> None:
    bandit = Bandit(["left", "right"], 1, policy=Uniform(), seed=1)
    assert columns.labels([Side.LEFT, "right"], 2) == ["left", "right"]
    bandit.partial_fit([[1.0], [1.0]], [Side.LEFT, Side.RIGHT], [1.0, 0.0], explored=True)
    assert bandit.state.n.tolist() == [1.0, 1.0]
