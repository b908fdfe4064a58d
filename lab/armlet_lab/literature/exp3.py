"""Exp3: Auer, Cesa-Bianchi, Freund and Schapire 1995 and 2002, "The nonstochastic multiarmed bandit problem".

Weighs arms by the exponential of their estimated gains, sum r / p, and mixes with uniform play; rewards may be chosen
by an adversary. The gains are kept, not the weights, so nothing overflows and rows can be taken back.
Decide O(K + d); update O(d); memory O(K), or O(M (K + d)) for M contexts.

The theorem is for rewards in [0, 1] and a known horizon: regret against the best fixed arm is at most
2.63 sqrt(T K ln K). With contexts="table" gamma is still set from the whole T, while a table sees a share T_x of it.
For any gamma the regret in a table is at most (e - 1) gamma T_x + K ln K / gamma: with this one at most
2.63 sqrt(T K ln K) in each, T the whole and not the share, and (M + 1) / 2 times that in M tables together. Where M is
known, gamma = sqrt(M K ln K / ((e - 1) T)) gives 2.63 sqrt(M T K ln K) for all; give it as a setting.
An arm that is not eligible gains nothing in that step. Propensities are exact, and never below gamma / K.
With contexts="ignored" it is a floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from armlet.inputs.settings import Outside, Range, ends, one_of, positive, settle, settle_either, unit, whole
from armlet.reference.choice import mixed, play_drawn, shares
from armlet.types import Bool, Choice, Coins, Float64, Interaction, RewardKind, Shapes
from armlet_lab.literature.parts.tabular import ContextUse, Levels, Tabular, table_shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class Exp3(Tabular[Levels]):
    """Play arms in proportion to exp(gamma gain / K), and a part gamma of the time uniformly.

    Parameters
    ----------
    horizon
        T, from which gamma = min(1, sqrt(K ln K / ((e - 1) T))) follows, as in the theorem.
    gamma
        Instead of the horizon: both the rate of uniform play and of learning.
    contexts
        "ignored": all steps are one problem; "table": each distinct context is one.
    reward_range, outside
        The ends of the rewards, and whether one outside is refused or clipped.

    Examples
    --------
    >>> round(Exp3(horizon=10_000).rate(n_arms=6), 4)
    0.025
    >>> import numpy as np
    >>> policy = Exp3(gamma=0.5)
    >>> policy.probabilities(policy.init(2, 1), 1, np.ones(1), np.array([True, True]))
    array([0.5, 0.5])
    """

    horizon: int | None = None
    gamma: float | None = None
    reward_range: Range = (0.0, 1.0)
    outside: Outside = "refuse"

    rewards: ClassVar[RewardKind] = "bounded"

    def __post_init__(self) -> None:
        Tabular.__post_init__(self)
        settle(self, reward_range=ends, outside=one_of("refuse", "clip"))
        settle_either(self, horizon=whole(), gamma=positive(1.0))

    def rate(self, n_arms: int) -> float:
        """Return gamma, the share of uniform play: the one that was set, or the theorem's."""
        return self.gamma or exp_rate(n_arms, math.log(n_arms), self.horizon or 1)

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return table_shapes(n_arms, dim, "gain")

    def init(self, n_arms: int, dim: int) -> Levels:
        """Start with equal weights."""
        return gains(n_arms, dim, self.contexts)

    def probabilities(self, state: Levels, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Mix the shares of the weights with uniform play."""
        return gain_chances(state.read("gain", x), eligible, self.rate(state.n_arms))

    def decide(self, state: Levels, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Draw an arm."""
        return play_drawn(self.probabilities(state, t, x, eligible), coins)

    def update(self, state: Levels, interaction: Interaction) -> None:
        """Add r / p to the gain of the arm."""
        gain = estimated_gain(interaction, self.reward_range, self.outside)
        state.write(interaction.x)["gain"][interaction.arm] += gain


def exp_rate(n_arms: int, log_experts: float, horizon: int) -> float:
    """Return the theorem's gamma for so many arms, experts and steps.

    Examples
    --------
    >>> exp_rate(6, math.log(6), 1)
    1.0
    """
    return min(1.0, math.sqrt(n_arms * log_experts / ((math.e - 1) * horizon)))


def gains(n_arms: int, dim: int, contexts: ContextUse) -> Levels:
    """Make a table of estimated gains; they are sums over rows, whatever the policy did meanwhile.

    Examples
    --------
    >>> import numpy as np
    >>> gains(2, 1, "ignored").read("gain", np.ones(1))
    array([0., 0.])
    """
    return Levels(n_arms, dim, contexts=contexts, fields={"gain": 0.0}, level="gain", additive=True)


def gain_chances(gain: Float64, eligible: Bool, gamma: float) -> Float64:
    """Return p = (1 - gamma) w / W + gamma / K with w = exp(gamma gain / K), over the eligible arms.

    Examples
    --------
    >>> import numpy as np
    >>> gain_chances(np.zeros(2), np.array([True, True]), 0.1)
    array([0.5, 0.5])
    """
    return mixed(shares(gamma / len(gain) * gain, eligible), eligible, gamma)


def estimated_gain(interaction: Interaction, reward_range: Range, outside: Outside) -> float:
    """Return the importance-weighted reward of a row in [0, 1] / p; of a correction, what it changes.

    Examples
    --------
    >>> import numpy as np
    >>> estimated_gain(Interaction(t=1, x=np.ones(1), arm=0, reward=0.5, propensity=0.25), (0.0, 1.0), "refuse")
    2.0
    """
    i = interaction
    old = 0.0 if i.replaces is None else unit(i.replaces, reward_range, outside)
    return i.weight * (unit(i.reward, reward_range, outside) - old) / i.propensity
