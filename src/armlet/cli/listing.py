"""The command `armlet list`: policies and environments by name, from their registries, which import neither."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from armlet.cli.answer import Answer
from armlet.cli.command import arg, command
from armlet.environments import ENVIRONMENTS
from armlet.errors import InvalidValueError, choices
from armlet.policies import POLICIES, plugged_policies

WIDTH = 92


@command(
    arg("names", nargs="*", metavar="NAME", help="describe these; default: name all"),
)
def list_names(arguments: argparse.Namespace) -> Answer:
    """Name every environment and policy; or say in a line what some of them are, and their settings.

    examples:
      armlet list
      armlet list LinUCB FigureA
    """
    if arguments.names:
        entries = [described(name) for name in arguments.names]
        return Answer({"described": entries}, [line for each in entries for line in _lines(each)])
    return Answer({kind: names for kind, (_, names) in registered().items()}, listing())


def registered() -> dict[str, tuple[str, list[str]]]:
    """Return a heading and the names of each kind, from the registries alone: no policy is imported."""
    return {
        "environments": ("environments (armlet simulate --environment NAME):", list(ENVIRONMENTS)),
        "policies": ("policies (armlet simulate --policy NAME):", list(POLICIES)),
        "plugged_policies": ("policies of other packages:", list(plugged_policies())),
    }


def listing() -> list[str]:
    """Return the names of all in lines.

    Examples
    --------
    >>> listing()[0]
    'environments (armlet simulate --environment NAME):'
    """
    parts = [[title, *_wrapped(names), ""] for title, names in registered().values() if names]
    return [*(line for part in parts for line in part), "armlet list NAME says what one of them is, and its settings"]


def described(name: str) -> dict[str, object]:
    """Return what one of them is, and its settings with their defaults.

    Examples
    --------
    >>> described("OFUL")["settings"]
    {'noise_scale': 1.0, 'theta_norm': 1.0, 'delta': 0.05, 'ridge': 1.0, 'radius': 'per-arm', 'width_scale': 1.0}
    """
    if name in ENVIRONMENTS:
        return _entry(name, ENVIRONMENTS[name], ENVIRONMENTS[name].draw)
    known = {**POLICIES, **plugged_policies()}
    if name in known:
        return _entry(name, known[name], known[name])
    everything = choices(name, [*ENVIRONMENTS, *known], listed="armlet list")
    raise InvalidValueError(f"there is no environment or policy {name!r}; {everything}")


def _wrapped(names: Iterable[str]) -> list[str]:
    return textwrap.wrap(", ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ")


def _entry(name: str, kind: type, maker: Callable[..., object]) -> dict[str, object]:
    first = (inspect.getdoc(kind) or "").partition("\n")[0]
    parameters = [each for each in inspect.signature(maker).parameters.values() if each.name != "rng"]
    needed = [each.name for each in parameters if each.default is each.empty]
    defaults = {each.name: each.default for each in parameters if each.default is not each.empty}
    return {"name": name, "about": first, "needs": needed, "settings": defaults}


def _lines(entry: dict[str, Any]) -> list[str]:
    settings = [*entry["needs"], *(f"{name}={value}" for name, value in entry["settings"].items())]
    return [entry["name"], entry["about"], f"settings: {', '.join(settings) or 'none'}"]
