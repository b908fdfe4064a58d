"""What PolicyElimination and FeasibleRandomizedUCB share: a finite class of policies, and a table of contexts.

Both are of Dudik, Hsu, Kale, Karampatziakis, Langford, Reyzin and Zhang (2011), "Efficient optimal learning for
contextual bandits". A distribution P over the class induces W_P(x, a), the weight of the policies that play a in x;
an arm is drawn with (1 - K mu) W_P(x, a) + mu, and a policy is valued by inverse propensities.

The law of contexts is unknown, so expectations over x are over the contexts learned from: a table of distinct ones
with counts. It has room for `max_contexts`. Beyond that it is the unbiased space saving of Ting (2018), "Data sketches
for disaggregated subset sum and frequent item estimation": a new context adds 1 to the smallest count c, and takes
that place with probability 1 / (c + 1). Expected counts stay exact, frequent contexts stay, and the toss is a hash of
the seed, t and the number of rows learned: no hidden state, so folding the same rows rebuilds the same table.
Decide O(K) in a known context, O(N K d) in a new one; update O(N); memory O(M N), allocated at the start.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import HUGE, SEEDS, Outside, chance, ends, one_of, positive, settle, unit, whole
from armlet.model_file.model import check_room
from armlet.policies.base import BasePolicy
from armlet.policies.state import MOST, Arrays, check_between, fresh
from armlet.reference.choice import play_drawn
from armlet.types import Array, Bool, Choice, Coins, Float64, Int64, Interaction, RewardKind, Shapes
from armlet_lab.literature.experts import LinearExperts

MASK = 2**64 - 1
MOST_ROWS = 1e100  # by weight; its square is no infinity


def toss(seed: int, t: int, n: int) -> float:
    """Return a number in [0, 1) that looks random but follows from its arguments.

    Examples
    --------
    >>> toss(1, 2, 3) == toss(1, 2, 3), toss(1, 2, 3) == toss(1, 2, 4)
    (True, False)
    """
    z = seed & MASK
    for word in (t, n):  # two rounds of splitmix64
        z = (z + 0x9E3779B97F4A7C15 * (word + 1)) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
    return (z >> 11) * 2.0**-53


def variances(W: Float64, advice: Int64, shares: Float64, mu: float) -> Float64:
    """Return E_x[1 / ((1 - K mu) W(x, pi(x)) + mu)] of every policy, (N,).

    Parameters
    ----------
    W
        (M, K): the weight of each arm in each context.
    advice
        (M, N): the arm that each policy plays there.
    shares
        (M,): how often each context was seen, summing to 1.

    Examples
    --------
    >>> variances(np.array([[0.5, 0.5]]), np.array([[0, 1]]), np.ones(1), 0.25)
    array([2., 2.])
    """
    inverse = shares[:, None] / ((1.0 - W.shape[1] * mu) * W + mu)
    total: Float64 = np.take_along_axis(inverse, advice, axis=1).sum(axis=0)
    return total


def arm_weights(P: Float64, advice: Int64, n_arms: int) -> Float64:
    """Return W_P, the weight of the policies that play each arm in each context, (M, K).

    Examples
    --------
    >>> arm_weights(np.array([0.25, 0.5, 0.25]), np.array([[0, 1, 0], [1, 1, 1]]), 2)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    # row by row, as `decide` does in a new context: sums in another order would round to another propensity
    return np.array([np.bincount(row, weights=P, minlength=n_arms) for row in advice]).reshape(-1, n_arms)


class FiniteClassState(Arrays):
    """Sums of inverse propensities, a distribution over the class, and the table of contexts.

    The random policies follow from the settings and what they advise from the contexts, so neither is saved.
    """

    def __init__(self, n_arms: int, dim: int, *, n_policies: int, seed: int, max_contexts: int) -> None:
        Arrays.__init__(self, n_arms, dim, by_arm={})
        self._seed, self._n_policies, self._room = seed, n_policies, max_contexts
        self._start()

    def _start(self) -> None:
        n, room = self._n_policies + self.n_arms, self._room
        self._whole = {
            "sums": np.zeros(n),  # (N,): sum of r 1[pi(x) = arm] / propensity
            "alive": np.ones(n, dtype=np.bool_),
            "P": np.full(n, 1.0 / n),
            "rows": np.zeros(1),  # learned so far, by weight
            "solved": np.array([0.0, 1.0 / (2 * self.n_arms)]),  # rows at the last solve, and its mu
            "contexts": np.zeros((room, self.dim)),
            "counts": np.zeros(room),
        }
        self._experts = LinearExperts.draw(
            n_experts=self._n_policies, n_arms=self.n_arms, dim=self.dim, seed=self._seed
        )
        self._advice: Int64 = np.zeros((room, n), dtype=np.int64)
        self._W: Float64 = np.zeros((room, self.n_arms))
        self._places: dict[bytes, int] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, those that are not saved among them."""
        return sum(array.nbytes for array in (*self._whole.values(), self._experts.theta, self._advice, self._W))

    @property
    def n(self) -> float:
        """How many rows were learned from."""
        return float(self["rows"][0])

    @property
    def mu(self) -> float:
        """The least probability of an arm."""
        return float(self["solved"][1])

    @property
    def alive(self) -> Bool:
        """Which policies were not eliminated, (N,)."""
        return self["alive"].astype(np.bool_)

    @property
    def table(self) -> tuple[Int64, Float64]:
        """What all policies advise in the contexts of the table, (M, N), and the share of each context, (M,)."""
        m = len(self._places)
        return self._advice[:m], self["counts"][:m] / self["counts"][:m].sum()

    def advice(self, x: Float64) -> Int64:
        """Return the arm of every policy, (N,): the random linear ones, then the constants."""
        place = self._places.get(_key(x))
        advice: Int64 = self._experts.chosen(x) if place is None else self._advice[place]
        return advice

    def weights(self, x: Float64) -> Float64:
        """Return W_P(x, .), (K,)."""
        place = self._places.get(_key(x))
        W = arm_weights(self["P"], self._experts.chosen(x)[None], self.n_arms) if place is None else self._W
        row: Float64 = W[place or 0]
        return row

    def count(self, x: Float64, t: int, weight: float) -> Int64:
        """Count a context; give what the policies advise in it."""
        key, counts, advice = _key(x), self["counts"], self.advice(x)
        self["rows"][0] += weight
        place, used = self._places.get(key), len(self._places)
        if place is not None:
            counts[place] += weight
            return advice
        if used < self._room:
            counts[used] = weight
            self._place(used, key, advice)
            return advice
        least = int(counts.argmin())
        counts[least] += weight
        if toss(self._seed, t, int(self.n)) * counts[least] < weight:
            del self._places[_key(self["contexts"][least])]
            self._place(least, key, advice)
        return advice

    def _place(self, place: int, key: bytes, advice: Int64) -> None:
        self._places[key] = place
        self["contexts"][place] = np.frombuffer(key)
        self._advice[place] = advice
        self._W[place] = arm_weights(self["P"], advice[None], self.n_arms)[0]

    def solve(self, P: Float64, mu: float) -> None:
        """Play by a new distribution from now on."""
        self["P"][:] = P
        self["solved"][:] = self.n, mu
        advice, _ = self.table
        self._W[: len(advice)] = arm_weights(P, advice, self.n_arms)

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned, and derive the rest."""
        self._check(arrays)
        Arrays.restore_arrays(self, arrays)
        self._places = {}
        for place in range(np.count_nonzero(self["counts"])):
            x = self["contexts"][place]
            self._place(place, _key(x), self._experts.chosen(x))

    def _check(self, arrays: dict[str, Array]) -> None:
        """Refuse arrays that no rows lead to."""
        for name in ("sums", "counts"):
            check_between(name, arrays[name], 0.0, MOST)
        check_between("rows", arrays["rows"], 0.0, MOST_ROWS)
        check_between("solved", arrays["solved"][:1], 0.0, MOST_ROWS)
        check_between("mu in solved", arrays["solved"][1:], 0.0, 1.0 / self.n_arms)
        check_between("P", arrays["P"], 0.0, 1.0 + 1e-9)
        check_between("contexts", arrays["contexts"], -HUGE, HUGE)
        if not arrays["alive"].any():
            raise InvalidValueError("alive leaves no policy; one at least is never eliminated")
        used = np.count_nonzero(arrays["counts"])
        keys = {_key(x) for x in cast(Float64, arrays["contexts"])[:used]}
        if arrays["counts"][used:].any() or len(keys) != used:
            raise InvalidValueError(
                "contexts holds one twice, or counts one that is not there; each has one place, in order"
            )

    def add_arm(self) -> None:
        """Start over: no row so far could have valued a policy that plays the new arm."""
        self._n_arms += 1
        self._start()

    def remove_arm(self, arm: int) -> None:  # noqa: ARG002 - whichever it is
        """Start over: the class is another one."""
        self._n_arms -= 1
        self._start()


def _key(x: Float64) -> bytes:
    return (x + 0.0).tobytes()  # -0.0 is 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteClass(BasePolicy[FiniteClassState]):
    """The part of both policies that does not depend on how P is solved for."""

    n_policies: int = 100
    seed: int = 0
    delta: float = 0.05
    width_scale: float = 1.0
    max_contexts: int = 256
    reward_range: tuple[float, float] = (0.0, 1.0)
    outside: Outside = "refuse"

    rewards: ClassVar[RewardKind] = "bounded"

    def __post_init__(self) -> None:
        settle(
            self, n_policies=whole(), seed=whole(0, SEEDS), max_contexts=whole(), delta=chance(), width_scale=positive()
        )
        settle(self, reward_range=ends, outside=one_of("refuse", "clip"))

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        """Refuse a class or a table that would not fit."""
        check_room(self.n_policies * n_arms * dim, "n_policies x n_arms x dim")
        check_room((self.n_policies + n_arms) * self.max_contexts, "(n_policies + n_arms) x max_contexts")

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        n, room = self.n_policies + n_arms, self.max_contexts
        sums: Shapes = {"sums": (n,), "alive": (n,), "P": (n,), "rows": (1,), "solved": (2,)}
        return {**sums, "contexts": (room, dim), "counts": (room,)}

    def init(self, n_arms: int, dim: int) -> FiniteClassState:
        """Draw the class; P is uniform and mu = 1 / (2 K) before the first row."""
        return FiniteClassState(n_arms, dim, n_policies=self.n_policies, seed=self.seed, max_contexts=self.max_contexts)

    def values(self, state: FiniteClassState) -> Float64:
        """Return the value of every policy by inverse propensities, in units of [0, 1], (N,)."""
        return state["sums"] / max(state.n, 1.0)

    def probabilities(self, state: FiniteClassState, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Return (1 - k mu) W_P(x, a) + mu; what is not eligible is shared out by the weight of the others."""
        chances: Float64 = state.weights(x) * eligible
        k, total = np.count_nonzero(eligible), chances.sum()
        chances = chances / total if total > 0.0 else eligible / k
        mixed: Float64 = ((1.0 - k * state.mu) * chances + state.mu) * eligible
        return mixed

    def decide(self, state: FiniteClassState, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Draw an arm; every step explores."""
        return play_drawn(self.probabilities(state, t, x, eligible), coins)

    def update(self, state: FiniteClassState, interaction: Interaction) -> None:
        """Value the policies that would have played the same arm; then solve again, if it is time."""
        i = interaction
        fresh(i, type(self).__name__)
        value = i.weight * unit(i.reward, self.reward_range, self.outside) / i.propensity
        if i.weight == 0.0:
            return
        state["sums"][state.count(i.x, i.t, i.weight) == i.arm] += value
        self.review(state)

    @abstractmethod
    def review(self, state: FiniteClassState) -> None:
        """Do what is to be done after a row; each policy its own."""
