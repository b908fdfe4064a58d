"""UCB1, epsilon_n-greedy and Exp3: policies for finitely many contexts, with one table for all of them or one for each.

With contexts="ignored" they are the context-free algorithms of their papers, which on a contextual problem can at best
find the arm that is best on average: a floor. With contexts="table" every distinct context is a problem of its own, and
regret grows with the number of contexts. A table looks a row up in O(d).

UCB1: Auer, Cesa-Bianchi and Fischer 2002, "Finite-time analysis of the multiarmed bandit problem".

Plays each arm once, then the one with the highest mean + sqrt(2 ln n / n_a), where n counts the rows of all arms.
Decide O(K + d); update O(d); memory O(K), or O(M (K + d)) for M contexts.

The theorem is for independent rewards in [0, 1], so rewards are mapped there from `reward_range`; regret is at most
8 sum_a ln T / gap_a + (1 + pi^2 / 3) sum_a gap_a in each table. It plays without chance but for ties, so propensities,
which are exact, are mostly 0 and 1. With contexts="ignored" it is a floor.

Epsilon_n-greedy: Auer, Cesa-Bianchi and Fischer 2002, "Finite-time analysis of the multiarmed bandit problem".

Explores with probability min(1, c K / (gap^2 t)), else plays the best empirical mean. The clock t is that of the table:
the rows learned in this context, plus one; decisions do not count, for deciding changes nothing.
Decide O(K + d); update O(d); memory O(K), or O(M (K + d)) for M contexts.

The theorem is for rewards in [0, 1], a gap between the two best means that is known from below, and c > 5; regret is
then O(K log T / gap^2) in each table. Propensities are exact. With contexts="ignored" it is a floor.

Exp3: Auer, Cesa-Bianchi, Freund and Schapire 1995 and 2002, "The nonstochastic multiarmed bandit problem".

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

import numpy as np

from armlet.inputs.settings import Range, ends, one_of, positive, settle, whole
from armlet.policies.base import BasePolicy
from armlet.policies.state import check_counted
from armlet.reference.choice import best_chances, mixed, play_best, play_drawn, play_or_explore, shares
from armlet.types import Bool, Choice, Coins, Float64, Interaction, Memory, RewardKind, Shapes, StateT
from armlet_lab.literature.bounded import Outside, settle_either, unit
from armlet_lab.literature.table import ContextTable, ContextUse, table_shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabular(BasePolicy[StateT]):
    """The common part of such policies; not one by itself.

    Examples
    --------
    >>> UCB1(contexts="tables")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: contexts is 'tables'; choose 'ignored' or 'table'
    """

    contexts: ContextUse = "ignored"

    memory: ClassVar[Memory] = "grows with contexts"  # a single row if they are ignored

    def __post_init__(self) -> None:
        settle(self, contexts=one_of("ignored", "table"))


class Means(ContextTable):
    """How often each arm was learned from in each context, and the sum of its rewards.

    Examples
    --------
    >>> state = Means(2, 1, "ignored")
    >>> state.add(Interaction(t=1, x=np.ones(1), arm=1, reward=0.5), 0.5, None)
    >>> state.means(np.ones(1))
    array([inf, 0.5])
    """

    def __init__(self, n_arms: int, dim: int, contexts: ContextUse) -> None:
        super().__init__(n_arms, dim, contexts=contexts, fields={"n": 0.0, "sum_r": 0.0}, additive=True)

    def add(self, interaction: Interaction, reward: float, replaces: float | None) -> None:
        """Add a row, take it back, or change its reward: all of them are sums."""
        i = interaction
        if replaces is not None or i.weight < 0.0:
            check_counted(float(self.read("n", i.x)[i.arm]), i.weight)
        row = self.write(i.x)
        row["sum_r"][i.arm] += i.weight * (reward - (replaces or 0.0))
        if replaces is None:
            row["n"][i.arm] += i.weight

    def means(self, x: Float64) -> Float64:
        """Return the mean reward of each arm, (K,): infinity for one without rows, so that it is tried first."""
        n, sum_r = self.read("n", x), self.read("sum_r", x)
        known = n > TRACE
        return np.where(known, sum_r / np.where(known, n, 1.0), np.inf)


class Levels(ContextTable):
    """A table of which one field only means something relative to the other arms, such as a log-weight.

    A new arm starts at the mean of the others: at 0 it would be far ahead or far behind for no reason.

    Examples
    --------
    >>> state = Levels(2, 1, contexts="ignored", fields={"gain": 0.0}, level="gain")
    >>> state.write(np.ones(1))["gain"][:] = 4.0, 8.0
    >>> state.add_arm()
    >>> state.read("gain", np.ones(1))
    array([4., 8., 6.])
    """

    def __init__(
        self,
        n_arms: int,
        dim: int,
        *,
        contexts: ContextUse,
        fields: dict[str, float],
        level: str,
        additive: bool = False,
    ) -> None:
        super().__init__(n_arms, dim, contexts=contexts, fields=fields, additive=additive)
        self._level = level

    def add_arm(self) -> None:
        """Return every context one more arm, neither ahead nor behind."""
        super().add_arm()
        for row in self._rows:
            row[self._level][-1] = row[self._level][:-1].mean()


TRACE = 1e-9  # what rounding may leave of a count whose rows were all taken back


@dataclass(frozen=True, slots=True, kw_only=True)
class UCB1(Tabular[Means]):
    """Play the arm whose mean could be highest.

    Parameters
    ----------
    contexts
        "ignored": all steps are one problem; "table": each distinct context is one, with counts of its own.
    reward_range, outside
        The ends of the rewards, and whether one outside is refused or clipped.
    width_scale
        Multiplies the width sqrt(2 ln n / n_a). 1 is the theorem's; smaller often does better.

    Examples
    --------
    >>> policy = UCB1()
    >>> state = policy.init(2, 1)
    >>> policy.update(state, Interaction(t=1, x=np.ones(1), arm=0, reward=1.0))
    >>> policy.probabilities(state, 2, np.ones(1), np.array([True, True]))  # arm 1 was never tried
    array([0., 1.])
    """

    reward_range: Range = (0.0, 1.0)
    outside: Outside = "refuse"
    width_scale: float = 1.0

    rewards: ClassVar[RewardKind] = "bounded"

    def __post_init__(self) -> None:
        Tabular.__post_init__(self)
        settle(self, width_scale=positive(), reward_range=ends, outside=one_of("refuse", "clip"))

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return table_shapes(n_arms, dim, "n", "sum_r")

    def init(self, n_arms: int, dim: int) -> Means:
        """Start a table in which no arm has rows, so that each is tried once."""
        return Means(n_arms, dim, self.contexts)

    def scores(self, state: Means, x: Float64) -> Float64:
        """Return mean + width, (K,), for rewards in [0, 1]; infinite for arms that were never tried."""
        n = state.read("n", x)
        log_n = math.log(max(1.0, float(n.sum())))
        widths = np.sqrt(2.0 * log_n / np.maximum(n, 1e-9))
        return state.means(x) + self.width_scale * widths

    def probabilities(self, state: Means, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Share everything among the best."""
        return best_chances(self.scores(state, x), eligible)

    def decide(self, state: Means, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        """Play the best, ties broken by the coins."""
        return play_best(self.scores(state, x), eligible, coins)

    def update(self, state: Means, interaction: Interaction) -> None:
        """Count the row and add its reward."""
        old = interaction.replaces
        replaces = None if old is None else unit(old, self.reward_range, self.outside)
        state.add(interaction, unit(interaction.reward, self.reward_range, self.outside), replaces)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonNGreedy(Tabular[Means]):
    """Explore at a rate that falls like 1/t, else play the arm with the highest mean so far.

    Parameters
    ----------
    gap
        At most the difference between the best and the second best mean, in units of the range of rewards.
    c
        How much to explore. The theorem asks for more than 5; in practice far less does better.
    contexts
        "ignored": all steps are one problem; "table": each distinct context is one, with a clock of its own.

    Examples
    --------
    >>> policy = EpsilonNGreedy(gap=0.5, c=5)
    >>> policy.exploration_rate(4, 60.0), policy.exploration_rate(4, 160.0)
    (1.0, 0.5)
    """

    gap: float
    c: float = 6.0

    def __post_init__(self) -> None:
        Tabular.__post_init__(self)
        settle(self, gap=positive(), c=positive())

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return table_shapes(n_arms, dim, "n", "sum_r")

    def init(self, n_arms: int, dim: int) -> Means:
        """Start a table in which no arm has rows, so that each is tried once."""
        return Means(n_arms, dim, self.contexts)

    def exploration_rate(self, n_arms: int, clock: float) -> float:
        """Return the probability that a step explores."""
        return min(1.0, self.c * n_arms / (self.gap**2 * clock))

    def _rate(self, state: Means, x: Float64) -> float:
        return self.exploration_rate(state.n_arms, max(1.0, float(state.read("n", x).sum()) + 1.0))

    def _chances(self, means: Float64, rate: float, eligible: Bool) -> Float64:
        return mixed(best_chances(means, eligible), eligible, rate)

    def probabilities(self, state: Means, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Return the exact probability of each arm: exploration, plus the share of the best means."""
        return self._chances(state.means(x), self._rate(state, x), eligible)

    def decide(self, state: Means, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        """Toss the coin: any eligible arm, or the best."""
        means, rate = state.means(x), self._rate(state, x)
        return play_or_explore(means, eligible, coins, self._chances(means, rate, eligible), rate)

    def update(self, state: Means, interaction: Interaction) -> None:
        """Count the row and add its reward."""
        state.add(interaction, interaction.reward, interaction.replaces)


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
    """Make a table of estimated gains; they are sums over rows, regardless of what the policy did meanwhile.

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
