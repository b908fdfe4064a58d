"""The two compiled simulations: one against the step-by-step loop on the same draws, the other against the first."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from armlet import kernel
from armlet.environments.environment import FiniteEnvironment, Noise
from armlet.kernel import Rollout, Schedule, Simulated, Statistics
from armlet.policies import Algorithm1, AutoAlgorithm1, ContextualEpsilonGreedy
from armlet.types import Float64, Int64

LANE = 1 << 64  # the second word of a Philox counter


def uniforms(seed: int, counter: int) -> list[float]:
    """Draw the four numbers of one block with numpy's own Philox, which steps its counter before it draws."""
    words = np.random.Philox(key=seed, counter=counter - 1).random_raw(4)
    return [int(word >> np.uint64(11)) * 2.0**-53 for word in words]


def make_environment(
    noise: Noise = "proportional", n_contexts: int = 8, n_arms: int = 5, dim: int = 3
) -> FiniteEnvironment:
    rng = np.random.default_rng(n_contexts + n_arms)
    contexts, theta = rng.random((n_contexts, dim)), rng.random((n_arms, dim)) / dim
    chances = np.full(n_contexts, 1 / n_contexts)
    return FiniteEnvironment(contexts=contexts, chances=chances, means=contexts @ theta.T, noise=noise, scale=0.5)


def reward(environment: FiniteEnvironment, i: int, arm: int, u: float, v: float) -> float:
    mu = environment.means[i, arm]
    return float(
        {
            "proportional": mu * (1.0 + environment.scale * (2.0 * u - 1.0)),
            "gaussian": mu + environment.scale * np.sqrt(-2.0 * np.log1p(-u)) * np.cos(2.0 * np.pi * v),
            "bernoulli": u < mu,
            "none": mu,
        }[environment.noise]
    )


def run(
    environment: FiniteEnvironment, policy: Algorithm1 | ContextualEpsilonGreedy, method: str, seed: int, at: Int64
) -> Simulated[Statistics]:
    simulate: Any = {"steps": kernel.simulate_steps, "events": kernel.simulate_events}[method]
    found: Simulated[Statistics] = simulate(
        environment,
        start=policy.init(environment.means.shape[1], environment.contexts.shape[1]),
        rule=policy.rule(),
        horizon=int(at[-1]),
        checkpoints=at,
        environment_seed=seed,
        policy_seed=seed + 10**6,
    )
    return found


def plain_loop(
    environment: FiniteEnvironment, policy: Algorithm1 | ContextualEpsilonGreedy, seed: int, T: int
) -> tuple[Rollout[Statistics], list[int]]:
    """Play on the draws of a simulation, made again; with equal chances the context is floor(u M)."""
    M, K = environment.means.shape
    places = [int(uniforms(seed, (t - 1) // 4 + LANE)[(t - 1) % 4] * M) for t in range(1, T + 1)]
    rewards = np.array(
        [
            [reward(environment, i, arm, *uniforms(seed, t + 2 * LANE + arm * LANE**2)[:2]) for arm in range(K)]
            for t, i in enumerate(places, start=1)
        ]
    )
    start = policy.init(K, environment.contexts.shape[1])
    loop = kernel.rollout(environment.contexts[places], rewards, start=start, rule=policy.rule(), seed=seed + 10**6)
    return loop, places


@pytest.mark.parametrize("noise", ["proportional", "gaussian", "bernoulli", "none"])
@pytest.mark.parametrize("warmup", ["round-robin", "uniform"])
@pytest.mark.parametrize("kind", [partial(Algorithm1, p=12.5), partial(AutoAlgorithm1, horizon=2000)])
def test_steps_are_those_of_the_compiled_loop(noise: Noise, warmup: Any, kind: Any) -> None:
    environment, seed, T = make_environment(noise), 77, 400
    policy = kind(warmup=warmup)
    loop, places = plain_loop(environment, policy, seed, T)
    simulated = run(environment, policy, "steps", seed, np.arange(1, T + 1))
    losses = environment.losses[places, loop.arms]
    np.testing.assert_allclose(simulated.regret, losses.cumsum(), rtol=1e-12)
    np.testing.assert_allclose(simulated.exploring, (losses * loop.explored).cumsum(), rtol=1e-12)
    np.testing.assert_array_equal(simulated.explored, loop.explored.cumsum())
    # libm's logarithm and cosine need not be numpy's to the last bit, all other noise is
    tolerance = 1e-12 if noise == "gaussian" else 0.0
    np.testing.assert_allclose(simulated.statistics.records(), loop.statistics.records(), rtol=tolerance)


def zero_context_environment(pays: float) -> FiniteEnvironment:
    """The arms tie in the first context for good: it cannot tell them apart, whatever it pays."""
    environment = make_environment("none")
    contexts, means = environment.contexts.copy(), environment.means.copy()
    contexts[0], means[0] = 0.0, pays * np.arange(5)
    return FiniteEnvironment(contexts=contexts, chances=environment.chances, means=means, noise="none", scale=0.0)


@pytest.mark.parametrize(
    "environment", [make_environment("none"), zero_context_environment(0.0), zero_context_environment(0.1)]
)
@pytest.mark.parametrize("p", [6.0, 40.0, 700.5])
@pytest.mark.parametrize("seed", [1, 2])
def test_stretches_between_explorations_add_up_to_their_steps(
    environment: FiniteEnvironment, p: float, seed: int
) -> None:
    """Few checkpoints, so that many steps are taken at once: every total is that of the plain loop, to the last bit."""
    policy, at = Algorithm1(p=p), np.array([1, 255, 256, 257, 300, 512, 1023, 1301])
    loop, places = plain_loop(environment, policy, seed, 1301)
    losses = environment.losses[places, loop.arms]
    simulated = run(environment, policy, "steps", seed, at)
    np.testing.assert_array_equal(simulated.regret, losses.cumsum()[at - 1])
    np.testing.assert_array_equal(simulated.exploring, (losses * loop.explored).cumsum()[at - 1])
    np.testing.assert_array_equal(simulated.explored, loop.explored.cumsum()[at - 1])
    np.testing.assert_array_equal(simulated.statistics.records(), loop.statistics.records())


def test_checkpoints_do_not_change_the_steps() -> None:
    environment, policy, at = skewed_environment(), Algorithm1(p=9), np.array([3, 700, 2999])
    for seed in range(30):
        coarse, fine = (
            run(environment, policy, "steps", seed, at),
            run(environment, policy, "steps", seed, np.arange(1, 3000)),
        )
        np.testing.assert_array_equal(coarse.regret, fine.regret[at - 1])
        np.testing.assert_array_equal(coarse.explored, fine.explored[at - 1])


def skewed_environment() -> FiniteEnvironment:
    """Contexts of very different chances, one of them hardly ever explored, so that its arms tie at zero."""
    contexts = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    theta = np.array([[0.5, 0.2, 0.9], [0.45, 0.5, 0.1], [0.1, 0.1, 0.4]])
    chances = np.array([0.7, 0.25, 0.01, 0.04])
    return FiniteEnvironment(contexts=contexts, chances=chances, means=contexts @ theta.T, noise="gaussian", scale=0.7)


def sample(
    environment: FiniteEnvironment, p: float, method: str, runs: int, at: Int64, first_seed: int
) -> dict[str, Float64]:
    policy = Algorithm1(p=p)
    found = [run(environment, policy, method, first_seed + k, at) for k in range(runs)]
    return {name: np.array([getattr(one, name) for one in found]) for name in ("regret", "exploring", "explored")}


@pytest.mark.parametrize("p", [3.0, 8.5, 60.0])
@pytest.mark.parametrize("make", [make_environment, skewed_environment])
def test_events_have_the_law_of_the_steps(make: Any, p: float) -> None:
    """Two-sample Kolmogorov-Smirnov at three checkpoints on three quantities: 9 tests a case, 54 in all.

    Under the null the smallest of 54 p-values is below 1e-4 with probability at most 0.0054; seeds are fixed.
    """
    environment, at = make(), np.array([20, 200, 3000])
    p = max(p, environment.means.shape[1])
    steps, events = sample(environment, p, "steps", 1500, at, 0), sample(environment, p, "events", 1500, at, 5000)
    for name in steps:
        for column in range(len(at)):
            one, other = steps[name][:, column], events[name][:, column]
            if np.ptp(one) > 0 or np.ptp(other) > 0:
                assert stats.ks_2samp(one, other).pvalue > 1e-4, (name, at[column])
            else:
                assert one[0] == other[0], (name, at[column])


def test_events_that_ignored_rare_contexts_would_be_noticed() -> None:
    """The test above has power: without the context of chance 0.01 the regret has another law."""
    environment, at = skewed_environment(), np.array([3000])
    chances = environment.chances + np.array([0.01, 0.0, -0.01, 0.0])
    changed = FiniteEnvironment(
        contexts=environment.contexts, chances=chances, means=environment.means, noise="gaussian", scale=0.7
    )
    one, other = sample(environment, 8.5, "steps", 1500, at, 0), sample(changed, 8.5, "events", 1500, at, 5000)
    assert stats.ks_2samp(one["regret"][:, 0], other["regret"][:, 0]).pvalue < 1e-6


def test_first_exploration_has_the_law_of_a_ratio_of_gammas() -> None:
    """P(none in p+1..s) is the product of 1 - p/u; 20,000 runs, 30 steps and the rest, chi-square, fixed seeds."""
    environment, policy, T = make_environment(n_contexts=2, n_arms=2, dim=1), Algorithm1(p=2), 32
    at = np.arange(1, T + 1)
    explored = np.array([run(environment, policy, "events", seed, at).explored for seed in range(20_000)])
    first = (explored <= 2).sum(axis=1) + 1  # the first step at which a third exploration is counted
    survival = np.cumprod([1 - 2 / u for u in range(3, T + 1)])
    expected = -np.diff(np.concatenate([[1.0], survival, [0.0]]))
    counts = np.bincount(np.minimum(first, T + 1), minlength=T + 2)[3:]
    assert counts.sum() == 20_000
    assert stats.chisquare(counts, 20_000 * expected).pvalue > 1e-3


def test_a_trillion_steps_explore_as_often_as_they_should() -> None:
    """The count has mean ceil(p) + p (H_T - H_p) and a smaller variance; 200 runs, four standard errors."""
    T, p, environment = 10**12, 50, make_environment()
    counts = sample(environment, p, "events", 200, np.array([T]), 0)["explored"][:, 0]
    harmonic = np.log(T) + np.euler_gamma - np.sum(1 / np.arange(1, p + 1))
    mean = p + p * harmonic
    assert abs(counts.mean() - mean) < 4 * np.sqrt(p * harmonic / 200)


def test_checkpoints_do_not_change_the_law() -> None:
    """More checkpoints cut the jumps into more pieces: the same distribution at the last one."""
    environment, coarse, fine = skewed_environment(), np.array([2000]), np.arange(50, 2001, 50)
    one, other = sample(environment, 6, "events", 1500, coarse, 0), sample(environment, 6, "events", 1500, fine, 9000)
    assert stats.ks_2samp(one["regret"][:, -1], other["regret"][:, -1]).pvalue > 1e-4


WARM_UP = """
import numpy as np
from armlet import kernel
from armlet.environments.environment import FiniteEnvironment
from armlet.policies import Algorithm1
environment = FiniteEnvironment(contexts=np.ones((1, 1)), chances=np.ones(1), means=np.ones((1, 2)), scale=0.0)
policy = Algorithm1(p=1e8)
def peak(horizon):
    kernel.simulate_{method}(environment, start=policy.init(2, 1), rule=policy.rule(), horizon=horizon,
                             checkpoints=np.array([horizon]), environment_seed=1, policy_seed=2)
    # the peak of this process alone; that of getrusage starts at its parent's
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak(1000), peak(6_000_000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("method", ["steps", "events"])
def test_a_long_warm_up_needs_no_more_memory_than_a_short_one(method: str) -> None:
    """Four bytes for each of six million steps would double what the process holds without them."""
    code = WARM_UP.format(method=method)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    short, long = map(int, answer.split())
    assert long < 1.1 * short


@pytest.mark.parametrize("method", ["steps", "events"])
@pytest.mark.parametrize("at", [[0, 5], [5, 5], [7, 6]])
def test_checkpoints_that_do_not_ascend_are_refused(method: str, at: list[int]) -> None:
    with pytest.raises(ValueError, match="checkpoints must ascend"):
        run(make_environment(), Algorithm1(p=5), method, 1, np.array(at))


def test_events_refuse_a_policy_that_learns_from_every_step() -> None:
    environment, rule = make_environment(), Schedule(5.0, round_robin=True, learn_always=True)
    start = Algorithm1(p=5).init(5, 3)
    with pytest.raises(ValueError, match="learns from every step"):
        kernel.simulate_events(
            environment, start=start, rule=rule, horizon=9, checkpoints=np.array([9]), environment_seed=1, policy_seed=2
        )


def test_an_environment_of_another_shape_is_refused() -> None:
    policy, environment = Algorithm1(p=5), make_environment()
    with pytest.raises(TypeError, match="contexts must be a C-contiguous float64"):
        kernel.simulate_events(
            environment,
            start=policy.init(5, 4),
            rule=policy.rule(),
            horizon=9,
            checkpoints=np.array([9]),
            environment_seed=1,
            policy_seed=2,
        )
