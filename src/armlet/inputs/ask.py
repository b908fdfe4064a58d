"""The options of one decision: the only place where they are declared.

`Loop.decide` and its siblings, the bodies of HTTP requests and OpenAPI, the client and the tables of the docs are made
from `Ask`, and all of them check options here. What a new option does is written where loops decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypedDict, cast

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.columns import check_label, check_text, listed
from armlet.inputs.options import Declared, Option, Over, declared, refuse_unknown
from armlet.inputs.settings import whole
from armlet.types import Arm

HIGHEST: Final = 1_000_000  # rank
Probabilities: TypeAlias = Literal["all"]


# ---- checks


def _labels(name: str, value: Any) -> list[Arm]:
    return [check_label(arm) for arm in listed(name, value)]


def _label(_: str, value: object) -> Arm:
    return check_label(value)


def _all(name: str, value: object) -> Probabilities:
    if isinstance(value, str) and value == "all":
        return "all"
    raise InvalidValueError(f"{name} is {value!r}; give 'all', or leave it out")


def _weights(name: str, value: object) -> Mapping[str, float]:
    if isinstance(value, Mapping):
        return dict(value)
    raise InvalidTypeError(f"{name} is {value!r}; give them by outcome, such as {{'cost': -40.0}}")


def _switch(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidTypeError(f"{name} is {value!r}; give True or False")


# ---- the declaration


class _Shared(TypedDict, total=False):
    """Options that all decisions of a batch share."""

    eligible: Annotated[
        Iterable[Arm] | None,
        Option("The arms or actions that may be played this time; all that are not retired if left out.", _labels),
    ]
    probabilities: Annotated[
        Probabilities | None,
        Option(
            '"all" for the probability of every arm at this step, or of every action in the order of the table. They '
            "are `decision.probabilities`; the log has them too.",
            _all,
        ),
    ]
    weights: Annotated[
        Mapping[str, float] | None,
        Option(
            "What outcomes are worth in this decision, those left out as usual. A dial: nothing is learned again.",
            _weights,
            over="arms",
        ),
    ]
    defer: Annotated[
        bool,
        Option(
            "True if it is not known yet whether the action will be shown: no reward counts until it is activated. No "
            "window runs until then, and rewards that come before are kept; never activated, it is never learned.",
            _switch,
            over="actions",
            default=False,
        ),
    ]


class Ask(_Shared, total=False):
    """Options of one decision."""

    event: Annotated[
        str | None,
        Option(
            "Your name for the decision, by which it is rewarded; one is made if left out. Asked again with the same "
            "context and options, it is answered the same again, and no step of the clock is taken; with others, it "
            "is refused with an EventError. Among actions of a prepared table, the answer stays the same even if the "
            "table of that name is another one by now. Names that grow with time keep the index of a large store "
            "small.",
            check_text,
            plural="events",
            complete=True,
        ),
    ]
    unit: Annotated[
        str | None,
        Option(
            "A session or a user that keeps its arm within an epoch, for loops that were made with one. On any "
            "replica: see `Bandit.decide`. `stats().units` counts those that were switched by another context or "
            "other arms.",
            check_text,
            over="arms",
            plural="units",
        ),
    ]
    baseline: Annotated[
        Arm | None,
        Option(
            "The action that is played in any case, while what the policy would have played is logged. Apprentice "
            "mode, with the rules of before: its propensity is 1.0, it is learned, and `stats().baseline` counts how "
            "often both agree.",
            _label,
            over="actions",
            plural="baselines",
        ),
    ]


class AskMany(_Shared, total=False):
    """Options of the decisions of a batch; those in the plural have one value for each, or None."""

    events: Iterable[str | None] | None
    units: Iterable[str | None] | None
    baselines: Iterable[Arm | None] | None


class Report(TypedDict, total=False):
    """Options of one reward."""

    name: Annotated[
        str | None,
        Option(
            "A name for this reward, unique within its decision, such as the id of the message that brings it. One "
            "that has counted before is a duplicate, regardless of its value, so that retries are safe with any "
            "aggregation.",
            check_text,
        ),
    ]
    rank: Annotated[
        int,
        Option(
            "How far it can be trusted, 0 or more. Only rewards of the highest rank reported so far count, and the "
            "aggregation says which of these: the truth replaces a provisional reward, never the reverse.",
            whole(0, HIGHEST),
            default=0,
        ),
    ]
    played: Annotated[
        Arm | None,
        Option(
            "The arm that was shown, if another one than decided, as a fallback is. Its reward is learned for that arm "
            "where the policy learns from every step; a policy that learns from its own random steps alone counts it.",
            _label,
        ),
    ]


REPORT: Final = declared(Report)
_ALL: Final = declared(Ask)
SHARED: Final = {name: each for name, each in _ALL.items() if each.option.plural is None}
OWN: Final = {name: each for name, each in _ALL.items() if each.option.plural is not None}
OPTIONS: Final[Mapping[str, Declared]] = {**OWN, **SHARED}
PLURALS: Final = {str(each.option.plural): name for name, each in OWN.items()}
MANY: Final = {
    **{plural: OWN[name].many for plural, name in PLURALS.items()},
    **SHARED,
}
"""Options by their names in a batch."""
ACTIONS: Final = (
    "The actions to choose from, of a loop without arms: their features, or the name of a table that was prepared. As "
    "`ActionBandit.decide` takes them. The decision is an `armlet.ActionDecision`, with the hash of the table and the "
    "probabilities of all that could be played in `support`."
)
"""What the argument before the options means."""


# ---- reading


def read(ask: Ask, *, has_actions: bool) -> Ask:
    """Check the options of a decision; those that are left out, or None, are not in it."""
    checked: dict[str, object] = {}
    for name, value in ask.items():
        if name not in OPTIONS:
            refuse_unknown("decide", name, value, OPTIONS)
        option = OPTIONS[name].option
        if value is not None and value is not option.default:
            _check_over(option.over, name, value, has_actions=has_actions)
            checked[name] = option.check(name, value)
    return cast("Ask", checked)


def read_report(report: Report) -> Report:
    """Check the options of a reward; those that are left out, or None, are not in it."""
    checked: dict[str, object] = {}
    for name, value in report.items():
        if name not in REPORT:
            refuse_unknown("reward", name, value, REPORT)
        if value is not None:
            checked[name] = REPORT[name].option.check(name, value)
    return cast("Report", checked)


class Asks(NamedTuple):
    """The options of a batch: those that its decisions share, and by name those of which each has its own."""

    shared: Ask
    own: Mapping[str, list[object]]

    def of(self, n: int) -> list[Ask]:
        """Return the options of each of so many decisions, if there are as many."""
        for name, values in self.own.items():
            if len(values) != n:
                option = OPTIONS[name].option
                fix = "give one for each" if option.complete else "give one for each, or None"
                raise InvalidValueError(f"{option.plural} has {len(values)} names for {n} contexts; {fix}")
        if not self.own:
            return [self.shared] * n
        rows = zip(*self.own.values(), strict=True)
        return [self._with(zip(self.own, row, strict=True)) for row in rows]

    def _with(self, own: Iterable[tuple[str, object]]) -> Ask:
        return cast("Ask", {**self.shared, **{name: value for name, value in own if value is not None}})


def read_many(ask: AskMany, *, has_actions: bool) -> Asks:
    """Check the options of a batch."""
    shared: dict[str, object] = {}
    own: dict[str, list[object]] = {}
    for name, value in ask.items():
        if name not in PLURALS:
            if name not in SHARED:
                refuse_unknown("decide_many", name, value, MANY)
            shared[name] = value
        elif value is not None:
            option = OPTIONS[PLURALS[name]].option
            _check_over(option.over, name, value, has_actions=has_actions)
            values = listed(name, cast("Iterable[object]", value))
            at = next((at for at, each in enumerate(values) if each is None), None)
            if option.complete and at is not None:
                raise InvalidValueError(f"{name} has None at {at}; give one for each decision, or leave {name} out")
            own[PLURALS[name]] = [None if each is None else option.check(name, each) for each in values]
    return Asks(read(cast("Ask", shared), has_actions=has_actions), own)


def _check_over(over: Over, name: str, value: object, *, has_actions: bool) -> None:
    """Refuse an option of decisions among arms where there are actions, and the reverse."""
    if over == "arms" and has_actions:
        raise InvalidValueError(f"{name} is {value!r}, but decisions among actions have none; leave it out")
    if over == "actions" and not has_actions:
        raise InvalidValueError(
            f"{name} is {value!r}, but there are no actions; it is for decisions among actions with features"
        )
