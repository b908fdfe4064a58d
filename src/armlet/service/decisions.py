"""The routes that carry the traffic: decisions, batches of them, and rewards.

Requests are decoded into Structs once, and wait for the store without a thread of their own: those that wait at the
same time share a commit. Every answer is durable before it is sent.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from armlet.errors import ArmletError, EventError, StoreError, UncertainError
from armlet.kernel import Decision
from armlet.service.app import Service
from armlet.service.contexts import context_problem
from armlet.service.http import Request, Response
from armlet.service.problems import FORBIDDEN, INVALID, MALFORMED, UNSUPPORTED, Problem, refusal
from armlet.service.schemas import (
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
from armlet.stores import Loop
from armlet.types import Arm

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_decide = msgspec.json.Decoder(Decide)
_decide_many = msgspec.json.Decoder(DecideMany)
_rewards = msgspec.json.Decoder(Rewards)

_PLACE = re.compile(r"(?s)(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?\Z")
_JUDGED: Final = {status: Judged(status) for status in ("forbidden", "no_loop", "unavailable", "outcome_unknown")}


def decode(decoder: msgspec.json.Decoder[T], body: bytes, request: Request) -> T:
    """Return a body as what a route takes, or refuse it."""
    media_type = request.headers.get(b"content-type", b"")
    if media_type != b"application/json" and media_type.partition(b";")[0].strip().lower() != b"application/json":
        raise Problem(UNSUPPORTED, "send Content-Type: application/json")
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(MALFORMED, f"the body is not JSON: {error}") from None


def _invalid(text: str) -> Problem:
    found = _PLACE.match(text)
    what, where = (text, None) if found is None else found.groups()
    return Problem(INVALID, what, field=where)


# ---- decisions


async def decide(service: Service, request: Request) -> Response:
    """Choose an arm for a context."""
    asked = decode(_decide, await request.body(service.limits.body), request)
    name = request.parts["name"]
    loop = service.loops.get(name) or await service.loop(name)
    if asked.probabilities is not None:
        _check_propensity(request)
    try:
        decision = await loop.adecide(
            asked.context, event=asked.event, eligible=asked.eligible, probabilities=asked.probabilities
        )
    except ArmletError as error:
        raise _refused(loop, [asked.context], error, asked.eligible) from error
    labels = () if asked.probabilities is None else await _labels(service, loop)
    return Response(_encode(_told(decision, asked.event, labels, has_propensity=request.grant.propensity)))


async def decide_many(service: Service, request: Request) -> Response:
    """Choose arms for many contexts in one transaction, all or none."""
    asked = decode(_decide_many, await request.body(service.limits.batch_body), request)
    if len(asked.items) > service.limits.batch:
        raise Problem(INVALID, f"give {service.limits.batch:,} at most", field="items")
    loop = await service.loop(request.parts["name"])
    if asked.probabilities is not None:
        _check_propensity(request)
    events = _events([item.event for item in asked.items])
    contexts: list[Any] = [item.context for item in asked.items]
    try:
        decisions = await service.run(
            loop.decide_many, contexts, events=events, eligible=asked.eligible, probabilities=asked.probabilities
        )
    except ArmletError as error:
        raise _refused(loop, contexts, error, asked.eligible, batch=True) from error
    labels = () if asked.probabilities is None else await _labels(service, loop)
    named = [None] * len(decisions) if events is None else events
    has_propensity = request.grant.propensity
    told = [_told(*pair, labels, has_propensity=has_propensity) for pair in zip(decisions, named, strict=True)]
    return Response(_encode(DecidedMany(told)))


def _events(names: Sequence[str | None]) -> list[str] | None:
    given = [name for name in names if name is not None]
    if given and len(given) < len(names):
        at = names.index(None)
        raise Problem(INVALID, "other items have events; give one to all items, or to none", field=f"items[{at}].event")
    return given or None


def _check_propensity(request: Request) -> None:
    if not request.grant.propensity:
        raise Problem(FORBIDDEN, "the key was made without propensities", field="probabilities")


def _told(decision: Decision, event: str | None, labels: Sequence[Arm], *, has_propensity: bool) -> Decided:
    name = decision.id if event is None else event
    if not has_propensity:
        return Decided(name, decision.arm)
    if decision.probabilities is None or not labels:
        return Decided(name, decision.arm, decision.propensity, decision.explored)
    shown = [Probability(*pair) for pair in zip(labels, decision.probabilities.tolist(), strict=False)]
    return Decided(name, decision.arm, decision.propensity, decision.explored, shown)


async def _labels(service: Service, loop: Loop) -> Sequence[Arm]:
    """Return the arms in the order of probabilities; arms are added at the end, and never go."""
    return (await service.run(loop.model)).arms


def _refused(
    loop: Loop, contexts: Sequence[Any], error: ArmletError, eligible: Sequence[Arm] | None, *, batch: bool = False
) -> Problem:
    """Return why a decision was refused; what is wrong with a context is said without its values."""
    if isinstance(error, (StoreError, EventError)):
        return refusal(error)
    for at, context in enumerate(contexts):
        problem = context_problem(loop.reader, context, f"items[{at}].context" if batch else "context")
        if problem is not None:
            return problem
    if eligible is not None:
        return refusal(error, field="eligible")
    return Problem(INVALID, "the loop refuses this event; choose a name that is not an id of a decision", field="event")


# ---- rewards


async def rewards(service: Service, request: Request) -> Response:
    """Record rewards; those of a loop in one transaction, and each has its own answer."""
    told = decode(_rewards, await request.body(service.limits.batch_body), request)
    if len(told.items) > service.limits.batch:
        raise Problem(INVALID, f"give {service.limits.batch:,} at most", field="items")
    places: dict[str, list[int]] = {}
    for at, item in enumerate(told.items):
        places.setdefault(item.loop, []).append(at)
    judged: list[Judged] = [_JUDGED["forbidden"]] * len(told.items)
    for name, found in places.items():
        if request.grant.allows("reward", name):
            answers = await _reward_loop(service, name, [told.items[at] for at in found], is_alone=len(places) == 1)
            for at, answer in zip(found, answers, strict=True):
                judged[at] = answer
    return Response(_encode(RewardsJudged(judged)))


async def _reward_loop(service: Service, name: str, items: list[RewardItem], *, is_alone: bool) -> list[Judged]:
    """Record the rewards of one loop. Where no other loop is asked, the store's failure is the answer to all."""
    try:
        loop = service.loops.get(name) or await service.loop(name)
        if len(items) == 1:
            return [await _reward(loop, items[0])]
        statuses = await service.run(loop.reward_many, [_arguments(item) for item in items])
        return [Judged(status) for status in statuses]
    except Problem as problem:
        if problem.status != 404:
            raise
        return [_JUDGED["no_loop"]] * len(items)
    except StoreError as error:
        if is_alone:
            raise refusal(error) from error
        refusal(error)  # logs it
        status = "outcome_unknown" if isinstance(error, UncertainError) else "unavailable"
        return [_JUDGED[status]] * len(items)
    except ArmletError:  # one of them was refused, and nothing of all was kept
        return list(await asyncio.gather(*(_reward(loop, item) for item in items)))


async def _reward(loop: Loop, item: RewardItem) -> Judged:
    try:
        status = await loop.areward(item.event, item.value, name=item.name, rank=item.rank, played=item.played)
    except StoreError:
        raise
    except ArmletError as error:
        return Judged("refused", str(error))
    return Judged(status)


def _arguments(item: RewardItem) -> Mapping[str, Any]:
    return {
        "event": item.event,
        "value": item.value,
        "name": item.name,
        "rank": item.rank,
        "played": item.played,
    }
