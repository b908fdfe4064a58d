"""SupLinRel and SupLinUCB against the pseudo-code written with sets of rows, and what the stages promise."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from armlet import Bandit, Uniform
from armlet.environments import FigureA
from armlet.simulation.run import simulate
from armlet.types import Coins, Float64, Interaction
from armlet_lab.literature.staged import Staged, StagedSums, SupLinRel, SupLinUCB
from support.contract import check_settings

K, D, T = 4, 3, 1024
ALL = np.ones(K, dtype=np.bool_)
BOTH = [SupLinRel(horizon=T, noise_scale=0.02), SupLinUCB(horizon=T, noise_scale=0.5, width_scale=0.1)]
# neither explores all the time nor not at all, so that every branch is taken


class Row(NamedTuple):
    x: Float64
    arm: int
    reward: float


def drawn_environment(steps: int, seed: int = 7) -> tuple[Float64, Float64]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(steps, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    theta = rng.normal(size=(K, D))
    theta /= 2 * np.linalg.norm(theta, axis=1, keepdims=True)
    return X, X @ theta.T + 0.1 * rng.normal(size=(steps, K))


def linrel(policy: SupLinRel, rows: list[Row], x: Float64) -> tuple[float, float]:
    values, vectors = np.linalg.eigh(sum((np.outer(row.x, row.x) for row in rows), np.zeros((D, D))))
    weights, unknown = np.zeros(len(rows)), x.copy()
    for value, vector in zip(values, vectors.T, strict=True):
        if value >= 1 - 1e-9:
            weights += (vector @ x) / value * np.array([vector @ row.x for row in rows])
            unknown -= (vector @ x) * vector
    noise = policy.noise_scale * math.sqrt(2 * math.log(2 * T * K / policy.delta)) * np.linalg.norm(weights)
    estimate = sum(weight * row.reward for weight, row in zip(weights, rows, strict=True))
    return float(estimate), float(noise + np.linalg.norm(unknown))


def linucb(policy: SupLinUCB, rows: list[Row], x: Float64) -> tuple[float, float]:
    V = np.eye(D) + sum((np.outer(row.x, row.x) for row in rows), np.zeros((D, D)))
    b = sum((row.reward * row.x for row in rows), np.zeros(D))
    alpha = math.sqrt(math.log(2 * T * K / policy.delta) / 2)
    width = policy.width_scale * (alpha + 1) * math.sqrt(x @ np.linalg.solve(V, x))
    return float(x @ np.linalg.solve(V, b)), width


def written_out(policy: Staged, psi: dict[int, list[Row]], x: Float64) -> tuple[set[int], int]:
    """The arms that may be played and the stage that stores the row, 0 if none."""
    left, s = set(range(K)), 1
    while True:
        found = {}
        for a in left:
            rows = [row for row in psi.get(s, []) if row.arm == a]
            found[a] = linrel(policy, rows, x) if isinstance(policy, SupLinRel) else linucb(policy, rows, x)  # type: ignore[arg-type]
        bounds, widths = {a: r + w for a, (r, w) in found.items()}, {a: w for a, (_, w) in found.items()}
        if all(w <= 1 / math.sqrt(T) for w in widths.values()):
            return {a for a in left if bounds[a] >= max(bounds.values()) - 1e-9}, 0
        if any(w > 2**-s for w in widths.values()):
            return {a for a in left if widths[a] >= max(widths.values()) - 1e-9}, s
        left, s = {a for a in left if bounds[a] >= max(bounds.values()) - 2 ** (1 - s)}, s + 1


@pytest.mark.parametrize(
    "policy",
    [
        SupLinRel(horizon=400),
        SupLinRel(horizon=400, noise_scale=0.02, n_stages=2),
        SupLinUCB(horizon=400),
        SupLinUCB(horizon=400, width_scale=0.1, ridge=0.5),
    ],
    ids=repr,
)
def test_staged_policies_keep_the_contract(policy: Staged) -> None:
    check_settings(policy, n_arms=K, dim=D)


@pytest.mark.parametrize("policy", BOTH, ids=repr)
def test_decisions_are_those_of_the_pseudo_code(policy: Staged) -> None:
    (X, rewards), state, psi = drawn_environment(300), policy.init(K, D), dict[int, list[Row]]()
    stages = []
    for t, x in enumerate(X, start=1):
        arms, stage = written_out(policy, psi, x)
        choice = policy.decide(state, t, x, Coins(0.5, 0, t << 50, 0), ALL)
        assert (choice.tag, choice.explored) == (stage, stage > 0)
        assert choice.arm in arms
        row = Row(x, choice.arm, float(rewards[t - 1, choice.arm]))
        if stage:
            psi.setdefault(stage, []).append(row)
        policy.update(
            state, Interaction(t=t, x=x, arm=row.arm, reward=row.reward, tag=choice.tag, explored=choice.explored)
        )
        stages.append(stage)
    assert len(set(stages)) >= 3  # the test would be empty if one branch were taken only
    counts = [len(psi.get(s, [])) for s in range(1, state.n_stages + 1)]
    assert state["n"].sum(0).tolist() == counts  # a stage's rows are never cleared, and no other has them


@pytest.mark.parametrize("policy", BOTH, ids=repr)
def test_every_decision_starts_at_the_first_stage(policy: Staged) -> None:
    """Know one direction well enough for late stages: another still goes to stage 1."""
    state, (seen, new) = policy.init(K, D), np.eye(D)[:2]
    for stage in range(1, state.n_stages + 1):
        for arm in range(K):
            interaction = Interaction(t=1, x=seen, arm=arm, reward=0.0, tag=stage, weight=50.0 * 4**stage)
            policy.update(state, interaction)
    assert policy.walk(state, seen, ALL).stage == 0
    assert policy.walk(state, 5 * new, ALL).stage == 1
    assert policy.walk(state, seen, ALL).stage == 0


@pytest.mark.parametrize("policy", BOTH, ids=repr)
def test_rows_go_only_to_the_stage_that_asked(policy: Staged) -> None:
    state = policy.init(K, D)
    before = state.arrays()
    policy.update(state, Interaction(t=1, x=np.ones(D), arm=2, reward=1.0, tag=3, explored=True))
    n = np.zeros((K, state.n_stages))
    n[2, 2] = 1
    assert np.array_equal(state["n"], n)
    policy.update(state, Interaction(t=2, x=np.ones(D), arm=2, reward=1.0, tag=0, explored=False))
    assert np.array_equal(state["n"], n)
    policy.update(state, Interaction(t=1, x=np.ones(D), arm=2, reward=1.0, tag=3, weight=-1.0))
    assert all(np.array_equal(before[name], array) for name, array in state.arrays().items())


@pytest.mark.parametrize("policy", BOTH, ids=repr)
def test_late_rewards_land_in_the_stage_of_their_decision(policy: Staged) -> None:
    bandit, (X, rewards) = Bandit(range(K), D, policy=policy, seed=3), drawn_environment(700)
    for x, row in zip(X, rewards, strict=True):
        decision = bandit.decide(x)
        bandit.learn(decision, float(row[int(decision.arm)]))
    pending = [bandit.decide(x) for x in X[:40]]
    expected = bandit.state["n"].copy()
    for decision in pending:
        if decision.tag:
            expected[int(decision.arm), decision.tag - 1] += 1
    for decision in reversed(pending):
        bandit.learn(decision, 0.0)
    assert np.array_equal(bandit.state["n"], expected)


@pytest.mark.parametrize("change", ["merge", "restore", "add", "remove"])
def test_what_was_solved_is_solved_again_when_the_sums_change(change: str) -> None:
    policy, x = SupLinUCB(horizon=T), np.array([0.0, 0.6, 0.8])
    state, other = policy.init(K, D), policy.init(K, D)
    for arm in range(K):
        policy.update(other, Interaction(t=1, x=x, arm=arm, reward=1.0 + arm, tag=1))
    policy.bounds(state, 1, x)  # now it is solved
    if change == "merge":
        state.merge(other, [0, 1, 2, 3])
    elif change == "restore":
        state.restore_arrays(other.arrays())
    else:
        state = other
        policy.bounds(state, 1, x)
        state.add_arm() if change == "add" else state.remove_arm(0)
    anew = StagedSums(state.n_arms, D, state.n_stages)
    anew.restore_arrays(state.arrays())
    for found, expected in zip(policy.bounds(state, 1, x), policy.bounds(anew, 1, x), strict=True):
        assert np.array_equal(found, expected)


def fixed_bounds(
    monkeypatch: pytest.MonkeyPatch, estimates: dict[int, list[float]], widths: dict[int, list[float]]
) -> None:
    def bounds(_self: Staged, _state: StagedSums, stage: int, _x: Float64) -> tuple[Float64, Float64]:
        return np.array(estimates[stage]), np.array(widths[stage])

    monkeypatch.setattr(Staged, "bounds", bounds)


def test_arms_are_dropped_below_twice_the_width_of_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stage 1 keeps what is within 1 of the highest bound, stage 2 within 1/2: the ends included."""
    one, two = [2.0, 1.0, 0.99, 1.6], [0.5, 0.0, 9.0, -0.01]
    fixed_bounds(monkeypatch, {1: one, 2: two, 3: [0.0] * 4}, {1: [0.5] * 4, 2: [0.25] * 4, 3: [0.126] * 4})
    policy = SupLinUCB(horizon=T)
    end = policy.walk(policy.init(K, D), np.ones(D), ALL)
    assert end.stage == 3
    assert end.arms.tolist() == [True, True, False, False]  # 2 fell at stage 1, 3 at stage 2; 1 was at both ends


def test_an_arm_that_may_not_be_played_does_not_set_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed_bounds(monkeypatch, {1: [9.0, 1.0, 0.5, 0.0], 2: [0.0] * 4}, {1: [9.0, 0.5, 0.5, 0.5], 2: [1.0] * 4})
    policy = SupLinRel(horizon=T)
    end = policy.walk(policy.init(K, D), np.ones(D), np.array([False, True, True, True]))
    assert (end.stage, end.arms.tolist()) == (2, [False, True, True, True])


def test_narrow_widths_end_the_walk_before_a_stage_can_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    small = 1 / math.sqrt(T)
    fixed_bounds(monkeypatch, {1: [0.0, 0.3, 0.1, 0.2]}, {1: [small] * 4})
    policy = SupLinUCB(horizon=T)
    choice = policy.decide(policy.init(K, D), 1, np.ones(D), Coins(0.5, 0, 0, 0), ALL)
    assert (choice.arm, choice.tag, choice.explored) == (1, 0, False)


def test_the_widest_of_wide_arms_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed_bounds(monkeypatch, {1: [9.0, 0.0, 0.0, 0.0]}, {1: [0.6, 0.7, 0.8, 0.1]})
    policy = SupLinUCB(horizon=T)
    choice = policy.decide(policy.init(K, D), 1, np.ones(D), Coins(0.5, 0, 0, 0), ALL)
    assert (choice.arm, choice.propensity, choice.tag, choice.explored) == (2, 1.0, 1, True)


@pytest.mark.parametrize("horizon", [1, 2, 4, 5, 16, 17, 1000, 1024, 1025, 10**6])
def test_no_walk_gets_past_the_stages_that_are_kept(horizon: int) -> None:
    """To leave stage s some width must lie above 1 / sqrt(T) and none above 2^-s, so S needs 2^-S <= 1 / sqrt(T)."""
    S = SupLinUCB(horizon=horizon).stages()
    assert S >= 1
    assert horizon <= 4**S
    assert S == 1 or horizon > 4 ** (S - 1)
    assert max(1, math.ceil(math.log(horizon))) >= S  # the papers keep about log T


def test_at_the_cap_the_highest_bound_is_played_and_kept_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed_bounds(monkeypatch, {1: [0.0, 0.4, 0.3, 0.2]}, {1: [0.4] * 4})
    policy = SupLinRel(horizon=T, n_stages=1)
    state = policy.init(K, D)
    assert state.n_stages == 1
    choice = policy.decide(state, 1, np.ones(D), Coins(0.5, 0, 0, 0), ALL)
    assert (choice.arm, choice.tag, choice.explored) == (1, 0, False)


def test_the_theory_explores_nearly_always_at_small_horizons() -> None:
    for policy in (SupLinRel(horizon=T), SupLinUCB(horizon=T)):
        bandit, (X, rewards) = Bandit(range(K), D, policy=policy, seed=3), drawn_environment(T)
        tags = []
        for x, row in zip(X, rewards, strict=True):
            decision = bandit.decide(x)
            bandit.learn(decision, float(row[int(decision.arm)]))
            tags.append(decision.tag)
        assert np.mean(np.array(tags) > 0) > 0.99


def test_widths_that_would_never_explore_are_refused() -> None:
    with pytest.raises(ValueError, match=r"width_scale is 0.02, which makes .* 0.02, at most 1 / sqrt\(horizon\)"):
        Bandit(range(K), D, policy=SupLinRel(horizon=T, width_scale=0.02))
    with pytest.raises(ValueError, match=r"width_scale is 0.001, .* so nothing would be learned; raise it"):
        Bandit(range(K), D, policy=SupLinUCB(horizon=T, width_scale=0.001))


@pytest.mark.parametrize(
    "policy", [SupLinRel(horizon=2000, noise_scale=0.02), SupLinUCB(horizon=2000, noise_scale=0.5, width_scale=0.1)]
)
def test_staged_policies_beat_uniform_play(policy: Staged) -> None:
    environment = FigureA.draw(np.random.default_rng(3))
    regrets = [
        simulate(environment, each, horizon=2000, runs=4, seed=1, method="python", engine="serial").at(2000).mean()
        for each in (policy, Uniform())
    ]
    assert regrets[0] < regrets[1] / 2


def test_there_is_no_single_estimate() -> None:
    with pytest.raises(TypeError, match="SupLinRel keeps no linear estimates but one for every stage"):
        SupLinRel(horizon=10).estimates(SupLinRel(horizon=10).init(2, 2))


def test_rows_of_a_log_are_refused_because_no_stage_asked_for_them() -> None:
    bandit = Bandit(range(2), 1, policy=SupLinUCB(horizon=100), seed=1)
    with pytest.raises(ValueError, match="rows of a log cannot be learned; play the policy, or choose another"):
        bandit.partial_fit([[1.0]], [0], [1.0], explored=True)
    assert not bandit.state["n"].any()


def test_a_tag_of_another_policy_is_refused() -> None:
    policy = SupLinUCB(horizon=16)
    with pytest.raises(ValueError, match="tag is 3 but there are 2 stages; it must come from the decision"):
        policy.update(policy.init(2, 1), Interaction(t=1, x=np.ones(1), arm=0, reward=1.0, tag=3))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"horizon": True}, "horizon is True; give a whole number of at least 1"),
        ({"n_stages": 0}, "n_stages is 0; give a whole number of at least 1"),
        ({"delta": -0.1}, "delta is -0.1; give a chance"),
        ({"noise_scale": 0}, "noise_scale is 0; give a positive number"),
        ({"ridge": -1}, "ridge is -1; give a positive number"),
    ],
)
def test_wrong_settings_are_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SupLinUCB(**{"horizon": 10, **given})  # type: ignore[arg-type]
