"""A linear world of any size: Section 3 with the law of contexts and the law of noise to choose.

Theorem 2 needs finitely many contexts. On a continuous law the gap between the best arm and the next
comes arbitrarily close to 0: delta_min is 0 and the theorem is silent.
Drawing n steps is O(n (d + K)), their means O(n K d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from armlet.environments.constants import Constants
from armlet.environments.finite import FiniteWorld, Noise
from armlet.environments.linear_arms import (
    MAX_BITS,
    LinearArms,
    as_rows,
    bit_law,
    check_between,
    check_steps,
    draw_rewards,
)
from armlet.errors import InvalidValueError
from armlet.types import Float64

Law: TypeAlias = Literal["gaussian", "sphere", "bits", "constant"]
WORDS: dict[Law, str] = {
    "gaussian": "independent standard gaussian entries",
    "sphere": "length 1, every direction as likely as any other",
    "bits": "fair coin flips, 0 or 1, not scaled",
    "constant": "a 1, then independent standard gaussian entries",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear(LinearArms):
    """A linear world.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The parameter of each arm.
    law
        Where contexts come from: "gaussian" entries, the unit "sphere", "bits", fair coin flips, or "constant", a 1 and
        gaussian entries after it.
    noise, scale
        How rewards spread, as in `armlet.environments.finite.Noise`. 0/1 rewards need the law "bits" and a theta
        whose probabilities stay in [0, 1].

    Examples
    --------
    >>> world = Linear.draw(np.random.default_rng(0), n_arms=3, dim=10, law="sphere")
    >>> X = world.contexts(np.random.default_rng(1), 2)
    >>> X.shape, np.linalg.norm(X, axis=1).round(12)
    ((2, 10), array([1., 1.]))
    """

    law: Law = "gaussian"
    noise: Noise = "gaussian"
    scale: float = 1.0

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_between("scale", self.scale, 0.0, math.inf)
        if self.law not in WORDS:
            raise InvalidValueError(f"law is {self.law!r}; choose {', '.join(map(repr, WORDS))}")
        if self.law == "constant" and self.dim < 2:
            raise InvalidValueError(
                "law is 'constant' but theta has rows of 1 value; give a value besides the constant"
            )
        if self.noise not in ("proportional", "gaussian", "bernoulli", "none"):
            raise InvalidValueError(
                f"noise is {self.noise!r}; choose 'proportional', 'gaussian', 'bernoulli' or 'none'"
            )
        theta = np.array(self.theta)
        if self.noise == "bernoulli" and (self.law != "bits" or theta.min() < 0 or theta.sum(axis=1).max() > 1):
            raise InvalidValueError(
                "noise is 'bernoulli' but some means are no probabilities; give law 'bits' and a theta"
            )

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        n_arms: int = 6,
        dim: int = 3,
        law: Law = "gaussian",
        noise: Noise = "gaussian",
        scale: float = 1.0,
    ) -> Self:
        """Draw theta, independent standard gaussians; for 0/1 rewards, uniform entries that sum to less than 1."""
        theta = rng.random((n_arms, dim)) / dim if noise == "bernoulli" else rng.standard_normal((n_arms, dim))
        return cls(theta=as_rows(theta), law=law, noise=noise, scale=scale)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n contexts: (n, d)."""
        check_steps(n, start)
        if self.law == "bits":
            return rng.integers(0, 2, size=(n, self.dim)).astype(np.float64)
        if self.law == "constant":
            return np.hstack([np.ones((n, 1)), rng.standard_normal((n, self.dim - 1))])
        X = rng.standard_normal((n, self.dim))
        return X / np.linalg.norm(X, axis=1, keepdims=True) if self.law == "sphere" else X

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay in every context: (n, K)."""
        return draw_rewards(rng, self.means(X, start=start), self.noise, self.scale)

    def table(self) -> FiniteWorld | None:
        """Give the world as a table, for "bits" up to 16 dimensions."""
        if self.law == "bits" and self.dim <= MAX_BITS:
            return self.tabulate(*bit_law((0.5,) * self.dim), self.noise, self.scale)
        if self.law == "sphere" and self.dim == 1:  # a sphere of two points
            return self.tabulate(np.array([[-1.0], [1.0]]), np.full(2, 0.5), self.noise, self.scale)
        return None

    def sigma_min(self) -> float:
        """Give sigma_min in closed form, for any d: 1 for "gaussian" and "constant", 1/d on the "sphere".

        For "bits" E xx' is 1/4 everywhere and another 1/4 on the diagonal, so it is 1/4, or 1/2 if d = 1.

        Examples
        --------
        >>> [Linear(theta=((1.0, 0.0),), law=law).sigma_min() for law in ("gaussian", "sphere", "bits")]
        [1.0, 0.5, 0.25]
        """
        if self.law == "bits":
            return 0.25 if self.dim > 1 else 0.5
        return 1.0 / self.dim if self.law == "sphere" else 1.0

    def constants(self) -> Constants:
        """Give the exact constants of a table; on a continuous law delta_min does not exist."""
        if self.law != "bits" and self.table() is None:
            raise InvalidValueError(
                f"delta_min does not exist: on the law {self.law!r} gaps come arbitrarily close to 0"
            )
        return LinearArms.constants(self)

    def describe(self) -> list[str]:
        """Say what the world means, and what its constants are.

        Examples
        --------
        >>> for line in Linear(theta=((1.0, 0.0), (0.0, 2.0))).describe():
        ...     print(line)
        Linear: 2 arms
        contexts: 2 values, independent standard gaussian entries
        rewards: gaussian noise of scale 1 around x'theta, without unit
        sigma_min = 1 and Q = 2
        no constants: delta_min does not exist: on the law 'gaussian' gaps come arbitrarily close to 0
        """
        longest = np.linalg.norm(self.theta, axis=1).max()
        return [
            f"Linear: {self.n_arms} arms",
            f"contexts: {self.dim} values, {WORDS[self.law]}",
            f"rewards: {self.noise} noise of scale {self.scale:g} around x'theta, without unit",
            *([] if self.table() else [f"sigma_min = {self.sigma_min():.6g} and Q = {longest:.6g}"]),
            *self.describe_constants(),
        ]
