"""The control of a loop: an arm or a policy that plays a share of the steps, by a coin of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from armlet.errors import CheckedSettings, InvalidTypeError, InvalidValueError
from armlet.inputs.columns import check_label
from armlet.inputs.settings import chance, settle
from armlet.model_file import policy_header
from armlet.policies import check_given, is_registered
from armlet.types import Arm, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Control(CheckedSettings):
    """What is played in a share of the steps instead of the live policy's choice, by a coin of its own.

    Parameters
    ----------
    arm
        The arm that is played then. In steps where it is retired, not eligible, or more than a hard budget can pay, the
        live policy plays.
    policy
        Or the policy that plays then, such as the one before: one of Armlet's own.
    share
        The probability with which a step belongs to the control, above 0 and below 1.

    Examples
    --------
    >>> Control(arm="old", share=0.1)
    Control(arm='old', policy=None, share=0.1)
    >>> Control(share=0.1)
    Traceback (most recent call last):
    armlet.errors.InvalidTypeError: control has neither arm nor policy; give one of them
    """

    arm: Arm | None = None
    policy: Policy | None = None
    share: float = 0.1

    def __post_init__(self) -> None:
        if (self.arm is None) == (self.policy is None):
            both = "neither arm nor policy" if self.arm is None else "both arm and policy"
            raise InvalidTypeError(f"control has {both}; give one of them")
        if self.arm is not None:
            settle(self, arm=lambda _, arm: check_label(arm))
        else:
            check_own("control", self.policy)
        settle(self, share=chance(fix="give the share of steps that it plays, above 0 and below 1, such as 0.1"))

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        who = {"arm": self.arm} if self.policy is None else {"policy": policy_header(self.policy)}
        return {**who, "share": self.share}


def check_own(name: str, policy: object) -> Policy:
    """Return a policy that can be read back by its name, or refuse another one."""
    given: Policy = policy  # type: ignore[assignment]  # checked in the next line
    check_given(given)
    if not is_registered(given):
        raise InvalidValueError(f"{name} is {given!r}, which is not one of Armlet's own; register it, or give another")
    return given
