"""Mirrors kernel/rules/log_bonus.cpp, with kernel/state/{paced,noise,under_way}: a bonus that grows with log t.

`PacedReference` is the oracle of a state whose arms are solved rarely, with everything in the open.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.reference.elementary import logs
from armlet.reference.linear import width
from armlet.reference.schedule import Reference
from armlet.reference.under_way import expected_rows, lower_silent, shrinkage, skip_silent
from armlet.types import Float64, Int64

Noise: TypeAlias = Literal["pool", "max", "median"]

MASK: Final = 2**64 - 1
PRIOR: Final = 4.0
"""Rows that the noise of the other arms counts for in an arm's own."""


def is_optimistic(t: int, share: float) -> bool:
    """Return whether step t is one of the share that is optimistic: by t alone, as the mixing of SplitMix64 spreads it.

    Examples
    --------
    >>> [t for t in range(1, 40) if is_optimistic(t, 0.2)]
    [3, 5, 7, 33, 34]
    """
    bits = t * 0x9E3779B97F4A7C15 & MASK
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & MASK
    return ((bits ^ (bits >> 31)) >> 11) * 2.0**-53 < share


def log_bonus(deviations: Float64, widths: Float64, t: int, ways: int, width_scale: float) -> Float64:
    """Return c sigma w sqrt(2 log(1 + t w^2 / (K D))) of every arm; `ways` is K D.

    An arm whose rows are as many as all arms' together over K has a width of sqrt(K D / t) on average: the logarithm
    says how many times fewer rows tell something about this x than that.

    Examples
    --------
    >>> log_bonus(np.array([1.0, 2.0]), np.array([0.5, 0.0]), t=100, ways=5, width_scale=1.0).round(3).tolist()
    [0.947, 0.0]
    """
    even = float(t) / float(ways)
    log = logs(1.0 + even * (widths * widths))
    out: Float64 = width_scale * deviations * widths * np.sqrt(2.0 * log)
    return out


# ---- noise


def freedom(n: Float64, rank: int) -> Float64:
    """Return what residuals of n rows are divided by: an estimate of d numbers takes d rows, a ridge rather fewer.

    Examples
    --------
    >>> freedom(np.array([0.0, 2.0, 12.0]), 4).tolist()
    [0.0, 0.5, 8.0]
    """
    out: Float64 = np.maximum(n - np.minimum(float(rank), n), 0.25 * n)
    return out


def deviations(residuals: Float64, free: Float64, noise: Noise) -> Float64:
    """Return how noisy each arm is, from the squared residuals of every arm and their freedom.

    "pool" is one deviation for all arms. "max" is at least the mean of all, in which an arm with few rows counts less,
    and more where its own residuals say so. "median" takes the median for the mean, so that one arm that is far noisier
    than the others does not make them all seem noisy.

    Examples
    --------
    >>> residuals, free = np.array([96.0, 96.0, 9600.0]), np.array([96.0, 96.0, 96.0])
    >>> [deviations(residuals, free, noise).round(2).tolist() for noise in ("pool", "max", "median")]
    [[5.83, 5.83, 5.83], [5.83, 5.83, 9.87], [1.0, 1.0, 9.8]]
    """
    if not free.sum() > 0.0:
        return np.ones(len(residuals))
    common = _common(residuals, free, noise)
    if noise == "pool":
        return np.full(len(residuals), np.sqrt(common))
    out: Float64 = np.sqrt(np.maximum(common, (residuals + PRIOR * common) / (free + PRIOR)))
    return out


def _common(residuals: Float64, free: Float64, noise: Noise) -> float:
    if noise == "pool":
        return float(np.cumsum(residuals)[-1] / np.cumsum(free)[-1])  # from left to right, as the kernel adds
    weights = free / (free + PRIOR)
    whole = float(np.cumsum(weights)[-1])
    if noise == "max":
        return float(np.cumsum(residuals / (free + PRIOR))[-1]) / whole
    seen = free > 0.0
    pairs = sorted(zip((residuals[seen] / free[seen]).tolist(), weights[seen].tolist(), strict=True))
    running = np.cumsum([weight for _, weight in pairs])
    return float(pairs[min(int(np.searchsorted(running, 0.5 * whole)), len(pairs) - 1)][0])


@dataclass(slots=True)
class PacedReference(Reference):
    """The log bonus with exploring by evidence, of estimates that are solved rarely, with all its state in the open.

    Examples
    --------
    >>> from armlet.inputs.settings import Ridge
    >>> settings = {"ridge": Ridge("constant", 0.3), "units": "free", "clock": "evidence"}
    >>> plain = PacedReference(n_arms=2, dim=1, p=1.0, seed=1, learns_from="every step", **settings)
    >>> [plain.decide(1, np.ones(1)).explored, plain.solved_n.tolist()]
    [True, [0.0, 0.0]]
    """

    share: float = 0.2
    width_scale: float = 0.7
    noise: Noise = "pool"
    theta: Float64 = field(init=False)  # (K, D): at the last solve
    V: Float64 = field(init=False)  # (K, D, D)
    solved_n: Float64 = field(init=False)  # (K,)
    residuals: Float64 = field(init=False)  # (K,)
    squares: Float64 = field(init=False)  # (K,): of rewards about their mean
    raw: Float64 = field(init=False)  # (K,): about the origin
    under_way: Float64 = field(init=False)  # (K,): m, decisions that wait for their reward

    def __post_init__(self) -> None:
        Reference.__post_init__(self)
        K, D = self.n_arms, self.size
        self.theta, self.V = np.zeros((K, D)), np.zeros((K, D, D))
        self.solved_n, self.residuals, self.squares, self.raw, self.under_way = np.zeros((5, K))
        for arm in range(K):
            self.solve_now(arm)

    def solve_now(self, arm: int) -> None:
        """Solve an arm for the rows that it has."""
        self.theta[arm], self.V[arm] = self.estimate(arm), self.precision(arm)
        self.solved_n[arm], self.raw[arm] = self.n[arm], self.sum_rr[arm]
        self.squares[arm], self.residuals[arm] = self._fit(arm)

    def _fit(self, arm: int) -> tuple[float, float]:
        """Return the squares of rewards and of residuals: sum r^2 - b'theta - penalty of theta, since V theta = b."""
        n, theta = float(self.n[arm]), self.theta[arm].tolist()
        b, squares, shift, extra = self.b[arm], float(self.sum_rr[arm]), self.ridge.shift(n), 0.0
        if self.free is not None:
            b = self.free.system(self.A[arm], self.b[arm])[1]
            squares = self.free.centred_squares(n, float(self.sum_r[arm]), squares)
            shift = self.ridge.shift(max(n, 1.0))
            extra = 1.0 - shift
        explained = square = 0.0
        for right, one in zip(b.tolist(), theta, strict=True):
            explained, square = explained + right * one, square + one * one
        return squares, max(squares - explained - shift * square - extra * (theta[0] * theta[0]), 0.0)

    def is_due(self, arm: int) -> bool:
        """Return whether an arm has gained a fiftieth; or up to a tenth, while a solve takes longer than that."""
        d, k, solved = float(self.size), float(self.n_arms), float(self.solved_n[arm])
        return float(self.n[arm]) - solved >= max(0.02 * solved, min(0.1 * solved, d * d / (6.0 * (k + d))))

    def add(self, arm: int, x: Float64, reward: float, weight: float = 1.0) -> None:
        """Record a row; solve the arm if it is due, and all that have rows when the units change."""
        Reference.add(self, arm, x, reward, weight)
        if weight < 0 or self.is_due(arm) or (weight > 0 and self.has_leverage(arm, x)):
            self.solve_now(arm)

    def has_leverage(self, arm: int, x: Float64) -> bool:
        """Return whether a row is so much of what its arm knows that estimates from before it are of no use."""
        shift = self.ridge.shift(max(float(self.n[arm]), 1.0))
        return self.free is not None and self.free.has_leverage(self.free.row(x), self.A[arm], shift)

    def renew(self) -> None:
        """Take means and deviations again, and solve all arms that have rows."""
        Reference.renew(self)
        for arm in np.flatnonzero(self.n > 0).tolist():
            self.solve_now(arm)

    def deviations(self) -> Float64:
        """Return how noisy each arm is taken to be."""
        raw, squares = float(np.cumsum(self.raw)[-1]), float(np.cumsum(self.squares)[-1])
        if raw > 0.0 and squares <= 2.0**-46 * raw:  # all rewards are the same, to rounding
            return np.zeros(self.n_arms)
        return deviations(self.residuals, freedom(self.solved_n, self._rank), self.noise)

    def widths(self, x: Float64) -> Float64:
        """Return sqrt(z' V^-1 z) of every arm, V of its last solve."""
        return np.array([width(V, self.view(x)) for V in self.V])

    def scores(self, x: Float64) -> Float64:
        """Return z' theta_hat of every arm, of its last solve."""
        scores, z = np.zeros(self.n_arms), self.view(x)
        for j in range(self.size):
            scores += z[j] * self.theta[:, j]
        return scores

    def begin(self, arm: int) -> None:
        """Count a decision that waits for its reward."""
        self.under_way[arm] += 1.0

    def end(self, arm: int) -> None:
        """Count it no more: its reward came, or will not come."""
        self.under_way[arm] = max(self.under_way[arm] - 1.0, 0.0)

    @property
    def rows(self) -> Float64:
        """(K,): what exploring counts."""
        return self.n + self.under_way

    def bounds(self, t: int, x: Float64, arms: Int64) -> Float64:
        """Return the estimate of every arm, and on the steps that are optimistic its bonus."""
        scores = self.scores(x)
        if not is_optimistic(t, self.share):
            return skip_silent(scores, self.n, self.under_way, arms)
        sigma, ways = self.deviations(), int(self.active.sum()) * self._rank
        widths = self.widths(x) * shrinkage(self.n, expected_rows(self.n, self.under_way))
        means = lower_silent(scores, self.n, self.under_way, sigma, arms)
        out: Float64 = means + log_bonus(sigma, widths, t, ways, self.width_scale)
        return out

    @property
    def _rank(self) -> int:
        return self.size if self.free is None else self.free.rank
