"""Contexts that were made to hurt a policy that is mostly greedy: K = d = 2, gap 0.3, noise 0.1.

Arm 0, to which ties go, is the worse one in a context that has not been seen, since an adversary may break ties.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.environments.environment import as_rows
from armlet.environments.paper import SECTION_7_CONTEXTS, Section7Growing
from armlet.parallel import Seeds
from armlet.simulation.play import run_streams
from armlet.types import Bool, Float64, Int64
from armlet_lab.paper.open_problem.simulator import Game

GAP, NOISE, SHARE = 0.3, 0.1, 0.2
ONE_HOT: Final = np.array([[0.0, 0.3], [0.5, 0.6]])  # theta: arm 1 is best in e1, by 0.5, and in e2, by 0.3
TWO_BEST: Final = GAP * math.sqrt(2.0) * np.array([[0.0, 1.0], [1.0, -1.0]])  # each is best in one of Section 7's two
REACH: Final = math.acos(GAP / math.hypot(*(ONE_HOT[1] - ONE_HOT[0])))  # up to this angle off, a gap is that large
Coin: TypeAlias = Literal["private", "public", "log2"]


def scheduled(T: int) -> Bool:
    """Return which steps a public function of t alone makes optimistic: a fifth, by the mixing of splitmix64.

    Examples
    --------
    >>> round(float(scheduled(10**5).mean()), 2)
    0.2
    """
    z = np.arange(1, T + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    chosen: Bool = (z ^ (z >> np.uint64(31))) < np.uint64(int(SHARE * 2**64))
    return chosen


Shown: TypeAlias = Callable[[np.random.Generator, int], Int64]


def _late(rng: np.random.Generator, T: int) -> Int64:
    return (np.arange(T) >= rng.uniform(0.4, 0.6) * T).astype(np.int64)


def _rare(rng: np.random.Generator, T: int) -> Int64:
    return (rng.random(T) < 0.01).astype(np.int64)


def _off_schedule(rng: np.random.Generator, T: int) -> Int64:
    second: Bool = ~scheduled(T) & (rng.random(T) < 0.2)
    return second.astype(np.int64)


def _growing(rng: np.random.Generator, T: int) -> Int64:
    X = Section7Growing(theta=as_rows(TWO_BEST), rate="sqrt").contexts(rng, T)
    common: Bool = X[:, 1] == 0  # SECTION_7_CONTEXTS has the rare one first
    return common.astype(np.int64)


def _any_of_12(rng: np.random.Generator, T: int) -> Int64:
    return rng.integers(0, 12, T)


ENVIRONMENTS: Final[dict[str, tuple[Float64, Float64 | None, Shown]]] = {  # theta, contexts, and which one comes
    "late": (ONE_HOT, np.eye(2), _late),
    "rare": (ONE_HOT, np.eye(2), _rare),
    "off schedule": (ONE_HOT, np.eye(2), _off_schedule),
    "growing": (TWO_BEST, SECTION_7_CONTEXTS / math.sqrt(2.0), _growing),  # no longer than 1
    "adaptive": (ONE_HOT, None, _any_of_12),  # contexts are drawn
}


def theta_norm(environment: str) -> float:
    """Return Q, the length of the longest theta."""
    return float(np.linalg.norm(ENVIRONMENTS[environment][0], axis=1).max())


def _pool(rng: np.random.Generator) -> Float64:
    """Draw 12 contexts of length 1 with a gap of at least 0.3."""
    best = ONE_HOT[1] - ONE_HOT[0]
    angle = math.atan2(best[1], best[0]) + rng.uniform(-REACH, REACH, 12) + math.pi * rng.integers(0, 2, 12)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCase:
    """An environment, and how the policy in it departs from the theorem's."""

    environment: str  # a key of ENVIRONMENTS
    coin: Coin = "private"
    refresh: float = 0.0


HONEST: Final = {
    name: ContextCase(environment=name) for name in ("late", "rare", "off schedule", "growing", "adaptive")
}
PUBLIC, BY_ROWS, SELDOM = "public coin", "refresh by rows", "optimism at log^2 t / t"
CONTROLS: Final = {
    PUBLIC: ContextCase(environment="off schedule", coin="public"),
    BY_ROWS: ContextCase(environment="late", refresh=0.02),
    SELDOM: ContextCase(environment="late", coin="log2"),
}
CASES: Final = HONEST | CONTROLS


def draw(seeds: Seeds, case: ContextCase, T: int, run: int, noise_scale: float = NOISE) -> tuple[Game, Float64]:
    """Draw a run of T steps, and the chance of optimism at each step; cases of one environment meet the same draws."""
    contexts, noise, _ = run_streams(seeds, case.environment, T, run)
    theta, pool, shown = ENVIRONMENTS[case.environment]
    word = seeds.rng("private coin", case.environment, T, run).random(T)
    t = np.arange(1.0, T + 1.0)
    chance = np.log(t) ** 2 / t if case.coin == "log2" else np.full(T, SHARE)
    game = Game(
        theta=theta,
        pool=_pool(contexts) if pool is None else pool,
        shown=shown(contexts, T),
        coins=scheduled(T) if case.coin == "public" else word < chance,
        noise=noise_scale * noise.standard_normal(T),
        adaptive=case.environment == "adaptive",
    )
    return game, chance
