"""A compacted log: Parquet with one row a decision, and next to it the events that have no row. Needs pyarrow.

Read as the events that it was made of, in their order and to the last byte; what does not fit a row keeps its line.
Columns that repeat what events say, such as the last reward, are compared with those events by an audit, since people
and `evaluate` read them. Memory holds a batch of rows, and the rewards learned later than the row that is being read.
"""

from __future__ import annotations

import gzip
import heapq
import importlib
import itertools
import json
import math
import os
import struct
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, get_args

from armlet.errors import LogError, load_pyarrow
from armlet.inputs.outcomes import Outcomes
from armlet.log.parts import FIRST, PART, Prices, folded
from armlet.log.reader import log_html
from armlet.record.arms import ArmLabels
from armlet.record.contradictions import Shape
from armlet.record.events import check_event, check_start
from armlet.record.faults import DamagedLineError, MissingFileError, NotALogError, check_ordinary, reading
from armlet.record.jsonl import CHANGED, carried, encode_event, parse, read_lines
from armlet.record.kinds import ACTION_DECIDE, DECIDE, EXPLORATION, LEARN, OPTIONAL
from armlet.record.values import HEAD, Event
from armlet.types import Arm

Labels: TypeAlias = Literal["str", "int", "json"]
Contexts: TypeAlias = Literal["binary", "columns"]

METADATA: Final = b"armlet"
REWARD: Final = ("reward", "weight", "learned_seq", "rewarded_at", "learned_crc", "first_reward")
NOTE: Final = ("outcomes", "source")
OF_OUTCOMES: Final = ("outcomes", "learned")
"""Fields of a layout that one reward does without."""
OF_ACTIONS: Final = ("action_dim", "action_features")
"""Fields of a layout that arms do without."""
Row: TypeAlias = tuple[Event, Event | None, dict[str, Any]]
"""A decision, the event in which its reward was learned, if its columns hold it, and the row."""
_BATCH: Final = 2**12
_ROW, _SIDE = 0, 1  # the sources of events: rows, and what is next to them
_GROUPS: Final = 4  # groups of rows that are kept for decisions of long ago
_PLAIN: Final = ("propensity", "explored", "optimistic", *EXPLORATION, "greedy", "design", "tag")


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

    def schema(self, about: Mapping[str, Any]) -> Any:
        """Return the pyarrow schema, with what the log says of itself as metadata."""
        pa = importlib.import_module("pyarrow")
        label = pa.int64() if self.labels == "int" else pa.string()
        word, time = pa.dictionary(pa.int32(), pa.string()), pa.timestamp("us", tz="UTC")
        x, z = [("x", pa.binary(8 * self.dim))], [("z", pa.list_(pa.float64()))]
        if self.contexts == "columns":
            x = [(f"x.{name}", pa.float64()) for name in self.features]
            z = [(f"z.{name}", pa.float64()) for name in self.action_features]
        table = [("actions", word), ("n_actions", pa.int64())]
        support = [("support", pa.list_(label)), ("support_probabilities", pa.list_(pa.float64()))]
        fields = [
            *(("id", pa.string()), ("seq", pa.int64()), ("decided_at", time), ("t", pa.int64())),
            *x,
            *([] if self.action_dim is None else [*z, *table]),
            *(("eligible", pa.list_(label)), ("arm", label), ("propensity", pa.float64())),
            *([] if self.action_dim is None else support),
            *((name, pa.bool_()) for name in ("explored", "optimistic")),
            *((name, pa.float64()) for name in EXPLORATION),
            *(("greedy", pa.bool_()), ("design", word), ("probabilities", pa.list_(pa.float64())), ("tag", pa.int64())),
            *([("weights", pa.string())] if self.outcomes else []),
            *(("unit", pa.string()), ("epoch", pa.int64()), ("event", pa.string())),
            *((name, pa.float64()) for name in ("reward", "weight", "first_reward")),
            *((PART + name, pa.float64()) for name in self.outcomes),
            *((FIRST + name, pa.float64()) for name in self.learned),
            *(("learned_seq", pa.int64()), ("rewarded_at", time)),
            *((name, pa.string()) for name in ("outcomes", "source")),
            *(("crc", pa.uint32()), ("learned_crc", pa.uint32()), ("line", pa.binary())),
        ]
        unused = {*(() if self.outcomes else OF_OUTCOMES), *(OF_ACTIONS if self.action_dim is None else ())}
        told = {name: value for name, value in asdict(self).items() if name not in unused}
        metadata = {METADATA: json.dumps({"about": dict(about), "layout": told}).encode()}
        return pa.schema(fields, metadata=metadata)

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

    def _holds(self, arm: object) -> bool:
        if self.labels == "json":
            return True
        return type(arm).__name__ == self.labels and (type(arm) is str or -(2**63) <= arm < 2**63)  # type: ignore[operator]

    def _label(self, arm: Arm) -> Arm | None:
        if self.labels == "json":
            return json.dumps(arm, ensure_ascii=False)
        return arm if self._holds(arm) else None

    def row(self, event: Event, crc: int) -> dict[str, Any]:
        """Return the part of a row that a decision makes known."""
        eligible = event["eligible"]
        row = {name: event.get(name) for name in ("id", "t", *_PLAIN, *OPTIONAL) if name != "weights"}
        if self.outcomes:
            row["weights"] = json.dumps(event["weights"]) if "weights" in event else None
        row |= {"seq": event["seq"], "decided_at": event["at"], "arm": self._label(event["arm"]), "crc": crc}
        row["eligible"] = None if eligible is None else [self._label(arm) for arm in eligible]
        return row | self._packed(event["x"]) | ({} if self.action_dim is None else self._action_columns(event))

    def _action_columns(self, event: Event) -> dict[str, Any]:
        z, support = event["z"], event["support"]
        row = {name: event[name] for name in ("actions", "n_actions")} | {"z": z}
        if self.contexts == "columns":
            del row["z"]
            values = [None] * len(self.action_features) if z is None else z
            row |= {f"z.{name}": value for name, value in zip(self.action_features, values, strict=True)}
        row["support"] = None if support is None else [self._label(arm) for arm, _ in support]
        row["support_probabilities"] = None if support is None else [p for _, p in support]
        return row

    def _packed(self, x: Sequence[float] | None) -> dict[str, Any]:
        if self.contexts == "columns":
            values = [None] * self.dim if x is None else x
            return {f"x.{name}": value for name, value in zip(self.features, values, strict=True)}
        return {"x": None if x is None else struct.pack(f"<{self.dim}d", *x)}

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
        eligible = row["eligible"]
        event: Event = {"seq": row["seq"], "kind": "decide", "at": row["decided_at"], "id": row["id"], "t": row["t"]}
        event["x"] = self._unpacked(row)
        if self.action_dim is not None:
            event |= {"z": self._action_of(row), "actions": row["actions"], "n_actions": row["n_actions"]}
        event["eligible"] = None if eligible is None else [self._arm(label) for label in eligible]
        event |= {"arm": self._arm(row["arm"]), "propensity": row["propensity"]}
        if self.action_dim is not None:
            event["support"] = self._support_of(row)
        event |= {name: row[name] for name in _PLAIN[1:-1]}
        if row["probabilities"] is not None:
            event["probabilities"] = row["probabilities"]
        event["tag"] = row["tag"]
        if row.get("weights") is not None:
            event["weights"] = json.loads(row["weights"])
        return event | {name: row[name] for name in ("unit", "epoch", "event") if row[name] is not None}

    def _action_of(self, row: dict[str, Any]) -> list[float] | None:
        if self.contexts == "columns":
            values = [row[f"z.{name}"] for name in self.action_features]
            return None if values and values[0] is None else values
        found: list[float] | None = row["z"]
        return found

    def _support_of(self, row: dict[str, Any]) -> list[list[Any]] | None:
        labels, shares = row["support"], row["support_probabilities"]
        if labels is None and shares is None:
            return None
        return [[self._arm(label), p] for label, p in zip(labels, shares, strict=True)]

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

    def reward_columns(self, told: Rewarded, crc: int | None) -> dict[str, Any]:
        """Return the columns that say what a decision earned, but for those of its outcomes as they are now."""
        row: dict[str, Any] = dict.fromkeys((*REWARD, *(FIRST + name for name in self.learned)))
        first, last = told.first, told.last
        if first is None:
            return row
        is_plain = self.is_plain_learn(first, told.weight)
        row |= {"weight": first["weight"] if is_plain or not self.outcomes else told.weight}
        row |= {"learned_seq": first["seq"], "rewarded_at": first["at"], "learned_crc": crc if is_plain else None}
        if self.outcomes:
            return row | {FIRST + name: first["reward"][name] for name in self.learned if is_plain and last is not None}
        row["reward"] = first["reward"]
        if last is not None:
            row["first_reward"] = first["reward"]
            row["reward"] = {"correct": last.get("new_reward"), "learn": last.get("reward")}.get(last["kind"])
        return row

    def _unpacked(self, row: dict[str, Any]) -> list[float] | None:
        if self.contexts == "columns":
            values = [row[f"x.{name}"] for name in self.features]
            return None if self.dim and values[0] is None else values
        return None if row["x"] is None else list(struct.unpack(f"<{self.dim}d", row["x"]))


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
        found = json.loads(schema.metadata[METADATA])
        about = dict(found["about"])
        told: dict[str, Any] = {k: tuple(v) if type(v) is list else v for k, v in found["layout"].items()}
        layout = Layout(**told)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise NotALogError(f"{name} is not a compacted log of Armlet: its metadata do not say so") from None
    check_start(about, name)
    check_event(about, 0, name)
    layout.check(about, name)
    _check_types(schema, layout.schema({}), name)
    return about, layout


def _check_types(found: Any, wanted: Any, name: str) -> None:
    for field in wanted:
        if found.get_all_field_indices(field.name) != [found.get_field_index(field.name)]:
            raise LogError(f"{name} is damaged: column {field.name} is missing, or there twice")
        here = found.field(field.name).type
        if _plain_type(here) != _plain_type(field.type):
            raise LogError(f"{name} is damaged: column {field.name} is of type {here}, not {field.type}")


def _plain_type(kind: Any) -> Any:
    """Return the type of values: texts may come by their dictionary."""
    pa = importlib.import_module("pyarrow")
    return kind.value_type if pa.types.is_dictionary(kind) else kind


# ---- columns that repeat what events say


def note_columns(note: Event | None) -> dict[str, Any]:
    """Return the columns that hold the last note of a decision."""
    if note is None:
        return dict.fromkeys(NOTE)
    outcomes = json.dumps(note["outcomes"]) if "outcomes" in note else None
    return {"outcomes": outcomes, **{name: note.get(name) for name in NOTE[1:]}}


class _Told:
    """What the events without a row say: of each decision, and of outcomes over time."""

    def __init__(self, lines: Iterator[bytes], name: str, layout: Layout) -> None:
        self._layout = layout
        self._rewards: dict[str, list[Event]] = {}
        self._notes: dict[str, Event] = {}
        self._prices: Prices | None = None
        for line in lines:
            self._take(parse(line, None, name))

    def _take(self, event: Event) -> None:
        kind = event["kind"]
        if kind == "note":
            self._notes[event["id"]] = {field: event[field] for field in NOTE if field in event}
        elif kind in ("learn", "correct", "forget") and "played" not in event:
            self._rewards.setdefault(event["id"], []).append(event)
        elif kind == "start" and self._layout.outcomes:
            self._prices = Prices(event)
        elif self._prices is not None:
            self._prices.take(event)

    def columns(self, decision: Event, reward: Event | None, row: dict[str, Any]) -> dict[str, Any]:
        """Return the columns that a row must have by its events; `reward` is the one that the row itself holds."""
        name = decision["id"]
        told = Rewarded(has_outcomes=self._prices is not None)
        for event in (*(() if reward is None else (reward,)), *self._rewards.get(name, ())):
            told = told.then(event)
        found = self._layout.reward_columns(told, row["learned_crc"]) | note_columns(self._notes.get(name))
        if self._prices is not None:
            found |= self._prices.columns(decision["seq"], decision["arm"], told.parts)
        return found


# ---- reading


class _Stored(NamedTuple):
    """An event as it is stored, to be merged with others by its number."""

    seq: int
    order: int  # in which it was found: of two events of one number
    event: Event
    crc: int | None
    line: bytes | None  # of an event that has one
    source: int


class ParquetLog(ArmLabels):
    """The events of a compacted log."""

    sealed: ClassVar = True
    """Whether its events must be sealed: a property of the reader, never of the file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        _, pq = load_pyarrow()
        self.path = Path(path)
        check_ordinary(self.path, "log")
        with reading(self.name):
            self._file = pq.ParquetFile(self.path, page_checksum_verification=True)
            self._about, self.layout = read_metadata(self._file.schema_arrow, self.name)
        self._groups: OrderedDict[int, dict[str, Event]] = OrderedDict()

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start."""
        return self._about

    def __repr__(self) -> str:
        return f"ParquetLog({str(self.path)!r})"

    def _repr_html_(self) -> str:
        return log_html(repr(self), self.path, lambda: self)

    def __iter__(self) -> Iterator[Event]:
        for _, event in self.with_lines():
            yield event

    def with_lines(self) -> Iterator[tuple[bytes, Event]]:
        """Yield every event with the line that it was; refuse one that is not as it was written."""
        crc = seq = 0
        with reading(self.name):
            for stored in self._ordered():
                event = stored.event
                if stored.seq != seq:
                    why = f"it is missing, or its number is {stored.seq:,}"
                    raise DamagedLineError(self.name, seq, event["kind"], why)
                line, crc = encode_event(event, crc)
                if crc != stored.crc or (stored.line is not None and stored.line != line):
                    raise DamagedLineError(self.name, seq, event["kind"], CHANGED)
                if seq == 0 and line != encode_event(dict(self._about), 0)[0]:
                    raise DamagedLineError(self.name, 0, event["kind"], "the metadata tell of another start")
                yield line, event
                seq += 1
        if seq == 0:
            raise DamagedLineError(self.name, 0, "start", "it is missing")

    def _ordered(self) -> Iterator[_Stored]:
        """Merge rows, the rewards in them and the other events by number."""
        waiting: list[_Stored] = []
        side, order = self._side(), itertools.count()

        def before(seq: float) -> Iterator[_Stored]:
            while waiting and waiting[0].seq < seq:
                stored = heapq.heappop(waiting)
                yield stored
                if stored.source == _SIDE:
                    push_side()

        def push_side() -> None:
            line = next(side, None)
            if line is not None:
                event = parse(line, None, self.name)
                heapq.heappush(waiting, _Stored(event["seq"], next(order), event, carried(line), line, _SIDE))

        push_side()
        for decision, reward, row in self._rows():
            yield from before(row["seq"])
            yield _Stored(row["seq"], next(order), decision, row["crc"], row["line"], _ROW)
            if reward is not None:
                stored = _Stored(reward["seq"], next(order), reward, row["learned_crc"], None, _ROW)
                heapq.heappush(waiting, stored)
        yield from before(math.inf)

    def check_columns(self) -> None:
        """Refuse rows whose columns say something else than the events of which they are copies."""
        with reading(self.name):
            told = _Told(self._side(), self.name, self.layout)
            for decision, reward, row in self._rows():
                wanted = told.columns(decision, reward, row)
                if row["line"] is not None:
                    wanted |= self.layout.row(decision, row["crc"])
                for column, value in wanted.items():
                    if row[column] != value:
                        why = f"its column {column} is {row[column]!r}, but by its events {value!r}"
                        raise DamagedLineError(self.name, row["seq"], "decide", why)

    def _side(self) -> Iterator[bytes]:
        return side_lines(self.path, f"it holds the events of {self.name} that have no row")

    def _rows(self) -> Iterator[Row]:
        for batch in self._file.iter_batches(batch_size=_BATCH):
            yield from self.layout.read_events(batch, self.name)

    def find(self, name: str) -> Event | None:
        """Find a decision by its id; None if it is not there."""
        t = int(name.partition("-")[0])
        with reading(self.name):
            place = self._file.schema_arrow.get_field_index("t")
            for group in range(self._file.num_row_groups):
                known = self._file.metadata.row_group(group).column(place).statistics
                if known is None or not known.has_min_max or known.min <= t <= known.max:
                    found = self._group(group).get(name)
                    if found is not None:
                        return found
        return None

    def _group(self, group: int) -> dict[str, Event]:
        if group not in self._groups:
            batches = self._file.read_row_group(group).to_batches()
            rows = (row for batch in batches for row in self.layout.read_events(batch, self.name))
            self._groups[group] = {event["id"]: event for event, _, _ in rows}
            if len(self._groups) > _GROUPS:
                self._groups.popitem(last=False)
        self._groups.move_to_end(group)
        return self._groups[group]


def events_beside(path: Path) -> Path:
    """Return the path of the events of a compacted log that have no row.

    Examples
    --------
    >>> events_beside(Path("decisions.parquet")).name
    'decisions.events.jsonl.gz'
    """
    return path.with_name(f"{path.stem}.events.jsonl.gz")


def side_lines(path: Path, what: str) -> Iterator[bytes]:
    """Yield the lines next to a compacted log: of the events that have no row, the start first."""
    beside = events_beside(path)
    if not beside.exists():
        raise MissingFileError(f"{beside} is missing: {what}; bring it along")
    check_ordinary(beside, "log")
    with reading(beside.name), gzip.open(beside, "rb") as file:
        yield from read_lines(file, beside.name)
