"""A log of earlier decisions, and the problems that it leaves possible: empirical Bayes, one linear model an arm.

A linear model for each arm needs no weighting by propensities: given the context, why an arm was played does not bias
its regression as long as the model holds. They are used to check just that: what each arm is worth by the model
against what it is worth by inverse propensity weighting, which trusts no model.

theta_a = m + tau u_a with u_a standard normal, each feature measured in its root mean square: m is what the arms have
in common, tau how far they lie apart. Both are uncertain and sampled, so a small pilot pulls arms together instead of
overstating their gaps, as separate regressions would. Noise is that of the residuals: 0/1, gaussian, or in proportion
to the mean, whichever fits.
Fitting O(N d^2 + G K d^3) for G values of tau, a sample O(K d^3 + M K d).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from armlet.advice.problem import (
    FEW,
    Costs,
    Draw,
    Drawn,
    Known,
    Prior,
    SampledProblem,
    Source,
    draw_from,
    sample_size,
    varied_size,
)
from armlet.environments.environment import Environment, FiniteEnvironment, Noise
from armlet.errors import ArgumentError, InvalidTypeError, InvalidValueError
from armlet.inputs import columns
from armlet.inputs.columns import check_labels
from armlet.inputs.contexts import ContextReader
from armlet.inputs.settings import Objective
from armlet.inputs.table import Table
from armlet.types import Arm, Bool, Contexts, Float64, Int64


class Pilot:
    """A log to learn the problem from.

    Parameters
    ----------
    X
        (N, d): the contexts, as the bandit will see them; it adds a constant by itself.
    arms, rewards
        What was played at each step, and what it paid.
    propensities
        The probability with which that arm was played; only checks need it.
    arm_names
        All the arms there will be; those in the log if left out.

    Examples
    --------
    >>> pilot = Pilot([[1, 0], [1, 1], [1, 0], [1, 1]], ["a", "b", "b", "a"], [0.1, 0.9, 0.3, 0.2])
    >>> pilot.n_rows, pilot.dim, pilot.arm_names
    (4, 2, ['a', 'b'])
    >>> Pilot([[1], [1]], ["a", "b"], [0.1, 0.9], arm_names=["a", "b", "c"])
    Traceback (most recent call last):
    armlet.errors.ArgumentError: the pilot never tried arm 'c', so nothing is known of it; play it ...
    """

    __slots__ = ("X", "arm_names", "played", "propensities", "rewards")

    def __init__(
        self,
        X: Contexts,
        arms: npt.ArrayLike,
        rewards: npt.ArrayLike,
        propensities: npt.ArrayLike | None = None,
        arm_names: Iterable[Arm] | None = None,
    ) -> None:
        shape = np.shape(cast(npt.ArrayLike, X))
        if len(shape) != 2 or 0 in shape:
            raise InvalidValueError(f"X has shape {shape}; give one row of numbers for each logged step, (N, d)")
        n = shape[0]
        self.X: Float64 = ContextReader(shape[1]).matrix(X)  # (N, d)
        labels = columns.labels(arms, n)
        self.rewards: Float64 = columns.rewards(rewards, n)  # (N,)
        self.arm_names: list[Arm] = _names(labels, arm_names)
        places = {arm: place for place, arm in enumerate(self.arm_names)}
        self.played: Int64 = np.array([places[arm] for arm in labels], dtype=np.int64)  # (N,)
        self.propensities: Float64 | None = None if propensities is None else _chances(propensities, n)

    @classmethod
    def from_table(cls, table: Table) -> Pilot:
        """Read the rows of a labelled table that have a reward; its features must be named.

        Examples
        --------
        >>> rows = {"age": [0.1, 0.2], "offer": ["a", "b"], "paid": [0, 1], "day": [1, 1]}
        >>> Pilot.from_table(Table(rows, features=["age"], arm="offer", reward="paid")).arm_names
        ['a', 'b']
        """
        if table.outcomes is not None or not table.roles.features:
            what = "features" if table.outcomes is None else "outcomes"
            raise ArgumentError("{" + what + "} of the table cannot be a pilot's; name features, and one reward")
        there, chances = table.rewarded, table.propensities
        labels = [table.arms[place] for place in table.played[there].tolist()]
        X = table.X[there][:, _informative(table)]
        return cls(X, labels, table.rewards[there, 0], None if chances is None else chances[there], table.arms)

    def with_constant(self) -> Pilot:
        """Return the same log with a constant 1 before the features, if no weights of them are one already.

        Examples
        --------
        >>> Pilot([[0.5], [0.2]], ["a", "b"], [0.1, 0.9]).with_constant().X.tolist()
        [[1.0, 0.5], [1.0, 0.2]]
        >>> flags = Pilot([[0, 1], [1, 0]], ["a", "b"], [0.1, 0.9])
        >>> flags.with_constant() is flags
        True
        """
        ones = np.ones(self.n_rows)
        weights = np.linalg.lstsq(self.X, ones, rcond=None)[0]
        if np.abs(self.X @ weights - ones).max() < 1e-6:
            return self
        return Pilot(np.column_stack([ones, self.X]), self._labels(), self.rewards, self.propensities, self.arm_names)

    def _labels(self) -> list[Arm]:
        return [self.arm_names[place] for place in self.played.tolist()]

    @property
    def n_rows(self) -> int:
        """The number of rows, n."""
        return len(self.rewards)

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return int(self.X.shape[1])

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return len(self.arm_names)


def _informative(table: Table) -> Bool:
    """Return which values of a context to read: flags that no row has say nothing, (d,)."""
    names = table.roles.features if table.encoder is None else table.encoder.features
    is_column = [name in table.columns for name in names]
    return np.asarray(table.X.any(axis=0) | (np.array(is_column) if len(is_column) == table.X.shape[1] else True))


def _names(labels: list[Arm], given: Iterable[Arm] | None) -> list[Arm]:
    seen = set(labels)
    names = check_labels(sorted(seen, key=lambda arm: (isinstance(arm, str), arm)) if given is None else given)
    if unknown := sorted(map(repr, seen - set(names))):
        text = "arms has {unknown}, which {arm_names} lacks; name every arm that was played"
        raise ArgumentError(text, unknown=", ".join(unknown))
    if untried := [repr(arm) for arm in names if arm not in seen]:
        what, it = ("arm", "it") if len(untried) == 1 else ("arms", "them")
        raise ArgumentError(
            "the pilot never tried {what} {untried}, so nothing is known of {it}; play {it} at random for a while, "
            "or leave {it} out of {arm_names} and add {it} later",
            what=what,
            it=it,
            untried=", ".join(untried),
        )
    if len(names) < 2:
        raise InvalidValueError(
            f"the pilot has the one arm {names[0]!r}; there is nothing to choose, give at least two"
        )
    return names


def _chances(values: npt.ArrayLike, n: int) -> Float64:
    chances = columns.rewards(values, n, "propensities")
    wrong = np.flatnonzero((chances <= 0) | (chances > 1))
    if wrong.size:
        raise InvalidValueError(
            f"propensities[{wrong[0]}] is {chances[wrong[0]]}; give probabilities above 0 and up to 1"
        )
    return chances


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCheck:
    """What always playing one arm would earn a step, by the model and by inverse propensity weighting."""

    arm: Arm
    model: float
    weighted: float
    interval: tuple[float, float]  # of `weighted`; all arms' intervals hold together with probability 95 %

    @property
    def agrees(self) -> bool:
        """Whether the model's value lies in the interval."""
        return self.interval[0] <= self.model <= self.interval[1]


def check_values(pilot: Pilot, theta: Float64) -> tuple[ArmCheck, ...]:
    """Compare the model's value of each arm with the self-normalised inverse propensity estimate."""
    if pilot.propensities is None:
        return ()
    z = NormalDist().inv_cdf(1 - 0.025 / pilot.n_arms)
    checks = []
    for a, arm in enumerate(pilot.arm_names):
        weights = (pilot.played == a) / pilot.propensities
        value = float(weights @ pilot.rewards / weights.sum())
        error = float(np.sqrt(np.square(weights * (pilot.rewards - value)).sum()) / weights.sum())
        model = float((pilot.X @ theta[a]).mean())
        checks.append(ArmCheck(arm=arm, model=model, weighted=value, interval=(value - z * error, value + z * error)))
    return tuple(checks)


SPREADS: Final = np.geomspace(1e-3, 3.0, 60)  # tau sqrt(d) as a share of the rewards' standard deviation
TYPICAL: Final = 0.2  # where the prior of that share bends, a half-Cauchy law: even below, falling as its square above
FLOOR: Final = 0.2  # of the root mean square mean: noise in proportion is taken as no smaller than that of such a mean
STEADY: Final = 10  # degrees of freedom of the pooled noise in that of each arm


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """What a pilot tells of the problem."""

    pilot: Pilot  # with a constant
    given: int  # features, without it
    sign: float  # of the rewards: -1 if they are costs
    noise: Noise
    scale: float  # of the noise, as tables want it
    freedom: int  # degrees of freedom behind the scale
    unit: Float64  # (d,): theta in units of feature j is this times phi
    P: Float64  # (K, d, d): precision of the data about phi
    h: Float64  # (K, d): P phi_hat
    contexts: int  # that a problem has if the pilot has many
    taus: Float64  # (G,)
    weights: Float64  # (G,): posterior probability of each tau

    @classmethod
    def of(cls, pilot: Pilot, objective: Objective, contexts: int | None = None) -> Posterior:
        """Fit a pilot; its features and a constant, as the bandit does.

        `contexts` is how many each problem has if the pilot has many; left out, enough for ContextualEpsilonGreedy.
        """
        given, pilot = pilot.dim, pilot.with_constant()
        sign = 1.0 if objective == "max" else -1.0
        y = sign * pilot.rewards
        size = np.sqrt(np.square(pilot.X).mean(axis=0))
        unit = 1.0 / np.where(size > 0, size, 1.0)
        Z = pilot.X * unit
        noise, scale, deviations = _noise(pilot, y, _fit(Z, pilot.played, y))
        rows = [np.flatnonzero(pilot.played == a) for a in range(pilot.n_arms)]
        P = np.stack([_gram(Z[on], deviations[on]) for on in rows])
        h = np.stack([Z[on].T @ (y[on] / deviations[on] ** 2) for on in rows])
        taus, weights = _spreads(y, P, h)
        return cls(
            pilot=pilot,
            given=given,
            sign=sign,
            noise=noise,
            scale=scale,
            freedom=max(1, pilot.n_rows - pilot.n_arms * pilot.dim),
            unit=unit,
            P=P,
            h=h,
            contexts=contexts or sample_size(pilot.dim),
            taus=taus,
            weights=weights,
        )

    def words(self) -> str:
        """Describe what the pilot was."""
        p = self.pilot
        return f"a pilot of {p.n_rows:,} steps with {p.n_arms} arms and contexts of {self.given} values"

    def theta(self) -> Float64:
        """Return the posterior mean of theta, (K, d), in the sign of the pilot's rewards."""
        m_all = np.zeros_like(self.h)
        for tau, weight in zip(self.taus, self.weights, strict=True):
            centre, _ = _common(self.P, self.h, tau)
            m_all += weight * _arms_mean(self.P, self.h, tau, centre)
        return self.sign * m_all * self.unit

    def checks(self) -> tuple[ArmCheck, ...]:
        """Hold the model against inverse propensity weighting."""
        return check_values(self.pilot, self.theta())

    def sample(self, n: int, seed: int) -> list[SampledProblem]:
        """Draw n problems; the first ones are the same for any n."""
        kinds, counts = np.unique(self.pilot.X, axis=0, return_counts=True)
        return [self._draw(rng, kinds, counts / counts.sum()) for rng in draw_from(n, seed)]

    def _draw(self, rng: np.random.Generator, kinds: Float64, shares: Float64) -> SampledProblem:
        theta = self._draw_theta(rng)
        many = len(kinds) > FEW
        m = self.contexts
        X = kinds[rng.choice(len(kinds), size=m, p=shares)] if many else kinds
        means = np.ascontiguousarray(X @ theta.T)
        table = FiniteEnvironment(
            contexts=np.ascontiguousarray(X),
            chances=np.full(m, 1 / m) if many else shares,
            means=means.clip(0.0, 1.0) if self.noise == "bernoulli" else means,
            noise=self.noise,
            scale=self.scale * math.sqrt(self.freedom / rng.chisquare(self.freedom)),
        )
        return SampledProblem(table=table, theta=theta, notes=self._notes(), contexts="sampled" if many else "all")

    def _notes(self) -> tuple[str, ...]:
        noise = {
            "bernoulli": "rewards are simulated as 0 or 1, their means cut off at 0 and 1",
            "gaussian": "noise is simulated as gaussian, with the variance of the residuals",
            "proportional": "noise is simulated in proportion to the mean reward, which fits the residuals best",
            "none": "the linear models fit every reward exactly, so no noise is simulated",
        }
        fitted = "a linear model for each arm needs no weighting by propensities; where they are given, they check it"
        fresh = "the bandit is taken to start afresh, without having learned the pilot"
        return (noise[self.noise], fitted, fresh)

    def _draw_theta(self, rng: np.random.Generator) -> Float64:
        tau = float(rng.choice(self.taus, p=self.weights))
        d = self.pilot.dim
        centre, precision = _common(self.P, self.h, tau)
        m = centre + np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal(d))
        phi = _arms_mean(self.P, self.h, tau, m)
        for a, P in enumerate(self.P):
            root = np.linalg.cholesky(P + np.eye(d) / tau**2)
            phi[a] += np.linalg.solve(root.T, rng.standard_normal(d))
        return phi * self.unit


def _spreads(y: Float64, P: Float64, h: Float64) -> tuple[Float64, Float64]:
    """Return the grid of tau and the posterior probability of each."""
    spread = float(y.std()) or 1.0  # rewards that never change tell nothing; any size will do then
    taus = SPREADS * spread / math.sqrt(P.shape[-1])
    widest = 10 * (float(np.abs(y).max()) or 1.0)
    # even in tau, so that arms may be all but alike: with few arms the pilot says little of how far they lie apart, and
    # a density that vanishes at 0 overstates gaps. Times tau, since the grid is even in log tau
    prior = np.log(SPREADS) - np.log1p(np.square(SPREADS / TYPICAL))
    return taus, _softmax(prior + np.array([_evidence(P, h, tau, widest) for tau in taus]))


def _gram(Z: Float64, deviations: Float64) -> Float64:
    W = Z / deviations[:, None]
    gram: Float64 = W.T @ W
    return gram


def _fit(Z: Float64, played: Int64, y: Float64) -> Float64:
    """Fit each arm by itself, the smallest solution where there are many; gives the means of the played arms, (N,)."""
    fitted = np.empty(len(y))
    for a in np.unique(played):
        on = played == a
        fitted[on] = Z[on] @ np.linalg.lstsq(Z[on], y[on], rcond=None)[0]
    return fitted


def _noise(pilot: Pilot, y: Float64, fitted: Float64) -> tuple[Noise, float, Float64]:
    """Name the noise, give its scale, and the standard deviation of every reward, (N,)."""
    if np.isin(y, (0.0, 1.0)).all():
        # one variance for all arms: that of an arm with two clicks instead of five would pass for certainty
        rate = (y.sum() + 0.5) / (len(y) + 1)
        return "bernoulli", 1.0, np.full(len(y), math.sqrt(rate * (1 - rate)))
    residuals = y - fitted
    lost = pilot.n_rows / max(1, pilot.n_rows - pilot.n_arms * pilot.dim)  # to the fit
    flat = np.sqrt(_arm_variances(pilot, np.square(residuals) * lost))
    if not flat.max() > 0:
        return "none", 0.0, np.full(len(y), 1e-9 * (float(np.abs(y).max()) or 1.0))
    size = np.abs(fitted)
    size = np.maximum(size, FLOOR * math.sqrt(float(np.square(fitted).mean())))
    ratio = math.sqrt(float(np.square(residuals / size).mean()) * lost)
    if _fits(residuals, ratio * size) > _fits(residuals, flat):
        return "proportional", math.sqrt(3.0) * ratio, ratio * size
    return "gaussian", math.sqrt(float(np.square(flat).mean())), flat


def _fits(residuals: Float64, deviations: Float64) -> float:
    return float(-np.log(deviations).sum() - 0.5 * np.square(residuals / deviations).sum())


def _arm_variances(pilot: Pilot, squares: Float64) -> Float64:
    """Average squares over each arm's rows, pulled towards the average over all, (N,)."""
    counts, sums = np.bincount(pilot.played), np.bincount(pilot.played, squares)
    variances: Float64 = ((sums + STEADY * squares.mean()) / (counts + STEADY))[pilot.played]
    return variances


def _shrunk(P: Float64, tau: float) -> Float64:
    W: Float64 = np.asarray(np.linalg.inv(np.eye(P.shape[-1]) + tau**2 * P), dtype=np.float64)
    return W


def _common(P: Float64, h: Float64, tau: float) -> tuple[Float64, Float64]:
    """Return mean and precision of what the arms have in common."""
    W = _shrunk(P, tau)
    total = (W @ P).sum(axis=0)
    # a direction that no context has gets a little, so that it can be solved for; nothing depends on it
    steady = 1e-9 * float(np.trace(total)) * np.eye(P.shape[-1])
    precision: Float64 = np.asarray((total + total.T) / 2 + steady, dtype=np.float64)
    centre: Float64 = np.linalg.solve(precision, np.einsum("kij,kj->i", W, h))
    return centre, precision


def _arms_mean(P: Float64, h: Float64, tau: float, m: Float64) -> Float64:
    means: Float64 = m + tau**2 * np.einsum("kij,kj->ki", _shrunk(P, tau), h - P @ m)
    return means


def _evidence(P: Float64, h: Float64, tau: float, widest: float) -> float:
    """Return the log marginal likelihood of tau up to a constant; m has a prior wide enough for any data."""
    W = _shrunk(P, tau)
    arms = np.linalg.slogdet(W)[1] / 2 + tau**2 / 2 * np.einsum("ki,kij,kj->k", h, W, h)
    precision = (W @ P).sum(axis=0) + np.eye(P.shape[-1]) / widest**2
    total = np.einsum("kij,kj->i", W, h)
    return float(arms.sum() - 0.5 * np.linalg.slogdet(precision)[1] + 0.5 * total @ np.linalg.solve(precision, total))


def _softmax(logs: Float64) -> Float64:
    weights: Float64 = np.exp(logs - logs.max())
    weights /= weights.sum()
    return weights


def notes_on(table: Table) -> tuple[str, ...]:
    """Describe how columns of text and dates were read."""
    if table.encoder is None:
        return ()
    said = {name for name, is_said in zip(table.encoder.features, _informative(table), strict=True) if is_said}
    flags = {name: [flag for flag in names if flag in said] for name, names in table.encoder.flags.items()}
    text = "{} flags stand for {}: {}; give the bandit the same encoder"
    return tuple(text.format(len(names), name, ", ".join(names)) for name, names in flags.items())


SourceLike: TypeAlias = Environment | Draw | Prior | Pilot | Table


def as_source(source: Environment | Draw | Prior | Pilot, horizon: int, objective: Objective) -> Source:
    """Make a source of problems of what a user gave; what is to be made small there is to be made large in them."""
    if isinstance(source, Pilot):
        return Posterior.of(source, objective, varied_size(source.n_arms, source.dim + 1))
    drawn = _as_source(source, horizon)
    return drawn if objective == "max" else Costs(drawn)


def _as_source(source: Environment | Draw | Prior, horizon: int) -> Source:
    if isinstance(source, Prior):
        return source
    if isinstance(source, type):
        raise InvalidTypeError(
            f"source is the class {source.__name__}; give an instance, or {source.__name__}.draw for a law"
        )
    if hasattr(source, "contexts") and hasattr(source, "means"):
        return Known(cast(Environment, source), horizon)
    if callable(source):
        return Drawn(source, horizon)
    raise InvalidTypeError(
        f"source is {source!r}; give an environment, a function that draws one, a Prior, a Pilot or a Table"
    )
