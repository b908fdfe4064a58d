"""A sample of each arm's rows, of fixed size, that favours directions seen rarely: Efraimidis and Spirakis (2006).

A row with a random number u on (0, 1] and leverage h has the priority log(u) / h, and the rows with the highest
priorities stay: weighted sampling without replacement, in one pass. h = q / (1 + q) with q = x'(I + A)^-1 x and A the
sum of all rows before it, so the share of a direction grows with the logarithm of how often it was met. What is found
in the sample is a subset of the whole past, so its width is valid, only larger than the best.
Update O(d^3); memory O(K (m d + d^2)) whatever t.
"""

from __future__ import annotations

import math
from typing import Self, cast

import numpy as np

from armlet.core.errors import DecisionError, MergeError
from armlet.core.kernel import coins
from armlet.core.state import fresh
from armlet.core.types import Array, Float64, Interaction
from armlet.policies.parts.factors import inverse_of
from armlet.policies.subset_search.histories import Histories


def _solve(V: Float64, x: Float64) -> Float64:
    try:
        return cast(Float64, np.linalg.solve(V, x))
    except np.linalg.LinAlgError:  # beside huge contexts rounding has eaten the identity
        return inverse_of(V) @ x


class Coreset(Histories):
    """Histories of at most `limit` rows an arm.

    The random numbers come from the coins of the decision, through its tag, and from how many rows there were before.

    Examples
    --------
    >>> state = Coreset(1, 2, limit=20)
    >>> for t in range(1, 100):
    ...     x = np.array([1.0, 1.0]) if t == 50 else np.array([1.0, 0.0])
    ...     state.learn(Interaction(t=t, x=x, arm=0, reward=1.0, tag=t))
    >>> len(state.past(0)), [1.0, 1.0] in state.past(0).rows.tolist()
    (20, True)
    """

    def __init__(self, n_arms: int, dim: int, *, limit: int) -> None:
        super().__init__(n_arms, dim, kept="rows", limit=limit)
        self._priorities = np.full((n_arms, limit), -math.inf)
        self._A = np.zeros((n_arms, dim, dim))  # of all rows, kept or not
        self._seen = np.zeros(n_arms, dtype=np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        return super().nbytes + self._priorities.nbytes + self._A.nbytes + self._seen.nbytes

    def learn(self, interaction: Interaction) -> None:
        """Let a row into the sample, or not."""
        i = interaction
        fresh(i, "Coreset")
        if i.weight != 1.0:
            raise DecisionError(f"weight is {i.weight}; a sample of rows has no weights, so leave it out")
        past, arm = self._pasts[i.arm], i.arm
        u = 1.0 - coins((abs(i.tag) << 64) + int(self._seen[arm]), max(i.t, 1)).coin
        q = max(0.0, float(i.x @ _solve(np.eye(self.dim) + self._A[arm], i.x)))
        priority = math.log(u) * (1.0 + q) / max(q, 1e-300)
        self._A[arm] += np.outer(i.x, i.x)
        self._seen[arm] += 1
        if len(past) < self._limit:
            self._priorities[arm, len(past)] = priority
            past.append(i.x, 1.0, i.reward)
            return
        lowest = int(self._priorities[arm].argmin())
        if priority > self._priorities[arm, lowest]:
            self._priorities[arm, lowest] = priority
            past.replace(lowest, i.x, 1.0, i.reward)

    def arrays(self) -> dict[str, Array]:
        """Give the sample, and what decides who enters it next."""
        kept = [self._priorities[arm, : len(past)] for arm, past in enumerate(self._pasts)]
        more = {"priorities": np.concatenate(kept), "A": self._A.copy(), "seen": self._seen.copy()}
        return {**super().arrays(), **more}

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Take back what `arrays` gave."""
        given = cast(Float64, arrays["priorities"])
        if given.shape != arrays["counts"].shape or arrays["A"].shape != self._A.shape:
            raise ValueError(f"priorities have shape {given.shape}, A has {arrays['A'].shape}, not {self._A.shape}")
        if arrays["seen"].shape != self._seen.shape:
            raise ValueError(f"seen has shape {arrays['seen'].shape}, not {self._seen.shape}")
        if max(np.bincount(arrays["arms"].astype(np.int64)), default=0) > self._limit:
            raise ValueError(f"an arm has more than {self._limit} rows")
        super().restore_arrays(arrays)
        self._A, self._seen = cast(Float64, arrays["A"]).copy(), arrays["seen"].astype(np.int64)
        self._priorities = np.full((self.n_arms, self._limit), -math.inf)
        for arm in range(self.n_arms):
            mine = given[arrays["arms"] == arm]
            self._priorities[arm, : len(mine)] = mine

    def add_arm(self) -> None:
        """Add an arm without a past."""
        super().add_arm()
        self._priorities = np.concatenate([self._priorities, np.full((1, self._limit), -math.inf)])
        self._A = np.concatenate([self._A, np.zeros((1, self.dim, self.dim))])
        self._seen = np.append(self._seen, 0)

    def remove_arm(self, arm: int) -> None:
        """Drop an arm and its past."""
        super().remove_arm(arm)
        self._priorities, self._A = np.delete(self._priorities, arm, 0), np.delete(self._A, arm, 0)
        self._seen = np.delete(self._seen, arm)

    def merge(self, other: Self, into: list[int]) -> None:  # noqa: ARG002
        """Refuse: leverages were measured against other rows."""
        raise MergeError("samples of rows cannot be merged; use history='buckets' or 'all'")
