"""Newtron: Hazan and Kale (2011), "Newtron: an efficient bandit algorithm for online multiclass prediction".

An online Newton method for the logistic loss -(1/alpha) ln p(y), p = softmax(alpha W x), from one bit a step. It
plays a from p' = (1 - gamma) p + gamma/K and estimates the gradient without bias from whether a was right:

    right: (1 - p_a) / p'_a (1/K - e_a) x',  kappa = p'_a;      wrong: p_a / p'_a (e_a - 1/K) x',  kappa = 1.

W is then the minimiser, over |W| <= D, of sum_s [G_s.(W - W_s) + kappa_s beta (G_s.(W - W_s))^2 / 2] + |W|^2 / (2 D).
The diagonal variant keeps only the diagonal of each quadratic term, and is minimised as exactly.
Decide O(K d); update O(K d) diagonal, O((K d)^3) full; memory O(K d) or O((K d)^2). Propensities are exact.

Theory: one right label for every context. Regret in the logistic loss O(log T) for a constant alpha, O(sqrt T) for
alpha of order log T, O(T^(2/3)) at worst. Where the bit is a noisy 0/1 reward, several arms can be right, and there is
no guarantee. The constants are our choice: alpha, beta and D of the order that published experiments use, gamma by
tuning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, cast

import numpy as np

from armlet.inputs.settings import bit, chance, one_of, positive, settle
from armlet.policies.base import BasePolicy
from armlet.policies.state import MOST, Arrays, check_between, fresh
from armlet.reference.choice import play_drawn
from armlet.types import Array, Bool, Choice, Coins, Float64, Interaction, RewardKind, Shapes

Hessian: TypeAlias = Literal["diagonal", "full"]

FAR = 1e100  # from any ball
ROUNDED = 1.0 - 1e-9  # of a bound, what rounding leaves


class NewtronState(Arrays):
    """W, and the quadratic W.H W / 2 + b.W that it minimises; H is (K, d), or (K, d, K, d) if full."""

    def __init__(self, n_arms: int, dim: int, *, hessian: Hessian, ridge: float) -> None:
        self._hessian, self._ridge = hessian, ridge
        H: Float64 = np.full((n_arms, dim), ridge)
        if hessian == "full":
            H = (ridge * np.eye(n_arms * dim)).reshape(n_arms, dim, n_arms, dim)
        by_arm = {"W": np.zeros((n_arms, dim)), "b": np.zeros((n_arms, dim)), "H": H}
        Arrays.__init__(self, n_arms, dim, by_arm=by_arm, blank={"H": ridge})

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned: W in the ball, and no less curvature than the regulariser's."""
        H = cast(Float64, arrays["H"])
        curvature = np.einsum("aiai->ai", H) if self._hessian == "full" else H
        radius = 1.0 / (self._ridge * ROUNDED)
        check_between("H", curvature, 1.0 / radius, MOST)
        check_between("W", arrays["W"], -radius, radius)
        super().restore_arrays(arrays)

    def add_arm(self) -> None:
        """Append an arm with the regulariser only."""
        if self._hessian == "full":
            H = (self._ridge * np.eye((self.n_arms + 1) * self.dim)).reshape((self.n_arms + 1, self.dim) * 2)
            H[:-1, :, :-1] = self["H"]
            self._by_arm["H"] = H[:-1]  # the new row is appended with the others' and then put right
        Arrays.add_arm(self)
        if self._hessian == "full":
            self["H"][-1] = H[-1]

    def remove_arm(self, arm: int) -> None:
        """Drop an arm, which holds its weights at 0."""
        Arrays.remove_arm(self, arm)
        if self._hessian == "full":
            self._by_arm["H"] = np.delete(self["H"], arm, axis=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Newtron(BasePolicy[NewtronState]):
    """Learn a logistic model from one bit a step by online Newton steps.

    The decision's tag is the number of eligible arms, from which p_a follows whenever the reward comes. A late reward
    is linearised at the W of its arrival; in order of play, that is the paper's. Rows of a log count as if all arms
    were eligible.

    Parameters
    ----------
    gamma
        The part of the steps that explore, above 0 and below 1: T^(-1/3) for the theory's worst case.
    alpha
        The steepness of the softmax.
    beta
        How much curvature a gradient adds; smaller is bolder.
    radius
        D, the largest |W|, and the inverse of the regulariser.
    hessian
        "diagonal" or "full".

    Examples
    --------
    >>> policy = Newtron(gamma=0.1)
    >>> state = policy.init(2, 1)
    >>> policy.update(state, Interaction(t=1, x=np.ones(1), arm=0, reward=1.0, propensity=0.5, tag=2))
    >>> policy.probabilities(state, 2, np.ones(1), np.ones(2, dtype=bool)).round(3).tolist()
    [0.95, 0.05]
    """

    gamma: float = 0.05
    alpha: float = 10.0
    beta: float = 0.01
    radius: float = 1.0
    hessian: Hessian = "diagonal"

    rewards: ClassVar[RewardKind] = "binary"

    def __post_init__(self) -> None:
        share = chance(fix="give a number between 0 and 1, T^(-1/3) for horizon T")
        settle(
            self, gamma=share, alpha=positive(), beta=positive(), radius=positive(), hessian=one_of("diagonal", "full")
        )

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        weights = (n_arms, dim)
        return {"W": weights, "b": weights, "H": weights * 2 if self.hessian == "full" else weights}

    def init(self, n_arms: int, dim: int) -> NewtronState:
        """Start from W = 0 and the regulariser."""
        return NewtronState(n_arms, dim, hessian=self.hessian, ridge=1.0 / self.radius)

    def estimates(self, state: NewtronState) -> Float64:
        """Return W; its scores rank the arms, but are no rewards."""
        return state["W"].copy()

    def probabilities(self, state: NewtronState, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Return p' over the eligible arms."""
        scores = np.where(eligible, self.alpha * (state["W"] @ x), -np.inf)
        odds = np.exp(scores - scores.max())
        chances: Float64 = (1.0 - self.gamma) / odds.sum() * odds + self.gamma / np.count_nonzero(eligible) * eligible
        return chances

    def decide(self, state: NewtronState, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Draw from p'; the tag is the number of eligible arms."""
        choice = play_drawn(self.probabilities(state, t, x, eligible), coins)
        return choice._replace(tag=int(np.count_nonzero(eligible)))

    def update(self, state: NewtronState, interaction: Interaction) -> None:
        """Add the term of this step to the objective, and minimise it."""
        i = interaction
        fresh(i, type(self).__name__)
        G, kappa = self.gradient(state.n_arms, i)
        curvature = i.weight * kappa * self.beta
        if self.hessian == "full":
            H = state["H"] + curvature * G[:, :, None, None] * G
            b = state["b"] + (i.weight * G - curvature * float((G * state["W"]).sum()) * G)
            values, vectors = np.linalg.eigh(H.reshape(b.size, b.size))
            values[values < 0.5 / self.radius] = 1.0 / self.radius  # with huge contexts rounding eats the regulariser
            W = (vectors @ in_ball(values, b.ravel() @ vectors, self.radius)).reshape(b.shape)
        else:
            H = state["H"] + curvature * G**2
            b = state["b"] + (i.weight * G - curvature * G**2 * state["W"])
            W = in_ball(H.ravel(), b.ravel(), self.radius).reshape(b.shape)
        state["H"][...], state["b"][:], state["W"][:] = H, b, W  # all solved before anything changes

    def gradient(self, n_arms: int, interaction: Interaction) -> tuple[Float64, float]:
        """Estimate the gradient, (K, d), and give kappa with it."""
        i = interaction
        eligible = i.tag if i.tag > 0 else n_arms
        # p from p', which the decision kept; W may have moved since
        p = min(max((i.propensity - self.gamma / eligible) / (1.0 - self.gamma), 0.0), 1.0)
        centred = np.full((n_arms, 1), 1.0 / n_arms)
        centred[i.arm] -= 1.0
        if bit(i.reward):
            return ((1.0 - p) / i.propensity) * centred * i.x, i.propensity
        return (-p / i.propensity) * centred * i.x, 1.0


def in_ball(h: Float64, b: Float64, radius: float) -> Float64:
    """Minimise sum of h w^2 / 2 + b w over |w| <= radius, for positive h.

    Outside the ball, w = -b / (h + m) with the multiplier m > 0 that gives |w| = radius. Newton's method on 1 / |w|,
    a concave function of m, climbs to it from m = 0 without overshooting.

    Examples
    --------
    >>> in_ball(np.array([1.0, 4.0]), np.array([0.3, -0.4]), 1.0)
    array([-0.3,  0.1])
    >>> in_ball(np.array([1.0, 1.0]), np.array([3.0, -4.0]), 1.0).round(12)
    array([-0.6,  0.8])
    """
    m, w = 0.0, -b / h
    if np.abs(w).max() > FAR:  # its square would overflow; m is at least what brings each entry into the ball
        m = max(0.0, float((np.abs(b) / radius - h).max()))
        w = -b / (h + m)
    for _ in range(100):
        square = float(w @ w)
        size = math.sqrt(square)
        if size <= radius * (1.0 + 1e-13):
            break
        m += (size / radius - 1.0) * square / float((w * w / (h + m)).sum())
        w = -b / (h + m)
    return w
