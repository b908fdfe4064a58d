"""Settings of policies and of a bandit: checked once, when the object is made, and stored as plain JSON values.

A `Check` takes a setting's name and value and returns the value, a numpy number as Python's own; or raises a
ValueError that names the setting, its value and the fix.
"""

from __future__ import annotations

import math
import os
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, get_args

import numpy as np

from armlet.errors import InvalidTypeError, InvalidValueError, MergeError
from armlet.inputs.columns import LARGEST
from armlet.inputs.contexts import ContextReader, feature_names
from armlet.inputs.ranges import FeatureRanges, check_feature_range
from armlet.types import Float64, Mode, Policy, State

if TYPE_CHECKING:
    from armlet.inputs.budget import Budget
    from armlet.inputs.encoder import Encoder, EncodingReader
    from armlet.inputs.outcomes import Outcomes

    Reader: TypeAlias = ContextReader | EncodingReader

Check: TypeAlias = Callable[[str, object], object]
Epoch: TypeAlias = int | timedelta
"""How long an epoch of units lasts: a number of decisions, or a duration."""
PolicyT = TypeVar("PolicyT")

MAX = sys.float_info.max
LONGEST_EPOCH = 1e9  # seconds
TINY, HUGE = 1e-40, 1e40  # between them neither vanishes nor overflows what contexts and rewards up to 1e40 lead to
NOISE_SCALE = 1.0  # R of a policy without a setting: holds for standard normal noise, and any noise within [-1, 1]
MOST, SEEDS = 2**63 - 1, 2**128 - 1  # whole numbers: what a clock can count, and what coins take

NEWER = ("discount", "half_life")
"""Settings of policies that a file says nothing of unless they are set, so that it is what it was before they were."""


def settle(policy: object, /, **checks: Check) -> None:
    """Check settings of a frozen policy, and store what the checks return.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> policy = SimpleNamespace(epsilon=np.float64(0.1))
    >>> settle(policy, epsilon=positive(1.0))
    >>> policy
    namespace(epsilon=0.1)
    """
    for name, check in checks.items():
        object.__setattr__(policy, name, check(name, getattr(policy, name)))


def number(low: float, high: float = HUGE, *, fix: str | None = None) -> Check:
    """Require a finite number from `low` to `high`.

    Examples
    --------
    >>> number(0, 1)("epsilon", np.float64(0.5))
    0.5
    >>> number(0)("h", -1)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: h is -1; give a number from 0 to 1e+40
    """
    return _numeric(lambda value: low <= value <= high, fix or f"give a number from {low:g} to {high:g}")


def positive(most: float = HUGE, *, fix: str | None = None) -> Check:
    """Require a number above 0, up to `most`."""
    room = f"from {TINY:g} to {HUGE:g}" if most == HUGE else f"of at most {most:g}"
    return _numeric(lambda value: TINY <= value <= most, fix or f"give a positive number {room}")


def chance(*, fix: str = "give a chance of failure between 0 and 1, such as 0.05") -> Check:
    """Require a number strictly between 0 and 1."""
    return _numeric(lambda value: TINY <= value < 1, fix)


def whole(least: int = 1, most: int = MOST) -> Check:
    """Require a whole number from `least` to `most`.

    Examples
    --------
    >>> whole()("horizon", np.int64(7))
    7
    >>> whole()("horizon", 2**63)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: horizon is 9223372036854775808; give a whole number of at most ...
    """

    def check(name: str, value: object) -> int:
        number = unboxed(value)
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise InvalidValueError(f"{name} is {value!r}; give a whole number of at least {least}")
        if number > most:
            raise InvalidValueError(f"{name} is {reprlib.repr(number)}; give a whole number of at most {most}")
        return number

    return check


def one_of(*words: str) -> Check:
    """Require one of some words.

    Examples
    --------
    >>> one_of("ignored", "table")("contexts", "tables")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: contexts is 'tables'; choose 'ignored' or 'table'
    """

    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in words:
            listed = ", ".join(map(repr, words[:-1]))
            raise InvalidValueError(f"{name} is {value!r}; choose {listed} or {words[-1]!r}")
        return value

    return check


def optional(check: Check) -> Check:
    """Require what another check asks for, or None.

    Examples
    --------
    >>> optional(whole())("n_stages", 0)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: n_stages is 0; give a whole number of at least 1, or None
    """

    def check_unless_none(name: str, value: object) -> object:
        if value is None:
            return None
        try:
            return check(name, value)
        except ValueError as error:
            raise InvalidValueError(f"{error}, or None") from None

    return check_unless_none


def unboxed(value: object) -> object:
    """Turn a number of numpy's, or of a class that is derived from Python's, into Python's own; leave anything else.

    Examples
    --------
    >>> unboxed(np.float32(0.5)), unboxed("paper")
    (0.5, 'paper')
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, float) else value


def _numeric(fits: Callable[[float], bool], advice: str) -> Check:
    def check(name: str, value: object) -> float:
        number = unboxed(value)
        is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
        # an integer too large for a float is refused as infinity would be
        if not is_number or not abs(cast(float, number)) <= MAX or not fits(cast(float, number)):
            raise InvalidValueError(f"{name} is {reprlib.repr(value)}; {advice}")
        return cast(float, number)

    return check


# ---- units and ridge

Units: TypeAlias = Literal["free", "as given"]
"""In which units a policy sees features and rewards; see `armlet.reference.units`."""

units_word = one_of("free", "as given")


def units_of(policy: object) -> Units:
    """Return the units in which a policy sees features and rewards: as given, unless it has the setting."""
    return cast(Units, units_word("units", getattr(policy, "units", "as given")))


def in_units(policy: PolicyT, units: object) -> PolicyT:
    """Return the same policy in other units; None leaves it as it is.

    Examples
    --------
    >>> import armlet
    >>> in_units(armlet.LinUCB(), "as given").units
    'as given'
    >>> in_units(armlet.Uniform(), "free")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: units is 'free', but Uniform takes units as given; leave units out, or ...
    """
    if units is None or units_word("units", units) == units_of(policy):
        return policy
    if not (is_dataclass(policy) and "units" in {one.name for one in fields(policy)}):
        name, own = type(policy).__name__, units_of(policy)
        raise InvalidValueError(
            f"units is {units!r}, but {name} takes units {own}; leave units out, or choose another policy"
        )
    return replace(policy, units=units)  # type: ignore[type-var]


def origin_like(name: str, value: object) -> tuple[float, ...] | None:
    """Require the origin of rewards and features, or None; files hold it as a list.

    Examples
    --------
    >>> origin_like("origin", [100, 0.0, 1e6])
    (100.0, 0.0, 1000000.0)
    """
    if value is None:
        return None
    advice = "give the origin of rewards, then those of the features, as finite numbers of at most 1e40 in size"
    try:
        origin = tuple(float(one) for one in cast(Iterable[Any], value))
    except (TypeError, ValueError):
        raise InvalidValueError(f"{name} is {value!r}; {advice}") from None
    if isinstance(value, (str, bytes)) or not origin or not all(abs(one) <= 1e40 for one in origin):
        raise InvalidValueError(f"{name} is {value!r}; {advice}")
    return origin


def check_origin(origin: Sequence[float] | None, dim: int) -> Float64 | None:
    """Return the origin of rewards and of `dim` features as an array.

    Examples
    --------
    >>> check_origin([1e6], 2)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: origin has 1 values; give 3: that of rewards, then those of the 2 features
    """
    if origin is None:
        return None
    values = np.array(origin, dtype=np.float64)
    if values.shape != (dim + 1,):
        raise InvalidValueError(
            f"origin has {values.size} values; give {dim + 1}: that of rewards, then those of the {dim} features"
        )
    return values


RidgeName: TypeAlias = Literal["paper", "1/n"]
RidgeLike: TypeAlias = RidgeName | float


@dataclass(frozen=True, slots=True)
class Ridge:
    """What keeps (lambda_n I + A / n) theta = b / n solvable (Section 4): (shift I + A) theta = b, shift = n lambda_n.

    - "paper": lambda_n = 1 / sqrt(n), the printed one. It must vanish as n grows, or estimates stay biased,
      but its pull grows with n in directions that are rarely seen (Section 7).
    - "1/n": lambda_n = 1 / n. The pull stays that of one extra row.
    - a positive number: (value I + A) theta = b for any n, the ridge of LinUCB and similar policies.

    Examples
    --------
    >>> [Ridge.parse(ridge).shift(25.0) for ridge in ("paper", "1/n", 0.5)]
    [5.0, 1.0, 0.5]
    """

    kind: Literal["paper", "1/n", "constant"]
    value: float = 1.0

    @classmethod
    def parse(cls, ridge: RidgeLike) -> Ridge:
        """Read "paper", "1/n" or a positive number."""
        if ridge == "paper" or ridge == "1/n":
            return cls(ridge)
        # |theta| <= max |r| / (2 sqrt(ridge)), so in this range no score overflows
        if isinstance(ridge, (int, float)) and not isinstance(ridge, bool) and 1e-40 <= ridge <= 1e40:
            return cls("constant", float(ridge))
        raise InvalidValueError(f"ridge is {ridge!r}; choose 'paper', '1/n' or a positive number from 1e-40 to 1e40")

    def shift(self, n: float) -> float:
        """Return n lambda_n, which is added to the diagonal of A; mirrors kernel/state/ridge.hpp."""
        if self.kind == "paper":
            return math.sqrt(n)
        return 1.0 if self.kind == "1/n" else self.value


def ridge_like(name: str, value: object) -> object:  # noqa: ARG001
    """Require what `Ridge.parse` can read; its error calls the setting `ridge`, as all policies do."""
    ridge = unboxed(value)
    Ridge.parse(cast(RidgeLike, ridge))
    return ridge


# ---- the range of rewards

Range: TypeAlias = tuple[float, float]


def check_range(reward_range: Range) -> None:
    """Refuse a pair that is no range.

    Examples
    --------
    >>> check_range((1.0, 0.0))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: reward_range is (1.0, 0.0); give (lowest, highest), two numbers that differ
    """
    if not (len(reward_range) == 2 and -math.inf < reward_range[0] < reward_range[1] < math.inf):
        raise InvalidValueError(f"reward_range is {reward_range!r}; give (lowest, highest), two numbers that differ")
    if not (reward_range[0] >= -LARGEST and reward_range[1] <= LARGEST):
        raise InvalidValueError(f"reward_range is {reward_range!r}; give numbers of at most {LARGEST:g} in size")


def ends(name: str, value: object) -> Range:
    """Require the lowest and the highest reward; files hold the pair as a list.

    Examples
    --------
    >>> ends("reward_range", [-6, np.int64(6)])
    (-6.0, 6.0)
    """
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        pair = tuple(float(end) for end in cast(Iterable[float], value))
    except (TypeError, ValueError, OverflowError):
        raise InvalidValueError(f"{name} is {value!r}; give (lowest, highest), two numbers that differ") from None
    check_range(cast(Range, pair))  # it counts them
    return cast(Range, pair)


# ---- a bandit

Objective: TypeAlias = Literal["max", "min"]
Normalize: TypeAlias = Literal["l2"]
Design: TypeAlias = Literal["adaptive", "fixed", "randomized"]
"""How the arms of logged rows were chosen: by a policy that learned from rewards, by a fixed rule, or at random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a bandit, apart from its arms; those that give sums their meaning must agree before a merge."""

    policy: Policy
    dim: int
    features: tuple[str, ...] | None
    objective: Objective
    normalize: Normalize | None
    reward_range: Range | None = None  # of the worth, if there are outcomes
    encoder: Encoder | None = None
    epoch: Epoch | None = None
    outcomes: Outcomes | None = None  # where there are several
    budget: Budget | None = None  # of one of them
    feature_range: FeatureRanges | None = None  # of some features, or all

    def __post_init__(self) -> None:
        feature_names(self.features, self.dim)
        if (ranges := self.feature_range) is not None and ranges.features != self.features:
            raise InvalidValueError(f"feature_range is of the features {ranges.features}, not of {self.features}")
        if self.encoder is not None and self.encoder.features != self.features:
            raise InvalidValueError(f"features is {self.features} but the encoder gives {self.encoder.features}")
        _check_choice("objective", self.objective, ("max", "min"))
        _check_choice("normalize", self.normalize, (None, "l2"))
        if self.outcomes is not None:
            self._check_outcomes(self.outcomes)
        if self.budget is not None:
            self.budget.check(self.outcomes)

    def _check_outcomes(self, outcomes: Outcomes) -> None:
        if self.objective != "max":
            raise InvalidValueError(
                f"objective is {self.objective!r}, but outcomes have weights; leave it out, and give what costs a "
                "negative weight"
            )
        if outcomes.known and self.units != "free":
            raise InvalidValueError(
                f"known has {list(outcomes.known)}, but {type(self.policy).__name__} sees units as given, where an arm "
                "has no constant to add it to; leave known out and learn it, or take units='free'"
            )

    def init(self, n_arms: int) -> State:
        """Return a state without rows."""
        state: State = self.policy.init(n_arms, self.dim)
        if self.outcomes is not None:
            open_outcomes(self.policy, state, len(self.outcomes.learned))
        return state

    @property
    def reader(self) -> ContextReader | EncodingReader:
        """Turns a user's contexts into rows."""
        ranges = self.feature_range
        if self.encoder is None:
            return ContextReader(self.dim, self.features, ranges=ranges)
        from armlet.inputs.encoder import EncodingReader  # not before there is an encoder: most have none

        return EncodingReader(self.encoder, ranges=ranges)

    @property
    def engine_budget(self) -> tuple[Any, ...] | None:
        """What the engine needs of the budget, if there is one."""
        return None if self.budget is None or self.outcomes is None else self.budget.engine(self.outcomes)

    @property
    def units(self) -> Units:
        """Whether decisions are free of the units of features and rewards, by the policy's own setting."""
        return units_of(self.policy)

    @property
    def sign(self) -> float:
        """1 for rewards; -1 for costs, of which policies see the negative."""
        return 1.0 if self.objective == "max" else -1.0

    def with_policy(self, policy: Policy) -> Settings:
        """Return the same settings with another policy."""
        checked = check_reward_range(self.reward_range, policy, self.objective)
        return replace(self, policy=policy, reward_range=checked)

    def with_outcomes(self, outcomes: Outcomes) -> Settings:
        """Return the same settings with outcomes that weigh, cost or range otherwise."""
        return replace(self, outcomes=outcomes, reward_range=outcomes.reward_range())

    def with_budget(self, budget: Budget | None) -> Settings:
        """Return the same settings with another budget of the same outcome, a first one, or none."""
        if budget is None:
            if self.budget is None:
                raise InvalidValueError("budget is None, and there is none to remove; leave it out")
            return replace(self, budget=None)
        if not hasattr(budget, "outcome"):
            raise InvalidTypeError(f"budget is {budget!r}; give an armlet.Budget, or None for no budget")
        if self.budget is not None and self.budget.outcome != budget.outcome:
            raise InvalidValueError(
                f"budget is of {budget.outcome!r}, but what was spent is {self.budget.outcome!r}; give one of that"
            )
        return replace(self, budget=budget)

    def with_features(self, features: tuple[str, ...], encoder: Encoder | None) -> Settings:
        """Return the same settings with other features, and perhaps their encoder; those that stay keep ranges."""
        ranges = {name: each for name, each in (self.feature_range or {}).items() if name in features}
        checked = check_feature_range(ranges, features)
        return self._counting(
            replace(self, dim=len(features), features=features, encoder=encoder, feature_range=checked)
        )

    def with_feature_range(self, ranges: object) -> Settings:
        """Return the same settings with other ranges of features; None for none at all."""
        return self._counting(replace(self, feature_range=check_feature_range(ranges, self.features)))

    def _counting(self, changed: Settings) -> Settings:
        if changed.feature_range is not None:
            changed.feature_range.count_on(self.feature_range)
        return changed

    def apart(self) -> Settings:
        """Return the same settings for another bandit, which counts by itself what lies outside of ranges."""
        ranges = self.feature_range
        return self if ranges is None else replace(self, feature_range=ranges.apart())

    def with_reward_range(self, reward_range: object) -> Settings:
        """Return the same settings with another range of rewards, or, by name, of outcomes."""
        if self.outcomes is not None:
            if not isinstance(reward_range, Mapping):
                raise InvalidValueError(f"reward_range is {reward_range!r}; give one for each outcome by name")
            return self.with_outcomes(replace(self.outcomes, ranges=reward_range))
        return replace(self, reward_range=check_reward_range(reward_range, self.policy, self.objective))

    def check_same(self, other: Settings) -> None:
        """Refuse settings under which sums have another meaning."""
        for what in ("policy", "dim", "features", "encoder", "objective", "normalize", "budget"):
            ours, theirs = getattr(self, what), getattr(other, what)
            if ours != theirs:
                raise MergeError(f"{what} is {ours!r} here and {theirs!r} there; only sums of the same kind add up")
        weights, other_weights = (None if s.outcomes is None else dict(s.outcomes.weights) for s in (self, other))
        known, other_known = (None if s.outcomes is None else set(s.outcomes.known) for s in (self, other))
        if weights != other_weights or known != other_known:
            raise MergeError(
                f"outcomes is {weights!r} here and {other_weights!r} there, or other ones are known; only sums of the "
                "same kind add up"
            )


def open_outcomes(policy: Policy, state: Any, n: int) -> None:
    """Let a state without rows learn n outcomes, or refuse a policy that cannot.

    Examples
    --------
    >>> import armlet
    >>> policy = armlet.AutoEpsilonGreedy()
    >>> open_outcomes(policy, policy.init(2, 1), 2)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: policy is AutoEpsilonGreedy(...), which learns from one reward; with outcomes ...
    """
    if type(state).__name__ not in ("Statistics", "LazyStatistics") or policy.rule() is None:
        raise InvalidValueError(
            f"policy is {policy}, which learns from one reward; with outcomes choose the default, or one of LinUCB, "
            "ThompsonSampling, Greedy and the epsilon-greedy ones"
        )
    state.open_outcomes(n)


def check_epoch(epoch: object) -> Epoch | None:
    """Return how long units keep what they meet: decisions, or a duration, which JSON gives in seconds.

    Examples
    --------
    >>> check_epoch(1000), check_epoch({"seconds": 60})
    (1000, datetime.timedelta(seconds=60))
    >>> check_epoch(0)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: epoch is 0; give a number of decisions, at least 1, or a timedelta ...
    """
    length = unboxed(epoch)
    if length is None or (type(length) is int and 1 <= length <= MOST):
        return length
    if isinstance(length, Mapping) and length.keys() == {"seconds"} and isinstance(length["seconds"], int | float):
        length = timedelta(seconds=length["seconds"]) if 0 < length["seconds"] <= LONGEST_EPOCH else None
    if isinstance(length, timedelta) and 0 < length.total_seconds() <= LONGEST_EPOCH:
        return length
    raise InvalidValueError(
        f"epoch is {epoch!r}; give a number of decisions, at least 1, or a timedelta of a microsecond to "
        f"{LONGEST_EPOCH:g} seconds"
    )


def epoch_json(epoch: Epoch) -> int | dict[str, Any]:
    """Return an epoch in plain JSON types, which `check_epoch` takes.

    Examples
    --------
    >>> epoch_json(timedelta(hours=1))
    {'seconds': 3600.0}
    """
    return {"seconds": epoch.total_seconds()} if isinstance(epoch, timedelta) else epoch


def check_encoder(
    encoder: Encoder | None, features: Iterable[str] | None, dim: int | None
) -> tuple[Encoder | None, tuple[str, ...] | None, int]:
    """Return a copy of the encoder, the names of the features and how many there are.

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


def check_reward_range(reward_range: object, policy: Policy, objective: Objective) -> Range | None:
    """Return the reward range of a bandit, which must lie within that of its policy.

    Examples
    --------
    >>> import armlet
    >>> check_reward_range([0, 5], armlet.LinUCB(), "max")
    (0.0, 5.0)
    """
    if reward_range is None:
        return None
    low, high = pair = ends("reward_range", reward_range)
    policy_range = (0.0, 1.0) if policy.rewards == "binary" else getattr(policy, "reward_range", None)
    if policy_range is not None:
        worst, best = (low, high) if objective == "max" else (-high, -low)
        if not policy_range[0] <= worst <= best <= policy_range[1]:
            name, (least, most) = type(policy).__name__, policy_range
            raise InvalidValueError(
                f"reward_range is {pair}, but {name} learns from {least} to {most} only; give a range within that, "
                "or leave it out"
            )
    return pair


def check_seed(seed: int | None) -> int:
    """Return the seed, or draw one."""
    if seed is None:
        return int.from_bytes(os.urandom(16), "little")
    if not _is_whole(seed, 0, SEEDS):
        raise InvalidValueError(f"seed is {seed!r}; give an integer from 0 to 2^128 - 1, or leave it out")
    return int(seed)


def check_steps(steps: object, rows: int) -> int:
    """Return how many decisions a log of so many rows represents: one a row, unless given.

    Examples
    --------
    >>> check_steps(None, 3), check_steps(0, 3)
    (3, 0)
    """
    if steps is None:
        return rows
    if not _is_whole(steps, 0, MOST):
        raise InvalidValueError(
            f"steps is {steps!r}; give how many decisions the log stands for, or leave it out for one a row"
        )
    return int(cast(int, steps))


def check_step(step: object, name: str = "t") -> int:
    """Return a step of the clock."""
    if not _is_whole(step, 1, MOST):
        raise InvalidValueError(f"{name} is {step!r}; give a step, a whole number from 1 to 2^63 - 1")
    return int(cast(int, step))


def check_design(design: Design) -> Design:
    """Return a design, or refuse a word that is none."""
    _check_choice("design", design, get_args(Design))
    return design


def check_mode(mode: Mode) -> Mode:
    """Refuse what is not a way to play."""
    _check_choice("mode", mode, get_args(Mode))
    return mode


def _is_whole(value: object, least: int, most: int) -> bool:
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool | np.timedelta64)
    return is_whole and least <= int(cast(int, value)) <= most


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if not any(value is each or (isinstance(value, str) and value == each) for each in choices):
        raise InvalidValueError(f"{name} is {value!r}; choose one of {', '.join(map(repr, choices))}")
