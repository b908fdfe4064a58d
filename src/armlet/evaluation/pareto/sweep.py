"""Dials: which weights of outcomes are valued, and which outcome is drawn against which.

A number of dials becomes a sweep of one weight, from 0 to where nothing else counts, with the dials where decisions
change: at quantiles of the weights at which a policy's best arm becomes another one. That is read off contexts and
policies alone, never off what was played or paid. O(rows J K^2 m) for a sample of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from armlet.errors import ArgumentError, InvalidValueError
from armlet.evaluation.pareto.policies import DialPolicies, DialQuestion
from armlet.evaluation.rows import Blocks, Rows
from armlet.inputs.outcomes import Outcomes
from armlet.types import Float64

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
    laid = tuple(_read(each, question, default) for each in _listed(dials))
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


def _read(dial: object, question: DialQuestion, default: Mapping[str, float] | None) -> dict[str, float]:
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
