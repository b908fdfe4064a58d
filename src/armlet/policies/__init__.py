"""Every policy by name. To add one: write its file, add its name below, twice.

A policy is imported when it is first asked for, so that `import armlet` stays fast.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING

from armlet.core.law import refuse_schedule
from armlet.core.types import Policy

if TYPE_CHECKING:
    from armlet.policies.algorithm_1 import Algorithm1
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
    from armlet.policies.feasible_randomized_ucb import FeasibleRandomizedUCB
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
    from armlet.policies.rarely_switching_oful import RarelySwitchingOFUL
    from armlet.policies.real_lin_exp3 import RealLinExp3
    from armlet.policies.scrible import SCRiBLe
    from armlet.policies.square_cb import SquareCB
    from armlet.policies.suplinrel import SupLinRel
    from armlet.policies.suplinucb import SupLinUCB
    from armlet.policies.thompson_sampling import ThompsonSampling
    from armlet.policies.ucb1 import UCB1
    from armlet.policies.uncertainty_ellipsoid import UncertaintyEllipsoid
    from armlet.policies.uniform import Uniform

_FILES = {
    "Algorithm1": "algorithm_1",
    "ContextualEpsilonGreedy": "contextual_epsilon_greedy",
    "AllDataEpsilonGreedy": "all_data_epsilon_greedy",
    "OptimisticEpsilonGreedy": "optimistic_epsilon_greedy",
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
    "FeasibleRandomizedUCB": "feasible_randomized_ucb",
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


_RENAMED = {"RandomizedUCB": "FeasibleRandomizedUCB"}  # what was called something else, and what it is called now
_MOVED = {"RunningMinimumEpsilonGreedy": "armlet.paper.section_4_2.running_minimum"}  # exhibits: not to be used


class _Registry(Mapping[str, type[Policy]]):
    renamed: Mapping[str, str] = _RENAMED
    moved: Mapping[str, str] = _MOVED

    def __getitem__(self, name: str) -> type[Policy]:
        found: type[Policy] = getattr(import_module(f"armlet.policies.{_FILES[name]}"), name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_FILES)

    def __len__(self) -> int:
        return len(_FILES)


POLICIES = _Registry()

_FACTS = ("learns_from", "memory", "rewards")
_METHODS = ("check", "init", "rule", "estimates", "probabilities", "decide", "update")


def check_given(policy: object) -> None:
    """Refuse what a user gave as a policy if it is none, and say what would be.

    Examples
    --------
    >>> check_given("linucb")
    Traceback (most recent call last):
    TypeError: policy is 'linucb' (str); give an instance: armlet.LinUCB()
    """
    if isinstance(policy, type):
        raise TypeError(f"policy is the class {policy.__name__}; pass an instance of it, with its settings")
    refuse_schedule(policy)
    missing = [part for part in (*_FACTS, *_METHODS) if not hasattr(policy, part)]
    if not missing:
        return
    what = f"policy is {reprlib.repr(policy)} ({type(policy).__name__})"
    if policy is None or isinstance(policy, str):
        raise TypeError(f"{what}; give an instance: armlet.{_call(_closest(policy or ''))}")
    raise TypeError(f"{what}, which lacks {', '.join(missing)}; give a policy such as armlet.LinUCB()")


def _closest(word: str) -> str:
    from difflib import get_close_matches  # only an error needs it

    known = {name.lower(): name for name in _FILES}
    found = get_close_matches("".join(filter(str.isalnum, word.lower())), known, n=1)
    return known[found[0]] if found else "ContextualEpsilonGreedy"


def _call(name: str) -> str:
    """Write how a policy is made, with the settings that it insists on."""
    parameters = signature(POLICIES[name]).parameters.values()
    needed = [f"{each.name}=..." for each in parameters if each.default is each.empty]
    return f"{name}({', '.join(needed)})"


__all__ = [
    "EXP4",
    "EXP4P",
    "OFUL",
    "PEGE",
    "POLICIES",
    "UCB1",
    "Algorithm1",
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
    "FeasibleRandomizedUCB",
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
    "RarelySwitchingOFUL",
    "RealLinExp3",
    "SCRiBLe",
    "SquareCB",
    "SupLinRel",
    "SupLinUCB",
    "ThompsonSampling",
    "UncertaintyEllipsoid",
    "Uniform",
]


if not TYPE_CHECKING:  # a checker knows the names from the imports above, and so sees one that is misspelt

    def __getattr__(name: str) -> type[Policy]:
        if name in _RENAMED:
            raise AttributeError(f"{name} is called {_RENAMED[name]} now, which says what it is; see its documentation")
        if name in _MOVED:
            raise AttributeError(f"{name} is an exhibit of the paper now: from {_MOVED[name]} import {name}")
        if name not in _FILES:
            raise AttributeError(f"module 'armlet.policies' has no attribute {name!r}")
        return POLICIES[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
