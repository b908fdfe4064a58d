"""The runner of a loop: it decides, judges, learns and gathers rows, inside a transaction.

Only the thread that writes comes here. The bandit acts first and the row follows, so that what it refuses is never
written. If the transaction then fails, the bandit knows more than the rows: it is marked stale, and made again from
them before its next call. Where a ledger is shared, a transaction first plays the rows of others.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from armlet.actions.bandit import ActionBandit
from armlet.bandit import Bandit
from armlet.cast.cast import Cast
from armlet.cast.model import read_cast
from armlet.errors import (
    ArmletError,
    DecisionError,
    EventError,
    InternalError,
    InvalidTypeError,
    InvalidValueError,
    LoopGoneError,
    StoreError,
)
from armlet.inputs.ask import Ask
from armlet.inputs.feature_change import FeatureChange
from armlet.kernel import Decision, coins
from armlet.lost_digits import keeping_rows
from armlet.policies import is_registered
from armlet.policies.discounts import MINUTE
from armlet.record.replay import play
from armlet.report import notebook
from armlet.stores.folds import Tally
from armlet.stores.ledger import (
    REWARD,
    Decided,
    Early,
    Entered,
    Head,
    LoopRecord,
    Moment,
    Pending,
    Row,
    Session,
    Want,
)
from armlet.stores.rewards import (
    PartRules,
    Reward,
    RewardRules,
    Status,
    bill_part,
    check_played,
    close,
    count,
    has_room,
    judge,
    judged,
    learned_elsewhere,
    spent_part,
)
from armlet.stores.rows.decisions import bytes_of, checked, decision_of, fields_of, substitute, timed
from armlet.stores.rows.replay import Replay, RowPast, plays_of, recover, written
from armlet.stores.rows.tables import KeptTable
from armlet.stores.terms import USUAL, Terms
from armlet.stores.transaction import Chore, ContextChangedError, Draft, Recent, Transaction
from armlet.stores.writer import Writer
from armlet.types import Arm, Float64, Policy

if TYPE_CHECKING:
    from armlet.actions.settings import ActionSettings
    from armlet.inputs.settings import Reader

MICROSECOND: Final = timedelta(microseconds=1)
SPACING: Final = 1000  # rows between snapshots, at least
BYTES_A_ROW: Final = 100  # that snapshots may add to the file, on average: the larger a model, the rarer
BYTES_A_NUMBER: Final = 12  # of a table of actions, as float64 and as float32
MARK: Final = 16  # hexadecimal digits in the id of a decision, after its step
WINDOWS: Final = 32  # closed in front of a batch, or in one piece of a chore: about a millisecond
DROPPED: Final = 8  # early rewards, in one piece of a chore
COUNTED, ANSWERED = 1000, 64  # rows, and answers without one, until the tally is written
LEARNED: Final = ("learned", "default")  # phases
ALONE: Final[Mapping[str, Any]] = {}  # what a row says of the cast of a policy that is alone
RECENT: Final = 2**14  # decisions in memory, so that their rewards need not be read
ACTIONS: Final[type] = ActionBandit
ASLEEP: Final = Tally()  # of loops that nobody uses; never counted in

log = logging.getLogger("armlet.store")

P = ParamSpec("P")
T = TypeVar("T")


class Going(NamedTuple):
    """What a loop goes on with after a row that says so."""

    cast: Cast
    terms: Terms
    fields: Mapping[str, Any]  # of the row
    moved: FeatureChange | None  # the change of features, if there is one
    is_replayed: bool  # a replay of the row leads to the same cast; else the rows after it go on from its model


def undoing(work: Callable[Concatenate[LoopRunner, P], T]) -> Callable[Concatenate[LoopRunner, P], T]:
    """Let the runner go stale if work on it raises, since its rows will be undone."""

    @wraps(work)
    def guarded(runner: LoopRunner, /, *args: P.args, **options: P.kwargs) -> T:
        try:
            return work(runner, *args, **options)
        except BaseException:
            runner.stale()
            raise

    return guarded


class LoopRunner:
    """The cast of a loop, its rules, its tally and its last decisions."""

    def __init__(self, record: LoopRecord, policy: Policy | None, writer: Writer, *, is_shared: bool) -> None:
        self.name, self.id, self.policy = record.name, record.id, policy
        self._policies = [(0, policy)]  # by the epoch from which on; a refit that was not kept has none
        self._writer, self._is_shared = writer, is_shared
        self.terms = Terms.read(record)
        self.rules = RewardRules(parts={REWARD: PartRules(reward_range=USUAL)})
        self.reader: Reader | None = None
        self.action_settings: ActionSettings | None = None  # where actions come with each decision
        self._cast: Cast | None = None  # stale, or asleep
        self.tally = ASLEEP
        self._tallied = 0  # the last row that the tally in the ledger has counted
        self._answered: list[tuple[Status, int]] = []  # without a row, since then; and when
        self._epoch = self._last = self.snapshot = 0  # rows
        self._recent: dict[str, Recent] = {}
        self.settled: list[str] = []  # events whose reward is learned, so that hardly anybody asks for them again
        self._decided: dict[int, Row] = {}  # decisions by their rows, which rows of others may be about
        self.last_fields: dict[str, Any] = {}  # of the last row about a decision
        self._absent: frozenset[str] = frozenset()  # events that were looked up in this transaction
        self.tables: dict[str, KeptTable] = {}  # of actions, by name, as far as they were used here
        self.last_table: KeptTable | None = None  # that was written here, of which the next one may be a change
        self._is_behind = self._has_more_due = False  # a chore is closing windows; there are more than were closed
        self._ahead = 0  # minutes that decisions are aged by, beyond the steady time of this process
        self.lost_digits = ""  # by a reward that was corrected, until the terms have it
        self.mending = threading.Lock()  # of the thread that has the loop learn its rows again for that
        self._drop_at = 0  # when to look for early rewards that are over; steady time
        self.is_in_use = self.is_gone = False  # somebody has the loop; it was deleted

    # ---- waking up and following others

    def stale(self) -> None:
        """Forget what memory knows; the rows know better."""
        self._cast = self.last_table = None
        self.lost_digits = ""
        self._recent.clear()
        self._decided.clear()

    def rest(self, tx: Transaction, now: Moment) -> None:
        """Keep a snapshot and let go of the memory that it takes; its next call wakes it up."""
        if tx.draft(self.id) is None:
            tx.enter([self.want(now)])
        draft = tx.draft(self.id)
        is_known = draft is not None and draft.seq == self._last and draft.entered.head.epoch == self._epoch
        if draft is not None and is_known and not self.is_asleep:
            self.save(draft)
            self.end(draft)
        self.let_go()

    def let_go(self) -> None:
        """Let go of the memory that it takes; the rows know all."""
        self.stale()
        self.tables.clear()
        self.tally = ASLEEP

    def text(self) -> str:
        """Return the loop in a line, by what this process knows of it: nothing is read."""
        if self._cast is None:
            return f"Loop({self.name!r})"
        bandit, s = self._cast.live, self.action_settings
        what = f"arms={notebook.listed(bandit.arms)}" if s is None else f"action_dim={s.action_dim}"
        return f"Loop({self.name!r}, {what}, t={bandit.t})"

    @property
    def is_asleep(self) -> bool:
        """Whether it takes next to no memory."""
        return self._cast is None

    @property
    def cast(self) -> Cast:
        """All bandits, of a loop that was opened in this transaction."""
        if self._cast is None:
            raise StoreError(f"loop {self.name!r} is not ready")
        return self._cast

    @property
    def bandit(self) -> Bandit:
        """The live bandit: what decides."""
        return self.cast.live

    @property
    def memory(self) -> int:
        """About how many bytes it takes while it is awake."""
        if self._cast is None:
            return 0
        tables = sum(BYTES_A_NUMBER * kept.table.features.size for kept in self.tables.values())
        return 20_000 + tables + 3 * self._cast.nbytes + 1500 * (len(self._recent) + len(self._decided))

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
            for event in self.settled:
                self._recent.pop(event, None)
            if len(self._recent) > RECENT:
                for event in list(self._recent)[: RECENT // 2]:
                    del self._recent[event]
        self.settled.clear()
        asked = [event for event in events if event not in self._recent]
        self._absent = frozenset(asked)
        after = self._last if self._is_shared and self._cast is not None else None
        return Want(self.id, after, asked, now.steady if self.terms.has_windows else None, WINDOWS)

    def open(self, tx: Transaction, now: Moment, events: Iterable[str] = ()) -> Draft:
        """Lock the loop and bring memory up to date."""
        if tx.draft(self.id) is None:
            tx.enter([self.want(now, events)])
        return self.begin(tx, now)

    @undoing
    def begin(self, tx: Transaction, now: Moment) -> Draft:
        """Bring memory up to date with a loop that is locked, and close windows that are due, some of them.

        The others are closed between this batch and the next ones. A decision that comes before is a function of the
        rows that were written before it, like any other.
        """
        draft = tx.draft(self.id)
        if draft is None or self.is_gone:
            raise LoopGoneError(f"there is no loop {self.name!r} any more; make it again, with arms")
        head, found = draft.entered.head, draft.entered
        if self._cast is None or head.epoch != self._epoch:
            self._recover(tx.session, draft)
        elif draft.seq != self._last:
            self._follow(tx.session, draft)
        for decided in found.decided:
            self.remember(decided)
        if found.decided:
            self._absent -= {decided.pending.event for decided in found.decided}
        if found.due or found.rows or found.decided:
            draft.entered = Entered(head)
        if found.due or self._has_more_due:
            self._close_due(draft, now, found.due)
        return draft

    def _recover(self, session: Session, draft: Draft) -> None:
        record = session.find(self.name)
        if record is None or record.id != self.id:
            raise LoopGoneError(f"loop {self.name!r} was deleted; make it again, with arms")
        self._recent.clear()
        self._decided.clear()
        self.last_table = None
        self.terms = Terms.read(record)
        head = draft.entered.head
        first, *later = self._policies
        self._policies = [first, *(each for each in later if each[0] <= head.epoch)]
        self.policy = self._policies[-1][1]
        self.lost_digits = ""
        found = self.noting_losses(lambda: recover(session, record, head, self.policy, self.terms.carry))
        self._cast, self.tally, self.snapshot = found
        self._recount(head)
        live = self._cast.live
        self.rules = self.terms.rules(live)
        self._take_reader(live)
        if isinstance(live, ActionBandit):
            self.action_settings = live.settings
        self._epoch, self._last = head.epoch, head.seq
        log.debug("loop %s: recovered at row %d from a model of row %d", self.name, self._last, self.snapshot)

    def _take_reader(self, bandit: Bandit) -> None:
        """Read contexts as a bandit does from now on; values outside of ranges are counted on."""
        reader = bandit.settings.reader
        if reader.ranges is not None and self.reader is not None:
            reader.ranges.count_on(self.reader.ranges)
        if reader != self.reader:
            self.reader = reader

    def _follow(self, session: Session, draft: Draft) -> None:
        """Play the rows of others."""
        head, rows = draft.entered.head, draft.entered.rows
        if head.tallied > self._tallied:  # another one has written down what he counted
            self.tally = Tally.from_json(session.tally(self.id) or "")
            self._recount(head)
        counted = max(head.tallied, self._last)
        self._pick(session, rows)
        find = partial(session.row, self.id)
        replay = Replay(self.cast, find, self.terms.carry, self.tally, counted, self._decided)
        last = self.noting_losses(lambda: replay.play(rows, self._last))
        if last != head.seq:  # there were more than are read on entering
            last = self.noting_losses(lambda: replay.play(session.rows(self.id, last), last))
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
            self.tally.traffic.answered(status, ts)

    def undo(self, tx: Transaction, draft: Draft, error: BaseException) -> None:
        """Undo what a call did that was refused, in memory; its rows are undone already.

        Armlet's own policies raise before they change anything; nobody knows about others, nor about what ends threads.
        """
        is_doubtful = self.policy is not None and not isinstance(error, EventError)
        is_fault = isinstance(error, InternalError) or not isinstance(error, ArmletError | ContextChangedError)
        if is_doubtful or is_fault or self._cast is None or self._last != draft.seq:
            self.stale()
            self._absent = frozenset()  # some may have been decided since they were looked up
            tx.flush()

    def wake(self, tx: Transaction, draft: Draft) -> None:
        """Make the cast again from its rows, if a call before has left it in doubt."""
        if self._cast is None:
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
        cast = self._cast
        if cast is not None and self._last - self.snapshot >= max(SPACING, cast.nbytes // BYTES_A_ROW):
            self.save(draft)

    def _write_tally(self, draft: Draft) -> None:
        draft.tally = self.tally.to_json()
        self._tallied = draft.seq
        self._answered.clear()

    def save(self, draft: Draft) -> None:
        """Keep a snapshot of what has been learned so far."""
        if self._last > self._tallied or self._answered:
            self._write_tally(draft)
        if self._cast is not None and self._last > self.snapshot:
            draft.snapshot = (self._last, self._cast.to_bytes())
            self.snapshot = self._last

    def append(
        self, draft: Draft, now: Moment, kind: str, t: int | None, fields: Mapping[str, Any], x: bytes | None = None
    ) -> Row:
        """Add a row about no earlier decision, and let the folds see it."""
        self._last = draft.append(now, kind, t, fields, x)
        row = draft.rows[-1]
        self.tally.see(row, None)
        return row

    def append_about(self, draft: Draft, now: Moment, known: Recent, kind: str, fields: dict[str, Any]) -> None:
        """Add a row about a decision, to which an answer may be added; folds see it at the end of the call: `see`."""
        self.last_fields = fields
        self._last = draft.append(now, kind, known.pending.t, fields)

    def see(self, draft: Draft, known: Recent, first: int) -> None:
        """Let the folds see what was added about a decision: the rows of the draft from this place on."""
        for row in draft.rows[first:]:
            self.tally.see(row, known.row)

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

    # ---- decisions

    def decide(
        self,
        tx: Transaction,
        draft: Draft,
        now: Moment,
        x: Float64,
        ask: Ask,
        reader: Reader,
    ) -> Decision:
        """Decide, or return the decision that this event has."""
        if reader is not self.reader:
            raise ContextChangedError
        cast, event = self.cast, ask.get("event")
        if event is not None:
            known = self.find(tx, event)
            if known is not None:
                return self._again(tx, draft, known, x, ask)
            check_no_id(event, cast.live)
        eligible, probabilities, weights = ask.get("eligible"), ask.get("probabilities"), ask.get("weights")
        unit = ask.get("unit")
        epoch = None if unit is None else self._epoch_of(unit, now)
        if cast.fades_by_time:
            cast.tell_time(self._minutes(now))
        of_cast = ALONE
        if not cast.is_alone:
            decision, of_cast = cast.decide(
                x,
                t=draft.clock + 1,
                eligible=eligible,
                probabilities=probabilities,
                unit=unit,
                epoch=epoch,
                weights=weights,
            )
        elif type(cast.live) is ACTIONS:
            raise InvalidTypeError(
                f"actions are missing: those of loop {self.name!r} come with each decision; give a table of them, or "
                "the name of one that was prepared"
            )
        else:
            decision = cast.live.decide(
                x,
                t=draft.clock + 1,
                propensity="marginal",
                eligible=eligible,
                probabilities=probabilities,
                unit=unit,
                epoch=epoch,
                weights=weights,
            )
        name = decision.id if event is None else event
        fields = fields_of(decision, name)
        if of_cast:
            fields |= of_cast
        row = self.append(draft, now, "decide", decision.t, fields, bytes_of(x))
        due = None if self.rules.window is None else now.steady + self.rules.window
        pending = Pending(decision.t, name, row.seq, "open", None, due)
        self.wait_for(tx, draft, now, Recent(decision, pending, row))
        return decision

    def _minutes(self, now: Moment) -> int:
        """Return the time that a decision is aged by: steady, so that no setting of a clock moves it.

        It is no earlier than the latest decision that was learned, which a replica, or an earlier version, made by its
        own clock; from there on it runs as the steady time of this process.
        """
        minutes = now.steady // MINUTE
        self._ahead = max(self._ahead, self.cast.time - minutes)
        return minutes + self._ahead

    def wait_for(self, tx: Transaction, draft: Draft, now: Moment, known: Recent) -> None:
        """Wait for the reward of a decision that was made, which may have come before."""
        draft.insert(known.pending)
        self._recent[known.pending.event] = known
        if draft.entered.head.early:
            self._arrive(tx, draft, now, known)

    def find(self, tx: Transaction, event: str) -> Recent | None:
        """Look an event up: in memory, or among what was read when the loop was locked, or now."""
        recent = self._recent.get(event)
        if recent is None and event not in self._absent:
            for decided in tx.session.decided(self.id, [event]):
                recent = self.remember(decided)
        return recent

    def remember(self, decided: Decided) -> Recent:
        """Keep a decision in memory, with the features of now."""
        pending, row = decided
        row = self.terms.carry.row(checked(row, "decide"))
        given, is_learned = pending.given, pending.phase in LEARNED
        if pending.played is not None and given:
            row = substitute(row, pending.played)
        if row.fields.get("tag"):  # a time that was checked when it was decided
            self.cast.reach_time(row.fields["tag"])
        elif self.cast.fades_by_time:
            row = timed(row)
        is_expired = pending.phase == "expired" or (pending.played is not None and bool(given))
        marks: dict[str, object] = {"expired": True} if is_expired else {}
        if pending.billed is not None:
            marks["billed"] = pending.billed
        decision = decision_of(row, self.rules.value(given) if given else None, waits=not is_learned, **marks)
        recent = self._recent[pending.event] = Recent(decision, pending, decided.row)
        return recent

    def _epoch_of(self, unit: str, now: Moment) -> int | None:
        """Return the epoch of a unit's decision, if that goes by the clock of the wall.

        Clocks of replicas differ, and epochs go forward only: one that has begun lasts for those whose clocks are slow.
        """
        bandit = self.bandit
        length = bandit._settings.epoch
        if length is None:
            raise InvalidValueError(
                f"unit is {unit!r}, but loop {self.name!r} has no epochs; make it with epoch=1000, in "
                "decisions, or a timedelta"
            )
        return None if isinstance(length, int) else max(now.wall // (length // MICROSECOND), bandit._epoch or 0)

    def _again(self, tx: Transaction, draft: Draft, known: Recent, x: Float64, ask: Ask) -> Decision:
        row, event = self.row(tx, draft, known), known.pending.event
        is_same = row.x == bytes_of(x) if not self.terms.changes else self.terms.carry.matches(row, x)
        is_same = is_same and row.fields.get("unit") == ask.get("unit") and self._same_dial(row, ask)
        if not is_same or not self._same_arms(row.fields["eligible"], ask.get("eligible")):
            raise EventError(
                f"event {event!r} has been decided for another context, unit, weights or other eligible arms; "
                "give a new decision another name, or repeat the first one as it was"
            )
        return decision_of(row)

    def _same_arms(self, known: list[Arm] | None, given: Iterable[Arm] | None) -> bool:
        """Whether eligible arms are those of a decision; a hard budget may have left out some that it could not pay."""
        budget = self.bandit._settings.budget
        if budget is not None and budget.hard and known is not None and (given is None or set(known) <= set(given)):
            return True
        return _same_arms(known, given)

    def _same_dial(self, row: Row, ask: Ask) -> bool:
        """Whether weights are those of a decision; the usual ones, which complete them, may have changed since."""
        known, given, several = row.fields.get("weights"), ask.get("weights"), self.bandit._settings.outcomes
        if known is None or given is None or several is None:
            return known == given
        usual: Mapping[str, float] = several.weights if row.seq > self.terms.weighed_at else known
        return bool({**usual, **given} == known)

    def row(self, tx: Transaction, draft: Draft, known: Recent) -> Row:
        """Return the row of a decision, which may not be written yet."""
        seq = known.pending.seq
        row = draft.rows[seq - draft.seq - 1] if seq > draft.seq - len(draft.rows) else tx.session.row(self.id, seq)
        if row is None:
            raise StoreError(f"the decision of event {known.pending.event!r} is missing; go back to a backup")
        return checked(row, "decide")

    # ---- rewards

    def reward(self, tx: Transaction, draft: Draft, now: Moment, event: str, reward: Reward) -> Status:
        """Judge a reward, and learn it if it is time."""
        if not self.rules.is_number or type(reward.value) is not float:
            several = self.bandit._settings.outcomes
            self.rules.check(reward.value, {} if several is None else several.known, self.name)
        known = self._recent.get(event)
        if known is None or learned_elsewhere(known):
            known = self._found(tx, draft, event)
            if known is None:
                return self._wait(draft, now, event, reward)
        if known.pending.due is not None and known.pending.due <= now.steady:
            self._close(draft, now, known)  # its turn has not come yet, but it is over
        return self._count(draft, now, known, reward)

    def _found(self, tx: Transaction, draft: Draft, event: str) -> Recent | None:
        """Look an event up, as the loop knows it: a bandit elsewhere may have learned a decision that it was given."""
        known = self.find(tx, event)
        if known is not None and learned_elsewhere(known):
            known = self.remember(Decided(known.pending, self.row(tx, draft, known)))
        return known

    def _count(self, draft: Draft, now: Moment, known: Recent, reward: Reward, *, is_early: bool = False) -> Status:
        """Judge a reward, and let it count; one that came early and does not count has been answered."""
        first, is_usual = len(draft.rows), reward.played is None and known.pending.phase != "expired"
        judgement = judge(self.rules, known.pending, reward) if is_usual else judged(self, known, reward)
        status = judgement.status
        if judgement.parts:
            status = count(self, draft, now, known, reward, judgement)
        elif judgement.bill is not None:
            bill_part(self, draft, now, known, judgement.bill[1], status=status, later=True)
        elif not is_early:
            self.answer(status, now)
        for row in draft.rows[first:]:
            self.tally.see(row, known.row)
        return status

    def bill(self, tx: Transaction, draft: Draft, now: Moment, event: str, cost: float) -> bool:
        """Count what a decision costs, and learn nothing from it; return whether there is one."""
        spent_part(self)
        known, first = self._found(tx, draft, event), len(draft.rows)
        if known is None:
            return False
        bill_part(self, draft, now, known, cost)
        self.see(draft, known, first)
        return True

    def answer(self, status: Status, now: Moment) -> None:
        """Count an answer of which no row tells."""
        self.tally.traffic.answered(status, now.wall)
        self._answered.append((status, now.wall))

    # ---- rewards before their decision

    def _wait(self, draft: Draft, now: Moment, event: str, reward: Reward) -> Status:
        early = self.rules.early
        status: Status = "unknown" if early is None else "early"
        if reward.played is not None and early is not None:
            check_played(self, reward.played)  # or its decision would be refused
        if early is not None:
            draft.early.append(Early(event, now.steady + early, reward.to_dict()))
            self._drop_some_later(now, early)
        self.answer(status, now)
        return status

    def _drop_some_later(self, now: Moment, early: int) -> None:
        """Let those whose decision never came be dropped, once in every window."""
        if now.steady >= self._drop_at and not self._is_behind:
            self._drop_at, self._is_behind = now.steady + early, True
            self._writer.later(self.settling(), self)

    def _arrive(self, tx: Transaction, draft: Draft, now: Moment, known: Recent) -> None:
        """Let the rewards count that have waited for a decision."""
        event = known.pending.event
        waiting = tx.session.early(self.id, event)
        if waiting:
            draft.arrived.append((event, len(waiting)))
        for each in waiting:
            reward = Reward(**each.fields)
            if each.until > now.steady and has_room(known.pending, reward):
                self._count(draft, now, known, reward, is_early=True)

    # ---- windows

    def _close_due(self, draft: Draft, now: Moment, due: Sequence[Decided]) -> None:
        """Close windows that are due, the first ones first; the rest later."""
        for decided in due:
            known = self._recent.get(decided.pending.event) or self.remember(decided)
            if known.pending.due is not None and known.pending.due <= now.steady:
                self._close(draft, now, known)
        self._has_more_due = len(due) == WINDOWS
        if self._has_more_due and not self._is_behind:
            self._is_behind = True
            self._writer.later(self.settling(), self)

    def _close(self, draft: Draft, now: Moment, known: Recent) -> None:
        first = len(draft.rows)
        close(self, draft, now, known)
        self.see(draft, known, first)

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

    @undoing
    def _settle(self, tx: Transaction, now: Moment) -> bool:
        self.end(self.open(tx, now))
        return self._has_more_due

    def _drop_old(self, tx: Transaction, now: Moment, until: int) -> int:
        self.open(tx, now)
        return tx.direct(self.id).drop_early(self.id, until, DROPPED)

    # ---- for maintenance

    def drop(self, known: Recent) -> None:
        """Let go of a decision that was erased."""
        del self._recent[known.pending.event]
        self._decided.pop(known.pending.seq, None)

    def drop_recent(self) -> None:
        """Let go of decisions in memory; the next call about one reads it again."""
        self._recent.clear()

    def rebase(self, tx: Transaction, now: Moment) -> None:
        """Go on from what has been learned so far, so that no row before is needed to make it again."""
        tx.direct(self.id).rebase(self.id, self._last, self.cast.to_bytes())
        self._epoch += 1
        self.snapshot = self._last
        self.last_table = None  # rows before may go from now on
        draft = self.open(tx, now)
        self._write_tally(draft)  # the rows before are not counted again, and may be gone
        self.end(draft)

    def noting_losses(self, call: Callable[[], T]) -> T:
        """Make a call that takes rows back; if sums lose digits by it, the store has the loop learn its rows again."""
        losses: list[str] = []
        try:
            answer = keeping_rows(call, losses)
        except DecisionError as error:
            if not self.lost_digits and not self.terms.lost_digits:
                raise
            text = f"nothing of this call was kept: an arm of loop {self.name!r} is empty"
            raise StoreError(f"{text} until its rows are learned again; ask again") from error
        if losses:
            self.lost_digits = losses[-1]
        return answer

    def describe(self, tx: Transaction, terms: Terms) -> None:
        """Keep other terms, which no row says."""
        self.terms = terms
        tx.direct(self.id).describe(self.id, terms.to_json())
        self._epoch += 1

    def act(self, tx: Transaction, draft: Draft, now: Moment, kind: str, fields: Mapping[str, Any]) -> int:
        """Add a row that changes the cast by playing it from its written form: a replay does the same once more."""
        row = self.append(draft, now, kind, None, written(fields))
        for event in plays_of(row):
            play(self.cast, event, RowPast(partial(tx.session.row, self.id)))
        return row.seq

    def go_on(self, tx: Transaction, now: Moment, draft: Draft, going: Going) -> bool:
        """Go on with another cast and other terms, by a row; return False, and write none, if they are the same."""
        twin, terms = going.cast, going.terms
        is_same = going.is_replayed and not going.fields["replaces"]
        if is_same and terms.to_json() == self.terms.to_json():
            return False
        with _rolling_back():
            seq = self.append(draft, now, "change", None, written(going.fields)).seq
        several, before = twin.live._settings.outcomes, self.bandit._settings.outcomes
        if several is not None and before is not None and several.weights != before.weights:
            terms = terms.with_weights(seq)
        if going.moved is not None:
            terms = terms.with_change(seq, going.moved)
        about = terms.with_guards(seq, twin.describe()).to_json()
        self._cast = self._played(draft.rows[-1], going)
        self.tally.outcomes.several = self.bandit._settings.outcomes
        self.terms = Terms.read(LoopRecord(id=self.id, name=self.name, about=about, start=b"", base=0))
        self.rules = self.terms.rules(self.bandit)
        self._recent.clear()
        self.end(draft)
        tx.direct(self.id).describe(self.id, about)
        self._epoch += 1
        if not going.is_replayed:
            self.policy = None if is_registered(twin.live.policy) else twin.live.policy
            self._policies.append((self._epoch, self.policy))
            self.rebase(tx, now)
        self._take_reader(self.bandit)
        self.save(self.open(tx, now))
        return True

    def _played(self, row: Row, going: Going) -> Cast:
        """Return the cast that a change leads to by its written form: its row, or the model that it goes on from.

        Whatever differs from the cast that the call made would differ after a restart too, so it is a fault.
        """
        with _rolling_back():
            if going.is_replayed:
                cast = self.cast.copy()
                Replay(cast, lambda _: None, self.terms.carry).play([row], row.seq - 1)
            else:
                policy = going.cast.live.policy
                cast = read_cast(going.cast.to_bytes(), policy=None if is_registered(policy) else policy)
            is_same = cast.digest() == going.cast.digest()
        if not is_same:
            raise InternalError(f"nothing of this call was kept: its row leads to another state of loop {self.name!r}")
        return cast


@contextmanager
def _rolling_back() -> Iterator[None]:
    """Raise errors of a row that is written or played as faults: arguments were checked before."""
    try:
        yield
    except Exception as error:
        raise InternalError(f"nothing of this call was kept: its row cannot be played: {error}") from error


def _same_arms(known: list[Arm] | None, given: Iterable[Arm] | None) -> bool:
    return known == given if known is None or given is None else set(known) == set(given)


def check_no_id(event: str, bandit: Bandit) -> None:
    """Refuse a name that a later decision without a name will have."""
    step, _, mark = event.partition("-")
    is_like_one = len(mark) == MARK and len(step) < MARK and step.isdecimal()
    if is_like_one and int(step) > bandit.t and mark == f"{coins(bandit.seed, int(step)).mark:0{MARK}x}":
        raise EventError(f"event is {event!r}, the id of a decision that is still to come; give another name")
