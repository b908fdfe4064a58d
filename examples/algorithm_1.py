"""Algorithm 1 of the paper in plain numpy, with the same coins and the same rounding as Armlet's kernel.

Nothing of Armlet is imported. `tests/test_examples.py` plays this file and `armlet.Algorithm1` on the same contexts and
compares arms, propensities and estimates with `==`. docs/explanation/algorithm-1.md leads from here to the kernel.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def toss(seed: int, t: int) -> tuple[float, int, int]:
    """Return the coins of step t: the coin in [0, 1), and two words of 64 bits, pick and tie."""
    words = np.random.Philox(key=seed, counter=t - 1).random_raw(4).tolist()
    return (words[0] >> 11) * 2.0**-53, words[1], words[2]


def solve(M: Array, b: Array) -> Array:
    """Solve M theta = b with M = L L'; the order of the sums decides the last bit."""
    d, L, theta, inverse = len(b), M.copy(), b.copy(), np.zeros(len(b))
    for k in range(d):
        if L[k, k] > d * 2.0**-52 * M[k, k]:  # else feature k repeats the ones before it: theta_k = 0
            inverse[k] = 1.0 / math.sqrt(L[k, k])
        L[k + 1 :, k] *= inverse[k]
        L[k + 1 :, k + 1 :] -= np.outer(L[k + 1 :, k], L[k + 1 :, k])
    for k in range(d):  # L y = b
        theta[k] *= inverse[k]
        theta[k + 1 :] -= theta[k] * L[k + 1 :, k]
    for k in reversed(range(d)):  # L' theta = y
        theta[k] *= inverse[k]
        theta[:k] -= theta[k] * L[k, :k]
    return theta


class Algorithm1:
    """K arms, contexts of d numbers, exploration p; every reward is learned before the next decision."""

    def __init__(self, K: int, d: int, p: float, seed: int) -> None:
        self.K, self.d, self.p, self.seed, self.t = K, d, p, seed, 0
        self.A, self.n, self.b = np.zeros((K, d, d)), np.zeros(K), np.zeros((K, d))

    def estimates(self) -> Array:
        """Solve (lambda_n I + A / n) theta = b / n, lambda_n = 1 / sqrt(n), multiplied by n."""
        systems = (self.A[a] + math.sqrt(self.n[a]) * np.eye(self.d) for a in range(self.K))
        return np.array([solve(M, b) for M, b in zip(systems, self.b, strict=True)])

    def decide(self, x: Array) -> tuple[int, float, bool]:
        """Take a step: the arm, its propensity, and whether the step explored."""
        self.t += 1
        coin, pick, tie = toss(self.seed, self.t)
        if self.t <= math.ceil(self.p):  # for t = 1 to p
            return self.t % self.K, 1.0, True
        scores = np.zeros(self.K)
        for x_j, theta_j in zip(x, self.estimates().T, strict=True):
            scores += x_j * theta_j
        best = np.flatnonzero(scores == scores.max())
        rate = self.p / self.t
        explored = coin < rate  # e ~ Bernoulli(p / t)
        arm = pick * self.K >> 64 if explored else int(best[tie * len(best) >> 64])
        return arm, rate / self.K + ((1.0 - rate) / len(best) if arm in best else 0.0), explored

    def learn(self, x: Array, arm: int, reward: float) -> None:
        """Add a row; call it for explored steps only."""
        self.n[arm] += 1.0
        self.b[arm] += reward * x
        self.A[arm] += np.outer(x, x)


def main(steps: int = 5000, p: float = 120.0, seed: int = 1) -> float:
    """Play a problem of the paper's Figure (a) and return the regret per step."""
    rng = np.random.default_rng(seed)
    theta, player, lost = rng.normal(size=(6, 3)), Algorithm1(6, 3, p, seed), 0.0
    for _ in range(steps):
        x: Array = rng.integers(2, size=3).astype(np.float64)
        x /= max(float(np.linalg.norm(x)), 1.0)
        means = theta @ x
        arm, _, explored = player.decide(x)
        if explored:
            player.learn(x, arm, 2.0 * rng.random() * means[arm])
        lost += float(means.max() - means[arm])
    print(f"{steps} steps, {player.n.sum():.0f} explored, regret {lost / steps:.3f} a step")
    return lost / steps


if __name__ == "__main__":
    main()
