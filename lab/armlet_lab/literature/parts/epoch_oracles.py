"""What epoch-greedy asks for the best policy so far: three oracles, and what each keeps of explored steps.

- `RidgeOracle`: regression, then the arm with the highest estimate. State O(K d^2).
- `TabularOracle`: the best of all maps from contexts to arms. Its sum of r / propensity over the steps where a map
  agrees with what was played is a sum over contexts, so the best map takes the best arm of each. State O(|X| K).
- `FiniteOracle`: the best of N random linear policies, with a running sum for each. State O(N K d). A policy plays the
  best of the arms that are eligible; one that prefers an arm which is not, with a number above 30, earns 0 in that
  step, since a decision cannot remember more (`armlet_lab.literature.parts.experts`).

The last two are exact minimisers of the empirical risk over their class. The same over all linear policies is NP-hard,
so it is not offered. Rows of a log come without propensities and count as if they had 1: give those of a log that was
played uniformly the weight K, so that they count as live ones do. The last two compare sums, not means: an arm that is
eligible in fewer steps than another has a smaller sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from armlet.errors import InvalidTypeError, InvalidValueError, MergeError
from armlet.inputs.settings import Ridge
from armlet.kernel import Statistics, sum_shapes
from armlet.policies.base import record, sums
from armlet.policies.state import Arrays
from armlet.types import Float64, Interaction, Shapes, State
from armlet_lab.literature.parts.experts import LinearExperts, from_tag
from armlet_lab.literature.parts.tabular import Table, table_shapes


class EpochOracle(Protocol):
    """Learns from explored steps and scores the arms of a context; the best policy plays the highest score."""

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Give the shapes of the state's arrays."""

    def init(self, n_arms: int, dim: int) -> State:
        """Make the state of an oracle without rows."""

    def estimates(self, state: Any) -> Float64:
        """Give theta_hat, (K, d), or TypeError."""

    def scores(self, state: Any, x: Float64) -> Float64:
        """Score every arm, (K,)."""

    def prefers(self, state: Any) -> bool:
        """Say whether some context may have a best arm; until then steps explore, and are learned."""

    def learn(self, state: Any, interaction: Interaction) -> None:
        """Take in an explored step."""


def _gain(interaction: Interaction) -> float:
    """Give what the step adds to the sum of a policy that agrees with it: r / propensity, by weight."""
    i = interaction
    reward = i.reward if i.replaces is None else i.reward - i.replaces
    return i.weight * reward / i.propensity


@dataclass(frozen=True, slots=True)
class RidgeOracle:
    """Ridge regression for every arm."""

    ridge: Ridge

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Give the shapes of the state's arrays."""
        return sum_shapes(n_arms, dim)

    def init(self, n_arms: int, dim: int) -> Statistics:
        """Start empty sums."""
        return sums(self.ridge, n_arms, dim)

    def estimates(self, state: Statistics) -> Float64:
        """Solve the regression."""
        return state.estimates()

    def scores(self, state: Statistics, x: Float64) -> Float64:
        """Give x' theta_hat."""
        return state.scores(x)

    def prefers(self, state: Statistics) -> bool:
        """Say whether there is a row."""
        return bool(state.n.any())

    def learn(self, state: Statistics, interaction: Interaction) -> None:
        """Add the row to the sums of its arm."""
        record(state, interaction)


@dataclass(frozen=True, slots=True)
class TabularOracle:
    """All maps from contexts to arms."""

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Give the shapes of the state's arrays."""
        return table_shapes(n_arms, dim, "value")

    def init(self, n_arms: int, dim: int) -> Table:
        """Start a table without contexts."""
        return Table(n_arms, dim, contexts="table", fields={"value": 0.0}, additive=True)

    def estimates(self, state: Table) -> Float64:  # noqa: ARG002
        """Refuse: a table is no linear model."""
        raise InvalidTypeError("EpochGreedy(oracle='tabular') keeps no linear estimates; ask predict_proba")

    def scores(self, state: Table, x: Float64) -> Float64:
        """Give the sums of the context."""
        return state.read("value", x)

    def prefers(self, state: Table) -> bool:
        """Say whether a context was met."""
        return state.n_contexts > 0

    def learn(self, state: Table, interaction: Interaction) -> None:
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
        """Give the shapes of the state's arrays."""
        return {"value": (self.n_policies,)}

    def init(self, n_arms: int, dim: int) -> PolicyValues:
        """Draw the policies; none is better than another."""
        return PolicyValues(n_arms, dim, n_policies=self.n_policies, seed=self.seed)

    def estimates(self, state: PolicyValues) -> Float64:  # noqa: ARG002
        """Refuse: policies are valued, not arms."""
        raise InvalidTypeError("EpochGreedy(oracle='finite') keeps no linear estimates; ask predict_proba")

    def scores(self, state: PolicyValues, x: Float64) -> Float64:
        """Give what the best policy, the first of those that tie, thinks of each arm."""
        best: Float64 = state.policies.theta[:, int(state["value"].argmax())] @ x
        return best

    def prefers(self, state: PolicyValues) -> bool:  # noqa: ARG002
        """Say yes: before the first row it is the first policy that plays, and its arm depends on x."""
        return True

    def learn(self, state: PolicyValues, interaction: Interaction) -> None:
        """Add to the sums of the policies that would have played the same among the arms that were eligible."""
        i = interaction
        agrees = state.policies.linear(i.x, from_tag(i.tag, state.n_arms, i.arm)) == i.arm
        state["value"][agrees] += _gain(i)
