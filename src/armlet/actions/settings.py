"""What an `ActionBandit` was made with, checked once; what gives its sums their meaning must agree before a merge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np

from armlet.actions.table import ActionTable
from armlet.errors import InvalidTypeError, InvalidValueError, MergeError
from armlet.inputs.actions import ActionSource, read_actions
from armlet.inputs.contexts import ContextReader, feature_names
from armlet.inputs.encoder import Encoder, EncodingReader
from armlet.inputs.hashed import HashedFeatures
from armlet.inputs.settings import Objective, Range, ends, one_of
from armlet.kernel import read_action_dicts
from armlet.policies import check_given
from armlet.policies.shared import PairPolicy
from armlet.types import Arm, Float64, Int64

if TYPE_CHECKING:
    from armlet.inputs.settings import Reader

NO_RANGES: Final = "a bandit among actions keeps no ranges of features, so check values before each decision"
AnyEncoder: TypeAlias = Encoder | HashedFeatures
Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSettings:
    """The settings of an `ActionBandit`."""

    policy: PairPolicy
    dim: int
    features: Names | None
    action_dim: int
    action_features: Names | None
    objective: Objective
    reward_range: Range | None = None
    encoder: AnyEncoder | None = None
    action_encoder: AnyEncoder | None = None

    # what only a Bandit has
    normalize: ClassVar[None] = None
    outcomes: ClassVar[None] = None
    budget: ClassVar[None] = None
    epoch: ClassVar[None] = None

    def __post_init__(self) -> None:
        check_given(self.policy, "pairs")
        one_of("max", "min")("objective", self.objective)
        check_side(None, self.features, self.dim, "")
        check_side(None, self.action_features, self.action_dim, "action_")
        for encoder, names in ((self.encoder, self.features), (self.action_encoder, self.action_features)):
            if encoder is not None and encoder.features != names:
                raise InvalidValueError(f"features is {names} but the encoder gives {encoder.features}")
        self.products()

    def products(self) -> Int64:
        """Return the products of features that the model has, (m, 2), or refuse what is too many for it."""
        return self.policy.products(self.features or self.dim, self.action_features or self.action_dim)

    @property
    def reader(self) -> Reader:
        """Turns a user's contexts into rows."""
        return _reader(self.encoder, self.features, self.dim, "context")

    @property
    def action_reader(self) -> Reader:
        """Turns the features of a user's actions into rows."""
        return _reader(self.action_encoder, self.action_features, self.action_dim, "action")

    def table(self, actions: ActionTable | ActionSource) -> ActionTable:
        """Read the actions of a table, or refuse those that have other features."""
        if not isinstance(actions, ActionTable):
            plain = (
                read_action_dicts(actions, self.action_features, self.action_dim)
                if self.action_encoder is None
                else None
            )
            labels, Z = plain or read_actions(actions, self.action_reader)
            return ActionTable._of(labels, Z, self.action_features)
        if actions.dim != self.action_dim:
            raise InvalidValueError(
                f"action_dim is {self.action_dim} but the table has {actions.dim} features; give as many"
            )
        if actions.names is not None and self.action_features is not None and actions.names != self.action_features:
            raise InvalidValueError(
                f"the table's features are {actions.names}; the bandit's are {self.action_features}"
            )
        return actions

    def _plain_dicts(self, actions: ActionSource) -> tuple[list[Arm], Float64] | None:
        """Read a dict of dicts of numbers in the kernel; None if it is anything else."""
        return None if self.action_encoder else read_action_dicts(actions, self.action_features, self.action_dim)

    @property
    def sign(self) -> float:
        """1 for rewards; -1 for costs, of which the model sees the negative."""
        return 1.0 if self.objective == "max" else -1.0

    def with_policy(self, policy: PairPolicy) -> ActionSettings:
        """Return the same settings with another policy over the same model."""
        check_given(policy, "pairs")
        for name in ("interactions", "intercepts"):
            ours, theirs = getattr(self.policy, name), getattr(policy, name)
            if ours != theirs:
                raise InvalidValueError(
                    f"policy has {name}={theirs!r}, but what was learned has {ours!r}; another model is a new bandit"
                )
        return replace(self, policy=policy)

    def with_reward_range(self, reward_range: object) -> ActionSettings:
        """Return the same settings with another range of rewards."""
        return replace(self, reward_range=ends("reward_range", reward_range))

    def check_same(self, other: ActionSettings) -> None:
        """Refuse settings under which sums have another meaning."""
        names = ("policy", "dim", "features", "action_dim", "action_features", "encoder", "action_encoder", "objective")
        for what in names:
            ours, theirs = getattr(self, what), getattr(other, what)
            if ours != theirs:
                raise MergeError(f"{what} is {ours!r} here and {theirs!r} there; only sums of the same kind add up")


def check_side(
    encoder: Any, features: Iterable[str] | None, dim: int | None, prefix: str
) -> tuple[AnyEncoder | None, Names | None, int]:
    """Return the encoder, the names and the number of the features of contexts, or, with a prefix, of actions.

    Examples
    --------
    >>> check_side(None, ["price"], None, "action_"), check_side(None, None, 0, "")
    ((None, ('price',), 1), (None, None, 0))
    """
    if encoder is not None:
        if not isinstance(encoder, Encoder | HashedFeatures):
            raise InvalidTypeError(
                f"{prefix}encoder is {encoder!r}; give an armlet.Encoder that was fitted, or armlet.HashedFeatures(64)"
            )
        if features is not None:
            raise InvalidValueError(f"{prefix}features is {features!r}, but the encoder names them; leave it out")
        return (encoder.copy(), *feature_names(encoder.features, dim, prefix))
    if prefix == "" and features is None and (dim is None or (isinstance(dim, int | np.integer) and dim == 0)):
        return None, None, 0
    if prefix and features is None and dim is None:
        raise InvalidValueError(
            "action_dim is None; give action_dim, the number of features of an action, or action_features, their names"
        )
    return (None, *feature_names(features, dim, prefix))


def read_encoder(saved: Any) -> AnyEncoder | None:
    """Restore an encoder from a model file."""
    if saved is None:
        return None
    if isinstance(saved, dict) and saved.keys() == {"hashed"}:
        return HashedFeatures(saved["hashed"])
    return Encoder.from_dict(saved)


def _reader(encoder: AnyEncoder | None, features: Names | None, dim: int, what: str) -> Reader:
    return ContextReader(dim, features, what) if encoder is None else EncodingReader(encoder, what)
