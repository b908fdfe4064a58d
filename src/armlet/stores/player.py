"""What a loop does inside a transaction: decide, judge, learn, write. Only the thread that writes comes here.

The bandit does it first and the row follows, so that what it refuses is never written. If the transaction then fails,
the bandit knows more than the rows; it is marked stale and made again from them before its next call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from armlet.bandit import Bandit
from armlet.core.errors import EventError, StoreError
from armlet.core.kernel import Decision
from armlet.core.types import Arm, Float64, Policy
from armlet.stores.decisions import decision_of, fields_of
from armlet.stores.ledger import Kept, Outcome, Pen, Row
from armlet.stores.replay import apply, recover
from armlet.stores.rewards import Status, Terms, judge

SPACING = 1000  # rows between snapshots, at least
BYTES_A_ROW = 100  # that snapshots may add to the file, on average: the larger a model, the rarer
CLOSED_AT_ONCE = 1000  # windows


class Player:
    """The bandit of a loop and its rows."""

    def __init__(self, kept: Kept, terms: Terms, policy: Policy | None) -> None:
        self.kept, self.terms, self.policy = kept, terms, policy
        self._bandit: Bandit | None = None  # stale
        self._snapshot = self._last = 0  # rows
        self._steps = range(0)  # leased and not used

    def stale(self) -> None:
        """Forget what memory knows; the rows know better."""
        self._bandit, self._steps = None, range(0)

    def ready(self, pen: Pen, now: int) -> Bandit:
        """Give the bandit as it is at this moment, windows that have closed included."""
        if self._bandit is None:
            self.kept = pen.kept(self.kept.name) or self.kept
            self._bandit, self._snapshot, self._last = recover(pen, self.kept, self.policy)
        if self.terms.window is not None:
            while closed := pen.due(self.kept.id, now, CLOSED_AT_ONCE):
                for outcome in closed:
                    self._close(pen, now, self._bandit, outcome)
        return self._bandit

    def decide(self, pen: Pen, now: int, x: Float64, event: str | None, eligible: list[Arm] | None) -> Decision:
        """Decide, or give the decision that this event has."""
        bandit = self.ready(pen, now)
        known = None if event is None else pen.outcome(self.kept.id, event)
        if known is not None:
            return self._again(pen, known, x, eligible)
        if not self._steps:
            first = pen.lease(self.kept.id, 1)
            self._steps = range(first, first + 1)
        decision = bandit.decide_at(self._steps[0], x, eligible=eligible)
        self._steps = self._steps[1:]  # a refused call has not used its step
        event = decision.id if event is None else event
        seq = self._append(pen, now, "decide", decision.t, fields_of(decision, event), x.astype("<f8").tobytes())
        due = None if self.terms.window is None else now + self.terms.window
        pen.put(self.kept.id, Outcome(t=decision.t, event=event, seq=seq, phase="open", due=due))
        self._keep_snapshot(pen, bandit)
        return decision

    def _again(self, pen: Pen, known: Outcome, x: Float64, eligible: list[Arm] | None) -> Decision:
        row = pen.row(self.kept.id, known.seq)
        if row is None:
            raise StoreError(f"the decision of event {known.event!r} is missing; go back to a backup")
        if row.x != x.astype("<f8").tobytes() or row.fields["eligible"] != eligible:
            raise EventError(
                f"event {known.event!r} has been decided for another context or other eligible arms; "
                "give a new decision another name, or repeat the first one as it was"
            )
        return decision_of(row)

    def reward(self, pen: Pen, now: int, event: str, value: float) -> Status:
        """Judge a reward, and learn it if it is time."""
        bandit = self.ready(pen, now)
        outcome = pen.outcome(self.kept.id, event)
        verdict = judge(self.terms, outcome, value)
        if outcome is None or verdict.act == "nothing":
            return verdict.status
        told = replace(outcome, value=verdict.value)
        if verdict.act == "hold":
            self._append(pen, now, "reward", outcome.t, {**self._about(pen, outcome), "reward": value})
        elif verdict.act == "learn":
            self._write(pen, now, bandit, outcome, "learn", {"reward": verdict.value, "weight": 1.0})
            told = replace(told, phase="learned")
        else:
            fields = {"old_reward": outcome.value, "new_reward": verdict.value}
            self._write(pen, now, bandit, outcome, "correct", fields)
            told = replace(told, phase="learned")
        pen.put(self.kept.id, told)
        return verdict.status

    def _close(self, pen: Pen, now: int, bandit: Bandit, outcome: Outcome) -> None:
        """Learn what was told in time, or else the default."""
        told = outcome.value is not None
        value = outcome.value if told else self.terms.default
        fields = {"reward": value, "weight": 1.0, "source": "told" if told else "default"}
        self._write(pen, now, bandit, outcome, "learn", fields)
        pen.put(self.kept.id, replace(outcome, phase="learned" if told else "default", value=value, due=None))

    def forget(self, pen: Pen, now: int, event: str) -> bool:
        """Unlearn a decision and delete its context; tell whether there is one."""
        bandit = self.ready(pen, now)
        outcome = pen.outcome(self.kept.id, event)
        if outcome is None:
            return False
        if outcome.phase == "open":
            self._write(pen, now, bandit, outcome, "expire", {})
        else:
            self._write(pen, now, bandit, outcome, "forget", {"reward": outcome.value})
        self.rebase(pen)
        pen.erase(self.kept.id, outcome.t)
        return True

    def prune(self, pen: Pen, before: int) -> int:
        """Delete what is old and did not explore, once the bandit is ready."""
        self.rebase(pen)
        return pen.prune(self.kept.id, before)

    def rebase(self, pen: Pen) -> None:
        """Go on from what has been learned so far, so that no row before is needed to make it again."""
        if self._bandit is not None:
            model = self._bandit.to_bytes()
            pen.rebase(self.kept.id, self._last, model)
            self.kept = replace(self.kept, start=model, base=self._last)
            self._snapshot = self._last

    def change(self, pen: Pen, now: int, kind: str, arm: Arm) -> None:
        """Add, retire or restore an arm."""
        self._write(pen, now, self.ready(pen, now), None, kind, {"arm": arm})

    def _write(
        self, pen: Pen, now: int, bandit: Bandit, outcome: Outcome | None, kind: str, fields: Mapping[str, Any]
    ) -> None:
        """Let the bandit do what the row will say, by the same function that reads it back, and write it."""
        about = {} if outcome is None else self._about(pen, outcome)
        t = None if outcome is None else outcome.t
        row = Row(seq=0, ts=now, kind=kind, t=t, fields={**about, **fields})
        apply(bandit, pen, self.kept.id, row)
        self._append(pen, now, kind, t, row.fields)
        self._keep_snapshot(pen, bandit)

    def _about(self, pen: Pen, outcome: Outcome) -> dict[str, Any]:
        """Say which decision a row is about, but not by the name of its event, which may be somebody's."""
        row = pen.row(self.kept.id, outcome.seq)
        if row is None:
            raise StoreError(f"the decision of event {outcome.event!r} is missing; go back to a backup")
        return {"of": outcome.seq, "id": row.fields["id"]}

    def _append(
        self, pen: Pen, now: int, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None = None
    ) -> int:
        self._last = pen.append(self.kept.id, now, kind, t, fields, x)
        return self._last

    def _keep_snapshot(self, pen: Pen, bandit: Bandit) -> None:
        if self._last - self._snapshot >= max(SPACING, bandit.nbytes // BYTES_A_ROW):
            self.save(pen)

    def save(self, pen: Pen) -> None:
        """Keep a snapshot of what has been learned so far."""
        if self._bandit is not None and self._last > self._snapshot:
            pen.keep(self.kept.id, self._last, self._bandit.to_bytes())
            self._snapshot = self._last


def save_all(players: Iterable[Player], pen: Pen) -> None:
    """Keep a snapshot of every one."""
    for player in players:
        player.save(pen)
