"""PolicyElimination for a finite class: Dudik et al. (2011), "Efficient optimal learning for contextual bandits".

Keeps the policies whose value, by inverse propensities, is within 2 b_t of the best, and plays a distribution over
them under which each can be valued with variance at most 2K. Propensities are exact.
Decide O(K) in a known context, O(N K d) in a new one; update O(N), a solve O(M N log N); memory O(M N), constant.

With t rows learned, N policies and delta_t = delta / (4 N t^2):

    b_t = 2 sqrt(2 K ln(1 / delta_t) / t),   mu_t = min(1 / (2 K), sqrt(ln(1 / delta_t) / (2 K t))),

and P_t is any distribution over the survivors with E_x[1 / ((1 - K mu_t) W_P(x, pi(x)) + mu_t)] <= 2K for each.

The solver is multiplicative weights without a step size. From uniform weights, P(pi) is multiplied by g(pi) / K with
g(pi) = E_x sum_a ((1 - K mu) 1[pi(x) = a] + mu) / ((1 - K mu) W_P(x, a) + mu); the sum of P stays 1, since
sum_pi P(pi) g(pi) = K. Over n rounds the logarithms of the factors of a policy add up to at most ln N, and ln g is
convex in P, so the average of the P has ln(g(pi) / K) <= ln(N) / n for all policies. g <= 1.5 K gives the
constraint, because sum_a 1 / ((1 - K mu) W_P + mu) >= K^2: so ln(N) / ln(1.5) rounds are always enough.

The constants are the paper's as we know them; they could not be checked against its text.
What differs from the paper: the law of contexts is the empirical one; P is solved again when the number of rows has
doubled or the class has shrunk, and mu stays that of the last solve in between. Theory: rewards in [0, 1] and
independent rows; regret 16 sqrt(2 T K ln(4 T^2 N / delta)) with probability 1 - delta against the best of the class.
With the theory's widths 2 b_t > 1 for the first 5,007 steps (K = 6, N = 106, delta = 0.05), though values lie in
[0, 1]: nothing is eliminated till then but by chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armlet.types import AbsentArms, Float64, Int64
from armlet_lab.literature.finite_class import FiniteClass, FiniteClassState, arm_weights, variances


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyElimination(FiniteClass):
    """Eliminate policies of a finite class that are worse than the best by more than chance explains.

    The class is `n_policies` random linear policies argmax_a x'Theta_a, Theta of independent gaussians, and the K
    constant ones. Where a policy's arm was not eligible, it earns 0. When an arm is added or removed all starts over.
    When one is retired it does not: policies that were eliminated for being worse than those that play the retired arm
    stay so, and what is left may not know the other arms apart. Remove the arm instead.

    Parameters
    ----------
    n_policies
        How many random linear policies there are besides the constants.
    seed
        Of the random policies, and of the table of contexts.
    delta
        The chance with which the bound may fail.
    width_scale
        Multiplies b_t and mu_t: 1 is the theory; about 0.1 eliminates within thousands of steps. Much less eliminates
        good policies by chance, in the first rows, forever.
    max_contexts
        How many contexts the table has room for; beyond that it is a sample.
    reward_range
        The lowest and the highest reward; mapped to [0, 1].
    outside
        What happens to other rewards: "refuse" or "clip".

    Examples
    --------
    >>> policy = PolicyElimination(n_policies=10)
    >>> policy.probabilities(policy.init(2, 1), 1, np.array([0.0]), np.array([True, True])).round(3).tolist()
    [0.708, 0.292]
    """

    absent_arms: ClassVar[AbsentArms] = "hinder"

    def widths(self, t: float, n_arms: int) -> tuple[float, float]:
        """Return b_t and mu_t after t rows."""
        log = math.log(4.0 * (self.n_policies + n_arms) * t * t / self.delta)
        b = self.width_scale * 2.0 * math.sqrt(2.0 * n_arms * log / t)
        return b, min(1.0 / (2 * n_arms), self.width_scale * math.sqrt(log / (2.0 * n_arms * t)))

    def review(self, state: FiniteClassState) -> None:
        """Eliminate what is worse than the best by 2 b_t; solve again if any was, or if the rows have doubled."""
        n, sums, alive = state.n, state["sums"], state.alive
        b, mu = self.widths(max(n, 1.0), state.n_arms)
        kept = alive & (sums >= sums[alive].max() - 2.0 * b * n)
        shrunk = np.count_nonzero(kept) < np.count_nonzero(alive)
        if shrunk:
            state["alive"][:] = kept
        if shrunk or n >= 2.0 * state["solved"][0]:
            self._solve(state, mu)

    def _solve(self, state: FiniteClassState, mu: float) -> None:
        kept = np.flatnonzero(state["alive"])
        advice, shares = state.table
        P = np.zeros(len(state["P"]))
        P[kept] = spread(advice[:, kept], shares, state.n_arms, mu)
        state.solve(P, mu)


def spread(advice: Int64, shares: Float64, n_arms: int, mu: float) -> Float64:
    """Find a distribution over policies under which each has variance at most 2K, (N,).

    Examples
    --------
    >>> P = spread(np.array([[0, 0, 0, 0, 0, 0, 1]]), np.ones(1), 2, 0.01)
    >>> bool(P[-1] > 1 / 7), round(float(P.sum()), 12)
    (True, 1.0)
    """
    n = advice.shape[1]
    P, total = np.full(n, 1.0 / n), np.zeros(n)
    rounds = math.ceil(math.log(n) / math.log(1.5)) + 1  # one more than enough, for rounding
    for _ in range(rounds):
        total += P
        mean: Float64 = total / total.sum()
        if variances(arm_weights(mean, advice, n_arms), advice, shares, mu).max() <= 2 * n_arms:
            return mean
        P = P * gains(P, advice, shares, n_arms, mu) / n_arms
    raise ArithmeticError(f"no distribution of variance 2K after {rounds} rounds")  # pragma: no cover - see above


def gains(P: Float64, advice: Int64, shares: Float64, n_arms: int, mu: float) -> Float64:
    """Return g(pi), (N,), of which P-weighted the mean is K."""
    W = arm_weights(P, advice, n_arms)
    floor = mu * (shares[:, None] / ((1.0 - n_arms * mu) * W + mu)).sum()
    g: Float64 = (1.0 - n_arms * mu) * variances(W, advice, shares, mu) + floor
    return g
