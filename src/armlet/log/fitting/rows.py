"""Batches of a Parquet file as rows that sums and bandits take: contexts, arms, rewards, weights, explored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np

from armlet.inputs.columns import LARGEST, LEAST_WEIGHT, as_float64, check_label, refused, too_light
from armlet.inputs.encoder import Encoder
from armlet.types import Arm, Bool, Float64, Int64

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
    rewards: Float64  # (n,): 0 where there is none
    weights: Float64 | None
    explored: Bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """Which columns mean what."""

    x: tuple[str, ...]  # columns of numbers, or those that the encoder reads; a single one may hold whole contexts
    arm: str
    reward: str
    explored: str | None = None
    weight: str | None = None
    labels: tuple[Arm, ...] = ()
    written: Labels = "plain"  # how labels stand in the column
    encoder: Encoder | None = None

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        others = (self.arm, self.reward, self.explored, self.weight)
        return [*self.x, *(name for name in others if name is not None)]

    def read(self, batch: Any) -> Rows:
        """Read a batch."""
        rewards, missing = self._rewards(batch.column(self.reward))
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

    def _rewards(self, column: Any) -> tuple[Float64, Bool]:
        missing: Bool = np.asarray(column.is_null())
        return _numbers(column.fill_null(0) if missing.any() else column, self.reward), missing

    def _arms(self, column: Any) -> Int64:
        labels, codes = arm_codes(column, self.arm, self.written)
        known = {label: place for place, label in enumerate(self.labels)}
        places = np.array([known.get(label, -1) for label in labels], dtype=np.int64)
        unknown = np.flatnonzero(places < 0)
        if unknown.size:
            row = int(np.flatnonzero(np.isin(codes, unknown))[0])
            told = f"{self.arm} is {labels[codes[row]]!r}, which is none of the arms"
            raise RowError(row, f"{told}; name all of them with arms=[...]")
        return places[codes] if places.size else codes

    def _truths(self, column: Any, name: str) -> Bool:
        """Read true and false; where neither is said, a step was not explored."""
        numbers = _numbers(column.fill_null(0 if "int" in str(column.type) else False), name)
        wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
        if wrong.size:
            raise RowError(int(wrong[0]), f"{name} is {numbers[wrong[0]]}; give true or false")
        return numbers.astype(np.bool_)


def arm_codes(column: Any, name: str, written: Labels) -> tuple[list[Arm], Int64]:
    """Give the labels of a column once each, and which of them every row has."""
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
    """Say how many float64 a value of a column holds, if it holds a whole context; 0 if not."""
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
        row, told, rest = str(error).partition(": ")
        number = row.removeprefix("row ")
        raise RowError(int(number), rest) if told and number.isdecimal() else error from None


def matrix(X: Float64 | list[Float64]) -> Float64:
    """Give contexts as a matrix."""
    return np.column_stack(X) if isinstance(X, list) else X


def first_wrong(rows: Rows, reader: RowReader) -> RowError | None:
    """Find the first number that is not finite, or too large, and the first weight that is none."""
    values = list(rows.X if isinstance(rows.X, list) else rows.X.T)
    names = reader.x if len(reader.x) == len(values) else [f"{reader.x[0]}[{j}]" for j in range(len(values))]
    columns = [*zip(names, values, strict=True), (reader.reward, rows.rewards)]
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
