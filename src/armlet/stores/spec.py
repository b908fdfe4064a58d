"""What a loop is made with, and what may be another one later: the arguments of `Store.loop` and `Loop.change`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, cast, get_args

from armlet.actions.bandit import ActionBandit
from armlet.bandit import Bandit
from armlet.cast.cast import SHADOW, Cast, role_of
from armlet.cast.control import Control, check_own
from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.budget import Budget
from armlet.inputs.columns import check_labels, check_text, listed
from armlet.inputs.encoder import Encoder
from armlet.inputs.feature_change import FeatureChange
from armlet.inputs.options import Option, declared
from armlet.inputs.outcomes import Outcomes, read_outcomes
from armlet.inputs.ranges import GivenRanges, check_feature_range
from armlet.inputs.settings import (
    Epoch,
    Normalize,
    Objective,
    Range,
    Settings,
    Units,
    check_epoch,
    ends,
    one_of,
    optional,
    positive,
    settle,
)
from armlet.policies import check_given, default_policy, is_registered, over
from armlet.policies.shared import PairPolicy, SharedOptimism
from armlet.recording import feature_fields, outcome_fields, policy_fields
from armlet.stores.rewards import Aggregation, Value
from armlet.stores.terms import LONGEST_WINDOW, USUAL, Terms, check_default
from armlet.types import KEEP, Arm, Keep, Policy

T = TypeVar("T")
OnChange: TypeAlias = Literal["apply", "refuse"]
How: TypeAlias = Literal["carry", "refit"]
"""How what was learned comes to another policy: the state is carried over, or the loop's own log is learned again."""

LIVE: Final = "policy"  # the role of the policy that decides
NOT_OF_ACTIONS: Final = "which a loop of actions with features cannot have; leave it out"
SECONDS: Final = f"give seconds, more than 0 and at most {LONGEST_WINDOW:g}"

Ranges: TypeAlias = Mapping[str, Range]
Prices: TypeAlias = Mapping[str, Mapping[Arm, float]]


# ---- a change


# ---- checks


def _any(_: str, value: object) -> object:
    """Take a value that is checked where the bandit is made, or changed."""
    return value


def _arms(_: str, value: Any) -> list[Arm]:
    return check_labels(value)


def _names(name: str, value: Any) -> tuple[object, ...]:
    return tuple(listed(name, value))


def _shadows(name: str, value: object) -> Mapping[str, Policy]:
    """Return shadows by name."""
    if not isinstance(value, Mapping):
        return {SHADOW: check_own(name, value)}
    if not value:
        raise InvalidValueError(f"{name} is {{}}; give a policy, or policies by name")
    return {check_text(f"a name in {name}", each): check_own(f"{name}[{each!r}]", one) for each, one in value.items()}


def _epoch(_: str, value: object) -> Epoch | None:
    return check_epoch(value)


def _budget(name: str, value: object) -> Budget:
    if isinstance(value, Budget):
        return value
    raise InvalidTypeError(f"{name} is {value!r}; give an armlet.Budget, or None to remove the one there is")


def _control(name: str, value: object) -> Control:
    if isinstance(value, Control):
        return value
    raise InvalidTypeError(f"{name} is {value!r}; give an armlet.stores.Control, or None to end the one there is")


# ---- the declaration


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """Options of a loop that may change; None, or KEEP where None means none, is not said."""

    arms: Annotated[
        Iterable[Arm] | None,
        Option(
            "The arms to be played from now on, in any order. Of a loop that is there, those that are new to it are "
            "added, those that are missing are retired, and retired ones that are back are restored; what is known of "
            "an arm is kept.",
            _arms,
            over="arms",
        ),
    ] = None
    policy: Annotated[
        Policy | PairPolicy | None,
        Option(
            "The policy, as for `armlet.Bandit` or `armlet.ActionBandit`. A loop that is there takes the same policy "
            'with other settings; any other one with `how="refit"` of `Loop.change`.',
            _any,
            forms={"policy": str, "policy_settings": Mapping[str, object]},
        ),
    ] = None
    features: Annotated[
        Iterable[str] | None,
        Option(
            "Names of the numbers in a context, as for `armlet.Bandit`. A feature that is new to a loop had its `fill` "
            "in all rows before, and so has no weight yet; one that is left out is deleted from what was learned, "
            "exactly. Those of a loop whose actions come with each decision stay what they are.",
            _names,
        ),
    ] = None
    encoder: Annotated[
        Encoder | None,
        Option(
            "What makes numbers of contexts instead, as for `armlet.Bandit`.",
            _any,
            forms={"categories": Mapping[str, Iterable[str]], "hashed": int},
        ),
    ] = None
    window: Annotated[
        float | Keep | None,
        Option(
            "Seconds after which a decision without a reward has earned the default; None for none. All rewards are "
            "learned when the window closes, and a late one then replaces what was learned. Without a window they are "
            "learned as they arrive. Windows that are open keep their end.",
            optional(positive(LONGEST_WINDOW, fix=SECONDS)),
        ),
    ] = KEEP
    default_reward: Annotated[
        Value | Keep | None,
        Option(
            "The reward of a decision whose window closes without one; None for none. With outcomes, by name: one that "
            "has no default is waited for in vain when the window closes, and the row is not learned unless it comes "
            "later.",
            optional(check_default),
        ),
    ] = KEEP
    aggregation: Annotated[
        Aggregation | None,
        Option(
            'Which of several rewards of one decision counts: "first" if left out, "last", or "sum". A sum counts all '
            "that arrives, also what is reported twice.",
            one_of(*get_args(Aggregation)),
        ),
    ] = None
    early_window: Annotated[
        float | Keep | None,
        Option(
            "Seconds that a reward may arrive before its decision, as from queues that reorder; None for none. It is "
            '"early" then, and counts as soon as there is one. Without it, a reward without a decision is "unknown".',
            optional(positive(LONGEST_WINDOW, fix=SECONDS)),
        ),
    ] = KEEP
    reward_range: Annotated[
        Range | Ranges | None,
        Option(
            'The lowest and the highest reward; others are answered "out_of_range". From -1 to 1 if left out, or the '
            "range of a policy that has one. With outcomes, by name, a range for each that is learned; those left out "
            "of a change stay. A reward that waits in a window, and lies outside of a new range, is not learned.",
            _any,
        ),
    ] = None
    feature_range: Annotated[
        GivenRanges | Keep | None,
        Option(
            "Ranges of features by name, outside of which a context is refused, or clipped, as for `armlet.Bandit`; "
            "None for none.",
            _any,
            over="arms",
        ),
    ] = KEEP
    outcomes: Annotated[
        Mapping[str, float] | None,
        Option(
            "Several outcomes of every decision, and what one of each is worth, as for `armlet.Bandit`. A reward is "
            "then a mapping. A loop keeps its outcomes; weights that are left out of a change stay.",
            _any,
            over="arms",
        ),
    ] = None
    known: Annotated[
        Prices | None,
        Option(
            "Those outcomes that are known, by arm, as for `armlet.Bandit`. They count from the next decision on; "
            "those left out of a change stay.",
            _any,
            over="arms",
        ),
    ] = None
    budget: Annotated[
        Budget | Keep | None,
        Option(
            "An `armlet.Budget` of one of the outcomes; None for none. What is spent counts at once, also within a "
            "window; in another budget of the same outcome what was spent and decided so far counts too.",
            optional(_budget),
            over="arms",
        ),
    ] = KEEP
    control: Annotated[
        Control | Keep | None,
        Option(
            "An arm, or another policy such as the one before, that plays a share of the steps by a coin of its own; "
            "None for none. Propensities are over that coin too. Steps that it plays count as not explored, and so "
            "are not learned by a policy that learns from exploration alone.",
            optional(_control),
            over="arms",
            forms={"control": Mapping[str, object]},
        ),
    ] = KEEP

    def __post_init__(self) -> None:
        options = declared(type(self))
        settle(self, **{name: options[name].option.check for name in self.said})
        self._check_together()

    def _check_together(self) -> None:
        """Refuse options that cannot be said together."""

    @property
    def said(self) -> list[str]:
        """The options that are said, by name; the others stay as they are, or have their defaults in a new loop."""
        return [each.name for each in fields(self) if getattr(self, each.name) is not each.default]

    @property
    def live(self) -> Policy | None:
        """The policy; from here on those of arms and of actions are handled alike."""
        return cast("Policy | None", self.policy)

    @property
    def rules(self) -> dict[str, Any]:
        """The rules of rewards that are said."""
        return {name: getattr(self, name) for name in RULES if name in self.said}


RULES: Final = tuple(each.name for each in fields(LoopSettings) if each.name in {of.name for of in fields(Terms)})
"""Options that are rules of rewards, which the terms of a loop keep."""


# ---- a change


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopChange(LoopSettings):
    """What is to be another one of a loop: the options of `Loop.change`."""

    fill: Annotated[
        Mapping[str, float] | None,
        Option("The values that new features had in all rows before; 0 if left out.", _any),
    ] = None
    shadow: Annotated[
        Policy | Mapping[str, Policy] | Keep | None,
        Option(
            "Another policy that runs along, or several by name, all that there are to be; None ends them. A shadow "
            "learns all rows and its choices are logged, but never played. `promote` lets one play.",
            optional(_shadows),
            forms={"shadow": Mapping[str, object], "shadows": Mapping[str, object]},
        ),
    ] = KEEP
    how: Annotated[
        How,
        Option(
            '"carry": a new policy goes on from the state that there is. "refit": it learns the loop\'s log again, as '
            "far as that is kept, row by row: for another kind of policy. That happens in this thread, while others "
            "decide. Each policy that is given learns it by itself.",
            one_of("carry", "refit"),
            default="carry",
        ),
    ] = "carry"

    def _check_together(self) -> None:
        if self.policy is not None and over(self.policy) == "arms":
            check_given(self.policy)
        if self.fill is not None and self.features is None and self.encoder is None:
            raise InvalidTypeError(f"fill is {self.fill!r}, but no feature is new; give features or encoder too")

    @property
    def names(self) -> list[str]:
        """What is to be another one."""
        others = [name for name in self.said if name not in (*RULES, "fill", "how")]
        return [*self.rules, *others]

    @property
    def has_cast(self) -> bool:
        """Whether the control or the shadow is to be another one."""
        return self.control is not KEEP or self.shadow is not KEEP

    @property
    def learners(self) -> dict[str, Policy]:
        """The policies that are to be in the loop from now on, by role: live, the control's, the shadows'."""
        control = None if isinstance(self.control, Keep) or self.control is None else self.control.policy
        policies = {LIVE: self.live, "control": control}
        policies |= {role_of(name): policy for name, policy in self.shadows.items()}
        return {role: policy for role, policy in policies.items() if policy is not None}

    @property
    def shadows(self) -> Mapping[str, Policy]:
        """The shadows that there are to be, by name; a single one that has none is called SHADOW."""
        return self.shadow if isinstance(self.shadow, Mapping) else {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be changed."""
        return not self.names

    def recast(self, cast: Cast, learned: Mapping[str, Bandit]) -> Cast:
        """Return a cast with the control and the shadows that are wanted; `learned` are bandits by role."""
        if not isinstance(self.control, Keep):
            cast = cast.with_control(self.control, learned.get("control"))
        if not isinstance(self.shadow, Keep):
            shadows = self.shadows
            known = {name: learned[role_of(name)] for name in shadows if role_of(name) in learned}
            cast = cast.with_shadows(shadows, known)
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
            cast.replace(policy=self.live)
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
class LoopSpec(LoopSettings):
    """A loop as it is described: the options of `Store.loop`. What is not said, a loop that is there keeps."""

    name: Annotated[str, Option("What to call it.", check_text)] = field(kw_only=False)
    dim: Annotated[int | None, Option("How many numbers a context has, if they have no names.", _any)] = None
    objective: Annotated[
        Objective | None,
        Option('"max" if left out, or "min": whether rewards are gains or costs.', one_of(*get_args(Objective))),
    ] = None
    normalize: Annotated[Normalize | None, Option("As for `armlet.Bandit`.", _any, over="arms")] = None
    units: Annotated[Units | None, Option("As for `armlet.Bandit`.", _any, over="arms")] = None
    epoch: Annotated[
        Epoch | None,
        Option(
            "How long a unit keeps its arm: a number of decisions of the loop, or a `datetime.timedelta` by the clock "
            "of the wall.",
            _epoch,
            over="arms",
        ),
    ] = None
    action_dim: Annotated[
        int | None, Option("How many numbers an action has, if they have no names.", _any, over="actions")
    ] = None
    action_features: Annotated[
        Iterable[str] | None,
        Option(
            "Names of the numbers of an action, for a loop without arms, as for `armlet.ActionBandit`. Every decision "
            "is made among the actions of a table, by their features.",
            _names,
            over="actions",
        ),
    ] = None
    action_encoder: Annotated[
        Encoder | None,
        Option(
            "What makes numbers of actions instead.",
            _any,
            over="actions",
            forms={"action_categories": Mapping[str, Iterable[str]], "action_hashed": int},
        ),
    ] = None
    seed: Annotated[int | None, Option("The policy's coins; drawn at random if left out.", _any)] = None
    model: Annotated[
        Bandit | ActionBandit | None,
        Option(
            "A trained bandit to start from, with its arms, features and policy. A loop that is there goes on as it "
            "is.",
            _any,
            forms={},
        ),
    ] = None
    on_change: Annotated[
        OnChange,
        Option(
            'What to do where the options that are said differ from what the loop has: "refuse" with an error that '
            'names the call that applies, or "apply" it, as `Loop.change` does.',
            one_of(*get_args(OnChange)),
            default="refuse",
        ),
    ] = "refuse"

    def _check_together(self) -> None:
        if self.has_actions:
            self._check_actions()
        elif self.policy is not None and over(self.policy) == "arms":
            check_given(self.policy)
        _ = self.terms  # checked
        if self.model is not None:
            self._check_model(self.model)
        elif self.arms is None and not self.has_actions and (given := self._given(("policy",))):
            raise InvalidValueError(
                f"{given} is given, but arms are not; give arms too, or the name alone to go on with a loop"
            )

    @property
    def _start(self) -> Bandit | None:
        """The model, handled alike if it is of actions."""
        return cast("Bandit | None", self.model)

    @property
    def has_actions(self) -> bool:
        """Whether actions with features come with each decision."""
        return any(declared(LoopSpec)[name].option.over == "actions" for name in self.said)

    def _check_actions(self) -> None:
        """Refuse what a loop whose actions come with each decision cannot have."""
        if self.arms is not None:
            given = next(name for name in self.said if declared(LoopSpec)[name].option.over == "actions")
            raise InvalidValueError(
                f"arms and {given} are given; give arms, or the features of actions that come with each decision"
            )
        for name in self.said:
            if declared(LoopSpec)[name].option.over == "arms" and (value := getattr(self, name)) is not None:
                raise InvalidValueError(f"{name} is {value!r}, {NOT_OF_ACTIONS}")
        if self.policy is not None:
            check_given(self.policy, "pairs")

    def _given(self, but: Iterable[str]) -> str:
        return next((name for name in self.said if name not in ("name", "model", "on_change", *but)), "")

    def _check_model(self, model: object) -> None:
        if not isinstance(model, Bandit | ActionBandit):
            raise InvalidTypeError(f"model is {model!r}; give an armlet.Bandit or armlet.ActionBandit to start from")
        if given := self._given((*RULES, "reward_range", "feature_range", "control")):
            raise InvalidValueError(f"{given} is given, but the model has its own; leave {given} out, or the model")

    @property
    def terms(self) -> Terms:
        """The rules of rewards."""
        rules = self.rules
        model = self.model if isinstance(self.model, Bandit) else None
        has_outcomes = self.outcomes is not None or (model is not None and model._settings.outcomes is not None)
        return Terms(**(rules_of_parts(rules) if has_outcomes else rules))

    @property
    def own_policy(self) -> Policy | None:
        """The policy, if it is not one of Armlet's own."""
        policy = self.live if self._start is None else self._start.policy
        return None if policy is None or is_registered(policy) else policy

    def cast(self) -> Cast | None:
        """Make the cast, if arms or a model are given."""
        made = self._trained() if self.model is not None else self._fresh(self.live)
        if made is None:
            return None
        self.terms.rules(made)  # refuses a default that the bandit cannot learn
        if not isinstance(self.control, Control):
            return Cast(made)
        is_fresh = self.control.policy is not None and self.model is None
        learned = self._fresh(self.control.policy, made.seed) if is_fresh else None
        return Cast(made).with_control(self.control, learned)

    def _fresh(self, given: Policy | None, seed: int | None = None) -> Bandit | None:
        if self.has_actions:
            return self._fresh_actions()
        if self.arms is None:
            return None
        policy = default_policy() if given is None else given
        several, budget = read_outcomes(self.outcomes, self.known, self.reward_range), _said(self.budget)
        if several is not None and budget is not None:
            budget.check(several)  # what bounds it has to be given
        return Bandit(
            self.arms,
            self.dim,
            policy=policy,
            features=self.features,
            encoder=self.encoder,
            objective=self.objective or "max",
            normalize=self.normalize,
            units=self.units,
            reward_range=self._range(policy) if several is None else _all_ranges(several),
            feature_range=_said(self.feature_range),
            outcomes=self.outcomes,
            known=self.known,
            budget=budget,
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
            objective=self.objective or "max",
            reward_range=self._range(policy),
            seed=self.seed,
        )
        return cast("Bandit", made)  # a loop handles both alike

    def _trained(self) -> Bandit | None:
        if self._start is None:
            return None
        twin = self._start.copy()
        if not isinstance(self.feature_range, Keep):
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


def _said(value: T | Keep | None) -> T | None:
    """Return what is said; None if nothing is."""
    return None if isinstance(value, Keep) else value
