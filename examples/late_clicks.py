"""Ads with clicks that come late, are corrected, and sometimes never come.

Each visitor is shown one of three ads. Clicks arrive minutes later, in any order; a few turn out to be fraud and are
taken back. Nothing waits for them: the clock counts decisions, and sums do not care about order.
"""

from __future__ import annotations

import numpy as np

import armlet

CLICK_RATES = np.array([[0.02, 0.10, 0.00], [0.05, 0.00, 0.06], [0.01, 0.02, 0.12]])  # ads x (base, returning, mobile)


def main(visitors: int = 20_000, seed: int = 3) -> float:
    """Run the campaign and return the share of visitors who clicked."""
    rng = np.random.default_rng(seed)
    policy = armlet.Algorithm1(p=600, warmup="uniform")
    bandit = armlet.Bandit(
        ["shoes", "books", "games"], features=["base", "returning", "mobile"], policy=policy, seed=seed
    )
    waiting: list[tuple[armlet.Decision, float]] = []
    clicks = 0.0
    for _ in range(visitors):
        visitor = {"base": 1.0, "returning": float(rng.random() < 0.4), "mobile": float(rng.random() < 0.5)}
        decision = bandit.decide(visitor)
        rate = CLICK_RATES[bandit.arms.index(decision.arm)] @ decision.x
        clicked = float(rng.random() < rate)
        clicks += clicked
        waiting.append((decision, clicked))
        if len(waiting) > 200:  # some minutes later
            late, reward = waiting.pop(int(rng.integers(len(waiting))))
            bandit.learn(late, reward)
            if reward and rng.random() < 0.02:  # fraud: as if the click had never been
                bandit.correct(late, 1.0, 0.0)
    print(f"{clicks / visitors:.2%} of {visitors} visitors clicked; a random ad would have got {random_rate():.2%}")
    for arm, n in zip(bandit.arms, bandit.state.n, strict=True):
        print(f"  {arm}: {n:.0f} explored impressions")
    return clicks / visitors


def random_rate() -> float:
    """Return the click rate of an ad drawn at random."""
    return float(CLICK_RATES.mean(axis=0) @ [1.0, 0.4, 0.5])


if __name__ == "__main__":
    main()
