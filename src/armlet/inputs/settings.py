"""What a bandit is told when it is made, checked once; all that gives sums their meaning must agree before a merge."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from armlet.errors import InvalidTypeError, InvalidValueError, MergeError
from armlet.inputs.checks import ends
from armlet.inputs.contexts import ContextReader, feature_names
from armlet.inputs.rewards import Range
from armlet.types import Policy

if TYPE_CHECKING:
    from armlet.inputs.encoding.encoder import Encoder
    from armlet.inputs.encoding.reader import EncodingReader

Objective: TypeAlias = Literal["max", "min"]
Normalize: TypeAlias = Literal["l2"]
Design: TypeAlias = Literal["adaptive", "fixed", "randomized"]
"""How the arms of logged rows were chosen: by what learned from rewards, by a rule that no reward changed, or drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a bandit, apart from its arms."""

    policy: Policy
    dim: int
    features: tuple[str, ...] | None
    objective: Objective
    normalize: Normalize | None
    reward_range: Range | None = None
    encoder: Encoder | None = None

    def __post_init__(self) -> None:
        feature_names(self.features, self.dim)
        if self.encoder is not None and self.encoder.features != self.features:
            raise InvalidValueError(f"features is {self.features} but the encoder gives {self.encoder.features}")
        _check_choice("objective", self.objective, ("max", "min"))
        _check_choice("normalize", self.normalize, (None, "l2"))

    @property
    def reader(self) -> ContextReader | EncodingReader:
        """What turns a user's contexts into rows."""
        if self.encoder is None:
            return ContextReader(self.dim, self.features)
        from armlet.inputs.encoding.reader import EncodingReader  # not before there is an encoder: most have none

        return EncodingReader(self.encoder)

    @property
    def sign(self) -> float:
        """1 for rewards; -1 for costs, of which policies see the negative."""
        return 1.0 if self.objective == "max" else -1.0

    def with_policy(self, policy: Policy) -> Settings:
        """Give the same with another policy."""
        checked = check_reward_range(self.reward_range, policy, self.objective)
        return replace(self, policy=policy, reward_range=checked)

    def check_same(self, other: Settings) -> None:
        """Refuse settings under which sums mean something else."""
        for what in ("policy", "dim", "features", "encoder", "objective", "normalize"):
            ours, theirs = getattr(self, what), getattr(other, what)
            if ours != theirs:
                raise MergeError(f"{what} is {ours!r} here and {theirs!r} there; only sums of the same kind add up")


def check_encoder(
    encoder: Encoder | None, features: Iterable[str] | None, dim: int | None
) -> tuple[Encoder | None, tuple[str, ...] | None, int]:
    """Return what a bandit keeps of an encoder, the names of the features and how many there are.

    Examples
    --------
    >>> check_encoder(None, ["age", "height"], None)
    (None, ('age', 'height'), 2)
    """
    if encoder is None:
        return (None, *feature_names(features, dim))
    if not hasattr(encoder, "fit_many"):
        raise InvalidTypeError(f"encoder is {encoder!r}; give an armlet.Encoder that was fitted")
    if features is not None:
        raise InvalidValueError(f"features is {features!r}, but the encoder names them; leave features out")
    return (encoder.copy(), *feature_names(encoder.features, dim))


def check_reward_range(given: object, policy: Policy, objective: Objective) -> Range | None:
    """Return the range of rewards of a bandit, which must lie in that of its policy.

    Examples
    --------
    >>> import armlet
    >>> check_reward_range([0, 5], armlet.LinUCB(), "max")
    (0.0, 5.0)
    >>> check_reward_range((0, 5), armlet.Banditron(), "max")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: reward_range is (0.0, 5.0), but Banditron learns from 0.0 to 1.0 only; ...
    """
    if given is None:
        return None
    low, high = found = ends("reward_range", given)
    policy_range = (0.0, 1.0) if policy.rewards == "binary" else getattr(policy, "reward_range", None)
    if policy_range is not None:
        worst, best = (low, high) if objective == "max" else (-high, -low)
        if not policy_range[0] <= worst <= best <= policy_range[1]:
            name, (least, most) = type(policy).__name__, policy_range
            raise InvalidValueError(
                f"reward_range is {found}, but {name} learns from {least} to {most} only; give a range within that, "
                "or leave it out"
            )
    return found


def check_seed(seed: int | None) -> int:
    """Return the seed, or draw one.

    Examples
    --------
    >>> check_seed(7), check_seed(None) != check_seed(None)
    (7, True)
    """
    if seed is None:
        return int.from_bytes(os.urandom(16), "little")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**128:
        raise InvalidValueError(f"seed is {seed!r}; give an integer from 0 to 2^128 - 1, or leave it out")
    return int(seed)


def check_steps(steps: object, rows: int) -> int:
    """Return how many decisions a log of so many rows stands for: one a row, unless it is said.

    Examples
    --------
    >>> check_steps(None, 3), check_steps(0, 3)
    (3, 0)
    >>> check_steps(-1, 3)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: steps is -1; give how many decisions the log stands for, or leave it out ...
    """
    if steps is None:
        return rows
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or not 0 <= int(steps) < 2**63:
        raise InvalidValueError(
            f"steps is {steps!r}; give how many decisions the log stands for, or leave it out for one a row"
        )
    return int(steps)


def check_step(step: object, name: str = "t") -> int:
    """Return a step of the clock.

    Examples
    --------
    >>> check_step(3)
    3
    >>> check_step(0)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: t is 0; give a step, a whole number from 1 to 2^63 - 1
    """
    if isinstance(step, bool) or not isinstance(step, (int, np.integer)) or not 1 <= int(step) < 2**63:
        raise InvalidValueError(f"{name} is {step!r}; give a step, a whole number from 1 to 2^63 - 1")
    return int(step)


def check_design(design: Design) -> Design:
    """Refuse words that say nothing about how rows came about."""
    _check_choice("design", design, get_args(Design))
    return design


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise InvalidValueError(f"{name} is {value!r}; choose one of {', '.join(map(repr, choices))}")
