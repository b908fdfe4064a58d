"""MABWiser: `predict` and `partial_fit` with one row, ridge regression per arm with an explicit inverse."""

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

from adapters.base import Policy, array_bytes
from stream import Contexts, Rewards

POLICIES = {
    "greedy": LearningPolicy.LinGreedy(epsilon=0.05),
    "ucb": LearningPolicy.LinUCB(alpha=1.0),
    "ts": LearningPolicy.LinTS(alpha=1.0),
}


class _MabWiser(Policy):
    def __init__(self, variant: str, dim: int, n_arms: int) -> None:
        self.mab = MAB(list(range(n_arms)), POLICIES[variant], seed=1)
        # partial_fit needs a fit before it, which sets the number of features
        self.mab.fit(list(range(n_arms)), [0.0] * n_arms, np.zeros((n_arms, dim)))

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        predict, partial_fit = self.mab.predict, self.mab.partial_fit
        for x, reward in zip(contexts, rewards, strict=True):
            row = x[None]
            arm = predict(row)
            partial_fit([arm], [reward[arm]], row)

    def state_bytes(self) -> int:
        return array_bytes(self.mab._imp.arm_to_model)


def make(variant: str, dim: int, n_arms: int) -> Policy:
    return _MabWiser(variant, dim, n_arms)
