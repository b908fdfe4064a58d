"""The routes about loops: to look at them, make and delete them, change them, guard them, and name tables of actions.

What changes a loop is durable when it is answered, and a refused change has changed nothing. All of them wait for the
store in a thread.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast

import msgspec
from msgspec import Struct

from armlet.errors import ArmletError, EventError, StoreError, UnknownNameError, refusing
from armlet.inputs.budget import Budget
from armlet.service.config import LoopConfig, read_plain
from armlet.service.decisions import Actions, action_rows, refused_decision, with_any_dates
from armlet.service.http import JSON, NO_SNIFF, NO_STORE, Request, Response, decode, json_response
from armlet.service.problems import (
    CONFLICT,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    OUTCOME_UNKNOWN,
    UNAVAILABLE,
    Problem,
    no_loop,
    refusal,
)
from armlet.service.schemas import (
    ChangeArm,
    ChangeLoop,
    Done,
    Forget,
    Forgotten,
    Health,
    LoopName,
    Loops,
    MakeLoop,
    Prepare,
    Promote,
    Promoted,
    Prune,
    Pruned,
    said_in,
)
from armlet.stores.spec import LoopChange, LoopSpec
from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.service.app import Service
    from armlet.stores import Loop, Store

EVENTS: Final = 500  # of a log that are read at once
NDJSON: Final = "application/x-ndjson"
BYTES: Final = "application/octet-stream"
MOST_NUMBERS: Final = 2**26  # of a model: half a gigabyte

P = ParamSpec("P")
T = TypeVar("T")

_make = msgspec.json.Decoder(MakeLoop)
_change = msgspec.json.Decoder(ChangeLoop)
_arm = msgspec.json.Decoder(ChangeArm)
_forget = msgspec.json.Decoder(Forget)
_prune = msgspec.json.Decoder(Prune)
_promote = msgspec.json.Decoder(Promote)
_prepare = msgspec.json.Decoder(Prepare)


# ---- looking


async def names(service: Service, request: Request) -> Response:
    """List the loops that a key may read."""
    names = await service.names()
    return json_response(Loops([LoopName(name) for name in names if request.grant.allows("read", name)]))


async def details(service: Service, request: Request) -> Response:
    """Return all there is to see of a loop: what it gains, explores and lacks, its arms and last decisions."""
    name = request.parts["name"]
    fields = (await service.details(name)).to_dict()
    if not request.grant.allows("admin", name):
        fields["last"] = [{**each, "event": None, "context": None} for each in fields["last"]]
    return json_response(fields)


async def stats(service: Service, request: Request) -> Response:
    """Return counts: decisions, rewards by status, what waits, arms and their means; in constant time."""
    loop = await service.loop(request.parts["name"])
    return json_response(await service.ask(loop.stats))


async def health(service: Service, request: Request) -> Response:
    """Return what is wrong with a loop, in words; in constant time."""
    loop = await service.loop(request.parts["name"])
    return json_response(Health(await service.ask(loop.health)))


async def model(service: Service, request: Request) -> Response:
    """Return the model file of a loop, which `armlet.load` reads. It holds the seed: keep it to yourself."""
    loop = await service.loop(request.parts["name"])
    body = await service.ask(lambda: loop.model().to_bytes())
    name = (b"content-disposition", b'attachment; filename="loop.armlet"')
    return Response(body, headers=((b"content-type", BYTES.encode()), name, NO_STORE, NO_SNIFF))


async def log(service: Service, request: Request) -> Response:
    """Stream the events of a loop, one JSON object a line, as `armlet.Log` has them. They hold contexts."""
    loop = await service.loop(request.parts["name"])
    events = iter(await service.ask(lambda: loop.log))
    first = await service.ask(_lines, events)
    headers = ((b"content-type", NDJSON.encode()), NO_STORE, NO_SNIFF)
    return Response(_pieces(service, first, events), headers=headers)


async def _pieces(service: Service, first: bytes, events: Iterator[object]) -> AsyncIterator[bytes]:
    """Read on only when the client has taken what was read."""
    piece = first
    while piece:
        yield piece
        piece = await service.ask(_lines, events)


def _lines(events: Iterator[object]) -> bytes:
    try:
        return msgspec.json.Encoder().encode_lines(list(islice(events, EVENTS)))
    except StoreError as error:
        raise refusal(error) from error


@contextmanager
def _refusing(names: tuple[str, ...]) -> Iterator[None]:
    """Raise errors of the library as problems that name the field with which their text begins, if one does."""
    try:
        yield
    except (StoreError, EventError) as error:
        raise refusal(error) from error
    except ArmletError as error:
        word = re.match(r"\w+", str(error))
        raise refusal(error, field=word[0] if word is not None and word[0] in names else None) from error


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
    """Change the settings of a loop atomically; what was learned stays."""
    body = decode(_change, await request.body(service.limits.body), request)
    loop = await service.loop(request.parts["name"])
    is_other = await service.run(_changed, loop, body)
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
    body = decode(_arm, await request.body(service.limits.body), request)
    loop = await service.loop(request.parts["name"])
    calls: dict[str, Callable[[Arm], None]] = {
        "add": partial(loop.add_arm, known=body.known),
        "retire": loop.retire_arm,
        "restore": loop.restore_arm,
    }
    if body.known is not None and body.action != "add":
        raise Problem(INVALID, "it comes with a new arm; change the others with .../change", field="known")
    try:
        await service.run(calls[body.action], body.arm)
    except ArmletError as error:
        raise refusal(error, field="known" if str(error).startswith("known") else "arm") from error
    return json_response(Done())


async def forget(service: Service, request: Request) -> Response:
    """Unlearn decisions and delete all about them."""
    body = decode(_forget, await request.body(service.limits.batch_body), request)
    loop = await service.loop(request.parts["name"])
    return json_response(Forgotten(await _deleting(service, loop.forget_many, body.events)))


async def prune(service: Service, request: Request) -> Response:
    """Delete old decisions that did not explore, in all loops; it takes a key for all of them, and its time."""
    body = decode(_prune, await request.body(service.limits.body), request)
    if not request.grant.allows("admin", None):
        raise Problem(FORBIDDEN, "the key is not for all loops")
    return json_response(Pruned(await _deleting(service, service.store.prune, body.before)))


async def _deleting(service: Service, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Run what deletes piece by piece: where it is interrupted, some of it is done, which is not a refusal."""
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
    """Use all that was learned while the loop was frozen."""
    loop = await service.loop(request.parts["name"])
    await service.ask(loop.thaw)
    return json_response(Done())


async def promote(service: Service, request: Request) -> Response:
    """Let the shadow play from now on, if it passes the gate; else nothing changes."""
    body = decode(_promote, await request.body(service.limits.body), request)
    loop = await service.loop(request.parts["name"])
    done = await service.ask(loop.promote, gate=body.gate, control=body.control, shadow=body.shadow)
    return json_response(msgspec.convert(done.to_dict(), Promoted))


# ---- tables of actions


async def prepare(service: Service, request: Request) -> Response:
    """Give actions a name, by which decisions choose among them; those that had it before have it no longer."""
    body = decode(_prepare, await request.body(service.limits.batch_body), request)
    loop, table = await service.loop(request.parts["name"]), request.parts["table"]

    def ask(_: list[Any], actions: Actions) -> Awaitable[object]:
        return service.run(loop.prepare, table, cast("Any", actions))

    try:
        await with_any_dates(loop, [], body.actions, ask)
    except ArmletError as error:
        fields = {"actions": "actions", "name": "table"}
        raise await service.run(refused_decision, loop, action_rows(loop, body.actions), error, fields) from error
    return json_response(Done())


async def remove_table(service: Service, request: Request) -> Response:
    """Take the name of a table away; decisions that were made among its actions are learned all the same."""
    loop = await service.loop(request.parts["name"])
    try:
        await service.run(loop.remove_table, request.parts["table"])
    except UnknownNameError as error:
        raise Problem(NOT_FOUND, str(error), field="table") from error
    except ArmletError as error:
        raise refusal(error, field="table") from error
    return json_response(Done())
