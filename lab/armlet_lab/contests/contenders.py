"""Who is ranked by the leaderboard: every policy with the constants of its theory, and with a few to choose from.

The grids hold what a practitioner would try first; the best on draws of its own is then played on others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from armlet.policies import (
    OFUL,
    Algorithm1,
    AutoEpsilonGreedy,
    FixedEpsilon,
    Greedy,
    LinUCB,
    OccasionalOptimism,
    ScheduledEpsilonGreedy,
    SquareCB,
    ThompsonSampling,
    Uniform,
)
from armlet.types import Policy
from armlet_lab.literature.banditron import Banditron
from armlet_lab.literature.confidence_ball import ConfidenceBall1, ConfidenceBall2
from armlet_lab.literature.confidit import Confidit
from armlet_lab.literature.epoch_greedy import EpochGreedy
from armlet_lab.literature.exp4 import EXP4
from armlet_lab.literature.exp4p import EXP4P
from armlet_lab.literature.feasible_randomized_ucb import FeasibleRandomizedUCB
from armlet_lab.literature.greedy_first import GreedyFirst
from armlet_lab.literature.hybrid_linucb import HybridLinUCB
from armlet_lab.literature.linrel import LinRel
from armlet_lab.literature.newtron import Newtron
from armlet_lab.literature.ols_bandit import OLSBandit
from armlet_lab.literature.optimistic_epsilon_greedy import OptimisticEpsilonGreedy
from armlet_lab.literature.pege import PEGE
from armlet_lab.literature.policy_elimination import PolicyElimination
from armlet_lab.literature.rarely_switching_oful import RarelySwitchingOFUL
from armlet_lab.literature.real_lin_exp3 import RealLinExp3
from armlet_lab.literature.running_minimum import RunningMinimumEpsilonGreedy
from armlet_lab.literature.scrible import SCRiBLe
from armlet_lab.literature.staged import SupLinRel, SupLinUCB
from armlet_lab.literature.tabular import UCB1, EpsilonNGreedy, Exp3
from armlet_lab.literature.uncertainty_ellipsoid import UncertaintyEllipsoid
from armlet_lab.runner.arena import Brief

Family: TypeAlias = Literal[
    "explores on schedule", "optimism", "randomised", "finite class", "one row a context", "one bit", "floor"
]


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy with a grid of values to choose from, and with its theory's settings, if it has a theory."""

    family: Family
    values: tuple[Any, ...]
    make: Callable[[Brief, Any], Policy]
    theory: Callable[[Brief], Policy] | None = None

    def fits(self, brief: Brief) -> bool:
        """Return whether it can play there: a table needs contexts that repeat."""
        return self.family != "one row a context" or brief.contexts is not None

    def grid(self, brief: Brief) -> tuple[Policy, ...]:
        """Return the policies to choose from."""
        return tuple(self.make(brief, value) for value in self.values)

    def settle(self, brief: Brief, choice: int | None) -> Policy:
        """Return the policy for a problem: a choice of the grid, or None for the theory's constants."""
        if choice is not None:
            return self.grid(brief)[choice]
        if self.theory is None:
            raise ValueError(f"there is no theory to take constants from; choose one of {len(self.values)}")
        return self.theory(brief)


Maker: TypeAlias = Callable[..., Contender]

FACTORS: Final = (1, 3, 10, 30)
SCALES: Final = (0.03, 0.1, 0.3, 1.0)
STAGED: Final = (0.1, 0.2, 0.5, 1.0)  # smaller ones would find nothing left to learn
SHARES: Final = (0.01, 0.03, 0.1, 0.3)
WIDTHS: Final = (0.3, 1, 2, 4)  # of the noise
EPOCHS: Final = (1.0, 3.0, 10.0, 30.0)
BETAS: Final = (1e-6, 1e-5, 1e-4, 1e-3)
PAIRS: Final = ((1, 0.3), (1, 1.0), (5, 0.3), (5, 1.0))  # q and h of forced sampling
BITS: Final = (0.01, 0.02, 0.05, 0.1)


def _inside(brief: Brief) -> dict[str, Any]:
    return {"outside": "clip", "reward_range": brief.rewards}


def _known(brief: Brief) -> dict[str, Any]:
    return {"noise_scale": brief.noise, "theta_norm": brief.bound}


def _staged(brief: Brief, scale: float = 1.0) -> dict[str, Any]:
    """Return settings from which SupLinRel learns: below 1 / sqrt(T) it finds every arm known from the start."""
    bound = max(brief.bound, 2 / math.sqrt(brief.horizon))
    return {"horizon": brief.horizon, "noise_scale": scale * brief.noise, "theta_norm": bound}


def _unit_gap(brief: Brief) -> float:
    """Return the smallest gap in units of the reward's range, at least a hundredth: the theory needs to know it."""
    low, high = brief.rewards
    return min(1.0, max(0.01, (brief.gap or 0.0) / (high - low)))


def _range(brief: Brief) -> dict[str, Any]:
    return {"horizon": brief.horizon, "reward_scale": max(map(abs, brief.rewards))}


_schedule: Maker = partial(Contender, "explores on schedule")
_optimism: Maker = partial(Contender, "optimism")
_random: Maker = partial(Contender, "randomised")
_finite: Maker = partial(Contender, "finite class")
_table: Maker = partial(Contender, "one row a context")
_bit: Maker = partial(Contender, "one bit")
_floor: Maker = partial(Contender, "floor")

CONTENDERS: Final[dict[str, Contender]] = {
    "Algorithm 1": _schedule(FACTORS, lambda b, f: Algorithm1(p=f * b.n_arms), lambda b: Algorithm1(p=b.theorem_p)),
    "Algorithm 1, ridge 1/n": _schedule(FACTORS, lambda b, f: Algorithm1(p=f * b.n_arms, ridge="1/n")),
    "Algorithm 1, all data": _schedule(FACTORS, lambda b, f: ScheduledEpsilonGreedy(p=f * b.n_arms, ridge="1/n")),
    "Algorithm 1, p = auto": _schedule(("auto",), lambda b, _: AutoEpsilonGreedy(horizon=b.horizon)),
    "Algorithm 1, p by Section 4.2": _schedule(
        (1e-6, 1e-4, 1e-2, 1.0), lambda _, C: RunningMinimumEpsilonGreedy(C=C), lambda _: RunningMinimumEpsilonGreedy()
    ),
    "optimistic epsilon-greedy": _schedule(
        (1.0, 1.5, 2.0, 3.0), lambda _, s: OptimisticEpsilonGreedy(width_scale=s, units="as given")
    ),
    "occasional optimism": _optimism((0.5, 0.7, 1.0), lambda _, s: OccasionalOptimism(width_scale=s)),
    "fixed epsilon": _schedule(SHARES, lambda _, e: FixedEpsilon(epsilon=e, units="as given")),
    "epoch-greedy, ridge": _schedule(
        EPOCHS, lambda _, c: EpochGreedy(oracle="ridge", c=c), lambda _: EpochGreedy(oracle="ridge", c=1.0)
    ),
    "PEGE": _schedule(
        ({}, {"exploit": "exponential"}, {"exploit": "exponential", "rounds": 3}),
        lambda _, how: PEGE(**how),
        lambda _: PEGE(),
    ),
    "OLS bandit": _schedule(PAIRS, lambda b, each: OLSBandit(q=each[0], h=each[1] * b.noise, units="as given")),
    "greedy-first": _schedule(PAIRS, lambda b, each: GreedyFirst(q=each[0], h=each[1] * b.noise)),
    "LinUCB": _optimism(
        WIDTHS, lambda b, s: LinUCB(alpha=s * b.noise, units="as given"), lambda _: LinUCB(units="as given")
    ),
    "LinUCB, hybrid": _optimism(WIDTHS, lambda b, s: HybridLinUCB(alpha=s * b.noise), lambda _: HybridLinUCB()),
    "SupLinUCB": _optimism(
        STAGED,
        lambda b, s: SupLinUCB(horizon=b.horizon, noise_scale=s * b.noise, theta_norm=s * b.bound),
        lambda b: SupLinUCB(horizon=b.horizon, **_known(b)),
    ),
    "LinRel": _optimism(
        SCALES,
        lambda b, s: LinRel(horizon=b.horizon, **_known(b), width_scale=s),
        lambda b: LinRel(horizon=b.horizon, **_known(b)),
    ),
    "SupLinRel": _optimism(STAGED, lambda b, s: SupLinRel(**_staged(b, s)), lambda b: SupLinRel(**_staged(b))),
    "ConfidenceBall1": _optimism(BETAS, lambda _, s: ConfidenceBall1(beta_scale=s), lambda _: ConfidenceBall1()),
    "ConfidenceBall2": _optimism(BETAS, lambda _, s: ConfidenceBall2(beta_scale=s), lambda _: ConfidenceBall2()),
    "uncertainty ellipsoid": _optimism(
        (1e-4, 1e-3, 1e-2, 0.1),
        lambda b, s: UncertaintyEllipsoid(noise_scale=b.noise, width_scale=s),
        lambda b: UncertaintyEllipsoid(noise_scale=b.noise),
    ),
    "OFUL": _optimism(SCALES, lambda b, s: OFUL(**_known(b), width_scale=s), lambda b: OFUL(**_known(b))),
    "OFUL, rarely switching": _optimism(
        SCALES, lambda b, s: RarelySwitchingOFUL(**_known(b), width_scale=s), lambda b: RarelySwitchingOFUL(**_known(b))
    ),
    "Thompson sampling": _random(
        WIDTHS,
        lambda b, s: ThompsonSampling(v=s * b.noise, units="as given"),
        lambda b: ThompsonSampling(noise_scale=b.noise, units="as given"),
    ),
    "SquareCB": _random(
        (1.0, 4.0, 16.0, 64.0),
        lambda b, s: SquareCB(gamma_scale=s / b.noise, units="as given"),
        lambda _: SquareCB(units="as given"),
    ),
    "RealLinExp3": _random(
        ((0.03, 0.02), (0.03, 0.1), (0.3, 0.02), (0.3, 0.1)),
        lambda b, each: RealLinExp3(**_range(b), eta=each[0], gamma=each[1]),
        lambda b: RealLinExp3(**_range(b)),
    ),
    "EXP4, linear experts": _finite(
        SHARES, lambda b, g: EXP4(gamma=g, **_inside(b)), lambda b: EXP4(horizon=b.horizon, **_inside(b))
    ),
    "EXP4.P": _finite(
        SHARES,
        lambda b, g: EXP4P(horizon=b.horizon, p_min=g / b.n_arms, **_inside(b)),
        lambda b: EXP4P(horizon=b.horizon, **_inside(b)),
    ),
    "epoch-greedy, finite": _finite(
        EPOCHS, lambda _, c: EpochGreedy(oracle="finite", c=c), lambda _: EpochGreedy(oracle="finite", c=1.0)
    ),
    "PolicyElimination": _finite(
        (0.03, 0.07, 0.1, 0.2),
        lambda b, s: PolicyElimination(width_scale=s, **_inside(b)),
        lambda b: PolicyElimination(**_inside(b)),
    ),
    "RandomizedUCB, feasible point": _finite(
        SCALES,
        lambda b, s: FeasibleRandomizedUCB(width_scale=s, **_inside(b)),
        lambda b: FeasibleRandomizedUCB(**_inside(b)),
    ),
    "epsilon_n-greedy, table": _table(
        (0.1, 0.3, 1.0, 3.0),
        lambda _, c: EpsilonNGreedy(gap=1.0, c=c, contexts="table"),
        lambda b: EpsilonNGreedy(gap=_unit_gap(b), contexts="table"),
    ),
    "UCB1, table": _table(
        SCALES,
        lambda b, s: UCB1(contexts="table", width_scale=s, **_inside(b)),
        lambda b: UCB1(contexts="table", **_inside(b)),
    ),
    "Exp3, table": _table(
        SHARES,
        lambda b, g: Exp3(gamma=g, contexts="table", **_inside(b)),
        lambda b: Exp3(horizon=b.horizon, contexts="table", **_inside(b)),
    ),
    "EXP4, all maps": _table(
        SHARES,
        lambda b, g: EXP4(experts="all maps", gamma=g, **_inside(b)),
        lambda b: EXP4(experts="all maps", horizon=b.horizon, n_contexts=b.contexts, **_inside(b)),
    ),
    "SCRiBLe, table": _table(
        (0.01, 0.03, 0.05),
        lambda b, e: SCRiBLe(eta=e, contexts="table", **_inside(b)),
        lambda b: SCRiBLe(horizon=b.horizon, contexts="table", **_inside(b)),
    ),
    "epoch-greedy, table": _table(
        EPOCHS, lambda _, c: EpochGreedy(oracle="tabular", c=c), lambda _: EpochGreedy(oracle="tabular", c=1.0)
    ),
    "greedy": _floor(("as given",), lambda _, units: Greedy(units=units)),
    "epsilon_n-greedy": _floor(
        (0.3, 1.0, 3.0, 10.0), lambda _, c: EpsilonNGreedy(gap=1.0, c=c), lambda b: EpsilonNGreedy(gap=_unit_gap(b))
    ),
    "UCB1": _floor(SCALES, lambda b, s: UCB1(width_scale=s, **_inside(b)), lambda b: UCB1(**_inside(b))),
    "Exp3": _floor(SHARES, lambda b, g: Exp3(gamma=g, **_inside(b)), lambda b: Exp3(horizon=b.horizon, **_inside(b))),
    "SCRiBLe": _floor(
        (0.01, 0.03, 0.05),
        lambda b, e: SCRiBLe(eta=e, **_inside(b)),
        lambda b: SCRiBLe(horizon=b.horizon, **_inside(b)),
    ),
    "uniform": _floor((None,), lambda *_: Uniform()),
}
"""Ranked together. A floor ignores contexts, or never explores: on a contextual problem it cannot do well for long."""

ONE_BIT: Final[dict[str, Contender]] = {
    "Banditron": _bit(BITS, lambda _, g: Banditron(gamma=g), lambda b: Banditron(gamma=b.horizon ** (-1 / 3))),
    "Newtron": _bit(BITS, lambda _, g: Newtron(gamma=g)),
    "Confidit": _bit((0.05, 0.2, 1.0, 5.0), lambda _, e: Confidit(eta=e), lambda _: Confidit(eta=None)),
}
"""Ranked apart: they learn whether the arm was the best one, a noiseless bit that the others do not get."""

ALL: Final[dict[str, Contender]] = {**CONTENDERS, **ONE_BIT}
