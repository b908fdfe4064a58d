"""Rewards that are all the same teach nothing: a bandit warns once, where it is likely to be a mistake."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import pytest

import armlet

LOOK = 100
SAME = "the first 100 rewards are all the same"


def warned(rewards: Iterable[float]) -> list[str]:
    """Learn rewards one by one, and say what was warned of."""
    bandit = armlet.Bandit(["a", "b"], 1, seed=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for t, reward in enumerate(rewards):
            bandit.learn(bandit.decide([t % 3]), reward)
    return [str(each.message) for each in caught]


def test_successes_that_are_reported_alone_are_warned_of_once() -> None:
    assert warned([1.0] * (LOOK - 1)) == []
    (said,) = warned([1.0] * (3 * LOOK))
    assert said.startswith(SAME)
    assert "learn a reward of 0 for the other decisions too" in said


@pytest.mark.parametrize("rewards", [[0.0] * 500, [1.0] * 99 + [0.0] + [1.0] * 300, [0.0] + [1.0] * 300])
def test_rare_successes_and_rewards_that_vary_are_fine(rewards: list[float]) -> None:
    assert warned(rewards) == []


def test_a_log_of_nothing_but_successes_is_warned_of_and_refused_whole_where_warnings_are_errors() -> None:
    bandit = armlet.Bandit(["a", "b"], 1, seed=1)
    rows = [[t % 3] for t in range(LOOK)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match=SAME):
            bandit.partial_fit(rows, ["a"] * LOOK, [1.0] * LOOK)
    assert bandit.t == 0
    assert bandit.state.n.tolist() == [0.0, 0.0]
