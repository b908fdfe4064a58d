"""Two regions learn apart and are added up: the sum knows what one bandit would that had seen everything."""

from __future__ import annotations

import numpy as np

import armlet

THETA = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])  # arms x features


def learn_a_region(seed: int, steps: int) -> armlet.Bandit:
    """Let one region decide and learn on its own."""
    rng = np.random.default_rng(seed)
    bandit = armlet.Bandit(["red", "green", "blue"], 2, policy=armlet.Algorithm1(p=90), seed=seed)
    for x in rng.random((steps, 2)):
        decision = bandit.decide(x)
        mean = THETA[bandit.arms.index(decision.arm)] @ x
        bandit.learn(decision, float(mean + 0.3 * rng.normal()))
    return bandit


def main() -> armlet.Bandit:
    """Merge two regions and compare what each knows."""
    east, west = learn_a_region(1, 3000), learn_a_region(2, 5000)
    both = east + west
    for name, bandit in (("east", east), ("west", west), ("both", both)):
        error = np.abs(bandit.state.estimates() - THETA).max()
        print(f"{name}: {bandit.t} decisions, {bandit.state.n.sum():.0f} explored, largest error {error:.3f}")
    return both


if __name__ == "__main__":
    main()
