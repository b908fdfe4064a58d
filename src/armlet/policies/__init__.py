"""Every policy by name. To add one: write its file, add its line."""

from armlet.core.types import Policy
from armlet.policies.epsilon_greedy import AllDataEpsilonGreedy, ContextualEpsilonGreedy
from armlet.policies.oracle import Oracle
from armlet.policies.uniform import Uniform

POLICIES: dict[str, type[Policy]] = {
    "ContextualEpsilonGreedy": ContextualEpsilonGreedy,
    "AllDataEpsilonGreedy": AllDataEpsilonGreedy,
    "Uniform": Uniform,
    "Oracle": Oracle,
}

__all__ = ["POLICIES", "AllDataEpsilonGreedy", "ContextualEpsilonGreedy", "Oracle", "Uniform"]
