"""Bets against claimed probabilities: fair if the claims are right, ruinous for claims that are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from armlet.inference.betting import BOTH, SIZES, bet_on_counts, bet_on_draws, p_value


def test_wealth_grows_by_one_on_average_if_chances_are_right() -> None:
    # E[1 + bet y] = 1 for each bet: the mean over 20,000 draws has a standard error below 0.5/sqrt(20000) = 0.0035
    rng = np.random.default_rng(1)
    chances = np.array([0.5, 0.3, 0.2])
    arm = rng.choice(3, p=chances, size=20_000)
    grown = np.array(
        [
            np.exp(bet_on_draws(np.array([one]), chances[[one]], np.array([0.2]), np.ones((1, 3), dtype=np.bool_)))
            for one in range(3)
        ]
    )
    assert np.abs(grown[arm].mean(axis=0) - 1.0).max() < 0.014
    assert (grown > 0).all()


def test_blocks_of_rows_add_up_to_the_whole() -> None:
    rng = np.random.default_rng(2)
    arm, eligible = rng.integers(4, size=300), rng.random((300, 4)) < 0.9
    chance, smallest = rng.uniform(0.2, 0.5, size=300), np.full(300, 0.1)
    whole = bet_on_draws(arm, chance, smallest, eligible)
    parts = [
        bet_on_draws(arm[piece], chance[piece], smallest[piece], eligible[piece])
        for piece in np.array_split(np.arange(300), 7)
    ]
    assert sum(parts) == pytest.approx(whole, rel=1e-12)


def test_rows_of_the_same_probabilities_are_counted_to_the_same_wealth() -> None:
    arm = np.arange(120) % 3
    same = bet_on_draws(arm, np.full(120, 1 / 3), np.full(120, 0.2), np.ones((120, 3), dtype=np.bool_))
    smallest = np.full(120, 0.2)
    smallest[0] = np.nextafter(0.2, 1.0)  # so that they are not all the same
    one_by_one = bet_on_draws(arm, np.full(120, 1 / 3), smallest, np.ones((120, 3), dtype=np.bool_))
    assert same == pytest.approx(one_by_one, rel=1e-9)


def test_an_arm_that_is_not_eligible_neither_wins_nor_loses() -> None:
    eligible = np.tile([True, True, False], (50, 1))
    logs = bet_on_draws(np.arange(50) % 2, np.full(50, 0.5), np.full(50, 0.5), eligible)
    assert (logs[2] == 0.0).all()


def test_counts_grow_wealth_only_away_from_what_is_expected() -> None:
    logs = bet_on_counts(np.array([100.0, 200.0, 50.0]), np.full(3, 100.0))
    assert (logs[0] < 0.0).all()
    assert logs[1].argmax() == len(SIZES) - 1
    assert logs[2].argmax() == len(BOTH) - 1


def test_no_bet_at_all_accuses_nobody() -> None:
    assert p_value(np.zeros((0, len(BOTH)))) == 1.0
    assert bet_on_draws(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.ones((0, 3), np.bool_)).shape == (3, 6)
