"""Settings of policies for bounded or binary rewards, and of those whose settings alone could fill the memory."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from armlet.errors import InvalidValueError
from armlet.inputs.settings import Check, Range, settle

Outside: TypeAlias = Literal["refuse", "clip"]
"""What happens to a reward outside of the declared range: an error, or the nearest end of the range."""

ROOM = 1 << 25  # numbers that a policy may make from its settings alone: a quarter of a GiB


def settle_either(policy: object, **checks: Check) -> None:
    """Check settings of which exactly one must be given; the others are None.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from armlet.inputs.settings import positive, whole
    >>> settle_either(SimpleNamespace(horizon=None, gamma=None), horizon=whole(), gamma=positive(1.0))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: horizon is None and gamma is None; give the one or the other
    """
    given = {name: check for name, check in checks.items() if getattr(policy, name) is not None}
    if len(given) != 1:
        found = " and ".join(f"{name} is {getattr(policy, name)!r}" for name in checks)
        raise InvalidValueError(f"{found}; give the one or the other")
    settle(policy, **given)


def unit(reward: float, reward_range: Range, outside: Outside) -> float:
    """Map a reward to [0, 1].

    Examples
    --------
    >>> unit(1.5, (1.0, 2.0), "refuse"), unit(9.0, (1.0, 2.0), "clip")
    (0.5, 1.0)
    """
    low, high = reward_range
    if math.isnan(reward):
        raise InvalidValueError("reward is nan; leave out what was not observed")
    if outside == "refuse" and not low <= reward <= high:
        raise InvalidValueError(
            f"reward is {reward!r} but reward_range is {reward_range!r}; widen it, or set outside='clip'"
        )
    return min(max((reward - low) / (high - low), 0.0), 1.0)


def bit(reward: float) -> float:
    """Return a reward that must be 0 or 1."""
    if reward not in (0.0, 1.0):
        raise InvalidValueError(f"reward is {reward!r}; this policy learns from 0 and 1 only")
    return reward


def check_room(numbers: int, what: str) -> None:
    """Refuse settings that would fill the memory with more than `ROOM` numbers.

    Examples
    --------
    >>> check_room(10**9, "n_policies x n_arms x dim")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: n_policies x n_arms x dim is 1000000000; keep it within 33554432, a ...
    """
    if numbers > ROOM:
        raise InvalidValueError(f"{what} is {numbers}; keep it within {ROOM}, a quarter of a GiB")
