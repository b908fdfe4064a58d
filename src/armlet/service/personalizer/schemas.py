"""What Personalizer's clients send and expect, as Structs. Fields that are not known are ignored, as Azure does."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from armlet.service.schemas import MOST_ARMS, Amount, Event, Text

Features = Annotated[list[dict[str, Any]], Meta(max_length=1_000)]
"""Objects, nested at will."""


class RankableAction(Struct):
    """An action and its features."""

    id: Text
    features: Features = []


class RankRequest(Struct, rename="camel"):
    """A context and the actions to choose from; the first one is the baseline, what the application would show."""

    actions: Annotated[list[RankableAction], Meta(min_length=1, max_length=MOST_ARMS)]
    context_features: Features | None = None
    excluded_actions: list[str] | None = None
    event_id: Event | None = None
    defer_activation: bool | None = None


class RankedAction(Struct, omit_defaults=True, gc=False):
    """How likely an action was; keys may be made without that."""

    id: str
    probability: float | UnsetType = UNSET


class RankResponse(Struct, rename="camel", gc=False):
    """What to show, under which event to reward it, and all actions: the chosen one first, then the likeliest."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class RewardRequest(Struct):
    """What an event has earned."""

    value: Amount


class PersonalizerError(Struct, omit_defaults=True, gc=False):
    """Why something is refused; `target` is the field that is wrong."""

    code: str
    message: str
    target: str | None = None


class ErrorResponse(Struct, gc=False):
    """A refusal, as Azure writes it."""

    error: PersonalizerError
