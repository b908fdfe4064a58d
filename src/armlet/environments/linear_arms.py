"""What the worlds have in common: arms with a parameter theta each, and means x'theta (Equation 1).

Also the few laws that several of them draw from: 0/1 contexts, contexts from a list, and the noise that
a table of a finite world can name.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from armlet.environments.constants import Constants, noise_sigma
from armlet.environments.finite import FiniteWorld, Noise
from armlet.errors import InvalidValueError
from armlet.types import Float64

Theta: TypeAlias = tuple[tuple[float, ...], ...]
"""One row of numbers for each arm, (K, d)."""

MAX_BITS = 16  # 65,536 contexts are a table; with more, only draws


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearArms(ABC):
    """A world whose arms pay x'theta on average. Its children say where contexts and noise come from.

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
        """Draw the parameters of a world; children take more settings, all with defaults."""

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
        """Give the expected reward of every arm in every context: (n, K)."""
        self.check_contexts(X, start)
        mu: Float64 = X @ np.array(self.theta).T
        return mu

    def check_contexts(self, X: Float64, start: int) -> None:
        """Refuse contexts of another shape, and steps that do not exist."""
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise InvalidValueError(f"dim is {self.dim} but the contexts have shape {X.shape}; give (n, {self.dim})")
        check_steps(len(X), start)

    @abstractmethod
    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay in every context: (n, K)."""

    def table(self) -> FiniteWorld | None:
        """Give the world as a table, if it is one."""
        return None

    def constants(self) -> Constants:
        """Give the exact constants of a world that is a table."""
        if (table := self.table()) is None:
            raise InvalidValueError(
                f"delta_min needs every context of the world, but there are too many; dim is {self.dim}"
            )
        return Constants.of(table, np.array(self.theta), noise_sigma(table))

    @abstractmethod
    def describe(self) -> list[str]:
        """Say what the world means, in which units, and what its constants are."""

    def describe_constants(self, unit: str = "") -> list[str]:
        """Say what the constants are, or why there are none; `unit` is that of the rewards."""
        try:
            return self.constants().describe(unit)
        except ValueError as reason:
            return [f"no constants: {reason}"]

    def tabulate(self, contexts: Float64, chances: Float64, noise: Noise, scale: float) -> FiniteWorld:
        """Make the table of a world from its law of contexts."""
        means = LinearArms.means(self, contexts)
        if noise == "bernoulli":
            inside = means.clip(0.0, 1.0)
            means = np.where(np.abs(means - inside) < 1e-12, inside, means)  # forgive rounding, nothing else
        return FiniteWorld(contexts=contexts, chances=chances, means=means, noise=noise, scale=scale)


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
    """Give every row of independent bits and its chance: (2^d, d) and (2^d,).

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
