"""Rarely switching OFUL: Abbasi-Yadkori, Pal, Szepesvari (2011), "Improved Algorithms for Linear Stochastic Bandits".

OFUL, which plays the highest x'theta_hat_a + beta_a |x|_(V_a^-1), but with theta_hat_a, beta_a and V_a as they were
when arm a was last refreshed: that happens when det V_a has grown by a factor of more than 1 + C. Each arm has its own
radius beta_a = R sqrt(2 log(det(V_a)^(1/2) ridge^(-d/2) K / delta)) + sqrt(ridge) S, a union bound over arms. For
|x| <= 1 an arm with n rows was refreshed at most d log(1 + n / (ridge d)) / log(1 + C) times, at the price of
sqrt(1 + C) in the bound on regret.
Theory assumes R-sub-gaussian noise and |theta_a| <= S; no horizon.
Propensities are exact: 1, shared among ties. What was frozen depends on the order of the rows, so states do not merge
and rows cannot be taken back.
Decide O(K d^2); update O(d^3), the determinant; memory O(K d^2) for any t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from armlet.inputs.settings import NOISE_SCALE, chance, number, positive, settle
from armlet.policies.base import BasePolicy
from armlet.policies.state import Arrays, fresh
from armlet.reference.choice import best_chances, play_best
from armlet.types import Array, Bool, Choice, Coins, Float64, Interaction, Shapes
from armlet_lab.literature.derived import ridge_rows
from armlet_lab.literature.factors import lengths, log_det

ROUNDING = 1e-12  # a context of length 1 doubles det V = 1 exactly, and with C = 1 rounding must not decide


class FrozenSums(Arrays):
    """The sums n, A and b of every arm, A and b as they were at its last refresh, and what was solved from those.

    Examples
    --------
    >>> state = FrozenSums(1, 1, ridge=1.0)
    >>> state.add(0, np.array([2.0]), 3.0, 1.0)
    >>> state["b"], state["frozen_b"]
    (array([[6.]]), array([[0.]]))
    >>> state.refresh(0)
    >>> state.rows[0, 0], state["refreshes"]
    (array([1.2]), array([1.]))
    """

    def __init__(self, n_arms: int, dim: int, ridge: float) -> None:
        K, d = n_arms, dim
        sums: dict[str, Array] = {"n": np.zeros(K), "b": np.zeros((K, d)), "A": np.zeros((K, d, d))}
        frozen: dict[str, Array] = {"frozen_b": np.zeros((K, d)), "frozen_A": np.zeros((K, d, d))}
        super().__init__(n_arms, dim, by_arm={**sums, **frozen, "refreshes": np.zeros(K)})
        self._ridge = ridge
        self._solve()

    def _solve(self) -> None:
        """Derive from the frozen sums what decisions look at."""
        self.rows = ridge_rows(self["frozen_A"], self["frozen_b"], self._ridge)  # (K, 1 + d, d)
        self.log_dets = log_det(self["frozen_A"], self._ridge)  # (K,)

    def add(self, arm: int, x: Float64, reward: float, weight: float) -> None:
        """Add w to n, w r x to b and w x x' to A; what is frozen stays."""
        self["n"][arm] += weight
        self["b"][arm] += weight * reward * x
        self["A"][arm] += weight * np.outer(x, x)

    def refresh(self, arm: int) -> None:
        """Freeze an arm's sums as they are now."""
        A, b = self["A"][arm], self["b"][arm]
        self.rows[arm], self.log_dets[arm] = ridge_rows(A, b, self._ridge), log_det(A, self._ridge)
        self["frozen_A"][arm], self["frozen_b"][arm] = A, b
        self["refreshes"][arm] += 1

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned."""
        super().restore_arrays(arrays)
        self._solve()

    def add_arm(self) -> None:
        """Append an arm without rows."""
        super().add_arm()
        self._solve()

    def remove_arm(self, arm: int) -> None:
        """Drop an arm: its sums, and what was frozen of them."""
        super().remove_arm(arm)
        self._solve()


@dataclass(frozen=True, slots=True, kw_only=True)
class RarelySwitchingOFUL(BasePolicy[FrozenSums]):
    """Play OFUL's highest upper confidence bound, computed again for an arm only when det V_a has grown enough.

    Parameters
    ----------
    growth
        C: an arm is refreshed when det V_a exceeds (1 + C) times what it was; 0 refreshes at every row, as OFUL does.
    delta
        The chance that some confidence set fails, at any time.
    noise_scale
        The sub-gaussian scale R of the noise; 1/2 is enough for rewards within [0, 1].
    theta_norm
        S, a bound on |theta_a|.
    ridge
        The ridge.
    width_scale
        What widths are multiplied with: 1 for theory, less in practice.

    Examples
    --------
    >>> policy = RarelySwitchingOFUL(growth=1.0)
    >>> state = policy.init(2, 1)
    >>> for t in (1, 2, 3):
    ...     policy.update(state, Interaction(t=t, x=np.array([1.0]), arm=0, reward=1.0))
    >>> state["A"][0, 0], state["frozen_A"][0, 0]  # det V went 1, 2, 3, 4; only 3 exceeded 2 * 1
    (array([3.]), array([2.]))
    """

    growth: float = 1.0
    delta: float = 0.05
    noise_scale: float = NOISE_SCALE
    theta_norm: float = 1.0
    ridge: float = 1.0
    width_scale: float = 1.0

    def __post_init__(self) -> None:
        settle(self, growth=number(0), delta=chance(), ridge=positive())
        settle(self, noise_scale=positive(), theta_norm=positive(), width_scale=positive())

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        K, d = n_arms, dim
        frozen: Shapes = {"frozen_b": (K, d), "frozen_A": (K, d, d), "refreshes": (K,)}
        return {"n": (K,), "b": (K, d), "A": (K, d, d), **frozen}

    def init(self, n_arms: int, dim: int) -> FrozenSums:
        """Know nothing, and freeze that."""
        return FrozenSums(n_arms, dim, self.ridge)

    def estimates(self, state: FrozenSums) -> Float64:
        """Return theta_hat of every arm at its last refresh, which is what decisions use, (K, d)."""
        return state.rows[:, 0].copy()

    def radii(self, state: FrozenSums) -> Float64:
        """Return beta_a of every arm at its last refresh, (K,)."""
        logs = state.log_dets / 2 + math.log(state.n_arms / self.delta)
        return self.noise_scale * np.sqrt(2 * logs) + math.sqrt(self.ridge) * self.theta_norm

    def _scores(self, state: FrozenSums, x: Float64) -> Float64:
        y = state.rows @ x
        scores: Float64 = y[:, 0] + self.width_scale * self.radii(state) * lengths(y[:, 1:])
        return scores

    def probabilities(self, state: FrozenSums, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Share everything among the highest bounds."""
        return best_chances(self._scores(state, x), eligible)

    def decide(self, state: FrozenSums, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        """Play the highest bound."""
        return play_best(self._scores(state, x), eligible, coins)

    def update(self, state: FrozenSums, interaction: Interaction) -> None:
        """Record every step, and refresh the arm if its determinant has grown enough."""
        i = interaction
        fresh(i, type(self).__name__)
        state.add(i.arm, i.x, i.reward, i.weight)
        if log_det(state["A"][i.arm], self.ridge) > state.log_dets[i.arm] + math.log1p(self.growth) + ROUNDING:
            state.refresh(i.arm)
