"""What `armlet list` prints: the names of environments and policies, or what one of them is.

Names come from the registries alone, so that nothing else is imported.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable

from armlet.environments import ENVIRONMENTS
from armlet.errors import InvalidValueError, choices
from armlet.policies import POLICIES, plugged_policies

WIDTH = 100


def listing() -> list[str]:
    """Return the names of all.

    Examples
    --------
    >>> listing()[0]
    'environments (armlet simulate --world NAME):'
    """
    lines = ["environments (armlet simulate --world NAME):", *_wrapped(ENVIRONMENTS)]
    lines += ["", "policies (armlet simulate --policy NAME):", *_wrapped(POLICIES)]
    if brought := plugged_policies():
        lines += ["", "policies of other packages:", *_wrapped(brought)]
    return [*lines, "", "armlet list NAME says what one of them is, and its settings"]


def described(name: str) -> list[str]:
    """Return what one of them is.

    Examples
    --------
    >>> described("LinUCB")[2]
    'settings: alpha=None, delta=0.05, ridge=1.0, units=free, origin=None'
    """
    if name in ENVIRONMENTS:
        return _entry(name, ENVIRONMENTS[name], ENVIRONMENTS[name].draw)
    known = {**POLICIES, **plugged_policies()}
    if name in known:
        return _entry(name, known[name], known[name])
    raise InvalidValueError(f"NAME is {name!r}; {choices(name, [*ENVIRONMENTS, *known])}")


def _wrapped(names: Iterable[str]) -> list[str]:
    return textwrap.wrap(", ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ")


def _entry(name: str, kind: type, maker: Callable[..., object]) -> list[str]:
    first = (inspect.getdoc(kind) or "").partition("\n")[0]
    return [name, first, f"settings: {', '.join(_settings(maker)) or 'none'}"]


def _settings(maker: Callable[..., object]) -> list[str]:
    return [
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default}"
        for parameter in inspect.signature(maker).parameters.values()
        if parameter.name != "rng"
    ]
