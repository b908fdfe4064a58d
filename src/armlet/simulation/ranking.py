"""Policies of one world in the order of their regret: computed once, for the terminal and for the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from armlet.environments import ENVIRONMENTS
from armlet.inference.intervals import Estimate, paired_difference
from armlet.model_file.encoding import Json
from armlet.policies import POLICIES, plugged_policies
from armlet.simulation.growth import SHORTEST, doubling_ratio
from armlet.simulation.results import Result


class Place(NamedTuple):
    """A policy in a ranking."""

    result: Result
    regret: Estimate  # at T
    more: Estimate | None  # than that of the first, paired by run; None if their runs are not the same
    ratio: Estimate | None  # of doubling; None of runs too few or too short to say

    @classmethod
    def of(cls, result: Result, first: Result) -> Place:
        """Estimate what it regrets, exactly if there is but one run."""
        return cls(result, result.estimate(int(result.steps[-1])), _more(result, first), _ratio(result))

    @property
    def name(self) -> str:
        """The policy and its settings."""
        return describe(self.result.settings["policy"])

    @property
    def is_told(self) -> bool:
        """Whether it has enough runs for an interval."""
        return len(self.result.runs) > 1


def rank(results: Sequence[Result]) -> list[Place]:
    """Put the least regret first."""
    ordered = sorted(results, key=lambda each: float(each.mean[-1]))
    return [Place.of(each, ordered[0]) for each in ordered]


def _more(result: Result, first: Result) -> Estimate | None:
    T = int(result.steps[-1])
    if int(first.steps[-1]) != T or result.runs.tolist() != first.runs.tolist():
        return None
    if len(result.runs) > 1:
        return paired_difference(result.at(T), first.at(T), result.rng("difference interval"))
    return exact(float(result.mean[-1] - first.mean[-1]))


def _ratio(result: Result) -> Estimate | None:
    if len(result.runs) < 2 or result.steps[-1] < SHORTEST:
        return None
    return doubling_ratio(result.steps, result.regret, result.rng("growth interval"))


def exact(value: float) -> Estimate:
    """Give a number that needs no interval."""
    return Estimate(value, value, value)


def describe(thing: Json) -> str:
    """Name a world or policy with its settings, without long ones and those left at their default.

    Examples
    --------
    >>> describe({"name": "LinUCB", "settings": {"alpha": 0.5, "delta": 0.05, "theta": [1, 2]}})
    'LinUCB(alpha=0.5)'
    """
    match thing:
        case {"name": str(name), "settings": dict(settings)}:
            usual = _defaults(name)
            short = {key: value for key, value in settings.items() if isinstance(value, str | int | float)}
            told = [f"{key}={value!r}" for key, value in short.items() if usual.get(key) != value]
            return f"{name}({', '.join(told)})"
        case {"name": str(name)}:
            return name
    return str(thing)


def _defaults(name: str) -> dict[str, object]:
    kind = POLICIES.get(name) or ENVIRONMENTS.get(name) or plugged_policies().get(name)
    return {field.name: field.default for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
