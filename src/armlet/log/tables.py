"""Parquet of any size, read with pyarrow: files in pieces, pieces in batches. O(N d).

A piece is a run of row groups, the same for any reader: where sums are cut is part of what they are.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from armlet.errors import ArgumentError, choices, load_pyarrow

Files: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder, a pattern with * and ?, or several of them."""

PIECE: Final = 2**19
"""Rows of a piece at least, unless its file ends."""
BATCH: Final = 2**14
"""Rows that are in memory at a time."""
BUFFER: Final = 2**20
"""Bytes of a column that are read from the disk at a time."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some row groups of a file."""

    path: str
    groups: tuple[int, ...]
    first: int  # rows of the file before it
    rows: int
    batch: int  # rows that are read at a time, here or elsewhere: where sums are cut is part of what they are


def find_files(data: Files) -> list[Path]:
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


def have_gaps(paths: Sequence[Path], columns: Sequence[str]) -> bool:
    """Return whether files say that a column has no value in some row."""
    return any(_nulls(path, columns) for path in paths)


def _nulls(path: Path, columns: Sequence[str]) -> bool:
    with open_file(path) as file:
        metadata = file.metadata
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            stated = column.statistics
            if column.path_in_schema in columns and stated is not None and stated.null_count:
                return True
    return False
