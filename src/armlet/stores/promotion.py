"""The promotion of a shadow: which gate its comparison with the live policy has to pass, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from armlet.cast.cast import Cast
from armlet.errors import InvalidValueError, LoopStateError
from armlet.stores.gains import Gain

Gate: TypeAlias = Literal["better", "not worse", "off"]
"""What lets a shadow be promoted: that it is shown to be better, that it is not shown to be worse, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """Whether a shadow was promoted, and what its comparison with the live policy said."""

    promoted: bool
    gain: Gain | None  # of the shadow over the live policy, up to then

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        return {"promoted": self.promoted, "gain": None if self.gain is None else self.gain.to_dict()}


def check_gate(gate: object) -> None:
    """Refuse what is not the name of a gate."""
    if not isinstance(gate, str) or gate not in get_args(Gate):
        raise InvalidValueError(f"gate is {gate!r}; choose 'better', 'not worse' or 'off'")


def passes(gate: Gate, gain: Gain | None) -> bool:
    """Whether a shadow with this gain over the live policy may be promoted.

    Examples
    --------
    >>> [passes(gate, None) for gate in ("better", "not worse", "off")]
    [False, True, True]
    """
    answer = "nothing to say" if gain is None else gain.answer
    return gate == "off" or answer == "yes" or (gate == "not worse" and answer != "no")


def check_shadow(cast: Cast, name: str | None) -> str:
    """Return the name of the shadow that is to be promoted, the only one if it is not given; or refuse."""
    if not cast.shadows:
        raise LoopStateError("there is no shadow to promote; let one run along first: loop.change(shadow=...)")
    if name is None and len(cast.shadows) == 1:
        return next(iter(cast.shadows))
    if name is None or name not in cast.shadows:
        raise InvalidValueError(f"shadow is {name!r}; choose one of {list(cast.shadows)}")
    return name
