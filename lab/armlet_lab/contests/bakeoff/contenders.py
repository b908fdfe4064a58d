"""Our side of the bake-off: policies by name, and one of them on a table in one order."""

from __future__ import annotations

from typing import Final

import numpy as np

from armlet.bandit import Bandit
from armlet.datasets import Table
from armlet.simulation.compare import parse_policy
from armlet.simulation.named import make_policy
from armlet.types import Float64, Int64, Policy

USUAL: Final = (
    "OccasionalOptimism",
    "OptimisticEpsilonGreedy",
    "LinUCB",
    "ThompsonSampling",
    "Greedy",
    "AutoEpsilonGreedy",
    "OptimisticEpsilonGreedy:units=as given",
    "Uniform",
)
"""What is played if nothing else is asked for; the first is held against the rivals, the last is the floor."""


def make(text: str, rows: int) -> Policy:
    """Make a policy from NAME or NAME:KEY=VALUE,...; {rows} stands for how many rows there are.

    Examples
    --------
    >>> make("AutoEpsilonGreedy:horizon={rows}", 500).horizon
    500
    """
    return make_policy(*parse_policy(text.replace("{rows}", str(rows))))


def contexts(table: Table, policy: Policy) -> Float64:
    """Give the numbers of a table as they are; with a constant for a policy that has no level of its own.

    A policy in free units finds a level by itself; one in units as given needs a feature that is always 1.
    """
    if getattr(policy, "units", "as given") == "free":
        return table.X
    return np.column_stack([table.X, np.ones(len(table))])


def mistakes(table: Table, order: Int64, text: str, *, seed: int) -> Float64:
    """Play a policy on rows in an order; give 1 for each wrong choice and 0 for each right one."""
    policy = make(text, len(order))
    X, y = contexts(table, policy), table.y
    bandit = Bandit(arms=range(table.n_arms), dim=X.shape[1], policy=policy, seed=seed)
    wrong = np.ones(len(order))
    for place, row in enumerate(order.tolist()):
        decision = bandit.decide(X[row])
        right = decision.arm == y[row]
        bandit.learn(decision, float(right))
        wrong[place] -= right
    return wrong
