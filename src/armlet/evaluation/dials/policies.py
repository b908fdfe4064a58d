"""What is valued under dials: policies that score every arm by every outcome, and the weights of outcomes.

Policies are bandits with outcomes, linear policies as arrays, and arms. A number of dials becomes a sweep of one
weight, from 0 to where nothing else counts, with the dials where decisions change: at quantiles of the weights at which
a policy's best arm becomes another one. That is read off contexts and policies alone, never off what was played or
paid. O(rows J K^2 m) for a sample of rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from armlet.bandit import Bandit
from armlet.errors import ArgumentError, EvaluationError, InvalidValueError
from armlet.evaluation.dials.sums import checked_thetas, scored_contexts
from armlet.evaluation.rows import Blocks, Rows
from armlet.evaluation.targets import is_model_file, name_of, places_in
from armlet.inputs.outcomes import Outcomes
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


DialsLike: TypeAlias = int | Sequence[Mapping[str, float]]
"""How many dials, or their weights of outcomes; those left out are the default ones."""
SAMPLE: Final = 2048  # rows that a sweep looks at
MOST: Final = 10_000  # dials
FEW_POLICIES: Final = 32  # that a sweep looks at
BEYOND: Final = 1.25  # times the largest weight at which anything changes


@dataclass(frozen=True, slots=True)
class Dials:
    """Weights of outcomes, and the two outcomes that they trade for each other."""

    names: tuple[str, ...]
    weights: tuple[Mapping[str, float], ...]  # of all outcomes in each dial
    curve: tuple[str, str]  # what is drawn against what: the first against the second
    senses: tuple[float, float]  # 1.0 where more of it is better, -1.0 where less is

    @property
    def matrix(self) -> Float64:
        """(D, m)."""
        return np.array([[dial[name] for name in self.names] for dial in self.weights])

    def called(self, dial: Mapping[str, float]) -> str:
        """Return what a dial is called: the weights by which it differs from others."""
        varying = [name for name in self.names if len({each[name] for each in self.weights}) > 1] or self.names
        return ", ".join(f"{name} {dial[name]:g}" for name in varying)


def lay_dials(dials: object, curve: tuple[str, str] | None, question: DialQuestion, blocks: Blocks) -> Dials:
    """Read dials as users give them."""
    y, x = _axes(curve, question)
    default = question.weights
    if isinstance(dials, int | np.integer) and not isinstance(dials, bool):
        if not 2 <= dials <= MOST:
            raise ArgumentError("{dials} is {value}; give 2 or more, or a list of weights", value=dials)
        weights = dict.fromkeys(question.names, 0.0) | {y: 1.0} if default is None else {**default}
        senses = (_sense(weights[y], 1.0), _sense(weights[x], -1.0))
        weights[y] = weights[y] or senses[0]
        swept = [{**weights, x: each} for each in _sweep(int(dials), weights, (y, x), senses[1], question, blocks)]
        return Dials(question.names, tuple(swept), (y, x), senses)
    laid = tuple(_read_dial(each, question, default) for each in _listed(dials))
    total = {name: sum(dial[name] for dial in laid) for name in (y, x)}
    known = default or {}
    senses = (_sense(known.get(y) or total[y], 1.0), _sense(known.get(x) or total[x], -1.0))
    return Dials(question.names, laid, (y, x), senses)


def _axes(curve: tuple[str, str] | None, question: DialQuestion) -> tuple[str, str]:
    """Return the outcome that is drawn, and the one against which: what is worth most against what costs."""
    names, weights = question.names, question.weights
    if len(names) < 2:
        raise ArgumentError("{targets} have one outcome, {name!r}, so there is nothing to trade it for", name=names[0])
    if curve is not None:
        if len(curve) != 2 or curve[0] == curve[1] or not set(curve) <= set(names):
            text = "{curve} is {value!r}; give two of the outcomes {names}, the one that is paid for first"
            raise ArgumentError(text, value=curve, names=list(names))
        return curve[0], curve[1]
    if weights is None:
        if len(names) == 2:
            return names[0], names[1]
        raise ArgumentError("{curve} is missing, and nothing says what outcomes cost; give two of {names}", names=names)
    y = next((name for name in names if weights[name] > 0.0), names[0])
    others = [name for name in names if name != y]
    return y, min(others, key=lambda name: (weights[name] > 0.0, others.index(name)))


def _sense(weight: float, otherwise: float) -> float:
    return float(np.sign(weight)) or otherwise


def _listed(dials: object) -> list[object]:
    several = list(dials) if isinstance(dials, list | tuple) else []
    if not several or len(several) > MOST:
        text = (
            "{dials} is {value!r}; give how many, or a list of weights such as [{{'cost': -20.0}}, {{'cost': -80.0}}]"
        )
        raise ArgumentError(text, value=dials)
    return several


def _read_dial(dial: object, question: DialQuestion, default: Mapping[str, float] | None) -> dict[str, float]:
    if not isinstance(dial, Mapping):
        raise ArgumentError("{dials} has {value!r}; give weights by name, such as {{'cost': -20.0}}", value=dial)
    if missing := [name for name in question.names if default is None and name not in dial]:
        text = "{dials} has {value!r}, without {name!r}, and nothing says its weight; give it too"
        raise ArgumentError(text, value=dict(dial), name=missing[0])
    try:
        weights = Outcomes(dict(default or {}) or dict(dial)).with_weights(dial).weights
    except InvalidValueError as error:
        raise ArgumentError("{dials} has {value!r}: {error}", value=dict(dial), error=error) from error
    return {name: weights[name] for name in question.names}


# ---- a sweep


def _sweep(
    n: int, weights: Mapping[str, float], axes: tuple[str, str], sense: float, question: DialQuestion, blocks: Blocks
) -> list[float]:
    """Return weights of one outcome, from none to all that counts; the weights of now are among them."""
    changes = np.concatenate(
        [_changes(each, weights, axes[1], sense, question, blocks) for each in _some(question.policies)]
    )
    current = [] if question.weights is None else [(question.now or question.weights)[axes[1]]]
    if not changes.size:
        return sorted({0.0, *current}, key=abs)
    inner = max(0, n - 2 - len(current))
    middle = np.quantile(changes, (np.arange(inner) + 0.5) / max(1, inner))
    sizes = {float(f"{size:.3g}") for size in [*middle.tolist(), BEYOND * float(changes.max())]}
    return sorted({0.0, *(sense * size for size in sizes), *current}, key=lambda weight: sense * weight)


def _some(policies: Sequence[DialPolicies]) -> list[DialPolicies]:
    """Return a few policies, from all over."""
    dialed = [each for each in policies if not each.is_arm]
    return dialed[:: -(-len(dialed) // FEW_POLICIES)] if dialed else list(policies[:1])


def _changes(
    policies: DialPolicies, weights: Mapping[str, float], x: str, sense: float, question: DialQuestion, blocks: Blocks
) -> Float64:
    """Return the sizes of the weight at which the best arm of a context becomes another, one after the other."""
    rows = _sample(blocks[0])
    seen, place = policies.seen(rows)[0], question.names.index(x)
    dial = np.array([0.0 if name == x else weights[name] for name in question.names])
    changes = []
    for theta in policies.thetas[:: -(-len(policies.thetas) // FEW_POLICIES)]:  # (m, K, d)
        scores = np.einsum("nd,mkd->mnk", seen.X, theta)
        worth, price = np.tensordot(dial, scores, axes=1), sense * scores[place]
        worth = np.where(seen.eligible, worth, -np.inf)
        changes += _envelope(worth, np.where(seen.eligible, price, -np.inf))
    sizes = np.concatenate(changes) if changes else np.empty(0)
    return np.asarray(sizes[np.isfinite(sizes) & (sizes > 0.0)])


def _envelope(worth: Float64, slope: Float64) -> list[Float64]:
    """Return where the highest of the lines worth + size slope, (n, K) each, becomes another; NaN where none does."""
    each, best, changes = np.arange(len(worth)), worth.argmax(axis=1), []
    for _ in range(worth.shape[1] - 1):
        with np.errstate(invalid="ignore", divide="ignore"):
            gap, rise = worth[each, best][:, None] - worth, slope - slope[each, best][:, None]
            at = np.where(rise > 0.0, gap / rise, np.inf)
        best = np.where(np.isfinite(at.min(axis=1)), at.argmin(axis=1), best)
        changes.append(at.min(axis=1))
    return changes


def _sample(rows: Rows) -> Rows:
    """Return rows from all over a block."""
    return rows.take(slice(None, None, -(-len(rows) // SAMPLE)))
