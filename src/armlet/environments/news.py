"""A site of news: arms arrive as a Poisson process, live for a while, and are gone.

Outside the paper, whose arms are there from the first step to the last. A policy meets each arm for some thousand steps
only, so what it costs to get to know an arm counts, and so does how soon it is tried at all. Regret is against the best
arm that is there.
Drawing n steps is O(n (d + K)) with K all arms that ever come, their means O(n K d).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from armlet.environments.environment import Constants, LinearArms, Noise, Theta, as_rows, check_between, check_steps
from armlet.errors import InvalidValueError
from armlet.types import Bool, Float64

Payment: TypeAlias = Literal["gaussian", "bernoulli"]
CONTEXTS: dict[Payment, str] = {
    "gaussian": "length 1, every direction as likely as any other",
    "bernoulli": "a 1 and fair signs",
}
CLICKS, SPREAD = 0.06, 0.03  # the mean chance of a click, and its standard deviation over contexts
TRIES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class News(LinearArms):
    """Arms that come and go.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The parameter of each arm that ever comes.
    births, deaths
        Arm a can be played at steps births[a] <= t < deaths[a]. At every step some arm can; after the last death, the
        arms that were there last stay.
    noise, scale
        "gaussian" with standard deviation `scale`, and contexts on the unit sphere; or "bernoulli", clicks, with
        contexts of a 1 and fair signs, and a theta whose chances stay in [0, 1].

    Examples
    --------
    >>> environment = News(theta=((1.0, 0.0), (0.0, 2.0)), births=(1, 3), deaths=(5, 9))
    >>> environment.present(6).tolist()[1:5]
    [[True, False], [True, True], [True, True], [False, True]]
    """

    births: tuple[int, ...]
    deaths: tuple[int, ...]
    noise: Payment = "gaussian"
    scale: float = 0.5

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_between("scale", self.scale, 0.0, math.inf)
        if self.noise not in CONTEXTS:
            raise InvalidValueError(f"noise is {self.noise!r}; choose 'gaussian' or 'bernoulli'")
        check_lives(self.births, self.deaths, self.n_arms)
        theta = np.array(self.theta)
        reach = np.abs(theta[:, 1:]).sum(axis=1)
        if self.noise == "bernoulli" and ((theta[:, 0] < reach).any() or (theta[:, 0] + reach > 1).any()):
            raise InvalidValueError("noise is 'bernoulli' but theta has means that are no probabilities")

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        horizon: int = 100_000,
        alive: float = 20.0,
        life: int = 5_000,
        dim: int = 5,
        noise: Payment = "gaussian",
        scale: float = 0.5,
    ) -> Self:
        """Draw arms that live `life` steps each, about `alive` of them at any time, up to the horizon.

        Births are a Poisson process that began long ago, given that no step is left without an arm. With gaussian
        noise theta are standard gaussians. Clicks come in 6 % of all cases, with a standard deviation of 3 % over
        contexts, half of which, by variance and on average, is the same for all arms.
        """
        if horizon < 1 or life < 1 or dim < 2:
            raise InvalidValueError(f"horizon is {horizon}, life {life} and dim {dim}; give at least 1, 1 and 2")
        check_between("alive", alive, 1.0, math.inf)
        for _ in range(TRIES):
            count = int(rng.poisson(alive * (horizon + life - 1) / life))
            births = np.sort(rng.integers(2 - life, horizon, size=count, endpoint=True)).tolist()
            deaths = [birth + life for birth in births]
            if births and _first_gap(births, deaths, horizon) is None:
                theta = _draw_theta(rng, count, dim, noise)
                return cls(theta=theta, births=tuple(births), deaths=tuple(deaths), noise=noise, scale=scale)
        raise InvalidValueError(f"alive is {alive:g}, but with so few arms some step is left without any; give more")

    def present(self, n: int, *, start: int = 0) -> Bool:
        """Return which arms can be played at steps start + 1 to start + n: (n, K)."""
        return presence(self.births, self.deaths, n, start)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        check_steps(n, start)
        if self.noise == "bernoulli":
            signs = 2.0 * rng.integers(0, 2, size=(n, self.dim - 1)) - 1.0
            return np.hstack([np.ones((n, 1)), signs])
        X = rng.standard_normal((n, self.dim))
        lengths: Float64 = np.linalg.norm(X, axis=1, keepdims=True)
        return X / lengths

    def reward_noise(self) -> tuple[Noise, float]:
        return self.noise, self.scale

    def constants(self) -> Constants:
        """Refuse: Theorem 2 knows only arms that stay."""
        raise InvalidValueError("delta_min does not exist: the arms come and go")

    def sigma_min(self) -> float:
        """Return sigma_min in closed form: 1/d on the sphere, 1 for a constant and fair signs."""
        return 1.0 if self.noise == "bernoulli" else 1.0 / self.dim

    def describe(self) -> list[str]:
        """Describe what the environment means, and what its constants are.

        Examples
        --------
        >>> for line in News.draw(np.random.default_rng(0), horizon=10_000).describe()[:3]:
        ...     print(line)
        News: 63 arms that come and go, 19 at the start
        contexts: 5 values, length 1, every direction as likely as any other
        rewards: gaussian noise of standard deviation 0.5 around x'theta, without unit
        """
        pays = "1 for a click with chance x'theta, else 0" if self.noise == "bernoulli" else ""
        spread = f"gaussian noise of standard deviation {self.scale:g} around x'theta, without unit"
        longest = np.linalg.norm(self.theta, axis=1).max()
        return [
            f"News: {self.n_arms} arms that come and go, {self.present(1).sum()} at the start",
            f"contexts: {self.dim} values, {CONTEXTS[self.noise]}",
            f"rewards: {pays or spread}",
            f"sigma_min = {self.sigma_min():.6g} and Q = {longest:.6g}",
            *self.describe_constants(),
        ]


def check_lives(births: Sequence[int], deaths: Sequence[int], n_arms: int) -> None:
    """Refuse births and deaths that are not one life for each arm, or that leave a step without any arm."""
    if not len(births) == len(deaths) == n_arms:
        raise InvalidValueError(f"there are {n_arms} arms but {len(births)} births, {len(deaths)} deaths")
    if any(birth >= death for birth, death in zip(births, deaths, strict=True)):
        raise InvalidValueError("some arm dies before it can be played; every death must come after the birth")
    if (step := _first_gap(births, deaths)) is not None:
        raise InvalidValueError(f"births and deaths leave no arm to play at step {step}")


def presence(births: Sequence[int], deaths: Sequence[int], n: int, start: int) -> Bool:
    """Return which arms can be played at steps start + 1 to start + n: (n, K)."""
    check_steps(n, start)
    # the last to die stay forever, so that a run may go on
    t = np.minimum(np.arange(start + 1, start + n + 1), max(deaths) - 1)[:, None]
    mask: Bool = (np.array(births) <= t) & (t < np.array(deaths))
    return mask


def _first_gap(births: Sequence[int], deaths: Sequence[int], end: float = math.inf) -> int | None:
    """Find the first step at which no arm can be played, up to the end, or the last birth if there is no end."""
    covered = 1  # all steps before it have an arm
    for birth, death in sorted(zip(births, deaths, strict=True)):
        if birth > covered:
            return covered
        covered = max(covered, death)
    return covered if math.isfinite(end) and covered <= end else None


def _draw_theta(rng: np.random.Generator, count: int, dim: int, noise: Payment) -> Theta:
    if noise == "gaussian":
        return as_rows(rng.standard_normal((count, dim)))
    common, own = _directions(rng, 1, dim - 1), _directions(rng, count, dim - 1)
    both = common + own  # common and own are orthogonal on average, so each has half of the variance
    # a sum of d - 1 terms is at most sqrt(d - 1) times their length: kept below the mean, so that chances stay chances
    length = (1 - 1e-12) * min(SPREAD, CLICKS / math.sqrt(dim - 1))
    slopes = length * both / np.linalg.norm(both, axis=1, keepdims=True)
    return as_rows(np.hstack([np.full((count, 1), CLICKS), slopes]))


def _directions(rng: np.random.Generator, count: int, dim: int) -> Float64:
    rows = rng.standard_normal((count, dim))
    lengths: Float64 = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / lengths
