"""What one arm gives more than another: in one context, or on average over contexts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inference import bounds
from armlet.inference.model import Ask, Model
from armlet.inference.regression import Direction, Regression, origin_of
from armlet.inference.student import t_quantile
from armlet.types import Arm, Float64


@dataclass(frozen=True, slots=True)
class Contrast:
    """The expected reward (or cost) of one arm less that of another."""

    first: Arm
    second: Arm
    where: str  # "on average over contexts" or "at x"
    value: float | None
    error: float | None
    low: float | None
    high: float | None
    freedom: float | None  # Welch's degrees of freedom, where the interval is a t
    level: float
    words: str  # what is guaranteed, or why there is no interval

    def __str__(self) -> str:
        head = f"{self.first} - {self.second}, {self.where}"
        if self.value is None:
            return f"{head}: not known. {self.words}"
        if self.low is None or self.high is None:
            return f"{head}: {self.value:.4g}, no interval. {self.words}"
        return f"{head}: {self.value:.4g} [{self.low:.4g} to {self.high:.4g}] ({100 * self.level:g} %). {self.words}"


@dataclass(frozen=True, slots=True)
class Contexts:
    """Where arms are compared: at one context, or at the mean of those seen, which is known up to an error."""

    x: Float64
    covariance: Float64  # of contexts, about their mean; zeros at one context
    rows: float  # behind the mean

    def variance(self, difference: Float64) -> float:
        """Give how much the mean context adds to the variance of a contrast."""
        return float(difference @ self.covariance @ difference) / self.rows


def contrast(model: Model, first: Arm, second: Arm, x: Float64 | None, ask: Ask) -> Contrast:
    """Compare two arms."""
    if first == second:
        raise InvalidValueError(f"first and second are both {first!r}; give two arms")
    places = (model.index(first), model.index(second))
    where = "on average over contexts" if x is None else f"at {x.tolist()}"
    if x is None and ask.interval == "anytime" and model.rows != "chosen":
        raise InvalidValueError("interval is 'anytime' but x is None: the mean context moves as rows come; give x")
    contexts = _mean_context(model) if x is None else Contexts(x, np.zeros((len(x), len(x))), 1.0)
    fits = [model.regression(place) for place in places]
    direction = Direction.at(contexts.x)
    why = _why_not(model, fits, [first, second], direction)
    value = fits[0].value(direction) - fits[1].value(direction) if all(fit.tells(direction) for fit in fits) else None
    if why is not None or value is None:
        return Contrast(first, second, where, value, None, None, None, None, ask.level, why or "")
    error, freedom, half = _spread(model, places, fits, contexts, ask)
    low, high = (None, None) if half is None else (value - half, value + half)
    return Contrast(first, second, where, value, error, low, high, freedom, ask.level, model.words(ask))


def _why_not(model: Model, fits: list[Regression], arms: list[Arm], direction: Direction) -> str | None:
    for fit, arm in zip(fits, arms, strict=True):
        if why := model.why_not(fit, "", direction):
            return f"Arm {arm!r}: {why}."
    return None


def _spread(
    model: Model, places: tuple[int, int], fits: list[Regression], contexts: Contexts, ask: Ask
) -> tuple[float | None, float | None, float | None]:
    """Give standard error, degrees of freedom and half width."""
    direction = Direction.at(contexts.x)
    if model.rows == "chosen" or ask.interval == "anytime":  # each arm's own bound, at half of the chance
        half_each = Ask(ask.interval, 1 - ask.chance / 2, ask.noise_scale)
        halves = [model.half_width(p, f, direction, half_each) for p, f in zip(places, fits, strict=True)]
        return None, None, None if None in halves else math.fsum(half for half in halves if half is not None)
    parts = [bounds.error(fit, direction) ** 2 for fit in fits]
    parts.append(contexts.variance(fits[0].slopes - fits[1].slopes))
    freedom = _welch(parts, [fits[0].freedom, fits[1].freedom, max(1.0, contexts.rows - 1)])
    error = math.sqrt(math.fsum(parts))
    return error, freedom, t_quantile(1 - ask.chance / 2, freedom) * error


def _welch(variances: list[float], freedoms: list[float]) -> float:
    """Give the degrees of freedom of a sum of variances that are estimated apart."""
    return math.fsum(variances) ** 2 / math.fsum(v * v / f for v, f in zip(variances, freedoms, strict=True))


def _mean_context(model: Model) -> Contexts:
    """Take the mean and spread of the contexts of all arms' rows."""
    if not model.unit_free:
        raise InvalidValueError(
            "x is None, but sums in units as given do not hold the mean context; give x, or a policy in free units"
        )
    A: Float64 = model.state.A.sum(axis=0)
    n = float(A[0, 0])
    if n <= 1:
        raise InvalidValueError("x is None, but there are no rows yet whose contexts could be averaged; give x")
    mean = A[0, 1:] / n
    covariance = (A[1:, 1:] - n * np.outer(mean, mean)) / (n - 1)
    return Contexts(mean + origin_of(model.state)[1:], covariance, n)
