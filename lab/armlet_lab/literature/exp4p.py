"""EXP4.P: Beygelzimer et al. 2011, "Contextual bandit algorithms with supervised learning guarantees".

EXP4 that holds with high probability: an expert is credited with its estimated reward and with the width of that
estimate, v = sum_j advice_j / p_j. Every eligible arm keeps the probability p_min; experts have no such floor.
Decide and update O(N K d); memory O(N K d), for N linear experts (the K constant and the uniform one are added).

The theorem is for rewards in [0, 1] and a known horizon T >= K ln N: regret against the best expert is at most
6 sqrt(K T ln(N / delta)) with probability 1 - delta. Propensities are exact.
A reward that comes late is weighted by the propensity of its decision; the width is then that of the probabilities at
the time of learning, because those of the decision are not kept.
An expert whose arm is not eligible and has a number above 30 abstains, as in EXP4, and earns 0 in that step; its width
is then that of a choice in which the arm was eligible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import SEEDS, Outside, Range, chance, ends, one_of, optional, positive, settle, unit, whole
from armlet.model_file.model import check_room
from armlet.policies.base import BasePolicy
from armlet.policies.state import fresh
from armlet.reference.choice import mixed, play_drawn, shares
from armlet.types import Bool, Choice, Coins, Float64, Int64, Interaction, RewardKind, Shapes
from armlet_lab.literature.experts import ExpertSums, advised, barred_tag, expert_shapes, from_tag, known_eligible


@dataclass(frozen=True, slots=True, kw_only=True)
class EXP4P(BasePolicy[ExpertSums]):
    """Follow experts in proportion to exp(p_min / 2 (gain + c width)), and play every arm at least with p_min.

    Parameters
    ----------
    horizon
        T, from which p_min = sqrt(ln N / (K T)) follows, as in the theorem.
    delta
        The probability with which the bound may fail; c = sqrt(ln(N / delta) / (K T)).
    p_min
        Instead of the theorem's: the floor of an arm's probability and twice the rate of learning.
    n_experts, seed
        How many linear experts, and the seed they are drawn from.
    reward_range, outside
        The ends of the rewards, and whether one outside is refused or clipped.

    Examples
    --------
    >>> policy = EXP4P(horizon=10_000)
    >>> round(policy.floor(n_arms=6), 5)
    0.00882
    """

    horizon: int
    delta: float = 0.05
    p_min: float | None = None
    n_experts: int = 100
    seed: int = 0
    reward_range: Range = (0.0, 1.0)
    outside: Outside = "refuse"

    rewards: ClassVar[RewardKind] = "bounded"

    def __post_init__(self) -> None:
        settle(
            self,
            horizon=whole(),
            delta=chance(),
            p_min=optional(positive(1.0)),
            n_experts=whole(),
            seed=whole(0, SEEDS),
        )
        settle(self, reward_range=ends, outside=one_of("refuse", "clip"))

    def _log_experts(self, n_arms: int) -> float:
        return math.log(self.n_experts + n_arms + 1)

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        """Refuse a floor that leaves the experts nothing, and experts that would not fit."""
        check_room(self.n_experts * n_arms * dim, "n_experts x n_arms x dim")
        if n_arms * self.floor(n_arms) > 1:
            enough = math.ceil(n_arms * self._log_experts(n_arms))
            fix = f"horizon is {self.horizon}; use at least {enough}" if self.p_min is None else "give a smaller p_min"
            raise InvalidValueError(f"p_min is {self.floor(n_arms):.3g}, above 1/{n_arms} for {n_arms} arms: {fix}")

    def floor(self, n_arms: int) -> float:
        """Return p_min, the least chance of an eligible arm: the one that was set, or the theorem's."""
        return self.p_min or math.sqrt(self._log_experts(n_arms) / (n_arms * self.horizon))

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return expert_shapes(n_arms, dim, n_experts=self.n_experts, sums=("gain", "width"), extra=1)

    def init(self, n_arms: int, dim: int) -> ExpertSums:
        """Trust all experts alike."""
        sums, uniform = ("gain", "width"), 1
        return ExpertSums(n_arms, dim, n_experts=self.n_experts, seed=self.seed, sums=sums, extra=uniform)

    def trust(self, state: ExpertSums) -> Float64:
        """Return the share of each expert: linear, constant, uniform, (N + K + 1,)."""
        n_arms = state.n_arms
        c = math.sqrt((self._log_experts(n_arms) - math.log(self.delta)) / (n_arms * self.horizon))
        credit = state.total("gain") + c * state.total("width")
        return shares(self.floor(n_arms) / 2 * credit)

    def _chances(self, state: ExpertSums, chosen: Int64, eligible: Bool) -> Float64:
        trust, n_eligible = self.trust(state), np.count_nonzero(eligible)
        by_experts = advised(chosen, trust[:-1], eligible) + trust[-1] * eligible / n_eligible
        return mixed(by_experts, eligible, n_eligible * self.floor(state.n_arms))

    def probabilities(self, state: ExpertSums, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Lift what the experts advise to the floor of each eligible arm."""
        return self._chances(state, state.experts.chosen(x, known_eligible(eligible)), eligible)

    def decide(self, state: ExpertSums, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Draw an arm, and remember which ones the experts could not advise."""
        return play_drawn(self.probabilities(state, t, x, eligible), coins)._replace(tag=barred_tag(eligible))

    def update(self, state: ExpertSums, interaction: Interaction) -> None:
        """Credit r / p to the experts that advised the arm, and 1 / p of its advice to each."""
        fresh(interaction, type(self).__name__)
        i, eligible = interaction, from_tag(interaction.tag, state.n_arms, interaction.arm)
        gain = i.weight * unit(i.reward, self.reward_range, self.outside) / i.propensity
        n_eligible, chosen = np.count_nonzero(eligible), state.experts.chosen(i.x, eligible)
        chances = self._chances(state, chosen, eligible)
        uniform = (1.0 / chances[eligible]).sum() / n_eligible
        widths = np.append(1.0 / chances[chosen], uniform)
        state.add("gain", gain * np.append(chosen == i.arm, 1.0 / n_eligible))
        state.add("width", i.weight * widths)
