"""Epoch-greedy: Langford and Zhang (2007), "The Epoch-Greedy Algorithm for Multi-armed Bandits with Side Information".

Epoch l plays one step at random, asks an oracle for the best policy on all such steps so far, and follows it for s_l
steps. It learns from the random steps only. Where a step lies in its epoch follows from t alone.
Decide O(K d) (with N policies O(N + K d)) and O(log t) for the epoch, from a table of O(t^(1/3)) numbers (O(sqrt(t))
with a gap, at most) that bandits with the same lengths share; update and memory as the oracle. Propensities are exact.

Theory: rewards in [0, 1], contexts drawn alike, no horizon. Without a gap, s_l of order sqrt(l / (K log|H|)) for a
class of |H| policies gives regret of order (K log|H|)^(1/3) T^(2/3); with one, s_l exponential in l gives log T. The
paper leaves the constants open, and its s_l with a gap depends on the data; ours takes the gap as a setting.

Three oracles, and what each keeps of explored steps:

- `RidgeOracle`: regression, then the arm with the highest estimate. State O(K d^2).
- `TabularOracle`: the best of all maps from contexts to arms. Its sum of r / propensity over the steps where a map
  agrees with what was played is a sum over contexts, so the best map takes the best arm of each. State O(|X| K).
- `FiniteOracle`: the best of N random linear policies, with a running sum for each. State O(N K d). A policy plays the
  best of the arms that are eligible; one that prefers an arm which is not, with a number above 30, earns 0 in that
  step, since a decision cannot remember more (`armlet_lab.literature.experts`).

The last two are exact minimisers of the empirical risk over their class. The same over all linear policies is NP-hard,
so it is not offered. Rows of a log come without propensities and count as if they had 1: give those of a log that was
played uniformly the weight K, so that they count as live ones do. The last two compare sums, not means: an arm that is
eligible in fewer steps than another has a smaller sum.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from armlet.errors import InvalidTypeError, InvalidValueError, MergeError
from armlet.inputs.settings import SEEDS, Ridge, RidgeLike, number, one_of, optional, ridge_like, settle, whole
from armlet.kernel import Statistics, sum_shapes
from armlet.policies.base import BasePolicy, record, sums
from armlet.policies.state import Arrays
from armlet.reference.choice import best_chances, draw, play_best
from armlet.types import Bool, Choice, Coins, Float64, Interaction, LearnsFrom, Memory, Shapes, State
from armlet_lab.literature.bounded import check_room
from armlet_lab.literature.experts import LinearExperts, barred_tag, from_tag
from armlet_lab.literature.table import ContextTable, table_shapes


class EpochOracle(Protocol):
    """Learns from explored steps and scores the arms of a context; the best policy plays the highest score."""

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""

    def init(self, n_arms: int, dim: int) -> State:
        """Make the state of an oracle without rows."""

    def estimates(self, state: Any) -> Float64:
        """Return theta_hat, (K, d), or TypeError."""

    def scores(self, state: Any, x: Float64) -> Float64:
        """Score every arm, (K,)."""

    def prefers(self, state: Any) -> bool:
        """Return whether some context may have a best arm; until then steps explore, and are learned."""

    def learn(self, state: Any, interaction: Interaction) -> None:
        """Learn an explored step."""


def _gain(interaction: Interaction) -> float:
    """Return what the step adds to the sum of a policy that agrees with it: r / propensity, by weight."""
    i = interaction
    reward = i.reward if i.replaces is None else i.reward - i.replaces
    return i.weight * reward / i.propensity


@dataclass(frozen=True, slots=True)
class RidgeOracle:
    """Ridge regression for every arm."""

    ridge: Ridge

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return sum_shapes(n_arms, dim)

    def init(self, n_arms: int, dim: int) -> Statistics:
        """Start empty sums."""
        return sums(self.ridge, n_arms, dim)

    def estimates(self, state: Statistics) -> Float64:
        """Solve the regression."""
        return state.estimates()

    def scores(self, state: Statistics, x: Float64) -> Float64:
        """Return x' theta_hat."""
        return state.scores(x)

    def prefers(self, state: Statistics) -> bool:
        """Return whether there is a row."""
        return bool(state.n.any())

    def learn(self, state: Statistics, interaction: Interaction) -> None:
        """Add the row to the sums of its arm."""
        record(state, interaction)


@dataclass(frozen=True, slots=True)
class TabularOracle:
    """All maps from contexts to arms."""

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return table_shapes(n_arms, dim, "value")

    def init(self, n_arms: int, dim: int) -> ContextTable:
        """Start a table without contexts."""
        return ContextTable(n_arms, dim, contexts="table", fields={"value": 0.0}, additive=True)

    def estimates(self, state: ContextTable) -> Float64:  # noqa: ARG002
        """Refuse: a table is no linear model."""
        raise InvalidTypeError("EpochGreedy(oracle='tabular') keeps no linear estimates; ask predict_proba")

    def scores(self, state: ContextTable, x: Float64) -> Float64:
        """Return the sums of the context."""
        return state.read("value", x)

    def prefers(self, state: ContextTable) -> bool:
        """Return whether a context was met."""
        return state.n_contexts > 0

    def learn(self, state: ContextTable, interaction: Interaction) -> None:
        """Add to the sum of this context and arm."""
        gain = _gain(interaction)
        state.write(interaction.x)["value"][interaction.arm] += gain


class PolicyValues(Arrays):
    """The running sums of N random linear policies, which are drawn again from the seed rather than saved.

    Examples
    --------
    >>> state = PolicyValues(2, 3, n_policies=5, seed=1)
    >>> state["value"].shape, state.policies.theta.shape
    ((5,), (2, 5, 3))
    """

    def __init__(self, n_arms: int, dim: int, *, n_policies: int, seed: int) -> None:
        super().__init__(n_arms, dim, by_arm={}, whole={"value": np.zeros(n_policies)}, additive=True)
        self.policies = LinearExperts.draw(n_experts=n_policies, n_arms=n_arms, dim=dim, seed=seed)

    @property
    def nbytes(self) -> int:
        """Bytes of the sums and of the policies."""
        return self["value"].nbytes + self.policies.theta.nbytes

    def add_arm(self) -> None:
        """Refuse: policies choose among a fixed set of arms."""
        raise InvalidValueError(
            "oracle is 'finite', whose policies are for a fixed set of arms; start with all of them"
        )

    def remove_arm(self, arm: int) -> None:
        """Refuse: policies choose among a fixed set of arms."""
        raise InvalidValueError(
            f"oracle is 'finite', whose policies are for a fixed set of arms; retire arm {arm} instead"
        )

    def merge(self, other: Self, into: list[int]) -> None:
        """Add the other's sums, if its arms are in the same order: the policies go by it."""
        if into != list(range(self.n_arms)):
            raise MergeError("oracle is 'finite' and the arms are in another order there; use the same list of arms")
        super().merge(other, into)


@dataclass(frozen=True, slots=True)
class FiniteOracle:
    """N random linear policies."""

    n_policies: int
    seed: int

    def shapes(self, n_arms: int, dim: int) -> Shapes:  # noqa: ARG002
        """Return the shapes of the state's arrays."""
        return {"value": (self.n_policies,)}

    def init(self, n_arms: int, dim: int) -> PolicyValues:
        """Draw the policies; none is better than another."""
        return PolicyValues(n_arms, dim, n_policies=self.n_policies, seed=self.seed)

    def estimates(self, state: PolicyValues) -> Float64:  # noqa: ARG002
        """Refuse: policies are valued, not arms."""
        raise InvalidTypeError("EpochGreedy(oracle='finite') keeps no linear estimates; ask predict_proba")

    def scores(self, state: PolicyValues, x: Float64) -> Float64:
        """Return what the best policy, the first of those that tie, thinks of each arm."""
        best: Float64 = state.policies.theta[:, int(state["value"].argmax())] @ x
        return best

    def prefers(self, state: PolicyValues) -> bool:  # noqa: ARG002
        """Return True: before the first row it is the first policy that plays, and its arm depends on x."""
        return True

    def learn(self, state: PolicyValues, interaction: Interaction) -> None:
        """Add to the sums of the policies that would have played the same among the arms that were eligible."""
        i = interaction
        agrees = state.policies.linear(i.x, from_tag(i.tag, state.n_arms, i.arm)) == i.arm
        state["value"][agrees] += _gain(i)


OracleName: TypeAlias = Literal["ridge", "tabular", "finite"]


class Lengths(NamedTuple):
    """How many greedy steps epoch l has: floor(c sqrt(l / unit)), or floor(exp(c l / unit)); from 1 up to a cap."""

    growth: Literal["root", "exponential"]
    c: float
    unit: float
    cap: int

    def of(self, epoch: int) -> int:
        """Return s_l.

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
        """Return the last epoch that is as long as this one, which is shorter than the cap."""
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
    """Return the first step and s_l of every run of epochs of one length, up to the horizon."""
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
    """Return whether step t is the first of its epoch, the one that explores.

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
        Of the "ridge" oracle; see `armlet.reference.ridge`.

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
        """Return the shapes of the state's arrays."""
        return self._oracle().shapes(n_arms, dim)

    def init(self, n_arms: int, dim: int) -> State:
        """Make the state of the oracle, without rows."""
        return self._oracle().init(n_arms, dim)

    def estimates(self, state: Any) -> Float64:
        """Return the estimates of the "ridge" oracle; the others have none."""
        return self._oracle().estimates(state)

    def lengths(self, n_arms: int, dim: int) -> Lengths:
        """Return the rule for s_l."""
        if self.gap is not None:
            return Lengths("exponential", self.c, n_arms / self.gap**2, self.cap)
        usual = math.log(self.n_policies) if self.oracle == "finite" else float(n_arms * dim)
        return Lengths("root", self.c, n_arms * (usual if self.log_class is None else self.log_class), self.cap)

    def explores(self, t: int, *, n_arms: int, dim: int) -> bool:
        """Return whether step t explores."""
        return opens_epoch(t, self.lengths(n_arms, dim))

    def probabilities(self, state: Any, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return all arms the same at the start of an epoch, else 1 to the arm of the best policy."""
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
