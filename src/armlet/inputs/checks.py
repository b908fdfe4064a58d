"""Settings of policies: checked once, when a policy is made, and stored as plain values that can be saved as JSON.

A check takes a setting's name and value and gives the value back, a numpy number as Python's own; or raises a
ValueError that names the setting, its value and the fix.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.rewards import Range, check_range

Check: TypeAlias = Callable[[str, object], object]

MAX = sys.float_info.max
TINY, HUGE = 1e-40, 1e40  # between them neither vanishes nor overflows what contexts and rewards up to 1e40 lead to
NOISE_SCALE = 1.0  # R of a policy that is told nothing: holds for standard normal noise, and any noise within [-1, 1]
MOST, SEEDS = 2**63 - 1, 2**128 - 1  # whole numbers: what a clock can count, and what coins take


def settle(policy: object, **checks: Check) -> None:
    """Check settings of a frozen policy, and store what the checks give back.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> policy = SimpleNamespace(epsilon=np.float64(0.1))
    >>> settle(policy, epsilon=positive(1.0))
    >>> policy
    namespace(epsilon=0.1)
    >>> settle(policy, epsilon=positive(most=0.05))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: epsilon is 0.1; give a positive number of at most 0.05
    """
    for name, check in checks.items():
        object.__setattr__(policy, name, check(name, getattr(policy, name)))


def settle_either(policy: object, **checks: Check) -> None:
    """Check settings of which exactly one must be given; the others are None.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> settle_either(SimpleNamespace(horizon=None, gamma=None), horizon=whole(), gamma=positive(1.0))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: horizon is None and gamma is None; give the one or the other
    """
    given = {name: check for name, check in checks.items() if getattr(policy, name) is not None}
    if len(given) != 1:
        found = " and ".join(f"{name} is {getattr(policy, name)!r}" for name in checks)
        raise InvalidValueError(f"{found}; give the one or the other")
    settle(policy, **given)


def number(low: float, high: float = HUGE, *, fix: str | None = None) -> Check:
    """Ask for a finite number from `low` to `high`.

    Examples
    --------
    >>> number(0, 1)("epsilon", np.float64(0.5))
    0.5
    >>> number(0)("h", -1)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: h is -1; give a number from 0 to 1e+40
    """
    return _numeric(lambda value: low <= value <= high, fix or f"give a number from {low:g} to {high:g}")


def positive(most: float = HUGE, *, fix: str | None = None) -> Check:
    """Ask for a number above 0, up to `most`.

    Examples
    --------
    >>> positive()("ridge", 0.0)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: ridge is 0.0; give a positive number from 1e-40 to 1e+40
    """
    room = f"from {TINY:g} to {HUGE:g}" if most == HUGE else f"of at most {most:g}"
    return _numeric(lambda value: TINY <= value <= most, fix or f"give a positive number {room}")


def chance(*, fix: str = "give a chance of failure between 0 and 1, such as 0.05") -> Check:
    """Ask for a number between 0 and 1 that is neither.

    Examples
    --------
    >>> chance()("delta", 1.0)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: delta is 1.0; give a chance of failure between 0 and 1, such as 0.05
    """
    return _numeric(lambda value: TINY <= value < 1, fix)


def whole(least: int = 1, most: int = MOST) -> Check:
    """Ask for a whole number from `least` to `most`.

    Examples
    --------
    >>> whole()("horizon", np.int64(7))
    7
    >>> whole()("horizon", 0.5)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: horizon is 0.5; give a whole number of at least 1
    >>> whole()("horizon", 2**63)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: horizon is 9223372036854775808; give a whole number of at most ...
    """

    def check(name: str, value: object) -> int:
        found = unboxed(value)
        if isinstance(found, bool) or not isinstance(found, int) or found < least:
            raise InvalidValueError(f"{name} is {value!r}; give a whole number of at least {least}")
        if found > most:
            raise InvalidValueError(f"{name} is {reprlib.repr(found)}; give a whole number of at most {most}")
        return found

    return check


def one_of(*words: str) -> Check:
    """Ask for one of some words.

    Examples
    --------
    >>> one_of("ignored", "table")("contexts", "tables")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: contexts is 'tables'; choose 'ignored' or 'table'
    """

    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in words:
            listed = ", ".join(map(repr, words[:-1]))
            raise InvalidValueError(f"{name} is {value!r}; choose {listed} or {words[-1]!r}")
        return value

    return check


def optional(check: Check) -> Check:
    """Ask for what another check asks for, or None.

    Examples
    --------
    >>> optional(whole())("n_stages", 0)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: n_stages is 0; give a whole number of at least 1, or None
    """

    def check_unless_none(name: str, value: object) -> object:
        if value is None:
            return None
        try:
            return check(name, value)
        except ValueError as error:
            raise InvalidValueError(f"{error}, or None") from None

    return check_unless_none


units_word = one_of("free", "as given")
"""Ask for units; see `armlet.reference.units`."""


def origin_like(name: str, value: object) -> tuple[float, ...] | None:
    """Ask for the origin of rewards and features, or None; files give it back as a list.

    Examples
    --------
    >>> origin_like("origin", [100, 0.0, 1e6])
    (100.0, 0.0, 1000000.0)
    """
    if value is None:
        return None
    advice = "give the origin of rewards, then those of the features, as finite numbers of at most 1e40 in size"
    try:
        found = tuple(float(one) for one in cast(Iterable[Any], value))
    except (TypeError, ValueError):
        raise InvalidValueError(f"{name} is {value!r}; {advice}") from None
    if isinstance(value, (str, bytes)) or not found or not all(abs(one) <= 1e40 for one in found):
        raise InvalidValueError(f"{name} is {value!r}; {advice}")
    return found


def ends(name: str, value: object) -> Range:
    """Ask for the lowest and the highest reward; files give the pair back as a list.

    Examples
    --------
    >>> ends("reward_range", [-6, np.int64(6)])
    (-6.0, 6.0)
    """
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        pair = tuple(float(end) for end in cast(Iterable[float], value))
    except (TypeError, ValueError):
        raise InvalidValueError(f"{name} is {value!r}; give (lowest, highest), two numbers that differ") from None
    check_range(cast(Range, pair), "refuse")  # it counts them
    return cast(Range, pair)


def unboxed(value: object) -> object:
    """Turn a numpy number into Python's own; leave anything else.

    Examples
    --------
    >>> unboxed(np.float32(0.5)), unboxed("paper")
    (0.5, 'paper')
    """
    return value.item() if isinstance(value, np.generic) else value


def _numeric(fits: Callable[[float], bool], advice: str) -> Check:
    def check(name: str, value: object) -> float:
        found = unboxed(value)
        is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
        # an integer too large for a float is refused as infinity would be
        if not is_number or not abs(cast(float, found)) <= MAX or not fits(cast(float, found)):
            raise InvalidValueError(f"{name} is {reprlib.repr(value)}; {advice}")
        return cast(float, found)

    return check
