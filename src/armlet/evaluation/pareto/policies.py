"""The policies of a Pareto curve, as users give them: bandits with outcomes, linear policies as arrays, and arms.

Each scores every arm by every outcome, linearly in the context as it sees it; a dial weighs the scores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from armlet.bandit import Bandit
from armlet.errors import ArgumentError, EvaluationError
from armlet.evaluation.dials import checked_thetas, scored_contexts
from armlet.evaluation.rows import Blocks, Rows
from armlet.evaluation.targets import is_model_file, name_of, places_in
from armlet.inputs.settings import Range
from armlet.loading import load
from armlet.types import Arm, Bool, Float64, Int64

DialTarget: TypeAlias = "Bandit | Arm | os.PathLike[str] | npt.NDArray[np.float64]"
"""A policy that dials are turned on: a bandit with outcomes or its file, (m, K, d) or (m, K, 1 + d); or an arm."""
DialTargets: TypeAlias = "DialTarget | Mapping[str, DialTarget] | Sequence[DialTarget]"


@dataclass(frozen=True, slots=True)
class DialPolicies:
    """J policies that see contexts alike: those of one array, or one bandit."""

    names: tuple[str, ...]  # J
    arms: Int64  # (K,): the places in the log of the arms that they may play, in their own order
    thetas: Float64  # (J, m, K, d)
    prices: Mapping[str, Float64] = field(default_factory=dict)  # by known outcome: of the log's arms, NaN if not known
    bandit: Bandit | None = None
    is_arm: bool = False  # plays one arm, whatever the dial

    def seen(self, rows: Rows) -> tuple[Rows, Bool]:
        """Return rows as these policies see them, and which of them played an arm that they may play."""
        places = np.full(rows.eligible.shape[1], -1)
        places[self.arms] = np.arange(len(self.arms))
        arm, eligible = places[rows.arm], np.ascontiguousarray(rows.eligible[:, self.arms])
        none = np.flatnonzero(~eligible.any(axis=1))
        if none.size:
            text = "{targets} has {name!r}, which plays none of the arms that were eligible at step {t}"
            raise ArgumentError(text, name=self.names[0], t=int(rows.t[none[0]]))
        return replace(rows, X=self._contexts(rows.X), arm=arm, eligible=eligible, probabilities=None), arm >= 0

    def _contexts(self, X: Float64) -> Float64:
        if self.bandit is None:
            return scored_contexts(X, self.thetas)
        return np.ascontiguousarray(self.bandit._estimated(X, None, None, False)[2])


@dataclass(frozen=True, slots=True)
class DialQuestion:
    """What is to be valued: policies, and the outcomes that they weigh."""

    names: tuple[str, ...]  # of outcomes, in the order of weights
    weights: Mapping[str, float] | None  # the default dial; None if nothing says what outcomes are worth
    now: Mapping[str, float] | None  # the same with the price of a budget, where one moves it
    ranges: Mapping[str, Range]
    policies: tuple[DialPolicies, ...]

    @property
    def estimated(self) -> tuple[str, ...]:
        """The outcomes that rows must have: those whose prices some policy does not know."""
        dialed = [each for each in self.policies if not each.is_arm] or self.policies
        return tuple(name for name in self.names if not all(name in each.prices for each in dialed))


def read_policies(targets: object, blocks: Blocks, order: tuple[Arm, ...] | None) -> DialQuestion:
    """Read policies, each under a name of its own, and what they weigh; `order` is that of arms in arrays."""
    named = _named(targets)
    bandits = {name: each for name, each in named.items() if isinstance(each, Bandit)}
    for name, bandit in bandits.items():
        if bandit.settings.outcomes is None:
            text = "{targets} has {name!r}, which has one reward, so it has no dial; give a bandit with outcomes"
            raise ArgumentError(text, name=name)
    weights, now, ranges = _worth(bandits, blocks)
    names = _outcomes(weights, blocks)
    policies = [_read(name, each, names, blocks, order) for name, each in named.items()]
    prices = next((each.prices for each in policies if each.prices), {})
    policies = [replace(each, prices=_known(prices, each.arms)) if each.is_arm else each for each in policies]
    return DialQuestion(names, weights, now, ranges, tuple(policies))


def _named(targets: object) -> dict[str, object]:
    """Return policies by name; those of one array stay together, under the name of the first."""
    if isinstance(targets, Mapping):
        policies = {str(name): each for name, each in targets.items()}
    elif isinstance(targets, np.ndarray):
        policies = {"policy": targets}
    else:
        several = list(targets) if isinstance(targets, list | tuple) else [targets]
        arrays = [place for place, each in enumerate(several) if isinstance(each, np.ndarray)]
        names = [f"policy {i}" if i in arrays else name_of(each) for i, each in enumerate(several)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ArgumentError("{targets} has {name!r} twice; give a mapping from names to targets", name=twice)
        policies = dict(zip(names, several, strict=True))
    if not policies:
        raise ArgumentError("{targets} is empty; give a policy to value")
    return {name: load(each, kind=Bandit) if is_model_file(each) else each for name, each in policies.items()}


def _worth(
    bandits: Mapping[str, Bandit], blocks: Blocks
) -> tuple[Mapping[str, float] | None, Mapping[str, float] | None, Mapping[str, Range]]:
    """Return the default weights, those under the price of a budget, and the ranges of outcomes."""
    if not bandits:
        return blocks.outcomes, None, {}
    (first, bandit), *others = bandits.items()
    several = bandit.settings.outcomes
    assert several is not None
    for name, other in others:
        theirs = other.settings.outcomes
        if theirs is None or dict(theirs.weights) != dict(several.weights):
            text = "{targets} has {first!r} and {name!r}, whose outcomes or their weights differ; value them apart"
            raise ArgumentError(text, first=first, name=name)
    spending = bandit.budget
    now = None
    if spending is not None and spending.price > 0.0:
        now = {**several.weights}
        now[spending.budget.outcome] -= spending.price
    return dict(several.weights), now, dict(several.ranges)


def _outcomes(weights: Mapping[str, float] | None, blocks: Blocks) -> tuple[str, ...]:
    names = tuple((blocks[0].outcomes or {}) if len(blocks) else ())
    if not names:
        raise EvaluationError(
            f"{blocks.name} has one reward and no outcomes, so there is no dial to value; log with a bandit that has "
            "outcomes, or give a table with a column for each, such as reward_quality and reward_cost"
        )
    return tuple(weights) if weights is not None else names


def _read(
    name: str, target: object, names: tuple[str, ...], blocks: Blocks, order: tuple[Arm, ...] | None
) -> DialPolicies:
    if isinstance(target, Bandit):
        return _of_bandit(name, target, names, blocks.arms)
    if isinstance(target, np.ndarray):
        places = places_in(blocks.arms, order, "{targets} has {name!r}, an array, which", name=name)
        several = target[np.newaxis] if target.ndim == 3 else target
        thetas = checked_thetas(several, 4, len(blocks.arms), blocks.dim, "targets")
        if thetas.shape[1] != len(names):
            text = "{targets} has {name!r} with scores of {m} outcomes; there are {names}, in this order"
            raise ArgumentError(text, name=name, m=thetas.shape[1], names=list(names))
        called = tuple(f"{name} {j}" for j in range(len(thetas))) if target.ndim == 4 else (name,)
        return DialPolicies(called, np.array(places), thetas)
    if isinstance(target, str | int) and target in blocks.arms:
        thetas = np.zeros((1, len(names), 1, 1 + blocks.dim))
        return DialPolicies((name,), np.array([blocks.arms.index(target)]), thetas, is_arm=True)
    text = (
        "{targets} has {name!r}, which is {target!r}; with dials give a bandit with outcomes or its file, an arm of "
        "{arms}, or scores as an array (m, K, d) or (m, K, 1 + d)"
    )
    raise ArgumentError(text, name=name, target=target, arms=list(blocks.arms))


def _known(prices: Mapping[str, Float64], arms: Int64) -> dict[str, Float64]:
    """Return the prices that are known of some arms."""
    return {name: each for name, each in prices.items() if not np.isnan(each[arms]).any()}


def _of_bandit(name: str, bandit: Bandit, names: tuple[str, ...], arms: tuple[Arm, ...]) -> DialPolicies:
    """Return a bandit's estimates of every outcome; the price of a budget is left out, since a dial takes its place."""
    views = [bandit._view(None, {other: float(other == one) for other in names}, False) for one in names]
    labels, playable = views[0][0], views[0][1]
    own = [place for place, arm in enumerate(labels) if playable[place] and arm in arms]
    if not own:
        text = "{targets} has {name!r}, which plays none of the arms {arms} of the log"
        raise ArgumentError(text, name=name, arms=list(arms))
    outcomes = bandit.settings.outcomes
    known = {} if outcomes is None else outcomes.known
    prices = {one: np.array([each.get(arm, np.nan) for arm in arms]) for one, each in known.items()}
    thetas = np.stack([theta[own] for _, _, theta, _, _ in views])[np.newaxis]
    return DialPolicies((name,), np.array([arms.index(labels[place]) for place in own]), thetas, prices, bandit)
