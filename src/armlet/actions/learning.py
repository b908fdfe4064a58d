"""What is learned from a decision of actions, taken back or replaced: who may, and how the model changes.

A row is taken back exactly while its action has an intercept of its own. The rows of an action that was folded into the
sums are no longer distinguished, nor are those from after it came back: one of them can be taken out as if it had been
a row without an intercept, which leaves what the fold shrank of it.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np

from armlet.actions.decision import ActionDecision
from armlet.actions.settings import ActionSettings
from armlet.errors import DecisionError, ForgetError, InvalidTypeError, InvalidValueError
from armlet.kernel import PairModel, coins
from armlet.reference.pair_sums import packed
from armlet.reference.pair_terms import PairTerms

Folded: TypeAlias = Literal["refuse", "approximate"]
"""What taking back a row of an action that was folded in is: an error, or taken out as if it had no intercept."""


def check_known(decision: object, seeds: Iterable[int]) -> ActionDecision:
    """Refuse a decision that a bandit with these seeds cannot have made."""
    if not isinstance(decision, ActionDecision):
        raise InvalidTypeError(
            f"decision is {reprlib.repr(decision)} ({type(decision).__name__}); give what decide returned, or "
            "ActionDecision.from_dict of its record"
        )
    mark = decision.id.rpartition("-")[2]
    if not any(mark == f"{coins(seed, decision.t).mark:016x}" for seed in seeds):
        raise DecisionError(
            f"decision {decision.id} was made by another bandit; learn it there, or merge that bandit into this one"
        )
    return decision


def check_learnable(d: ActionDecision, settings: ActionSettings) -> None:
    """Refuse a decision that was learned, or has nothing to learn from."""
    if d.learned:
        raise DecisionError(
            f"decision {d.id} was learned already, with reward {d.reward}; change it with correct(decision, "
            "old_reward, new_reward)"
        )
    _check_kept(d, settings)


def check_learned(d: ActionDecision, value: float, name: str, settings: ActionSettings) -> None:
    """Refuse a decision that was not learned with this reward."""
    if not d.learned:
        raise DecisionError(f"decision {d.id} has no reward yet; learn(decision, reward) comes first")
    if d.reward != value:
        raise InvalidValueError(f"{name} is {value} but decision {d.id} was learned with {d.reward}; pass that reward")
    _check_kept(d, settings)


def check_waited_for(d: ActionDecision) -> None:
    """Refuse a decision whose reward nobody waits for."""
    if d.learned:
        raise DecisionError(
            f"decision {d.id} was learned already, with reward {d.reward}, so nobody waits for it; take it back with "
            "forget(decision, reward)"
        )
    if d.expired:
        raise DecisionError(
            f"decision {d.id} was expired already, or its reward was forgotten, so nobody waits for it; leave it out"
        )


def _check_kept(d: ActionDecision, settings: ActionSettings) -> None:
    for name, values, dim in (("context", d.x, settings.dim), ("action", d.z, settings.action_dim)):
        if len(values) == 0 < dim:
            raise InvalidValueError(f"decision {d.id} was kept without its {name}, so nothing can be learned from it")
        if len(values) != dim:
            raise InvalidValueError(
                f"decision {d.id} has {len(values)} values of its {name} but the bandit has {dim}; it is another's"
            )


def without(state: PairModel, d: ActionDecision, settings: ActionSettings, folded: Folded) -> PairModel:
    """Return the model without the row of a decision."""
    reward, changed = settings.sign * (d.reward or 0.0), state.copy()
    try:
        changed.remove(d.key, d.x, d.z, reward, d.weight)
    except InvalidValueError:
        _check_folded(state, d, folded)
        return _plainly(state, settings, d, -reward, -(reward**2), -1)
    return changed


def corrected(state: PairModel, d: ActionDecision, new: float, settings: ActionSettings, folded: Folded) -> PairModel:
    """Return the model with another reward of a decision."""
    old, new, changed = settings.sign * (d.reward or 0.0), settings.sign * new, state.copy()
    try:
        changed.correct(d.key, d.x, d.z, old, new, d.weight)
    except InvalidValueError:
        _check_folded(state, d, folded)
        return _plainly(state, settings, d, new - old, new**2 - old**2, 0)
    return changed


def _check_folded(state: PairModel, d: ActionDecision, folded: Folded) -> None:
    if folded not in ("refuse", "approximate"):
        raise InvalidValueError(f"folded is {folded!r}; choose 'refuse' or 'approximate'")
    if state.n < 0.999 * d.weight:
        raise DecisionError(
            f"there is nothing to take back: the bandit has n = {state.n:g} and the row counts {d.weight:g}; another "
            "bandit learned it"
        )
    if folded == "refuse":
        raise ForgetError(
            f"decision {d.id} cannot be taken back exactly: rows of {d.arm!r} with these features were folded into the "
            "sums, since more than ten thousand other actions were learned after them, or were learned elsewhere; pass "
            "folded='approximate' to take it out as if the action had no intercept"
        )


def _plainly(
    state: PairModel, settings: ActionSettings, d: ActionDecision, sum_r: float, sum_r2: float, rows: int
) -> PairModel:
    """Add to the sums of r and of r^2, and to the others by a row (1), none (0) or one less (-1), without an item."""
    arrays: dict[str, Any] = state.arrays()
    dx = settings.dim
    origin, terms = arrays["origin"], PairTerms(dx, settings.action_dim, settings.products())
    x, z = d.x - origin[1 : 1 + dx], d.z - origin[1 + dx :]
    n, r0 = rows * d.weight, float(origin[0])
    r, r2 = d.weight * sum_r - n * r0, d.weight * sum_r2 - 2 * r0 * d.weight * sum_r + n * r0**2
    phi = terms.spread(np.concatenate([[1.0], x]), np.concatenate([[1.0], z]))
    features = np.concatenate([x, z])
    arrays["counts"][0] += rows
    arrays["moments"] += np.concatenate([[n, r], n * features, [r2], n * features**2])
    arrays["sums"] += np.concatenate([n * packed(np.outer(phi, phi)), r * phi, [r2]])
    changed = state.copy()
    changed.restore_arrays(arrays)
    changed.solve()
    return changed
