"""A log whose actions have features, as rows: a decision, its table, who could have been played, and what it brought.

Rows are ragged: each has a table of its own. The log is read twice, first for rewards, which may come long after their
decisions; memory holds a number or two a decision, and the tables that were used last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import numpy as np

from armlet.actions.table import ActionTable
from armlet.errors import EvaluationError, LogError
from armlet.evaluation.rows import Blocks, Rows
from armlet.evaluation.spooled import name_of
from armlet.log.action_tables import Tables
from armlet.record.events import Events
from armlet.record.faults import reading
from armlet.record.kinds import OF_TABLES
from armlet.record.values import Event
from armlet.types import Arm, Bool, Float64

EVEN: Final = 1e-9  # by which probabilities may miss a sum of 1, or their propensity


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAction:
    """One decision with a reward."""

    t: int
    x: Float64  # (dx,)
    table: ActionTable
    place: int  # of the action that was played, in the table
    allowed: Bool | None  # (n,): the actions that were eligible; None for all
    propensity: float
    support: Mapping[Arm, float] | None  # every action that could be played; None: all eligible ones, equally
    reward: float
    weight: float

    @property
    def n_eligible(self) -> int:
        """How many actions were eligible."""
        return len(self.table) if self.allowed is None else int(np.count_nonzero(self.allowed))

    def reach(self, place: int) -> float:
        """Return the probability with which the log would have played an action of the table."""
        if self.support is not None:
            return self.support.get(self.table.labels[place], 0.0)
        is_eligible = self.allowed is None or bool(self.allowed[place])
        return 1.0 / self.n_eligible if is_eligible else 0.0


class LoggedActions(Blocks):
    """A log whose actions have features, read from its events each time; what reads arms by column is refused."""

    def __init__(self, events: Events) -> None:
        super().__init__(events.about)
        self.arms, self.name = (), name_of(events, dict(events.about))
        self._events = events
        paid: dict[str, tuple[float, float]] = {}  # of several rewards of a decision, the last that came
        self.n = 0
        with reading(self.name):
            for event in events:
                self._take(event, paid)
        self._paid = paid

    def _take(self, event: Event, paid: dict[str, tuple[float, float]]) -> None:
        kind = event["kind"]
        if kind == "decide":
            self.n += 1
            if at := event.get("at"):  # 0 where times are not known
                first, last = self.period or (at, at)
                self.period = (min(first, at), max(last, at))
        elif kind in ("learn", "correct") and "played" not in event:
            paid[event["id"]] = (event["reward" if kind == "learn" else "new_reward"], event.get("weight", 1.0))
        elif kind == "forget":
            paid.pop(event["id"], None)

    @property
    def action_dim(self) -> int:
        """Values that describe an action."""
        return int(self.about["action_dim"])

    @property
    def has_units(self) -> bool:
        """Whether decisions belong to units: never."""
        return False

    def decisions(self) -> Iterator[LoggedAction]:
        """Yield the decisions that have a reward, in their order."""
        tables, made = Tables(), sha256()
        with reading(self.name):
            for event in self._events:
                if event["kind"] in OF_TABLES:
                    tables.read(event)
                elif event["kind"] == "decide":
                    table = tables.chosen_from(event)
                    if event["id"] in self._paid:
                        row = _row(event, table, *self._paid[event["id"]])
                        made.update(_bytes(row))
                        yield row
        self.digest = made.hexdigest()

    def __len__(self) -> int:
        return 1

    def _read(self, block: int) -> Rows:  # noqa: ARG002
        raise EvaluationError(
            f"{self.name} is a log of actions with features, which has no column for every arm; value policies on it "
            "by armlet.evaluate"
        )


def _row(event: Event, table: ActionTable, reward: float, weight: float) -> LoggedAction:
    if event["x"] is None:
        raise LogError(f"step {event['t']:,} has a reward but no context: log contexts, or leave such rows out")
    support = event.get("support")
    return LoggedAction(
        t=event["t"],
        x=np.array(event["x"], dtype=np.float64),
        table=table,
        place=table.place(event["arm"]),
        allowed=None if event["eligible"] is None else table.mask(event["eligible"]),
        propensity=event["propensity"],
        support=None if support is None else dict(support),
        reward=reward,
        weight=weight,
    )


def _bytes(row: LoggedAction) -> bytes:
    numbers = np.array([row.t, row.place, row.propensity, row.reward, row.weight, *row.x], dtype="<f8")
    return numbers.tobytes() + row.table.hash.encode()


def is_possible(row: LoggedAction) -> bool:
    """Whether a propensity can be true: it is that of its support, which sums to 1, of an action that was eligible."""
    is_eligible = row.allowed is None or bool(row.allowed[row.place])
    total = 1.0 if row.support is None else math.fsum(row.support.values())
    return is_eligible and abs(total - 1.0) <= EVEN and abs(row.reach(row.place) - row.propensity) <= EVEN
