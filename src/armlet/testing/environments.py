"""What every environment promises, as checks that can be run over any of them.

`check_environment` runs over Armlet's own registry in its tests; run it over an environment of your own in yours.
Checks of frequencies and means use fixed seeds and allow six standard errors: a correct environment fails such
a comparison with probability 2e-9, and it then fails always or never.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, is_dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from armlet.environments.environment import Environment, FiniteEnvironment, present
from armlet.testing.promises import require
from armlet.types import Float64

EnvironmentCheck: TypeAlias = Callable[[Environment], None]

STEPS = 40_000
CONTEXTS, NOISE = 41, 43  # seeds


def _play(environment: Environment, n: int = STEPS, start: int = 0) -> tuple[Float64, Float64]:
    """Draw contexts and rewards, each from a stream of its own."""
    X = environment.contexts(np.random.default_rng(CONTEXTS), n, start=start)
    return X, environment.rewards(np.random.default_rng(NOISE), X, start=start)


def _agree(a: Float64, b: Float64) -> bool:
    """Return whether two arrays are the same up to the rounding of sums of another length."""
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-12, atol=1e-12)


def check_arrays(environment: Environment) -> None:
    """Arrays have the promised shapes, are what the kernel takes, and hold finite numbers."""
    for n in (0, 1, 17):
        X, rewards = _play(environment, n, start=5)
        for name, array, columns in (
            ("contexts", X, environment.dim),
            ("means", environment.means(X, start=5), environment.n_arms),
            ("rewards", rewards, environment.n_arms),
        ):
            require(array.shape == (n, columns), f"{name} have shape {array.shape}, not {(n, columns)}")
            require(array.dtype == np.float64, f"{name} are {array.dtype}, not float64")
            require(array.flags.c_contiguous, f"{name} are not contiguous")
            require(np.isfinite(array).all(), f"{name} hold a value that is not finite")


def check_seeds_repeat_environments(environment: Environment) -> None:
    """The same seeds give the same contexts and rewards."""
    X, rewards = _play(environment, 500)
    again, rewards_again = _play(environment, 500)
    require(np.array_equal(X, again), "two draws of contexts from one seed differ")
    require(np.array_equal(rewards, rewards_again), "two draws of rewards from one seed differ")


def check_streams_stay_apart(environment: Environment) -> None:
    """Contexts are the same for any rewards drawn between."""
    runs = []
    for noise in (None, 1, 2):
        rng, parts = np.random.default_rng(CONTEXTS), []
        for block in range(10):
            parts.append(environment.contexts(rng, 30, start=30 * block))
            if noise is not None:
                environment.rewards(np.random.default_rng([noise, block]), parts[-1], start=30 * block)
        runs.append(np.vstack(parts))
    require(np.array_equal(runs[0], runs[1]), "drawing rewards changed the contexts")
    require(np.array_equal(runs[1], runs[2]), "the seed of the noise changed the contexts")


def check_start(environment: Environment) -> None:
    """A stretch of steps is the same drawn at once or in blocks, each told where it starts."""
    n, cut = 300, 130
    X, rewards = _play(environment, n)
    rng, noise = np.random.default_rng(CONTEXTS), np.random.default_rng(NOISE)
    for start, stop in ((0, cut), (cut, n)):
        part = X[start:stop]
        where = f"for steps {start + 1} to {stop} alone"
        require(_agree(environment.contexts(rng, stop - start, start=start), part), f"contexts differ {where}")
        require(_agree(environment.means(part, start=start), environment.means(X)[start:stop]), f"means differ {where}")
        require(_agree(environment.rewards(noise, part, start=start), rewards[start:stop]), f"rewards differ {where}")


def check_means(environment: Environment) -> None:
    """Rewards are as large as `means` says: what is left over averages to 0, also along every coordinate of x."""
    X, rewards = _play(environment, start=1000)
    left = rewards - environment.means(X, start=1000)
    for name, weights in (("", np.ones(len(X))), *((f" times x[{j}]", X[:, j]) for j in range(environment.dim))):
        terms = weights[:, None] * left
        # the mean of n independent terms with mean 0 has standard error sqrt(E terms^2 / n)
        error = np.sqrt(np.square(terms).mean(axis=0) / len(X))
        off = np.abs(terms.mean(axis=0)) - 6 * error
        require((off <= 1e-9).all(), f"rewards minus means{name} average to {terms.mean(axis=0)}")


def _key(x: Float64) -> tuple[float, ...]:
    return tuple((x.round(9) + 0.0).tolist())  # + 0.0 turns -0.0 into 0.0


def check_table_of_contexts(environment: Environment) -> None:
    """A table lists the contexts with their chances, and the means of `means`."""
    if (table := environment.table()) is None:
        return
    chances: Counter[tuple[float, ...]] = Counter()
    for x, chance in zip(table.contexts, table.chances, strict=True):
        chances[_key(x)] += chance
    X, _ = _play(environment)
    rows, counts = np.unique(X.round(9), axis=0, return_counts=True)
    seen: Counter[tuple[float, ...]] = Counter()
    for row, count in zip(rows, counts.tolist(), strict=True):
        seen[_key(row)] += count
    for x in seen.keys() - chances.keys():
        raise AssertionError(f"context {x} occurs but the table does not list it")
    for x, chance in chances.items():
        # the count is binomial; 6 more, because for rare contexts it is skewed
        slack = 6 * np.sqrt(STEPS * chance * (1 - chance)) + 6
        require(abs(seen[x] - STEPS * chance) <= slack, f"context {x} came {seen[x]} times, expected {STEPS * chance}")
    require(
        np.allclose(table.means, environment.means(table.contexts), rtol=1e-9, atol=1e-12), "the table has other means"
    )


def _variances(table: FiniteEnvironment, mu: Float64) -> Float64:
    if table.noise == "proportional":
        return np.square(table.scale * mu) / 3
    if table.noise == "bernoulli":
        return mu * (1 - mu)
    return np.full_like(mu, table.scale**2 if table.noise == "gaussian" else 0.0)


def check_table_of_noise(environment: Environment) -> None:
    """Rewards spread as the table's noise does, to their second moment."""
    if (table := environment.table()) is None:
        return
    X, rewards = _play(environment)
    mu = environment.means(X)
    left = np.square(rewards - mu) - _variances(table, mu)
    off = np.abs(left.mean(axis=0)) - 6 * left.std(axis=0) / np.sqrt(len(X))
    require((off <= 1e-9).all(), f"the table says noise {table.noise!r}, but squares differ by {left.mean(axis=0)}")


def _are_linear(X: Float64, means: Float64) -> bool:
    theta = np.linalg.lstsq(X, means, rcond=1e-9)[0]
    return np.allclose(X @ theta, means, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(means).max()))


def check_constants_of_table(environment: Environment) -> None:
    """Where there is a table, the constants are those that follow from it by brute force.

    They may be refused only where means are not linear in the contexts: theta, and with it Q, does not exist then.
    """
    if (table := environment.table()) is None:
        return
    occurs = table.chances > 0
    X, means = table.contexts[occurs], table.means[occurs]
    if not _are_linear(X, means):
        try:
            environment.constants()
        except ValueError as reason:
            require("Q does not exist" in str(reason), f"means are not linear in x, which is not said: {reason}")
            return
        raise AssertionError("means are not linear in x, yet there are constants")
    found = environment.constants()
    spectrum = np.linalg.svd(np.sqrt(table.chances[occurs])[:, None] * X, compute_uv=False)
    spectrum = spectrum[spectrum > 1e-9 * spectrum[0]]
    gaps = [max(row) - mean for row in means.tolist() for mean in row]
    theta, _, rank, _ = np.linalg.lstsq(X, means, rcond=1e-9)  # theta as far as contexts can tell
    lengths = [float(np.linalg.norm(a)) for a in theta.T]
    apart = [float(np.linalg.norm(a - b)) for a in theta.T for b in theta.T]
    exact = {
        "sigma_min": (found.sigma_min, spectrum[-1] ** 2),
        "delta_min": (found.delta_min, min(gap for gap in gaps if gap > 1e-12)),
    }
    if rank == environment.dim:
        exact |= {"Q": (found.Q, max(lengths)), "delta_max": (found.delta_max, max(apart))}
    for name, (said, true) in exact.items():
        require(np.isclose(said, true, rtol=1e-6), f"{name} is {said}, by brute force {true}")
    require(max(lengths) * (1 - 1e-6) <= found.Q, f"Q is {found.Q}, but an arm has length {max(lengths)}")
    require(found.delta_max >= max(apart) * (1 - 1e-6), f"delta_max is {found.delta_max}, below {max(apart)}")
    deviation = float(np.sqrt(_variances(table, means).max()))
    require(found.sigma >= deviation * (1 - 1e-9), f"sigma is {found.sigma}, below a standard deviation {deviation}")


def check_constants_of_noise(environment: Environment) -> None:
    """Where constants exist, E exp(Z / sigma) <= exp(1/2) for the noise Z and for -Z, and L is sigma / sqrt 2."""
    try:
        found = environment.constants()
    except ValueError as reason:
        names = ("sigma_min", "delta_min", "delta_max", "Q", "L", "sigma")
        require(any(name in str(reason) for name in names), f"constants() does not say which is missing: {reason}")
        return
    require(np.isclose(found.L, found.sigma / np.sqrt(2)), f"L is {found.L} but sigma is {found.sigma}")
    X, rewards = _play(environment)
    Z = rewards - environment.means(X)
    if found.sigma == 0:
        require(np.allclose(Z, 0), "sigma is 0 but there is noise")
        return
    for sign in (1, -1):
        moments = np.exp(sign * Z / found.sigma)
        off = moments.mean(axis=0) - np.exp(0.5) - 6 * moments.std(axis=0) / np.sqrt(len(X))
        require((off <= 1e-9).all(), f"sigma is {found.sigma}, but E exp(Z / sigma) is {moments.mean(axis=0)}")


def _tuples(value: object) -> object:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _remade(environment: Any, settings: dict[str, Any]) -> Any:
    """Make an environment from what JSON kept of its settings; also those of an environment among them."""
    inner = {name: getattr(environment, name) for name in settings if is_dataclass(getattr(environment, name))}
    values = {name: _tuples(value) for name, value in settings.items()}
    return replace(environment, **values | {name: _remade(each, settings[name]) for name, each in inner.items()})


def check_settings(environment: Environment) -> None:
    """An environment is a frozen dataclass, and its settings survive JSON."""
    require(is_dataclass(environment), "an environment is a frozen dataclass of its settings")
    if is_dataclass(environment) and not isinstance(environment, type):
        try:
            settings = json.loads(json.dumps(asdict(environment), allow_nan=False))
            hash(environment)
        except (TypeError, ValueError) as reason:
            raise AssertionError(
                f"settings must be frozen and fit into JSON, with tuples for lists: {reason}"
            ) from None
        twin = _remade(environment, settings)
        require(twin == environment, "after JSON the environment is another")


def check_presence(environment: Environment) -> None:
    """Where arms come and go, some arm is there at every step, and a stretch of steps is the same in blocks."""
    if (whole := present(environment, STEPS)) is None:
        return
    require(
        whole.shape == (STEPS, environment.n_arms),
        f"presence has shape {whole.shape}, not {(STEPS, environment.n_arms)}",
    )
    require(whole.dtype == np.bool_, f"presence is {whole.dtype}, not bool")
    require(whole.any(axis=1).all(), "at some step there is no arm to play")
    for start, n in ((0, 1), (130, 170), (STEPS - 1, 1)):
        part = present(environment, n, start=start)
        require(part is not None and np.array_equal(part, whole[start : start + n]), "presence differs in blocks")


def check_description(environment: Environment) -> None:
    """A description has a few lines of text."""
    lines = environment.describe()
    require(2 <= len(lines) <= 12, f"the description has {len(lines)} lines")
    require(all(isinstance(line, str) and line.strip() for line in lines), "a line of the description is empty")


ENVIRONMENT_CHECKS: tuple[EnvironmentCheck, ...] = (
    check_arrays,
    check_seeds_repeat_environments,
    check_streams_stay_apart,
    check_start,
    check_means,
    check_table_of_contexts,
    check_table_of_noise,
    check_constants_of_table,
    check_constants_of_noise,
    check_settings,
    check_presence,
    check_description,
)


def check_environment(environment: Environment) -> None:
    """Run every check over an environment; the first promise that is broken raises AssertionError.

    Examples
    --------
    >>> from armlet.environments import FigureB
    >>> check_environment(FigureB.draw(np.random.default_rng(0)))
    """
    for check in ENVIRONMENT_CHECKS:
        check(environment)
