"""What the leaderboard is judged by: the ranks, and a verdict on two claims of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.inference.intervals import Estimate, bootstrap
from armlet.parallel.seeds import Seeds
from armlet.types import Float64
from armlet_lab.contests.leaderboard.costs import Cost
from armlet_lab.runner.experiment import Claim, Criterion, Outcome, Role, Statistic, Verdict

OURS: Final = "Algorithm 1"
RIVALS: Final = ("LinUCB", "Thompson sampling")
CONSTANT: Final = ("LinUCB", "OFUL", "Thompson sampling")
FIRST: Final = "Figure (a)"
NAMED: Final = (OURS, *RIVALS, "uniform")  # in the plot; the others are numbers


@dataclass(frozen=True, slots=True)
class Standing:
    """Regret in one arena, one number a run; the same runs for all policies."""

    tuned: Float64
    theory: Float64 | None
    uniform: Float64
    worst: float = 1.0  # mean regret of the worst choice of the grid relative to uniform play, on other problems


@dataclass(frozen=True, slots=True)
class Rank:
    """One policy in all arenas where it fits."""

    name: str
    family: str
    standings: Mapping[str, Standing]
    cost: Cost


def meets_the_best(ranks: Mapping[str, Rank], seeds: Seeds) -> Verdict:
    """Judge whether Algorithm 1 regrets about as little as the best."""
    claim = Claim(
        key="leaderboard-regret",
        where="Section 1, contributions",
        says="The regret of Algorithm 1 meets that of the best known algorithms for contextual bandits.",
        reading=(
            "In numbers, not in orders: on Figure (a), tuned, at most half as much again as LinUCB and as Thompson "
            "sampling. Our reading: the same against epoch-greedy with a ridge oracle, whose bound it meets."
        ),
    )
    bound = Criterion("below", 1.5)
    statistics = [
        Statistic(f"regret relative to {name}", _against(ranks, name, seeds), bound, role)
        for name, role in (*((rival, Role.WRITTEN) for rival in RIVALS), ("epoch-greedy, ridge", Role.READING))
    ]
    why = {
        Outcome.HOLDS: "Exploration by schedule costs no more here than by confidence.",
        Outcome.UNDER_READING: (
            "It meets the schedule that it is compared with in the text. Policies that let their uncertainty decide "
            "when to explore, and learn from every step, regret far less on these problems."
        ),
        Outcome.FAILS: "Others regret far less on these problems.",
        Outcome.UNSETTLED: "Some interval crosses the bound: more problems are needed.",
    }
    return Verdict(claim=claim, statistics=tuple(statistics), explanations=why)


def _against(ranks: Mapping[str, Rank], name: str, seeds: Seeds) -> Estimate:
    mine, theirs = (ranks[each].standings[FIRST].tuned for each in (OURS, name))
    rng = seeds.rng("intervals")
    return bootstrap(lambda a, b: a.mean(-1) / np.maximum(b.mean(-1), 1e-12), mine, theirs, rng=rng)


def constant_cost(costs: Mapping[str, Cost]) -> Verdict:
    """Judge whether other policies slow down or grow as steps go by."""
    claim = Claim(
        key="leaderboard-cost",
        where="Abstract",
        says=(
            "Known algorithms compute ever more as steps go by, or regret in proportion to the number of contexts; and "
            "unlike those before, this one's memory does not grow with T."
        ),
        reading=(
            "LinUCB, OFUL and Thompson sampling, with d x d sums for each arm as here, are known algorithms: time and "
            "bytes of a step must grow with t, by an exponent above 0.1. Control: a row for each of 2^d contexts must "
            "be found to grow faster than d."
        ),
    )
    grows = Criterion("above", 0.1)
    statistics = [
        *(Statistic(f"bytes in t, {name}", _exact(costs[name].bytes_growth["t"]), grows) for name in CONSTANT),
        *(Statistic(f"time in t, {name}", _exact(costs[name].time_growth["t"]), grows) for name in CONSTANT),
        Statistic(
            "bytes in d, UCB1 with a table",
            _exact(costs["UCB1, table"].bytes_growth["d"]),
            Criterion("above", 1.0),
            Role.CONTROL,
        ),
    ]
    why = {
        Outcome.FAILS: (
            "It is true of epoch-greedy and of policy elimination as published, and of tables. Policies on ridge "
            "regression keep sums too, and those do not grow; their bounds do not depend on the number of contexts."
        ),
        Outcome.HOLDS: "All of them slow down or grow.",
    }
    return Verdict(claim=claim, statistics=tuple(statistics), explanations=why)


def _exact(value: float) -> Estimate:
    return Estimate(value, value, value)
