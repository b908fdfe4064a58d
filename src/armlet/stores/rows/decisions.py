"""The rows of a loop: decisions as rows and back.

What is learned from a row is what would be learned from the decision. `stores/rows/log.py` has rows as events of a log,
`stores/rows/replay.py` the state that they lead to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import numpy as np

from armlet.actions.decision import ActionDecision
from armlet.errors import StoreError
from armlet.kernel import Decision
from armlet.policies.discounts import MINUTE
from armlet.record.rows import ROWS, damage
from armlet.record.values import ELIGIBLE
from armlet.stores.ledger import Row
from armlet.types import Arm, Float64, Reward

BYTES: Final = np.dtype("<f8")


def fields_of(decision: Decision, event: str) -> dict[str, Any]:
    """Return all of a decision but its step and context, which a row has of its own, in plain JSON types."""
    fields = decision.to_dict()
    del fields["t"], fields["x"]
    fields["event"] = event
    return fields


def action_fields_of(decision: ActionDecision, event: str) -> dict[str, Any]:
    """Return all of a decision among actions but its step, its context and the features of its action.

    Both are in the bytes of its row, the context first: `dim` says how many values that has.
    """
    fields = decision.to_dict()
    del fields["t"], fields["x"], fields["z"]
    return {**fields, "event": event, "dim": len(decision.x)}


def action_bytes_of(decision: ActionDecision) -> bytes:
    """Return a context and the features of an action as a row has them."""
    return bytes_of(decision.x) + bytes_of(decision.z)


def bytes_of(x: Float64) -> bytes:
    """Return a context as a row has it."""
    return x.tobytes() if sys.byteorder == "little" else x.astype(BYTES).tobytes()


def checked(row: Row, kind: str | None = None) -> Row:
    """Return a row whose fields are what its kind has; an editor of a table can mend a checksum too.

    Examples
    --------
    >>> checked(Row(seq=9, ts=5, kind="learn", t=1, fields={"of": 1}))
    Traceback (most recent call last):
    armlet.errors.StoreError: row 9 of the loop is not a valid 'learn': id is missing, or is not a step ...
    """
    if row.kind not in ROWS:
        raise StoreError(
            f"row {row.seq} of the loop is of kind {row.kind!r}, which this version of Armlet does not know"
        )
    if why := damage(kind or row.kind, row.fields):
        raise _damaged(row, kind or row.kind, why)
    if kind == "decide" and row.fields["eligible"] and not ELIGIBLE.holds(row.fields["eligible"]):
        raise _damaged(row, kind, "eligible has a value that is not an arm")
    return row


def context_of(row: Row) -> list[float] | None:
    """Return the context of a decision, unless it was erased."""
    if row.x is None:
        return None
    try:
        values: list[float] = np.frombuffer(row.x, dtype=BYTES).tolist()
    except ValueError as error:
        raise _damaged(row, "decide", error) from error
    return values


def decision_of(row: Row, reward: Reward | None = None, *, waits: bool = False, **marks: object) -> Decision:
    """Return the decision of a row: pending, or with what was learned from it; marked as expired if it was.

    If it `waits` for more parts, the reward has those that the bandit was given.
    """
    learned: dict[str, object] = {} if reward is None else {"reward": reward}
    if reward is not None and not waits:
        learned["weight"] = 1.0
    try:
        if "actions" in row.fields:  # it is learned like any other
            record = {**row.fields, "t": row.t, **pair_of(row), **learned, **marks}
            return cast("Decision", ActionDecision.from_dict(record))
        return Decision.from_dict({**row.fields, "t": row.t, "x": context_of(row), **learned, **marks})
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise _damaged(row, "decide", error) from error


def pair_of(row: Row) -> dict[str, list[float] | None]:
    """Return the context of a decision and the features of its action, unless they were erased."""
    values, dim = context_of(row), row.fields["dim"]
    return {"x": None, "z": None} if values is None else {"x": values[:dim], "z": values[dim:]}


def substitute(row: Row, played: Arm) -> Row:
    """Return the row of a decision as if another arm had been chosen, by nobody's coin."""
    unknown = dict.fromkeys(("exploration_propensity", "exploration_rate", "min_exploration_probability", "greedy"))
    fields = {**row.fields, **unknown, "arm": played, "propensity": 1.0, "explored": False, "probabilities": None}
    return row._replace(fields=fields)


def timed(row: Row) -> Row:
    """Return the row of a decision with its time as its tag, in minutes, if it was made for a policy without time.

    Examples
    --------
    >>> timed(Row(seq=1, ts=180_000_000, kind="decide", t=1, fields={"arm": "a", "tag": 0})).fields["tag"]
    3
    """
    return row if row.fields.get("tag") else row._replace(fields={**row.fields, "tag": row.ts // MINUTE})


def known_of(decided: Row, later: Iterable[Row]) -> Decision | None:
    """Return a decision as rows about it leave it: learned, or waited for; None if a model knows nothing of it.

    Examples
    --------
    >>> fields = {"id": "1-00ff00ff00ff00ff", "arm": "a", "explored": False, "propensity": 1.0, "eligible": None}
    >>> decided = Row(seq=1, ts=5, kind="decide", t=1, fields=fields, x=bytes(8))
    >>> learned = Row(seq=2, ts=6, kind="learn", t=1, fields={"of": 1, "id": fields["id"], "reward": 0.5})
    >>> known_of(decided, [learned]).reward, known_of(decided, []).reward
    (0.5, None)
    """
    row, is_waited_for, is_part = decided, True, False
    value: Reward | None = None
    for each in later:
        fields = checked(each).fields
        if each.kind == "learn":
            row = substitute(decided, fields["played"]) if "played" in fields else decided
            value, is_part = had_of(fields, "reward"), "waits" in fields
        elif each.kind == "correct":
            value = had_of(fields, "new_reward")
        elif each.kind in ("expire", "forget"):
            value, is_waited_for = (None if each.kind == "forget" else value), False
    is_known = is_waited_for or (value is not None and not is_part)
    return decision_of(row, value, waits=is_part) if is_known else None


def had_of(fields: Mapping[str, Any], name: str | None = None) -> Reward | None:
    """Return what the bandit had been given of a decision before a row, and, with a name, what that field added."""
    added = None if name is None else fields[name]
    if "had" not in fields:
        return added
    return {**fields["had"], **(added or {})}


def _damaged(row: Row, kind: str, why: object) -> StoreError:
    return StoreError(f"row {row.seq} of the loop is not a valid {kind!r}: {why}; go back to a backup")
