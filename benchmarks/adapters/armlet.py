"""Armlet itself: Algorithm 1 with p = 32 K, validated contexts and a Decision with its propensity."""

import armlet
from adapters.base import Policy
from stream import Contexts, Rewards


class Armlet(Policy):
    """A bandit with integer labels and its seed fixed."""

    def __init__(self, dim: int, n_arms: int) -> None:
        policy = armlet.ContextualEpsilonGreedy(p=32 * n_arms)
        self.bandit = armlet.Bandit(arms=list(range(n_arms)), dim=dim, policy=policy, seed=1)

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        """Decide and learn once for each context."""
        decide, learn = self.bandit.decide, self.bandit.learn
        for x, reward in zip(contexts, rewards, strict=True):
            decision = decide(x)
            learn(decision, reward[decision.arm])  # type: ignore[index]  # labels are 0..K-1

    def state_bytes(self) -> int:
        """Report what the bandit itself reports."""
        return int(self.bandit.nbytes)


def make(variant: str, dim: int, n_arms: int) -> Policy:  # noqa: ARG001 - one variant
    return Armlet(dim, n_arms)
