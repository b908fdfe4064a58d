"""What a loop is made with, and what may be another one later: the arguments of `Store.loop` and `Loop.change`."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict

from armlet.bandit import Bandit
from armlet.errors import InvalidTypeError, InvalidValueError, LoopStateError, StoreError
from armlet.inputs.feature_change import FeatureChange
from armlet.inputs.settings import Epoch, Normalize, Objective, Range, Units, ends
from armlet.log.guarded import Control, control_of
from armlet.policies import check_given, default_policy, is_registered
from armlet.recording import feature_fields, policy_fields
from armlet.stores.guards import with_control, with_shadow
from armlet.stores.rewards import Aggregation
from armlet.stores.terms import USUAL, Terms
from armlet.types import Arm, Policy

if TYPE_CHECKING:
    from armlet.inputs.encoder import Encoder

LONGEST: Final = 256  # characters of a name
OnChange: TypeAlias = Literal["apply", "refuse"]
How: TypeAlias = Literal["carry", "refit"]
"""How what was learned comes to another policy: the state is carried over, or the loop's own log is learned again."""

RULES: Final = ("window", "default_reward", "aggregation", "early_window")
CHANGEABLE: Final = (*RULES, "policy", "features", "encoder", "reward_range", "control")


class Keep(Enum):
    """Says that something stays as it is, where None is a value."""

    KEEP = "keep"

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final = Keep.KEEP


def check_text(argument: str, value: object) -> str:
    """Return a name, or refuse what is not one.

    Examples
    --------
    >>> check_text("event", "")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: event is ''; give text of 1 to 256 characters
    """
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST:
        raise InvalidValueError(f"{argument} is {reprlib.repr(value)}; give text of 1 to {LONGEST} characters")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidValueError(f"{argument} is {value!r}; give text that can be written as UTF-8") from error
    return value


# ---- a change


class Replaced(TypedDict, total=False):
    """What an event `replace` of a log says."""

    policy: Mapping[str, Any]
    features: list[str]
    fill: dict[str, float]
    encoder: Mapping[str, Any]
    reward_range: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopChange:
    """What is to be another one: rules by name, and parts of the bandit; None where it stays."""

    rules: Mapping[str, Any]
    policy: Policy | None = None
    features: tuple[str, ...] | None = None
    encoder: Encoder | None = None
    fill: Mapping[str, float] | None = None
    reward_range: Range | None = None
    arms: list[Arm] | None = None
    control: Control | Keep | None = KEEP
    shadow: Policy | Keep | None = KEEP

    @property
    def names(self) -> list[str]:
        """What is to be another one."""
        parts = ("policy", "features", "encoder", "reward_range", "arms")
        guards = (name for name in ("control", "shadow") if getattr(self, name) is not KEEP)
        return [*self.rules, *(name for name in parts if getattr(self, name) is not None), *guards]

    @property
    def has_guards(self) -> bool:
        """Whether the control or the shadow is to be another one."""
        return self.control is not KEEP or self.shadow is not KEEP

    @property
    def learners(self) -> list[Policy]:
        """The policies that are to be in the loop from now on: the live one, the shadow's, the control's."""
        control = None if isinstance(self.control, Keep) or self.control is None else self.control.policy
        shadow = None if isinstance(self.shadow, Keep) else self.shadow
        return [policy for policy in (self.policy, shadow, control) if policy is not None]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be changed."""
        return not self.names

    def guard(self, bandit: Bandit, learned: Bandit | None = None) -> Bandit:
        """Return a bandit with other guards, if there are to be any; `learned` is the one that goes along then."""
        if not isinstance(self.control, Keep):
            bandit = with_control(bandit, self.control, learned)
        if not isinstance(self.shadow, Keep):
            bandit = with_shadow(bandit, self.shadow, learned)
        return bandit

    def apply(self, bandit: Bandit) -> tuple[list[Mapping[str, Any]], FeatureChange | None]:
        """Change a bandit; return the events that say so, and the change of features if there is one."""
        done: list[Mapping[str, Any]] = []
        moved: FeatureChange | None = None
        if self.reward_range is not None:
            bandit.replace(reward_range=self.reward_range)
            done.append({"reward_range": list(bandit.settings.reward_range or ())})
        if self.policy is not None and self.policy != bandit.policy:
            bandit.replace(policy=self.policy)
            done.append(policy_fields(bandit.policy))
        if self.features is not None or self.encoder is not None:
            before = bandit.settings
            bandit.replace(features=self.features, encoder=self.encoder, fill=self.fill)
            after = bandit.settings
            moved = FeatureChange.between(before.features, after.features or (), self.fill, dim=before.dim)
            done.append(feature_fields(moved, after.encoder))
        return done, moved


# ---- a loop


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSpec:
    """The arguments of `Store.loop`."""

    name: str
    arms: list[Arm] | None
    dim: int | None
    features: tuple[str, ...] | None
    encoder: Encoder | None
    policy: Policy | None
    objective: Objective
    normalize: Normalize | None
    units: Units | None
    window: float | None
    default_reward: float | None
    aggregation: Aggregation
    early_window: float | None
    reward_range: Range | None
    seed: int | None
    model: Bandit | None
    on_change: OnChange
    control: Control | None = None
    epoch: Epoch | None = None

    def __post_init__(self) -> None:
        check_text("name", self.name)
        if self.on_change not in ("apply", "refuse"):
            raise InvalidValueError(f"on_change is {self.on_change!r}; choose 'apply' or 'refuse'")
        if self.policy is not None:
            check_given(self.policy)
        _ = self.terms  # checked
        if self.model is not None:
            self._check_model(self.model)
        elif self.arms is None and (given := self._given(("policy",))):
            raise InvalidValueError(
                f"{given} is given, but arms are not; give arms too, or the name alone to go on with a loop"
            )

    def _given(self, but: Iterable[str] = ()) -> str:
        plain = {"objective": "max", "aggregation": "first"}
        first = ("dim", "features", "encoder", "policy", "objective", "normalize", "units", "epoch")
        names = (*first, *RULES, "reward_range", "seed", "control")
        return next((name for name in names if name not in but and getattr(self, name) != plain.get(name)), "")

    def _check_model(self, model: object) -> None:
        if not isinstance(model, Bandit):
            raise InvalidTypeError(f"model is {model!r}; give an armlet.Bandit to start from")
        if self.arms is not None or (given := self._given((*RULES, "reward_range", "control"))):
            given = "arms" if self.arms is not None else given
            raise InvalidValueError(f"{given} is given, but the model has its own; leave {given} out, or the model")

    @property
    def terms(self) -> Terms:
        """The rules of rewards."""
        return Terms(**{name: getattr(self, name) for name in RULES})

    @property
    def own_policy(self) -> Policy | None:
        """The policy, if it is not one of Armlet's own."""
        policy = self.policy if self.model is None else self.model.policy
        return None if policy is None or is_registered(policy) else policy

    def bandit(self) -> Bandit | None:
        """Make the bandit, if arms or a model are given."""
        made = self._trained() if self.model is not None else self._fresh(self.policy)
        if made is None:
            return None
        self.terms.rules(made)  # refuses a default that the bandit cannot learn
        if self.control is None:
            return made
        is_fresh = self.control.policy is not None and self.model is None
        return with_control(made, self.control, self._fresh(self.control.policy, made.seed) if is_fresh else None)

    def _fresh(self, given: Policy | None, seed: int | None = None) -> Bandit | None:
        if self.arms is None:
            return None
        policy = default_policy() if given is None else given
        return Bandit(
            self.arms,
            self.dim,
            policy=policy,
            features=self.features,
            encoder=self.encoder,
            objective=self.objective,
            normalize=self.normalize,
            units=self.units,
            reward_range=self._range(policy),
            epoch=self.epoch,
            seed=self.seed if seed is None else seed,
        )

    def _trained(self) -> Bandit | None:
        if self.model is None:
            return None
        twin = self.model.copy()
        if self.reward_range is not None or twin.settings.reward_range is None:
            twin.replace(reward_range=self._range(twin.policy))
        return twin

    def _range(self, policy: Policy) -> Range:
        if self.reward_range is not None:
            return ends("reward_range", self.reward_range)
        low, high = (0.0, 1.0) if policy.rewards == "binary" else getattr(policy, "reward_range", None) or USUAL
        objective = self.objective if self.model is None else self.model.settings.objective
        return (low, high) if objective == "max" else (-high, -low)

    def check_arms(self) -> None:
        """Refuse to make a loop of nothing."""
        if self.arms is None and self.model is None:
            raise StoreError(f"there is no loop {self.name!r}; give arms to make it")

    def differences(self, made: Bandit, terms: Terms, now: Bandit) -> LoopChange | None:
        """Return what differs from a loop as it is; refuse what can never change, or all of it if that is asked."""
        rules = {name: getattr(self, name) for name in RULES if getattr(self, name) != getattr(terms, name)}
        ours, theirs = made.settings, now.settings
        if self.model is not None:  # a loop that is there goes on from what it has learned
            differs = self.reward_range is not None and ours.reward_range != theirs.reward_range
            change = LoopChange(
                rules=rules, reward_range=ours.reward_range if differs else None, control=self._control(now)
            )
            return self._allowed(change, terms, now)
        for name in ("objective", "normalize", "epoch"):
            self._check(name, getattr(ours, name), getattr(theirs, name))
        if self.seed is not None:
            self._check("seed", made.seed, now.seed)
        if ours.encoder is None and theirs.encoder is None and ours.features is None:
            self._check("dim", ours.dim, theirs.dim)
        encodes = None if ours.encoder is None else ours.encoder.to_dict()
        encoded = None if theirs.encoder is None else theirs.encoder.to_dict()
        change = LoopChange(
            rules=rules,
            policy=None if ours.policy == theirs.policy else ours.policy,
            features=None if ours.encoder is not None or ours.features == theirs.features else ours.features,
            encoder=None if encodes == encoded else ours.encoder,
            reward_range=None if ours.reward_range == theirs.reward_range else ours.reward_range,
            control=self._control(now),
        )
        return self._allowed(change, terms, now)

    def _control(self, now: Bandit) -> Control | Keep:
        """Return the control if it is to be another one; one that is not given stays as it is."""
        return KEEP if self.control in (None, control_of(now)) else self.control

    def _allowed(self, change: LoopChange, terms: Terms, now: Bandit) -> LoopChange | None:
        if change.is_empty:
            return None
        if self.on_change == "refuse":
            self._refuse(change, terms, now)
        return change

    def _check(self, name: str, ours: object, theirs: object) -> None:
        if ours != theirs:
            raise LoopStateError(
                f"{name} is {ours!r}, but loop {self.name!r} was made with {theirs!r}; "
                "give that, or the name alone, or make a loop of another name"
            )

    def _refuse(self, change: LoopChange, terms: Terms, now: Bandit) -> None:
        given = {**change.rules, **{name: getattr(change, name) for name in CHANGEABLE if name not in RULES}}
        name = next(name for name, value in given.items() if name in change.rules or value not in (None, KEEP))
        known = control_of(now) if name == "control" else getattr(terms if name in RULES else now.settings, name)
        raise LoopStateError(
            f"{name} is {given[name]!r}, but loop {self.name!r} has {known!r}; give that, or the name alone; "
            f"to change it: loop.change({name}=...), or store.loop(..., on_change='apply')"
        )
