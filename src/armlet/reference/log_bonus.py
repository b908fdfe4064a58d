"""Mirrors kernel/rules/log_bonus.cpp, with kernel/state/{statistics,noise}.cpp: a bonus that grows with log t.

`PacedReference` is the oracle of a state whose arms are solved rarely, with everything in the open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.inputs.settings import Ridge
from armlet.reference.choice import best_arms, coins
from armlet.reference.elementary import exp, log, logs
from armlet.reference.evidence import Best, ExploringLaw
from armlet.reference.linear import log_determinant, width
from armlet.reference.ridge_evidence import likely_ridge
from armlet.reference.schedule import Reference
from armlet.reference.under_way import expected_rows, lower_silent, shrinkage, skip_silent
from armlet.types import Bool, Choice, Coins, Float64, Int64

Noise: TypeAlias = Literal["pool", "max", "shrunk"]

PRIOR: Final = 4.0
"""Rows that the noise of the other arms counts for in an arm's own."""
LEAST_ROWS: Final = 3.0
"""From which on the noise of an arm tells how arms differ."""
LEAST_GAIN: Final = 0.1
"""What rows must tell about an arm, as a sum of squared widths, so that estimates from before are of no use."""


@dataclass(frozen=True, slots=True)
class TwoKinds:
    """The law of a step that explores, or else is greedy or optimistic, all by one coin.

    It explores if the coin is below e, and is optimistic if it is below e + (1 - e) share, e the probability that the
    step explores. The coin is a function of the seed and t, so that nobody without the seed knows the kind of a step
    before it is played.

    Examples
    --------
    >>> first, second = (lambda arms: arms[:1]), (lambda arms: arms[1:2])
    >>> from armlet.reference.evidence import alike
    >>> law = TwoKinds(alike(np.arange(2), 0.5), 0.25, greedy=first, optimistic=second)
    >>> [law.is_optimistic(coin) for coin in (0.4, 0.5, 0.62, 0.63)]
    [False, True, True, False]
    >>> law.probabilities(2).tolist()
    [0.625, 0.375]
    """

    law: ExploringLaw
    share: float  # of the steps that do not explore, how many are optimistic
    greedy: Best
    optimistic: Best

    def is_optimistic(self, coin: float) -> bool:
        """Return whether a coin makes the step optimistic."""
        rate = self.law.rate
        return not coin < rate and coin < rate + (1.0 - rate) * self.share

    def probabilities(self, n_arms: int) -> Float64:
        """Return the probability of every arm, over the coin."""
        chances = np.zeros(n_arms)
        chances[self.law.arms] = self.law.chances
        if self.law.rate < 1.0:
            optimistic = self.optimistic(self.law.arms)
            greedy = optimistic if self.share >= 1.0 else self.greedy(self.law.arms)
            for arm in np.union1d(greedy, optimistic).tolist():
                chances[arm] = min(1.0, self._over_both(float(chances[arm]), arm, greedy, optimistic))
        return chances

    def _over_both(self, chance: float, arm: int, greedy: Int64, optimistic: Int64) -> float:
        rest = 1.0 - self.law.rate
        if arm in greedy and arm in optimistic and len(greedy) == len(optimistic):
            return chance + rest / len(greedy)
        if arm in greedy:
            chance += rest * (1.0 - self.share) / len(greedy)
        if arm in optimistic:
            chance += rest * self.share / len(optimistic)
        return chance

    def decide(self, n_arms: int, coins: Coins) -> Choice:
        """Play what exploring takes, or one of the best arms of the coin's kind; the propensity is over the coin."""
        alone = self.decide_conditionally(n_arms, coins)
        chance = float(self.probabilities(n_arms)[alone.arm])
        greedy = alone.greedy
        if self.law.rate < 1.0 and self.share < 1.0:
            greedy = any(alone.arm in best(self.law.arms) for best in (self.greedy, self.optimistic))
        return alone._replace(propensity=chance, greedy=greedy)

    def decide_conditionally(self, n_arms: int, coins: Coins) -> Choice:
        """The same with the propensity as if every step were of this one's kind, which needs one candidate alone.

        A step that explores counts as greedy, unless none is.
        """
        optimistic = self.is_optimistic(coins.coin)
        best = self.optimistic if optimistic or self.share >= 1.0 else self.greedy
        return self.law.decide(n_arms, best, coins)._replace(optimistic=optimistic)


def log_bonus(deviations: Float64, widths: Float64, t: float, ways: int, width_scale: float) -> Float64:
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


def proved_radii(log_determinants: Float64, size: int, t: int, ridge: float, proved: tuple[float, float]) -> Float64:
    """Return sigma sqrt(log det(V / ridge) + 2 log(K t (t + 1))) + sqrt(ridge) |theta| of every arm.

    Parameters
    ----------
    log_determinants
        (K,): log det V.
    size, t, ridge
        How many rows V has, the step, and the ridge in V.
    proved
        sigma, with which noise is sub-gaussian, and what no |theta| exceeds.

    Examples
    --------
    >>> proved_radii(np.zeros(2), 3, 1, 1.0, (1.0, 1.0)).round(4).tolist()  # sqrt(2 log 4) + 1
    [2.6651, 2.6651]
    """
    noise_scale, theta_norm = proved
    chances = 2.0 * log(float(len(log_determinants)) * (float(t) * (float(t) + 1.0)))
    volumes = np.maximum(log_determinants - float(size) * log(ridge), 0.0)
    out: Float64 = noise_scale * np.sqrt(volumes + chances) + math.sqrt(ridge) * theta_norm
    return out


# ---- noise


def deviations(residuals: Float64, n: Float64, noise: Noise) -> Float64:
    """Return how noisy each arm is, from its rows and squared residuals, what estimates are penalised for among them.

    Where slopes are as the ridge has it, such residuals have a mean of n sigma^2. "pool" is one deviation for all arms.
    "max" is at least the mean of all, in which an arm with few rows counts less, and more where its own residuals say
    so. "shrunk" is the arm's own, shrunk to a common one as far as arms are alike, by empirical Bayes.

    Examples
    --------
    >>> residuals, n = np.array([96.0, 96.0, 9600.0]), np.array([96.0, 96.0, 96.0])
    >>> [deviations(residuals, n, noise).round(2).tolist() for noise in ("pool", "max", "shrunk")]
    [[5.83, 5.83, 5.83], [5.83, 5.83, 9.87], [1.05, 1.05, 9.96]]
    >>> deviations(np.array([96.0, 100.0]), n[:2], "shrunk").round(2).tolist()
    [1.01, 1.01]
    """
    if not n.sum() > 0.0:
        return np.ones(len(residuals))
    common = float(np.cumsum(residuals)[-1] / np.cumsum(n)[-1])  # from left to right, as the kernel adds
    if noise == "max":
        weighted = float(np.cumsum(residuals / (n + PRIOR))[-1])
        common = weighted / float(np.cumsum(n / (n + PRIOR))[-1])
    pooled = np.full(len(residuals), np.sqrt(common))
    if noise == "pool" or not common > 0.0:
        return pooled
    if noise == "shrunk":
        return _shrunk(residuals, n, common, pooled)
    out: Float64 = np.sqrt(np.maximum(common, (residuals + PRIOR * common) / (n + PRIOR)))
    return out


def _shrunk(residuals: Float64, n: Float64, pooled: float, otherwise: Float64) -> Float64:
    """By Smyth (2004), with the first terms of digamma and trigamma."""
    seen = n >= LEAST_ROWS
    arms = float(seen.sum())
    if arms < 2.0:
        return otherwise
    each = logs(np.maximum(residuals[seen] / n[seen], 1e-12 * pooled)) + 1.0 / n[seen]
    total, squares, chance = (float(np.cumsum(one)[-1]) for one in (each, each * each, 2.0 / n[seen]))
    mean = total / arms
    differ = (squares - mean * total) / (arms - 1.0) - chance / arms
    if not differ > 0.0:
        return otherwise
    freedom = (1.0 + np.sqrt(1.0 + 2.0 * differ)) / differ
    common = exp(mean - 1.0 / freedom)
    own = (freedom * common + residuals) / (freedom + n)
    out: Float64 = np.sqrt(np.maximum(own, min(common, pooled)))
    return out


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
    width_scale: float = 0.85
    noise: Noise = "pool"
    finds_ridge: bool = False
    proved: tuple[float, float] | None = None  # noise_scale and theta_norm
    found_for: float = 0.0  # rows
    gained: Float64 = field(init=False)  # (K,): the information of rows since the last solve
    traces: Float64 = field(init=False)  # (K,): squared lengths of contexts
    theta: Float64 = field(init=False)  # (K, D): at the last solve
    V: Float64 = field(init=False)  # (K, D, D)
    solved_n: Float64 = field(init=False)  # (K,)
    residuals: Float64 = field(init=False)  # (K,)
    squares: Float64 = field(init=False)  # (K,): of rewards about their mean
    raw: Float64 = field(init=False)  # (K,): about the origin
    under_way: Float64 = field(init=False)  # (K,): m, decisions that wait for their reward
    renewals: int = 0

    def __post_init__(self) -> None:
        Reference.__post_init__(self)
        K, D = self.n_arms, self.size
        self.theta, self.V = np.zeros((K, D)), np.zeros((K, D, D))
        self.solved_n, self.residuals, self.squares, self.raw, self.under_way = np.zeros((5, K))
        self.gained, self.traces = np.zeros((2, K))
        for arm in range(K):
            self.solve_now(arm)

    def solve_now(self, arm: int) -> None:
        """Solve an arm for the rows that it has."""
        self.theta[arm], self.V[arm] = self.estimate(arm), self.precision(arm)
        self.solved_n[arm], self.raw[arm] = self.n[arm], self.sum_rr[arm]
        self.squares[arm], self.residuals[arm] = self._fit(arm)
        self.gained[arm], self.traces[arm] = 0.0, np.cumsum(np.diag(self.A[arm]))[-1]

    def _fit(self, arm: int) -> tuple[float, float]:
        """Return the squares of rewards, and sum r^2 - b'theta: those of residuals and what theta is penalised for."""
        b, squares = self.b[arm], float(self.sum_rr[arm])
        if self.free is not None:
            b = self.free.system(self.A[arm], self.b[arm])[1]
            squares = self.free.centred_squares(float(self.n[arm]), float(self.sum_r[arm]), squares)
        explained = 0.0
        for right, one in zip(b.tolist(), self.theta[arm].tolist(), strict=True):
            explained = explained + right * one
        return squares, max(squares - explained, 0.0)

    def is_due(self, arm: int) -> bool:
        """Return whether an arm has gained a fiftieth; or up to a tenth, while a solve takes longer than that."""
        solved = float(self.solved_n[arm])
        return float(self.n[arm]) - solved >= self._rows_due(solved)

    def _rows_due(self, n: float) -> float:
        d, k = float(self.size), float(self.n_arms)
        return max(0.02 * n, min(0.1 * n, d * d / (6.0 * (k + d))))

    def gains(self, arm: int, z: Float64, weight: float) -> bool:
        """Return whether rows since the last solve have more than twice the information of as many like the others."""
        w, n = width(self.V[arm], z), float(self.solved_n[arm])
        self.gained[arm] += weight * (w * w)
        return bool(self.gained[arm] > max(LEAST_GAIN, 2.0 * (self._rank * (self._rows_due(n) / n))))

    def add(self, arm: int, x: Float64, reward: float, weight: float = 1.0) -> None:
        """Record a row; solve the arm if it is due, and all that have rows when the units change."""
        renewals, z = self.renewals, self.view(x)
        Reference.add(self, arm, x, reward, weight)
        if self.renewals > renewals:  # all are solved; with other means and deviations than the row was looked at
            return
        if weight < 0 or self.is_due(arm) or (weight > 0 and self.has_leverage(arm, x)) or self.gains(arm, z, weight):
            self.solve_now(arm)

    def has_leverage(self, arm: int, x: Float64) -> bool:
        """Return whether a row is so much of what its arm knows that estimates from before it are of no use."""
        shift = self.ridge.shift(max(float(self.n[arm]), 1.0))
        return self.free is not None and self.free.has_leverage(self.free.row(x), self.A[arm], shift)

    def renew(self) -> None:
        """Take means and deviations again, find the ridge if rows have doubled, and solve all arms."""
        Reference.renew(self)
        self.renewals += 1
        if self.finds_ridge and float(np.cumsum(self.n)[-1]) >= 2.0 * self.found_for:
            self.find_ridge()
        for arm in range(self.n_arms):
            self.solve_now(arm)

    def find_ridge(self) -> None:
        """Take the ridge that the sums make likely."""
        free, systems = self.free, []
        assert free is not None
        for arm in range(self.n_arms):
            n, sums = float(self.n[arm]), (float(self.sum_r[arm]), float(self.sum_rr[arm]))
            systems.append((*free.system(self.A[arm], self.b[arm]), n, free.centred_squares(n, *sums)))
        deviation = float(free.spread[0])
        self.ridge = Ridge("constant", likely_ridge(systems, free.rank - 1, deviation * deviation))
        self.found_for = float(np.cumsum(self.n)[-1])

    def deviations(self) -> Float64:
        """Return how noisy each arm is taken to be."""
        raw, squares = float(np.cumsum(self.raw)[-1]), float(np.cumsum(self.squares)[-1])
        if raw > 0.0 and squares <= 2.0**-46 * raw:  # all rewards are the same, to rounding
            return np.zeros(self.n_arms)
        return deviations(self.residuals, self.solved_n, self.noise)

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

    def decide(self, t: int, x: Float64, eligible: Bool | None = None) -> Choice:
        """Play step t: explore what lacks rows, else play the highest estimate or bound, by the coin."""
        return self.law(t, x, eligible).decide(self.n_arms, coins(self.seed, t))

    def law(self, t: int, x: Float64, eligible: Bool | None = None) -> TwoKinds:
        """Return how step t plays, with the eligible arms, or else those that are not retired."""
        playable = self.active if eligible is None else eligible & self.active
        return TwoKinds(
            self.exploring(t, playable),
            self.share,
            greedy=lambda arms: best_arms(self._estimates(x, arms), arms),
            optimistic=lambda arms: best_arms(self.bounds(t, x, arms), arms),
        )

    def _estimates(self, x: Float64, arms: Int64) -> Float64:
        return self.scores(x) if self.proved else skip_silent(self.scores(x), self.n, self.under_way, arms)

    def bounds(self, t: int, x: Float64, arms: Int64) -> Float64:
        """Return the estimate of every arm and its bonus: what an optimistic step plays the highest of."""
        scores = self.scores(x)
        if self.proved is not None:
            proved: Float64 = scores + self.radii(t) * self.widths(x)
            return proved
        sigma, ways = self.deviations(), int(self.active.sum()) * self._rank
        widths = self.widths(x) * shrinkage(self.n, expected_rows(self.n, self.under_way))
        means = lower_silent(scores, self.n, self.under_way, sigma, arms)
        out: Float64 = means + log_bonus(sigma, widths, t, ways, self.width_scale)
        if self.free is None:
            out = out + math.sqrt(self.ridge.value) * self.typical_norm() * widths
        return out

    def typical_norm(self) -> float:
        """Return the root of the mean squared reward over that of the mean squared length of contexts."""
        raw, squares = float(np.cumsum(self.raw)[-1]), float(np.cumsum(self.traces)[-1])
        return math.sqrt(raw / squares) if squares > 0.0 else 0.0

    def radii(self, t: int) -> Float64:
        """Return how far every arm's estimate may be from the truth in the norm of V."""
        assert self.proved is not None
        return proved_radii(np.array([log_determinant(V) for V in self.V]), self.size, t, self.ridge.value, self.proved)

    @property
    def _rank(self) -> int:
        return self.size if self.free is None else self.free.rank
