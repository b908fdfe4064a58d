"""The kernel against the readable numpy reference, on the same draws."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet import _kernel, kernel
from armlet.inputs.settings import Ridge, RidgeLike
from armlet.kernel import Statistics
from armlet.policies import Algorithm1
from armlet.reference.choice import coins
from armlet.reference.schedule import Reference
from armlet.types import Float64, Int64, LearnsFrom
from support.examples import scaled
from support.in_python import AllDataBySteps, AllDataInPython, InPython
from support.streams import Stream, make_stream, streams

seeds = st.integers(0, 2**128 - 1)
ridges = st.sampled_from(["paper", "1/n", 0.3])


@given(seeds, st.integers(1, 2**62))
def test_coins_are_numpys_philox(seed: int, t: int) -> None:
    assert kernel.coins(seed, t) == coins(seed, t)


def oracle(stream: Stream, policy: Algorithm1, seed: int) -> Reference:
    return Reference(
        stream.n_arms,
        stream.dim,
        float(policy.p),
        seed,
        ridge=Ridge.parse(policy.ridge),
        warmup=policy.warmup,
        learns_from=policy.learns_from,
    )


@settings(max_examples=scaled(150))
@given(
    stream=streams(),
    spare=st.floats(0, 20),
    seed=seeds,
    ridge=ridges,
    warmup=st.sampled_from(["round-robin", "uniform"]),
    policy_type=st.sampled_from([Algorithm1, AllDataBySteps]),
)
def test_kernel_plays_the_same_arms_as_the_reference(
    stream: Stream,
    spare: float,
    seed: int,
    ridge: RidgeLike,
    warmup: str,
    policy_type: type[Algorithm1],
) -> None:
    policy = policy_type(p=stream.n_arms + spare, ridge=ridge, warmup=warmup)  # type: ignore[arg-type]
    slow = oracle(stream, policy, seed)
    choices = slow.run(stream.contexts, stream.rewards)
    start = policy.init(stream.n_arms, stream.dim)
    fast = kernel.rollout(stream.contexts, stream.rewards, start=start, rule=policy.rule(), seed=seed)
    assert fast.arms.tolist() == [choice.arm for choice in choices]
    assert fast.explored.tolist() == [choice.explored for choice in choices]
    assert fast.propensities.tolist() == [choice.propensity for choice in choices]
    # every sum is made in the same order, so they agree to the last bit, not only to 1e-10
    for name in ("n", "A", "b", "sum_r", "sum_rr"):
        np.testing.assert_array_equal(getattr(fast.statistics, name), getattr(slow, name))
    np.testing.assert_array_equal(fast.statistics.estimates(), slow.estimates())


@pytest.mark.parametrize("dim", [1, 2, 7, 8, 9, 16, 31, 40, 100, 128])
def test_estimates_solve_the_printed_system(dim: int) -> None:
    """(lambda_n I + A / n) theta = b / n with lambda_n = 1 / sqrt(n), by a solver that is not ours."""
    stream = make_stream(3 * dim, dim, 1, seed=dim)
    state = Statistics(1, dim)
    for x, r in zip(stream.contexts, stream.rewards[:, 0], strict=True):
        state.add(0, x, float(r))
    n, X = len(stream.contexts), stream.contexts
    printed = np.linalg.solve(np.eye(dim) / np.sqrt(n) + X.T @ X / n, X.T @ stream.rewards[:, 0] / n)
    np.testing.assert_allclose(state.estimates()[0], printed, rtol=1e-10, atol=1e-12)


def test_the_reference_is_the_printed_algorithm() -> None:
    """The whole loop once more, by library solvers and in the paper's own words: t, K, n_a, b_a, A_a."""
    stream, p, seed = make_stream(400, 3, 4, seed=5), 20.0, 11
    K, d = stream.n_arms, stream.dim
    A, n, b = np.zeros((K, d, d)), np.zeros(K), np.zeros((K, d))
    played = []
    for t in range(1, 401):
        x, tossed = stream.contexts[t - 1], coins(seed, t)
        explore = t <= p or tossed.coin < p / t
        if t <= p:
            a = t % K
        elif explore:
            a = tossed.pick * K >> 64
        else:
            systems = np.eye(d) / np.sqrt(n)[:, None, None] + A / n[:, None, None]
            a = int(np.argmax(np.linalg.solve(systems, (b / n[:, None])[..., None])[..., 0] @ x))
        if explore:
            n[a] += 1
            b[a] += stream.rewards[t - 1, a] * x
            A[a] += np.outer(x, x)
        played.append(a)
    assert [c.arm for c in Reference(K, d, p, seed).run(stream.contexts, stream.rewards)] == played


@settings(max_examples=scaled(60))
@given(stream=streams(max_dim=12, max_arms=8), spare=st.floats(0, 20), seed=seeds, ridge=ridges)
def test_bandit_step_by_step_equals_the_compiled_loop(
    stream: Stream, spare: float, seed: int, ridge: RidgeLike
) -> None:
    policy = Algorithm1(p=stream.n_arms + spare, ridge=ridge)
    start = policy.init(stream.n_arms, stream.dim)
    loop = kernel.rollout(stream.contexts, stream.rewards, start=start, rule=policy.rule(), seed=seed)
    bandit = armlet.Bandit(range(stream.n_arms), stream.dim, policy=policy, seed=seed)
    for i, x in enumerate(stream.contexts):
        decision = bandit.decide(x)
        assert (decision.arm, decision.propensity) == (loop.arms[i], loop.propensities[i])
        bandit.learn(decision, float(stream.rewards[i, loop.arms[i]]))
    np.testing.assert_array_equal(bandit.state.records(), loop.statistics.records())


@pytest.fixture(params=[0, 1, 2], ids=["any processor", "AVX2", "AVX-512"])
def level(request: pytest.FixtureRequest) -> Iterator[int]:
    """Run the code of each kind of processor up to this one's."""
    used = _kernel._use_level(request.param)
    yield used
    _kernel._use_level(2)


@pytest.mark.parametrize(("dim", "n_arms"), [(3, 6), (8, 9), (13, 17), (32, 32), (41, 70), (128, 100)])
def test_every_processor_gives_the_same_bits(level: int, dim: int, n_arms: int) -> None:
    assert level in (0, 1, 2)
    stream, policy = make_stream(4 * n_arms, dim, n_arms, seed=dim), Algorithm1(p=3.5 * n_arms)
    start = policy.init(n_arms, dim)
    fast = kernel.rollout(stream.contexts, stream.rewards, start=start, rule=policy.rule(), seed=1)
    slow = oracle(stream, policy, seed=1)
    for i in range(len(stream.contexts)):  # the reference's sums; its decisions are compared above
        if fast.explored[i]:
            slow.add(int(fast.arms[i]), stream.contexts[i], float(stream.rewards[i, fast.arms[i]]))
    np.testing.assert_array_equal(fast.statistics.records()[:, 3 : 3 + dim], slow.b)
    np.testing.assert_array_equal(fast.statistics.A, slow.A)
    np.testing.assert_array_equal(fast.statistics.estimates(), slow.estimates())
    x = stream.contexts[0]
    np.testing.assert_array_equal(fast.statistics.scores(x), slow.scores(x))


def float64_argmax(X: Float64, theta: Float64) -> Int64:
    """Sum in the order of the features, as decisions do, and take the first of the best."""
    scores = np.zeros((len(X), len(theta)))
    for j in range(X.shape[1]):
        scores += X[:, j : j + 1] * theta[:, j]
    best: Int64 = np.argmax(scores, axis=1)
    return best


@settings(max_examples=scaled(100))
@given(stream=streams(max_dim=150, max_arms=120, work=200_000), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_batch_argmax_is_the_float64_argmax(stream: Stream, seed: int, data: st.DataObject) -> None:
    """Near ties are what float32 gets wrong, so arms are copies of few thetas, some shifted by one part in 10^k."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(stream.n_arms, stream.dim))[rng.integers(0, 3, size=stream.n_arms) % stream.n_arms]
    theta *= 1 + 10.0 ** -data.draw(st.integers(3, 17)) * rng.normal(size=theta.shape)
    theta *= data.draw(st.sampled_from([1.0, 1e-8, 1e8, 1e-300, 0.0]))
    used = _kernel._use_level(data.draw(st.integers(0, 2)))
    try:
        found = kernel.argmax_rows(stream.contexts, theta)
    finally:
        _kernel._use_level(2)
    assert found.tolist() == float64_argmax(stream.contexts, theta).tolist(), used


def test_batch_argmax_with_more_arms_than_the_float32_path_takes() -> None:
    rng = np.random.default_rng(3)
    X, theta = rng.normal(size=(50, 4)), rng.normal(size=(1500, 4))
    assert kernel.argmax_rows(X, theta).tolist() == float64_argmax(X, theta).tolist()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 3), dtype=np.float32), "X must be a C-contiguous float64 .* got float32 of shape"),
        (np.zeros((3, 2)).T, "not C-contiguous"),
        (np.zeros((2, 4)), r"of shape \(2, 3\); got float64 of shape \(2, 4\)"),
        ([[1.0, 2.0, 3.0]], "got a list"),
    ],
)
def test_kernel_refuses_what_it_would_have_to_copy(X: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        kernel.argmax_rows(X, np.zeros((5, 3)))


@settings(max_examples=scaled(60))
@given(
    stream=streams(max_dim=6, max_arms=8, work=3000),
    spare=st.floats(0, 20),
    seed=seeds,
    learns_from=st.sampled_from(["explored steps", "every step"]),
    warmup=st.sampled_from(["round-robin", "uniform"]),
    data=st.data(),
)
def test_policy_in_python_decides_as_the_kernel_does(
    stream: Stream, spare: float, seed: int, learns_from: LearnsFrom, warmup: str, data: st.DataObject
) -> None:
    pair = (Algorithm1, InPython) if learns_from == "explored steps" else (AllDataBySteps, AllDataInPython)
    bandits = [
        armlet.Bandit(
            range(stream.n_arms),
            stream.dim,
            policy=kind(p=stream.n_arms + spare, warmup=warmup),  # type: ignore[arg-type]
            seed=seed,
        )
        for kind in pair
    ]
    arms = st.lists(st.integers(0, stream.n_arms - 1), min_size=1, unique=True)
    for x, rewards in zip(stream.contexts[:60], stream.rewards, strict=False):
        eligible = data.draw(st.none() | arms)
        chances = [bandit.predict_proba([x], eligible=eligible)[0] for bandit in bandits]
        decisions = [bandit.decide(x, eligible=eligible) for bandit in bandits]
        for bandit, decision in zip(bandits, decisions, strict=True):
            bandit.learn(decision, float(rewards[int(decision.arm)]))
        np.testing.assert_array_equal(*chances)
        assert repr(decisions[0]) == repr(decisions[1])
        assert chances[0][int(decisions[0].arm)] == decisions[0].propensity
    np.testing.assert_array_equal(bandits[0].state.records(), bandits[1].state.records())
