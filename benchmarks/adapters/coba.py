"""coba: LinUCB over actions given as one-hot tuples, crossed with the context.

Crossing them is how the library expresses one parameter vector per arm, so it keeps a single inverse of
(K d) x (K d): the same estimates as the other disjoint models at K^2 times the memory.
"""

from coba.learners import LinUCBLearner

from adapters.base import Policy
from stream import Contexts, Rewards


class _LinUcb(Policy):
    def __init__(self, n_arms: int) -> None:
        self.learner = LinUCBLearner(alpha=1.0, features=["ax"], seed=1)
        self.actions = [tuple(float(i == arm) for i in range(n_arms)) for arm in range(n_arms)]
        self.arm_of = {action: arm for arm, action in enumerate(self.actions)}

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        predict, learn, actions, arm_of = self.learner.predict, self.learner.learn, self.actions, self.arm_of
        for x, reward in zip(contexts, rewards, strict=True):
            context = x.tolist()
            action, probability = predict(context, actions)
            learn(context, action, reward[arm_of[action]], probability)

    def state_bytes(self) -> int:
        return int(self.learner._A_inv.nbytes + self.learner._theta.nbytes)


def make(variant: str, dim: int, n_arms: int) -> Policy:  # noqa: ARG001 - one variant, dimension from the data
    return _LinUcb(n_arms)
