"""Logs whose actions have features: rows with a table each, and the laws of targets over the actions of tables.

The log is read twice, first for rewards, which may come long after their decisions; memory holds a number or two a
decision, a block of rows, and the tables that were used last.
"""

from __future__ import annotations

import math
import reprlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from armlet.actions.bandit import ActionBandit
from armlet.actions.table import ActionTable
from armlet.bandit import Bandit
from armlet.errors import ArgumentError, LogError
from armlet.evaluation.rows import Blocks, Rows, unknown_columns
from armlet.evaluation.spooled import name_of
from armlet.evaluation.targets import SUM_SLACK, Target, is_model_file
from armlet.inputs.columns import is_number
from armlet.loading import load
from armlet.log.action_tables import Tables
from armlet.record.events import Events
from armlet.record.faults import reading
from armlet.record.kinds import OF_TABLES
from armlet.record.values import Event
from armlet.types import Arm, Bool, Float64, Int64, Mode

EVEN: Final = 1e-9  # by which probabilities may miss a sum of 1, or their propensity
BLOCK: Final = 2**10  # rows of a block, each of which has a table

ActionFunction: TypeAlias = Callable[[Float64, ActionTable], Arm | Mapping[Arm, float]]
"""f(x, table) -> the label of an action, or probabilities by label."""


# ---- rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAction:
    """One decision."""

    t: int
    x: Float64  # (dx,)
    table: ActionTable
    place: int  # of the action that was played, in the table
    allowed: Bool | None  # (n,): the actions that were eligible; None for all
    propensity: float
    support: Mapping[Arm, float] | None  # every action that could be played; None: all eligible ones, equally
    reward: float  # NaN if none came
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

    @property
    def is_possible(self) -> bool:
        """Whether its propensity can be true: that of its support, which sums to 1, of an action that was eligible."""
        is_eligible = self.allowed is None or bool(self.allowed[self.place])
        total = 1.0 if self.support is None else math.fsum(self.support.values())
        return is_eligible and abs(total - 1.0) <= EVEN and abs(self.reach(self.place) - self.propensity) <= EVEN


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows(Rows):
    """Rows with a table each. Columns see one arm, which is always eligible: whatever the row has played."""

    actions: npt.NDArray[np.object_]  # (n,) of LoggedAction


def _rows(actions: Sequence[LoggedAction], dim: int) -> TableRows:
    n = len(actions)
    numbers = np.array([(each.reward, each.propensity, each.weight) for each in actions]).reshape(n, 3).T.copy()
    held = np.empty(n, dtype=np.object_)
    held[:] = actions
    columns = {"reward": numbers[0], "propensity": numbers[1], "weight": numbers[2], "probabilities": None}
    return TableRows(
        t=np.array([each.t for each in actions], dtype=np.int64),
        X=np.array([each.x for each in actions]).reshape(n, dim),
        arm=np.zeros(n, dtype=np.int64),
        actions=held,
        **unknown_columns(n, 1) | columns,
    )


class LoggedActions(Blocks):
    """A log whose actions have features, read from its events each time."""

    has_tables = True

    def __init__(self, events: Events) -> None:
        super().__init__(events.about)
        self.arms, self.name = (), name_of(events, dict(events.about))
        self._events = events
        self._paid: dict[str, tuple[float, float]] = {}  # of several rewards of a decision, the last that came
        self.n = 0
        with reading(self.name):
            for event in events:
                self._take(event)

    def _take(self, event: Event) -> None:
        kind = event["kind"]
        if kind == "decide":
            self.n += 1
            if at := event.get("at"):  # 0 where times are not known
                first, last = self.period or (at, at)
                self.period = (min(first, at), max(last, at))
        elif kind in ("learn", "correct") and "played" not in event:
            self._paid[event["id"]] = (event["reward" if kind == "learn" else "new_reward"], event.get("weight", 1.0))
        elif kind == "forget":
            self._paid.pop(event["id"], None)

    @property
    def action_dim(self) -> int:
        """Values that describe an action."""
        return int(self.about["action_dim"])

    @property
    def has_units(self) -> bool:
        """Whether decisions belong to units: never."""
        return False

    def __len__(self) -> int:
        return -(-self.n // BLOCK)

    def __iter__(self) -> Iterator[TableRows]:
        decisions = self._decisions()
        while some := list(islice(decisions, BLOCK)):
            yield _rows(some, self.dim)

    def _read(self, block: int) -> TableRows:
        return next(islice(self, block, None))

    def _decisions(self) -> Iterator[LoggedAction]:
        tables, made = Tables(), sha256()
        with reading(self.name):
            for event in self._events:
                if event["kind"] in OF_TABLES:
                    tables.read(event)
                elif event["kind"] == "decide":
                    row = self._decided(event, tables.chosen_from(event))
                    if not math.isnan(row.reward):
                        made.update(_bytes(row))
                    yield row
        self.digest = made.hexdigest()

    def _decided(self, event: Event, table: ActionTable) -> LoggedAction:
        reward, weight = self._paid.get(event["id"], (math.nan, 1.0))
        if event["x"] is None and not math.isnan(reward):
            raise LogError(f"step {event['t']:,} has a reward but no context: log contexts, or leave such rows out")
        support = event.get("support")
        return LoggedAction(
            t=event["t"],
            x=np.zeros(self.dim) if event["x"] is None else np.array(event["x"], dtype=np.float64),
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


# ---- laws


class RowLaw(NamedTuple):
    """The actions of one table that a policy may play, by their place, and with which probability each."""

    places: Int64  # (m,)
    chances: Float64  # (m,)

    def of(self, place: int) -> float:
        """Return the probability of an action."""
        return float(self.chances[self.places == place].sum())

    def beyond(self, row: LoggedAction) -> float:
        """Return the probability of what the log could not have played."""
        return float(
            sum(chance for place, chance in zip(self.places, self.chances, strict=True) if not row.reach(place))
        )


@dataclass(frozen=True, slots=True)
class TableLaw:
    """The law of a target over the tables of n rows."""

    rows: npt.NDArray[np.object_]  # (n,) of RowLaw
    actions: npt.NDArray[np.object_]  # (n,) of LoggedAction

    @property
    def played(self) -> Float64:
        """(n,): its probability of the action that was played."""
        pairs = zip(self.rows, self.actions, strict=True)
        return np.array([law.of(row.place) for law, row in pairs], dtype=np.float64)

    @property
    def is_certain(self) -> bool:
        """Whether it would have played one action in every row."""
        return all(len(law.places) == 1 for law in self.rows)

    def take(self, which: Bool) -> TableLaw:
        """Return the law of some rows."""
        return TableLaw(self.rows[which], self.actions[which])


class ActionTarget(Target):
    """A policy that plays actions of tables, and does not learn."""

    @abstractmethod
    def row_law(self, row: LoggedAction) -> RowLaw:
        """Return what it would have done with the context, the table and the eligible actions of a row."""

    def law(self, rows: Rows) -> TableLaw:
        """Return what it would have done."""
        assert isinstance(rows, TableRows)
        laws = np.empty(len(rows), dtype=np.object_)
        for i, row in enumerate(rows.actions):
            laws[i] = self.row_law(row)
        return TableLaw(laws, rows.actions)

    def beyond(self, rows: Rows) -> float:
        """Return how much of what it plays the log could not have played, in rows."""
        law = self.law(rows)
        return math.fsum(each.beyond(row) for each, row in zip(law.rows, law.actions, strict=True))


@dataclass(frozen=True, slots=True)
class LoggedActionTarget(ActionTarget):
    """The logging policy: what was played was played."""

    name: str = "logged"
    is_log = True

    def row_law(self, row: LoggedAction) -> RowLaw:
        """Return the action that was played."""
        return RowLaw(np.array([row.place]), np.ones(1))


@dataclass(frozen=True, slots=True)
class UniformActionTarget(ActionTarget):
    """All eligible actions with equal probability."""

    name: str = "uniform"

    def row_law(self, row: LoggedAction) -> RowLaw:
        """Return equal probabilities."""
        places = np.arange(len(row.table)) if row.allowed is None else np.flatnonzero(row.allowed)
        return RowLaw(places, np.full(len(places), 1.0 / len(places)))


@dataclass(frozen=True, slots=True)
class ActionBanditTarget(ActionTarget):
    """A bandit, as it is now."""

    name: str
    bandit: ActionBandit
    mode: Mode = "greedy"

    def learned(self) -> dict[Arm, float]:
        """Return how many rows its model has, as those of one arm."""
        return {0: float(self.bandit.state.n)}

    def row_law(self, row: LoggedAction) -> RowLaw:
        """Ask it."""
        chances = self.bandit.predict_proba(row.x, row.table, eligible=row.allowed, mode=self.mode)
        places = np.flatnonzero(chances)
        return RowLaw(places, chances[places])


@dataclass(frozen=True, slots=True)
class ActionFunctionTarget(ActionTarget):
    """A function that returns a label, or probabilities by label."""

    name: str
    function: ActionFunction

    def row_law(self, row: LoggedAction) -> RowLaw:
        """Call it, and check what it returns."""
        answer = self.function(row.x.copy(), row.table)
        is_label = isinstance(answer, str) or is_number(answer)
        chances = answer if isinstance(answer, Mapping) else {answer: 1.0} if is_label else {}
        valid = bool(chances) and all(is_number(each) and 0.0 <= each < math.inf for each in chances.values())
        values = np.array(list(chances.values()) if valid else [], dtype=np.float64)
        if not abs(values.sum() - 1.0) <= SUM_SLACK:
            text = "{targets} has {name!r}, which gives {given} at step {t}; give a label, or probabilities by label "
            raise ArgumentError(text + "that sum to 1", name=self.name, given=reprlib.repr(answer), t=row.t)
        places = np.array([self._place(label, row) for label in chances], dtype=np.int64)
        return RowLaw(places[values > 0], values[values > 0] / values.sum())

    def _place(self, label: Arm, row: LoggedAction) -> int:
        if label not in row.table or not (row.allowed is None or row.allowed[row.table.place(label)]):
            text = "{targets} has {name!r}, which plays {label!r} at step {t}, where it was not eligible; play one of "
            raise ArgumentError(text + "the table that it is given", name=self.name, label=label, t=row.t)
        return row.table.place(label)


def read_action_target(name: str, target: object, mode: Mode) -> ActionTarget:
    """Read one target: a word, a model file, an ActionBandit or a function."""
    if isinstance(target, ActionTarget):
        return target
    if target == "uniform":
        return UniformActionTarget(name)
    if target == "logged":
        return LoggedActionTarget(name)
    if is_model_file(target):
        target = load(target)  # type: ignore[call-overload]
    if isinstance(target, ActionBandit):
        return ActionBanditTarget(name, target, mode)
    if callable(target) and not isinstance(target, Bandit):
        return ActionFunctionTarget(name, target)
    text = (
        "{targets} has {name!r}, which is {target!r}; actions of this log have features: give an ActionBandit, a model "
        "file of one, 'uniform', 'logged', or f(x, table) -> label"
    )
    raise ArgumentError(text, name=name, target=target)
