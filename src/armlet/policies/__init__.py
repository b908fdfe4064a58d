"""Every policy by name. To add one: write its file, add its name below, and to `catalogue.py` for type checkers.

A policy is imported when it is first asked for, so that `import armlet` stays fast.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING

from armlet.core.errors import InvalidTypeError
from armlet.core.law import refuse_schedule
from armlet.core.spelling import choices, closest
from armlet.core.types import Policy

if TYPE_CHECKING:
    from armlet.policies.catalogue import *  # noqa: F403

_FILES = {
    "Algorithm1": "algorithm_1",
    "ContextualEpsilonGreedy": "contextual_epsilon_greedy",
    "AllDataEpsilonGreedy": "all_data_epsilon_greedy",
    "OccasionalOptimism": "occasional_optimism",
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


def default_policy() -> Policy:
    """Make the policy of a bandit that is given none.

    Examples
    --------
    >>> type(default_policy()).__name__
    'OccasionalOptimism'
    """
    return POLICIES["OccasionalOptimism"]()


_FACTS = ("learns_from", "memory", "rewards")
_METHODS = ("check", "init", "rule", "estimates", "probabilities", "decide", "update")


def check_given(policy: object) -> None:
    """Refuse what a user gave as a policy if it is none, and say what would be.

    Examples
    --------
    >>> check_given("linucb")
    Traceback (most recent call last):
    armlet.core.errors.InvalidTypeError: policy is 'linucb' (str); give an instance: armlet.LinUCB()
    """
    if isinstance(policy, type):
        raise InvalidTypeError(f"policy is the class {policy.__name__}; pass an instance of it, with its settings")
    refuse_schedule(policy)
    missing = [part for part in (*_FACTS, *_METHODS) if not hasattr(policy, part)]
    if not missing:
        return
    what = f"policy is {reprlib.repr(policy)} ({type(policy).__name__})"
    if isinstance(policy, str):
        raise InvalidTypeError(
            f"{what}; give an instance: armlet.{_call(closest(policy, _FILES) or 'OccasionalOptimism')}"
        )
    raise InvalidTypeError(f"{what}, which lacks {', '.join(missing)}; give a policy such as armlet.LinUCB()")


def _call(name: str) -> str:
    """Write how a policy is made, with the settings that it insists on."""
    parameters = signature(POLICIES[name]).parameters.values()
    needed = [f"{each.name}=..." for each in parameters if each.default is each.empty]
    return f"{name}({', '.join(needed)})"


if not TYPE_CHECKING:  # a checker knows the names from the catalogue, and so sees one that is misspelt
    __all__ = ["POLICIES", *_FILES]

    def __getattr__(name: str) -> type[Policy]:
        if name in _RENAMED:
            raise AttributeError(f"{name} is called {_RENAMED[name]} now, which says what it is; see its documentation")
        if name in _MOVED:
            raise AttributeError(f"{name} is an exhibit of the paper now: from {_MOVED[name]} import {name}")
        if name not in _FILES:
            raise AttributeError(f"module 'armlet.policies' has no attribute {name!r}; {choices(name, _FILES)}")
        return POLICIES[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
