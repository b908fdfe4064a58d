"""Which policies the kernel may play by itself: those whose rule says the same as their methods in Python.

What a user writes is never ignored. A class outside of Armlet cannot bring a compiled rule, since nobody has proved
that it is the law of its own `decide`; a subclass that changes the law of a compiled policy is played in Python.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from armlet.errors import InvalidTypeError
from armlet.types import Policy

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
