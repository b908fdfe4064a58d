"""Tables on disk, read with pyarrow by the ending of a file's name: CSV, Parquet, Arrow, JSON lines. O(N d)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from armlet.errors import ArgumentError, load_pyarrow

if TYPE_CHECKING:
    from armlet.types import ArrowTable


def read_file(path: Path) -> ArrowTable:
    """Read a file as a pyarrow.Table; a cell of a CSV file that holds nothing has no value."""
    pa, _ = load_pyarrow()
    read = READERS.get(path.suffix.lower())
    if read is None:
        raise ArgumentError(
            "{data} is {name}; give a file that ends in {kinds}", name=path.name, kinds=", ".join(READERS)
        )
    if not path.exists():
        raise FileNotFoundError(f"the table is {path}, which does not exist")
    try:
        return read(path)
    except pa.ArrowInvalid as error:
        reason = str(error).partition("\n")[0]
        raise ArgumentError(
            "{data} is {name}, which cannot be read: {reason}", name=path.name, reason=reason
        ) from error


def _read_csv(path: Path) -> ArrowTable:
    csv, compute = import_module("pyarrow.csv"), import_module("pyarrow.compute")
    table = csv.read_csv(path)
    for place, field in enumerate(table.schema):
        if str(field.type) == "string":  # no word, such as NA, stands for nothing in a column of text
            column = table.column(place)
            empty = compute.equal(column, "")
            if compute.any(empty).as_py():
                table = table.set_column(place, field.name, compute.if_else(empty, None, column))
    return table  # type: ignore[no-any-return]


def _read_parquet(path: Path) -> ArrowTable:
    # threads and buffers ahead of time cost twice the processor time of the reading itself
    return load_pyarrow()[1].read_table(path, use_threads=False, pre_buffer=False)  # type: ignore[no-any-return]


def _read_arrow(path: Path) -> ArrowTable:
    ipc = import_module("pyarrow.ipc")
    with path.open("rb") as file:
        whole = file.read(6) == b"ARROW1"  # else a stream, which bears no mark
        file.seek(0)
        return (ipc.open_file if whole else ipc.open_stream)(file).read_all()  # type: ignore[no-any-return]


def _read_lines(path: Path) -> ArrowTable:
    return import_module("pyarrow.json").read_json(path)  # type: ignore[no-any-return]


READERS: Final[Mapping[str, Callable[[Path], ArrowTable]]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
}
