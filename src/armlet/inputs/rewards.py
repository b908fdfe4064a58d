"""Rewards for policies that are only defined for bounded or binary ones."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from armlet.errors import InvalidValueError
from armlet.inputs.columns import LARGEST

Range: TypeAlias = tuple[float, float]
Outside: TypeAlias = Literal["refuse", "clip"]
"""What happens to a reward outside of the range that was declared: an error, or the nearest end of the range."""


def check_range(reward_range: Range, outside: Outside) -> None:
    """Refuse settings that describe no range.

    Examples
    --------
    >>> check_range((1.0, 0.0), "clip")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: reward_range is (1.0, 0.0); give (lowest, highest), two numbers that differ
    """
    if not (len(reward_range) == 2 and -math.inf < reward_range[0] < reward_range[1] < math.inf):
        raise InvalidValueError(f"reward_range is {reward_range!r}; give (lowest, highest), two numbers that differ")
    if not (reward_range[0] >= -LARGEST and reward_range[1] <= LARGEST):
        raise InvalidValueError(f"reward_range is {reward_range!r}; give numbers of at most {LARGEST:g} in size")
    if outside not in ("refuse", "clip"):
        raise InvalidValueError(f"outside is {outside!r}; choose 'refuse' or 'clip'")


def unit(reward: float, reward_range: Range, outside: Outside) -> float:
    """Map a reward to [0, 1].

    Examples
    --------
    >>> unit(1.5, (1.0, 2.0), "refuse"), unit(9.0, (1.0, 2.0), "clip")
    (0.5, 1.0)
    >>> unit(9.0, (1.0, 2.0), "refuse")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: reward is 9.0 but reward_range is (1.0, 2.0); widen it, or set outside='clip'
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
    """Give a reward that must be 0 or 1.

    Examples
    --------
    >>> bit(0.5)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: reward is 0.5; this policy learns from 0 and 1 only
    """
    if reward not in (0.0, 1.0):
        raise InvalidValueError(f"reward is {reward!r}; this policy learns from 0 and 1 only")
    return reward
