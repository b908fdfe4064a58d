"""Mostly greedy, optimistic on a fifth of the steps, nothing to set: the policy of a Bandit that is given none.

Not Algorithm 1: it learns from every step. An arm that lacks rows is explored, by the evidence that its sums hold. Else
step t plays the highest estimate x' theta_a; on a fifth of the steps, which a private coin picks, the highest bound

    x' theta_a + c sigma w_a sqrt(2 log(1 + t w_a^2 / (K D))),    w_a = sqrt(x' V_a^-1 x), V_a = ridge I + A_a,

in free units, D the values of x that vary and the constant. The bonus is that of anytime versions of UCB (MOSS,
ADA-UCB) with the width of an estimate for that of a mean: its logarithm asks how many times fewer rows tell something
about this x than if rows were spread evenly. No bound on its regret is known; docs/results/tournament.md and bakeoff.md
say how it does. With radius="proved" there is one: docs/explanation/open-problem.md.
The coin is the step's random number, of the seed and t: below e the step explores, below e + (1 - e) share it is
optimistic, e the probability that it explores. Contexts that avoid the optimistic steps would keep a wrong arm, so
nobody without the seed may know them. What a log records is the probability over the coin, for which both candidates
are looked for; a decision that nobody records looks for its own alone (`Bandit.decide`).
Why only a fifth: contexts that differ explore for a greedy policy, so on real tables optimism costs more than it finds;
a share of it is enough not to stay with a wrong arm; and where rewards come in blocks, all steps of a block would be
spent on the same bet. Playing greedily with infrequent exploration is what INFEX (Lee and Oh, arXiv 2510.26000) does
for a fixed set of arms.
The ridge on slopes is what the sums of all arms make likely (`armlet.reference.ridge_evidence`): hundreds where
features say little, near 1 where they say much. So features that say nothing do not hurt. sigma is the root of the mean
squared residual, with what estimates are penalised for.
Decisions whose rewards have not come back count as rows to come: an arm that has m of them is explored as if it had
n + m rows, and its w_a^2 is (n + 1) / (n + 1 + e) of what it was, e the rows that they stand for (`under_way.py`).
An arm of which nothing has come back yet (n = 0) has no estimate: on a greedy step the others are played, on an
optimistic one its estimate lies sigma e / (e + 1) below the mean of all rewards, or below the others' best estimate
where that is lower. So a newcomer whose rewards come late, or never, is tried but does not take over. With prompt
rewards m is 0 whenever an arm is chosen.
All that it remembers are sums, decisions under way and what was last solved from the sums. So bandits merge, rows can
be taken back or corrected, and what that touches is solved again; a saved bandit goes on bit for bit.
An arm is solved when it has gained a fiftieth of its rows, or up to a tenth while a solve takes longer than that many
steps; or one row that is a good part of what it knows about a feature; or rows that tell more than twice what as many
like the others would. All are when the units change, at a tenth more rows or when a value leaves what its feature has
been, and with it, when rows have doubled, the ridge. Who learns solves, so a decision never waits for it. The best arm
is exact: widths have bounds, and are worked out only where these do not decide.
Decide O(K d), and O(d^2) for each arm in the lead of an optimistic step; update O(d^2), a solve O(d^3); memory O(K d^2)
regardless of t, twice to three times that of Algorithm 1.
With a discount rows fade: sums, n and all that follows are of what is left of them, w_a is as above (it asks for
evidence, not for the variance of a weighted mean), and t in the bonus is at most the rows that are left and under way,
and 1. So an arm that is not played is known less and less, and tried again: optimistically as its bound rises, or for
lack of rows. The ridge is found again when as many rows have come as were left. Arms are solved by those who look, for
their new rows and 64 times in a half-life.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from armlet.errors import InvalidValueError
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
from armlet.policies.discounts import HalfLife, MayFade, fading, fading_shapes, settle_discount
from armlet.reference.choice import best_arms
from armlet.reference.evidence import WeightedLaw, by_evidence
from armlet.reference.log_bonus import Noise, TwoKinds, log_bonus, proved_radii
from armlet.reference.under_way import expected_rows, lower_silent, shrinkage, skip_silent
from armlet.types import Bool, Choice, Coins, Float64, Int64, Shapes

WIDTH_SCALE: Final = 0.85


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OccasionalOptimism(MayFade, SumsPolicy[LazyStatistics]):
    """Explore what lacks rows, else play the best estimate, and on some steps the highest confidence bound.

    Parameters
    ----------
    p
        How much to explore by evidence, as in `ContextualEpsilonGreedy`: an arm with n rows is explored with weight
        max(min(1, q/t), min(1, exp(1 - n/q))), q = p / K. Left out, q is a tenth: a try of each arm, and a tenth of a
        try more for each e-fold of time.
    share
        Of the steps that do not explore, how many are optimistic: 1 for all of them. A coin of (seed, t) says which;
        `decision.optimistic` records it.
    width_scale
        c, what bonuses are multiplied by: more tries arms for longer.
    ridge
        The ridge on slopes, in standard units. Left out, it is found from the sums; in units as given it is 1.
    noise
        What the noise of an arm is taken to be: "pool", the same for all arms; "max", no less than their mean, and more
        where its own residuals say so; "shrunk", its own, shrunk to the common one as far as arms are alike.
    cap
        The largest probability with which a step explores by evidence: arms without rows then wait for others.
    floor
        A share of all steps that explores forever, all eligible arms alike, so that every arm has a propensity of at
        least floor / K and a log can be evaluated. Without it there are too few explored steps for that.
    units, origin
        "free" units, in which neither zero nor size of features and rewards matters, about an origin (l, o_1, ..., o_d)
        that is found if left out; or "as given". See `armlet.reference.units`.
    radius
        What a bound adds for a width of 1: "log", as above, which is not proved; or "proved", the radius of a
        confidence set that holds for any contexts, in units as given, for which `noise_scale` and `theta_norm` must be
        known. `armlet.theory.mostly_greedy` says what follows.
    noise_scale
        sigma, with which noise is sub-gaussian; (hi - lo) / 2 for rewards within [lo, hi].
    theta_norm
        No arm's theta is longer.
    discount, half_life
        What a row counts less for each step since its decision, such as 0.999; or after how many steps it counts half,
        or after what time: `timedelta(days=7)`, for loops. Nothing fades if both are left out. See
        `docs/how-to/drift.md`.

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
    width_scale: float = WIDTH_SCALE
    ridge: float | None = None
    noise: Noise = "pool"
    cap: float = 1.0
    floor: float = 0.0
    units: Units = "free"
    origin: tuple[float, ...] | None = None
    radius: Literal["log", "proved"] = "log"
    noise_scale: float | None = None
    theta_norm: float | None = None
    discount: float | None = None
    half_life: HalfLife = None

    def __post_init__(self) -> None:
        settle_discount(self)
        settle(self, p=optional(number(TINY, HUGE)), width_scale=number(0.0, HUGE), ridge=optional(positive()))
        settle(self, share=positive(most=1.0), noise=one_of("pool", "max", "shrunk"), floor=number(0.0, 1.0))
        settle(self, units=units_word, origin=origin_like, cap=positive(most=1.0), radius=one_of("log", "proved"))
        settle(self, noise_scale=optional(positive()), theta_norm=optional(positive()))
        self._check_radius()

    def _check_radius(self) -> None:
        known = self.noise_scale is not None and self.theta_norm is not None
        if self.radius == "log":
            if self.noise_scale is not None or self.theta_norm is not None:
                raise InvalidValueError("noise_scale and theta_norm are of radius='proved'; leave them out, or give it")
            return
        if not known:
            raise InvalidValueError(
                f"radius is 'proved' with noise_scale {self.noise_scale} and theta_norm {self.theta_norm}; give both: "
                "noise_scale is (hi - lo) / 2 for rewards within [lo, hi], theta_norm what no |theta| exceeds"
            )
        if self.discount is not None or self.half_life is not None:
            raise InvalidValueError(
                "radius is 'proved' for arms that stay as they are; leave discount and half_life out"
            )
        if self.units != "as given":
            raise InvalidValueError(f"radius is 'proved' in units {self.units!r}; give units='as given'")
        if self.width_scale != WIDTH_SCALE:
            raise InvalidValueError(
                f"radius is 'proved' with width_scale {self.width_scale}; it scales the other radius, leave it out"
            )

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        size = dim + 1 if self.units == "free" else dim
        return {
            **sum_shapes(n_arms, dim, units=self.units),
            **(fading_shapes(self, n_arms, size) or {"solved": solved_shape(n_arms, size)}),
            "under_way": (n_arms,),
            **({"ridge": (2,)} if self.ridge is None and self.units == "free" else {}),
        }

    def init(self, n_arms: int, dim: int) -> LazyStatistics:
        origin = check_origin(self.origin, dim)
        return LazyStatistics(n_arms, dim, ridge=self.ridge, units=self.units, origin=origin, **fading(self))

    def rule(self) -> LogBonus:
        return LogBonus(
            p=self.p or 0.0,
            share=self.share,
            width_scale=self.width_scale,
            noise=self.noise,
            cap=self.cap,
            floor=self.floor,
            proved=self.radius == "proved",
            noise_scale=self.noise_scale or 0.0,
            theta_norm=self.theta_norm or 0.0,
        )

    def exploring(self, state: LazyStatistics, t: int, eligible: Bool) -> WeightedLaw:
        """Return whether step t explores, and with which arm: by the rows that each arm has or waits for."""
        state.as_of(t)
        q = 0.1 if self.p is None else self.p / state.n_active
        return by_evidence(state.n + waits(state), eligible, t, q=q, cap=self.cap, floor=self.floor)

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
        if self.radius == "proved":
            assert self.noise_scale is not None
            assert self.theta_norm is not None
            known = (self.noise_scale, self.theta_norm)
            radii = proved_radii(state.log_determinants(), state.dim, t, state.ridge, known)
            proved: Float64 = state.scores(x) + radii * state.widths(x)
            return proved
        state.as_of(t)
        arms = np.arange(state.n_arms) if arms is None else arms
        n, m, sigma, ways = state.n, waits(state), state.deviations(self.noise), state.n_active * state.rank
        means = lower_silent(state.scores(x), n, m, sigma, arms)
        widths = state.widths(x) * shrinkage(n, expected_rows(n, m))
        time = float(t) if state.fades is None else min(float(t), sum(n.tolist()) + sum(m.tolist()) + 1.0)
        bounds: Float64 = means + log_bonus(sigma, widths, time, ways, self.width_scale)
        if self.units == "as given":  # where the ridge pulls to zero, which is no mean of anything
            bounds = bounds + math.sqrt(state.ridge) * state.typical_norm() * widths
        return bounds

    def _law(self, state: LazyStatistics, t: int, x: Float64, eligible: Bool) -> TwoKinds:
        return TwoKinds(
            self.exploring(state, t, eligible),
            self.share,
            greedy=lambda arms: best_arms(self._estimates(state, x, arms), arms),
            optimistic=lambda arms: best_arms(self.upper_bounds(state, t, x, arms), arms),
        )

    def _estimates(self, state: LazyStatistics, x: Float64, arms: Int64) -> Float64:
        scores = state.scores(x)
        return scores if self.radius == "proved" else skip_silent(scores, state.n, waits(state), arms)

    def probabilities(self, state: LazyStatistics, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return the exact probability of each arm over the coin.

        With probability e the step explores; with (1 - e)(1 - share) it plays the highest estimate, with (1 - e) share
        the highest bound, arms that tie sharing each.
        """
        return self._law(state, t, x, eligible).probabilities(state.n_arms)

    def decide(self, state: LazyStatistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play step t: what exploring takes, or the highest estimate or bound, as the coin says; ties by the coins."""
        return self._law(state, t, x, eligible).decide(state.n_arms, coins)
