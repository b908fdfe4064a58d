"""Faults that a soak must find, each as a patch of the library in a worker's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from armlet.stores import rewards, runner
from armlet.stores.ledger import Pending, Session
from armlet.stores.rewards import Judgement, Reward, RewardRules, judge
from armlet.stores.runner import LoopRunner
from armlet.stores.sqlite import SQLite, SQLiteSession
from armlet.stores.transaction import Draft


def answer_too_early() -> None:
    """Answer nine of ten transactions before they are committed."""
    ends_well, scrubs_well, count = SQLite.session, SQLite.scrub, 0

    @contextmanager
    def session(self: SQLite) -> Iterator[SQLiteSession]:
        nonlocal count
        count += 1
        if count % 10 == 0 and not self._connection.in_transaction:
            with ends_well(self) as sound:
                yield sound
            return
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        yield SQLiteSession(self._connection)
        if count % 10 == 0:
            self._connection.execute("COMMIT")

    def scrub(self: SQLite) -> bool:
        return self._connection.in_transaction or scrubs_well(self)

    SQLite.session, SQLite.scrub = session, scrub  # type: ignore[method-assign]


def follow_nobody() -> None:
    """Take the rows of other replicas as played."""

    def follow(self: LoopRunner, session: Session, draft: Draft) -> None:  # noqa: ARG001
        self._last = draft.entered.head.seq

    LoopRunner._follow = follow  # type: ignore[method-assign]


def ignore_rank() -> None:
    """Judge all rewards as if they were of the lowest rank."""

    def judge_all_alike(rules: RewardRules, pending: Pending, reward: Reward) -> Judgement:
        return judge(rules, pending, replace(reward, rank=0))

    rewards.judge = runner.judge = judge_all_alike  # type: ignore[attr-defined]


def count_snapshots_from_one() -> None:
    """Keep snapshots with the number of the row before their last, which is played again if it can be."""
    save = LoopRunner.save

    def save_wrongly(self: LoopRunner, draft: Draft) -> None:
        save(self, draft)
        if draft.snapshot is not None and draft.rows and draft.rows[-1].kind in ("decide", "learn"):
            draft.snapshot = (draft.snapshot[0] - 1, draft.snapshot[1])

    LoopRunner.save = save_wrongly  # type: ignore[method-assign]


SABOTAGES: Final[Mapping[str, Callable[[], None]]] = {
    "answers too early": answer_too_early,
    "no catch-up": follow_nobody,
    "rank ignored": ignore_rank,
    "snapshot off by one": count_snapshots_from_one,
}
