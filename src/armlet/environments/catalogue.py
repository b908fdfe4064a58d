"""A catalogue: hundreds of items at any time, which have features, and come and go.

What one item pays tells about those like it. A policy that has a model for each arm meets every item anew, and most are
gone before it knows them; one model over the features of context and item (`armlet.ActionBandit`) starts with what the
others taught. Regret is against the best item that is there.
Drawing n steps is O(n (d + K)) with K all items that ever come, their means O(n K (d + f)) for f features of an item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from armlet.environments.environment import Constants, Theta, as_rows, check_between, check_steps, draw_rewards
from armlet.environments.news import Payment, check_lives, presence
from armlet.errors import InvalidValueError
from armlet.types import Bool, Float64, Int64

Taste: TypeAlias = Literal["products", "distance"]
VARIANCES = {"context": 0.25, "item": 0.5, "products": 0.5}  # of a gaussian score: sd 1.1, of which items make 1.0
CLICKS, QUIETER = 0.05, 0.65  # the mean chance of a click, and by how much its score is smaller than a gaussian one
REACH = 0.6  # "distance": the standard deviation of what customers like best, in each feature
SAMPLE = 256  # contexts by which the mean chance of a click is set


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Items with features that come and go; contexts are standard gaussians.

    The score of item z in context x is (1, x)' weights (1, z) with `taste="products"`. With "distance" it is
    (1, x)' weights[:, 0] - |(1, x)' weights[:, 1:] - z|^2 / 2: every customer likes items near a point of their own,
    which is not linear in the products of x and z.

    Parameters
    ----------
    items : tuple of tuples of float, shape (K, f)
        The features of each item that ever comes.
    weights : tuple of tuples of float, shape (1 + d, 1 + f)
        What features of context and item are worth together; the first row and column are those of the constant.
    effects : tuple of float, shape (K,)
        What is added to the score of each item, which no feature tells.
    births, deaths
        Item a can be played at steps births[a] <= t < deaths[a]. At every step some item can; after the last death, the
        items that were there last stay.
    taste
        What the score is.
    noise, scale
        "gaussian": the score plus noise of standard deviation `scale`; "bernoulli": a click with chance
        1 / (1 + exp(-score)).

    Examples
    --------
    >>> environment = Catalogue.draw(np.random.default_rng(1), horizon=1000, alive=50)
    >>> environment.n_arms, environment.dim, environment.features.shape
    (550, 5, (550, 6))
    >>> environment.offered(1).size, environment.offered(400)[[0, -1]].tolist()
    (50, [11, 249])
    """

    items: Theta
    weights: Theta
    effects: tuple[float, ...]
    births: tuple[int, ...]
    deaths: tuple[int, ...]
    taste: Taste = "products"
    noise: Payment = "gaussian"
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_between("scale", self.scale, 0.0, math.inf)
        if self.taste not in ("products", "distance"):
            raise InvalidValueError(f"taste is {self.taste!r}; choose 'products' or 'distance'")
        if self.noise not in ("gaussian", "bernoulli"):
            raise InvalidValueError(f"noise is {self.noise!r}; choose 'gaussian' or 'bernoulli'")
        check_lives(self.births, self.deaths, self.n_arms)
        if len(self.effects) != self.n_arms:
            raise InvalidValueError(f"there are {self.n_arms} items but {len(self.effects)} effects; give one each")
        if any(len(row) != len(self.weights[0]) - 1 for row in self.items) or len(self.weights) < 2:
            raise InvalidValueError("weights need a row more than contexts have values, and a column more than items")
        if not all(np.isfinite(part).all() for part in (self.items, self.weights, self.effects)):
            raise InvalidValueError("items, weights and effects must be finite")

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        horizon: int = 5_000,
        alive: int = 200,
        turnover: float = 0.5,
        dim: int = 5,
        item_dim: int = 6,
        effect: float = 0.0,
        taste: Taste = "products",
        noise: Payment = "gaussian",
        scale: float = 1.0,
    ) -> Self:
        """Draw a catalogue of `alive` items, of which a random one is replaced on every (1 / turnover)-th step.

        Features are standard gaussians, and effects have standard deviation `effect`. Gaussian scores of "products"
        have a standard deviation of 1.1, of which the item decides 1.0: half of it by itself, half by how it suits the
        context, by variance. Clicks come in 5 % of all cases.
        """
        if min(horizon, alive, dim, item_dim) < 1:
            raise InvalidValueError(
                f"horizon is {horizon}, alive {alive}, dim {dim} and item_dim {item_dim}; give 1 or more of each"
            )
        check_between("turnover", turnover, 0.0, 1.0)
        check_between("effect", effect, 0.0, math.inf)
        births, deaths = _lives(rng, horizon, alive, turnover)
        items = rng.standard_normal((len(births), item_dim))
        made = cls(
            items=as_rows(items),
            weights=as_rows(_weights(rng, dim, item_dim, taste) * (QUIETER if noise == "bernoulli" else 1.0)),
            effects=tuple((effect * rng.standard_normal(len(births))).tolist()),
            births=births,
            deaths=deaths,
            taste=taste,
            noise=noise,
            scale=scale,
        )
        return made._with_clicks(rng, alive) if noise == "bernoulli" else made

    @property
    def n_arms(self) -> int:
        """K, the number of items that ever come."""
        return len(self.items)

    @property
    def dim(self) -> int:
        """d, the number of values in a context."""
        return len(self.weights) - 1

    @property
    def features(self) -> Float64:
        """The features of each item: (K, f)."""
        return np.array(self.items)

    def present(self, n: int, *, start: int = 0) -> Bool:
        """Return which items can be played at steps start + 1 to start + n: (n, K)."""
        return presence(self.births, self.deaths, n, start)

    def offered(self, t: int) -> Int64:
        """Return the places of the items that can be played at step t, in the order of their births."""
        return np.flatnonzero(self.present(1, start=t - 1)[0])

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n contexts, independent standard gaussians: (n, d)."""
        check_steps(n, start)
        return rng.standard_normal((n, self.dim))

    def means(self, X: Float64, *, start: int = 0) -> Float64:
        """Return the expected reward of every item in every context: (n, K)."""
        return self.means_of(np.arange(self.n_arms), X, start=start)

    def means_of(self, places: Int64, X: Float64, *, start: int = 0) -> Float64:
        """Return the expected reward of some items, by their places, in every context: (n, len(places)).

        Examples
        --------
        >>> both = Catalogue(items=((2.0,), (3.0,)), weights=((0.0, 1.0), (0.5, 10.0)), effects=(0.0, 0.25),
        ...                  births=(1, 1), deaths=(9, 9))
        >>> both.means_of(np.array([1]), np.array([[0.0], [1.0]])).tolist()
        [[3.25], [33.75]]
        """
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise InvalidValueError(f"dim is {self.dim} but the contexts have shape {X.shape}; give (n, {self.dim})")
        check_steps(len(X), start)
        means: Float64 = self._score(X, self.features[places]) + np.array(self.effects)[places]
        if self.noise == "bernoulli":
            means = 1.0 / (1.0 + np.exp(-means))
        return means

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every item would pay in every context: (n, K)."""
        return draw_rewards(rng, self.means(X, start=start), self.noise, self.scale)

    def table(self) -> None:
        """Return None: contexts are not few."""

    def constants(self) -> Constants:
        """Refuse: Theorem 2 knows only arms that stay, with a model of their own."""
        raise InvalidValueError("delta_min does not exist: the items come and go")

    def describe(self) -> list[str]:
        """Describe what the environment means.

        Examples
        --------
        >>> for line in Catalogue.draw(np.random.default_rng(0), noise="bernoulli").describe():
        ...     print(line)
        Catalogue: 2700 items of 6 features that come and go, 200 at the start
        contexts: 5 values, independent standard gaussian entries
        rewards: 1 for a click, else 0; its log odds are products of context and item
        """
        score = "products of context and item" if self.taste == "products" else "a distance of context and item"
        if any(self.effects):
            score += ", and an effect of the item that no feature tells"
        clicks, values = f"1 for a click, else 0; its log odds are {score}", f"{score}; noise {self.scale:g}"
        return [
            f"Catalogue: {self.n_arms} items of {len(self.items[0])} features that come and go, "
            f"{self.offered(1).size} at the start",
            f"contexts: {self.dim} values, independent standard gaussian entries",
            f"rewards: {clicks if self.noise == 'bernoulli' else values}",
        ]

    def _score(self, X: Float64, Z: Float64) -> Float64:
        wanted = np.column_stack([np.ones(len(X)), X]) @ np.array(self.weights)  # (n, 1 + f)
        scores: Float64 = wanted[:, :1] + wanted[:, 1:] @ Z.T
        if self.taste == "distance":
            scores -= np.square(wanted[:, 1:]).sum(axis=1, keepdims=True) / 2 + np.square(Z).sum(axis=1) / 2
        return scores

    def _with_clicks(self, rng: np.random.Generator, alive: int) -> Self:
        """Return it with the constant by which clicks come as often as they should, found by bisection."""
        X = rng.standard_normal((SAMPLE, self.dim))
        score = self._score(X, self.features[:alive]) + np.array(self.effects)[:alive]
        low, high = -50.0, 50.0
        for _ in range(50):
            middle = (low + high) / 2
            often = np.mean(1.0 / (1.0 + np.exp(-score - middle)))
            low, high = (low, middle) if often > CLICKS else (middle, high)
        weights = np.array(self.weights)
        weights[0, 0] += middle
        return type(self)(**{name: getattr(self, name) for name in self.__slots__} | {"weights": as_rows(weights)})


def _lives(
    rng: np.random.Generator, horizon: int, alive: int, turnover: float
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Replace a random item whenever one more is due: births and deaths of all."""
    births, deaths = [1] * alive, [horizon + 1] * alive
    there = list(range(alive))
    due = np.floor(turnover * np.arange(horizon + 1) + 1e-9).astype(int)
    for t in np.flatnonzero(np.diff(due, prepend=0)).tolist():
        if 1 < t <= horizon:
            place = int(rng.integers(alive))
            deaths[there[place]] = t
            there[place] = len(births)
            births.append(t)
            deaths.append(horizon + 1)
    return tuple(births), tuple(deaths)


def _weights(rng: np.random.Generator, dim: int, item_dim: int, taste: Taste) -> Float64:
    W = rng.standard_normal((1 + dim, 1 + item_dim))
    W[0, 0] = 0.0
    W[1:, 0] *= math.sqrt(VARIANCES["context"] / dim)
    if taste == "distance":
        W[0, 1:] = 0.0
        W[1:, 1:] *= REACH / math.sqrt(dim)
    else:
        W[0, 1:] *= math.sqrt(VARIANCES["item"] / item_dim)
        W[1:, 1:] *= math.sqrt(VARIANCES["products"] / (dim * item_dim))
    return W
