"""Features of a rank request, nested as they are, as rows that a loop reads; what does not fit is counted.

Personalizer takes any feature at any time. A loop has a fixed set: what is sent besides is dropped, and what is not
sent is 0, or no flag, as in Vowpal Wabbit. Both are counted by loop, so that a misspelt name is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from armlet.inputs.nested import Cell, flatten
from armlet.service.contexts import with_dates
from armlet.service.problems import INVALID, Problem

if TYPE_CHECKING:
    from armlet.inputs.settings import Reader

Side: TypeAlias = Literal["context", "actions"]
Fault: TypeAlias = Literal["unknown", "missing"]
MOST_NAMES: Final = 200  # that are told apart, of a loop
OTHERS: Final = "(others)"
_USUAL: Final[Mapping[str, Cell]] = {"number": 0.0, "flags": "", "buckets": ""}


class Columns(NamedTuple):
    """What a reader takes: what each column is where it was not sent; None for whatever comes."""

    usual: Mapping[str, Cell | None] | None
    has_dates: bool = False


NOTHING: Final = Columns({})


def columns_of(reader: Reader) -> Columns:
    """Return the columns that a reader takes.

    Examples
    --------
    >>> from armlet.inputs.contexts import ContextReader
    >>> columns_of(ContextReader(2, ("age", "user.visits"))).usual
    {'age': 0.0, 'user.visits': 0.0}
    """
    encoder = getattr(reader, "encoder", None)
    if encoder is None:
        features = reader.plain.features
        if reader.plain.dim == 0:
            return NOTHING
        if features is None:
            raise Problem(
                INVALID, "the features of this loop have no names, which Personalizer's have; make it with names"
            )
        return Columns(dict.fromkeys(features, 0.0))
    saved = encoder.to_dict()
    if "columns" not in saved:  # it hashes names
        return Columns(None)
    columns = [each for each in saved["columns"] if each["kind"] != "constant"]
    usual = {each["column"]: None if "missing" in each else _USUAL.get(each["kind"]) for each in columns}
    return Columns(usual, any(each["kind"] == "date" for each in columns))


class FeatureCounts:
    """How often features were sent that a loop does not read, and not sent that it reads.

    Examples
    --------
    >>> counts = FeatureCounts()
    >>> counts.add("context", "unknown", ["user.agee"])
    >>> counts.totals
    Counter({('context', 'unknown'): 1})
    """

    def __init__(self) -> None:
        self.totals: Counter[tuple[Side, Fault]] = Counter()
        self.names: Counter[tuple[Side, Fault, str]] = Counter()

    def add(self, side: Side, fault: Fault, names: list[str]) -> None:
        """Count names; from a number of different ones on, new ones are counted as one."""
        self.totals[side, fault] += len(names)
        for name in names:
            key = side, fault, name
            known = key in self.names or len(self.names) < MOST_NAMES
            self.names[key if known else (side, fault, OTHERS)] += 1


def row_of(
    features: object, reader: Reader, columns: Columns, counts: FeatureCounts, side: Side
) -> Mapping[str, object] | list[float]:
    """Return nested features as a row that a reader takes; an empty list where there are none.

    Parameters
    ----------
    features
        Objects, nested at will.
    reader, columns
        What reads the row, and its columns.
    counts
        Of the loop, to which what does not fit is added.
    side
        Whether they are of the context or of an action.
    """
    cells = flatten(features)
    usual = columns.usual
    if usual is None:
        return cells
    unknown, missing = [name for name in cells if name not in usual], [name for name in usual if name not in cells]
    if unknown:
        counts.add(side, "unknown", unknown)
    if missing:
        counts.add(side, "missing", missing)
    row = {name: cells.get(name, default) for name, default in usual.items()}
    if not columns.has_dates:
        return row or []
    return with_dates(reader, row)
