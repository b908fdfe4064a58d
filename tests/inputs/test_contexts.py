from __future__ import annotations

import datetime
import decimal
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import armlet
from armlet.errors import ArmletError, InvalidValueError
from armlet.inputs.contexts import LARGEST, ContextReader, feature_names
from armlet.types import Float64

PLAIN = ContextReader(3)
NAMED = ContextReader(3, ("age", "height", "weight"))
FRAMES = [pd.DataFrame, pl.DataFrame, pa.table]


def refusal(error: type[Exception], call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(ArmletError) as caught:
        call(*arguments)
    assert isinstance(caught.value, error)
    return str(caught.value)


usable = st.floats(-LARGEST, LARGEST) | st.integers(-(2**53), 2**53) | st.booleans()
matrices = hnp.arrays(np.float64, st.tuples(st.integers(0, 20), st.just(3)), elements=st.floats(-LARGEST, LARGEST))


@given(st.lists(usable, min_size=3, max_size=3))
def test_lists_tuples_and_mappings_read_alike(values: list[float]) -> None:
    expected = np.array([float(value) for value in values])
    mapping = dict(zip(("weight", "height", "age"), values[::-1], strict=True))
    for row in (PLAIN.row(values), PLAIN.row(tuple(values)), NAMED.row(values), NAMED.row(mapping)):
        assert row.dtype == np.float64
        np.testing.assert_array_equal(row, expected)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f8", "g", "i1", "u2", "i8", "u8", "?"])
def test_every_real_dtype_becomes_float64(kind: str) -> None:
    row, matrix = PLAIN.row(np.ones(3, kind)), PLAIN.matrix(np.ones((2, 3), kind))
    assert row.dtype == matrix.dtype == np.float64
    assert row.tolist() == [1.0, 1.0, 1.0]
    assert matrix.tolist() == [[1.0, 1.0, 1.0]] * 2


def test_float64_in_c_order_passes_through_uncopied() -> None:
    x, X = np.zeros(3), np.zeros((4, 3))
    x.flags.writeable = False
    assert PLAIN.row(x) is x
    assert PLAIN.matrix(X) is X


def test_any_other_layout_is_copied_into_c_order() -> None:
    buffer = np.arange(1 + 24, dtype=np.uint8)
    unaligned = np.frombuffer(buffer.data, np.float64, 3, offset=1)
    for x in (np.arange(6.0)[::2], np.arange(3.0)[::-1], unaligned):
        row = PLAIN.row(x)
        assert row.flags.c_contiguous
        assert row.flags.aligned
        np.testing.assert_array_equal(row, x)
    X = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    assert PLAIN.matrix(X).flags.c_contiguous
    np.testing.assert_array_equal(PLAIN.matrix(X), X)


def test_a_row_that_carries_names_is_read_by_them() -> None:
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    record = database.execute("select 3 as weight, 1 as age, 2 as height").fetchone()
    database.close()
    for x in (pd.Series({"weight": 3.0, "age": 1.0, "height": 2.0}), record):
        assert NAMED.row(x).tolist() == [1.0, 2.0, 3.0]
        assert NAMED.matrix([x, x]).tolist() == [[1.0, 2.0, 3.0]] * 2


def test_without_feature_names_a_series_is_read_by_position() -> None:
    assert PLAIN.row(pd.Series({"b": 3.0, "a": 1.0, "c": 2.0})).tolist() == [3.0, 1.0, 2.0]
    assert PLAIN.row(pl.Series([1, 2, 3])).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.01e40, -1e200, 1e308])
def test_what_is_not_finite_or_too_large_is_named_by_index_or_feature(bad: float) -> None:
    reason = f"is {bad}; give a finite number of at most 1e+40 in size"
    mapping = {"age": 0.0, "height": bad, "weight": 0.0}
    for x in ([0.0, bad, 0.0], np.array([0.0, bad, 0.0])):
        assert refusal(ValueError, PLAIN.row, x) == f"context[1] {reason}"
        assert refusal(ValueError, NAMED.row, x) == f"context['height'] {reason}"
    assert refusal(ValueError, NAMED.row, mapping) == f"context['height'] {reason}"
    X = np.zeros((1000, 3))
    X[700, 1] = bad
    for many in (X, X.tolist(), X.astype(">f8")):
        assert refusal(ValueError, PLAIN.matrix, many) == f"row 700: context[1] {reason}"
    assert refusal(ValueError, NAMED.matrix, [mapping]) == f"row 0: context['height'] {reason}"


def test_a_long_double_that_overflows_float64_is_refused() -> None:
    assert "context[0]" in refusal(ValueError, PLAIN.row, np.full(3, np.longdouble("1e4000")))


def test_the_largest_numbers_are_accepted_in_any_number() -> None:
    assert PLAIN.row([LARGEST, -LARGEST, LARGEST]).tolist() == [LARGEST, -LARGEST, LARGEST]
    X = np.full((1000, 3), -LARGEST)
    assert PLAIN.matrix(X) is X


@pytest.mark.parametrize(
    "bad",
    [
        "2",
        None,
        1j,
        decimal.Decimal(2),
        [2, 3],
        datetime.date(2026, 1, 1),
        np.datetime64("2026"),
        np.timedelta64(1),
    ],
    ids=str,
)
def test_what_is_no_number_is_named_by_index_or_feature(bad: Any) -> None:
    reason = f"is {bad!r} ({type(bad).__name__}); give a real number"
    assert refusal(TypeError, PLAIN.row, [1, bad, 3.0]) == f"context[1] {reason}"
    mapping = {"age": 1.0, "height": bad, "weight": 3.0}
    assert refusal(TypeError, NAMED.row, mapping) == f"context['height'] {reason}"
    assert refusal(TypeError, PLAIN.matrix, [[1, 2, 3], [1, bad, 3]]) == f"row 1: context[1] {reason}"


@pytest.mark.parametrize("kind", ["c16", "M8[s]", "m8[ns]", "U3", "S3", "O", "i4,f8"])
def test_arrays_of_anything_but_real_numbers_are_refused(kind: str) -> None:
    assert refusal(TypeError, PLAIN.row, np.zeros(3, kind)).startswith("context")
    assert refusal(TypeError, PLAIN.matrix, np.zeros((2, 3), kind)).startswith("row 0: context")


@pytest.mark.parametrize("bad", [2**53 + 1, -(2**53) - 1, 2**63 + 1, 2**70])
def test_an_integer_that_float64_would_round_is_refused(bad: int) -> None:
    reason = f"context[0] is {bad}, beyond 2**53 where float64 is inexact; rescale it"
    assert refusal(ValueError, PLAIN.row, [bad, bad, bad]) == reason
    assert refusal(ValueError, PLAIN.row, np.array([bad, bad, bad])).startswith("context")
    assert refusal(ValueError, PLAIN.matrix, [[bad, bad, bad]]) == f"row 0: {reason}"


def test_a_masked_value_is_refused_and_an_empty_mask_is_not() -> None:
    masked = np.ma.masked_array([1, 2, 3], [False, True, False])
    assert "context[1]" in refusal(TypeError, PLAIN.row, masked)
    assert "row 0: context[1]" in refusal(ValueError, PLAIN.matrix, masked.reshape(1, 3))
    assert "row 0: context['height']" in refusal(TypeError, NAMED.matrix, [masked])
    assert PLAIN.row(np.ma.masked_array([1, 2, 3], False)).tolist() == [1.0, 2.0, 3.0]


def test_a_context_of_the_wrong_shape_says_what_to_do() -> None:
    assert refusal(ValueError, PLAIN.row, [1, 2, 3, 4]) == ("dim is 3 but the context has 4 values; got shape (4,)")
    assert refusal(ValueError, PLAIN.row, np.zeros((1, 3))) == (
        "context has shape (1, 3); use decide_many for a table, or x[0] for one row"
    )
    assert "decide_many" in refusal(ValueError, NAMED.row, pd.DataFrame({"age": [1.0, 2.0]}))
    assert refusal(TypeError, PLAIN.row, 1.0) == "context is 1.0 (float); give a row of 3 real numbers"
    assert refusal(TypeError, PLAIN.row, "abc") == "context is 'abc' (str); give a row of 3 real numbers"
    assert refusal(TypeError, PLAIN.row, {1, 2, 3}).startswith("context is {1, 2, 3} (set)")


def test_a_matrix_of_the_wrong_shape_says_what_to_do() -> None:
    for one in (np.zeros(3), [0.0, 0.0, 0.0]):
        assert refusal(ValueError, PLAIN.matrix, one) == (
            "contexts have shape (3,); for one context give [x], or X.reshape(1, -1)"
        )
    assert refusal(ValueError, PLAIN.matrix, np.zeros((2, 4))) == (
        "dim is 3 but the contexts have 4 columns; got shape (2, 4)"
    )
    assert refusal(ValueError, PLAIN.matrix, [[1, 2, 3], [4, 5]]) == (
        "row 1: dim is 3 but the context has 2 values; got shape (2,)"
    )
    assert refusal(ValueError, PLAIN.matrix, np.zeros((1, 2, 3))).endswith("give a matrix of shape (N, 3)")
    assert refusal(TypeError, NAMED.matrix, {"age": [1.0]}).startswith("contexts are {'age': [1.0]} (dict); give")


def test_missing_and_extra_names_are_all_listed() -> None:
    wrong = {"age": 1.0, "hight": 2.0, "size": 3.0}
    reason = "lacks 'height', 'weight' and has the unknown 'hight', 'size'; give each feature once and no more"
    assert refusal(ValueError, NAMED.row, wrong) == f"context {reason}"
    right = {"age": 1.0, "height": 2.0, "weight": 3.0}
    assert refusal(ValueError, NAMED.matrix, [right, wrong]) == f"row 1: context {reason}"
    for frame in FRAMES:
        table = frame({name: [value] for name, value in wrong.items()})
        assert refusal(ValueError, NAMED.matrix, table) == f"the table {reason}"


def test_asking_for_a_name_does_not_add_it_to_a_defaultdict() -> None:
    counts: defaultdict[str, float] = defaultdict(float, {"age": 1.0})
    refusal(ValueError, NAMED.row, counts)
    assert list(counts) == ["age"]


def test_names_need_features_on_the_bandit() -> None:
    assert refusal(TypeError, PLAIN.row, {"age": 1.0}).endswith(
        "no feature names; pass features=[...] to Bandit, or give a list of 3 values"
    )
    for frame in FRAMES:
        assert "pass features=[...] to Bandit" in refusal(ValueError, PLAIN.matrix, frame({"age": [1.0]}))


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "pyarrow"])
@given(X=matrices)
def test_a_table_reads_as_its_columns_in_the_order_of_the_features(frame: Any, X: Float64) -> None:
    table = frame({"weight": X[:, 2], "age": X[:, 0], "height": X[:, 1]})
    read = NAMED.matrix(table)
    assert read.flags.c_contiguous
    np.testing.assert_array_equal(read, X)


@given(X=matrices)
def test_rows_mappings_and_matrices_read_alike(X: Float64) -> None:
    rows = X.tolist()
    assert NAMED.features is not None
    mappings = [dict(zip(NAMED.features, row, strict=True)) for row in rows]
    for many in (rows, tuple(rows), list(X), mappings, X[::-1].copy()[::-1]):
        read = NAMED.matrix(many)
        assert read.shape == X.shape
        np.testing.assert_array_equal(read, X)


def test_rows_and_mappings_may_be_mixed() -> None:
    mixed: Any = [[1, 2, 3], {"weight": 6, "height": 5, "age": 4}, np.array([7.0, 8.0, 9.0])]
    assert NAMED.matrix(mixed).tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    ("bad", "error", "reason"),
    [
        ([1.0, None], ValueError, "row 1: context['height'] is missing (null or NaN)"),
        ([1.0, np.inf], ValueError, "row 1: column 'height' is inf; give a finite"),
        (["x", "y"], TypeError, "column 'height' holds text; turn it into numbers"),
        ([datetime.date(2026, 1, 1)] * 2, TypeError, "column 'height' holds dates; turn it into numbers"),
        ([1, 2**60], ValueError, f"row 1: column 'height' is {2**60}, beyond 2**53"),
    ],
    ids=["null", "infinity", "string", "date", "large integer"],
)
def test_a_bad_column_of_a_table_is_named(frame: Any, bad: list[object], error: type[Exception], reason: str) -> None:
    table = frame({"age": [1, 2], "height": bad, "weight": [1, 2]})
    assert refusal(error, NAMED.matrix, table).startswith(reason)


@pytest.mark.parametrize("empty", [[], (), np.empty((0, 3)), np.empty(0), np.empty((0, 3), int)])
def test_no_contexts_at_all_are_fine(empty: Any) -> None:
    assert PLAIN.matrix(empty).shape == (0, 3)


def test_feature_names_and_dim_agree() -> None:
    assert feature_names(["a", "b"], None) == (("a", "b"), 2)
    assert feature_names(pd.Index(["a", "b"]), 2) == (("a", "b"), 2)
    assert feature_names(None, 4) == (None, 4)
    names, _ = feature_names(np.array(["a", "b"]), None)
    assert [type(name) for name in names or ()] == [str, str]
    four: Any = np.int64(4)
    assert type(feature_names(None, four)[1]) is int


@pytest.mark.parametrize(
    ("features", "dim", "error", "reason"),
    [
        (None, None, ValueError, "dim is None; give dim"),
        (None, 0, ValueError, "dim is 0; a context has at least one value"),
        (None, 2.0, TypeError, "dim is 2.0 (float); give a whole number"),
        (None, True, TypeError, "dim is True (bool); give a whole number"),
        ([], None, ValueError, "dim is 0; a context has at least one value"),
        (["a", "b"], 3, ValueError, "dim is 3 but features has 2 names; leave dim out"),
        (["a", "b", "a"], None, ValueError, "features has 'a' more than once"),
        (["a", 1], None, TypeError, "features[1] is 1 (int); give a string"),
        ("ab", 2, TypeError, "features is 'ab'; give a list of names"),
        ({"a"}, None, TypeError, "features is {'a'}; give a list of names"),
    ],
)
def test_wrong_features_are_refused(features: Any, dim: Any, error: type[Exception], reason: str) -> None:
    assert refusal(error, feature_names, features, dim).startswith(reason)


# ---- other things that people pass


class Tensor:
    """Three numbers that numpy may not have: on another device, or with a gradient to track."""

    shape = (3,)

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        raise self.error


def test_a_list_among_too_many_values_is_named_by_its_index() -> None:
    for reader in (PLAIN, NAMED):
        assert refusal(TypeError, reader.row, [1, 2, 3, [1]]) == "context[3] is [1] (list); give a real number"
        assert "row 0: context[3] is [1]" in refusal(TypeError, reader.matrix, [[1, 2, 3, [1]]])
    assert refusal(TypeError, NAMED.row, [1, 2, [1]]) == "context['weight'] is [1] (list); give a real number"


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array, sparse.dok_matrix])
def test_sparse_contexts_are_refused_with_the_way_out(kind: Callable[[Any], Any]) -> None:
    X = kind(np.eye(3))
    for reader in (PLAIN, NAMED):
        assert refusal(TypeError, reader.matrix, X) == (
            f"contexts cannot be sparse ({kind.__name__}); give all the values, with .toarray()"
        )
        assert ".toarray()" in refusal(TypeError, reader.row, kind(np.eye(3)[:1]))
        assert "row 0: context cannot be sparse" in refusal(TypeError, reader.matrix, [kind(np.eye(3)[:1])])
    np.testing.assert_array_equal(PLAIN.matrix(X.toarray()), np.eye(3))


def test_sparse_columns_of_a_table_are_read() -> None:
    dense = pd.DataFrame(np.eye(3), columns=list(NAMED.features or ()))
    np.testing.assert_array_equal(NAMED.matrix(dense.astype(pd.SparseDtype("float64", 0.0))), np.eye(3))


@pytest.mark.parametrize(
    "error", [RuntimeError("use tensor.detach()"), TypeError("use Tensor.cpu()"), ValueError("no")]
)
def test_what_numpy_cannot_read_is_refused_in_the_words_of_its_owner(error: Exception) -> None:
    words = f"cannot be a Tensor, numpy does not read it: {error}"
    for reader in (PLAIN, NAMED):
        assert refusal(TypeError, reader.row, Tensor(error)) == f"context {words}"
        assert refusal(TypeError, reader.matrix, Tensor(error)) == f"contexts {words}"


def test_a_series_is_one_context_and_no_table() -> None:
    for series in (pd.Series([1.0, 2.0, 3.0]), pl.Series([1.0, 2.0, 3.0])):
        for reader in (PLAIN, NAMED):
            assert "contexts have shape (3,); for one context give [x]" in refusal(ValueError, reader.matrix, series)


def test_a_series_with_other_labels_is_told_those_of_the_features() -> None:
    message = refusal(ValueError, NAMED.row, pd.Series([1.0, 2.0, 3.0]))
    assert "labels [0, 1, 2], none of them a feature" in message
    assert "['age', 'height', 'weight'], or give them in this order with .to_numpy()" in message
    partly = pd.Series({"age": 1.0, "height": 2.0, "wait": 3.0})
    assert "lacks 'weight' and has the unknown 'wait'" in refusal(ValueError, NAMED.row, partly)


@pytest.mark.parametrize("reader", [PLAIN, NAMED])
def test_arrays_of_three_axes_are_refused_by_their_shape(reader: ContextReader) -> None:
    cube = np.zeros((1, 1, 3))
    assert refusal(ValueError, reader.row, cube) == "context has shape (1, 1, 3); give a row of 3 values"
    assert "shape (1, 1, 3); give a matrix of shape (N, 3)" in refusal(ValueError, reader.matrix, cube)


def test_a_dimension_that_no_row_could_have_is_refused() -> None:
    for dim in (2**31 + 1, 2**70):
        assert f"dim is {dim}; a context has" in refusal(ValueError, feature_names, None, dim)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_table_of_one_row_is_a_context(frame: Any) -> None:
    rows: dict[str, list[Any]] = {"size": ["large", "small"], "age": [3.0, 4.0]}
    numbers = armlet.Bandit(["a", "b"], features=["height", "age"], seed=1)
    encoded = armlet.Bandit(["a", "b"], encoder=armlet.Encoder().fit(rows), seed=1)
    assert numbers.decide(frame({"age": [3.0], "height": [1.5]})).x.tolist() == [1.5, 3.0]
    one = {name: values[:1] for name, values in rows.items()}
    assert encoded.decide(frame(one)).x.tolist() == encoded.decide({"size": "large", "age": 3.0}).x.tolist()
    for bandit, several in ((numbers, {"age": [1.0, 2.0], "height": [1.0, 2.0]}), (encoded, rows)):
        with pytest.raises(InvalidValueError, match="context is a table of 2 rows; use decide_many"):
            bandit.decide(frame(several))
