"""What the kernel does for evaluation, in readable numpy: its oracle, equal to the last bit.

Sums run over rows one after the other (`cumsum`), and over features in their order.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from armlet.types import Bool, Float64, Int64

FEATURES: Final = (
    "one",
    "w",  # pi / e, the probability of the arm by the target over that by the log
    "wr",
    "direct",  # what the reward model expects of the target, without the row itself
    "wq",  # w times what the reward was off the model
    "switch",  # direct + wq, without wq where w is large
    "shrunk",  # the same with a shrunk weight
    "h",  # the predictable weight of the row
    "hpsi",  # h times (direct + wq)
    "x",  # 1 if the step explored
    "v",  # x times pi over the probability of the arm given exploring
    "vr",
    "xpsi",  # x times direct, + v times what the reward was off
)
PLACE: Final = {name: place for place, name in enumerate(FEATURES)}
COLUMNS: Final = 16
REWARD: Final = 7
"""The column of `sum_features` that is the reward: features that every log has come before it, others behind."""
ALL: Final = [place + (place >= REWARD) for place in range(len(FEATURES))]
"""The columns that are the features."""
_OF_LOGGED: Final = {"wq": COLUMNS - 1} | dict.fromkeys(("one", "w", "h", "x", "v"), 0)
AS_LOGGED: Final = [_OF_LOGGED.get(name, REWARD) for name in FEATURES]
"""The columns that are the features of the log's own policy: it weighs 1, and expects what came."""


class Parts(NamedTuple):
    """What features are made of, (n,) each."""

    pi: Float64
    direct: Float64
    rewards: Float64
    chance: Float64
    given: Float64
    explored: Float64
    model: Float64
    h: Float64


def predict_played(
    theta: Float64, inverse: Float64, X: Float64, arms: Int64, rewards: Float64, learned: Bool
) -> Float64:
    """Predict the rewards of arms played, leaving a learned row out: r - (r - f) / (1 - leverage)."""
    fitted = _predict(theta, X, arms)
    column = inverse[arms, 0].copy()
    for j in range(X.shape[1]):
        column = column + X[:, j, None] * inverse[arms, j + 1]
    leverage = column[:, 0].copy()
    for j in range(X.shape[1]):
        leverage = leverage + X[:, j] * column[:, j + 1]
    return np.where(learned, rewards - (rewards - fitted) / (1.0 - leverage), fitted)


def predict_target(theta: Float64, X: Float64, law: Int64 | Float64, arms: Int64, played: Float64) -> Float64:
    """Predict the reward of a target; of the arms that were played, as `predict_played` did: without the row itself."""
    if law.ndim == 1:
        return np.where(law == arms, played, _predict(theta, X, law.astype(np.int64)))
    total = np.zeros(len(X))
    for arm in range(len(theta)):
        total = total + law[:, arm] * np.where(arms == arm, played, _predict(theta, X, np.full(len(X), arm)))
    return total


def value_greedy(
    estimates: Float64, eligible: Bool, theta: Float64, inverse: Float64, X: Float64, *logged: Any
) -> tuple[Int64, Float64, Float64]:
    """Give the best arms by x' estimates, what is expected of them, and of those that were played, 0 where another was.

    Parameters
    ----------
    logged
        Arms, rewards and learned, as in `predict_played`.
    """
    scores = np.zeros((len(X), len(estimates)))
    for j in range(X.shape[1]):
        scores = scores + X[:, j, None] * estimates[:, j]
    best = np.where(eligible, scores, -np.inf).argmax(axis=1)
    arms, played = logged[0], predict_played(theta, inverse, X, *logged)
    return best, predict_target(theta, X, best, arms, played), np.where(best == arms, played, 0.0)


def _predict(theta: Float64, X: Float64, arms: Int64) -> Float64:
    total: Float64 = theta[arms, 0].copy()
    for j in range(X.shape[1]):
        total = total + X[:, j] * theta[arms, j + 1]
    return total


def row_features(parts: Parts, most: float, shrink: float) -> Float64:
    """Give the features of rows, (n, 13)."""
    pi, direct, r, chance, given, x, model, h = parts
    off, w, v = r - model, pi / chance, x * (pi / given)
    wq = w * off
    switch = np.where(w <= most, direct + wq, direct)
    shrunk = direct + shrink * w / (w * w + shrink) * off
    psi = direct + wq
    columns = [np.ones(len(r)), w, w * r, direct, wq, switch, shrunk, h, h * psi, x, v, v * r, x * direct + v * off]
    return np.column_stack(columns)


def gram(F: Float64, G: Float64) -> Float64:
    """Give F' G, each entry summed over rows one after the other."""
    return np.array([[np.cumsum(np.append(0.0, f * g))[-1] for g in G.T] for f in F.T])


def sum_features(parts: Parts, most: float, shrink: float) -> tuple[Float64, float]:
    """Give the products of features and reward, summed, (16, 16), and the largest weight."""
    F = np.zeros((len(parts.rewards), COLUMNS))
    F[:, ALL] = row_features(parts, most, shrink)
    F[:, REWARD] = parts.rewards
    return gram(F, F), float(F[:, PLACE["w"]].max(initial=0.0))


def sum_moments(X: Float64, origin: Float64) -> Float64:
    """Give the sums of x - origin and of its squares, (2, d)."""
    centred = np.vstack([np.zeros_like(origin), X - origin])
    return np.stack([np.cumsum(each, axis=0)[-1] for each in (centred, centred * centred)])
