"""Who may become the default, with nothing set; and the rivals, in the same units, tuned for each family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from armlet.core.types import Policy
from armlet.policies import LinUCB, OccasionalOptimism, OptimisticEpsilonGreedy, ThompsonSampling

CANDIDATES: Final[dict[str, Callable[[int], Policy]]] = {
    "optimistic epsilon-greedy": lambda _: OptimisticEpsilonGreedy(units="free"),
    "log 0.7, p = 1, pool": lambda _: OccasionalOptimism(width_scale=0.7, p=1.0, noise="pool"),
    "log 0.7, p = K/2, max": lambda _: OccasionalOptimism(width_scale=0.7, noise="max"),
    "log 0.85, p = K/2, max": lambda _: OccasionalOptimism(width_scale=0.85, noise="max"),
    "log 0.85, p = K/2, median": lambda _: OccasionalOptimism(width_scale=0.85, noise="median"),
    "log 0.85, p = K/2, max, floor 0.02": lambda _: OccasionalOptimism(width_scale=0.85, noise="max", floor=0.02),
}
"""Made for a number of arms."""

RIVALS: Final[dict[str, tuple[Policy, ...]]] = {
    "LinUCB": tuple(LinUCB(alpha=alpha, units="free") for alpha in (0.3, 0.6, 1.0, 2.0)),
    "Thompson sampling": tuple(ThompsonSampling(v=v, units="free") for v in (0.3, 0.6, 1.0)),
}
"""What is chosen from, on problems of another index."""
