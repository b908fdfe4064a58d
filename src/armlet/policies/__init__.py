"""Every policy by name. To add one: write its file, and add its name to the imports and to `_FILES` below.

A policy is imported when it is first asked for, so that `import armlet` stays fast. Other packages bring policies by an
entry point of the group `armlet.policies` that leads to a mapping of names to classes; they are looked at only for a
name that is not one of the library's.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Literal, TypeVar, overload

from armlet.errors import InvalidTypeError, PolicyError, UnknownNameError, choices, closest
from armlet.types import Over, Policy

if TYPE_CHECKING:  # for type checkers, which cannot follow __getattr__
    from armlet.policies.algorithm_1 import Algorithm1 as Algorithm1
    from armlet.policies.algorithm_1 import ScheduledEpsilonGreedy as ScheduledEpsilonGreedy
    from armlet.policies.auto_epsilon_greedy import AutoAlgorithm1 as AutoAlgorithm1
    from armlet.policies.auto_epsilon_greedy import AutoEpsilonGreedy as AutoEpsilonGreedy
    from armlet.policies.contextual_epsilon_greedy import AllDataEpsilonGreedy as AllDataEpsilonGreedy
    from armlet.policies.contextual_epsilon_greedy import ContextualEpsilonGreedy as ContextualEpsilonGreedy
    from armlet.policies.contextual_ucb import ContextualUCB as ContextualUCB
    from armlet.policies.fixed_epsilon import FixedEpsilon as FixedEpsilon
    from armlet.policies.greedy import Greedy as Greedy
    from armlet.policies.linucb import LinUCB as LinUCB
    from armlet.policies.occasional_optimism import OccasionalOptimism as OccasionalOptimism
    from armlet.policies.oful import OFUL as OFUL
    from armlet.policies.oracle import Oracle as Oracle
    from armlet.policies.shared import PairPolicy
    from armlet.policies.shared import SharedOptimism as SharedOptimism
    from armlet.policies.shared import SharedThompson as SharedThompson
    from armlet.policies.square_cb import SquareCB as SquareCB
    from armlet.policies.thompson_sampling import ThompsonSampling as ThompsonSampling
    from armlet.policies.uniform import Uniform as Uniform

PolicyT = TypeVar("PolicyT")
GROUP = "armlet.policies"
"""The group of entry points by which packages bring policies of their own."""

_FILES = {
    "Algorithm1": "algorithm_1",
    "ContextualEpsilonGreedy": "contextual_epsilon_greedy",
    "AllDataEpsilonGreedy": "contextual_epsilon_greedy",
    "AutoEpsilonGreedy": "auto_epsilon_greedy",
    "AutoAlgorithm1": "auto_epsilon_greedy",
    "ScheduledEpsilonGreedy": "algorithm_1",
    "OccasionalOptimism": "occasional_optimism",
    "ContextualUCB": "contextual_ucb",
    "FixedEpsilon": "fixed_epsilon",
    "Greedy": "greedy",
    "LinUCB": "linucb",
    "OFUL": "oful",
    "ThompsonSampling": "thompson_sampling",
    "SquareCB": "square_cb",
    "Uniform": "uniform",
    "Oracle": "oracle",
}
_FILES_OVER_PAIRS = {"SharedOptimism": "shared", "SharedThompson": "shared"}


class _Library(Mapping[str, PolicyT]):
    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def __getitem__(self, name: str) -> PolicyT:
        policy: PolicyT = getattr(import_module(f"armlet.policies.{self._files[name]}"), name)
        return policy

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


POLICIES: Mapping[str, type[Policy]] = _Library(_FILES)
"""The library's own policies over arms; `find_policy` also finds those of plug-ins."""
PAIR_POLICIES: Mapping[str, type[PairPolicy]] = _Library(_FILES_OVER_PAIRS)
"""The policies over pairs of a context and an action."""


@overload
def find_policy(name: str, over: Literal["arms"] = "arms") -> type[Policy]: ...
@overload
def find_policy(name: str, over: Literal["pairs"]) -> type[PairPolicy]: ...
@overload
def find_policy(name: str, over: None) -> type[Policy] | type[PairPolicy]: ...
def find_policy(name: str, over: Over | None = "arms") -> type[Policy] | type[PairPolicy]:
    """Return a policy of the library or of a plug-in by its name.

    Parameters
    ----------
    name
        Of its class.
    over
        What it is to learn about: "arms" or "pairs"; None for either.

    Examples
    --------
    >>> find_policy("LinUCB").__name__, find_policy("SharedOptimism", over="pairs").over
    ('LinUCB', 'pairs')
    >>> find_policy("LinUBC")
    Traceback (most recent call last):
    armlet.errors.UnknownNameError: there is no policy 'LinUBC'; did you mean 'LinUCB'?...
    """
    if name in PAIR_POLICIES and over != "arms":
        return PAIR_POLICIES[name]
    if over == "pairs":
        raise UnknownNameError(f"there is no policy {name!r} for actions; {choices(str(name), PAIR_POLICIES)}")
    if name in _FILES:
        return POLICIES[name]
    brought = plugged_policies()
    if name in brought:
        return brought[name]
    hint = "" if brought else "; policies of the literature are in the package armlet-lab: pip install armlet-lab"
    raise UnknownNameError(
        f"there is no policy {name!r}; {choices(name, [*_FILES, *brought], listed='armlet list')}{hint}"
    )


def is_registered(policy: Policy | PairPolicy) -> bool:
    """Return whether `find_policy` leads from the name of a policy to its class, so that a file needs no more."""
    name = type(policy).__name__
    for library in (POLICIES, PAIR_POLICIES):
        if name in library:
            return library[name] is type(policy)
    return plugged_policies().get(name) is type(policy)


def over(policy: object) -> Over:
    """Return what a policy learns about: arms, unless it says otherwise.

    Examples
    --------
    >>> over(POLICIES["LinUCB"]()), over(PAIR_POLICIES["SharedOptimism"]())
    ('arms', 'pairs')
    """
    return "pairs" if getattr(policy, "over", "arms") == "pairs" else "arms"


@cache
def plugged_policies() -> Mapping[str, type[Policy]]:
    """Return the policies of all plug-ins, or refuse one that is broken or takes a name that is in use."""
    from importlib.metadata import entry_points  # takes longer than the rest of the package

    policies: dict[str, type[Policy]] = {}
    for point in entry_points(group=GROUP):
        who = f"plug-in {point.name!r} ({point.value})"
        try:
            brought = point.load()
        except Exception as error:
            raise PolicyError(f"{who} cannot be loaded: {error}; mend or uninstall it") from error
        if not isinstance(brought, Mapping):
            raise PolicyError(f"{who} is {reprlib.repr(brought)}; it must be a mapping of names to policies")
        for name, kind in brought.items():
            if name in _FILES or name in _FILES_OVER_PAIRS or name in policies:
                raise PolicyError(f"{who} brings {name}, a name that is in use; rename its policy or uninstall it")
            if not isinstance(kind, type) or missing_parts(kind):
                raise PolicyError(f"{who} brings {name}, which is not a class of policies; mend or uninstall it")
            policies[name] = kind
    return policies


def default_policy() -> Policy:
    """Make the policy of a bandit that is given none.

    Examples
    --------
    >>> type(default_policy()).__name__
    'OccasionalOptimism'
    """
    return POLICIES["OccasionalOptimism"]()


_PARTS = ("learns_from", "memory", "rewards", "check", "init", "rule", "estimates", "probabilities", "decide", "update")


def missing_parts(policy: object) -> list[str]:
    """List what a policy must have and this one lacks."""
    return [part for part in _PARTS if not hasattr(policy, part)]


def check_given(policy: object, over: Over = "arms") -> None:
    """Refuse what a user gave as a policy if it is none, or is over something else, and say what would be.

    Examples
    --------
    >>> check_given("linucb")
    Traceback (most recent call last):
    armlet.errors.InvalidTypeError: policy is 'linucb' (str); give an instance: armlet.LinUCB()
    """
    if isinstance(policy, type):
        raise InvalidTypeError(f"policy is the class {policy.__name__}; pass an instance of it, with its settings")
    what = f"policy is {reprlib.repr(policy)} ({type(policy).__name__})"
    if over == "pairs":
        if type(policy) not in PAIR_POLICIES.values():
            raise InvalidTypeError(
                f"{what}; an ActionBandit takes armlet.SharedOptimism() or armlet.SharedThompson(), and an "
                "armlet.Bandit the others"
            )
        return
    missing = missing_parts(policy)
    if not missing:
        return
    if isinstance(policy, str):
        raise InvalidTypeError(
            f"{what}; give an instance: armlet.{_call(closest(policy, _FILES) or 'OccasionalOptimism')}"
        )
    if type(policy) in PAIR_POLICIES.values():
        raise InvalidTypeError(f"{what}, which is for actions with features; make an armlet.ActionBandit with it")
    raise InvalidTypeError(f"{what}, which lacks {', '.join(missing)}; give a policy such as armlet.LinUCB()")


def _call(name: str) -> str:
    parameters = signature(POLICIES[name]).parameters.values()
    needed = [f"{each.name}=..." for each in parameters if each.default is each.empty]
    return f"{name}({', '.join(needed)})"


if not TYPE_CHECKING:  # a checker knows the names from the imports above, and so sees one that is misspelt
    __all__ = ["POLICIES", *_FILES, *_FILES_OVER_PAIRS]

    def __getattr__(name: str) -> type[Policy] | type[PairPolicy]:
        if not name[:1].isupper():  # a module, or what Python itself asks for: plug-ins need not be read
            raise AttributeError(f"module 'armlet.policies' has no attribute {name!r}")
        try:
            return find_policy(name, None)
        except UnknownNameError as error:
            raise AttributeError(f"module 'armlet.policies' has no attribute {name!r}: {error}") from None

    def __dir__() -> list[str]:
        return sorted({*(name for name in globals() if name.startswith("__")), "find_policy", *__all__})
