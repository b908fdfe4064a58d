"""Bets against claimed probabilities: fair if the claims are right, ruinous for claims that are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from armlet.inference.betting import BLOCK, BOTH, SIZES, PropensityBets, bet_on_counts, bet_on_draws, p_value


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


# ---- as they come


def drawn(rng: np.random.Generator, n: int, chances: list[float], claimed: list[float]) -> PropensityBets:
    """Return the bets after draws by some chances that are claimed to be others."""
    bets = PropensityBets()
    for place in rng.choice(len(chances), p=chances, size=n):
        bets.draw(int(place), claimed[place], min(claimed))
    return bets


def test_bets_start_again_before_every_block() -> None:
    """The wealth is the mean over bets that start at block b, with a share of 1/(b(b+1)) of the money each."""
    rng, n, chances = np.random.default_rng(3), 7 * BLOCK + 20, np.array([0.2, 0.3, 0.5])
    arm = rng.choice(3, p=chances, size=n)
    bets = PropensityBets()
    for place in arm:
        bets.draw(int(place), float(chances[place]), 0.2)
    logs = [
        bet_on_draws(block, chances[block], np.full(len(block), 0.2), np.ones((len(block), 3), np.bool_), SIZES)
        for block in np.split(arm, range(BLOCK, n, BLOCK))
    ]
    late = range(1, len(logs))  # arms are first seen in the first block, and bet on from the second on
    wealth = sum(np.exp(sum(logs[start:])) / ((start + 1) * (start + 2)) for start in late)
    assert bets.worst_draw(3)[0] == pytest.approx(min(1.0, 1.0 / float(np.mean(wealth))), rel=0.01)


def test_right_claims_are_accused_at_most_as_often_as_the_p_value_says() -> None:
    # P(p < 0.05 ever) <= 0.05: more than 30 of 300 would have a chance of 1e-4
    rng, chances, accused = np.random.default_rng(4), [0.6, 0.3, 0.1], 0
    for _ in range(300):
        bets, least = PropensityBets(), 1.0
        for step, place in enumerate(rng.choice(3, p=chances, size=4 * BLOCK)):
            bets.draw(int(place), chances[place], 0.1)
            least = min(least, bets.worst_draw(3)[0]) if step % 16 == 15 else least
        accused += least < 0.05
    assert accused <= 30


@pytest.mark.parametrize("before", [0, 20_000])
def test_an_arm_that_is_drawn_too_often_is_found_however_late_it_begins(before: int) -> None:
    rng, claimed = np.random.default_rng(5), [0.25, 0.25, 0.25, 0.25]
    bets = drawn(rng, before, claimed, claimed)
    for place in rng.choice(4, p=[0.2, 0.2, 0.4, 0.2], size=800):
        bets.draw(int(place), 0.25, 0.25)
    p, worst = bets.worst_draw(4)
    assert p < 0.001
    assert worst == 2


@pytest.mark.parametrize(("rate", "word"), [(0.2, "more"), (0.05, "less")])
def test_steps_that_explore_another_share_than_claimed_are_found(rate: float, word: str) -> None:
    rng, bets = np.random.default_rng(6), PropensityBets()
    for explored in rng.random(20_000) < 0.1:
        bets.toss(0.1, bool(explored))
    assert bets.worst_coin()[0] > 0.01
    for explored in rng.random(3000) < rate:
        bets.toss(0.1, bool(explored))
    assert bets.worst_coin()[0] < 0.001
    assert bets.worst_coin()[1] == word


def test_bets_go_on_from_their_state() -> None:
    whole, parts = PropensityBets(), PropensityBets()
    for step in range(5 * BLOCK):
        if step % 37 == 0:
            parts = PropensityBets.restore(parts.state())
        for bets in (whole, parts):
            bets.draw(step % 3, 1 / 3, 0.25)
            bets.toss(0.125, step % 8 == 0)
    assert parts.state() == whole.state()


@pytest.mark.parametrize("at", range(7))
def test_a_damaged_state_is_refused(at: int) -> None:
    state = drawn(np.random.default_rng(8), 100, [0.5, 0.5], [0.5, 0.5]).state()
    for wrong in ([1.5], [0.5, -1.0, 3.0, 4.0], []):
        damaged = [*state[:at], wrong, *state[at + 1 :]]
        if wrong != state[at] and not (at == 1 and wrong == []):  # no arm at all is a state as well
            with pytest.raises((ValueError, TypeError, IndexError)):
                PropensityBets.restore(damaged)
