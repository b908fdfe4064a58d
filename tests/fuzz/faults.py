"""What may be answered to nonsense, and what a bandit is, so that a refused call can be held against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import armlet
from armlet import Bandit
from armlet.testing import arguments_of, fault_of


class Fault(Exception):  # noqa: N818 - what was found, not what went wrong here
    """Something happened that the library promises not to do."""


class Hostility(Exception):  # noqa: N818 - also
    """Raised by hostile objects only."""


Label: TypeAlias = tuple[str, str]


class View(NamedTuple):
    """All that a refused call must leave as it was."""

    t: int
    arms: tuple[Label, ...]
    retired: tuple[Label, ...]
    arrays: tuple[tuple[str, str, tuple[int, ...], bytes], ...]
    spending: object  # of a budget
    epoch: int | None  # that units are in


def plain(label: object) -> Label:
    """Return a label as plain text, whatever its class says of itself."""
    return ("str", str.__str__(label)) if isinstance(label, str) else ("int", int.__repr__(label))


def look(bandit: Bandit) -> View:
    """Return all that a refused call must leave as it was."""
    try:
        held = bandit.state.arrays()
    except Exception as error:
        raise Fault(f"the state cannot be read: {error!r:.300}") from error
    arrays = tuple((name, a.dtype.str, a.shape, a.tobytes()) for name, a in sorted(held.items()))
    labels, retired = tuple(map(plain, bandit.arms)), tuple(map(plain, bandit.arms.retired))
    return View(bandit.t, labels, retired, arrays, bandit._spending, bandit._epoch)


def difference(before: View, after: View, but_for: str | None = None) -> str:
    """Describe which parts differ, but for an array; nothing if none does."""
    parts = [
        name for name in ("t", "arms", "retired", "spending", "epoch") if getattr(before, name) != getattr(after, name)
    ]
    old, new = ({entry[0]: entry for entry in view.arrays} for view in (before, after))
    names = sorted((old.keys() | new.keys()) - {but_for})
    parts += [f"array {name}" for name in names if old.get(name) != new.get(name)]
    return ", ".join(parts)


def require(holds: bool, what: Callable[[], str]) -> None:
    """Raise a fault unless something holds."""
    if not holds:
        raise Fault(what())


def judge(error: Exception, what: str, *named: Callable[..., object] | str) -> None:
    """Require a refusal: an ArmletError whose text names an argument of one of the calls, or one of the nouns.

    `Decisions[i]` adds IndexError and `save` OSError, as lists and `open` do. ValueError, TypeError and KeyError of
    Python's own are faults, as any other class is. What a hostile object raises of its own passes through unchanged.
    """
    names = frozenset[str]().union(*({each} if isinstance(each, str) else arguments_of(each) for each in named))
    why = fault_of(error, names)
    require(why is None, lambda: f"{what} is refused, but {why}: {error!r:.300}")


def same_moment(bandit: armlet.Bandit, before: View, what: str, but_for: str | None = None) -> None:
    """Require that nothing changed, but for an array if one is named."""
    changed = difference(before, look(bandit), but_for)
    require(not changed, lambda: f"{what}, but changed: {changed}")
