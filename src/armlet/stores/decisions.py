"""Decisions as rows of a store, and back: what is learned from a row is what would be learned from the decision."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

import numpy as np

from armlet.errors import StoreError
from armlet.kernel import Decision
from armlet.stores.ledger import Row


def fields_of(decision: Decision, event: str) -> dict[str, Any]:
    """Give all of a decision but its step and context, which a row has of its own, in plain JSON types."""
    fields = decision.to_dict()
    del fields["t"], fields["x"]
    return {**fields, "event": event}


_ABOUT = {"of": int, "id": str}
_FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "decide": {"id": str, "arm": (str, int), "explored": bool, "eligible": (list, NoneType)},
    "reward": {**_ABOUT, "reward": float},
    "learn": {**_ABOUT, "reward": float},
    "forget": {**_ABOUT, "reward": float},
    "expire": _ABOUT,
    "correct": {**_ABOUT, "old_reward": float, "new_reward": float},
}


def checked(row: Row, kind: str | None = None) -> Row:
    """Return a row whose fields are what its kind has; whoever edits a file can mend a checksum too.

    Examples
    --------
    >>> checked(Row(seq=9, ts=5, kind="learn", t=1, fields={"of": 1}))
    Traceback (most recent call last):
    armlet.errors.StoreError: row 9 of the loop is no 'learn': id is missing, or is no str; go back to a backup
    """
    for name, types in _FIELDS.get(kind or row.kind, {}).items():
        if not isinstance(row.fields.get(name, row), types):
            raise _damaged(
                row, kind or row.kind, f"{name} is missing, or is no {getattr(types, '__name__', 'such value')}"
            )
    if kind == "decide" and not all(isinstance(arm, (str, int)) for arm in row.fields["eligible"] or ()):
        raise _damaged(row, kind, "eligible holds what is no arm")
    return row


def context_of(row: Row) -> list[float] | None:
    """Give the context of a decision, unless it was erased."""
    if row.x is None:
        return None
    try:
        values: list[float] = np.frombuffer(row.x, dtype="<f8").tolist()
    except ValueError as error:
        raise _damaged(row, "decide", error) from error
    return values


def decision_of(row: Row, reward: float | None = None) -> Decision:
    """Give a decision back: pending, or with what was learned from it."""
    learned = {} if reward is None else {"reward": reward, "weight": 1.0}
    try:
        return Decision.from_dict({**row.fields, "t": row.t, "x": context_of(row), **learned})
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise _damaged(row, "decide", error) from error


def _damaged(row: Row, kind: str, why: object) -> StoreError:
    return StoreError(f"row {row.seq} of the loop is no {kind!r}: {why}; go back to a backup")
