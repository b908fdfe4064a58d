"""The ridge of the estimate: what keeps (lambda_n I + A / n) theta = b / n solvable (Section 4).

Multiplied by n it is (shift I + A) theta = b with shift = n lambda_n. Three rules, never under one name:

- "paper": lambda_n = 1 / sqrt(n), the printed one. It must vanish as n grows, or estimates stay biased,
  but its pull grows with n in directions that are rarely seen (Section 7).
- "1/n": lambda_n = 1 / n. The pull stays that of one extra row.
- a positive number: (value I + A) theta = b whatever n, the ridge of LinUCB and its kin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from armlet.errors import InvalidValueError
from armlet.inputs.checks import unboxed
from armlet.kernel import Layers, Statistics, Tuned
from armlet.reference.units import Units, check_origin

RidgeName: TypeAlias = Literal["paper", "1/n"]
RidgeLike: TypeAlias = RidgeName | float


@dataclass(frozen=True, slots=True)
class Ridge:
    """One rule for the ridge, parsed from what a user writes.

    Examples
    --------
    >>> Ridge.parse("paper").shift(25.0)
    5.0
    >>> Ridge.parse("1/n").shift(25.0)
    1.0
    >>> Ridge.parse(0.5).shift(25.0)
    0.5
    """

    kind: Literal["paper", "1/n", "constant"]
    value: float = 1.0

    @classmethod
    def parse(cls, ridge: RidgeLike) -> Ridge:
        """Read "paper", "1/n" or a positive number."""
        if ridge == "paper" or ridge == "1/n":
            return cls(ridge)
        # |theta| <= max |r| / (2 sqrt(ridge)), so in this range no score overflows
        if isinstance(ridge, (int, float)) and not isinstance(ridge, bool) and 1e-40 <= ridge <= 1e40:
            return cls("constant", float(ridge))
        raise InvalidValueError(f"ridge is {ridge!r}; choose 'paper', '1/n' or a positive number from 1e-40 to 1e40")

    def shift(self, n: float) -> float:
        """Give n lambda_n, what is added to the diagonal of A."""
        if self.kind == "paper":
            return math.sqrt(n)
        return 1.0 if self.kind == "1/n" else self.value

    def statistics(
        self, n_arms: int, dim: int, *, units: Units = "as given", origin: Sequence[float] | None = None
    ) -> Statistics:
        """Make empty statistics that solve with this ridge."""
        zero = check_origin(origin, dim)
        return Statistics(n_arms, dim, ridge=self.kind, value=self.value, units=units, origin=zero)

    def tuned(
        self, n_arms: int, dim: int, *, units: Units = "as given", origin: Sequence[float] | None = None
    ) -> Tuned:
        """Make empty statistics with a p that follows from them."""
        zero = check_origin(origin, dim)
        return Tuned(n_arms, dim, ridge=self.kind, value=self.value, units=units, origin=zero)

    def layers(
        self, n_layers: int, n_arms: int, dim: int, *, units: Units = "as given", origin: Sequence[float] | None = None
    ) -> Layers:
        """Make several sets of empty statistics that solve with this ridge."""
        zero = check_origin(origin, dim)
        return Layers(n_layers, n_arms, dim, ridge=self.kind, value=self.value, units=units, origin=zero)


def ridge_like(name: str, value: object) -> object:  # noqa: ARG001
    """Ask for what `Ridge.parse` can read; its error calls the setting `ridge`, as all policies do.

    Examples
    --------
    >>> import numpy as np
    >>> ridge_like("ridge", "paper"), ridge_like("ridge", np.float64(0.5))
    ('paper', 0.5)
    """
    found = unboxed(value)
    Ridge.parse(cast(RidgeLike, found))
    return found
