"""A bandit that is given no policy: which one it has, and what holds of it."""

from __future__ import annotations

import inspect
import io

import numpy as np
import pytest

import armlet
from armlet import Bandit, OccasionalOptimism
from armlet.types import Float64


def stream(steps: int, dim: int, n_arms: int, seed: int) -> tuple[Float64, Float64]:
    """Draw contexts (steps, dim) and what every arm would pay (steps, n_arms), in units that nobody chose."""
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(steps, dim)), rng.normal(size=(n_arms, dim))
    return X, 100.0 + X @ theta.T + 0.5 * rng.normal(size=(steps, n_arms))


def play(bandit: Bandit, X: Float64, rewards: Float64) -> list[armlet.Decision]:
    """Decide and learn row by row."""
    made = []
    for x, paid in zip(X, rewards, strict=True):
        made.append(bandit.decide(x))
        bandit.learn(made[-1], float(paid[bandit.arms.index(made[-1].arm)]))
    return made


def test_without_a_policy_it_is_occasional_optimism_with_nothing_set() -> None:
    for bandit in (Bandit(["a", "b"], 2), Bandit(["a", "b"], features=["x", "y"]), Bandit(["a", "b"], 2, policy=None)):
        assert bandit.policy == OccasionalOptimism()
        assert repr(bandit) == "Bandit(arms=['a', 'b'], dim=2, t=0, rows=0)"  # defaults are left out
        assert bandit.settings.units == "free"


def test_the_signature_and_the_help_say_so() -> None:
    assert inspect.signature(Bandit).parameters["policy"].default is None
    assert "armlet.OccasionalOptimism()" in (Bandit.__doc__ or "")


def test_it_decides_as_the_policy_that_is_named_does() -> None:
    X, rewards = stream(500, 3, 4, seed=1)
    usual, named = Bandit(range(4), 3, seed=5), Bandit(range(4), 3, policy=OccasionalOptimism(), seed=5)
    for ours, theirs in zip(play(usual, X, rewards), play(named, X, rewards), strict=True):
        assert (ours.arm, ours.propensity, ours.explored) == (theirs.arm, theirs.propensity, theirs.explored)


def test_units_as_given_are_taken() -> None:
    bandit = Bandit(["a", "b"], 2, units="as given")
    assert bandit.policy == OccasionalOptimism(units="as given")


def test_a_saved_one_is_loaded_without_naming_a_policy() -> None:
    X, rewards = stream(200, 2, 2, seed=2)
    bandit, file = Bandit(["a", "b"], 2, seed=3), io.BytesIO()
    play(bandit, X, rewards)
    bandit.save(file)
    file.seek(0)
    twin = armlet.load(file)
    assert twin.policy == OccasionalOptimism()
    assert [each.arm for each in twin.decide_many(X)] == [each.arm for each in bandit.decide_many(X)]


def test_it_finds_the_best_arms_of_rewards_far_from_zero() -> None:
    X, rewards = stream(3000, 3, 5, seed=4)
    bandit = Bandit(range(5), 3, seed=1)
    late = play(bandit, X, rewards)[1000:]
    means = rewards[1000:]
    earned = np.mean([row[int(each.arm)] for row, each in zip(means, late, strict=True)])
    by_chance = means.mean()
    # the best arm of five in hindsight, noise included, earns more than any policy can; random play earns by_chance
    assert earned - by_chance > 0.75 * (means.max(axis=1).mean() - by_chance)


@pytest.mark.parametrize("floor", [0.0, 0.02])
def test_what_its_log_holds_is_what_the_docs_say(floor: float) -> None:
    """Left to itself it explores a handful of steps; a floor of 0.02 gives every arm at least 0.02 / K forever."""
    X, rewards = stream(20_000, 3, 4, seed=6)
    bandit = Bandit(range(4), 3, policy=OccasionalOptimism(floor=floor), seed=1)
    made = play(bandit, X, rewards)
    explored = sum(each.explored for each in made)
    if floor:
        assert min(each.propensity for each in made) >= floor / 4
        # 400 expected, of standard deviation 20, and a few more for lack of rows
        assert 320 < explored < 500
    else:
        # four first tries, and a tenth of a try for each arm and e-fold of time: 0.4 log(20,000) = 4 more expected
        assert 4 <= explored < 20
