"""Policy search: the same sums as one by one, a winner that is good, and an interval that heeds the choice."""

from __future__ import annotations

import numpy as np
import pytest

import armlet
from armlet.errors import EvaluationError
from armlet.evaluation.rows import HeldBlocks, Rows, rows_of
from armlet.evaluation.search import HEAT, around, search
from armlet.inference.sequences import GammaExponential, MeanSequence
from armlet.types import Float64, Int64


def drawn(n: int, seed: int, *, signal: float = 0.4, objective: str = "max") -> HeldBlocks:
    rng = np.random.default_rng(seed)
    X, arms = rng.standard_normal((n, 2)), rng.integers(3, size=n)
    chance = 0.5 + signal * np.tanh(2 * X[:, 0]) * (arms - 1)
    rewards = (rng.random(n) < chance).astype(np.float64)
    return HeldBlocks(rows_of(X, arms, rewards, np.full(n, 1 / 3), n_arms=3), ["a", "b", "c"], {"objective": objective})


def many(n: int, seed: int = 9) -> Float64:
    return np.random.default_rng(seed).standard_normal((n, 3, 3))


def value_of(theta: Float64, signal: float = 0.4) -> float:
    X = np.random.default_rng(77).standard_normal((200_000, 2))
    arms = (np.column_stack([np.ones(len(X)), X]) @ theta.T).argmax(axis=1)
    return float((0.5 + signal * np.tanh(2 * X[:, 0]) * (arms - 1)).mean())


def test_one_policy_has_the_interval_of_its_own_sequence() -> None:
    blocks, theta = drawn(3000, 1), many(1)
    rows = blocks[0]
    arms = (np.column_stack([np.ones(3000), rows.X]) @ theta[0].T).argmax(axis=1)
    alone = MeanSequence((0.0, 1.0), kind="gamma-exponential")
    alone.add(rows.reward, weights=3.0 * (arms == rows.arm))
    assert search(blocks, theta, arms=list("abc"), reward_range=(0, 1)).interval == pytest.approx(
        alone.interval(), abs=1e-9
    )


def plain_race(rows: Rows, thetas: Float64, level: float = 0.95) -> tuple[Int64, Float64, Float64, Float64]:
    """A race in numpy: matrix products, sequences of all that are left, and a look every `HEAT` rows."""
    left, each = np.arange(len(thetas)), (1.0 - level) / (2 * len(thetas))
    below, above = GammaExponential(each), GammaExponential(each)
    for start in range(0, len(rows), HEAT):
        some = rows.take(slice(start, start + HEAT))
        scores = np.column_stack([np.ones(len(some)), some.X]) @ np.swapaxes(thetas[left], 1, 2)
        arms = np.where(some.eligible, scores, -np.inf).argmax(axis=2).T
        w = (arms == some.arm[:, np.newaxis]) / some.propensity[:, np.newaxis]
        below.add(w * some.reward[:, np.newaxis])
        above.add(w * (1.0 - some.reward)[:, np.newaxis])
        stays = 1.0 - above.bound() >= below.bound().max()
        left, below, above = left[stays], below.of(stays), above.of(stays)
    centred = (below.sums.total - above.sums.total) / len(rows)
    return left, (1.0 + centred) / 2, below.bound(), 1.0 - above.bound()


def test_a_race_drops_and_values_policies_as_one_in_numpy_does() -> None:
    rows, thetas = drawn(9000, 5)[0], many(400)
    half = np.arange(0, len(rows), 2)  # one of the other two arms is taken away, so the one played is one of two
    rows.eligible[half, (rows.arm[half] + np.random.default_rng(5).integers(1, 3, size=len(half))) % 3] = False
    rows.propensity[half] = 0.5
    left, values, low, high = plain_race(rows, thetas)
    found = search(HeldBlocks(rows, ["a", "b", "c"]), thetas, arms=list("abc"), reward_range=(0, 1))
    assert 10 < len(left) < 350
    np.testing.assert_array_equal(found.left, left)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_allclose(
        found.low, low, rtol=1e-11
    )  # Newton stops when all have settled, and who "all" are differs
    np.testing.assert_allclose(found.high, high, rtol=1e-11)


@pytest.mark.parametrize("objective", ["max", "min"])
def test_the_winner_is_good_and_its_interval_holds(objective: str) -> None:
    thetas = many(1000)
    found = search(drawn(20_000, 2, objective=objective), thetas, arms=list("abc"), reward_range=(0, 1))
    true = [value_of(theta) for theta in thetas[found.left[:50]]]
    winner = value_of(thetas[found.winner])
    assert found.interval.low <= winner <= found.interval.high
    assert len(found.left) < 700
    assert (winner > 0.7) if objective == "max" else (winner < 0.3)
    assert len(true) > 0


def test_the_interval_heeds_that_the_winner_was_selected() -> None:
    missed = 0
    for seed in range(20):  # pure noise: every policy is worth one half, and the best of 300 looks better
        found = search(drawn(1500, seed, signal=0.0), many(300, seed), arms=list("abc"), reward_range=(0, 1))
        assert found.value > 0.5
        missed += not found.interval.low <= 0.5 <= found.interval.high
    assert missed <= 1


def test_policies_about_a_bandit_start_with_itself() -> None:
    bandit = armlet.Bandit(["a", "b", "c"], 2, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    rows = drawn(2000, 3)[0]
    bandit.partial_fit(rows.X, [["a", "b", "c"][arm] for arm in rows.arm], rows.reward, explored=True)
    thetas = around(bandit, 200, seed=1)
    best = (np.column_stack([np.ones(2000), rows.X]) @ thetas[0].T).argmax(axis=1)
    assert [["a", "b", "c"][arm] for arm in best] == bandit.predict(rows.X).tolist()
    assert search(drawn(4000, 4), thetas, arms=list("abc"), reward_range=(0, 1)).interval.low > 0.5


def test_searches_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"thetas has shape \(4, 2, 2\)"):
        search(drawn(10, 1), np.ones((4, 2, 2)), arms=list("abc"), reward_range=(0, 1))
    with pytest.raises(ValueError, match="thetas has no policy, or one that is not finite"):
        search(drawn(10, 1), np.full((4, 3, 3), np.nan), arms=list("abc"), reward_range=(0, 1))
    with pytest.raises(ValueError, match="reward_range is missing"):
        search(drawn(10, 1), many(2), arms=list("abc"))
    with pytest.raises(EvaluationError, match="no row of the log"):
        search(drawn(0, 1), many(2), arms=list("abc"), reward_range=(0, 1))


def test_policies_about_a_bandit_that_cannot_be_are_refused() -> None:
    bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    with pytest.raises(ValueError, match="n is 0; give 1 or more policies"):
        around(bandit, 0, seed=1)
    with pytest.raises(ValueError, match=r"spread is -0\.1; give 0 or a positive number"):
        around(bandit, 3, seed=1, spread=-0.1)
    normalized = armlet.Bandit(["a", "b"], 2, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1, normalize="l2")
    with pytest.raises(ValueError, match="divides contexts by their length"):
        around(normalized, 3, seed=1)


def test_policies_that_play_otherwise_where_nothing_was_left_to_chance_are_left_out() -> None:
    """Where the propensity is 1 nobody knows what another arm pays; a weight of 0 would call it nothing."""
    rng, n = np.random.default_rng(3), 2000
    arms, chances = rng.integers(2, size=n), np.full(n, 0.5)
    arms[:500], chances[:500] = 0, 1.0
    feedback = {"action": arms, "reward": (rng.random(n) < 0.4).astype(float), "pscore": chances}
    log = armlet.log.from_obp({**feedback, "context": np.ones((n, 1))})
    first, second = [[1.0], [0.0]], [[0.0], [1.0]]
    found = search(log, [first, second, second], reward_range=(0, 1))
    assert (found.winner, found.left.tolist(), found.unknown) == (0, [0], 2)
    assert "2 cannot be valued by this log" in str(found)
    with pytest.raises(EvaluationError, match="each of the 1 policies plays another arm"):
        search(log, [second], reward_range=(0, 1))
