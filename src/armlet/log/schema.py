"""The schema of a log: events, each with a number, a kind, a time and fields of its kind.

The first event is the start, which says whose decisions follow. Its `schema` is counted up whenever an older reader
would misread what is written; fields that a reader does not know are left alone. `KINDS` is the one table of what an
event may hold: writers and readers check against it. O(values of an event).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from armlet.errors import LogError
from armlet.inputs.columns import LARGEST

FORMAT: Final = "armlet log"
SCHEMA: Final = 2

Event: TypeAlias = dict[str, Any]
"""`seq`, `kind`, `at` and the fields of its kind: plain JSON types."""

HEAD: Final = ("seq", "kind", "at")
EXPLORATION: Final = ("exploration_rate", "exploration_propensity", "min_exploration_probability")
RESERVED: Final = frozenset({*HEAD, "crc", "id"})
"""Names that a note cannot give to fields of its own."""
LAST: Final = 253_402_300_800_000_000 - 1
"""The last microsecond of the year 9999, after which calendars give up."""
MOST: Final = 2**63 - 1
WIDEST: Final = 2**20
"""Values of a context: the sums of a wider one fit no machine."""


class InvalidEventError(LogError):
    """An event holds what its kind cannot hold."""

    def __init__(self, name: str, seq: int, kind: str, why: str) -> None:
        super().__init__(f"event {seq:,} of {name} ({kind}) is not valid: {why}", seq)
        self.at, self.kind, self.why = seq, kind, why


# ---- values


class Check(NamedTuple):
    """What a value must be, in code and in words."""

    holds: Callable[[Any], bool]
    words: str


class Optional(NamedTuple):
    """A field that may be left out."""

    check: Check


def _or_null(check: Check) -> Check:
    holds = check.holds
    return Check(lambda value: value is None or holds(value), f"{check.words}, or null")


def _list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and all(map(holds, value))


def _is_numbers(value: object) -> bool:
    """Whether a value is a list of numbers; a context is one, so this is quick."""
    if type(value) is not list or not set(map(type, value)) <= _FLOATS:
        return False
    return not value or (min(value) >= -LARGEST and max(value) <= LARGEST)


def _is_label(value: object) -> bool:
    return type(value) is str or type(value) is int


def _is_real(value: object) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= MOST)


def _is_share(value: object) -> bool:
    return type(value) is float and 0.0 <= value <= 1.0


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_id(value: object) -> bool:
    return type(value) is str and _ID(value) is not None and int(value[:-17]) <= MOST


def _is_arms(value: object) -> bool:
    return bool(value) and _is_labels(value) and len(set(value)) == len(value)  # type: ignore[call-overload,arg-type]


def _is_policy(value: object) -> bool:
    return type(value) is dict and type(value.get("name")) is str and type(value.get("settings", {})) is dict


_is_labels: Final = _list_of(_is_label)
_FLOATS: Final = {float}
_NUMBERS: Final = "numbers, each with a point or an exponent and up to 1e40 in size"
_ID: Final = re.compile(r"[0-9]{1,19}-[0-9a-f]{16}").fullmatch
_HEX: Final = re.compile(r"[0-9a-f]+").fullmatch

ID: Final = Check(_is_id, "a step and 16 hexadecimal digits, such as 12-00ff00ff00ff00ff")
COUNT: Final = Check(lambda value: type(value) is int and 0 <= value <= MOST, "a whole number from 0 to 2^63 - 1")
WHOLE: Final = Check(lambda value: type(value) is int and -MOST - 1 <= value <= MOST, "a whole number of 64 bits")
NUMBER: Final = Check(
    lambda value: type(value) is float and -LARGEST <= value <= LARGEST,
    "a number with a point or an exponent, up to 1e40 in size",
)
WEIGHT: Final = Check(lambda value: type(value) is float and 0.0 < value <= LARGEST, "a number above 0, with a point")
SHARE: Final = Check(_is_share, "a number from 0.0 to 1.0")
TRUTH: Final = Check(lambda value: type(value) is bool, "true or false")
TEXT: Final = Check(_is_text, "a text")
DIGEST: Final = Check(lambda value: type(value) is str and _HEX(value) is not None, "hexadecimal digits")
LABEL: Final = Check(_is_label, "a text or a whole number, as arms are named")
NUMBERS: Final = Check(_is_numbers, f"a list of {_NUMBERS}")
SHARES: Final = Check(_list_of(_is_share), "a list of numbers from 0.0 to 1.0")
TEXTS: Final = Check(_list_of(_is_text), "a list of texts")
LABELS: Final = Check(_is_labels, "a list of arms")
ELIGIBLE: Final = Check(lambda value: bool(value) and _is_labels(value), "a list of at least one arm")
ARMS: Final = Check(_is_arms, "a list of at least one arm, no two alike")
TABLE: Final = Check(_list_of(_is_numbers), f"a list of rows of {_NUMBERS}")
RANGE: Final = Check(lambda value: _list_of(_is_real)(value) and len(value) == 2, "two numbers")
DIM: Final = Check(lambda value: type(value) is int and 0 <= value <= WIDEST, f"a whole number from 0 to {2**20:,}")
OBJECT: Final = Check(lambda value: type(value) is dict, "an object")
POLICY: Final = Check(_is_policy, "an object with a name and settings")
TRUTHS: Final = Check(_list_of(TRUTH.holds), "a list of true and false")
OBJECTIVE: Final = Check(lambda value: value in ("max", "min"), "max or min")

# ---- kinds

Fields: TypeAlias = Mapping[str, Check | Optional]

_DECIDE: Final[Fields] = {
    "id": ID,
    "t": COUNT,
    "x": _or_null(NUMBERS),
    "eligible": _or_null(ELIGIBLE),
    "arm": LABEL,
    "propensity": SHARE,
    "explored": _or_null(TRUTH),
    **dict.fromkeys(EXPLORATION, _or_null(SHARE)),
    "greedy": _or_null(TRUTH),
    "design": _or_null(TEXT),
    "probabilities": Optional(SHARES),
    "tag": WHOLE,
    "event": Optional(TEXT),
}
_START: Final[Fields] = {
    "format": TEXT,
    "schema": COUNT,
    "arms": ARMS,
    "dim": DIM,
    "digest": _or_null(TEXT),
    "features": Optional(_or_null(TEXTS)),
    "retired": Optional(LABELS),
    "objective": Optional(OBJECTIVE),
    "normalize": Optional(_or_null(TEXT)),
    "units": Optional(_or_null(TEXT)),
    "reward_range": Optional(_or_null(RANGE)),
    "policy": Optional(_or_null(POLICY)),
    "version": Optional(TEXT),
    "t": Optional(COUNT),
    "start_model": Optional(DIGEST),
    "origin": Optional(TEXT),
}
_REWARD: Final[Fields] = {"id": ID, "reward": NUMBER, "weight": WEIGHT, "decision": Optional(OBJECT)}
_LEARN: Final[Fields] = {**_REWARD, "expired": Optional(TRUTH)}
_CORRECT: Final[Fields] = {"id": ID, "old_reward": NUMBER, "new_reward": NUMBER, "weight": Optional(WEIGHT)}
_ROWS: Final[Fields] = {"X": TABLE, "arms": LABELS, "rewards": NUMBERS, "weights": NUMBERS, "steps": COUNT}
_NOTE: Final[Fields] = {
    "id": ID,
    "outcomes": Optional(_or_null(OBJECT)),
    "source": Optional(_or_null(TEXT)),
    "unit": Optional(_or_null(TEXT)),
    "epoch": Optional(_or_null(WHOLE)),
}

KINDS: Final[Mapping[str, Fields]] = {
    "start": _START,
    "decide": _DECIDE,
    "learn": _LEARN,
    "correct": {**_CORRECT, "decision": Optional(OBJECT)},
    "forget": {**_REWARD, "weight": Optional(WEIGHT)},
    "expire": {"id": ID, "decision": Optional(OBJECT)},
    "add_arm": {"arm": LABEL},
    "retire_arm": {"arm": LABEL},
    "restore_arm": {"arm": LABEL},
    "remove_arm": {"arm": LABEL},
    "advance": {"t": COUNT},
    "partial_fit": {**_ROWS, "explored": TRUTHS},
    "learn_logged": {"columns": OBJECT},
    "merge": {"model": TEXT},
    "replace": {"policy": POLICY},
    "checkpoint": {"digest": TEXT, "version": Optional(TEXT), "seal": Optional(DIGEST), "closed": Optional(TRUTH)},
    "note": _NOTE,
}
"""What an event of a kind holds. A new kind is one line here, and one in `replaying.PLAYS` or in `UNPLAYED`."""

DECIDE: Final = tuple(_DECIDE)
"""The fields of a decision, in the order in which they are written."""
OPTIONAL: Final = frozenset(name for name, check in _DECIDE.items() if isinstance(check, Optional))
"""Left out where they are not known: the probabilities of all arms, and what the environment calls the decision."""
LEARN: Final = ("id", "reward", "weight")

UNPLAYED: Final = frozenset({"start", "checkpoint", "note"})
"""Kinds of events that change nothing in a bandit."""

_CHECKS: Final = {
    kind: tuple(
        (name, (check.check if isinstance(check, Optional) else check).holds, isinstance(check, Optional))
        for name, check in fields.items()
    )
    for kind, fields in KINDS.items()
}
_MISSING: Final = object()


def check_event(event: Event, seq: int, name: str, dim: int | None = None) -> None:
    """Refuse an event that its kind does not allow.

    Examples
    --------
    >>> check_event({"seq": 3, "kind": "advance", "at": 5, "t": -1}, 3, "a.jsonl")
    Traceback (most recent call last):
    armlet.log.schema.InvalidEventError: event 3 of a.jsonl (advance) is not valid: t is -1, not a whole number ...
    """
    if type(event) is not dict:
        raise InvalidEventError(name, seq, "not an event", "it is not an object")
    kind, at = event.get("kind"), event.get("at")
    if type(kind) is not str or kind not in _CHECKS:
        raise InvalidEventError(name, seq, "unknown", f"its kind is {_short(kind)}, which this version does not know")
    if event.get("seq") != seq or type(event["seq"]) is not int:
        raise InvalidEventError(name, seq, kind, f"its number is {_short(event.get('seq'))}")
    if type(at) is not int or not 0 <= at <= LAST:
        raise InvalidEventError(name, seq, kind, f"at is {_short(at)}, not microseconds since 1970")
    for field, holds, optional in _CHECKS[kind]:
        value = event.get(field, _MISSING)
        if value is _MISSING:
            if not optional:
                raise InvalidEventError(name, seq, kind, f"{field} is missing")
        elif not holds(value):
            raise InvalidEventError(name, seq, kind, f"{field} is {_short(value)}, not {_words(kind, field)}")
    if why := _contradiction(event, dim):
        raise InvalidEventError(name, seq, kind, why)


def check_fields(kind: str, fields: Mapping[str, Any], name: str) -> None:
    """Refuse what a writer is to add as an event, before it has a number."""
    check_event({"seq": 0, "kind": kind, "at": 0, **fields}, 0, name)


def _contradiction(event: Event, dim: int | None) -> str | None:
    """Return how two fields of an event contradict each other, if they do."""
    kind = event["kind"]
    if kind == "decide":
        if event["id"][:-17].lstrip("0") != str(event["t"]).lstrip("0"):
            return f"its id is {event['id']}, but its step {event['t']}"
        if dim is not None and event["x"] is not None and len(event["x"]) != dim:
            return f"x has {len(event['x'])} values, but contexts have {dim}"
    elif kind == "start":
        features, retired = event.get("features"), event.get("retired", [])
        if features is not None and (len(features) != event["dim"] or len(set(features)) != len(features)):
            return f"features has {len(features)} names, some of them alike, or dim, {event['dim']}, is another number"
        if not set(retired) <= set(event["arms"]):
            return "retired names an arm that is not among arms"
    return None


def _words(kind: str, field: str) -> str:
    check = KINDS[kind][field]
    return (check.check if isinstance(check, Optional) else check).words


def _short(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of too many digits, or lists in lists
        return "too long to be told"
    return text if len(text) <= 80 else f"{text[:80]}..."


@runtime_checkable
class Events(Protocol):
    """What can be read as a log: what the start says, and the events in order, the start first."""

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start."""

    def __iter__(self) -> Iterator[Event]:
        """Yield the events, from the first one on, each time."""


def check_start(event: Event, name: str) -> None:
    """Refuse a first event that starts no log, or one of another schema than this version reads.

    Examples
    --------
    >>> check_start({"seq": 0, "kind": "start", "format": "armlet log", "schema": 1}, "old.jsonl")
    Traceback (most recent call last):
    armlet.errors.LogError: old.jsonl is a log of schema 1; this version reads schema 2 only: use the one that wrote it
    """
    if event.get("kind") != "start" or event.get("format") != FORMAT:
        raise LogError(f"{name} is not an Armlet log: its first line is not a start", 0)
    if event.get("schema") != SCHEMA:
        found = _short(event.get("schema"))
        raise LogError(
            f"{name} is a log of schema {found}; this version reads schema {SCHEMA} only: use the one that wrote it", 0
        )
