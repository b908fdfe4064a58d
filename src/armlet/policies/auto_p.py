"""A p that sets itself: Section 4.2 of the paper, with a forecast of regret in place of its formula.

In free units the evidence clock plays it, with or without a horizon, and each arm has a share of p of its own
(`armlet.reference.outlook`). In units as given p/t plays it, for a horizon, and all arms are explored alike
(`armlet.reference.auto_schedule`): what p="auto" was before there were free units, kept for models of that time.
A look is O(K d^3 + K d^2), after 10 % more rows than at the one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import Ridge
from armlet.kernel import AutoEvidence, AutoSchedule, AutoTunedStatistics
from armlet.reference import auto_schedule, outlook
from armlet.reference.units import FreeUnits
from armlet.types import Float64

if TYPE_CHECKING:
    from armlet.policies.contextual_epsilon_greedy import ContextualEpsilonGreedy

CAUTION: Final = 1.0
"""What predicted losses of exploiting are multiplied by; `make publish NAME=calibration` tries others."""
START: Final = 2.0
"""The least p, for each arm."""
MOST: Final = 0.25
"""The most p, as a share of the horizon."""
EVEN: Final = 0.2
"""The part of p that all arms share alike."""

FORMS: Final = (("free", "evidence"), ("as given", "steps"))
"""The units and clocks that go together."""


def check(policy: ContextualEpsilonGreedy) -> None:
    """Refuse what p="auto" cannot do."""
    name, horizon = type(policy).__name__, policy.horizon
    if policy.learns_from == "every step":
        raise InvalidValueError(f"p is 'auto', which {name} cannot do: it needs sums of explored rows alone; give a p")
    if (policy.units, policy.clock) not in FORMS:
        raise InvalidValueError(
            f"p is 'auto' but units is {policy.units!r} and clock is {policy.clock!r}; give units='free' and "
            "clock='evidence', or units='as given' and clock='steps'"
        )
    if horizon is None and policy.clock == "evidence":
        return
    if isinstance(horizon, bool) or not isinstance(horizon, int) or not 1 <= horizon < 2**63:
        raise InvalidValueError(
            f"horizon is {horizon!r}; give p='auto' the number of decisions that there are going to be, "
            + ("or leave it out" if policy.clock == "evidence" else "for instance horizon=100_000")
        )


def rule(policy: ContextualEpsilonGreedy) -> AutoSchedule | AutoEvidence:
    """Describe it to the kernel."""
    horizon = None if policy.horizon is None else float(policy.horizon)
    if policy.clock == "evidence":
        return AutoEvidence(
            horizon=horizon, caution=CAUTION, start=START, most=MOST, even=EVEN, cap=policy.cap, floor=policy.floor
        )
    turns = policy.warmup != "uniform"
    return AutoSchedule(horizon=horizon or 1.0, caution=CAUTION, start=START, most=MOST, round_robin=turns)


def quotas(state: AutoTunedStatistics, p: float) -> Float64:
    """Give each arm's part of p, (K,), in proportion to the shares of the arms that are not retired.

    Examples
    --------
    >>> quotas(AutoTunedStatistics(4, 1, units="free"), 8.0)
    array([2., 2., 2., 2.])
    """
    shares, total = state.shares, 0.0
    for share in shares[state.active].tolist():  # from left to right, as the kernel adds
        total += share
    out: Float64 = p * (shares / total)
    return out


def look(policy: ContextualEpsilonGreedy, state: AutoTunedStatistics, t: int) -> auto_schedule.Prospect:
    """Say in numpy what it would see now."""
    s, ridge = state, Ridge.parse(policy.ridge)
    if policy.clock == "steps":
        rows = auto_schedule.Rows(n=s.n, A=s.A, b=s.b, sum_r=s.sum_r, sum_rr=s.sum_rr, ridge=ridge)
        return auto_schedule.look(rows, s.sample, t=t, horizon=policy.horizon or 1, caution=CAUTION, most=MOST)
    units = FreeUnits.of(np.asarray(s.arrays()["units"]))
    sums = {"n": s.n, "A": s.A, "b": s.b, "sum_r": s.sum_r, "sum_rr": s.sum_rr}
    free = outlook.FreeRows(**sums, active=s.active, units=units, ridge=ridge)
    return outlook.look(free, s.sample, t=t, horizon=policy.horizon, caution=CAUTION, most=MOST, even=EVEN)
