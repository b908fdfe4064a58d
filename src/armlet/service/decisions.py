"""The routes that carry the traffic: decisions, batches of them, and rewards.

Requests are decoded into Structs once, and wait for the store without a thread of their own: those that wait at the
same time share a commit. Every answer is durable before it is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, get_args

import msgspec

from armlet.actions.decision import ActionDecision
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
from armlet.inputs.ask import OPTIONS, OWN, PLURALS, REPORT
from armlet.kernel import Decision
from armlet.service.contexts import context_problem, with_dates
from armlet.service.http import Request, Response, decode, json_response
from armlet.service.problems import FORBIDDEN, INTERNAL, INVALID, OUTCOME_UNKNOWN, Problem, refusal
from armlet.service.schemas import (
    Activate,
    Activated,
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
from armlet.stores.rewards import Status
from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.inputs.settings import Reader
    from armlet.service.app import Service
    from armlet.stores import Loop

Actions: TypeAlias = dict[str, Any] | str | None
T = TypeVar("T")

log = logging.getLogger("armlet.service")

_encode = msgspec.json.Encoder().encode
_decide = msgspec.json.Decoder(Decide)
_activate = msgspec.json.Decoder(Activate)
_decide_many = msgspec.json.Decoder(DecideMany)
_rewards = msgspec.json.Decoder(Rewards)
_bill = msgspec.json.Decoder(Bill)

GONE: Final = (LoopGoneError, UnknownNameError)  # what a store says of loops that were deleted
_STATUSES: Final = (*get_args(Status), "forbidden", "no_loop", "unavailable", "outcome_unknown", "failed")
_JUDGED: Final = {status: Judged(status) for status in _STATUSES}


# ---- decisions


async def decide(service: Service, request: Request) -> Response:
    """Choose an arm for a context, or one of the actions that come with it."""
    body = decode(_decide, await request.body(service.limits.body), request)
    name = request.parts["name"]
    loop = service.loops.get(name) or await service.loop(name)
    options = _options_of(body)
    wants = await _wants(service, request, loop, options, body.actions)

    def call(contexts: list[Any], actions: Actions) -> Awaitable[Decision | ActionDecision]:
        return loop.adecide(contexts[0], actions, **options)

    try:
        decision = await with_any_dates(loop, [body.context], body.actions, call)
    except ArmletError as error:
        rows = [("context", loop.reader, body.context), *action_rows(loop, body.actions)]
        raise refused_decision(loop, rows, error, _fields(options, body.actions, loop)) from error
    wants = await _with_later_labels(service, loop, wants, [decision])
    return Response(_encode(_decision_body(decision, options.get("event"), wants)))


class _Wants(NamedTuple):
    """What an answer says of a decision besides its arm."""

    propensity: bool  # the key may see it
    dial: bool  # the unit, epoch and weights
    labels: Sequence[Arm] = ()  # of the probabilities of arms; none if these are not wanted
    actions: Sequence[Arm] | None = None  # whose probabilities are wanted, if a decision has no support


async def _wants(service: Service, request: Request, loop: Loop, options: dict[str, Any], actions: Actions) -> _Wants:
    """Return what the answer says; probabilities of actions are left out of the options, for a large table has many."""
    may_see = request.grant.propensity
    wants = _Wants(may_see, may_see and not options.keys().isdisjoint(("unit", "units", "weights")))
    if "probabilities" not in options:
        return wants
    if not may_see:
        raise Problem(FORBIDDEN, "the key was made without propensities", field="probabilities")
    if actions is None:
        return wants._replace(labels=await _labels(service, loop))
    del options["probabilities"]  # the support of a decision says those that are not 0
    return wants._replace(actions=options.get("eligible") or (tuple(actions) if isinstance(actions, dict) else ()))


def _options_of(body: msgspec.Struct) -> dict[str, Any]:
    """Return the options that came with a body."""
    fields = msgspec.structs.asdict(body)
    return {name: value for name, value in fields.items() if value is not None and name in OPTIONS}


def _fields(options: Mapping[str, object], actions: Actions, loop: Loop) -> dict[str, str]:
    """Return where the options of a request are; an error that names none is one of labels, of the first of these."""
    names = sorted(options.keys() - {"event", "events", "probabilities"}, key=lambda name: (name != "eligible", name))
    has_actions = actions is not None or loop.action_reader is not None  # such a loop is never without them
    return {name: name for name in (*names, *(("actions",) if has_actions else ()))}


def action_rows(loop: Loop, actions: Actions) -> Iterator[tuple[str, Reader, Any]]:
    """Return rows of actions that came with a request: their fields, what reads them, and as they were sent."""
    reader, rows = loop.action_reader, actions.items() if isinstance(actions, dict) else ()
    return ((f"actions.{label}", reader, row) for label, row in rows if reader is not None)


async def decide_many(service: Service, request: Request) -> Response:
    """Choose for many contexts in one transaction, all or none."""
    body = decode(_decide_many, await request.body(service.limits.batch_body), request)
    if len(body.items) > service.limits.batch:
        raise Problem(INVALID, f"give {service.limits.batch:,} at most", field="items")
    loop = await service.loop(request.parts["name"])
    own = [_options_of(item) for item in body.items]
    has = {name for each in own for name in each}
    columns = {plural: [each.get(name) for each in own] for plural, name in PLURALS.items() if name in has}
    options = {**_options_of(body), **columns}
    wants = await _wants(service, request, loop, options, body.actions)
    contexts: list[Any] = [item.context for item in body.items]

    def call(contexts: list[Any], actions: Actions) -> Awaitable[list[Decision] | list[ActionDecision]]:
        return loop.adecide_many(contexts, actions, **options)

    try:
        decisions = await with_any_dates(loop, contexts, body.actions, call)
    except ArmletError as error:
        rows = [(f"items[{at}].context", loop.reader, context) for at, context in enumerate(contexts)]
        fields = _fields(options, body.actions, loop) | _places(own)
        raise refused_decision(loop, [*rows, *action_rows(loop, body.actions)], error, fields) from error
    wants = await _with_later_labels(service, loop, wants, decisions)
    events = options.get("events") or [None] * len(decisions)
    made: list[Decision | ActionDecision] = [*decisions]
    answers = [_decision_body(*pair, wants) for pair in zip(made, events, strict=True)]
    return Response(_encode(DecidedMany(answers)))


def _places(own: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """Return where the first of each option is that items have for themselves, or the first that lacks one."""
    places: dict[str, str] = {}
    for plural, name in PLURALS.items():
        is_complete = OWN[name].option.complete
        at = next((at for at, options in enumerate(own) if (name in options) is not is_complete), None)
        if at is not None:
            places |= dict.fromkeys((plural,) if is_complete else (name, plural), f"items[{at}].{name}")
    return places


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


def _decision_body(decision: Decision | ActionDecision, event: str | None, wants: _Wants) -> Decided:
    name = decision.id if event is None else event
    if not wants.propensity:
        return Decided(name, decision.arm)
    answer = Decided(name, decision.arm, decision.propensity, decision.explored)
    if wants.labels and decision.probabilities is not None:
        shares = zip(wants.labels, decision.probabilities.tolist(), strict=False)
        answer.probabilities = [Probability(*share) for share in shares]
    if isinstance(decision, ActionDecision):
        if wants.actions is not None:
            _add_support(answer, decision, wants.actions)
    elif wants.dial:
        _add_dial(answer, decision)
    return answer


def _add_support(answer: Decided, decision: ActionDecision, actions: Iterable[Arm]) -> None:
    """Add the probability of every action that had one; of a prepared table, not if all of it had the same."""
    chances = dict.fromkeys(actions, decision.propensity) if decision.support is None else decision.support
    if chances:
        answer.probabilities = [Probability(*share) for share in chances.items()]


def _add_dial(answer: Decided, decision: Decision) -> None:
    """Add what only decisions for a unit, or with weights, have."""
    if decision.unit is not None and decision.epoch is not None:
        answer.unit, answer.epoch = decision.unit, decision.epoch
    if decision.weights is not None:
        answer.weights = decision.weights


async def _labels(service: Service, loop: Loop) -> Sequence[Arm]:
    """Return the arms in the order of probabilities, before anything is decided and kept; of a loop of actions none."""
    if loop.action_reader is not None:
        return ()
    if loop not in service.arms:
        service.arms[loop] = tuple((await service.ask(loop.model)).arms)
    return service.arms[loop]


async def _with_later_labels(
    service: Service, loop: Loop, wants: _Wants, decisions: Iterable[Decision | ActionDecision]
) -> _Wants:
    """Read the arms again if some were added since they were asked for; they are added at the end, and never go."""
    if not wants.labels:
        return wants
    most = max((len(each.probabilities) for each in decisions if each.probabilities is not None), default=0)
    if len(wants.labels) >= most:
        return wants
    try:
        service.arms[loop] = tuple((await service.ask(loop.model)).arms)
    except Problem as problem:
        raise Problem(OUTCOME_UNKNOWN, "it was decided; repeat it with the same event") from problem
    return wants._replace(labels=service.arms[loop])


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


async def activate(service: Service, request: Request) -> Response:
    """Let a deferred decision count from now on: it was shown."""
    body = decode(_activate, await request.body(service.limits.body), request)
    loop = await service.loop(request.parts["name"])
    try:
        return json_response(Activated(await loop.aactivate(body.event)))
    except ArmletError as error:
        raise refusal(error, field="event") from error


# ---- rewards


async def rewards(service: Service, request: Request) -> Response:
    """Record rewards of any loops; each has its own answer."""
    body = decode(_rewards, await request.body(service.limits.batch_body), request)
    items = body.items
    if len(items) > service.limits.batch:
        raise Problem(INVALID, f"give {service.limits.batch:,} at most", field="items")
    refused = await _refused_loops(service, request, {item.loop for item in items})
    if len(items) == 1 and not refused:
        answers = [await _reward(service.loops[items[0].loop], items[0])]
    else:
        answers = await _reward_many(service, [item for item in items if item.loop not in refused])
    # what the store could not do, rather than would not
    failures = [each for each in answers if isinstance(each, StoreError) and not isinstance(each, GONE)]
    if len(failures) == len(items):
        raise refusal(max(failures, key=lambda each: isinstance(each, UncertainError)))  # one may be recorded
    rest = iter(answers)
    judged = [refused[item.loop] if item.loop in refused else _judged(service, item, next(rest)) for item in items]
    return Response(_encode(RewardsJudged(judged)))


async def bill(service: Service, request: Request) -> Response:
    """Count the cost of a decision in the budget, and learn nothing from it; 0 releases money that is kept back."""
    body = decode(_bill, await request.body(service.limits.body), request)
    loop = await service.loop(request.parts["name"])
    return Response(_encode(Billed(await service.ask(loop.bill, body.event, body.cost))))


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
        report: dict[str, Any] = {name: value for name, value in msgspec.structs.asdict(item).items() if name in REPORT}
        return await loop.areward(item.event, item.value, **report)
    except ArmletError as error:
        return error


async def _reward_many(service: Service, items: list[RewardItem]) -> list[Status | Exception]:
    try:
        return await service.store.areward_many([msgspec.structs.asdict(item) for item in items])
    except StoreError as error:
        return [error] * len(items)


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
