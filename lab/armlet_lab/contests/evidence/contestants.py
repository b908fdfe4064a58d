"""Who plays: the exploring law by evidence, the printed law by steps, and others beside them.

q is the rows of evidence an arm is given before it is explored less: p = q K with K the arms that can be played.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from armlet.policies import (
    Algorithm1,
    AllDataEpsilonGreedy,
    AutoEpsilonGreedy,
    ContextualEpsilonGreedy,
    LinUCB,
    OptimisticEpsilonGreedy,
    ThompsonSampling,
    Uniform,
)
from armlet.types import Policy

Q: Final = 6.0  # where no other is named: one setting for all families, fixed before the published seed was played
FACTORS: Final = (4.0, 12.0, 40.0, 120.0, 400.0)  # p / K of the printed law, of which the best is taken in hindsight
FLOOR: Final = 0.02


def in_the_news(alive: float) -> dict[str, Policy]:
    """Give who plays the news, with about so many arms at a time.

    Examples
    --------
    >>> list(in_the_news(20.0))[:3]
    ['uniform', 'Algorithm 1, p = 40', 'Algorithm 1, p = 640']
    """
    return {
        "uniform": Uniform(),
        **{f"Algorithm 1, p = {times * alive:g}": Algorithm1(p=times * alive) for times in (2.0, 32.0)},
        **{f"evidence, q = {q:g}": ContextualEpsilonGreedy(p=q * alive) for q in (1.0, 2.0)},
        **{f"evidence, all rows, q = {q:g}": AllDataEpsilonGreedy(p=q * alive) for q in (0.5,)},
        "optimistic": OptimisticEpsilonGreedy(),
        "LinUCB": LinUCB(),
        "Thompson": ThompsonSampling(v=1.0),
    }


def with_late_rewards(n_arms: int, horizon: int) -> dict[str, Policy]:
    """Give who waits for rewards: the printed law by a grid of p, and the law by evidence."""
    return {
        **{f"p = {factor:g} K": Algorithm1(p=factor * n_arms) for factor in FACTORS},
        f"evidence, q = {Q:g}": ContextualEpsilonGreedy(p=Q * n_arms),
        "auto": AutoEpsilonGreedy(horizon=horizon),
    }


def with_a_newcomer(n_arms: int, horizon: int) -> dict[str, Policy]:
    """Give who meets an arm late."""
    return {
        "Algorithm 1": Algorithm1(p=Q * n_arms),
        "evidence": ContextualEpsilonGreedy(p=Q * n_arms),
        "evidence, q = 1": ContextualEpsilonGreedy(p=1.0 * n_arms),
        "evidence, all rows": AllDataEpsilonGreedy(p=Q * n_arms),
        "auto": AutoEpsilonGreedy(horizon=horizon),
        "optimistic": OptimisticEpsilonGreedy(),
        "LinUCB": LinUCB(),
    }


def trained(n_arms: int, rows: int) -> dict[str, Policy]:
    """Give who is trained on a log before the first decision."""
    return {
        "Algorithm 1": Algorithm1(p=Q * n_arms),
        "evidence": ContextualEpsilonGreedy(p=Q * n_arms),
        "evidence, all rows": AllDataEpsilonGreedy(p=Q * n_arms),
        "auto": AutoEpsilonGreedy(horizon=10 * rows),
        "optimistic": OptimisticEpsilonGreedy(),
        "LinUCB": LinUCB(),
    }


def in_a_closed_world(n_arms: int) -> Mapping[str, Policy]:
    """Give the law by steps and by evidence at one p, in free units both, and the latter with a floor."""
    p = Q * n_arms
    return {
        "steps": Algorithm1(p=p, units="free"),
        "evidence": ContextualEpsilonGreedy(p=p),
        "floor": ContextualEpsilonGreedy(p=p, floor=FLOOR),
    }
