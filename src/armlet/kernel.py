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
from armlet._kernel import ActionRows as ActionRows
from armlet._kernel import ArmSet as ArmSet
from armlet._kernel import AutoEvidence as AutoEvidence
from armlet._kernel import AutoSchedule as AutoSchedule
from armlet._kernel import AutoTunedStatistics as AutoTunedStatistics
from armlet._kernel import ConstantRate as ConstantRate
from armlet._kernel import Decision as Decision
from armlet._kernel import Decisions as Decisions
from armlet._kernel import Engine as Engine
from armlet._kernel import EventReader as EventReader
from armlet._kernel import Evidence as Evidence
from armlet._kernel import InverseGaps as InverseGaps
from armlet._kernel import LazyStatistics as LazyStatistics
from armlet._kernel import Lines as Lines
from armlet._kernel import LogBonus as LogBonus
from armlet._kernel import Optimism as Optimism
from armlet._kernel import Pacer as Pacer
from armlet._kernel import PairModel as PairModel
from armlet._kernel import Schedule as Schedule
from armlet._kernel import Statistics as Statistics
from armlet._kernel import Thompson as Thompson
from armlet._kernel import action_keys as action_keys
from armlet._kernel import add_rows as add_rows
from armlet._kernel import argmax_rows as argmax_rows
from armlet._kernel import commit as commit
from armlet._kernel import erfcs as erfcs
from armlet._kernel import estimate_subset as estimate_subset
from armlet._kernel import exploration_weights as exploration_weights
from armlet._kernel import exps as exps
from armlet._kernel import gram as gram
from armlet._kernel import json_bytes as json_bytes
from armlet._kernel import json_line as json_line
from armlet._kernel import level as level
from armlet._kernel import logs as logs
from armlet._kernel import normals as normals
from armlet._kernel import play_block as play_block
from armlet._kernel import predict_played as predict_played
from armlet._kernel import predict_target as predict_target
from armlet._kernel import race as race
from armlet._kernel import read_action_dicts as read_action_dicts
from armlet._kernel import row_features as row_features
from armlet._kernel import search_subset as search_subset
from armlet._kernel import sum_agreeing as sum_agreeing
from armlet._kernel import sum_features as sum_features
from armlet._kernel import sum_moments as sum_moments
from armlet._kernel import sum_rows as sum_rows
from armlet._kernel import unit_seed as unit_seed
from armlet._kernel import value_greedy as value_greedy
from armlet._kernel import win_probabilities as win_probabilities
from armlet._kernel import write_events as write_events
from armlet.inputs import columns
from armlet.inputs.settings import Units
from armlet.report.decisions import ShownDecision, ShownDecisions, lend
from armlet.types import Bool, Coins, Float64, Int64, Interaction, Shapes, Snapshot

if TYPE_CHECKING:
    from armlet.environments.environment import FiniteEnvironment
    from armlet.inputs.budget import Budget

Rule: TypeAlias = (
    Schedule | Optimism | Thompson | AutoSchedule | Evidence | AutoEvidence | LogBonus | ConstantRate | InverseGaps
)
"""What the kernel can play by itself, on Statistics; but AutoSchedule and AutoEvidence work on AutoTunedStatistics,
LogBonus on LazyStatistics."""

Propensities: TypeAlias = Literal["exact", "skipped"]

Sums = TypeVar("Sums", bound=Statistics)


class Rollout(NamedTuple, Generic[Sums]):
    """The steps of a whole run of a policy, and its sums at the end."""

    arms: Int64  # (T,)
    propensities: Float64  # (T,)
    explored: Bool  # (T,)
    statistics: Sums  # of the kind that it was at the start


class Replayed(NamedTuple, Generic[Sums]):
    """The rows that a policy would have played too, and its sums after them."""

    rows: Int64  # (steps,): ascending
    explored: Bool  # (steps,): by the policy that learns
    statistics: Sums  # of the kind that it was at the start


class Simulated(NamedTuple, Generic[Sums]):
    """The regret of a simulated run at each checkpoint, and its sums at the end."""

    regret: Float64  # (C,): expected loss so far
    exploring: Float64  # (C,): the part of it paid on explored steps
    explored: Float64  # (C,): how many steps explored
    statistics: Sums  # of the kind that it was at the start


def spent_since(budget: Budget | None, now: Float64 | None, then: Float64 | None) -> Float64 | None:
    """Return what a pacer has counted since it was as it was then."""
    if budget is None or now is None or then is None:
        return now
    later, earlier = (Pacer(budget.total, budget.length, budget.period is not None) for _ in range(2))
    later.restore(now)
    earlier.restore(then)
    later.subtract(earlier)
    return later.values()


def simulate_steps(
    table: FiniteEnvironment,
    *,
    start: Sums,
    rule: Rule,
    horizon: int,
    checkpoints: Int64,
    environment_seed: int,
    policy_seed: int,
) -> Simulated[Sums]:
    """Run a rule in an environment that is a table, every step drawn; the interpreter lock is released.

    Contexts and noise are functions of `environment_seed` and the step alone, so runs of different policies are paired.

    Examples
    --------
    >>> from armlet.environments.environment import FiniteEnvironment
    >>> table = FiniteEnvironment(contexts=np.ones((1, 1)), chances=np.ones(1), means=np.array([[0.0, 1.0]]))
    >>> settings = {"rule": Schedule(2.0, round_robin=True, learn_always=False), "horizon": 100}
    >>> at = np.array([1, 2, 100])
    >>> simulate_steps(
    ...     table, start=Statistics(2, 1), **settings, checkpoints=at, environment_seed=1, policy_seed=2
    ... ).regret[:2]
    array([0., 1.])
    """
    return Simulated(*_kernel.simulate_steps(table, start, rule, horizon, checkpoints, environment_seed, policy_seed))


def simulate_events(
    table: FiniteEnvironment,
    *,
    start: Statistics,
    rule: Schedule | AutoSchedule | Evidence | AutoEvidence,
    horizon: int,
    checkpoints: Int64,
    environment_seed: int,
    policy_seed: int,
) -> Simulated[Statistics]:
    """Run a rule in jumps from one exploration to the next: exact in distribution, at O(p log T), for T = 10^12 too."""
    generator = np.random.default_rng([environment_seed, policy_seed])
    return Simulated(*_kernel.simulate_events(table, start, rule, horizon, checkpoints, generator))


def coins(seed: int, t: int) -> Coins:
    """Return the coins of step t.

    Examples
    --------
    >>> coins(seed=7, t=1) == coins(seed=7, t=1)
    True
    """
    return Coins(*_kernel.coins(seed, t))


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
    """Run a compiled policy over given contexts, (T, d), and rewards of every arm, (T, K); the lock is released.

    `start` is copied, not changed; `t` is the clock before the first step. Propensities "skipped" leaves those of
    Thompson sampling NaN, which saves an integral at every step.

    Examples
    --------
    >>> x, r = np.ones((100, 1)), np.tile([0.0, 1.0], (100, 1))
    >>> rule = Schedule(4.0, round_robin=True, learn_always=False)
    >>> run = rollout(x, r, start=Statistics(2, 1), rule=rule, seed=3)
    >>> run.arms[:4].tolist(), int(run.arms[-1])
    ([1, 0, 1, 0], 1)
    """
    _check_steps_alone(start)
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
    """Let a compiled policy learn from those logged rows whose arm it would have played too.

    Step t + 1 is decided with its own coins for row after row until the arm is the one that was played; then the reward
    is learned, and the next step begins. Rows are (n, d), (n,) and (n,); `eligible`, (n, K), is all arms if left out;
    `start` is copied, not changed.

    Examples
    --------
    >>> x, arms = np.ones((6, 1)), np.array([1, 1, 0, 0, 1, 0])
    >>> rule = Schedule(2.0, round_robin=True, learn_always=False)
    >>> found = replay(x, arms, arms * 1.0, start=Statistics(2, 1), rule=rule, seed=3)
    >>> found.rows.tolist(), found.statistics.n.tolist()
    ([0, 2, 4], [1.0, 2.0])
    """
    _check_steps_alone(start)
    allowed = None if eligible is None else np.ascontiguousarray(eligible).ravel()
    return Replayed(*_kernel.replay(contexts, arms, rewards, allowed, start, rule, seed, t))


def _check_steps_alone(start: Statistics) -> None:
    """Refuse sums whose rows fade by time, where steps have none."""
    if getattr(start, "fades", None) == "time":
        raise errors.InvalidValueError(
            "the policy forgets by time, but these steps have none; give its half_life in steps"
        )


def expectations(X: Float64, theta: Float64) -> Float64:
    """Return x' theta_a for every row x and arm a, (n, K), in blocks, so that signals are handled between them.

    Examples
    --------
    >>> expectations(np.eye(2), np.array([[0.0, 1.0], [1.0, 2.0]]))
    array([[0., 1.],
           [1., 2.]])
    """
    block = max(1024, 2**27 // max(theta.size, 1))
    out = np.empty((len(X), len(theta)))
    for start in range(0, len(X), block):
        np.matmul(X[start : start + block], theta.T, out=out[start : start + block])
    return out


def clear_argmax(X: Float64, theta: Float64) -> Int64:
    """Return the arm with the largest x' theta_a for every row x; -1 where its lead is too small to be sure.

    An answer is that of exact arithmetic, for any order of sums. Rows that hold NaN, or are so long or short that
    float32 might fail, have none.

    Examples
    --------
    >>> clear_argmax(np.array([[1.0, 0.0], [1.0, 1.0], [np.nan, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [1, -1, -1]
    """
    return _kernel.clear_argmax(X, theta).view(np.int64)  # C has two names for 64 bits, and numpy tells them apart


def sum_shapes(n_arms: int, dim: int, *, units: Units = "as given") -> Shapes:
    """Return the shapes of the arrays of `Statistics`.

    Examples
    --------
    >>> sum_shapes(2, 3)
    {'records': (2, 12)}
    >>> sum_shapes(2, 3, units="free")
    {'records': (2, 17), 'units': (13,)}
    """
    size = dim + 1 if units == "free" else dim
    records: Shapes = {"records": (n_arms, 3 + size + size * (size + 1) // 2)}
    return {**records, "units": (1 + 3 * size,)} if units == "free" else records


def outcome_shapes(n_arms: int, dim: int, n: int, *, units: Units, is_lazy: bool) -> Shapes:
    """Return the shapes of what statistics keep next to their sums where rows have n outcomes.

    Examples
    --------
    >>> outcome_shapes(2, 3, 2, units="as given", is_lazy=False)
    {'outcomes': (2, 11), 'outcome_units': (4,)}
    """
    size, pairs = dim + 1 if units == "free" else dim, n * (n + 1) // 2
    shapes: Shapes = {"outcomes": (n_arms, n + pairs + n * size), "outcome_units": (2 * n,)}
    return {**shapes, "outcomes_solved": (n_arms, n * size + 3 * pairs)} if is_lazy else shapes


def solved_shape(n_arms: int, size: int) -> tuple[int, int]:
    """Return the shape of what `LazyStatistics` keeps of its solves: seven facts, an estimate and a factor of each arm.

    A factor of size D is kept in tiles of eight by eight from the diagonal down, and then 1 / L_kk. A column that leads
    whole tiles is kept apart, after them.

    Examples
    --------
    >>> solved_shape(2, 9), solved_shape(2, 12)
    ((2, 104), (2, 227))
    """
    lead = int(size > 8 and size % 8 == 1)
    tiles, padded = -(-(size - lead) // 8), 8 * -(-size // 8)
    return n_arms, 7 + size + 64 * tiles * (tiles + 1) // 2 + 8 * tiles + lead * padded


def _arrow_table(decisions: Decisions) -> Any:
    from armlet.inputs.arrow import decisions_table  # not before a table is asked for: most never are

    return decisions_table(decisions)


def _unpickle_decision(*fields: Any) -> Decision:
    return Decision.restore(*fields)


_kernel.register(
    errors=errors,
    read_reward=columns.reward,
    read_weight=columns.weight,
    coins=Coins,
    interaction=Interaction,
    snapshot=Snapshot,
    arrow_table=_arrow_table,
    unpickle_decision=_unpickle_decision,
)
lend(Decision, ShownDecision)
lend(Decisions, ShownDecisions)
