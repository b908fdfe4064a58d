"""A log written anew: as JSON lines to the last byte, as Parquet, or as a plain table for others. O(1) memory."""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from armlet.errors import ArgumentError
from armlet.log.faults import reading
from armlet.log.lines import encode_checked
from armlet.log.parquet.compacting import compact
from armlet.log.parquet.layout import Contexts
from armlet.log.reading import LogFile, Source, read
from armlet.log.schema import Events
from armlet.log.tables import load_pyarrow

HIDDEN: Final = ("crc", "learned_crc", "line")  # what only the reader of a compacted log needs


def write(log: Source, target: str | os.PathLike[str], *, contexts: Contexts = "binary") -> Path:
    """Write a log anew, by the ending of the target's name; give its path.

    Parameters
    ----------
    log
        A path, an `armlet.Log`, or `Events` of any origin.
    target
        .jsonl: all events, those of a log to the last byte. .parquet: compacted. .csv, .arrow or .feather: a table with
        one row a decision and one column a feature. It must not be there yet.
    contexts
        In Parquet: "binary", or "columns" for a column a feature.

    Examples
    --------
    >>> from armlet.log.imports.obp import from_obp
    >>> feedback = {"action": [1, 0], "reward": [0, 1], "pscore": [0.5, 0.5], "context": [[1.0], [2.0]]}
    >>> path = write(from_obp(feedback), Path(tempfile.mkdtemp()) / "feedback.jsonl")
    >>> len(list(read(path)))
    5
    """
    path, events = Path(target), read(log)
    if os.path.lexists(path):
        raise ArgumentError("{target} is {name}, which is there already; move it away", name=path.name)
    if path.suffix == ".jsonl":
        return _write_lines(events, path)
    if path.suffix not in (".parquet", ".csv", ".arrow", ".feather"):
        endings = ".jsonl, .parquet, .csv, .arrow or .feather"
        raise ArgumentError("{target} is {name}; give a name that ends in {endings}", name=path.name, endings=endings)
    name = getattr(events, "name", "the log")
    with reading(name, "exported"), tempfile.TemporaryDirectory(dir=path.parent, prefix=".armlet-") as folder:
        lines = events.path if isinstance(events, LogFile) else _write_lines(events, Path(folder) / "lines.jsonl")
        if path.suffix == ".parquet":
            return compact(lines, path, contexts=contexts)
        return _write_table(compact(lines, Path(folder) / "log.parquet", contexts="columns"), path)


def _write_lines(events: Events, path: Path) -> Path:
    crc, name = 0, getattr(events, "name", "the log")
    part = path.with_name(f".armlet-{os.urandom(8).hex()}.tmp")
    try:
        with part.open("xb", buffering=2**20) as file:
            for seq, event in enumerate(events):
                line, crc = encode_checked(event, seq, crc, name)
                file.write(line)
        return part.rename(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _write_table(source: Path, path: Path) -> Path:
    pa, pq = load_pyarrow()
    file = pq.ParquetFile(source)
    names = [name for name in file.schema_arrow.names if name not in HIDDEN]
    schema = pa.schema([_plain(file.schema_arrow.field(name), path.suffix) for name in names])
    part = source.with_name("table")
    with _writer(part, schema, path.suffix) as writer:
        for batch in file.iter_batches(columns=names):
            columns = [_as_text(batch.column(name), schema.field(name)) for name in names]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    return part.rename(path)


def _plain(field: Any, suffix: str) -> Any:
    pa = importlib.import_module("pyarrow")
    flat = suffix == ".csv" and (pa.types.is_list(field.type) or pa.types.is_dictionary(field.type))
    return field.with_type(pa.string()) if flat else field


def _as_text(column: Any, field: Any) -> Any:
    pa = importlib.import_module("pyarrow")
    if column.type == field.type:
        return column
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string())
    texts = (None if value is None else " ".join(map(str, value)) for value in column.to_pylist())
    return pa.array(texts, pa.string())


@contextlib.contextmanager
def _writer(path: Path, schema: Any, suffix: str) -> Iterator[Any]:
    if suffix == ".csv":
        with importlib.import_module("pyarrow.csv").CSVWriter(path, schema) as writer:
            yield writer
    else:
        with importlib.import_module("pyarrow.ipc").new_file(path, schema) as writer:
            yield writer
