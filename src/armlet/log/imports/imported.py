"""Rows that somebody else logged, as the events of a log. O(1) a row; nothing is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from armlet.log.schema import FORMAT, SCHEMA, Event
from armlet.types import Arm, __version__


class Logged(NamedTuple):
    """One decision of another system, and what came of it."""

    x: list[float]
    arm: Arm
    propensity: float
    reward: float | None = None
    weight: float = 1.0
    eligible: list[Arm] | None = None
    probabilities: list[float] | None = None
    event: str | None = None
    at: int = 0  # microseconds since 1970


class Imported:
    """Events made of rows each time that they are read.

    Parameters
    ----------
    rows
        Gives the rows from the first one on.
    arms, features
        All labels, and the names of the values in a context.
    origin
        What the rows come from, in words.
    """

    def __init__(
        self, rows: Callable[[], Iterator[Logged]], *, arms: Sequence[Arm], features: Sequence[str], origin: str
    ) -> None:
        self._rows = rows
        names = {"arms": list(arms), "dim": len(features), "features": list(features), "objective": "max"}
        head = {"seq": 0, "kind": "start", "at": 0, "format": FORMAT, "schema": SCHEMA}
        self._about: Event = {**head, **names, "policy": None, "origin": origin, "version": __version__, "digest": None}

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start."""
        return self._about

    def __iter__(self) -> Iterator[Event]:
        yield dict(self._about)
        seq = 1
        for t, row in enumerate(self._rows(), 1):
            mark = hashlib.blake2b(f"{row.event or t}".encode(), digest_size=8).hexdigest()
            name = f"{t}-{mark}"
            yield _decide(seq, t, name, row)
            seq += 1
            if row.reward is not None:
                reward = {"id": name, "reward": row.reward, "weight": row.weight}
                yield {"seq": seq, "kind": "learn", "at": row.at, **reward}
                seq += 1


def _decide(seq: int, t: int, name: str, row: Logged) -> Event:
    event: Event = {"seq": seq, "kind": "decide", "at": row.at, "id": name, "t": t, "x": row.x}
    event |= {"eligible": row.eligible, "arm": row.arm, "propensity": row.propensity, "explored": None, "rate": None}
    event |= {"given_exploring": None, "smallest": None, "greedy": None, "design": None}
    if row.probabilities is not None:
        event["probabilities"] = row.probabilities
    event["tag"] = 0
    if row.event is not None:
        event["event"] = row.event
    return event


def origin_of(path: Path, kind: str) -> str:
    """Say where rows come from.

    Examples
    --------
    >>> origin_of(Path("data/train.json"), "dsjson")
    'dsjson: train.json'
    """
    return f"{kind}: {path.name}"
