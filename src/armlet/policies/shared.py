"""Policies over one model of all actions: what is played, and with which probability.

Both work on features of the pair, the products of (1, x) and (1, z), and a model of their rewards; see
`armlet.reference.pair_model`. Settings say which products there are, whether every action has an intercept of its own,
and how to explore. Exploring hardly matters once one model serves all actions: their features differ, which explores by
itself. What matters is that a log can be evaluated, and that is what `SharedThompson` is for.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from armlet.errors import CheckedSettings, InvalidValueError, choices
from armlet.inputs.settings import number, positive, settle, unboxed, whole
from armlet.types import Int64, Over, RewardKind

Interactions: TypeAlias = str | Sequence[tuple[str | int, str | int]]
"""Which products of features there are: "all", "none", or pairs of a feature of the context and one of the action."""

MOST_TERMS: Final = 512
MOST_DRAWS: Final = 1000


def _pairs(name: str, value: object) -> object:
    """Require "all", "none" or pairs of features; files hold the pairs as lists."""
    if isinstance(value, str) and value in ("all", "none"):
        return value
    fix = 'choose "all", "none", or pairs such as [("age", "genre")], the context\'s feature first'
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise InvalidValueError(f"{name} is {reprlib.repr(value)}; {fix}")
    pairs = [tuple(map(unboxed, pair)) if isinstance(pair, (list, tuple)) else () for pair in value]
    for pair in pairs:
        if len(pair) != 2 or not all(type(end) in (str, int) for end in pair):
            raise InvalidValueError(f"{name} is {reprlib.repr(value)}; {fix}")
    return tuple(pairs)


def _truth(name: str, value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidValueError(f"{name} is {value!r}; give True or False")
    return bool(value)


class _Shared(CheckedSettings):
    """What both policies have in common."""

    over: ClassVar[Over] = "pairs"
    rewards: ClassVar[RewardKind] = "any"
    __slots__ = ()

    interactions: Interactions
    intercepts: bool

    def products(self, x_names: Sequence[str] | int, z_names: Sequence[str] | int) -> Int64:
        """Return the products that there are, (m, 2): places of features of x and of z from 1.

        Examples
        --------
        >>> SharedOptimism(interactions=[("age", "genre")]).products(["age"], ["genre", "year"]).tolist()
        [[1, 1]]
        """
        n_x, n_z = (names if isinstance(names, int) else len(names) for names in (x_names, z_names))
        named = () if isinstance(self.interactions, str) else self.interactions
        mains, pairs = 1 + n_x + n_z, [tuple(pair) for pair in named]
        _check_terms(mains + (n_x * n_z if self.interactions == "all" else len(pairs)), n_x, n_z)
        if self.interactions == "all":
            pairs = [(i, j) for i in range(n_x) for j in range(n_z)]
        places = sorted({(_place(p[0], x_names, "context"), _place(p[1], z_names, "action")) for p in pairs})
        return np.array(places, dtype=np.int64).reshape(-1, 2)


def _place(feature: Any, names: Sequence[str] | int, whose: str) -> int:
    """Return the place of a feature from 1, by its name or by its index."""
    if isinstance(feature, str):
        if isinstance(names, int):
            raise InvalidValueError(
                f"interactions has {feature!r}, but the features of the {whose} have no names; give places"
            )
        if feature not in names:
            raise InvalidValueError(
                f"interactions has {feature!r}, no feature of the {whose}; {choices(feature, names)}"
            )
        return list(names).index(feature) + 1
    n = names if isinstance(names, int) else len(names)
    if not 0 <= feature < n:
        raise InvalidValueError(f"interactions has {feature}, but the {whose} has the features 0 to {n - 1}")
    return int(feature) + 1


def _check_terms(terms: int, n_x: int, n_z: int) -> None:
    if terms > MOST_TERMS:
        raise InvalidValueError(
            f"interactions make {terms} terms of {n_x} features of the context and {n_z} of the action, and one model "
            f"holds {MOST_TERMS}; name those that matter, as in interactions=[('age', 'genre')], or take 'none', "
            "or fewer features; for hashed text of many thousand features use Vowpal Wabbit"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedOptimism(_Shared):
    """Play the highest estimate, and on some steps, which a private coin picks, the highest confidence bound.

    Parameters
    ----------
    share
        Of the steps, how many are optimistic. A coin of (seed, t) says which; `decision.optimistic` records it.
    interactions
        Which products of a feature of the context and one of the action the model has, besides every feature alone:
        "all"; "none", so that all contexts rank actions alike; or pairs by name or by place, such as
        `[("age", "genre")]`. The model holds up to 512 terms.
    intercepts
        Whether every action that comes back has an intercept of its own, as far as its rewards speak for one.

    Examples
    --------
    >>> SharedOptimism(share=0.1).share
    0.1
    """

    share: float = 0.2
    interactions: Interactions = "all"
    intercepts: bool = True

    def __post_init__(self) -> None:
        settle(self, share=number(0.0, 1.0), interactions=_pairs, intercepts=_truth)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedThompson(_Shared):
    """Draw a model from the posterior, one of a fixed number of draws, and play what it ranks highest.

    The share of the draws that would play an action is its exact probability, so no action has one below 1 / draws
    unless it has none, and logs of it can be evaluated: that is what to take it for. It regrets more than
    `SharedOptimism`.

    Parameters
    ----------
    draws
        How many.
    v
        How wide they are: 1 for the posterior itself, less to explore less.
    interactions, intercepts
        As in `SharedOptimism`.

    Examples
    --------
    >>> SharedThompson(draws=50).draws
    50
    """

    draws: int = 20
    v: float = 1.0
    interactions: Interactions = "all"
    intercepts: bool = True

    def __post_init__(self) -> None:
        settle(self, draws=whole(1, MOST_DRAWS), v=positive(100.0), interactions=_pairs, intercepts=_truth)


PairPolicy: TypeAlias = SharedOptimism | SharedThompson
"""A policy over pairs, as an `ActionBandit` takes it."""
