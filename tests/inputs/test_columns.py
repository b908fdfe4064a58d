from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet.errors import ArmletError
from armlet.inputs import columns
from armlet.inputs.contexts import LARGEST

HOLDERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "pandas": pd.Series,
    "polars": pl.Series,
    "pyarrow": pa.array,
    "chunks": lambda values: pa.chunked_array([values[:1], values[1:]]),
}
every_holder = pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)


def refusal(error: type[Exception], call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(ArmletError) as caught:
        call(*arguments)
    assert isinstance(caught.value, error)
    return str(caught.value)


@every_holder
@given(values=st.lists(st.floats(-LARGEST, LARGEST), min_size=1))
def test_rewards_come_out_as_they_went_in(hold: Callable[[list[Any]], Any], values: list[float]) -> None:
    read = columns.rewards(hold(values), len(values))
    assert read.dtype == np.float64
    assert read.tolist() == values


@every_holder
@pytest.mark.parametrize("values", [[1, 0, 2], [True, False, True]], ids=["integers", "booleans"])
def test_rewards_may_be_integers_or_booleans(hold: Callable[[list[Any]], Any], values: list[Any]) -> None:
    np.testing.assert_array_equal(columns.rewards(hold(values), 3), np.array(values, np.float64))


def test_rewards_of_nullable_pandas_columns_are_read() -> None:
    for kind in ("Int64", "Float64", "boolean", "int64[pyarrow]", "double[pyarrow]"):
        assert columns.rewards(pd.Series([1, 0, 1], dtype=kind), 3).tolist() == [1.0, 0.0, 1.0]


def test_float64_rewards_pass_through_uncopied() -> None:
    values = np.array([1.0, -2.0])
    assert columns.rewards(values, 2) is values


@every_holder
@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e101])
def test_a_reward_that_is_not_finite_or_too_large_is_named_by_its_row(
    hold: Callable[[list[Any]], Any], bad: float
) -> None:
    assert refusal(ValueError, columns.rewards, hold([0.0, 1.0, bad]), 3) == (
        f"rewards[2] is {bad}; give a finite number of at most 1e+40 in size"
    )


@every_holder
def test_a_missing_reward_is_named_by_its_row(hold: Callable[[list[Any]], Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=r"rewards\[1\] is (None|nan)"):
        columns.rewards(hold([0.5, None, 1.0]), 3)


@every_holder
def test_a_reward_that_is_a_string_is_named_by_its_row(hold: Callable[[list[Any]], Any]) -> None:
    assert refusal(TypeError, columns.rewards, hold(["1", "2", "3"]), 3) == (
        "rewards[0] is '1' (str); give a real number"
    )


@pytest.mark.parametrize("kind", ["M8[ns]", "m8[ns]", "c16", "O"])
def test_rewards_of_another_kind_are_refused(kind: str) -> None:
    assert refusal(TypeError, columns.rewards, np.zeros(2, kind), 2).startswith("rewards")


def test_rewards_of_another_length_are_refused() -> None:
    assert refusal(ValueError, columns.rewards, [1, 2], 3) == (
        "rewards has shape (2,) for 3 contexts; give one value for each"
    )
    assert refusal(ValueError, columns.rewards, np.zeros((3, 1)), 3).startswith("rewards has shape (3, 1)")
    assert refusal(TypeError, columns.rewards, 1.0, 3) == "rewards is 1.0 (float); give 3 values"
    assert refusal(TypeError, columns.rewards, [1, [2, 3], 4], 3).startswith("rewards[1] is [2, 3] (list)")


def test_missing_weights_are_ones() -> None:
    assert columns.weights(None, 3).tolist() == [1.0, 1.0, 1.0]


def test_weights_are_positive_and_finite() -> None:
    assert columns.weights([1, 0.5, 2], 3).tolist() == [1.0, 0.5, 2.0]
    assert (
        refusal(ValueError, columns.weights, [1, 0, 2], 3)
        == "weights[1] is 0.0; give a positive number, at least 1e-40"
    )
    assert refusal(ValueError, columns.weights, [1, -1, 2], 3).startswith("weights[1] is -1.0")
    assert refusal(ValueError, columns.weights, [1, 2, np.inf], 3).startswith("weights[2] is inf")
    assert refusal(ValueError, columns.weights, [1], 3).startswith("weights has shape (1,) for 3")


@every_holder
@pytest.mark.parametrize("values", [[True, False, True], [1, 0, 1], [1.0, 0.0, 1.0]], ids=repr)
def test_explored_is_a_column_of_booleans_or_of_0_and_1(hold: Callable[[list[Any]], Any], values: list[Any]) -> None:
    read = columns.explored(hold(values), 3)
    assert read.dtype == np.bool_
    assert read.tolist() == [True, False, True]


def test_explored_may_be_booleans_behind_objects() -> None:
    read = columns.explored(np.array([True, False], dtype=object), 2)
    assert read.dtype == np.bool_
    assert read.tolist() == [True, False]


@pytest.mark.parametrize("answer", [True, False, np.True_])
def test_one_boolean_answers_for_every_row(answer: bool) -> None:
    assert columns.explored(answer, 2).tolist() == [answer, answer]
    assert columns.explored(answer, 0).shape == (0,)


@pytest.mark.parametrize(
    ("values", "error", "reason"),
    [
        ([True, "yes", True], TypeError, "explored[1] is 'yes'; give True or False"),
        ([True, True, None], TypeError, "explored[2] is None; give True or False"),
        (pl.Series([True, None, True]), TypeError, "explored[1] is None; give True or False"),
        (pd.Series([True, pd.NA, True], dtype="boolean"), TypeError, "explored[1] is <NA>; give"),
        ([0, 1, 2], ValueError, "explored[2] is 2; give True or False"),
        ([0.0, 0.5, 1.0], ValueError, "explored[1] is 0.5; give True or False"),
        ([0.0, 1.0, np.nan], ValueError, "explored[2] is nan; give True or False"),
        (np.zeros(3, "m8[s]"), TypeError, "explored[0] is np.timedelta64"),
        ([True], ValueError, "explored has shape (1,) for 3 contexts"),
        ("yes", TypeError, "explored is 'yes' (str); give 3 values"),
        (1, TypeError, "explored is 1 (int); give 3 values"),
    ],
    ids=str,
)
def test_anything_else_explored_is_refused(values: Any, error: type[Exception], reason: str) -> None:
    assert refusal(error, columns.explored, values, 3).startswith(reason)


@every_holder
@given(values=st.lists(st.text(), min_size=1) | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_labels_come_out_as_python_str_and_int(hold: Callable[[list[Any]], Any], values: list[str | int]) -> None:
    if hold is np.array:
        values = [v.rstrip("\0") if isinstance(v, str) else v for v in values]  # numpy pads text with NUL
    read = columns.labels(hold(values), len(values))
    assert read == values
    assert {type(label) for label in read} <= {str, int}


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["a", "b"], dtype="category"),
        pd.Series(["a", "b"], dtype="string"),
        pd.Series(["a", "b"], dtype=object),
        pd.Categorical(["a", "b"]),
        pd.Index(["a", "b"]),
        pl.Series(["a", "b"], dtype=pl.Categorical),
        pl.Series(["a", "b"], dtype=pl.Enum(["b", "a"])),
        pa.array(["a", "b"]).dictionary_encode(),
        np.array([np.str_("a"), "b"], dtype=object),
    ],
    ids=lambda values: f"{type(values).__name__} {getattr(values, 'dtype', '')}",
)
def test_labels_of_every_kind_of_text_column_are_read(values: Any) -> None:
    read = columns.labels(values, 2)
    assert read == ["a", "b"]
    assert {type(label) for label in read} == {str}


def test_integer_labels_become_python_integers() -> None:
    for values in (pd.Series([1, 2], dtype="category"), pd.Series([1, 2], dtype="Int64"), np.array([1, 2], "u1")):
        assert [(label, type(label)) for label in columns.labels(values, 2)] == [(1, int), (2, int)]
    mixed: Any = [np.int64(7), "north"]
    assert columns.labels(mixed, 2) == [7, "north"]


def test_labels_do_not_alias_the_list_they_came_from() -> None:
    arms = ["a", "b"]
    columns.labels(arms, 2).append("c")
    assert arms == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["a", True], "arms[1] is True (bool); give a str or an int"),
        (["a", 1.0], "arms[1] is 1.0 (float); give a str or an int"),
        (["a", None], "arms[1] is None (NoneType); give a str or an int"),
        (np.array([1.0, 2.0]), "arms[0] is 1.0 (float)"),
        (np.array([True, False]), "arms[0] is True (bool)"),
        (np.zeros(2, "M8[ns]"), "arms[0] is np.datetime64"),
        (np.zeros(2, "m8[ns]"), "arms[0] is np.timedelta64"),
        (np.zeros((2, 1), int), "arms[0] is [0] (list)"),
        (np.ma.masked_array([1, 2], [False, True]), "arms[1] is None (NoneType)"),
        (pd.Series(["a", None]), "arms[1] is nan (float)"),
        (pd.Series(["a", pd.NA], dtype="string"), "arms[1] is <NA> (NAType)"),
        (pd.Series(["a", None], dtype="category"), "arms[1] is nan (float)"),
        (pl.Series(["a", None]), "arms[1] is None (NoneType)"),
        (pa.array(["a", None]), "arms[1] is None (NoneType)"),
        ([datetime.date(2026, 1, 1), 2], "arms[0] is datetime.date(2026, 1, 1) (date)"),
        ("ab", "arms is 'ab' (str); give a column of labels"),
        (5, "arms is 5 (int); give a column of labels"),
        ({"a", "b"}, "arms is {'a', 'b'} (set); give a column of labels"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_label_that_is_neither_str_nor_int_is_named_by_its_row(values: Any, reason: str) -> None:
    assert refusal(TypeError, columns.labels, values, 2).startswith(reason)


def test_labels_of_another_length_are_refused() -> None:
    assert refusal(ValueError, columns.labels, ["a"], 2) == "arms has 1 labels for 2 contexts; give one for each"


@pytest.mark.parametrize(
    "value", [2, True, 0.5, np.float32(0.5), np.int8(-3), np.bool_(True), LARGEST, -LARGEST, 2**53]
)
def test_a_reward_is_any_real_number(value: Any) -> None:
    read = columns.reward(value)
    assert type(read) is float
    assert read == value


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.1e40, np.float64(np.nan), 2**53 + 1])
def test_a_reward_without_a_faithful_float_is_refused(value: Any) -> None:
    assert refusal(ValueError, columns.reward, value).startswith(f"reward is {value}")


@pytest.mark.parametrize("value", ["1", None, 1j, [1.0], np.array(1.0), decimal.Decimal(1), np.timedelta64(1)], ids=str)
def test_a_reward_that_is_no_number_is_refused(value: Any) -> None:
    assert refusal(TypeError, columns.reward, value) == (
        f"reward is {value!r} ({type(value).__name__}); give a real number"
    )


def test_one_weight_is_positive_and_finite() -> None:
    assert columns.weight(2) == 2.0
    assert refusal(ValueError, columns.weight, 0) == "weight is 0.0; give a positive number, at least 1e-40"
    assert refusal(ValueError, columns.weight, -0.5) == "weight is -0.5; give a positive number, at least 1e-40"
    assert refusal(ValueError, columns.weight, np.inf).startswith("weight is inf")
    assert refusal(TypeError, columns.weight, "1").startswith("weight is '1' (str)")


class Fickle(float):
    """Says an ordinary number to anyone who checks it, and nan to anyone who takes it."""

    asked = 0

    def __float__(self) -> float:
        Fickle.asked += 1
        return 0.5 if Fickle.asked == 1 else float("nan")


def test_number_that_changes_between_two_looks_is_refused() -> None:
    Fickle.asked = 0
    with pytest.raises(ValueError, match="reward is nan"):
        columns.reward(Fickle(0.5))
