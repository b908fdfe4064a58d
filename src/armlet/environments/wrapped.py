"""Environments that are made from another: with delayed rewards, with one bit of feedback, or in other units.

They are made and not drawn, so they are not in the registry. Drawing costs what the inner environment's steps cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from armlet.environments.environment import (
    Constants,
    Environment,
    FiniteEnvironment,
    LinearArms,
    Noise,
    check_between,
    present,
)
from armlet.environments.environment import delay as delay_of
from armlet.errors import InvalidValueError
from armlet.types import Bool, Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class AroundAnother:
    """All but what such an environment is about: `rewards`, `table`, `describe`, and what it changes besides.

    It is made from an environment and not drawn, so it is not in the registry.
    """

    environment: Environment

    @property
    def n_arms(self) -> int:
        """K, the inner environment's."""
        return self.environment.n_arms

    @property
    def dim(self) -> int:
        """d, the inner environment's."""
        return self.environment.dim

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw the inner environment's contexts: (n, d)."""
        return self.environment.contexts(rng, n, start=start)

    def means(self, X: Float64, *, start: int = 0) -> Float64:
        """Return the inner environment's means: (n, K)."""
        return self.environment.means(X, start=start)

    def present(self, n: int, *, start: int = 0) -> Bool | None:
        """Return which arms of the inner environment can be played: (n, K), or None if all can."""
        return present(self.environment, n, start=start)

    def constants(self) -> Constants:
        """Return the inner environment's constants."""
        return self.environment.constants()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delayed(AroundAnother):
    """Another environment, whose rewards take their time.

    It is made from an environment and not drawn, so it is not in the registry. It is no table: the kernel plays tables
    without delay. `constants` are the inner environment's, to which delay does not matter.

    Parameters
    ----------
    environment
        The inner environment.
    delay
        Steps that are decided between a decision and its reward; 0 is the inner environment itself. Rewards that would
        come after the end of a run never do.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> environment = Delayed(environment=FigureA(theta=((1.0, 0.0), (0.0, 2.0))), delay=1000)
    >>> environment.n_arms, environment.delay
    (2, 1000)
    """

    delay: int

    def __post_init__(self) -> None:
        if self.delay < 0:
            raise InvalidValueError(f"delay is {self.delay}; give 0 steps or more")
        if delay_of(self.environment):
            raise InvalidValueError(
                "environment has a delay of its own; give the inner environment and the whole delay"
            )

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw the rewards of these steps, whenever they will arrive: (n, K)."""
        return self.environment.rewards(rng, X, start=start)

    def table(self) -> None:
        """Return None: a table pays at once."""

    def describe(self) -> list[str]:
        """Describe how late rewards are, then what the inner environment is."""
        return [f"Delayed: the reward of a step comes {self.delay:,} steps later", *self.environment.describe()]


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleBit(AroundAnother):
    """Another environment's contexts and means, but rewards that say 1 for the best arm and 0 for the others.

    The bit is free of noise and follows from the true means, which no experiment could know. It is not in the registry,
    for its rewards are not its means: regret is measured in the inner environment's units, as for any policy, while the
    policy sees the bit. So it breaks that one promise of `check_environment`, and is no table.

    Parameters
    ----------
    environment
        The inner environment. Where several arms are best, each of them pays 1.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> environment = OracleBit(environment=FigureA(theta=((1.0, 0.0), (0.0, 2.0))))
    >>> X = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 0.0]])
    >>> environment.rewards(np.random.default_rng(0), X)
    array([[1., 0.],
           [0., 1.],
           [1., 1.]])
    """

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:  # noqa: ARG002
        """Return 1 for every arm that is best in a context, 0 for the others: (n, K)."""
        mu = self.means(X, start=start)
        best: Float64 = (mu == mu.max(axis=1, keepdims=True)).astype(np.float64)
        return best

    def table(self) -> FiniteEnvironment | None:
        """Return None: a table's rewards have its means."""
        return None

    def describe(self) -> list[str]:
        """Describe that the feedback is privileged, then what the inner environment is."""
        return [
            "feedback: one bit, whether the arm is best; privileged and without noise",
            *self.environment.describe(),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescaled(AroundAnother):
    """Another environment, in other units.

    It is made from an environment and not drawn, so it is not in the registry. With a level or with offsets rewards are
    no longer linear in the context but affine: theta, and with it the constant Q, exists only where contexts have a
    constant among them.

    Parameters
    ----------
    environment
        The inner environment.
    reward_level, reward_scale
        Rewards are level + scale r; the scale is positive, or the best arm would become the worst.
    feature_scales, feature_offsets
        Contexts are scales x + offsets, a value for each feature; scales are not 0. Ones and zeros if left out.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> inner = FigureA(theta=((1.0, 0.0), (0.0, 2.0)))
    >>> environment = Rescaled(environment=inner, reward_level=100.0, reward_scale=3.0, feature_scales=(10.0, 1.0))
    >>> environment.means(np.array([[10.0, 0.0], [0.0, 1.0]]))
    array([[103., 100.],
           [100., 106.]])
    """

    environment: LinearArms
    reward_level: float = 0.0
    reward_scale: float = 1.0
    feature_scales: tuple[float, ...] = ()
    feature_offsets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not math.isfinite(self.reward_level):
            raise InvalidValueError(f"reward_level is {self.reward_level} but must be finite")
        check_between("reward_scale", self.reward_scale, math.ulp(0.0), math.inf)
        for name, neutral in (("feature_scales", 1.0), ("feature_offsets", 0.0)):
            values = getattr(self, name) or (neutral,) * self.dim
            if len(values) != self.dim or not np.isfinite(values).all():
                raise InvalidValueError(f"{name} is {values} but needs {self.dim} finite values, one for each feature")
            object.__setattr__(self, name, tuple(map(float, values)))
        if 0.0 in self.feature_scales:
            raise InvalidValueError(f"feature_scales is {self.feature_scales}; a scale of 0 would hide a feature")

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw contexts, in the new units: (n, d)."""
        return self._show(self.environment.contexts(rng, n, start=start))

    def means(self, X: Float64, *, start: int = 0) -> Float64:
        """Return the expected reward of every arm, in the new units: (n, K)."""
        self.environment.check_contexts(X, start)
        return self._pay(self.environment.means(self._inner(X), start=start))

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay, in the new units: (n, K)."""
        return self._pay(self.environment.rewards(rng, self._inner(X), start=start))

    def table(self) -> FiniteEnvironment | None:
        inner = self.environment.table()
        noise = None if inner is None else self._noise(inner.noise)
        if inner is None or noise is None:
            return None
        scale = self.reward_scale * inner.scale if noise == "gaussian" else inner.scale
        return self._table(inner, noise, scale)

    def constants(self) -> Constants:
        """Return the exact constants in the new units, where rewards stay linear."""
        inner, table = self.environment.constants(), self.environment.table()
        if table is None:
            raise InvalidValueError(
                "delta_min needs every context of the environment, but the inner environment is no table"
            )
        shown = self._table(table, "none", 1.0)
        slopes = self.reward_scale * np.array(self.environment.theta) / np.array(self.feature_scales)
        above = self.reward_level - slopes @ np.array(self.feature_offsets)  # (K,): what is added in every context
        theta = slopes + np.outer(above, _constant(shown)) if above.any() else slopes
        return Constants.of(shown, theta, self.reward_scale * inner.sigma)

    def describe(self) -> list[str]:
        """Describe what the units are, then what the inner environment is."""
        return [
            f"Rescaled: rewards are {self.reward_level:g} + {self.reward_scale:g} r",
            f"contexts are scales x + offsets; scales {self.feature_scales}, offsets {self.feature_offsets}",
            *(f"inside: {line}" for line in self.environment.describe()),
        ]

    def _show(self, X: Float64) -> Float64:
        shown: Float64 = X * np.array(self.feature_scales) + np.array(self.feature_offsets)
        return shown

    def _inner(self, X: Float64) -> Float64:
        back: Float64 = (X - np.array(self.feature_offsets)) / np.array(self.feature_scales)
        return back

    def _pay(self, rewards: Float64) -> Float64:
        paid: Float64 = self.reward_level + self.reward_scale * rewards
        return paid

    def _noise(self, noise: Noise) -> Noise | None:
        """Name the noise in the new units, if it still is one that tables know."""
        if noise == "proportional":  # to what it was proportional the level hides
            return None if self.reward_level else noise
        if noise == "bernoulli":
            return noise if (self.reward_level, self.reward_scale) == (0.0, 1.0) else None
        return noise

    def _table(self, inner: FiniteEnvironment, noise: Noise, scale: float) -> FiniteEnvironment:
        X, means = self._show(inner.contexts), self._pay(inner.means)
        return FiniteEnvironment(contexts=X, chances=inner.chances, means=means, noise=noise, scale=scale)


def _constant(table: FiniteEnvironment) -> Float64:
    """Find the v with x'v = 1 in every context that occurs: through it what is added becomes linear."""
    X = table.contexts[table.chances > 0]
    v = np.linalg.lstsq(X, np.ones(len(X)), rcond=1e-12)[0].astype(np.float64)
    if not np.allclose(X @ v, 1.0, rtol=0.0, atol=1e-9):
        raise InvalidValueError("Q does not exist: with a level or with offsets rewards are not linear in the context")
    return v
