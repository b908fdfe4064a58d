"""Every policy by name. To add one: write its file, add its name below, twice.

A policy is imported when it is first asked for, so that `import armlet` stays fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from armlet.core.types import Policy

if TYPE_CHECKING:
    from armlet.policies.all_data_epsilon_greedy import AllDataEpsilonGreedy
    from armlet.policies.banditron import Banditron
    from armlet.policies.confidence_ball import ConfidenceBall1, ConfidenceBall2
    from armlet.policies.confidit import Confidit
    from armlet.policies.contextual_epsilon_greedy import ContextualEpsilonGreedy
    from armlet.policies.contextual_ucb import ContextualUCB
    from armlet.policies.epoch_greedy import EpochGreedy
    from armlet.policies.epsilon_n_greedy import EpsilonNGreedy
    from armlet.policies.exp3 import Exp3
    from armlet.policies.exp4 import EXP4
    from armlet.policies.exp4p import EXP4P
    from armlet.policies.fixed_epsilon import FixedEpsilon
    from armlet.policies.greedy import Greedy
    from armlet.policies.greedy_first import GreedyFirst
    from armlet.policies.hybrid_linucb import HybridLinUCB
    from armlet.policies.linrel import LinRel
    from armlet.policies.linucb import LinUCB
    from armlet.policies.newtron import Newtron
    from armlet.policies.oful import OFUL
    from armlet.policies.ols_bandit import OLSBandit
    from armlet.policies.optimistic_epsilon_greedy import OptimisticEpsilonGreedy
    from armlet.policies.oracle import Oracle
    from armlet.policies.pege import PEGE
    from armlet.policies.policy_elimination import PolicyElimination
    from armlet.policies.randomized_ucb import RandomizedUCB
    from armlet.policies.rarely_switching_oful import RarelySwitchingOFUL
    from armlet.policies.real_lin_exp3 import RealLinExp3
    from armlet.policies.running_minimum_epsilon_greedy import RunningMinimumEpsilonGreedy
    from armlet.policies.scrible import SCRiBLe
    from armlet.policies.square_cb import SquareCB
    from armlet.policies.suplinrel import SupLinRel
    from armlet.policies.suplinucb import SupLinUCB
    from armlet.policies.thompson_sampling import ThompsonSampling
    from armlet.policies.ucb1 import UCB1
    from armlet.policies.uncertainty_ellipsoid import UncertaintyEllipsoid
    from armlet.policies.uniform import Uniform

_FILES = {
    "ContextualEpsilonGreedy": "contextual_epsilon_greedy",
    "AllDataEpsilonGreedy": "all_data_epsilon_greedy",
    "OptimisticEpsilonGreedy": "optimistic_epsilon_greedy",
    "RunningMinimumEpsilonGreedy": "running_minimum_epsilon_greedy",
    "ContextualUCB": "contextual_ucb",
    "FixedEpsilon": "fixed_epsilon",
    "EpochGreedy": "epoch_greedy",
    "PEGE": "pege",
    "OLSBandit": "ols_bandit",
    "Greedy": "greedy",
    "GreedyFirst": "greedy_first",
    "LinUCB": "linucb",
    "HybridLinUCB": "hybrid_linucb",
    "SupLinUCB": "suplinucb",
    "LinRel": "linrel",
    "SupLinRel": "suplinrel",
    "ConfidenceBall1": "confidence_ball",
    "ConfidenceBall2": "confidence_ball",
    "UncertaintyEllipsoid": "uncertainty_ellipsoid",
    "OFUL": "oful",
    "RarelySwitchingOFUL": "rarely_switching_oful",
    "ThompsonSampling": "thompson_sampling",
    "SquareCB": "square_cb",
    "RealLinExp3": "real_lin_exp3",
    "EXP4": "exp4",
    "EXP4P": "exp4p",
    "PolicyElimination": "policy_elimination",
    "RandomizedUCB": "randomized_ucb",
    "EpsilonNGreedy": "epsilon_n_greedy",
    "UCB1": "ucb1",
    "Exp3": "exp3",
    "SCRiBLe": "scrible",
    "Banditron": "banditron",
    "Newtron": "newtron",
    "Confidit": "confidit",
    "Uniform": "uniform",
    "Oracle": "oracle",
}


class _Registry(Mapping[str, type[Policy]]):
    def __getitem__(self, name: str) -> type[Policy]:
        found: type[Policy] = getattr(import_module(f"armlet.policies.{_FILES[name]}"), name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_FILES)

    def __len__(self) -> int:
        return len(_FILES)


POLICIES: Mapping[str, type[Policy]] = _Registry()

__all__ = [
    "EXP4",
    "EXP4P",
    "OFUL",
    "PEGE",
    "POLICIES",
    "UCB1",
    "AllDataEpsilonGreedy",
    "Banditron",
    "ConfidenceBall1",
    "ConfidenceBall2",
    "Confidit",
    "ContextualEpsilonGreedy",
    "ContextualUCB",
    "EpochGreedy",
    "EpsilonNGreedy",
    "Exp3",
    "FixedEpsilon",
    "Greedy",
    "GreedyFirst",
    "HybridLinUCB",
    "LinRel",
    "LinUCB",
    "Newtron",
    "OLSBandit",
    "OptimisticEpsilonGreedy",
    "Oracle",
    "PolicyElimination",
    "RandomizedUCB",
    "RarelySwitchingOFUL",
    "RealLinExp3",
    "RunningMinimumEpsilonGreedy",
    "SCRiBLe",
    "SquareCB",
    "SupLinRel",
    "SupLinUCB",
    "ThompsonSampling",
    "UncertaintyEllipsoid",
    "Uniform",
]


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module 'armlet.policies' has no attribute {name!r}")
    return POLICIES[name]
