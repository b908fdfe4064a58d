"""The routes that look at loops and change nothing. All of them wait for the store in a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from armlet.errors import StoreError
from armlet.service.app import Service
from armlet.service.http import NO_SNIFF, NO_STORE, Request, Response, json_response
from armlet.service.problems import refusal
from armlet.service.schemas import Health, LoopName, Loops

EVENTS: Final = 500  # of a log that are read at once
NDJSON: Final = "application/x-ndjson"
BYTES: Final = "application/octet-stream"


async def names(service: Service, request: Request) -> Response:
    """List the loops that a key may read."""
    found = await service.ask(lambda: service.store.loops)
    return json_response(Loops([LoopName(name) for name in found if request.grant.allows("read", name)]))


async def details(service: Service, request: Request) -> Response:
    """Return all there is to see of a loop: what it gains, explores and lacks, its arms and last decisions."""
    loop = await service.loop(request.parts["name"])
    found = (await service.ask(loop.details)).to_dict()
    if not request.grant.allows("admin", loop.name):
        found["last"] = [{**each, "event": None, "context": None} for each in found["last"]]
    return json_response(found)


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


async def _pieces(service: Service, first: bytes, events: Iterator[Any]) -> AsyncIterator[bytes]:
    """Read on only when the client has taken what was read."""
    piece = first
    while piece:
        yield piece
        piece = await service.ask(_lines, events)


def _lines(events: Iterator[Any]) -> bytes:
    try:
        return msgspec.json.Encoder().encode_lines(list(islice(events, EVENTS)))
    except StoreError as error:
        raise refusal(error) from error
