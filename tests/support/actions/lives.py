"""Logs of actions with features: made by hand, of decisions that no bandit took, and the life of a bandit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import armlet
from armlet.actions.bandit import ActionBandit
from armlet.actions.decision import ActionDecision
from armlet.actions.table import ActionTable
from armlet.log.action_tables import Tables
from armlet.policies.shared import PairPolicy
from armlet.record.contradictions import ACTION_SCHEMA
from armlet.record.values import Event
from armlet.types import Arm

DIM, ACTION_DIM = 2, 3
AT = 1_700_000_000_000_000


def drawn_table(rng: np.random.Generator, n: int = 8, *, dim: int = ACTION_DIM) -> ActionTable:
    """Draw a table of actions, of which some have numbers for labels."""
    labels: list[Arm] = [int(i) if i % 3 == 0 else f"film {i}" for i in rng.choice(200, size=n, replace=False)]
    return ActionTable(labels, rng.normal(size=(n, dim)))


def next_table(rng: np.random.Generator, table: ActionTable) -> ActionTable:
    """Return a table of which one action has left, and one is new."""
    new = int(rng.integers(1000, 10**6))
    gone = table.labels[int(rng.integers(len(table)))]
    return table.changed(add={f"film {new}": rng.normal(size=table.dim)}, remove=[gone])


def made_action_events(n: int, *, seed: int = 1, dim: int = DIM, action_dim: int = ACTION_DIM) -> Iterator[Event]:
    """Return the events of n decisions: tables that change, subsets, late and lost rewards, notes."""
    rng = np.random.default_rng(seed)
    about = {"format": "armlet log", "schema": ACTION_SCHEMA, "dim": dim, "features": None, "digest": "0"}
    yield {"seq": 0, "kind": "start", "at": AT, **about, "action_dim": action_dim, "action_features": None}
    tables, table = Tables(), drawn_table(rng, dim=action_dim)
    seq = 1
    for t in range(1, n + 1):
        if rng.random() < 0.5:
            table = next_table(rng, table)
        happened: list[Event] = []
        if (fields := tables.fields(table, "shop" if rng.random() < 0.05 else None)) is not None:
            happened.append({"kind": "actions", **fields})
            tables.take(table, fields.get("name"))
        happened.append(_decision(rng, t, table, dim))
        tables.use(table)
        name = happened[-1]["id"]
        if rng.random() < 0.7:
            happened.append({"kind": "learn", "id": name, "reward": float(rng.normal()), "weight": 1.0})
        if rng.random() < 0.05:
            happened.append({"kind": "note", "id": name, "source": "checkout"})
        for each in happened:
            yield {"seq": seq, "kind": each.pop("kind"), "at": AT + seq, **each}
            seq += 1


def _decision(rng: np.random.Generator, t: int, table: ActionTable, dim: int) -> Event:
    some = rng.random() < 0.3
    labels = list(table.labels[:3] if some else table.labels)
    arm, other = labels[0], labels[-1]
    event: Event = {"kind": "decide", "id": f"{t}-{int(rng.integers(2**62)):016x}", "t": t}
    event |= {"x": rng.normal(size=dim).tolist(), "z": table[arm].tolist()}
    event |= {"actions": table.hash, "n_actions": len(table), "eligible": labels if some else None, "arm": arm}
    uneven = rng.random() < 0.5
    event |= {"propensity": 0.75 if uneven else 1.0 / len(labels)}
    event |= {"support": [[arm, 0.75], [other, 0.25]] if uneven else None, "explored": False, "optimistic": False}
    event |= {"exploration_rate": None, "exploration_propensity": None, "min_exploration_probability": None}
    event |= {"greedy": True, "design": "choice", "tag": 0}
    if rng.random() < 0.1:
        event["event"] = f"visit-{t}"
    if rng.random() < 0.05:
        event |= {"x": None, "z": None}
    if rng.random() < 0.02:
        event["from the future"] = {"slot": 1}  # which no column holds
    return event


# ---- of a bandit


def new_action_bandit(log: armlet.Log | None = None, policy: PairPolicy | None = None, **more: Any) -> ActionBandit:
    """Make a bandit of two features of contexts and three of actions."""
    return ActionBandit(DIM, ACTION_DIM, policy=policy, log=log, **{"seed": 11, **more})


class ActionLife:
    """Lets a bandit as `new_action_bandit` makes it live for so many decisions, with all that a log must survive.

    Tables that change, alternate and come back, prepared ones, subsets, batches, late, lost and corrected rewards.

    Parameters
    ----------
    bandit
        Which is changed.
    seed
        Of contexts, tables, rewards and everything that happens.
    """

    def __init__(self, bandit: ActionBandit, seed: int = 1) -> None:
        self.bandit = bandit
        self._rng = np.random.default_rng(seed)
        self._tables = [drawn_table(self._rng), drawn_table(self._rng, 5)]
        self._pending: list[ActionDecision] = []
        self._learned: list[tuple[ActionDecision, float]] = []
        self._happened = 0

    def live(self, decisions: int) -> None:
        """Decide so often, and do what else happens in between."""
        for _ in range(decisions):
            self._decide()
            while self._pending and self._rng.random() < 0.5:
                self._learn()
            if self._learned and self._rng.random() < 0.2:
                happenings = self._happenings()
                happenings[self._happened % len(happenings)]()
                self._happened += 1

    def _decide(self) -> None:
        place = int(self._rng.integers(2))
        if self._rng.random() < 0.5:
            self._tables[place] = next_table(self._rng, self._tables[place])
        table: ActionTable | str = self._tables[place]
        if self.bandit.tables and self._rng.random() < 0.3:
            table = str(self._rng.choice(sorted(self.bandit.tables)))
        labels = self.bandit.table(table).labels
        eligible = labels[: len(labels) // 2 + 1] if self._rng.random() < 0.3 else None
        self._pending.append(self.bandit.decide(self._rng.normal(size=DIM), table, eligible=eligible))
        if self._rng.random() < 0.1:
            lost = self._pending.pop(int(self._rng.integers(len(self._pending))))  # its reward never comes
            if self._rng.random() < 0.5:
                self.bandit.expire(lost)

    def _learn(self) -> None:
        late = self._pending.pop(int(self._rng.integers(len(self._pending))) if self._rng.random() < 0.5 else -1)
        reward = float(self._rng.normal())
        self.bandit.learn(late, reward, weight=float(self._rng.choice([1.0, 1.0, 2.0])))
        self._learned.append((late, reward))

    def _happenings(self) -> list[Callable[[], object]]:
        return [
            self._correct,
            self._forget,
            lambda: self.bandit.prepare(str(self._rng.choice(["home", "sale"])), self._tables[0]),
            lambda: self.bandit.replace(t=self.bandit.t + int(self._rng.integers(1, 3))),
            lambda: self.bandit.replace(reward_range=(-20.0, 20.0 + float(self._rng.integers(3)))),
            lambda: self.bandit.replace(policy=self.bandit.policy),
            self._elsewhere,
            self._batch,
            self._fit,
            self._merge,
            self._remove_table,
        ]

    def _correct(self) -> None:
        decision, old = self._learned.pop(int(self._rng.integers(len(self._learned))))
        self.bandit.correct(decision, old, float(self._rng.normal()))

    def _forget(self) -> None:
        self.bandit.forget(*self._learned.pop(int(self._rng.integers(len(self._learned)))))

    def _elsewhere(self) -> None:
        """Learn a decision by its record, as another process would."""
        if self._pending:
            self.bandit.learn(ActionDecision.from_dict(self._pending.pop().to_dict()), 0.5)

    def _batch(self) -> None:
        X = self._rng.normal(size=(3, DIM))
        made = self.bandit.decide_many(X, self._tables[0])
        made += self.bandit.decide_many(X[:2], self._tables)
        self.bandit.learn_many(made, self._rng.normal(size=5))

    def _fit(self) -> None:
        table = self._tables[0]
        row = {"t": [1], "x": [[0.5] * DIM], "z": [table.features[0].tolist()], "arm": [table.labels[0]]}
        self.bandit.partial_fit({**row, "reward": [0.25], "propensity": [0.5]})

    def _remove_table(self) -> None:
        if self.bandit.tables:
            self.bandit.remove_table(min(self.bandit.tables))

    def _merge(self) -> None:
        before, other = self.bandit.copy(), self.bandit.copy(seed=int(self._rng.integers(2**32)))
        for _ in range(4):
            other.learn(other.decide(self._rng.normal(size=DIM), self._tables[1]), float(self._rng.normal()))
        self.bandit.merge(other.difference(before))
