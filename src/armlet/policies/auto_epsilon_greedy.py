"""A p that sets itself: Section 4.2 of the paper, with a forecast of regret in place of its formula.

`AutoEpsilonGreedy` explores by evidence in free units, with or without a horizon, and each arm has a share of p of its
own (`armlet.reference.outlook`). `AutoAlgorithm1` explores with probability p/t in units as given, for a horizon, all
arms alike (`armlet.reference.auto_schedule`). Both look at explored rows alone, so a look costs nothing between them:
it is O(K d^3 + K d^2), after 10 % more rows than at the one before, O(log n) of them in n explored steps.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import (
    MOST as LONGEST,
)
from armlet.inputs.settings import (
    Check,
    Ridge,
    RidgeLike,
    check_origin,
    number,
    one_of,
    origin_like,
    ridge_like,
    settle,
    unboxed,
)
from armlet.kernel import AutoEvidence, AutoSchedule, AutoTunedStatistics, sum_shapes
from armlet.policies.base import waits
from armlet.policies.epsilon_greedy import ByClock, ByEvidence, EpsilonGreedy, Warmup
from armlet.reference import auto_schedule, outlook
from armlet.reference.choice import best_arms
from armlet.reference.under_way import expected_rows, silent, skip_silent
from armlet.reference.units import FreeUnits
from armlet.types import Float64, Int64, Interaction, Shapes

CAUTION: Final = 1.0
"""What predicted losses of exploiting are multiplied by; `make calibrate` tries others."""
START: Final = 2.0
"""The least p, for each arm."""
MOST: Final = 0.25
"""The most p, as a share of the horizon."""
EVEN: Final = 0.2
"""The part of p that all arms share alike."""


def _horizon(fix: str, *, can_be_none: bool = False) -> Check:
    def check(name: str, value: object) -> int | None:
        if value is None and can_be_none:
            return None
        horizon = unboxed(value)
        if isinstance(horizon, bool) or not isinstance(horizon, int) or not 1 <= horizon <= LONGEST:
            raise InvalidValueError(
                f"{name} is {value!r}; give the number of decisions that there are going to be, {fix}"
            )
        return horizon

    return check


def quotas(state: AutoTunedStatistics, p: float) -> Float64:
    """Return each arm's part of p, (K,), in proportion to the shares of the arms that are not retired.

    Of an arm of which nothing has come back yet, no more than it would have at the very start.

    Examples
    --------
    >>> quotas(AutoTunedStatistics(4, 1, units="free"), 8.0)
    array([2., 2., 2., 2.])
    """
    shares, total = state.shares, 0.0
    for share in shares[state.active].tolist():  # from left to right, as the kernel adds
        total += share
    out: Float64 = p * (shares / total)
    return np.where(silent(state.n, waits(state)), np.minimum(out, START), out)


class _Auto(EpsilonGreedy[AutoTunedStatistics]):
    __slots__ = ()

    design: ClassVar[Literal["auto"]] = "auto"

    @abstractmethod
    def _tuning(self) -> AutoSchedule | AutoEvidence:
        """Return how p is found; apart from `rule`, which a subclass may change to be asked in Python."""

    @abstractmethod
    def look(self, state: AutoTunedStatistics, t: int) -> auto_schedule.Prospect:
        """Return what is seen at step t, and which p would be chosen now: in numpy, for people to read."""

    def current_p(self, state: AutoTunedStatistics) -> float:
        """Return the p in force: what was found so far."""
        return state.p(self._tuning())

    def update(self, state: AutoTunedStatistics, interaction: Interaction) -> None:
        """Record an explored step, and look for a better p if enough of them have come; skip the others."""
        EpsilonGreedy.update(self, state, interaction)
        if interaction.explored and interaction.replaces is None:  # a corrected reward is no other context
            state.learned(self._tuning(), interaction.x, interaction.weight, interaction.t)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoEpsilonGreedy(_Auto, ByEvidence[AutoTunedStatistics]):
    """The exploration of `ContextualEpsilonGreedy` with a p that is found on the way; free units.

    p rises while explored steps say that more exploring would save more than it costs, and falls only where arms come
    and go. An arm's share of it is the larger the more is in doubt about the arm, for any x. Explored decisions whose
    rewards have not come back count as rows to come, where others' have.

    Parameters
    ----------
    horizon
        How many decisions there are going to be; the right power of ten will do. None takes it at every look for ten
        times as many as there were.
    ridge
        "paper" (lambda_n = 1/sqrt(n)), "1/n", or a positive number; see `armlet.inputs.settings.Ridge`.
    origin, cap, floor
        As in `ContextualEpsilonGreedy`.

    Examples
    --------
    >>> import armlet
    >>> policy = AutoEpsilonGreedy(horizon=1000)
    >>> policy.current_p(policy.init(n_arms=4, dim=3))
    8.0
    >>> bandit = armlet.Bandit(arms=["a", "b"], dim=1, policy=policy, seed=1)
    >>> for t in range(100):
    ...     decision = bandit.decide([1.0])
    ...     bandit.learn(decision, float(decision.arm == "b") + t % 3)
    >>> seen = policy.look(bandit.state, bandit.t)
    >>> 0.5 < seen.noise < 1.5, seen.sigma_min, seen.delta > 0
    (True, 1.0, True)
    """

    horizon: int | None = None
    ridge: RidgeLike = "paper"
    origin: tuple[float, ...] | None = None
    cap: float = 1.0
    floor: float = 0.0

    units: ClassVar[Literal["free"]] = "free"

    def __post_init__(self) -> None:
        settle(self, horizon=_horizon("or leave it out", can_be_none=True), ridge=ridge_like, origin=origin_like)
        settle(self, cap=number(1e-9, 1.0), floor=number(0.0, 1.0))

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        records = sum_shapes(n_arms, dim, units="free")
        own = {"sample": (None, dim), "tuning": (2,), "shares": (n_arms,), "turnover": (2,)}
        return {**records, **own, "under_way": (n_arms,)}

    def init(self, n_arms: int, dim: int) -> AutoTunedStatistics:
        ridge, origin = Ridge.parse(self.ridge), check_origin(self.origin, dim)
        return AutoTunedStatistics(n_arms, dim, ridge=ridge.kind, value=ridge.value, units="free", origin=origin)

    def rule(self) -> AutoEvidence:
        return self._tuning()

    def _tuning(self) -> AutoEvidence:
        horizon = None if self.horizon is None else float(self.horizon)
        how = {"caution": CAUTION, "start": START, "most": MOST, "even": EVEN}
        return AutoEvidence(horizon=horizon, **how, cap=self.cap, floor=self.floor)

    def best(self, state: AutoTunedStatistics, x: Float64, arms: Int64) -> Int64:
        """Return the best of some arms; one of which nothing has come back yet has no estimate, and is left out."""
        return best_arms(skip_silent(state.scores(x), state.n, waits(state), arms), arms)

    def rows(self, state: AutoTunedStatistics) -> Float64:
        """Return n + e of each arm, (K,): its rows, and what it waits for more than the others do.

        Before anything has come back every step explores: all arms tie, and no other step is learned.
        """
        n = state.n
        return n + expected_rows(n, waits(state)) if n.any() else n

    def quotas(self, state: AutoTunedStatistics) -> Float64:
        """Return each arm's part of p, (K,)."""
        return quotas(state, self.current_p(state))

    def look(self, state: AutoTunedStatistics, t: int) -> outlook.Outlook:
        """Return what is seen at step t, and which p would be chosen now: in numpy, for people to read."""
        s, units = state, FreeUnits.of(np.asarray(state.arrays()["units"]))
        sums = {"n": s.n, "A": s.A, "b": s.b, "sum_r": s.sum_r, "sum_rr": s.sum_rr}
        counts = {"under_way": waits(s), "turnover": s.turnover}
        rows = outlook.FreeRows(**sums, **counts, active=s.active, units=units, ridge=Ridge.parse(self.ridge))
        return outlook.look(rows, s.sample, t=t, horizon=self.horizon, caution=CAUTION, most=MOST, even=EVEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoAlgorithm1(_Auto, ByClock[AutoTunedStatistics]):
    """`Algorithm1` with a p that is found on the way, for a horizon; units as given.

    Parameters
    ----------
    horizon
        How many decisions there are going to be; the right power of ten will do.
    ridge, warmup
        As in `Algorithm1`.
    """

    horizon: int
    ridge: RidgeLike = "paper"
    warmup: Warmup = "round-robin"

    units: ClassVar[Literal["as given"]] = "as given"

    def __post_init__(self) -> None:
        settle(self, horizon=_horizon("for instance horizon=100_000"), ridge=ridge_like)
        settle(self, warmup=one_of("round-robin", "uniform"))

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        return {**sum_shapes(n_arms, dim), "sample": (None, dim), "tuning": (2,)}

    def init(self, n_arms: int, dim: int) -> AutoTunedStatistics:
        ridge = Ridge.parse(self.ridge)
        return AutoTunedStatistics(n_arms, dim, ridge=ridge.kind, value=ridge.value)

    def rule(self) -> AutoSchedule:
        return self._tuning()

    def _tuning(self) -> AutoSchedule:
        how = {"caution": CAUTION, "start": START, "most": MOST}
        return AutoSchedule(horizon=float(self.horizon), **how, round_robin=self.warmup == "round-robin")

    def exploration_rate(self, t: int, state: AutoTunedStatistics | None = None) -> float:
        """Return the probability that step t explores, if all arms that are not retired are eligible."""
        if state is None:
            raise InvalidValueError("state is None but p is found on the way: it depends on what was seen; pass state")
        return self.exploring(state, t, state.active).rate

    def look(self, state: AutoTunedStatistics, t: int) -> auto_schedule.Prospect:
        """Return what is seen at step t, and which p would be chosen now: in numpy, for people to read."""
        sums = {"n": state.n, "A": state.A, "b": state.b, "sum_r": state.sum_r, "sum_rr": state.sum_rr}
        rows = auto_schedule.ExploredSums(**sums, ridge=Ridge.parse(self.ridge))
        return auto_schedule.look(rows, state.sample, t=t, horizon=self.horizon, caution=CAUTION, most=MOST)
