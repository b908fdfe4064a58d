"""Any table with a row for each decision, by what its columns are: Arrow, Parquet, Feather, CSV. O(rows)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from armlet.core.errors import ArgumentError
from armlet.log.imports.imported import Imported, Logged, origin_of
from armlet.log.tables import Roles, check_columns, flag_texts, labels, read_table

_BATCH: Final = 2**14


def from_table(table: Any, roles: Roles) -> Imported:
    """Read a table with a row for each decision.

    Texts among the features become flags, one for each. A row without a reward is a decision whose reward did not come.

    Parameters
    ----------
    table
        A path, .csv, .parquet, .arrow or .feather, or a pyarrow table.
    roles
        Which column is what; the propensity must be among them.

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
    found = read_table(Path(table)) if is_path else table
    check_columns(found, Path(table).name if is_path else "the table", roles)
    if roles.propensity is None:
        raise ArgumentError(
            "{propensity} is missing; name the column of the probability with which each arm was played"
        )
    flags = flag_texts(found, roles.features)
    arms = labels(found[roles.arm].type, roles.arm_names) or sorted(found[roles.arm].unique().to_pylist())
    return Imported(
        lambda: _rows(flags.table, flags.features, roles), arms=arms, features=flags.features, origin=origin
    )


def _rows(table: Any, features: list[str], roles: Roles) -> Iterator[Logged]:
    names = [*features, roles.arm, roles.propensity, roles.reward]
    for batch in table.select(names).to_batches(max_chunksize=_BATCH):
        for *x, arm, propensity, reward in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if None in x or arm is None or propensity is None:
                raise ArgumentError("{table} has a row without a feature, an arm or a propensity; leave such rows out")
            paid = None if reward is None else float(reward)
            yield Logged([float(value) for value in x], arm, float(propensity), paid)
