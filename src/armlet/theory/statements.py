"""The two halves of a regret theorem: how large p must be, and what regret then is at most.

Both the printed Theorem 2 and the repaired one have this form. Everything here is O(1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from armlet.errors import InvalidValueError
from armlet.theory.assumptions import AssumptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How large p must be: the largest of several demands, each with a name.

    Examples
    --------
    >>> condition = Condition(n_arms=6, demands={"noise": 500.5, "counts": 192.0})
    >>> condition.p, condition.binding, condition.whole
    (500.5, 'noise', 504)
    """

    n_arms: int
    demands: Mapping[str, float]

    @property
    def p(self) -> float:
        """The smallest p that meets every demand."""
        return max(self.demands.values())

    @property
    def binding(self) -> str:
        """The demand that decides; the first of them if several are equal."""
        return max(self.demands, key=lambda name: self.demands[name])

    @property
    def whole(self) -> int:
        """The smallest multiple of the number of arms that is at least p: the warm-up then serves all alike."""
        return next_multiple(self.p, self.n_arms)

    def check(self, p: float) -> None:
        """Raise an AssumptionError that says what is missing, unless p is large enough."""
        if not p >= self.p:
            missing = ", ".join(f"{name} {value:,.6g}" for name, value in self.demands.items() if not p >= value)
            message = f"p is {p:g} but the theorem asks for more ({missing}); use p >= {self.whole:,}"
            raise AssumptionError("p", message, needed=self.p)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What R(T) is at most, by what it is paid for, in units of reward.

    Examples
    --------
    >>> Bound(warm_up=10.0, exploring=30.0, mistakes=2.0).total
    42.0
    """

    warm_up: float  # the first p steps
    exploring: float  # explored steps after them
    mistakes: float  # wrong arms on steps that exploit

    @property
    def total(self) -> float:
        """The sum of the parts."""
        return self.warm_up + self.exploring + self.mistakes


def next_multiple(p: float, n_arms: int) -> int:
    """Give the smallest multiple of the number of arms that is at least p, without rounding however large p is.

    Examples
    --------
    >>> next_multiple(500.5, 6), next_multiple(9.9931130859375e16, 19) >= 9.9931130859375e16
    (504, True)
    """
    return -(-math.ceil(p) // n_arms) * n_arms


def check_horizon(horizon: float) -> None:
    """Ask for at least one step.

    Examples
    --------
    >>> check_horizon(0)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: horizon is 0; give the number of steps T, at least 1
    """
    if not 1 <= horizon < math.inf:
        raise InvalidValueError(f"horizon is {horizon!r}; give the number of steps T, at least 1")
