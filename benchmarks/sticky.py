"""Whether units keep their arms: repeated calls, two replicas of one bandit, and what a changed context does.

    python benchmarks/sticky.py                     # 10^6 calls
    python benchmarks/sticky.py --calls 100000

Fifty units, each with a context of its own, are decided for again and again while the bandit learns from others; an
epoch lasts 10,000 decisions. A switch is another arm than the unit had before in the same epoch. The replica is made
from the bandit's bytes in mid-epoch, and then fed the same calls.
"""

import argparse

import numpy as np

import armlet

UNITS, EPOCH, SEED = 50, 10_000, 1


def play(calls: int) -> tuple[int, int, int, int]:
    """Count switches, arms that differ between replicas, epochs, and switches by another context."""
    rng = np.random.default_rng(SEED)
    arms = ["small", "medium", "large"]
    weights = {"quality": 1.0, "cost": -0.5}
    bandit = armlet.Bandit(arms, 4, seed=SEED, epoch=EPOCH, outcomes=weights)
    replica = bandit.copy()
    contexts, others = rng.standard_normal((UNITS, 4)), rng.standard_normal((UNITS, 4))
    names = [f"session-{i}" for i in range(UNITS)]
    kept: dict[tuple[str, int | None], str | int] = {}
    switches = apart = moved = 0
    for i in range(calls):
        if i == EPOCH // 2:
            replica = armlet.from_bytes(bandit.to_bytes())
        who = i % UNITS
        one, other = (each.decide(contexts[who], unit=names[who]) for each in (bandit, replica))
        switches += kept.setdefault((names[who], one.epoch), one.arm) != one.arm
        apart += (one.arm, one.propensity) != (other.arm, other.propensity)
        if i % 3 == 0:
            noise = float(rng.standard_normal())
            reward = {"quality": float(contexts[who][arms.index(str(one.arm))]) + noise, "cost": 0.1 + 0.01 * noise}
            bandit.learn(one, reward)
            replica.learn(other, reward)
        if i % 100 == 99:
            turned = [each.decide(others[who], unit=names[who]) for each in (bandit, replica)]
            moved += kept.get((names[who], turned[0].epoch), turned[0].arm) != turned[0].arm
    return switches, apart, len({epoch for _, epoch in kept}), moved


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count the units that switch arms within an epoch.")
    parser.add_argument("--calls", type=int, default=1_000_000)
    asked = parser.parse_args().calls
    same, replicas, epochs, by_context = play(asked)
    print(f"{asked:,} repeated calls of {UNITS} units in {epochs} epochs: {same} switches")
    print(f"{replicas} decisions differ on a replica; {by_context} of {asked // 100:,} other contexts had another arm")
