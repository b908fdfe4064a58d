"""Contextual linear bandits in constant time and memory."""

from importlib import import_module
from typing import TYPE_CHECKING

from armlet import policies
from armlet.bandit import Bandit, from_bytes, load
from armlet.core.errors import (
    ArmletError,
    BusyError,
    DecisionError,
    MergeError,
    ModelFileError,
    PolicyError,
    TableError,
)
from armlet.core.kernel import Decision, Decisions, Statistics
from armlet.core.types import Interaction, Policy
from armlet.core.version import __version__
from armlet.policies.contextual_epsilon_greedy import ContextualEpsilonGreedy

if TYPE_CHECKING:
    from armlet import environments, testing, theory
    from armlet.advice import advise
    from armlet.policies import (
        EXP4,
        EXP4P,
        OFUL,
        PEGE,
        UCB1,
        Algorithm1,
        AllDataEpsilonGreedy,
        Banditron,
        ConfidenceBall1,
        ConfidenceBall2,
        Confidit,
        ContextualUCB,
        EpochGreedy,
        EpsilonNGreedy,
        Exp3,
        FeasibleRandomizedUCB,
        FixedEpsilon,
        Greedy,
        GreedyFirst,
        HybridLinUCB,
        LinRel,
        LinUCB,
        Newtron,
        OLSBandit,
        OptimisticEpsilonGreedy,
        Oracle,
        PolicyElimination,
        RarelySwitchingOFUL,
        RealLinExp3,
        SCRiBLe,
        SquareCB,
        SupLinRel,
        SupLinUCB,
        ThompsonSampling,
        UncertaintyEllipsoid,
        Uniform,
    )

__all__ = [
    "EXP4",
    "EXP4P",
    "OFUL",
    "PEGE",
    "UCB1",
    "Algorithm1",
    "AllDataEpsilonGreedy",
    "ArmletError",
    "Bandit",
    "Banditron",
    "BusyError",
    "ConfidenceBall1",
    "ConfidenceBall2",
    "Confidit",
    "ContextualEpsilonGreedy",
    "ContextualUCB",
    "Decision",
    "DecisionError",
    "Decisions",
    "EpochGreedy",
    "EpsilonNGreedy",
    "Exp3",
    "FeasibleRandomizedUCB",
    "FixedEpsilon",
    "Greedy",
    "GreedyFirst",
    "HybridLinUCB",
    "Interaction",
    "LinRel",
    "LinUCB",
    "MergeError",
    "ModelFileError",
    "Newtron",
    "OLSBandit",
    "OptimisticEpsilonGreedy",
    "Oracle",
    "Policy",
    "PolicyElimination",
    "PolicyError",
    "RarelySwitchingOFUL",
    "RealLinExp3",
    "SCRiBLe",
    "SquareCB",
    "Statistics",
    "SupLinRel",
    "SupLinUCB",
    "TableError",
    "ThompsonSampling",
    "UncertaintyEllipsoid",
    "Uniform",
    "__version__",
    "advise",
    "environments",
    "from_bytes",
    "load",
    "policies",
    "testing",
    "theory",
]

_MODULES = ("environments", "testing", "theory")

if not TYPE_CHECKING:  # a checker knows the names from the imports above, and so sees one that is misspelt

    def __getattr__(name: str) -> object:
        """Find the other policies, the advisor and the larger parts when they are asked for: `armlet.LinUCB`."""
        if name in policies.POLICIES:
            return policies.POLICIES[name]
        if name in policies.POLICIES.renamed or name in policies.POLICIES.moved:
            return getattr(policies, name)  # which says what it is called now, or where it is
        if name == "advise":
            return import_module("armlet.advice").advise
        if name in _MODULES:
            return import_module(f"armlet.{name}")
        raise AttributeError(f"module 'armlet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
