"""Columns of numbers from tables of pandas, polars, Arrow and whatever streams Arrow: values, gaps and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet.errors import TableError
from armlet.inputs.contexts import ContextReader
from armlet.inputs.tables import TableColumns
from armlet.types import Float64


def read(table: Any, *features: str) -> Float64:
    return ContextReader(len(features), features).matrix(table)


class Producer:
    """A table of another library: nothing but its stream."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_of_every_width_are_read(kind: str) -> None:
    bounds = np.iinfo(kind)
    values = [max(int(bounds.min), -(2**53)), 0, 7, min(int(bounds.max), 2**53)]
    assert read(pa.table({"a": pa.array(values, kind)}), "a")[:, 0].tolist() == values


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_floats_of_every_width_are_read(kind: str) -> None:
    values = np.array([-1.5, 0.1, 7.0], kind)
    found = read(pa.table({"a": values}), "a")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found[:, 0], values.astype(np.float64))


FLOATS = st.floats(-(2.0**99), 2.0**99, allow_nan=False)
COLUMNS = {
    pa.float64(): FLOATS,
    pa.float32(): st.floats(-(2.0**99), 2.0**99, allow_nan=False, width=32),
    pa.int64(): st.integers(-(2**53), 2**53),
    pa.uint8(): st.integers(0, 255),
    pa.bool_(): st.booleans(),
}
TO: dict[str, Callable[[Any], Any]] = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "a stream": Producer,
}


@st.composite
def chunked_tables(draw: st.DrawFn) -> Any:
    """Tables with nulls, cut into chunks that share buffers, and sliced once more."""
    n = draw(st.integers(0, 30))
    kinds = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4))
    table = pa.table(
        {
            f"x{i}": pa.array(draw(st.lists(st.none() | COLUMNS[kind], min_size=n, max_size=n)), kind)
            for i, kind in enumerate(kinds)
        }
    )
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=3)))
    ends = zip([0, *cuts], [*cuts, n], strict=True)
    chunks = pa.concat_tables([table.slice(start, stop - start) for start, stop in ends])
    return chunks.slice(draw(st.integers(0, n)), draw(st.integers(0, n)))


@pytest.mark.parametrize("library", list(TO))
@given(table=chunked_tables())
def test_slices_chunks_and_nulls_read_as_python_sees_them(library: str, table: Any) -> None:
    columns = TableColumns(TO[library](table))
    assert columns.names == table.column_names
    for name in columns.names:
        expected = table[name].to_pylist()
        assert columns.missing(name).tolist() == [value is None for value in expected]
        np.testing.assert_array_equal(columns.measured(name), [np.nan if v is None else float(v) for v in expected])


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"a": pa.array([], pa.float64())}),
        pa.table({"a": pa.chunked_array([], pa.int64())}),
        pl.DataFrame({"a": []}),
        pd.DataFrame(columns=["a"]),
    ],
    ids=["empty array", "no chunks", "polars", "pandas"],
)
def test_a_table_without_rows_has_empty_columns(table: Any) -> None:
    assert read(table, "a").shape == (0, 1)


def test_columns_come_in_the_wanted_order() -> None:
    assert read(pa.table({"b": [1], "a": [2]}), "a", "b").tolist() == [[2.0, 1.0]]


def test_missing_and_extra_columns_are_all_named() -> None:
    with pytest.raises(ValueError, match="lacks 'c', 'd' and has the unknown 'a', 'e'"):
        read(pa.table({"a": [1], "b": [1], "e": [1]}), "b", "c", "d")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array(["x"]), "column 'age' holds text; turn it into numbers, or give the bandit an encoder"),
        (pa.array(["x"]).dictionary_encode(), "column 'age' holds text"),
        (pa.array([1, 2]).dictionary_encode(), "column 'age' holds text"),
        (pa.array([0], pa.date32()), "column 'age' holds dates; turn"),
        (pa.array([0], pa.timestamp("ns")), "column 'age' holds dates; turn"),
        (pa.array([b"x"]), "row 0: column 'age' is b'x'"),
        (pa.array([[1.0]]), "row 0: column 'age' is "),
        (pa.array([1], pa.decimal128(5, 2)), "row 0: column 'age' is Decimal"),
    ],
)
def test_a_column_that_is_not_numeric_is_named(column: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        read(pa.table({"age": column}), "age")


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1])
def test_an_integer_that_float64_would_round_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"row 1: column 'a' is {value}, beyond 2"):
        read(pa.table({"a": [0, value]}), "a")


def test_a_null_is_named_by_its_row() -> None:
    with pytest.raises(ValueError, match=r"row 1: context\['a'\] is missing \(null or NaN\); fill it in"):
        read(pa.table({"a": [1, None, 3]}), "a")


def test_duplicate_names_are_refused() -> None:
    with pytest.raises(ValueError, match="more than one column 'a'"):
        read(pa.table([[1], [2], [3]], names=["a", "b", "a"]), "a", "b")


def test_the_index_of_a_pandas_frame_is_no_column() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index(["u", "v"], name="user"))
    assert read(frame, "a").tolist() == [[1.0], [2.0]]


def test_a_stream_that_fails_says_why() -> None:
    def batches() -> Any:
        yield pa.record_batch({"a": [1]})
        raise RuntimeError("connection lost")

    with pytest.raises(TableError, match=r"whose Arrow stream cannot be read: .*connection lost"):
        read(pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches()), "a")
