"""ConfidenceBall: Dani, Hayes and Kakade (2008), "Stochastic Linear Optimization under Bandit Feedback".

Keeps a set that holds the unknown parameter with high probability and plays the arm that is best for the most hopeful
parameter in it: an ellipsoid (ConfidenceBall2), or the cross-polytope around it (ConfidenceBall1), whose maximum is
easy on decision sets where the ellipsoid's is not. The paper has one parameter of D values; here D = K d and arm a in
context x is the vector with x in block a, so the matrix is one block per arm and nothing is approximated.
Decide O(K d^2); update O(d^2), inverse or root O(d^3) for one arm; memory O(K d^2). Propensities are exact.

Theory: rewards in [-1, 1] with noise that is bounded too, contexts no longer than 1, no horizon. Its widths are very
large: at beta_scale=1, regret on small problems is close to that of uniform play for thousands of steps.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armlet.inputs.settings import Ridge, chance, number, positive, settle
from armlet.policies.base import SumsPolicy
from armlet.reference.choice import best_chances, play_best
from armlet.types import Bool, Choice, Coins, Float64
from armlet_lab.literature.derived import Derived


def theory_beta(t: int, size: int, delta: float) -> float:
    """Return beta_t = max(128 D ln t ln(t^2 / delta), ((8/3) ln(t^2 / delta))^2), with D the size of the parameter.

    Examples
    --------
    >>> round(theory_beta(1, 18, 0.05), 2), round(theory_beta(1000, 18, 0.05) ** 0.5)
    (63.82, 517)
    """
    log_term = math.log(t * t / delta)
    return max(128.0 * size * math.log(t) * log_term, (8.0 / 3.0 * log_term) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConfidenceBall(SumsPolicy[Derived]):
    """What both shapes share: settings, sums and beta_t."""

    beta_scale: float = 1.0
    delta: float = 0.05
    ridge: float = 1.0

    _power: ClassVar[float]

    def __post_init__(self) -> None:
        scale = number(0, fix="give 1 for the theory's widths, or any number from 0 up")
        settle(self, beta_scale=scale, delta=chance(), ridge=positive())

    def init(self, n_arms: int, dim: int) -> Derived:
        """Start from A = ridge I: the unit vectors span everything, as the paper's first D decisions do."""
        return Derived(n_arms, dim, Ridge.parse(self.ridge), self._shapes)

    def beta(self, state: Derived, t: int) -> float:
        """Return beta_t, scaled."""
        return self.beta_scale * theory_beta(t, state.n_arms * state.dim, self.delta)

    def upper_bounds(self, state: Derived, t: int, x: Float64) -> Float64:
        """Return the reward of each arm for its most hopeful parameter, (K,)."""
        return state.scores(x) + self._widths(state, self.beta(state, t), x)

    def _shapes(self, A: Float64, b: Float64) -> Float64:  # noqa: ARG002
        """Return the power of each ridge I + A whose lengths the widths are, (m, d, d), symmetric."""
        values, vectors = np.linalg.eigh(A)
        values = (np.maximum(values, 0.0) + self.ridge) ** self._power  # never singular, however long the contexts
        shapes: Float64 = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
        return shapes

    @abstractmethod
    def _widths(self, state: Derived, beta: float, x: Float64) -> Float64:
        """Return how far the reward of each arm may lie above its estimate, (K,)."""

    def probabilities(self, state: Derived, t: int, x: Float64, eligible: Bool) -> Float64:
        """Put all probability on the arm with the highest bound, shared by those that tie."""
        return best_chances(self.upper_bounds(state, t, x), eligible)

    def decide(self, state: Derived, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play the arm with the highest bound."""
        return play_best(self.upper_bounds(state, t, x), eligible, coins)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceBall2(_ConfidenceBall):
    """Play argmax x' theta_hat_a + sqrt(beta_t x' V_a^-1 x), V_a = ridge I + A_a.

    Parameters
    ----------
    beta_scale
        Multiplies the paper's beta_t; 1 is the theory; for rewards of about 1, try 1e-5 to 1e-4.
    delta
        How likely the set may fail to hold the parameter.
    ridge
        What A starts from, times the identity.

    Examples
    --------
    >>> policy = ConfidenceBall2(beta_scale=1e-3)
    >>> state = policy.init(2, 1)
    >>> state.add(0, np.array([1.0]), 1.0)
    >>> policy.upper_bounds(state, 2, np.array([1.0])).round(3)
    array([1.124, 0.882])
    """

    _power: ClassVar[float] = -1.0

    def _widths(self, state: Derived, beta: float, x: Float64) -> Float64:
        squares = (state.derived() @ x) @ x  # x' V_a^-1 x
        widths: Float64 = np.sqrt(beta * np.maximum(squares, 0.0))
        return widths


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceBall1(_ConfidenceBall):
    """Play argmax x' theta_hat_a + sqrt(D beta_t) max_i |V_a^-1/2 x|_i, V_a = ridge I + A_a and D = K d.

    The set is {v: |V^1/2 (v - theta_hat)|_1 <= sqrt(D beta_t)}; a linear function is largest at one of its 2 D
    corners, which is the maximum norm above. It holds the ellipsoid of `ConfidenceBall2`, so it explores more.

    Parameters
    ----------
    beta_scale
        Multiplies the paper's beta_t; 1 is the theory; for rewards of about 1, try 1e-6 to 1e-5.
    delta
        How likely the set may fail to hold the parameter.
    ridge
        What A starts from, times the identity.

    Examples
    --------
    >>> policy = ConfidenceBall1(beta_scale=1e-3)
    >>> state = policy.init(2, 1)
    >>> state.add(0, np.array([1.0]), 1.0)
    >>> policy.upper_bounds(state, 2, np.array([1.0])).round(3)
    array([1.382, 1.247])
    """

    _power: ClassVar[float] = -0.5  # the symmetric root, as in the paper: another root is another set

    def _widths(self, state: Derived, beta: float, x: Float64) -> Float64:
        largest = np.abs(state.derived() @ x).max(axis=1)
        widths: Float64 = math.sqrt(state.n_arms * state.dim * beta) * largest
        return widths
