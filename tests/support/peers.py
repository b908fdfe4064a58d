"""MABWiser's and river's policies on the same log as ours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from mabwiser.mab import MAB  # type: ignore[import-untyped]
from river.linear_model import BayesianLinearRegression
from scipy import stats

import armlet
from armlet.kernel import Statistics
from armlet.policies.algorithm_1 import Algorithm1
from armlet.policies.contextual_epsilon_greedy import AllDataEpsilonGreedy
from armlet.policies.linucb import LinUCB
from armlet.policies.thompson_sampling import ThompsonSampling
from armlet.types import Float64, Int64
from support.streams import make_stream

DRAWS = 20_000

Ours = LinUCB | ThompsonSampling | Algorithm1 | AllDataEpsilonGreedy


@dataclass(frozen=True)
class Log:
    """Steps that some other policy played, every arm among them, and contexts to ask about."""

    X: Float64  # (T, d)
    arms: Int64  # (T,)
    rewards: Float64  # (T,)
    asked: Float64  # (20, d)
    n_arms: int

    @property
    def dim(self) -> int:
        return int(self.X.shape[1])


def make_log(dim: int, n_arms: int, seed: int) -> Log:
    stream, rng = make_stream(100, dim, n_arms, seed), np.random.default_rng(seed + 1)
    arms = rng.permutation(np.arange(80) % n_arms)
    rewards = stream.rewards[np.arange(80), arms]
    return Log(stream.contexts[:80], arms, rewards, stream.contexts[80:], n_arms)


def assert_close(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> None:
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-8, atol=1e-8)


def learned(policy: Ours, log: Log) -> Statistics:
    bandit = armlet.Bandit(arms=range(log.n_arms), dim=log.dim, policy=policy, seed=1)
    bandit.partial_fit(log.X, log.arms, log.rewards, explored=True)
    assert isinstance(bandit.state, Statistics)
    return bandit.state


def mabwiser(policy: object, log: Log) -> MAB:
    """Return it the first half at once and the second in another call, as its users do."""
    mab, half = MAB(list(range(log.n_arms)), policy, seed=1), len(log.X) // 2
    mab.fit(log.arms[:half], log.rewards[:half], log.X[:half])
    mab.partial_fit(log.arms[half:], log.rewards[half:], log.X[half:])
    return mab


def expectations(mab: MAB, X: Float64) -> Float64:
    return np.array([list(row.values()) for row in mab.predict_expectations(X)])


def chi_square(mab: MAB, x: Float64, chances: Float64) -> float:
    """Return the p-value of 20,000 decisions for one context if these were their chances."""
    played = np.bincount(mab.predict(np.tile(x, (DRAWS, 1))), minlength=len(chances))
    assert (DRAWS * chances).min() > 10
    return float(stats.chisquare(played, DRAWS * chances).pvalue)


def river(arm: int, log: Log, alpha: float, beta: float) -> BayesianLinearRegression:
    model = BayesianLinearRegression(alpha=alpha, beta=beta)
    for x, reward in zip(log.X[log.arms == arm], log.rewards[log.arms == arm], strict=True):
        model.learn_one(named(x), reward)  # type: ignore[no-untyped-call]
    return model


def mean(model: BayesianLinearRegression, x: Float64) -> float:
    return float(model.predict_one(named(x)))  # type: ignore[no-untyped-call]


def deviation(model: BayesianLinearRegression, x: Float64) -> float:
    return float(model.predict_one(named(x), with_dist=True).sigma)  # type: ignore[no-untyped-call]


def named(x: Float64) -> dict[int, float]:
    return dict(enumerate(x.tolist()))
