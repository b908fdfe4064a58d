"""Any table with a row for each decision, by what its columns are: a data frame, Arrow, Parquet, CSV. O(rows).

Columns become contexts by an encoder: that of the model that is to be valued, or one that has a flag for every text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from armlet.errors import ArgumentError, load_package
from armlet.inputs.encoder import Encoder
from armlet.log.imports.imported import Imported, Logged, origin_of
from armlet.log.tables import Roles, check_columns, flag_texts, labels, read_table

_BATCH: Final = 2**14


def from_table(table: Any, roles: Roles, *, encoder: Encoder | None = None) -> TableLog:
    """Read a table with a row for each decision.

    A row without a reward is a decision whose reward did not come.

    Parameters
    ----------
    table
        A path, .csv, .parquet, .arrow or .feather; or a pandas or polars frame, an Arrow table, a mapping of columns.
    roles
        Which column is what; the propensity must be among them.
    encoder
        What makes contexts of the columns: `bandit.encoder` of the model that is to be valued. Left out, texts among
        the features become flags, one for each; `evaluate` and `gate` then use the encoder of the models that they are
        given, if these have one.

    Examples
    --------
    >>> import pyarrow
    >>> table = pyarrow.table({"age": [31.0, 44.0], "ad": ["a", "b"], "click": [1.0, None], "chance": [0.5, 0.5]})
    >>> log = from_table(table, Roles(features=("age", "1"), arm="ad", reward="click", propensity="chance"))
    >>> [(event["kind"], event.get("x")) for event in log][1:]
    [('decide', [31.0, 1.0]), ('learn', None), ('decide', [44.0, 1.0])]
    """
    is_path = isinstance(table, str | os.PathLike)
    origin = origin_of(Path(table), "table") if is_path else "table"
    found = read_table(Path(table)) if is_path else _arrow(table)
    if encoder is not None and not roles.features:
        roles = roles.reading(encoder.reads)
    check_columns(found, Path(table).name if is_path else "the table", roles)
    if roles.propensity is None:
        raise ArgumentError(
            "{propensity} is missing; name the column of the probability with which each arm was played"
        )
    if nulls := found[roles.arm].null_count:
        raise ArgumentError("{arm} names {name!r}, which has {n:,} rows without an arm", name=roles.arm, n=nulls)
    return TableLog(found, roles, encoder, origin)


class TableLog(Imported):
    """The rows of a table as events."""

    def __init__(self, table: Any, roles: Roles, encoder: Encoder | None, origin: str) -> None:
        self._table, self._roles, self._encoder, self._origin = table, roles, encoder, origin
        if encoder is None:
            flags = flag_texts(table, roles.features)
            rows, features = lambda: _plain(flags.table, flags.features, roles), tuple(flags.features)
        else:
            rows, features = lambda: _encoded(table, encoder, roles), encoder.features
        arms = labels(table[roles.arm].type, roles.arm_names) or sorted(table[roles.arm].unique().to_pylist())
        super().__init__(rows, arms=arms, features=features, origin=origin)

    def encoded(self, encoder: Encoder) -> TableLog:
        """Return the same rows with contexts made by an encoder, unless one was given when the table was read."""
        if self._encoder is not None:
            return self
        return TableLog(self._table, self._roles.reading(encoder.reads), encoder, self._origin)


def _arrow(table: Any) -> Any:
    """Return a table of any kind as Arrow's."""
    pa = load_package("pyarrow", "tables need")
    if isinstance(table, pa.Table):
        return table
    try:
        return pa.Table.from_pandas(table, preserve_index=False) if hasattr(table, "iloc") else pa.table(table)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        text = "{table} is a {kind}, which Arrow cannot read: {reason}; give a data frame, or a mapping of columns"
        raise ArgumentError(text, kind=type(table).__name__, reason=reason) from error


def _plain(table: Any, features: list[str], roles: Roles) -> Iterator[Logged]:
    for batch in _batches(table, [*features, *_others(roles)]):
        X = zip(*(column.to_pylist() for column in batch.columns[: len(features)]), strict=True)
        for x, rest in zip(X, _told(batch, roles), strict=True):
            if None in x:
                raise ArgumentError("{table} has a row without a feature; leave such rows out")
            yield Logged([_number(value, name) for value, name in zip(x, features, strict=True)], *rest)


def _encoded(table: Any, encoder: Encoder, roles: Roles) -> Iterator[Logged]:
    for batch in _batches(table, [*encoder.reads, *_others(roles)]):
        X = encoder.matrix(batch.select(list(encoder.reads)))
        for x, rest in zip(X.tolist(), _told(batch, roles), strict=True):
            yield Logged(x, *rest)


def _batches(table: Any, names: list[str]) -> Iterator[Any]:
    pa = load_package("pyarrow", "tables need")
    for batch in table.select(names).to_batches(max_chunksize=_BATCH):
        yield pa.Table.from_batches([batch])


def _others(roles: Roles) -> list[str]:
    return [roles.arm, str(roles.propensity), roles.reward]


def _told(batch: Any, roles: Roles) -> Iterator[tuple[Any, float, float | None]]:
    for arm, propensity, reward in zip(*(batch[name].to_pylist() for name in _others(roles)), strict=True):
        if propensity is None:
            raise ArgumentError("{table} has a row without a propensity; leave such rows out")
        chance = _number(propensity, str(roles.propensity))
        yield arm, chance, None if reward is None else _number(reward, roles.reward)


def _number(value: Any, column: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        text = "{table} has {value!r} in its column {column!r}; give numbers there"
        raise ArgumentError(text, value=value, column=column) from error
