"""What `armlet list` prints: every world, policy and experiment."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from armlet.environments import ENVIRONMENTS
from armlet.paper import reproduce
from armlet.policies import POLICIES


def listing() -> list[str]:
    """Name every world and policy, with one line and the settings of each, and every experiment.

    Examples
    --------
    >>> listing()[0]
    'worlds (armlet simulate --world NAME):'
    """
    lines = ["worlds (armlet simulate --world NAME):"]
    lines += [_entry(name, kind, kind.draw) for name, kind in ENVIRONMENTS.items()]
    lines += ["", "policies (armlet simulate --policy NAME):"]
    lines += [_entry(name, kind, kind) for name, kind in POLICIES.items()]
    lines += ["", "experiments (armlet paper --only NAME):"]
    return lines + [f"  {name}\n      {reproduce.load(name).title}" for name in reproduce.ALL]


def _entry(name: str, kind: type, maker: Callable[..., object]) -> str:
    first = (inspect.getdoc(kind) or "").partition("\n")[0]
    return f"  {name}\n      {first}\n      settings: {', '.join(_settings(maker)) or 'none'}"


def _settings(maker: Callable[..., object]) -> list[str]:
    return [
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default}"
        for parameter in inspect.signature(maker).parameters.values()
        if parameter.name != "rng"
    ]
