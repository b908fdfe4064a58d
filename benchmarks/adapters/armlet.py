"""Armlet itself: Algorithm 1 with p = 32 K, and the peers' rules; validated contexts, a Decision with its propensity.

LinUCB and Thompson sampling have the ridge 1 and the factor 1 that the peers have; OFUL works out its own,
and the other policies have their defaults.
"""

import armlet
from adapters.base import Policy
from stream import Contexts, Rewards

RULES = {
    "ucb": armlet.LinUCB(alpha=1.0),
    "oful": armlet.OFUL(noise_scale=0.5),  # rewards of 0 and 1 are 1/2-sub-Gaussian
    "ts": armlet.ThompsonSampling(v=1.0),
    "default": armlet.OccasionalOptimism(),
    "greedy": armlet.Greedy(),
    "epsilon": armlet.FixedEpsilon(epsilon=0.1),
    "squarecb": armlet.SquareCB(),
}


class Armlet(Policy):
    """A bandit with integer labels and its seed fixed."""

    def __init__(self, dim: int, n_arms: int, variant: str = "armlet") -> None:
        policy = RULES.get(variant) or armlet.Algorithm1(p=32 * n_arms)
        self.bandit = armlet.Bandit(arms=list(range(n_arms)), dim=dim, policy=policy, seed=1)

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        """Decide and learn once for each context."""
        decide, learn = self.bandit.decide, self.bandit.learn
        for x, reward in zip(contexts, rewards, strict=True):
            decision = decide(x)
            learn(decision, reward[decision.arm])  # type: ignore[index]  # labels are 0..K-1

    def state_bytes(self) -> int:
        """Report what the bandit itself reports."""
        return int(self.bandit.state.nbytes)


def make(variant: str, dim: int, n_arms: int) -> Policy:
    return Armlet(dim, n_arms, variant)
