"""Contextual linear bandits in constant time and memory."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from armlet import policies as _policies
from armlet.bandit import Bandit, load
from armlet.core.errors import ArmletError, DecisionError, MergeError, ModelFileError, TableError
from armlet.core.kernel import Decision, Decisions, Statistics
from armlet.core.types import Interaction, Policy
from armlet.core.version import __version__
from armlet.policies.all_data_epsilon_greedy import AllDataEpsilonGreedy
from armlet.policies.contextual_epsilon_greedy import ContextualEpsilonGreedy

if TYPE_CHECKING:
    from armlet.advice import advise
    from armlet.policies import OFUL, HybridLinUCB, LinUCB, Oracle, SquareCB, ThompsonSampling, Uniform

__all__ = [
    "OFUL",
    "AllDataEpsilonGreedy",
    "ArmletError",
    "Bandit",
    "ContextualEpsilonGreedy",
    "Decision",
    "DecisionError",
    "Decisions",
    "HybridLinUCB",
    "Interaction",
    "LinUCB",
    "MergeError",
    "ModelFileError",
    "Oracle",
    "Policy",
    "SquareCB",
    "Statistics",
    "TableError",
    "ThompsonSampling",
    "Uniform",
    "__version__",
    "advise",
    "load",
]


def __getattr__(name: str) -> Any:
    """Find the advisor and the other policies when they are asked for: `armlet.advise`, `armlet.LinUCB`."""
    if name == "advise":
        return import_module("armlet.advice").advise
    if name in _policies.POLICIES:
        return _policies.POLICIES[name]
    raise AttributeError(f"module 'armlet' has no attribute {name!r}")
