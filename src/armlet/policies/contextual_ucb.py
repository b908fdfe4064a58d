"""Contextual UCB: Algorithm 2, Section 7.

Each arm's estimate and width come from the subset of its past that makes the width smallest, which keeps a rare context
from being drowned by common ones. The paper's search over all subsets is exponential; `search` and `history` say what
is done instead. No regret bound is known.
Decide: one search for each arm, O(2^N d^3) exact, about O(N d) a step otherwise, N entries of its history; update O(d).
Memory O(N d) an arm: N grows with t for "all", with log t for "explored", and with the number of distinct contexts for
search="counts".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from armlet.errors import DecisionError, InvalidTypeError, InvalidValueError
from armlet.inputs.settings import number, one_of, optional, settle, whole
from armlet.policies import subset_search
from armlet.policies.base import BasePolicy
from armlet.policies.subset_search import ArmPast, Histories, Subset
from armlet.reference.choice import best_chances, force, mixed, play_or_explore
from armlet.types import Bool, Choice, Coins, Float64, Interaction, LearnsFrom, Memory, Shapes

Search: TypeAlias = Literal["exact", "relaxed", "counts"]
History: TypeAlias = Literal["all", "explored"]

SEARCHES: dict[str, Callable[[Float64, ArmPast], Subset]] = {
    "exact": subset_search.exact,
    "relaxed": subset_search.relaxed,
    "counts": subset_search.counts,
}

EXACT_LIMIT = 16  # rows, 2^16 subsets
EXACT_DEFAULT = 12
LONGEST = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextualUCB(BasePolicy[Histories]):
    """Play argmax of x' theta_hat_a + alpha sqrt(c_a), c_a = log(t) min over T of f(T), f as in `subset_search`.

    Parameters
    ----------
    search
        How T is found: "exact" tries all subsets; "relaxed" is a heuristic; "counts" keeps one entry for each distinct
        context and is exact for few of them. See `armlet.policies.subset_search`.
    history
        What T is chosen from: "all" rows, or only "explored" ones, for which steps explore with probability p/t.
    alpha
        How optimistic to be; 1 as printed. The printed width knows no noise scale, so scale it with that of rewards.
    p
        The first p steps play the arms by turns, as printed; at 0 each arm is still played once, since one without a
        past has an infinite index. With history="explored" also the rate p/t of exploration, at least 1.
    history_limit
        The most entries an arm's history may have: rows, or distinct contexts for "counts". One more is an error. 12
        for "exact", else 20000 if left out.

    Examples
    --------
    >>> policy = ContextualUCB(search="counts")
    >>> state = policy.init(n_arms=1, dim=2)
    >>> for t in range(1, 1011):
    ...     x = np.array([1.0, 1.0 if t % 101 == 0 else 0.0])
    ...     policy.update(state, Interaction(t=t, x=x, arm=0, reward=3.0 * x[1]))
    >>> rare = np.array([1.0, 1.0])
    >>> policy.subset(state.past(0), rare).n  # the ten rare rows, not the thousand common ones
    10
    """

    search: Search = "relaxed"
    history: History = "all"
    alpha: float = 1.0
    p: float = 0.0
    history_limit: int | None = None

    learns_from: ClassVar[LearnsFrom] = "every step"  # but for history="explored"
    memory: ClassVar[Memory] = "grows with t"  # at worst: see the module

    def __post_init__(self) -> None:
        settle(self, search=one_of(*SEARCHES), history=one_of("all", "explored"), alpha=number(0), p=number(0))
        settle(self, history_limit=optional(whole()))
        if self.history == "explored" and self.p < 1:
            raise InvalidValueError(
                f"p is {self.p} but history is 'explored'; give the p >= 1 of its exploration rate p/t"
            )
        if self.search == "exact" and self.limit > EXACT_LIMIT:
            raise InvalidValueError(
                f"history_limit is {self.limit} but search='exact' tries all subsets of at most {EXACT_LIMIT} rows; "
                "lower it, or use search='relaxed'"
            )

    @property
    def limit(self) -> int:
        """The history limit in use."""
        if self.history_limit is not None:
            return self.history_limit
        return EXACT_DEFAULT if self.search == "exact" else LONGEST

    def check(self, n_arms: int, dim: int, t: int) -> None:
        """Accept any number of arms and features."""

    def shapes(self, n_arms: int, dim: int) -> Shapes:  # noqa: ARG002
        return {"arms": (None,), "rows": (None, dim), "counts": (None,), "sums": (None,)}

    def init(self, n_arms: int, dim: int) -> Histories:
        """For all arms: T_a is empty."""
        return Histories(n_arms, dim, kept="contexts" if self.search == "counts" else "rows", limit=self.limit)

    def estimates(self, state: Histories) -> Float64:  # noqa: ARG002
        """Refuse: theta_hat depends on the context."""
        raise InvalidTypeError(
            "ContextualUCB keeps no linear estimates, theta_hat depends on the context; ask predict_proba"
        )

    def subset(self, past: ArmPast, x: Float64) -> Subset:
        """Find T*, the subset of an arm's past that achieves the minimum, as well as the search can."""
        return SEARCHES[self.search](x, past)

    def upper_bounds(self, state: Histories, t: int, x: Float64) -> Float64:
        """Return the index of each arm, (K,): infinite for one without a past."""
        bounds = np.full(state.n_arms, np.inf)
        for arm in range(state.n_arms):
            past = state.past(arm)
            if not len(past):
                continue
            chosen = self.subset(past, x)
            c = math.log(t) * chosen.value
            theta_hat = subset_search.estimate(past, chosen)
            bounds[arm] = x @ theta_hat + self.alpha * math.sqrt(c)
        return bounds

    def exploration_rate(self, t: int, state: Histories | None = None) -> float:
        """Return the probability that step t explores: only the history of explored rows needs any.

        It is 1 while that is empty: all arms tie then, regardless of x, and nothing else would be learned.
        """
        if self.history != "explored":
            return 0.0
        is_blank = state is not None and not any(len(state.past(arm)) for arm in range(state.n_arms))
        return 1.0 if is_blank else min(1.0, self.p / t)

    def _rotates(self, t: int) -> bool:
        return t <= self.p

    def probabilities(self, state: Histories, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return the exact probability of each arm."""
        arms, chances = np.flatnonzero(eligible), np.zeros(state.n_arms)
        if self._rotates(t):
            chances[arms[t % len(arms)]] = 1.0
            return chances
        return mixed(best_chances(self.upper_bounds(state, t, x), eligible), eligible, self.exploration_rate(t, state))

    def decide(self, state: Histories, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play by turns at first, then the arm with the highest index, ties broken by the coins."""
        arms = np.flatnonzero(eligible)
        if self._rotates(t):
            return force(int(arms[t % len(arms)]), eligible)
        bounds, rate = self.upper_bounds(state, t, x), self.exploration_rate(t, state)
        chances = mixed(best_chances(bounds, eligible), eligible, rate)
        return play_or_explore(bounds, eligible, coins, chances, rate)

    def update(self, state: Histories, interaction: Interaction) -> None:
        """Add step t to T_a of the arm played."""
        if interaction.explored or self.history != "explored":
            if self.search == "exact":
                _check_subsets(state.past(interaction.arm), interaction)
            state.learn(interaction)


def _check_subsets(past: ArmPast, interaction: Interaction) -> None:
    """Refuse a weight that would leave too many subsets to be tried: every later decision would fail."""
    i = interaction
    if i.replaces is not None or i.weight <= 1:
        return
    subsets = round(float(np.log2(past.counts + 1).sum()) + math.log2(i.weight + 1), 9)  # log2: may overflow otherwise
    if subsets > EXACT_LIMIT:
        raise DecisionError(
            f"weight is {i.weight}, but search='exact' tries all subsets of an arm's rows, at most 2^{EXACT_LIMIT}; "
            "give a smaller weight, or use search='counts'"
        )
