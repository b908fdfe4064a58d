"""LinUCB, OFUL and Thompson sampling: the kernel against the policies in Python, and their formulas."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from armlet import _kernel, kernel
from armlet.environments.environment import FiniteEnvironment
from armlet.kernel import Optimism, Statistics, Thompson
from armlet.policies.linucb import LinUCB
from armlet.policies.occasional_optimism import OccasionalOptimism
from armlet.policies.oful import OFUL
from armlet.policies.thompson_sampling import ThompsonSampling
from armlet.testing import check_policy
from armlet.types import Choice, Float64, Interaction, Policy
from support.examples import scaled
from support.streams import Stream, make_stream, streams

Ridged: TypeAlias = LinUCB | OFUL | ThompsonSampling

seeds = st.integers(0, 2**128 - 1)
levels = st.integers(0, 2)
policies = st.sampled_from(
    [
        LinUCB(),
        LinUCB(alpha=0.3, ridge=0.1),
        LinUCB(alpha=0.0),
        OFUL(noise_scale=0.5, theta_norm=2.0, delta=0.1),
        OFUL(radius="joint", ridge=3.0, width_scale=0.2),
        ThompsonSampling(v=0.7),
        ThompsonSampling(v=0.0),
        ThompsonSampling(width_scale=0.1, ridge=0.5, units="as given"),
        LinUCB(units="as given"),
        LinUCB(alpha=0.3, ridge=0.1, units="as given"),
        ThompsonSampling(v=0.7, units="as given"),
        ThompsonSampling(),
    ]
)


def play(policy: Ridged, stream: Stream, seed: int, start: Statistics | None = None) -> tuple[list[Choice], Statistics]:
    state, everyone = start or policy.init(stream.n_arms, stream.dim), np.ones(stream.n_arms, dtype=np.bool_)
    choices = []
    for t, (x, r) in enumerate(zip(stream.contexts, stream.rewards, strict=True), start=1):
        choice = policy.decide(state, t, x, kernel.coins(seed, t), everyone)
        policy.update(state, learned(t, x, choice, r))
        choices.append(choice)
    return choices, state


def learned(t: int, x: Float64, choice: Choice, rewards: Float64) -> Interaction:
    reward = float(rewards[choice.arm])
    return Interaction(t=t, x=x, arm=choice.arm, reward=reward, propensity=choice.propensity, explored=choice.explored)


@settings(max_examples=scaled(200))
@given(stream=streams(max_dim=20, max_arms=12, work=6000), policy=policies, seed=seeds, level=levels)
def test_kernel_plays_the_same_arms_as_the_policy(stream: Stream, policy: Ridged, seed: int, level: int) -> None:
    choices, state = play(policy, stream, seed)
    start = policy.init(stream.n_arms, stream.dim)
    _kernel._use_level(level)
    try:
        fast = kernel.rollout(stream.contexts, stream.rewards, start=start, rule=policy.rule(), seed=seed)
    finally:
        _kernel._use_level(2)
    assert fast.arms.tolist() == [choice.arm for choice in choices]
    assert fast.propensities.tolist() == [choice.propensity for choice in choices]
    assert not fast.explored.any()
    np.testing.assert_array_equal(fast.statistics.records(), state.records())
    assert not start.n.any()


def with_history(policy: Ridged, stream: Stream, kind: str) -> Statistics:
    """Make sums that were built in many ways: what is proved about their eigenvalues must never be too much."""
    state, half = policy.init(stream.n_arms, stream.dim), len(stream.contexts) // 2
    for i, (x, r) in enumerate(zip(stream.contexts[:half], stream.rewards, strict=False)):
        state.add(i % stream.n_arms, x, float(r[0]))
        if kind == "asked along the way":
            state.widths(x)
    if kind == "rows taken back":
        state.widths(stream.contexts[0])
        for i, (x, r) in enumerate(zip(stream.contexts[: half - 1], stream.rewards, strict=False)):
            state.add(i % stream.n_arms, x, float(r[0]), -1.0)
    if kind == "huge rows taken back":
        state.widths(stream.contexts[0])
        for sign in (1.0, -1.0):
            state.add(0, 1e7 * stream.contexts[0], 1.0, sign)
    if kind == "merged":
        state.widths(stream.contexts[0])
        state.merge(state.copy(), list(range(stream.n_arms)))
    if kind == "under way" and not isinstance(policy, OFUL):  # with the last arm, and some more, silent
        state.add_arm()
        state.remove_arm(0)
        counts = np.random.default_rng(half).integers(-1, 30, size=stream.n_arms)
        state.restore_arrays({**state.arrays(), "under_way": np.append(counts[:-1], 5)})
    return state


@settings(max_examples=scaled(200))
@given(
    stream=streams(max_dim=48, max_arms=9, work=20_000),
    policy=policies,
    kind=st.sampled_from(
        ["none", "asked along the way", "rows taken back", "huge rows taken back", "merged", "under way"]
    ),
    seed=seeds,
)
def test_arms_that_cannot_win_are_skipped_and_no_others(stream: Stream, policy: Ridged, kind: str, seed: int) -> None:
    """The policy in Python works out every width, the kernel only those that its bounds leave open."""
    start = with_history(policy, stream, kind)
    fast = kernel.rollout(
        stream.contexts,
        stream.rewards,
        start=start,
        rule=policy.rule(),
        seed=seed,
        propensities="skipped",
    )
    choices, _ = play(policy, stream, seed, start.copy())
    assert fast.arms.tolist() == [choice.arm for choice in choices]


@pytest.mark.parametrize("policy", [LinUCB(), LinUCB(alpha=0.3, ridge=0.1), OFUL(), ThompsonSampling(v=0.3)])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_widths_given_up_on_the_way_change_no_decision(policy: Ridged, level: int) -> None:
    """Enough dimensions and arms that many a width is left after some of its columns."""
    stream = make_stream(700, 61, 23, seed=level)
    choices, _ = play(policy, stream, 5)
    start, rule = policy.init(stream.n_arms, stream.dim), policy.rule()
    _kernel._use_level(level)
    try:
        fast = kernel.rollout(stream.contexts, stream.rewards, start=start, rule=rule, seed=5, propensities="skipped")
    finally:
        _kernel._use_level(2)
    assert fast.arms.tolist() == [choice.arm for choice in choices]


def test_a_rollout_in_two_pieces_is_one() -> None:
    stream, policy = make_stream(200, 5, 4, seed=1), ThompsonSampling()
    X, R, rule = stream.contexts, stream.rewards, policy.rule()
    whole = kernel.rollout(X, R, start=policy.init(4, 5), rule=rule, seed=9)
    first = kernel.rollout(X[:80], R[:80], start=policy.init(4, 5), rule=rule, seed=9)
    rest = kernel.rollout(X[80:], R[80:], start=first.statistics, rule=rule, seed=9, t=80)
    assert whole.arms.tolist() == [*first.arms.tolist(), *rest.arms.tolist()]


def test_skipped_propensities_change_nothing_else() -> None:
    stream, policy = make_stream(200, 5, 4, seed=1), ThompsonSampling()
    settings_: Any = {"start": policy.init(4, 5), "rule": policy.rule(), "seed": 3}
    full = kernel.rollout(stream.contexts, stream.rewards, **settings_)
    bare = kernel.rollout(stream.contexts, stream.rewards, **settings_, propensities="skipped")
    assert full.arms.tolist() == bare.arms.tolist()
    assert np.isnan(bare.propensities).all()
    with pytest.raises(ValueError, match="propensities is 'none'"):
        kernel.rollout(stream.contexts, stream.rewards, **settings_, propensities="none")  # type: ignore[arg-type]


# ---- formulas


@pytest.mark.parametrize("radius", ["per-arm", "joint"])
def test_the_radius_is_that_of_the_theorem(radius: str) -> None:
    """Written out with determinants of numpy, which at this size do not overflow."""
    policy = OFUL(noise_scale=0.4, theta_norm=1.5, delta=0.02, ridge=2.0, radius=radius, width_scale=0.9)  # type: ignore[arg-type]
    stream, K, d = make_stream(50, 3, 4, seed=3), 4, 3
    _, state = play(policy, stream, seed=5)
    dets = np.linalg.det(2.0 * np.eye(d) + state.A)
    if radius == "per-arm":
        inside = dets**0.5 * 2.0 ** (-d / 2) * K / 0.02
    else:
        inside = np.full(K, dets.prod() ** 0.5 * 2.0 ** (-K * d / 2) / 0.02)
    expected = 0.9 * (0.4 * np.sqrt(2 * np.log(inside)) + math.sqrt(2.0) * 1.5)
    np.testing.assert_allclose(policy.radii(state), expected, rtol=1e-12)


def test_linucb_is_the_printed_algorithm() -> None:
    """Li et al.'s Algorithm 1 in its own words, with inverses: A_a = I, b_a = 0, then the loop."""
    stream, alpha = make_stream(300, 4, 5, seed=8), 0.8
    A, b, played = np.tile(np.eye(4), (5, 1, 1)), np.zeros((5, 4)), []
    for t, (x, r) in enumerate(zip(stream.contexts, stream.rewards, strict=True), start=1):
        inverse = np.linalg.inv(A)
        theta = np.einsum("aij,aj->ai", inverse, b)
        p = theta @ x + alpha * np.sqrt(np.einsum("i,aij,j->a", x, inverse, x))
        tied = np.flatnonzero(np.isclose(p, p.max(), rtol=1e-12))  # "with ties broken arbitrarily": by our coins
        a = int(tied[kernel.coins(1, t).tie * len(tied) >> 64])
        A[a] += np.outer(x, x)
        b[a] += r[a] * x
        played.append(a)
    choices, _ = play(LinUCB(alpha=alpha, units="as given"), stream, seed=1)
    assert [choice.arm for choice in choices] == played


# ---- sampling


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(1, 40))
def test_normals_are_numpys_philox_through_the_inverse_distribution(pick: int, tie: int, n: int) -> None:
    """numpy steps its counter before the first draw, so the counter before block 0 is the largest there is."""
    words = np.random.Philox(key=pick + (tie << 64), counter=2**256 - 1).random_raw(n).tolist()
    expected = [NormalDist().inv_cdf(((word >> 12) + 0.5) * 2.0**-52) for word in words]
    np.testing.assert_allclose(kernel.normals(pick, tie, n), expected, rtol=1e-14, atol=1e-15)


def test_normals_have_the_normal_distribution() -> None:
    """One arm over 20,000 steps, then 20,000 arms of one step; Kolmogorov-Smirnov, fixed seeds."""
    over_steps = [kernel.normals(*kernel.coins(7, t)[1:3], 3)[2] for t in range(1, 20_001)]
    assert stats.kstest(over_steps, "norm").pvalue > 1e-3
    assert stats.kstest(kernel.normals(1, 2, 20_000), "norm").pvalue > 1e-3


def test_a_sample_has_the_posterior_of_its_arm() -> None:
    """Scores from theta ~ N(theta_hat, v^2 V^-1) drawn whole: mean and variance, 40,000 draws, four standard errors."""
    policy, stream, n = ThompsonSampling(v=0.5, units="as given"), make_stream(60, 3, 2, seed=4), 40_000
    _, state = play(policy, stream, seed=2)
    x, rng = stream.contexts[0], np.random.default_rng(1)
    z = np.array([kernel.normals(*kernel.coins(3, t)[1:3], 2) for t in range(1, n + 1)])
    ours = state.scores(x) + policy.deviations(state, 1, x) * z
    for arm in range(2):
        cov = 0.25 * np.linalg.inv(np.eye(3) + state.A[arm])
        theirs = rng.multivariate_normal(state.estimates()[arm], cov, size=n) @ x
        assert stats.ks_2samp(ours[:, arm], theirs).pvalue > 1e-3
        assert abs(ours[:, arm].mean() - state.scores(x)[arm]) < 4 * np.sqrt(x @ cov @ x / n)


def test_the_spread_of_the_theory_grows_with_the_step() -> None:
    policy = ThompsonSampling(noise_scale=0.3, delta=0.1, width_scale=0.5, units="as given")
    assert policy.spread(7, 1000) == pytest.approx(0.5 * 0.3 * math.sqrt(9 * 7 * math.log(1000 / 0.1)), rel=1e-15)


def win_by_quad(means: Float64, deviations: Float64, arm: int) -> float:
    m, s = means[arm], deviations[arm]

    def integrand(u: float) -> float:
        others = np.delete(stats.norm.cdf((u - means) / deviations), arm)
        return float(stats.norm.pdf((u - m) / s) / s * others.prod())

    points = sorted(p for p in np.concatenate([means, means - deviations, means + deviations]) if abs(p - m) < 10 * s)
    return float(integrate.quad(integrand, m - 10 * s, m + 10 * s, points=points, limit=1000, epsabs=1e-13)[0])


@settings(max_examples=scaled(15))
@given(n=st.integers(2, 7), gap=st.floats(-2, 1), ratio=st.floats(0, 2), seed=st.integers(0, 2**32 - 1), level=levels)
def test_win_probabilities_are_the_integrals(n: int, gap: float, ratio: float, seed: int, level: int) -> None:
    rng = np.random.default_rng(seed)
    means, deviations = rng.normal(size=n) * 10**gap, 10 ** rng.uniform(-ratio, 0, size=n)
    _kernel._use_level(level)
    try:
        found = kernel.win_probabilities(means, deviations)
    finally:
        _kernel._use_level(2)
    assert found.sum() == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(found, [win_by_quad(means, deviations, a) for a in range(n)], atol=1e-9)


def win_by_fine_sums(means: Float64, deviations: Float64) -> Float64:
    """Sum the integrand at points a twenty-fifth of the narrowest deviation apart, beyond all that matters."""
    ends = (means - 8.3 * deviations).max(), (means + 8.3 * deviations).max()
    z = (np.arange(*ends, 0.04 * deviations.min())[:, None] - means) / deviations
    below = stats.norm.logcdf(z)
    won = (np.exp(below.sum(axis=1, keepdims=True) - below - z * z / 2) / deviations).sum(axis=0)
    return np.asarray(won / won.sum())


@pytest.mark.parametrize("n", [2, 3, 8, 9, 32, 100, 300])
@pytest.mark.parametrize("spread", [0.01, 0.3, 1.0])
def test_win_probabilities_of_many_arms(n: int, spread: float) -> None:
    rng = np.random.default_rng(n)
    for scale in (0.01, 0.3, 3.0):
        means, deviations = scale * rng.normal(size=n), np.exp(spread * rng.uniform(-1, 1, size=n))
        found = kernel.win_probabilities(means, deviations)
        np.testing.assert_allclose(found, win_by_fine_sums(means, deviations), atol=1e-9)


@given(
    means=st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=20),
    scale=st.sampled_from([0.0, 1e-300, 1e-12, 1.0, 1e50]),
    data=st.data(),
)
def test_win_probabilities_are_probabilities_for_any_numbers(
    means: list[float], scale: float, data: st.DataObject
) -> None:
    n = len(means)
    deviations = scale * np.array(data.draw(st.lists(st.floats(0, 1e50), min_size=n, max_size=n)))
    found = kernel.win_probabilities(np.array(means), deviations)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


def test_win_probabilities_with_constants() -> None:
    found = kernel.win_probabilities(np.array([0.0, 1.0, 1.0, 0.0]), np.array([0.0, 0.0, 0.0, 2.0]))
    above = 1 - NormalDist(0, 2).cdf(1.0)
    np.testing.assert_allclose(found, [0.0, (1 - above) / 2, (1 - above) / 2, above], atol=1e-9)
    assert kernel.win_probabilities(np.array([3.0, 3.0]), np.zeros(2)).tolist() == [0.5, 0.5]
    far = kernel.win_probabilities(np.array([0.0, 0.0, -50.0]), np.array([1e-9, 1.0, 1.0]))
    np.testing.assert_allclose(far, [0.5, 0.5, 0.0], atol=1e-8)


@pytest.mark.parametrize("n", [2, 12, 100])
def test_propensities_are_how_often_arms_win(n: int) -> None:
    """Chi-square over 200,000 draws; arms expected fewer than 10 times are counted together."""
    rng = np.random.default_rng(n)
    means, deviations = 0.3 * rng.normal(size=n), rng.uniform(0.1, 0.5, size=n)
    found = kernel.win_probabilities(means, deviations)
    draws = np.concatenate([rng.normal(means, deviations, size=(20_000, n)).argmax(axis=1) for _ in range(10)])
    counts, expected = np.bincount(draws, minlength=n), 200_000 * found
    rare = expected < 10
    seen = np.append(counts[~rare], counts[rare].sum() + 1e-9)
    hoped = np.append(expected[~rare], expected[rare].sum() + 1e-9)
    assert stats.chisquare(seen, hoped * seen.sum() / hoped.sum()).pvalue > 1e-3


# ---- simulations


def two_contexts() -> FiniteEnvironment:
    contexts = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    theta = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.4]])
    chances = np.array([0.5, 0.2, 0.3])
    return FiniteEnvironment(contexts=contexts, chances=chances, means=contexts @ theta.T, noise="gaussian", scale=0.5)


def regret_in_python(policy: Ridged, environment: FiniteEnvironment, T: int, seed: int) -> float:
    rng, K = np.random.default_rng(seed), environment.means.shape[1]
    places = rng.choice(len(environment.chances), size=T, p=environment.chances)
    rewards = environment.means[places] + environment.scale * rng.normal(size=(T, K))
    stream = Stream(np.ascontiguousarray(environment.contexts[places]), rewards)
    choices = play(policy, stream, seed)[0]
    return float(environment.losses[places, [choice.arm for choice in choices]].sum())


@pytest.mark.parametrize(
    "policy",
    [LinUCB(), OFUL(noise_scale=0.5), ThompsonSampling(v=0.5)],
    ids=["LinUCB", "OFUL", "Thompson"],
)
def test_simulated_steps_have_the_law_of_the_loop_in_python(policy: Ridged) -> None:
    """Two-sample Kolmogorov-Smirnov on the regret after 80 steps; fixed seeds, level 1e-3 in each of three cases."""
    environment, T = two_contexts(), 80
    at, start = np.array([T]), policy.init(3, 2)
    fast = [
        kernel.simulate_steps(
            environment,
            start=start,
            rule=policy.rule(),
            horizon=T,
            checkpoints=at,
            environment_seed=seed,
            policy_seed=seed + 10**6,
        ).regret[0]
        for seed in range(1500)
    ]
    slow = [regret_in_python(policy, environment, T, 5000 + seed) for seed in range(200)]
    assert stats.ks_2samp(fast, slow).pvalue > 1e-3


# ---- the promises of every policy, kept by the versions in Python


class LinUCBInPython(LinUCB):
    def rule(self) -> None:  # type: ignore[override]
        return None


class OFULInPython(OFUL):
    def rule(self) -> None:  # type: ignore[override]
        return None


class ThompsonInPython(ThompsonSampling):
    def rule(self) -> None:  # type: ignore[override]
        return None


@pytest.mark.parametrize("policy", [LinUCBInPython(), OFULInPython(), ThompsonInPython(v=0.5)])
def test_policies_in_python_keep_the_promises(policy: Policy) -> None:
    check_policy(policy)


# ---- refusals


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinUCB(alpha=-1.0), "alpha is -1.0"),
        (lambda: LinUCB(ridge=0.0), "ridge is 0.0; give a positive number"),
        (lambda: LinUCB(delta=1.0), "delta is 1.0"),
        (lambda: OFUL(radius="each"), "radius is 'each'"),  # type: ignore[arg-type]
        (lambda: OFUL(theta_norm=math.nan), "theta_norm is nan"),
        (lambda: ThompsonSampling(v=-0.1), "v is -0.1"),
        (lambda: Optimism.constant(math.nan), "alpha is nan"),
        (lambda: Optimism.oful("each", noise_scale=1.0, bound=1.0, delta=0.1), "radius is 'each'"),
        (lambda: Thompson.theory(noise_scale=1.0, delta=2.0), "delta is 2.0"),
        (lambda: kernel.win_probabilities(np.array([np.nan]), np.ones(1)), "means must be finite"),
        (lambda: kernel.win_probabilities(np.zeros(0), np.zeros(0)), "means is empty"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_a_rule_on_the_wrong_kind_of_state_is_refused() -> None:
    x, r = np.ones((1, 2)), np.ones((1, 3))
    with pytest.raises(TypeError, match="this rule works on LazyStatistics statistics; got a Statistics"):
        kernel.rollout(x, r, start=LinUCB().init(3, 2), rule=OccasionalOptimism().rule(), seed=1)
    with pytest.raises(TypeError, match=r"rule must be a Schedule, .*; got a str"):
        kernel.rollout(x, r, start=LinUCB().init(3, 2), rule="LinUCB", seed=1)  # type: ignore[arg-type]
