"""What is to be learned from: files, pieces, and which columns mean what, as far as the data say it themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from armlet.errors import ArgumentError
from armlet.inputs.columns import check_labels
from armlet.inputs.encoder import Encoder
from armlet.inputs.settings import Objective
from armlet.log.fitting.files import Data, Piece, cut, find_files, open_file, read_batches
from armlet.log.fitting.rows import RowReader, arm_codes, vector_width
from armlet.log.fitting.sums import located
from armlet.types import Arm


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Pieces, and how their rows are read."""

    pieces: tuple[Piece, ...]
    reader: RowReader
    encoder: Encoder | None  # the bandit's; contexts of a log went through it already
    dim: int
    features: tuple[str, ...] | None  # None if the encoder names them, or nobody does
    objective: Objective


def find_source(
    data: Data,
    x: Sequence[str] | None,
    arm: str,
    reward: str,
    explored: str | Literal[True] | None,
    weight: str | None,
    encoder: Encoder | None,
    arms: Iterable[Arm] | None,
) -> Source:
    """Find files and read what they say of themselves."""
    if isinstance(x, str):
        x = [x]
    paths = find_files(data)
    with open_file(paths[0]) as file:
        schema = file.schema_arrow
    log = _log_of(schema)
    if log is not None:
        explored = explored or "explored"
        weight = weight or "weight"
    reader = RowReader(
        x=_contexts(schema, x, log, encoder, paths[0]),
        arm=arm,
        reward=reward,
        explored=explored if isinstance(explored, str) else None,
        weight=weight,
        written="json" if log is not None and log["layout"]["labels"] == "json" else "plain",
    )
    _check_roles(reader)
    pieces = cut(paths, reader.columns)
    if encoder is not None and log is None:
        encoder = encoder if encoder.is_fitted else _fitted(encoder, pieces, reader)
        reader = replace(reader, encoder=encoder)
    labels = _labels(arms, log, pieces, reader)
    return Source(
        pieces=tuple(pieces),
        reader=replace(reader, labels=tuple(labels)),
        encoder=encoder,
        dim=_dim(schema, reader),
        features=None if encoder is not None else _features(schema, reader, log),
        objective="max" if log is None else log["about"].get("objective", "max"),
    )


def _log_of(schema: Any) -> dict[str, Any] | None:
    """Give what a compacted log says of itself; None if it is none."""
    saved = (schema.metadata or {}).get(b"armlet")
    return None if saved is None else dict(json.loads(saved))


def _contexts(
    schema: Any, x: Sequence[str] | None, log: dict[str, Any] | None, encoder: Encoder | None, path: Path
) -> tuple[str, ...]:
    if x is not None and not x:
        raise ArgumentError("{x} is empty; name the columns that make a context")
    if x is not None and len(set(x)) < len(x):
        raise ArgumentError("{x} names a column twice: {names}; give each once", names=", ".join(x))
    if encoder is not None and encoder.is_fitted and log is None:
        if x is not None and set(x) != set(encoder.reads):
            text = "{x} is {names}, but the encoder reads {reads}; leave it out"
            raise ArgumentError(text, names=", ".join(x), reads=", ".join(encoder.reads))
        return encoder.reads
    if x is not None:
        return tuple(x)
    if log is not None:
        layout = log["layout"]
        return ("x",) if layout["contexts"] == "binary" else tuple(f"x.{name}" for name in layout["features"])
    text = "{x} is missing: name the columns that make a context; those of {name} are {there}"
    raise ArgumentError(text, name=path.name, there=", ".join(schema.names))


def _check_roles(reader: RowReader) -> None:
    taken = dict.fromkeys(reader.x, "x")
    for role in ("arm", "reward", "explored", "weight"):
        column = getattr(reader, role)
        if column is None:
            continue
        if column in taken:
            text = (
                "{"
                + role
                + "} names {column!r}, which {"
                + taken[column]
                + "} names before; give every column one part"
            )
            raise ArgumentError(text, column=column)
        taken[column] = role


def _dim(schema: Any, reader: RowReader) -> int:
    if reader.encoder is not None:
        return reader.encoder.dim
    width = vector_width(schema.field(reader.x[0]).type) if len(reader.x) == 1 else 0
    return width or len(reader.x)


def _features(schema: Any, reader: RowReader, log: dict[str, Any] | None) -> tuple[str, ...] | None:
    if log is not None:
        names = log["about"].get("features")
        return None if names is None else tuple(names)
    return None if len(reader.x) == 1 and vector_width(schema.field(reader.x[0]).type) else reader.x


def _fitted(encoder: Encoder, pieces: Sequence[Piece], reader: RowReader) -> Encoder:
    """Fit a copy of an encoder on all rows."""

    def parts() -> Iterator[Any]:
        for piece in pieces:
            for _, batch in read_batches(piece, reader.x):
                yield batch

    return encoder.copy().fit_many(parts())


def _labels(
    arms: Iterable[Arm] | None, log: dict[str, Any] | None, pieces: Sequence[Piece], reader: RowReader
) -> list[Arm]:
    if arms is not None:
        return check_labels(arms)
    if log is not None and "arms" in log["about"]:
        return check_labels(log["about"]["arms"])
    seen: set[Arm] = set()
    for piece in pieces:
        for start, batch in read_batches(piece, [reader.arm], [reader.arm]):
            with located(piece, start):
                found, codes = arm_codes(batch.column(0), reader.arm, reader.written)
            seen.update(found[i] for i in set(codes.tolist()))
    if not seen:
        raise ArgumentError("{data} has no rows; give some to learn from, or name the arms")
    return sorted(seen, key=lambda label: (isinstance(label, str), label))
