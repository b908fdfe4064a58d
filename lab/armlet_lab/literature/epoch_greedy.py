"""Epoch-greedy: Langford and Zhang (2007), "The Epoch-Greedy Algorithm for Multi-armed Bandits with Side Information".

Epoch l plays one step at random, asks an oracle for the best policy on all such steps so far, and follows it for s_l
steps. It learns from the random steps only. Where a step lies in its epoch follows from t alone.
Decide O(K d) (with N policies O(N + K d)) and O(log t) for the epoch, from a table of O(t^(1/3)) numbers (O(sqrt(t))
with a gap, at most) that bandits with the same lengths share; update and memory as the oracle, see
`armlet_lab.literature.parts.epoch_oracles`. Propensities are exact.

Theory: rewards in [0, 1], contexts drawn alike, no horizon. Without a gap, s_l of order sqrt(l / (K log|H|)) for a
class of |H| policies gives regret of order (K log|H|)^(1/3) T^(2/3); with one, s_l exponential in l gives log T. The
paper leaves the constants open, and its s_l with a gap depends on the data; ours takes the gap as a setting.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from armlet.inputs.settings import SEEDS, Ridge, RidgeLike, number, one_of, optional, ridge_like, settle, whole
from armlet.model_file.model import check_room
from armlet.policies.base import BasePolicy
from armlet.reference.choice import best_chances, draw, play_best
from armlet.types import Bool, Choice, Coins, Float64, Interaction, LearnsFrom, Memory, Shapes, State
from armlet_lab.literature.parts.epoch_oracles import EpochOracle, FiniteOracle, RidgeOracle, TabularOracle
from armlet_lab.literature.parts.experts import barred_tag

OracleName: TypeAlias = Literal["ridge", "tabular", "finite"]


class Lengths(NamedTuple):
    """How many greedy steps epoch l has: floor(c sqrt(l / unit)), or floor(exp(c l / unit)); from 1 up to a cap."""

    growth: Literal["root", "exponential"]
    c: float
    unit: float
    cap: int

    def of(self, epoch: int) -> int:
        """Give s_l.

        Examples
        --------
        >>> [Lengths("root", 1.0, 1.0, 100).of(epoch) for epoch in (1, 3, 4, 9)]
        [1, 1, 2, 3]
        """
        if self.growth == "root":
            return min(self.cap, max(1, math.floor(self.c * math.sqrt(epoch / self.unit))))
        exponent = self.c * epoch / self.unit
        return self.cap if exponent >= math.log(self.cap) else max(1, math.floor(math.exp(exponent)))

    def last_alike(self, epoch: int) -> int:
        """Give the last epoch that is as long as this one, which is shorter than the cap."""
        s = self.of(epoch)
        reach = ((s + 1) / self.c) ** 2 if self.growth == "root" else math.log(s + 1) / self.c
        last = max(epoch, math.floor(self.unit * reach))
        while self.of(last) > s:  # the inverse may be off by rounding
            last -= 1
        while self.of(last + 1) == s:
            last += 1
        return last


@lru_cache(maxsize=256)
def _runs(lengths: Lengths, horizon: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Give the first step and s_l of every run of epochs of one length, up to the horizon."""
    starts, sizes, epoch, t = [1], [lengths.of(1)], 1, 1
    while sizes[-1] < lengths.cap:
        last = lengths.last_alike(epoch)
        t += (last - epoch + 1) * (1 + sizes[-1])
        if t > horizon:
            break
        epoch = last + 1
        starts.append(t)
        sizes.append(lengths.of(epoch))
    return tuple(starts), tuple(sizes)


def opens_epoch(t: int, lengths: Lengths) -> bool:
    """Say whether step t is the first of its epoch, the one that explores.

    Examples
    --------
    >>> [t for t in range(1, 13) if opens_epoch(t, Lengths("root", 1.0, 1.0, 100))]
    [1, 3, 5, 7, 10]
    """
    starts, sizes = _runs(lengths, 1 << t.bit_length())  # doubling horizons: few tables, each a function of its key
    run = bisect_right(starts, t) - 1
    return (t - starts[run]) % (1 + sizes[run]) == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochGreedy(BasePolicy[State]):
    """Explore once, follow the best policy so far for s_l steps, and go on with the next l.

    Parameters
    ----------
    oracle
        Who finds the best policy: "ridge", a regression; "tabular", the exact best of all maps from contexts to arms;
        "finite", the exact best of `n_policies` random linear policies, for a fixed set of arms.
    c
        Scales s_l = floor(c sqrt(l / (K log|H|))), or the exponent with a gap; the theory leaves it open. From 1 up,
        more is greedier.
    log_class
        log|H|. If left out: log(n_policies) for "finite", else K d, our choice for that many parameters. For
        "tabular" it is |X| log K, if the number of contexts is known.
    gap
        If given, s_l = floor(exp(c l gap^2 / K)): how much better the best policy is than the second, for rewards in
        [0, 1].
    cap
        The most that s_l can be.
    n_policies, seed
        The class of the "finite" oracle: how many, and which.
    ridge
        Of the "ridge" oracle; see `armlet.inputs.settings.Ridge`.

    Examples
    --------
    >>> policy = EpochGreedy(c=10.0)
    >>> [t for t in range(1, 20) if policy.explores(t, n_arms=2, dim=1)]
    [1, 7, 15]
    """

    oracle: OracleName = "ridge"
    c: float = 10.0
    log_class: float | None = None
    gap: float | None = None
    cap: int = 10**6
    n_policies: int = 200
    seed: int = 0
    ridge: RidgeLike = 1.0

    learns_from: ClassVar[LearnsFrom] = "explored steps"
    memory: ClassVar[Memory] = "grows with contexts"  # with the tabular oracle; constant with the others

    def __post_init__(self) -> None:
        scale = number(1e-3, 1e6)
        settle(self, oracle=one_of("ridge", "tabular", "finite"), c=scale, log_class=optional(scale))
        settle(self, gap=optional(scale), cap=whole(), n_policies=whole(2), seed=whole(0, SEEDS), ridge=ridge_like)

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        """Refuse policies that would not fit."""
        if self.oracle == "finite":
            check_room(self.n_policies * n_arms * dim, "n_policies x n_arms x dim")

    def _oracle(self) -> EpochOracle:
        if self.oracle == "finite":
            return FiniteOracle(self.n_policies, self.seed)
        return TabularOracle() if self.oracle == "tabular" else RidgeOracle(Ridge.parse(self.ridge))

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Give the shapes of the state's arrays."""
        return self._oracle().shapes(n_arms, dim)

    def init(self, n_arms: int, dim: int) -> State:
        """Make the state of the oracle, without rows."""
        return self._oracle().init(n_arms, dim)

    def estimates(self, state: Any) -> Float64:
        """Give the estimates of the "ridge" oracle; the others have none."""
        return self._oracle().estimates(state)

    def lengths(self, n_arms: int, dim: int) -> Lengths:
        """Give the rule for s_l."""
        if self.gap is not None:
            return Lengths("exponential", self.c, n_arms / self.gap**2, self.cap)
        usual = math.log(self.n_policies) if self.oracle == "finite" else float(n_arms * dim)
        return Lengths("root", self.c, n_arms * (usual if self.log_class is None else self.log_class), self.cap)

    def explores(self, t: int, *, n_arms: int, dim: int) -> bool:
        """Say whether step t explores."""
        return opens_epoch(t, self.lengths(n_arms, dim))

    def probabilities(self, state: Any, t: int, x: Float64, eligible: Bool) -> Float64:
        """Give all arms the same at the start of an epoch, else 1 to the arm of the best policy."""
        if self.explores(t, n_arms=state.n_arms, dim=state.dim):
            return eligible / np.count_nonzero(eligible)
        return best_chances(self._oracle().scores(state, x), eligible)

    def decide(self, state: Any, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Draw an arm at the start of an epoch and while no policy is better than another, else follow the best."""
        follows = self._oracle().prefers(state) and not self.explores(t, n_arms=state.n_arms, dim=state.dim)
        if follows:
            return play_best(self._oracle().scores(state, x), eligible, coins)
        return draw(eligible, coins)._replace(tag=barred_tag(eligible) if self.oracle == "finite" else 0)

    def update(self, state: Any, interaction: Interaction) -> None:
        """Learn from explored steps only."""
        if interaction.explored:
            self._oracle().learn(state, interaction)
