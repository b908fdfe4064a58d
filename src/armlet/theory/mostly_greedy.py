"""Greedy on most steps, optimistic on a share of them that a private coin picks: bounds for contexts of an adversary.

Paper, Sections 7 and 8: the open problem. docs/explanation/open-problem.md states the theorem, proves it line by line
and says who answered the question before. V_a = ridge I + sum of xx' over the rows of arm a, w_a = sqrt(x' V_a^-1 x).
Nothing here is returned where an assumption fails. O(1), up to a grid of some hundred points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeVar

from armlet.errors import InvalidValueError
from armlet.inputs.settings import number, one_of, optional, positive, settle, whole
from armlet.theory.problem import LONGEST, AssumptionError
from armlet.types import Float64

Number = TypeVar("Number", float, Float64)

_STEPS: Final = [10 ** (k / 16) for k in range(-96, 49)]  # factors 1 + e by which widths of rows under way may grow
_THRESHOLDS: Final = [k / 100 for k in range(1, 51)]  # z: plays with a bonus below z gap count for nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the theorem assumes of the problem and of the policy.

    Parameters
    ----------
    n_arms, dim
        K, all arms that are ever created, and d.
    noise_scale
        sigma: E exp(g Z) <= exp(g^2 sigma^2 / 2) for the noise Z of a reward, whatever happened before. For rewards
        within a range it is at most `bounded_sigma(reward_range)`.
    theta_norm, length
        Q and X: no theta_a is longer than Q, no context longer than X.
    gap
        Wherever an arm is worse than the best eligible one, it is worse by at least this. None if nothing is known.
    ridge, share, width_scale
        Those of the policy: lambda, s, and what the proved radius is multiplied by, at least 1.
    explored
        q = p / K, if arms that lack rows are explored by evidence; 0 if there is no forced exploration.
    floor
        The share of forced exploration that never ends; must be 0.
    delay
        D: before step t the rewards of all steps before t - D are learned, an arm's in the order of its decisions.
    leverage
        An arm is solved again once the x' V^-1 x of its rows since then sum to more than this: 0 for after every row.
        "rows" if arms are solved by the number of their rows alone, which is refused.
    coin
        "private", or "public" if whoever makes contexts can tell which steps are optimistic, which is refused.

    Examples
    --------
    >>> Assumptions(n_arms=2, dim=2, noise_scale=0.1, theta_norm=1.0, gap=1.0, coin="public")
    Traceback (most recent call last):
    armlet.theory.problem.AssumptionError: coin is 'public'; contexts that avoid the optimistic steps make greedy play
    lock in: draw the coin from a seed that nobody else sees
    """

    n_arms: int
    dim: int
    noise_scale: float
    theta_norm: float
    gap: float | None = None
    length: float = 1.0
    ridge: float = 1.0
    share: float = 0.2
    width_scale: float = 1.0
    explored: float = 0.0
    floor: float = 0.0
    delay: int = 0
    leverage: float | Literal["rows"] = 0.0
    coin: Literal["private", "public"] = "private"

    def __post_init__(self) -> None:
        settle(
            self, n_arms=whole(), dim=whole(), noise_scale=number(0.0), theta_norm=number(0.0), gap=optional(positive())
        )
        settle(self, length=positive(), ridge=positive(), share=positive(most=1.0), width_scale=number(0.0))
        settle(self, explored=number(0.0), floor=number(0.0, 1.0), delay=whole(0), coin=one_of("private", "public"))
        if self.width_scale < 1:
            raise AssumptionError("radius", _narrow(f"width_scale is {self.width_scale:g}"))
        if self.floor > 0:
            raise AssumptionError("floor", _floor(self.floor))
        if self.coin == "public":
            raise AssumptionError("coin", _PUBLIC)
        if self.leverage == "rows":
            raise AssumptionError("refresh", _ROWS)
        settle(self, leverage=number(0.0))
        if self.gap is not None and self.gap > self.largest_loss:
            raise InvalidValueError(
                f"gap is {self.gap:g} but no arm can lose more than 2 length theta_norm = {self.largest_loss:g}"
            )

    @property
    def largest_loss(self) -> float:
        """2 Q X, at least the regret of any step."""
        return 2 * self.theta_norm * self.length

    @property
    def ways(self) -> int:
        """K d."""
        return self.n_arms * self.dim

    @property
    def relative_ridge(self) -> float:
        """The ridge for contexts divided by their largest length, lambda / X^2."""
        return self.ridge / self.length**2

    @property
    def stale(self) -> float:
        """1 + g, what a stale squared width may be above the true one."""
        return 1 + float(self.leverage)


def _narrow(what: str) -> str:
    return f"{what}; with less than the proved radius estimates leave their bounds too often: use radius='proved'"


def _floor(value: float) -> str:
    return f"floor is {value:g}; it explores on that share of all steps forever, which is linear regret: use floor=0"


_PUBLIC: Final = (
    "coin is 'public'; contexts that avoid the optimistic steps make greedy play lock in: draw the coin from a seed "
    "that nobody else sees"
)
_ROWS: Final = (
    "leverage is 'rows'; an arm with n rows then ignores a new direction for a share of n plays: solve by leverage, "
    "such as 0.1"
)


def proved_radius(
    log_det_over_ridge: Number, n_arms: int, t: int, noise_scale: float, ridge: float, theta_norm: float
) -> Number:
    """Return beta: |theta_hat_a - theta_a| in the norm of V_a is at most this for all arms, but with chance 1/(t(t+1)).

    Parameters
    ----------
    log_det_over_ridge
        log det(V_a / ridge), one number or one for each arm.
    n_arms, t, noise_scale, ridge, theta_norm
        K, the step from 1 on, sigma, lambda and Q.

    Examples
    --------
    >>> round(proved_radius(0.0, n_arms=2, t=1, noise_scale=1.0, ridge=1.0, theta_norm=1.0), 4)  # sqrt(2 log 4) + 1
    2.6651
    """
    spread: Number = (log_det_over_ridge + 2 * math.log(n_arms * t * (t + 1))) ** 0.5
    out: Number = noise_scale * spread + math.sqrt(ridge) * theta_norm
    return out


def largest_radius(assumed: Assumptions, horizon: int) -> float:
    """Return B_T, which no radius of a step up to the horizon exceeds.

    Examples
    --------
    >>> round(largest_radius(Assumptions(n_arms=2, dim=2, noise_scale=0.1, theta_norm=1.0), 10**6), 3)
    1.91
    """
    whole()("horizon", horizon)
    log_det = assumed.dim * math.log1p(horizon / (assumed.relative_ridge * assumed.dim))
    radius = proved_radius(log_det, assumed.n_arms, horizon, assumed.noise_scale, assumed.ridge, assumed.theta_norm)
    return assumed.width_scale * radius


def wide_plays(assumed: Assumptions, width: float) -> float:
    """Return N: how often the arm that is played can have a width of at least this, whatever contexts come.

    The largest N with N <= F K d log(1 + N / (ridge K d)), F = 1 / log(1 + width^2) where rewards are prompt.

    Examples
    --------
    >>> some = Assumptions(n_arms=2, dim=2, noise_scale=0.1, theta_norm=1.0)
    >>> round(wide_plays(some, 0.25), 1), wide_plays(some, 1.1)
    (281.6, 0.0)
    """
    positive()("width", width)
    ridge, squared = assumed.relative_ridge, width**2 / assumed.stale
    if width**2 > LONGEST / ridge:  # of no row at all
        return 0.0
    price = _under_way(assumed.delay, lambda c, late: 1 / math.log1p(squared / c) + late)
    return ridge * assumed.ways * _largest_root(ridge / price)


def _under_way(delay: int, price: Callable[[float, float], float]) -> float:
    """Minimize a price over c > 1: rows under way make widths^2 at most c times too large, but on D / log c steps."""
    return min(price(1 + e, delay / math.log1p(e)) for e in _STEPS) if delay else price(1.0, 0.0)


def _largest_root(c: float) -> float:
    """Return the largest y with c y <= log(1 + y): Newton's steps fall to it from `_closed_form`."""
    if c >= 1:
        return 0.0
    y = _closed_form(c)
    for _ in range(100):
        step = (math.log1p(y) - c * y) / (c - 1 / (1 + y))
        if step >= -1e-15 * y:
            break
        y += step
    return y


def _closed_form(c: float) -> float:
    return 2 / c * math.log1p(1 / c)


def _kappa(assumed: Assumptions) -> float:
    """Return what w^2 of the plays sum to at most, over K d log(1 + plays / (ridge K d))."""
    largest = 1 / assumed.relative_ridge
    kappa = assumed.stale * largest / math.log1p(largest)
    return _under_way(assumed.delay, lambda c, late: c * kappa + largest * late)


def explored_steps(assumed: Assumptions, horizon: int) -> float:
    """Bound how many steps explore by force up to the horizon, on average.

    Examples
    --------
    >>> some = Assumptions(n_arms=2, dim=2, noise_scale=0.1, theta_norm=1.0, explored=0.1)
    >>> round(explored_steps(some, 10**6), 2)  # a try of each arm, and a tenth of one for each e-fold of time, twice
    6.96
    """
    q = assumed.explored
    if q == 0:
        return 0.0
    # weights are at most max(q / t, q / T) once an arm has this many rows, and each exploration before adds a row
    first = math.ceil(max(0.0, q * (1 + math.log(horizon / q))))
    return min(float(horizon), assumed.n_arms * (first + q * (1 + math.log(horizon))))


def mistakes_bound(assumed: Assumptions, horizon: int) -> float:
    """Bound the expected number of steps up to the horizon that play an arm which is not best: N(gap / 2B) / s + 1.

    Examples
    --------
    >>> some = Assumptions(n_arms=2, dim=2, noise_scale=0.1, theta_norm=1.0, gap=1.0)
    >>> round(mistakes_bound(some, 10**6))
    1255
    """
    wide = wide_plays(assumed, _known_gap(assumed) / (2 * largest_radius(assumed, horizon)))
    return min(float(horizon), wide / assumed.share + 1 + explored_steps(assumed, horizon))


@dataclass(frozen=True, slots=True)
class RegretBound:
    """Bounds on the expected regret, of which the smallest holds."""

    gap: float  # infinite where no gap is known
    gap_free: float
    trivial: float  # every step lost

    @property
    def total(self) -> float:
        """The smallest of the three."""
        return min(self.gap, self.gap_free, self.trivial)

    @property
    def by(self) -> Literal["gap", "gap-free", "trivial"]:
        """Which one that is; a trivial bound says nothing."""
        if self.total == self.trivial:
            return "trivial"
        return "gap" if self.total == self.gap else "gap-free"


def regret_bound(assumed: Assumptions, horizon: int) -> RegretBound:
    """Bound the expected regret up to the horizon, with the gap and without.

    Examples
    --------
    >>> some = Assumptions(n_arms=2, dim=2, noise_scale=0.1, theta_norm=1.0, gap=1.0)
    >>> bound = regret_bound(some, 10**8)
    >>> round(bound.total), bound.by, regret_bound(some, 30).by
    (1623, 'gap', 'trivial')
    """
    B, s, ridge, ways = largest_radius(assumed, horizon), assumed.share, assumed.relative_ridge, assumed.ways
    kappa, once = _kappa(assumed) * ways, assumed.largest_loss * (1 + explored_steps(assumed, horizon))
    by_gap = math.inf
    if (gap := assumed.gap) is not None:
        wide = {z: min(float(horizon), wide_plays(assumed, z * gap / B)) for z in _THRESHOLDS}
        worst = min(_factor(z, s) * math.log1p(plays / (ridge * ways)) for z, plays in wide.items())
        by_gap = min(worst * kappa * B**2 / gap + once, assumed.largest_loss * mistakes_bound(assumed, horizon))
    free = B * math.sqrt((3 + 1 / s) * horizon * kappa * math.log1p(horizon / (ridge * ways))) + once
    return RegretBound(by_gap, free, assumed.largest_loss * horizon)


def _factor(z: float, s: float) -> float:
    """Return M with E sum rho^2 <= M E sum of beta^2 w^2 over plays with beta w >= z gap: 4 + 16 (1-s) / 9s at 1/4."""
    return max(1 / (z * (2 - z)), 4 + (1 - s) / s / (1 - z) ** 2)


def log_ridge(assumed: Assumptions, horizon: int) -> float:
    """Return the ridge alpha log(K T (T + 1)), alpha = sigma^2 (d + 2) / Q^2, with which both bounds are O(log T).

    With a fixed ridge they are O(log T loglog T).

    Examples
    --------
    >>> round(log_ridge(Assumptions(n_arms=2, dim=2, noise_scale=0.1, theta_norm=1.0), 10**6), 3)
    1.133
    """
    whole()("horizon", horizon)
    positive()("theta_norm", assumed.theta_norm)
    positive()("noise_scale", assumed.noise_scale)
    alpha = assumed.noise_scale**2 * (assumed.dim + 2) / assumed.theta_norm**2
    return alpha * math.log(assumed.n_arms * horizon * (horizon + 1))


def _known_gap(assumed: Assumptions) -> float:
    if assumed.gap is None:
        raise AssumptionError("gap", "gap is None; without one only `regret_bound(...).gap_free` holds")
    return assumed.gap


class PolicySettings(Protocol):
    """The settings of `OccasionalOptimism` that the theorem asks for."""

    @property
    def radius(self) -> str: ...  # noqa: D102
    @property
    def noise_scale(self) -> float | None: ...  # noqa: D102
    @property
    def theta_norm(self) -> float | None: ...  # noqa: D102
    @property
    def ridge(self) -> float | None: ...  # noqa: D102
    @property
    def share(self) -> float: ...  # noqa: D102
    @property
    def floor(self) -> float: ...  # noqa: D102
    @property
    def units(self) -> str: ...  # noqa: D102
    @property
    def p(self) -> float | None: ...  # noqa: D102


def failing(policy: PolicySettings) -> tuple[str, ...]:
    """Return each reason why the theorem does not hold for the settings of a policy; none if it does."""
    checks = {
        _narrow(f"radius is {policy.radius!r}"): policy.radius != "proved",
        "noise_scale is None; an estimate of the noise can be too low: give it, such as half the range of rewards": (
            policy.noise_scale is None
        ),
        "theta_norm is None; the radius needs the length of the longest theta: give a bound": policy.theta_norm is None,
        _floor(policy.floor): policy.floor > 0,
        f"units are {policy.units!r}; units that data choose change the ridge as they go: use units='as given'": (
            policy.units != "as given"
        ),
    }
    return tuple(reason for reason, fails in checks.items() if fails)


def policy_leverage(dim: int) -> float:
    """Return the leverage at which `OccasionalOptimism` solves an arm again, at the latest.

    That is 0.1, or twice what so many average rows have, at most d / 10: a tenth more rows are enough for a solve.

    Examples
    --------
    >>> policy_leverage(2)
    0.4
    """
    return max(0.1, 2 * dim / 10)


def for_policy(
    policy: PolicySettings, *, n_arms: int, dim: int, gap: float | None = None, length: float = 1.0, delay: int = 0
) -> Assumptions:
    """Return the assumptions under which the settings of a policy have a bound.

    Raises
    ------
    AssumptionError
        With each reason why they have none.
    """
    reasons = failing(policy)
    if reasons or policy.noise_scale is None or policy.theta_norm is None:
        raise AssumptionError("radius", "; and ".join(reasons))
    return Assumptions(
        n_arms=n_arms,
        dim=dim,
        noise_scale=policy.noise_scale,
        theta_norm=policy.theta_norm,
        gap=gap,
        length=length,
        ridge=1.0 if policy.ridge is None else policy.ridge,  # that of units as given
        share=policy.share,
        explored=0.1 if policy.p is None else policy.p / n_arms,
        delay=delay,
        leverage=policy_leverage(dim),
    )
