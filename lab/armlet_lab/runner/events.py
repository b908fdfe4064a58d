"""Many runs of Algorithm 1 in an environment that is a table, each in jumps from one exploration to the next.

O(p log T) for a run, whatever T; see `armlet.kernel.simulate_events`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from armlet.environments.environment import FiniteEnvironment
from armlet.policies import Algorithm1
from armlet.simulation.play import play_table
from armlet.types import Float64, Int64


class Played(NamedTuple):
    """All runs of one policy in one environment."""

    regret: Float64  # (runs, checkpoints)
    exploring: Float64  # (runs, checkpoints): the part of it paid on explored steps
    rows: Int64  # (runs, K): explored steps of each arm at the end


def play(table: FiniteEnvironment, policy: Algorithm1, steps: Int64, seeds: Iterable[tuple[int, int]]) -> Played:
    """Play a run for every pair of seeds, the environment's and the policy's, up to the last of the steps.

    Examples
    --------
    >>> from armlet.environments import FigureA
    >>> table = FigureA(theta=((1.0, 0.0), (0.0, 1.0))).table()
    >>> play(table, Algorithm1(p=12), np.array([10, 100]), [(1, 2), (3, 4), (5, 6)]).regret.shape
    (3, 2)
    """
    runs = [play_table(table, policy, steps, pair, jumps=True) for pair in seeds]
    rows = np.array([np.asarray(run.statistics.n) for run in runs])
    return Played(np.array([run.regret for run in runs]), np.array([run.exploring for run in runs]), rows)
