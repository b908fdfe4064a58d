"""The events of a log: what each holds, as a line of JSON and back, and what is raised where one cannot be read.

An event has a number, a kind, a time and fields of its kind. The first is the start, which says whose decisions follow.
Its `schema` is counted up whenever an older reader would misread what is written; a log says the least that it needs,
and fields that a reader does not know are left alone. `KINDS` is the one table of what an event may hold, `VARIANTS` of
how those of actions with features differ: writers and readers check against them.

Every line ends with a check value of itself and all lines before it. The check value, CRC-32 carried on from line to
line, finds and names a line that was changed, dropped or moved by accident; what proves a log against others is its
seals and its replay. A line is read only if the event in it is written as the same bytes: nothing can be in a line that
its reader does not see. O(bytes).
"""

from __future__ import annotations

import base64
import contextlib
import copy
import hashlib
import hmac
import itertools
import json
import re
import reprlib
import struct
import zlib
from collections.abc import Iterator, Mapping
from gzip import GzipFile
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from armlet.disk import decode_model
from armlet.errors import ArgumentError, ArmletError, LogError
from armlet.inputs.budget import Budget
from armlet.inputs.outcomes import Outcomes
from armlet.kernel import json_line
from armlet.log.values import (
    ADDED,
    ARMS,
    BUDGET,
    COLUMNS,
    CONTROL,
    COUNT,
    DIGEST,
    DIM,
    ELIGIBLE,
    EPOCH,
    FEATURE_RANGES,
    FILL,
    HASH,
    ID,
    LABEL,
    LABELS,
    NUMBER,
    NUMBERS,
    OBJECT,
    OBJECTIVE,
    OUTCOMES,
    PAIR,
    POLICY,
    RANGE,
    REWARD,
    SHADOW,
    SHARE,
    SHARES,
    SUPPORT,
    TABLE,
    TEXT,
    TEXTS,
    TRUTH,
    TRUTHS,
    WEIGHT,
    WEIGHTS,
    WHOLE,
    Check,
    Optional,
    or_null,
)
from armlet.types import Arm, Bool, Int64

FORMAT: Final = "armlet log"
SCHEMA: Final = 3
ACTION_SCHEMA: Final = 4
"""Of logs of actions with features, which have tables of them and name no arms."""

Event: TypeAlias = dict[str, Any]
"""`seq`, `kind`, `at` and the fields of its kind: plain JSON types."""

HEAD: Final = ("seq", "kind", "at")
EXPLORATION: Final = ("exploration_rate", "exploration_propensity", "min_exploration_probability")
RESERVED: Final = frozenset({*HEAD, "crc", "id"})
"""Names that a note cannot give to fields of its own."""
EVEN: Final = 1e-9
"""By which the sum of probabilities may differ from 1."""
LAST: Final = 253_402_300_800_000_000 - 1
"""The last microsecond of the year 9999, after which calendars give up."""
PIECE: Final = 2**20  # bytes of a line that are read before its beginning is looked at
LONGEST: Final = 2**30  # bytes of a line: a batch of rows is one event
CHANGED: Final = "its check value differs: it was changed, dropped or moved after it was written"
_MARK: Final = b',"crc":"'
_TAIL: Final = len(_MARK) + 8 + len(b'"}\n')
_BEGINNING: Final = b'{"seq":0,"kind":"start","at":'


@runtime_checkable
class Events(Protocol):
    """What can be read as a log: what the start says, and the events in order, the start first."""

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start."""

    def __iter__(self) -> Iterator[Event]:
        """Yield the events, from the first one on, each time."""


# ---- errors


class InvalidEventError(LogError):
    """An event holds what its kind cannot hold."""

    def __init__(self, name: str, seq: int, kind: str, why: str) -> None:
        super().__init__(f"event {seq:,} of {name} ({kind}) is not valid: {why}", seq)
        self.at, self.kind, self.why = seq, kind, why


class DamagedLineError(InvalidEventError):
    """A line is not the one that was written in its place."""


class NotALogError(LogError):
    """A file is not a log: nothing says that it ever was one."""


class MissingFileError(LogError, FileNotFoundError):
    """A log, or a file that belongs to it, is not there."""


FAULTS: Final = (
    OSError,
    EOFError,
    ValueError,  # of json, UTF-8, base64 and most of Arrow
    TypeError,
    LookupError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    NotImplementedError,
    struct.error,
    zlib.error,
)
"""What damaged bytes make readers raise: files, JSON, gzip, Arrow, numpy and the bandit that plays an event."""
REASON: Final = 300  # characters of a reason: it may hold any text of a file


@contextlib.contextmanager
def reading(name: str, done: str = "read") -> Iterator[None]:
    """Raise a LogError about the file where something else would be raised; `done` is what could not be.

    Examples
    --------
    >>> with reading("a.parquet"):
    ...     {}["seq"]
    Traceback (most recent call last):
    armlet.errors.LogError: a.parquet cannot be read: 'seq' is missing
    """
    try:
        yield
    except (ArmletError, ArgumentError):
        raise
    except Exception as error:
        if not is_fault(error):
            raise
        raise LogError(f"{name} cannot be {done}: {explain(error)}") from error


def is_fault(error: Exception) -> bool:
    """Whether damaged bytes can be the reason for an error."""
    return isinstance(error, FAULTS) or type(error).__module__.startswith("pyarrow")


def explain(error: Exception) -> str:
    """Return the message of an error in one line, a missing field included."""
    if isinstance(error, KeyError) and not isinstance(error, ArmletError):
        told = error.args[0] if error.args else ""
        is_name = isinstance(told, str) and " " not in told  # else a sentence, such as that there is no such arm
        return (f"{told!r} is missing" if is_name else str(told))[:REASON]
    if isinstance(error, UnicodeEncodeError):
        text = reprlib.repr(error.object)
        return f"{text} cannot be written as UTF-8; give other text"
    if isinstance(error, RecursionError):
        return "it nests too deeply"
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error).strip().partition("\n")[0][:REASON] or type(error).__name__


def check_ordinary(path: Path, what: str) -> None:
    """Refuse a path where there is no ordinary file to be read."""
    if not path.exists():
        raise MissingFileError(f"{what} is {path}, which does not exist")
    if path.is_dir():
        raise NotALogError(f"{what} is {path}, a directory; give a file")
    if not path.is_file():
        raise NotALogError(f"{what} is {path}, a device or a pipe; give an ordinary file")


# ---- kinds

Fields: TypeAlias = Mapping[str, Check | Optional]

_DECIDE: Final[Fields] = {
    "id": ID,
    "t": COUNT,
    "x": or_null(NUMBERS),
    "eligible": or_null(ELIGIBLE),
    "arm": LABEL,
    "propensity": SHARE,
    "explored": or_null(TRUTH),
    "optimistic": or_null(TRUTH),
    **dict.fromkeys(EXPLORATION, or_null(SHARE)),
    "greedy": or_null(TRUTH),
    "design": or_null(TEXT),
    "probabilities": Optional(SHARES),
    "tag": WHOLE,
    "weights": Optional(WEIGHTS),
    "unit": Optional(TEXT),
    "epoch": Optional(COUNT),
    "event": Optional(TEXT),
}
_GUARDED: Final[Fields] = {"control": Optional(CONTROL), "shadow": Optional(SHADOW)}  # of loops with guards
_ACTION_DECIDE: Final[Fields] = {
    **{name: _DECIDE[name] for name in ("id", "t", "x")},
    "z": or_null(NUMBERS),
    "actions": HASH,
    "n_actions": COUNT,
    **{name: _DECIDE[name] for name in ("eligible", "arm", "propensity")},
    "support": or_null(SUPPORT),
    **{name: _DECIDE[name] for name in ("explored", "optimistic", *EXPLORATION, "greedy", "design", "tag", "event")},
}
_START: Final[Fields] = {
    "format": TEXT,
    "schema": COUNT,
    "arms": ARMS,
    "dim": DIM,
    "digest": or_null(TEXT),
    "features": Optional(or_null(TEXTS)),
    "retired": Optional(LABELS),
    "objective": Optional(OBJECTIVE),
    "normalize": Optional(or_null(TEXT)),
    "units": Optional(or_null(TEXT)),
    "reward_range": Optional(or_null(RANGE)),
    "feature_range": Optional(FEATURE_RANGES),
    "epoch": Optional(EPOCH),
    "epoch_start": Optional(PAIR),
    "epoch_price": Optional(NUMBER),
    "outcomes": Optional(OUTCOMES),
    "budget": Optional(BUDGET),
    "spending": Optional(NUMBERS),
    "policy": Optional(or_null(POLICY)),
    "version": Optional(TEXT),
    "t": Optional(COUNT),
    "start_model": Optional(DIGEST),
    "origin": Optional(TEXT),
    "guards": Optional(OBJECT),
}
_ACTION_START: Final[Fields] = {
    **{name: check for name, check in _START.items() if name not in ("arms", "retired")},
    "action_dim": DIM,
    "action_features": Optional(or_null(TEXTS)),
}
_ACTIONS: Final[Fields] = {
    "hash": HASH,
    "names": Optional(or_null(TEXTS)),
    "labels": Optional(ARMS),
    "Z": Optional(TABLE),
    "from": Optional(HASH),
    "add": Optional(ADDED),
    "remove": Optional(LABELS),
    "name": Optional(TEXT),
}
_ABOUT: Final[Fields] = {"id": ID, "decision": Optional(OBJECT), "billed": Optional(NUMBER)}
_REWARD: Final[Fields] = {**_ABOUT, "reward": REWARD, "weight": WEIGHT}
_PLAYED: Final[Fields] = {"played": Optional(LABEL)}  # instead of the arm that was decided: no reward of that one
_LEARN: Final[Fields] = {**_REWARD, "expired": Optional(TRUTH), **_PLAYED}
_CORRECT: Final[Fields] = {**_ABOUT, "old_reward": REWARD, "new_reward": REWARD, "weight": Optional(WEIGHT)}
_BILL: Final[Fields] = {**_ABOUT, "cost": NUMBER, "reward": Optional(REWARD), "weight": Optional(WEIGHT), **_PLAYED}
_ROWS: Final[Fields] = {"X": TABLE, "arms": LABELS, "rewards": COLUMNS, "weights": NUMBERS, "steps": COUNT}
_NOTE: Final[Fields] = {
    "id": ID,
    "outcomes": Optional(or_null(OBJECT)),
    "source": Optional(or_null(TEXT)),
}

_REPLACE: Final[Fields] = {
    "policy": Optional(POLICY),
    "features": Optional(TEXTS),
    "fill": Optional(FILL),
    "encoder": Optional(OBJECT),
    "reward_range": Optional(RANGE),
    "feature_range": Optional(or_null(FEATURE_RANGES)),
    "outcomes": Optional(OUTCOMES),
    "budget": Optional(or_null(BUDGET)),
    "guards": Optional(OBJECT),
}
REPLACED: Final = ("policy", "features", "reward_range", "feature_range", "outcomes", "budget", "guards")
"""What a replacement may be of: one of these."""

KINDS: Final[Mapping[str, Fields]] = {
    "start": _START,
    "actions": _ACTIONS,
    "remove_table": {"name": TEXT},
    "decide": {**_DECIDE, **_GUARDED},
    "learn": _LEARN,
    "correct": {**_CORRECT, **_PLAYED},
    "forget": {**_REWARD, "weight": Optional(WEIGHT)},
    "expire": _ABOUT,
    "bill": _BILL,
    "add_arm": {"arm": LABEL},
    "retire_arm": {"arm": LABEL},
    "restore_arm": {"arm": LABEL},
    "remove_arm": {"arm": LABEL},
    "advance": {"t": COUNT},
    "partial_fit": {**_ROWS, "explored": TRUTHS},
    "learn_logged": {"columns": OBJECT},
    "merge": {"model": TEXT},
    "resync": {"model": TEXT},
    "replace": _REPLACE,
    "checkpoint": {"digest": TEXT, "version": Optional(TEXT), "seal": Optional(DIGEST), "closed": Optional(TRUTH)},
    "note": _NOTE,
}
"""What an event of a kind holds. A new kind is one line here, and one in `replaying.PLAYS` or in `UNPLAYED`."""

VARIANTS: Final[Mapping[str, tuple[str, Fields]]] = {
    "start": ("action_dim", _ACTION_START),
    "decide": ("actions", {**_ACTION_DECIDE, "shadow": Optional(SHADOW), "deferred": Optional(TRUTH)}),  # of loops
}
"""Of kinds that hold something else in a log of actions with features: the field by which they are told, and what."""

DECIDE: Final = tuple(_DECIDE)
"""The fields of a decision, in the order in which they are written."""
ACTION_DECIDE: Final = tuple(_ACTION_DECIDE)
"""Those of a decision among actions with features."""
OPTIONAL: Final = frozenset(name for name, check in _DECIDE.items() if isinstance(check, Optional))
"""Left out where there are none: the probabilities of all arms, a dial, a unit, and what others call the decision."""
LEARN: Final = ("id", "reward", "weight")

ARM_CHANGES: Final = frozenset({"add_arm", "retire_arm", "restore_arm", "remove_arm", "merge", "resync"})
"""Kinds of events that change which arms there are."""
OF_ARMS: Final = ARM_CHANGES - {"merge", "resync"} | {"bill", "partial_fit"}
"""Kinds that a log of actions with features has not: its tables say what can be played, and it has no budget."""
OF_TABLES: Final = frozenset({"actions", "remove_table"})
"""Kinds that only a log of actions with features has."""
UNPLAYED: Final = frozenset({"start", "checkpoint", "note"})
"""Kinds of events that change nothing in a bandit."""


def _prepared(fields: Fields) -> tuple[tuple[str, Check, bool], ...]:
    return tuple(
        (name, check.check if isinstance(check, Optional) else check, isinstance(check, Optional))
        for name, check in fields.items()
    )


_CHECKS: Final = {kind: _prepared(fields) for kind, fields in KINDS.items()}
_VARIANT_CHECKS: Final = {kind: (told_by, _prepared(fields)) for kind, (told_by, fields) in VARIANTS.items()}
_MISSING: Final = object()


class Shape(NamedTuple):
    """How many values contexts have, and, in a log of actions with features, actions."""

    dim: int
    action_dim: int | None = None

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Shape:
        """Return the shape that a start tells."""
        return cls(about["dim"], about.get("action_dim"))


def shape_after(event: Event, shape: Shape | None) -> Shape | None:
    """Return the shape of a log after an event.

    Examples
    --------
    >>> shape_after({"kind": "replace", "features": ["age", "height"], "fill": {"height": 0.0}}, Shape(1))
    Shape(dim=2, action_dim=None)
    """
    if event["kind"] == "start":
        return Shape.of(event)
    if event["kind"] == "resync" and shape is not None:
        with contextlib.suppress(ArmletError, ValueError, LookupError):  # else its replay refuses it
            return shape._replace(dim=_header(event)["dim"])
    if shape is None or event["kind"] != "replace" or "features" not in event:
        return shape
    return shape._replace(dim=len(event["features"]))


def check_event(event: Event, seq: int, name: str, shape: Shape | None = None) -> None:
    """Refuse an event that its kind does not allow, or, given its shape, the log.

    Examples
    --------
    >>> check_event({"seq": 3, "kind": "advance", "at": 5, "t": -1}, 3, "a.jsonl")
    Traceback (most recent call last):
    armlet.log.events.InvalidEventError: event 3 of a.jsonl (advance) is not valid: t is -1, not a whole number ...
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
    for field, (holds, words), optional in _checks_of(event):
        value = event.get(field, _MISSING)
        if value is _MISSING:
            if not optional:
                raise InvalidEventError(name, seq, kind, f"{field} is missing")
        elif not holds(value):
            raise InvalidEventError(name, seq, kind, f"{field} is {_short(value)}, not {words}")
    if why := _misplaced(event, shape) or _contradiction(event, shape):
        raise InvalidEventError(name, seq, kind, why)


def _checks_of(event: Event) -> tuple[tuple[str, Check, bool], ...]:
    kind = event["kind"]
    told_by, checks = _VARIANT_CHECKS.get(kind, ("kind", _CHECKS[kind]))
    return checks if told_by in event else _CHECKS[kind]


def check_fields(kind: str, fields: Mapping[str, Any], name: str) -> None:
    """Refuse what a writer is to add as an event, before it has a number."""
    check_event({"seq": 0, "kind": kind, "at": 0, **fields}, 0, name)


def _misplaced(event: Event, shape: Shape | None) -> str | None:
    """Return why an event cannot be in a log, if so: some are of arms, and some of actions with features."""
    kind = event["kind"]
    if shape is None or not (kind in VARIANTS or kind in OF_ARMS or kind in OF_TABLES):
        return None
    is_of_actions = kind in OF_TABLES or (kind in VARIANTS and VARIANTS[kind][0] in event)
    if is_of_actions == (shape.action_dim is not None):
        return None
    has, about = ("arms", "actions with features") if is_of_actions else ("actions with features", "arms")
    return f"it is about {about}, but the log has {has}"


def _contradiction(event: Event, shape: Shape | None) -> str | None:
    """Return how two fields of an event contradict each other, if they do."""
    kind = event["kind"]
    if kind == "decide":
        if event["id"][:-17].lstrip("0") != str(event["t"]).lstrip("0"):
            return f"its id is {event['id']}, but its step {event['t']}"
        if shape is not None and event["x"] is not None and len(event["x"]) != shape.dim:
            return f"x has {len(event['x'])} values, but contexts have {shape.dim}"
        return _impossible_choice(event, shape) if "actions" in event else None
    if kind == "start":
        return _impossible_start(event) or _impossible_outcomes(event)
    if kind == "actions":
        return _impossible_table(event, shape)
    if kind == "correct":
        return _other_outcomes(event["old_reward"], event["new_reward"])
    if kind == "replace":
        return _unclear_replacement(event) or _impossible_outcomes(event)
    return None


def _impossible_start(event: Event) -> str | None:
    schema = ACTION_SCHEMA if "action_dim" in event else SCHEMA
    if event["schema"] != schema:
        return f"schema is {event['schema']}, but a log with {'actions' if schema > SCHEMA else 'arms'} has {schema}"
    for prefix in ("", "action_"):
        features, dim = event.get(f"{prefix}features"), event.get(f"{prefix}dim", 0)
        if features is not None and (len(features) != dim or len(set(features)) != len(features)):
            told = f"{prefix}features has {len(features)} names, some of them alike"
            return f"{told}, or {prefix}dim, {dim}, is another number"
    if not set(event.get("retired", ())) <= set(event.get("arms", ())):
        return "retired names an arm that is not among arms"
    return None


def _impossible_choice(event: Event, shape: Shape | None) -> str | None:
    """Return why nobody can have chosen that action with that probability, if so."""
    z, eligible, arm = event["z"], None if event["eligible"] is None else set(event["eligible"]), event["arm"]
    if shape is not None and z is not None and len(z) != shape.action_dim:
        return f"z has {len(z)} values, but actions have {shape.action_dim}"
    if eligible is not None and arm not in eligible:
        return f"arm is {arm!r}, which is not among eligible"
    if event["support"] is None:
        n = event["n_actions"] if eligible is None else len(eligible)
        is_even = abs(n * event["propensity"] - 1.0) <= EVEN
        return None if is_even else f"propensity is {event['propensity']}, but one of {n} that are alike has 1/{n}"
    support = dict(event["support"])
    if support.get(arm) != event["propensity"]:
        return f"propensity is {event['propensity']}, but by support {support.get(arm)}"
    if abs(sum(support.values()) - 1.0) > EVEN:
        return f"the probabilities of support add up to {sum(support.values())}"
    outside = None if eligible is None else next((label for label in support if label not in eligible), None)
    return None if outside is None else f"support has {outside!r}, which is not among eligible"


def _impossible_table(event: Event, shape: Shape | None) -> str | None:
    """Return why an event is not a table of actions, whole or by what changed, if so."""
    given = {name for name in ("labels", "Z", "from", "add", "remove") if name in event}
    if given not in ({"labels", "Z"}, {"from", "add", "remove"}):
        return f"it has {' and '.join(sorted(given)) or 'no table'}; give labels and Z, or from, add and remove"
    labels, Z = (event if "Z" in event else event["add"])["labels"], (event if "Z" in event else event["add"])["Z"]
    if len(labels) != len(Z):
        return f"it has {len(labels)} labels, but {len(Z)} rows in Z"
    widths = {*map(len, Z)} | (set() if shape is None or shape.action_dim is None else {shape.action_dim})
    if len(widths) > 1:
        return f"Z has rows of {' and '.join(map(str, sorted(widths)))} values" + (
            "" if shape is None else f", but actions have {shape.action_dim}"
        )
    return None


def _impossible_outcomes(event: Event) -> str | None:
    """Return what is wrong with the outcomes of a bandit or with its budget, if something is."""
    try:
        outcomes = Outcomes.from_dict(event["outcomes"]) if "outcomes" in event else None
        budget = Budget.from_dict(event["budget"]) if event.get("budget") is not None else None
        if budget is not None and event["kind"] == "start":
            budget.check(outcomes)
    except ArmletError as error:
        return explain(error)
    return None


def _other_outcomes(old: Any, new: Any) -> str | None:
    if (old.keys() if type(old) is dict else None) == (new.keys() if type(new) is dict else None):
        return None
    return f"old_reward is {_short(old)} and new_reward {_short(new)}, which are not of the same outcomes"


def _unclear_replacement(event: Event) -> str | None:
    """Return why nobody can tell what is replaced by what, if so."""
    given = [name for name in REPLACED if name in event]
    if len(given) != 1:
        told = " and ".join(given) or "nothing"
        return f"it has {told}; one of {', '.join(REPLACED[:-1])} and {REPLACED[-1]} is replaced"
    names = event.get("features")
    if names is None:
        extra = [name for name in ("fill", "encoder") if name in event]
        return f"it has {extra[0]} without features" if extra else None
    if not names or len(set(names)) != len(names):
        return f"features has {len(names)} names, some of them alike, or none"
    wrong = [name for name in event.get("fill", ()) if name not in names]
    return f"fill has {_short(wrong[0])}, which is not among features" if wrong else None


def _short(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of too many digits, or lists in lists
        return "too long to be told"
    return text if len(text) <= 80 else f"{text[:80]}..."


def check_start(event: Event, name: str) -> None:
    """Refuse a first event that starts no log, or one of another schema than this version reads.

    Examples
    --------
    >>> check_start({"seq": 0, "kind": "start", "format": "armlet log", "schema": 1}, "old.jsonl")
    Traceback (most recent call last):
    armlet.errors.LogError: old.jsonl is a log of schema 1; this version reads 3 and 4 only: use the one that wrote it
    """
    if event.get("kind") != "start" or event.get("format") != FORMAT:
        raise LogError(f"{name} is not an Armlet log: its first line is not a start", 0)
    if event.get("schema") not in (SCHEMA, ACTION_SCHEMA):
        found, reads = _short(event.get("schema")), f"{SCHEMA} and {ACTION_SCHEMA}"
        raise LogError(
            f"{name} is a log of schema {found}; this version reads {reads} only: use the one that wrote it", 0
        )


# ---- lines


def encode_event(event: Event, crc: int) -> tuple[bytes, int]:
    r"""Return the line of an event that follows one of check value `crc`, and its own check value.

    Examples
    --------
    >>> encode_event({"seq": 3, "kind": "retire_arm", "at": 1700000000000000, "arm": "north"}, 0)[0]
    b'{"seq":3,"kind":"retire_arm","at":1700000000000000,"arm":"north","crc":"42a5055b"}\n'
    """
    fields = {name: value for name, value in event.items() if name not in HEAD}
    return json_line(event["seq"], event["kind"], event["at"], fields, crc)


def encode_checked(event: Event, seq: int, crc: int, name: str, shape: Shape | None = None) -> tuple[bytes, int]:
    """Encode an event of any origin, or refuse it by name."""
    check_event(event, seq, name, shape)
    return _encode(event, crc, name)


def _encode(event: Event, crc: int, name: str) -> tuple[bytes, int]:
    try:
        return encode_event(event, crc)
    except (ValueError, TypeError) as error:
        why = f"it cannot be written: {explain(error)}"
        raise InvalidEventError(name, event["seq"], event["kind"], why) from error


# ---- reading


def read_lines(file: IO[bytes] | GzipFile, name: str) -> Iterator[bytes]:
    """Yield the lines of a file, the last one perhaps without its end; refuse a file that is not a log."""
    for seq in itertools.count():
        line = file.readline(PIECE)
        if seq == 0:
            check_head(line, name)
        elif not line:
            return
        if len(line) == PIECE and not line.endswith(b"\n"):
            line += _rest(file, line, seq, name)
        yield line


def check_head(data: bytes, name: str) -> None:
    """Refuse the beginning of a file that is not that of a log."""
    if not data:
        raise LogError(f"{name} is empty: no bandit has begun it yet", 0)
    if not data.startswith(_BEGINNING[: len(data)]) and FORMAT.encode() not in data:  # else a log that was changed
        raise NotALogError(
            f"{name} is not an Armlet log: its first line is not an event; for other formats: armlet log import"
        )


def is_beginning(file: IO[bytes]) -> bool:
    """Whether a file is the beginning of a log, with nothing after its first line."""
    line = file.readline(LONGEST)
    return bool(line) and line.startswith(_BEGINNING[: len(line)]) and not file.read(1)


def _rest(file: IO[bytes] | GzipFile, begin: bytes, seq: int, name: str) -> bytes:
    if not begin.startswith(b'{"seq":'):
        raise DamagedLineError(name, seq, "not an event", f"it is not an event, and longer than {PIECE:,} bytes")
    rest = file.readline(LONGEST)
    if len(rest) == LONGEST:
        raise DamagedLineError(name, seq, _kind_of(begin), f"it is longer than {LONGEST:,} bytes")
    return rest


def carried(line: bytes) -> int:
    """Return the check value that a line ends with, unchecked; -1 if it ends with none."""
    if line[-_TAIL : -_TAIL + len(_MARK)] != _MARK:
        return -1
    try:
        return int(line[-11:-3], 16)
    except ValueError:
        return -1


def decode(line: bytes, seq: int, crc: int, name: str, shape: Shape | None = None) -> tuple[Event, int]:
    r"""Read the line of event `seq`, which follows one of check value `crc`; refuse any other.

    Examples
    --------
    >>> line = encode_event({"seq": 0, "kind": "advance", "at": 5, "t": 7}, 0)[0]
    >>> decode(line, 0, 0, "a.jsonl")[0]
    {'seq': 0, 'kind': 'advance', 'at': 5, 't': 7}
    >>> decode(line.replace(b"7", b"8"), 0, 0, "a.jsonl")
    Traceback (most recent call last):
    armlet.log.events.DamagedLineError: event 0 of a.jsonl (advance) is not valid: its check value differs: ...
    """
    found = zlib.crc32(line[:-_TAIL], crc)
    if line[-_TAIL:] != b',"crc":"%08x"}\n' % found:
        raise DamagedLineError(name, seq, _kind_of(line), CHANGED)
    return parse(line, seq, name, shape), found


def parse(line: bytes, seq: int | None, name: str, shape: Shape | None = None) -> Event:
    """Read the event of a line without comparing its check value; of any number, if `seq` is None."""
    event: Event
    try:
        event = json.loads(line.decode())
        number = event["seq"] if seq is None else seq
        if event["kind"] == "start":
            check_start(event, name)
        del event["crc"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedLineError(name, seq or 0, _kind_of(line), f"it is not an event: {explain(error)}") from error
    check_event(event, number, name, shape)
    if _encode(event, 0, name)[0][:-_TAIL] != line[:-_TAIL]:
        why = "it would not be written with these bytes: a key is there twice, or the spelling is not Armlet's"
        raise DamagedLineError(name, number, event["kind"], why)
    return event


def _kind_of(line: bytes) -> str:
    found = re.search(rb'"kind":"(\w{1,20})"', line[:200])
    return found[1].decode(errors="replace") if found else "not an event"


# ---- seals


class Sealer:
    """Seals lines: a seal is what only the holder of the start model can write under a stretch of a log.

    It is HMAC-SHA-256 of the lines since the seal before, that line included, so that seals hang together, and of the
    line that bears it, as it would be without. The key comes from the start model, which holds the seed and is kept
    apart from the log.

    Examples
    --------
    >>> one, other = Sealer(b"model"), Sealer(b"model")
    >>> one.add(b"a"), one.add(b"b"), other.add(b"ab")
    (None, None, None)
    >>> one.seal(b"c") == other.seal(b"c")
    True
    """

    def __init__(self, start: bytes) -> None:
        self._key = hashlib.sha256(b"armlet log seal\n" + start).digest()
        self.restart()

    def restart(self) -> None:
        """Begin a stretch."""
        self._made = hmac.new(self._key, digestmod="sha256")

    def add(self, lines: bytes) -> None:
        """Take lines."""
        self._made.update(lines)

    def with_lines(self, lines: bytes) -> Sealer:
        """Return one that has taken these lines too."""
        other = copy.copy(self)
        other._made = self._made.copy()
        other.add(lines)
        return other

    def next_stretch(self, line: bytes) -> Sealer:
        """Return one of the stretch that begins with a line."""
        other = copy.copy(self)
        other.restart()
        other.add(line)
        return other

    def seal(self, last: bytes) -> str:
        """Return the seal of the lines of this stretch and of the one that is to bear it, which is not added."""
        made = self._made.copy()
        made.update(last)
        return made.hexdigest()[:32]


# ---- arms


def _header(event: Event) -> Any:
    """Return the header of the model that an event holds."""
    return decode_model(base64.b64decode(event["model"]))[0]


class Roster:
    """All arms that a log has had so far, each under one index, and which of them may be played."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        if "arms" not in about:
            raise LogError("the log is of actions with features, which have tables in place of arms", 0)
        self.labels: list[Arm] = list(about["arms"])
        self.places: dict[Arm, int] = {label: place for place, label in enumerate(self.labels)}
        self._order = list(range(len(self.labels)))  # as the bandit counts them at this moment
        self._active = {*self._order} - {self.places[label] for label in about.get("retired") or ()}

    def apply(self, event: Event) -> None:
        """Follow an event; those that change no arm are ignored."""
        match event["kind"]:
            case "add_arm":
                self._add(event["arm"], active=True)
            case "retire_arm":
                self._active.discard(self._place(event))
            case "restore_arm":
                self._active.add(self._place(event))
            case "remove_arm":
                place = self._place(event)
                self._order.remove(place)
                self._active.discard(place)
            case "merge":
                header = _header(event)
                here = {self.labels[place] for place in self._order}
                for label in header["arms"]:
                    if label not in here:
                        self._add(label, active=label not in header["retired"])

            case "resync":
                header = _header(event)
                self._order.clear()
                self._active.clear()
                for label in header["arms"]:
                    self._add(label, active=label not in header["retired"])

    def _place(self, event: Event) -> int:
        place = self.places.get(event["arm"])
        if place is None or place not in self._order:
            raise LogError(f"event {event['seq']:,} is about arm {event['arm']!r}, which is not there", event["seq"])
        return place

    def _add(self, label: Arm, *, active: bool) -> None:
        if label not in self.places:
            self.places[label] = len(self.labels)
            self.labels.append(label)
        if self.places[label] not in self._order:
            self._order.append(self.places[label])
        if active:
            self._active.add(self.places[label])

    def active(self) -> Bool:
        """Return which arms may be played now if an event names none."""
        plays = np.zeros(len(self.labels), dtype=np.bool_)
        plays[list(self._active)] = True
        return plays

    @property
    def order(self) -> Int64:
        """The indices of the arms in the order in which the bandit counts them now."""
        return np.array(self._order, dtype=np.int64)


class ArmLabels:
    """Mixed into events: the labels of their arms."""

    @property
    def arms(self: Events) -> tuple[Arm, ...]:
        """All arms that there have been, in the order that columns of an evaluation have. O(events)."""
        events = iter(self)
        roster = Roster(next(events))
        for event in events:
            if event["kind"] in ARM_CHANGES:
                roster.apply(event)
        return tuple(roster.labels)
