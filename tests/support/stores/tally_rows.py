"""Rows as a tally sees them, of decisions and rewards that no store has written."""

from __future__ import annotations

from armlet.kernel import Decision
from armlet.stores.folds import Tally
from armlet.stores.folds.fold import Seen
from armlet.stores.ledger import Row
from armlet.stores.rows.decisions import fields_of
from armlet.types import Arm


def decide(tally: Tally, decision: Decision, ts: int, *, x: bytes = b"", **more: object) -> Row:
    """Let a tally see a decision, whose row has the number of its step; return the row."""
    row = Row(decision.t, ts, "decide", decision.t, {**fields_of(decision, decision.id), **more}, x)
    tally.see(row, None)
    return row


def tell(tally: Tally, about: Row, kind: str, ts: int, **fields: object) -> None:
    """Let a tally see what becomes of a decision, by its row."""
    tally.see(Row(0, ts, kind, about.t, {"of": about.seq, **fields}), about)


def of_arm(arm: Arm, ts: int, *, explored: bool = True) -> Row:
    """Return a row of a decision that a tally need not have seen."""
    return Row(0, ts, "decide", 1, {"arm": arm, "explored": explored}, b"")


def seen_at(place: int, ts: int, *, after: float | None = None, explored: bool = False, **fields: object) -> Seen:
    """Return a decision as folds see it, or with a value what is learned of it."""
    seen = Seen()
    seen.row = seen.about = Row(0, ts, "decide", 1, fields, b"")
    seen.fields, seen.place, seen.explored = fields, place, explored
    seen.after, seen.is_reported = after, True
    return seen
