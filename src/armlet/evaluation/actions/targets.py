"""Policies to be valued on a log of actions: the probabilities that each would have played actions of a table with."""

from __future__ import annotations

import math
import os
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, get_args

import numpy as np

from armlet.actions.bandit import ActionBandit
from armlet.actions.table import ActionTable
from armlet.bandit import Bandit
from armlet.errors import ArgumentError
from armlet.evaluation.actions.rows import LoggedAction
from armlet.evaluation.targets import SUM_SLACK, Logged, is_model_file, named_targets
from armlet.inputs.columns import is_number
from armlet.loading import load
from armlet.types import Arm, Float64, Int64, Mode

ActionFunction: TypeAlias = Callable[[Float64, ActionTable], Arm | Mapping[Arm, float]]
"""f(x, table) -> the label of an action, or probabilities by label."""
ActionTargetLike: TypeAlias = "ActionTarget | ActionBandit | ActionFunction | str | os.PathLike[str]"


@dataclass(frozen=True, slots=True)
class ActionLaw:
    """The actions of a table that a policy may play, by their place, and with which probability each."""

    places: Int64  # (m,)
    chances: Float64  # (m,)

    def of(self, place: int) -> float:
        """Return the probability of an action."""
        return float(self.chances[self.places == place].sum())


class ActionTarget(ABC):
    """A policy that does not learn."""

    name: str

    @abstractmethod
    def law(self, row: LoggedAction) -> ActionLaw:
        """Return what it would have done with the context, the table and the eligible actions of a row."""


class LoggedTarget(Logged, ActionTarget):
    """The logging policy: what was played was played."""

    def law(self, row: LoggedAction) -> ActionLaw:
        """Return the action that was played."""
        return ActionLaw(np.array([row.place]), np.ones(1))


@dataclass(frozen=True, slots=True)
class UniformActionTarget(ActionTarget):
    """All eligible actions with equal probability."""

    name: str = "uniform"

    def law(self, row: LoggedAction) -> ActionLaw:
        """Return equal probabilities."""
        places = np.arange(len(row.table)) if row.allowed is None else np.flatnonzero(row.allowed)
        return ActionLaw(places, np.full(len(places), 1.0 / len(places)))


@dataclass(frozen=True, slots=True)
class ActionBanditTarget(ActionTarget):
    """A bandit, as it is now."""

    name: str
    bandit: ActionBandit
    mode: Mode = "greedy"

    def law(self, row: LoggedAction) -> ActionLaw:
        """Ask it."""
        chances = self.bandit.predict_proba(row.x, row.table, eligible=row.allowed, mode=self.mode)
        places = np.flatnonzero(chances)
        return ActionLaw(places, chances[places])


@dataclass(frozen=True, slots=True)
class ActionFunctionTarget(ActionTarget):
    """A function that returns a label, or probabilities by label."""

    name: str
    function: ActionFunction

    def law(self, row: LoggedAction) -> ActionLaw:
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
        return ActionLaw(places[values > 0], values[values > 0] / values.sum())

    def _place(self, label: Arm, row: LoggedAction) -> int:
        if label not in row.table or not (row.allowed is None or row.allowed[row.table.place(label)]):
            text = "{targets} has {name!r}, which plays {label!r} at step {t}, where it was not eligible; play one of "
            raise ArgumentError(text + "the table that it is given", name=self.name, label=label, t=row.t)
        return row.table.place(label)


def read_targets(targets: object, mode: Mode) -> list[ActionTarget]:
    """Read targets as users give them, each under a name of its own."""
    if mode not in get_args(Mode):
        raise ArgumentError("{mode} is {value!r}; choose 'greedy' or 'exploring'", value=mode)
    named = named_targets(targets)
    if not named:
        raise ArgumentError("{targets} is empty; give a policy to value")
    return [read_target(name, target, mode) for name, target in named.items()]


def read_target(name: str, target: object, mode: Mode) -> ActionTarget:
    """Read one target: a word, a model file, an ActionBandit or a function."""
    if isinstance(target, ActionTarget):
        return target
    if target == "uniform":
        return UniformActionTarget(name)
    if target == "logged":
        return LoggedTarget(name)
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
