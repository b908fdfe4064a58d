"""Mostly greedy, optimistic on a fifth of the steps, nothing to set: the policy of a Bandit that is given none.

Not Algorithm 1: it learns from every step. An arm that lacks rows is explored, by the evidence that its sums hold. Else
step t plays the highest estimate x' theta_a; on a fifth of the steps, which follow from t alone, the highest bound

    x' theta_a + c sigma w_a sqrt(2 log(1 + t w_a^2 / (K D))),    w_a = sqrt(x' V_a^-1 x), V_a = ridge I + A_a,

in free units, D the values of x that vary and the constant. The bonus is that of anytime versions of UCB (MOSS,
ADA-UCB) with the width of an estimate for that of a mean: its logarithm asks how many times fewer rows tell something
about this x than if rows were spread evenly. No bound on its regret is known; docs/results/tournament.md and bakeoff.md
say how it does.
Why only a fifth: contexts that differ explore for a greedy policy, so on real tables optimism costs more than it finds;
a share of it is enough not to stay with a wrong arm; and where rewards come in blocks, all steps of a block would be
spent on the same bet.
Decisions whose rewards have not come back count as rows to come: an arm that has m of them is explored as if it had
n + m rows, and its w_a^2 is (n + 1) / (n + 1 + e) of what it was, e the rows that they stand for (`under_way.py`).
An arm of which nothing has come back yet (n = 0) has no estimate: on a greedy step the others are played, on an
optimistic one its estimate lies sigma e / (e + 1) below the mean of all rewards, or below the others' best estimate
where that is lower. So a newcomer whose rewards come late, or never, is tried but does not take over. With prompt
rewards m is 0 whenever an arm is chosen.
All that it remembers are sums, decisions under way and what was last solved from the sums. So bandits merge, rows can
be taken back or corrected, and what that touches is solved again; a saved bandit goes on bit for bit.
An arm is solved when it has gained a fiftieth of its rows, or up to a tenth while a solve takes longer than that many
steps, or one row that is a good part of what it knows about a feature; all are when the units change, at a tenth more
rows or when a value leaves what its feature has been. Who learns solves, so a decision never waits for it. The best arm
is exact: widths have bounds, and are worked out only where these do not decide.
Decide O(K d), and O(d^2) for each arm in the lead of an optimistic step; update O(d^2), a solve O(d^3); memory O(K d^2)
regardless of t, twice to three times that of Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armlet.inputs.settings import (
    HUGE,
    TINY,
    Units,
    check_origin,
    number,
    one_of,
    optional,
    origin_like,
    positive,
    settle,
    units_word,
)
from armlet.kernel import LazyStatistics, LogBonus, solved_shape, sum_shapes
from armlet.policies.base import SumsPolicy, waits
from armlet.reference.choice import best_arms
from armlet.reference.evidence import Weighted, by_evidence
from armlet.reference.log_bonus import Noise, is_optimistic, log_bonus
from armlet.reference.under_way import expected_rows, lower_silent, shrinkage, skip_silent
from armlet.types import Bool, Choice, Coins, Float64, Int64, Shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class OccasionalOptimism(SumsPolicy[LazyStatistics]):
    """Explore what lacks rows, else play the best estimate, and on some steps the highest confidence bound.

    Parameters
    ----------
    p
        How much to explore by evidence, as in `ContextualEpsilonGreedy`: an arm with n rows is explored with weight
        max(min(1, q/t), min(1, exp(1 - n/q))), q = p / K. Left out, q is a tenth: a try of each arm, and a tenth of a
        try more for each e-fold of time.
    share
        Of the steps, how many are optimistic: 1 for all of them. Which ones follows from t alone.
    width_scale
        c, what bonuses are multiplied by: more tries arms for longer.
    ridge
        The ridge on slopes, in standard units.
    noise
        What the noise of an arm is taken to be: "pool", the same for all arms; "max", no less than their mean, and more
        where its own residuals say so; "median", also with their median, for arms that differ much.
    floor
        A share of all steps that explores forever, all eligible arms alike, so that every arm has a propensity of at
        least floor / K and a log can be evaluated. Without it there are too few explored steps for that.
    units, origin
        "free" units, in which neither zero nor size of features and rewards matters, about an origin (l, o_1, ..., o_d)
        that is found if left out; or "as given". See `armlet.reference.units`.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=OccasionalOptimism(), seed=1)
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
    share: float = 0.2
    width_scale: float = 0.7
    ridge: float = 1.0
    noise: Noise = "pool"
    floor: float = 0.0
    units: Units = "free"
    origin: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, p=optional(number(TINY, HUGE)), width_scale=number(0.0, HUGE), ridge=positive())
        settle(self, share=positive(most=1.0), noise=one_of("pool", "max", "median"), floor=number(0.0, 1.0))
        settle(self, units=units_word, origin=origin_like)

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        return {
            **sum_shapes(n_arms, dim, units=self.units),
            "solved": solved_shape(n_arms, dim + 1 if self.units == "free" else dim),
            "under_way": (n_arms,),
        }

    def init(self, n_arms: int, dim: int) -> LazyStatistics:
        return LazyStatistics(n_arms, dim, ridge=self.ridge, units=self.units, origin=check_origin(self.origin, dim))

    def rule(self) -> LogBonus:
        return LogBonus(
            p=self.p or 0.0, share=self.share, width_scale=self.width_scale, noise=self.noise, floor=self.floor
        )

    def exploring(self, state: LazyStatistics, t: int, eligible: Bool) -> Weighted:
        """Return whether step t explores, and with which arm: by the rows that each arm has or waits for."""
        q = 0.1 if self.p is None else self.p / state.n_active
        return by_evidence(state.n + waits(state), eligible, t, q=q, floor=self.floor)

    def exploration_rate(self, t: int, state: LazyStatistics) -> float:
        """Return the probability that step t explores, if all arms that are not retired are eligible.

        Examples
        --------
        >>> policy = OccasionalOptimism()
        >>> policy.exploration_rate(1, policy.init(n_arms=2, dim=1))
        1.0
        """
        return self.exploring(state, t, state.active).rate

    def upper_bounds(self, state: LazyStatistics, t: int, x: Float64, arms: Int64 | None = None) -> Float64:
        """Return the bound of each arm at step t, (K,): its estimate less `state.base`, and its bonus.

        Parameters
        ----------
        state, t, x
            What is known, the step and the context.
        arms
            Those that may be played, which an arm without any reward yet is compared with; all if left out.
        """
        arms = np.arange(state.n_arms) if arms is None else arms
        n, m, sigma, ways = state.n, waits(state), state.deviations(self.noise), state.n_active * state.rank
        means = lower_silent(state.scores(x), n, m, sigma, arms)
        widths = state.widths(x) * shrinkage(n, expected_rows(n, m))
        bounds: Float64 = means + log_bonus(sigma, widths, t, ways, self.width_scale)
        return bounds

    def _best(self, state: LazyStatistics, t: int, x: Float64, arms: Int64) -> Int64:
        if is_optimistic(t, self.share):
            return best_arms(self.upper_bounds(state, t, x, arms), arms)
        return best_arms(skip_silent(state.scores(x), state.n, waits(state), arms), arms)

    def probabilities(self, state: LazyStatistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return the exact probability of each arm: exploration, plus the share of the arms that are best at step t."""
        law = self.exploring(state, t, eligible)
        return law.with_best(state.n_arms, lambda arms: self._best(state, t, x, arms))

    def decide(self, state: LazyStatistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play step t: what exploring takes, or an arm that is best at step t, ties broken by the coins."""
        law = self.exploring(state, t, eligible)
        return law.decide(state.n_arms, lambda arms: self._best(state, t, x, arms), coins)
