"""What a loop is made with, and what may be another one later: the arguments of `Store.loop` and `Loop.change`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, cast

from armlet.actions.bandit import ActionBandit
from armlet.actions.policies import ACTION_POLICIES, SharedOptimism
from armlet.actions.policies import check_given as check_action_policy
from armlet.bandit import Bandit
from armlet.cast.cast import SHADOW, Cast
from armlet.cast.control import Control
from armlet.errors import InvalidTypeError, InvalidValueError, LoopStateError
from armlet.inputs.columns import check_text
from armlet.inputs.feature_change import FeatureChange
from armlet.inputs.outcomes import Outcomes, read_outcomes
from armlet.inputs.ranges import GivenRanges, check_feature_range
from armlet.inputs.settings import Epoch, Normalize, Objective, Range, Settings, Units, ends
from armlet.policies import check_given, default_policy, is_registered
from armlet.recording import feature_fields, outcome_fields, policy_fields
from armlet.stores.rewards import Aggregation, Value
from armlet.stores.terms import USUAL, Terms
from armlet.types import KEEP, Arm, Keep, Policy

if TYPE_CHECKING:
    from armlet.inputs.budget import Budget
    from armlet.inputs.encoder import Encoder

OnChange: TypeAlias = Literal["apply", "refuse"]
How: TypeAlias = Literal["carry", "refit"]
"""How what was learned comes to another policy: the state is carried over, or the loop's own log is learned again."""

RULES: Final = ("window", "default_reward", "aggregation", "early_window")
OF_BANDIT: Final = ("policy", "features", "encoder", "reward_range", "feature_range", "outcomes", "known", "budget")
REMOVABLE: Final = ("feature_range", "budget", "control", "shadow")  # None removes them
NOT_OF_ACTIONS: Final = "which a loop of actions with features cannot have; leave it out"
OF_ACTIONS: Final = ("action_dim", "action_features", "action_encoder")
CHANGEABLE: Final = (*RULES, *OF_BANDIT, "control")

Ranges: TypeAlias = Mapping[str, Range]
Prices: TypeAlias = Mapping[str, Mapping[Arm, float]]


# ---- a change


class Replaced(TypedDict, total=False):
    """What an event `replace` of a log says."""

    policy: Mapping[str, Any]
    features: list[str]
    fill: dict[str, float]
    encoder: Mapping[str, Any]
    reward_range: list[float]
    feature_range: Mapping[str, list[Any]] | None
    outcomes: Mapping[str, Any]
    budget: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopChange:
    """What is to be another one: rules by name, and parts of the bandit; None where it stays."""

    rules: Mapping[str, Any]
    policy: Policy | None = None
    features: tuple[str, ...] | None = None
    encoder: Encoder | None = None
    fill: Mapping[str, float] | None = None
    reward_range: Range | Ranges | None = None
    outcomes: Mapping[str, float] | None = None
    known: Prices | None = None
    budget: Budget | Keep | None = KEEP
    feature_range: GivenRanges | Keep | None = KEEP
    arms: list[Arm] | None = None
    control: Control | Keep | None = KEEP
    shadow: Policy | Keep | None = KEEP

    @property
    def names(self) -> list[str]:
        """What is to be another one."""
        given = (name for name in (*OF_BANDIT, "arms", "control", "shadow") if getattr(self, name) is not KEEP)
        return [*self.rules, *(name for name in given if name in REMOVABLE or getattr(self, name) is not None)]

    @property
    def has_cast(self) -> bool:
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

    def recast(self, cast: Cast, learned: Bandit | None = None) -> Cast:
        """Return a cast with the control and the shadow that are wanted; `learned` is the one that is new."""
        if not isinstance(self.control, Keep):
            cast = cast.with_control(self.control, learned)
        if not isinstance(self.shadow, Keep):
            shadows = {} if self.shadow is None else {SHADOW: self.shadow}
            cast = cast.with_shadows(shadows, {} if learned is None else {SHADOW: learned})
        return cast

    def apply(self, cast: Cast) -> tuple[list[Mapping[str, Any]], FeatureChange | None]:
        """Change a cast; return the events that say so, and the change of features if there is one."""
        done: list[Mapping[str, Any]] = []
        moved: FeatureChange | None = None
        before = cast.live.settings
        self._replace_rewards(cast)
        if cast.live.settings.outcomes != before.outcomes and cast.live.settings.outcomes is not None:
            done.append(outcome_fields(cast.live.settings.outcomes))
        elif before.outcomes is None and cast.live.settings.reward_range != before.reward_range:
            done.append({"reward_range": list(cast.live.settings.reward_range or ())})
        if not isinstance(self.budget, Keep) and self.budget != before.budget:
            cast.replace(budget=self.budget)
            done.append({"budget": None if self.budget is None else self.budget.to_dict()})
        if self.policy is not None and self.policy != cast.live.policy:
            cast.replace(policy=self.policy)
            done.append(policy_fields(cast.live.policy))
        if self.features is not None or self.encoder is not None:
            cast.replace(features=self.features, encoder=self.encoder, fill=self.fill)
            after = cast.live.settings
            if (after.features, _encodes(after)) != (before.features, _encodes(before)):
                moved = FeatureChange.between(before.features, after.features or (), self.fill, dim=before.dim)
                done.append(feature_fields(moved, after.encoder))
        if not isinstance(self.feature_range, Keep) and self._has_other_ranges(cast.live):
            cast.replace(feature_range=self.feature_range)
            ranges = cast.live.settings.feature_range
            done.append({"feature_range": None if ranges is None else ranges.to_dict()})
        return done, moved

    def _has_other_ranges(self, bandit: Bandit) -> bool:
        settings = bandit.settings
        return check_feature_range(self.feature_range, settings.features) != settings.feature_range

    def _replace_rewards(self, cast: Cast) -> None:
        """Change weights and prices of outcomes, and ranges; what is left out stays as it is."""
        several = cast.live._settings.outcomes
        if self.outcomes is not None:
            cast.replace(outcomes=self.outcomes)
        if self.known is not None:
            cast.replace(known=self.known if several is None else _with_prices(several, self.known))
        if self.reward_range is None:
            return
        if several is None:
            cast.replace(reward_range=self.reward_range)
        elif isinstance(self.reward_range, Mapping):
            cast.replace(reward_range={**several.ranges, **self.reward_range})
        else:
            raise InvalidValueError(f"reward_range is {self.reward_range!r}; give one for each outcome by name")


def _encodes(settings: Settings) -> Mapping[str, Any] | None:
    return None if settings.encoder is None else settings.encoder.to_dict()


def _with_prices(several: Outcomes, known: Prices) -> Prices:
    """Return the prices of arms with others; those that are left out stay as they are."""
    if not isinstance(known, Mapping) or not all(isinstance(each, Mapping) for each in known.values()):
        return known  # which is refused
    return {**several.known, **{name: {**several.known.get(name, {}), **prices} for name, prices in known.items()}}


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
    default_reward: Value | None
    aggregation: Aggregation
    early_window: float | None
    reward_range: Range | Ranges | None
    seed: int | None
    model: Bandit | None
    on_change: OnChange
    control: Control | None = None
    epoch: Epoch | None = None
    feature_range: GivenRanges | None = None
    outcomes: Mapping[str, float] | None = None
    known: Prices | None = None
    budget: Budget | None = None
    action_dim: int | None = None
    action_features: tuple[str, ...] | None = None
    action_encoder: Encoder | None = None

    def __post_init__(self) -> None:
        check_text("name", self.name)
        if not isinstance(self.on_change, str) or self.on_change not in ("apply", "refuse"):
            raise InvalidValueError(f"on_change is {self.on_change!r}; choose 'apply' or 'refuse'")
        if self.has_actions:
            self._check_actions()
        elif self.policy is not None and not is_action_policy(self.policy):
            check_given(self.policy)
        _ = self.terms  # checked
        if self.model is not None:
            self._check_model(self.model)
        elif self.arms is None and not self.has_actions and (given := self._given(("policy",))):
            raise InvalidValueError(
                f"{given} is given, but arms are not; give arms too, or the name alone to go on with a loop"
            )

    @property
    def has_actions(self) -> bool:
        """Whether actions with features come with each decision."""
        return any(getattr(self, name) is not None for name in OF_ACTIONS)

    def _check_actions(self) -> None:
        """Refuse what a loop whose actions come with each decision cannot have."""
        if self.arms is not None:
            given = next(name for name in OF_ACTIONS if getattr(self, name) is not None)
            raise InvalidValueError(
                f"arms and {given} are given; give arms, or the features of actions that come with each decision"
            )
        for name in ("normalize", "units", "feature_range", "outcomes", "known", "budget", "epoch", "control"):
            if (value := getattr(self, name)) is not None:
                raise InvalidValueError(f"{name} is {value!r}, {NOT_OF_ACTIONS}")
        if self.policy is not None:
            check_action_policy(self.policy)

    def _given(self, but: Iterable[str] = ()) -> str:
        plain = {"objective": "max", "aggregation": "first"}
        first = ("dim", "features", "encoder", "policy", "objective", "normalize", "units", "epoch", *OF_ACTIONS)
        names = (*first, *RULES, "reward_range", "feature_range", "outcomes", "known", "budget", "seed", "control")
        return next((name for name in names if name not in but and getattr(self, name) != plain.get(name)), "")

    def _check_model(self, model: object) -> None:
        if not isinstance(model, Bandit | ActionBandit):
            raise InvalidTypeError(f"model is {model!r}; give an armlet.Bandit or armlet.ActionBandit to start from")
        if self.arms is not None or (given := self._given((*RULES, "reward_range", "feature_range", "control"))):
            given = "arms" if self.arms is not None else given
            raise InvalidValueError(f"{given} is given, but the model has its own; leave {given} out, or the model")

    @property
    def terms(self) -> Terms:
        """The rules of rewards."""
        rules = {name: getattr(self, name) for name in RULES}
        model = self.model if isinstance(self.model, Bandit) else None
        has_outcomes = self.outcomes is not None or (model is not None and model._settings.outcomes is not None)
        return Terms(**(rules_of_parts(rules) if has_outcomes else rules))

    @property
    def own_policy(self) -> Policy | None:
        """The policy, if it is not one of Armlet's own."""
        policy = self.policy if self.model is None else self.model.policy
        return None if policy is None or is_own(policy) else policy

    def cast(self) -> Cast | None:
        """Make the cast, if arms or a model are given."""
        made = self._trained() if self.model is not None else self._fresh(self.policy)
        if made is None:
            return None
        self.terms.rules(made)  # refuses a default that the bandit cannot learn
        if self.control is None:
            return Cast(made)
        if not isinstance(self.control, Control):
            raise InvalidTypeError(f"control is {self.control!r}; give an armlet.stores.Control")
        is_fresh = self.control.policy is not None and self.model is None
        learned = self._fresh(self.control.policy, made.seed) if is_fresh else None
        return Cast(made).with_control(self.control, learned)

    def _fresh(self, given: Policy | None, seed: int | None = None) -> Bandit | None:
        if self.has_actions:
            return self._fresh_actions()
        if self.arms is None:
            return None
        policy = default_policy() if given is None else given
        several = read_outcomes(self.outcomes, self.known, self.reward_range)
        if several is not None and self.budget is not None and hasattr(self.budget, "check"):
            self.budget.check(several)  # what bounds it has to be given
        return Bandit(
            self.arms,
            self.dim,
            policy=policy,
            features=self.features,
            encoder=self.encoder,
            objective=self.objective,
            normalize=self.normalize,
            units=self.units,
            reward_range=self._range(policy) if several is None else _all_ranges(several),
            feature_range=self.feature_range,
            outcomes=self.outcomes,
            known=self.known,
            budget=self.budget,
            epoch=self.epoch,
            seed=self.seed if seed is None else seed,
        )

    def _fresh_actions(self) -> Bandit:
        policy: Any = SharedOptimism() if self.policy is None else self.policy
        made = ActionBandit(
            self.dim,
            self.action_dim,
            features=self.features,
            action_features=self.action_features,
            encoder=self.encoder,
            action_encoder=self.action_encoder,
            policy=policy,
            objective=self.objective,
            reward_range=self._range(policy),
            seed=self.seed,
        )
        return cast("Bandit", made)  # a loop handles both alike

    def _trained(self) -> Bandit | None:
        if self.model is None:
            return None
        twin = self.model.copy()
        if self.feature_range is not None:
            if isinstance(twin, ActionBandit):
                raise InvalidValueError(f"feature_range is {self.feature_range!r}, {NOT_OF_ACTIONS}")
            twin.replace(feature_range=self.feature_range)
        several = twin._settings.outcomes
        if several is not None:
            given = self.reward_range if self.reward_range is not None else {}
            if not isinstance(given, Mapping):
                raise InvalidValueError(f"reward_range is {given!r}; give one for each outcome by name")
            twin.replace(reward_range={**_all_ranges(several), **given})
            return twin
        if self.reward_range is not None or twin.settings.reward_range is None:
            twin.replace(reward_range=self._range(twin.policy))
        return twin

    def _range(self, policy: Policy) -> Range:
        if isinstance(self.reward_range, Mapping):
            raise InvalidValueError(
                f"reward_range is {self.reward_range!r}, but there are no outcomes; give two numbers"
            )
        if self.reward_range is not None:
            return ends("reward_range", self.reward_range)
        low, high = (0.0, 1.0) if policy.rewards == "binary" else getattr(policy, "reward_range", None) or USUAL
        objective = self.objective if self.model is None else self.model.settings.objective
        return (-high, -low) if isinstance(objective, str) and objective == "min" else (low, high)

    def differences(self, made: Bandit, terms: Terms, now: Cast) -> LoopChange | None:
        """Return what differs from a loop as it is; refuse what can never change, or all of it if that is asked."""
        given = self.terms
        rules = {name: getattr(given, name) for name in RULES if getattr(given, name) != getattr(terms, name)}
        kinds = ["actions with features" if isinstance(each, ActionBandit) else "arms" for each in (made, now.live)]
        if kinds[0] != kinds[1]:
            raise LoopStateError(
                f"loop {self.name!r} was made with {kinds[1]}, not with {kinds[0]}; give the name alone, or make a "
                "loop of another name"
            )
        ours, theirs = made.settings, now.live.settings
        if self.model is not None:  # a loop that is there goes on from what it has learned
            ranges = None if self.reward_range is None else _other_ranges(ours, theirs)
            others = self._other_feature_ranges(ours, theirs)
            change = LoopChange(rules=rules, reward_range=ranges, feature_range=others, control=self._control(now))
            return self._allowed(change, terms, now)
        if self.has_actions:
            return self._action_differences(rules, made, terms, now)
        for name in ("objective", "normalize", "epoch"):
            self._check(name, getattr(ours, name), getattr(theirs, name))
        self._check_outcomes(ours, theirs)
        if self.seed is not None:
            self._check("seed", made.seed, now.live.seed)
        if ours.encoder is None and theirs.encoder is None and ours.features is None:
            self._check("dim", ours.dim, theirs.dim)
        encodes = None if ours.encoder is None else ours.encoder.to_dict()
        encoded = None if theirs.encoder is None else theirs.encoder.to_dict()
        change = LoopChange(
            rules=rules,
            policy=None if ours.policy == theirs.policy else ours.policy,
            features=None if ours.encoder is not None or ours.features == theirs.features else ours.features,
            encoder=None if encodes == encoded else ours.encoder,
            reward_range=_other_ranges(ours, theirs),
            outcomes=_other_weights(ours, theirs),
            known=_other_prices(ours, theirs),
            budget=KEEP if ours.budget == theirs.budget else ours.budget,
            feature_range=self._other_feature_ranges(ours, theirs),
            control=self._control(now),
        )
        return self._allowed(change, terms, now)

    def _action_differences(self, rules: Mapping[str, Any], made: Bandit, terms: Terms, now: Cast) -> LoopChange | None:
        """Return what differs from a loop of actions; features stay what they are, since no row says others."""
        ours: Any = made.settings
        theirs: Any = now.live.settings
        for name in ("objective", "dim", "features", "action_dim", "action_features"):
            self._check(name, getattr(ours, name), getattr(theirs, name))
        for name in ("encoder", "action_encoder"):
            told = [
                None if (each := getattr(settings, name)) is None else each.to_dict() for settings in (ours, theirs)
            ]
            self._check(name, *told)
        if self.seed is not None:
            self._check("seed", made.seed, now.live.seed)
        policy = None if ours.policy == theirs.policy else ours.policy
        ranges = None if ours.reward_range == theirs.reward_range else ours.reward_range
        return self._allowed(LoopChange(rules=rules, policy=policy, reward_range=ranges), terms, now)

    def _other_feature_ranges(self, ours: Settings, theirs: Settings) -> GivenRanges | Keep | None:
        """Return the ranges of features if they are to be other ones; where none are given, they stay as they are."""
        return KEEP if self.feature_range is None or ours.feature_range == theirs.feature_range else ours.feature_range

    def _control(self, now: Cast) -> Control | Keep:
        """Return the control if it is to be another one; one that is not given stays as it is."""
        return KEEP if self.control in (None, now.control) else self.control

    def _allowed(self, change: LoopChange, terms: Terms, now: Cast) -> LoopChange | None:
        if change.is_empty:
            return None
        if self.on_change == "refuse" and not (change.names == ["known"] and self._only_adds(change, now)):
            self._refuse(change, terms, now)
        return change

    def _only_adds(self, change: LoopChange, now: Cast) -> bool:
        """Whether known prices are those of arms that are new: these come with the list of arms."""
        several = now.live.settings.outcomes
        if several is None or change.known is None:
            return False
        return all(arm not in several.known[name] for name, prices in change.known.items() for arm in prices)

    def _check_outcomes(self, ours: Settings, theirs: Settings) -> None:
        """Refuse other names of outcomes, other ones that are known, and to go on without a budget."""
        told = [None if each.outcomes is None else sorted(each.outcomes.weights) for each in (ours, theirs)]
        self._check("outcomes", *told)
        known = [None if each.outcomes is None else sorted(each.outcomes.known) for each in (ours, theirs)]
        self._check("known", *known)
        if ours.budget is None:
            self._check("budget", None, theirs.budget)

    def _check(self, name: str, ours: object, theirs: object) -> None:
        if ours != theirs:
            raise LoopStateError(
                f"{name} is {ours!r}, but loop {self.name!r} was made with {theirs!r}; "
                "give that, or the name alone, or make a loop of another name"
            )

    def _refuse(self, change: LoopChange, terms: Terms, now: Cast) -> None:
        given = {**change.rules, **{name: getattr(change, name) for name in CHANGEABLE if name not in RULES}}
        name = next(name for name, value in given.items() if name in change.rules or value not in (None, KEEP))
        known = self._present(name, terms, now)
        raise LoopStateError(
            f"{name} is {given[name]!r}, but loop {self.name!r} has {known!r}; give that, or the name alone; "
            f"to change it: loop.change({name}=...), or store.loop(..., on_change='apply')"
        )

    @staticmethod
    def _present(name: str, terms: Terms, now: Cast) -> object:
        """Return what a loop has."""
        several = now.live.settings.outcomes
        if name == "control":
            return now.control
        if several is not None and name in ("outcomes", "known", "reward_range"):
            return dict({"outcomes": several.weights, "known": several.known, "reward_range": several.ranges}[name])
        return getattr(terms if name in RULES else now.live.settings, name)


def is_action_policy(policy: object) -> bool:
    """Whether a policy is one of actions with features."""
    return type(policy) in ACTION_POLICIES.values()


def is_own(policy: Policy) -> bool:
    """Whether a policy is found by its name, so that a model needs no more."""
    return is_action_policy(policy) or is_registered(policy)


def rules_of_parts(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules of a loop with outcomes, where a window may close without a default: rows expire then.

    Examples
    --------
    >>> rules_of_parts({"window": 60.0, "default_reward": None}), rules_of_parts({"window": None})
    ({'window': 60.0, 'default_reward': {}}, {'window': None, 'default_reward': None})
    """
    default = rules.get("default_reward")
    if rules.get("window") is None:
        return {**rules, "default_reward": None if isinstance(default, Mapping) and not default else default}
    return {**rules, "default_reward": {} if default is None else default}


def _all_ranges(several: Outcomes) -> Ranges:
    """Return a range for every outcome that is learned: one wild value ruins the sums of an arm."""
    return {name: several.ranges.get(name, USUAL) for name in several.learned}


def _other_ranges(ours: Settings, theirs: Settings) -> Range | Ranges | None:
    if ours.outcomes is not None and theirs.outcomes is not None:
        return None if ours.outcomes.ranges == theirs.outcomes.ranges else ours.outcomes.ranges
    return None if ours.reward_range == theirs.reward_range else ours.reward_range


def _other_weights(ours: Settings, theirs: Settings) -> Mapping[str, float] | None:
    if ours.outcomes is None or theirs.outcomes is None or ours.outcomes.weights == theirs.outcomes.weights:
        return None
    return ours.outcomes.weights


def _other_prices(ours: Settings, theirs: Settings) -> Prices | None:
    """Return the prices that differ, or that a loop does not have; those of arms that are not given stay."""
    if ours.outcomes is None or theirs.outcomes is None:
        return None
    found = {}
    for name, prices in ours.outcomes.known.items():
        known = theirs.outcomes.known[name]
        other = {arm: price for arm, price in prices.items() if known.get(arm) != price}
        if other:
            found[name] = other
    return found or None
