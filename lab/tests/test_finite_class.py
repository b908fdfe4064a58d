"""PolicyElimination and FeasibleRandomizedUCB over a finite class: what the papers define, the long way."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from armlet.environments import FigureA
from armlet.kernel import coins
from armlet.policies import Uniform
from armlet.simulation.run import simulate
from armlet.types import Float64, Int64, Interaction
from armlet_lab.literature.feasible_randomized_ucb import FeasibleRandomizedUCB, descend
from armlet_lab.literature.finite_class import FiniteClass, FiniteClassState, toss
from armlet_lab.literature.policy_elimination import PolicyElimination, spread
from support.contract import check_settings

BOTH = (PolicyElimination, FeasibleRandomizedUCB)
ALL = np.ones(3, dtype=np.bool_)


def stream(policy: FiniteClass, steps: int, seed: int = 0) -> Iterator[tuple[FiniteClassState, Interaction]]:
    """Play 3 arms on 8 contexts; give each row with the state before it, then learn it."""
    rng, state = np.random.default_rng(seed), policy.init(3, 3)
    for t in range(1, steps + 1):
        x = rng.integers(0, 2, size=3).astype(np.float64)
        choice = policy.decide(state, t, x, coins(seed, t), ALL)
        reward = float(rng.random() < (0.1, 0.5, 0.9)[choice.arm])
        row = Interaction(t=t, x=x, arm=choice.arm, reward=reward, propensity=choice.propensity)
        yield state, row
        policy.update(state, row)


def after(policy: FiniteClass, steps: int, seed: int = 0) -> FiniteClassState:
    state = policy.init(3, 3)
    for _, row in stream(policy, steps, seed):
        policy.update(state, row)
    return state


def advised(policy: FiniteClass, x: Float64, n_arms: int = 3) -> list[int]:
    """What each policy plays, from the settings alone."""
    shape = (policy.n_policies, len(x))
    theta = [np.random.default_rng([policy.seed, arm]).standard_normal(shape) for arm in range(n_arms)]
    return [int(np.argmax([float(of[i] @ x) for of in theta])) for i in range(policy.n_policies)] + list(range(n_arms))


def variance(policy: FiniteClass, rows: list[Interaction], P: Float64, mu: float) -> list[float]:
    """Average 1 / ((1 - K mu) W_P(x, pi(x)) + mu) over the rows, one by one."""
    out = np.zeros(len(P))
    for row in rows:
        advice = advised(policy, row.x)
        for i, arm in enumerate(advice):
            W = sum(p for p, other in zip(P, advice, strict=True) if other == arm)
            out[i] += 1 / ((1 - 3 * mu) * W + mu) / len(rows)
    return [float(v) for v in out]


@pytest.mark.parametrize(
    "policy",
    [
        PolicyElimination(),
        PolicyElimination(n_policies=20, width_scale=0.1, reward_range=(-2.0, 3.0)),
        PolicyElimination(n_policies=7, width_scale=0.02, max_contexts=5),
        FeasibleRandomizedUCB(),
        FeasibleRandomizedUCB(n_policies=20, width_scale=0.1, reward_range=(-2.0, 3.0), outside="clip"),
        FeasibleRandomizedUCB(n_policies=7, width_scale=0.02, max_contexts=5, seed=4),
    ],
    ids=repr,
)
def test_promises_are_kept(policy: FiniteClass) -> None:
    check_settings(policy, n_arms=4, dim=3)


def test_elimination_follows_its_definition() -> None:
    policy = PolicyElimination(n_policies=12, width_scale=0.15, delta=0.1, seed=3)
    N, K = 15, 3
    values, kept, solved, eliminated = [0.0] * N, set(range(N)), 0, 0
    for rows, (state, row) in enumerate(stream(policy, 400), start=1):
        for i, arm in enumerate(advised(policy, row.x)):
            values[i] += row.reward / row.propensity if arm == row.arm else 0.0
        delta_t = 0.1 / (4 * N * rows**2)
        b_t = 0.15 * 2 * math.sqrt(2 * K * math.log(1 / delta_t) / rows)
        best = max(values[i] / rows for i in kept)
        before, kept = kept, {i for i in kept if values[i] / rows >= best - 2 * b_t}
        eliminated += len(before) - len(kept)
        if kept != before or rows >= 2 * solved:
            solved, mu = rows, min(1 / (2 * K), 0.15 * math.sqrt(math.log(1 / delta_t) / (2 * K * rows)))
        policy.update(state_copy := state.copy(), row)
        assert set(np.flatnonzero(state_copy.alive)) == kept
        assert state_copy.mu == pytest.approx(mu, rel=1e-12)
        assert np.allclose(state_copy["sums"], values, rtol=1e-12)
        assert set(np.flatnonzero(state_copy["P"])) <= kept
    assert eliminated > 3


@pytest.mark.parametrize("policy", [PolicyElimination(n_policies=12), FeasibleRandomizedUCB(n_policies=12)], ids=repr)
def test_arms_are_drawn_as_the_distribution_over_policies_says(policy: FiniteClass) -> None:
    state = after(policy, 50)
    for x in itertools.product((0.0, 1.0, -2.5), repeat=3):  # known contexts and new ones
        advice, K, mu = advised(policy, np.array(x)), 3, state.mu
        W = [sum(p for p, arm in zip(state["P"], advice, strict=True) if arm == a) for a in range(K)]
        found = policy.probabilities(state, 51, np.array(x), ALL)
        assert np.allclose(found, [(1 - K * mu) * w + mu for w in W], rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.03])
def test_elimination_keeps_the_variance_of_survivors_below_2k(scale: float) -> None:
    # exact but for rounding: 1e-9 of 2K
    policy, rows, solves = PolicyElimination(n_policies=12, width_scale=scale), [], 0
    for state, row in stream(policy, 150):
        rows.append(row)
        policy.update(later := state.copy(), row)
        if later["solved"][0] == len(rows):
            found = variance(policy, rows, later["P"], later.mu)
            assert max(np.array(found)[later.alive]) <= 6 * (1 + 1e-9)
            solves += 1
    assert solves >= 8


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.03])
def test_randomized_ucb_meets_its_constraints(scale: float) -> None:
    # the variance of each policy up to 1e-9 K, and the bound on the regret of P that coordinate descent gives
    policy, rows, solves = FeasibleRandomizedUCB(n_policies=12, width_scale=scale), [], 0
    for state, row in stream(policy, 140):
        rows.append(row)
        policy.update(later := state.copy(), row)
        if later["solved"][0] == len(rows):
            t, solves = len(rows), solves + 1
            C = 2 * math.log(15 * t / 0.05) * scale**2
            assert later.mu == pytest.approx(min(1 / 6, math.sqrt(C / (6 * t))), rel=1e-12)
            D = (later["sums"].max() - later["sums"]) / t
            limits = np.maximum(12, t * D**2 / (180 * C))
            found = np.array(variance(policy, rows, later["P"], later.mu))
            assert (found <= limits + 1e-8).all()
            others = np.delete(later["P"], later["sums"].argmax())
            assert others @ (np.delete(limits, later["sums"].argmax()) - 6) <= 6 * (1 + 1e-9)
    assert solves == 8


def random_class(seed: int, n: int, contexts: int, n_arms: int) -> tuple[Int64, Float64]:
    rng = np.random.default_rng(seed)
    popular = rng.integers(0, n_arms, size=contexts)  # most policies agree, so that uniform weights are not enough
    advice = np.where(rng.random((contexts, n)) < 0.97, popular[:, None], rng.integers(0, n_arms, (contexts, n)))
    return advice, rng.dirichlet(np.ones(contexts))


def worst_variance(P: Float64, advice: Int64, shares: Float64, n_arms: int, mu: float) -> float:
    W = np.array([[P[row == a].sum() for a in range(n_arms)] for row in advice])
    terms = [shares[m] / ((1 - n_arms * mu) * W[m, row] + mu) for m, row in enumerate(advice)]
    return float(np.sum(terms, axis=0).max())


@pytest.mark.parametrize("seed", range(12))
def test_multiplicative_weights_always_meet_the_constraint(seed: int) -> None:
    n_arms, mu = 2 + seed % 4, 10.0 ** -(1 + seed % 6)
    mu = min(mu, 1 / (2 * n_arms))
    advice, shares = random_class(seed, 5 + 60 * seed, 1 + seed, n_arms)
    P = spread(advice, shares, n_arms, mu)
    assert abs(P.sum() - 1) < 1e-12
    assert (P >= 0).all()
    assert worst_variance(P, advice, shares, n_arms, mu) <= 2 * n_arms * (1 + 1e-9)


def test_uniform_weights_alone_would_not_meet_it() -> None:
    advice = np.zeros((1, 1000), dtype=np.int64)
    advice[0, -1] = 1  # the only policy that ever plays arm 1
    uniform = np.full(1000, 1e-3)
    assert worst_variance(uniform, advice, np.ones(1), 2, 1e-4) > 900
    assert worst_variance(spread(advice, np.ones(1), 2, 1e-4), advice, np.ones(1), 2, 1e-4) <= 4


@pytest.mark.parametrize("seed", range(8))
def test_coordinate_descent_ends_below_any_limits(seed: int) -> None:
    n_arms, mu = 2 + seed % 3, 10.0 ** -(1 + seed % 3)
    mu = min(mu, 1 / (2 * n_arms))
    advice, shares = random_class(seed, 40, 1 + seed, n_arms)
    limits = 2 * n_arms + np.random.default_rng(seed).exponential(5 * n_arms, size=40)
    P = descend(advice, shares, limits, n_arms, mu)
    W = np.array([[P[row == a].sum() for a in range(n_arms)] for row in advice])
    inverse = [shares[m] / ((1 - n_arms * mu) * W[m, row] + mu) for m, row in enumerate(advice)]
    assert (np.sum(inverse, axis=0) <= limits + 1e-8 * n_arms).all()
    assert P @ limits <= 2 * n_arms * (1 + 1e-9)


def test_theory_eliminates_nothing_for_thousands_of_steps() -> None:
    policy = PolicyElimination()
    assert 2 * policy.widths(5_007, 6)[0] > 1 >= 2 * policy.widths(5_008, 6)[0]  # values lie in [0, 1]
    assert after(PolicyElimination(n_policies=12), 600).alive.all()


def test_small_scale_eliminates_bad_policies() -> None:
    state = after(PolicyElimination(n_policies=12, width_scale=0.15), 600)
    assert state.alive[-1]  # the constant arm that pays 0.9
    assert not state.alive[-3:-1].any()  # those that pay 0.1 and 0.5


def test_tiny_scale_eliminates_the_best_policy_by_chance() -> None:
    lost = [not after(PolicyElimination(n_policies=12, width_scale=0.005), 20, seed).alive[-1] for seed in range(10)]
    assert sum(lost) >= 3


@pytest.mark.parametrize("kind", BOTH)
def test_values_are_unbiased(kind: type[FiniteClass]) -> None:
    policy = kind(n_policies=12, width_scale=0.1)
    state = after(policy, 60)
    for x in itertools.product((0.0, 1.0), repeat=3):
        pays, context = (0.2, 0.7, 0.4), np.array(x)
        chances, gained = policy.probabilities(state, 61, context, ALL), np.zeros(15)
        for arm, chance in enumerate(chances):
            policy.update(
                later := state.copy(),
                Interaction(t=61, x=context, arm=arm, reward=pays[arm], propensity=float(chance)),
            )
            gained += chance * (later["sums"] - state["sums"])
        assert np.allclose(gained, [pays[arm] for arm in advised(policy, context)], rtol=1e-9)


@pytest.mark.parametrize("kind", BOTH)
def test_distribution_is_solved_only_when_rows_double_or_the_class_shrinks(kind: type[FiniteClass]) -> None:
    policy, changed = kind(n_policies=12), []
    for state, row in stream(policy, 70):
        policy.update(later := state.copy(), row)
        if later["solved"][0] != state["solved"][0]:
            changed.append(row.t)
        else:
            assert np.array_equal(later["P"], state["P"])
    assert changed == [1, 2, 4, 8, 16, 32, 64]


def test_few_contexts_are_counted_exactly() -> None:
    policy, seen = PolicyElimination(n_policies=2), Counter[tuple[float, ...]]()
    for state, row in stream(policy, 100):
        seen[tuple(row.x)] += 1
        policy.update(last := state.copy(), row)
    arrays = last.arrays()
    found = {tuple(x): n for x, n in zip(arrays["contexts"], arrays["counts"], strict=True) if n > 0}
    assert found == dict(seen)


def test_many_contexts_are_sampled_without_bias() -> None:
    rng = np.random.default_rng(5)
    rows = rng.choice(8, p=[0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05], size=40).astype(np.float64)
    truth, seeds = np.bincount(rows.astype(np.int64), minlength=8), 800
    counts = np.zeros((seeds, 8))
    for seed in range(seeds):
        state = FiniteClassState(2, 1, n_policies=1, seed=seed, max_contexts=4)
        for t, x in enumerate(rows):
            state.count(np.array([x]), t, 1.0)
        assert state["counts"].sum() == 40
        counts[seed, state["contexts"][:, 0].astype(np.int64)] = state["counts"]
    error = counts.std(axis=0) / math.sqrt(seeds)
    assert (np.abs(counts.mean(axis=0) - truth) <= 6 * error + 1e-9).all()  # six standard errors


def test_toss_is_uniform_enough() -> None:
    tosses = np.array([toss(seed, t, n) for seed in range(10) for t in range(40) for n in range(40)])
    assert np.abs(np.histogram(tosses, bins=10, range=(0, 1))[0] - 1600).max() < 6 * math.sqrt(1600)


@pytest.mark.parametrize("kind", BOTH)
def test_arm_of_a_policy_that_is_not_eligible_is_never_drawn(kind: type[FiniteClass]) -> None:
    policy = kind(n_policies=12)
    state = after(policy, 50)
    found = policy.probabilities(state, 51, np.ones(3), np.array([False, True, True]))
    whole = (policy.probabilities(state, 51, np.ones(3), ALL) - state.mu) / (1 - 3 * state.mu)
    assert found[0] == 0.0
    assert found[1:] == pytest.approx((1 - 2 * state.mu) * whole[1:] / whole[1:].sum() + state.mu)


@pytest.mark.parametrize("kind", BOTH)
def test_new_arm_starts_over(kind: type[FiniteClass]) -> None:
    state = after(kind(n_policies=12), 50)
    state.add_arm()
    fresh = kind(n_policies=12).init(4, 3)
    assert all(np.array_equal(state.arrays()[name], fresh.arrays()[name]) for name in fresh.arrays())


def test_weight_counts_rows_and_zero_is_none() -> None:
    policy = FeasibleRandomizedUCB(n_policies=3)
    twice, once = policy.init(3, 3), policy.init(3, 3)
    for _, row in stream(policy, 1):
        policy.update(once, row)
        policy.update(twice, Interaction(t=1, x=row.x, arm=row.arm, reward=1.0, propensity=0.5, weight=2.0))
    assert (once.n, twice.n, twice["counts"].max(), twice["sums"].max()) == (1.0, 2.0, 2.0, 4.0)
    before = once.arrays()
    policy.update(once, Interaction(t=2, x=np.ones(3), arm=0, reward=1.0, propensity=0.5, weight=0.0))
    assert all(np.array_equal(before[name], once.arrays()[name]) for name in before)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_policies": 0}, "n_policies is 0; give a whole number of at least 1"),
        ({"n_policies": 2.5}, "n_policies is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"max_contexts": True}, "max_contexts is True"),
        ({"delta": 1.0}, "delta is 1.0; give a chance of failure between 0 and 1"),
        ({"width_scale": 0.0}, "width_scale is 0.0; give a positive number"),
        ({"reward_range": (1.0, 0.0)}, "reward_range is"),
        ({"outside": "drop"}, "outside is 'drop'"),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_wrong_settings_are_named(kind: type[FiniteClass], settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", BOTH)
def test_settings_come_back_from_json_as_lists(kind: type[FiniteClass]) -> None:
    assert kind(reward_range=[0.0, 2.0]).reward_range == (0.0, 2.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", BOTH)
def test_reward_outside_its_range_is_refused_and_changes_nothing(kind: type[FiniteClass]) -> None:
    policy = kind()
    state = policy.init(3, 3)
    with pytest.raises(ValueError, match=r"reward is 1.5 but reward_range is \(0.0, 1.0\)"):
        policy.update(state, Interaction(t=1, x=np.ones(3), arm=0, reward=1.5))
    assert state.n == 0.0
    with pytest.raises(TypeError, match="keeps no linear estimates; ask predict_proba"):
        policy.estimates(state)


@pytest.mark.parametrize(
    "policy",
    [
        PolicyElimination(width_scale=0.1, reward_range=(-6.0, 6.0), outside="clip"),
        FeasibleRandomizedUCB(width_scale=0.1, reward_range=(-6.0, 6.0), outside="clip"),
    ],
    ids=repr,
)
def test_regret_is_below_that_of_uniform_play(policy: FiniteClass) -> None:
    environment = FigureA.draw(np.random.default_rng(3))
    settings = {"horizon": 6000, "runs": 2, "seed": 1, "method": "python", "engine": "serial"}
    found, floor = (simulate(environment, p, **settings).at(6000) for p in (policy, Uniform()))  # type: ignore[arg-type]
    assert found.max() < 0.9 * floor.min()
