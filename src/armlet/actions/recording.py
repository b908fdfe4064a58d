"""The interface between an `ActionBandit` and its log: that of a bandit, and the tables that decisions choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from armlet.recording import Recorder

if TYPE_CHECKING:
    from armlet.actions.table import ActionTable


class ActionRecorder(Recorder, Protocol):
    """A log, as an `ActionBandit` sees it.

    Decisions are `ActionDecision`s, and those of a batch come one by one. Of the kinds of events there are learn,
    correct, forget, expire, learn_logged, advance, merge, and replace of policy or reward_range.
    """

    def on_actions(self, table: ActionTable, name: str | None = None) -> None:
        """Record the table of the next decision, or one that is prepared under a name, unless it is known.

        `table.fields()` is what to keep, and `ActionTable.from_fields` restores it. A bandit calls it before every
        decision: a hash that was recorded before needs nothing.
        """
