"""Worlds and policies by their names, with settings in words: what the command line says."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from armlet.environments import ENVIRONMENTS, World
from armlet.errors import InvalidValueError, UnknownNameError, choices
from armlet.inputs.settings import check_seed
from armlet.policies import find_policy
from armlet.types import Policy

T = TypeVar("T")


def parse_settings(given: Iterable[str]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; a value that is no Python literal is a word.

    Examples
    --------
    >>> parse_settings(["p=120", "ridge=1/n", "warmup=uniform"])
    {'p': 120, 'ridge': '1/n', 'warmup': 'uniform'}
    """
    found = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise InvalidValueError(f"{pair!r} is no setting; write NAME=VALUE, as in p=120")
        try:
            found[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            found[name] = text
    return found


def make_world(name: str, settings: Mapping[str, Any], seed: int) -> World:
    """Draw a world by its name, as FigureA.draw(np.random.default_rng(seed)) would.

    Examples
    --------
    >>> make_world("FigureA", {"n_arms": 4}, seed=1).n_arms
    4
    """
    check_seed(seed)
    kind = _find("world", name, ENVIRONMENTS)
    _check_names(name, settings, kind.draw)
    world: World = kind.draw(np.random.default_rng(seed), **settings)
    return world


def make_policy(name: str, settings: Mapping[str, Any], world: World | None = None) -> Policy:
    """Make a policy by its name; one that must know the truth is told the world's.

    Examples
    --------
    >>> make_policy("Algorithm1", {"p": 60}, make_world("FigureA", {}, seed=1))
    Algorithm1(p=60, ridge='paper', warmup='round-robin')
    """
    try:
        kind = find_policy(name)
    except UnknownNameError as error:
        raise InvalidValueError(str(error)) from None
    _check_names(name, settings, kind)
    known = {"theta": world.theta} if world is not None and _needs(kind, "theta") and hasattr(world, "theta") else {}
    missing = [field for field in inspect.signature(kind).parameters if _needs(kind, field)]
    for field in missing:
        if field not in {**known, **settings}:
            raise InvalidValueError(f"{name} needs {field}; give it with --set {field}=VALUE")
    return kind(**{**known, **settings})


def _find(what: str, name: str, registry: Mapping[str, T]) -> T:
    if name not in registry:
        raise InvalidValueError(f"{what} is {name!r}; {choices(name, registry)}")
    return registry[name]


def _check_names(name: str, settings: Mapping[str, Any], maker: Callable[..., object]) -> None:
    known = [parameter for parameter in inspect.signature(maker).parameters if parameter != "rng"]
    for given in settings:
        if given not in known:
            raise InvalidValueError(
                f"{name} has no setting {given!r}; {choices(given, known) if known else 'it has none'}"
            )


def _needs(kind: type[Policy], name: str) -> bool:
    parameter = inspect.signature(kind).parameters.get(name)
    return parameter is not None and parameter.default is parameter.empty
