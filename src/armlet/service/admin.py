"""The routes that change loops: each is durable when it is answered, and a refused one has changed nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import msgspec
from msgspec import Struct

from armlet.errors import ArmletError, EventError, StoreError, refusing
from armlet.inputs.budget import Budget
from armlet.service.app import Service, no_loop
from armlet.service.config import LoopConfig, read_plain
from armlet.service.http import JSON, NO_SNIFF, NO_STORE, Request, Response, decode, json_response
from armlet.service.problems import CONFLICT, FORBIDDEN, INVALID, OUTCOME_UNKNOWN, UNAVAILABLE, Problem, refusal
from armlet.service.schemas import (
    ChangeArm,
    ChangeLoop,
    Done,
    Forget,
    Forgotten,
    LoopName,
    MakeLoop,
    Promote,
    Promoted,
    Prune,
    Pruned,
    said_in,
)
from armlet.stores import Loop, LoopSpec, Store
from armlet.stores.spec import LoopChange
from armlet.types import Arm

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_NUMBERS: Final = 2**26  # of a model: half a gigabyte

P = ParamSpec("P")
T = TypeVar("T")

_make = msgspec.json.Decoder(MakeLoop)
_change = msgspec.json.Decoder(ChangeLoop)
_arm = msgspec.json.Decoder(ChangeArm)
_forget = msgspec.json.Decoder(Forget)
_prune = msgspec.json.Decoder(Prune)
_promote = msgspec.json.Decoder(Promote)


@contextmanager
def _refusing(names: tuple[str, ...]) -> Iterator[None]:
    """Raise errors of the library as problems that name the field with which their text begins, if one does."""
    try:
        yield
    except (StoreError, EventError) as error:
        raise refusal(error) from error
    except ArmletError as error:
        found = re.match(r"\w+", str(error))
        raise refusal(error, field=found[0] if found is not None and found[0] in names else None) from error


# ---- making and deleting


async def make_loop(service: Service, request: Request) -> Response:
    """Make a loop."""
    body = decode(_make, await request.body(service.limits.body), request)
    if not request.grant.allows("admin", body.name):
        raise Problem(FORBIDDEN, f"the key lacks the scope 'admin' for loop {body.name!r}", field="name")
    said = said_in(body, LoopSpec)
    columns = len(said.get("features", ())) + sum(map(len, said.get("categories", {}).values()))
    _check_size(len(said.get("arms", ())), said.get("dim") or columns, len(said.get("outcomes", ())))
    service.loops[body.name] = await service.run(_made, service.store, said)
    return Response(msgspec.json.encode(LoopName(body.name)), 201, (JSON, NO_STORE, NO_SNIFF))


def _made(store: Store, said: dict[str, Any]) -> Loop:
    if said["name"] in store.loops:
        raise Problem(CONFLICT, f"there is a loop {said['name']!r} already", field="name")
    with _refusing(MakeLoop.__struct_fields__):
        with refusing():
            spec = LoopConfig(**_with_budget(said)).spec
        return store.open(spec)


def _with_budget(said: dict[str, Any]) -> dict[str, Any]:
    """Read a budget, whose errors name its own fields."""
    if said.get("budget") is None:
        return said
    try:
        return {**said, "budget": Budget(**said["budget"])}
    except ArmletError as error:
        raise refusal(error, field="budget") from error


def _check_size(arms: int, dim: int, outcomes: int) -> None:
    numbers = arms * (dim**2 + outcomes * dim + outcomes**2)
    if numbers > MOST_NUMBERS:
        of = f"{dim:,} features" + (f" and {outcomes:,} outcomes" if outcomes else "")
        text = f"{arms:,} arms of {of} would need {numbers:,} numbers; {MOST_NUMBERS:,} are the most"
        raise Problem(INVALID, text, field="arms")


async def delete_loop(service: Service, request: Request) -> Response:
    """Delete a loop with all its rows."""
    loop = await service.loop(request.parts["name"])
    if not await _deleting(service, service.store.delete, loop.name):
        raise no_loop(loop.name)
    service.loops.pop(loop.name, None)
    service.features.pop(loop.name, None)
    return json_response(Done())


# ---- changes


async def change(service: Service, request: Request) -> Response:
    """Go on with other terms, all of them or none; what was learned stays."""
    asked = decode(_change, await request.body(service.limits.body), request)
    loop = await service.loop(request.parts["name"])
    is_other = await service.run(_changed, loop, asked)
    return json_response(Done("done" if is_other else "unchanged"))


def _changed(loop: Loop, body: Struct) -> bool:
    said = said_in(body, LoopChange)
    with _refusing(ChangeLoop.__struct_fields__):
        with refusing():
            present = loop.model().arms if loop.action_reader is None and "known" in said else ()
            arms = [*present, *(said.get("arms") or ())]
            options = read_plain(_with_budget(said), dict.fromkeys(arms))
        return loop.change(**options)


async def change_arm(service: Service, request: Request) -> Response:
    """Add an arm, stop playing one, or play one again."""
    asked = decode(_arm, await request.body(service.limits.body), request)
    loop = await service.loop(request.parts["name"])
    calls: dict[str, Callable[[Arm], None]] = {
        "add": partial(loop.add_arm, known=asked.known),
        "retire": loop.retire_arm,
        "restore": loop.restore_arm,
    }
    if asked.known is not None and asked.action != "add":
        raise Problem(INVALID, "it comes with a new arm; change the others with .../change", field="known")
    try:
        await service.run(calls[asked.action], asked.arm)
    except ArmletError as error:
        raise refusal(error, field="known" if str(error).startswith("known") else "arm") from error
    return json_response(Done())


async def forget(service: Service, request: Request) -> Response:
    """Unlearn decisions and delete all about them."""
    asked = decode(_forget, await request.body(service.limits.batch_body), request)
    loop = await service.loop(request.parts["name"])
    return json_response(Forgotten(await _deleting(service, loop.forget_many, asked.events)))


async def prune(service: Service, request: Request) -> Response:
    """Delete old decisions that did not explore, in all loops; it takes a key for all of them, and its time."""
    asked = decode(_prune, await request.body(service.limits.body), request)
    if not request.grant.allows("admin", None):
        raise Problem(FORBIDDEN, "the key is not for all loops")
    return json_response(Pruned(await _deleting(service, service.store.prune, asked.before)))


async def _deleting(service: Service, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Run what deletes piece by piece: where it is broken off, some of it is done, and nobody calls that refused."""
    try:
        return await service.ask(call, *args, **options)
    except Problem as problem:
        if problem.kind is not UNAVAILABLE:
            raise
        raise Problem(OUTCOME_UNKNOWN, "some of it may be deleted; repeat it") from problem


# ---- guards


async def freeze(service: Service, request: Request) -> Response:
    """Let the policy decide from what it knows now; what rewards teach from now on waits for thaw."""
    loop = await service.loop(request.parts["name"])
    await service.ask(loop.freeze)
    return json_response(Done())


async def thaw(service: Service, request: Request) -> Response:
    """Go on with all that was learned while the loop was frozen."""
    loop = await service.loop(request.parts["name"])
    await service.ask(loop.thaw)
    return json_response(Done())


async def promote(service: Service, request: Request) -> Response:
    """Let the shadow play from now on, if it passes the gate; else nothing changes."""
    asked = decode(_promote, await request.body(service.limits.body), request)
    loop = await service.loop(request.parts["name"])
    done = await service.ask(loop.promote, gate=asked.gate, control=asked.control, shadow=asked.shadow)
    return json_response(msgspec.convert(done.to_dict(), Promoted))
