"""All routes of the service."""

from __future__ import annotations

from typing import Final

from armlet.service.app import Service
from armlet.service.decisions import decide, decide_many, rewards
from armlet.service.http import Request, Response, Route, json_response
from armlet.service.problems import UNAVAILABLE, Problem


async def healthz(_: Service, __: Request) -> Response:
    """Say that the process answers."""
    return json_response({"status": "ok"})


async def readyz(service: Service, _: Request) -> Response:
    """Say whether requests are served: all loops are open and due windows are closed."""
    if service.phase != "ready":
        raise Problem(UNAVAILABLE, f"the server is {service.phase}")
    return json_response({"status": "ready"})


ROUTES: Final = (
    Route("POST", "/v1/loops/{name}/decide", "decide", decide),
    Route("POST", "/v1/loops/{name}/decide/batch", "decide", decide_many),
    Route("POST", "/v1/rewards", "reward", rewards),
    Route("GET", "/healthz", None, healthz, is_always_served=True),
    Route("GET", "/readyz", None, readyz, is_always_served=True),
)
