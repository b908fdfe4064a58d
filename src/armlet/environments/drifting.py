"""An environment that drifts: arms turn slowly, or exchange their parameters at stated steps.

Outside the paper, whose arms never change: a policy that keeps all its evidence must go wrong here.
Drawing n steps is O(n (d + K)), their means O(n K d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from armlet.environments.environment import Constants, LinearArms, Noise, as_rows, check_between, check_steps
from armlet.errors import InvalidValueError
from armlet.types import Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifting(LinearArms):
    """Contexts on the unit sphere, gaussian noise, and arms that move.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The parameter of each arm at the start, d >= 2.
    turn
        How far every theta turns in a step, in radians, in the plane of the first two coordinates.
    jumps
        The steps at which every arm takes over the parameter of the arm before it, the first that of the
        last; in increasing order.
    scale
        The standard deviation of the noise.

    Examples
    --------
    >>> environment = Drifting(theta=((1.0, 0.0), (0.0, 2.0)), jumps=(3,))
    >>> environment.means(np.array([[1.0, 0.0]] * 4))
    array([[1., 0.],
           [1., 0.],
           [0., 1.],
           [0., 1.]])
    """

    turn: float = 0.0
    jumps: tuple[int, ...] = ()
    scale: float = 1.0

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_between("turn", self.turn, -math.pi, math.pi)
        check_between("scale", self.scale, 0.0, math.inf)
        if self.dim < 2:
            raise InvalidValueError(f"theta has rows of {self.dim} values but arms turn in a plane; give 2 or more")
        if any(step < 1 for step in self.jumps) or any(a >= b for a, b in pairwise(self.jumps)):
            raise InvalidValueError(f"jumps is {self.jumps} but must be steps of at least 1 in increasing order")

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        n_arms: int = 6,
        dim: int = 3,
        turn: float = 2 * math.pi / 100_000,
        jumps: tuple[int, ...] = (),
        scale: float = 1.0,
    ) -> Self:
        """Draw theta, independent standard gaussians; by default the arms turn once round in 100,000 steps."""
        return cls(theta=as_rows(rng.standard_normal((n_arms, dim))), turn=turn, jumps=jumps, scale=scale)

    def theta_at(self, t: int) -> Float64:
        """Return the parameters as they are at step t: (K, d).

        Examples
        --------
        >>> Drifting(theta=((1.0, 0.0), (0.0, 2.0)), turn=np.pi / 2).theta_at(2).round(12) + 0.0
        array([[ 0.,  1.],
               [-2.,  0.]])
        """
        check_steps(t - 1, 0)
        cos, sin = math.cos(self.turn * (t - 1)), math.sin(self.turn * (t - 1))
        theta: Float64 = np.roll(np.array(self.theta), np.searchsorted(self.jumps, t, side="right"), axis=0)
        theta[:, :2] = theta[:, :2] @ np.array([[cos, sin], [-sin, cos]])
        return theta

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n contexts of length 1, every direction as likely as any other: (n, d)."""
        check_steps(n, start)
        X = rng.standard_normal((n, self.dim))
        lengths: Float64 = np.linalg.norm(X, axis=1, keepdims=True)
        return X / lengths

    def means(self, X: Float64, *, start: int = 0) -> Float64:
        """Return the expected reward of every arm in every context, the first of them at step start + 1: (n, K)."""
        self.check_contexts(X, start)
        t = np.arange(start + 1, start + len(X) + 1)
        cos, sin = np.cos(self.turn * (t - 1)), np.sin(self.turn * (t - 1))
        turned = X.copy()  # to turn the contexts back is cheaper than to turn every arm at every step
        turned[:, 0] = cos * X[:, 0] + sin * X[:, 1]
        turned[:, 1] = cos * X[:, 1] - sin * X[:, 0]
        before = np.searchsorted(self.jumps, t, side="right")[:, None]
        whose = (np.arange(self.n_arms) - before) % self.n_arms  # (n, K): whose parameter each arm has by now
        mu: Float64 = np.take_along_axis(turned @ np.array(self.theta).T, whose, axis=1)
        return mu

    def reward_noise(self) -> tuple[Noise, float]:
        return "gaussian", self.scale

    def constants(self) -> Constants:
        """Refuse: Theorem 2 knows only arms that stay, and on the sphere gaps come arbitrarily close to 0."""
        raise InvalidValueError("delta_min does not exist: the arms change, and gaps come arbitrarily close to 0")

    def describe(self) -> list[str]:
        """Describe what the environment means, and what its constants are.

        Examples
        --------
        >>> for line in Drifting(theta=((1.0, 0.0), (0.0, 2.0)), jumps=(1000,)).describe():
        ...     print(line)
        Drifting: 2 arms that change with t
        contexts: 2 values, length 1, every direction as likely as any other
        rewards: gaussian noise of standard deviation 1 around x'theta(t), without unit
        arms turn by 0 radians a step; they exchange parameters at steps: 1000
        sigma_min = 0.5, Q = 2, sigma = 1
        no constants: delta_min does not exist: the arms change, and gaps come arbitrarily close to 0
        """
        steps = ", ".join(map(str, self.jumps)) or "none"
        longest = np.linalg.norm(self.theta, axis=1).max()  # turns and exchanges leave it as it is
        return [
            f"Drifting: {self.n_arms} arms that change with t",
            f"contexts: {self.dim} values, length 1, every direction as likely as any other",
            f"rewards: gaussian noise of standard deviation {self.scale:g} around x'theta(t), without unit",
            f"arms turn by {self.turn:.6g} radians a step; they exchange parameters at steps: {steps}",
            f"sigma_min = {1 / self.dim:.6g}, Q = {longest:.6g}, sigma = {self.scale:.6g}",
            *self.describe_constants(),
        ]
