"""Mirrors kernel/coins/philox.hpp and kernel/rules/choice.hpp: the coins of a step, and how they become an arm."""

from __future__ import annotations

import numpy as np

from armlet.types import Bool, Choice, Coins, Float64, Int64


def coins(seed: int, t: int) -> Coins:
    """Toss the coins of step t with numpy's own Philox."""
    # numpy steps its counter before the first draw, so counter t - 1 gives block t
    words = np.random.Philox(key=seed, counter=(t - 1) % 2**256).random_raw(4).tolist()
    return Coins((words[0] >> 11) * 2.0**-53, words[1], words[2], words[3])


def below(bits: int, n: int) -> int:
    """Turn 64 random bits into one of 0..n-1, uniform but for less than n / 2^64.

    Examples
    --------
    >>> below(0, 6), below(2**64 - 1, 6)
    (0, 5)
    """
    return (bits * n) >> 64


def best_arms(scores: Float64, arms: Int64) -> Int64:
    """Return those of `arms` that share the highest score.

    Examples
    --------
    >>> best_arms(np.array([1.0, 3.0, 3.0, 9.0]), np.array([0, 1, 2])).tolist()
    [1, 2]
    """
    among = scores[arms]
    best: Int64 = arms[among == among.max()]
    return best


def best_chances(scores: Float64, eligible: Bool) -> Float64:
    """Return the probabilities of a policy that plays the highest score and draws among those that tie, (..., K).

    Examples
    --------
    >>> best_chances(np.array([1.0, 3.0, 3.0]), np.array([True, True, True]))
    array([0. , 0.5, 0.5])
    >>> best_chances(np.array([[1.0, 3.0], [0.0, 0.0]]), np.array([True, True]))
    array([[0. , 1. ],
           [0.5, 0.5]])
    """
    among = np.where(eligible, scores, -np.inf)
    best = eligible & (among == among.max(axis=-1, keepdims=True))
    chances: Float64 = best / best.sum(axis=-1, keepdims=True)
    return chances


def play_best(scores: Float64, eligible: Bool, coins: Coins) -> Choice:
    """Play the eligible arm with the highest score, a drawn one of those that tie.

    Examples
    --------
    >>> play_best(np.array([1.0, 3.0]), np.array([True, True]), Coins(0.0, 0, 0, 0))
    Choice(arm=1, propensity=1.0, explored=False, tag=0, exploration_propensity=None, ...)
    """
    best = best_arms(scores, np.flatnonzero(eligible))
    return Choice(int(best[below(coins.tie, len(best))]), 1.0 / len(best), False)


def draw(eligible: Bool, coins: Coins) -> Choice:
    """Play any of the eligible arms, all with the same chance; such a step explores.

    Examples
    --------
    >>> draw(np.array([True, False, True]), Coins(0.0, 2**63, 0, 0))
    Choice(arm=2, propensity=0.5, explored=True, tag=0, exploration_propensity=0.5, exploration_rate=1.0, ...)
    """
    arms = np.flatnonzero(eligible)
    share = 1.0 / len(arms)
    return Choice(
        int(arms[below(coins.pick, len(arms))]),
        share,
        True,
        exploration_propensity=share,
        exploration_rate=1.0,
        min_exploration_probability=share,
    )


def force(arm: int, eligible: Bool) -> Choice:
    """Play the arm whose turn it is; such a step explores, and leaves the others no chance.

    Examples
    --------
    >>> force(2, np.array([True, False, True]))
    Choice(arm=2, propensity=1.0, explored=True, tag=0, exploration_propensity=1.0, exploration_rate=1.0, ...)
    """
    smallest = 1.0 if np.count_nonzero(eligible) == 1 else 0.0
    return Choice(
        arm, 1.0, True, exploration_propensity=1.0, exploration_rate=1.0, min_exploration_probability=smallest
    )


def play_or_explore(scores: Float64, eligible: Bool, coins: Coins, chances: Float64, rate: float) -> Choice:
    """Toss a coin: any eligible arm, all alike, or the one with the highest score; `chances` are those of both.

    Examples
    --------
    >>> scores, both = np.array([1.0, 3.0]), np.array([True, True])
    >>> chances = mixed(best_chances(scores, both), both, 0.5)
    >>> play_or_explore(scores, both, Coins(0.3, 0, 0, 0), chances, 0.5)
    Choice(arm=0, propensity=0.25, explored=True, tag=0, exploration_propensity=0.5, exploration_rate=0.5, ...)
    """
    explored = coins.coin < rate
    best = best_arms(scores, np.flatnonzero(eligible))
    drawn = draw(eligible, coins)
    arm = drawn.arm if explored else int(best[below(coins.tie, len(best))])
    greedy = bool(arm in best) if rate < 1.0 else None
    return Choice(
        arm,
        float(chances[arm]),
        explored,
        0,
        drawn.exploration_propensity,
        rate,
        drawn.min_exploration_probability,
        greedy,
    )


def play_drawn(chances: Float64, coins: Coins) -> Choice:
    """Play an arm drawn with the given probabilities; such a step explores.

    Examples
    --------
    >>> play_drawn(np.array([0.25, 0.75]), Coins(0.3, 0, 0, 0))
    Choice(arm=1, propensity=0.75, explored=True, tag=0, exploration_propensity=None, ...)
    """
    running = np.cumsum(chances)  # from left to right, as the kernel adds
    place = int(np.searchsorted(running, coins.coin * running[-1], side="right"))
    arm = min(place, len(chances) - 1)  # a coin next to 1 may round to beyond the end
    while chances[arm] <= 0.0:  # pragma: no cover - rounding at the very end of the sum
        arm -= 1
    return Choice(arm, float(chances[arm]), True)


def mixed(chances: Float64, eligible: Bool, rate: float) -> Float64:
    """Mix probabilities with uniform play over the eligible arms, which gets `rate`.

    Examples
    --------
    >>> mixed(np.array([1.0, 0.0]), np.array([True, True]), 0.5)
    array([0.75, 0.25])
    """
    shared: Float64 = (1.0 - rate) * chances + rate * eligible / np.count_nonzero(eligible)
    return np.minimum(shared, 1.0)  # a certain arm may round to more


def shares(log_weights: Float64, eligible: Bool | None = None) -> Float64:
    """Return the share of each in the sum of weights of all, or of the eligible ones; logarithms cannot overflow.

    Examples
    --------
    >>> shares(np.array([1000.0, 1000.0, 2000.0]), np.array([True, True, False]))
    array([0.5, 0.5, 0. ])
    """
    lifted = log_weights if eligible is None else np.where(eligible, log_weights, -np.inf)
    weights = np.exp(lifted - lifted.max())
    out: Float64 = weights / weights.sum()
    return out
