"""What an environment is: the stochastic setting of Section 3, with everything a simulation asks of it.

An environment is settings only. It is handed its randomness, one generator for contexts and another for noise, so that
contexts are the same for every policy and however many rewards are drawn. One with finitely many contexts is also a
table, which the kernel simulates whole, and in jumps from one exploration to the next.

Its constants are those that the regret bound of Theorem 2 is written in. Two conventions for the size of the noise Z
are never mixed: `sigma` is the standard sub-gaussian constant, E exp(g Z) <= exp(g^2 sigma^2 / 2), and `L` the paper's,
E exp(g Z) <= exp(g^2 L^2), so L = sigma / sqrt 2. O(M d^2 + d^3 + M K d) for M contexts.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
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
        """Describe in a few lines what the environment means, in which units, and what its constants are."""


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
    eligible: Bool | None = ask(n, start=start)
    return eligible


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


# ---- linear environments: arms with a parameter theta each and means x'theta (Equation 1), the base of all others; and
# the few laws that several of them draw from: 0/1 contexts, contexts from a list, and the noise that a table can name.
# `Linear` itself is Section 3 with the law of contexts and the law of noise to choose, of any size. Theorem 2 needs
# finitely many contexts. On a continuous law the gap between the best arm and the next comes arbitrarily close to 0:
# delta_min is 0 and the theorem is silent. Drawing n steps is O(n (d + K)), their means O(n K d)

Theta: TypeAlias = tuple[tuple[float, ...], ...]
"""One row of numbers for each arm, (K, d)."""

MAX_BITS = 16  # 65,536 contexts are a table; with more, only draws


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearArms(ABC):
    """An environment whose arms pay x'theta on average. Its children say where contexts and noise come from.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The parameter of each arm, in units of reward.
    """

    theta: Theta

    def __post_init__(self) -> None:
        dims = {len(row) for row in self.theta}
        if len(dims) != 1 or 0 in dims:
            raise InvalidValueError(f"theta needs rows of one length, at least 1; got lengths {sorted(dims)}")
        if not np.isfinite(self.theta).all():
            raise InvalidValueError(f"theta has a value that is not finite; got {self.theta}")

    @classmethod
    @abstractmethod
    def draw(cls, rng: np.random.Generator) -> Self:
        """Draw the parameters of an environment; children take more settings, all with defaults."""

    @property
    def n_arms(self) -> int:
        """K, the number of arms."""
        return len(self.theta)

    @property
    def dim(self) -> int:
        """d, the number of values in a context."""
        return len(self.theta[0])

    @abstractmethod
    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw the contexts of steps start + 1 to start + n: (n, d)."""

    def means(self, X: Float64, *, start: int = 0) -> Float64:
        """Return the expected reward of every arm in every context: (n, K)."""
        self.check_contexts(X, start)
        mu: Float64 = X @ np.array(self.theta).T
        return mu

    def check_contexts(self, X: Float64, start: int) -> None:
        """Refuse contexts of another shape, and steps that do not exist."""
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise InvalidValueError(f"dim is {self.dim} but the contexts have shape {X.shape}; give (n, {self.dim})")
        check_steps(len(X), start)

    def reward_noise(self) -> tuple[Noise, float]:
        """Return how rewards spread around their means; where that has no name, `rewards` is another."""
        return "none", 0.0

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay in every context: (n, K)."""
        return draw_rewards(rng, self.means(X, start=start), *self.reward_noise())

    def table(self) -> FiniteEnvironment | None:
        """Return the environment as a table, if it is one."""
        return None

    def constants(self) -> Constants:
        """Return the exact constants of an environment that is a table."""
        if (table := self.table()) is None:
            raise InvalidValueError(
                f"delta_min needs every context of the environment, but there are too many; dim is {self.dim}"
            )
        return Constants.of(table, np.array(self.theta), noise_sigma(table))

    @abstractmethod
    def describe(self) -> list[str]:
        """Describe what the environment means, in which units, and what its constants are."""

    def describe_constants(self, unit: str = "") -> list[str]:
        """Describe what the constants are, or why there are none; `unit` is that of the rewards."""
        try:
            return self.constants().describe(unit)
        except ValueError as reason:
            return [f"no constants: {reason}"]

    def tabulate(self, contexts: Float64, chances: Float64) -> FiniteEnvironment:
        """Make the table of an environment from its law of contexts."""
        means, (noise, scale) = LinearArms.means(self, contexts), self.reward_noise()
        if noise == "bernoulli":
            inside = means.clip(0.0, 1.0)
            means = np.where(np.abs(means - inside) < 1e-12, inside, means)  # forgive rounding, nothing else
        return FiniteEnvironment(contexts=contexts, chances=chances, means=means, noise=noise, scale=scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedContexts(LinearArms):
    """A linear environment whose contexts are few enough to list, so that it is a table."""

    @abstractmethod
    def context_law(self) -> tuple[Float64, Float64]:
        """Return every context and its chance: (M, d) and (M,)."""

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n contexts: (n, d)."""
        check_steps(n, start)
        return draw_rows(rng, n, *self.context_law())

    def table(self) -> FiniteEnvironment:
        """Return the environment as a table of its contexts."""
        return self.tabulate(*self.context_law())


def as_rows(matrix: Float64) -> Theta:
    """Turn a matrix into settings.

    Examples
    --------
    >>> as_rows(np.eye(2))
    ((1.0, 0.0), (0.0, 1.0))
    """
    return tuple(map(tuple, matrix.tolist()))


def check_steps(n: int, start: int) -> None:
    """Refuse steps that do not exist."""
    if n < 0 or start < 0:
        raise InvalidValueError(f"n is {n} and start is {start}; both must be 0 or more")


def check_between(name: str, value: float, low: float, high: float) -> None:
    """Refuse a setting outside its range; an infinite `high` still asks for a finite value."""
    if not (low <= value <= high and math.isfinite(value)):
        raise InvalidValueError(f"{name} is {value} but must lie between {low} and {high}")


def check_chances(name: str, chances: tuple[float, ...], count: int) -> None:
    """Refuse chances that are not one probability for each of `count` things."""
    if len(chances) != count or not all(0 <= chance <= 1 for chance in chances):
        raise InvalidValueError(f"{name} is {chances} but needs {count} values between 0 and 1")


def scale_bits(bits: Float64) -> Float64:
    """Scale rows of zeros and ones to length 1; a row of zeros stays.

    Examples
    --------
    >>> scale_bits(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).round(3)
    array([[0.   , 0.   ],
           [0.   , 1.   ],
           [0.707, 0.707]])
    """
    # a row of zeros and ones is zero or at least 1 long, so the floor of 1 spares the zero row only
    lengths: Float64 = np.linalg.norm(bits, axis=1, keepdims=True)
    return bits / np.maximum(lengths, 1.0)


def bit_law(chances: tuple[float, ...]) -> tuple[Float64, Float64]:
    """Return every row of independent bits and its chance: (2^d, d) and (2^d,).

    Examples
    --------
    >>> rows, chances = bit_law((0.5, 0.9))
    >>> rows.tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> chances.round(2).tolist()
    [0.05, 0.45, 0.05, 0.45]
    """
    rows = np.array(list(itertools.product((0.0, 1.0), repeat=len(chances))))
    each = np.array(chances)
    law: Float64 = np.where(rows == 1.0, each, 1.0 - each).prod(axis=1)
    return rows, law / law.sum()


def draw_rows(rng: np.random.Generator, n: int, rows: Float64, chances: Float64) -> Float64:
    """Draw n rows of a list, each with its chance: (n, d)."""
    edges = chances.cumsum()
    chosen: Float64 = rows[np.searchsorted(edges / edges[-1], rng.random(n), side="right")]
    return chosen


def draw_rewards(rng: np.random.Generator, mu: Float64, noise: Noise, scale: float) -> Float64:
    """Draw rewards with means mu, in the words of `core.finite.Noise`."""
    if noise == "proportional":
        return mu * (1.0 + scale * rng.uniform(-1.0, 1.0, size=mu.shape))
    if noise == "gaussian":
        return mu + scale * rng.standard_normal(mu.shape)
    if noise == "bernoulli":
        return (rng.random(mu.shape) < mu).astype(np.float64)
    return mu.copy()


Law: TypeAlias = Literal["gaussian", "sphere", "bits", "constant"]
WORDS: dict[Law, str] = {
    "gaussian": "independent standard gaussian entries",
    "sphere": "length 1, every direction as likely as any other",
    "bits": "fair coin flips, 0 or 1, not scaled",
    "constant": "a 1, then independent standard gaussian entries",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear(LinearArms):
    """A linear environment.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The parameter of each arm.
    law
        Where contexts come from: "gaussian" entries, the unit "sphere", "bits", fair coin flips, or "constant", a 1 and
        gaussian entries after it.
    noise, scale
        How rewards spread, as in `Noise`. 0/1 rewards need the law "bits" and a theta
        whose probabilities stay in [0, 1].

    Examples
    --------
    >>> environment = Linear.draw(np.random.default_rng(0), n_arms=3, dim=10, law="sphere")
    >>> X = environment.contexts(np.random.default_rng(1), 2)
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
        check_steps(n, start)
        if self.law == "bits":
            return rng.integers(0, 2, size=(n, self.dim)).astype(np.float64)
        if self.law == "constant":
            return np.hstack([np.ones((n, 1)), rng.standard_normal((n, self.dim - 1))])
        X = rng.standard_normal((n, self.dim))
        return X / np.linalg.norm(X, axis=1, keepdims=True) if self.law == "sphere" else X

    def reward_noise(self) -> tuple[Noise, float]:
        return self.noise, self.scale

    def table(self) -> FiniteEnvironment | None:
        """Return the environment as a table, for "bits" up to 16 dimensions."""
        if self.law == "bits" and self.dim <= MAX_BITS:
            return self.tabulate(*bit_law((0.5,) * self.dim))
        if self.law == "sphere" and self.dim == 1:  # a sphere of two points
            return self.tabulate(np.array([[-1.0], [1.0]]), np.full(2, 0.5))
        return None

    def sigma_min(self) -> float:
        """Return sigma_min in closed form, for any d: 1 for "gaussian" and "constant", 1/d on the "sphere".

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
        """Return the exact constants of a table; on a continuous law delta_min does not exist."""
        if self.law != "bits" and self.table() is None:
            raise InvalidValueError(
                f"delta_min does not exist: on the law {self.law!r} gaps come arbitrarily close to 0"
            )
        return LinearArms.constants(self)

    def describe(self) -> list[str]:
        """Describe what the environment means, and what its constants are.

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
