"""What becomes of a reward: it is judged, and learned, corrected or only kept.

The bandit learns first, then a row says so and the tally counts it, so that what is refused leaves no row. Where
another arm was played than decided, its reward is learned as of a decision that nobody's coin has made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from armlet.actions.bandit import ActionBandit
from armlet.bandit import Bandit
from armlet.errors import EventError
from armlet.kernel import Decision
from armlet.stores.draft import Draft
from armlet.stores.ledger import Moment, Outcome, Row
from armlet.stores.rewards import Reward, Status, Verdict, counted, judge
from armlet.stores.rows.decisions import bytes_of, decision_of, substitute
from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.stores.runner import LoopRunner


class Recent:
    """A decision in memory, and what is known of its reward."""

    __slots__ = ("decision", "outcome", "row")

    def __init__(self, decision: Decision, outcome: Outcome, row: Row) -> None:
        self.decision, self.outcome, self.row = decision, outcome, row

    @property
    def arm(self) -> Arm:
        """The arm that was played."""
        return self.decision.arm if self.outcome.played is None else self.outcome.played


def judged(runner: LoopRunner, known: Recent, told: Reward) -> Verdict:
    """Judge a reward, which may be of another arm than the one that was decided."""
    if told.played is None:
        return judge(runner.rules, known.outcome, told)
    check_played(runner, told.played)
    if known.outcome.phase == "default" and told.played != known.arm:
        is_taken = runner.rules.takes(told.number)
        return Verdict("late", "move", told.number) if is_taken else Verdict("out_of_range", "nothing")
    if known.outcome.value is not None and told.played != known.arm:
        return Verdict("conflict", "nothing")
    return judge(runner.rules, known.outcome, told)


def check_played(runner: LoopRunner, arm: Arm) -> None:
    """Refuse an arm that the loop does not have."""
    if isinstance(runner.bandit, ActionBandit):
        raise EventError(
            f"played is {arm!r}, but the actions of loop {runner.name!r} come with each decision; say what is played "
            "when it is decided, with baseline"
        )
    if arm not in runner.bandit.arms:
        raise EventError(f"played is {arm!r}, which is not an arm of loop {runner.name!r}; give the arm that was shown")


def count(runner: LoopRunner, draft: Draft, now: Moment, known: Recent, told: Reward, verdict: Verdict) -> Status:
    """Let a reward count."""
    before, status = known.outcome, verdict.status
    after = counted(before, told, verdict)
    if before.played is None and after.played == known.decision.arm:
        after = after._replace(played=None)
    value = 0.0 if verdict.value is None else verdict.value
    has_row = verdict.act != "note"
    if verdict.act == "hold":
        fields = {"of": before.seq, "id": known.decision.id, "reward": told.value, "status": status}
        runner.append_about(draft, now, known, "reward", fields)
    elif verdict.act == "move":
        _take_back(runner, draft, now, known)
        if not learn(runner, draft, now, known, after, value, expired=True, status=status):
            after, status = after._replace(phase="expired"), "counted"
    elif verdict.act == "learn":
        if not learn(runner, draft, now, known, after, value, expired=before.phase == "expired", status=status):
            after, status = after._replace(phase="expired"), "counted"
            has_row = before.phase != "expired"
    elif verdict.act == "correct" and before.phase == "expired":  # it was counted, and not learned
        after, status, has_row = after._replace(phase="expired"), "counted", False
    elif verdict.act == "correct":
        _correct(runner, draft, now, known, value, status)
    if not has_row and verdict.act != "note":
        runner.answer(status, now)
    known.outcome = after
    draft.change(after)
    if after.phase == "learned" and runner.rules.aggregation == "first":
        runner.settled.append(after.event)
    return status


def learn(
    runner: LoopRunner,
    draft: Draft,
    now: Moment,
    known: Recent,
    outcome: Outcome,
    value: float,
    *,
    expired: bool,
    **marks: str,
) -> bool:
    """Learn a value, of the arm that was played; return whether the policy can."""
    decision = known.decision
    if outcome.played is not None:
        return _learn_other(runner, draft, now, known, outcome.played, value, expired=expired, **marks)
    runner.cast.learn(decision, value)
    fields = {"of": outcome.seq, "id": decision.id, "reward": value, "weight": 1.0, **marks}
    if expired:
        fields["expired"] = True
    runner.append_about(draft, now, known, "learn", fields)
    return True


def _learn_other(
    runner: LoopRunner,
    draft: Draft,
    now: Moment,
    known: Recent,
    played: Arm,
    value: float,
    *,
    expired: bool,
    **marks: str,
) -> bool:
    """Learn the value of an arm that was played instead; return whether the policy can."""
    decision, outcome = known.decision, known.outcome
    about = {"of": outcome.seq, "id": decision.id}
    learns = learns_any(runner.bandit)
    if not expired:
        expire(runner, draft, now, known, **({} if learns or "status" not in marks else {"status": "counted"}))
    if not learns:
        return False
    other = substituted(known, played)
    runner.cast.learn(other, value)
    known.decision = other
    fields = {**about, "reward": value, "weight": 1.0, **marks, "expired": True, "played": played}
    runner.append_about(draft, now, known, "learn", fields)
    return True


def expire(runner: LoopRunner, draft: Draft, now: Moment, known: Recent, **marks: str) -> None:
    """Wait no longer for the reward of a decision."""
    decision, outcome = known.decision, known.outcome
    runner.cast.expire(decision)
    fields: dict[str, Any] = {"of": outcome.seq, "id": decision.id, **marks, **billed_of(decision)}
    if outcome.given:
        fields["had"] = outcome.given
    runner.append_about(draft, now, known, "expire", fields)


def billed_of(decision: Decision) -> dict[str, float]:
    """Return what a row says of a decision that was billed."""
    billed = getattr(decision, "billed", None)  # a decision among actions has no budget
    return {} if billed is None else {"billed": billed}


def substituted(known: Recent, played: Arm) -> Decision:
    """Return the decision as if the arm that was played had been chosen."""
    fields = known.decision.to_dict()
    x = bytes_of(known.decision.x)
    row = Row(known.outcome.seq, known.row.ts, "decide", known.outcome.t, fields, x)
    return decision_of(substitute(row, played), expired=True)


def _correct(runner: LoopRunner, draft: Draft, now: Moment, known: Recent, value: float, status: Status) -> None:
    outcome, decision = known.outcome, known.decision
    old = 0.0 if outcome.value is None else outcome.value
    fields = {"of": outcome.seq, "id": decision.id, "old_reward": old, "new_reward": value, "status": status}
    if outcome.played is not None:
        fields["played"] = outcome.played
    runner.noting_losses(lambda: runner.cast.correct(decision, old, value))
    runner.append_about(draft, now, known, "correct", fields)


def _take_back(runner: LoopRunner, draft: Draft, now: Moment, known: Recent) -> None:
    """Unlearn the default of a window, of an arm that was not played."""
    outcome, decision = known.outcome, known.decision
    value = 0.0 if outcome.value is None else outcome.value
    runner.noting_losses(lambda: runner.cast.forget(decision, value))
    told = {} if learns_any(runner.bandit) else {"status": "counted"}
    fields = {"of": outcome.seq, "id": decision.id, "reward": value, **told}
    runner.append_about(draft, now, known, "forget", fields)


def learns_any(bandit: Bandit) -> bool:
    """Whether the policy learns from steps that nobody's coin has chosen."""
    return bandit.policy.learns_from != "explored steps"
