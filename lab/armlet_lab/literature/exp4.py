"""EXP4: Auer, Cesa-Bianchi, Freund and Schapire 2002, "The nonstochastic multiarmed bandit problem".

Exponential weights over experts: plays what they advise, mixed with uniform play, and credits r / p to each expert that
advised the arm played.

- experts="linear": N seeded random linear policies and the K constant ones. Decide and update O(N K d); memory
  O(N K d).
- experts="all maps": every map from contexts to arms, K^M of them, exactly. An expert's weight is a product over
  contexts, so the weights of all maps sum up context by context, and the algorithm is Exp3 in each context with a
  common gamma. Decide O(K + d); update O(d); memory O(M (K + d)).

The theorem is for rewards in [0, 1], a known horizon and a class in which some expert does as well as uniform play
(the best constant one does): regret against the best expert is at most 2.63 sqrt(T K ln N). For all maps ln N is
M ln K: what hurts is the regret, not the computation. Propensities are exact, and never below gamma / K.
A map whose arm is not eligible abstains; so does a linear expert whose arm is not eligible and has a number above 30
(see `literature.experts`). Who abstains earns 0, the lowest reward, and the bound holds for experts valued
like that. Rows in flight while arms come or go credit experts by today's arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from armlet.inputs.settings import SEEDS, Outside, Range, ends, one_of, optional, positive, settle, settle_either, whole
from armlet.model_file.model import check_room
from armlet.policies.base import BasePolicy
from armlet.reference.choice import mixed, play_drawn, shares
from armlet.types import Bool, Choice, Coins, Float64, Interaction, Memory, RewardKind, Shapes
from armlet_lab.literature.experts import ExpertSums, advised, barred_tag, expert_shapes, from_tag, known_eligible
from armlet_lab.literature.table import table_shapes
from armlet_lab.literature.tabular import Levels, estimated_gain, exp_rate, gain_chances, gains

Experts: TypeAlias = Literal["linear", "all maps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EXP4(BasePolicy[ExpertSums | Levels]):
    """Follow experts in proportion to exp(gamma gain / K), and a part gamma of the time play uniformly.

    Parameters
    ----------
    experts
        "linear" or "all maps".
    n_experts, seed
        How many linear experts, and the seed they are drawn from; unused by "all maps".
    horizon
        T, from which gamma = min(1, sqrt(K ln N / ((e - 1) T))) follows, as in the theorem.
    n_contexts
        M, which the theorem's gamma needs for "all maps".
    gamma
        Instead of the horizon: both the rate of uniform play and of learning.
    reward_range, outside
        The ends of the rewards, and whether one outside is refused or clipped.

    Examples
    --------
    >>> policy = EXP4(horizon=10_000)
    >>> round(policy.rate(n_arms=6), 4)
    0.0404
    >>> round(EXP4(experts="all maps", horizon=10_000, n_contexts=8).rate(n_arms=6), 4)
    0.0707
    """

    experts: Experts = "linear"
    n_experts: int = 100
    seed: int = 0
    horizon: int | None = None
    n_contexts: int | None = None
    gamma: float | None = None
    reward_range: Range = (0.0, 1.0)
    outside: Outside = "refuse"

    memory: ClassVar[Memory] = "grows with contexts"  # constant for linear experts
    rewards: ClassVar[RewardKind] = "bounded"

    def __post_init__(self) -> None:
        settle(self, experts=one_of("linear", "all maps"), n_experts=whole(), seed=whole(0, SEEDS))
        settle(self, reward_range=ends, outside=one_of("refuse", "clip"))
        settle_either(self, horizon=whole(), gamma=positive(1.0))
        needs_count = self.experts == "all maps" and self.gamma is None
        settle(self, n_contexts=whole() if needs_count else optional(whole()))

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        """Refuse experts that would not fit."""
        if self.experts == "linear":
            check_room(self.n_experts * n_arms * dim, "n_experts x n_arms x dim")

    def rate(self, n_arms: int) -> float:
        """Return gamma, the share of uniform play: the one that was set, or the theorem's."""
        if self.gamma is not None:
            return self.gamma
        maps = (self.n_contexts or 1) * math.log(n_arms)
        log_experts = maps if self.experts == "all maps" else math.log(self.n_experts + n_arms)
        return exp_rate(n_arms, log_experts, self.horizon or 1)

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        if self.experts == "all maps":
            return table_shapes(n_arms, dim, "gain")
        return expert_shapes(n_arms, dim, n_experts=self.n_experts, sums=("gain",))

    def init(self, n_arms: int, dim: int) -> ExpertSums | Levels:
        """Trust all experts alike."""
        if self.experts == "all maps":
            return gains(n_arms, dim, "table")
        return ExpertSums(n_arms, dim, n_experts=self.n_experts, seed=self.seed, sums=("gain",), additive=True)

    def probabilities(self, state: ExpertSums | Levels, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Mix what the experts advise with uniform play."""
        gamma = self.rate(state.n_arms)
        if isinstance(state, Levels):
            return gain_chances(state.read("gain", x), eligible, gamma)
        trust = shares(gamma / state.n_arms * state.total("gain"))
        return mixed(advised(state.experts.chosen(x, known_eligible(eligible)), trust, eligible), eligible, gamma)

    def decide(self, state: ExpertSums | Levels, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Draw an arm, and remember which ones the experts could not advise."""
        choice = play_drawn(self.probabilities(state, t, x, eligible), coins)
        return choice if self.experts == "all maps" else choice._replace(tag=barred_tag(eligible))

    def update(self, state: ExpertSums | Levels, interaction: Interaction) -> None:
        """Credit r / p to the experts that advised the arm."""
        i, gain = interaction, estimated_gain(interaction, self.reward_range, self.outside)
        if isinstance(state, Levels):
            state.write(i.x)["gain"][i.arm] += gain
            return
        eligible = from_tag(i.tag, state.n_arms, i.arm)
        state.add("gain", gain * (state.experts.chosen(i.x, eligible) == i.arm))
