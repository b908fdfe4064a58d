"""Optimism with a logarithmic bonus, nothing to set: confidence bounds from sums that add up, and a little exploring.

Not Algorithm 1: it learns from every step. An arm that lacks rows is explored, by the evidence that its sums hold; else
the highest x' theta_a + c sigma_a w_a sqrt(2 log(1 + t w_a^2 / K)) plays, w_a = sqrt(x' V_a^-1 x), V_a = ridge I + A_a,
in free units. The bonus is that of anytime versions of UCB (MOSS, ADA-UCB) with the width of an estimate for that of a
mean. No bound on its regret is known.
All that it remembers are sums and what was last solved from them. So bandits merge, rows can be taken back or
corrected, and what that touches is solved anew; a saved bandit goes on bit for bit.
An arm is solved when it has gained a fiftieth of its rows, or up to a tenth while a solve takes longer than that many
steps; all are when the units change, at a tenth more rows. The best arm is exact: widths have bounds, and are worked
out only where these do not decide.
Decide O(K d), and O(d^2) for each arm in the lead; update O(d^2), a solve O(d^3); memory O(K d^2) whatever t, twice to
three times that of Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from armlet.core.checks import HUGE, TINY, number, one_of, optional, origin_like, positive, settle, units_word
from armlet.core.choosing import best_arms
from armlet.core.exploring import Weighted, by_evidence
from armlet.core.kernel import LogBonus, Paced
from armlet.core.optimism import Noise, log_bonus
from armlet.core.policy import SumsPolicy
from armlet.core.statistics import solved_shape, sum_shapes
from armlet.core.types import Bool, Choice, Coins, Float64, Shapes
from armlet.core.units import Units, check_origin


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptimism(SumsPolicy[Paced]):
    """Explore what lacks rows, else play the highest confidence bound, by a bonus that grows as the log of time.

    Parameters
    ----------
    p
        How much to explore by evidence, as in `ContextualEpsilonGreedy`: an arm with n rows is explored with weight
        max(min(1, q/t), min(1, exp(1 - n/q))), q = p / K. Left out, q is a half: a try or two of each arm, and half a
        try more for each e-fold of time.
    width_scale
        c, what bonuses are multiplied by: more tries arms for longer.
    ridge
        The ridge on slopes, in standard units.
    noise
        What the noise of an arm is taken to be: "pool", the same for all arms; "max", no less than their mean, and more
        where its own residuals say so; "median", likewise with their median, for arms that differ much.
    floor
        A share of all steps that explores for ever, all eligible arms alike, so that every arm has a propensity of at
        least floor / K and a log can be evaluated. Without it there are too few explored steps for that.
    units
        "free": neither the zero nor the size of features and rewards matters, see `armlet.core.units`; or "as given".
    origin
        In free units: about where rewards and features lie, l, o_1, ..., o_d, if they are far from zero and no row may
        be used to find out. Left out, it is zero, or beyond 1024 eight bits of the first row.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=LogOptimism(), seed=1)
    >>> for t in range(100):
    ...     decision = bandit.decide([t % 7])
    ...     bandit.learn(decision, float(decision.arm == "b") + 0.1 * (t % 3))
    >>> bandit.add_arm("c")
    >>> bandit.decide([1.0]).arm
    'c'
    >>> other = bandit.copy()
    >>> other.merge(bandit)
    >>> int(other.state.n.sum())
    200
    """

    p: float | None = None
    width_scale: float = 0.85
    ridge: float = 0.3
    noise: Noise = "max"
    floor: float = 0.0
    units: Units = "free"
    origin: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, p=optional(number(TINY, HUGE)), width_scale=number(0.0, HUGE), ridge=positive())
        settle(self, noise=one_of("pool", "max", "median"), floor=number(0.0, 1.0))
        settle(self, units=units_word, origin=origin_like)

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Give the shapes of the state's arrays."""
        return {
            **sum_shapes(n_arms, dim, units=self.units),
            "solved": solved_shape(n_arms, dim + 1 if self.units == "free" else dim),
        }

    def init(self, n_arms: int, dim: int) -> Paced:
        """Start sums without rows."""
        return Paced(n_arms, dim, ridge=self.ridge, units=self.units, origin=check_origin(self.origin, dim))

    def rule(self) -> LogBonus:
        """Describe it to the kernel."""
        return LogBonus(p=self.p or 0.0, width_scale=self.width_scale, noise=self.noise, floor=self.floor)

    def exploring(self, state: Paced, t: int, eligible: Bool) -> Weighted:
        """Say whether step t explores, and with which arm: by the rows that each arm has."""
        q = 0.5 if self.p is None else self.p / state.n_active
        return by_evidence(state.n, eligible, t, q=q, floor=self.floor)

    def exploration_rate(self, t: int, state: Paced) -> float:
        """Give the probability that step t explores, if all arms that are not retired are eligible.

        Examples
        --------
        >>> policy = LogOptimism()
        >>> policy.exploration_rate(1, policy.init(n_arms=2, dim=1))
        1.0
        """
        return self.exploring(state, t, state.active).rate

    def upper_bounds(self, state: Paced, t: int, x: Float64) -> Float64:
        """Give the bound of each arm at step t, (K,): its estimate less `state.base`, and its bonus."""
        sigma, widths = state.deviations(self.noise), state.widths(x)
        bounds: Float64 = state.scores(x) + log_bonus(sigma, widths, t, state.n_active, self.width_scale)
        return bounds

    def probabilities(self, state: Paced, t: int, x: Float64, eligible: Bool) -> Float64:
        """Give the exact probability of each arm: exploration, plus the share of the arms with the highest bound."""
        law = self.exploring(state, t, eligible)
        return law.with_best(state.n_arms, lambda arms: best_arms(self.upper_bounds(state, t, x), arms))

    def decide(self, state: Paced, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play step t: what exploring takes, or an arm with the highest bound, ties broken by the coins."""
        law = self.exploring(state, t, eligible)
        return law.decide(state.n_arms, lambda arms: best_arms(self.upper_bounds(state, t, x), arms), coins)
