"""Open Bandit Pipeline 0.4.1: `select_action` and `update_params` with one row.

Newer releases do not install next to a current Python. In this one the linear policies need numpy and scikit-learn
alone, but `obp.policy` imports torch for an unrelated learner. A bare package of that name with the same path is
put in its place, so that `obp/policy/linear.py` is imported as it was released and torch is never asked for.
"""

import sys
from pathlib import Path
from types import ModuleType

import obp

from adapters.base import Policy
from stream import Contexts, Rewards

package = ModuleType("obp.policy")
package.__path__ = [str(Path(obp.__file__).parent / "policy")]
sys.modules["obp.policy"] = package

from obp.policy.linear import LinEpsilonGreedy, LinTS, LinUCB  # noqa: E402 - after the bare package


class _Linear(Policy):
    def __init__(self, policy: LinEpsilonGreedy | LinUCB | LinTS) -> None:
        self.policy = policy

    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        select_action, update_params = self.policy.select_action, self.policy.update_params
        for x, reward in zip(contexts, rewards, strict=True):
            row = x[None]
            arm = select_action(row)[0]
            update_params(action=arm, reward=reward[arm], context=row)

    def state_bytes(self) -> int:
        policy = self.policy
        return int(policy.A_inv.nbytes + policy.A_inv_temp.nbytes + policy.b.nbytes + policy.b_temp.nbytes)


def make(variant: str, dim: int, n_arms: int) -> Policy:
    if variant == "ts":
        return _Linear(LinTS(dim=dim, n_actions=n_arms, random_state=1))
    kind, epsilon = {"epsilon": (LinEpsilonGreedy, 0.05), "ucb": (LinUCB, 1.0)}[variant]
    return _Linear(kind(dim=dim, n_actions=n_arms, epsilon=epsilon, random_state=1))
