"""The policies against MABWiser's and river's: equal where the definitions coincide, and who is right where not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mabwiser.mab import MAB, LearningPolicy  # type: ignore[import-untyped]
from mabwiser.utils import create_rng  # type: ignore[import-untyped]
from river.bandit import LinUCBDisjoint
from river.linear_model import BayesianLinearRegression
from scipy import stats

import armlet
from armlet.core import kernel
from armlet.core.kernel import Statistics
from armlet.core.types import Float64, Int64
from armlet.policies.algorithm_1 import Algorithm1
from armlet.policies.all_data_epsilon_greedy import AllDataEpsilonGreedy
from armlet.policies.linucb import LinUCB
from armlet.policies.thompson_sampling import ThompsonSampling
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


logs = st.builds(make_log, dim=st.integers(1, 9), n_arms=st.integers(2, 6), seed=st.integers(0, 2**32 - 2))
ridges = st.floats(0.01, 100)
scales = st.floats(0.1, 3)
several = settings(max_examples=25, deadline=None)


def assert_close(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> None:
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-8, atol=1e-8)


def learned(policy: Ours, log: Log) -> Statistics:
    bandit = armlet.Bandit(arms=range(log.n_arms), dim=log.dim, policy=policy, seed=1)
    bandit.partial_fit(log.X, log.arms, log.rewards, explored=True)
    assert isinstance(bandit.state, Statistics)
    return bandit.state


def mabwiser(policy: object, log: Log) -> MAB:
    """Give it the first half at once and the second in another call, as its users do."""
    mab, half = MAB(list(range(log.n_arms)), policy, seed=1), len(log.X) // 2
    mab.fit(log.arms[:half], log.rewards[:half], log.X[:half])
    mab.partial_fit(log.arms[half:], log.rewards[half:], log.X[half:])
    return mab


def expectations(mab: MAB, X: Float64) -> Float64:
    return np.array([list(row.values()) for row in mab.predict_expectations(X)])


def chi_square(mab: MAB, x: Float64, chances: Float64) -> float:
    """Give the p-value of 20,000 decisions for one context if these were their chances."""
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


def matrix_of(form: Callable[[Float64], Float64], dim: int) -> Float64:
    """Find the matrices M of quadratic forms x' M x, by what they give for sums of two unit vectors."""
    eye = np.eye(dim)
    alone = np.array([form(e) for e in eye])
    pairs = np.array([[form(e + f) for f in eye] for e in eye])
    return np.moveaxis((pairs - alone[:, None] - alone) / 2, -1, 0)


def posteriors(policy: ThompsonSampling, state: Statistics) -> Float64:
    """Find the covariance of every arm from the deviations that decisions are drawn with, (K, d, d)."""
    return matrix_of(lambda x: policy.deviations(state, 1, x) ** 2, state.dim)


# ---- where the definitions coincide


@several
@given(log=logs, alpha=scales, ridge=ridges)
def test_linucb_has_the_estimates_and_bounds_of_mabwiser(log: Log, alpha: float, ridge: float) -> None:
    policy = LinUCB(alpha=alpha, ridge=ridge)
    state = learned(policy, log)
    theirs = mabwiser(LearningPolicy.LinUCB(alpha=alpha, l2_lambda=ridge), log)
    models = theirs._imp.arm_to_model
    assert_close(policy.estimates(state), [models[a].beta for a in range(log.n_arms)])
    bounds = [policy.upper_bounds(state, x) for x in log.asked]
    assert_close(bounds, expectations(theirs, log.asked))


def test_mabwiser_plays_arms_that_linucb_would() -> None:
    """Live, with ridge = 1; where arms tie, as at the start, MABWiser plays the first and Armlet any of them."""
    stream, policy = make_stream(200, 4, 5, seed=3), LinUCB(alpha=0.7)
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
    policy, recorder = ThompsonSampling(v=v, ridge=ridge), Recorder()
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
    policy = ThompsonSampling(v=v, ridge=ridge)
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
    log, policy = make_log(dim=3, n_arms=4, seed=5), ThompsonSampling(v=0.8, ridge=2.0)
    state, mab = learned(policy, log), mabwiser(LearningPolicy.LinTS(alpha=0.8, l2_lambda=2.0), log)
    x = log.asked[0]
    z = np.array([kernel.normals(*kernel.coins(3, t)[1:3], 4) for t in range(1, DRAWS + 1)])
    ours = state.scores(x) + policy.deviations(state, 1, x) * z
    theirs = expectations(mab, np.tile(x, (DRAWS, 1)))
    for arm in range(4):
        assert stats.ks_2samp(ours[:, arm], theirs[:, arm]).pvalue > 1e-3


# ---- where they differ, and who is right


@pytest.mark.parametrize("ridge", [0.01, 100.0])
def test_mabwiser_mistakes_the_ridge_for_its_inverse_until_an_arm_is_played(ridge: float) -> None:
    """Armlet is right: with A_a = 0 the width is |x| / sqrt(ridge); MABWiser starts V^-1 at ridge I, not I / ridge."""
    policy, x = LinUCB(alpha=1.0, ridge=ridge), np.array([0.6, 0.8])
    mab = MAB([0, 1], LearningPolicy.LinUCB(alpha=1.0, l2_lambda=ridge), seed=1)
    mab.fit([0], [0.0], np.zeros((1, 2)))
    theirs = expectations(mab, np.array([x, x]))[0]
    assert_close(policy.upper_bounds(policy.init(2, 2), x), ridge**-0.5)
    assert_close(theirs, [ridge**-0.5, ridge**0.5])  # arm 0 was fitted, arm 1 was not


def test_mabwiser_draws_the_same_normals_for_every_arm() -> None:
    """Armlet is right: Thompson sampling plays an arm as often as it is the best under independent posteriors.

    MABWiser copies its generator along with each arm that it fits, so all arms draw the same normals and rise and fall
    together. Given a generator each, it plays by our propensities: fixed seeds, level 1e-3.
    """
    log, policy = make_log(dim=3, n_arms=4, seed=5), ThompsonSampling(v=0.8, ridge=2.0)
    mab, x = mabwiser(LearningPolicy.LinTS(alpha=0.8, l2_lambda=2.0), log), log.asked[0]
    chances = policy.probabilities(learned(policy, log), 20, x, np.ones(4, dtype=np.bool_))
    assert np.corrcoef(expectations(mab, np.tile(x, (DRAWS, 1))).T).min() > 0.9
    assert chi_square(mab, x, chances) < 1e-100
    for arm, model in mab._imp.arm_to_model.items():
        model.rng = create_rng(seed=arm)
    assert chi_square(mab, x, chances) > 1e-3


def test_mabwiser_adds_up_the_draws_of_a_batch_where_contexts_have_one_value() -> None:
    """Armlet is right: without spread a sample is x theta_hat; MABWiser's is x times the sum of all rows' draws."""
    log, policy, rows = make_log(dim=1, n_arms=2, seed=5), ThompsonSampling(v=1e-12), np.ones((100, 1))
    mab, state = mabwiser(LearningPolicy.LinTS(alpha=1e-12), log), learned(policy, log)
    assert_close(100 * state.scores(rows[0]), expectations(mab, rows)[0])


def test_mabwiser_gives_noise_for_expectations_where_it_explores() -> None:
    """Armlet is right: an estimate does not depend on a coin; MABWiser's LinGreedy then gives uniform draws."""
    log = make_log(dim=3, n_arms=4, seed=5)
    bandit = armlet.Bandit(arms=range(4), dim=3, policy=AllDataEpsilonGreedy(p=4, ridge=1.0), seed=1)
    bandit.partial_fit(log.X, log.arms, log.rewards)
    same = np.tile(log.asked[0], (DRAWS, 1))
    assert np.ptp(bandit.predict_expectations(same), axis=0).tolist() == [0.0] * 4
    theirs = expectations(mabwiser(LearningPolicy.LinGreedy(epsilon=0.5), log), same)
    noise = theirs[np.abs(theirs - bandit.predict_expectations(same)).max(axis=1) > 1e-8]
    assert abs(len(noise) / DRAWS - 0.5) < 4 * (0.25 / DRAWS) ** 0.5  # four standard errors
    assert stats.kstest(noise.ravel(), "uniform").pvalue > 1e-3


def test_mabwiser_with_scaling_depends_on_how_the_log_was_cut() -> None:
    """Armlet is right to keep sums of the rows as given; MABWiser adds rows that were scaled by different scalers."""
    log, policy = make_log(dim=3, n_arms=2, seed=5), LearningPolicy.LinUCB(scale=True)
    whole = MAB([0, 1], policy, seed=1)
    whole.fit(log.arms, log.rewards, log.X)
    apart = expectations(whole, log.asked) - expectations(mabwiser(policy, log), log.asked)
    assert np.abs(apart).max() > 1e-2
    bandits = [armlet.Bandit(arms=range(2), dim=3, policy=LinUCB(), seed=1) for _ in range(2)]
    bandits[0].partial_fit(log.X, log.arms, log.rewards)
    for part in (slice(0, 40), slice(40, None)):
        bandits[1].partial_fit(log.X[part], log.arms[part], log.rewards[part])
    one, two = (bandit.predict_expectations(log.asked) for bandit in bandits)
    np.testing.assert_array_equal(one, two)


def test_river_adds_the_noise_of_a_reward_to_the_width() -> None:
    """Armlet is right: LinUCB bounds the mean reward by alpha sqrt(x' V^-1 x), which vanishes as rows come in.

    river's sqrt(1 + x' V^-1 x) is the deviation of a single reward: it never falls below 1, so what was learned about
    an arm hardly changes its bound, and no setting multiplies it (its alpha is the prior's precision).
    """
    log, policy = make_log(dim=3, n_arms=4, seed=5), LinUCB(alpha=1.0)
    state = learned(policy, log)
    rivers = [river(arm, log, alpha=1.0, beta=1.0) for arm in range(4)]
    theirs = [[deviation(model, x) for model in rivers] for x in log.asked]
    assert_close([np.sqrt(1 + state.widths(x) ** 2) for x in log.asked], theirs)


def test_river_stays_with_an_arm_that_linucb_leaves() -> None:
    """After 99 rows of 0.3 and one of 0: 0.297 + 0.1 is less than 0.707, but 0.297 + 1.005 more than 1.225."""
    x, ours, theirs = np.ones(1), LinUCB(alpha=1.0), LinUCBDisjoint(alpha=1.0, beta=1.0, seed=1)
    state = ours.init(2, 1)
    for arm, reward in [(0, 0.3)] * 99 + [(1, 0.0)]:
        state.add(arm, x, reward)
        theirs.update(arm, named(x), reward)  # type: ignore[no-untyped-call]
    assert_close(ours.upper_bounds(state, x), [0.297 + 0.1, 0.5**0.5])
    assert ours.upper_bounds(state, x).argmax() == 1
    assert theirs.pull([0, 1], context=named(x)) == 0


def test_river_learns_many_rows_with_the_inverse_of_its_prior() -> None:
    """Armlet is right: rows learned together or one by one give the same estimate, with the ridge asked for.

    river's `learn_one` starts the precision at alpha I, as documented, but `learn_many` at I / alpha.
    """
    log, ridge, eye = make_log(dim=3, n_arms=2, seed=5), 5.0, np.eye(3)
    together, mine = BayesianLinearRegression(alpha=ridge, beta=1.0), log.arms == 0
    together.learn_many(pd.DataFrame(log.X[mine]), pd.Series(log.rewards[mine]))
    one_by_one = river(0, log, alpha=ridge, beta=1.0)
    assert_close(learned(LinUCB(ridge=ridge), log).estimates()[0], [mean(one_by_one, e) for e in eye])
    assert_close(learned(LinUCB(ridge=1 / ridge), log).estimates()[0], [mean(together, e) for e in eye])
