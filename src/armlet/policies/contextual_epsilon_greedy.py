"""Contextual epsilon-greedy: Algorithm 1, Section 4; with p="auto", Section 4.2.

Explores step t with probability p/t and learns only from explored steps, so the contexts behind theta_hat keep the
distribution of the world. A p that sets itself looks at explored rows alone, so it costs nothing between them.
Decide O(K d); update O(d^2), solve O(d^3) for one arm; memory O(K d^2) whatever t (Theorem 1). With p="auto" every
look, after 10 % more rows than at the one before, is O(K d^3 + K d^2): O(log n) of them in n explored steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from armlet.core import tuning
from armlet.core.checks import origin_like, settle, units_word
from armlet.core.kernel import AutoSchedule, Schedule, Statistics, Tuned
from armlet.core.ridge import Ridge, RidgeLike
from armlet.core.statistics import sum_shapes
from armlet.core.types import Interaction, Shapes
from armlet.core.units import Units
from armlet.policies.parts.epsilon_greedy import EpsilonGreedy, Warmup, check_warmup

CAUTION: Final = 1.0
"""What predicted losses of exploiting are multiplied by; `make calibrate` tries others."""
START: Final = 2.0
"""The least p, for each arm."""
MOST: Final = 0.25
"""The most p, as a share of the horizon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualEpsilonGreedy(EpsilonGreedy):
    """Explore with probability p/t, else play the arm that ridge regression on explored steps thinks best.

    Until the first reward has come, all arms tie whatever the context is, so every step explores and is learned. With
    prompt rewards that is the first step alone, which explores anyway.

    Parameters
    ----------
    p
        How much to explore: about p (1 + log(T / p)) of T decisions. At least the number of arms; `armlet.advise`
        recommends one. "auto" finds it on the way, for a given horizon: p rises while explored steps say that more
        exploring would save more than it costs, and never falls.
    ridge
        "paper" (lambda_n = 1/sqrt(n)), "1/n", or a positive number; see `armlet.core.ridge`.
    warmup
        The first ceil(p) steps: "round-robin" plays arm t mod K, as printed; "uniform" draws it, so that every
        eligible arm has a positive propensity from the first step on.
    horizon
        For p="auto": how many decisions there are going to be; the right power of ten will do.
    units
        "free": neither the zero nor the size of features and rewards matters, see `armlet.core.units`; or "as given".
    origin
        In free units: about where rewards and features lie, l, o_1, ..., o_d, if they are far from zero and no row may
        be used to find out. Left out, it is zero, or beyond 1024 eight bits of the first row.

    Examples
    --------
    >>> policy = ContextualEpsilonGreedy(p=60)
    >>> policy.exploration_rate(60), policy.exploration_rate(600)
    (1.0, 0.1)
    >>> policy = ContextualEpsilonGreedy(p="auto", horizon=100_000)
    >>> policy.current_p(policy.init(n_arms=4, dim=3))
    8.0
    """

    p: float | Literal["auto"]
    ridge: RidgeLike = "paper"
    warmup: Warmup = "round-robin"
    horizon: int | None = None
    units: Units = "as given"
    origin: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("p", "horizon"):
            if isinstance(value := getattr(self, name), np.generic):
                object.__setattr__(self, name, value.item())
        if self.p == "auto":
            self._check_auto()
        elif isinstance(self.p, (bool, str)) or not isinstance(self.p, (int, float)) or not 1 <= self.p <= 1e100:
            raise ValueError(f"p is {self.p!r}; give a number of at least 1, the number of arms or more, or 'auto'")
        elif self.horizon is not None:
            raise ValueError(f"horizon is {self.horizon!r} but p is {self.p}; only p='auto' has a use for it")
        check_warmup(self.warmup)
        Ridge.parse(self.ridge)
        settle(self, units=units_word, origin=origin_like)

    def _check_auto(self) -> None:
        if self.learns_from == "every step":
            name = type(self).__name__
            raise ValueError(f"p is 'auto', which {name} cannot do: it needs sums of explored rows alone; give a p")
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, int) or not 1 <= self.horizon < 2**63:
            raise ValueError(
                f"horizon is {self.horizon!r}; p='auto' needs it: how many decisions there are going to be, "
                "for instance horizon=100_000"
            )

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Give the shapes of the state's arrays."""
        records = sum_shapes(n_arms, dim, units=self.units)
        return {**records, "sample": (None, dim), "tuning": (2,)} if self.p == "auto" else records

    def init(self, n_arms: int, dim: int) -> Statistics:
        """For all arms: A = 0, n = 0, b = 0."""
        ridge = Ridge.parse(self.ridge)
        make = ridge.tuned if self.p == "auto" else ridge.statistics
        return make(n_arms, dim, units=self.units, origin=self.origin)

    def rule(self) -> Schedule | AutoSchedule:
        """Describe when to explore to the kernel."""
        turns = self.warmup == "round-robin"
        if self.p == "auto":
            horizon = float(self.horizon or 1)
            return AutoSchedule(horizon=horizon, caution=CAUTION, start=START, most=MOST, round_robin=turns)
        return Schedule(self.p, round_robin=turns, learn_always=self.learns_from == "every step")

    def current_p(self, state: Statistics) -> float:
        """Give the p in force: the one that was set, or what "auto" has come to."""
        if isinstance(state, Tuned) and isinstance(rule := self.rule(), AutoSchedule):
            return state.p(rule)
        return float(self.p)

    def look(self, state: Tuned, t: int) -> tuning.Prospect:
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
        if self.p != "auto" or self.horizon is None:
            raise ValueError(f"p is {self.p}; only p='auto' looks for another")
        s, ridge = state, Ridge.parse(self.ridge)
        rows = tuning.Rows(n=s.n, A=s.A, b=s.b, sum_r=s.sum_r, sum_rr=s.sum_rr, ridge=ridge)
        return tuning.look(rows, state.sample, t=t, horizon=self.horizon, caution=CAUTION, most=MOST)

    def update(self, state: Statistics, interaction: Interaction) -> None:
        """Record an explored step, and look for a better p if enough of them have come; skip the others."""
        EpsilonGreedy.update(self, state, interaction)
        rule, is_new = self.rule(), interaction.replaces is None  # a corrected reward is no other context
        if interaction.explored and isinstance(state, Tuned) and isinstance(rule, AutoSchedule) and is_new:
            state.learned(rule, interaction.x, interaction.weight, interaction.t)
