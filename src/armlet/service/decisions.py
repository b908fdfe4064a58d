"""The routes that carry the traffic: decisions, batches of them, and rewards.

Requests are decoded into Structs once, and wait for the store without a thread of their own: those that wait at the
same time share a commit. Every answer is durable before it is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast, get_args

import msgspec
from msgspec import Struct

from armlet.errors import (
    ArmletError,
    BudgetError,
    EventError,
    InternalError,
    InvalidTypeError,
    LoopGoneError,
    PolicyError,
    StoreError,
    UncertainError,
    UnknownNameError,
)
from armlet.kernel import Decision
from armlet.service.app import Service
from armlet.service.contexts import context_problem, with_dates
from armlet.service.http import Request, Response, decode
from armlet.service.problems import FORBIDDEN, INTERNAL, INVALID, OUTCOME_UNKNOWN, Problem, refusal
from armlet.service.schemas import (
    Bill,
    Billed,
    Decide,
    Decided,
    DecidedMany,
    DecideMany,
    Judged,
    Probability,
    RewardItem,
    Rewards,
    RewardsJudged,
)
from armlet.stores import Loop, Status
from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.actions.decision import ActionDecision
    from armlet.inputs.settings import Reader

Actions: TypeAlias = dict[str, Any] | str | None
T = TypeVar("T")

log = logging.getLogger("armlet.service")

_encode = msgspec.json.Encoder().encode
_decide = msgspec.json.Decoder(Decide)
_decide_many = msgspec.json.Decoder(DecideMany)
_rewards = msgspec.json.Decoder(Rewards)
_bill = msgspec.json.Decoder(Bill)

GONE: Final = (LoopGoneError, UnknownNameError)  # what a store says of loops that were deleted
_STATUSES: Final = (*get_args(Status), "forbidden", "no_loop", "unavailable", "outcome_unknown", "failed")
_JUDGED: Final = {status: Judged(status) for status in _STATUSES}


# ---- decisions


async def decide(service: Service, request: Request) -> Response:
    """Choose an arm for a context."""
    asked = decode(_decide, await request.body(service.limits.body), request)
    name = request.parts["name"]
    loop = service.loops.get(name) or await service.loop(name)
    if asked.actions is not None or asked.baseline is not None or asked.defer:
        return await _choose(request, loop, asked)
    labels = () if asked.probabilities is None else await _labels(service, request, loop)

    def ask(contexts: list[Any], _: Actions) -> Awaitable[Decision]:
        return loop.adecide(
            contexts[0],
            event=asked.event,
            eligible=asked.eligible,
            probabilities=asked.probabilities,
            unit=asked.unit,
            weights=asked.weights,
        )

    try:
        decision = await with_any_dates(loop, [asked.context], None, ask)
    except ArmletError as error:
        fields = _given(asked, "eligible", "unit", "weights") | _lacking(loop)
        raise refused_decision(loop, [("context", loop.reader, asked.context)], error, fields) from error
    if labels:
        labels = await _later_labels(service, loop, labels, [decision])
    told = _told(decision, asked.event, labels, has_propensity=request.grant.propensity)
    if asked.unit is not None or asked.weights is not None:
        _tell_dial(told, decision, has_propensity=request.grant.propensity)
    return Response(_encode(told))


async def _choose(request: Request, loop: Loop, asked: Decide) -> Response:
    """Choose one of the actions that came with the request, or of a table that was prepared."""
    _check_probabilities(request, asked.probabilities)
    decide = cast("Callable[..., Awaitable[ActionDecision]]", loop.adecide)  # which refuses what it cannot have

    def ask(contexts: list[Any], actions: Actions) -> Awaitable[ActionDecision]:
        return decide(
            contexts[0],
            event=asked.event,
            eligible=asked.eligible,
            unit=asked.unit,
            weights=asked.weights,
            actions=actions,
            baseline=asked.baseline,
            defer=asked.defer,
        )

    try:
        decision = await with_any_dates(loop, [asked.context], asked.actions, ask)
    except ArmletError as error:
        rows = [("context", loop.reader, asked.context), *action_rows(loop, asked.actions)]
        fields = _given(asked, "eligible", "baseline", "defer", "unit", "weights", "actions") | _lacking(loop)
        raise refused_decision(loop, rows, error, fields) from error
    told = _told(decision, asked.event, (), has_propensity=request.grant.propensity)
    if asked.probabilities is not None:
        _tell_support(told, decision, asked)
    return Response(_encode(told))


def action_rows(loop: Loop, actions: Actions) -> Iterator[tuple[str, Reader, Any]]:
    """Return rows of actions that came with a request: their fields, what reads them, and as they were sent."""
    reader, rows = loop.action_reader, actions.items() if isinstance(actions, dict) else ()
    return ((f"actions.{label}", reader, row) for label, row in rows if reader is not None)


def _given(asked: Struct, *names: str) -> dict[str, str]:
    """Return the arguments that were given, by name; each is a field of the same name."""
    return {name: name for name in names if getattr(asked, name) not in (None, False)}


def _lacking(loop: Loop) -> dict[str, str]:
    """Return the field of actions, which a loop that was made for them is never without."""
    return {} if loop.action_reader is None else {"actions": "actions"}


def _tell_support(told: Decided, decision: Decision | ActionDecision, asked: Decide | DecideMany) -> None:
    """Add the probability of every action that had one; of a prepared table, not if all of it had the same."""
    chances = cast("ActionDecision", decision).support
    if chances is None:
        same = asked.eligible or (asked.actions if isinstance(asked.actions, dict) else ())
        chances = dict.fromkeys(same, decision.propensity)
    if chances:
        told.probabilities = [Probability(*pair) for pair in chances.items()]


async def decide_many(service: Service, request: Request) -> Response:
    """Choose arms for many contexts in one transaction, all or none."""
    asked = decode(_decide_many, await request.body(service.limits.batch_body), request)
    if len(asked.items) > service.limits.batch:
        raise Problem(INVALID, f"give {service.limits.batch:,} at most", field="items")
    loop = await service.loop(request.parts["name"])
    _check_probabilities(request, asked.probabilities)
    of_arms = asked.probabilities if asked.actions is None else None
    labels = () if of_arms is None else await _labels(service, request, loop)
    events = _events([item.event for item in asked.items])
    contexts: list[Any] = [item.context for item in asked.items]

    units = [item.unit for item in asked.items]
    has_units = any(unit is not None for unit in units)
    decide = cast("Callable[..., Awaitable[list[Decision]]]", loop.adecide_many)

    def ask(contexts: list[Any], actions: Actions) -> Awaitable[list[Decision]]:
        return decide(
            contexts,
            events=events,
            eligible=asked.eligible,
            probabilities=of_arms,
            units=units if has_units else None,
            weights=asked.weights,
            actions=actions,
        )

    try:
        decisions = await with_any_dates(loop, contexts, asked.actions, ask)
    except ArmletError as error:
        rows = [(f"items[{at}].context", loop.reader, context) for at, context in enumerate(contexts)]
        raise refused_decision(
            loop, [*rows, *action_rows(loop, asked.actions)], error, _fields(asked, _lacking(loop))
        ) from error
    if labels:
        labels = await _later_labels(service, loop, labels, decisions)
    named = [None] * len(decisions) if events is None else events
    has_propensity = request.grant.propensity
    told = [_told(*pair, labels, has_propensity=has_propensity) for pair in zip(decisions, named, strict=True)]
    for one, decision in zip(told, decisions, strict=True):
        if has_units or asked.weights is not None:
            _tell_dial(one, decision, has_propensity=has_propensity)
        if asked.actions is not None and asked.probabilities is not None:
            _tell_support(one, decision, asked)
    return Response(_encode(DecidedMany(told)))


def _fields(asked: DecideMany, lacking: dict[str, str]) -> dict[str, str]:
    """Return the arguments that a batch was given, and where the first of each is."""
    found = _given(asked, "eligible", "weights", "actions") | lacking
    at = next((at for at, item in enumerate(asked.items) if item.unit is not None), None)
    return found if at is None else {**found, "unit": f"items[{at}].unit"}


async def with_any_dates(
    loop: Loop, contexts: list[Any], actions: Actions, ask: Callable[[list[Any], Actions], Awaitable[T]]
) -> T:
    """Await decisions; text is read as a date only where a loop refuses it, so that others do not pay for that."""
    try:
        return await ask(contexts, actions)
    except InvalidTypeError:
        dated = [with_dates(loop.reader, context) for context in contexts]
        rows = [with_dates(reader, row) for _, reader, row in action_rows(loop, actions)]
        old = [*contexts, *(actions.values() if isinstance(actions, dict) else ())]
        if all(new is before for new, before in zip([*dated, *rows], old, strict=False)):
            raise
    return await ask(dated, dict(zip(actions, rows, strict=True)) if isinstance(actions, dict) and rows else actions)


def _events(names: Sequence[str | None]) -> list[str] | None:
    given = [name for name in names if name is not None]
    if given and len(given) < len(names):
        at = names.index(None)
        raise Problem(INVALID, "other items have events; give one to all items, or to none", field=f"items[{at}].event")
    return given or None


def _told(
    decision: Decision | ActionDecision, event: str | None, labels: Sequence[Arm], *, has_propensity: bool
) -> Decided:
    name = decision.id if event is None else event
    if not has_propensity:
        return Decided(name, decision.arm)
    if decision.probabilities is None or not labels:
        return Decided(name, decision.arm, decision.propensity, decision.explored)
    shown = [Probability(*pair) for pair in zip(labels, decision.probabilities.tolist(), strict=False)]
    return Decided(name, decision.arm, decision.propensity, decision.explored, shown)


def _tell_dial(told: Decided, decision: Decision, *, has_propensity: bool) -> None:
    """Add what only decisions for a unit, or with weights, have; a key without propensities is told neither."""
    if not has_propensity:
        return
    if decision.unit is not None and decision.epoch is not None:
        told.unit, told.epoch = decision.unit, decision.epoch
    if decision.weights is not None:
        told.weights = decision.weights


def _check_probabilities(request: Request, probabilities: str | None) -> None:
    if probabilities is not None and not request.grant.propensity:
        raise Problem(FORBIDDEN, "the key was made without propensities", field="probabilities")


async def _labels(service: Service, request: Request, loop: Loop) -> Sequence[Arm]:
    """Return the arms in the order of probabilities, before anything is decided and kept."""
    _check_probabilities(request, "all")
    if loop.action_reader is not None:
        raise Problem(INVALID, "the actions of this loop come with each decision; give them", field="actions")
    if loop not in service.arms:
        service.arms[loop] = tuple((await service.ask(loop.model)).arms)
    return service.arms[loop]


async def _later_labels(
    service: Service, loop: Loop, labels: Sequence[Arm], decisions: Iterable[Decision]
) -> Sequence[Arm]:
    """Return the arms again if some were added since they were asked for; they are added at the end, and never go."""
    most = max((len(each.probabilities) for each in decisions if each.probabilities is not None), default=0)
    if len(labels) >= most:
        return labels
    try:
        service.arms[loop] = tuple((await service.ask(loop.model)).arms)
    except Problem as problem:
        raise Problem(OUTCOME_UNKNOWN, "it was decided; repeat it with the same event") from problem
    return service.arms[loop]


def refused_decision(
    loop: Loop, rows: Iterable[tuple[str, Reader, Any]], error: ArmletError, fields: Mapping[str, str]
) -> Problem:
    """Return why a decision was refused; what is wrong with a context is said without its values.

    Parameters
    ----------
    loop
        Whose decision it is.
    rows
        Contexts and rows of actions: their fields, what reads them, and as they were sent.
    error
        Why it was refused; if nothing is wrong with the rows, it is about one of the other arguments.
    fields
        The field of each other argument that was given.
    """
    if isinstance(error, (StoreError, EventError, BudgetError)):
        return refusal(error, field=fields.get("event"))
    for field, reader, row in rows:
        problem = context_problem(reader, row, field)
        if problem is not None:
            return problem
    if fields and not isinstance(error, PolicyError):
        named = str(error).partition(" ")[0]
        return refusal(error, field=fields.get(named, next(iter(fields.values()))))
    log.error("the policy of loop %s failed: %s", loop.name, type(error).__name__)
    return Problem(INTERNAL, "the policy of the loop failed; the log of the server says how")


# ---- rewards


async def rewards(service: Service, request: Request) -> Response:
    """Record rewards of any loops; each has its own answer."""
    told = decode(_rewards, await request.body(service.limits.batch_body), request)
    items = told.items
    if len(items) > service.limits.batch:
        raise Problem(INVALID, f"give {service.limits.batch:,} at most", field="items")
    refused = await _refused_loops(service, request, {item.loop for item in items})
    if len(items) == 1 and not refused:
        answers = [await _reward(service.loops[items[0].loop], items[0])]
    else:
        answers = await _reward_many(service, [item for item in items if item.loop not in refused])
    if len(answers) == len(items) and all(_is_failure(answer) for answer in answers):
        failures = cast("list[StoreError]", answers)
        raise refusal(max(failures, key=lambda each: isinstance(each, UncertainError)))  # one may have been kept
    found = iter(answers)
    judged = [refused[item.loop] if item.loop in refused else _judged(service, item, next(found)) for item in items]
    return Response(_encode(RewardsJudged(judged)))


async def bill(service: Service, request: Request) -> Response:
    """Count the cost of a decision in the budget, and learn nothing from it; 0 releases money that is kept back."""
    asked = decode(_bill, await request.body(service.limits.body), request)
    loop = await service.loop(request.parts["name"])
    return Response(_encode(Billed(await service.ask(loop.bill, asked.event, asked.cost))))


async def _refused_loops(service: Service, request: Request, names: set[str]) -> dict[str, Judged]:
    """Open the loops that rewards are for; return those that cannot be, and why."""
    refused: dict[str, Judged] = {}
    for name in names:
        if not request.grant.allows("reward", name):
            refused[name] = _JUDGED["forbidden"]
        elif name not in service.loops:
            try:
                await service.loop(name)
            except Problem as problem:
                if problem.status != 404:
                    raise
                refused[name] = _JUDGED["no_loop"]
    return refused


async def _reward(loop: Loop, item: RewardItem) -> Status | Exception:
    try:
        return await loop.areward(item.event, item.value, name=item.name, rank=item.rank, played=item.played)
    except ArmletError as error:
        return error


async def _reward_many(service: Service, items: list[RewardItem]) -> list[Status | Exception]:
    try:
        return await service.store.areward_many([msgspec.structs.asdict(item) for item in items])
    except StoreError as error:
        return [error] * len(items)


def _is_failure(answer: Status | Exception) -> bool:
    """Whether the store could not do it, rather than would not."""
    return isinstance(answer, StoreError) and not isinstance(answer, GONE)


def _judged(service: Service, item: RewardItem, answer: Status | Exception) -> Judged:
    if isinstance(answer, str):
        return _JUDGED[answer]
    if isinstance(answer, GONE):
        service.loops.pop(item.loop, None)
        return _JUDGED["no_loop"]
    if isinstance(answer, InternalError):
        return _JUDGED["failed"]
    if isinstance(answer, StoreError):
        return _JUDGED["outcome_unknown" if isinstance(answer, UncertainError) else "unavailable"]
    if not isinstance(answer, ArmletError):
        raise answer
    return Judged("refused", str(answer))
