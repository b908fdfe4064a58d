"""Contextual epsilon-greedy: Algorithm 1, Section 4, for environments in which arms come and go and rewards come late.

Explores what lacks evidence, whatever x is, and learns only from explored steps, so the contexts behind theta_hat keep
the distribution of the environment. Where nothing comes, goes or is late it ends up exploring as often as Algorithm 1,
after p log K steps more at its start; Theorem 2 is about p/t, which is clock="steps" (and `Algorithm1`, as printed).
With p="auto", Section 4.2: a p that sets itself looks at explored rows alone, so it costs nothing between them. Decide
O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2) whatever t (Theorem 1). With p="auto" every look, after
10 % more rows than at the one before, is O(K d^3 + K d^2): O(log n) of them in n explored steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

import armlet.policies.auto_p as auto_p
from armlet.errors import InvalidValueError
from armlet.inputs.settings import (
    HUGE,
    TINY,
    Ridge,
    RidgeLike,
    Units,
    check_origin,
    number,
    one_of,
    origin_like,
    settle,
    units_word,
)
from armlet.kernel import AutoEvidence, AutoSchedule, AutoTunedStatistics, Evidence, Schedule, Statistics, sum_shapes
from armlet.policies.base import sums
from armlet.policies.epsilon_greedy import EpsilonGreedy, Warmup, check_warmup
from armlet.reference import auto_schedule
from armlet.reference.evidence import Clock, Exploring, by_evidence
from armlet.types import Bool, Interaction, Shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualEpsilonGreedy(EpsilonGreedy):
    """Explore arms that lack rows, else play the arm that ridge regression on explored steps thinks best.

    By evidence, an arm with n rows weighs w = max(min(1, q/t), min(1, exp(1 - n/q))), where q is p over the number of
    arms that are not retired. A step explores with probability min(cap, sum of w over the eligible arms), and then
    takes an arm by its weight. So a newcomer is tried at once, at any t; an arm whose rewards are late is tried until
    they come; rows that are merged in or forgotten count from then on.

    Parameters
    ----------
    p
        How much to explore: about p (1 + log(T / q)) of T decisions, q = p / K of them for each arm to begin with (by
        steps, p (1 + log(T / p)) of them); `armlet.advise` recommends one. "auto" finds it on the way: p rises while
        explored steps say that more exploring would save more than it costs, and never falls. An arm's share of it is
        the larger the more is in doubt about the arm, whatever x is.
    ridge
        "paper" (lambda_n = 1/sqrt(n)), "1/n", or a positive number; see `armlet.inputs.settings.Ridge`.
    horizon
        For p="auto": how many decisions there are going to be; the right power of ten will do. None takes it at every
        look for ten times as many as there were.
    units
        "free": neither zero nor size of features and rewards matters, see `armlet.reference.units`; or "as given".
    origin
        In free units: about where rewards and features lie, l, o_1, ..., o_d, if they are far from zero and no row may
        be used to find out. Left out, it is zero, or beyond 1024 eight bits of the first row.
    clock
        "evidence" explores as above; "steps" explores step t with probability p/t, all eligible arms alike, as
        `Algorithm1` does, and needs p to be at least the number of arms.
    cap
        The most that evidence makes a step explore: below 1, newcomers share the traffic with what is known.
    floor
        A share of all steps that explores for ever, all eligible arms alike, so that every arm has a propensity of at
        least floor / K and a log can be evaluated for ever. Its price is that share of what a random arm loses.
    warmup
        For clock="steps": the first ceil(p) steps. "round-robin" plays arm t mod K, as printed, and is what None means;
        "uniform" draws it, so that every eligible arm has a positive propensity from the first step on.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=ContextualEpsilonGreedy(p=20), seed=1)
    >>> for _ in range(1000):
    ...     decision = bandit.decide([1.0])
    ...     bandit.learn(decision, float(decision.arm == "b"))
    >>> bandit.add_arm("c")
    >>> bandit.decide([1.0]).arm
    'c'
    >>> policy = ContextualEpsilonGreedy(p="auto")
    >>> policy.current_p(policy.init(n_arms=4, dim=3))
    8.0
    """

    p: float | Literal["auto"]
    ridge: RidgeLike = "paper"
    horizon: int | None = None
    units: Units = "free"
    origin: tuple[float, ...] | None = None
    clock: Clock = "evidence"
    cap: float = 1.0
    floor: float = 0.0
    warmup: Warmup | None = None

    def __post_init__(self) -> None:
        for name in ("p", "horizon"):
            if isinstance(value := getattr(self, name), np.generic):
                object.__setattr__(self, name, value.item())
        settle(self, clock=one_of("evidence", "steps"), cap=number(1e-9, 1.0), floor=number(0.0, 1.0))
        settle(self, units=units_word, origin=origin_like)
        if self.p == "auto":
            auto_p.check(self)
        elif isinstance(self.p, (bool, str)) or not isinstance(self.p, (int, float)) or not self._fits(self.p):
            least = "above 0" if self.clock == "evidence" else "of at least 1, the number of arms or more"
            raise InvalidValueError(f"p is {self.p!r}; give a number {least}, or 'auto'")
        elif self.horizon is not None:
            raise InvalidValueError(f"horizon is {self.horizon!r} but p is {self.p}; only p='auto' has a use for it")
        self._check_clock()
        Ridge.parse(self.ridge)

    @property
    def _goes_by_evidence(self) -> bool:
        return self.clock == "evidence"

    def _fits(self, p: float) -> bool:
        return TINY <= p <= HUGE if self.clock == "evidence" else 1 <= p <= 1e100

    def _check_clock(self) -> None:
        if self.warmup is not None:
            check_warmup(self.warmup)
        if self._goes_by_evidence and self.warmup is not None:
            raise InvalidValueError(f"warmup is {self.warmup!r} but clock is 'evidence', which has none; leave it out")
        for name, default in (("cap", 1.0), ("floor", 0.0)):
            if not self._goes_by_evidence and getattr(self, name) != default:
                raise InvalidValueError(
                    f"{name} is {getattr(self, name)}, but only clock='evidence' has one; leave it out"
                )

    def check(self, n_arms: int, dim: int, t: int) -> None:
        """Refuse a warm-up that is too short to see every arm, if there is one."""
        if not self._goes_by_evidence:
            EpsilonGreedy.check(self, n_arms, dim, t)

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Give the shapes of the state's arrays."""
        records = sum_shapes(n_arms, dim, units=self.units)
        if self.p != "auto":
            return records
        shares: Shapes = {"shares": (n_arms,)} if self.units == "free" else {}
        return {**records, "sample": (None, dim), "tuning": (2,), **shares}

    def init(self, n_arms: int, dim: int) -> Statistics:
        """For all arms: A = 0, n = 0, b = 0."""
        ridge = Ridge.parse(self.ridge)
        if self.p != "auto":
            return sums(ridge, n_arms, dim, units=self.units, origin=self.origin)
        origin = check_origin(self.origin, dim)
        return AutoTunedStatistics(n_arms, dim, ridge=ridge.kind, value=ridge.value, units=self.units, origin=origin)

    def rule(self) -> Schedule | Evidence | AutoSchedule | AutoEvidence:
        """Describe when to explore to the kernel."""
        turns, always = self.warmup != "uniform", self.learns_from == "every step"
        if self.p == "auto":
            return auto_p.rule(self)
        if self._goes_by_evidence:
            return Evidence(p=self.p, cap=self.cap, floor=self.floor, learn_always=always)
        return Schedule(self.p, round_robin=turns, learn_always=always)

    def current_p(self, state: Statistics) -> float:
        """Give the p in force: the one that was set, or what "auto" has come to."""
        return state.p(auto_p.rule(self)) if isinstance(state, AutoTunedStatistics) else float(self.p)

    def exploring(self, state: Statistics, t: int, eligible: Bool) -> Exploring:
        """Say whether step t explores, and with which arm: by the rows that each arm has, or by the clock."""
        if not self._goes_by_evidence:
            return EpsilonGreedy.exploring(self, state, t, eligible)
        p = self.current_p(state)
        q = auto_p.quotas(state, p) if isinstance(state, AutoTunedStatistics) else p / state.n_active
        return by_evidence(state.n, eligible, t, q=q, cap=self.cap, floor=self.floor)

    def exploration_rate(self, t: int, state: Statistics | None = None) -> float:
        """Give the probability that step t explores, if all arms that are not retired are eligible.

        By evidence and with p="auto" it depends on the state.

        Examples
        --------
        >>> policy = ContextualEpsilonGreedy(p=2)
        >>> state = policy.init(n_arms=2, dim=1)
        >>> policy.update(state, Interaction(t=1, x=np.ones(1), arm=0, reward=0.5, weight=5.0))
        >>> policy.update(state, Interaction(t=1, x=np.ones(1), arm=1, reward=0.5, weight=5.0))
        >>> round(policy.exploration_rate(10_000, state), 4)
        0.0366
        """
        if state is None and self._goes_by_evidence:
            raise InvalidValueError(
                "state is None but clock is 'evidence': how much it explores depends on rows; pass state"
            )
        return EpsilonGreedy.exploration_rate(self, t, state)

    def look(self, state: AutoTunedStatistics, t: int) -> auto_schedule.Prospect:
        """Say what "auto" sees at step t, and which p it would choose if it looked now: in numpy, for people to read.

        Examples
        --------
        >>> import armlet
        >>> policy = ContextualEpsilonGreedy(p="auto", horizon=1000)
        >>> bandit = armlet.Bandit(arms=["a", "b"], dim=1, policy=policy, seed=1)
        >>> for t in range(100):
        ...     decision = bandit.decide([1.0])
        ...     bandit.learn(decision, float(decision.arm == "b") + t % 3)
        >>> seen = policy.look(bandit.state, bandit.t)
        >>> 0.5 < seen.noise < 1.5, seen.sigma_min, seen.delta > 0
        (True, 1.0, True)
        """
        if self.p != "auto":
            raise InvalidValueError(f"p is {self.p}; only p='auto' looks for another")
        return auto_p.look(self, state, t)

    def update(self, state: Statistics, interaction: Interaction) -> None:
        """Record an explored step, and look for a better p if enough of them have come; skip the others."""
        EpsilonGreedy.update(self, state, interaction)
        is_new = interaction.replaces is None  # a corrected reward is no other context
        if interaction.explored and isinstance(state, AutoTunedStatistics) and is_new:
            state.learned(auto_p.rule(self), interaction.x, interaction.weight, interaction.t)
