"""Tables on disk, read with pyarrow: CSV, Parquet or Arrow as a whole, and Parquet of any size row by row. O(N d).

Parquet is read as rows that sums and bandits take: files in pieces, pieces in batches, batches as arrays. A piece is a
run of row groups, the same for any reader: where sums are cut is part of what they are.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np

from armlet.errors import ArgumentError, CheckedSettings, InvalidValueError, choices, load_pyarrow
from armlet.inputs.codes import CONSTANT
from armlet.inputs.columns import LARGEST, LEAST_WEIGHT, as_float64, check_label, is_number, refused, too_light
from armlet.inputs.encoder import MOST, Encoder
from armlet.types import Arm, Bool, Float64, Int64

Data: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder, a pattern with * and ?, or several of them."""

PIECE: Final = 2**19
"""Rows of a piece at least, unless its file ends."""
BATCH: Final = 2**14
"""Rows that are in memory at a time."""
BUFFER: Final = 2**20
"""Bytes of a column that are read from the disk at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles(CheckedSettings):
    """Which columns of a log mean what."""

    features: tuple[str, ...]
    arm: str
    reward: str
    propensity: str | float | None = None
    """The column of the probability with which each arm was played; or that probability, the same in every row."""
    arm_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        value = self.propensity
        if value is None or isinstance(value, str):
            return
        if isinstance(value, bool) or not is_number(value):
            kind = type(value).__name__
            raise ArgumentError("{propensity} is a {kind}; give the name of a column, or a number", kind=kind)
        if not 0.0 < value <= 1.0:
            text = "{propensity} is {value!r}; give the name of a column, or a number above 0, at most 1"
            raise ArgumentError(text, value=value)
        object.__setattr__(self, "propensity", float(value))

    def reading(self, features: Sequence[str]) -> Roles:
        """Return the same roles with other features."""
        return replace(self, features=tuple(features))


class Flags(NamedTuple):
    """A table whose features are all numbers, their names, and what became of texts."""

    table: Any
    features: list[str]
    notes: tuple[str, ...]


def read_table(path: Path) -> Any:
    """Read a pyarrow table by the ending of the file's name."""
    pa, pq = load_pyarrow()
    # threads and buffers of its own cost it twice the processor time of the reading
    parquet = partial(pq.read_table, use_threads=False, pre_buffer=False)
    kinds: dict[str, Callable[[Path], Any]] = {
        ".csv": _read_csv,
        ".parquet": parquet,
        ".arrow": _read_arrow,
        ".feather": _read_arrow,
    }
    if path.suffix.lower() not in kinds:
        raise ArgumentError("{log} is {name}; give a file that ends in {kinds}", name=path.name, kinds=", ".join(kinds))
    if not path.exists():
        raise FileNotFoundError(f"the log is {path}, which does not exist")
    try:
        return kinds[path.suffix.lower()](path)
    except pa.ArrowInvalid as error:
        reason = str(error).partition("\n")[0]
        raise ArgumentError("{log} is {name}, which cannot be read: {reason}", name=path.name, reason=reason) from error


def _read_csv(path: Path) -> Any:
    return import_module("pyarrow.csv").read_csv(path)


def _read_arrow(path: Path) -> Any:
    pa = import_module("pyarrow")
    with path.open("rb") as file:
        whole = file.read(6) == b"ARROW1"  # else a stream, which bears no mark
        file.seek(0)
        return (pa.ipc.open_file if whole else pa.ipc.open_stream)(file).read_all()


def check_columns(table: Any, name: str, roles: Roles, outcomes: Sequence[str] | None = None) -> None:
    """Refuse roles that name columns the table does not have, or one column twice, and a table without rows.

    The columns of `outcomes` take the place of the reward's, where there are several.
    """
    columns = [("features", each) for each in roles.features]
    columns.append(("arm", roles.arm))
    columns += [("reward", roles.reward)] if outcomes is None else [("outcomes", each) for each in outcomes]
    columns += [("propensity", roles.propensity)] if isinstance(roles.propensity, str) else []
    for role, column in columns:
        if column not in table.column_names and (role, column) != ("features", CONSTANT):
            text = "{" + role + "} names {column!r}, which is not a column of {name}; {fix}"
            raise ArgumentError(text, column=column, name=name, fix=choices(column, table.column_names))
    check_one_role_each(columns)
    if table.num_rows == 0:
        raise ArgumentError("{log} is {name}, which has no rows; give one for each decision", name=name)
    if roles.propensity == "propensity" and (n := _conditional_rows(table)):
        text = (
            "{propensity} names 'propensity', which is not over all coins in {n:,} rows of {name}, where 'marginal' is "
            "false; decide with propensity='marginal', or with a log, where decisions are to be evaluated"
        )
        raise ArgumentError(text, n=n, name=name)


def _conditional_rows(table: Any) -> int:
    """Return how many rows of a table of Armlet's own decisions say that their propensity is not marginal."""
    pa = import_module("pyarrow")
    if "marginal" not in table.column_names or table["marginal"].type != pa.bool_():
        return 0
    return sum(said is False for said in table["marginal"].to_pylist())


def check_one_role_each(columns: Iterable[tuple[str, str | None]]) -> None:
    """Refuse roles of which two name the same column."""
    taken: dict[str, str] = {}
    for role, column in columns:
        if column is None:
            continue
        if column in taken:
            text = f"{{{role}}} names {{column!r}}, which {{{taken[column]}}} names before; give every column one part"
            raise ArgumentError(text, column=column)
        taken[column] = role


def flag_texts(table: Any, features: Sequence[str]) -> Flags:
    """Put a column of 0 and 1 in place of every text that a feature has, and add the constant if it is asked for."""
    pa = import_module("pyarrow")
    columns: list[str] = []
    notes: list[str] = []
    for name in features:
        if name == CONSTANT and name not in table.column_names:
            table = table.append_column(name, pa.array([1.0] * table.num_rows))
            columns.append(name)
        elif _is_text(table[name].type):
            flags = _flags(table, name)
            table = flags.table
            columns += flags.features
            notes += flags.notes
        else:
            columns.append(name)
    return Flags(table, columns, tuple(notes))


def _flags(table: Any, name: str) -> Flags:
    if nulls := table[name].null_count:
        text = "{features} names {name!r}, which has {n:,} rows without a value; fill them in"
        raise ArgumentError(text, name=name, n=nulls)
    encoder = Encoder(most=None, other="refuse").fit(table.select([name]))
    if encoder.dim > MOST:
        text = "{features} names {name!r}, which has {n:,} different texts; group them into fewer"
        raise ArgumentError(text, name=name, n=encoder.dim)
    for flag, values in zip(encoder.features, encoder.matrix(table.select([name])).T, strict=True):
        table = table.append_column(flag, [values])
    names = ", ".join(encoder.features)
    note = f"{name} is text: {encoder.dim} flags stand for it, {names}; give the bandit the same"
    return Flags(table, list(encoder.features), (note,))


def _is_text(kind: Any) -> bool:
    types = import_module("pyarrow").types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind))


def labels(kind: Any, arm_names: tuple[str, ...] | None) -> Sequence[Arm] | None:
    """Return the labels of arms in the kind that the column has: whole numbers, or words."""
    if arm_names is None or not import_module("pyarrow").types.is_integer(kind):
        return arm_names
    if wrong := [name for name in arm_names if not name.lstrip("-").isdecimal()]:
        raise ArgumentError("{arm_names} has {name!r}, but the log names arms by whole numbers", name=wrong[0])
    return [int(name) for name in arm_names]


# ---- Parquet of any size


@dataclass(frozen=True, slots=True)
class Piece:
    """Some row groups of a file."""

    path: str
    groups: tuple[int, ...]
    first: int  # rows of the file before it
    rows: int
    batch: int  # rows that are read at a time, here or elsewhere: where sums are cut is part of what they are


def find_files(data: Data) -> list[Path]:
    """Find the files, in the order given; those of a folder or a pattern in the order of the alphabet.

    Examples
    --------
    >>> find_files("nowhere/*.parquet")
    Traceback (most recent call last):
    armlet.errors.ArgumentError: data is nowhere/*.parquet, where there is no Parquet file
    """
    several = [data] if isinstance(data, str | os.PathLike) else list(data)
    paths = [path for each in several for path in _find(os.fspath(each))]
    if not paths:
        raise ArgumentError("{data} is empty; give a file, a folder or a pattern")
    return paths


def _find(place: str) -> list[Path]:
    path = Path(place)
    if path.is_dir():
        paths = sorted(each for each in path.rglob("*.parquet") if not _is_hidden(each.relative_to(path)))
    elif path.exists() or not glob.has_magic(place):
        if not path.exists():
            raise FileNotFoundError(f"the data are {place}, which does not exist")
        return [path]
    else:
        paths = sorted(map(Path, glob.glob(place, recursive=True)))  # noqa: PTH207 - of a Path it takes no absolute one
    if not paths:
        raise ArgumentError("{data} is {place}, where there is no Parquet file", place=place)
    return paths


def _is_hidden(path: Path) -> bool:
    """Whether it is what writers leave behind until they are done."""
    return any(part.startswith((".", "_")) for part in path.parts)


def open_file(path: str | Path, dictionaries: Sequence[str] = ()) -> Any:
    """Open a Parquet file so that pages are read as they are needed; columns of few texts come by their dictionary."""
    pa, pq = load_pyarrow()
    try:
        return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False, read_dictionary=list(dictionaries))
    except pa.ArrowInvalid as error:
        reason = str(error).partition("\n")[0]
        text = "{data} has {name}, which cannot be read: {reason}"
        raise ArgumentError(text, name=str(path), reason=reason) from error


def cut(paths: Sequence[Path], columns: Sequence[str]) -> list[Piece]:
    """Cut files into pieces, by their row groups alone; refuse one that lacks a column."""
    pieces: list[Piece] = []
    for path in paths:
        with open_file(path) as file:
            lacks = [name for name in columns if name not in file.schema_arrow.names]
            if lacks:
                fix = choices(lacks[0], file.schema_arrow.names)
                text = "{data} has {name} without a column {column!r}; {fix}"
                raise ArgumentError(text, name=str(path), column=lacks[0], fix=fix)
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        pieces += _runs(str(path), sizes)
    return pieces


def _runs(path: str, sizes: Sequence[int]) -> Iterator[Piece]:
    groups: list[int] = []
    first = rows = 0
    for group, size in enumerate(sizes):
        groups.append(group)
        rows += size
        if rows >= PIECE or group == len(sizes) - 1:
            if rows:
                yield Piece(path, tuple(groups), first, rows, BATCH)
            first, rows, groups = first + rows, 0, []


def read_batches(piece: Piece, columns: Sequence[str], dictionaries: Sequence[str] = ()) -> Iterator[tuple[int, Any]]:
    """Read a piece: the row of the file that a batch starts with, and the batch."""
    at = piece.first
    with open_file(piece.path, dictionaries) as file:
        options = {"batch_size": piece.batch, "row_groups": list(piece.groups), "columns": list(columns)}
        for batch in file.iter_batches(**options, use_threads=False):
            if batch.num_rows:
                yield at, batch
            at += batch.num_rows


# ---- rows

Labels: TypeAlias = Literal["plain", "json"]


class RowError(ValueError):
    """A row that cannot be, by its number in the batch."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(f"row {row}: {text}")
        self.row, self.text = row, text


class Rows(NamedTuple):
    """What is learned from."""

    X: Float64 | list[Float64]  # (n, d), or the columns of it
    arms: Int64  # (n,): indices; -1 where there is no reward
    rewards: Float64  # (n,), or (n, m) of several outcomes: 0 where there is none
    weights: Float64 | None
    explored: Bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """Which columns mean what."""

    x: tuple[str, ...]  # columns of numbers, or those that the encoder reads; a single one may hold whole contexts
    arm: str
    reward: str
    parts: tuple[str, ...] = ()  # columns of several outcomes, in place of the reward's
    explored: str | None = None
    weight: str | None = None
    labels: tuple[Arm, ...] = ()
    written: Labels = "plain"  # how labels stand in the column
    encoder: Encoder | None = None

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        others = (self.arm, *self.rewards, self.explored, self.weight)
        return [*self.x, *(name for name in others if name is not None)]

    @property
    def rewards(self) -> tuple[str, ...]:
        """The column of the reward, or those of outcomes."""
        return self.parts or (self.reward,)

    def read(self, batch: Any) -> Rows:
        """Read a batch."""
        rewards, missing = self._rewards(batch)
        arms = self._arms(batch.column(self.arm))
        arms[missing] = -1
        weight, explored = self.weight, self.explored
        return Rows(
            X=self.contexts(batch),
            arms=arms,
            rewards=rewards,
            weights=None if weight is None else _numbers(batch.column(weight).fill_null(1.0), weight),
            explored=None if explored is None else self._truths(batch.column(explored), explored),
        )

    def contexts(self, batch: Any) -> Float64 | list[Float64]:
        """Read the contexts of a batch."""
        if self.encoder is not None:
            return _encoded(self.encoder, batch.select(list(self.x)))
        if len(self.x) == 1 and (width := vector_width(batch.column(self.x[0]).type)):
            return _vectors(batch.column(self.x[0]), self.x[0], width)
        return [_numbers(batch.column(name), name) for name in self.x]

    def _rewards(self, batch: Any) -> tuple[Float64, Bool]:
        """Return rewards, and which rows lack one, or an outcome."""
        columns, lacking = [], []
        for name in self.rewards:
            column = batch.column(name)
            lacking.append(np.asarray(column.is_null()))
            columns.append(_numbers(column.fill_null(0) if lacking[-1].any() else column, name))
        return np.column_stack(columns) if self.parts else columns[0], np.logical_or.reduce(lacking)

    def _arms(self, column: Any) -> Int64:
        labels, codes = arm_codes(column, self.arm, self.written)
        known = {label: place for place, label in enumerate(self.labels)}
        places = np.array([known.get(label, -1) for label in labels], dtype=np.int64)
        unknown = np.flatnonzero(places < 0)
        if unknown.size:
            row = int(np.flatnonzero(np.isin(codes, unknown))[0])
            text = f"{self.arm} is {labels[codes[row]]!r}, which is none of the arms"
            raise RowError(row, f"{text}; name all of them with arms=[...]")
        return places[codes] if places.size else codes

    def _truths(self, column: Any, name: str) -> Bool:
        """Read true and false; where neither is said, a step was not explored."""
        numbers = _numbers(column.fill_null(0 if "int" in str(column.type) else False), name)
        wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
        if wrong.size:
            raise RowError(int(wrong[0]), f"{name} is {numbers[wrong[0]]}; give true or false")
        return numbers.astype(np.bool_)


def arm_codes(column: Any, name: str, written: Labels) -> tuple[list[Arm], Int64]:
    """Return the labels of a column once each, and which of them every row has."""
    if column.null_count:
        raise RowError(int(np.flatnonzero(np.asarray(column.is_null()))[0]), f"{name} has no value; fill it in")
    coded = column.dictionary_encode() if not hasattr(column, "dictionary") else column
    values = coded.dictionary.to_pylist()
    codes: Int64 = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    try:
        return [check_label(json.loads(value) if written == "json" else value) for value in values], codes
    except TypeError as error:
        raise RowError(0, f"{name}: {error}") from None


def vector_width(kind: Any) -> int:
    """Return how many float64 a value of a column holds, if it holds a whole context; 0 if not."""
    if str(kind).startswith("fixed_size_binary"):
        return kind.byte_width // 8 if kind.byte_width % 8 == 0 else 0
    return int(kind.list_size) if str(kind).startswith("fixed_size_list") else 0


def _vectors(column: Any, name: str, width: int) -> Float64:
    if column.null_count:
        raise RowError(int(np.flatnonzero(np.asarray(column.is_null()))[0]), f"{name} has no value")
    n = len(column)
    if str(column.type).startswith("fixed_size_list"):
        return _numbers(column.flatten(), name).reshape(n, width)
    data = np.frombuffer(column.buffers()[1], dtype="<f8", count=n * width, offset=column.offset * width * 8)
    return data.reshape(n, width).astype(np.float64, copy=False)


def _numbers(column: Any, name: str) -> Float64:
    if column.null_count:
        raise RowError(int(np.flatnonzero(np.asarray(column.is_null()))[0]), f"{name} has no value; fill it in")
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype == np.float64:
        return values  # type: ignore[no-any-return]
    numbers = as_float64(values)
    if numbers is None:
        _refuse(values, name)
    return numbers


def _refuse(values: Any, name: str) -> NoReturn:
    for row, value in enumerate(values.tolist()):
        wrong = refused(value, name)
        if wrong is not None:
            fix = "; for text, pass encoder=armlet.Encoder()" if isinstance(value, str) else ""
            raise RowError(row, f"{wrong}{fix}")
    raise RowError(0, f"{name} holds {values.dtype}; turn it into numbers")


def _encoded(encoder: Encoder, batch: Any) -> Float64:
    try:
        return encoder.matrix(batch)
    except (TypeError, ValueError) as error:
        row, separator, rest = str(error).partition(": ")
        number = row.removeprefix("row ")
        raise RowError(int(number), rest) if separator and number.isdecimal() else error from None


def matrix(X: Float64 | list[Float64]) -> Float64:
    """Return contexts as a matrix."""
    return np.column_stack(X) if isinstance(X, list) else X


def first_wrong(rows: Rows, reader: RowReader) -> RowError | None:
    """Find the first number that is not finite, or too large, and the first weight that is none."""
    values = list(rows.X if isinstance(rows.X, list) else rows.X.T)
    names = reader.x if len(reader.x) == len(values) else [f"{reader.x[0]}[{j}]" for j in range(len(values))]
    columns = [*zip(names, values, strict=True), *_reward_columns(rows, reader)]
    if rows.weights is not None:
        columns.append((str(reader.weight), rows.weights))
    for name, column in columns:
        wrong = np.flatnonzero(~(np.abs(column) <= LARGEST))  # NaN too
        if wrong.size:
            return RowError(int(wrong[0]), str(refused(float(column[wrong[0]]), name)))
    light = np.flatnonzero((np.ones(0) if rows.weights is None else rows.weights) < LEAST_WEIGHT)
    if rows.weights is not None and light.size:
        return RowError(int(light[0]), too_light(str(reader.weight), rows.weights[light[0]]))
    return None


def _reward_columns(rows: Rows, reader: RowReader) -> list[tuple[str, Float64]]:
    return list(zip(reader.rewards, rows.rewards.T if reader.parts else [rows.rewards], strict=True))


def read_rows(piece: Piece, reader: RowReader) -> Iterator[tuple[int, Rows]]:
    """Read the rows of a piece: the row of the file that some start with, and these."""
    for start, batch in read_batches(piece, reader.columns, [reader.arm]):
        with located(piece, start):
            rows = reader.read(batch)
        yield start, rows


@contextmanager
def located(piece: Piece, start: int) -> Iterator[None]:
    """Name the file and the row in what is refused of a batch."""
    try:
        yield
    except RowError as error:
        raise InvalidValueError(f"{piece.path}, row {start + error.row}: {error.text}") from None


def check_ranges(rows: Rows, reader: RowReader, ranges: Sequence[tuple[float, float] | None]) -> None:
    """Refuse rewards, or outcomes, that the bandit would refuse."""
    for (name, column), allowed in zip(_reward_columns(rows, reader), ranges, strict=True):
        if allowed is None:
            continue
        low, high = allowed
        outside = np.flatnonzero((rows.arms >= 0) & ~((column >= low) & (column <= high)))
        if outside.size:
            value = column[outside[0]]
            raise RowError(int(outside[0]), f"{name} is {value}; reward_range is from {low} to {high}")
