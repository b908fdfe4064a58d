"""What a loop is made with: checked, kept, and compared when somebody goes on with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from armlet.bandit import Bandit, from_bytes
from armlet.errors import InvalidValueError, StoreError
from armlet.inputs.settings import HUGE, Normalize, Objective, Range, Units, ends, number, positive, settle
from armlet.policies import check_given, default_policy
from armlet.stores.clock import SECOND
from armlet.stores.ledger import Kept, Pen
from armlet.stores.rewards import LONGEST, Aggregation, Terms, check_text
from armlet.types import Arm, Policy

USUAL = (-1.0, 1.0)  # rewards, if nobody says: one wild value ruins the sums of an arm
LONGEST_WINDOW = 1e9  # seconds
TERMS = ("window", "default_reward", "aggregation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """The arguments of `Store.loop`."""

    name: str
    arms: list[Arm] | None
    dim: int | None
    features: tuple[str, ...] | None
    policy: Policy | None
    objective: Objective
    normalize: Normalize | None
    units: Units | None
    window: float | None
    default_reward: float | None
    aggregation: Aggregation
    reward_range: Range | None
    seed: int | None

    def __post_init__(self) -> None:
        check_text("name", self.name, LONGEST)
        if self.aggregation not in get_args(Aggregation):
            raise InvalidValueError(f"aggregation is {self.aggregation!r}; choose one of 'first', 'last', 'sum'")
        if self.policy is not None:
            check_given(self.policy)
        if (self.window is None) != (self.default_reward is None):
            raise InvalidValueError(
                f"window is {self.window!r} and default_reward is {self.default_reward!r}; "
                "give both or neither: a row is learned when its window closes, with the default if no reward came"
            )
        if self.window is not None:
            fix = f"give seconds, more than 0 and at most {LONGEST_WINDOW:g}"
            settle(self, window=positive(LONGEST_WINDOW, fix=fix), default_reward=number(-HUGE))
        if self.arms is None and (given := self._given_without_arms()):
            raise InvalidValueError(
                f"{given} is given, but arms are not; give arms too, or the name alone to go on with a loop"
            )

    def _given_without_arms(self) -> str:
        plain = {"objective": "max", "aggregation": "first"}
        names = ("dim", "features", "objective", "normalize", "units", "window", "aggregation", "reward_range", "seed")
        return next((name for name in names if getattr(self, name) != plain.get(name)), "")

    def bandit(self) -> Bandit | None:
        """Make the bandit, if arms are given."""
        if self.arms is None:
            return None
        policy = default_policy() if self.policy is None else self.policy
        made = Bandit(
            self.arms,
            self.dim,
            policy=policy,
            features=self.features,
            objective=self.objective,
            normalize=self.normalize,
            units=self.units,
            reward_range=self._range(policy),
            seed=self.seed,
        )
        terms = terms_of(made, self._about())
        if terms.default is not None and not terms.takes(terms.default):
            raise InvalidValueError(
                f"default_reward is {terms.default!r}, but rewards are from {terms.reward_range[0]} to "
                f"{terms.reward_range[1]}{', 0 or 1 only' if terms.binary else ''}; give one of these"
            )
        return made

    def _range(self, policy: Policy) -> Range:
        if self.reward_range is not None:
            return ends("reward_range", self.reward_range)
        low, high = (0.0, 1.0) if policy.rewards == "binary" else getattr(policy, "reward_range", None) or USUAL
        return (low, high) if self.objective == "max" else (-high, -low)

    def _about(self) -> dict[str, Any]:
        return {"arms": self.arms, **{name: getattr(self, name) for name in TERMS}}

    def create(self, pen: Pen, made: Bandit | None) -> Kept:
        """Keep a new loop."""
        if made is None:
            raise StoreError(f"there is no loop {self.name!r}; give arms to make it")
        return pen.create(self.name, json.dumps(self._about()), made.to_bytes())

    def check_same(self, kept: Kept, made: Bandit | None, own: Policy | None) -> None:
        """Refuse to go on with a loop that was made with something else; arms come and go."""
        if made is None:
            return
        start, about = from_bytes(kept.start, policy=own), _read_about(kept)
        given: dict[str, tuple[object, object]] = {name: (getattr(self, name), about[name]) for name in TERMS}
        for name in ("policy", "dim", "features", "objective", "normalize", "reward_range"):
            given[name] = getattr(made, name), getattr(start, name)
        if self.seed is not None:
            given["seed"] = made.seed, start.seed
        for name, (ours, theirs) in given.items():
            if ours != theirs:
                raise StoreError(
                    f"{name} is {ours!r}, but loop {self.name!r} was made with {theirs!r}; "
                    "give that, or the name alone, or make a loop of another name"
                )


def terms_of(bandit: Bandit, about: Mapping[str, Any]) -> Terms:
    """Give the terms of a bandit's loop."""
    window = about["window"]
    return Terms(
        window=None if window is None else round(window * SECOND),
        default=about["default_reward"],
        aggregation=about["aggregation"],
        reward_range=bandit.reward_range or USUAL,
        binary=bandit.policy.rewards == "binary",
    )


def read_terms(kept: Kept, own: Policy | None) -> Terms:
    """Give the terms of a loop that is kept."""
    return terms_of(from_bytes(kept.start, policy=own), _read_about(kept))


def _read_about(kept: Kept) -> Mapping[str, Any]:
    """Read what a loop was made with; whoever edits a file can mend a checksum too."""
    try:
        about: Mapping[str, Any] = json.loads(kept.about)
        window, default = about["window"], about["default_reward"]
        if window is not None:
            positive(LONGEST_WINDOW)("window", window), number(-HUGE)("default_reward", default)
        if about["aggregation"] not in get_args(Aggregation) or (window is None) != (default is None):
            raise InvalidValueError("no terms of a loop")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"loop {kept.name!r} is damaged: {error}; go back to a backup") from error
    return about
