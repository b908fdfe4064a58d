"""Greedy-First: Bastani, Bayati and Khosravi (2021), "Mostly Exploration-Free Algorithms for Contextual Bandits".

Plays greedily as long as the contexts explore by themselves: until the smallest eigenvalue of some arm's A is below
lambda0 t / 4. Then it plays the OLS bandit of Goldenshluger and Zeevi (2013) forever: forced steps ever more rarely;
else arms within h / 2 of the best by the forced estimate, and of these the best by the estimate from all steps.
Decide O(K d); update O(d^2), eigenvalues and solve O(d^3) for one arm; memory O(K d^2). Propensities are exact.

Theory: rate optimal, of order log T, for bounded contexts and parameters, subgaussian noise, a margin condition, and h,
q and lambda0 from constants of the problem; no horizon. Our readings: t in the threshold is the weight of all rows
learned, which is the step where no reward is late; the forced schedule starts its own clock at the switch, as in the
authors' code; the estimate from all steps keeps the greedy ones, which that code drops; an arm that cannot play cannot
starve, so the eigenvalues that count are those of the arms that were eligible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armlet.errors import InvalidValueError, MergeError
from armlet.inputs.settings import Ridge, RidgeLike, number, optional, ridge_like, settle, whole
from armlet.kernel import Statistics, sum_shapes
from armlet.policies.base import BasePolicy, sums
from armlet.policies.state import fresh
from armlet.reference.choice import best_chances, force, play_best
from armlet.types import (
    Array,
    Bool,
    Choice,
    Coins,
    Float64,
    Int64,
    Interaction,
    Shapes,
)
from armlet_lab.literature.derived import Derived
from armlet_lab.literature.ols_bandit import forced_arm

NEVER = -1  # has not switched


def _smallest_eigenvalues(A: Float64, b: Float64) -> Float64:  # noqa: ARG001
    smallest: Float64 = np.linalg.eigvalsh(A)[:, 0].astype(np.float64, copy=False)
    return smallest


class GreedyFirstState:
    """Sums over all steps, sums over explored steps, and the step of the switch.

    Examples
    --------
    >>> state = GreedyFirstState(2, 1, Ridge.parse(1.0))
    >>> sorted(state.arrays()), state.switched
    (['everything.records', 'forced.records', 'switched'], -1)
    """

    def __init__(self, n_arms: int, dim: int, ridge: Ridge) -> None:
        self._ridge = ridge
        self.everything = Derived(n_arms, dim, ridge, _smallest_eigenvalues)
        self.forced: Statistics = sums(ridge, n_arms, dim)
        self.switched = NEVER

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return self.forced.n_arms

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return self.forced.dim

    @property
    def nbytes(self) -> int:
        """Bytes of both sums, and of the step."""
        return self.everything.nbytes + self.forced.nbytes + 8

    def arrays(self) -> dict[str, Array]:
        """Return all that must be kept, the two sums by prefix."""
        out: dict[str, Array] = {f"everything.{name}": array for name, array in self.everything.arrays().items()}
        out |= {f"forced.{name}": array for name, array in self.forced.arrays().items()}
        return out | {"switched": np.array([self.switched], dtype=np.int64)}

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned."""
        switched: Int64 = arrays["switched"].astype(np.int64)
        if switched.shape != (1,) or switched[0] < NEVER:
            raise InvalidValueError(f"switched is {arrays['switched']!r}, not one step")
        kept = {
            prefix: {name: arrays[f"{prefix}.{name}"] for name in self.forced.arrays()}
            for prefix in ("everything", "forced")
        }
        sums(self._ridge, self.n_arms, self.dim).restore_arrays(kept["forced"])  # to see whether it is sound
        self.everything.restore_arrays(kept["everything"])
        self.forced.restore_arrays(kept["forced"])
        self.switched = int(switched[0])

    def copy(self) -> GreedyFirstState:
        """Make another that goes its own way."""
        twin = GreedyFirstState(self.n_arms, self.dim, self._ridge)
        twin.restore_arrays(self.arrays())
        return twin

    def add_arm(self) -> None:
        """Make room for one more arm; it has seen nothing, so greedy play ends with the next reward."""
        self.everything.add_arm()
        self.forced.add_arm()

    def remove_arm(self, arm: int) -> None:
        """Drop an arm from both sums; a switch that it led to stays."""
        self.everything.remove_arm(arm)
        self.forced.remove_arm(arm)

    def merge(self, other: GreedyFirstState, into: list[int]) -> None:  # noqa: ARG002
        """Refuse: two steps of switching do not add up."""
        raise MergeError("GreedyFirst switches at a step of its own, so two of its states cannot be added")


@dataclass(frozen=True, slots=True, kw_only=True)
class GreedyFirst(BasePolicy[GreedyFirstState]):
    """Play greedily until some arm's contexts stop spanning the space, then force samples.

    Parameters
    ----------
    lambda0
        The switch comes when an arm's smallest eigenvalue is below lambda0 t / 4; the default is our choice. 0 never
        switches: pure greedy.
    t0
        The first step that may switch; 8 K d if left out, our choice.
    q
        Forced steps of each arm in every block; see `armlet_lab.literature.ols_bandit`.
    h
        Arms within h / 2 of the best forced estimate stay: about the gap that matters, in units of reward.
    ridge
        Of both estimates. The paper's are least squares; the default only keeps them solvable.

    Examples
    --------
    >>> policy = GreedyFirst(t0=1)
    >>> state = policy.init(2, 1)
    >>> policy.update(state, Interaction(t=1, x=np.array([1.0]), arm=0, reward=1.0))
    >>> state.switched  # arm 1 has no contexts
    1
    """

    lambda0: float = 0.02
    t0: int | None = None
    q: int = 2
    h: float = 0.5
    ridge: RidgeLike = 1e-6

    def __post_init__(self) -> None:
        settle(self, lambda0=number(0), t0=optional(whole(0)), q=whole(), h=number(0), ridge=ridge_like)

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        records = sum_shapes(n_arms, dim)["records"]
        return {"everything.records": records, "forced.records": records, "switched": (1,)}

    def init(self, n_arms: int, dim: int) -> GreedyFirstState:
        """Know nothing, and be greedy."""
        return GreedyFirstState(n_arms, dim, Ridge.parse(self.ridge))

    def estimates(self, state: GreedyFirstState) -> Float64:
        """Solve the regression on all steps."""
        return state.everything.estimates()

    def _forced(self, state: GreedyFirstState, t: int, eligible: Bool) -> int | None:
        since = t - state.switched
        if state.switched == NEVER or since < 1:
            return None
        arm = forced_arm(since, state.n_arms, self.q)
        return arm if arm is not None and eligible[arm] else None  # a step for an arm that cannot play is free

    def _candidates(self, state: GreedyFirstState, x: Float64, eligible: Bool) -> Bool:
        """Mark the arms among which the estimate from all steps decides."""
        if state.switched == NEVER:
            return eligible
        scores = state.forced.scores(x)
        near: Bool = eligible & (scores >= scores[eligible].max() - self.h / 2)
        return near

    def probabilities(self, state: GreedyFirstState, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return 1 to the forced arm, or to the best of the candidates, shared by those that tie."""
        forced = self._forced(state, t, eligible)
        if forced is None:
            return best_chances(state.everything.scores(x), self._candidates(state, x, eligible))
        chances = np.zeros(state.n_arms)
        chances[forced] = 1.0
        return chances

    def decide(self, state: GreedyFirstState, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play the forced arm, or the best of the candidates."""
        forced = self._forced(state, t, eligible)
        if forced is not None:
            return force(forced, eligible)
        choice = play_best(state.everything.scores(x), self._candidates(state, x, eligible), coins)
        return choice._replace(tag=self._weakest(state, choice.arm, eligible))

    def _weakest(self, state: GreedyFirstState, arm: int, eligible: Bool) -> int:
        """Return the tag: 0 if all arms were eligible, else from 1 on the least seen next to the one that is played."""
        if state.switched != NEVER or eligible.all():
            return 0
        rivals = np.flatnonzero(eligible)
        rivals = rivals[rivals != arm]
        return 1 + (int(rivals[state.everything.derived()[rivals].argmin()]) if rivals.size else arm)

    def update(self, state: GreedyFirstState, interaction: Interaction) -> None:
        """Record every step, forced ones also by themselves; then see whether greedy play must end."""
        fresh(interaction, type(self).__name__)  # the switch cannot be taken back
        i = interaction
        state.everything.add(i.arm, i.x, i.reward, i.weight)
        if i.explored:
            state.forced.add(i.arm, i.x, i.reward, i.weight)
        if state.switched == NEVER and i.t >= self._first(state) and self._is_starved(state, i):
            state.switched = i.t

    def _first(self, state: GreedyFirstState) -> int:
        return 8 * state.n_arms * state.dim if self.t0 is None else self.t0

    def _is_starved(self, state: GreedyFirstState, i: Interaction) -> bool:
        """Return whether an arm that was eligible is below the threshold; the row has changed its own arm alone."""
        threshold = self.lambda0 * float(state.everything.n.sum()) / 4
        smallest = state.everything.derived()
        counted = smallest[[i.arm, i.tag - 1]] if 0 < i.tag <= state.n_arms else smallest
        return bool(counted.min() < threshold)
