"""Rows that fade: the kernel against the readable reference, and what a discount promises beyond any policy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet.errors import InvalidValueError, MergeError
from armlet.inputs.settings import Ridge
from armlet.kernel import Statistics, rollout
from armlet.policies import Greedy, LinUCB, OccasionalOptimism, SquareCB, ThompsonSampling
from armlet.policies.discounts import duration_of, fading
from armlet.reference.discount import FadingReference
from armlet.types import Policy
from support.examples import scaled

FADING = [
    LinUCB(discount=0.98),
    LinUCB(half_life=3.5, units="as given"),
    ThompsonSampling(half_life=20, v=0.5),
    Greedy(discount=0.9),
    OccasionalOptimism(discount=0.99),
    SquareCB(gamma=30.0, discount=0.98),
    SquareCB(gamma=5.0, half_life=40, units="as given"),
    OccasionalOptimism(half_life=30, noise="max"),
]
SUMS = ("records", "squares")


@settings(max_examples=scaled(60))
@given(
    seed=st.integers(0, 2**32),
    half_life=st.floats(1.0, 1e6),
    units=st.sampled_from(["free", "as given"]),
    d=st.integers(1, 9),
)
def test_sums_and_bounds_are_those_of_the_reference_to_the_last_bit(
    seed: int, half_life: float, units: Any, d: int
) -> None:
    rng = np.random.default_rng(seed)
    ridge = Ridge.parse(0.7)
    kernel = Statistics(2, d, ridge="constant", value=0.7, units=units, half_life=half_life, weighted_widths=True)
    slow = FadingReference(2, d, p=0.0, seed=1, ridge=ridge, units=units, half_life=half_life)
    t, rows = 0, []
    for _ in range(25):
        t += int(rng.integers(0, 30))
        late = max(0, t - int(rng.integers(0, 40)))
        rows.append((int(rng.integers(2)), rng.standard_normal(d), float(rng.normal()), 1.0, late))
        for state in (kernel, slow):
            state.add(*rows[-1][:4], t=late)
    arm, x, reward, _, late = rows[int(rng.integers(len(rows)))]
    for state in (kernel, slow):
        state.add(arm, x, reward, -1.0, t=late)  # taken back
    t += int(rng.integers(0, 50))
    for state in (kernel, slow):
        state.as_of(t)
    x = rng.standard_normal(d)
    np.testing.assert_array_equal(kernel.n, slow.rows)
    np.testing.assert_array_equal(kernel.records()[:, 0], slow.n)
    np.testing.assert_array_equal(kernel.standard_estimates(), slow.estimates())
    np.testing.assert_array_equal(kernel.scores(x), slow.scores(x))
    np.testing.assert_array_equal(kernel.widths(x), slow.widths(x))


def test_bounds_are_those_of_the_paper() -> None:
    """D-LinUCB as printed, from rows: at a tick to rounding, and within a tick to 1.1 % of the ridge's weight."""
    gamma, d, alpha = 0.995, 3, 1.5
    policy, rng = LinUCB(discount=gamma, alpha=alpha, units="as given"), np.random.default_rng(3)
    state, rows = policy.init(1, d), []
    for t in range(1, 400):
        x, reward = rng.standard_normal(d), float(rng.normal())
        rows.append((x, reward))
        state.add(0, x, reward, t=t)
    X, r = np.array([x for x, _ in rows]), np.array([reward for _, reward in rows])
    half_life = float(fading(policy)["half_life"])
    for t, tolerance in ((400, 1e-2), (500, 1e-2)):
        exact = np.floor(t / half_life * 64) / 64 * half_life  # the tick that is looked at
        state.as_of(t)
        x = rng.standard_normal(d)
        for now, within in ((exact, 1e-9), (float(t), tolerance)):
            w = gamma ** (now - np.arange(1, 400))
            V, V2 = (X.T * w) @ X + np.eye(d), (X.T * w**2) @ X + np.eye(d)
            theta, half = np.linalg.solve(V, (X.T * w) @ r), np.linalg.solve(V, x)
            bound = x @ theta + alpha * np.sqrt(half @ V2 @ half)
            assert policy.upper_bounds(state, x)[0] == pytest.approx(bound, rel=within)


def played(policy: Policy, seed: int, steps: int = 300) -> tuple[armlet.Bandit, list[Any]]:
    bandit, rng = armlet.Bandit(range(3), 2, policy=policy, seed=seed), np.random.default_rng(seed)
    rows = []
    for _ in range(steps):
        decision = bandit.decide(rng.standard_normal(2))
        rows.append((decision, float(rng.normal() + int(decision.arm))))
        bandit.learn(*rows[-1])
    return bandit, rows


def close(one: Any, other: Any) -> bool:
    found, expected = one.arrays(), other.arrays()
    return all(np.allclose(found[name], expected[name], rtol=1e-9, atol=1e-12) for name in SUMS if name in expected)


def test_next_to_nothing_that_is_left_is_no_lost_digit() -> None:
    """Of rows that have faded, the ridge outweighs what the rounding of a later row leaves there."""
    kernel = Statistics(1, 1, ridge="constant", units="as given", half_life=2.0, weighted_widths=True)
    slow = FadingReference(1, 1, p=0.0, seed=1, units="as given", half_life=2.0)
    for state in (kernel, slow):
        for t, weight in ((0, 1.0), (76, 1.0), (76, -1.0)):
            state.add(0, np.full(1, 3.0), 1.0, weight, t=t)
    assert kernel.records()[0].tolist() == [slow.n[0], slow.sum_r[0], slow.sum_rr[0], slow.b[0, 0], slow.A[0, 0, 0]]
    assert 0.0 < kernel.records()[0, 0] < 1e-11
    assert not kernel.digits_lost.any()


@pytest.mark.parametrize("policy", FADING, ids=repr)
def test_rewards_of_any_order_lead_to_the_same_sums(policy: Policy) -> None:
    bandit, rows = played(policy, 4)
    state: Any = policy.init(3, 2)
    for place in np.random.default_rng(1).permutation(len(rows)):
        decision, reward = rows[place]
        state.add(int(decision.arm), decision.x, reward, t=decision.t)
    assert close(state, bandit.state)
    assert state.clock == bandit.state.clock


@pytest.mark.parametrize("policy", FADING, ids=repr)
def test_states_of_other_clocks_add_up(policy: Policy) -> None:
    early, late = played(policy, 5, 80), played(policy, 6, 300)
    whole: Any = policy.init(3, 2)
    for _, rows in (late, early):
        for decision, reward in rows:
            whole.add(int(decision.arm), decision.x, reward, t=decision.t)
    for one, other in ((early, late), (late, early)):
        both = one[0].copy()
        both.merge(other[0])
        assert close(both.state, whole)
        assert both.state.clock == whole.clock


@pytest.mark.parametrize("policy", FADING, ids=repr)
def test_what_was_learned_since_a_base_is_what_a_merge_adds(policy: Policy) -> None:
    bandit, _ = played(policy, 7, 100)
    worker = bandit.copy()
    rng = np.random.default_rng(8)
    for _ in range(150):
        worker.learn(worker.decide(rng.standard_normal(2)), float(rng.normal()))
    bandit.merge(worker.difference(bandit))
    assert close(bandit.state, worker.state)


@pytest.mark.parametrize("policy", FADING, ids=repr)
def test_old_rows_can_be_corrected_and_forgotten(policy: Policy) -> None:
    bandit, rows = played(policy, 9)
    state: Any = policy.init(3, 2)
    for place, (decision, reward) in enumerate(rows):
        if place % 3 == 0:
            bandit.forget(decision, reward)
        elif place % 3 == 1:
            bandit.correct(decision, reward, reward + 1.0)
        if place % 3:
            state.add(int(decision.arm), decision.x, reward + (place % 3 == 1), t=decision.t)
    state.add(0, np.zeros(2), 0.0, 0.0, t=300)  # brings the sums to the same clock
    assert close(bandit.state, state)


def test_nothing_overflows_or_lingers_however_long_it_lives() -> None:
    state = Statistics(2, 1, ridge="constant", half_life=10.0, weighted_widths=True)
    state.add(1, np.ones(1), 7.0, t=1)
    for t in range(1, 100_000, 997):
        state.add(0, np.ones(1), 1.0, t=t)
        assert np.isfinite(state.records()).all()
    assert state.records()[1].tolist() == [0.0] * 5
    assert 1.0 <= state.records()[0, 0] < 2.1
    state.as_of(2**62)
    assert (state.n[0] > 0.0, state.widths(np.ones(1)).tolist()) == (True, [1.0, 1.0])


def test_an_arm_that_is_not_played_is_known_less_and_less() -> None:
    state = LinUCB(half_life=100, units="as given").init(1, 1)
    for t in range(50):
        state.add(0, np.ones(1), 1.0, t=t)
    widths = []
    for t in (50, 150, 1050):
        state.as_of(t)
        widths.append(float(state.widths(np.ones(1))[0]))
    assert widths == sorted(widths)
    assert widths[-1] == pytest.approx(1.0, abs=0.05)


def test_settings_name_their_faults() -> None:
    assert duration_of(Greedy(half_life=timedelta(hours=36))) == timedelta(hours=36)
    for wrong in ("soon", timedelta(seconds=1), 0.5, True, "0 days"):
        with pytest.raises(InvalidValueError, match="half_life is"):
            Greedy(half_life=wrong)
    for discount in (1.0, 0.4, -1.0):
        with pytest.raises(InvalidValueError, match="discount is"):
            Greedy(discount=discount)
    with pytest.raises(InvalidValueError, match="radius is 'proved'"):
        OccasionalOptimism(discount=0.9, radius="proved", noise_scale=1.0, theta_norm=1.0, units="as given")
    with pytest.raises(InvalidValueError, match="gamma is None, so it grows"):
        SquareCB(half_life="7 days")
    one, other = (armlet.Bandit(["a"], 1, policy=policy, seed=1) for policy in (LinUCB(), LinUCB(discount=0.9)))
    with pytest.raises((InvalidValueError, MergeError)):
        one.merge(other)
    with pytest.raises(InvalidValueError, match=r"discount is None here and 0\.9 there"):
        one.replace(policy=LinUCB(discount=0.9))
    other.replace(policy=LinUCB(discount=0.9, alpha=1.0))
    timed = LinUCB(half_life="7 days")
    with pytest.raises(InvalidValueError, match="give its half_life in steps"):
        rollout(np.ones((2, 1)), np.ones((2, 2)), start=timed.init(2, 1), rule=timed.rule(), seed=1)
