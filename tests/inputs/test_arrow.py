from __future__ import annotations

import ctypes
import gc
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
from armlet.inputs.arrow import GET, RELEASE, Array, Schema, Stream, capsule_pointer, read_columns

NEW_CAPSULE = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
new_capsule = NEW_CAPSULE(("PyCapsule_New", ctypes.pythonapi))
INPUT_OUTPUT_ERROR = 5


class Producer:
    """A stream made by hand from record batches, that counts what is handed out and what is released."""

    def __init__(self, batches: list[Any], fails_at_chunk: int | None = None) -> None:
        self.batches, self.fails_at_chunk = batches, fails_at_chunk
        self.next_chunk = 0
        self.given = {"schema": 0, "array": 0, "stream": 1}
        self.released = {"schema": 0, "array": 0, "stream": 0}
        self.reason = ctypes.create_string_buffer(b"the disk is gone")
        self.kept: list[object] = []  # callbacks live as long as the producer

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        fields: dict[str, Any] = {field[0]: field[1] for field in Stream._fields_}
        last_error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: ctypes.addressof(self.reason))
        self.kept.append(last_error)
        self.stream = Stream(
            get_schema=GET(self.get_schema),
            get_next=GET(self.get_next),
            get_last_error=ctypes.cast(last_error, fields["get_last_error"]),
            release=RELEASE(self.release_stream),
        )
        return new_capsule(ctypes.addressof(self.stream), b"arrow_array_stream", None)

    def get_schema(self, _: int, out: int) -> int:
        self.hand_out("schema", Schema, self.batches[0].__arrow_c_array__()[0], b"arrow_schema", out)
        return 0

    def get_next(self, _: int, out: int) -> int:
        if self.next_chunk == self.fails_at_chunk:
            return INPUT_OUTPUT_ERROR
        if self.next_chunk < len(self.batches):
            capsule = self.batches[self.next_chunk].__arrow_c_array__()[1]
            self.hand_out("array", Array, capsule, b"arrow_array", out)
            self.next_chunk += 1
        return 0

    def hand_out(self, kind: str, struct: type[Schema | Array], capsule: object, name: bytes, out: int) -> None:
        source = struct.from_address(capsule_pointer(capsule, name))
        ctypes.memmove(out, ctypes.addressof(source), ctypes.sizeof(struct))
        address_of_release = ctypes.cast(source.release, ctypes.c_void_p).value
        assert address_of_release is not None
        release = RELEASE(address_of_release)  # source.release itself is a view of the field set next
        source.release = RELEASE()  # moved out: the capsule no longer owns it

        def counted(address: int) -> None:
            self.released[kind] += 1
            release(address)

        callback = RELEASE(counted)
        self.kept.append((callback, release))
        struct.from_address(out).release = callback
        self.given[kind] += 1

    def release_stream(self, address: int) -> None:
        self.released["stream"] += 1
        Stream.from_address(address).release = RELEASE()


def batch(**columns: Any) -> Any:
    return pa.record_batch(columns)


def test_everything_is_released_exactly_once() -> None:
    producer = Producer([batch(a=[1, 2]), batch(a=[3])])
    np.testing.assert_array_equal(read_columns(producer)["a"].values, [1, 2, 3])
    assert producer.released == producer.given == {"schema": 1, "array": 2, "stream": 1}


@pytest.mark.parametrize(
    ("producer", "wanted", "given"),
    [
        (Producer([batch(a=["x"])]), None, {"schema": 1, "array": 0, "stream": 1}),
        (Producer([batch(a=[1])]), ["b"], {"schema": 1, "array": 0, "stream": 1}),
        (Producer([batch(a=[1]), batch(a=[2**60])]), None, {"schema": 1, "array": 2, "stream": 1}),
        (Producer([batch(a=[1]), batch(a=[2])], 1), None, {"schema": 1, "array": 1, "stream": 1}),
    ],
    ids=["wrong type", "wrong name", "inexact integer in the second chunk", "producer fails"],
)
def test_an_error_half_way_releases_everything_exactly_once(
    producer: Producer, wanted: list[str] | None, given: dict[str, int]
) -> None:
    with pytest.raises((TypeError, ValueError, TableError)):
        read_columns(producer, wanted)
    assert producer.released == producer.given == given


def test_an_error_leaves_no_memory_behind_in_pyarrow() -> None:
    gc.collect()
    before = pa.total_allocated_bytes()
    table = pa.table({"a": pa.array(range(10_000)), "b": pa.array([2**60] * 10_000)})
    assert pa.total_allocated_bytes() >= before + 160_000
    with pytest.raises(ValueError, match="column 'b'"):
        read_columns(table)
    del table
    gc.collect()
    assert pa.total_allocated_bytes() == before


def test_the_producers_own_words_are_in_the_error() -> None:
    with pytest.raises(TableError, match=r"the disk is gone \(error 5\)"):
        read_columns(Producer([batch(a=[1])], fails_at_chunk=0))


def test_an_exception_in_a_python_reader_is_in_the_error() -> None:
    def batches() -> Any:
        yield batch(a=[1])
        raise RuntimeError("connection lost")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    with pytest.raises(TableError, match="connection lost"):
        read_columns(reader)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_of_every_width_are_read(kind: str) -> None:
    bounds = np.iinfo(kind)
    values = [max(int(bounds.min), -(2**53)), 0, 7, min(int(bounds.max), 2**53)]
    table = pa.table({"a": pa.array(values, kind)})
    assert read_columns(table)["a"].values.tolist() == values


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_floats_of_every_width_are_read(kind: str) -> None:
    values = np.array([-1.5, 0.1, np.inf], kind)
    read = read_columns(pa.table({"a": values}))["a"].values
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read, values.astype(np.float64))


COLUMNS = {
    pa.float64(): st.floats(allow_nan=False),
    pa.float32(): st.floats(allow_nan=False, width=32),
    pa.int64(): st.integers(-(2**53), 2**53),
    pa.uint8(): st.integers(0, 255),
    pa.bool_(): st.booleans(),
}
TO: dict[str, Callable[[Any], Any]] = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "structs": lambda table: table.to_struct_array(),
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
    columns = read_columns(TO[library](table))
    assert list(columns) == table.column_names
    for name, column in columns.items():
        expected = table[name].to_pylist()
        assert column.nulls.tolist() == [i for i, value in enumerate(expected) if value is None]
        np.testing.assert_array_equal(column.values, [np.nan if v is None else float(v) for v in expected])


def test_a_sliced_struct_shifts_its_columns_and_its_nulls() -> None:
    inner = [pa.array(range(10), pa.int64()).slice(1), pa.array([i % 2 == 0 for i in range(9)])]
    structs = pa.StructArray.from_arrays(inner, names=["a", "b"], mask=pa.array([i == 6 for i in range(9)]))
    columns = read_columns(pa.chunked_array([structs.slice(4, 4)]))
    np.testing.assert_array_equal(columns["a"].values, [5, 6, np.nan, 8])
    np.testing.assert_array_equal(columns["b"].values, [1, 0, np.nan, 0])
    assert columns["b"].nulls.tolist() == [2]


def test_uncounted_nulls_are_found() -> None:
    class Uncounted(Producer):
        def get_next(self, _: int, out: int) -> int:
            code = super().get_next(_, out)
            chunk = Array.from_address(out)
            if chunk.release:
                Array.from_address(chunk.children[0]).null_count = -1
            return code

    assert read_columns(Uncounted([batch(a=[1, None, 3])]))["a"].nulls.tolist() == [1]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"a": pa.array([], pa.float64())}),
        pa.schema({"a": pa.float64()}).empty_table(),
        pa.table({"a": pa.chunked_array([], pa.int64())}),
        pl.DataFrame({"a": []}),
        pd.DataFrame(columns=["a"]),
    ],
    ids=["empty array", "empty table", "no chunks", "polars", "pandas"],
)
def test_a_table_without_rows_has_empty_columns(table: Any) -> None:
    column = read_columns(table)["a"]
    assert column.values.shape == column.nulls.shape == (0,)


def test_columns_come_in_the_wanted_order() -> None:
    columns = read_columns(pa.table({"b": [1], "a": [2]}), ["a", "b"])
    assert [(name, column.values.tolist()) for name, column in columns.items()] == [("a", [2]), ("b", [1])]


def test_missing_and_extra_columns_are_all_named() -> None:
    with pytest.raises(ValueError, match="lacks 'c', 'd' and has the unknown 'a', 'e'"):
        read_columns(pa.table({"a": [1], "b": [1], "e": [1]}), ["b", "c", "d"])


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array(["x"]), "string"),
        (pa.array([b"x"]), "binary"),
        (pa.array(["x"]).dictionary_encode(), "categorical"),
        (pa.array([1, 2]).dictionary_encode(), "categorical"),
        (pa.array([0], pa.date32()), "date or time"),
        (pa.array([0], pa.timestamp("ns")), "date or time"),
        (pa.array([[1.0]]), "list or struct"),
        (pa.array([1], pa.decimal128(5, 2)), "decimal"),
        (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())), "arrow.bool8"),
    ],
)
def test_a_column_that_is_not_numeric_is_named_with_its_type(column: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"column 'age' is of type {kind};"):
        read_columns(pa.table({"age": column}))


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1])
def test_an_integer_that_float64_would_round_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"column 'a' holds {value}"):
        read_columns(pa.table({"a": [0, value]}))


def test_what_lies_behind_a_null_does_not_matter() -> None:
    buffers = [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([5, 2**60]))]
    column = read_columns(pa.table({"a": pa.Array.from_buffers(pa.int64(), 2, buffers)}))["a"]
    np.testing.assert_array_equal(column.values, [5, np.nan])


def test_duplicate_names_are_refused() -> None:
    with pytest.raises(ValueError, match="more than one column 'a'"):
        read_columns(pa.table([[1], [2], [3]], names=["a", "b", "a"]))


def test_a_single_column_is_no_table() -> None:
    with pytest.raises(TypeError, match="one float64 column; give a table"):
        read_columns(pl.Series([1.0]))


def test_the_index_of_a_pandas_frame_is_no_column() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index(["u", "v"], name="user"))
    assert list(read_columns(frame)) == ["a"]


def test_pandas_without_pyarrow_is_told_to_install_it() -> None:
    class Frame:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ImportError("Missing optional dependency 'pyarrow'")

    with pytest.raises(ImportError, match=r"Frame needs pyarrow .* install pyarrow, or pass table\[features\]"):
        read_columns(Frame())
