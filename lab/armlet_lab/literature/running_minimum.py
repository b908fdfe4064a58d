"""Algorithm 1 with a p that it estimates while it runs, Section 4.2 taken at its word. It ends as uniform play.

Equation (4) asks for p >= C K L'^2 / (Delta' Sigma')^2, and the section estimates its constants from what the algorithm
sees: Sigma_min from the second moment of all contexts, L from the variance of rewards around the fit, Delta_min as the
smallest difference seen until now between the largest and the second largest x'theta_hat. The last one is the trouble:
a minimum never recovers. Early estimates are noise, and one near tie among them fixes p forever; where contexts do not
repeat, or are zero, differences come as close to 0 as one waits for. So p runs away from t, and every step explores.

Our readings: differences are taken from the first step after the warm-up on, explored or not, among the arms that were
eligible (of those beyond the first 31, among all: a tag has no room), with the estimates from before the step's reward;
an exact tie, and so a zero context, is a difference of 0 and makes p infinite; the first ceil(start K) steps play the
arms by turns; L = sd / sqrt 2, the paper's unit, which a normal reward of standard deviation sd has; a second moment of
0 counts as Sigma' = 1.
Decide O(K d^2); update O(K d + d^2), solve O(d^3) for one arm, eigenvalues O(d^3) when the number of contexts has
doubled; memory O(K d^2) for any t. Propensities are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armlet.errors import MergeError
from armlet.inputs.settings import Ridge, RidgeLike, number, positive, ridge_like, settle
from armlet.kernel import Statistics, sum_shapes
from armlet.policies.base import BasePolicy, sums
from armlet.policies.state import Arrays, fresh
from armlet.reference.choice import below, best_chances, mixed, play_best
from armlet.reference.linear import smallest_eigenvalue
from armlet.types import Array, Bool, Choice, Coins, Float64, Interaction, LearnsFrom, Shapes
from armlet_lab.literature.experts import barred_tag, from_tag

UNSEEN = math.inf  # no difference yet


class WatchedSums:
    """Sums over explored steps, and what was seen at every step: contexts and the smallest difference.

    Examples
    --------
    >>> state = WatchedSums(2, 1, Ridge.parse("paper"))
    >>> sorted(state.arrays())
    ['explored.records', 'seen.delta_min', 'seen.moment', 'seen.n', 'seen.sigma_min']
    >>> state.see(np.array([0.5]))
    >>> state.sigma_min, state.delta_min
    (0.25, inf)
    """

    def __init__(self, n_arms: int, dim: int, ridge: Ridge) -> None:
        self._ridge = ridge
        self.explored: Statistics = sums(ridge, n_arms, dim)
        moment: Float64 = np.zeros((dim, dim))  # sum of x x' over all steps
        seen: dict[str, Array] = {"n": np.zeros(1), "moment": moment, "sigma_min": np.ones(1)}
        self.seen = Arrays(n_arms, dim, by_arm={}, whole={**seen, "delta_min": np.full(1, UNSEEN)})

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return self.explored.n_arms

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return self.explored.dim

    @property
    def nbytes(self) -> int:
        """Bytes of the sums and of what was seen."""
        return self.explored.nbytes + self.seen.nbytes

    @property
    def delta_min(self) -> float:
        """The smallest difference seen, infinite before the first."""
        return float(self.seen["delta_min"][0])

    @property
    def sigma_min(self) -> float:
        """The smallest non-zero eigenvalue of the second moment when the number of contexts last doubled."""
        return float(self.seen["sigma_min"][0])

    def see(self, x: Float64) -> None:
        """Count a context, and look for the smallest eigenvalue at the first, the second, the fourth, the eighth."""
        self.seen["n"][0] += 1
        self.seen["moment"][...] += np.outer(x, x)
        n = int(self.seen["n"][0])
        if n & (n - 1) == 0 and self.seen["moment"].any():  # n is a power of 2
            self.seen["sigma_min"][0] = smallest_eigenvalue(self.seen["moment"] / n)

    def compare(self, x: Float64, eligible: Bool) -> None:
        """Record the difference between the two highest scores of a context; a single arm has none."""
        scores = self.explored.scores(x)[eligible]
        if len(scores) > 1:
            second, first = np.sort(scores)[-2:]
            self.seen["delta_min"][0] = min(self.delta_min, float(first - second))

    def variance(self) -> float:
        """Return the mean square of rewards around the fit, from the sums alone: r'r - 2 theta'b + theta'A theta."""
        sums, theta = self.explored, self.explored.estimates()
        fitted = np.einsum("kd,kde,ke->k", theta, sums.A, theta) - 2 * (theta * sums.b).sum(axis=1)
        n = float(sums.n.sum())
        return max(0.0, float((sums.sum_rr + fitted).sum())) / n if n > 0 else 0.0

    def arrays(self) -> dict[str, Array]:
        """Return all that must be kept, the two parts by prefix."""
        out: dict[str, Array] = {f"explored.{name}": array for name, array in self.explored.arrays().items()}
        return out | {f"seen.{name}": array for name, array in self.seen.arrays().items()}

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned."""
        seen = {name: arrays[f"seen.{name}"] for name in self.seen.arrays()}
        self.seen.copy().restore_arrays(seen)  # to see whether it is sound
        self.explored.restore_arrays({name: arrays[f"explored.{name}"] for name in self.explored.arrays()})
        self.seen.restore_arrays(seen)

    def copy(self) -> WatchedSums:
        """Make another that goes its own way."""
        twin = WatchedSums(self.n_arms, self.dim, self._ridge)
        twin.restore_arrays(self.arrays())
        return twin

    def add_arm(self) -> None:
        """Make room for one more arm; what was seen stays."""
        self.explored.add_arm()
        self.seen.add_arm()

    def remove_arm(self, arm: int) -> None:
        """Drop an arm; a difference that it gave stays the smallest."""
        self.explored.remove_arm(arm)
        self.seen.remove_arm(arm)

    def merge(self, other: WatchedSums, into: list[int]) -> None:  # noqa: ARG002
        """Refuse: the smallest difference depends on what was known when it was seen."""
        raise MergeError("RunningMinimumEpsilonGreedy keeps a minimum over its own past, so two states cannot be added")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningMinimumEpsilonGreedy(BasePolicy[WatchedSums]):
    """Explore with probability p_t / t, where p_t is Equation (4) with the constants estimated so far.

    Here to be compared with, not to be used: see above for why it ends as uniform play.

    Parameters
    ----------
    C
        The constant of Equation (4); the proof needs 128 at least.
    ridge
        "paper", "1/n" or a positive number; see `armlet.inputs.settings.Ridge`.
    start
        p is start K until a difference was seen, and never less. At least 1.

    Examples
    --------
    >>> policy = RunningMinimumEpsilonGreedy(start=1.0, ridge=3.0)
    >>> state = policy.init(2, 1)
    >>> for t in (1, 2):
    ...     policy.update(state, Interaction(t=t, x=np.array([1.0]), arm=t % 2, reward=float(t)))
    >>> policy.current_p(state)
    2.0
    >>> policy.update(state, Interaction(t=3, x=np.array([1.0]), arm=0, reward=2.0, explored=False))
    >>> state.delta_min, policy.current_p(state)  # theta_hat is 2/4 and 1/4; p = 128 * 2 / (1/4)^2
    (0.25, 4096.0)
    """

    C: float = 128.0
    ridge: RidgeLike = "paper"
    start: float = 2.0

    learns_from: ClassVar[LearnsFrom] = "explored steps"

    def __post_init__(self) -> None:
        settle(self, C=positive(), ridge=ridge_like, start=number(1))

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        seen: Shapes = {"seen.n": (1,), "seen.moment": (dim, dim), "seen.sigma_min": (1,), "seen.delta_min": (1,)}
        return {"explored.records": sum_shapes(n_arms, dim)["records"], **seen}

    def init(self, n_arms: int, dim: int) -> WatchedSums:
        """Start empty sums; no context and no difference was seen."""
        return WatchedSums(n_arms, dim, Ridge.parse(self.ridge))

    def estimates(self, state: WatchedSums) -> Float64:
        """Solve the regression on explored steps."""
        return state.explored.estimates()

    def current_p(self, state: WatchedSums) -> float:
        """Return p_t = max(start K, C K L'^2 / (Delta' Sigma')^2) from what was seen so far; it may be infinite."""
        least = self.start * state.n_arms
        if state.delta_min == UNSEEN:
            return least
        floor = min(1.0, state.delta_min) * min(1.0, state.sigma_min)
        ratio = max(1.0, math.sqrt(state.variance() / 2)) / floor if floor > 0 else math.inf
        return max(least, self.C * state.n_arms * ratio * ratio)

    def exploration_rate(self, state: WatchedSums, t: int) -> float:
        """Return the probability that step t explores: 1 while there is no row, since all arms tie in every context."""
        explores = t <= self._warm_up(state) or not state.explored.n.any()
        return 1.0 if explores else min(1.0, self.current_p(state) / t)

    def _warm_up(self, state: WatchedSums) -> int:
        return math.ceil(self.start * state.n_arms)

    def probabilities(self, state: WatchedSums, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return the exact probability of each arm: exploration, plus the share of the best arms."""
        if t <= self._warm_up(state):
            chances, arms = np.zeros(state.n_arms), np.flatnonzero(eligible)
            chances[arms[t % len(arms)]] = 1.0
            return chances
        return mixed(best_chances(state.explored.scores(x), eligible), eligible, self.exploration_rate(state, t))

    def decide(self, state: WatchedSums, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play step t: by turns, by the coin, or the arm that looks best."""
        arms, chances = np.flatnonzero(eligible), self.probabilities(state, t, x, eligible)
        explored = coins.coin < self.exploration_rate(state, t)
        if t <= self._warm_up(state):
            arm = int(arms[t % len(arms)])
        elif explored:
            arm = int(arms[below(coins.pick, len(arms))])
        else:
            arm = play_best(state.explored.scores(x), eligible, coins).arm
        return Choice(arm, float(chances[arm]), explored, barred_tag(eligible))

    def update(self, state: WatchedSums, interaction: Interaction) -> None:
        """Look at the context and at the lead of the best arm, then record the reward of an explored step."""
        i = interaction
        fresh(i, type(self).__name__)  # a minimum cannot be taken back
        if i.t > self._warm_up(state):
            state.compare(i.x, from_tag(i.tag, state.n_arms, i.arm))
        state.see(i.x)
        if i.explored:
            state.explored.add(i.arm, i.x, i.reward, i.weight)
