"""The one player, of logs and stores: an event, or a row, is played by the entry of its kind, bit for bit as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armlet.errors import ArmletError, LogError
from armlet.record.faults import is_fault
from armlet.record.kinds import KINDS
from armlet.record.plays import Past
from armlet.record.values import Event

if TYPE_CHECKING:
    from armlet.cast.cast import Cast


def play(cast: Cast, event: Event, past: Past) -> object:
    """Play one event; return the decision if it was decided again."""
    kind = KINDS.get(event["kind"])
    if kind is None or kind.fields is None:
        raise LogError(
            f"event {event['seq']:,} is of kind {event['kind']!r}, which this version cannot play", event["seq"]
        )
    return None if kind.play is None else kind.play(cast, event, past)


def is_unplayable(error: Exception) -> bool:
    """Whether an event, rather than the program, can be the reason for an error."""
    return isinstance(error, ArmletError | AttributeError) or is_fault(error)
