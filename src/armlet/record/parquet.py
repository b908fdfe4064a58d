"""The Parquet form of a log: one row a decision, with what came of it, and back. Needs pyarrow.

How a field of a decision stands in columns is in the table of kinds: by its type, or by the name of another form.
"""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from armlet.errors import LogError
from armlet.inputs.outcomes import Outcomes
from armlet.record.block import Block
from armlet.record.contradictions import Shape
from armlet.record.events import check_event, check_start
from armlet.record.faults import NotALogError
from armlet.record.jsonl import parse
from armlet.record.kinds import ACTION_DECIDE, DECIDE, DECISION, LEARN, OPTIONAL, Field
from armlet.record.outcomes import FIRST, PART, Prices, folded
from armlet.record.values import HEAD, Event
from armlet.types import Arm, Bool

Labels: TypeAlias = Literal["str", "int", "json"]
Contexts: TypeAlias = Literal["binary", "columns"]

METADATA: Final = b"armlet"
REWARD: Final = ("reward", "weight", "learned_seq", "rewarded_at", "learned_crc", "first_reward")
OF_OUTCOMES: Final = ("outcomes", "learned")
"""Fields of a layout that one reward does without."""
OF_ACTIONS: Final = ("action_dim", "action_features")
"""Fields of a layout that arms do without."""
Row: TypeAlias = tuple[Event, Event | None, dict[str, Any]]
"""A decision, the event in which its reward was learned, if its columns hold it, and the row."""
_PLAIN: Final[Mapping[type, str]] = {int: "int64", float: "double", bool: "bool", str: "string"}


def column_of(field: Field) -> str:
    """Return how a field stands in columns: the name of a type of Arrow's, or of another form."""
    return field.column or _PLAIN[field.check.types[0]]


_PACKED: Final = ("label", "labels", "pairs", "vector", "weights")  # forms that are no type of Arrow's
_FORMS: Final = {name: form for name, field in DECISION.items() if (form := column_of(field)) in _PACKED}


class Rewarded(NamedTuple):
    """What events say of the reward of one decision: the first, and the last of those after it."""

    first: Event | None = None
    last: Event | None = None
    weight: float | None = None  # that it was learned with last
    parts: Mapping[str, float] = {}
    has_outcomes: bool = False

    def then(self, event: Event) -> Rewarded:
        """Return what is told after one more event."""
        weight = event["weight"] if event["kind"] == "learn" else self.weight
        parts = folded(self.parts, event) if self.has_outcomes else self.parts
        if event["kind"] == "learn" and self.first is None and self.last is None:
            return self._replace(first=event, weight=weight, parts=parts)
        return self._replace(last=event, weight=weight, parts=parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How events become rows."""

    dim: int
    features: tuple[str, ...]
    labels: Labels
    contexts: Contexts
    outcomes: tuple[str, ...] = ()  # all of them, where there are several
    learned: tuple[str, ...] = ()  # those of them that no price list has
    action_dim: int | None = None  # of actions with features
    action_features: tuple[str, ...] = ()

    @property
    def shape(self) -> Shape:
        """How many values contexts and actions have."""
        return Shape(self.dim, self.action_dim)

    @property
    def _names(self) -> Iterable[str]:
        """The fields that have columns: those of arms are there in logs of actions, too, and empty."""
        return DECIDE if self.action_dim is None else DECISION

    def schema(self, about: Mapping[str, Any]) -> Any:
        """Return the pyarrow schema, with what the log says of itself as metadata."""
        pa = importlib.import_module("pyarrow")
        time = pa.timestamp("us", tz="UTC")
        first, *others = (pair for name in self._names for pair in self._columns(name, DECISION[name], pa))
        fields = [
            *(first, ("seq", pa.int64()), ("decided_at", time), *others),
            *((name, pa.float64()) for name in ("reward", "weight", "first_reward")),
            *((PART + name, pa.float64()) for name in self.outcomes),
            *((FIRST + name, pa.float64()) for name in self.learned),
            *(("learned_seq", pa.int64()), ("rewarded_at", time)),
            *((name, pa.string()) for name in ("outcomes", "source")),
            *(("crc", pa.uint32()), ("learned_crc", pa.uint32()), ("line", pa.binary())),
        ]
        unused = {*(() if self.outcomes else OF_OUTCOMES), *(OF_ACTIONS if self.action_dim is None else ())}
        settings = {name: value for name, value in asdict(self).items() if name not in unused}
        metadata = {METADATA: json.dumps({"about": dict(about), "layout": settings}).encode()}
        return pa.schema(fields, metadata=metadata)

    def _columns(self, name: str, field: Field, pa: Any) -> list[tuple[str, Any]]:
        """Return the names and types of the columns of a field."""
        numbers, word = pa.list_(pa.float64()), pa.dictionary(pa.int32(), pa.string())
        label = pa.int64() if self.labels == "int" else pa.string()
        match column_of(field):
            case "vector" if self.contexts == "columns":
                return [(f"{name}.{feature}", pa.float64()) for feature in self.features_of(name)]
            case "vector":
                return [(name, pa.binary(8 * self.dim) if name == "x" else numbers)]
            case "pairs":
                return [(name, pa.list_(label)), (f"{name}_probabilities", numbers)]
            case "weights":
                return [(name, pa.string())] if self.outcomes else []
            case column:
                return [
                    (
                        name,
                        {"label": label, "labels": pa.list_(label), "numbers": numbers, "word": word}.get(column)
                        or pa.type_for_alias(column),
                    )
                ]

    def features_of(self, name: str) -> tuple[str, ...]:
        """Return what the values of contexts are called, or those of actions."""
        return self.features if name == "x" else self.action_features

    def check(self, about: Mapping[str, Any], name: str) -> None:
        """Refuse a layout that is not that of a log which starts so."""
        same = type(self.dim) is int and (self.dim, self.features) == (about["dim"], feature_names(about))
        same = same and (self.outcomes, self.learned) == names_of(about)
        actions = (about.get("action_dim"), feature_names(about, "action_"))
        same = same and type(self.action_dim) is type(actions[0]) and (self.action_dim, self.action_features) == actions
        if not same or self.labels not in get_args(Labels) or self.contexts not in get_args(Contexts):
            raise LogError(f"{name} is damaged: its layout is not that of its start")

    # ---- events to rows

    def fits(self, event: Event) -> bool:
        """Whether a row can hold a decision so that the same line can be written again."""
        known = DECIDE if self.action_dim is None else ACTION_DECIDE
        names = tuple(name for name in known if name in event or name not in OPTIONAL)
        arms = (event["arm"], *(event["eligible"] or ()), *(arm for arm, _ in event.get("support") or ()))
        if ("weights" in event and not self.outcomes) or self._is_lost(event):
            return False
        return tuple(event) == HEAD + names and all(map(self._holds, arms))  # the schema has checked the types

    def _is_lost(self, event: Event) -> bool:
        """Whether no column could tell that a context, or an action, was not kept from one that has no values."""
        no_x, no_z = event["x"] is None, self.action_dim is not None and event["z"] is None
        return self.contexts == "columns" and ((no_x and self.dim == 0) or (no_z and self.action_dim == 0))

    def fit(self, block: Block) -> Bool:
        """Return which decisions of a block have rows that hold them."""
        fit: Bool = np.ones(len(block.t), np.bool_)
        if self.contexts == "columns":
            fit &= block.has_x | (self.dim > 0)
            fit &= block.has_z if self.action_dim == 0 else True
        lacks = np.array([not self._holds(label) for label in block.labels], np.bool_)
        if lacks.any():
            fit &= ~lacks[block.arm]
            for places, ends in ((block.eligible, block.eligible_ends), (block.support, block.support_ends)):
                rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
                fit[rows[lacks[places]]] = False
        return fit

    def _holds(self, arm: object) -> bool:
        if self.labels == "json":
            return True
        return type(arm).__name__ == self.labels and (type(arm) is str or -(2**63) <= arm < 2**63)  # type: ignore[operator]

    def written_label(self, arm: Arm) -> Arm | None:
        """Return a label as it stands in columns; None if those cannot hold it."""
        if self.labels == "json":
            return json.dumps(arm, ensure_ascii=False)
        return arm if self._holds(arm) else None

    def row(self, event: Event, crc: int) -> dict[str, Any]:
        """Return the part of a row that a decision makes known."""
        row: dict[str, Any] = {"seq": event["seq"], "decided_at": event["at"], "crc": crc}
        for name in self._names:
            if (form := _FORMS.get(name)) is None:
                row[name] = event.get(name)
            else:
                row |= self._written(name, form, event.get(name))
        return row

    def _written(self, name: str, form: str, value: Any) -> dict[str, Any]:
        """Return the columns of a value."""
        match form:
            case "label":
                return {name: self.written_label(value)}
            case "labels":
                return {name: None if value is None else [self.written_label(arm) for arm in value]}
            case "pairs":
                labels = None if value is None else [self.written_label(arm) for arm, _ in value]
                return {name: labels, f"{name}_probabilities": None if value is None else [p for _, p in value]}
            case "vector" if self.contexts == "columns":
                features = self.features_of(name)
                values = [None] * len(features) if value is None else value
                return {f"{name}.{feature}": each for feature, each in zip(features, values, strict=True)}
            case "vector" if name == "x" and value is not None:
                return {name: struct.pack(f"<{self.dim}d", *value)}
            case "weights":
                return {name: None if value is None else json.dumps(value)} if self.outcomes else {}
            case _:
                return {name: value}

    # ---- rows to events

    def read_events(self, batch: Any, name: str) -> Iterator[Row]:
        """Yield the decision of every row, its reward's event if it has one, and the row: all as events must be."""
        pa = importlib.import_module("pyarrow")
        columns = {}
        for field in batch.schema.names:
            column = batch.column(field)
            columns[field] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            decision, reward = self._decision(row, name), self.learn_event(row)
            for event in (decision, reward):
                if event is not None:
                    check_event(event, _number(event), name, self.shape)
            if (decision["seq"], decision["kind"]) != (row["seq"], "decide"):
                raise LogError(f"{name} is damaged: row {row['seq']} holds the line of another event")
            yield decision, reward, row

    def _decision(self, row: dict[str, Any], name: str) -> Event:
        if row["line"] is not None:
            return parse(row["line"], None, name)
        event: Event = {"seq": row["seq"], "kind": "decide", "at": row["decided_at"]}
        for field in DECIDE if self.action_dim is None else ACTION_DECIDE:
            form = _FORMS.get(field)
            value = row[field] if form is None else self._value(field, form, row)
            if value is not None or field not in OPTIONAL:
                event[field] = value
        return event

    def _value(self, name: str, form: str, row: dict[str, Any]) -> Any:
        """Return a value that columns have."""
        match form:
            case "label":
                return self._arm(row[name])
            case "labels":
                return None if row[name] is None else [self._arm(label) for label in row[name]]
            case "pairs":
                labels, shares = row[name], row[f"{name}_probabilities"]
                if labels is None and shares is None:
                    return None
                return [[self._arm(label), p] for label, p in zip(labels, shares, strict=True)]
            case "vector" if self.contexts == "columns":
                values = [row[f"{name}.{feature}"] for feature in self.features_of(name)]
                return None if values and values[0] is None else values
            case "vector" if name == "x" and row[name] is not None:
                return list(struct.unpack(f"<{self.dim}d", row[name]))
            case "weights":
                return None if row.get(name) is None else json.loads(row[name])
            case _:
                return row[name]

    def _arm(self, label: Any) -> Arm:
        arm: Arm = json.loads(label) if self.labels == "json" else label
        return arm

    # ---- rewards

    def is_plain_learn(self, event: Event, weight: float | None = None) -> bool:
        """Whether the columns of a row can hold a reward's event.

        That is one number; or all outcomes at once, in order, with the `weight` that counts in the end.
        """
        if tuple(event) != HEAD + LEARN or type(event["weight"]) is not float:
            return False
        if self.outcomes:
            return tuple(event["reward"]) == self.learned and event["weight"] == weight
        return type(event["reward"]) is float

    def learn_event(self, row: dict[str, Any]) -> Event | None:
        """Return the event in which a row's reward was learned first, if its columns hold it."""
        if row["learned_crc"] is None:
            return None
        head = {"seq": row["learned_seq"], "kind": "learn", "at": row["rewarded_at"]}
        if self.outcomes:
            kind = PART if row[FIRST + self.learned[0]] is None else FIRST
            reward: Any = {name: row[kind + name] for name in self.learned}
        else:
            reward = row["reward"] if row["first_reward"] is None else row["first_reward"]
        return {**head, "id": row["id"], "reward": reward, "weight": row["weight"]}

    def later_columns(
        self, decision: Event, rewarded: Rewarded, crc: int | None, note: Event | None, prices: Prices | None
    ) -> dict[str, Any]:
        """Return the columns that repeat what later events say of a decision: its reward, and its last note."""
        note = note or {}
        outcomes = json.dumps(note["outcomes"]) if "outcomes" in note else None
        row = self._reward_columns(rewarded, crc) | {"outcomes": outcomes, "source": note.get("source")}
        return row if prices is None else row | prices.columns(decision["seq"], decision["arm"], rewarded.parts)

    def _reward_columns(self, rewarded: Rewarded, crc: int | None) -> dict[str, Any]:
        """Return the columns that say what a decision earned, but for those of its outcomes as they are now."""
        row: dict[str, Any] = dict.fromkeys((*REWARD, *(FIRST + name for name in self.learned)))
        first, last = rewarded.first, rewarded.last
        if first is None:
            return row
        is_plain = self.is_plain_learn(first, rewarded.weight)
        row |= {"weight": first["weight"] if is_plain or not self.outcomes else rewarded.weight}
        row |= {"learned_seq": first["seq"], "rewarded_at": first["at"], "learned_crc": crc if is_plain else None}
        if self.outcomes:
            return row | {FIRST + name: first["reward"][name] for name in self.learned if is_plain and last is not None}
        row["reward"] = first["reward"]
        if last is not None:
            row["first_reward"] = first["reward"]
            row["reward"] = {"correct": last.get("new_reward"), "learn": last.get("reward")}.get(last["kind"])
        return row


def _number(event: Event) -> int:
    seq = event["seq"]
    return seq if type(seq) is int and seq >= 0 else 0


def feature_names(about: Mapping[str, Any], whose: Literal["", "action_"] = "") -> tuple[str, ...]:
    """Return what columns of features are called: by their names, or by their numbers."""
    features = about.get(f"{whose}features")
    return tuple(features if features is not None else map(str, range(about.get(f"{whose}dim") or 0)))


def names_of(about: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of all outcomes of a log, and of those that are learned; none where there is one reward."""
    if "outcomes" not in about:
        return (), ()
    outcomes = Outcomes.from_dict(about["outcomes"])
    return tuple(outcomes.weights), outcomes.learned


def read_metadata(schema: Any, name: str) -> tuple[Mapping[str, Any], Layout]:
    """Read what a compacted log says of itself; its columns must be those that it says it has."""
    try:
        metadata = json.loads(schema.metadata[METADATA])
        about = dict(metadata["about"])
        columns = metadata["layout"].items()
        settings: dict[str, Any] = {name: tuple(value) if type(value) is list else value for name, value in columns}
        layout = Layout(**settings)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise NotALogError(f"{name} is not a compacted log of Armlet: its metadata do not say so") from None
    check_start(about, name)
    check_event(about, 0, name)
    layout.check(about, name)
    _check_types(schema, layout.schema({}), name)
    return about, layout


def _check_types(schema: Any, wanted: Any, name: str) -> None:
    for field in wanted:
        if schema.get_all_field_indices(field.name) != [schema.get_field_index(field.name)]:
            raise LogError(f"{name} is damaged: column {field.name} is missing, or there twice")
        here = schema.field(field.name).type
        if _plain_type(here) != _plain_type(field.type):
            raise LogError(f"{name} is damaged: column {field.name} is of type {here}, not {field.type}")


def _plain_type(kind: Any) -> Any:
    """Return the type of values: texts may come by their dictionary."""
    pa = importlib.import_module("pyarrow")
    return kind.value_type if pa.types.is_dictionary(kind) else kind
