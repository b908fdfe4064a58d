"""Where MABWiser and river differ from their definitions, and who is right: what a comparison with them has to know.

    .venv/bin/pytest benchmarks/test_peer_faults.py       # part of `make bench`

A test that fails here says that a peer changed, not that Armlet did.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from mabwiser.mab import MAB, LearningPolicy
from river.bandit import LinUCBDisjoint
from river.linear_model import BayesianLinearRegression
from scipy import stats

import armlet
from armlet.policies.contextual_epsilon_greedy import AllDataEpsilonGreedy
from armlet.policies.linucb import LinUCB
from armlet.policies.thompson_sampling import ThompsonSampling
from support.peers import (
    DRAWS,
    assert_close,
    chi_square,
    deviation,
    expectations,
    learned,
    mabwiser,
    make_log,
    mean,
    named,
    river,
)


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
    together. Given a generator each, it plays by our propensities, which tests/policies/test_peers.py holds them to.
    """
    log, policy = make_log(dim=3, n_arms=4, seed=5), ThompsonSampling(v=0.8, ridge=2.0)
    mab, x = mabwiser(LearningPolicy.LinTS(alpha=0.8, l2_lambda=2.0), log), log.asked[0]
    chances = policy.probabilities(learned(policy, log), 20, x, np.ones(4, dtype=np.bool_))
    assert np.corrcoef(expectations(mab, np.tile(x, (DRAWS, 1))).T).min() > 0.9
    assert chi_square(mab, x, chances) < 1e-100


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
        theirs.update(arm, named(x), reward)
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
