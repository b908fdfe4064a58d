"""A feasible point of the programme of RandomizedUCB, for a finite class of policies, in epochs.

After Dudik et al. (2011), "Efficient optimal learning for contextual bandits". Plays mostly the policy that looks best,
and others as it takes to value every policy precisely enough for how bad it looks; nothing is eliminated. It is not
RandomizedUCB: that one solves for the distribution of least regret among all that meet its constraints, this one takes
the first that it finds, whose estimated regret is larger: `tests/policies/test_feasible_randomized_ucb.py` solves the
programme and has by how much. Propensities are exact.
Decide O(K) in a known context, O(N K d) in a new one; update O(N); a solve O(M N ln(1 / (K mu)) / mu) at worst;
memory O(M N), constant.

With t rows, C_t = 2 ln(N t / delta), mu_t = min(1 / (2 K), sqrt(C_t / (2 K t))) and D(pi) the estimated regret of a
policy to the best, the paper minimises sum_pi P(pi) D(pi) subject to, for all distributions Q over the class,

    E_(pi from Q) E_x[1 / ((1 - K mu_t) W_P(x, pi(x)) + mu_t)] <= max(4 K, t D(Q)^2 / (180 C_t)).

The constants, 4, 180 and those of C_t and mu_t, are the paper's as we know them; they could not be checked against its
text. Approximated here:

- the constraint is asked of every single policy, not of all mixtures Q;
- it is met by the coordinate descent of Agarwal et al. (2014), "Taming the monster: a fast and simple algorithm for
  contextual bandits", with b(pi) = max(4 K, t D^2 / (180 C_t)) - 2 K. It raises the weight of the policy that is most
  short, and shrinks all weights when sum_pi P(pi) (2 K + b(pi)) exceeds 2 K; what is left of 1 goes to the best policy.
  So sum_pi P(pi) b(pi) <= 2 K bounds the regret of P, which is not the least that is possible: once the constraints
  bind, more by a fifth at least in that test;
- it is done when the number of rows has doubled, with P and mu fixed in between; and the law of contexts is the
  empirical one, from the table.

Theory: for the programme solved as printed, rewards in [0, 1] and independent rows, regret
O(sqrt(T K ln(N T / delta)) + K ln(N K / delta)). It is not proved for what is played here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from armlet.types import Float64, Int64
from armlet_lab.literature.finite_class import FiniteClass, FiniteClassState, variances


@dataclass(frozen=True, slots=True, kw_only=True)
class FeasibleRandomizedUCB(FiniteClass):
    """Randomise over a finite class, less over policies that look worse, by weights that are allowed but not the best.

    The class is `n_policies` random linear policies argmax_a x'Theta_a, Theta of independent gaussians, and the K
    constant ones. Where a policy's arm was not eligible, it earns 0. When an arm is added or removed all starts over.

    Parameters
    ----------
    n_policies
        How many random linear policies there are besides the constants.
    seed
        Of the random policies, and of the table of contexts.
    delta
        The chance with which the bound may fail.
    width_scale
        Multiplies sqrt(C_t), and with it mu_t and the regret that counts as large: 1 is the theory.
    max_contexts
        How many contexts the table has room for; beyond that it is a sample.
    reward_range
        The lowest and the highest reward; mapped to [0, 1].
    outside
        What happens to other rewards: "refuse" or "clip".

    Examples
    --------
    >>> policy = FeasibleRandomizedUCB(n_policies=10)
    >>> policy.probabilities(policy.init(2, 1), 1, np.array([0.0]), np.array([True, True])).round(3).tolist()
    [0.708, 0.292]
    """

    def log_term(self, t: float, n_arms: int) -> float:
        """Return C_t after t rows, scaled."""
        return self.width_scale**2 * 2.0 * math.log((self.n_policies + n_arms) * t / self.delta)

    def least_chance(self, t: float, n_arms: int) -> float:
        """Return mu_t after t rows."""
        return min(1.0 / (2 * n_arms), math.sqrt(self.log_term(t, n_arms) / (2.0 * n_arms * t)))

    def limits(self, state: FiniteClassState) -> Float64:
        """Return what the variance of each policy may be, (N,): more for those that look worse."""
        values, n = self.values(state), max(state.n, 1.0)
        regret = values.max() - values
        large: Float64 = n * regret**2 / (180.0 * self.log_term(n, state.n_arms))
        return np.maximum(4.0 * state.n_arms, large)

    def review(self, state: FiniteClassState) -> None:
        """Solve again if the rows have doubled."""
        if state.n < 2.0 * state["solved"][0]:
            return
        mu = self.least_chance(max(state.n, 1.0), state.n_arms)
        advice, shares = state.table
        P = descend(advice, shares, self.limits(state), state.n_arms, mu)
        P[int(state["sums"].argmax())] += 1.0 - P.sum()
        state.solve(P, mu)


def descend(advice: Int64, shares: Float64, limits: Float64, n_arms: int, mu: float) -> Float64:
    """Find weights, summing to at most 1, under which no policy's variance is above its limit, (N,).

    Agarwal et al. (2014) prove that it ends within 4 ln(1 / (K mu)) / mu steps, for any limits of at least 2K.

    Examples
    --------
    >>> descend(np.array([[0, 1]]), np.ones(1), np.array([8.0, 50.0]), 2, 0.05).round(2)
    array([0.11, 0.  ])
    """
    P, W = np.zeros(advice.shape[1]), np.zeros((len(advice), n_arms))
    rows, rest = np.arange(len(advice)), 1.0 - n_arms * mu
    while True:
        if (cost := float(P @ limits)) > 2 * n_arms:  # pragma: no cover - rare, but the proof of its end needs it
            P, W = P * (2 * n_arms / cost), W * (2 * n_arms / cost)
        over = variances(W, advice, shares, mu) - limits
        worst = int(over.argmax())
        if over[worst] <= 1e-9 * n_arms:
            return P
        arms = advice[:, worst]
        squares = float((shares / (rest * W[rows, arms] + mu) ** 2).sum())
        step = (limits[worst] + 2.0 * over[worst]) / (2.0 * rest * squares)
        P[worst] += step
        W[rows, arms] += step
