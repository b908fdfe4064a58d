"""Uncertainty Ellipsoid: Rusmevichientong and Tsitsiklis (2010), "Linearly Parameterized Bandits".

Estimates by ordinary least squares, without a ridge, and adds a width that grows with log t times the length of the
context under the estimate's covariance. The paper has one parameter of r values and fixed decisions; here r = K d and
arm a in context x is the vector with x in block a, so the covariance is one block per arm and nothing is approximated.
Decide O(K d^2); update O(d^2), pseudo-inverse O(d^3) for one arm; memory O(K d^2). Propensities are exact.

The paper first plays r linearly independent decisions. Contexts cannot be chosen, so here eligible arms are played by
turns until each has d independent contexts, for at most `patience` K d steps: contexts may never span the space. After
that A's pseudo-inverse stands for the inverse, and an arm whose contexts so far do not span x has an infinite width.

Theory: subgaussian noise of a known scale, contexts no longer than `length`, no horizon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from armlet.inputs.settings import NOISE_SCALE, Ridge, number, optional, positive, settle, whole
from armlet.policies.base import SumsPolicy
from armlet.reference.choice import best_chances, force, play_best
from armlet.types import Bool, Choice, Coins, Float64
from armlet_lab.literature.derived import Derived

SMALLEST = 1e-150  # eigenvalues below it count as 0 too: divided by them, estimates could overflow
ROUNDING = 1e-10  # eigenvalues below this part of the largest, and squares below this part of |x|^2, count as 0


def theory_alpha(noise_scale: float, length: float, lambda0: float) -> float:
    """Return alpha = 4 sigma kappa^2, kappa = 2 sqrt(1 + log(1 + 36 u^2 / lambda0)), u the longest context.

    Examples
    --------
    >>> round(theory_alpha(1.0, 1.0, 1.0), 1)
    73.8
    """
    return 16.0 * noise_scale * (1.0 + math.log(1.0 + 36.0 * length**2 / lambda0))


def _inverses_and_blanks(A: Float64, b: Float64) -> Float64:  # noqa: ARG001
    """Return the pseudo-inverse of each A and, below it, the projector onto what A has not seen, (m, 2 d, d)."""
    values, vectors = np.linalg.eigh(A)
    seen = values > np.maximum(ROUNDING * values[:, -1:], SMALLEST)
    turned, dim = vectors.transpose(0, 2, 1), A.shape[1]
    both = np.zeros((len(A), 2 * dim, dim))
    both[:, :dim] = (vectors * (seen / np.where(seen, values, 1.0))[:, None, :]) @ turned
    if not seen.all():
        both[:, dim:] = (vectors * ~seen[:, None, :]) @ turned
    return both


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertaintyEllipsoid(SumsPolicy[Derived]):
    """Play argmax x' theta_hat_a + alpha sqrt(log t) sqrt(min(r log t, |U|)) sqrt(x' A_a^-1 x).

    Parameters
    ----------
    noise_scale
        The noise's subgaussian scale, in units of reward.
    length
        The length of the longest context.
    lambda0
        How well the first r decisions span the space: the smallest eigenvalue of the sum of their squares. The default
        of 1 is our choice; contexts are not known in advance, so nothing better can be.
    n_contexts
        How many contexts there are, if finitely many: |U| = K n_contexts.
    alpha
        Overrides the theory's alpha, which follows from the first three. For rewards of about 1, try 0.01 to 0.1.
    width_scale
        Multiplies the width; 1 is the theory.
    patience
        Arms are played by turns for at most patience K d steps.

    Examples
    --------
    >>> policy = UncertaintyEllipsoid(alpha=0.1)
    >>> state = policy.init(2, 1)
    >>> for arm in (0, 1, 1):
    ...     state.add(arm, np.array([1.0]), 1.0)
    >>> policy.upper_bounds(state, 4, np.array([1.0])).round(3)
    array([1.196, 1.139])
    """

    noise_scale: float = NOISE_SCALE
    length: float = 1.0
    lambda0: float = 1.0
    n_contexts: int | None = None
    alpha: float | None = None
    width_scale: float = 1.0
    patience: int = 10

    def __post_init__(self) -> None:
        settle(self, noise_scale=positive(), length=positive(), lambda0=positive(), n_contexts=optional(whole()))
        settle(self, alpha=optional(number(0)), width_scale=number(0), patience=whole())

    def init(self, n_arms: int, dim: int) -> Derived:
        """Know nothing. The ridge is only there to be stated: estimates come from the pseudo-inverse."""
        return Derived(n_arms, dim, Ridge.parse(1.0), _inverses_and_blanks)

    def estimates(self, state: Derived) -> Float64:
        """Return the least squares estimate of smallest length, A^+ b."""
        theta: Float64 = (state.derived()[:, : state.dim] @ state.b[:, :, None])[:, :, 0]
        return theta

    def radius(self, t: int, size: int, n_arms: int) -> float:
        """Return what multiplies the length of x under the covariance."""
        theory = theory_alpha(self.noise_scale, self.length, self.lambda0)
        alpha = self.width_scale * (theory if self.alpha is None else self.alpha)
        decisions = math.inf if self.n_contexts is None else float(n_arms * self.n_contexts)
        return alpha * math.sqrt(math.log(t) * min(size * math.log(t), decisions))

    def upper_bounds(self, state: Derived, t: int, x: Float64) -> Float64:
        """Return estimate plus width of each arm, (K,); infinite where x is not spanned."""
        n_arms, dim = state.n_arms, state.dim
        both = state.derived() @ x  # (K, 2 d): A^+ x, then what is left of x where A has seen nothing
        inverse_x, blank_x = both[:, :dim], both[:, dim:]
        widths = np.sqrt(np.maximum(inverse_x @ x, 0.0))
        bounds: Float64 = (inverse_x * state.b).sum(axis=1) + self.radius(t, n_arms * dim, n_arms) * widths
        bounds[blank_x @ x > ROUNDING * (x @ x)] = np.inf
        return bounds

    def _turn(self, state: Derived, t: int, eligible: Bool) -> int | None:
        """Return the arm whose turn it is, while some eligible arm lacks d independent contexts."""
        if t > self.patience * state.n_arms * state.dim:
            return None
        arms = np.flatnonzero(eligible)
        lacking = bool(state.derived()[arms, state.dim :].any())  # with full rank the projector is all zeros
        return int(arms[t % len(arms)]) if lacking else None

    def probabilities(self, state: Derived, t: int, x: Float64, eligible: Bool) -> Float64:
        """Put all probability on the arm whose turn it is, or on the one with the highest bound."""
        turn = self._turn(state, t, eligible)
        if turn is None:
            return best_chances(self.upper_bounds(state, t, x), eligible)
        chances = np.zeros(state.n_arms)
        chances[turn] = 1.0
        return chances

    def decide(self, state: Derived, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play by turns at first, then the arm with the highest bound."""
        turn = self._turn(state, t, eligible)
        return play_best(self.upper_bounds(state, t, x), eligible, coins) if turn is None else force(turn, eligible)
