"""A log on disk as a table: CSV, Parquet or Arrow, read with pyarrow. O(N d)."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from armlet.errors import ArgumentError, load_pyarrow
from armlet.inputs.codes import CONSTANT
from armlet.inputs.encoder import MOST, Encoder
from armlet.types import Arm


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which columns of a log mean what."""

    features: tuple[str, ...]
    arm: str
    reward: str
    propensity: str | None = None
    arm_names: tuple[str, ...] | None = None

    def reading(self, features: Sequence[str]) -> Roles:
        """Return the same roles with other features."""
        return replace(self, features=tuple(features))


class Flags(NamedTuple):
    """A table whose features are all numbers, their names, and what became of texts."""

    table: Any
    features: list[str]
    notes: tuple[str, ...]


def read_table(path: Path) -> Any:
    """Read a pyarrow table by the ending of the file's name."""
    pa, pq = load_pyarrow()
    kinds = {".csv": _read_csv, ".parquet": pq.read_table, ".arrow": _read_arrow, ".feather": _read_arrow}
    if path.suffix.lower() not in kinds:
        raise ArgumentError("{log} is {name}; give a file that ends in {kinds}", name=path.name, kinds=", ".join(kinds))
    if not path.exists():
        raise FileNotFoundError(f"the log is {path}, which does not exist")
    try:
        return kinds[path.suffix.lower()](path)
    except pa.ArrowInvalid as error:
        reason = str(error).partition("\n")[0]
        raise ArgumentError("{log} is {name}, which cannot be read: {reason}", name=path.name, reason=reason) from error


def _read_csv(path: Path) -> Any:
    return importlib.import_module("pyarrow.csv").read_csv(path)


def _read_arrow(path: Path) -> Any:
    pa = importlib.import_module("pyarrow")
    with path.open("rb") as file:
        whole = file.read(6) == b"ARROW1"  # else a stream, which bears no mark
        file.seek(0)
        return (pa.ipc.open_file if whole else pa.ipc.open_stream)(file).read_all()


def check_columns(table: Any, name: str, roles: Roles) -> None:
    """Refuse roles that name columns the table does not have, or one column twice, and a table without rows."""
    given = [("features", each) for each in roles.features]
    given += [("arm", roles.arm), ("reward", roles.reward)]
    given += [] if roles.propensity is None else [("propensity", roles.propensity)]
    for role, column in given:
        if column not in table.column_names and (role, column) != ("features", CONSTANT):
            text = "{" + role + "} names {column!r}, but the columns of {name} are {there}"
            raise ArgumentError(text, column=column, name=name, there=", ".join(table.column_names))
    check_one_role_each(given)
    if table.num_rows == 0:
        raise ArgumentError("{log} is {name}, which has no rows; give one for each decision", name=name)


def check_one_role_each(given: Iterable[tuple[str, str | None]]) -> None:
    """Refuse roles of which two name the same column."""
    taken: dict[str, str] = {}
    for role, column in given:
        if column is None:
            continue
        if column in taken:
            text = f"{{{role}}} names {{column!r}}, which {{{taken[column]}}} names before; give every column one part"
            raise ArgumentError(text, column=column)
        taken[column] = role


def flag_texts(table: Any, features: Sequence[str]) -> Flags:
    """Put a column of 0 and 1 in place of every text that a feature has, and add the constant if it is asked for."""
    pa = importlib.import_module("pyarrow")
    columns: list[str] = []
    notes: list[str] = []
    for name in features:
        if name == CONSTANT and name not in table.column_names:
            table = table.append_column(name, pa.array([1.0] * table.num_rows))
            columns.append(name)
        elif _is_text(table[name].type):
            found = _flags(table, name)
            table = found.table
            columns += found.features
            notes += found.notes
        else:
            columns.append(name)
    return Flags(table, columns, tuple(notes))


def _flags(table: Any, name: str) -> Flags:
    if nulls := table[name].null_count:
        text = "{features} names {name!r}, which has {n:,} rows without a value; fill them in"
        raise ArgumentError(text, name=name, n=nulls)
    encoder = Encoder(most=None, other="refuse").fit(table.select([name]))
    if encoder.dim > MOST:
        text = "{features} names {name!r}, which has {n:,} different texts; group them into fewer"
        raise ArgumentError(text, name=name, n=encoder.dim)
    for flag, values in zip(encoder.features, encoder.matrix(table.select([name])).T, strict=True):
        table = table.append_column(flag, [values])
    told = ", ".join(encoder.features)
    note = f"{name} is text: {encoder.dim} flags stand for it, {told}; give the bandit the same"
    return Flags(table, list(encoder.features), (note,))


def _is_text(kind: Any) -> bool:
    types = importlib.import_module("pyarrow").types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind))


def labels(kind: Any, arm_names: tuple[str, ...] | None) -> Sequence[Arm] | None:
    """Return the labels of arms in the kind that the column has: whole numbers, or words."""
    if arm_names is None or not importlib.import_module("pyarrow").types.is_integer(kind):
        return arm_names
    if wrong := [name for name in arm_names if not name.lstrip("-").isdecimal()]:
        raise ArgumentError("{arm_names} has {name!r}, but the log names arms by whole numbers", name=wrong[0])
    return [int(name) for name in arm_names]
