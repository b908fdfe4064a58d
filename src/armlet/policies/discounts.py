"""How fast a policy forgets: by a discount of each step, or by a half-life in steps or in time.

The three say the same: a row counts discount^age, or 2^(-age / half_life). Steps are those of decisions, so a reward
that comes late is as old as its decision. Time is that of the decision too, in minutes since 1970, which a decision has
as its `tag`: so logs and ledgers hold it, and mean the same to every policy.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, TypeAlias

from armlet.errors import InvalidValueError
from armlet.inputs.settings import NEWER, number, optional, settle, unboxed
from armlet.reference.discount import TICKS
from armlet.reference.elementary import log
from armlet.types import Shapes

HalfLife: TypeAlias = float | str | timedelta | None
"""Steps; or a duration, which a setting keeps as text, such as '7 days'."""

LEAST: Final = timedelta(hours=1)
MOST: Final = timedelta(days=36_525)
MINUTE: Final = 60_000_000  # microseconds
UNITS: Final = {"days": 86_400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
_TEXT: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(d|h|min|s|days?|hours?|minutes?|seconds?)\s*")
_FIX: Final = (
    "give a number of steps from 1, or a duration from 1 hour to 100 years: a timedelta, or text such as '7 days', "
    "'12 hours'"
)


class MayFade:
    """A policy with the settings `discount` and `half_life`, which are shown only where one is given.

    Examples
    --------
    >>> import armlet
    >>> armlet.Greedy(), armlet.Greedy(discount=0.99, ridge="paper")
    (Greedy(ridge=1.0, units='free', origin=None), Greedy(ridge='paper', units='free', origin=None, discount=0.99))
    """

    __slots__ = ()

    def __repr__(self) -> str:
        own: Any = self
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(own)}
        shown = (f"{name}={value!r}" for name, value in values.items() if not (name in NEWER and value is None))
        return f"{type(self).__qualname__}({', '.join(shown)})"


def settle_discount(policy: Any) -> None:
    """Check the settings `discount` and `half_life` of a policy, of which one may be given.

    Examples
    --------
    >>> import armlet
    >>> armlet.Greedy(half_life=timedelta(days=7)).half_life
    '7 days'
    >>> armlet.Greedy(half_life="90 min").half_life
    '90 minutes'
    >>> armlet.Greedy(discount=0.99, half_life=100)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: discount is 0.99 and half_life is 100.0; give one of them
    """
    each = number(0.5, 1.0 - 2.0**-40, fix="give what a row is multiplied by at each step, from 0.5 to below 1")
    settle(policy, discount=optional(each), half_life=_half_life)
    if policy.discount is not None and policy.half_life is not None:
        raise InvalidValueError(
            f"discount is {policy.discount} and half_life is {policy.half_life!r}; give one of them"
        )


def _half_life(name: str, value: object) -> float | str | None:
    length = unboxed(value)
    if isinstance(length, str) and (read := _TEXT.fullmatch(length)):
        unit = next(unit for unit in UNITS if unit.startswith(read[2]))
        length = timedelta(seconds=float(read[1]) * UNITS[unit])
    if isinstance(length, timedelta) and LEAST <= length <= MOST:
        return _text(length)
    if isinstance(length, int | float) and not isinstance(length, bool) and 1 <= length <= 1e15:
        return float(length)
    if length is None:
        return None
    raise InvalidValueError(f"{name} is {value!r}; {_FIX}")


def _text(duration: timedelta) -> str:
    """Return a duration in the largest unit of which it is a whole number."""
    seconds = duration.total_seconds()
    unit = next((unit for unit, length in UNITS.items() if (seconds / length).is_integer()), "seconds")
    return f"{seconds / UNITS[unit]:g} {unit}" if unit != "seconds" else f"{seconds!r} seconds"


def duration_of(policy: object) -> timedelta | None:
    """Return the half-life of a policy that forgets by time; None if it does not.

    Examples
    --------
    >>> import armlet
    >>> duration_of(armlet.LinUCB(half_life="36 hours")), duration_of(armlet.LinUCB(half_life=500))
    (datetime.timedelta(days=1, seconds=43200), None)
    """
    half_life = getattr(policy, "half_life", None)
    read = _TEXT.fullmatch(half_life) if isinstance(half_life, str) else None
    return None if read is None else timedelta(seconds=float(read[1]) * UNITS[read[2]])


def fades_by_time(bandit: Any) -> bool:
    """Return whether a bandit needs the time of each decision.

    Examples
    --------
    >>> import armlet
    >>> fades_by_time(armlet.Bandit(["a", "b"], 1, policy=armlet.LinUCB(half_life="7 days"), seed=1))
    True
    """
    return getattr(bandit.state, "fades", None) == "time"


def reach_time(bandit: Any, minutes: int) -> None:
    """Let a bandit learn rows of a time that was checked when they were recorded."""
    if fades_by_time(bandit):
        bandit._reach_time(minutes)


def time_of(bandit: Any) -> int:
    """Return the minute, since 1970, of the latest decision that a bandit has learned; 0 if it does not forget by time.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.LinUCB(half_life="64 hours"), seed=1)
    >>> bandit.learn(bandit.decide([0.5], at=1.8e9), 1.0)
    >>> time_of(bandit), int(1.8e9) // 60  # in 64ths of a half-life
    (30000000, 30000000)
    """
    half_life = duration_of(bandit.policy) if fades_by_time(bandit) else None
    return 0 if half_life is None else math.ceil(bandit.state.clock / TICKS * (half_life / timedelta(minutes=1)))


def fading(policy: Any) -> Mapping[str, Any]:
    """Return how `Statistics` of a policy fade, as arguments.

    Examples
    --------
    >>> import armlet
    >>> fading(armlet.Greedy()), fading(armlet.Greedy(half_life="1 day"))
    ({}, {'half_life': datetime.timedelta(days=1)})
    >>> fading(armlet.Greedy(discount=0.5))
    {'half_life': 1.0}
    """
    discount, half_life = getattr(policy, "discount", None), getattr(policy, "half_life", None)
    if discount is not None:
        return {"half_life": max(log(2.0) / -log(discount), 1.0)}
    if half_life is None:
        return {}
    return {"half_life": duration_of(policy) or half_life}


def fading_shapes(policy: Any, n_arms: int, size: int, *, has_squares: bool = False) -> Shapes:
    """Return the shapes of what `Statistics` keep besides where rows fade, of rows of `size` values.

    Examples
    --------
    >>> import armlet
    >>> fading_shapes(armlet.LinUCB(discount=0.99), 2, 3, has_squares=True)
    {'clock': (1,), 'squares': (2, 6)}
    """
    if not fading(policy):
        return {}
    squares: Shapes = {"squares": (n_arms, size * (size + 1) // 2)} if has_squares else {}
    return {"clock": (1,), **squares}
