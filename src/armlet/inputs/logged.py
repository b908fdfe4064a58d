"""The table of a log, as columns that a bandit learns from: whoever holds it, every value checked once. O(N d)."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs import columns
from armlet.inputs.contexts import ContextReader
from armlet.types import Arm, Bool, Float64, Int64

NEEDED: Final = ("t", "arm", "reward", "propensity", "explored")
MISNAMED: Final = {
    "X": "x",
    "arms": "arm",
    "rewards": "reward",
    "propensities": "propensity",
    "tags": "tag",
    "weights": "weight",
    "replaced": "replaces",
}
LEAST_CHANCE: Final = 1e-100  # policies that divide by it stay finite


class LoggedRows(NamedTuple):
    """A log in columns of N rows."""

    t: Int64
    X: Float64  # (N, d)
    arms: list[Arm]
    rewards: Float64
    propensities: Float64
    explored: Bool
    tags: Int64
    weights: Float64
    replaces: Float64  # NaN where a row is new


def read_logged(table: object, reader: ContextReader) -> LoggedRows:
    """Read the columns t, x, arm, reward, propensity and explored, and tag, weight and replaces if they are there.

    Examples
    --------
    >>> table = {"t": [3], "x": [[1.0]], "arm": ["a"], "reward": [0.5], "propensity": [1], "explored": [True]}
    >>> read_logged(table, ContextReader(1)).weights
    array([1.])
    >>> read_logged(table | {"propensity": [0.0]}, ContextReader(1))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: propensity[0] is 0.0; give a number above 0 and at most 1
    """
    names, column = _open(table)
    for name, right in MISNAMED.items():
        if name in names and right not in names:
            raise InvalidValueError(f"the table has a column {name}; call it {right}")
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise InvalidValueError(f"the table has no column {', '.join(missing)}; it has {reprlib.repr(names)}")
    t = _whole(column("t"), "t", 1, 2**63 - 1)
    n = len(t)
    chances = columns.rewards(column("propensity"), n, "propensity")
    _check(chances, "propensity", (chances >= LEAST_CHANCE) & (chances <= 1), "give a number above 0 and at most 1")
    return LoggedRows(
        t=t,
        X=_contexts(names, column, reader, n),
        arms=list(columns.labels(column("arm"), n)),
        rewards=columns.rewards(column("reward"), n, "reward"),
        propensities=chances,
        explored=columns.explored(column("explored"), n),
        tags=_whole(column("tag"), "tag", -(2**31), 2**31 - 1, n) if "tag" in names else np.zeros(n, dtype=np.int64),
        weights=columns.weights(column("weight") if "weight" in names else None, n),
        replaces=_replaces(column("replaces"), n) if "replaces" in names else np.full(n, np.nan),
    )


def _open(table: Any) -> tuple[list[str], Callable[[str], Any]]:
    """Give the names of its columns, and what finds one."""
    if isinstance(table, Mapping):
        return list(table), table.__getitem__
    for names in ("column_names", "columns"):  # pyarrow; pandas and polars
        found = getattr(table, names, None)
        if found is not None and hasattr(table, "__getitem__"):
            return [str(name) for name in found], table.__getitem__
    raise InvalidTypeError(
        f"table is {reprlib.repr(table)} ({type(table).__name__}); give a mapping of columns, a data frame or an Arrow "
        "table"
    )


def _check(values: npt.NDArray[Any], name: str, good: Bool, fix: str) -> None:
    wrong = np.flatnonzero(~good)
    if wrong.size > 0:
        raise InvalidValueError(f"{name}[{wrong[0]}] is {values[wrong[0]]}; {fix}")


def _raw(values: Any) -> npt.NDArray[Any]:
    """Give a column as an array, of Python's own values if these are no plain numbers."""
    raw = np.asarray(values) if hasattr(values, "__array__") else np.asarray(columns.python_values(values))
    return raw if raw.dtype.kind in "biuf" else np.array(columns.python_values(values), dtype=object)


def _whole(values: Any, name: str, least: int, most: int, n: int | None = None) -> Int64:
    """Read a column of whole numbers, which may be beyond what floats hold."""
    numbers = _raw(values)
    if numbers.ndim != 1 or (n is not None and len(numbers) != n):
        raise InvalidTypeError(f"{name} is {reprlib.repr(values)}; give a column of whole numbers, one for each row")
    fix = f"give a whole number from {least} to {most}"
    if numbers.dtype.kind == "O":
        good = [type(value) is int and least <= value <= most for value in numbers.tolist()]
        _check(numbers, name, np.array(good, dtype=np.bool_), fix)
    if numbers.dtype.kind == "f":
        _check(numbers, name, (np.abs(numbers) <= columns.EXACT) & (numbers == np.rint(numbers)), fix)
    _check(numbers, name, (numbers >= least) & (numbers <= most) & (numbers.dtype.kind != "b"), fix)
    return np.ascontiguousarray(numbers.astype(np.int64))


def _replaces(values: Any, n: int) -> Float64:
    """Read the rewards that others take the place of; null or NaN where there is none."""
    numbers = _raw(values)
    if numbers.shape != (n,):
        raise InvalidValueError(f"replaces has shape {numbers.shape} for {n} rows; give one value for each, or null")
    listed = numbers.tolist() if numbers.dtype.kind == "O" else None
    new = np.isnan(numbers) if listed is None else np.array([value is None or value != value for value in listed])
    new = new.astype(np.bool_)  # of no rows too
    return np.where(new, np.nan, columns.rewards(np.where(new, 0.0, numbers).tolist(), n, "replaces"))


def _contexts(names: list[str], column: Callable[[str], Any], reader: ContextReader, n: int) -> Float64:
    if "x" in names:
        X = reader.matrix(_rows(column("x"), n))
        if len(X) != n:
            raise InvalidValueError(f"x has {len(X)} rows and t {n}; give one for each")
        return X
    if reader.features is None or not set(reader.features) <= set(names):
        raise InvalidValueError(f"the table has no column x, and none for every feature; it has {reprlib.repr(names)}")
    return np.column_stack([columns.rewards(column(name), n, name) for name in reader.features])


def _rows(values: Any, n: int) -> Any:
    """Give contexts as a matrix where they lie in one already: binary or lists of Arrow's, arrays of polars'."""
    if hasattr(values, "combine_chunks"):
        values = values.combine_chunks()
    if hasattr(values, "type") and hasattr(values, "flatten"):  # an Arrow array
        if values.null_count:
            raise InvalidValueError("x is null in some rows; leave out rows without a context")
        if str(values.type).startswith("fixed_size_list"):
            flat = values.flatten().to_numpy(zero_copy_only=False)
            return flat.reshape(n, -1) if n else flat
        if str(values.type).startswith("fixed_size_binary"):
            width, start = values.type.byte_width, values.offset
            return _floats(values.buffers()[1][start * width : (start + n) * width], n)
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return values
    listed = columns.python_values(values)
    if listed and all(isinstance(row, bytes) for row in listed):
        if len({len(row) for row in listed}) > 1 or len(listed[0]) % 8:
            raise InvalidValueError("x has rows of bytes that are not equally many float64; give each context alike")
        return _floats(b"".join(listed), n)
    return [row.tolist() if isinstance(row, np.ndarray) else row for row in listed]


def _floats(data: Any, n: int) -> Float64:
    values = np.frombuffer(data, dtype="<f8").astype(np.float64)
    return values.reshape(n, -1) if n else values
