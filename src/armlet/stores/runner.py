"""The runner of a loop: it decides, judges, learns and gathers rows, inside a transaction.

Only the thread that writes comes here. The bandit acts first and the row follows, so that what it refuses is never
written. If the transaction then fails, the bandit knows more than the rows: it is marked stale, and made again from
them before its next call. Where a ledger is shared, a transaction first plays the rows of others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from itertools import chain
from typing import TYPE_CHECKING, Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from armlet.bandit import Bandit
from armlet.errors import EventError, InvalidValueError, LoopGoneError, StoreError
from armlet.inputs.feature_change import FeatureChange
from armlet.inputs.settings import Objective
from armlet.kernel import Decision, coins
from armlet.log.guarded import GuardedBandit, alone, guards_of, second_of, size_of
from armlet.policies import is_registered
from armlet.recording import policy_fields
from armlet.stores.draft import Draft, Transaction
from armlet.stores.guards import Gate, Promotion, passes, promoted, shadow_of, with_live
from armlet.stores.ledger import Decided, Early, Found, Head, LoopRecord, Moment, Outcome, Phase, Row, Session, Want
from armlet.stores.overview import Glimpse, gains_of, glimpse, last_decisions
from armlet.stores.refit import Refit
from armlet.stores.replay import Replay, recover
from armlet.stores.rewards import MOST_NAMES, Reward, RewardRules, Status, Verdict, counted, judge
from armlet.stores.rows import bytes_of, checked, decision_of, fields_of, known_of, substitute
from armlet.stores.spec import LoopChange
from armlet.stores.stats import Stats
from armlet.stores.tally import CHANGING, Source, Tally
from armlet.stores.tally.comparisons import Coins, coins_of
from armlet.stores.terms import USUAL, Terms
from armlet.stores.tickets import Chore
from armlet.stores.writer import Writer
from armlet.types import Arm, Float64, Policy

if TYPE_CHECKING:
    from armlet.inputs.settings import Reader

SPACING: Final = 1000  # rows between snapshots, at least
BYTES_A_ROW: Final = 100  # that snapshots may add to the file, on average: the larger a model, the rarer
MARK: Final = 16  # hexadecimal digits in the id of a decision, after its step
WINDOWS: Final = 32  # closed in front of a batch, or in one piece of a chore: about a millisecond
FORGOTTEN, PRUNED, DELETED = 8, 32, 1000  # done in one piece of a chore
COUNTED, ANSWERED = 1000, 64  # rows, and answers without one, until the tally is written
NEVER: Final = 2**63 - 1  # in steady time
LEARNED: Final = ("learned", "default")  # phases
UNGUARDED: Final[Mapping[str, Any]] = {}  # what a row says of guards where there are none
RECENT: Final = 2**14  # decisions in memory, so that their rewards need not be read

log = logging.getLogger("armlet.store")

ASLEEP: Final = Tally()  # of loops that nobody uses; never counted in

P = ParamSpec("P")
T = TypeVar("T")


class ContextChangedError(Exception):
    """A context was read for other features than the loop has now; it is read again."""


class Recent:
    """A decision in memory, and what is known of its reward."""

    __slots__ = ("at", "coins", "decision", "outcome")

    def __init__(self, decision: Decision, outcome: Outcome, at: int, coins: Coins | None) -> None:
        self.decision, self.outcome, self.at, self.coins = decision, outcome, at, coins

    @property
    def arm(self) -> Arm:
        """The arm that was played."""
        return self.decision.arm if self.outcome.played is None else self.outcome.played


class _Going(NamedTuple):
    """What a loop goes on with after a row that says so."""

    bandit: Bandit
    terms: Terms
    fields: Mapping[str, Any]  # of the row
    moved: FeatureChange | None  # the change of features, if there is one
    is_replayed: bool  # a replay of the row leads to the same bandit; else the rows after it go on from its model


def _undoing(method: Callable[Concatenate[LoopRunner, P], T]) -> Callable[Concatenate[LoopRunner, P], T]:
    """Let the runner go stale if a method raises, since its rows will be undone."""

    @wraps(method)
    def guarded(self: LoopRunner, /, *args: P.args, **options: P.kwargs) -> T:
        try:
            return method(self, *args, **options)
        except BaseException:
            self.stale()
            raise

    return guarded


class LoopRunner:
    """The bandit of a loop, its rules, its tally and its last decisions."""

    def __init__(self, record: LoopRecord, policy: Policy | None, writer: Writer, *, is_shared: bool) -> None:
        self.name, self.id, self.policy = record.name, record.id, policy
        self._policies = [(0, policy)]  # by the epoch from which on; a refit that was not kept has none
        self._writer, self._is_shared = writer, is_shared
        self.terms = Terms.read(record)
        self.rules = RewardRules(reward_range=USUAL)
        self.reader: Reader | None = None
        self._bandit: Bandit | None = None  # stale, or asleep
        self.tally = ASLEEP
        self._tallied = 0  # the last row that the tally in the ledger has counted
        self._answered: list[tuple[Status, int]] = []  # without a row, since then; and when
        self._epoch = self._last = self.snapshot = 0  # rows
        self._recent: dict[str, Recent] = {}
        self._settled: list[str] = []  # events whose reward is learned, so that hardly anybody asks for them again
        self._decided: dict[int, Row] = {}  # decisions by their rows, which rows of others may be about
        self._absent: frozenset[str] = frozenset()  # events that were looked up in this transaction
        self._is_behind = self._has_more_due = False  # a chore is closing windows; there are more than were closed
        self._drop_at = 0  # when to look for early rewards that are over; steady time
        self.is_in_use = self.is_gone = False  # somebody has the loop; it was deleted

    # ---- waking up and following others

    def stale(self) -> None:
        """Forget what memory knows; the rows know better."""
        self._bandit = None
        self._recent.clear()
        self._decided.clear()

    def lock(self, tx: Transaction, now: Moment) -> None:
        """Lock the loop, and leave memory as it is."""
        if tx.draft(self.id) is None:
            tx.enter([self.want(now)])

    def rest(self, tx: Transaction, now: Moment) -> None:
        """Keep a snapshot and let go of the memory that it takes; its next call wakes it up."""
        self.lock(tx, now)
        draft = tx.draft(self.id)
        is_known = draft is not None and draft.seq == self._last and draft.found.head.epoch == self._epoch
        if draft is not None and is_known and not self.is_asleep:
            self.save(draft)
            self.end(draft)
        self.let_go()

    def let_go(self) -> None:
        """Let go of the memory that it takes; the rows know all."""
        self.stale()
        self.tally = ASLEEP

    @property
    def is_asleep(self) -> bool:
        """Whether it takes next to no memory."""
        return self._bandit is None

    @property
    def bandit(self) -> Bandit:
        """The bandit, of a loop that was opened in this transaction."""
        return self._awake

    @property
    def memory(self) -> int:
        """About how many bytes it takes while it is awake."""
        if self._bandit is None:
            return 0
        return 20_000 + 3 * size_of(self._bandit) + 1500 * (len(self._recent) + len(self._decided))

    @property
    def rows_since_snapshot(self) -> int:
        """How many rows would be replayed now."""
        return self._last - self.snapshot

    def want(self, now: Moment, events: Iterable[str] = ()) -> Want:
        """Return what to read when the loop is locked."""
        self._writer.entered.pop(self, None)
        self._writer.entered[self] = None
        if self._is_shared:
            self._recent.clear()  # others may have changed what is known of them
        else:
            for event in self._settled:
                self._recent.pop(event, None)
            if len(self._recent) > RECENT:
                for event in list(self._recent)[: RECENT // 2]:
                    del self._recent[event]
        self._settled.clear()
        asked = [event for event in events if event not in self._recent]
        self._absent = frozenset(asked)
        after = self._last if self._is_shared and self._bandit is not None else None
        return Want(self.id, after, asked, now.steady if self.terms.has_windows else None, WINDOWS)

    def open(self, tx: Transaction, now: Moment, events: Iterable[str] = ()) -> Draft:
        """Lock the loop and bring memory up to date."""
        if tx.draft(self.id) is None:
            tx.enter([self.want(now, events)])
        return self.begin(tx, now)

    @_undoing
    def begin(self, tx: Transaction, now: Moment) -> Draft:
        """Bring memory up to date with a loop that is locked, and close windows that are due, some of them.

        The others are closed between this batch and the next ones. A decision that comes before is a function of the
        rows that were written before it, like any other.
        """
        draft = tx.draft(self.id)
        if draft is None or self.is_gone:
            raise LoopGoneError(f"there is no loop {self.name!r} any more; make it again, with arms")
        head, found = draft.found.head, draft.found
        if self._bandit is None or head.epoch != self._epoch:
            self._recover(tx.session, draft)
        elif draft.seq != self._last:
            self._follow(tx.session, draft)
        for decided in found.decided:
            self._remember(decided)
        if found.decided:
            self._absent -= {decided.outcome.event for decided in found.decided}
        if found.due or found.rows or found.decided:
            draft.found = Found(head)
        if found.due or self._has_more_due:
            self._close_due(draft, now, found.due)
        return draft

    def _recover(self, session: Session, draft: Draft) -> None:
        record = session.find(self.name)
        if record is None or record.id != self.id:
            raise LoopGoneError(f"loop {self.name!r} was deleted; make it again, with arms")
        self._recent.clear()
        self._decided.clear()
        self.terms = Terms.read(record)
        head = draft.found.head
        first, *later = self._policies
        self._policies = [first, *(each for each in later if each[0] <= head.epoch)]
        self.policy = self._policies[-1][1]
        self._bandit, self.tally, self.snapshot = recover(session, record, head, self.policy, self.terms.carry)
        self._recount(head)
        self.rules = self.terms.rules(self._bandit)
        reader = self._bandit.settings.reader
        if reader != self.reader:
            self.reader = reader
        self._epoch, self._last = head.epoch, head.seq
        log.debug("loop %s: recovered at row %d from a model of row %d", self.name, self._last, self.snapshot)

    def _follow(self, session: Session, draft: Draft) -> None:
        """Play the rows of others."""
        head, rows = draft.found.head, draft.found.rows
        if head.tallied > self._tallied:  # another one has written down what he counted
            self.tally = Tally.from_json(session.tally(self.id) or "")
            self._recount(head)
        counted = max(head.tallied, self._last)
        self._pick(session, rows)
        find = partial(session.row, self.id)
        replay = Replay(self._awake, find, self.terms.carry, self.tally, counted, self._decided)
        last = replay.play(rows, self._last)
        if last != head.seq:  # there were more than are read on entering
            last = replay.play(session.rows(self.id, last), last)
        if last != head.seq:
            raise StoreError(f"row {last + 1} of the loop is missing; go back to a backup")
        self._last = last

    def _pick(self, session: Session, rows: Sequence[Row]) -> None:
        """Read the decisions that rows are about, as far as memory has none, all at once."""
        about = {row.fields["of"] for row in rows if "of" in row.fields}
        missing = about.difference(self._decided, [row.seq for row in rows])
        for row in session.pick(self.id, sorted(missing)) if missing else ():
            self._decided[row.seq] = row

    def _recount(self, head: Head) -> None:
        """Count what was answered here without a row, after the tally was read."""
        self._tallied = head.tallied
        for status, ts in self._answered:
            self.tally.answered(status, ts)

    @property
    def _awake(self) -> Bandit:
        if self._bandit is None:
            raise StoreError(f"loop {self.name!r} is not ready")
        return self._bandit

    def undo(self, tx: Transaction, draft: Draft, error: BaseException) -> None:
        """Undo what a call did that was refused, in memory; its rows are undone already.

        Armlet's own policies raise before they change anything; nobody knows about others, nor about what ends threads.
        Of two bandits one may have changed before the other raised.
        """
        bandit = self._bandit
        is_torn = isinstance(bandit, GuardedBandit) and bandit.is_torn
        is_doubtful = is_torn or (self.policy is not None and not isinstance(error, EventError))
        if is_doubtful or bandit is None or self._last != draft.seq or not isinstance(error, Exception):
            self.stale()
            self._absent = frozenset()  # some may have been decided since they were looked up
            tx.flush()

    def wake(self, tx: Transaction, draft: Draft) -> None:
        """Make the bandit again from its rows, if a call before has left it in doubt."""
        if self._bandit is None:
            self._recover(tx.session, draft)

    def end(self, draft: Draft) -> None:
        """Add what a transaction keeps of a loop besides its rows."""
        if self._is_shared:
            self._decided.update((row.seq, row) for row in draft.rows if row.kind == "decide")
            if len(self._decided) > RECENT:
                for seq in list(self._decided)[: RECENT // 2]:
                    del self._decided[seq]
        if self._last - self._tallied >= COUNTED or len(self._answered) >= ANSWERED:
            self._write_tally(draft)
        bandit = self._bandit
        if bandit is not None and self._last - self.snapshot >= max(SPACING, size_of(bandit) // BYTES_A_ROW):
            self.save(draft)

    def _write_tally(self, draft: Draft) -> None:
        draft.tally = self.tally.to_json()
        self._tallied = draft.seq
        self._answered.clear()

    def save(self, draft: Draft) -> None:
        """Keep a snapshot of what has been learned so far."""
        if self._last > self._tallied or self._answered:
            self._write_tally(draft)
        if self._bandit is not None and self._last > self.snapshot:
            draft.snapshot = (self._last, self._bandit.to_bytes())
            self.snapshot = self._last

    # ---- decisions

    def decide(
        self,
        tx: Transaction,
        draft: Draft,
        now: Moment,
        x: Float64,
        event: str | None,
        options: Mapping[str, Any],
        reader: Reader,
    ) -> Decision:
        """Decide, or return the decision that this event has."""
        if reader is not self.reader:
            raise ContextChangedError
        bandit = self._awake
        if event is not None:
            known = self._find(tx, event)
            if known is not None:
                return self._again(tx, draft, known, x, options.get("eligible"))
            _check_no_id(event, bandit)
        guarded: Mapping[str, Any] = UNGUARDED
        if type(bandit) is GuardedBandit:  # quicker than isinstance
            decision, guarded = bandit.play(x, t=draft.clock + 1, **options)
        else:
            decision = bandit.decide(x, t=draft.clock + 1, propensity="marginal", **options)
        name = decision.id if event is None else event
        fields = fields_of(decision, name)
        if guarded:
            fields |= guarded
        seq = self._append(draft, now, "decide", decision.t, fields, bytes_of(x))
        due = None if self.rules.window is None else now.steady + self.rules.window
        outcome = Outcome(decision.t, name, seq, "open", None, due)
        draft.insert(outcome)
        recent = self._recent[name] = Recent(decision, outcome, now.wall, coins_of(fields))
        self.tally.decided(decision, now.wall, seq)
        if draft.found.head.early:
            self._arrive(tx, draft, now, recent)
        return decision

    def _find(self, tx: Transaction, event: str) -> Recent | None:
        """Look an event up: in memory, or among what was read when the loop was locked, or now."""
        recent = self._recent.get(event)
        if recent is None and event not in self._absent:
            for decided in tx.session.decided(self.id, [event]):
                recent = self._remember(decided)
        return recent

    def _remember(self, decided: Decided) -> Recent:
        outcome, row = decided
        row = self.terms.carry.row(checked(row, "decide"))
        coins = coins_of(row.fields)
        learned = outcome.value if outcome.phase in LEARNED else None
        if outcome.played is not None and outcome.phase in LEARNED:
            row = substitute(row, outcome.played)
        decision = decision_of(row, learned, **({"expired": True} if outcome.phase == "expired" else {}))
        recent = self._recent[outcome.event] = Recent(decision, outcome, row.ts, coins)
        return recent

    def _again(
        self, tx: Transaction, draft: Draft, known: Recent, x: Float64, eligible: Iterable[Arm] | None
    ) -> Decision:
        row, event = self._row(tx, draft, known), known.outcome.event
        is_same = row.x == bytes_of(x) if not self.terms.changes else self.terms.carry.matches(row, x)
        if not is_same or not _same_arms(row.fields["eligible"], eligible):
            raise EventError(
                f"event {event!r} has been decided for another context or other eligible arms; "
                "give a new decision another name, or repeat the first one as it was"
            )
        return decision_of(row)

    def _row(self, tx: Transaction, draft: Draft, known: Recent) -> Row:
        """Return the row of a decision, which may not be written yet."""
        seq = known.outcome.seq
        row = draft.rows[seq - draft.seq - 1] if seq > draft.seq - len(draft.rows) else tx.session.row(self.id, seq)
        if row is None:
            raise StoreError(f"the decision of event {known.outcome.event!r} is missing; go back to a backup")
        return checked(row, "decide")

    def _read_again(self, tx: Transaction, draft: Draft, known: Recent) -> Recent:
        return self._remember(Decided(known.outcome, self._row(tx, draft, known)))

    # ---- rewards

    def reward(self, tx: Transaction, draft: Draft, now: Moment, event: str, told: Reward) -> Status:
        """Judge a reward, and learn it if it is time."""
        known = self._find(tx, event)
        if known is None:
            return self._wait(draft, now, event, told)
        if known.decision.learned != (known.outcome.phase in LEARNED):  # elsewhere, by whoever was given it
            known = self._read_again(tx, draft, known)
        if known.outcome.due is not None and known.outcome.due <= now.steady:
            self._close(draft, now, known)  # its turn has not come yet, but it is over
        verdict = self._judge(known, told)
        if verdict.act in ("nothing", "note"):
            self._answer(verdict.status, now)
        if verdict.act == "nothing":
            return verdict.status
        return self._count(draft, now, known, told, verdict)

    def _answer(self, status: Status, now: Moment) -> None:
        """Count an answer of which no row tells."""
        self.tally.answered(status, now.wall)
        self._answered.append((status, now.wall))

    def _judge(self, known: Recent, told: Reward) -> Verdict:
        if told.played is None:
            return judge(self.rules, known.outcome, told)
        self._check_played(told.played)
        if known.outcome.phase == "default" and told.played != known.arm:
            is_taken = self.rules.takes(told.value)
            return Verdict("late", "move", told.value) if is_taken else Verdict("out_of_range", "nothing")
        if known.outcome.value is not None and told.played != known.arm:
            return Verdict("conflict", "nothing")
        return judge(self.rules, known.outcome, told)

    def _check_played(self, arm: Arm) -> None:
        if arm not in self._awake.arms:
            raise EventError(
                f"played is {arm!r}, which is not an arm of loop {self.name!r}; give the arm that was shown"
            )

    def _count(self, draft: Draft, now: Moment, known: Recent, told: Reward, verdict: Verdict) -> Status:
        """Let a reward count."""
        before, status = known.outcome, verdict.status
        after = counted(before, told, verdict)
        if before.played is None and after.played == known.decision.arm:
            after = after._replace(played=None)
        value = 0.0 if verdict.value is None else verdict.value
        has_row = verdict.act != "note"
        if verdict.act == "hold":
            fields = {"of": before.seq, "id": known.decision.id, "reward": told.value, "status": status}
            self._append(draft, now, "reward", before.t, fields)
        elif verdict.act == "move":
            self._take_back(draft, now, known)
            if not self._learn(draft, now, known, after, value, expired=True, status=status):
                after, status = after._replace(phase="expired"), "counted"
        elif verdict.act == "learn":
            if not self._learn(draft, now, known, after, value, expired=before.phase == "expired", status=status):
                after, status = after._replace(phase="expired"), "counted"
                has_row = before.phase != "expired"
        elif verdict.act == "correct" and before.phase == "expired":  # it was counted, and not learned
            after, status, has_row = after._replace(phase="expired"), "counted", False
        elif verdict.act == "correct":
            self._correct(draft, now, known, value, status)
        if has_row:
            self.tally.answered(status, now.wall, known.at)
        elif verdict.act != "note":
            self._answer(status, now)
        known.outcome = after
        draft.change(after)
        if after.phase == "learned" and self.rules.aggregation == "first":
            self._settled.append(after.event)
        return status

    def _learn(
        self, draft: Draft, now: Moment, known: Recent, outcome: Outcome, value: float, *, expired: bool, **marks: str
    ) -> bool:
        """Learn a value, of the arm that was played; return whether the policy can."""
        decision = known.decision
        if outcome.played is not None:
            return self._learn_other(draft, now, known, outcome.played, value, expired=expired, **marks)
        self._awake.learn(decision, value)
        fields = {"of": outcome.seq, "id": decision.id, "reward": value, "weight": 1.0, **marks}
        if expired:
            fields["expired"] = True
            self.tally.revived(decision.arm)
        self._append(draft, now, "learn", outcome.t, fields)
        source: Source = "default" if marks.get("source") == "default" else "reward"
        coins = None if expired else known.coins
        self.tally.learned(decision.arm, value, decision.explored, known.at, now.wall, source, coins, outcome.seq)
        return True

    def _learn_other(
        self, draft: Draft, now: Moment, known: Recent, played: Arm, value: float, *, expired: bool, **marks: str
    ) -> bool:
        """Learn the value of an arm that was played instead; return whether the policy can."""
        decision, bandit, outcome = known.decision, self._awake, known.outcome
        about = {"of": outcome.seq, "id": decision.id}
        learns = self._learns_any
        if not expired:
            bandit.expire(decision)
            self.tally.expired(decision.arm)
            told = {} if learns or "status" not in marks else {"status": "counted"}
            self._append(draft, now, "expire", outcome.t, {**about, **told})
        if not learns:
            return False
        other = self._substitute(known, played)
        bandit.learn(other, value)
        known.decision = other
        fields = {**about, "reward": value, "weight": 1.0, **marks, "expired": True, "played": played}
        self._append(draft, now, "learn", outcome.t, fields)
        self.tally.revived(played)
        self.tally.learned(played, value, False, known.at, now.wall, "reward")
        return True

    def _substitute(self, known: Recent, played: Arm) -> Decision:
        """Return the decision as if the arm that was played had been chosen."""
        fields = known.decision.to_dict()
        x = bytes_of(known.decision.x)
        row = Row(known.outcome.seq, known.at, "decide", known.outcome.t, fields, x)
        return decision_of(substitute(row, played), expired=True)

    def _correct(self, draft: Draft, now: Moment, known: Recent, value: float, status: Status) -> None:
        outcome, decision = known.outcome, known.decision
        old = 0.0 if outcome.value is None else outcome.value
        fields = {"of": outcome.seq, "id": decision.id, "old_reward": old, "new_reward": value, "status": status}
        if outcome.played is not None:
            fields["played"] = outcome.played
        self._awake.correct(decision, old, value)
        self._append(draft, now, "correct", outcome.t, fields)
        self.tally.corrected(known.arm, old, value, explored=self._has_explored(known), decided_at=known.at)

    def _has_explored(self, known: Recent) -> bool:
        return known.decision.explored and known.outcome.played is None

    def _take_back(self, draft: Draft, now: Moment, known: Recent) -> None:
        """Unlearn the default of a window, of an arm that was not played."""
        outcome, decision = known.outcome, known.decision
        value = 0.0 if outcome.value is None else outcome.value
        self._awake.forget(decision, value)
        told = {} if self._learns_any else {"status": "counted"}
        fields = {"of": outcome.seq, "id": decision.id, "reward": value, **told}
        self._append(draft, now, "forget", outcome.t, fields)
        self.tally.forgotten(decision.arm, value)

    @property
    def _learns_any(self) -> bool:
        """Whether the policy learns from steps that nobody's coin has chosen."""
        return self._awake.policy.learns_from != "explored steps"

    # ---- rewards before their decision

    def _wait(self, draft: Draft, now: Moment, event: str, told: Reward) -> Status:
        early = self.rules.early
        status: Status = "unknown" if early is None else "early"
        if told.played is not None and early is not None:
            self._check_played(told.played)  # or its decision would be refused
        if early is not None:
            draft.early.append(Early(event, now.steady + early, told.to_dict()))
            self._drop_some_later(now, early)
        self._answer(status, now)
        return status

    def _drop_some_later(self, now: Moment, early: int) -> None:
        """Let those whose decision never came be dropped, once in every window."""
        if now.steady >= self._drop_at and not self._is_behind:
            self._drop_at, self._is_behind = now.steady + early, True
            self._writer.later(self.settling(), self)

    def _arrive(self, tx: Transaction, draft: Draft, now: Moment, known: Recent) -> None:
        """Let the rewards count that have waited for a decision."""
        event = known.outcome.event
        waiting = tx.session.early(self.id, event)
        if waiting:
            draft.arrived.append((event, len(waiting)))
        for each in waiting:
            if each.until > now.steady and len(known.outcome.names) < MOST_NAMES:
                told = Reward(**each.fields)
                verdict = self._judge(known, told)
                if verdict.act != "nothing":
                    self._count(draft, now, known, told, verdict)

    # ---- windows

    def _close_due(self, draft: Draft, now: Moment, due: Sequence[Decided]) -> None:
        """Close windows that are due, the first ones first; the rest later."""
        for decided in due:
            known = self._recent.get(decided.outcome.event) or self._remember(decided)
            if known.outcome.due is not None and known.outcome.due <= now.steady:
                self._close(draft, now, known)
        self._has_more_due = len(due) == WINDOWS
        if self._has_more_due and not self._is_behind:
            self._is_behind = True
            self._writer.later(self.settling(), self)

    def _close(self, draft: Draft, now: Moment, known: Recent) -> None:
        """Learn the reward that came in time, or else the default."""
        before = known.outcome
        came = before.value is not None and self.rules.takes(before.value)  # there may be another range by now
        value = before.value if came else self.rules.default
        if value is None:
            raise StoreError(f"a window of loop {self.name!r} closes without a default reward; go back to a backup")
        source: Source = "reward" if came else "default"
        is_learned = self._learn(draft, now, known, before, value, expired=False, source=source)
        phase: Phase = "expired" if not is_learned else "learned" if came else "default"
        known.outcome = before._replace(phase=phase, value=value, due=None)
        draft.change(known.outcome)

    def settling(self) -> Chore[None]:
        """Close all windows that are due when it begins, and drop rewards whose decision never came."""
        try:
            tx, now = yield
            until, self._is_behind = now.steady, True
            while self._settle(tx, now._replace(steady=until)):
                tx, now = yield
            while self.rules.early is not None and self._drop_old(tx, now, until):
                tx, now = yield
        finally:
            self._is_behind = False

    @_undoing
    def _settle(self, tx: Transaction, now: Moment) -> bool:
        self.end(self.open(tx, now))
        return self._has_more_due

    def _drop_old(self, tx: Transaction, now: Moment, until: int) -> int:
        self.open(tx, now)
        return tx.direct(self.id).drop_early(self.id, until, FORGOTTEN)

    def copying(self) -> Chore[Bandit]:
        """Copy the bandit when all windows that are due are closed."""
        yield from self.settling()
        tx, now = yield
        self.open(tx, now)
        return alone(self._awake)

    # ---- maintenance

    def forgetting(self, events: Sequence[str]) -> Chore[int]:
        """Unlearn decisions and delete all about them but the step, the arm and its probability; return how many."""
        found = 0
        for first in range(0, len(events), FORGOTTEN):
            tx, now = yield
            found += self._forget(tx, now, events[first : first + FORGOTTEN])
        if found:
            log.info("loop %s: %d decisions forgotten", self.name, found)
        return found

    @_undoing
    def _forget(self, tx: Transaction, now: Moment, events: Sequence[str]) -> int:
        """Let the bandit go on from what it knows without these; no row is left, nor needed, that says how."""
        draft = self.open(tx, now, events)
        known = [recent for event in dict.fromkeys(events) if (recent := self._find(tx, event)) is not None]
        for recent in known:
            self._unlearn(recent)
            if self.terms.frozen_at:
                self._unlearn_frozen(tx, draft, recent)
        self._drop_early(tx, draft, events)
        session = tx.direct(self.id)
        for recent in known:
            session.erase(self.id, recent.outcome.t)
            del self._recent[recent.outcome.event]
            self._decided.pop(recent.outcome.seq, None)
        if known:
            self.rebase(tx, now)
        return len(known)

    def _unlearn(self, known: Recent) -> None:
        outcome, bandit = known.outcome, self._awake
        if outcome.phase == "open":
            bandit.expire(known.decision)
            self.tally.forgotten(known.arm, None)
        elif outcome.phase != "expired" and outcome.value is not None:
            bandit.forget(known.decision, outcome.value)
            self.tally.forgotten(known.arm, outcome.value, explored=self._has_explored(known), decided_at=known.at)

    def _unlearn_frozen(self, tx: Transaction, draft: Draft, known: Recent) -> None:
        """Let a frozen policy unlearn what it knew of a decision when it was frozen; rows since then told the other."""
        bandit, outcome = self._awake, known.outcome
        if not isinstance(bandit, GuardedBandit) or outcome.seq > self.terms.frozen_at:
            return
        row = self.terms.carry.row(self._row(tx, draft, known))
        tx.flush()
        heard = [each for each in tx.session.heard(self.id, outcome.t) if each.seq <= self.terms.frozen_at]
        then = known_of(row, heard)
        if then is not None:
            bandit.forget_frozen(then, then.reward)

    def _drop_early(self, tx: Transaction, draft: Draft, events: Sequence[str]) -> None:
        if draft.found.head.early:
            waiting = {event: len(tx.session.early(self.id, event)) for event in events}
            draft.arrived += [(event, n) for event, n in waiting.items() if n]

    def pruning(self, before: int) -> Chore[int]:
        """Delete what is old and did not explore; return how many.

        What still waits for a reward is expired before it goes, by rows that can be replayed, so that the model does
        not count decisions that nobody can reward.
        """
        yield from self.settling()
        pruned, waiting = yield from self._prune(before)
        if waiting:
            pruned += (yield from self._prune(before))[0]
        log.info("loop %s: %d decisions pruned", self.name, pruned)
        return pruned

    def _prune(self, before: int) -> Chore[tuple[int, int]]:
        """Delete what can go, and expire what waits for a reward; return how many of each."""
        tx, now = yield
        self.open(tx, now)
        self.rebase(tx, now)
        after: int | None = 0
        pruned = waiting = 0
        while after is not None:
            tx, now = yield
            self.open(tx, now)
            piece = tx.direct(self.id).prune(self.id, before, after, PRUNED)
            self._recent.clear()
            self._expire(tx, now, piece.open)
            pruned, waiting, after = pruned + piece.n, waiting + len(piece.open), piece.after
        return pruned, waiting

    @_undoing
    def _expire(self, tx: Transaction, now: Moment, waiting: Sequence[Decided]) -> None:
        draft = self.open(tx, now)
        for decided in waiting:
            known = self._remember(decided)
            self._awake.expire(known.decision)
            about = {"of": known.outcome.seq, "id": known.decision.id}
            self._append(draft, now, "expire", known.outcome.t, about)
            known.outcome = known.outcome._replace(phase="expired")
            draft.change(known.outcome)
            self.tally.expired(known.arm)
        self.end(draft)

    def rebase(self, tx: Transaction, now: Moment) -> None:
        """Go on from what has been learned so far, so that no row before is needed to make it again."""
        tx.direct(self.id).rebase(self.id, self._last, self._awake.to_bytes())
        self._epoch += 1
        self.snapshot = self._last
        draft = self.open(tx, now)
        self._write_tally(draft)  # the rows before are not counted again, and may be gone
        self.end(draft)

    @_undoing
    def add_rows(self, tx: Transaction, now: Moment, changes: Iterable[tuple[str, Arm]]) -> None:
        """Add, retire or restore arms."""
        draft, bandit = self.open(tx, now), self._awake
        for kind, arm in changes:
            getattr(bandit, kind)(arm)
            self._append(draft, now, kind, None, {"arm": arm})
            log.info("loop %s: %s", self.name, kind)
        self.end(draft)

    def arms_to(self, tx: Transaction, now: Moment, arms: Iterable[Arm]) -> list[tuple[str, Arm]]:
        """Return what to add, restore and retire until those of a list are the ones that are played."""
        self.open(tx, now)
        bandit = self._awake
        wanted, known, retired = dict.fromkeys(arms), bandit.arms, set(bandit.arms.retired)
        added = wanted.keys() - set(known)
        add = (("add_arm", arm) for arm in wanted if arm in added)
        restore = (("restore_arm", arm) for arm in wanted if arm in retired)
        retire = (("retire_arm", arm) for arm in known if arm not in wanted and arm not in retired)
        return [*chain(add, restore, retire)]

    @_undoing
    def change(self, tx: Transaction, now: Moment, change: LoopChange, refit: Refit | None = None) -> None:
        """Go on with other terms: a row says so, and what cannot be changed is refused before anything is."""
        draft = self.open(tx, now)
        twin, replaces = self._renewed(tx, draft, change, refit)
        try:
            more, moved = change.apply(twin)
        except InvalidValueError as error:
            if change.policy is not None and refit is None:
                raise InvalidValueError(f"{error}; or let it learn the loop's log again: how='refit'") from error
            raise
        told = [*replaces, *more, *([{"guards": guards_of(twin)}] if change.has_guards else [])]
        going = _Going(
            bandit=twin,
            terms=self.terms.with_rules(**change.rules),
            fields={"rules": dict(change.rules), "replaces": told},
            moved=moved,
            is_replayed=refit is None and not change.has_guards,
        )
        self._go_on(tx, now, draft, going)
        if change.arms is not None:
            self.add_rows(tx, now, self.arms_to(tx, now, change.arms))

    def _renewed(
        self, tx: Transaction, draft: Draft, change: LoopChange, refit: Refit | None
    ) -> tuple[Bandit, list[Mapping[str, Any]]]:
        """Return a bandit to go on with, whose new policy has learned the log if asked, and what a row says."""
        bandit = self._awake
        if refit is None:
            return change.guard(bandit.copy()), []
        tx.flush()
        is_live = change.policy is not None
        has_other_range = is_live and change.reward_range is not None and second_of(bandit) is None
        reward_range = None if has_other_range else bandit.settings.reward_range
        learned = refit.finish(tx.session, self.id, draft.head, self.terms.carry, reward_range)
        if not is_live:
            return change.guard(bandit.copy(), learned), []
        twin = with_live(bandit, learned) if isinstance(bandit, GuardedBandit) else learned
        return change.guard(twin), [policy_fields(learned.policy)]

    @_undoing
    def reguard(self, tx: Transaction, now: Moment, make: Callable[[Bandit], Bandit]) -> bool:
        """Go on with what is made of the bandit and its guards; return whether that is another one."""
        draft, bandit = self.open(tx, now), self._awake
        twin = make(bandit)
        if twin is bandit:
            return False
        replaces = [] if twin.policy == bandit.policy else [policy_fields(twin.policy)]
        fields = {"rules": {}, "replaces": [*replaces, {"guards": guards_of(twin)}]}
        going = _Going(bandit=twin, terms=self.terms, fields=fields, moved=None, is_replayed=False)
        self._go_on(tx, now, draft, going)
        return True

    @_undoing
    def promote(self, tx: Transaction, now: Moment, gate: Gate, share: float | None) -> Promotion:
        """Make the shadow the live policy if its comparison so far lets it through the gate."""
        self.open(tx, now)
        shadow_of(self._awake)
        gain = next((each for each in gains_of(self.tally, self.terms) if each.against == "shadow"), None)
        if not passes(gate, gain):
            return Promotion(promoted=False, gain=gain)
        self.reguard(tx, now, lambda bandit: promoted(bandit, share))
        return Promotion(promoted=True, gain=gain)

    def _go_on(self, tx: Transaction, now: Moment, draft: Draft, going: _Going) -> None:
        twin, terms = going.bandit, going.terms
        self.rules = terms.rules(twin)
        seq = self._append(draft, now, "change", None, going.fields)
        if going.moved is not None:
            terms = terms.with_change(seq, going.moved)
        self._bandit, self.terms = twin, terms.with_guards(seq, guards_of(twin))
        self._recent.clear()
        self.end(draft)
        tx.direct(self.id).describe(self.id, self.terms.to_json())
        self._epoch += 1
        if not going.is_replayed:
            self.policy = None if is_registered(twin.policy) else twin.policy
            self._policies.append((self._epoch, self.policy))
            self.rebase(tx, now)
        if twin.settings.reader != self.reader:
            self.reader = twin.settings.reader
        self.save(self.open(tx, now))

    def stats(self, tx: Transaction, now: Moment, size: int) -> Stats:
        """Return what was counted."""
        oldest = tx.session.due(self.id, NEVER, 1) if self.terms.has_windows else ()
        return Stats.of(
            self.name,
            self.tally,
            now.wall,
            oldest_open_at=oldest[0].row.ts if oldest else None,
            rows_since_snapshot=self.rows_since_snapshot,
            size=size,
        )

    def glimpse(self, tx: Transaction, draft: Draft, now: Moment) -> Glimpse:
        """Return what details are made of; the last decisions are read by their numbers."""
        tx.flush()
        rows = tx.session.pick(self.id, list(self.tally.last_rows))
        events = [row.fields["event"] for row in rows if "event" in row.fields]
        outcomes = (decided.outcome for decided in tx.session.decided(self.id, events))
        values = {outcome.seq: outcome.value for outcome in outcomes if outcome.value is not None}
        counts, last = (draft.found.head.early, self.rows_since_snapshot), last_decisions(rows, values)
        return glimpse(self.name, now.wall, self.tally, self.terms, self._awake, last, counts)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Take back what the tally counted of several calls if one of them is refused."""
        answered = len(self._answered)
        try:
            yield
        except BaseException:
            del self._answered[answered:]
            self.stale()
            raise

    @property
    def objective(self) -> Objective:
        """Whether rewards are to be high, or costs low."""
        return self._awake.settings.objective

    def _append(
        self, draft: Draft, now: Moment, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None = None
    ) -> int:
        self._last = draft.append(now, kind, t, fields, x)
        if kind in CHANGING:
            self.tally.changed(self._last, now.wall, kind, fields)
        return self._last


def _same_arms(known: list[Arm] | None, given: Iterable[Arm] | None) -> bool:
    return known == given if known is None or given is None else set(known) == set(given)


def _check_no_id(event: str, bandit: Bandit) -> None:
    """Refuse a name that a later decision without a name will have."""
    step, _, mark = event.partition("-")
    is_like_one = len(mark) == MARK and len(step) < MARK and step.isdecimal()
    if is_like_one and int(step) > bandit.t and mark == f"{coins(bandit.seed, int(step)).mark:0{MARK}x}":
        raise EventError(f"event is {event!r}, the id of a decision that is still to come; give another name")
