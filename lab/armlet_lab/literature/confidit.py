"""Confidit: Crammer and Gentile (2011), "Multiclass classification with bandit feedback using adaptive regularization".

Upper confidence bounds from a second-order perceptron that learns only whether its arm was right. The model is
P(right | x, a) = (alpha + u_a'x) / (1 + alpha), so the bit taken as s = 1 if right, else -alpha, has the mean u_a'x:
on 0/1 rewards whose mean is linear this is a linear bandit, and Confidit is LinUCB with a projection of w'x to
[-alpha, 1].
Decide O(K d^2); update O(d^3) for one arm; memory O(K d^2). Deterministic but for ties; propensities are exact.

Theory: |x| = 1, labels drawn by the model, |u_a'x| <= 1; regret O(sqrt(T) log T). With eta=None the width
has the form of the theory's, eta = (1 + alpha)^2 (U^2 + sum of x'A^-1 x over the arm's own steps + 18 ln((t + 4) /
delta)). It is far wider than what works best, so the default is a constant.

What differs from the paper, as we know it: it projects the w of all arms at every step and goes on from the projected
ones. Here only the arm that is learned keeps its projection; the others' come from the unprojected w whenever
they are scored, so that deciding changes nothing. The bound is not proved for that. The step s = -alpha for a wrong arm
is taken as the one that makes the mean of s linear. Neither this nor the constants of eta, 18 and 4 among them, could
be checked against the printed text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from armlet.inputs.settings import chance, number, optional, positive, settle
from armlet.policies.base import BasePolicy
from armlet.policies.state import MOST, Arrays, check_between, fresh
from armlet.reference.choice import best_chances, play_best
from armlet.types import Array, Bool, Choice, Coins, Float64, Interaction, RewardKind, Shapes
from armlet_lab.literature.bounded import bit
from armlet_lab.literature.factors import inverse_of


class ConfiditState(Arrays):
    """A = (1 + alpha)^2 I + sum of x x', its inverse, w, and the sum of x'A^-1 x, for every arm."""

    def __init__(self, n_arms: int, dim: int, *, ridge: float) -> None:
        self._ridge = ridge
        A = np.tile(ridge * np.eye(dim), (n_arms, 1, 1))  # (K, d, d)
        by_arm = {"A": A, "inverse": inverse_of(A), "w": np.zeros((n_arms, dim)), "spent": np.zeros(n_arms)}
        Arrays.__init__(self, n_arms, dim, by_arm=by_arm)

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned; squares are only ever added to A, so that it can be inverted."""
        check_between("A on its diagonal", np.einsum("aii->ai", cast(Float64, arrays["A"])), self._ridge, MOST)
        check_between("spent", arrays["spent"], 0.0, MOST)
        Arrays.restore_arrays(self, arrays)

    def add_arm(self) -> None:
        """Append an arm that knows nothing."""
        Arrays.add_arm(self)
        self["A"][-1] = self._ridge * np.eye(self.dim)
        self["inverse"][-1] = inverse_of(self["A"][-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidit(BasePolicy[ConfiditState]):
    """Play the arm with the largest projected w_a'x + sqrt(eta x'A_a^-1 x), and learn from one bit.

    Parameters
    ----------
    eta
        The squared width, a constant of our choice; None for the theory's, which grows with t.
    alpha
        What a wrong arm counts: s = -alpha; 1 treats right and wrong alike.
    delta
        The chance with which the theory's bound may fail; only for eta=None.
    norm
        U, a bound of |u_a|; only for eta=None.

    Examples
    --------
    >>> policy = Confidit(eta=1.0)
    >>> state = policy.init(2, 1)
    >>> policy.scores(state, 1, np.ones(1))
    array([0.5, 0.5])
    >>> policy.update(state, Interaction(t=1, x=np.ones(1), arm=0, reward=0.0))
    >>> policy.scores(state, 2, np.ones(1)).round(3)
    array([0.247, 0.5  ])
    """

    eta: float | None = 1.0
    alpha: float = 1.0
    delta: float = 0.05
    norm: float = 1.0

    rewards: ClassVar[RewardKind] = "binary"

    def __post_init__(self) -> None:
        settle(self, eta=optional(number(0)), alpha=positive(1.0), delta=chance(), norm=positive())

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        square = (n_arms, dim, dim)
        return {"A": square, "inverse": square, "w": (n_arms, dim), "spent": (n_arms,)}

    def init(self, n_arms: int, dim: int) -> ConfiditState:
        """For all arms: A = (1 + alpha)^2 I, w = 0."""
        return ConfiditState(n_arms, dim, ridge=(1.0 + self.alpha) ** 2)

    def estimates(self, state: ConfiditState) -> Float64:
        """Return w, which estimates the mean of s: (1 + alpha) P(right) - alpha."""
        return state["w"].copy()

    def scores(self, state: ConfiditState, t: int, x: Float64) -> Float64:
        """Return the upper confidence bound of every arm, (K,)."""
        margins = np.minimum(np.maximum(state["w"] @ x, -self.alpha), 1.0)  # of the projected w
        spread = (state["inverse"] @ x) @ x
        bound: Float64 = margins + np.sqrt(self._eta(state, t) * np.maximum(spread, 0.0))
        return bound

    def _eta(self, state: ConfiditState, t: int) -> float | Float64:
        if self.eta is not None:
            return self.eta
        known = self.norm**2 + 18.0 * math.log((t + 4) / self.delta)
        return (1.0 + self.alpha) ** 2 * (known + state["spent"])

    def probabilities(self, state: ConfiditState, t: int, x: Float64, eligible: Bool) -> Float64:
        """Share everything among the arms that tie for the largest bound."""
        return best_chances(self.scores(state, t, x), eligible)

    def decide(self, state: ConfiditState, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play the arm with the largest bound."""
        return play_best(self.scores(state, t, x), eligible, coins)

    def update(self, state: ConfiditState, interaction: Interaction) -> None:
        """Project w to -alpha <= w'x <= 1 in the norm of A, then take a step of ridge regression towards s.

        The others' w stay as they are: their projection is taken again whenever they are scored.
        """
        i, x = interaction, interaction.x
        fresh(i, type(self).__name__)
        s = 1.0 if bit(i.reward) else -self.alpha
        inverse, w = state["inverse"][i.arm], state["w"][i.arm].copy()
        margin, spread = float(w @ x), float(x @ inverse @ x)
        inside = min(max(margin, -self.alpha), 1.0)
        if inside != margin and spread > 0.0:  # x is not 0 then, but its square may have vanished
            w += ((inside - margin) / spread) * (inverse @ x)
        A = state["A"][i.arm] + i.weight * (x[:, None] * x)
        inverse = inverse_of(A)  # from A at every update, so no error builds up
        step = i.weight * (inverse @ x)
        w += (s - inside) * step
        state["A"][i.arm], state["inverse"][i.arm], state["w"][i.arm] = A, inverse, w
        state["spent"][i.arm] += float(x @ step)
