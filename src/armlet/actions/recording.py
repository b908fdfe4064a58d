"""The interface between an `ActionBandit` and its log: that of a bandit, and the tables that decisions choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from armlet.actions.decision import ActionDecision
    from armlet.actions.table import ActionTable
    from armlet.recording import Fields

METHODS: Final = ("open", "on_actions", "on_decision", "on_event", "on_events")


class ActionRecorder(Protocol):
    """A log, as an `ActionBandit` sees it; when each is called, and what a refusal does, is as for a `Recorder`."""

    def open(self, start: bytes, about: Fields, digest: Callable[[], str]) -> None:
        """Begin: the bandit as `to_bytes` gives it, with its seed; what it is, without; and its digest at any time."""

    def on_actions(self, table: ActionTable, name: str | None = None) -> None:
        """Record the table of the next decision, or one that is prepared under a name, unless it is known.

        `table.fields()` is what to keep, and `ActionTable.from_fields` restores it. A bandit calls it before every
        decision: a hash that was recorded before needs nothing.
        """

    def on_decision(self, decision: ActionDecision) -> None:
        """Record a decision that was made; its propensity is marginal. Those of a batch come one by one."""

    def on_event(self, kind: str, fields: Fields) -> None:
        """Record a change that is about to be made.

        learn, correct, forget, expire: as for a `Recorder`. learn_logged: columns of `partial_fit`. remove_table: name.
        advance: t. merge: model. replace: policy or reward_range.
        """

    def on_events(self, kind: str, many: Sequence[Fields]) -> None:
        """Record several of a kind, all or none."""
