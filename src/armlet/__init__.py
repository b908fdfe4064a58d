"""Contextual linear bandits in constant time and memory."""

from armlet.bandit import Bandit, load
from armlet.core.errors import ArmletError, DecisionError, MergeError, ModelFileError, TableError
from armlet.core.kernel import Decision, Decisions, Statistics
from armlet.core.types import Interaction, Policy
from armlet.core.version import __version__
from armlet.policies import AllDataEpsilonGreedy, ContextualEpsilonGreedy, Oracle, Uniform

__all__ = [
    "AllDataEpsilonGreedy",
    "ArmletError",
    "Bandit",
    "ContextualEpsilonGreedy",
    "Decision",
    "DecisionError",
    "Decisions",
    "Interaction",
    "MergeError",
    "ModelFileError",
    "Oracle",
    "Policy",
    "Statistics",
    "TableError",
    "Uniform",
    "__version__",
    "load",
]
