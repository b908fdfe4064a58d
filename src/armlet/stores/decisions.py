"""Decisions as rows of a store, and back: what is learned from a row is what would be learned from the decision."""

from __future__ import annotations

from typing import Any

import numpy as np

from armlet.core.errors import StoreError
from armlet.core.kernel import Decision
from armlet.stores.ledger import Row


def fields_of(decision: Decision, event: str) -> dict[str, Any]:
    """Give all of a decision but its step and context, which a row has of its own, in plain JSON types."""
    fields = decision.to_dict()
    del fields["t"], fields["x"]
    return {**fields, "event": event}


def context_of(row: Row) -> list[float] | None:
    """Give the context of a decision, unless it was erased."""
    if row.x is None:
        return None
    try:
        values: list[float] = np.frombuffer(row.x, dtype="<f8").tolist()
    except ValueError as error:
        raise _damaged(row, error) from error
    return values


def decision_of(row: Row, reward: float | None = None) -> Decision:
    """Give a decision back: pending, or with what was learned from it."""
    learned = {} if reward is None else {"reward": reward, "weight": 1.0}
    try:
        return Decision.from_dict({**row.fields, "t": row.t, "x": context_of(row), **learned})
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise _damaged(row, error) from error


def _damaged(row: Row, error: Exception) -> StoreError:
    return StoreError(f"row {row.seq} of the loop is no decision: {error}; go back to a backup")
