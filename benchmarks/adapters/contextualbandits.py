"""contextualbandits: `predict` and `partial_fit` with one row; its own exact linear regression per arm.

The library runs one job per core unless told otherwise; here as everywhere one thread is used.
"""

import pickle
import warnings

import numpy as np
from contextualbandits.linreg import LinearRegression
from contextualbandits.online import EpsilonGreedy, LinTS, LinUCB

from adapters.base import Policy
from stream import Contexts, Rewards

warnings.filterwarnings("ignore")  # it warns at each step that an arm has seen one kind of reward only


class _ContextualBandits(Policy):
    def __init__(self, model: EpsilonGreedy | LinUCB | LinTS) -> None:
        self.model = model

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        predict, partial_fit = self.model.predict, self.model.partial_fit
        for x, reward in zip(contexts, rewards, strict=True):
            row = x[None]
            arms = predict(row)
            partial_fit(row, arms, np.array([reward[arms[0]]]))

    def state_bytes(self) -> int:
        return len(pickle.dumps(self.model._oracles))


def make(variant: str, dim: int, n_arms: int) -> Policy:  # noqa: ARG001 - it learns the dimension from the data
    if variant == "ucb":
        return _ContextualBandits(LinUCB(n_arms, random_state=1, njobs=1))
    if variant == "ts":
        # its other way to sample, of coefficients, is slower and earned no more than random arms did
        return _ContextualBandits(LinTS(n_arms, sample_from="ci", random_state=1, njobs=1))
    base = LinearRegression(lambda_=1.0, method="sm", use_float=False)
    return _ContextualBandits(EpsilonGreedy(base, n_arms, batch_train=True, random_state=1, njobs=1))
