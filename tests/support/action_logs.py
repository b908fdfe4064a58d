"""Logs of actions with features, made by hand: tables that come and go, and decisions that no bandit took."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armlet.actions.table import ActionTable
from armlet.log.action_tables import Tables
from armlet.log.events import ACTION_SCHEMA, Event
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
