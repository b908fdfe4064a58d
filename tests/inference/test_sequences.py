"""Confidence sequences: equal to slow forms, and covering at all looks with the probability they say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate

from armlet.inference.sequences import BetaBinomial, DifferenceSequence, Kind, MeanSequence, Scores
from armlet.types import Float64, Interval

# Plain intervals of 95 % miss at some look from row 20 on in 27 to 40 % of runs; of 40 runs at most 2 may miss, with
# a chance of 1e-4 at 30 %, 0.008 at 20 % and 0.05 at 15 %. With 100 runs it is 0.002 at 15 %.
RUNS = [40, pytest.param(100, marks=pytest.mark.long)]
ROWS = 600
LOOKS = (1, 3, 6, 10, 20, 40, 80, 120, 180, 250, 350, 500, 600)


@pytest.mark.parametrize(("ones", "rows"), [(0, 5), (3, 7), (30, 200), (200, 200)])
def test_beta_binomial_is_the_mixture_of_likelihoods(ones: int, rows: int) -> None:
    bets = BetaBinomial(0.05)
    bets.add(np.repeat([1.0, 0.0], [ones, rows - ones]), np.ones(rows))

    def likelihood(angle: float, p: float) -> float:  # the arc-sine law is uniform in the angle
        q = math.sin(angle) ** 2
        return (q / p) ** ones * ((1 - q) / (1 - p)) ** (rows - ones) * 2 / math.pi

    for p in (0.1, 0.5, 0.9):
        peak = math.asin(math.sqrt(ones / rows))
        slow, _ = integrate.quad(likelihood, 0, math.pi / 2, args=(p,), points=[peak], epsrel=1e-11, limit=300)
        assert bets.log_wealth(p) == pytest.approx(math.log(slow), abs=1e-8)
    low, high = bets.interval()
    assert all(math.isclose(bets.log_wealth(end), math.log(20), abs_tol=1e-6) for end in (low, high) if 0 < end < 1)
    assert low <= ones / rows <= high


def rows_of(scores: Scores, rng: np.random.Generator, n: int) -> tuple[Float64, Float64 | None, float]:
    """Draw rewards, weights and give their mean."""
    if scores == "0 or 1":
        return (rng.random(n) < 0.08).astype(np.float64), None, 0.08
    if scores == "within":
        return rng.beta(0.5, 1.5, n), None, 0.25
    matched = rng.random(n) < 0.25
    return (rng.random(n) < 0.3).astype(np.float64), np.where(matched, 4.0, 0.0), 0.3


CASES: list[tuple[Scores, Kind]] = [
    ("0 or 1", "auto"),
    ("0 or 1", "gamma-exponential"),
    ("0 or 1", "betting"),
    ("within", "auto"),
    ("within", "beta-binomial"),
    ("weighted", "auto"),
    ("weighted", "betting"),
    ("weighted", "gamma-exponential"),
]


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize(("scores", "kind"), CASES)
def test_sequences_cover_at_all_looks(scores: Scores, kind: Kind, runs: int) -> None:
    rng, missed = np.random.default_rng(11), 0
    for _ in range(runs):
        rewards, weights, mean = rows_of(scores, rng, ROWS)
        sequence = MeanSequence((0.0, 1.0), scores=scores, kind=kind)
        intervals = looks(sequence, rewards, weights)
        missed += any(not low <= mean <= high for low, high in intervals)
    assert 1 - missed / runs >= 0.95


def looks(sequence: MeanSequence, rewards: Float64, weights: Float64 | None) -> list[Interval]:
    found, start = [], 0
    for look in LOOKS:
        part = slice(start, look)
        sequence.add(rewards[part], weights=None if weights is None else weights[part])
        found.append(sequence.interval())
        start = look
    return found


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("largest_weight", [None, 4.0])
def test_differences_cover_at_all_looks(largest_weight: float | None, runs: int) -> None:
    rng, missed = np.random.default_rng(12), 0
    for _ in range(runs):
        arms, rewards = rng.integers(4, size=ROWS), rng.random(ROWS)
        rewards = (rewards < 0.3 + 0.1 * (arms == 0)).astype(np.float64)  # always arm 0 next to always arm 1
        sequence, start, wrong = DifferenceSequence((0.0, 1.0), largest_weight=largest_weight), 0, False
        for look in LOOKS:
            part = slice(start, look)
            sequence.add(rewards[part], 4.0 * (arms[part] == 0), 4.0 * (arms[part] == 1))
            low, high = sequence.interval()
            wrong, start = wrong or not low <= 0.1 <= high, look
        missed += wrong
    assert 1 - missed / runs >= 0.95


def test_rows_where_both_policies_agree_widen_nothing_once_weights_are_bounded() -> None:
    rng, rewards = np.random.default_rng(3), np.ones(2000)
    w = np.where(rng.random(2000) < 0.5, 2.0, 0.0)
    bounded, free = DifferenceSequence((0.0, 1.0), largest_weight=2.0), DifferenceSequence((0.0, 1.0))
    for sequence in (bounded, free):
        sequence.add(rewards, w, w)
    assert -0.02 < bounded.interval().low < 0 < bounded.interval().high < 0.02
    assert free.interval().high - free.interval().low > 3 * (bounded.interval().high - bounded.interval().low)


def test_ranges_only_change_the_scale() -> None:
    rewards = np.random.default_rng(5).random(100)
    plain, stretched = (MeanSequence(ends, scores="within") for ends in ((0.0, 1.0), (-20.0, 80.0)))
    plain.add(rewards)
    stretched.add(100 * rewards - 20)
    assert stretched.interval() == pytest.approx([100 * end - 20 for end in plain.interval()])


def test_costs_are_minus_rewards() -> None:
    rewards, weights = np.random.default_rng(6).random(300), [0.0, 2.0] * 150
    gain, cost = MeanSequence((0.0, 1.0)), MeanSequence((-1.0, 0.0))
    gain.add(rewards, weights=weights)
    cost.add(-rewards, weights=weights)
    assert cost.interval() == pytest.approx([-end for end in reversed(gain.interval())], abs=1e-12)


def test_no_clicks_still_leave_room_above() -> None:
    clicks = MeanSequence((0.0, 1.0), scores="0 or 1")
    assert clicks.interval() == (0.0, 1.0)
    clicks.add(np.zeros(100))
    assert clicks.interval().low == 0.0
    assert 0.02 < clicks.interval().high < 0.2


def test_auto_goes_by_what_was_declared() -> None:
    words: list[Scores] = ["0 or 1", "within", "weighted"]
    assert [MeanSequence((0.0, 1.0), scores=word).kind for word in words] == ["beta-binomial", "hedge", "hedge"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": "binary"}, "scores is 'binary'; choose one of '0 or 1'"),
        ({"kind": "bets"}, "kind is 'bets'; choose one of 'auto'"),
        ({"kind": "beta-binomial"}, "scores are weighted"),
        ({"level": 1.0}, "level is 1.0"),
        ({"reward_range": (1.0, 0.0)}, "reward_range is"),
    ],
)
def test_words_that_make_no_sequence_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MeanSequence(**{"reward_range": (0.0, 1.0), **change})


@pytest.mark.parametrize(
    ("rewards", "weights", "message"),
    [
        ([2.0], None, "a reward is 2.0 but reward_range"),
        ([math.nan], None, "a reward is nan"),
        ([0.5], [1.0, 2.0], "there are 1 rewards"),
        ([0.5], [-1.0], "a weight is negative"),
    ],
)
def test_rows_that_cannot_be_are_refused(rewards: list[float], weights: list[float] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MeanSequence((0.0, 1.0)).add(rewards, weights=weights)


def test_a_weight_above_the_declared_bound_is_refused() -> None:
    with pytest.raises(ValueError, match=r"largest_weight is 2.0 but a weight is 3.0"):
        DifferenceSequence((0.0, 1.0), largest_weight=2.0).add([1.0], [3.0], [0.0])
