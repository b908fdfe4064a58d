"""Problems as the advisor simulates them, tables of contexts, chances and mean rewards (Section 3), and their sources.

A `Prior` is what a user can say before there is any data: how many arms and features, how large effects and noise are.
An environment with few contexts is its own table. Any other is replaced by a sample of its contexts, and noise that no
table can name by gaussian noise of the same variance; the notes of the advice say both.
O(M K d) for M contexts; where they are sampled, M is 8 d but 64 at least, and from d = 16 on 128 or 4 d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from armlet.environments.environment import Environment, FiniteEnvironment, Noise, bit_law, check_still
from armlet.errors import ArgumentError, InvalidValueError
from armlet.inputs.settings import unboxed
from armlet.parallel import Seeds
from armlet.theory import required_p
from armlet.types import Float64

PLACE: Final = "advice"  # of the seeds of an advice
FEW: Final = 64  # distinct contexts that are kept as they are; more are sampled, because runs cost O(M) an exploration
MANY: Final = 1024  # contexts at most, unless there are more than 256 features
ZERO_ONE: Final = (
    "objective is 'min' but rewards are 0 or 1; count what is wanted (1 where there was no cost) and leave it out"
)
REPEATS: Final = 16  # rewards drawn for each sampled context and arm, to measure the noise


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledProblem:
    """One problem to run policies on."""

    table: FiniteEnvironment
    theta: Float64 | None = None  # (K, d): what the means follow from, if that is known
    notes: tuple[str, ...] = ()
    contexts: Literal["all", "sampled"] = "all"  # whether the table has every context that there is

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return int(self.table.means.shape[1])

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return int(self.table.contexts.shape[1])

    @property
    def noise(self) -> float:
        """The standard deviation of a reward around its mean, root mean square over contexts and arms."""
        return math.sqrt(float(self.table.chances @ _variance(self.table, self.table.means).mean(axis=1)))


class Stakes(NamedTuple):
    """What an environment pays a decision."""

    best: float  # with the best arm of every context
    losses: Float64  # (K,): what one arm for all contexts pays less
    deviation: float  # of a reward of the best arms, by its context and its noise
    noise: Noise


def stakes(table: FiniteEnvironment) -> Stakes:
    """Return what there is to earn and to lose in an environment.

    Examples
    --------
    >>> found = stakes(FiniteEnvironment(contexts=np.eye(2), chances=np.array([0.9, 0.1]), means=np.eye(2)))
    >>> found.best, found.losses.round(3).tolist()
    (1.0, [0.1, 0.9])
    """
    top = table.means.max(axis=1)
    best = float(table.chances @ top)
    between = float(table.chances @ np.square(top - best))
    within = float(table.chances @ _variance(table, top))
    return Stakes(best, best - table.chances @ table.means, math.sqrt(between + within), table.noise)


def _variance(table: FiniteEnvironment, means: Float64) -> Float64:
    """Return the variance of rewards of such means."""
    if table.noise == "gaussian":
        return np.full(means.shape, table.scale**2)
    if table.noise == "none":
        return np.zeros(means.shape)
    variance: Float64 = means * (1 - means) if table.noise == "bernoulli" else np.square(table.scale * means) / 3
    return variance


class Source(Protocol):
    """Where problems come from."""

    def words(self) -> str:
        """Describe what it is, for the first line of the advice."""

    def sample(self, n: int, seed: int) -> list[SampledProblem]:
        """Draw n problems; the first ones are the same for any n."""


def draw_from(n: int, seed: int) -> list[np.random.Generator]:
    """Return what each of n problems is drawn from; the first ones are the same for any n."""
    return [Seeds(seed, PLACE).rng("sampled problems", index) for index in range(n)]


def sample_size(dim: int) -> int:
    """Return how many contexts stand for a law that has too many of them.

    Examples
    --------
    >>> sample_size(3), sample_size(30)
    (64, 128)
    """
    return max(FEW, min(8 * dim, 128), 4 * dim)


def varied_size(n_arms: int, dim: int) -> int:
    """Return how many contexts make a policy that learns from every step see each arm at work in every direction.

    With 8 d of them in all, each of ten arms is best in fewer than d: it then meets too few directions to learn from,
    and the default appeared to lose a fifth more than it did where contexts have no end (ten arms, ten features).

    Examples
    --------
    >>> varied_size(2, 3), varied_size(10, 11)
    (64, 880)
    """
    return max(sample_size(dim), min(8 * n_arms * dim, MANY))


def condense(environment: Environment, rng: np.random.Generator, horizon: int) -> SampledProblem:
    """Make a problem of an environment.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> rng = np.random.default_rng(0)
    >>> condense(FigureA.draw(rng), rng, horizon=1000).table.means.shape
    (8, 6)
    """
    check_still(environment, "armlet.advise")
    rows = getattr(environment, "theta", None)
    theta = None if rows is None else np.array(rows)
    table = environment.table()
    if table is not None and len(table.chances) <= FEW:
        return SampledProblem(table=table, theta=theta)
    X = environment.contexts(rng, sample_size(environment.dim))
    means = environment.means(X)
    if not np.array_equal(means, environment.means(X, start=horizon - 1)):
        name = type(environment).__name__
        raise InvalidValueError(
            f"source is a {name} whose arms change over time; advice holds for environments that stay"
        )
    return _sampled(environment, rng, X, means, theta)


def _sampled(
    environment: Environment, rng: np.random.Generator, X: Float64, means: Float64, theta: Float64 | None
) -> SampledProblem:
    rewards = np.stack([environment.rewards(rng, X) for _ in range(REPEATS)])
    law = tabulate(X, np.full(len(X), 1 / len(X)), means, rewards, float(np.sqrt(np.square(rewards - means).mean())))
    notes = [f"contexts are many: every problem has a sample of {len(X)} of them, drawn for it alone"]
    if law.noise == "gaussian" and getattr(environment, "noise", None) != "gaussian":
        notes.append("the noise is taken as gaussian with the variance it has on average")
    return SampledProblem(table=law, theta=theta, notes=tuple(notes), contexts="sampled")


def tabulate(X: Float64, chances: Float64, means: Float64, rewards: Float64, noise: float) -> FiniteEnvironment:
    """Make a table whose noise is 0/1 if all rewards are, else gaussian of a given standard deviation."""
    X, means = np.ascontiguousarray(X), np.ascontiguousarray(means)
    if np.isin(rewards, (0.0, 1.0)).all():
        return FiniteEnvironment(contexts=X, chances=chances, means=means.clip(0.0, 1.0), noise="bernoulli")
    if noise == 0:
        return FiniteEnvironment(contexts=X, chances=chances, means=means)
    return FiniteEnvironment(contexts=X, chances=chances, means=means, noise="gaussian", scale=noise)


def theorem_p(problem: SampledProblem) -> float:
    """Return the p that Theorem 2 asks for as printed; ValueError says why there is none."""
    if problem.contexts == "sampled":
        raise InvalidValueError(
            "it needs the smallest lead of the best arm over the next one in any context, and there are too many "
            "contexts to go through; the more there are, the smaller that lead is and the larger the p"
        )
    required = required_p(problem.table, theta=problem.theta)
    if required.printed is None:
        raise InvalidValueError("; ".join(required.plainly))
    return required.printed.p


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
    mean
        What a random arm earns a decision: for clicks a rate between 0 and 1, which must be given; for numbers it may
        be left out, and what is earned is then counted from there.

    Examples
    --------
    >>> prior = Prior(n_arms=5, dim=(2, 4), effect=(0.1, 0.5), noise=1.0)
    >>> [problem.dim for problem in prior.sample(4, seed=1)]
    [4, 3, 3, 3]
    >>> Prior(n_arms=5, dim=2, effect=0.5, rewards="clicks", mean=0.03)
    Traceback (most recent call last):
    armlet.errors.ArgumentError: effect is 0.5 but mean is 0.03: at such a rate 5 arms differ by 0.12 ...
    """

    n_arms: int | tuple[int, int]
    dim: int | tuple[int, int]
    effect: Between
    noise: Between | None = None
    rewards: Literal["numbers", "clicks"] = "numbers"
    mean: Between | None = None

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
            if self.mean is not None:
                _ends("mean", self.mean)
            return
        if self.noise is not None:
            raise InvalidValueError(
                f"noise is {self.noise!r}, but that of clicks follows from their rate; leave it out"
            )
        low, high = _ends("mean", self.mean)
        if not 0 < low <= high < 1:
            text = "{mean} is {value!r}; give a share of clicks between 0 and 1, such as 0.03"
            raise ArgumentError(text, value=self.mean)
        arms, effect = int(_ends("n_arms", self.n_arms)[0]), _ends("effect", self.effect)[1]
        most = min((arms - 1) * low, 1 - high)  # one arm has all the clicks that there are; no rate is above 1
        if effect > most:
            raise ArgumentError(
                "effect is {asked:g} but {mean} is {rate}: at such a rate {arms} arms differ by {most:g} at most; "
                "give a smaller effect or a higher {mean}",
                asked=effect,
                rate=_say(self.mean),
                arms=arms,
                most=most,
            )

    def words(self) -> str:
        """Describe what is assumed, in one line.

        Examples
        --------
        >>> Prior(n_arms=5, dim=(2, 4), effect=0.1, noise=1.0).words()
        'a guess: 5 arms, contexts of 2 to 4 values, effect 0.1, noise 1'
        """
        if self.rewards == "clicks":
            spread = f"clicks at {_say(self.mean)}"
        else:
            spread = f"noise {_say(self.noise)}" + ("" if self.mean is None else f", mean reward {_say(self.mean)}")
        shape = f"{_say(self.n_arms)} arms, contexts of {_say(self.dim)} values"
        return f"a guess: {shape}, effect {_say(self.effect)}, {spread}"

    def as_costs(self) -> Prior:
        """Return the same guess with costs as negative rewards."""
        if self.rewards == "clicks":
            raise InvalidValueError(ZERO_ONE)
        if self.mean is None:
            return self
        low, high = _pair(self.mean)
        return replace(self, mean=(-high, -low))

    def sample(self, n: int, seed: int) -> list[SampledProblem]:
        """Draw n problems; the first ones are the same for any n."""
        return [self._draw(rng) for rng in draw_from(n, seed)]

    def _draw(self, rng: np.random.Generator) -> SampledProblem:
        K, d = _whole(rng, self.n_arms), _whole(rng, self.dim)
        effect = _log_uniform(rng, self.effect)
        level = 0.0 if self.mean is None else float(rng.uniform(*_pair(self.mean)))
        X, chances = self._contexts(rng, d)
        clicks = self.rewards == "clicks"
        theta = rng.uniform(-1.0, 1.0, (K, d)) if clicks else rng.standard_normal((K, d))
        theta[:, 0] -= float(chances @ (X @ theta.T).mean(axis=1))  # a random arm in a random context earns 0
        spread = X @ theta.T
        scale = _scale(spread, chances, level, effect) if clicks else effect / _gap(spread, chances)
        means, theta = level + scale * spread, scale * theta
        theta[:, 0] += level
        table = FiniteEnvironment(
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
            "effect is {asked:.3g} but {mean} is {level:.3g}, and rates below 0 or above 1 do not exist; "
            "give a smaller effect or a higher {mean}",
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


Draw: TypeAlias = Callable[[np.random.Generator], Environment]


@dataclass(frozen=True, slots=True)
class Known:
    """One environment."""

    environment: Environment
    horizon: int

    def words(self) -> str:
        """Describe which."""
        w = self.environment
        return f"one known problem: {type(w).__name__}, {w.n_arms} arms, contexts of {w.dim} values"

    def sample(self, n: int, seed: int) -> list[SampledProblem]:
        """Return the environment itself if it is a table, else n samples of its contexts."""
        first, *others = draw_from(n, seed)
        known = condense(self.environment, first, self.horizon)
        if known.contexts == "all":  # its table is the environment, not a sample
            return [known]
        return [known, *(condense(self.environment, rng, self.horizon) for rng in others)]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A law of environments."""

    draw: Draw
    horizon: int

    def words(self) -> str:
        """Describe which."""
        name = getattr(self.draw, "__qualname__", type(self.draw).__name__)
        return f"problems drawn by {name}"

    def sample(self, n: int, seed: int) -> list[SampledProblem]:
        """Draw n problems; the first ones are the same for any n."""
        return [condense(self.draw(rng), rng, self.horizon) for rng in draw_from(n, seed)]


@dataclass(frozen=True, slots=True)
class Costs:
    """Problems whose rewards are costs: the same, with all signs changed."""

    source: Source

    def words(self) -> str:
        """Describe what they are."""
        return f"{self.source.words()}, as costs"

    def sample(self, n: int, seed: int) -> list[SampledProblem]:
        """Draw n problems; the first ones are the same for any n."""
        if isinstance(self.source, Prior):
            return self.source.as_costs().sample(n, seed)
        return [_turned(problem) for problem in self.source.sample(n, seed)]


def _turned(problem: SampledProblem) -> SampledProblem:
    if problem.table.noise == "bernoulli":
        raise InvalidValueError(ZERO_ONE)
    theta = None if problem.theta is None else -problem.theta
    return replace(problem, table=replace(problem.table, means=-problem.table.means), theta=theta)
