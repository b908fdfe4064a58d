"""FeasibleRandomizedUCB next to the programme of RandomizedUCB, solved by a general optimiser with cutting planes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

import armlet
from armlet.types import Float64, Int64
from armlet_lab.literature.feasible_randomized_ucb import FeasibleRandomizedUCB
from armlet_lab.literature.finite_class import FiniteClassState, arm_weights, variances

K, DIM, ROWS = 3, 2, 6000
MIXES = np.linspace(0.0, 1.0, 41)  # of two policies: the worst mixture lies on the hull of (regret, variance)


class Programme(NamedTuple):
    """Minimise P.D over distributions with E_Q[variance] <= max(4 K, c D(Q)^2) for all mixtures Q."""

    advice: Int64  # (M, N)
    shares: Float64  # (M,)
    D: Float64  # (N,)
    c: float
    mu: float

    def spread(self, P: Float64) -> Float64:
        return variances(arm_weights(P, self.advice, K), self.advice, self.shares, self.mu)

    def slope(self, P: Float64) -> Float64:
        """Return the derivative of each variance by each weight, (N, N)."""
        inverse = 1.0 / ((1.0 - K * self.mu) * arm_weights(P, self.advice, K) + self.mu)
        own = self.shares[:, None] * np.take_along_axis(inverse, self.advice, axis=1) ** 2
        agree = self.advice[:, :, None] == self.advice[:, None, :]
        slope: Float64 = -(1.0 - K * self.mu) * (own[:, :, None] * agree).sum(axis=0)
        return slope

    def over(self, P: Float64) -> Float64:
        """Return by how much the mixtures of each two policies are over, (N, N, 41)."""
        v, D = self.spread(P), self.D
        mixed_v = MIXES * v[:, None, None] + (1 - MIXES) * v[None, :, None]
        mixed_D = MIXES * D[:, None, None] + (1 - MIXES) * D[None, :, None]
        over: Float64 = mixed_v - np.maximum(4.0 * K, self.c * mixed_D**2)
        return over

    def minimum(self, Q: Float64, start: Float64) -> Float64:
        """Minimise under the constraints of some mixtures, (rows, N)."""
        limits, one = np.maximum(4.0 * K, self.c * (Q @ self.D) ** 2), np.ones(len(self.D))
        within = NonlinearConstraint(
            lambda P: limits - Q @ self.spread(P), 0.0, np.inf, jac=lambda P: -Q @ self.slope(P)
        )
        solver: Any = minimize  # scipy's stubs refuse this call
        found = solver(
            lambda P: float(P @ self.D),
            start,
            jac=lambda _: self.D,
            bounds=[(0.0, 1.0)] * len(one),
            method="SLSQP",
            constraints=[within, LinearConstraint(one[None], 1.0, 1.0)],
            options={"maxiter": 500, "ftol": 1e-10},
        )
        assert found.success, found.message
        P: Float64 = np.maximum(found.x, 0.0)
        return P / float(P.sum())

    def solve(self, start: Float64) -> Float64:
        """Minimise, add the mixture that is most over, and again until none is."""
        P, every = start, np.eye(len(self.D))
        cuts = list(every)
        for _ in range(50):
            P = self.minimum(np.array(cuts), P)
            over = self.over(P)
            i, j, place = np.unravel_index(over.argmax(), over.shape)
            if over[i, j, place] <= 1e-4 * K:
                return P
            cuts.append(MIXES[place] * every[i] + (1 - MIXES[place]) * every[j])
        raise AssertionError("the cuts did not end")


def solved(seed: int) -> tuple[FeasibleRandomizedUCB, FiniteClassState]:
    """Play six contexts with the theory's constants, long enough for the constraints to bind."""
    policy, rng = FeasibleRandomizedUCB(n_policies=30), np.random.default_rng(seed)
    contexts, theta = rng.normal(size=(6, DIM)), rng.normal(size=(K, DIM))
    chances = 1.0 / (1.0 + np.exp(-3.0 * (contexts / np.linalg.norm(contexts, axis=1, keepdims=True)) @ theta.T))
    bandit = armlet.Bandit(range(K), DIM, policy=policy, seed=seed)
    for _ in range(ROWS):
        m = int(rng.integers(6))
        decision = bandit.decide(contexts[m])
        bandit.learn(decision, float(rng.random() < chances[m, int(decision.arm)]))
    state = bandit.state
    assert isinstance(state, FiniteClassState)
    state["solved"][0] = 0.0  # solve for what is known now
    policy.review(state)
    return policy, state


@pytest.mark.parametrize("seed", range(3))
def test_its_weights_regret_more_than_the_programme_solved(seed: int) -> None:
    policy, state = solved(seed)
    advice, shares = state.table
    values = policy.values(state)
    D, c = values.max() - values, state.n / (180.0 * policy.log_term(state.n, K))
    programme = Programme(advice, shares, D, c, state.mu)
    assert (programme.spread(state["P"]) <= policy.limits(state) + 1e-8).all()  # a feasible point, policy by policy
    best = programme.solve(state["P"])
    assert (programme.spread(best) <= policy.limits(state) + 1e-3).all()
    ratio = float(state["P"] @ D) / float(best @ D)
    assert ratio > 1.2, ratio
