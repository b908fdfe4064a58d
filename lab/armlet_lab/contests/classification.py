"""A classification table played as a bandit: a row is a context, its classes are the arms, the right one pays 1.

A learner plays the rows in a random order and receives the reward of its choice alone. All meet the same orders. A task
is one policy, or one group of a rival's settings, on one table in some orders.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet import datasets
from armlet.bandit import Bandit
from armlet.inputs.named import parse_named
from armlet.parallel import Seeds
from armlet.simulation.compare import make_policy
from armlet.simulation.lab import Arrays
from armlet.types import Float64, Int64, Policy
from armlet_lab.contests import contest, mabwiser, vowpal
from armlet_lab.contests.rival import Setting

COLLECTION: Final = "keel"
DIGITS: Final = "digits"  # of scikit-learn
Side: TypeAlias = Literal["armlet", "vowpal", "mabwiser"]
GROUPS: Final[dict[Side, dict[str, tuple[Setting, ...]]]] = {"vowpal": vowpal.GROUPS, "mabwiser": mabwiser.GROUPS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(contest.Task):
    """One policy, or one group of a rival's settings, on one table (`environment`) in the orders `draws`."""

    side: Side
    unit: float = 1.0  # what the numbers of the table are multiplied by
    logged: int = 0  # rows of an order that another logged, with uniform arms, before the first decision
    data: str = datasets.collection(COLLECTION).sha256[:16]  # other tables or another rival: another task
    version: str = ""


def play(task: Task) -> Arrays:
    """Return the share of mistakes and the mistakes themselves, packed: for every order a row for each setting."""
    table = load(task.environment)
    table = replace(table, X=table.X * task.unit)
    orders = [shuffled(task.seeds, task.environment, draw, len(table), task.horizon) for draw in task.draws]
    seeds = [task.seeds.seed("coins of a shuffle", task.environment, draw) for draw in task.draws]
    logged = [task.seeds.rng("logged", draw).integers(table.n_arms, size=task.logged) for draw in task.draws]
    if task.side == "armlet":
        runs = zip(orders, seeds, logged, strict=True)
        found = [mistakes(table, order, task.player, seed=seed, logged=arms) for order, seed, arms in runs]
    elif task.side == "vowpal":
        settings = vowpal.GROUPS[task.player]
        pairs = zip(orders, seeds, strict=True)
        found = [each for order, seed in pairs for each in vowpal.mistakes(table, order, settings, seed=seed % 2**31)]
    else:
        few = [seed % 2**31 for seed in seeds]
        found = mabwiser.mistakes(table, orders, mabwiser.GROUPS[task.player], seeds=few, logged=logged)
    return {"errors": np.mean(found, axis=1), "mistakes": pack(np.array(found))}


def load(name: str) -> datasets.DatasetTable:
    """Read a table of the collection by its KIND/NAME, or the handwritten digits."""
    return datasets.load("sklearn", name) if name == DIGITS else datasets.load(COLLECTION, name)


def shuffled(seeds: Seeds, table: str, shuffle: int, n: int, rows: int) -> Int64:
    """Return the order in which the rows of a table are played, the first so many of them."""
    return seeds.rng("shuffle", table, shuffle).permutation(n)[:rows].astype(np.int64)


def make(text: str, rows: int) -> Policy:
    """Make a policy from NAME or NAME:KEY=VALUE,...; {rows} stands for how many rows there are.

    Examples
    --------
    >>> make("AutoEpsilonGreedy:horizon={rows}", 500).horizon
    500
    """
    return make_policy(*parse_named(text.replace("{rows}", str(rows))))


def contexts(table: datasets.DatasetTable, policy: Policy) -> Float64:
    """Return the numbers of a table as they are; with a constant for a policy that has no level of its own.

    A policy in free units finds a level by itself; one in units as given needs a feature that is always 1.
    """
    if getattr(policy, "units", "as given") == "free":
        return table.X
    return np.column_stack([table.X, np.ones(len(table))])


def mistakes(
    table: datasets.DatasetTable, order: Int64, text: str, *, seed: int, logged: Int64 | None = None
) -> Float64:
    """Play a policy on rows in an order; return 1 for each wrong choice and 0 for each right one.

    Parameters
    ----------
    logged
        The arms of the first rows, drawn at random, whose rewards are known before the first decision.
    """
    policy = make(text, len(order))
    X, y = contexts(table, policy), table.y
    bandit = Bandit(arms=range(table.n_arms), dim=X.shape[1], policy=policy, seed=seed)
    known = 0 if logged is None else len(logged)
    if logged is not None and known:
        rewards = (logged == y[order[:known]]).astype(np.float64)
        bandit.fit(X[order[:known]], logged.tolist(), rewards, explored=True)
    wrong = np.ones(len(order) - known)
    for place, row in enumerate(order[known:].tolist()):
        decision = bandit.decide(X[row])
        right = decision.arm == y[row]
        bandit.learn(decision, float(right))
        wrong[place] -= right
    return wrong


def pack(wrong: Float64) -> Int64:
    """Put the zeros and ones of each row into integers, 32 in each."""
    bits = np.packbits(wrong.astype(np.bool_), axis=1, bitorder="little")
    return np.pad(bits, ((0, 0), (0, -bits.shape[1] % 4))).view("<u4").astype(np.int64)


def unpack(packed: Int64 | Float64, n: int) -> Float64:
    """Return the zeros and ones again."""
    bits = np.ascontiguousarray(packed.astype("<u4")).view(np.uint8)
    return np.unpackbits(bits, axis=1, count=n, bitorder="little").astype(np.float64)
