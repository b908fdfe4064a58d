"""The compiled part: the one module that imports it, and the typed face that the others see.

Arrays given to it must be exactly float64 and C-contiguous: anything else is an error, never a hidden copy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

try:
    from armlet import _kernel
except ImportError as error:  # pragma: no cover - needs a broken installation
    raise ImportError(
        "armlet's compiled kernel is missing or was built for another Python; reinstall it: "
        "pip install --force-reinstall armlet (from a clone: make clean run)"
    ) from error

from armlet.core.types import Bool, Coins, Float64, Int64

Decision = _kernel.Decision
Decisions = _kernel.Decisions
Engine = _kernel.Engine
Schedule = _kernel.Schedule
Statistics = _kernel.Statistics

__all__ = [
    "Decision",
    "Decisions",
    "Engine",
    "Rollout",
    "Schedule",
    "Statistics",
    "argmax_rows",
    "coins",
    "rollout",
    "unpickle_decision",
]


class Rollout(NamedTuple):
    """What a whole run of a policy did, step by step, and what it knew at the end."""

    arms: Int64  # (T,)
    propensities: Float64  # (T,)
    explored: Bool  # (T,)
    statistics: _kernel.Statistics


def unpickle_decision(*fields: Any) -> Decision:
    """Rebuild a decision from what pickling kept of it."""
    return Decision.restore(*fields)


def coins(seed: int, t: int) -> Coins:
    """Toss the coins of step t.

    Examples
    --------
    >>> coins(seed=7, t=1) == coins(seed=7, t=1)
    True
    """
    return Coins(*_kernel.coins(seed, t))


def rollout(
    contexts: Float64, rewards: Float64, *, start: Statistics, schedule: Schedule, seed: int, t: int = 0
) -> Rollout:
    """Run a compiled policy over given contexts and rewards, without the interpreter lock.

    Parameters
    ----------
    contexts
        (T, d) float64, C-contiguous.
    rewards
        (T, K) float64, C-contiguous: what each arm would pay at each step.
    start
        What is known before the first step; it is copied, not changed.
    schedule
        When to explore and what to learn from: `policy.schedule()`.
    seed
        The policy's own coins.
    t
        The clock before the first step.

    Examples
    --------
    >>> import numpy as np
    >>> x, r = np.ones((100, 1)), np.tile([0.0, 1.0], (100, 1))
    >>> schedule = Schedule(4.0, round_robin=True, learn_always=False)
    >>> run = rollout(x, r, start=Statistics(2, 1), schedule=schedule, seed=3)
    >>> run.arms[:4].tolist(), int(run.arms[-1])
    ([1, 0, 1, 0], 1)
    """
    return Rollout(*_kernel.rollout(contexts, rewards, start, schedule, seed, t))


def argmax_rows(X: Float64, theta: Float64) -> Int64:
    """Find the arm with the largest x' theta_a for every row x, the first of those that tie.

    Scores are float64 sums in the order of the features. Most rows are settled in float32, where the lead of the best
    arm is larger than float32 can be wrong; the rest in float64.

    Examples
    --------
    >>> import numpy as np
    >>> argmax_rows(np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [1, 0]
    """
    return _kernel.argmax_rows(X, theta)
