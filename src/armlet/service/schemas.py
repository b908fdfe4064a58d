"""What requests and answers look like: one Struct each, from which decoders, encoders and OpenAPI are made.

Unknown fields are refused, so that a misspelt one is not silently ignored. JSON keeps an arm 1 and an arm "1" apart.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from armlet.inputs.columns import LARGEST
from armlet.stores.rewards import Status
from armlet.stores.spec import LONGEST

MOST_ITEMS: Final = 10_000  # of a batch
MOST_ARMS: Final = 10_000
MOST_FEATURES: Final = 10_000

Text = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Event = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST,
        description="The sender's own name for a decision. Names that grow with time keep the index of a store small.",
    ),
]
Label: TypeAlias = Annotated[str, Meta(max_length=LONGEST)] | Annotated[int, Meta(ge=-(2**53), le=2**53)]
Amount = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Cell: TypeAlias = float | bool | Annotated[str, Meta(max_length=65_536)] | None
Context: TypeAlias = (
    Annotated[list[float], Meta(max_length=MOST_FEATURES)] | Annotated[dict[str, Cell], Meta(max_length=MOST_FEATURES)]
)
Labels = Annotated[list[Label], Meta(min_length=1, max_length=MOST_ARMS)]


class ProblemDetails(Struct, omit_defaults=True, gc=False):
    """A refusal (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None


# ---- decisions


class Decide(Struct, forbid_unknown_fields=True):
    """A request for one decision. Asked again with its event, it is answered the same again."""

    context: Context
    event: Event | None = None
    eligible: Labels | None = None
    probabilities: Literal["all"] | None = None


class Item(Struct, forbid_unknown_fields=True):
    """One decision of a batch."""

    context: Context
    event: Event | None = None


class DecideMany(Struct, forbid_unknown_fields=True):
    """A request for many decisions in one transaction, all or none; all of them have events, or none has."""

    items: Annotated[list[Item], Meta(min_length=1, max_length=MOST_ITEMS)]
    eligible: Labels | None = None
    probabilities: Literal["all"] | None = None


class Probability(Struct, gc=False):
    """How likely an arm was."""

    arm: str | int
    probability: float


class Decided(Struct, omit_defaults=True, gc=False):
    """A decision, which is durable. Its event is the name by which it is rewarded.

    `propensity` is the probability with which the arm was chosen, over all coins; keys may be made without it.
    """

    event: str
    arm: str | int
    propensity: float | UnsetType = UNSET
    explored: bool | UnsetType = UNSET
    probabilities: list[Probability] | UnsetType = UNSET


class DecidedMany(Struct, gc=False):
    """Decisions, in the order of their contexts."""

    items: list[Decided]


# ---- rewards

ItemStatus: TypeAlias = Status | Literal["refused", "no_loop", "forbidden", "unavailable", "outcome_unknown"]


class RewardItem(Struct, forbid_unknown_fields=True):
    """One reward."""

    loop: Text
    event: Event
    value: Amount
    name: Text | None = None
    rank: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    played: Label | None = None


class Rewards(Struct, forbid_unknown_fields=True):
    """Rewards of any loops; those of one loop are one transaction."""

    items: Annotated[list[RewardItem], Meta(min_length=1, max_length=MOST_ITEMS)]


class Judged(Struct, omit_defaults=True, gc=False):
    """What became of a reward.

    What a loop answers: "accepted", "replaced", "late" and "counted" are kept; "duplicate", "conflict" and "outranked"
    were decided by an earlier reward; "early" waits for its event; "unknown" has none; "out_of_range" is not taken.
    What the server adds: "refused" (`detail` says why), "no_loop", "forbidden" to this key, "unavailable" (nothing was
    kept; send it again) and "outcome_unknown" (it may have been kept; sent again with its name it counts once).
    """

    status: ItemStatus
    detail: str | None = None


class RewardsJudged(Struct, gc=False):
    """What became of each reward, in order."""

    items: list[Judged]
