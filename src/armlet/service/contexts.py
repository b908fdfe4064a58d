"""Contexts that were refused: which field is wrong and what is expected, without a word of what was sent.

The library's own errors quote values; a context may hold secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from armlet.inputs.codes import read_code
from armlet.inputs.columns import LARGEST, refused
from armlet.service.problems import INVALID, Problem

if TYPE_CHECKING:
    from armlet.inputs.encoder import Encoder
    from armlet.inputs.settings import Reader
    from armlet.service.schemas import Context

NAMED: Final = 20  # features, at most
NUMBER: Final = f"give a finite number of at most {LARGEST:g} in size"
WANTED: Final = {
    "number": NUMBER,
    "date": "give a date as text, such as 2026-11-17T18:30:00Z",
    "flags": "give one of the texts that this column has",
    "buckets": "give text",
}


def encoder_of(reader: Reader) -> Encoder | None:
    """Return what encodes the values of a reader; None if they are numbers."""
    encoder: Encoder | None = getattr(reader, "encoder", None)
    return encoder


def with_dates(reader: Reader, context: Context) -> Mapping[str, object] | list[float]:
    """Return a context whose dates, which are text in JSON (ISO 8601), are dates; itself if it has none.

    Examples
    --------
    >>> import datetime
    >>> from armlet.inputs.encoder import Encoder, EncodingReader
    >>> reader = EncodingReader(Encoder().fit({"seen": [datetime.date(2026, 1, 1)]}))
    >>> with_dates(reader, {"seen": "2026-11-17T18:30:00Z"})
    {'seen': datetime.datetime(2026, 11, 17, 18, 30, tzinfo=datetime.timezone.utc)}
    """
    encoder = encoder_of(reader)
    if encoder is None or isinstance(context, list):
        return context
    dates: dict[str, object] = {}
    for saved in encoder.to_dict().get("columns", ()):  # names that are hashed have none
        value = context.get(saved["column"])
        if saved["kind"] == "date" and isinstance(value, str):
            with suppress(ValueError):
                dates[saved["column"]] = datetime.fromisoformat(value)
    return {**context, **dates} if dates else context


def context_problem(reader: Reader, context: Context, field: str = "context") -> Problem | None:
    """Return what is wrong with a context; None if nothing is.

    Parameters
    ----------
    reader
        What the loop reads contexts with.
    context
        As it was sent.
    field
        Where it stands in the request.

    Examples
    --------
    >>> from armlet.inputs.contexts import ContextReader
    >>> problem = context_problem(ContextReader(2, ("age", "basket")), {"age": "secret", "basket": 1.0})
    >>> problem.field, problem.detail
    ('context.age', 'give a finite number of at most 1e+40 in size')
    """
    read = with_dates(reader, context)
    ranges = None if reader.ranges is None else reader.ranges.apart()  # it was counted when it was refused
    try:
        replace(reader, ranges=ranges).row(read)
    except (TypeError, ValueError):
        where, what = next(_faults(reader, read), ("", "the loop cannot read this context"))
        return Problem(INVALID, what, field=field + where)
    return None


def _faults(reader: Reader, context: Mapping[str, object] | list[float]) -> Iterator[tuple[str, str]]:
    encoder = encoder_of(reader)
    if isinstance(context, list):
        yield from _positions(reader.plain.dim, context)
    elif encoder is not None and not hasattr(encoder, "reads"):
        yield "", "give names with numbers or texts"
    elif encoder is not None:
        yield from _names(context, encoder.reads, is_extra_ignored=encoder.extra == "ignore")
        yield from _columns(context, encoder)
    elif reader.plain.features is None:
        yield "", f"features of this loop have no names; give an array of {reader.plain.dim} numbers"
    else:
        yield from _names(context, reader.plain.features, is_extra_ignored=False)
        for name in reader.plain.features:
            if refused(context[name], name) is not None:
                yield f".{name}", NUMBER
    yield from _outside(reader, context)


def _outside(reader: Reader, context: Mapping[str, object] | list[float]) -> Iterator[tuple[str, str]]:
    ranges = reader.ranges
    if ranges is None:
        return
    for name in ranges.refused(replace(reader, ranges=None).row(context)):
        where = f"[{ranges.features.index(name)}]" if isinstance(context, list) else f".{name}"
        low, high = ranges[name][:2]
        yield where, f"it lies outside of the feature_range of the loop; give a number from {low:g} to {high:g}"


def _positions(dim: int, context: list[float]) -> Iterator[tuple[str, str]]:
    if len(context) != dim:
        yield "", f"it has {len(context)} numbers; give {dim}"
    for at, value in enumerate(context):
        if refused(value, "") is not None:
            yield f"[{at}]", NUMBER


def _names(
    context: Mapping[str, object], wanted: Iterable[str], *, is_extra_ignored: bool
) -> Iterator[tuple[str, str]]:
    names = list(wanted)
    for name in names:
        if name not in context:
            yield f".{name}", "it is missing"
    unknown = len(context.keys() - set(names))
    if unknown and not is_extra_ignored:
        more = ", ..." if len(names) > NAMED else ""
        known = ", ".join(names[:NAMED])
        yield "", f"it has {unknown} names that are not features of this loop; they are: {known}{more}"


def _columns(context: Mapping[str, object], encoder: Encoder) -> Iterator[tuple[str, str]]:
    for saved in encoder.to_dict()["columns"]:
        code = read_code(saved)
        try:
            code.put(context, np.zeros(len(code.names)))
        except (TypeError, ValueError):
            yield f".{code.column}", WANTED[saved["kind"]]
