"""What an environment is: the stochastic setting of Section 3, with everything a simulation asks of it.

An environment is settings only. It is handed its randomness, one generator for contexts and another for noise, so that
contexts are the same for every policy and however many rewards are drawn. One with finitely many contexts is also a
table, which the kernel simulates whole, and in jumps from one exploration to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np

from armlet.errors import InvalidValueError
from armlet.types import Bool, Float64

if TYPE_CHECKING:
    from armlet.environments.constants import Constants

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
