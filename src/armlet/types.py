"""The words that every layer shares: contexts, coins, choices, interactions, and what a policy is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from armlet.kernel import Rule

__version__ = "0.1.0"

Float64: TypeAlias = npt.NDArray[np.float64]
Bool: TypeAlias = npt.NDArray[np.bool_]
Int64: TypeAlias = npt.NDArray[np.int64]

Arm: TypeAlias = str | int
"""What a user calls an arm. Inside, arms are indices 0..K-1."""

Reward: TypeAlias = float | Mapping[str, float]
"""What a decision brought: a number, or several outcomes by name."""

Context: TypeAlias = npt.ArrayLike | Sequence[float] | Mapping[str, object]
"""One context at the border: a numpy row, a list, or a mapping by feature name, or by column if there is an encoder."""

Array: TypeAlias = npt.NDArray[np.generic]

Shapes: TypeAlias = Mapping[str, tuple[int | None, ...]]
"""What arrays a state has, by name, said without making them; None where any length will do."""

Mode: TypeAlias = Literal["exploring", "greedy"]
"""How a bandit plays: as its next decision would, with its exploration; or the arm with the highest estimate."""

LearnsFrom: TypeAlias = Literal["explored steps", "every step"]

RewardKind: TypeAlias = Literal["any", "bounded", "binary"]
"""What rewards a policy can learn from: any, those within its `reward_range`, or 0 and 1 only."""

Memory: TypeAlias = Literal["constant", "grows with contexts", "grows with t"]
"""How the memory of a policy's state depends on time: not at all, with the number of distinct contexts, or with t."""

AbsentArms: TypeAlias = Literal["no hindrance", "hinder"]
"""Whether a policy finds the best of the arms that play while others are retired or not eligible."""


class Keep(Enum):
    """Says that something stays as it is, where None is a value."""

    KEEP = "keep"

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final = Keep.KEEP


@runtime_checkable
class ArrowTable(Protocol):
    """Any table that speaks the Arrow C stream interface: pandas, polars, pyarrow and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Contexts: TypeAlias = (
    npt.ArrayLike | Sequence[Sequence[float]] | Sequence[Mapping[str, object]] | Mapping[str, Any] | ArrowTable
)
"""Many contexts at the border: a matrix, a list of rows or mappings, or a table with named columns; with an encoder, a
mapping of columns too."""


class Coins(NamedTuple):
    """All the randomness of step t, a function of (seed, t) alone."""

    coin: float  # uniform on [0, 1): explore if below the exploration rate; what else it decides, a policy says
    pick: int  # 64 random bits: which arm an exploration plays
    tie: int  # 64 random bits: which of the tied best arms an exploitation plays
    mark: int  # 64 random bits: the part of the decision's id that tells two bandits apart


class Choice(NamedTuple):
    """What a policy answers for one context."""

    arm: int
    propensity: float  # the probability with which the policy plays this arm at this step, over all coins
    explored: bool
    tag: int = 0  # what the policy wants to find again in the interaction, whenever the reward comes
    exploration_propensity: float | None = (
        None  # the probability of the arm given that the step explores, if there is one
    )
    exploration_rate: float | None = None  # the probability that the step explores, if there is one
    min_exploration_probability: float | None = (
        None  # the smallest probability of an eligible arm, given that the step explores
    )
    greedy: bool | None = None  # of an explored arm: does it look best; None if nobody looked
    optimistic: bool = False  # whether the coin made it a step that plays the highest bound; no such step explores


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
    tag: int = 0  # from the choice


class State(Protocol):
    """What a policy remembers: arrays, and what happens to them when arms come, go or are merged."""

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""

    def arrays(self) -> dict[str, Array]:
        """Return all that must be kept, by name, in copies."""

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned, or raise ValueError."""

    def copy(self) -> State:
        """Make another that goes its own way."""

    def add_arm(self) -> None:
        """Make room for one more arm, of which nothing is known."""

    def remove_arm(self, arm: int) -> None:
        """Drop an arm and all that is known of it; those after it move up by one."""

    def merge(self, other: Any, into: list[int]) -> None:
        """Add what another state knows, its arm i to arm into[i]; MergeError where knowledge does not add up."""


EpochUnderWay: TypeAlias = tuple[int, int, State, float]
"""What units meet: the number of the epoch, the step of its first decision of a unit, the state that
it found, and the price of a budget then."""


class Snapshot(NamedTuple):
    """A bandit at one moment, but for its settings."""

    t: int  # decisions taken so far
    arms: list[Arm]
    retired: list[Arm]
    state: State
    seed: int
    streams: list[int]  # other seeds whose decisions it may learn from
    epoch: EpochUnderWay | None = None
    spending: Float64 | None = None  # of a budget: what its pacer keeps


if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # of checkers alone: Python has it from 3.13 on

    StateT = TypeVarWithDefault("StateT", bound=State, default=Any)
else:
    StateT = TypeVar("StateT", bound=State)


Over: TypeAlias = Literal["arms", "pairs"]
"""What a policy learns about: arms, each by itself, or pairs of a context and an action with features."""


class Policy(Protocol[StateT]):
    """A rule for choosing arms: frozen settings, and pure questions about a state that others keep.

    States are those that the policy's own `init` made, so its methods are written for that kind alone. `Policy` by
    itself is one with any state. `armlet.policies.base.BasePolicy` has what most policies share.

    One attribute may be left out: `absent_arms`, which is "no hindrance" unless a policy says otherwise (`AbsentArms`).
    """

    learns_from: ClassVar[LearnsFrom]
    memory: ClassVar[Memory]
    rewards: ClassVar[RewardKind]

    def check(self, n_arms: int, dim: int, t: int) -> None:
        """Refuse a problem that the policy cannot start on at step t."""

    def init(self, n_arms: int, dim: int) -> StateT:
        """Make the state of a policy that knows nothing."""

    def rule(self) -> Rule | None:
        """Describe the policy to the kernel; None if it runs in Python."""

    def estimates(self, state: StateT) -> Float64:
        """Return theta_hat, (K, d); TypeError from a policy that has none."""

    def probabilities(self, state: StateT, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return the probability of each arm at step t, (K,)."""

    def decide(self, state: StateT, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Choose an arm. A query: it changes nothing but cached estimates."""

    def update(self, state: StateT, interaction: Interaction) -> None:
        """Learn. A command, without randomness."""


class Interval(NamedTuple):
    """Where something lies, mostly: 95 % of the time unless said otherwise."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number computed from all runs, with its 95 % interval.

    Examples
    --------
    >>> f"{Estimate(1.05, 0.97, 1.12):.1f}"
    '1.1 [1.0 to 1.1]'
    """

    value: float
    low: float
    high: float

    @property
    def interval(self) -> Interval:
        """Its two ends."""
        return Interval(self.low, self.high)

    def __format__(self, spec: str) -> str:
        return f"{self.value:{spec}} [{self.low:{spec}} to {self.high:{spec}}]"
