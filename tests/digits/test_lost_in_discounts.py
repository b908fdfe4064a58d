"""Widths of discounted rows rest on squared weights, of which a large weight takes twice as many digits."""

from __future__ import annotations

import numpy as np
import pytest

import armlet
from armlet.errors import LostDigitsWarning
from armlet.inputs.settings import Ridge, Units
from armlet.kernel import Statistics
from armlet.policies import LinUCB
from armlet.reference.discount import FadingReference


@pytest.mark.parametrize("units", ["free", "as given"])
@pytest.mark.parametrize("place", [0, 30])
@pytest.mark.parametrize("weight", [1e5, 1e7, 1e9, 1e11, 1e20])
def test_kernel_empties_the_arms_of_the_oracle(weight: float, place: int, units: Units) -> None:
    rng = np.random.default_rng(21)
    state = Statistics(2, 3, ridge="constant", value=0.7, units=units, half_life=500.0, weighted_widths=True)
    plain = FadingReference(2, 3, p=0.0, seed=1, ridge=Ridge.parse(0.7), units=units, half_life=500.0)
    rows = [(int(rng.integers(2)), rng.normal(size=3), float(rng.normal())) for _ in range(60)]
    arm, x, reward = rows[place]
    for one in (state, plain):
        for t, row in enumerate(rows):
            one.add(*row, weight if t == place else 1.0, t=t)
        one.add(arm, x, reward, -weight, t=place)
        one.as_of(70)
    np.testing.assert_array_equal(state.records()[:, 0], plain.n)
    np.testing.assert_array_equal(state.widths(x), plain.widths(x))
    assert state.digits_lost.any() == (weight > 1e5)
    assert (plain.n[arm] == 0.0) == (weight > 1e7)


@pytest.mark.parametrize("weight", [1e9, 1e11])
def test_bounds_survive_a_huge_weight(weight: float) -> None:
    """Before, widths of the arm were noise for many half-lives, without a word."""
    rng = np.random.default_rng(22)
    theta = rng.normal(size=(3, 4))
    bandit = armlet.Bandit(["a", "b", "c"], 4, policy=LinUCB(half_life=2000), seed=22)

    def play(n: int) -> float:
        best = 0
        for _ in range(n):
            x = rng.normal(size=4)
            decision = bandit.decide(x)
            means = theta @ x
            arm = "abc".index(str(decision.arm))
            best += arm == int(means.argmax())
            bandit.learn(decision, float(means[arm] + 0.1 * rng.normal()))
        return best / n

    play(100)
    wrong = bandit.decide(rng.normal(size=4))
    bandit.learn(wrong, 0.5, weight=weight)
    play(200)
    with pytest.warns(LostDigitsWarning, match="16 of n, .*that it was emptied"):
        bandit.forget(wrong, 0.5)
    play(300)
    assert play(300) > 0.97  # .98 and more; before .42 to .93 at a weight of 1e11
