"""Who may become the default, with nothing set; and the rivals, in the same units, tuned for each family."""

from __future__ import annotations

from typing import Final

from armlet.policies import Greedy, LinUCB, OccasionalOptimism, OptimisticEpsilonGreedy, ThompsonSampling
from armlet.types import Policy

CANDIDATES: Final[dict[str, Policy]] = {
    "occasional optimism": OccasionalOptimism(),
    "noise max": OccasionalOptimism(noise="max"),
    "noise median": OccasionalOptimism(noise="median"),
    "always optimistic": OccasionalOptimism(share=1.0),
    "p = 1": OccasionalOptimism(p=1.0),
    "floor 0.02": OccasionalOptimism(floor=0.02),
    "optimistic epsilon-greedy": OptimisticEpsilonGreedy(),
    "LinUCB, 2 sd": LinUCB(alpha=2.0),
    "greedy": Greedy(),
}
"""The first is the default; those up to its floor change one word of it."""

RIVALS: Final[dict[str, tuple[Policy, ...]]] = {
    "LinUCB": tuple(LinUCB(alpha=alpha, units="free") for alpha in (0.3, 0.6, 1.0, 2.0)),
    "Thompson sampling": tuple(ThompsonSampling(v=v, units="free") for v in (0.3, 0.6, 1.0)),
}
"""What is chosen from, on problems of another index."""
