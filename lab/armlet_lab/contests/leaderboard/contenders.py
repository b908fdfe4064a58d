"""Who is compared: every policy with the constants of its theory, and with a few to choose from by trial.

The grids hold what a practitioner would try first; the best on seeds of its own is then played on others.
"""

from __future__ import annotations

from typing import Final, Literal

from armlet.policies import (
    OFUL,
    Algorithm1,
    AutoEpsilonGreedy,
    FixedEpsilon,
    Greedy,
    HybridLinUCB,
    LinUCB,
    OccasionalOptimism,
    OLSBandit,
    OptimisticEpsilonGreedy,
    ScheduledEpsilonGreedy,
    SquareCB,
    ThompsonSampling,
    Uniform,
)
from armlet_lab.contests.leaderboard.contender import Contender, few_contexts, learnable
from armlet_lab.literature import (
    EXP4,
    EXP4P,
    PEGE,
    UCB1,
    Banditron,
    ConfidenceBall1,
    ConfidenceBall2,
    Confidit,
    EpochGreedy,
    EpsilonNGreedy,
    Exp3,
    FeasibleRandomizedUCB,
    GreedyFirst,
    LinRel,
    Newtron,
    PolicyElimination,
    RarelySwitchingOFUL,
    RealLinExp3,
    SCRiBLe,
    SupLinRel,
    SupLinUCB,
    UncertaintyEllipsoid,
)
from armlet_lab.literature.running_minimum import RunningMinimumEpsilonGreedy
from armlet_lab.runner.arena import Brief

SCALES: Final = (0.03, 0.1, 0.3, 1.0)
STAGED: Final = (0.1, 0.2, 0.5, 1.0)  # smaller ones would find nothing left to learn
SHARES: Final = (0.01, 0.03, 0.1, 0.3)
CLIP: Final[Literal["clip"]] = "clip"

CONTENDERS: Final[dict[str, Contender]] = {
    "Algorithm 1": Contender(
        family="explores on schedule",
        theory=lambda b: Algorithm1(p=b.theorem_p),
        grid=lambda b: tuple(Algorithm1(p=f * b.n_arms) for f in (1, 3, 10, 30)),
    ),
    "Algorithm 1, ridge 1/n": Contender(
        family="explores on schedule",
        theory=None,
        grid=lambda b: tuple(Algorithm1(p=f * b.n_arms, ridge="1/n") for f in (1, 3, 10, 30)),
    ),
    "Algorithm 1, all data": Contender(
        family="explores on schedule",
        theory=None,
        grid=lambda b: tuple(ScheduledEpsilonGreedy(p=f * b.n_arms, ridge="1/n") for f in (1, 3, 10, 30)),
    ),
    "Algorithm 1, p = auto": Contender(
        family="explores on schedule",
        theory=None,
        grid=lambda b: (AutoEpsilonGreedy(horizon=b.horizon),),
    ),
    "Algorithm 1, p by Section 4.2": Contender(
        family="explores on schedule",
        theory=lambda _: RunningMinimumEpsilonGreedy(),
        grid=lambda _: tuple(RunningMinimumEpsilonGreedy(C=C) for C in (1e-6, 1e-4, 1e-2, 1.0)),
    ),
    "optimistic epsilon-greedy": Contender(
        family="explores on schedule",
        theory=None,
        grid=lambda _: tuple(OptimisticEpsilonGreedy(width_scale=s, units="as given") for s in (1.0, 1.5, 2.0, 3.0)),
    ),
    "occasional optimism": Contender(
        family="optimism",
        theory=None,
        grid=lambda _: tuple(OccasionalOptimism(width_scale=s) for s in (0.5, 0.7, 1.0)),
    ),
    "fixed epsilon": Contender(
        family="explores on schedule",
        theory=None,
        grid=lambda _: tuple(FixedEpsilon(epsilon=e, units="as given") for e in SHARES),
    ),
    "epoch-greedy, ridge": Contender(
        family="explores on schedule",
        theory=lambda _: EpochGreedy(oracle="ridge", c=1.0),
        grid=lambda _: tuple(EpochGreedy(oracle="ridge", c=c) for c in (1.0, 3.0, 10.0, 30.0)),
    ),
    "PEGE": Contender(
        family="explores on schedule",
        theory=lambda _: PEGE(),
        grid=lambda _: (PEGE(), PEGE(exploit="exponential"), PEGE(exploit="exponential", rounds=3)),
    ),
    "OLS bandit": Contender(
        family="explores on schedule",
        theory=None,
        grid=lambda b: tuple(OLSBandit(q=q, h=h * b.noise, units="as given") for q in (1, 5) for h in (0.3, 1.0)),
    ),
    "greedy-first": Contender(
        family="explores on schedule",
        theory=None,
        grid=lambda b: tuple(GreedyFirst(q=q, h=h * b.noise) for q in (1, 5) for h in (0.3, 1.0)),
    ),
    "LinUCB": Contender(
        family="optimism",
        theory=lambda _: LinUCB(units="as given"),
        grid=lambda b: tuple(LinUCB(alpha=s * b.noise, units="as given") for s in (0.3, 1, 2, 4)),
    ),
    "LinUCB, hybrid": Contender(
        family="optimism",
        theory=lambda _: HybridLinUCB(),
        grid=lambda b: tuple(HybridLinUCB(alpha=s * b.noise) for s in (0.3, 1, 2, 4)),
    ),
    "SupLinUCB": Contender(
        family="optimism",
        theory=lambda b: SupLinUCB(horizon=b.horizon, noise_scale=b.noise, theta_norm=b.bound),
        grid=lambda b: tuple(
            SupLinUCB(horizon=b.horizon, noise_scale=s * b.noise, theta_norm=s * b.bound) for s in STAGED
        ),
    ),
    "LinRel": Contender(
        family="optimism",
        theory=lambda b: LinRel(horizon=b.horizon, noise_scale=b.noise, theta_norm=b.bound),
        grid=lambda b: tuple(
            LinRel(horizon=b.horizon, noise_scale=b.noise, theta_norm=b.bound, width_scale=s) for s in SCALES
        ),
    ),
    "SupLinRel": Contender(
        family="optimism",
        theory=lambda b: SupLinRel(horizon=b.horizon, noise_scale=b.noise, theta_norm=learnable(b)),
        grid=lambda b: tuple(
            SupLinRel(horizon=b.horizon, noise_scale=s * b.noise, theta_norm=learnable(b)) for s in STAGED
        ),
    ),
    "ConfidenceBall1": Contender(
        family="optimism",
        theory=lambda _: ConfidenceBall1(),
        grid=lambda _: tuple(ConfidenceBall1(beta_scale=s) for s in (1e-6, 1e-5, 1e-4, 1e-3)),
    ),
    "ConfidenceBall2": Contender(
        family="optimism",
        theory=lambda _: ConfidenceBall2(),
        grid=lambda _: tuple(ConfidenceBall2(beta_scale=s) for s in (1e-6, 1e-5, 1e-4, 1e-3)),
    ),
    "uncertainty ellipsoid": Contender(
        family="optimism",
        theory=lambda b: UncertaintyEllipsoid(noise_scale=b.noise),
        grid=lambda b: tuple(UncertaintyEllipsoid(noise_scale=b.noise, width_scale=s) for s in (1e-4, 1e-3, 1e-2, 0.1)),
    ),
    "OFUL": Contender(
        family="optimism",
        theory=lambda b: OFUL(noise_scale=b.noise, theta_norm=b.bound),
        grid=lambda b: tuple(OFUL(noise_scale=b.noise, theta_norm=b.bound, width_scale=s) for s in SCALES),
    ),
    "OFUL, rarely switching": Contender(
        family="optimism",
        theory=lambda b: RarelySwitchingOFUL(noise_scale=b.noise, theta_norm=b.bound),
        grid=lambda b: tuple(
            RarelySwitchingOFUL(noise_scale=b.noise, theta_norm=b.bound, width_scale=s) for s in SCALES
        ),
    ),
    "Thompson sampling": Contender(
        family="randomised",
        theory=lambda b: ThompsonSampling(noise_scale=b.noise, units="as given"),
        grid=lambda b: tuple(ThompsonSampling(v=s * b.noise, units="as given") for s in (0.3, 1, 2, 4)),
    ),
    "SquareCB": Contender(
        family="randomised",
        theory=lambda _: SquareCB(units="as given"),
        grid=lambda b: tuple(SquareCB(gamma_scale=s / b.noise, units="as given") for s in (1.0, 4.0, 16.0, 64.0)),
    ),
    "RealLinExp3": Contender(
        family="randomised",
        theory=lambda b: RealLinExp3(horizon=b.horizon, reward_scale=max(map(abs, b.rewards))),
        grid=lambda b: tuple(
            RealLinExp3(horizon=b.horizon, reward_scale=max(map(abs, b.rewards)), eta=eta, gamma=gamma)
            for eta in (0.03, 0.3)
            for gamma in (0.02, 0.1)
        ),
    ),
    "EXP4, linear experts": Contender(
        family="finite class",
        theory=lambda b: EXP4(horizon=b.horizon, outside=CLIP, reward_range=b.rewards),
        grid=lambda b: tuple(EXP4(gamma=g, outside=CLIP, reward_range=b.rewards) for g in SHARES),
    ),
    "EXP4.P": Contender(
        family="finite class",
        theory=lambda b: EXP4P(horizon=b.horizon, outside=CLIP, reward_range=b.rewards),
        grid=lambda b: tuple(
            EXP4P(horizon=b.horizon, p_min=g / b.n_arms, outside=CLIP, reward_range=b.rewards) for g in SHARES
        ),
    ),
    "epoch-greedy, finite": Contender(
        family="finite class",
        theory=lambda _: EpochGreedy(oracle="finite", c=1.0),
        grid=lambda _: tuple(EpochGreedy(oracle="finite", c=c) for c in (1.0, 3.0, 10.0, 30.0)),
    ),
    "PolicyElimination": Contender(
        family="finite class",
        theory=lambda b: PolicyElimination(outside=CLIP, reward_range=b.rewards),
        grid=lambda b: tuple(
            PolicyElimination(width_scale=s, outside=CLIP, reward_range=b.rewards) for s in (0.03, 0.07, 0.1, 0.2)
        ),
    ),
    "RandomizedUCB, feasible point": Contender(
        family="finite class",
        theory=lambda b: FeasibleRandomizedUCB(outside=CLIP, reward_range=b.rewards),
        grid=lambda b: tuple(
            FeasibleRandomizedUCB(width_scale=s, outside=CLIP, reward_range=b.rewards) for s in SCALES
        ),
    ),
    "epsilon_n-greedy, table": Contender(
        family="one row a context",
        theory=lambda b: EpsilonNGreedy(gap=_unit_gap(b), contexts="table"),
        grid=lambda _: tuple(EpsilonNGreedy(gap=1.0, c=c, contexts="table") for c in (0.1, 0.3, 1.0, 3.0)),
        fits=few_contexts,
    ),
    "UCB1, table": Contender(
        family="one row a context",
        theory=lambda b: UCB1(contexts="table", outside=CLIP, reward_range=b.rewards),
        grid=lambda b: tuple(
            UCB1(contexts="table", width_scale=s, outside=CLIP, reward_range=b.rewards) for s in SCALES
        ),
        fits=few_contexts,
    ),
    "Exp3, table": Contender(
        family="one row a context",
        theory=lambda b: Exp3(horizon=b.horizon, contexts="table", outside=CLIP, reward_range=b.rewards),
        grid=lambda b: tuple(Exp3(gamma=g, contexts="table", outside=CLIP, reward_range=b.rewards) for g in SHARES),
        fits=few_contexts,
    ),
    "EXP4, all maps": Contender(
        family="one row a context",
        theory=lambda b: EXP4(
            experts="all maps", horizon=b.horizon, n_contexts=b.contexts, outside=CLIP, reward_range=b.rewards
        ),
        grid=lambda b: tuple(EXP4(experts="all maps", gamma=g, outside=CLIP, reward_range=b.rewards) for g in SHARES),
        fits=few_contexts,
    ),
    "SCRiBLe, table": Contender(
        family="one row a context",
        theory=lambda b: SCRiBLe(horizon=b.horizon, contexts="table", outside=CLIP, reward_range=b.rewards),
        grid=lambda b: tuple(
            SCRiBLe(eta=e, contexts="table", outside=CLIP, reward_range=b.rewards) for e in (0.01, 0.03, 0.05)
        ),
        fits=few_contexts,
    ),
    "epoch-greedy, table": Contender(
        family="one row a context",
        theory=lambda _: EpochGreedy(oracle="tabular", c=1.0),
        grid=lambda _: tuple(EpochGreedy(oracle="tabular", c=c) for c in (1.0, 3.0, 10.0, 30.0)),
        fits=few_contexts,
    ),
    "greedy": Contender(family="floor", theory=None, grid=lambda _: (Greedy(units="as given"),)),
    "epsilon_n-greedy": Contender(
        family="floor",
        theory=lambda b: EpsilonNGreedy(gap=_unit_gap(b)),
        grid=lambda _: tuple(EpsilonNGreedy(gap=1.0, c=c) for c in (0.3, 1.0, 3.0, 10.0)),
    ),
    "UCB1": Contender(
        family="floor",
        theory=lambda b: UCB1(outside=CLIP, reward_range=b.rewards),
        grid=lambda b: tuple(UCB1(width_scale=s, outside=CLIP, reward_range=b.rewards) for s in SCALES),
    ),
    "Exp3": Contender(
        family="floor",
        theory=lambda b: Exp3(horizon=b.horizon, outside=CLIP, reward_range=b.rewards),
        grid=lambda b: tuple(Exp3(gamma=g, outside=CLIP, reward_range=b.rewards) for g in SHARES),
    ),
    "SCRiBLe": Contender(
        family="floor",
        theory=lambda b: SCRiBLe(horizon=b.horizon, outside=CLIP, reward_range=b.rewards),
        grid=lambda b: tuple(SCRiBLe(eta=e, outside=CLIP, reward_range=b.rewards) for e in (0.01, 0.03, 0.05)),
    ),
    "uniform": Contender(family="floor", theory=None, grid=lambda _: (Uniform(),)),
}
"""Ranked together. A floor ignores contexts, or never explores: on a contextual problem it cannot do well for long."""

ONE_BIT: Final[dict[str, Contender]] = {
    "Banditron": Contender(
        family="one bit",
        theory=lambda b: Banditron(gamma=b.horizon ** (-1 / 3)),
        grid=lambda _: tuple(Banditron(gamma=g) for g in (0.01, 0.02, 0.05, 0.1)),
    ),
    "Newtron": Contender(
        family="one bit", theory=None, grid=lambda _: tuple(Newtron(gamma=g) for g in (0.01, 0.02, 0.05, 0.1))
    ),
    "Confidit": Contender(
        family="one bit",
        theory=lambda _: Confidit(eta=None),
        grid=lambda _: tuple(Confidit(eta=e) for e in (0.05, 0.2, 1.0, 5.0)),
    ),
}
"""Ranked apart: told whether the arm was the best one, a noiseless bit that the others do not get."""


def _unit_gap(told: Brief) -> float:
    """Give the smallest gap in units of the reward's range, at least a hundredth: the theory needs to know it."""
    low, high = told.rewards
    return min(1.0, max(0.01, (told.gap or 0.0) / (high - low)))
