"""river: contexts are dicts; LinUCBDisjoint, and its online regressions with epsilon-greedy around them."""

import pickle
import random

from river import bandit, linear_model, optim

from adapters.base import Policy
from stream import Contexts, Rewards


class _LinUcb(Policy):
    """The only contextual policy of the library."""

    def __init__(self, dim: int, n_arms: int) -> None:
        self.policy = bandit.LinUCBDisjoint(seed=1)
        self.arms, self.names = list(range(n_arms)), list(range(dim))

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        pull, update, arms, names = self.policy.pull, self.policy.update, self.arms, self.names
        for x, reward in zip(contexts, rewards, strict=True):
            context = dict(zip(names, x.tolist(), strict=True))
            arm = pull(arms, context=context)
            update(arm, context, reward[arm])

    def state_bytes(self) -> int:
        return len(pickle.dumps(self.policy._bayes_lin_regs))


class _EpsilonGreedy(Policy):
    """One regression per arm; the best predicted arm, or any with probability 0.05."""

    def __init__(
        self, models: list[linear_model.BayesianLinearRegression | linear_model.LinearRegression], dim: int
    ) -> None:
        self.models, self.names = models, list(range(dim))
        self.rng = random.Random(1)

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        coin, models, names, n_arms = self.rng.random, self.models, self.names, len(self.models)
        arms = range(n_arms)
        for x, reward in zip(contexts, rewards, strict=True):
            context = dict(zip(names, x.tolist(), strict=True))
            if coin() < 0.05:
                arm = int(coin() * n_arms)
            else:
                scores = [model.predict_one(context) for model in models]
                arm = max(arms, key=scores.__getitem__)
            models[arm].learn_one(context, reward[arm])

    def state_bytes(self) -> int:
        return len(pickle.dumps(self.models))


def make(variant: str, dim: int, n_arms: int) -> Policy:
    if variant == "ucb":
        return _LinUcb(dim, n_arms)
    if variant == "bayes":
        return _EpsilonGreedy([linear_model.BayesianLinearRegression() for _ in range(n_arms)], dim)
    return _EpsilonGreedy([linear_model.LinearRegression(optim.SGD(0.05)) for _ in range(n_arms)], dim)
