"""OFUL, optimism in the face of uncertainty: Abbasi-Yadkori, Pal and Szepesvari (2011), Theorem 2 there.

LinUCB's rule with a radius under which, with probability 1 - delta, all bounds hold at all steps at once. Here each
arm has parameters of its own, hence two readings: a confidence set for each arm, with delta / K each ("per-arm"); or
one set for all parameters side by side ("joint"), as printed, with x in the arm's block.
Decide O(K d^2); update O(d^2), refactoring O(d^3) for one arm; memory O(K d^2) regardless of t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from armlet.inputs.settings import HUGE, NOISE_SCALE, chance, number, one_of, positive, settle
from armlet.kernel import Optimism, Statistics
from armlet.policies.base import IndexPolicy, RidgePolicy
from armlet.reference.elementary import log
from armlet.types import Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class OFUL(IndexPolicy[Statistics], RidgePolicy):
    """Play argmax of x' theta_hat_a + beta_a sqrt(x' V_a^-1 x), with V_a = ridge I + A_a.

    beta_a = R sqrt(2 log(det(V_a)^(1/2) ridge^(-d/2) K / delta)) + sqrt(ridge) S for "per-arm"; for "joint" the
    determinant is that of all arms' V together and K / delta becomes 1 / delta.

    Parameters
    ----------
    noise_scale
        R: the noise of a reward is R-sub-Gaussian; for normal noise its standard deviation.
    theta_norm
        S: |theta_a| is at most S, or for "joint" the norm of all thetas together.
    delta
        The probability with which any bound may ever fail.
    ridge
        The ridge, a positive number.
    radius
        "per-arm" or "joint".
    width_scale
        What beta is multiplied by; below 1 the guarantee is gone and regret is often lower.

    Examples
    --------
    >>> policy = OFUL(noise_scale=1.0, theta_norm=1.0, delta=0.1)
    >>> policy.radii(policy.init(n_arms=5, dim=3)).round(4)  # sqrt(2 log(5 / 0.1)) + 1
    array([3.7971, 3.7971, 3.7971, 3.7971, 3.7971])
    """

    noise_scale: float = NOISE_SCALE
    theta_norm: float = 1.0
    delta: float = 0.05
    ridge: float = 1.0
    radius: Literal["per-arm", "joint"] = "per-arm"
    width_scale: float = 1.0

    def __post_init__(self) -> None:
        size = number(0.0, HUGE)
        settle(self, noise_scale=size, theta_norm=size, width_scale=size, delta=chance(), ridge=positive())
        settle(self, radius=one_of("per-arm", "joint"))

    def rule(self) -> Optimism:
        return Optimism.oful(
            self.radius, noise_scale=self.noise_scale, bound=self.theta_norm, delta=self.delta, scale=self.width_scale
        )

    def radii(self, state: Statistics) -> Float64:
        """Return beta of every arm, (K,)."""
        K, log_start = float(state.n_arms), float(state.dim) * log(self.ridge)
        grown = state.log_determinants()
        if self.radius == "joint":
            together = float(np.cumsum(grown)[-1])  # in the order of the arms, as the kernel adds
            return np.full(state.n_arms, self._beta(together, K * log_start, log(1.0 / self.delta)))
        return np.array([self._beta(one, log_start, log(K / self.delta)) for one in grown.tolist()])

    def _beta(self, log_determinant: float, log_start: float, log_odds: float) -> float:
        gained = max(log_determinant - log_start + 2.0 * log_odds, 0.0)
        return (self.noise_scale * math.sqrt(gained) + math.sqrt(self.ridge) * self.theta_norm) * self.width_scale

    def upper_bounds(self, state: Statistics, x: Float64) -> Float64:
        """Return what each arm may pay at best, (K,)."""
        bounds: Float64 = state.scores(x) + self.radii(state) * state.widths(x)
        return bounds
