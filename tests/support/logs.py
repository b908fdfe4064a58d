"""Logs made by hand: events that no bandit took part in, with everything that a log may hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from armlet.record.contradictions import SCHEMA
from armlet.record.jsonl import encode_event
from armlet.record.values import Event
from armlet.types import Arm

DIM = 3


def made_events(
    n: int, *, seed: int = 1, arms: tuple[Arm, ...] = ("north", "south"), dim: int = DIM
) -> Iterator[Event]:
    """Return the events of about n decisions: eligible sets, late, lost, corrected and forgotten rewards, notes."""
    rng = np.random.default_rng(seed)
    about = {"format": "armlet log", "schema": SCHEMA, "arms": list(arms), "dim": dim, "features": None, "digest": "0"}
    yield {"seq": 0, "kind": "start", "at": 1_700_000_000_000_000, **about}
    pending: list[str] = []
    seq, t = 1, 0
    for _ in range(n):
        t += int(rng.integers(1, 3))
        name = f"{t}-{int(rng.integers(2**62)):016x}"
        pending.append(name)
        happened = [_decision(rng, t, name, arms, dim), *_later(rng, pending)]
        if rng.random() < 0.01:
            happened.append({"kind": "retire_arm", "arm": arms[0]})
        for fields in happened:
            yield {"seq": seq, "kind": fields.pop("kind"), "at": 1_700_000_000_000_000 + seq, **fields}
            seq += 1


def _decision(rng: np.random.Generator, t: int, name: str, arms: tuple[Arm, ...], dim: int) -> Event:
    some = rng.random() < 0.3
    event: Event = {"kind": "decide", "id": name, "t": t, "x": rng.normal(size=dim).tolist()}
    event |= {"eligible": list(arms[:1]) if some else None, "arm": arms[0 if some else int(rng.integers(len(arms)))]}
    event |= {"propensity": float(rng.random()), "explored": bool(rng.random() < 0.1)}
    event |= {"optimistic": False, "exploration_rate": 0.1}
    event |= {"exploration_propensity": None if some else 0.5, "min_exploration_probability": 0.5}
    event |= {"greedy": True, "design": "choice"}
    if rng.random() < 0.1:
        event["probabilities"] = [0.25, 0.75]
    event["tag"] = int(rng.integers(3))
    if rng.random() < 0.1:
        event["event"] = f"order-{t}"
    if rng.random() < 0.02:
        event["x"] = None
    if rng.random() < 0.02:
        event["from the future"] = {"slot": 1}  # which no column holds
    return event


def _later(rng: np.random.Generator, pending: list[str]) -> Iterator[Event]:
    while pending and rng.random() < 0.5:
        name = pending.pop(int(rng.integers(len(pending))))
        reward = float(rng.normal())
        yield {"kind": "learn", "id": name, "reward": reward, "weight": float(rng.choice([1.0, 2.5]))}
        kind = rng.random()
        if kind < 0.1:
            yield {"kind": "correct", "id": name, "old_reward": reward, "new_reward": -reward}
        elif kind < 0.15:
            yield {"kind": "forget", "id": name, "reward": reward}
        elif kind < 0.2:
            yield {
                "kind": "note",
                "id": name,
                "outcomes": {"latency": 0.5},
                "source": "checkout",
            }
        elif kind < 0.22:
            yield {"kind": "forget", "id": name, "reward": reward}
            yield {"kind": "learn", "id": name, "reward": 7.0, "weight": 1.0}


def write_events(path: Path, events: Iterable[Event]) -> Path:
    """Write events as the lines of a log."""
    crc = 0
    with path.open("wb") as file:
        for event in events:
            line, crc = encode_event(event, crc)
            file.write(line)
    return path
