"""Tasks of the experiment: runs of a case, ellipsoids along runs, and runs of Armlet's own policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.parallel import Seeds
from armlet.policies import OccasionalOptimism
from armlet.policies.base import compiled_rule
from armlet.simulation.lab import Arrays, as_floats
from armlet.simulation.play import InKernel, run_streams
from armlet.types import Int64
from armlet_lab.paper.open_problem.environments import CASES, GAP, HONEST, NOISE, SHARE, draw, theta_norm
from armlet_lab.paper.open_problem.simulator import Game, K, Policy, play_blocks, play_steps

RIDGE: Final = 0.05
LEVEL: Final = 0.05  # of the ellipsoids
LOUD: Final = 1.0  # the noise where they are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """A task: the runs numbered from `first` to before `last`, each up to the last of the horizons."""

    seeds: Seeds
    case: str  # of CASES; of ENVIRONMENTS for Armlet's own policy
    horizons: tuple[int, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ellipsoids:
    """A task: runs against the adversary with a part of the radius."""

    seeds: Seeds
    width: float
    horizon: int
    first: int
    last: int


def play(task: Runs) -> Arrays:
    """Return for each run its mistakes, the coins' sum over steps with a large bonus, and the variance of that sum."""
    case, T = CASES[task.case], task.horizons[-1]
    policy = Policy(ridge=RIDGE, noise_scale=NOISE, theta_norm=theta_norm(case.environment), refresh=case.refresh)
    mistakes, sums = [], []
    for run in range(task.first, task.last):
        game, chance = draw(task.seeds, case, T, run)
        played = play_blocks(game, policy)
        mistakes.append(_count(game, played.shown, played.arms, task.horizons))
        large = played.bonus >= GAP / 2
        expected = chance[large]
        sums.append(((game.coins[large] - expected).sum(), (expected * (1.0 - expected)).sum()))
    coins, variance = np.array(sums).T
    return {"mistakes": np.array(mistakes), "coins": coins.copy(), "variance": variance.copy()}


def _count(game: Game, shown: Int64, arms: Int64, horizons: tuple[int, ...]) -> Int64:
    wrong: Int64 = np.cumsum(game.losses[shown, arms] > 0)[np.array(horizons) - 1]
    return wrong


def look(task: Ellipsoids) -> Arrays:
    """Return whether each run had an arm outside its ellipsoid, with a noise of 1 and a part of the radius."""
    T, numbers = task.horizon, range(task.first, task.last)
    games = [draw(task.seeds, HONEST["adaptive"], T, run, LOUD)[0] for run in numbers]
    Q = theta_norm("adaptive")
    policy = Policy(ridge=RIDGE, noise_scale=LOUD, theta_norm=Q, width=task.width, delta=LEVEL)
    return {"outside": as_floats(play_steps(games, policy)[1])}


def armlet_policy(environment: str) -> OccasionalOptimism:
    """Return Armlet's own policy with what the theorem asks for.

    Examples
    --------
    >>> from armlet.theory import mostly_greedy
    >>> mostly_greedy.failing(armlet_policy("late"))
    ()
    """
    return OccasionalOptimism(
        radius="proved",
        noise_scale=NOISE,
        theta_norm=theta_norm(environment),
        ridge=RIDGE,
        share=SHARE,
        units="as given",
    )


def play_armlet(task: Runs) -> Arrays:
    """Return the mistakes of Armlet's own policy in each run; those of steps that explore count as well."""
    policy, T, mistakes = armlet_policy(task.case), task.horizons[-1], []
    rule = compiled_rule(policy)
    assert rule is not None
    for run in range(task.first, task.last):
        game, _ = draw(task.seeds, HONEST[task.case], T, run)
        plays = InKernel(rule, policy.init(K, 2), run_streams(task.seeds, "armlet", task.case, T, run).coins)
        arms, _ = plays.play(game.pool[game.shown], game.means[game.shown] + game.noise[:, None])
        mistakes.append(_count(game, game.shown, arms, task.horizons))
    return {"mistakes": np.array(mistakes)}
