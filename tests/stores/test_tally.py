"""The tally of a loop: exact counts, the same after a restart at any moment, bounded, and refused if damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet.bandit import Bandit
from armlet.errors import StoreError
from armlet.policies import LinUCB, Uniform
from armlet.stores.folds import ERASE, Tally
from armlet.stores.folds.cohorts import MOST, SIZE, Cohorts
from armlet.stores.folds.rewards import MOMENTS, DecisionTimes, Delays
from armlet.types import Arm
from support.examples import scaled
from support.stores.tally_rows import decide, of_arm, seen_at, tell
from support.watched import Played, draw

SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def bandit_of(arms: list[Arm]) -> Bandit:
    return Bandit(arms, dim=1, policy=Uniform(), seed=5)


def tally_of(scenario_seed: int, n: int, reopened_every: int = 0) -> Tally:
    """Return the tally of a simulated loop, written and read again at some of the looks."""
    played = Played(draw(scenario_seed, n), n)
    for look, _ in enumerate(played.looks(), 1):
        if reopened_every and look % reopened_every == 0:
            played.tally = Tally.from_json(played.tally.to_json())
    return played.tally


def test_counts_are_those_of_a_plain_list_of_decisions() -> None:
    rng, bandit, tally = np.random.default_rng(1), bandit_of(["a", "b", 3]), Tally()
    decisions = [bandit.decide([1.0]) for _ in range(600)]
    values: dict[Arm, list[float]] = {"a": [], "b": [], 3: []}
    for step, decision in enumerate(decisions):
        at = START + step * SECOND
        row = decide(tally, decision, at)
        if rng.random() < 0.6:
            value = float(rng.integers(-8, 9)) / 4  # so that sums are exact
            values[decision.arm].append(value)
            tell(tally, row, "learn", at + 5, reward=value, status="accepted")
    assert tally.traffic.decisions == 600
    assert tally.open == 600 - sum(len(some) for some in values.values())
    for arm in tally.counts:
        some = values[arm.arm]
        assert arm.decisions == arm.explored == sum(decision.arm == arm.arm for decision in decisions)
        assert (arm.rewards, arm.learned, arm.defaults) == (len(some), len(some), 0)
        assert arm.mean == arm.explored_mean == sum(some) / len(some)
        assert arm.variance == pytest.approx(np.var(some, ddof=1), rel=1e-12)


def test_corrected_and_forgotten_values_leave_the_sums_of_those_that_count() -> None:
    tally, bandit = Tally(), bandit_of(["a"])
    values = (0.5, 1.0, 0.25, -2.0)
    rows = [decide(tally, bandit.decide([1.0]), START + step) for step in range(len(values))]
    for row, value in zip(rows, values, strict=True):
        tell(tally, row, "learn", START + 9, reward=value)
    tell(tally, rows[1], "correct", START + 9, old_reward=1.0, new_reward=3.0)
    tell(tally, rows[3], ERASE, START + 9, reward=-2.0)
    (arm,) = tally.counts
    assert (arm.learned, arm.mean) == (3, 1.25)
    assert arm.variance == np.var([0.5, 3.0, 0.25], ddof=1)


def test_open_decisions_are_those_that_wait() -> None:
    tally, bandit = Tally(), bandit_of(["a", "b"])
    for step in range(10):
        decide(tally, bandit.decide([1.0]), START + step)
    a, b = of_arm("a", START), of_arm("b", START + 1)
    tell(tally, a, "learn", START + 20, reward=1.0)
    tell(tally, b, "learn", START + 20, reward=0.0, source="default")
    tell(tally, a, "expire", START + 20)
    tell(tally, b, "expire", START + 20)
    tell(tally, a, ERASE, START + 20, is_open=True)
    assert tally.open == 5
    tell(tally, b, "learn", START + 30, reward=1.0, expired=True)
    assert tally.open == 5
    tell(tally, b, ERASE, START + 30, reward=1.0)  # was learned, so it did not wait
    assert tally.open == 5
    assert [arm.defaults for arm in tally.counts if arm.arm == "b"] == [1]


def test_labels_of_the_same_text_stay_apart_through_json() -> None:
    tally, bandit = Tally(), bandit_of([1, "1"])
    for step in range(100):
        decide(tally, bandit.decide([1.0]), START + step)
    again = Tally.from_json(tally.to_json())
    assert again.counts == tally.counts
    assert {type(arm.arm) for arm in again.counts} == {int, str}


def test_arms_are_added_whenever_they_are_first_seen() -> None:
    tally, bandit = Tally(), bandit_of(["a"])
    decide(tally, bandit.decide([1.0]), START)
    tell(tally, of_arm("never decided here", START), "expire", START)
    bandit.add_arm("b")
    for step in range(50):
        decide(tally, bandit.decide([1.0]), START + step)
    assert [arm.arm for arm in tally.counts] == ["a", "never decided here", "b"]


@pytest.mark.parametrize("seed", [61_001, 61_002, 61_003, 61_004, 61_005, 61_006])
def test_a_loop_that_is_reopened_counts_on_as_if_it_had_not_been(seed: int) -> None:
    assert tally_of(seed, 3000, reopened_every=3).to_json() == tally_of(seed, 3000).to_json()


def test_json_of_ten_arms_stays_below_twelve_thousand_bytes() -> None:
    played = Played(replace(draw(61_007, 20_000), n_arms=10, changes=()), 20_000)
    assert max(len(played.tally.to_json()) for _ in played.looks()) < 12_000


def test_statuses_are_counted_one_by_one() -> None:
    tally = Tally()
    for status in ("accepted", "unknown", "accepted", "early", "counted"):
        tally.traffic.answered(status, START)
    assert tally.traffic.statuses == {"accepted": 2, "unknown": 1, "early": 1, "counted": 1}
    assert Tally.from_json(tally.to_json()).traffic.statuses == tally.traffic.statuses


# ---- damage

KEYS = sorted(json.loads(Tally().to_json()))


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", [None, "x", [[]], {"a": 1}, [1e999], -1.5], ids=repr)
def test_a_damaged_field_is_refused(key: str, value: object) -> None:
    state = json.loads(tally_of(61_001, 1000).to_json())
    with pytest.raises(StoreError, match="the tally of the loop is damaged"):
        Tally.from_json(json.dumps({**state, key: value}))
    with pytest.raises(StoreError, match="the tally of the loop is damaged"):
        Tally.from_json(json.dumps({name: each for name, each in state.items() if name != key}))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 5000, '{"format": 2}'])
def test_text_that_is_not_a_tally_is_refused(text: str) -> None:
    with pytest.raises(StoreError, match="go back to a backup"):
        Tally.from_json(text)


def test_a_cut_text_is_refused() -> None:
    text = tally_of(61_001, 1000).to_json()
    for end in range(0, len(text), 97):
        with pytest.raises(StoreError):
            Tally.from_json(text[:end])


def test_columns_of_another_number_of_arms_are_refused() -> None:
    state: dict[str, Any] = json.loads(tally_of(61_001, 1000).to_json())
    with pytest.raises(StoreError, match="arms"):
        Tally.from_json(json.dumps({**state, "arms": [*state["arms"], "one more"]}))
    with pytest.raises(StoreError, match="twice"):
        Tally.from_json(json.dumps({**state, "arms": [state["arms"][0]] * len(state["arms"])}))


# ---- delays


@settings(max_examples=scaled(60), deadline=None)
@given(st.lists(st.integers(0, 5000), min_size=1, max_size=400), st.lists(st.integers(0, 3_000_000), min_size=5))
def test_decisions_until_a_moment_lie_between_the_two_bounds(pauses: list[int], ages: list[int]) -> None:
    times, moments = DecisionTimes(), list(np.cumsum(pauses) * SECOND // 3)
    for count, at in enumerate(moments):
        if at >= times.due:
            times.mark(int(at), count)
    assert len(times.seconds) <= MOMENTS
    for age in ages:
        ts = int(moments[-1]) - age * SECOND
        exact = sum(at <= ts for at in moments)
        assert times.at_least(ts) <= exact <= times.at_most(ts, len(moments))


def test_recent_moments_are_remembered_more_exactly_than_old_ones() -> None:
    times = DecisionTimes()
    for second in range(200_000):
        times.mark(second * SECOND, second)
    assert len(times.seconds) <= MOMENTS
    for age in (1, 10, 100, 1000, 10_000, 100_000):
        ts = (200_000 - age) * SECOND
        width = times.at_most(ts, 200_000) - times.at_least(ts)
        assert width <= 0.3 * age + 2  # neighbours differ by a factor of 1.25 in age


def test_delays_are_counted_by_powers_of_two() -> None:
    delays = Delays()
    for seconds in (0, 0.9, 1, 1.9, 2, 3.9, 4, 7, 1e12):
        delays.add(int(seconds * SECOND))
    delays.add(-5)  # a clock was set back
    assert delays.bins[:4] == [3, 2, 2, 2]
    assert sum(delays.bins) == 10


def test_the_share_rewarded_by_age_counts_only_decisions_that_are_old_enough() -> None:
    tally, bandit = Tally(), bandit_of(["a", "b"])
    for step in range(2000):
        decide(tally, bandit.decide([1.0]), START + step * SECOND)
        if step >= 10 and step % 2:  # every second decision is rewarded, 10 seconds later
            tally.traffic.answered("accepted", START + step * SECOND, START + (step - 10) * SECOND)
    shares = dict(tally.traffic.rewarded_by_age(START + 2000 * SECOND))
    assert shares[8] == 0.0
    assert shares[16] == pytest.approx(0.5, abs=0.01)


def test_rewards_are_expected_when_decisions_are_old_enough_and_never_in_the_night() -> None:
    tally, bandit, noon = Tally(), bandit_of(["a"]), START
    for step in range(3000):  # rewarded after 100 s, as long as there are decisions
        decide(tally, bandit.decide([1.0]), noon + step * SECOND)
        if step >= 100:
            tally.traffic.answered("accepted", noon + step * SECOND, noon + (step - 100) * SECOND)
    end = noon + 3000 * SECOND
    assert tally.traffic.expected_answers(end + 10 * SECOND) <= 16.0
    for late in range(100):  # the last decisions have theirs, too
        tally.traffic.answered("accepted", end + late * SECOND, end + (late - 100) * SECOND)
    night = end + 50_000 * SECOND
    assert tally.traffic.expected_answers(night) <= 1.0
    for step in range(90):
        decide(tally, bandit.decide([1.0]), night + step * SECOND)
    assert tally.traffic.expected_answers(night + 90 * SECOND) <= 1.0
    for step in range(90, 600):
        decide(tally, bandit.decide([1.0]), night + step * SECOND)
    assert tally.traffic.expected_answers(night + 600 * SECOND) > 300.0


# ---- cohorts


def followed(window: int, decisions: int) -> Tally:
    """Return the tally of a loop that learns every decision after so many seconds, a reward or else the default."""
    tally, bandit = Tally(), bandit_of(["a", "b"])
    past = []
    for step in range(decisions):
        now = START + step * SECOND
        past.append(decide(tally, bandit.decide([1.0]), now))
        if step >= window:
            source = "reward" if step % 2 else "default"
            tell(tally, past[step - window], "learn", now, reward=float(step % 2), source=source, status="accepted")
    return tally


@pytest.mark.parametrize("window", [0, 150, 1000])
def test_a_cohort_is_judged_once_all_of_its_decisions_are_learned(window: int) -> None:
    tally = followed(window, 12_000)
    learned, reported = tally.cohorts.usually
    assert tally.cohorts.judged >= 20
    weights = sum(0.95**age for age in range(tally.cohorts.judged))
    assert learned == pytest.approx(SIZE * weights, rel=0.01)
    assert reported == pytest.approx(learned / 2, rel=0.02)


def test_few_cohorts_are_followed_at_a_time_however_long_rewards_take() -> None:
    tally = followed(5000, 8000)
    assert len(tally.cohorts.state()["cohorts"]) == MOST


def test_cohorts_do_not_overlap() -> None:
    spans = [(start, end) for start, end, *_ in followed(1000, 8000).cohorts.state()["cohorts"]]
    assert len(spans) > 1
    assert all(end < start for (_, end), (start, _) in pairwise(spans))


def test_decisions_without_chance_are_not_bet_on() -> None:
    tally, bandit = Tally(), Bandit(["a", "b"], dim=1, policy=LinUCB(), seed=1)
    for step in range(200):
        decision = bandit.decide([1.0])
        bandit.learn(decision, float(decision.arm == "a"))
        if decision.propensity == 1.0:
            decide(tally, decision, START + step)
    assert tally.traffic.decisions > 100
    assert tally.bets.state()[:3] == [[0, 0], [], []]


def test_rewards_of_other_decisions_in_a_cohort_do_not_end_it() -> None:
    """Where the wall clock is set back, decisions of two times share a cohort, and so do their rewards."""
    cohorts = Cohorts()
    for _ in range(2):
        cohorts.add_arm()
    for i in range(400):
        cohorts.decided(i % 2, 1_000_000 + i)
    for i in range(400):
        for _ in range(3):
            cohorts.on_learn(seen_at(i % 2, 1_000_000 + i, after=1.0))
    cohorts.judge(100_000_000, 1_000_000, True)
    assert cohorts.judged >= 1
    assert all(one.amount == 0.0 for one in cohorts.lack)
