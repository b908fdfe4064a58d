"""Section 4.2 at its word: p_t against a computation by hand, and how it runs away."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import armlet
from armlet.environments import Customers, FigureA, Linear, LinearArms
from armlet.kernel import coins
from armlet.policies import POLICIES
from armlet.simulation.play import Job
from armlet.simulation.run import simulate_all
from armlet.types import Choice, Float64, Interaction
from armlet_lab.literature.running_minimum import RunningMinimumEpsilonGreedy, WatchedSums
from support.contract import check_settings

FEW_HUNDRED = 300
SETTINGS = [RunningMinimumEpsilonGreedy(), RunningMinimumEpsilonGreedy(C=0.01, ridge="1/n", start=1)]
HORIZON = 10_000


def played(
    policy: RunningMinimumEpsilonGreedy, environment: LinearArms, steps: int, seed: int
) -> tuple[WatchedSums, list[tuple[Float64, Choice, float]], list[float]]:
    """Play by the policy's own methods; give the state, the history, and p before each step."""
    state, X = (
        policy.init(environment.n_arms, environment.dim),
        environment.contexts(np.random.default_rng([seed, 1]), steps),
    )
    rewards, everyone = (
        environment.rewards(np.random.default_rng([seed, 2]), X),
        np.ones(environment.n_arms, dtype=np.bool_),
    )
    history, ps = [], []
    for t, (x, row) in enumerate(zip(X, rewards, strict=True), start=1):
        ps.append(policy.current_p(state))
        choice = policy.decide(state, t, x, coins(seed, t), everyone)
        reward = float(row[choice.arm])
        history.append((x, choice, reward))
        policy.update(state, Interaction(t=t, x=x, arm=choice.arm, reward=reward, explored=choice.explored))
    return state, history, ps


def p_by_hand(history: list[tuple[Float64, Choice, float]], n_arms: int, C: float, start: float) -> float:
    """Compute p after a history from its rows alone: nothing is kept from one step to the next."""
    dim, gaps = len(history[0][0]), []
    for t in range(1, len(history) + 1):
        theta = fitted(history[: t - 1], n_arms, dim)
        if t > math.ceil(start * n_arms):
            scores = sorted(theta @ history[t - 1][0])
            gaps.append(scores[-1] - scores[-2])
    if not gaps:
        return start * n_arms
    theta, learned = fitted(history, n_arms, dim), [row for row in history if row[1].explored]
    squares = [(reward - theta[choice.arm] @ x) ** 2 for x, choice, reward in learned]
    L = math.sqrt(sum(squares) / len(squares) / 2)
    X = np.array([x for x, _, _ in history[: 2 ** int(math.log2(len(history)))]])  # as many as when last doubled
    values = np.linalg.eigvalsh(X.T @ X / len(X))
    sigma = min(value for value in values if value > 1e-12)
    floor = min(1.0, float(min(gaps))) * min(1.0, float(sigma))
    return max(start * n_arms, C * n_arms * max(1.0, L) ** 2 / floor**2)


def fitted(history: list[tuple[Float64, Choice, float]], n_arms: int, dim: int) -> Float64:
    theta = np.zeros((n_arms, dim))
    for arm in range(n_arms):
        rows = [(x, reward) for x, choice, reward in history if choice.arm == arm and choice.explored]
        if rows:
            X, r = np.array([x for x, _ in rows]), np.array([reward for _, reward in rows])
            theta[arm] = np.linalg.solve(X.T @ X + math.sqrt(len(X)) * np.eye(dim), X.T @ r)
    return theta


@pytest.mark.parametrize("policy", SETTINGS, ids=repr)
def test_exhibit_keeps_the_contract_of_policies(policy: RunningMinimumEpsilonGreedy) -> None:
    check_settings(policy)


def test_exhibit_is_no_policy_that_is_found_by_name(tmp_path: Path) -> None:
    for module in (armlet, armlet.policies):
        with pytest.raises(AttributeError, match="there is no policy 'RunningMinimumEpsilonGreedy'"):
            module.RunningMinimumEpsilonGreedy  # noqa: B018
    assert "RunningMinimumEpsilonGreedy" not in POLICIES
    bandit = armlet.Bandit(["a", "b"], 1, policy=SETTINGS[0], seed=1)
    bandit.learn(bandit.decide([1.0]), 1.0)
    bandit.save(path := tmp_path / "model.armlet")
    with pytest.raises(armlet.errors.ModelFileError, match="there is no policy 'RunningMinimumEpsilonGreedy'"):
        armlet.load(path)
    assert armlet.load(path, policy=SETTINGS[0]).to_bytes() == bandit.to_bytes()


@pytest.mark.parametrize("C", [128.0, 1e-4])
@pytest.mark.parametrize("scale", [0.5, 4.0])  # L' = 1, and L' = L
def test_p_is_equation_4_with_what_was_seen(C: float, scale: float) -> None:
    environment = Linear.draw(np.random.default_rng(3), n_arms=3, dim=2, law="sphere", scale=scale)  # no ties
    policy = RunningMinimumEpsilonGreedy(C=C, start=1.5)
    state, history, ps = played(policy, environment, 70, seed=4)
    for t in (1, 4, 5, 6, 7, 20, 33, 65, 70):
        # scores of order 10 are exact to 1e-14, so a gap above 1e-4 to 1e-10 of itself and its square to 2e-10
        assert ps[t - 1] == pytest.approx(p_by_hand(history[: t - 1], 3, C, 1.5) if t > 1 else 4.5, rel=1e-9)
    assert state.delta_min > 1e-4
    assert (state.variance() > 2) == (scale > 1)
    assert C > 1 or any(not choice.explored for _, choice, _ in history)


def test_p_never_falls_because_of_the_gap_and_waits_for_the_first_one() -> None:
    policy = RunningMinimumEpsilonGreedy(start=2)
    state = policy.init(2, 1)
    x = np.ones(1)
    for t, (arm, reward) in enumerate([(1, 2.0), (0, 0.0), (1, 2.0), (0, 0.0)], start=1):
        assert policy.current_p(state) == 4
        policy.update(state, Interaction(t=t, x=x, arm=arm, reward=reward))
    seen = []
    for t in range(5, 40):
        policy.update(state, Interaction(t=t, x=x, arm=1, reward=9.0 * (t > 5)))
        seen.append(state.delta_min)
    assert seen == sorted(seen, reverse=True)
    # theta_hat of arm 1 fell to 4 / (3 + sqrt 3) once, then rose to 9; the minimum stays where it was
    assert seen[-1] == pytest.approx(4 / (3 + math.sqrt(3)), rel=1e-12)


@pytest.mark.parametrize("x", [[0.0, 0.0], [1.0, 1.0]], ids=["zero context", "exact tie"])
def test_a_tie_makes_p_infinite_and_every_later_step_explores(x: list[float]) -> None:
    policy = RunningMinimumEpsilonGreedy(start=1)
    state = policy.init(2, 2)
    for t in (1, 2):  # arm 0 pays in the one direction what arm 1 pays in the other
        policy.update(state, Interaction(t=t, x=np.eye(2)[t - 1], arm=t - 1, reward=1.0))
    assert policy.current_p(state) == 2
    policy.update(state, Interaction(t=3, x=np.array(x), arm=0, reward=1.0, explored=False))
    assert policy.current_p(state) == math.inf
    assert policy.exploration_rate(state, 10**12) == 1.0
    assert policy.probabilities(state, 10**12, np.eye(2)[0], np.ones(2, dtype=np.bool_)).tolist() == [0.5, 0.5]


def test_propensities_are_those_of_p_over_t_while_it_still_exploits() -> None:
    environment = FigureA.draw(np.random.default_rng(1), zero="resample")
    policy = RunningMinimumEpsilonGreedy(C=1e-9)  # so small that p stays near 2 K
    state, history, ps = played(policy, environment, 400, seed=2)
    assert ps[-1] < 100
    for t, ((_, choice, _), p) in enumerate(zip(history, ps, strict=True), start=1):
        rate = min(1.0, p / t)
        if t <= 12:
            assert (choice.arm, choice.propensity) == (t % 6, 1.0)
        elif not choice.explored:  # contexts are not zero and estimates differ: no ties
            assert choice.propensity == pytest.approx(1 - rate + rate / 6, rel=1e-12)
    assert sum(not choice.explored for _, choice, _ in history) > 200
    assert state.explored.n.sum() == sum(choice.explored for _, choice, _ in history)
    assert state.seen["n"][0] == 400


def test_all_contexts_zero_leave_sigma_at_one() -> None:
    policy = RunningMinimumEpsilonGreedy(start=1)
    state = policy.init(2, 2)
    for t in range(1, 9):
        policy.update(state, Interaction(t=t, x=np.zeros(2), arm=t % 2, reward=1.0))
    assert state.sigma_min == 1.0
    assert policy.current_p(state) == math.inf


def test_a_single_arm_has_no_gap() -> None:
    policy = RunningMinimumEpsilonGreedy()
    state = policy.init(1, 1)
    for t in range(1, 9):
        policy.update(state, Interaction(t=t, x=np.ones(1), arm=0, reward=1.0))
    assert policy.current_p(state) == 2.0


def environments(kind: str, seed: int) -> LinearArms:
    rng = np.random.default_rng(seed)
    if kind == "customers":
        return Customers.draw(rng)
    return FigureA.draw(rng, zero="keep" if kind == "Figure (a)" else "resample")


@pytest.mark.parametrize("kind", ["Figure (a)", "Figure (a) without zero contexts", "customers"])
@pytest.mark.parametrize("seed", range(5))
def test_p_exceeds_the_horizon_within_a_few_hundred_steps(kind: str, seed: int) -> None:
    _, _, ps = played(RunningMinimumEpsilonGreedy(), environments(kind, seed), FEW_HUNDRED, seed)
    assert ps[-1] > 1000 * HORIZON
    assert (ps[-1] == math.inf) == (kind != "Figure (a) without zero contexts")


@pytest.mark.parametrize("kind", ["Figure (a)", "customers"])
def test_no_smaller_constant_helps_where_scores_can_tie(kind: str) -> None:
    _, _, ps = played(RunningMinimumEpsilonGreedy(C=1e-12), environments(kind, 1), FEW_HUNDRED, 1)
    assert ps[-1] == math.inf


def test_p_grows_faster_than_t_where_contexts_do_not_repeat() -> None:
    """The smallest of t differences is of order 1/t where they have a density at 0, so p is of order t^2."""
    environment = Linear.draw(np.random.default_rng(2), n_arms=4, dim=3, law="sphere", scale=0.5)
    runs = [played(RunningMinimumEpsilonGreedy(), environment, 2000, seed)[2] for seed in range(16)]
    # from step 200 on: near ties of the first estimates, which are noise, weigh less by then
    slopes = [math.log10(ps[1999] / ps[199]) for ps in runs]
    # the logarithm of an exponential minimum has a standard deviation of 0.56 decades; that of p is twice as much, a
    # slope's at most sqrt 2 times that, 1.6, and the mean of 16 slopes is known to 0.4: 1 is 2.5 of these below 2
    assert 1 < sum(slopes) / len(slopes) < 3.2


@pytest.mark.parametrize("kind", ["Figure (a)", "customers"])
def test_regret_is_that_of_uniform_play(kind: str) -> None:
    environment = environments(kind, 1)
    policies = (RunningMinimumEpsilonGreedy(), armlet.Uniform())
    jobs = [
        Job(environment=environment, policy=policy, horizon=2000, runs=4, seed=6, method="python")
        for policy in policies
    ]
    ours, uniform = simulate_all(jobs, engine="serial")
    # 8,000 steps: the gap of a random arm has a standard deviation of about its mean, so a mean regret is known to
    # 1 / sqrt(8,000) = 1.1 % and the ratio of two to 1.6 %; 5 % is three of these
    assert ours.at(2000).mean() == pytest.approx(uniform.at(2000).mean(), rel=0.05)
    assert ours.curves.explored[:, -1].min() >= 0.99 * 2000
