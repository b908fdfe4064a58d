"""JSON lines to Parquet: one row a decision, with the reward that came for it, however late.

Two passes. The first notes, in files of their own, where the rewards of each decision are; the second writes rows.
Memory does not grow with the log.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from armlet.errors import ArgumentError, InvalidValueError
from armlet.log.faults import reading
from armlet.log.lines import carried
from armlet.log.parquet.derived import note_columns, reward_columns
from armlet.log.parquet.layout import Contexts, Labels, Layout, is_plain_learn
from armlet.log.parquet.places import Places
from armlet.log.reading import LogFile
from armlet.log.schema import Event
from armlet.log.tables import load_pyarrow

ROWS: Final = 2**14  # rows of a group


def compact(
    log: str | os.PathLike[str], target: str | os.PathLike[str] | None = None, *, contexts: Contexts = "binary"
) -> Path:
    """Write a log of JSON lines as Parquet, one row a decision; give the path.

    Events that are no decision and no plain reward go beside it, into a file that ends in .events.jsonl.gz: both
    together hold every line of the log, and `armlet log export` writes it again to the last byte.

    Parameters
    ----------
    log
        The log, which stays as it is.
    target
        Where to; the log's own name with the ending .parquet, if left out. It must not be there yet.
    contexts
        "binary": a context is one value, its float64s in a row. "columns": a column for each feature.
    """
    if contexts not in ("binary", "columns"):
        raise InvalidValueError(f"contexts is {contexts!r}; choose 'binary' or 'columns'")
    load_pyarrow()
    source = LogFile(log)
    path = Path(target) if target is not None else source.path.with_suffix(".parquet")
    if path.suffix != ".parquet":
        raise ArgumentError("{target} is {name}; give a name that ends in .parquet", name=path.name)
    for there in (path, events_beside(path)):
        if os.path.lexists(there):
            raise ArgumentError("{target} is {name}, which is there already; move it away", name=there.name)
    with reading(source.name, "compacted"), tempfile.TemporaryDirectory(dir=path.parent, prefix=".armlet-") as folder:
        _Compactor(source, Path(folder), contexts).write(path.name)
        beside = (Path(folder) / events_beside(path).name).rename(events_beside(path))
        try:
            (Path(folder) / path.name).rename(path)
        except BaseException:
            beside.unlink()  # it is of no use alone
            raise
    return path


def events_beside(path: Path) -> Path:
    """Say where the events of a compacted log are that have no row.

    Examples
    --------
    >>> events_beside(Path("decisions.parquet")).name
    'decisions.events.jsonl.gz'
    """
    return path.with_name(f"{path.stem}.events.jsonl.gz")


class _Compactor:
    def __init__(self, source: LogFile, folder: Path, contexts: Contexts) -> None:
        self._source, self._folder, self._contexts = source, folder, contexts
        self._kinds: set[Labels] = set()
        self._end = 0

    def write(self, name: str) -> None:
        """Write both files into the folder."""
        with Places(self._folder) as places, self._source.path.open("rb") as file:
            about = self._survey(places)
            pq = importlib.import_module("pyarrow.parquet")
            layout = self._layout(about)
            schema = layout.schema(about)
            beside = events_beside(self._folder / name)
            with (
                pq.ParquetWriter(self._folder / name, schema, compression="zstd", write_page_checksum=True) as writer,
                gzip.GzipFile(beside, "wb", compresslevel=6, mtime=0) as side,
            ):
                rows: list[dict[str, Any]] = []
                for row in self._rows(places, layout, file, side):
                    rows.append(row)
                    if len(rows) == ROWS:
                        _write(writer, rows, schema)
                _write(writer, rows, schema)

    def _survey(self, places: Places) -> Event:
        """Check every line, and note where rewards are."""
        about: Event = {}
        for line, event in self._source.with_lines():
            about = about or event
            places.note(line, self._end)
            self._learn_kinds(event)
            self._end += len(line)
        places.settle()
        return about

    def _lines(self) -> Iterator[bytes]:
        """Give the lines again that the survey has checked."""
        left = self._end
        with self._source.path.open("rb", buffering=2**20) as file:
            while left > 0 and (line := file.readline()):
                left -= len(line)
                yield line

    def _learn_kinds(self, event: Event) -> None:
        kind = event["kind"]
        labels = event["arms"] if kind == "start" else [event["arm"]] if kind in ("decide", "add_arm") else []
        for label in labels:
            small = isinstance(label, str) or -(2**63) <= label < 2**63
            self._kinds.add("json" if not small else "str" if isinstance(label, str) else "int")

    def _layout(self, about: Event) -> Layout:
        dim = int(about["dim"])
        features = tuple(about.get("features") or (str(i) for i in range(dim)))
        labels: Labels = next(iter(self._kinds)) if len(self._kinds) == 1 else "json"
        return Layout(dim=dim, features=features, labels=labels, contexts=self._contexts)

    def _rows(self, places: Places, layout: Layout, file: Any, side: gzip.GzipFile) -> Iterator[dict[str, Any]]:
        offset = decisions = 0
        for line in self._lines():
            event = json.loads(line)
            kind = event["kind"]
            if kind == "decide":
                del event["crc"]
                row = layout.row(event, carried(line))
                row["line"] = None if layout.fits(event) else line
                _add_reward(row, *(_event_at(file, at) if at else None for at in places.of(decisions)))
                decisions += 1
                yield row
            elif kind != "learn" or not _in_a_row(places, event, offset):
                side.write(line)
            offset += len(line)


def _event_at(file: Any, offset: int) -> Event:
    file.seek(offset)
    event: Event = json.loads(file.readline())
    return event


def _in_a_row(places: Places, event: Event, offset: int) -> bool:
    del event["crc"]
    return places.first(event["id"]) == offset and is_plain_learn(event)


def _add_reward(row: dict[str, Any], first: Event | None, last: Event | None, note: Event | None) -> None:
    crc = None if first is None else int(first.pop("crc"), 16)
    row |= reward_columns(first, last, crc) | note_columns(note)


def _write(writer: Any, rows: list[dict[str, Any]], schema: Any) -> None:
    if rows:
        pa = importlib.import_module("pyarrow")
        writer.write_table(pa.Table.from_pylist(rows, schema=schema), row_group_size=ROWS)
        rows.clear()
