"""Loops with guards that the tests share: traffic, their rows, and proof that these lead to what is in memory."""

from __future__ import annotations

from typing import Final

import armlet
from armlet.log.guarded import read_guarded
from armlet.stores import Loop, Row, Store
from armlet.stores.verify import verify
from support.loops import context, reward
from support.stores import rebuilt

SEED: Final = 7


def play(loop: Loop, first: int, n: int, dim: int = 2) -> None:
    """Decide n times; every fourth decision waits for its reward."""
    for i in range(first, first + n):
        loop.decide(context(i, dim), event=f"e{i}")
        if i % 4:
            loop.reward(f"e{i}", reward(i))


def rows_of(loop: Loop, kind: str | None = None) -> list[Row]:
    """Return the rows of a loop, those of one kind if it is given."""
    return [row for row in loop._ledger.rows(loop._runner.id) if kind in (None, row.kind)]


def assert_guarded(store: Store, loop: Loop) -> None:
    """Hold the living bandits against their rows, their snapshot and their log, bit for bit."""
    loop.model()
    living = loop._runner.bandit
    digest, data = living.digest(), living.to_bytes()
    assert read_guarded(data).to_bytes() == data
    assert rebuilt(store, loop.name).to_bytes() == data
    found = armlet.audit(loop.log.replayable, loop.log.start)
    assert found.ok, found
    assert found.digest == digest
    assert verify(store._ledger, loop.name).digest == digest
    loop._runner.stale()
    loop.model()
    assert loop._runner.bandit.to_bytes() == data


def everything_guarded(store: Store, loop: Loop) -> tuple[object, ...]:
    """Return all that a refused call must leave as it was."""
    loop.model()
    runner = loop._runner
    records = [each for each in store._ledger.loops() if each.name == loop.name]
    return runner.bandit.to_bytes(), runner.terms, runner.rules, runner.reader, runner.policy, rows_of(loop), records
