"""The compiled part: the one module that imports it, and the typed face that the others see.

Arrays given to it must be exactly float64 and C-contiguous: anything else is an error, never a hidden copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

try:
    from armlet import _kernel
except ImportError as error:  # pragma: no cover - needs a broken installation
    raise ImportError(
        "armlet's compiled kernel is missing or was built for another Python; reinstall it: "
        "pip install --force-reinstall armlet (from a clone: make clean run)"
    ) from error

from armlet import errors
from armlet._kernel import ArmSet as ArmSet
from armlet._kernel import AutoEvidence as AutoEvidence
from armlet._kernel import AutoSchedule as AutoSchedule
from armlet._kernel import ConstantRate as ConstantRate
from armlet._kernel import Decision as Decision
from armlet._kernel import Decisions as Decisions
from armlet._kernel import Engine as Engine
from armlet._kernel import Evidence as Evidence
from armlet._kernel import ForcedSampling as ForcedSampling
from armlet._kernel import HeldLines as HeldLines
from armlet._kernel import InverseGaps as InverseGaps
from armlet._kernel import Layers as Layers
from armlet._kernel import LogBonus as LogBonus
from armlet._kernel import Optimism as Optimism
from armlet._kernel import OptimisticGreedy as OptimisticGreedy
from armlet._kernel import Paced as Paced
from armlet._kernel import Schedule as Schedule
from armlet._kernel import Snapshots as Snapshots
from armlet._kernel import Statistics as Statistics
from armlet._kernel import Thompson as Thompson
from armlet._kernel import Tuned as Tuned
from armlet._kernel import erfcs as erfcs
from armlet._kernel import estimate_subset as estimate_subset
from armlet._kernel import exploration_weights as exploration_weights
from armlet._kernel import exps as exps
from armlet._kernel import gram as gram
from armlet._kernel import json_bytes as json_bytes
from armlet._kernel import json_line as json_line
from armlet._kernel import level as level
from armlet._kernel import logs as logs
from armlet._kernel import predict_played as predict_played
from armlet._kernel import predict_target as predict_target
from armlet._kernel import row_features as row_features
from armlet._kernel import search_subset as search_subset
from armlet._kernel import sum_features as sum_features
from armlet._kernel import sum_moments as sum_moments
from armlet._kernel import sum_rows as sum_rows
from armlet._kernel import value_greedy as value_greedy
from armlet.inputs import columns
from armlet.inputs.decided import arrow_table
from armlet.types import Bool, Coins, Float64, Int64, Interaction, Snapshot

if TYPE_CHECKING:
    from armlet.environments.finite import FiniteWorld

Rule: TypeAlias = (
    _kernel.Schedule
    | _kernel.Optimism
    | _kernel.Thompson
    | _kernel.ForcedSampling
    | _kernel.OptimisticGreedy
    | _kernel.AutoSchedule
    | _kernel.Evidence
    | _kernel.AutoEvidence
    | _kernel.LogBonus
    | _kernel.ConstantRate
    | _kernel.InverseGaps
)
"""What the kernel can play by itself, on Statistics; but ForcedSampling works on Layers of two, OptimisticGreedy on
Snapshots, AutoSchedule and AutoEvidence on Tuned, LogBonus on Paced."""

Propensities: TypeAlias = Literal["exact", "skipped"]

Sums = TypeVar("Sums", bound=_kernel.Statistics | _kernel.Layers)

__all__ = [
    "ArmSet",
    "AutoEvidence",
    "AutoSchedule",
    "ConstantRate",
    "Decision",
    "Decisions",
    "Engine",
    "Evidence",
    "ForcedSampling",
    "HeldLines",
    "InverseGaps",
    "Layers",
    "LogBonus",
    "Optimism",
    "OptimisticGreedy",
    "Paced",
    "Propensities",
    "Replayed",
    "Rollout",
    "Rule",
    "Schedule",
    "Simulated",
    "Snapshots",
    "Statistics",
    "Thompson",
    "Tuned",
    "add_rows",
    "argmax_rows",
    "clear_argmax",
    "coins",
    "erfcs",
    "estimate_subset",
    "expectations",
    "exploration_weights",
    "exps",
    "gram",
    "json_bytes",
    "json_line",
    "level",
    "logs",
    "normals",
    "ordered_scores",
    "predict_played",
    "predict_target",
    "replay",
    "rollout",
    "row_features",
    "search_subset",
    "simulate_events",
    "simulate_steps",
    "sum_features",
    "sum_moments",
    "sum_rows",
    "unpickle_decision",
    "value_greedy",
    "win_probabilities",
]


class Rollout(NamedTuple, Generic[Sums]):
    """What a whole run of a policy did, step by step, and what it knew at the end."""

    arms: Int64  # (T,)
    propensities: Float64  # (T,)
    explored: Bool  # (T,)
    statistics: Sums  # of the kind that it was at the start


class Replayed(NamedTuple, Generic[Sums]):
    """Which rows a policy would have played too, and what it learned from them."""

    rows: Int64  # (steps,): ascending
    explored: Bool  # (steps,): by the policy that learns
    statistics: Sums  # of the kind that it was at the start


def unpickle_decision(*fields: Any) -> Decision:
    """Rebuild a decision from what pickling kept of it."""
    return Decision.restore(*fields)


class Simulated(NamedTuple, Generic[Sums]):
    """What a simulated run came to at each checkpoint, and what it knew at the end."""

    regret: Float64  # (C,): expected loss so far
    exploring: Float64  # (C,): the part of it paid on explored steps
    explored: Float64  # (C,): how many steps explored
    statistics: Sums  # of the kind that it was at the start


def simulate_steps(
    table: FiniteWorld,
    *,
    start: Sums,
    rule: Rule,
    horizon: int,
    checkpoints: Int64,
    world_seed: int,
    policy_seed: int,
) -> Simulated[Sums]:
    """Run a rule in a world that is a table, every step drawn; the interpreter lock is released.

    Contexts and noise are functions of the world's seed and the step alone, so runs of different policies are paired.

    Examples
    --------
    >>> import numpy as np
    >>> from armlet.environments.finite import FiniteWorld
    >>> table = FiniteWorld(contexts=np.ones((1, 1)), chances=np.ones(1), means=np.array([[0.0, 1.0]]))
    >>> settings = {"rule": Schedule(2.0, round_robin=True, learn_always=False), "horizon": 100}
    >>> at = np.array([1, 2, 100])
    >>> simulate_steps(
    ...     table, start=Statistics(2, 1), **settings, checkpoints=at, world_seed=1, policy_seed=2
    ... ).regret[:2]
    array([0., 1.])
    """
    return Simulated(*_kernel.simulate_steps(table, start, rule, horizon, checkpoints, world_seed, policy_seed))


def simulate_events(
    table: FiniteWorld,
    *,
    start: Statistics,
    rule: Schedule | AutoSchedule | Evidence | AutoEvidence,
    horizon: int,
    checkpoints: Int64,
    world_seed: int,
    policy_seed: int,
) -> Simulated[Statistics]:
    """Run Algorithm 1, or its like by evidence, in jumps from one exploration to the next.

    Exact in law, at a cost of O(p log T), so T = 10^12 is no matter.

    Examples
    --------
    >>> import numpy as np
    >>> from armlet.environments.finite import FiniteWorld
    >>> table = FiniteWorld(contexts=np.ones((1, 1)), chances=np.ones(1), means=np.array([[0.0, 1.0]]))
    >>> settings = {"rule": Schedule(2.0, round_robin=True, learn_always=False), "horizon": 10**12}
    >>> at = np.array([1, 2, 10**12])
    >>> run = simulate_events(table, start=Statistics(2, 1), **settings, checkpoints=at, world_seed=1, policy_seed=2)
    >>> run.regret[:2], bool(run.regret[2] < 100)
    (array([0., 1.]), True)
    """
    generator = np.random.default_rng([world_seed, policy_seed])
    return Simulated(*_kernel.simulate_events(table, start, rule, horizon, checkpoints, generator))


def coins(seed: int, t: int) -> Coins:
    """Toss the coins of step t.

    Examples
    --------
    >>> coins(seed=7, t=1) == coins(seed=7, t=1)
    True
    """
    return Coins(*_kernel.coins(seed, t))


def normals(pick: int, tie: int, n: int) -> Float64:
    """Give the standard normals that Thompson sampling draws with two words of its coins, one for each arm.

    Word i mod 4 of block i div 4 of Philox with the key (pick, tie): a function of seed, step and arm alone.

    Examples
    --------
    >>> normals(1, 2, 3).tolist() == normals(1, 2, 9)[:3].tolist()
    True
    """
    return _kernel.normals(pick, tie, n)


def win_probabilities(means: Float64, deviations: Float64) -> Float64:
    """Give the probability that each of several independent normals is the largest, to about 1e-9.

    A deviation of 0 stands for a constant; constants that tie share.

    Examples
    --------
    >>> import numpy as np
    >>> win_probabilities(np.array([0.0, 1.0]), np.array([0.6, 0.8])).round(6)  # Phi(-1) and Phi(1)
    array([0.158655, 0.841345])
    """
    return _kernel.win_probabilities(means, deviations)


def rollout(
    contexts: Float64,
    rewards: Float64,
    *,
    start: Sums,
    rule: Rule,
    seed: int,
    t: int = 0,
    propensities: Propensities = "exact",
) -> Rollout[Sums]:
    """Run a compiled policy over given contexts and rewards, without the interpreter lock.

    Parameters
    ----------
    contexts
        (T, d) float64, C-contiguous.
    rewards
        (T, K) float64, C-contiguous: what each arm would pay at each step.
    start
        What is known before the first step; it is copied, not changed.
    rule
        How to choose and what to learn from: `policy.rule()`.
    seed
        The policy's own coins.
    t
        The clock before the first step.
    propensities
        "skipped" leaves those of Thompson sampling NaN, which saves an integral at every step.

    Examples
    --------
    >>> import numpy as np
    >>> x, r = np.ones((100, 1)), np.tile([0.0, 1.0], (100, 1))
    >>> rule = Schedule(4.0, round_robin=True, learn_always=False)
    >>> run = rollout(x, r, start=Statistics(2, 1), rule=rule, seed=3)
    >>> run.arms[:4].tolist(), int(run.arms[-1])
    ([1, 0, 1, 0], 1)
    """
    return Rollout(*_kernel.rollout(contexts, rewards, start, rule, seed, t, propensities))


def replay(
    contexts: Float64,
    arms: Int64,
    rewards: Float64,
    *,
    start: Sums,
    rule: Rule,
    seed: int,
    t: int = 0,
    eligible: Bool | None = None,
) -> Replayed[Sums]:
    """Let a compiled policy learn from rows that another has played, as far as it would have played them.

    Step t + 1 is decided with its own coins for row after row until the arm is the one that was played; then the reward
    is learned, and the next step begins.

    Parameters
    ----------
    contexts, arms, rewards
        (n, d), (n,) and (n,): the rows, C-contiguous.
    start
        What is known before the first step; it is copied, not changed.
    eligible
        (n, K): which arms might be played; all, if left out.

    Examples
    --------
    >>> import numpy as np
    >>> x, arms = np.ones((6, 1)), np.array([1, 1, 0, 0, 1, 0])
    >>> rule = Schedule(2.0, round_robin=True, learn_always=False)
    >>> found = replay(x, arms, arms * 1.0, start=Statistics(2, 1), rule=rule, seed=3)
    >>> found.rows.tolist(), found.statistics.n.tolist()
    ([0, 2, 4], [1.0, 2.0])
    """
    allowed = None if eligible is None else np.ascontiguousarray(eligible).ravel()
    return Replayed(*_kernel.replay(contexts, arms, rewards, allowed, start, rule, seed, t))


def expectations(X: Float64, theta: Float64) -> Float64:
    """Give x' theta_a for every row x and arm a, (n, K), in blocks, so that signals are seen between them.

    Examples
    --------
    >>> import numpy as np
    >>> expectations(np.eye(2), np.array([[0.0, 1.0], [1.0, 2.0]]))
    array([[0., 1.],
           [1., 2.]])
    """
    block = max(1024, 2**27 // max(theta.size, 1))
    out = np.empty((len(X), len(theta)))
    for start in range(0, len(X), block):
        np.matmul(X[start : start + block], theta.T, out=out[start : start + block])
    return out


def ordered_scores(X: Float64, theta: Float64) -> Float64:
    """Give the same as `expectations`, summed in the order of the features: to the last bit what decisions compare.

    Examples
    --------
    >>> import numpy as np
    >>> ordered_scores(np.eye(2), np.array([[0.0, 1.0], [1.0, 2.0]]))
    array([[0., 1.],
           [1., 2.]])
    """
    out = np.zeros((len(X), len(theta)))
    for feature, slopes in zip(X.T, theta.T, strict=True):
        out += feature[:, None] * slopes
    return out


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


def clear_argmax(X: Float64, theta: Float64) -> Int64:
    """Find the arm with the largest x' theta_a for every row x; -1 where its lead is small enough to doubt it.

    An answer is that of exact arithmetic, whatever the order of sums. Rows that hold what is no number, or are so long
    or short that float32 might fail, have none.

    Examples
    --------
    >>> import numpy as np
    >>> clear_argmax(np.array([[1.0, 0.0], [1.0, 1.0], [np.nan, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [1, -1, -1]
    """
    return _kernel.clear_argmax(X, theta).view(np.int64)  # C has two names for 64 bits, and numpy tells them apart


def add_rows(
    records: Float64,
    X: Float64 | list[Float64],
    arms: Int64,
    rewards: Float64,
    weights: Float64 | None = None,
    origin: Float64 | None = None,
) -> None:
    """Add many rows to the sums of their arms, in place, or refuse and change nothing.

    The same sums as of `Statistics.add`, but for rounding: rows of an arm are summed in blocks of up to 64, in their
    order, and the blocks added in theirs.

    Parameters
    ----------
    records
        (K, 3 + D + D (D + 1) / 2): what `Statistics.records` gives, changed in place.
    X
        (n, d); or its d columns, (n,) each.
    arms
        (n,): whose rows they are; a negative one is not added.
    rewards, weights
        (n,) each; all weights are 1 if left out.
    origin
        (d + 1,): that of rewards and of features, in free units, where D is d + 1; None in units as given.

    Examples
    --------
    >>> import numpy as np
    >>> records = np.zeros((2, 5))
    >>> add_rows(records, np.array([[2.0], [3.0], [4.0]]), np.array([0, 1, -1]), np.array([1.0, 0.5, 9.0]))
    >>> records
    array([[1.  , 1.  , 1.  , 2.  , 4.  ],
           [1.  , 0.5 , 0.25, 1.5 , 9.  ]])
    """
    _kernel.add_rows(records, X, arms, rewards, weights, origin)


_kernel.register(
    errors=errors,
    read_reward=columns.reward,
    read_weight=columns.weight,
    coins=Coins,
    interaction=Interaction,
    snapshot=Snapshot,
    arrow_table=arrow_table,
    unpickle_decision=unpickle_decision,
)
