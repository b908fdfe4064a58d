"""The constants of a problem that the regret bound is written in: Section 3 and Theorem 2.

Two conventions for the size of the noise Z live side by side and are never mixed: `sigma` is the standard
sub-gaussian constant, E exp(g Z) <= exp(g^2 sigma^2 / 2), and `L` the paper's, E exp(g Z) <= exp(g^2 L^2),
so L = sigma / sqrt 2.
O(M d^2 + d^3 + M K d) for M contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from armlet.environments.finite import FiniteWorld
from armlet.errors import MissingConstantError
from armlet.reference.linear import smallest_eigenvalue
from armlet.types import Float64

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What the bound needs to know of a problem.

    `delta_min` is in units of reward, `sigma` and `L` too; `delta_max` and `Q` in units of reward for a
    unit of context; `sigma_min` in squared units of context.

    Examples
    --------
    >>> table = FiniteWorld(contexts=np.eye(2), chances=np.array([0.9, 0.1]), means=np.array([[3.0, 0.0], [0.0, 4.0]]))
    >>> constants = Constants.of(table, np.array([[3.0, 0.0], [0.0, 4.0]]), sigma=1.0)
    >>> constants.sigma_min, constants.delta_min, constants.delta_max, constants.Q
    (0.1, 3.0, 5.0, 4.0)
    >>> round(constants.L, 4)
    0.7071
    """

    sigma_min: float  # smallest non-zero eigenvalue of E xx'
    delta_min: float  # smallest loss of an arm that is not best, over contexts that occur
    delta_max: float  # largest ||theta_a - theta_b||
    Q: float  # largest ||theta_a||
    sigma: float  # standard sub-gaussian constant of the noise
    L: float = field(init=False)  # the paper's constant of the same noise, sigma / sqrt 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "L", self.sigma / math.sqrt(2.0))

    @classmethod
    def of(cls, table: FiniteWorld, theta: Float64, sigma: float) -> Self:
        """Compute the constants of a finite world.

        Parameters
        ----------
        table
            The contexts that occur; those of chance 0 are left out.
        theta
            The parameters of the arms, (K, d); they need not follow from the table, whose contexts may
            span less than the whole space.
        sigma
            The standard sub-gaussian constant of the noise; `noise_sigma(table)` knows it.
        """
        occurs = table.chances > 0
        X, chances, means = table.contexts[occurs], table.chances[occurs], table.means[occurs]
        return cls(
            sigma_min=smallest_eigenvalue((X.T * chances) @ X),
            delta_min=_smallest_loss(X, means, theta),
            delta_max=float(np.linalg.norm(theta[:, None] - theta[None], axis=2).max()),
            Q=float(np.linalg.norm(theta, axis=1).max()),
            sigma=sigma,
        )

    def describe(self, unit: str = "") -> list[str]:
        """Say what the constants are; `unit` is that of the rewards.

        Examples
        --------
        >>> Constants(sigma_min=0.1, delta_min=3.0, delta_max=5.0, Q=4.0, sigma=1.0).describe("s")[1]
        'delta_min = 3 s, the smallest loss of an arm that is not best'
        """
        unit = f" {unit}" if unit else ""
        return [
            f"sigma_min = {self.sigma_min:.6g}, the smallest non-zero eigenvalue of E xx'",
            f"delta_min = {self.delta_min:.6g}{unit}, the smallest loss of an arm that is not best",
            f"delta_max = {self.delta_max:.6g}, the largest distance between two arms' theta",
            f"Q = {self.Q:.6g}, the longest theta",
            f"sigma = {self.sigma:.6g}{unit}, sub-gaussian constant of the noise (the paper's L = {self.L:.6g})",
        ]


def scaled_bits_eigenvalue(*, dim: int, w: float) -> float:
    """Give the smallest eigenvalue of E xx' that is not zero for the contexts of Section 4.1, in closed form.

    Entries are 1 with chance w, in (0, 1], and rows scaled to length 1; a row of zeros stays as it is. With S ones in a
    row, E xx' has trace P(S > 0) = 1 - (1 - w)^d, and the vector of ones is an eigenvector with eigenvalue E S / d = w;
    by symmetry the other d - 1 are equal. For w = 1 all rows are the same one, and there are no others.

    Examples
    --------
    >>> scaled_bits_eigenvalue(dim=3, w=0.5)
    0.1875
    """
    if dim == 1 or w == 1.0:
        return float(w)
    some = -math.expm1(dim * math.log1p(-w))
    return (some - w) / (dim - 1)


def _smallest_loss(X: Float64, means: Float64, theta: Float64) -> float:
    # an inner product of length d is exact up to d eps |x||theta|, so a loss of up to 4 times that is a tie
    losses = means.max(axis=1, keepdims=True) - means
    rounding = 4 * X.shape[1] * EPS * np.linalg.norm(X, axis=1) * np.linalg.norm(theta, axis=1).max()
    worse = losses[losses > rounding[:, None]]
    if worse.size == 0:
        raise MissingConstantError("delta_min", "every arm is best in every context")
    return float(worse.min())


def noise_sigma(table: FiniteWorld) -> float:
    """Give the smallest sub-gaussian constant of a table's noise: the largest over its contexts and arms.

    A uniform on [-c, c] has constant c / sqrt 3, its standard deviation; a gaussian its own; 0/1 rewards
    that of `bernoulli_sigma`.

    Examples
    --------
    >>> means = np.array([[0.5, 0.1]])
    >>> noise_sigma(FiniteWorld(contexts=np.eye(1), chances=np.ones(1), means=means, noise="bernoulli"))
    0.5
    """
    means = table.means[table.chances > 0]
    if table.noise == "proportional":
        return float(abs(table.scale) * np.abs(means).max() / math.sqrt(3.0))
    if table.noise == "gaussian":
        return abs(table.scale)
    if table.noise == "bernoulli":
        return float(bernoulli_sigma(means).max())
    return 0.0


def bernoulli_sigma(p: Float64) -> Float64:
    """Give the smallest sub-gaussian constant of 0/1 variables with means p.

    Its square is (1 - 2p) / (2 log((1 - p) / p)) (Kearns and Saul, 1998): 1/4 at p = 1/2 and far above the
    variance p (1 - p) where p is small.

    Examples
    --------
    >>> bernoulli_sigma(np.array([0.0, 0.01, 0.5, 1.0])).round(4)
    array([0.    , 0.3265, 0.5   , 0.    ])
    """
    skew = 1 - 2 * p
    with np.errstate(divide="ignore", invalid="ignore"):
        square = skew / (4 * np.arctanh(skew))  # the log above is 2 artanh(1 - 2p)
    # near 1/2 the quotient is 0/0; skew^2/3 is the next term of its series
    square = np.where(np.abs(skew) < 1e-4, (1 - skew * skew / 3) / 4, square)
    sigma: Float64 = np.sqrt(square)
    return sigma
