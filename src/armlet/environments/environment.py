"""What an environment is: the stochastic setting of Section 3, with everything a simulation asks of it.

An environment is settings only. It is handed its randomness, one generator for contexts and another for noise, so that
contexts are the same for every policy and however many rewards are drawn. One with finitely many contexts is also a
table, which the kernel simulates whole, and in jumps from one exploration to the next.

Its constants are those that the regret bound of Theorem 2 is written in. Two conventions for the size of the noise Z
are never mixed: `sigma` is the standard sub-gaussian constant, E exp(g Z) <= exp(g^2 sigma^2 / 2), and `L` the paper's,
E exp(g Z) <= exp(g^2 L^2), so L = sigma / sqrt 2. O(M d^2 + d^3 + M K d) for M contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, Protocol, Self, TypeAlias

import numpy as np

from armlet.errors import InvalidValueError, MissingConstantError
from armlet.reference.linear import smallest_eigenvalue
from armlet.types import Bool, Float64

Noise: TypeAlias = Literal["proportional", "gaussian", "bernoulli", "none"]
"""How a reward spreads around its mean mu, given a scale s:

- "proportional": mu (1 + s u), u uniform on [-1, 1];
- "gaussian": mu + s z, z standard normal;
- "bernoulli": 1 with probability mu, else 0 (s is not used);
- "none": mu.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteEnvironment:
    """Contexts, their chances, and what the arms pay.

    Examples
    --------
    >>> import numpy as np
    >>> FiniteEnvironment(contexts=np.eye(2), chances=np.array([0.9, 0.1]), means=np.eye(2)).gap
    0.5
    """

    contexts: Float64  # (M, d)
    chances: Float64  # (M,): sums to 1
    means: Float64  # (M, K)
    noise: Noise = "none"
    scale: float = 1.0

    def __post_init__(self) -> None:
        m = len(self.contexts)
        if self.contexts.ndim != 2 or self.chances.shape != (m,) or self.means.ndim != 2 or len(self.means) != m:
            raise InvalidValueError(
                f"contexts, chances and means have shapes {self.contexts.shape}, {self.chances.shape} and "
                f"{self.means.shape}; give (M, d), (M,) and (M, K)"
            )
        if not (self.chances >= 0).all() or abs(self.chances.sum() - 1) > 1e-9:
            raise InvalidValueError(f"chances are {self.chances}; they must not be negative and must sum to 1")
        if self.noise not in ("proportional", "gaussian", "bernoulli", "none"):
            raise InvalidValueError(
                f"noise is {self.noise!r}; choose 'proportional', 'gaussian', 'bernoulli' or 'none'"
            )
        if self.noise == "bernoulli" and not ((self.means >= 0) & (self.means <= 1)).all():
            raise InvalidValueError("means of 0/1 rewards must lie between 0 and 1")

    @property
    def losses(self) -> Float64:
        """What each arm loses against the best one in each context, (M, K)."""
        best: Float64 = self.means.max(axis=1, keepdims=True)
        return best - self.means

    @property
    def gap(self) -> float:
        """What a random arm loses a step, on average."""
        return float(self.chances @ self.losses.mean(axis=1))


class Environment(Protocol):
    """Contexts, mean rewards and rewards; steps count from 1, and `start` is the number of steps before.

    A frozen dataclass of settings that JSON can hold. Drawing n steps at once or in parts, each with its
    `start`, gives the same contexts and rewards. `armlet.testing.check_environment` checks all of it.

    Two attributes may be left out, see `present` and `delay` in this file: which arms can be played at a step, and how
    many steps a reward takes to arrive.
    """

    @property
    def n_arms(self) -> int:
        """K, the number of arms."""

    @property
    def dim(self) -> int:
        """d, the number of values in a context."""

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw the contexts of steps start + 1 to start + n: (n, d)."""

    def means(self, X: Float64, *, start: int = 0) -> Float64:
        """Return the expected reward of every arm in every context, the first of them at step start + 1: (n, K)."""

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay in every context: (n, K)."""

    def table(self) -> FiniteEnvironment | None:
        """Return the whole environment as a table, where contexts are few, the law stays, and the noise has a name."""

    def constants(self) -> Constants:
        """Return the exact constants of the problem; ValueError says which do not exist, and why."""

    def describe(self) -> list[str]:
        """Say in a few lines what the environment means, in which units, and what its constants are."""


def present(environment: Environment, n: int, *, start: int = 0) -> Bool | None:
    """Return which arms can be played at steps start + 1 to start + n, (n, K); None where all can, always.

    An environment whose arms come and go has a method of this name, without `environment`.

    Examples
    --------
    >>> from armlet.environments import News
    >>> present(News(theta=((1.0,), (2.0,)), births=(1, 3), deaths=(3, 9)), 3)
    array([[ True, False],
           [ True, False],
           [False,  True]])
    """
    ask = getattr(environment, "present", None)
    if ask is None:
        return None
    found: Bool | None = ask(n, start=start)
    return found


def delay(environment: Environment) -> int:
    """Return how many steps are decided before the reward of a step arrives; 0 where an environment has no `delay`."""
    return int(getattr(environment, "delay", 0))


def is_still(environment: Environment) -> bool:
    """Return whether all arms stay and rewards come at once."""
    return present(environment, 1) is None and not delay(environment)


def check_still(environment: Environment, who: str) -> None:
    """Refuse an environment whose arms come and go, or whose rewards come late, for who plays neither."""
    if not is_still(environment):
        what = "has rewards that come late" if delay(environment) else "has arms that come and go"
        raise InvalidValueError(f"{type(environment).__name__} {what}, which {who} does not play; use armlet.simulate")


EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What the bound needs to know of a problem.

    `delta_min` is in units of reward, `sigma` and `L` too; `delta_max` and `Q` in units of reward for a
    unit of context; `sigma_min` in squared units of context.

    Examples
    --------
    >>> theta = np.array([[3.0, 0.0], [0.0, 4.0]])
    >>> table = FiniteEnvironment(contexts=np.eye(2), chances=np.array([0.9, 0.1]), means=theta)
    >>> constants = Constants.of(table, theta, sigma=1.0)
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
    def of(cls, table: FiniteEnvironment, theta: Float64, sigma: float) -> Self:
        """Compute the constants of a finite environment.

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
        """Describe what the constants are; `unit` is that of the rewards.

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
    """Return the smallest eigenvalue of E xx' that is not zero for the contexts of Section 4.1, in closed form.

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


def noise_sigma(table: FiniteEnvironment) -> float:
    """Return the smallest sub-gaussian constant of a table's noise: the largest over its contexts and arms.

    A uniform on [-c, c] has constant c / sqrt 3, its standard deviation; a gaussian its own; 0/1 rewards
    that of `bernoulli_sigma`.

    Examples
    --------
    >>> means = np.array([[0.5, 0.1]])
    >>> noise_sigma(FiniteEnvironment(contexts=np.eye(1), chances=np.ones(1), means=means, noise="bernoulli"))
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
    """Return the smallest sub-gaussian constant of 0/1 variables with means p.

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
