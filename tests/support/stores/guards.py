"""Loops with guards that the tests share: traffic, their rows, and proof that these lead to what is in memory."""

from __future__ import annotations

from typing import Final

import numpy as np

import armlet
from armlet.bandit import Bandit
from armlet.cast.model import read_cast
from armlet.kernel import Decision
from armlet.stores import Loop, Row, Store
from armlet.stores.verify import verify
from armlet.types import Policy
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
    living = loop._runner.cast
    digest, data = living.digest(), living.to_bytes()
    assert read_cast(data).to_bytes() == data
    assert rebuilt(store, loop.name).to_bytes() == data
    found = armlet.audit(loop.log.replayable, loop.log.start)
    assert found.ok, found
    assert found.digest == digest
    assert verify(store._ledger, loop.name).digest == digest
    loop._runner.stale()
    loop.model()
    assert loop._runner.cast.to_bytes() == data


def everything_guarded(store: Store, loop: Loop) -> tuple[object, ...]:
    """Return all that a refused call must leave as it was."""
    loop.model()
    runner = loop._runner
    records = [each for each in store._ledger.loops() if each.name == loop.name]
    return runner.cast.to_bytes(), runner.terms, runner.rules, runner.reader, runner.policy, rows_of(loop), records


def relearned(loop: Loop, policy: Policy, upto: int | None = None) -> Bandit:
    """Return a bandit that learns the log of a loop from its beginning, row by row; those after `upto` but for arms."""
    model = loop.model()
    made = [row.fields["arm"] for row in rows_of(loop, "add_arm")]
    arms = [arm for arm in model.arms if arm not in made]
    bandit = Bandit(arms, features=model.settings.features, policy=policy, seed=model.seed)
    under_way: dict[int, Decision] = {}
    for row in rows_of(loop):
        if row.kind in ("add_arm", "retire_arm", "restore_arm"):
            getattr(bandit, row.kind)(row.fields["arm"])
        elif upto is None or row.seq <= upto:
            _relearn(bandit, row, under_way)
    bandit.replace(t=model.t)
    bandit.replace(reward_range=model.settings.reward_range)
    return bandit


def _relearn(bandit: Bandit, row: Row, under_way: dict[int, Decision]) -> None:
    fields, of = row.fields, row.t or 0
    if row.kind == "decide":
        x = np.frombuffer(row.x or b"", dtype="<f8").tolist()
        under_way[of] = Decision.from_dict({**fields, "t": row.t, "x": x})
        bandit._begin_decision(fields["arm"], fields["explored"])
    elif row.kind == "learn" and "played" in fields:
        others = {"arm": fields["played"], "explored": False, "propensity": 1.0, "expired": True}
        under_way[of] = Decision.from_dict({**under_way[of].to_dict(), **others})
        bandit.learn(under_way[of], fields["reward"])
    elif row.kind == "learn":
        bandit.learn(under_way[of], fields["reward"])
    elif row.kind == "correct":
        bandit.correct(under_way[of], fields["old_reward"], fields["new_reward"])
    elif row.kind == "expire":
        bandit.expire(under_way[of])


def second(loop: Loop) -> Bandit:
    """Return the bandit that goes along with the live one."""
    loop.model()
    (found,) = loop._runner.cast.others
    return found
