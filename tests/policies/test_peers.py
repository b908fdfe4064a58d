"""The policies next to MABWiser's and river's, where the definitions coincide.

Where a peer is wrong, `benchmarks/test_peer_faults.py` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mabwiser.mab import MAB, LearningPolicy  # type: ignore[import-untyped]
from mabwiser.utils import create_rng  # type: ignore[import-untyped]
from river.linear_model import BayesianLinearRegression
from scipy import stats

import armlet
from armlet import kernel
from armlet.kernel import Statistics
from armlet.policies.algorithm_1 import Algorithm1
from armlet.policies.contextual_epsilon_greedy import AllDataEpsilonGreedy
from armlet.policies.linucb import LinUCB
from armlet.policies.thompson_sampling import ThompsonSampling
from armlet.types import Float64
from support.examples import scaled
from support.peers import (
    DRAWS,
    Log,
    assert_close,
    chi_square,
    deviation,
    expectations,
    learned,
    mabwiser,
    make_log,
    mean,
    river,
)
from support.streams import make_stream

logs = st.builds(make_log, dim=st.integers(1, 9), n_arms=st.integers(2, 6), seed=st.integers(0, 2**32 - 2))
ridges = st.floats(0.01, 100)
scales = st.floats(0.1, 3)
several = settings(max_examples=scaled(25))


def matrix_of(form: Callable[[Float64], Float64], dim: int) -> Float64:
    """Find the matrices M of quadratic forms x' M x, by what they give for sums of two unit vectors."""
    eye = np.eye(dim)
    alone = np.array([form(e) for e in eye])
    pairs = np.array([[form(e + f) for f in eye] for e in eye])
    return np.moveaxis((pairs - alone[:, None] - alone) / 2, -1, 0)


def posteriors(policy: ThompsonSampling, state: Statistics) -> Float64:
    """Find the covariance of every arm from the deviations that decisions are drawn with, (K, d, d)."""
    return matrix_of(lambda x: policy.deviations(state, 1, x) ** 2, state.dim)


@several
@given(log=logs, alpha=scales, ridge=ridges)
def test_linucb_has_the_estimates_and_bounds_of_mabwiser(log: Log, alpha: float, ridge: float) -> None:
    policy = LinUCB(alpha=alpha, ridge=ridge, units="as given")
    state = learned(policy, log)
    theirs = mabwiser(LearningPolicy.LinUCB(alpha=alpha, l2_lambda=ridge), log)
    models = theirs._imp.arm_to_model
    assert_close(policy.estimates(state), [models[a].beta for a in range(log.n_arms)])
    bounds = [policy.upper_bounds(state, x) for x in log.asked]
    assert_close(bounds, expectations(theirs, log.asked))


def test_mabwiser_plays_arms_that_linucb_would() -> None:
    """Live, with ridge = 1; where arms tie, as at the start, MABWiser plays the first and Armlet any of them."""
    stream, policy = make_stream(200, 4, 5, seed=3), LinUCB(alpha=0.7, units="as given")
    bandit = armlet.Bandit(arms=range(5), dim=4, policy=policy, seed=1)
    mab = MAB(list(range(5)), LearningPolicy.LinUCB(alpha=0.7), seed=1)
    mab.fit(list(range(5)), [0.0] * 5, np.zeros((5, 4)))
    played = []
    for x, rewards in zip(stream.contexts, stream.rewards, strict=True):
        arm = mab.predict(x[None])
        chances = bandit.predict_proba(x[None])[0]
        assert chances[arm] == chances.max()
        mab.partial_fit([arm], [rewards[arm]], x[None])
        bandit.partial_fit(x[None], [arm], [rewards[arm]])
        played.append(arm)
    assert set(played) == set(range(5))


@dataclass
class Recorder:
    """A generator that draws nothing and remembers what it was asked to draw from."""

    means: list[Float64] = field(default_factory=list)
    covariances: list[Float64] = field(default_factory=list)

    def rand(self, size: int | tuple[int, ...]) -> Float64:
        return np.ones(size)

    def multivariate_normal(self, mean: Float64, covariance: Float64, size: int) -> Float64:
        self.means.append(mean)
        self.covariances.append(covariance)
        return np.zeros((size, len(mean)))


@several
@given(log=logs, v=scales, ridge=ridges)
def test_thompson_sampling_draws_from_the_posterior_of_mabwiser(log: Log, v: float, ridge: float) -> None:
    """Its alpha is our v: both draw from N(theta_hat, v^2 V^-1)."""
    policy, recorder = ThompsonSampling(v=v, ridge=ridge, units="as given"), Recorder()
    state, theirs = learned(policy, log), mabwiser(LearningPolicy.LinTS(alpha=v, l2_lambda=ridge), log)
    for model in theirs._imp.arm_to_model.values():
        model.rng = recorder
    theirs.predict(log.asked)
    assert_close(policy.estimates(state), recorder.means)
    assert_close(posteriors(policy, state), recorder.covariances)


@several
@given(log=logs, v=scales, ridge=ridges)
def test_thompson_sampling_draws_from_the_posterior_of_river(log: Log, v: float, ridge: float) -> None:
    """Its beta is the precision of a reward, 1 / v^2, and its alpha that of the prior, ridge / v^2."""
    policy = ThompsonSampling(v=v, ridge=ridge, units="as given")
    state = learned(policy, log)
    found = posteriors(policy, state)
    for arm in range(log.n_arms):
        model = river(arm, log, alpha=ridge / v**2, beta=v**-2)

        def variance(x: Float64, model: BayesianLinearRegression = model) -> Float64:
            return np.array([deviation(model, x) ** 2 - v**2])

        means = [mean(model, e) for e in np.eye(log.dim)]
        assert_close(policy.estimates(state)[arm], means)
        assert_close(found[arm], matrix_of(variance, log.dim)[0])


@several
@given(log=logs, ridge=ridges)
def test_epsilon_greedy_has_the_estimates_and_greedy_arms_of_the_peers(log: Log, ridge: float) -> None:
    """The ridge of LinUCB must be asked for: the paper's own, lambda_n = 1/sqrt(n), no peer has."""
    policy, everyone = Algorithm1(p=6, ridge=ridge), np.ones(log.n_arms, dtype=np.bool_)
    state, theirs = learned(policy, log), mabwiser(LearningPolicy.LinGreedy(epsilon=0.0, l2_lambda=ridge), log)
    scores = np.array([state.scores(x) for x in log.asked])
    assert_close(scores, expectations(theirs, log.asked))
    rivers = [river(arm, log, alpha=ridge, beta=1.0) for arm in range(log.n_arms)]
    assert_close(scores, [[mean(model, x) for model in rivers] for x in log.asked])
    likeliest = [policy.probabilities(state, 60, x, everyone).argmax() for x in log.asked]
    assert likeliest == theirs.predict(log.asked)


def test_propensities_are_how_often_mabwisers_epsilon_greedy_plays_an_arm() -> None:
    """At step 20, where p/t is its epsilon; fixed seeds, level 1e-3."""
    log, policy = make_log(dim=3, n_arms=4, seed=5), AllDataEpsilonGreedy(p=6, ridge=2.0)
    mab = mabwiser(LearningPolicy.LinGreedy(epsilon=0.3, l2_lambda=2.0), log)
    chances = policy.probabilities(learned(policy, log), 20, log.asked[0], np.ones(4, dtype=np.bool_))
    assert chi_square(mab, log.asked[0], chances) > 1e-3


def test_samples_of_an_arm_have_the_law_of_mabwisers() -> None:
    """Two-sample Kolmogorov-Smirnov for each arm, 20,000 draws; fixed seeds, level 1e-3."""
    log, policy = make_log(dim=3, n_arms=4, seed=5), ThompsonSampling(v=0.8, ridge=2.0, units="as given")
    state, mab = learned(policy, log), mabwiser(LearningPolicy.LinTS(alpha=0.8, l2_lambda=2.0), log)
    x = log.asked[0]
    z = np.array([kernel.normals(*kernel.coins(3, t)[1:3], 4) for t in range(1, DRAWS + 1)])
    ours = state.scores(x) + policy.deviations(state, 1, x) * z
    theirs = expectations(mab, np.tile(x, (DRAWS, 1)))
    for arm in range(4):
        assert stats.ks_2samp(ours[:, arm], theirs[:, arm]).pvalue > 1e-3


def test_propensities_are_how_often_mabwisers_thompson_sampling_plays_an_arm() -> None:
    """Given a generator for each arm, since by itself it draws the same normals for all; fixed seeds, level 1e-3."""
    log, policy = make_log(dim=3, n_arms=4, seed=5), ThompsonSampling(v=0.8, ridge=2.0, units="as given")
    mab, x = mabwiser(LearningPolicy.LinTS(alpha=0.8, l2_lambda=2.0), log), log.asked[0]
    chances = policy.probabilities(learned(policy, log), 20, x, np.ones(4, dtype=np.bool_))
    for arm, model in mab._imp.arm_to_model.items():
        model.rng = create_rng(seed=arm)
    assert chi_square(mab, x, chances) > 1e-3


@pytest.mark.parametrize("ridge", [0.01, 100.0])
def test_the_width_of_an_arm_that_was_never_played_is_that_of_the_ridge_alone(ridge: float) -> None:
    policy, x = LinUCB(alpha=1.0, ridge=ridge, units="as given"), np.array([0.6, 0.8])
    assert_close(policy.upper_bounds(policy.init(2, 2), x), ridge**-0.5)  # |x| / sqrt(ridge)
