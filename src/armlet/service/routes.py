"""All routes of the service, and those that are about the server itself."""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec

from armlet.service import actions, admin, loops
from armlet.service.app import Service
from armlet.service.decisions import bill, decide, decide_many, rewards
from armlet.service.http import NO_SNIFF, NO_STORE, Request, Response, Route, json_response
from armlet.service.openapi import describe
from armlet.service.problems import CONFLICT, FORBIDDEN, INVALID, OUTCOME_UNKNOWN, OVER_BUDGET, UNAVAILABLE, Problem
from armlet.service.schemas import (
    Activate,
    Activated,
    Bill,
    Billed,
    ChangeArm,
    ChangeLoop,
    Decide,
    Decided,
    DecidedMany,
    DecideMany,
    Done,
    Forget,
    Forgotten,
    Health,
    LoopDetails,
    LoopName,
    Loops,
    MakeLoop,
    Prepare,
    Promote,
    Promoted,
    Prune,
    Pruned,
    Rewards,
    RewardsJudged,
    State,
)
from armlet.stores import Stats
from armlet.stores.stats import Metric, Sample, exposed

PROMETHEUS: Final = "text/plain; version=0.0.4"


async def healthz(_: Service, __: Request) -> Response:
    """Say that the process answers."""
    return json_response(State("ok"))


async def readyz(service: Service, _: Request) -> Response:
    """Say whether requests should be sent here: all loops are open, and the server is not about to stop."""
    if service.phase != "ready":
        raise Problem(UNAVAILABLE, f"the server is {service.phase}")
    return json_response(State("ready"))


async def metrics(service: Service, request: Request) -> Response:
    """Return what Prometheus scrapes: all loops, the store and requests. It takes a key that may read all loops."""
    if not request.grant.allows("read", None):
        raise Problem(FORBIDDEN, "the key may not read all loops")
    text = await service.ask(service.store.metrics)
    body = (text + _requests(service) + _features(service)).encode()
    return Response(body, headers=((b"content-type", PROMETHEUS.encode()), NO_STORE, NO_SNIFF))


def _requests(service: Service) -> str:
    lines = [
        "# HELP armlet_http_requests_total Requests that were answered.",
        "# TYPE armlet_http_requests_total counter",
    ]
    for (method, path, status), n in sorted(service.answers.items()):
        lines.append(f'armlet_http_requests_total{{method="{method}",route="{path}",status="{status}"}} {n}')
    return "\n".join(lines) + "\n"


def _features(service: Service) -> str:
    found = [
        Sample({"loop": name, "of": side, "what": fault}, n)
        for name, counts in sorted(service.features.items())
        for (side, fault), n in sorted(counts.totals.items())
    ]
    description = "Features sent but not read by a loop (unknown), or read but not sent (missing)."
    return exposed(Metric("armlet_personalizer_features_total", "counter", description, found)) if found else ""


async def openapi(_: Service, __: Request) -> Response:
    """Return the OpenAPI description of this server."""
    return Response(_described())


@cache
def _described() -> bytes:
    return msgspec.json.encode(describe(ROUTES))


ROUTES: Final = (
    Route(
        "POST",
        "/v1/loops/{name}/decide",
        "decide",
        decide,
        Decide,
        Decided,
        refuses=(CONFLICT, OVER_BUDGET, OUTCOME_UNKNOWN),
    ),
    Route(
        "POST",
        "/v1/loops/{name}/decide/batch",
        "decide",
        decide_many,
        DecideMany,
        DecidedMany,
        refuses=(CONFLICT, OVER_BUDGET, OUTCOME_UNKNOWN),
    ),
    Route(
        "POST",
        "/v1/loops/{name}/activate",
        "decide",
        actions.activate,
        Activate,
        Activated,
        refuses=(CONFLICT, OUTCOME_UNKNOWN),
    ),
    Route("POST", "/v1/rewards", "reward", rewards, Rewards, RewardsJudged, refuses=(OUTCOME_UNKNOWN,)),
    Route("POST", "/v1/loops/{name}/bill", "reward", bill, Bill, Billed, refuses=(OUTCOME_UNKNOWN,)),
    Route("GET", "/v1/loops", "read", loops.names, returns=Loops),
    Route("POST", "/v1/loops", "admin", admin.make_loop, MakeLoop, LoopName, 201, refuses=(CONFLICT,)),
    Route("GET", "/v1/loops/{name}", "read", loops.details, returns=LoopDetails),
    Route("DELETE", "/v1/loops/{name}", "admin", admin.delete_loop, returns=Done, refuses=(OUTCOME_UNKNOWN,)),
    Route("GET", "/v1/loops/{name}/stats", "read", loops.stats, returns=Stats),
    Route("GET", "/v1/loops/{name}/health", "read", loops.health, returns=Health),
    Route("GET", "/v1/loops/{name}/log", "admin", loops.log, returns=loops.NDJSON),
    Route("GET", "/v1/loops/{name}/model", "admin", loops.model, returns=loops.BYTES),
    Route("POST", "/v1/loops/{name}/change", "admin", admin.change, ChangeLoop, Done, refuses=(CONFLICT,)),
    Route("POST", "/v1/loops/{name}/arms", "admin", admin.change_arm, ChangeArm, Done, refuses=(CONFLICT,)),
    Route("PUT", "/v1/loops/{name}/actions/{table}", "admin", actions.prepare, Prepare, Done, refuses=(CONFLICT,)),
    Route(
        "DELETE",
        "/v1/loops/{name}/actions/{table}",
        "admin",
        actions.remove_table,
        returns=Done,
        refuses=(INVALID, OUTCOME_UNKNOWN),
    ),
    Route("POST", "/v1/loops/{name}/forget", "admin", admin.forget, Forget, Forgotten, refuses=(OUTCOME_UNKNOWN,)),
    Route("POST", "/v1/loops/{name}/freeze", "admin", admin.freeze, returns=Done, refuses=(CONFLICT,)),
    Route("POST", "/v1/loops/{name}/thaw", "admin", admin.thaw, returns=Done, refuses=(CONFLICT,)),
    Route("POST", "/v1/loops/{name}/promote", "admin", admin.promote, Promote, Promoted, refuses=(CONFLICT,)),
    Route("POST", "/v1/prune", "admin", admin.prune, Prune, Pruned, refuses=(OUTCOME_UNKNOWN,)),
    Route("GET", "/healthz", None, healthz, returns=State, is_always_served=True),
    Route("GET", "/readyz", None, readyz, returns=State, refuses=(UNAVAILABLE,), is_always_served=True),
    Route("GET", "/metrics", "read", metrics, returns=PROMETHEUS),
    Route("GET", "/openapi.json", None, openapi, returns=dict, is_always_served=True),
)
"""Of the API; pages have their own."""
