"""Decisions of another system: the columns that evaluation reads, and the events that everything else reads.

Columns are kept whole, 8 bytes a number; an event is made when it is read, O(1) memory a row.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from armlet.errors import ArgumentError
from armlet.inputs.columns import check_utf8, plain_labels
from armlet.inputs.outcomes import Outcomes
from armlet.inputs.table import Table
from armlet.record.contradictions import SCHEMA
from armlet.record.kinds import EXPLORATION, FORMAT
from armlet.record.values import Event
from armlet.types import Arm, Bool, Float64, Int64, Reward, __version__

_BATCH: Final = 2**14  # rows that are Python values at a time


class Logged(NamedTuple):
    """One decision of another system, and its reward."""

    x: list[float]
    arm: Arm
    propensity: float
    reward: Reward | None = None
    weight: float = 1.0
    eligible: list[Arm] | None = None
    probabilities: list[float] | None = None
    event: str | None = None
    at: int = 0  # microseconds since 1970
    outcomes: dict[str, float] | None = None  # the parts of a reward that is a number
    unit: str | None = None  # whose decisions share a draw
    epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Decisions and their rewards by column, (n,) each but X."""

    X: Float64  # (n, d)
    arm: Int64  # places in the labels of arms
    propensity: Float64
    reward: Float64  # NaN where none came, and where a reward is its outcomes
    outcomes: Mapping[str, Float64] = field(default_factory=dict)  # NaN where one did not come
    units: Sequence[str | None] | None = None
    epochs: Sequence[int | None] | None = None
    at: Int64 | None = None  # microseconds since 1970
    weight: Float64 | None = None
    eligible: Bool | None = None  # (n, K)

    def __len__(self) -> int:
        return len(self.arm)

    def take(self, which: Int64) -> Columns:
        """Return some of the rows, which have no units and no outcomes."""
        return Columns(
            X=self.X[which],
            arm=self.arm[which],
            propensity=self.propensity[which],
            reward=self.reward[which],
            at=None if self.at is None else self.at[which],
        )


class Imported(ABC):
    """Events made of rows each time that they are read."""

    def __init__(
        self, arms: Sequence[Arm], features: Sequence[str], origin: str, outcomes: Outcomes | None = None
    ) -> None:
        if outcomes is not None:
            outcomes.check_arms(arms)
        several = {} if outcomes is None else {"outcomes": outcomes.to_dict()}
        for i, feature in enumerate(features):
            check_utf8(f"features[{i}]", feature)
        names = {"arms": plain_labels(list(arms)), "dim": len(features), "features": list(features), "objective": "max"}
        head = {"seq": 0, "kind": "start", "at": 0, "format": FORMAT, "schema": SCHEMA}
        made = {"policy": None, "origin": origin, "version": __version__, "digest": None}
        self._about: Event = {**head, **several, **names, **made}

    @abstractmethod
    def _rows(self) -> Iterator[Logged]:
        """Yield the decisions in their order."""

    @property
    def about(self) -> Event:
        """The fields of the start."""
        return self._about

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The labels of arms, in the order that columns of an evaluation have."""
        return tuple(self._about["arms"])

    def __repr__(self) -> str:
        about = self._about
        return f"<{type(self).__name__} of {about['origin']}: arms {about['arms']}, {about['dim']} features>"

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
                reward |= {} if row.outcomes is None else {"outcomes": row.outcomes}
                yield {"seq": seq, "kind": "learn", "at": row.at, **reward}
                seq += 1


def _decide(seq: int, t: int, name: str, row: Logged) -> Event:
    event: Event = {"seq": seq, "kind": "decide", "at": row.at, "id": name, "t": t, "x": row.x}
    event |= {"eligible": row.eligible, "arm": row.arm, "propensity": row.propensity}
    event |= dict.fromkeys(("explored", "optimistic", *EXPLORATION, "greedy", "design"))
    if row.probabilities is not None:
        event["probabilities"] = row.probabilities
    event["tag"] = 0
    if row.event is not None:
        event["event"] = row.event
    if row.unit is not None:
        event |= {"unit": row.unit} | ({} if row.epoch is None else {"epoch": row.epoch})
    return event


class ImportedColumns(Imported):
    """Decisions as columns, which are read when they are first asked for."""

    def __init__(
        self,
        read: Callable[[], Columns],
        arms: Sequence[Arm],
        features: Sequence[str],
        origin: str,
        outcomes: Outcomes | None = None,
    ) -> None:
        super().__init__(arms, features, origin, outcomes)
        self._read = read

    @cached_property
    def columns(self) -> Columns:
        """The decisions; refused where an arm is none of the labels."""
        columns = self._read()
        wrong = np.flatnonzero((columns.arm < 0) | (columns.arm >= len(self.arms)))
        if wrong.size:
            text = "{log} has row {row:,}, whose arm is none of {arms}; name all arms"
            raise ArgumentError(text, row=int(wrong[0]) + 1, arms=list(self.arms))
        return columns

    def _rows(self) -> Iterator[Logged]:
        columns, labels, is_worth = self.columns, self.arms, "outcomes" in self._about
        for start in range(0, len(columns), _BATCH):
            some = slice(start, start + _BATCH)
            parts = {name: values[some].tolist() for name, values in columns.outcomes.items()}
            numbers = (columns.propensity[some].tolist(), columns.reward[some].tolist())
            rows = zip(columns.X[some].tolist(), columns.arm[some].tolist(), *numbers, strict=True)
            for i, (x, place, propensity, reward) in enumerate(rows):
                came = {name: values[i] for name, values in parts.items() if values[i] == values[i]}
                has_reward, at = reward == reward, start + i
                yield Logged(
                    x=x,
                    arm=labels[place],
                    propensity=propensity,
                    reward=(came or None) if is_worth else reward if has_reward else None,
                    weight=1.0 if columns.weight is None else float(columns.weight[at]),
                    eligible=None if columns.eligible is None else self._eligible(columns.eligible[at]),
                    at=0 if columns.at is None else int(columns.at[at]),
                    outcomes=came if parts and not is_worth else None,
                    unit=None if columns.units is None else columns.units[at],
                    epoch=None if columns.epochs is None else columns.epochs[at],
                )

    def _eligible(self, plays: Bool) -> list[Arm] | None:
        return None if plays.all() else [self.arms[place] for place in np.flatnonzero(plays)]


class TableLog(ImportedColumns):
    """The rows of an `armlet.Table`, whose propensities must be known.

    Examples
    --------
    >>> rows = {"age": [31.0, 44.0], "ad": ["a", "b"], "click": [1.0, None]}
    >>> log = TableLog(Table(rows, features=["age", "1"], arm="ad", propensity=0.5))
    >>> [(event["kind"], event.get("x")) for event in log][1:]
    [('decide', [31.0, 1.0]), ('learn', None), ('decide', [44.0, 1.0])]
    """

    def __init__(self, table: Table) -> None:
        if table.propensities is None:
            raise ArgumentError(
                "{propensity} is missing; name the column of the probability with which each arm was played, or give "
                "that probability if all rows share it, such as 1/3"
            )
        features = table.features or tuple(map(str, range(table.X.shape[1])))
        origin = f"table: {table.name}" if table.name else "table"
        super().__init__(lambda: _columns_of(table), table.arms, features, origin, table.outcomes)


def _columns_of(table: Table) -> Columns:
    reward, outcomes = table.rewards[:, 0], table.observed
    if table.outcomes is not None:
        reward, outcomes = np.full(len(table), np.nan), dict(zip(table.outcomes.learned, table.rewards.T, strict=True))
    else:  # parts of a reward that did not come say nothing
        outcomes = {name: np.where(np.isnan(reward), np.nan, values) for name, values in outcomes.items()}
    units, epochs = table.units, table.epochs
    return Columns(
        X=table.X,
        arm=table.played,
        propensity=np.ones(0) if table.propensities is None else table.propensities,
        reward=reward,
        outcomes=outcomes,
        units=None if units is None else [units.texts[code] if code >= 0 else None for code in units.codes.tolist()],
        epochs=None if epochs is None else [epoch if epoch >= 0 else None for epoch in epochs.tolist()],
        at=table.times,
        weight=table.weights,
        eligible=table.eligible,
    )
