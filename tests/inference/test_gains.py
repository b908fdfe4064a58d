"""Gains: scores whose mean is the weighted gain, by enumeration of all coins; sums whose ends hold at every look."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet.inference.gains import (
    BOUND,
    GUESS,
    GainSums,
    ValueSums,
    as_share,
    control_score,
    exploration_score,
    live_prob,
    shadow_score,
)
from armlet.inference.sequences import mixed_margin
from armlet.stores.folds.comparisons import Coins, Comparisons, Scale
from support.examples import scaled
from support.stores.coin_loops import ARMS, Environment, Setting, Watched, watch

CHANCES = st.floats(0.001, 0.999)


@st.composite
def laws(draw: st.DrawFn) -> tuple[list[float], list[float], list[float]]:
    """Draw laws of exploring and of live play, some of whose arms have none, and what arms earn."""
    n = draw(st.integers(1, 5))
    weights = [draw(st.lists(st.integers(low, 9), min_size=n, max_size=n)) for low in (1, 0)]
    q, pi = ([each / max(sum(some), 1) for each in some] for some in weights)
    if not sum(pi):
        pi = [1.0] + [0.0] * (n - 1)
    return q, pi, draw(st.lists(st.floats(0.0, 1.0), min_size=n, max_size=n))


@given(laws(), CHANCES, st.floats(0.0, 1.0))
@settings(max_examples=scaled(200))
def test_the_mean_score_over_exploration_is_its_weight_times_the_gain(
    drawn: tuple[list[float], list[float], list[float]], c: float, m: float
) -> None:
    q, pi, mu = drawn
    mean, gain = 0.0, sum((p - e) * u for p, e, u in zip(pi, q, mu, strict=True))
    for given_q, given_pi, u in zip(q, pi, mu, strict=True):
        chance = c * given_q + (1.0 - c) * given_pi
        factor, weight = exploration_score(chance, c, given_q)
        assert -(1.0 - c) - 1e-12 <= factor <= c + 1e-12
        assert weight == c * (1.0 - c)
        mean += chance * factor * (u - m)
    assert mean == pytest.approx(c * (1.0 - c) * gain, abs=1e-12)


@given(laws(), CHANCES, st.floats(0.0, 1.0), st.integers(0, 4))
@settings(max_examples=scaled(200))
def test_the_mean_score_of_a_shadow_is_its_weight_times_the_gain_over_live(
    drawn: tuple[list[float], list[float], list[float]], c: float, m: float, choice: int
) -> None:
    q, pi, mu = drawn
    shadow, smallest = choice % len(q), min(q)
    mean, gain = 0.0, mu[shadow] - sum(p * u for p, u in zip(pi, mu, strict=True))
    for arm, (given_q, given_pi, u) in enumerate(zip(q, pi, mu, strict=True)):
        chance = c * given_q + (1.0 - c) * given_pi
        factor, weight = shadow_score(chance, c, given_q, smallest, arm == shadow)
        assert -c - 1e-12 <= factor <= 1.0 - c + 1e-12
        mean += chance * factor * (u - m)
    assert weight == c * (1.0 - c) * smallest
    assert mean == pytest.approx(weight * gain, abs=1e-12)


@given(CHANCES, st.floats(0.0, 1.0), st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3))
@settings(max_examples=scaled(100))
def test_the_mean_score_over_a_control_is_its_weight_times_the_gain(c: float, m: float, mu: list[float]) -> None:
    for live, control in product(range(3), repeat=2):
        mean = 0.0
        for is_controls, chance, arm in ((True, c, control), (False, 1.0 - c, live)):
            factor, weight = control_score(c, is_controls, live != control)
            assert abs(factor) <= 1.0
            mean += chance * factor * (mu[arm] - m)
        assert mean == pytest.approx(weight * (mu[live] - mu[control]), abs=1e-12)


def test_rows_on_which_both_policies_agree_add_nothing() -> None:
    assert exploration_score(1.0, 0.3, 1.0)[0] == 0.0  # one eligible arm
    assert shadow_score(0.925, 0.1, 0.25, 0.25, is_shadows=True)[0] == pytest.approx(0.0, abs=1e-15)
    assert control_score(0.2, True, False)[0] == control_score(0.2, False, False)[0] == 0.0


def test_the_live_probability_of_an_arm_is_exact_to_rounding_and_never_outside_of_0_and_1() -> None:
    for c, q, pi in product((1e-3, 0.1, 0.9), (1e-3, 0.25, 1.0), (0.0, 0.2, 1.0)):
        assert live_prob(c * q + (1 - c) * pi, c, q) == pytest.approx(pi, abs=1e-12)
    assert live_prob(0.0, 0.5, 0.5) == 0.0
    assert exploration_score(0.0, 0.5, 0.0) == shadow_score(0.0, 0.5, 0.0, 1.0, is_shadows=False) == (0.0, 0.25)


def naive_ends(scores: list[float], weights: list[float]) -> tuple[float, float]:
    """Return the ends by the definition, from all rows."""
    squares = 0.0
    for row, score in enumerate(scores):
        guess = min(max(sum(scores[:row]) / row, -GUESS), GUESS) if row else 0.0
        squares += (score - guess) ** 2
    margin = BOUND * float(mixed_margin(squares / BOUND**2, math.log(40.0)))
    return (sum(scores) - margin) / sum(weights), (sum(scores) + margin) / sum(weights)


def test_sums_lead_to_the_ends_that_all_rows_lead_to() -> None:
    rng, sums = np.random.default_rng(3), GainSums()
    scores, weights = (rng.uniform(-0.5, 1.0, 400)).tolist(), rng.uniform(0.2, 0.3, 400).tolist()
    for score, weight in zip(scores, weights, strict=True):
        sums.add(score, weight)
    low, high = naive_ends(scores, weights)
    assert sums.interval() == pytest.approx((max(low, -1.0), min(high, 1.0)), rel=1e-9)
    assert GainSums(*sums.state()).interval() == sums.interval()


def test_before_the_first_row_a_gain_may_be_anything() -> None:
    assert GainSums().interval() == (-1.0, 1.0)
    assert GainSums().mean is GainSums().rows_until(0.1) is None
    assert ValueSums().interval() == (0.0, 1.0)


def test_the_rows_until_an_answer_are_those_after_which_it_comes() -> None:
    """The same rows again and again: the answer comes when it was said, up to the step of 10 % of the search."""
    sums, rows = GainSums(), [(0.3, 0.09), (-0.25, 0.09), (0.26, 0.09), (-0.22, 0.09)]
    for at in range(400):
        sums.add(*rows[at % 4])
    mean = sums.mean
    assert mean is not None
    more = sums.rows_until(mean)
    assert sums.interval().low < 0.0
    assert more is not None
    said = sums.rows + more
    while sums.interval().low <= 0.0:
        for row in rows:
            sums.add(*row)
    assert said / 1.11 <= sums.rows <= said * 1.01
    assert sums.rows_until(mean) == 0.0
    assert sums.rows_until(0.0) is None


def test_values_lie_between_their_ends_and_rewards_beyond_the_range_are_clipped() -> None:
    sums = ValueSums()
    for row in range(400):
        sums.add(as_share(2.0 * (row % 2), 0.0, 4.0))
    assert 0.0 < sums.interval().low < 0.25 < sums.interval().high < 0.5
    assert (as_share(-3.0, 0.0, 4.0), as_share(9.0, 0.0, 4.0)) == (0.0, 1.0)


# ---- many loops, watched at every decision


@pytest.mark.parametrize("against", ["uniform", "control"])
def test_simulated_sums_are_those_of_a_tally(against: str) -> None:
    """The same rows through `Comparisons` and through numpy; both add in the same order, so to the last bits."""
    setting = Setting("uniform" if against == "uniform" else "control", 0.3)
    environment, watched, loops = Environment(setting, 5, 61_010), Watched(setting, 5), 5
    tallies = [Comparisons() for _ in range(loops)]
    for one in tallies:
        for _ in range(ARMS):
            one.add_arm()
        one.begin(Scale(0.0, 1.0, False), 0, 0)
    for t, step in enumerate(environment.steps(3000), 1):
        watched.add(step)
        for at, one in enumerate(tallies):
            arm, live, e = int(step.arm[at]), int(step.live[at]), bool(step.e[at])
            chance = 0.1 / ARMS + 0.9 * (arm == live)
            if against == "uniform":
                coins = Coins(arm, chance, 0.1, 1 / ARMS, 1 / ARMS, e)
            else:
                coins = Coins(arm, 1.0, 0.0, 0.0, 0.0, False, 0.1, e, live != 0)
            one.add(arm, float(step.u[at]), coins, t, t)
    for at, one in enumerate(tallies):
        sums = one.between[setting.against].sums
        assert sums.rows == 3000
        found = [sums.S, sums.V, sums.W]
        assert found == pytest.approx([watched.S[at], watched.V[at], watched.W], rel=1e-9, abs=1e-12)
        interval = sums.interval()
        assert (interval.low > 0.0, interval.high < 0.0) == (watched.S[at] > watched_margin(watched, at), False)


def watched_margin(watched: Watched, at: int) -> float:
    return BOUND * float(mixed_margin(float(watched.V[at]) / BOUND**2, math.log(40.0)))


@pytest.mark.parametrize(("against", "lift"), [("uniform", 0.0), ("uniform", 1.0), ("control", 0.0), ("control", 1.0)])
def test_statements_that_are_watched_throughout_are_hardly_ever_wrong(against: str, lift: float) -> None:
    """400 loops, 5,000 decisions: at most 5 % are ever wrong, so 20 expected at most, and 20 + 3 sqrt(19) = 33.

    A z-interval at every 50th decision is wrong in far more than that, so the check can fail.
    """
    setting = Setting("uniform" if against == "uniform" else "control", lift)
    watched, _ = watch(setting, 400, 5000, 61_011)
    assert watched.wrong.sum() <= 33
    if not lift:
        assert ((watched.z_yes > 0) | (watched.z_no > 0)).sum() > 100
        assert ((watched.yes > 0) | (watched.no > 0)).sum() <= watched.wrong.sum()
    else:
        assert (watched.yes > 0).sum() > 100  # so that they say something: half of all or more on other seeds
