"""The sums of one piece: what a worker does. O(rows d^2), memory for one batch of rows and one set of sums."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import Normalize
from armlet.kernel import add_rows
from armlet.log.fitting.files import Piece, read_batches
from armlet.log.fitting.rows import RowError, RowReader, Rows, first_wrong, matrix
from armlet.types import Float64, LearnsFrom


@dataclass(frozen=True, slots=True, kw_only=True)
class SumTask:
    """A piece, and how its rows are summed."""

    piece: Piece
    reader: RowReader
    shape: tuple[int, int]  # of the records
    origin: tuple[float, ...] | None  # no array: those that come over a wire may not be aligned
    sign: float
    learns_from: LearnsFrom
    normalize: Normalize | None
    reward_range: tuple[float, float] | None


def sum_piece(task: SumTask) -> Float64:
    """Sum the rows of a piece, in their order; give the records."""
    records = np.zeros(task.shape)
    origin = None if task.origin is None else np.array(task.origin)
    for start, rows in read_rows(task.piece, task.reader):
        with located(task.piece, start):
            check_range(rows, task.reader.reward, task.reward_range)
            arms = rows.arms
            if task.learns_from == "explored steps" and rows.explored is not None:
                arms = np.where(rows.explored, arms, -1)
            X = scaled(matrix(rows.X)) if task.normalize == "l2" else rows.X
            try:
                add_rows(records, X, arms, task.sign * rows.rewards, rows.weights, origin)
            except ValueError as error:
                raise first_wrong(rows, task.reader) or error from None
    return records


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


def check_range(rows: Rows, name: str, reward_range: tuple[float, float] | None) -> None:
    """Refuse rewards that the bandit would refuse."""
    if reward_range is None:
        return
    low, high = reward_range
    outside = np.flatnonzero((rows.arms >= 0) & ~((rows.rewards >= low) & (rows.rewards <= high)))
    if outside.size:
        value = rows.rewards[outside[0]]
        raise RowError(int(outside[0]), f"{name} is {value}; reward_range is from {low} to {high}")


def scaled(X: Float64) -> Float64:
    """Divide every context by its length; a zero context stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    return X / np.where(lengths > 0, lengths, 1.0)[:, None]
