"""Processor scheduling, Example 1: jobs are workload vectors, processors have unknown speeds, delay is a cost.

A job is described by how much of each sub-task it holds; a processor takes an unknown number of seconds
for a unit of each. Rewards are minus the delay, so that, as everywhere, more is better; `delays` gives
the seconds themselves, for a bandit with `objective="min"`.
Drawing n steps is O(n K), their means O(n K d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from armlet.environments.environment import (
    LinearArms,
    ListedContexts,
    Noise,
    Theta,
    as_rows,
    check_between,
    check_chances,
)
from armlet.errors import InvalidValueError
from armlet.inputs.settings import Objective
from armlet.types import Float64

SUBTASKS = ("computation in 10^9 operations", "disk in 100 MB", "network in 100 MB")
TYPICAL_SECONDS = (0.5, 0.8, 1.0)  # for a unit of each
JOBS = ((2.0, 0.1, 0.1), (0.2, 0.1, 1.5), (0.5, 3.0, 0.2), (0.1, 2.0, 2.0), (4.0, 1.0, 0.5))
SHARES = (0.3, 0.35, 0.15, 0.1, 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling(ListedContexts):
    """Send every job to one of K processors, and wait.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        Minus the seconds that each processor takes for a unit of each sub-task: `seconds_per_unit` without
        the sign. All values are negative.
    jobs : tuple of tuples of float, shape (M, d)
        The kinds of job, in units of each sub-task.
    shares : tuple of float, length M
        How often each kind comes.
    subtasks
        What the d sub-tasks are, with their units.
    spread
        A delay is uniform between (1 - spread) and (1 + spread) times its mean.

    Examples
    --------
    >>> environment = Scheduling(theta=((-1.0, -4.0), (-3.0, -2.0)), jobs=((1.0, 0.0), (1.0, 2.0)), shares=(0.5, 0.5),
    ...     subtasks=("computation in 10^9 operations", "disk in 100 MB"))
    >>> environment.means(np.array(environment.jobs))  # minus seconds
    array([[-1., -3.],
           [-9., -7.]])
    """

    jobs: Theta = JOBS
    shares: tuple[float, ...] = SHARES
    subtasks: tuple[str, ...] = SUBTASKS
    spread: float = 0.5

    objective: ClassVar[Objective] = "min"
    """The objective of a bandit that learns from `delays`; `rewards` already carry the minus sign."""

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_between("spread", self.spread, 0.0, 1.0)
        check_chances("shares", self.shares, len(self.jobs))
        if {len(job) for job in self.jobs} != {self.dim} or len(self.subtasks) != self.dim:
            raise InvalidValueError(
                f"every job and the list of subtasks need {self.dim} values, one for each column of theta"
            )
        if np.max(self.theta) >= 0:
            raise InvalidValueError(f"theta is minus seconds, so every value must be negative; got {self.theta}")
        if np.min(self.jobs) < 0 or abs(sum(self.shares) - 1) > 1e-9:
            raise InvalidValueError(f"jobs must not hold negative work, and shares must sum to 1; got {self.shares}")

    @classmethod
    def draw(cls, rng: np.random.Generator, *, n_arms: int = 4, spread: float = 0.5) -> Self:
        """Draw processors for the default jobs: each between half and twice the typical time for each sub-task.

        Examples
        --------
        >>> Scheduling.draw(np.random.default_rng(0), n_arms=3).seconds_per_unit.round(2)
        array([[0.6 , 0.58, 0.53],
               [0.26, 1.24, 1.77],
               [0.58, 1.1 , 1.06]])
        """
        seconds = np.array(TYPICAL_SECONDS) * 2.0 ** rng.uniform(-1.0, 1.0, size=(n_arms, len(TYPICAL_SECONDS)))
        return cls(theta=as_rows(-seconds), spread=spread)

    @property
    def seconds_per_unit(self) -> Float64:
        """The seconds that each processor takes for a unit of each sub-task, on average: (K, d)."""
        return -np.array(self.theta)

    def context_law(self) -> tuple[Float64, Float64]:
        """Return the kinds of job, in units of each sub-task, and their shares."""
        return np.array(self.jobs), np.array(self.shares)

    def reward_noise(self) -> tuple[Noise, float]:
        return "proportional", self.spread

    def delays(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw the seconds that every processor would take for every job: (n, K), minus the rewards."""
        return -self.rewards(rng, X, start=start)

    def describe(self) -> list[str]:
        """Describe what the environment means, in which units, and what its constants are.

        Examples
        --------
        >>> for line in Scheduling.draw(np.random.default_rng(0)).describe()[:3]:
        ...     print(line)
        Processor scheduling, Example 1: 4 processors, 5 kinds of job
        contexts: work in a job: computation in 10^9 operations, disk in 100 MB, network in 100 MB
        rewards: minus the delay in seconds, which is a cost; a delay is within 50% of its mean
        """
        quick, slow = -self.table().means.max(), -self.table().means.min()
        return [
            f"Processor scheduling, Example 1: {self.n_arms} processors, {len(self.jobs)} kinds of job",
            f"contexts: work in a job: {', '.join(self.subtasks)}",
            f"rewards: minus the delay in seconds, which is a cost; a delay is within {self.spread:.0%} of its mean",
            f"mean delays lie between {quick:.3g} and {slow:.3g} seconds",
            *self.describe_constants("seconds"),
        ]
