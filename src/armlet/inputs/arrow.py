"""Numeric columns of any table that speaks the Arrow C stream interface, read with ctypes alone.

The structures and their life times are those of the Arrow C data and C stream interfaces: the receiver of a schema, an
array or a stream releases it exactly once, and a parent releases its children.
Cost O(values): each column is copied to float64, because its buffers belong to the producer.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError, TableError, load_package
from armlet.inputs.columns import EXACT, check_names
from armlet.types import ArrowTable, Bool, Float64, Int64

if TYPE_CHECKING:
    from armlet.kernel import Decisions


# Arrow's one-letter formats
INTEGERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8"}
DTYPES = INTEGERS | {"e": "f2", "f": "f4", "g": "f8"}
BOOLEAN = "b"  # one bit a value
EMPTY = "n"  # no buffers at all: what a column without a single value is exported as
STRINGS = {"u": "string", "U": "string", "v": "string", "z": "binary", "Z": "binary", "w": "binary"}
TYPE_NAMES = STRINGS | {"t": "date or time", "d": "decimal", "+": "list or struct", "b": "bool", "n": "null"}


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
ADDRESSES = ctypes.POINTER(ctypes.c_void_p)


class Schema(ctypes.Structure):
    """`struct ArrowSchema`: the type of a column, or of a table as a struct of columns."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ADDRESSES),
        ("dictionary", ctypes.c_void_p),
        ("release", RELEASE),
        ("private_data", ctypes.c_void_p),
    )


class Array(ctypes.Structure):
    """`struct ArrowArray`: the buffers of one chunk of a column, or of a table."""

    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ADDRESSES),
        ("children", ADDRESSES),
        ("dictionary", ctypes.c_void_p),
        ("release", RELEASE),
        ("private_data", ctypes.c_void_p),
    )


class Stream(ctypes.Structure):
    """`struct ArrowArrayStream`: one schema, then chunks until one comes without a release."""

    _fields_ = (
        ("get_schema", GET),
        ("get_next", GET),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
        ("release", RELEASE),
        ("private_data", ctypes.c_void_p),
    )


GET_POINTER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
capsule_pointer = GET_POINTER(("PyCapsule_GetPointer", ctypes.pythonapi))

Part: TypeAlias = tuple[Float64, Bool]  # values and nulls of one column in one chunk
NOTHING: Part = (np.empty(0), np.empty(0, dtype=np.bool_))


class Field(NamedTuple):
    """A column to read: its Arrow format and its place in the table."""

    name: str
    code: str
    place: int


class Column(NamedTuple):
    """One numeric column of a table, all its chunks together."""

    values: Float64  # (N,): NaN where null
    nulls: Int64  # the rows without a value, ascending


def read_columns(table: ArrowTable, wanted: Sequence[str] | None = None) -> dict[str, Column]:
    """Read the numeric columns of a table as float64, in the order of `wanted`, or of the table.

    `wanted` are the names that the table must have, no more and no fewer; None for all that it has. Names that are
    missing, extra or double, integers beyond 2**53 and columns that are not numeric are refused; a TableError holds the
    message of a producer that fails.

    Examples
    --------
    >>> import pyarrow
    >>> ages = read_columns(pyarrow.table({"age": [31, None]}))["age"]
    >>> ages.values, ages.nulls
    (array([31., nan]), array([1]))
    """
    capsule = _export(table)  # keeps the stream's memory alive until we return
    try:
        stream = Stream.from_address(capsule_pointer(capsule, b"arrow_array_stream"))
    except ValueError as error:
        raise TableError(f"the table is a {type(table).__name__} without an Arrow stream; give another one") from error
    with _released(stream), _released(Schema()) as schema:
        _ask(stream, stream.get_schema, schema)
        names = _names(schema)
        wanted = names if wanted is None else wanted
        check_names(names, wanted, "the table")
        places = {name: place for place, name in enumerate(names)}
        fields = [_field(schema, places[name]) for name in wanted]
        parts = _read_all(stream, fields)
    return {field.name: _joined(part) for field, part in zip(fields, parts, strict=True)}


def _export(table: ArrowTable) -> object:
    if hasattr(table, "reset_index"):
        table = table.reset_index(drop=True)  # pandas would export its index as one more column
    try:
        return table.__arrow_c_stream__()
    except ImportError as error:
        fix = "install pyarrow, or pass table[features].to_numpy()"
        raise ImportError(f"{type(table).__name__} needs pyarrow to hand over its columns; {fix}") from error
    except UnicodeEncodeError as error:  # pandas, of columns of objects
        text = f"the table has text that cannot be written as UTF-8 ({error}); give other names and values"
        raise InvalidValueError(text) from error
    except TypeError as error:  # pandas, of sparse columns
        fix = "give it plain columns, as table.sparse.to_dense() does for sparse ones"
        raise InvalidTypeError(f"{type(table).__name__} cannot hand over its columns ({error}); {fix}") from error


Struct = TypeVar("Struct", Schema, Array, Stream)


@contextmanager
def _released(struct: Struct) -> Iterator[Struct]:
    try:
        yield struct
    finally:
        if struct.release:
            struct.release(ctypes.addressof(struct))


def _ask(stream: Stream, question: Callable[[int, int], int], answer: Schema | Array) -> None:
    code = question(ctypes.addressof(stream), ctypes.addressof(answer))
    if code != 0:
        reason = stream.get_last_error(ctypes.addressof(stream)) or b"no reason given"
        raise TableError(f"the table's Arrow stream failed: {reason.decode(errors='replace')} (error {code})")


def _names(schema: Schema) -> list[str]:
    if schema.format != b"+s":
        raise InvalidTypeError(f"the table is one {_type_name(schema)} column; give a table with named columns")
    columns = [Schema.from_address(schema.children[i]) for i in range(schema.n_children)]
    names = [(column.name or b"").decode() for column in columns]
    doubles = [repr(name) for name, count in Counter(names).items() if count > 1]
    if doubles:
        raise InvalidValueError(f"the table has more than one column {', '.join(doubles)}; rename them")
    return names


def _field(table: Schema, place: int) -> Field:
    schema = Schema.from_address(table.children[place])
    name, code = (schema.name or b"").decode(), schema.format.decode()
    known = code in DTYPES or code in (BOOLEAN, EMPTY)
    if not known or schema.dictionary or _extension(schema):
        raise InvalidTypeError(f"column {name!r} is of type {_type_name(schema)}; turn it into numbers")
    return Field(name, code, place)


def _type_name(schema: Schema) -> str:
    code = schema.format.decode()
    if schema.dictionary:
        return "categorical"
    plain = np.dtype(DTYPES[code]).name if code in DTYPES else TYPE_NAMES.get(code[0], code)
    return _extension(schema) or plain


def _extension(schema: Schema) -> str:
    """Name an extension type, such as pandas' periods: its numbers mean something else."""
    if not schema.metadata:
        return ""
    # the metadata are an int32 count, then keys and values by turns, each an int32 length and its bytes
    at, texts = schema.metadata + 4, []
    for _ in range(2 * ctypes.c_int32.from_address(schema.metadata).value):
        texts.append(ctypes.string_at(at + 4, ctypes.c_int32.from_address(at).value))
        at += 4 + len(texts[-1])
    return dict(zip(texts[::2], texts[1::2], strict=True)).get(b"ARROW:extension:name", b"").decode()


def _read_all(stream: Stream, fields: Sequence[Field]) -> list[list[Part]]:
    parts: list[list[Part]] = [[] for _ in fields]
    while True:
        with _released(Array()) as chunk:
            _ask(stream, stream.get_next, chunk)
            if not chunk.release:
                return parts
            for part, field in zip(parts, fields, strict=True):
                part.append(_read(chunk, field))


def _joined(parts: Sequence[Part]) -> Column:
    if len(parts) == 1:
        values, null = parts[0]
    else:
        values, null = (np.concatenate(pieces) for pieces in zip(NOTHING, *parts, strict=True))
    return Column(values, np.flatnonzero(null))


def _read(chunk: Array, field: Field) -> Part:
    column = Array.from_address(chunk.children[field.place])
    n, start = chunk.length, chunk.offset + column.offset  # a slice of either shifts the buffers
    if n == 0 or field.code == EMPTY:
        return np.full(n, np.nan), np.ones(n, dtype=np.bool_)
    null = _nulls(chunk, chunk.offset, n) | _nulls(column, start, n)
    if field.code == BOOLEAN:
        values = _bits(column.buffers[1], start, n).astype(np.float64)
    else:
        stored = _view(column.buffers[1], DTYPES[field.code], start, n)
        if field.code in "lL":
            _check_exact(field.name, stored[~null])
        values = stored.astype(np.float64)
    values[null] = np.nan
    return values, null


def _check_exact(name: str, stored: npt.NDArray[Any]) -> None:
    beyond = (stored > EXACT) | (stored < -EXACT)
    if beyond.any():
        what = f"column {name!r} holds {stored[beyond][0]}, beyond 2**53 where float64 is inexact"
        raise InvalidValueError(f"{what}; rescale it, or cast it to float64 yourself")


def _nulls(array: Array, start: int, n: int) -> Bool:
    # a null count of -1 says that nobody has counted
    if array.null_count == 0 or not array.buffers[0]:
        return np.zeros(n, dtype=np.bool_)
    return ~_bits(array.buffers[0], start, n)


def _bits(address: int, start: int, n: int) -> Bool:
    skip = start % 8
    packed = _view(address, "u1", start // 8, (skip + n + 7) // 8)
    return np.unpackbits(packed, count=skip + n, bitorder="little")[skip:].view(np.bool_)


def _view(address: int, code: str, start: int, n: int) -> npt.NDArray[Any]:
    dtype = np.dtype(code)
    memory = (ctypes.c_char * (n * dtype.itemsize)).from_address(address + start * dtype.itemsize)
    return np.ndarray(n, dtype=dtype, buffer=memoryview(memory))


def decisions_table(decisions: Decisions) -> Any:
    """Return a pyarrow.Table; what a policy has not is null. `marginal` is there only if it is False in some row."""
    pa = load_package("pyarrow", "decisions become a table by")
    n, X = len(decisions), decisions.X
    labels = pa.array(decisions.arms, type=_label_type(pa, decisions))
    eligible = None if decisions.eligible is None else list(decisions.eligible)
    return pa.table(
        {
            "id": pa.array(decisions.ids, pa.string()),
            "t": decisions.t,
            "x": pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1]),
            "eligible": pa.array([eligible] * n, pa.list_(labels.type)),
            "arm": labels,
            "propensity": decisions.propensities,
            "explored": decisions.explored,
            "optimistic": decisions.optimistic,
            "exploration_rate": _known(pa, decisions.exploration_rates),
            "exploration_propensity": _known(pa, decisions.exploration_propensities),
            "min_exploration_probability": _known(pa, decisions.min_exploration_probabilities),
            "greedy": pa.array(decisions.greedy, pa.bool_()),
            "design": pa.array(decisions.designs, pa.string()),
            "tag": decisions.tags,
            **({} if decisions.marginal.all() else {"marginal": decisions.marginal}),
            **_units(pa, decisions),
        }
    )


def _units(pa: Any, decisions: Decisions) -> dict[str, Any]:
    if decisions.units is None:
        return {}
    return {"unit": pa.array(decisions.units, pa.string()), "epoch": pa.array(decisions.epochs, pa.int64())}


def _label_type(pa: Any, decisions: Decisions) -> Any:
    kinds = {type(label) for label in [*decisions.arms, *(decisions.eligible or ())]}
    if kinds <= {int} and kinds:
        return pa.int64()
    if kinds <= {str}:
        return pa.string()
    raise InvalidTypeError(
        "arms are named by str and by int, and a column of a table holds one of them; rename the arms"
    )


def _known(pa: Any, values: Any) -> Any:
    return pa.array(values, mask=np.isnan(values))
