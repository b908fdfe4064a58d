"""Which settings of a policy may change while its state stays: those that say what is done with the state."""

from __future__ import annotations

import dataclasses
from typing import Final

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.settings import units_of
from armlet.kernel import Statistics
from armlet.types import Policy, State

WHILE_RUNNING: Final = frozenset(
    {
        *("p", "cap", "floor", "clock", "warmup", "epsilon", "alpha", "v", "h", "growth", "gamma", "gamma_scale"),
        *("width_scale", "beta_scale", "noise_scale", "theta_norm", "delta"),
    }
)
"""How much to explore, and how wide an interval is. All else may be part of what the state means."""


def check_replaceable(old: Policy, new: Policy, state: State, n_arms: int, dim: int) -> None:
    """Refuse a policy that cannot go on where another stands.

    Examples
    --------
    >>> import armlet
    >>> old = armlet.Algorithm1(p=60)
    >>> check_replaceable(old, armlet.Algorithm1(p=30), old.init(2, 1), 2, 1)
    >>> check_replaceable(old, armlet.LinUCB(), old.init(2, 1), 2, 1)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: policy is LinUCB(...), but the state is one of Algorithm1; give one of ...
    """
    name = type(old).__name__
    if type(new) is not type(old):
        raise InvalidValueError(
            f"policy is {new}, but the state is one of {name}; give one of those, or start a new bandit"
        )
    if not dataclasses.is_dataclass(new):
        raise InvalidTypeError(f"policy is a {name}, not a dataclass, so nobody can tell which of its settings changed")
    if units_of(old) != units_of(new):
        raise InvalidValueError(f"units are {units_of(old)!r} here and {units_of(new)!r} there; start a new bandit")
    may_change = WHILE_RUNNING | ({"ridge"} if isinstance(state, Statistics) else set())
    for field in dataclasses.fields(new):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before != after and field.name not in may_change:
            raise InvalidValueError(
                f"{field.name} is {before!r} here and {after!r} there, and the state is made for the former; start a "
                "new bandit"
            )
    _check_fits(new, state, n_arms, dim)


def _check_fits(policy: Policy, state: State, n_arms: int, dim: int) -> None:
    fresh, arrays = policy.init(n_arms, dim), state.copy().arrays()
    if type(fresh) is type(state):
        fresh.restore_arrays(arrays)
        found = fresh.arrays()
        if found.keys() == arrays.keys() and all(found[name].tobytes() == arrays[name].tobytes() for name in arrays):
            return
    raise InvalidValueError(
        f"policy is {policy}, which keeps another state than the one that is there; start a new bandit"
    )
