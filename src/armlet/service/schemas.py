"""What requests and answers look like: one Struct each, from which decoders, encoders and OpenAPI are made.

Unknown fields are refused, so that a misspelt one is not silently ignored. JSON keeps an arm 1 and an arm "1" apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypeVar, cast

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, to_builtins

from armlet.inputs.ask import ACTIONS, OPTIONS, OWN, REPORT, SHARED
from armlet.inputs.columns import LARGEST, LONGEST
from armlet.inputs.hashed import MOST as MOST_COLUMNS
from armlet.inputs.options import Declared, Option, forms_of, summary
from armlet.inputs.outcomes import MOST as MOST_OUTCOMES
from armlet.stores.folds import OutcomeCounts
from armlet.stores.health import Alarm
from armlet.stores.promotion import Gate
from armlet.stores.rewards import Status
from armlet.stores.spec import LoopChange, LoopSpec
from armlet.stores.writer import LATEST
from armlet.types import Arm

MOST_ITEMS: Final = 10_000  # of a batch
MOST_ARMS: Final = 10_000
MOST_FEATURES: Final = 10_000
MOST_SHADOWS: Final = 16
MOST_ACTIONS: Final = 1_000_000  # of a table that is prepared; a decision brings as many as arms

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
Cell: TypeAlias = float | bool | Annotated[str, Meta(max_length=4096)] | None
"""A value of a feature; a date is text, in ISO 8601."""
Context: TypeAlias = (
    Annotated[list[float], Meta(max_length=MOST_FEATURES)] | Annotated[dict[str, Cell], Meta(max_length=MOST_FEATURES)]
)
ActionRows: TypeAlias = Annotated[dict[Text, Context], Meta(min_length=1, max_length=MOST_ARMS)]
"""Features by action: numbers in the order of the features, or values by name."""
Labels = Annotated[list[Label], Meta(min_length=1, max_length=MOST_ARMS)]
ByOutcome: TypeAlias = Annotated[dict[Text, Amount], Meta(min_length=1, max_length=MOST_OUTCOMES)]
"""A number for each of some outcomes."""


# ---- decisions


_SENT: Final[Mapping[Any, Any]] = {str: Text, Arm: Label, Iterable[Arm]: Labels, Mapping[str, float]: ByOutcome}
"""How values of a type are sent, where that is not the type itself."""
StructT = TypeVar("StructT", bound=Struct)


def _with_options(base: type[StructT], options: Mapping[str, Declared]) -> type[StructT]:
    """Add options to a body, which are left out, or null, by default."""
    return _with_fields(base, ((name, _optional(each.type, each.option), None) for name, each in options.items()))


def _optional(kind: Any, option: Option) -> Any:
    return Annotated[_SENT.get(kind, kind) | None, Meta(description=option.summary)]


def _with_fields(base: type[StructT], fields: Iterable[tuple[str, Any, Any]]) -> type[StructT]:
    name, namespace = base.__name__.removeprefix("_"), {"__doc__": base.__doc__, "__module__": __name__}
    made = defstruct(name, fields, bases=(base,), namespace=namespace, forbid_unknown_fields=True)
    return cast("type[StructT]", made)


class _Decide(Struct):
    """A request for one decision. Asked again with its event, it is answered the same again."""

    context: Context
    actions: Annotated[ActionRows | Text | None, Meta(description=summary(ACTIONS))] = None


class _Item(Struct):
    """One decision of a batch."""

    context: Context


if TYPE_CHECKING:
    Item = _Item
else:
    Item = _with_options(_Item, OWN)


class _DecideMany(Struct):
    """A request for many decisions in one transaction, all or none."""

    items: Annotated[list[Item], Meta(min_length=1, max_length=MOST_ITEMS)]
    actions: Annotated[ActionRows | Text | None, Meta(description=summary(ACTIONS))] = None


Decide: Final = _with_options(_Decide, OPTIONS)
DecideMany: Final = _with_options(_DecideMany, SHARED)


class Probability(Struct, gc=False):
    """How likely an arm was."""

    arm: str | int
    probability: float


class Decided(Struct, omit_defaults=True, gc=False):
    """A decision, which is durable. Its event is the name by which it is rewarded.

    `propensity` is the probability with which the arm was chosen, over all coins; keys may be made without it. A
    decision for a unit has its epoch, one with weights those of all outcomes.
    """

    event: str
    arm: str | int
    propensity: float | UnsetType = UNSET
    explored: bool | UnsetType = UNSET
    probabilities: list[Probability] | UnsetType = UNSET
    unit: str | UnsetType = UNSET
    epoch: int | UnsetType = UNSET
    weights: dict[str, float] | UnsetType = UNSET


class DecidedMany(Struct, gc=False):
    """Decisions, in the order of their contexts."""

    items: list[Decided]


class Activate(Struct, forbid_unknown_fields=True):
    """A deferred decision that was played after all."""

    event: Event


class Activated(Struct, gc=False):
    """Whether it was deferred until now; False if it was activated before, or never deferred."""

    activated: bool


class Prepare(Struct, forbid_unknown_fields=True):
    """The actions of a table, instead of those that it had."""

    actions: Annotated[dict[Text, Context], Meta(min_length=1, max_length=MOST_ACTIONS)]


# ---- rewards

ItemStatus: TypeAlias = Status | Literal["refused", "no_loop", "forbidden", "unavailable", "outcome_unknown", "failed"]


class _RewardItem(Struct):
    """One reward: a number, or for a loop with several outcomes those that are reported now, by name."""

    loop: Text
    event: Event
    value: Amount | ByOutcome


if TYPE_CHECKING:
    RewardItem = _RewardItem
else:
    rank = Declared(Annotated[int, Meta(ge=0, le=2**31 - 1)], REPORT["rank"].option)
    RewardItem = _with_options(_RewardItem, {**REPORT, "rank": rank})


class Rewards(Struct, forbid_unknown_fields=True):
    """Rewards of any loops; those of one loop are one transaction."""

    items: Annotated[list[RewardItem], Meta(min_length=1, max_length=MOST_ITEMS)]


class Judged(Struct, omit_defaults=True, gc=False):
    """What became of a reward.

    What a loop answers: "accepted", "replaced", "late" and "counted" are kept; "duplicate", "conflict" and "outranked"
    were decided by an earlier reward; "early" waits for its event; "unknown" has none; "out_of_range" is not taken.
    What the server adds: "refused" (`detail` says why), "no_loop", "forbidden" to this key, "unavailable" (nothing was
    kept; send it again), "outcome_unknown" (it may have been kept; sent again with its name it counts once) and
    "failed" (a fault of the server; nothing was kept).
    """

    status: ItemStatus
    detail: str | None = None


class RewardsJudged(Struct, gc=False):
    """What became of each reward, in order."""

    items: list[Judged]


class Bill(Struct, forbid_unknown_fields=True):
    """What a decision costs in the budget of its loop; nothing is learned from it."""

    event: Event
    cost: Amount


class Billed(Struct, gc=False):
    """Whether there is such a decision; a later bill, or its cost, takes the place of this one."""

    billed: bool


# ---- loops

Setting: TypeAlias = float | int | bool | str | list[float | str | list[int | str]] | None
Settings = Annotated[dict[str, Setting], Meta(max_length=100)]
Names = Annotated[list[Text], Meta(max_length=MOST_FEATURES)]
Categories = Annotated[dict[str, Names], Meta(max_length=MOST_FEATURES)]
Columns = Annotated[int, Meta(ge=1, le=MOST_COLUMNS)]
Seconds = Annotated[float, Meta(gt=0, le=1e9)]
Ends = Annotated[list[Amount], Meta(min_length=2, max_length=2)]  # msgspec 0.22 crashes if a tuple is next to a mapping
FeatureEnds = Annotated[list[Amount | Literal["refuse", "clip"]], Meta(min_length=2, max_length=3)]
EndsByFeature = Annotated[dict[Text, FeatureEnds], Meta(max_length=MOST_FEATURES)]
EndsByOutcome = Annotated[dict[Text, Ends], Meta(min_length=1, max_length=MOST_OUTCOMES)]
Price: TypeAlias = tuple[Label, Amount]
Prices: TypeAlias = (
    Annotated[dict[str, Amount], Meta(max_length=MOST_ARMS)] | Annotated[list[Price], Meta(max_length=MOST_ARMS)]
)
"""What is known of every arm: by its text, or in pairs of an arm and a number, which keep 1 and "1" apart."""
Known: TypeAlias = Annotated[dict[Text, Prices], Meta(max_length=MOST_OUTCOMES)]
Decisions = Annotated[int, Meta(ge=1, le=2**53)]


class BudgetTerms(Struct, forbid_unknown_fields=True):
    """How much of an outcome may be spent within a horizon or in each period, both in decisions.

    A hard one is never exceeded: arms that could are not played, and where none is left decisions are refused.
    """

    outcome: Text
    total: Annotated[float, Meta(gt=0, le=LARGEST)]
    horizon: Decisions | None = None
    period: Decisions | None = None
    hard: bool = False


Share = Annotated[float, Meta(gt=0, lt=1)]


class Duration(Struct, forbid_unknown_fields=True):
    """A length of time."""

    seconds: Seconds


Epoch: TypeAlias = Decisions | Duration
"""How long a unit keeps its arm: a number of decisions, or a length of time."""


class AnyControl(Struct, forbid_unknown_fields=True):
    """An arm, or another policy such as the one before, that plays a fixed share of decisions, to compare with."""

    arm: Label | None = None
    policy: Text | None = None
    policy_settings: Settings = {}
    share: Share = 0.1


class Shadow(Struct, forbid_unknown_fields=True):
    """A policy that learns, and whose choices are logged but never played."""

    policy: Text
    policy_settings: Settings = {}


_SENT_AS: Final[Mapping[str, Any]] = {
    "arms": Labels,
    "features": Names,
    "categories": Categories,
    "hashed": Columns,
    "dim": Annotated[int, Meta(ge=0, le=MOST_FEATURES)],
    "action_features": Names,
    "action_categories": Categories,
    "action_hashed": Columns,
    "action_dim": Annotated[int, Meta(ge=1, le=MOST_FEATURES)],
    "policy_settings": Settings,
    "window": Seconds,
    "default_reward": Amount | ByOutcome,
    "early_window": Seconds,
    "reward_range": Ends | EndsByOutcome,
    "feature_range": EndsByFeature,
    "seed": Annotated[int, Meta(ge=0, le=2**53)],
    "control": AnyControl,
    "shadow": Shadow,
    "shadows": Annotated[dict[Text, Shadow], Meta(min_length=1, max_length=MOST_SHADOWS)],
    "epoch": Epoch,
    "known": Known,
    "budget": BudgetTerms,
    "fill": Annotated[dict[str, Amount], Meta(max_length=MOST_FEATURES)],
}
"""How options of a loop are sent, where that does not follow from their types."""


def _forms(declaration: type, but: Iterable[str] = ()) -> Iterator[tuple[str, Any, Any]]:
    for name, form in forms_of(declaration, but).items():
        kind = _optional(_SENT_AS.get(name, form.type), form.option)
        yield name, kind | UnsetType if form.is_removable else kind, UNSET if form.is_removable else None


class _MakeLoop(Struct):
    """A loop to be made.

    Its features are numbers by name, "1" for a constant, and columns of text with the texts that get a flag each; or
    any names, `hashed` into so many columns; or, without names, `dim` numbers. The same of actions, such as
    `action_features`, makes a loop without arms, whose actions come with each decision. With `outcomes`, rewards,
    ranges and defaults are by their names.
    """

    name: Text


class _ChangeLoop(Struct):
    """What is to be another one, all of it or none; what is left out stays, and null says that there is to be none."""


MakeLoop: Final = _with_fields(_MakeLoop, _forms(LoopSpec, but=("name", "on_change")))
ChangeLoop: Final = _with_fields(_ChangeLoop, _forms(LoopChange))


def said_in(body: Struct, declaration: type) -> dict[str, Any]:
    """Return what a body says of a loop, in plain values."""
    forms = forms_of(declaration)
    plain: Mapping[str, Any] = to_builtins(body)
    return {name: value for name, value in plain.items() if value is not None or forms[name].is_removable}


class Promote(Struct, forbid_unknown_fields=True):
    """How to let a shadow play.

    `gate` is "better" if it must be shown to be better, "not worse" if it must not be shown to be worse, or "off".
    `control` is the share of decisions that the policy so far plays from then on. `shadow` is the name of the shadow,
    which may be left out where there is only one.
    """

    gate: Gate = "better"
    control: Share | None = None
    shadow: Text | None = None


class Promoted(Struct, gc=False):
    """Whether the shadow was promoted, and what its comparison with the live policy said."""

    promoted: bool
    gain: dict[str, Any] | None


class ChangeArm(Struct, forbid_unknown_fields=True):
    """An arm to be added, to be played no longer, or to be played again; what is known of it is kept.

    A new one comes with its values of outcomes that are `known`, if the loop has such ones.
    """

    action: Literal["add", "retire", "restore"]
    arm: Label
    known: ByOutcome | None = None


class Forget(Struct, forbid_unknown_fields=True):
    """Decisions to be unlearned, and deleted with all about them."""

    events: Annotated[list[Event], Meta(min_length=1, max_length=MOST_ITEMS)]


class Forgotten(Struct, gc=False):
    """How many of these decisions there were."""

    forgotten: int


class Prune(Struct, forbid_unknown_fields=True):
    """Until when decisions that did not explore are deleted, in all loops: seconds since 1970."""

    before: Annotated[float, Meta(ge=0.0, le=LATEST)]


class Pruned(Struct, gc=False):
    """How many decisions were deleted."""

    pruned: int


class LoopName(Struct, gc=False):
    """A loop."""

    name: str


class Loops(Struct, gc=False):
    """The loops that a key may read, the oldest first."""

    items: list[LoopName]


class Health(Struct, gc=False):
    """What is wrong with a loop, in words; nothing if it is well."""

    items: list[Alarm]


class Done(Struct, gc=False):
    """It is done, and durable; "unchanged": a change asked for what the loop has already."""

    status: Literal["done", "unchanged"] = "done"


class LoopDetails(Struct, gc=False):
    """All there is to see of a loop; times are microseconds since 1970.

    Events and contexts of the last decisions are shown to keys with the scope `admin` only.
    """

    name: str
    at: int
    decisions: int
    rewards: int
    policy: dict[str, Any]
    arms: list[str | int]
    retired: list[str | int]
    features: list[str] | None
    gains: list[dict[str, Any]]
    last: list[dict[str, Any]]
    alarms: list[Alarm]
    weights: dict[str, float] | None
    known: list[str]
    outcomes: list[OutcomeCounts]
    budget: dict[str, Any] | None
    action_dim: int | None
    action_features: list[str] | None
    tables: dict[str, str]
    others: dict[str, Any] | None
    baseline: dict[str, Any] | None
    deferred: int


class State(Struct, gc=False):
    """How the server is."""

    status: Literal["ok", "ready"]
