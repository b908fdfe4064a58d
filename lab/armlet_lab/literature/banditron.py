"""Banditron: Kakade, Shalev-Shwartz and Tewari (2008), "Efficient bandit algorithms for online multiclass prediction".

A perceptron that learns only whether its arm was right. It plays y_hat = argmax_a w_a'x with probability
1 - gamma + gamma/K and every other arm with gamma/K; then w_y_hat loses x, and if the bit is 1 the arm that was
played gains x / propensity, so that on average the step is that of the perceptron that sees the label.
Decide O(K d); update O(d); memory O(K d). Propensities are exact.

Theory: one right label for every context. Mistakes O(T^(2/3)) beyond the hinge loss of the best W with gamma of order
T^(-1/3), and O(sqrt T) for separable labels with gamma of order T^(-1/2). Where the bit is a noisy 0/1 reward, several
arms can be right, and there is no guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armlet.inputs.settings import positive, settle
from armlet.policies.base import BasePolicy
from armlet.policies.state import Arrays, fresh
from armlet.reference.choice import below, best_arms, best_chances, mixed
from armlet.types import Bool, Choice, Coins, Float64, Interaction, RewardKind, Shapes
from armlet_lab.literature.bounded import bit


@dataclass(frozen=True, slots=True, kw_only=True)
class Banditron(BasePolicy[Arrays]):
    """Learn a multiclass perceptron from one bit a step.

    The predicted arm travels in the decision's tag, so that late rewards change the right row; in a log without tags
    it is predicted again. Ties are broken by the coins, and the propensity counts all that tie. Do not remove an arm
    while rewards are on their way: the tag is the number of an arm, and numbers shift.

    Parameters
    ----------
    gamma
        The part of the steps that explore, above 0: our default of 0.05, or T^(-1/3) for the theory.

    Examples
    --------
    >>> policy = Banditron(gamma=0.3)
    >>> state = policy.init(3, 1)
    >>> state["W"][:] = [[0.0], [1.0], [0.0]]
    >>> policy.probabilities(state, 1, np.ones(1), np.ones(3, dtype=bool)).round(3).tolist()
    [0.1, 0.8, 0.1]
    """

    gamma: float = 0.05

    rewards: ClassVar[RewardKind] = "binary"

    def __post_init__(self) -> None:
        fix = "give a number above 0 and up to 1, T^(-1/3) for horizon T"
        settle(self, gamma=positive(1.0, fix=fix))

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return {"W": (n_arms, dim)}

    def init(self, n_arms: int, dim: int) -> Arrays:
        """Start from W = 0."""
        return Arrays(n_arms, dim, by_arm={"W": np.zeros((n_arms, dim))})

    def estimates(self, state: Arrays) -> Float64:
        """Return W; its scores rank the arms, but are no rewards."""
        return state["W"].copy()

    def probabilities(self, state: Arrays, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Put (1 - gamma) on the best arms, shared, and gamma on all eligible ones."""
        return mixed(best_chances(state["W"] @ x, eligible), eligible, self.gamma)

    def decide(self, state: Arrays, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        """Predict, then play the prediction or explore; the tag is the predicted arm, from 1."""
        arms, scores = np.flatnonzero(eligible), state["W"] @ x
        best = best_arms(scores, arms)
        predicted = int(best[below(coins.tie, len(best))])
        explored = coins.coin < self.gamma
        arm = int(arms[below(coins.pick, len(arms))]) if explored else predicted
        chances = mixed(best_chances(scores, eligible), eligible, self.gamma)
        return Choice(arm, float(chances[arm]), explored, tag=predicted + 1)

    def update(self, state: Arrays, interaction: Interaction) -> None:
        """Take x from the predicted arm; give x / propensity to the played one if it was right."""
        i, W = interaction, state["W"]
        fresh(i, type(self).__name__)
        right = bit(i.reward)
        predicted = i.tag - 1 if 1 <= i.tag <= state.n_arms else int((W @ i.x).argmax())
        W[predicted] -= i.weight * i.x
        W[i.arm] += (i.weight * right / i.propensity) * i.x
