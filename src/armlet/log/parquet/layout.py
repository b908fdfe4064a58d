"""The columns of a compacted log, and events as rows of them; what does not fit a row keeps its line. O(rows)."""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from armlet.errors import LogError
from armlet.log.faults import NotALogError
from armlet.log.lines import parse
from armlet.log.schema import DECIDE, HEAD, LEARN, OPTIONAL, Event, check_event, check_start
from armlet.types import Arm

Labels: TypeAlias = Literal["str", "int", "json"]
Contexts: TypeAlias = Literal["binary", "columns"]

METADATA: Final = b"armlet"
_FLOAT: Final = (float, type(None))
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "id": (str,),
    "t": (int,),
    "x": (list, type(None)),
    "eligible": (list, type(None)),
    "arm": (str, int),
    "propensity": (float,),
    "explored": (bool, type(None)),
    "rate": _FLOAT,
    "given_exploring": _FLOAT,
    "smallest": _FLOAT,
    "greedy": (bool, type(None)),
    "design": (str, type(None)),
    "probabilities": (list,),
    "tag": (int,),
    "event": (str,),
}
_PLAIN: Final = ("propensity", "explored", "rate", "given_exploring", "smallest", "greedy", "design", "tag")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How events become rows."""

    dim: int
    features: tuple[str, ...]
    labels: Labels
    contexts: Contexts

    def schema(self, about: Mapping[str, Any]) -> Any:
        """Give the pyarrow schema, with what the log says of itself as metadata."""
        pa = importlib.import_module("pyarrow")
        label = pa.int64() if self.labels == "int" else pa.string()
        word, time = pa.dictionary(pa.int32(), pa.string()), pa.timestamp("us", tz="UTC")
        x = [("x", pa.binary(8 * self.dim))]
        if self.contexts == "columns":
            x = [(f"x.{name}", pa.float64()) for name in self.features]
        fields = [
            *(("id", pa.string()), ("seq", pa.int64()), ("decided_at", time), ("t", pa.int64())),
            *x,
            *(("eligible", pa.list_(label)), ("arm", label), ("propensity", pa.float64()), ("explored", pa.bool_())),
            *((name, pa.float64()) for name in ("rate", "given_exploring", "smallest")),
            *(("greedy", pa.bool_()), ("design", word), ("probabilities", pa.list_(pa.float64())), ("tag", pa.int64())),
            ("event", pa.string()),
            *((name, pa.float64()) for name in ("reward", "weight", "first_reward")),
            *(("learned_seq", pa.int64()), ("rewarded_at", time)),
            *((name, pa.string()) for name in ("outcomes", "source", "unit")),
            *(("epoch", pa.int64()), ("crc", pa.uint32()), ("learned_crc", pa.uint32()), ("line", pa.binary())),
        ]
        metadata = {METADATA: json.dumps({"about": dict(about), "layout": asdict(self)}).encode()}
        return pa.schema(fields, metadata=metadata)

    def check(self, about: Mapping[str, Any], name: str) -> None:
        """Refuse a layout that is not that of a log which starts so."""
        features = about.get("features")
        named = tuple(features) if features is not None else tuple(str(i) for i in range(about["dim"]))
        same = type(self.dim) is int and (self.dim, self.features) == (about["dim"], named)
        if not same or self.labels not in get_args(Labels) or self.contexts not in get_args(Contexts):
            raise LogError(f"{name} is damaged: its layout is not that of its start")

    # ---- events to rows

    def fits(self, event: Event) -> bool:
        """Say whether a row can hold a decision so that the same line can be written again."""
        names = tuple(name for name in DECIDE if name in event or name not in OPTIONAL)
        if tuple(event) != HEAD + names or any(type(event[name]) not in _TYPES[name] for name in names):
            return False
        x, eligible = event["x"], event["eligible"] or []
        floats = [*(x or []), *event.get("probabilities", [])]
        return (
            (x is None or len(x) == self.dim)
            and all(type(value) is float for value in floats)
            and all(self._holds(arm) for arm in (event["arm"], *eligible))
        )

    def _holds(self, arm: object) -> bool:
        if self.labels == "json":
            return True
        return type(arm).__name__ == self.labels and (type(arm) is str or -(2**63) <= arm < 2**63)  # type: ignore[operator]

    def _label(self, arm: Arm) -> Arm | None:
        if self.labels == "json":
            return json.dumps(arm, ensure_ascii=False)
        return arm if self._holds(arm) else None

    def row(self, event: Event, crc: int) -> dict[str, Any]:
        """Give the part of a row that a decision makes known."""
        eligible = event["eligible"]
        row = {name: event.get(name) for name in ("id", "t", *_PLAIN, *OPTIONAL)}
        row |= {"seq": event["seq"], "decided_at": event["at"], "arm": self._label(event["arm"]), "crc": crc}
        row["eligible"] = None if eligible is None else [self._label(arm) for arm in eligible]
        return row | self._packed(event["x"])

    def _packed(self, x: Sequence[float] | None) -> dict[str, Any]:
        if self.contexts == "columns":
            values = [None] * self.dim if x is None else x
            return {f"x.{name}": value for name, value in zip(self.features, values, strict=True)}
        return {"x": None if x is None else struct.pack(f"<{self.dim}d", *x)}

    # ---- rows to events

    def read_events(self, batch: Any, name: str) -> Iterator[tuple[Event, Event | None, dict[str, Any]]]:
        """Give the decision of every row, its reward's event if it has one, and the row: all as events must be."""
        pa = importlib.import_module("pyarrow")
        columns = {}
        for field in batch.schema.names:
            column = batch.column(field)
            columns[field] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            decision, reward = self._decision(row, name), learn_event(row)
            for event in (decision, reward):
                if event is not None:
                    check_event(event, _number(event), name, self.dim)
            if (decision["seq"], decision["kind"]) != (row["seq"], "decide"):
                raise LogError(f"{name} is damaged: row {row['seq']} holds the line of another event")
            yield decision, reward, row

    def _decision(self, row: dict[str, Any], name: str) -> Event:
        if row["line"] is not None:
            return parse(row["line"], None, name)
        eligible = row["eligible"]
        event: Event = {"seq": row["seq"], "kind": "decide", "at": row["decided_at"], "id": row["id"], "t": row["t"]}
        event["x"] = self._unpacked(row)
        event["eligible"] = None if eligible is None else [self._arm(label) for label in eligible]
        event["arm"] = self._arm(row["arm"])
        event |= {name: row[name] for name in _PLAIN[:-1]}
        if row["probabilities"] is not None:
            event["probabilities"] = row["probabilities"]
        event["tag"] = row["tag"]
        if row["event"] is not None:
            event["event"] = row["event"]
        return event

    def _arm(self, label: Any) -> Arm:
        arm: Arm = json.loads(label) if self.labels == "json" else label
        return arm

    def _unpacked(self, row: dict[str, Any]) -> list[float] | None:
        if self.contexts == "columns":
            values = [row[f"x.{name}"] for name in self.features]
            return None if self.dim and values[0] is None else values
        return None if row["x"] is None else list(struct.unpack(f"<{self.dim}d", row["x"]))


def _number(event: Event) -> int:
    seq = event["seq"]
    return seq if type(seq) is int and seq >= 0 else 0


def is_plain_learn(event: Event) -> bool:
    """Say whether the columns of a row can hold a reward's event."""
    return tuple(event) == HEAD + LEARN and type(event["reward"]) is type(event["weight"]) is float


def learn_event(row: dict[str, Any]) -> Event | None:
    """Give the event in which a row's reward was learned first, if its columns hold it."""
    if row["learned_crc"] is None:
        return None
    reward = row["reward"] if row["first_reward"] is None else row["first_reward"]
    head = {"seq": row["learned_seq"], "kind": "learn", "at": row["rewarded_at"]}
    return {**head, "id": row["id"], "reward": reward, "weight": row["weight"]}


def read_metadata(schema: Any, name: str) -> tuple[Mapping[str, Any], Layout]:
    """Read what a compacted log says of itself; its columns must be those that it says it has."""
    try:
        found = json.loads(schema.metadata[METADATA])
        about = dict(found["about"])
        layout = Layout(**{**found["layout"], "features": tuple(found["layout"]["features"])})
    except (KeyError, TypeError, ValueError, RecursionError):
        raise NotALogError(f"{name} is not a compacted log of Armlet: its metadata do not say so") from None
    check_start(about, name)
    check_event(about, 0, name)
    layout.check(about, name)
    _check_columns(schema, layout.schema({}), name)
    return about, layout


def _check_columns(found: Any, wanted: Any, name: str) -> None:
    for field in wanted:
        if found.get_all_field_indices(field.name) != [found.get_field_index(field.name)]:
            raise LogError(f"{name} is damaged: column {field.name} is missing, or there twice")
        here = found.field(field.name).type
        if _plain_type(here) != _plain_type(field.type):
            raise LogError(f"{name} is damaged: column {field.name} is of type {here}, not {field.type}")


def _plain_type(kind: Any) -> Any:
    """Give the type of values: texts may come by their dictionary."""
    pa = importlib.import_module("pyarrow")
    return kind.value_type if pa.types.is_dictionary(kind) else kind
