"""bayesianbandits: a ContextualAgent with a NormalRegressor (Bayesian ridge) per arm."""

import numpy as np
from bayesianbandits import (
    Arm,
    ContextualAgent,
    EpsilonGreedy,
    NormalRegressor,
    ThompsonSampling,
    UpperConfidenceBound,
)

from adapters.base import Policy, array_bytes
from stream import Contexts, Rewards

POLICIES = {
    "epsilon": EpsilonGreedy(epsilon=0.05),
    "ts": ThompsonSampling(),
    "ucb": UpperConfidenceBound(alpha=0.84),
}


class _Agent(Policy):
    def __init__(self, variant: str, n_arms: int) -> None:
        arms = [Arm(arm, learner=NormalRegressor(alpha=1.0, beta=1.0)) for arm in range(n_arms)]
        self.agent = ContextualAgent(arms, POLICIES[variant], random_seed=1)

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        pull, update = self.agent.pull, self.agent.update
        for x, reward in zip(contexts, rewards, strict=True):
            row = x[None]
            (arm,) = pull(row)
            update(row, np.array([reward[arm]]))

    def state_bytes(self) -> int:
        return array_bytes([arm.learner for arm in self.agent.arms])


def make(variant: str, dim: int, n_arms: int) -> Policy:  # noqa: ARG001 - it learns the dimension from the data
    return _Agent(variant, n_arms)
