"""The guards of a loop: how a bandit comes to have another control or shadow, is frozen, or has its shadow promoted.

Each function returns another bandit, a copy, and refuses what would take two more bandits than one. A loop goes on from
it by a row and a model to start from, so that no replay has to make the other bandit again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from armlet.bandit import Bandit
from armlet.errors import InvalidValueError, LoopStateError
from armlet.log.guarded import Control, Role, alone, check_own, control_of, guard, role_of, second_of
from armlet.stores.gains import Gain
from armlet.types import Policy

Gate: TypeAlias = Literal["better", "not worse", "off"]
"""What lets a shadow be promoted: that it is shown to be better, that it is not shown to be worse, or nothing."""

ENDS: Final[dict[Role, tuple[str, str]]] = {
    "shadow": ("has a shadow", "loop.change(shadow=None)"),
    "control": ("has a control that is a policy", "loop.change(control=None)"),
    "learner": ("is frozen", "loop.thaw()"),
}


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


def with_control(bandit: Bandit, control: Control | None, learned: Bandit | None = None) -> Bandit:
    """Return a bandit with another control, or without one; `learned` is that of its policy, if it has learned."""
    policy = None if control is None else control.policy
    second, role = _along(bandit, "control", policy, learned)
    return guard(bandit, control=control, second=second, role=role)


def with_shadow(bandit: Bandit, shadow: Policy | None, learned: Bandit | None = None) -> Bandit:
    """Return a bandit with another shadow, or without one."""
    second, role = _along(bandit, "shadow", shadow, learned)
    return guard(bandit, control=control_of(bandit), second=second, role=role)


def _along(
    bandit: Bandit, role: Role, policy: Policy | None, learned: Bandit | None
) -> tuple[Bandit | None, Role | None]:
    """Return what goes along with a bandit, if the one in this role is to have another policy, or none."""
    has, second = role_of(bandit), second_of(bandit)
    if policy is None:
        return (None, None) if has == role else (second, has)
    if has == role and learned is None and second is not None and second.policy == policy:
        return second, role
    _check_free(None if has == role else has, f"{role} is {policy!r}")
    return _made(bandit, policy, learned), role


def _made(bandit: Bandit, policy: Policy, learned: Bandit | None) -> Bandit:
    """Return a bandit with another policy, which goes on from what the live one knows unless it has learned itself."""
    if learned is not None:
        return learned
    twin = alone(bandit)
    if policy != twin.policy:
        try:
            twin.replace(policy=policy)
        except InvalidValueError as error:
            raise InvalidValueError(f"{error}; or let it learn the loop's log again: how='refit'") from error
    return twin


def with_live(bandit: Bandit, live: Bandit) -> Bandit:
    """Return the guards of a bandit around another live one."""
    if role_of(bandit) == "learner":
        raise LoopStateError("the loop is frozen, so its policy cannot learn the log again; thaw it first: loop.thaw()")
    return guard(live, control=control_of(bandit), second=second_of(bandit), role=role_of(bandit))


def frozen(bandit: Bandit) -> Bandit:
    """Return a bandit that decides from the state it has, while a copy learns; itself if it is frozen already."""
    role = role_of(bandit)
    if role == "learner":
        return bandit
    _check_free(role, "the loop is to be frozen")
    return guard(bandit, control=control_of(bandit), second=alone(bandit), role="learner")


def thawed(bandit: Bandit) -> Bandit:
    """Return a bandit that goes on with what was learned while it was frozen; itself if it is not frozen."""
    learner = second_of(bandit, "learner")
    return bandit if learner is None else guard(learner, control=control_of(bandit))


def shadow_of(bandit: Bandit) -> Bandit:
    """Return the shadow of a bandit that must have one."""
    shadow = second_of(bandit, "shadow")
    if shadow is None:
        raise LoopStateError("there is no shadow to promote; let one run along first: loop.change(shadow=...)")
    return shadow


def promoted(bandit: Bandit, share: float | None = None) -> Bandit:
    """Return a bandit whose shadow is the live one; with a share the policy so far is the control from then on."""
    live = alone(shadow_of(bandit), bandit.seed)
    if share is None:
        return guard(live, control=control_of(bandit))
    control = Control(policy=check_own("the policy so far", bandit.policy), share=share)
    return guard(live, control=control, second=alone(bandit), role="control")


def _check_free(role: Role | None, what: str) -> None:
    """Refuse a second bandit next to another one."""
    if role is not None:
        has, ends = ENDS[role]
        raise LoopStateError(f"{what}, but the loop {has}, and one bandit at most goes along; end that first: {ends}")
