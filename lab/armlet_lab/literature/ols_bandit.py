"""The OLS bandit, forced sampling: Goldenshluger and Zeevi (2013); Bastani and Bayati (2020), Algorithm "OLS Bandit".

Each arm is forced at steps fixed in advance, about q log2(T / K q) of them in T. In between, the forced rows alone rule
out arms that are clearly worse, and among the rest the estimate from all rows decides: exploitation's data are used,
but only where clean data cannot tell.
Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2) regardless of t, twice that of Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armlet.inputs.settings import Ridge, Units, origin_like, positive, settle, units_word, whole
from armlet.kernel import Statistics
from armlet.policies.base import BasePolicy, record
from armlet.policies.state import check_counted
from armlet.reference.choice import below, best_arms, force
from armlet.types import Bool, Choice, Coins, Float64, Int64, Interaction, Shapes
from armlet_lab.literature.layers import Layers, layered_shapes

FORCED, ALL = 0, 1  # the layers of the state: rows of forced steps, rows of all steps


@dataclass(frozen=True, slots=True, kw_only=True)
class OLSBandit(BasePolicy[Layers]):
    """Force each arm at steps fixed in advance; in between play the best that forced rows do not rule out.

    Arm i is forced at steps (2^n - 1) K q + j for j = q i + 1 .. q (i + 1) and n = 0, 1, 2, ...
    A forced step whose arm may not be played is played as if it were not forced. Arms that come or go change K, and
    with it the steps from then on.

    Parameters
    ----------
    q
        How many steps each arm is forced in a round; rounds are twice as far apart each time.
    h
        Arms whose forced estimate is more than h / 2 below the best are ruled out; about the gap that matters. In free
        units it counts deviations of rewards, of all arms and contexts.
    ridge
        A positive number. The algorithm as printed is ordinary least squares; a ridge this small changes estimates
        only while the rows of an arm do not yet span all directions, where least squares has no unique solution.
    units, origin
        "free" units, in which neither zero nor size of features and rewards matters, about an origin (l, o_1, ..., o_d)
        that is found if left out; or "as given". See `armlet.reference.units`.

    Examples
    --------
    >>> policy = OLSBandit(q=1, h=0.5)
    >>> [forced_arm(t, n_arms=3, q=policy.q) for t in range(1, 14)]
    [0, 1, 2, 0, 1, 2, None, None, None, 0, 1, 2, None]
    """

    q: int = 1
    h: float = 1.0
    ridge: float = 1e-6
    units: Units = "free"
    origin: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, q=whole(), h=positive(), ridge=positive(), units=units_word, origin=origin_like)

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return layered_shapes(n_arms, dim, self.units)

    def init(self, n_arms: int, dim: int) -> Layers:
        """Start two empty sets of sums: of forced rows and of all rows."""
        return Layers(n_arms, dim, ridge=Ridge.parse(self.ridge), units=self.units, origin=self.origin)

    def estimates(self, state: Layers) -> Float64:
        """Return theta_hat of every arm from all of its rows, (K, d)."""
        return state[ALL].estimates()

    def fitted(self, state: Layers) -> Statistics:
        """Predict from all rows."""
        return state[ALL]

    def _forced(self, state: Layers, t: int, eligible: Bool) -> int | None:
        arm = forced_arm(t, state.n_arms, self.q)
        return arm if arm is not None and eligible[arm] else None

    def _best(self, state: Layers, x: Float64, eligible: Bool) -> Int64:
        arms, forced = np.flatnonzero(eligible), state[FORCED].scores(x)
        near = arms[forced[arms] >= forced[arms].max() - self.h * state[ALL].deviation / 2]
        return best_arms(state[ALL].scores(x), near)

    def probabilities(self, state: Layers, t: int, x: Float64, eligible: Bool) -> Float64:
        """Play the forced arm, or share probability among the best that are left."""
        forced, chances = self._forced(state, t, eligible), np.zeros(state.n_arms)
        if forced is not None:
            chances[forced] = 1.0
            return chances
        best = self._best(state, x, eligible)
        chances[best] = 1.0 / len(best)
        return chances

    def decide(self, state: Layers, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play the forced arm, or the best that is left, ties broken by the coins."""
        forced = self._forced(state, t, eligible)
        if forced is not None:
            return force(forced, eligible)
        best = self._best(state, x, eligible)
        return Choice(int(best[below(coins.tie, len(best))]), 1.0 / len(best), False)

    def update(self, state: Layers, interaction: Interaction) -> None:
        """Record every step, and forced steps in a layer of their own too."""
        layers = [state[ALL], state[FORCED]] if interaction.explored else [state[ALL]]
        if interaction.replaces is not None or interaction.weight < 0.0:
            for layer in layers:
                check_counted(float(layer.n[interaction.arm]), interaction.weight)
        for layer in layers:
            record(layer, interaction)


def forced_arm(t: int, n_arms: int, q: int) -> int | None:
    """Return the arm (from 0 on) that step t >= 1 is forced to play; None if the step is free.

    Examples
    --------
    >>> [forced_arm(t, n_arms=2, q=1) for t in range(1, 9)]
    [0, 1, 0, 1, None, None, 0, 1]
    """
    block, place = divmod(t - 1, n_arms * q)
    is_forced = block & (block + 1) == 0  # block = 2^n - 1: all bits are ones
    return place // q if is_forced else None
