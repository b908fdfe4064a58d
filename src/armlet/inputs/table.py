"""One labelled table of decisions: which column is what, read once into arrays, from any library or file.

Training, logs, evaluation, gates, advice and every command take it, so a role has one name everywhere. Rows are never
made into objects: labels become codes, rewards a matrix, and contexts are made by an encoder when they are asked for.
Cost O(N d); a million rows of a CSV file take about a second.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias

import numpy as np

from armlet.errors import ArgumentError, InvalidTypeError, InvalidValueError, choices, suggesting
from armlet.inputs.columns import LEAST_CHANCE, LEAST_WEIGHT, check_labels, is_number, too_light
from armlet.inputs.files import read_file
from armlet.inputs.outcomes import Outcomes, read_outcomes
from armlet.inputs.tables import TableColumns, TableLike, Texts, is_missing
from armlet.types import Arm, Bool, Float64, Int64

if TYPE_CHECKING:
    from armlet.inputs.encoder import Encoder

PART: Final = "reward_"  # before the name of an outcome, in the name of its column
CONSTANT: Final = "1"  # a feature that is 1 in every row
SEPARATOR: Final = "|"  # of eligible arms in a cell of text

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "arm": ("arm", "action", "variant", "treatment"),
    "reward": ("reward", "click", "clicked", "conversion", "converted"),
    "propensity": ("propensity", "pscore", "probability", "prob"),
    "unit": ("unit",),
    "epoch": ("epoch",),
}
"""What a column of a role may be called, in small letters, where its name is not given."""
ABOUT: Final = {"arm": "of what was played", "reward": "of what it paid"}
"""The roles that no table can do without."""

Data: TypeAlias = TableLike | str | os.PathLike[str]
"""A table, or the path of one: .csv, .parquet, .arrow, .feather, .jsonl or .ndjson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which column is what; None where none is."""

    arm: str
    rewards: tuple[str, ...]
    """The column of the reward, or one for each outcome that is learned."""
    features: tuple[str, ...] = ()
    propensity: str | float | None = None
    explored: str | Literal[True] | None = None
    weight: str | None = None
    time: str | None = None
    unit: str | None = None
    epoch: str | None = None
    eligible: str | None = None
    written: Literal["plain", "json"] = "plain"  # how labels stand in their column

    def __post_init__(self) -> None:
        value = self.propensity
        if value is None or isinstance(value, str):
            return
        if isinstance(value, bool) or not is_number(value):
            kind = type(value).__name__
            raise ArgumentError("{propensity} is a {kind}; give the name of a column, or a number", kind=kind)
        if not 0.0 < value <= 1.0:
            text = "{propensity} is {value!r}; give the name of a column, or a number above 0, at most 1"
            raise ArgumentError(text, value=value)
        object.__setattr__(self, "propensity", float(value))

    def named(self) -> list[tuple[str, str]]:
        """Return the columns that have a role, each with the name of that."""
        reward = "reward" if len(self.rewards) == 1 else "outcomes"
        pairs: list[tuple[str, object]] = [("features", name) for name in self.features]
        pairs += [("arm", self.arm), *((reward, name) for name in self.rewards)]
        others = ("propensity", "explored", "weight", "time", "unit", "epoch", "eligible")
        values: tuple[object, ...] = (
            self.propensity, self.explored, self.weight, self.time, self.unit, self.epoch, self.eligible
        )  # fmt: skip
        pairs += zip(others, values, strict=True)
        return [(role, name) for role, name in pairs if isinstance(name, str)]

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return [name for _, name in self.named()]

    def check(self, present: Sequence[str], what: str) -> None:
        """Refuse columns that the table does not have, and those that have two roles."""
        taken: dict[str, str] = {}
        for role, column in self.named():
            if column not in present and (role, column) != ("features", CONSTANT):
                text = "{" + role + "} names {column!r}, which is not a column of {what}; {fix}"
                raise ArgumentError(text, column=column, what=what, fix=choices(column, present))
            if column in taken and role != "time":  # a date may be known too
                text = (
                    f"{{{role}}} names {{column!r}}, which {{{taken[column]}}} names before; give every column one part"
                )
                raise ArgumentError(text, column=column)
            taken[column] = role


class Table:
    """A labelled table of decisions: a row each, and which column is what.

    It is read at once, and refused with the row and the column of what is wrong; contexts are made when they are asked
    for. A row without a reward is a decision whose reward did not come.

    Parameters
    ----------
    data
        A path (.csv, .parquet, .arrow, .feather, .jsonl), a pandas or polars frame, an Arrow table, a mapping of
        columns, or a list of rows. A cell of a CSV file that holds nothing has no value.
    features
        The columns that were known before the arm was chosen: numbers, text, categories or dates; "1" for a constant.
        A model says itself what it reads, so that a table to be valued needs none. Never name what came after.
    arm, reward
        The columns of what was played and what it paid; looked for by their names if left out: arm, action, variant,
        treatment; reward, click, clicked, conversion, converted.
    outcomes, known
        Several outcomes in place of one reward, as of `Bandit`: a column `reward_NAME`, or NAME, each; those that are
        known need none.
    propensity
        The column of the probability with which each arm was played, or that probability, the same in every row: 0.5
        for a fair A/B test. Looked for as propensity, pscore, probability, prob. Only evaluation needs it.
    explored
        The column that says which rows were played at random, or True if all were.
    weight
        The column of how much a row counts.
    time
        The column of the date of a decision.
    unit, epoch
        The columns that say which rows share a draw; looked for under these names.
    eligible
        The column of the arms that might be played: lists, or text with | between arms; all where it has no value.
    arms
        All labels, in this order; those of the rows, in order, if left out.
    encoder
        What makes numbers of the features. Left out, one is fitted where some are text, dates or have no value
        (`missing="flag"` then); columns of numbers stay as they are.

    Examples
    --------
    >>> import armlet
    >>> rows = {"age": [31, 44, 28], "country": ["no", "fr", None], "ad": ["b", "a", "b"], "click": [0, 1, None]}
    >>> table = armlet.Table(rows, features=["age", "country"], arm="ad", propensity=0.5)
    >>> table
    <Table: 3 rows; features age, country (text; 1 missing); arm ad (a, b); reward click (1 missing); propensity 0.5>
    >>> table.arms, table.played, table.rewards[:, 0]
    (('a', 'b'), array([1, 0, 1]), array([ 0.,  1., nan]))
    >>> bandit = armlet.Bandit(table.arms, encoder=table.encoder, seed=1).partial_fit(table)
    >>> bandit.t, bandit.state.n
    (3, array([1., 1.]))
    """

    arms: tuple[Arm, ...]
    """All labels of arms."""
    played: Int64
    """(n,): the arm of each row, an index into `arms`."""
    rewards: Float64
    """(n, m): the reward, or the outcomes that are learned; NaN where none came."""
    propensities: Float64 | None
    """(n,): the probability of that arm; None if it is not known."""
    explored: Bool | None
    """(n,): whether the arm was drawn at random; None if that is not known."""
    weights: Float64 | None
    """(n,): how much a row counts; None if all count alike."""
    times: Int64 | None
    """(n,): microseconds since 1970."""
    units: Texts | None
    """The unit of every row, as texts and codes; None if no rows share a draw."""
    epochs: Int64 | None
    """(n,): of its unit."""
    eligible: Bool | None
    """(n, K): which arms might be played; None if all might."""

    @suggesting("Table")
    def __init__(
        self,
        data: Data,
        *,
        features: Sequence[str] | None = None,
        arm: str | None = None,
        reward: str | None = None,
        outcomes: Mapping[str, float] | None = None,
        known: Mapping[str, Mapping[Arm, float]] | None = None,
        propensity: str | float | None = None,
        explored: str | Literal[True] | None = None,
        weight: str | None = None,
        time: str | None = None,
        unit: str | None = None,
        epoch: str | None = None,
        eligible: str | None = None,
        arms: Iterable[Arm] | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        columns = _opened(data)
        if columns.n_rows == 0:
            what = columns.file or "a table"
            raise ArgumentError("{data} is {what}, which has no rows; give one for each decision", what=what)
        if features is None and encoder is not None and encoder.is_fitted:
            features = encoder.reads
        several = read_outcomes(outcomes, known, None)
        given = {"arm": arm, "propensity": propensity, "explored": explored, "weight": weight, "time": time}
        given |= {"unit": unit, "epoch": epoch, "eligible": eligible}
        what = columns.file or "the table"
        roles = find_roles(columns.names, what, given, reward, listed_features(features or ()), several)
        self._open(columns, roles, several, arms, encoder)

    @classmethod
    def of_part(
        cls,
        columns: TableColumns,
        roles: Roles,
        outcomes: Outcomes | None,
        arms: Iterable[Arm] | None,
        encoder: Encoder | None = None,
    ) -> Self:
        """Read a part of a table whose roles are known."""
        table = cls.__new__(cls)
        table._open(columns, roles, outcomes, arms, encoder)
        return table

    def _open(
        self,
        columns: TableColumns,
        roles: Roles,
        outcomes: Outcomes | None,
        arms: Iterable[Arm] | None,
        encoder: Encoder | None,
    ) -> None:
        self._columns, self.roles, self._given = columns, roles, encoder
        self.arms, self.played = _placed(columns, roles, arms)
        self._outcomes = None if outcomes is None else _with_prices(outcomes, self.arms)
        self.rewards = np.column_stack([columns.measured(name) for name in roles.rewards])
        self.propensities = _propensities(columns, roles.propensity)
        self.explored = _explored(columns, roles.explored)
        self.weights = None if roles.weight is None else _weights(columns, roles.weight)
        self.times = None if roles.time is None else columns.moments(roles.time)
        self.units, self.epochs = _units(columns, roles)
        self.eligible = None if roles.eligible is None else _eligible(columns, roles, self.arms, self.played)

    def __len__(self) -> int:
        return self._columns.n_rows

    @property
    def name(self) -> str:
        """The name of its file; empty if it has none."""
        return self._columns.file

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all its columns."""
        return tuple(self._columns.names)

    @property
    def outcomes(self) -> Outcomes | None:
        """What rewards are made of; None if there is one reward."""
        return self._outcomes

    @property
    def rewarded(self) -> Bool:
        """Which rows have a reward, or every outcome, (n,)."""
        return np.asarray(~np.isnan(self.rewards).any(axis=1))

    def where(self, row: int, column: str) -> str:
        """Return what errors call a cell."""
        return self._columns.where(row, column)

    def labels(self) -> list[Arm]:
        """Return the label of the arm of every row."""
        return [self.arms[place] for place in self.played.tolist()]

    @cached_property
    def observed(self) -> dict[str, Float64]:
        """What rewards are made of, for the record, by name: columns `reward_NAME` next to one of the reward."""
        if self.outcomes is not None:
            return {}
        taken = self.roles.columns
        names = [name for name in self._columns.names if name.startswith(PART) and name not in taken]
        return {name.removeprefix(PART): self._columns.measured(name) for name in names}

    # ---- contexts

    @cached_property
    def encoder(self) -> Encoder | None:
        """What makes contexts of the features; None if they are numbers as they are."""
        if self._given is None:
            return _own_encoder(self._columns, self.roles.features)
        if self._given.is_fitted:
            return self._given
        return self._given.copy().fit(self._columns.select(_there(self._columns, self.roles.features)))

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the values of a context; None if one column holds whole contexts."""
        if self.encoder is not None:
            return self.encoder.features
        names = self.roles.features or (CONSTANT,)
        return None if len(names) == 1 and self.X.shape[1] != 1 else names

    @cached_property
    def X(self) -> Float64:
        """The contexts, (n, d); ones if there are no features."""
        return self.contexts(self.encoder, self.roles.features)

    def contexts(self, encoder: Encoder | None, features: Sequence[str] | None) -> Float64:
        """Return the contexts as an encoder makes them, or else columns of numbers, (n, d)."""
        columns = self._columns
        if encoder is not None:
            return encoder.matrix(columns.select(_there(columns, encoder.reads)))
        if features is None:
            return self.X
        if len(features) == 1 and features[0] in columns and (X := columns.vectors(features[0])) is not None:
            return X
        ones = np.ones(len(self))
        return np.column_stack([columns.numbers(name) if name in columns else ones for name in features or (CONSTANT,)])

    def encoded(self, encoder: Encoder) -> Table:
        """Return the same rows with contexts made by an encoder, unless one was given when the table was read."""
        return self if self._given is not None else self._again(encoder.reads, encoder)

    def reading(self, features: Sequence[str]) -> Table:
        """Return the same rows with other features, which must be numbers."""
        return self._again(tuple(features), None)

    def _again(self, features: tuple[str, ...], encoder: Encoder | None) -> Table:
        roles = replace(self.roles, features=features)
        roles.check(self._columns.names, self.name or "the table")
        return Table.of_part(self._columns, roles, self.outcomes, self.arms, encoder)

    def __repr__(self) -> str:
        columns, roles = self._columns, self.roles
        gaps = int((~self.rewarded).sum())
        arms = ", ".join(map(str, self.arms[:MOST_NAMES])) + (", ..." if len(self.arms) > MOST_NAMES else "")
        parts = [f"features {', '.join(_shown(columns, name) for name in roles.features)}"] if roles.features else []
        parts += [f"arm {roles.arm} ({arms})"]
        parts += [f"reward {', '.join(roles.rewards)}" + (f" ({gaps:,} missing)" if gaps else "")]
        if roles.propensity is not None:
            chance = roles.propensity
            parts.append(f"propensity {chance if isinstance(chance, str) else f'{chance:.3g}'}")
        parts += [f"{role} {name}" for role, name in roles.named() if role in OTHERS]
        name = f" {self.name}" if self.name else ""
        return f"<Table{name}: {len(self):,} rows; {'; '.join(parts)}>"


MOST_NAMES: Final = 8  # of arms that a repr lists
OTHERS: Final = ("explored", "weight", "time", "unit", "epoch", "eligible")


def listed_features(features: Sequence[str]) -> tuple[str, ...]:
    """Return the names of features, each once; one may stand alone."""
    if isinstance(features, str):
        return (features,)
    names = tuple(features)
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ArgumentError("{features} names a column twice: {names}; give each once", names=", ".join(twice))
    return names


def _opened(data: Data) -> TableColumns:
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        return TableColumns(read_file(path), file=path.name)
    return TableColumns(data)


def find_roles(
    present: Sequence[str],
    what: str,
    given: Mapping[str, object],
    reward: str | None,
    features: tuple[str, ...],
    outcomes: Outcomes | None,
) -> Roles:
    """Return the roles of columns: as given, or by their names."""
    taken = {*features, *(value for value in (*given.values(), reward) if isinstance(value, str))}
    free = [column for column in present if column not in taken]
    named: dict[str, object] = {role: value for role, value in given.items() if value is not None}
    for role in NAMES:
        if role == "reward" or role in named:
            continue
        if (column := _found(role, free, what)) is not None:
            named[role] = column
    if outcomes is not None:
        rewards = tuple(_outcome_column(present, reward or "reward", one) for one in outcomes.learned)
    else:
        column = reward or _found("reward", free, what)
        rewards = (column,) if column else ()
    for role, about in ABOUT.items():
        if (role == "arm" and role not in named) or (role == "reward" and not rewards):
            text = "{" + role + "} is missing; name the column {about}: one of {names}"
            raise ArgumentError(text, about=about, names=", ".join(free))
    roles = Roles(features=features, rewards=rewards, **named)  # type: ignore[arg-type]
    roles.check(present, what)
    return roles


def _found(role: str, free: Sequence[str], what: str) -> str | None:
    """Return the column whose name says that it has a role; refuse two."""
    names = NAMES[role]
    columns = [column for column in free if column.lower() in names]
    exact = [column for column in columns if column.lower() == names[0]]
    if len(columns) > 1 and len(exact) != 1:
        text = "{" + role + "} may be {columns} of {what}; name one"
        raise ArgumentError(text, columns=" or ".join(map(repr, columns)), what=what)
    return next(iter(exact or columns), None)


def _outcome_column(present: Sequence[str], reward: str, name: str) -> str:
    names = (f"{reward}_{name}", f"{PART}{name}", name)
    return next((each for each in names if each in present), names[0])


def _there(columns: TableColumns, names: Iterable[str]) -> list[str]:
    """Return the columns without a constant that the table does not have."""
    return [name for name in names if name != CONSTANT or name in columns]


def _own_encoder(columns: TableColumns, features: Sequence[str]) -> Encoder | None:
    """Return an encoder where some features are text or dates, or have no value in some row."""
    there = _there(columns, features)
    if len(there) == 1 and columns.vectors(there[0]) is not None:
        return None
    has_gaps = any(columns.missing(name).any() for name in there)
    if not has_gaps and all(columns.kind(name) == "number" for name in there):
        return None
    from armlet.inputs.encoder import Encoder  # not before it is needed: it slows down `import armlet`

    return Encoder(list(features), missing="flag" if has_gaps else "refuse").fit(columns.select(there))


def _shown(columns: TableColumns, name: str) -> str:
    if name not in columns:
        return name
    kind, gaps = columns.kind(name), int(columns.missing(name).sum())
    notes = [*([] if kind == "number" else [kind]), *([f"{gaps:,} missing"] if gaps else [])]
    return f"{name} ({'; '.join(notes)})" if notes else name


# ---- roles, column by column


def _placed(columns: TableColumns, roles: Roles, arms: Iterable[Arm] | None) -> tuple[tuple[Arm, ...], Int64]:
    """Return all labels, and the place of each row's among them."""
    is_json = roles.written == "json"
    seen, codes = columns.labels(roles.arm, (lambda value: json.loads(str(value))) if is_json else _same)
    used = [seen[place] for place in np.unique(codes).tolist()]  # categories may have more
    labels = in_order(used) if arms is None else as_column(check_labels(arms), used)
    known = {label: place for place, label in enumerate(labels)}
    places = np.array([known.get(label, -1) for label in seen], dtype=np.int64)
    played = places[codes] if seen else codes
    if (wrong := np.flatnonzero(played < 0)).size:
        text = "{where} is {label!r}, which is none of the arms; name all of them with {arms}"
        raise ArgumentError(text, where=columns.where(wrong[0], roles.arm), label=seen[codes[wrong[0]]])
    return tuple(labels), played


def _same(value: object) -> object:
    return value


def in_order(labels: Iterable[Arm]) -> list[Arm]:
    """Return labels in order: numbers first, then text.

    Examples
    --------
    >>> in_order(["b", 10, "a", 9])
    [9, 10, 'a', 'b']
    """
    return sorted(labels, key=lambda label: (isinstance(label, str), label))


def as_column(labels: list[Arm], seen: Sequence[Arm]) -> list[Arm]:
    """Return labels in the kind that the column has: whole numbers may be given as words."""
    if not seen or not all(isinstance(label, int) for label in seen):
        return labels
    if wrong := [label for label in labels if isinstance(label, str) and not label.lstrip("-").isdecimal()]:
        raise ArgumentError("{arms} has {name!r}, but the table names arms by whole numbers", name=wrong[0])
    return [int(label) for label in labels]


def _with_prices(outcomes: Outcomes, arms: Sequence[Arm]) -> Outcomes:
    """Return outcomes with prices of arms in the kind that their column has."""
    is_whole = all(isinstance(arm, int) for arm in arms)

    def number(arm: Arm) -> Arm:
        return int(arm) if is_whole and str(arm).isdecimal() else arm

    known = {name: {number(arm): price for arm, price in prices.items()} for name, prices in outcomes.known.items()}
    several = outcomes.with_known(known)
    several.check_arms(arms)
    return several


def _check(columns: TableColumns, name: str, values: Float64, good: Bool, fix: str) -> None:
    wrong = np.flatnonzero(~good)
    if wrong.size:
        raise ArgumentError(
            "{where} is {value}; {fix}", where=columns.where(wrong[0], name), value=values[wrong[0]], fix=fix
        )


def _propensities(columns: TableColumns, propensity: str | float | None) -> Float64 | None:
    if not isinstance(propensity, str):
        return None if propensity is None else np.full(columns.n_rows, propensity)
    if propensity == "propensity" and "marginal" in columns:
        conditional = sum(value is False for value in columns.lists("marginal"))
        if conditional:
            text = (
                "{propensity} names 'propensity', which is not over all coins in {n:,} rows, where 'marginal' is "
                "false; decide with propensity='marginal', or with a log, where decisions are to be evaluated"
            )
            raise ArgumentError(text, n=conditional)
    chances = columns.numbers(propensity)
    fix = f"give the probability of the arm, above 0 and at most 1 ({LEAST_CHANCE} or more)"
    _check(columns, propensity, chances, (chances >= LEAST_CHANCE) & (chances <= 1.0 + 1e-9), fix)
    return chances


def _explored(columns: TableColumns, explored: str | Literal[True] | None) -> Bool | None:
    """Read true and false; where neither is said, a step was not explored."""
    if not isinstance(explored, str):
        return None if explored is None else np.ones(columns.n_rows, dtype=np.bool_)
    values = columns.measured(explored)
    values[np.isnan(values)] = 0.0
    _check(columns, explored, values, (values == 0) | (values == 1), "give true or false")
    return values.astype(np.bool_)


def _weights(columns: TableColumns, name: str) -> Float64:
    values = columns.measured(name)
    weights = np.where(np.isnan(values), 1.0, values)
    light = np.flatnonzero(weights < LEAST_WEIGHT)
    if light.size:
        raise InvalidValueError(too_light(columns.where(light[0], name), weights[light[0]]))
    return weights


def _units(columns: TableColumns, roles: Roles) -> tuple[Texts | None, Int64 | None]:
    """Return the units of rows, -1 where one has none, and the epochs of these."""
    if roles.unit is None:
        return None, None
    units, epochs = columns.texts_or_none(roles.unit), np.full(columns.n_rows, -1, dtype=np.int64)
    if roles.epoch is not None:
        values = columns.measured(roles.epoch)
        epochs = np.where(np.isnan(values), -1, values).astype(np.int64)
    return units, epochs


def _eligible(columns: TableColumns, roles: Roles, arms: Sequence[Arm], played: Int64) -> Bool:
    name, places = str(roles.eligible), {str(arm): place for place, arm in enumerate(arms)}
    eligible = np.ones((columns.n_rows, len(arms)), dtype=np.bool_)
    for row, cell in enumerate(columns.lists(name)):
        if is_missing(cell):
            continue
        listed = cell.split(SEPARATOR) if isinstance(cell, str) else cell
        if not isinstance(listed, Iterable):
            raise InvalidTypeError(
                f"{columns.where(row, name)} is {cell!r}; give a list of arms, or text as a{SEPARATOR}b"
            )
        labels = [str(label).strip() for label in listed]
        if unknown := [label for label in labels if label not in places]:
            text = "{where} has {label!r}, which is none of the arms; name all of them with {arms}"
            raise ArgumentError(text, where=columns.where(row, name), label=unknown[0])
        eligible[row] = False
        eligible[row, [places[label] for label in labels]] = True
    wrong = np.flatnonzero(~eligible[np.arange(len(played)), played])
    if wrong.size:
        where, label = columns.where(wrong[0], name), arms[played[wrong[0]]]
        raise ArgumentError("{where} leaves out {label!r}, which was played; correct the row", where=where, label=label)
    return eligible
