"""Experts to learn from: seeded random linear policies and the constant ones, and what is known of each.

They are the class of EXP4, EXP4.P, PolicyElimination and FeasibleRandomizedUCB, and without the constants that of
epoch-greedy.

A linear expert plays argmax_a x'theta_a for a theta of gaussians; the constant expert of arm a plays a. Each advises
among the eligible arms only: the linear ones take the best of those, a constant one the next eligible arm. A decision
can only remember which of the first 31 arms were not eligible (`barred_tag`). Of an expert that prefers a later one of
these, nobody could say afterwards what else it would have advised: it abstains in that step.
Advice O(N K d); memory O(N K d) for N linear experts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from armlet.errors import MergeError
from armlet.policies.state import Arrays, check_mergeable
from armlet.types import Bool, Float64, Int64, Shapes

TAG_BITS = 31  # of a choice's tag, which is a signed number of 32


@dataclass(frozen=True, slots=True)
class LinearExperts:
    """N linear policies, then the K constant ones.

    Parameters
    ----------
    theta : (K, N, d)
        What each expert thinks of each arm; arms first, because they come and go.

    Examples
    --------
    >>> experts = LinearExperts(np.array([[[1.0]], [[0.0]], [[-1.0]]]))  # three arms, one linear expert
    >>> experts.chosen(np.array([2.0]), np.array([True, True, True]))
    array([0, 0, 1, 2])
    >>> experts.chosen(np.array([2.0]), np.array([False, True, True]))
    array([1, 1, 1, 2])
    >>> LinearExperts.draw(n_experts=5, n_arms=3, dim=2, seed=0).advice(np.ones(2), np.array([True, True, True])).shape
    (8, 3)
    """

    theta: Float64

    @classmethod
    def draw(cls, *, n_experts: int, n_arms: int, dim: int, seed: int) -> Self:
        """Draw experts from a seed."""
        return cls(np.stack([draw_arm(n_experts, dim, seed, number) for number in range(n_arms)]))

    def __len__(self) -> int:
        """How many experts there are: N linear ones and K constant ones."""
        n_arms, n_experts, _ = self.theta.shape
        return int(n_arms + n_experts)

    def linear(self, x: Float64, eligible: Bool | None = None) -> Int64:
        """Return the arm that each linear expert plays, (N,), of all if none are named; the first of those that tie."""
        n_arms, n_experts, dim = self.theta.shape
        # theta is continuous: but for x = 0, where products are exact, rounding has no ties to decide
        scores = (self.theta.reshape(-1, dim) @ x).reshape(n_arms, n_experts)
        if eligible is None:
            first: Int64 = scores.argmax(axis=0)
            return first
        arms = np.flatnonzero(eligible)
        best: Int64 = arms[scores[arms].argmax(axis=0)]
        return best

    def constant(self, eligible: Bool | None = None) -> Int64:
        """Return the arm that each constant expert plays, (K,)."""
        every = np.arange(len(self.theta))
        if eligible is None:
            return every
        arms = np.flatnonzero(eligible)
        nexts: Int64 = arms[np.searchsorted(arms, every) % len(arms)]
        return nexts

    def chosen(self, x: Float64, eligible: Bool | None = None) -> Int64:
        """Return the arm that each expert plays, (N + K,): the linear ones, then the constants."""
        some = None if eligible is None or eligible.all() else eligible
        return np.concatenate([self.linear(x, some), self.constant(some)])

    def advice(self, x: Float64, eligible: Bool) -> Float64:
        """Return the probability of each arm by each expert, (N + K, K): 0 or 1."""
        out = np.zeros((len(self), len(self.theta)))
        out[np.arange(len(self)), self.chosen(x, eligible)] = 1.0
        return out


def draw_arm(n_experts: int, dim: int, seed: int, number: int) -> Float64:
    """Draw what the experts think of the arm that came as this number, (N, d).

    Examples
    --------
    >>> draw_arm(2, 3, 0, 5).shape
    (2, 3)
    """
    return np.random.default_rng([seed, number]).standard_normal((n_experts, dim))


def advised(chosen: Int64, trust: Float64, eligible: Bool) -> Float64:
    """Sum the trust in the experts that chose each arm, (K,); that in experts who abstain goes to the others' arms.

    It is shared in proportion to what these have; if all abstain, every eligible arm gets the same.

    Examples
    --------
    >>> advised(np.array([0, 2, 2]), np.array([0.5, 0.25, 0.25]), np.array([True, True, True]))
    array([0.5, 0. , 0.5])
    >>> advised(np.array([0, 1, 2]), np.array([0.5, 0.25, 0.25]), np.array([True, True, False]))
    array([0.66666667, 0.33333333, 0.        ])
    """
    out: Float64 = np.bincount(chosen, weights=trust, minlength=len(eligible)).astype(np.float64, copy=False)
    if not out[~eligible].any():
        return out
    heard: Float64 = out * eligible if out[eligible].any() else eligible.astype(np.float64)
    return heard * (float(out.sum()) / float(heard.sum()))


class ExpertSums(Arrays):
    """Sums that are known of each expert, by name, and the experts themselves.

    Parameters
    ----------
    n_experts, seed
        Of the linear experts.
    sums
        Names of the sums; each has a number for every linear expert, every constant one, and `extra` ones.
    additive
        The sums are sums over interactions, so that two states can be added.

    Examples
    --------
    >>> state = ExpertSums(3, 2, n_experts=4, seed=0, sums=("gain",), additive=True)
    >>> state.add("gain", np.arange(7.0))
    >>> state.add_arm()  # and with it a constant expert, which starts at the mean of all
    >>> state.total("gain")
    array([0., 1., 2., 3., 4., 5., 6., 3.])
    """

    def __init__(
        self,
        n_arms: int,
        dim: int,
        *,
        n_experts: int,
        seed: int,
        sums: tuple[str, ...],
        extra: int = 0,
        additive: bool = False,
    ) -> None:
        theta = LinearExperts.draw(n_experts=n_experts, n_arms=n_arms, dim=dim, seed=seed).theta
        super().__init__(
            n_arms,
            dim,
            by_arm={"theta": theta, **{f"{name}_constant": np.zeros(n_arms) for name in sums}},
            whole={"arms_made": np.full(1, n_arms), **{name: np.zeros(n_experts + extra) for name in sums}},
            additive=additive,
        )
        self._seed, self._sums, self._n_experts = seed, sums, n_experts

    @property
    def experts(self) -> LinearExperts:
        """What the experts of this state advise."""
        return LinearExperts(self["theta"])

    def total(self, name: str) -> Float64:
        """Return a sum of every expert: linear, constant, extra."""
        others, n = self[name], self._n_experts
        return np.concatenate([others[:n], self[f"{name}_constant"], others[n:]])

    def add(self, name: str, amounts: Float64) -> None:
        """Add to a sum of every expert: linear, constant, extra."""
        n, k = self._n_experts, self.n_arms
        self[name][:n] += amounts[:n]
        self[f"{name}_constant"][:] += amounts[n : n + k]
        self[name][n:] += amounts[n + k :]

    def add_arm(self) -> None:
        """Let every linear expert think something of the new arm, and start its constant expert at the mean of all."""
        means = {name: self.total(name).mean() for name in self._sums}
        super().add_arm()
        self["theta"][-1] = draw_arm(self._n_experts, self.dim, self._seed, int(self["arms_made"][0]))
        self["arms_made"][0] += 1
        for name, mean in means.items():
            self[f"{name}_constant"][-1] = mean

    def merge(self, other: Self, into: list[int]) -> None:
        """Add the other's sums, if both have the same experts."""
        if not self._additive:
            raise MergeError("this policy's state is no sum of rows, so two of them cannot be added")
        check_mergeable(self, other, into)
        if not np.array_equal(self["theta"][into], other["theta"]):
            raise MergeError("arms were added in another order here and there, so the experts are not the same")
        for name in self._sums:
            self[name][:] += other[name]
            self[f"{name}_constant"][into] += other[f"{name}_constant"]


def expert_shapes(n_arms: int, dim: int, *, n_experts: int, sums: tuple[str, ...], extra: int = 0) -> Shapes:
    """Return the shapes of the arrays of `ExpertSums`.

    Examples
    --------
    >>> expert_shapes(3, 2, n_experts=4, sums=("gain",))
    {'theta': (3, 4, 2), 'arms_made': (1,), 'gain_constant': (3,), 'gain': (4,)}
    """
    constant: Shapes = {f"{name}_constant": (n_arms,) for name in sums}
    linear: Shapes = dict.fromkeys(sums, (n_experts + extra,))
    return {"theta": (n_arms, n_experts, dim), "arms_made": (1,), **constant, **linear}


def barred_tag(eligible: Bool) -> int:
    """Write which of the first 31 arms were not eligible into a tag; 0 if all were.

    Who learns from a choice among fewer arms needs to know which they were, whenever the reward comes. Arms from number
    31 on do not fit: see `known_eligible`.

    Examples
    --------
    >>> barred_tag(np.array([True, False, False])), barred_tag(np.array([True, True, True]))
    (6, 0)
    """
    if eligible.all():
        return 0
    return sum(1 << int(arm) for arm in np.flatnonzero(~eligible[:TAG_BITS]))


def known_eligible(eligible: Bool) -> Bool:
    """Return what a tag will say was eligible, (K,): of the arms from number 31 on, all.

    Examples
    --------
    >>> np.flatnonzero(~known_eligible(np.arange(40) % 10 != 0))  # not arms 0, 10, 20, 30 of 40
    array([ 0, 10, 20, 30])
    >>> np.flatnonzero(~known_eligible(np.arange(40) != 35))
    array([], dtype=int64)
    """
    known: Bool = eligible.copy()
    known[TAG_BITS:] = True
    return known


def from_tag(tag: int, n_arms: int, arm: int) -> Bool:
    """Read back which arms were eligible, as far as a tag can say, (K,); the one that was played was.

    Examples
    --------
    >>> from_tag(6, 3, 0)
    array([ True, False, False])
    """
    eligible = np.ones(n_arms, dtype=bool)
    for barred in range(min(n_arms, tag.bit_length())):
        eligible[barred] = not tag >> barred & 1
    eligible[arm] = True  # numbers shift when arms are removed meanwhile
    return eligible
