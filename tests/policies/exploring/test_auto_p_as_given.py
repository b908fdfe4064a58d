"""A p that sets itself in units as given, by p/t: what it looks at and when; the rest is still Algorithm 1."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import armlet
from armlet import kernel
from armlet.environments import Customers, FigureA
from armlet.environments.families import FAMILIES, draw_problem
from armlet.inputs.settings import Ridge, RidgeLike
from armlet.kernel import AutoSchedule, AutoTunedStatistics
from armlet.parallel import Seeds
from armlet.policies import AutoAlgorithm1
from armlet.policies.auto_epsilon_greedy import MOST, START
from armlet.reference import auto_schedule
from armlet.simulation.run import simulate
from armlet.types import Float64
from support.examples import scaled

T = 100_000


def auto(horizon: int = T, **settings: Any) -> AutoAlgorithm1:
    return AutoAlgorithm1(horizon=horizon, **settings)


def rule_of(policy: AutoAlgorithm1) -> AutoSchedule:
    rule = policy.rule()
    assert isinstance(rule, AutoSchedule)
    return rule


def explored(policy: AutoAlgorithm1, X: Float64, arms: list[int], rewards: Float64) -> AutoTunedStatistics:
    """Learn rows as if every step had explored."""
    state, rule = policy.init(max(arms) + 1, X.shape[1]), rule_of(policy)
    assert isinstance(state, AutoTunedStatistics)
    for t, (x, arm, reward) in enumerate(zip(X, arms, rewards, strict=True), start=1):
        state.add(arm, x, float(reward))
        state.learned(rule, x, 1.0, t)
    return state


@given(
    st.integers(2, 6),
    st.integers(1, 12),
    st.integers(1, 300),
    st.sampled_from(["paper", "1/n", 0.3]),
    st.sampled_from([1e-3, 1.0, 1e3]),
    st.integers(0, 2**32),
)
@settings(max_examples=scaled(60))
def test_kernel_sees_what_numpy_sees(K: int, d: int, n: int, ridge: RidgeLike, scale: float, seed: int) -> None:
    rng, policy = np.random.default_rng(seed), auto(ridge=ridge)
    X, arms = rng.standard_normal((n, d)), [K - 1, *rng.integers(K, size=n - 1).tolist()]
    rewards = scale * (X @ rng.standard_normal(d) + rng.standard_normal(n))
    state = explored(policy, X, arms, rewards)
    noise, gap, losses, p = state.look(rule_of(policy), n)
    seen = policy.look(state, n)
    # both solve with the same matrices, whose condition is at most about n |x|^2 / ridge < 1e5
    np.testing.assert_allclose([noise, gap], [seen.noise, seen.gap], rtol=1e-9, atol=1e-12 * scale)
    np.testing.assert_allclose(losses, seen.losses, rtol=1e-7, atol=1e-12 * scale)
    assert p == pytest.approx(seen.p, rel=1e-12)  # one of a few candidates, so the same one


@pytest.mark.parametrize("family", FAMILIES)
def test_python_and_kernel_play_the_same_on_the_same_coins(family: str) -> None:
    environment, policy = draw_problem(family, Seeds(3), 0), auto(3000)

    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Slow(AutoAlgorithm1):
        def rule(self) -> None:  # type: ignore[override]
            return None

        def update(self, state: AutoTunedStatistics, interaction: armlet.types.Interaction) -> None:
            policy.update(state, interaction)

    X = environment.contexts(np.random.default_rng(1), 1500)
    R = environment.rewards(np.random.default_rng(2), X)
    fast = kernel.rollout(
        np.ascontiguousarray(X), R, start=policy.init(environment.n_arms, environment.dim), rule=rule_of(policy), seed=9
    )
    slow = armlet.Bandit(range(environment.n_arms), environment.dim, policy=Slow(horizon=3000), seed=9)
    for t, (x, row) in enumerate(zip(X, R, strict=True)):
        decision = slow.decide(x)
        assert decision.arm == fast.arms[t]
        assert (decision.propensity, decision.explored) == (fast.propensities[t], fast.explored[t])
        slow.learn(decision, float(row[int(decision.arm)]))
    assert isinstance(fast.statistics, AutoTunedStatistics)
    assert all(np.array_equal(mine, slow.state.arrays()[name]) for name, mine in fast.statistics.arrays().items())


def run(horizon: int, seed: int, **settings: Any) -> tuple[list[float], list[bool], armlet.Bandit]:
    environment, policy = FigureA.draw(np.random.default_rng(seed)), auto(horizon, **settings)
    bandit = armlet.Bandit(range(environment.n_arms), environment.dim, policy=policy, seed=seed)
    contexts, noise = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    X = environment.contexts(contexts, horizon)
    R, ps, coins = environment.rewards(noise, X), [], []
    for x, row in zip(X, R, strict=True):
        decision = bandit.decide(x)
        bandit.learn(decision, float(row[int(decision.arm)]))
        ps.append(policy.current_p(bandit.state))
        coins.append(decision.explored)
    return ps, coins, bandit


@pytest.mark.parametrize("seed", range(4))
def test_p_never_falls_and_stays_within_its_cap(seed: int) -> None:
    ps, _, _bandit = run(4000, seed)
    assert all(later >= earlier for earlier, later in itertools.pairwise(ps))
    assert ps[0] >= START * 6
    assert ps[-1] <= MOST * 4000


@pytest.mark.parametrize("seed", range(4))
def test_p_changes_on_explored_steps_only_and_seldom(seed: int) -> None:
    ps, coins, _bandit = run(4000, seed)
    changes = [t for t in range(1, len(ps)) if ps[t] != ps[t - 1]]
    assert all(coins[t] for t in changes)
    rows = sum(coins)
    # looks come at rows that grow by a tenth each time, once there are ten; before that at every row
    assert len(changes) <= 10 + math.log(rows / 10) / math.log(1.1) + 1


def test_memory_is_the_same_after_any_number_of_steps() -> None:
    _, _, bandit = run(3000, 1)
    fresh = auto().init(6, 3)
    assert bandit.state.nbytes == fresh.nbytes


def test_what_exploitation_sees_changes_nothing() -> None:
    _, _, bandit = run(500, 2)
    before = bandit.state.arrays()
    while (decision := bandit.decide([0.6, 0.8, 0.0])).explored:
        pass
    bandit.learn(decision, 100.0)
    assert all(np.array_equal(before[name], now) for name, now in bandit.state.arrays().items())


def test_forgotten_rows_leave_no_context_behind() -> None:
    policy = auto(1000)
    bandit = armlet.Bandit(["a", "b"], 2, policy=policy, seed=4)
    kept = bandit.decide([1.0, 0.0])
    gone = bandit.decide([0.123, 0.456])
    bandit.learn(kept, 1.0)
    before = bandit.state.sample
    bandit.learn(gone, 2.0)
    assert [0.123, 0.456] in bandit.state.sample.tolist()
    bandit.forget(gone, 2.0)
    np.testing.assert_array_equal(bandit.state.sample, before)


def test_the_sample_holds_the_latest_contexts() -> None:
    X = np.arange(200.0)[:, None] + 1.0
    state = explored(auto(), X, [0, 1] * 100, np.arange(200.0))
    np.testing.assert_array_equal(state.sample, X[-64:])


def test_file_round_trip_goes_on_with_the_same_decisions(tmp_path: Path) -> None:
    _, _, bandit = run(700, 5)
    bandit.save(tmp_path / "model.armlet")
    loaded = armlet.load(tmp_path / "model.armlet")
    rng = np.random.default_rng(0)
    for x in rng.standard_normal((300, 3)):
        mine, theirs = bandit.decide(x), loaded.decide(x)
        assert (mine.arm, mine.propensity, mine.explored) == (theirs.arm, theirs.propensity, theirs.explored)
        bandit.learn(mine, 1.0)
        loaded.learn(theirs, 1.0)
    assert all(np.array_equal(now, loaded.state.arrays()[name]) for name, now in bandit.state.arrays().items())


def test_merged_bandits_keep_the_higher_p_and_the_latest_contexts() -> None:
    ps, _, one = run(600, 6)
    others, _, two = run(600, 7)
    both = one + two
    assert auto(600).current_p(both.state) == max(ps[-1], others[-1])
    latest = [*one.state.sample.tolist(), *two.state.sample.tolist()]
    assert all(x in latest for x in both.state.sample.tolist())
    assert len(both.state.sample) == 64
    np.testing.assert_allclose(both.state.n.sum(), one.state.n.sum() + two.state.n.sum())


def test_a_new_arm_is_looked_at_soon() -> None:
    _ps, _, bandit = run(1000, 8)
    bandit.add_arm("new")
    assert bandit.state.next_look == 0.0


def test_rewards_that_never_differ_keep_it_exploring() -> None:
    """A click may be rare: as long as none came, nothing is known and nothing is lost."""
    policy = auto(10_000)
    bandit = armlet.Bandit(["a", "b"], 1, policy=policy, seed=3)
    for _ in range(500):
        decision = bandit.decide([1.0])
        assert decision.explored
        bandit.learn(decision, 0.0)


def test_nothing_more_is_explored_for_once_the_horizon_is_reached() -> None:
    _ps, _, bandit = run(300, 9)
    before = auto(300).current_p(bandit.state)
    for x in np.random.default_rng(1).standard_normal((2000, 3)):
        decision = bandit.decide(x)
        bandit.learn(decision, float(np.random.default_rng(bandit.t).standard_normal()))
    assert auto(300).current_p(bandit.state) == before


def test_events_have_the_law_of_steps() -> None:
    table = FigureA.draw(np.random.default_rng(12)).table()
    assert table is not None
    policy, regret = auto(3000), {}
    for name, simulation in {"steps": kernel.simulate_steps, "events": kernel.simulate_events}.items():
        play: Any = simulation
        regret[name] = [
            float(
                play(
                    table,
                    start=policy.init(6, 3),
                    rule=rule_of(policy),
                    horizon=3000,
                    checkpoints=np.array([3000]),
                    environment_seed=1000 + seed,
                    policy_seed=seed,
                ).regret[0]
            )
            for seed in range(400)
        ]
    assert stats.ks_2samp(regret["steps"], regret["events"]).pvalue > 0.01  # seeds are fixed: it passes or it does not


def test_one_duel_costs_what_the_normal_integral_says() -> None:
    """psi against quadrature: E max(0, s z - g)."""
    lead, deviation = np.array([0.3, 0.0, 2.0]), np.array([0.5, 1.0, 0.4])
    z = np.linspace(-12, 12, 200_001)
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    wanted = [np.trapezoid(np.maximum(0, s * z - g) * density, z) for g, s in zip(lead, deviation, strict=True)]
    np.testing.assert_allclose(auto_schedule._expected_excess(lead, deviation), wanted, rtol=1e-6)


def test_forecast_of_a_loss_is_that_of_a_simulation() -> None:
    """Draw true leads around the estimate, then later estimates around the truth, and choose by them."""
    g, s, times, n = 0.2, 0.5, 3.0, 400_000
    rng = np.random.default_rng(0)
    truth = rng.normal(g, s, n)
    fresh = truth + rng.normal(0.0, s / math.sqrt(times - 1.0), n)  # new rows: (times - 1) times the evidence
    later = (g + (times - 1.0) * fresh) / times
    lost = np.where(later > 0, np.maximum(0.0, -truth), np.maximum(0.0, truth))
    wanted = float(auto_schedule._losses(np.array([g]), np.array([s]), times)[0])
    assert wanted == pytest.approx(lost.mean(), abs=4 * lost.std() / math.sqrt(n))


def test_by_steps_auto_needs_a_horizon() -> None:
    with pytest.raises(ValueError, match="horizon is None; give the number of decisions"):
        AutoAlgorithm1(horizon=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="for instance horizon=100_000"):
        auto(0)


def test_two_customers_click_at_least_3_8_percent_of_the_time() -> None:
    """Random play earns 3.5 %, knowing everything 4 %. The mean of 40 runs, from expected clicks: regret is exact."""
    environment = Customers.draw(np.random.default_rng(1))
    regret = simulate(environment, auto(T), horizon=T, runs=40, seed=20, engine="serial").regret[:, -1]
    rates = 0.04 - regret / T
    assert rates.mean() - 2 * rates.std() / math.sqrt(len(rates)) > 0.038


def test_look_reads_like_the_state() -> None:
    rows = auto_schedule.ExploredSums(
        n=np.array([5.0, 5.0]),
        A=5 * np.ones((2, 1, 1)),
        b=np.array([[5.0], [0.0]]),
        sum_r=np.array([5.0, 0.0]),
        sum_rr=np.array([6.0, 1.0]),
        ridge=Ridge.parse("1/n"),
    )
    seen = auto_schedule.look(rows, np.ones((3, 1)), t=10, horizon=1000, caution=1.0, most=0.25)
    # theta = 5/6 and 0; residuals 6 - 5/6 (5 + 5/6) and 1, over 10 - 2 degrees of freedom
    assert seen.delta == pytest.approx(5 / 6)
    assert seen.noise == pytest.approx(math.sqrt((6 - 5 / 6 * (5 + 5 / 6) + 1) / 8))
    assert seen.sigma_min == pytest.approx(1.0)
