"""The one table of what can happen to a bandit: an event kind is one entry of `KINDS`.

An entry has the fields of such events, in a log and in a row of a store, each with its check and its text in the
documentation; how fields can contradict each other; and which arms there are after it. A log has a `schema`, counted up
whenever an older reader would misread what is written; a log says the least that it needs, and fields that a reader
does not know are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from armlet.record import contradictions, plays
from armlet.record.contradictions import Shape
from armlet.record.plays import Play
from armlet.record.values import (
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
    HEAD,
    ID,
    LABEL,
    LABELS,
    NUMBER,
    NUMBERS,
    OBJECT,
    OBJECTIVE,
    OBJECTS,
    OUTCOMES,
    PAIR,
    POLICY,
    RANGE,
    REWARD,
    SHADOW,
    SHADOWS,
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
    Event,
    or_null,
)

if TYPE_CHECKING:
    from armlet.record.arms import Roster

FORMAT: Final = "armlet log"

EXPLORATION: Final = ("exploration_rate", "exploration_propensity", "min_exploration_probability")
RESERVED: Final = frozenset({*HEAD, "crc", "id"})
"""Names that a note cannot give to fields of its own."""

Compacted: TypeAlias = Literal["decision", "first reward", "last reward", "note"]
Whose: TypeAlias = Literal["arms", "actions"]
"""What a log is of: arms, or actions with features."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an event."""

    check: Check
    text: str = ""
    """What the documentation says of it, after its name."""
    is_optional: bool = False
    of: Whose | None = None
    """What logs are of that have it, if not all have it."""
    column: str = ""
    """How it stands in the columns of a compacted log, if that does not follow from its type."""
    is_internal: bool = False
    """Whether only a store needs it: its rows are events of a log without it."""


Fields: TypeAlias = Mapping[str, Field]


def _optional(check: Check, text: str = "", of: Whose | None = None, column: str = "") -> Field:
    return Field(check, text, True, of, column)


def _internal(check: Check, text: str = "") -> Field:
    return Field(check, text, True, is_internal=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What events of a kind are, and what they do."""

    text: str
    """What a replay does with it, for the documentation."""
    row_text: str = ""
    """What a row of a store does, if that is other."""
    fields: Fields | None = None
    """In a log; None: logs have no such events."""
    row: Fields | None = None
    """In a row of a store; None: stores have no such rows."""
    of: Whose | None = None
    """What logs are of that have it, if not all have it."""
    mark: str = ""
    """The field by which one of actions with features is recognized, if they have other fields."""
    contradiction: Callable[[Event, Shape | None], str | None] | None = None
    """Returns how fields contradict each other, if they do."""
    play: Play | None = None
    """Does to a bandit what the event has done; None: it changes none."""
    logged_as: str = ""
    """The kind that a row has as an event of a log, if that is another one."""
    logged: Callable[[Event], list[Event]] | None = None
    """Returns the events of a log that a row is, if it is not one with the same fields."""
    compacted: Compacted | None = None
    """What the row of its decision has of it in a compacted log: all other events stand next to the rows."""
    words: str = ""
    """What a row has changed in a loop, for people, with places for its fields."""
    roster: Callable[[Roster, Event], None] | None = None
    """Changes which arms there are."""


# ---- decisions

_EXPLORATION_TEXTS: Final = (
    "how likely this step was to explore; null if the policy has no such thing",
    "the probability of this arm given that the step explores, which no context moves; or null",
    "the smallest such probability among the eligible arms; or null",
)
DECISION: Final[Fields] = {
    "id": Field(ID, "the step and 64 bits that tell bandits apart, `12-00ff00ff00ff00ff`"),
    "t": Field(COUNT, "the step"),
    "x": Field(
        or_null(NUMBERS),
        "the context as the bandit saw it, before `normalize` and units; null if not stored",
        column="vector",
    ),
    "z": Field(
        or_null(NUMBERS), "the numbers of the action that was played; null if not stored", of="actions", column="vector"
    ),
    "actions": Field(HASH, "the hash of the table that it was chosen from", of="actions", column="word"),
    "n_actions": Field(COUNT, "how many actions that table has", of="actions"),
    "eligible": Field(
        or_null(ELIGIBLE), "the labels that might be played; null: all that were not retired", column="labels"
    ),
    "arm": Field(LABEL, "the label that was", column="label"),
    "propensity": Field(SHARE, "the probability with which it was to be played, over all coins"),
    "support": Field(
        or_null(SUPPORT),
        "pairs of a label and its probability, of all actions that had one, which add up to 1; null: all that were "
        "eligible, or all of the table, had the same",
        of="actions",
        column="pairs",
    ),
    "explored": Field(
        or_null(TRUTH), "whether turn or coins chose, not the estimates; null if another system logged it"
    ),
    "optimistic": Field(
        or_null(TRUTH),
        "whether the coin made it a step that plays the highest bound; false if it explored, and for policies without "
        "such steps; null if another system logged it",
    ),
    **{name: Field(or_null(SHARE), text) for name, text in zip(EXPLORATION, _EXPLORATION_TEXTS, strict=True)},
    "greedy": Field(
        or_null(TRUTH),
        "whether it is the arm that looked best, or one of those that a step which does not explore may play; null if "
        "not known",
    ),
    "design": Field(
        or_null(TEXT),
        '`"turn"`: a round-robin had it, so that its propensity is 1; `"coin"`: it explored; `"choice"`: it did not',
        column="word",
    ),
    "probabilities": _optional(
        SHARES, "those of all arms at that very step; only if requested", of="arms", column="numbers"
    ),
    "tag": Field(
        WHOLE, "a number of the policy's own; minutes since 1970 for one that [forgets by time](../how-to/drift.md)"
    ),
    "weights": _optional(
        WEIGHTS,
        "the dial: what each outcome was worth in this decision; only if it was given one",
        of="arms",
        column="weights",
    ),
    "unit": _optional(TEXT, "the unit that it is of; only if it is of one", of="arms"),
    "epoch": _optional(
        COUNT,
        "the number of the epoch whose first state and clock it met; only with a unit. The state of an epoch is that "
        "before the first such decision",
        of="arms",
    ),
    "event": _optional(TEXT, "what the environment calls the decision; only if it has a name"),
}
_GUARDED: Final[Fields] = {
    "control": _optional(CONTROL, "of a loop with a control", of="arms"),
    "shadow": _optional(SHADOW, "of a loop with a shadow or a baseline"),
    "shadows": _optional(SHADOWS, "of a loop whose shadows have names", of="arms"),
    "deferred": _optional(TRUTH, "true: its reward counts once a `note` of its `id` says `activated`", of="actions"),
}
_REQUIRED_IN_ROWS: Final[Fields] = {
    **{name: DECISION[name] for name in ("id", "arm", "eligible")},
    **{name: replace(DECISION[name], check=TRUTH) for name in ("explored", "optimistic")},
}
_DECIDE_ROW: Final[Fields] = {
    **{name: replace(each, is_optional=True) for name, each in DECISION.items() if name not in ("t", "x", "z")},
    **_GUARDED,
    **_REQUIRED_IN_ROWS,
    "dim": _internal(COUNT, "how many numbers of `x` are the context's, where those of an action follow"),
    "table": _internal(COUNT, "the row of the table"),
    "prepared": _internal(TEXT, "the name by which the table was requested"),
}

# ---- the start

_OUTCOMES: Final = _optional(OUTCOMES, "[if there are several](#several-outcomes)")
_START: Final[Fields] = {
    "format": Field(TEXT),
    "schema": Field(COUNT),
    "arms": Field(ARMS, of="arms"),
    "dim": Field(DIM),
    "digest": Field(or_null(TEXT), "of the bandit as the log begins"),
    "features": _optional(or_null(TEXTS)),
    "retired": _optional(LABELS, of="arms"),
    "objective": _optional(OBJECTIVE),
    "normalize": _optional(or_null(TEXT)),
    "units": _optional(or_null(TEXT)),
    "reward_range": _optional(or_null(RANGE)),
    "feature_range": _optional(FEATURE_RANGES, "if there is one"),
    "epoch": _optional(EPOCH, "how long units keep their arm, if there are any"),
    "epoch_start": _optional(PAIR, "the number and the first step of the epoch that has begun"),
    "epoch_price": _optional(NUMBER),
    "outcomes": _OUTCOMES,
    "budget": _optional(BUDGET),
    "spending": _optional(NUMBERS),
    "policy": _optional(or_null(POLICY)),
    "version": _optional(TEXT),
    "t": _optional(COUNT),
    "start_model": _optional(DIGEST, "SHA-256 of the start model's file"),
    "origin": _optional(TEXT),
    "guards": _optional(OBJECT, "those of a loop"),
    "action_dim": Field(DIM, of="actions"),
    "action_features": _optional(or_null(TEXTS), of="actions"),
}

# ---- rewards

_ID: Final[Fields] = {"id": Field(ID)}
_DECISION: Final[Fields] = {"decision": _optional(OBJECT, "if it was not made in this log")}
_BILLED: Final[Fields] = {"billed": _optional(NUMBER, "if the decision was billed before")}
_ABOUT: Final[Fields] = {**_ID, **_DECISION, **_BILLED}
_WEIGHT: Final[Fields] = {"weight": _optional(WEIGHT)}
_REWARD: Final[Fields] = {"reward": Field(REWARD), "weight": Field(WEIGHT)}
_PLAYED: Final[Fields] = {
    "played": _optional(
        LABEL, "the arm that was shown instead of the one that was decided, with a `decision` of that arm"
    )
}
_EXPIRED: Final[Fields] = {"expired": _optional(TRUTH, "true, if its reward was no longer waited for")}
_OLD_AND_NEW: Final[Fields] = {"old_reward": Field(REWARD), "new_reward": Field(REWARD)}

_OF: Final[Fields] = {"of": Field(COUNT, "the row of its decision", is_internal=True), **_ID}
_HAD: Final[Fields] = {"had": _internal(REWARD, "what the bandit had been given before")}
_WAITS: Final[Fields] = {"waits": _internal(TRUTH, "while it waits for more")}
_STATUS: Final[Fields] = {"status": _internal(TEXT, "of the call that it answered")}
_LATER: Final[Fields] = {"later": _internal(TRUTH, "if a part was reported before")}
_ROW_PLAYED: Final[Fields] = {"played": _optional(LABEL, "the arm that was shown instead of the one that was decided")}

# ---- changes

_ARM: Final[Fields] = {"arm": Field(LABEL)}
_TABLE_NAME: Final[Fields] = {"name": Field(TEXT, "of a table that was prepared")}
_ROWS: Final[Fields] = {
    "X": Field(TABLE),
    "arms": Field(LABELS),
    "rewards": Field(COLUMNS),
    "weights": Field(NUMBERS),
    "steps": Field(COUNT),
    "explored": Field(TRUTHS),
}
_ACTIONS: Final[Fields] = {
    "hash": Field(HASH, "of a table of [actions](#actions-with-features)"),
    "names": _optional(or_null(TEXTS)),
    "labels": _optional(ARMS),
    "Z": _optional(TABLE),
    "from": _optional(HASH),
    "add": _optional(ADDED),
    "remove": _optional(LABELS),
    "name": _optional(TEXT),
}
_ACTIONS_ROW: Final[Fields] = {
    "hash": Field(HASH, "of a [table](#actions)"),
    "width": Field(COUNT),
    **{name: _ACTIONS[name] for name in ("labels", "names", "name")},
    "base": _optional(COUNT),
    **{name: _ACTIONS[name] for name in ("from", "remove")},
}
_REPLACE: Final[Fields] = {
    "policy": _optional(POLICY, "its name and settings"),
    "features": _optional(TEXTS, "the names from now on"),
    "fill": _optional(FILL, "an object of the new features and what rows from before have there"),
    "encoder": _optional(OBJECT, "if one makes the features"),
    "reward_range": _optional(RANGE),
    "feature_range": _optional(or_null(FEATURE_RANGES), "all of them, or null"),
    "outcomes": _optional(OUTCOMES, "all of what they are from now on"),
    "budget": _optional(or_null(BUDGET)),
    "guards": _optional(OBJECT, "those of a loop from now on"),
}

KINDS: Final[Mapping[str, Kind]] = {
    "start": Kind(
        text="compares the digest",
        fields=_START,
        mark="action_dim",
        contradiction=contradictions.of_start,
    ),
    "actions": Kind(
        text="`prepare(name, table)`, if it has a name",
        row_text="nothing: decisions name it",
        fields=_ACTIONS,
        row=_ACTIONS_ROW,
        of="actions",
        contradiction=contradictions.of_table,
        play=lambda cast, event, past: past.on_table(cast, event),
    ),
    "remove_table": Kind(
        text="`remove_table(name)`",
        row_text="nothing: decisions among its actions are learned as before",
        fields=_TABLE_NAME,
        row=_TABLE_NAME,
        of="actions",
        play=lambda cast, event, past: past.on_table(cast, event),
    ),
    "decide": Kind(
        text='`decide(x, eligible=..., t=t, weights=..., unit=..., epoch=..., propensity="marginal")`, and compares '
        "everything",
        row_text="takes a step",
        fields={**DECISION, **_GUARDED},
        row=_DECIDE_ROW,
        mark="actions",
        contradiction=contradictions.of_decision,
        play=lambda cast, event, past: past.decide(cast, event),
        compacted="decision",
    ),
    "reward": Kind(
        text="nothing yet: it waits for its window to close",
        row={**_OF, "reward": Field(REWARD), **_STATUS, **_LATER},
        logged_as="note",
    ),
    "learn": Kind(
        text="`learn`",
        row_text="learns",
        fields={**_ID, **_REWARD, **_DECISION, **_BILLED, **_EXPIRED, **_PLAYED},
        row={
            **_OF,
            "reward": Field(REWARD),
            **_WEIGHT,
            **_HAD,
            **_WAITS,
            **_STATUS,
            "source": _optional(TEXT, '`"reward"` or `"default"`, if a window closed'),
            **_LATER,
            **_EXPIRED,
            **_ROW_PLAYED,
            **_BILLED,
        },
        play=plays.learn,
        compacted="first reward",
    ),
    "correct": Kind(
        text="`correct`",
        row_text="corrects",
        fields={**_ID, **_OLD_AND_NEW, **_WEIGHT, **_DECISION, **_BILLED, **_PLAYED},
        row={**_OF, **_OLD_AND_NEW, **_STATUS, **_LATER, **_HAD, **_WAITS, **_EXPIRED, **_ROW_PLAYED, **_BILLED},
        contradiction=contradictions.of_correction,
        play=plays.correct,
        compacted="last reward",
    ),
    "forget": Kind(
        text="`forget`",
        row_text="takes a default back, of an arm that was not played",
        fields={**_ID, "reward": Field(REWARD), **_WEIGHT, **_DECISION, **_BILLED},
        row={**_OF, "reward": Field(REWARD), **_BILLED},
        play=plays.forget,
        compacted="last reward",
    ),
    "expire": Kind(
        text="`expire`",
        row_text="no longer waits",
        fields=_ABOUT,
        row={**_OF, **_HAD, **_BILLED},
        play=lambda cast, event, past: cast.expire(past.get(event)),
    ),
    "bill": Kind(
        text="`bill`",
        row_text="counts its cost in the budget, and learns nothing",
        fields={
            **_ID,
            "cost": Field(NUMBER, "what counts as its cost in the budget"),
            **_DECISION,
            **_BILLED,
            "reward": _optional(REWARD, "if it has outcomes"),
            "weight": _optional(WEIGHT, "if it was learned"),
            **_PLAYED,
        },
        row={
            **_OF,
            "cost": Field(NUMBER),
            **_STATUS,
            **_LATER,
            **_HAD,
            **_WAITS,
            **_EXPIRED,
            **_ROW_PLAYED,
            **_BILLED,
        },
        of="arms",
        play=lambda cast, event, past: cast.bill(past.get(event, event.get("reward")), event["cost"]),
    ),
    "activate": Kind(
        text="nothing to the bandit: its window begins, and rewards count",
        row=_OF,
        logged_as="note",
        logged=lambda event: [{**event, "activated": True}],
    ),
    "add_arm": Kind(
        text="`add_arm`",
        fields=_ARM,
        row=_ARM,
        of="arms",
        roster=lambda roster, event: roster.add(event["arm"]),
        play=lambda cast, event, _: cast.add_arm(event["arm"]),
        words="arm {arm} added",
    ),
    "retire_arm": Kind(
        text="`retire_arm`",
        fields=_ARM,
        row=_ARM,
        of="arms",
        roster=lambda roster, event: roster.retire(roster.place(event)),
        play=lambda cast, event, _: cast.retire_arm(event["arm"]),
        words="arm {arm} retired",
    ),
    "restore_arm": Kind(
        text="`restore_arm`",
        fields=_ARM,
        row=_ARM,
        of="arms",
        roster=lambda roster, event: roster.restore(roster.place(event)),
        play=lambda cast, event, _: cast.restore_arm(event["arm"]),
        words="arm {arm} restored",
    ),
    "remove_arm": Kind(
        text="`remove_arm`",
        fields=_ARM,
        of="arms",
        roster=lambda roster, event: roster.remove(roster.place(event)),
        play=lambda cast, event, _: cast.live.remove_arm(event["arm"]),
    ),
    "advance": Kind(
        text="`replace(t=...)`",
        fields={"t": Field(COUNT)},
        play=lambda cast, event, _: cast.advance(event["t"]),
    ),
    "partial_fit": Kind(
        text="`partial_fit`",
        fields=_ROWS,
        of="arms",
        play=plays.partial_fit,
    ),
    "learn_logged": Kind(
        text="`partial_fit(columns)`",
        fields={"columns": Field(OBJECT)},
        play=plays.learn_logged,
    ),
    "merge": Kind(
        text="`merge`",
        fields={"model": Field(TEXT, "the other bandit, as a [model file](file-format.md) in base64")},
        roster=lambda roster, event: roster.merge(event),
        play=plays.merge,
    ),
    "resync": Kind(
        text="goes on in that state, with its own seed",
        fields={
            "model": Field(
                TEXT,
                "the whole bandit as a [model file](file-format.md) in base64, with an unused seed: a change was "
                "interrupted while a recorder received it, so that bandit and log may differ, and the log goes on from "
                "this state; or a row was taken back that had cost the sums their digits, and the bandit has learned "
                "its log again without it",
            )
        },
        roster=lambda roster, event: roster.start_over(event),
        play=plays.resync,
    ),
    "replace": Kind(
        text="`replace`, with the one of these that it has; `guards` cannot be replayed: events after them go on from "
        "a model",
        fields=_REPLACE,
        contradiction=contradictions.of_replacement,
        play=plays.replace,
    ),
    "change": Kind(
        text="the `replace` events, one after the other",
        row={
            "rules": Field(OBJECT, "those of rewards that changed"),
            "replaces": Field(OBJECTS, "a list of the `replace` events of a log"),
        },
        logged_as="replace",
        logged=plays.replacements_of,
        words="change",
    ),
    "checkpoint": Kind(
        text="compares digest and seal",
        fields={
            "digest": Field(TEXT, "of the bandit after all events before"),
            "version": _optional(TEXT),
            "seal": _optional(DIGEST),
            "closed": _optional(TRUTH, "true, if it was written when the log was closed"),
        },
    ),
    "note": Kind(
        text="nothing",
        fields={
            **_ID,
            "outcomes": _optional(or_null(OBJECT), "an object"),
            "source": _optional(or_null(TEXT), "of the reward: a text. Other names are free"),
        },
        compacted="note",
    ),
}
"""What an event of a kind is. A new kind is one entry here, and a call that records it."""


def fields_of(kind: str, of: Whose = "arms") -> Fields:
    """Return the fields of a kind in a log of arms, or of actions with features.

    Examples
    --------
    >>> [name for name in fields_of("start", "actions") if name.startswith("a")]
    ['action_dim', 'action_features']
    """
    return {name: field for name, field in (KINDS[kind].fields or {}).items() if field.of in (None, of)}


def _decision_fields(of: Whose) -> tuple[str, ...]:
    return tuple(name for name, field in DECISION.items() if field.of in (None, of))


DECIDE: Final = _decision_fields("arms")
"""The fields of a decision, in the order in which they are written."""
ACTION_DECIDE: Final = _decision_fields("actions")
"""Those of a decision among actions with features."""
OPTIONAL: Final = frozenset(name for name, field in DECISION.items() if field.is_optional)
"""Left out where there are none: the probabilities of all arms, a dial, a unit, and what others call the decision."""
LEARN: Final = ("id", "reward", "weight")

LOGGED: Final = frozenset(name for name, kind in KINDS.items() if kind.fields is not None)
"""Kinds of events that logs have."""
ARM_CHANGES: Final = frozenset(name for name, kind in KINDS.items() if kind.roster is not None)
"""Kinds of events that change which arms there are."""
CHANGING: Final = tuple(name for name, kind in KINDS.items() if kind.words)
"""Kinds of rows that change a loop, and are told to people."""
OF_TABLES: Final = frozenset(name for name, kind in KINDS.items() if kind.of == "actions")
"""Kinds that only a log of actions with features has."""
