"""How a bandit plays a policy: by its compiled rule or in Python, and which of its settings may change on the way.

The kernel plays by itself those policies whose rule says the same as their methods in Python.

What a user writes is never ignored. A class outside of Armlet cannot bring a compiled rule, since nobody has proved
that it is the law of its own `decide`; a subclass that changes the law of a compiled policy is played in Python.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Final

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.settings import units_of
from armlet.kernel import Statistics
from armlet.types import Policy, State

if TYPE_CHECKING:
    from armlet.kernel import Rule

HARMLESS = ("init", "check")
"""What may be overridden without changing the law: the bandit calls these itself."""


def compiled_rule(policy: Policy) -> Rule | None:
    """Return the rule that the kernel plays, or None if the policy is to be asked in Python.

    Examples
    --------
    >>> import armlet
    >>> compiled_rule(armlet.LinUCB()) is None
    False
    >>> class Curious(armlet.LinUCB):
    ...     def upper_bounds(self, state, x):
    ...         return super().upper_bounds(state, x) + 1.0
    >>> compiled_rule(Curious()) is None
    True
    """
    rule = policy.rule()
    if rule is None:
        return None
    kind = type(policy)
    owner = next((base for base in kind.__mro__ if "rule" in vars(base)), None)
    if owner is None:  # it hands its calls on to another, by ways of its own
        return None
    if not owner.__module__.startswith("armlet."):
        raise InvalidTypeError(
            f"{kind.__name__}.rule() gives a {type(rule).__name__}, but the kernel plays only Armlet's own "
            f"policies by their rule, and {owner.__name__} is not one; return None, and its own decide, probabilities "
            "and update are played"
        )
    return None if overridden(kind, owner) else rule


def overridden(kind: type, owner: type) -> list[str]:
    """List the methods that a subclass has changed, those apart that do not bear on the law."""
    derived = kind.__mro__[: kind.__mro__.index(owner)]
    return [name for base in derived for name, value in vars(base).items() if _is_law(name, value, owner)]


def _is_law(name: str, value: object, owner: type) -> bool:
    is_method = inspect.isroutine(value) or isinstance(value, (property, classmethod, staticmethod))
    return is_method and not name.startswith("__") and name not in HARMLESS and hasattr(owner, name)


# ---- which settings may change while the state stays: those that say what is done with it

WHILE_RUNNING: Final = frozenset(
    {
        *("p", "cap", "floor", "warmup", "epsilon", "alpha", "v", "h", "growth", "gamma", "gamma_scale"),
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
    if not _share_states(old, new):
        raise InvalidValueError(
            f"policy is {new}, but the state is one of {name}; give one of those, or start a new bandit"
        )
    if not dataclasses.is_dataclass(new):
        raise InvalidTypeError(f"policy is a {name}, not a dataclass, so nobody can tell which of its settings changed")
    if units_of(old) != units_of(new):
        raise InvalidValueError(f"units are {units_of(old)!r} here and {units_of(new)!r} there; start a new bandit")
    may_change = WHILE_RUNNING | ({"ridge"} if isinstance(state, Statistics) else set())
    for field in dataclasses.fields(new):
        after = getattr(new, field.name)
        before = getattr(old, field.name, after)
        if before != after and field.name not in may_change:
            raise InvalidValueError(
                f"{field.name} is {before!r} here and {after!r} there, and the state is made for the former; start a "
                "new bandit"
            )
    _check_fits(new, state, n_arms, dim)


def _share_states(old: Policy, new: Policy) -> bool:
    """Return whether policies learn the same rows: those of one class, and epsilon-greedy ones by clock or evidence."""
    from armlet.policies.epsilon_greedy import EpsilonGreedy  # not before it is needed: it would slow down the import

    both = isinstance(old, EpsilonGreedy) and isinstance(new, EpsilonGreedy)
    return type(new) is type(old) or (both and old.learns_from == new.learns_from)


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
