"""The A/B test that a policy is compared with: every arm equally likely for n decisions, then the winner for the rest.

It looks at no context, as A/B tests do. n is the usual sample size: enough for a two-sided test at 5 % to find, with
power 0.8, two arms that differ by what random play loses a decision; at most half of the horizon. The runs have the
environments, contexts, rewards and coins of all other policies. O(T) a run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import Any, Final, NamedTuple

import numpy as np

from armlet import kernel
from armlet.advice.problem import SampledProblem
from armlet.environments.environment import FiniteEnvironment
from armlet.kernel import Schedule, Statistics
from armlet.types import Float64, Int64

LEVEL, POWER = 0.05, 0.8
SAMPLE_SIZE: Final = 2 * (NormalDist().inv_cdf(1 - LEVEL / 2) + NormalDist().inv_cdf(POWER)) ** 2  # 15.7
LENGTHS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2)  # times the planned one, to say what another length would earn

EVEN: Final = Schedule(math.inf, round_robin=False, learn_always=True)  # draw every arm alike, forever
GREEDY: Final = Schedule(5e-324, round_robin=False, learn_always=False)  # explore at step 1 alone: p / t underflows


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long an A/B test lasts, and why."""

    decisions: int  # n, of all arms together
    asked: int  # by the formula; more than n if that is more than half of the horizon
    difference: float  # that it is made to find, in units of reward
    deviation: float  # of a reward, whatever the context
    n_arms: int


def plan(problems: Sequence[SampledProblem], horizon: int) -> Plan:
    """Return the length of the test for the typical problem.

    Examples
    --------
    >>> from armlet.advice import Prior
    >>> guess = Prior(n_arms=2, dim=1, effect=0.1, noise=1.0)
    >>> found = plan(guess.sample(3, seed=1), 10_000)
    >>> found.asked, found.decisions
    (3140, 3140)
    """
    n_arms = max(problem.n_arms for problem in problems)
    difference = median(problem.table.gap for problem in problems)
    deviation = median(_deviation(problem) for problem in problems)
    each = SAMPLE_SIZE * (deviation / difference) ** 2 if difference > 0 else math.inf
    needed = n_arms * max(2.0, math.ceil(each)) if math.isfinite(each) else horizon
    return Plan(
        decisions=max(min(n_arms, horizon), min(int(needed), horizon // 2)),
        asked=int(needed),
        difference=difference,
        deviation=deviation,
        n_arms=n_arms,
    )


def _deviation(problem: SampledProblem) -> float:
    """Return the standard deviation of an arm's reward over all contexts, root mean square over arms."""
    table = problem.table
    means = table.chances @ table.means
    between = float((table.chances @ np.square(table.means) - np.square(means)).mean())
    return math.sqrt(max(0.0, between) + problem.noise**2)


class ABTask(NamedTuple):
    """One run of a test of some length."""

    table: FiniteEnvironment
    decisions: int
    steps: Int64
    seeds: tuple[int, int]


def play_test(task: ABTask) -> Float64:
    """Run a task and return its regret at each step that is asked for, (C,)."""
    n, steps = task.decisions, task.steps
    blind = FiniteEnvironment(
        contexts=np.ones((len(task.table.chances), 1)),
        chances=task.table.chances,
        means=task.table.means,
        noise=task.table.noise,
        scale=task.table.scale,
    )
    n_arms = int(task.table.means.shape[1])
    inside = np.append(steps[steps < n], n)
    tested = _simulate(blind, Statistics(n_arms, 1), EVEN, inside, task.seeds)
    rest = steps[steps >= n]
    if not rest.size or rest[-1] == n:
        return np.append(tested.regret[:-1], tested.regret[-1:].repeat(rest.size))
    later = _simulate(blind, _only(_winner(tested.statistics), n_arms), GREEDY, np.append(n, rest), task.seeds)
    return np.concatenate([tested.regret[:-1], tested.regret[-1] + later.regret[1:] - later.regret[0]])


def _simulate(
    table: FiniteEnvironment, start: Statistics, rule: Schedule, steps: Int64, seeds: tuple[int, int]
) -> kernel.Simulated[Any]:
    at = np.unique(steps)
    run = kernel.simulate_steps(
        table,
        start=start,
        rule=rule,
        horizon=int(at[-1]),
        checkpoints=at,
        environment_seed=seeds[0],
        policy_seed=seeds[1],
    )
    return run._replace(regret=run.regret[np.searchsorted(at, steps)])


def _winner(tested: Statistics) -> int:
    """Return the arm of the highest mean reward; an arm that was never drawn cannot win."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return int(np.argmax(np.where(tested.n > 0, tested.sum_r / tested.n, -np.inf)))


def _only(arm: int, n_arms: int) -> Statistics:
    """Return sums in which one arm looks best in every context."""
    sums = Statistics(n_arms, 1)
    sums.add(arm, np.ones(1), 1.0)
    return sums
