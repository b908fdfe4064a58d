"""Why an arm looks good in a context: what each feature adds to its estimate, in the units of rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armlet.errors import UnknownNameError
from armlet.inference import tables
from armlet.types import Arm, Float64


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(tables.Tabled):
    """The estimate of every arm in one context, taken apart: base + contributions = total.

    In free units the base is what an arm is expected to give in the mean context of all rows, and a feature contributes
    what its distance from the mean adds; in units as given the base is 0 and a feature contributes theta_j x_j.
    """

    arms: list[Arm]
    features: list[str]
    base: Float64  # (K,)
    contributions: Float64  # (K, d)

    @property
    def total(self) -> Float64:
        """The estimate of each arm, (K,)."""
        return np.asarray(self.base + self.contributions.sum(axis=1))

    def of(self, arm: Arm) -> dict[str, float]:
        """Give what each feature adds for one arm."""
        if arm not in self.arms:
            raise UnknownNameError(f"arm {arm!r} is not one of {self.arms}")
        return dict(zip(self.features, self.contributions[self.arms.index(arm)].tolist(), strict=True))

    def columns(self) -> dict[str, list[Any]]:
        """Give the table by columns, one row an arm."""
        parts = dict(zip(self.features, self.contributions.T.tolist(), strict=True))
        return {"arm": list(self.arms), "estimate": self.total.tolist(), "base": self.base.tolist(), **parts}


def explanation(
    arms: list[Arm], features: list[str], row: Float64, theta: Float64, base: float, sign: float
) -> Explanation:
    """Take estimates apart: row is x, or (1, z) in free units."""
    parts = sign * theta * row + 0.0  # no -0
    if len(row) == len(features):
        return Explanation(arms, features, np.zeros(len(arms)), parts)
    return Explanation(arms, features, sign * base + parts[:, 0], parts[:, 1:])
