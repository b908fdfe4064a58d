"""The words that every layer shares: contexts, coins, choices, interactions, and what a policy is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from armlet.core.kernel import Schedule, Statistics

Float64: TypeAlias = npt.NDArray[np.float64]
Bool: TypeAlias = npt.NDArray[np.bool_]
Int64: TypeAlias = npt.NDArray[np.int64]

Arm: TypeAlias = str | int
"""What a user calls an arm. Inside, arms are indices 0..K-1."""

Context: TypeAlias = npt.ArrayLike | Sequence[float] | Mapping[str, float]
"""One context at the border: a numpy row, a list, or a mapping by feature name."""

LearnsFrom: TypeAlias = Literal["explored steps", "every step"]


@runtime_checkable
class ArrowTable(Protocol):
    """Any table that speaks the Arrow C stream interface: pandas, polars, pyarrow and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Contexts: TypeAlias = npt.ArrayLike | Sequence[Sequence[float]] | Sequence[Mapping[str, float]] | ArrowTable
"""Many contexts at the border: a matrix, a list of rows or mappings, or a table with named columns."""


class Coins(NamedTuple):
    """All the randomness of step t, a function of (seed, t) alone."""

    coin: float  # uniform on [0, 1): explore if below the exploration rate
    pick: int  # 64 random bits: which arm an exploration plays
    tie: int  # 64 random bits: which of the tied best arms an exploitation plays
    mark: int  # 64 random bits: the part of the decision's id that tells two bandits apart


class Choice(NamedTuple):
    """What a policy answers for one context."""

    arm: int
    propensity: float  # the probability with which the policy plays this arm at this step
    explored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """One event that a state learns from; folding them in order of arrival rebuilds the state.

    A negative weight takes back an earlier interaction. `replaces` is the reward that this one
    corrects: the context then already counts, only its reward changes.
    """

    t: int
    x: Float64  # (d,)
    arm: int
    reward: float
    propensity: float = 1.0
    explored: bool = True
    weight: float = 1.0
    replaces: float | None = None


class Policy(Protocol):
    """A rule for choosing arms: frozen settings, and pure questions about a state that others keep."""

    learns_from: ClassVar[LearnsFrom]

    def check(self, n_arms: int, dim: int, t: int) -> None:
        """Refuse a problem that the policy cannot start on at step t."""

    def init(self, n_arms: int, dim: int) -> Statistics:
        """Make the state of a policy that knows nothing."""

    def schedule(self) -> Schedule | None:
        """Describe the policy to the kernel; None if it runs in Python."""

    def estimates(self, state: Statistics) -> Float64:
        """Give theta_hat, (K, d)."""

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Give the probability of each arm at step t, (K,)."""

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Choose an arm. A query: it changes nothing but cached estimates."""

    def update(self, state: Statistics, interaction: Interaction) -> None:
        """Learn. A command, without randomness."""
