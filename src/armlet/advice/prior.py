"""What a user can say before there is any data: how many arms and features, how large effects and noise are.

A context is a constant 1 and d - 1 features: standard normal ones for "numbers", flags that are on half of the time for
"clicks". Every coefficient of every arm is drawn alike, then all are scaled so that playing at random loses exactly
the effect against the best arm. O(M K d) a problem for M sampled contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

import numpy as np

from armlet.advice.problem import FEW, SampledProblem, draw_from, sample_size
from armlet.environments.finite import FiniteWorld
from armlet.environments.linear_arms import bit_law
from armlet.errors import ArgumentError, InvalidValueError
from armlet.inputs.settings import unboxed
from armlet.types import Float64

Between: TypeAlias = float | tuple[float, float]
"""One number, or the lowest and the highest that it may be."""

HALVINGS: Final = 60  # of the interval that holds the scale: down to the last bit


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Ranges for what is not known; every sampled problem draws its own values from them.

    Parameters
    ----------
    n_arms, dim
        K and d, whole numbers or (lowest, highest). `dim` counts a constant 1, so 1 means no features at all.
    effect
        What playing at random loses against always playing the best arm, a step, in units of reward; a range is drawn
        from evenly in its logarithm.
    noise
        The standard deviation of a reward around its mean; not for "clicks", whose noise follows from their rates.
    rewards
        "numbers", with gaussian noise, or "clicks", 0 or 1.
    base_rate
        The level of rewards, the mean of a random arm: for clicks a rate between 0 and 1, which must be given; for
        numbers 0 if left out.

    Examples
    --------
    >>> prior = Prior(n_arms=5, dim=(2, 4), effect=(0.1, 0.5), noise=1.0)
    >>> [problem.dim for problem in prior.sample(4, seed=1)]
    [4, 3, 3, 3]
    >>> Prior(n_arms=5, dim=2, effect=0.5, rewards="clicks", base_rate=0.03)
    Traceback (most recent call last):
    armlet.errors.ArgumentError: effect is 0.5 but base_rate is 0.03: at such a rate 5 arms differ by 0.12 ...
    """

    n_arms: int | tuple[int, int]
    dim: int | tuple[int, int]
    effect: Between
    noise: Between | None = None
    rewards: Literal["numbers", "clicks"] = "numbers"
    base_rate: Between | None = None

    def __post_init__(self) -> None:
        for name, least in (("n_arms", 2), ("dim", 1)):
            low, high = _ends(name, getattr(self, name))
            if low < least or low % 1 or high % 1:
                value, text = getattr(self, name), "} is {value!r}; give whole numbers of at least {least}"
                raise ArgumentError("{" + name + text, value=value, least=least)
        _positive("effect", self.effect)
        if self.rewards not in ("numbers", "clicks"):
            raise InvalidValueError(f"rewards is {self.rewards!r}; choose 'numbers' or 'clicks'")
        self._check_noise()

    def _check_noise(self) -> None:
        if self.rewards == "numbers":
            if self.noise is None:
                raise InvalidValueError("noise is missing; give the standard deviation of a reward around its mean")
            _positive("noise", self.noise)
            if self.base_rate is not None:
                _ends("base_rate", self.base_rate)
            return
        if self.noise is not None:
            raise InvalidValueError(
                f"noise is {self.noise!r}, but that of clicks follows from their rate; leave it out"
            )
        low, high = _ends("base_rate", self.base_rate)
        if not 0 < low <= high < 1:
            text = "{base_rate} is {value!r}; give a share of clicks between 0 and 1, such as 0.03"
            raise ArgumentError(text, value=self.base_rate)
        arms, effect = int(_ends("n_arms", self.n_arms)[0]), _ends("effect", self.effect)[1]
        most = min((arms - 1) * low, 1 - high)  # one arm has all the clicks that there are; no rate is above 1
        if effect > most:
            raise ArgumentError(
                "effect is {asked:g} but {base_rate} is {rate}: at such a rate {arms} arms differ by {most:g} at most; "
                "give a smaller effect or a higher {base_rate}",
                asked=effect,
                rate=_say(self.base_rate),
                arms=arms,
                most=most,
            )

    def words(self) -> str:
        """Say what is assumed, in one line.

        Examples
        --------
        >>> Prior(n_arms=5, dim=(2, 4), effect=0.1, noise=1.0).words()
        'a guess: 5 arms, contexts of 2 to 4 values, effect 0.1, noise 1, mean reward 0'
        """
        if self.rewards == "clicks":
            spread = f"clicks at {_say(self.base_rate)}"
        else:
            spread = f"noise {_say(self.noise)}, mean reward {_say(self.base_rate or 0.0)}"
        shape = f"{_say(self.n_arms)} arms, contexts of {_say(self.dim)} values"
        return f"a guess: {shape}, effect {_say(self.effect)}, {spread}"

    def sample(self, n: int, seed: int) -> list[SampledProblem]:
        """Draw n problems; the first ones are the same whatever n."""
        return [self._draw(rng) for rng in draw_from(n, seed)]

    def _draw(self, rng: np.random.Generator) -> SampledProblem:
        K, d = _whole(rng, self.n_arms), _whole(rng, self.dim)
        effect = _log_uniform(rng, self.effect)
        level = 0.0 if self.base_rate is None else float(rng.uniform(*_pair(self.base_rate)))
        X, chances = self._contexts(rng, d)
        clicks = self.rewards == "clicks"
        theta = rng.uniform(-1.0, 1.0, (K, d)) if clicks else rng.standard_normal((K, d))
        theta[:, 0] -= float(chances @ (X @ theta.T).mean(axis=1))  # a random arm in a random context earns 0
        spread = X @ theta.T
        scale = _scale(spread, chances, level, effect) if clicks else effect / _gap(spread, chances)
        means, theta = level + scale * spread, scale * theta
        theta[:, 0] += level
        table = FiniteWorld(
            contexts=X,
            chances=chances,
            means=means.clip(0.0, 1.0) if clicks else means,
            noise="bernoulli" if clicks else "gaussian",
            scale=1.0 if clicks else _log_uniform(rng, cast(Between, self.noise)),
        )
        return SampledProblem(table=table, theta=theta, contexts="sampled" if d > 1 and not clicks else "all")

    def _contexts(self, rng: np.random.Generator, d: int) -> tuple[Float64, Float64]:
        if self.rewards == "clicks" and 2 ** (d - 1) <= FEW:
            flags, chances = bit_law((0.5,) * (d - 1))
            return np.hstack([np.ones((len(flags), 1)), flags]), chances
        m = 1 if d == 1 else sample_size(d)
        features = rng.integers(0, 2, (m, d - 1)) if self.rewards == "clicks" else rng.standard_normal((m, d - 1))
        return np.hstack([np.ones((m, 1)), features]), np.full(m, 1 / m)


def _gap(means: Float64, chances: Float64) -> float:
    return float(chances @ (means.max(axis=1) - means.mean(axis=1)))


def _scale(centred: Float64, chances: Float64, level: float, effect: float) -> float:
    """Find by halving how far rates must spread for the effect, when those below 0 or above 1 are cut off."""

    def gap(scale: float) -> float:
        return _gap((level + scale * centred).clip(0.0, 1.0), chances)

    high = effect / _gap(centred, chances)
    for _ in range(HALVINGS):
        if gap(high) >= effect:
            break
        high *= 2
    else:
        raise ArgumentError(
            "effect is {asked:.3g} but {base_rate} is {level:.3g}, and rates below 0 or above 1 do not exist; "
            "give a smaller effect or a higher {base_rate}",
            asked=effect,
            level=level,
        )
    low = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if gap(middle) >= effect else (middle, high)
    return high


def _ends(name: str, value: object) -> tuple[float, float]:
    pair = tuple(unboxed(end) for end in value) if isinstance(value, tuple | list) else (unboxed(value),) * 2
    if len(pair) != 2 or not all(isinstance(end, int | float) and not isinstance(end, bool) for end in pair):
        raise ArgumentError("{" + name + "} is {value!r}; give a number, or (lowest, highest)", value=value)
    low, high = cast("tuple[float, float]", pair)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        text = "} is {value!r}; give a finite number, or (lowest, highest) in this order"
        raise ArgumentError("{" + name + text, value=value)
    return low, high


def _pair(value: Between) -> tuple[float, float]:
    return (value[0], value[1]) if isinstance(value, tuple | list) else (value, value)


def _positive(name: str, value: Between) -> None:
    if _ends(name, value)[0] <= 0:
        raise InvalidValueError(f"{name} is {value!r}; give something above 0")


def _whole(rng: np.random.Generator, value: int | tuple[int, int]) -> int:
    low, high = _pair(value)
    return int(rng.integers(int(low), int(high) + 1))


def _log_uniform(rng: np.random.Generator, value: Between) -> float:
    low, high = _pair(value)
    return float(low * (high / low) ** rng.random())


def _say(value: Between | None) -> str:
    low, high = _pair(cast(Between, value))
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
