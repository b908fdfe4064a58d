"""What an event of a kind does to a bandit, by its public calls; the decision that it is about comes from a `Past`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from armlet.errors import InvalidValueError
from armlet.inputs.budget import Budget
from armlet.inputs.encoder import Encoder
from armlet.inputs.feature_change import FeatureChange
from armlet.inputs.outcomes import Outcomes
from armlet.lost_digits import keeping_rows
from armlet.policies.discounts import time_of
from armlet.record.values import HEAD, Event
from armlet.types import Reward

if TYPE_CHECKING:
    from armlet.cast.cast import AnyDecision, Cast


class Past(Protocol):
    """The decisions that events are about: of a log, decided again; of a store, read from its rows."""

    def decide(self, cast: Cast, event: Event) -> AnyDecision | None:
        """Play a decision; return it if it was decided again."""

    def get(self, event: Event, reward: Reward | None = None) -> AnyDecision:
        """Return the decision that an event is about, which has learned this reward if one is given."""

    def on_table(self, cast: Cast, event: Event) -> None:
        """Take a table of actions, or remove one."""

    def on_change(self, t: int, change: FeatureChange) -> None:
        """Take note that features were replaced after step t."""

    def reach(self, cast: Cast, minutes: int) -> None:
        """Let the bandits learn rows of a time."""

    def model(self, event: Event) -> Any:
        """Return the bandit that an event holds."""

    def policy(self, name: str) -> Callable[..., object]:
        """Return what makes policies of a name."""


Play: TypeAlias = "Callable[[Cast, Event, Past], object]"
"""What an event does to a cast, of one bandit in most cases; it returns the decision if it was decided again."""


def learn(cast: Cast, event: Event, past: Past) -> None:
    """Learn a reward."""
    decision = past.get(event)
    past.reach(cast, decision.tag)
    cast.learn(decision, event["reward"], weight=event.get("weight", 1.0))


def correct(cast: Cast, event: Event, past: Past) -> None:
    """Correct a reward."""
    old = event["old_reward"]
    decision = past.get(event, old)
    keeping_rows(lambda: cast.correct(decision, old, event["new_reward"]))


def forget(cast: Cast, event: Event, past: Past) -> None:
    """Take a reward back."""
    decision = past.get(event, event["reward"])
    # a resync follows, or the bandit that wrote the log has warned
    keeping_rows(lambda: cast.forget(decision, event["reward"]))


def partial_fit(cast: Cast, event: Event, _: Past) -> None:
    """Learn rows of which no decision is known."""
    cast.partial_fit(**{name: value for name, value in event.items() if name not in HEAD})


def learn_logged(cast: Cast, event: Event, past: Past) -> None:
    """Learn rows of a log."""
    past.reach(cast, max(event["columns"].get("tag", ()), default=0))
    keeping_rows(lambda: cast.partial_fit(event["columns"]))


def merge(cast: Cast, event: Event, past: Past) -> None:
    """Add what another bandit has learned."""
    other = past.model(event)
    past.reach(cast, time_of(other))
    cast.live.merge(other)


def replace(cast: Cast, event: Event, past: Past) -> None:
    """Replace a part of the bandit, which must be able to, or the event is refused."""
    before: Any = cast.live.settings
    if "guards" in event:
        raise InvalidValueError("the cast of a loop is not made from events: start from the model after it")
    for call in _replacements(event, before.outcomes, past):
        cast.replace(**call)
    after: Any = cast.live.settings
    if "outcomes" in event and after.outcomes.to_dict() != event["outcomes"]:
        raise InvalidValueError(f"outcomes is {event['outcomes']}, but they become {after.outcomes.to_dict()}")
    if "features" not in event:
        return
    if list(after.features) != event["features"]:
        raise InvalidValueError(f"features is {event['features']}, but the encoder gives {list(after.features)}")
    change = FeatureChange.between(before.features, after.features, event.get("fill"), dim=before.dim)
    past.on_change(cast.live.t, change)


def _replacements(event: Event, outcomes: Outcomes | None, past: Past) -> list[dict[str, Any]]:
    """Return the arguments of the call that an event is a record of; or, of several outcomes, of those it takes."""
    if "policy" in event:
        name, settings = event["policy"]["name"], event["policy"]["settings"]
        return [{"policy": past.policy(name)(**settings)}]
    if "reward_range" in event:
        return [{"reward_range": event["reward_range"]}]
    if "feature_range" in event:
        return [{"feature_range": event["feature_range"]}]
    if "outcomes" in event:
        return _reweighed(Outcomes.from_dict(event["outcomes"]), outcomes)
    if "budget" in event:
        return [{"budget": None if event["budget"] is None else Budget.from_dict(event["budget"])}]
    fill = {"fill": event.get("fill", {})}
    if "encoder" in event:
        return [{"encoder": Encoder.from_dict(event["encoder"]), **fill}]
    return [{"features": event["features"], **fill}]


def _reweighed(new: Outcomes, old: Outcomes | None) -> list[dict[str, Any]]:
    """Return what takes a bandit from some outcomes to others: weights, prices, ranges, or the same once more."""
    now = old or new
    known = [] if new.known == now.known else [{"known": new.known}]
    ranges = [] if new.ranges == now.ranges else [{"reward_range": new.ranges}]
    weights = [{"outcomes": new.weights}] if new.weights != now.weights or not (known or ranges) else []
    return weights + known + ranges


def replacements_of(event: Event) -> list[Event]:
    """Return what a change of a loop does to its bandit: a replacement each of the parts that are others."""
    head = {name: event[name] for name in HEAD}
    return [{**head, **fields} for fields in event["replaces"]]


def resync(cast: Cast, event: Event, past: Past) -> None:
    """Go on in the state of a model."""
    cast.live._resync(past.model(event))
