"""Contexts that were refused: which field is wrong and what is expected, without a word of what was sent.

The library's own errors quote values; a context may hold what nobody else should read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    try:
        reader.row(context)
    except (TypeError, ValueError):
        where, what = next(_faults(reader, context), ("", "the loop cannot read this context"))
        return Problem(INVALID, what, field=field + where)
    return None


def _faults(reader: Reader, context: Context) -> Iterator[tuple[str, str]]:
    encoder: Encoder | None = getattr(reader, "encoder", None)
    if isinstance(context, list):
        yield from _positions(reader.plain.dim, context)
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
            is_number = saved["kind"] == "number"
            yield f".{code.column}", NUMBER if is_number else f"it is not a value for a column of kind {saved['kind']}"
