"""The routes of actions with features, besides decisions: tables that have a name, and what was deferred."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, cast

import msgspec

from armlet.errors import ArmletError, UnknownNameError
from armlet.service.app import Service
from armlet.service.decisions import Actions, action_rows, refused_decision, with_any_dates
from armlet.service.http import Request, Response, decode, json_response
from armlet.service.problems import NOT_FOUND, Problem, refusal
from armlet.service.schemas import Activate, Activated, Done, Prepare

_prepare = msgspec.json.Decoder(Prepare)
_activate = msgspec.json.Decoder(Activate)


async def prepare(service: Service, request: Request) -> Response:
    """Give actions a name, by which decisions choose among them; those that had it before have it no longer."""
    asked = decode(_prepare, await request.body(service.limits.batch_body), request)
    loop, table = await service.loop(request.parts["name"]), request.parts["table"]

    def ask(_: list[Any], actions: Actions) -> Awaitable[object]:
        return service.run(loop.prepare, table, cast("Any", actions))

    try:
        await with_any_dates(loop, [], asked.actions, ask)
    except ArmletError as error:
        fields = {"actions": "actions", "name": "table"}
        raise await service.run(refused_decision, loop, action_rows(loop, asked.actions), error, fields) from error
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


async def activate(service: Service, request: Request) -> Response:
    """Let a deferred decision count from now on: it was shown."""
    asked = decode(_activate, await request.body(service.limits.body), request)
    loop = await service.loop(request.parts["name"])
    try:
        return json_response(Activated(await loop.aactivate(asked.event)))
    except ArmletError as error:
        raise refusal(error, field="event") from error
