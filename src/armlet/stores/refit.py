"""Another kind of policy for a loop: it learns the loop's own log again.

The caller's thread does it, from committed rows, while others decide; the rows that come meanwhile are played in the
transaction that changes the loop. Rows that were pruned or forgotten are gone, so they are not learned.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, cast

from armlet.actions.bandit import ActionBandit
from armlet.bandit import Bandit
from armlet.cast.cast import Cast
from armlet.cast.model import read_cast
from armlet.errors import ArmletError, InvalidTypeError, InvalidValueError, LoopGoneError, StoreError
from armlet.inputs.settings import Objective, Range
from armlet.policies import check_given, over
from armlet.policies.discounts import MINUTE
from armlet.record.values import Event
from armlet.stores.ledger import Head, Ledger, LoopRecord, Row, Session
from armlet.stores.rows.replay import Replay, plays_of
from armlet.stores.terms import Carry, Terms
from armlet.types import Policy

TRIES = 3  # of a loop that is pruned, or changed, in the midst of it
SKIPPED = frozenset(
    ("policy", "reward_range", "budget", "guards")
)  # changes that are not of the bandit that learns again
LEARNED = frozenset(("learn", "correct", "expire", "forget"))

log = logging.getLogger("armlet.store")


class _Corrections:
    """Rewards as they were in the end, for a loop whose sums lost digits by one that was corrected.

    Its first reward is not learned again: sums would lose their digits again when it is corrected.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._later: dict[int, list[Row]] = {}  # by the row of the decision
        for row in rows:
            if row.kind in ("correct", "forget"):
                self._later.setdefault(row.fields["of"], []).append(row)

    def settle(self, row: Row) -> Row:
        """Return a row as it is learned again; a correction is not."""
        later = self._later.get(row.fields.get("of", 0))
        if later is None or row.kind == "forget":
            return row
        if row.kind == "correct":
            return row._replace(kind="reward") if row.seq <= later[-1].seq else row
        return row._replace(fields={**row.fields, **self._settled(row, later)})

    def _settled(self, row: Row, later: list[Row]) -> dict[str, Any]:
        """Return the values of a row after corrections that came before the row was forgotten, if it was."""
        values = {name: row.fields[name] for name in ("reward", "had") if name in row.fields}
        for each in takewhile(lambda each: each.kind == "correct", (each for each in later if each.seq > row.seq)):
            new = each.fields["new_reward"]
            for name, value in values.items():
                of_both = {key: new.get(key, one) for key, one in value.items()} if isinstance(value, Mapping) else new
                values[name] = of_both
        return values


class _Relearning(Replay):
    """Plays rows again but for changes of the policy, which is another one from the start, and of the range.

    Bills are left out too: the budget and its spending are those of the live bandit. Rows that had no time are as old
    as their stamp says, which nothing has checked: `head` is the newest of the loop.
    """

    def __init__(self, head: Head, *args: Any) -> None:
        super().__init__(*args)
        self._cast.reach_time(max(head.ts, head.steady) // MINUTE)

    def _reach(self, cast: Cast, minutes: int) -> None:
        """Leave it to the bandit to refuse what is far ahead of the head."""

    def _events(self, row: Row) -> list[Event]:
        return [event for event in plays_of(row) if event["kind"] != "bill" and event.keys().isdisjoint(SKIPPED)]


class Refit:
    """A bandit with another policy, and how far it has read the log of a loop."""

    def __init__(self, ledger: Ledger, loop: int, policy: Policy | None, own: Policy | None) -> None:
        if policy is None:
            raise InvalidTypeError("how is 'refit', but policy is not given; give the policy that is to learn the log")
        check_given(policy, over(policy))
        self._ledger, self._loop, self.policy, self._own = ledger, loop, policy, own
        self._name = ""
        self._epoch = self._last = 0
        self._corrections = _Corrections(())
        self.bandit: Bandit | None = None
        self.n_rows = 0

    def prepare(self) -> None:
        """Learn what is committed."""
        for _ in range(TRIES):
            record, head = self._found()
            with self._blaming_the_policy():
                self._read(record, head)
            if self._found()[1].epoch == head.epoch:
                return
        raise StoreError(f"loop {self._name!r} is changed or pruned all the time; try again")

    def _found(self) -> tuple[LoopRecord, Head]:
        record = next((each for each in self._ledger.loops() if each.id == self._loop), None)
        head = None if record is None else self._ledger.head(record.id)
        if record is None or head is None:
            raise LoopGoneError("there is no such loop any more; make it again, with arms")
        self._name = record.name
        return record, head

    @contextmanager
    def _blaming_the_policy(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            if not isinstance(error.__cause__, ArmletError):
                raise
            raise InvalidValueError(
                f"policy is {self.policy!r}, which cannot learn the log of loop {self._name!r}: {error.__cause__}; "
                "give another one"
            ) from error

    def _read(self, record: LoopRecord, head: Head) -> None:
        start, terms = read_cast(record.start, policy=self._own).live, Terms.read(record)
        self.bandit = self._fresh(start)
        if terms.lost_digits:
            self._corrections = _Corrections(row for row in self._ledger.rows(record.id) if row.seq <= head.seq)
        self.n_rows = 0
        self._learn_before(record, head, terms.carry)
        self.bandit.replace(t=max(self.bandit.t, start.t))
        self._epoch = head.epoch
        self._last = record.base
        rows = (row for row in self._ledger.rows(record.id, record.base) if row.seq <= head.seq)
        self._last = self._replay(record, head, terms.carry).play(self._counted(rows), record.base)

    def _fresh(self, start: Bandit) -> Bandit:
        """Return a bandit with the new policy that knows nothing yet."""
        if isinstance(start, ActionBandit):
            return self._fresh_actions(start)
        s = start.settings
        made = Bandit(
            start.arms,
            s.dim,
            policy=self.policy,
            features=None if s.encoder is not None else s.features,
            encoder=s.encoder,
            objective=s.objective,
            normalize=s.normalize,
            reward_range=_widest(self.policy, s.objective) if s.outcomes is None else None,
            outcomes=None if s.outcomes is None else s.outcomes.weights,
            known=None if s.outcomes is None or not s.outcomes.known else s.outcomes.known,
            epoch=s.epoch,
            seed=start.seed,
        )
        for arm in start.arms.retired:
            made.retire_arm(arm)
        return made

    def _fresh_actions(self, start: ActionBandit) -> Bandit:
        s = start.settings
        made = ActionBandit(
            s.dim,
            s.action_dim,
            features=None if s.encoder is not None else s.features,
            action_features=None if s.action_encoder is not None else s.action_features,
            encoder=s.encoder,
            action_encoder=s.action_encoder,
            policy=cast("Any", self.policy),
            objective=s.objective,
            seed=start.seed,
        )
        return cast("Bandit", made)

    def _learn_before(self, record: LoopRecord, head: Head, carry: Carry) -> None:
        """Learn what is left of the rows before the model that the loop goes on from, with the features of then."""
        rows = (row for row in self._before(record, carry) if row.kind in LEARNED or (row.kind == "decide" and row.x))
        self._replay(record, head, Carry({}), carry).play(self._counted(rows), 0, is_whole=False)

    def _before(self, record: LoopRecord, carry: Carry) -> Iterator[Row]:
        for row in self._ledger.rows(record.id):
            if row.seq > record.base:
                return
            yield carry.row(row, record.base)

    def _counted(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self.n_rows += row.kind == "learn"
            yield self._corrections.settle(row)

    def _replay(self, record: LoopRecord, head: Head, carry: Carry, before: Carry | None = None) -> Replay:
        """Return what plays rows; decisions that it has to look up are carried by `before`."""

        def find(seq: int) -> Row | None:
            row = next(self._ledger.rows(record.id, seq - 1), None)
            if row is None or row.seq != seq:
                return None
            return row if before is None else before.row(row, record.base)

        if self.bandit is None:
            raise StoreError("nothing is prepared")
        return _Relearning(head, Cast(self.bandit), find, carry)

    def finish(self, session: Session, loop: int, head: Head, carry: Carry, reward_range: Range | None) -> Bandit:
        """Learn the rows that came since, and return the bandit, with the range of rewards that it is to have."""
        if self.bandit is None or head.epoch != self._epoch:
            raise StoreError(f"loop {self._name!r} was changed or pruned meanwhile; try again")
        replay = _Relearning(head, Cast(self.bandit), lambda seq: session.row(loop, seq), carry)
        with self._blaming_the_policy():
            self._last = replay.play(self._counted(session.rows(loop, self._last)), self._last)
        if self._last != head.seq:
            raise StoreError(f"row {self._last + 1} of the loop is missing; go back to a backup")
        if reward_range is not None and self.bandit.settings.outcomes is None:
            self.bandit.replace(reward_range=reward_range)
        log.info("loop %s: %d rewards learned again by another policy", self._name, self.n_rows)
        return self.bandit


def _widest(policy: Policy, objective: Objective) -> Range | None:
    """Return all rewards that a policy can learn, since those of the log may be of another range than now."""
    found = (0.0, 1.0) if policy.rewards == "binary" else getattr(policy, "reward_range", None)
    if found is None or objective == "max":
        return found
    return -found[1], -found[0]


def like(learned: Bandit, live: Bandit) -> Bandit:
    """Return a bandit that has learned the log again, with all ranges, the budget and the spending of the live one."""
    several, budget = live.settings.outcomes, live.settings.budget
    if not isinstance(learned, ActionBandit):
        learned.replace(feature_range=live.settings.feature_range)
    if several is not None:
        learned.replace(reward_range=several.ranges)
    if budget is None:
        return learned
    twin = Bandit.__new__(Bandit)
    now = learned._snapshot()._replace(spending=live._snapshot().spending)
    twin._init_engine(learned._settings.with_budget(budget), now, learned._fixed_rows)
    twin._continue_lives(learned)
    return twin
