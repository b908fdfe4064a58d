"""Eight worlds whose truth is known exactly, each with a policy that logs there and one that is to be valued.

Contexts come from a table of `POINTS`, and sets of eligible arms from one of `SETS`, so that a value is a sum over them
and not another estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from armlet.parallel.seeds import Seeds
from armlet.policies import Algorithm1, AutoEpsilonGreedy, ContextualEpsilonGreedy
from armlet.types import Bool, Float64, Int64, Policy

POINTS: Final = 512
SETS: Final = 16

Paid = Literal["gaussian", "0 or 1"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a world is like, who logs in it and for how long."""

    policy: Policy
    n_arms: int = 3
    dim: int = 3
    paid: Paid = "0 or 1"
    level: float = 0.5  # mean reward of all arms
    spread: float = 0.15  # standard deviation of an arm's mean over contexts
    bend: float = 0.0  # as much again that no linear model sees
    eligible: float = 1.0  # chance of an arm to be eligible; two always are
    horizon: int = 5_000


KINDS: Final[dict[str, Kind]] = {
    "p/t": Kind(policy=Algorithm1(p=60, warmup="uniform")),
    "equal arms": Kind(policy=Algorithm1(p=60, warmup="uniform"), paid="gaussian", spread=0.0),
    "3 % clicks": Kind(policy=Algorithm1(p=600, warmup="uniform"), level=0.03, spread=0.008),
    "evidence": Kind(policy=ContextualEpsilonGreedy(p=60), n_arms=5, dim=4),
    "auto": Kind(policy=AutoEpsilonGreedy(horizon=5_000), n_arms=4, paid="gaussian", spread=0.5),
    "eligible sets": Kind(policy=ContextualEpsilonGreedy(p=60), n_arms=5, eligible=0.6),
    "floor": Kind(policy=ContextualEpsilonGreedy(p=20, floor=0.05), paid="gaussian", spread=0.4),
    "not linear": Kind(policy=Algorithm1(p=90, warmup="uniform"), paid="gaussian", spread=0.3, bend=0.4),
}
"""The worlds by name. "p/t" is that of the study that the library was built on."""
BY_EVIDENCE: Final = tuple(name for name, kind in KINDS.items() if isinstance(kind.policy, ContextualEpsilonGreedy))
"""Those in which what was seen of an arm decides how soon it is explored again."""


@dataclass(frozen=True, slots=True)
class World:
    """Contexts, what arms pay there on average, and a policy to be valued: always the best of other slopes."""

    kind: Kind
    contexts: Float64  # (POINTS, d)
    means: Float64  # (POINTS, K)
    slopes: Float64  # (K, d): of the target
    sets: Bool  # (sets, K): which arms are eligible, one set at a time

    def target(self, X: Float64, eligible: Bool) -> Float64:
        """Give what the policy to be valued plays, (n, K) probabilities."""
        scores = np.where(eligible, X @ self.slopes.T, -np.inf)
        return np.asarray(np.eye(self.kind.n_arms)[scores.argmax(axis=1)])

    def value(self) -> float:
        """Give the mean reward of the target over all contexts and sets of eligible arms."""
        every = np.ones((POINTS, 1), dtype=np.bool_)
        paid = [(self.target(self.contexts, every & plays) * self.means).sum(axis=1).mean() for plays in self.sets]
        return float(np.mean(paid))


def draw_world(name: str, seeds: Seeds) -> World:
    """Draw the one world of a kind."""
    kind = KINDS[name]
    rng = seeds.rng("worlds", name)
    contexts = rng.standard_normal((POINTS, kind.dim)) / np.sqrt(kind.dim)
    contexts[:, 0] = 1.0
    slopes = rng.standard_normal((kind.n_arms, kind.dim))
    means = kind.spread * (contexts @ slopes.T) / np.sqrt(2.0)
    means += kind.bend * np.sin(3.0 * contexts @ rng.standard_normal((kind.dim, kind.n_arms)))
    means += kind.level - means.mean()
    if kind.paid == "0 or 1":
        means = np.clip(means, 0.2 * kind.level, 1.0 - 0.2 * kind.level)
    other = slopes + 0.7 * rng.standard_normal(slopes.shape)
    return World(kind, contexts, means, other, _draw_sets(kind, rng))


def draw_steps(world: World, rng: np.random.Generator) -> tuple[Int64, Float64, Bool]:
    """Draw the steps of one log: which contexts, what every arm would pay, and which arms are eligible."""
    kind = world.kind
    points = rng.integers(POINTS, size=kind.horizon)
    mu = world.means[points]
    noisy = rng.random(mu.shape) < mu if kind.paid == "0 or 1" else mu + 0.5 * rng.standard_normal(mu.shape)
    return points, noisy.astype(np.float64), world.sets[rng.integers(len(world.sets), size=kind.horizon)]


def _draw_sets(kind: Kind, rng: np.random.Generator) -> Bool:
    """Draw sets of eligible arms, two arms at least in each; all arms, if all are always eligible."""
    if kind.eligible == 1.0:
        return np.ones((1, kind.n_arms), dtype=np.bool_)
    luck = rng.random((SETS, kind.n_arms))
    return np.asarray((luck < kind.eligible) | (luck <= np.sort(luck, axis=1)[:, 1:2]))
