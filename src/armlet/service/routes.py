"""All routes of the API, those about the server itself, and OpenAPI 3.1 of all.

The description is made from the Structs of the routes, so that it cannot differ from what is decoded and answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from armlet.inputs.columns import LONGEST
from armlet.service import loops
from armlet.service.decisions import activate, bill, decide, decide_many, rewards
from armlet.service.http import NO_SNIFF, NO_STORE, Request, Response, Route, json_response
from armlet.service.problems import (
    CONFLICT,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    MALFORMED,
    MEDIA_TYPE,
    NOT_FOUND,
    OUTCOME_UNKNOWN,
    OVER_BUDGET,
    TOO_LARGE,
    TOO_SLOW,
    UNAUTHORIZED,
    UNAVAILABLE,
    UNSUPPORTED,
    Kind,
    Problem,
    ProblemDetails,
)
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
from armlet.stores.stats import Metric, Sample, Stats, exposed
from armlet.types import __version__

if TYPE_CHECKING:
    from armlet.service.app import Service

PROMETHEUS: Final = "text/plain; version=0.0.4"
REF: Final = "#/components/schemas/{name}"
BODY: Final = (MALFORMED, TOO_SLOW, TOO_LARGE, UNSUPPORTED, INVALID)


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
    samples = [
        Sample({"loop": name, "of": side, "what": fault}, n)
        for name, counts in sorted(service.features.items())
        for (side, fault), n in sorted(counts.totals.items())
    ]
    description = "Features sent but not read by a loop (unknown), or read but not sent (missing)."
    return exposed(Metric("armlet_personalizer_features_total", "counter", description, samples)) if samples else ""


# ---- OpenAPI


async def openapi(_: Service, __: Request) -> Response:
    """Return the OpenAPI description of this server."""
    return Response(_described())


@cache
def _described() -> bytes:
    return msgspec.json.encode(describe(ROUTES))


def describe(routes: Iterable[Route]) -> Mapping[str, object]:
    """Return the description of an API.

    Parameters
    ----------
    routes
        Those that return nothing that can be described, such as pages, are left out.
    """
    listed = [route for route in routes if route.returns is not None]
    structs = (each for route in listed for each in (route.takes, route.returns) if isinstance(each, type))
    types: list[type] = [*dict.fromkeys(structs), ProblemDetails]
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, object]] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Armlet", "version": __version__, "description": "Decisions that learn, over HTTP."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "A key of the server."}},
        },
    }


def _operation(route: Route, schemas: Mapping[type, object]) -> dict[str, object]:
    operation: dict[str, object] = {
        "operationId": f"{route.method.lower()}{route.path.replace('/', '_').replace('{', '').replace('}', '')}",
        "summary": (route.handler.__doc__ or "").partition("\n")[0],
        "responses": _responses(route, schemas),
    }
    if names := re.findall(r"\{(\w+)\}", route.path):
        operation["parameters"] = [_parameter(name) for name in names]
    if route.takes is not None:
        content = {"application/json": {"schema": schemas[route.takes]}}
        operation["requestBody"] = {"required": True, "content": content}
    if route.scope is not None:
        operation["security"] = [{"key": []}]
        operation["description"] = f"Takes a key with the scope `{route.scope}`."
    return operation


def _parameter(name: str) -> dict[str, object]:
    schema = {"type": "string", "minLength": 1, "maxLength": LONGEST}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _responses(route: Route, schemas: Mapping[type, object]) -> dict[str, object]:
    returns = route.returns
    if isinstance(returns, str):
        media_type = returns.partition(";")[0]
        content: dict[str, object] = {media_type: {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": schemas[returns] if returns is not None else {}}}
    responses: dict[str, object] = {str(route.status): {"description": "Done.", "content": content}}
    by_status: dict[int, list[str]] = {}
    for kind in problems_of(route):
        by_status.setdefault(kind.status, []).append(f"{kind.title}.")
    problem = {MEDIA_TYPE.decode(): {"schema": schemas[ProblemDetails]}}
    for status, titles in sorted(by_status.items()):
        responses[str(status)] = {"description": " Or: ".join(titles), "content": problem}
    return responses


def problems_of(route: Route) -> list[Kind]:
    """Return all kinds of problems that a route may answer with."""
    kinds = [INTERNAL, *route.refuses]
    kinds += () if route.scope is None else (UNAUTHORIZED, FORBIDDEN)
    kinds += () if route.takes is None else BODY
    kinds += () if "{" not in route.path else (NOT_FOUND,)
    kinds += () if route.is_always_served else (UNAVAILABLE,)
    return list(dict.fromkeys(kinds))


# ---- the routes

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
        activate,
        Activate,
        Activated,
        refuses=(CONFLICT, OUTCOME_UNKNOWN),
    ),
    Route("POST", "/v1/rewards", "reward", rewards, Rewards, RewardsJudged, refuses=(OUTCOME_UNKNOWN,)),
    Route("POST", "/v1/loops/{name}/bill", "reward", bill, Bill, Billed, refuses=(OUTCOME_UNKNOWN,)),
    Route("GET", "/v1/loops", "read", loops.names, returns=Loops),
    Route("POST", "/v1/loops", "admin", loops.make_loop, MakeLoop, LoopName, 201, refuses=(CONFLICT,)),
    Route("GET", "/v1/loops/{name}", "read", loops.details, returns=LoopDetails),
    Route("DELETE", "/v1/loops/{name}", "admin", loops.delete_loop, returns=Done, refuses=(OUTCOME_UNKNOWN,)),
    Route("GET", "/v1/loops/{name}/stats", "read", loops.stats, returns=Stats),
    Route("GET", "/v1/loops/{name}/health", "read", loops.health, returns=Health),
    Route("GET", "/v1/loops/{name}/log", "admin", loops.log, returns=loops.NDJSON),
    Route("GET", "/v1/loops/{name}/model", "admin", loops.model, returns=loops.BYTES),
    Route("POST", "/v1/loops/{name}/change", "admin", loops.change, ChangeLoop, Done, refuses=(CONFLICT,)),
    Route("POST", "/v1/loops/{name}/arms", "admin", loops.change_arm, ChangeArm, Done, refuses=(CONFLICT,)),
    Route("PUT", "/v1/loops/{name}/actions/{table}", "admin", loops.prepare, Prepare, Done, refuses=(CONFLICT,)),
    Route(
        "DELETE",
        "/v1/loops/{name}/actions/{table}",
        "admin",
        loops.remove_table,
        returns=Done,
        refuses=(INVALID, OUTCOME_UNKNOWN),
    ),
    Route("POST", "/v1/loops/{name}/forget", "admin", loops.forget, Forget, Forgotten, refuses=(OUTCOME_UNKNOWN,)),
    Route("POST", "/v1/loops/{name}/freeze", "admin", loops.freeze, returns=Done, refuses=(CONFLICT,)),
    Route("POST", "/v1/loops/{name}/thaw", "admin", loops.thaw, returns=Done, refuses=(CONFLICT,)),
    Route("POST", "/v1/loops/{name}/promote", "admin", loops.promote, Promote, Promoted, refuses=(CONFLICT,)),
    Route("POST", "/v1/prune", "admin", loops.prune, Prune, Pruned, refuses=(OUTCOME_UNKNOWN,)),
    Route("GET", "/healthz", None, healthz, returns=State, is_always_served=True),
    Route("GET", "/readyz", None, readyz, returns=State, refuses=(UNAVAILABLE,), is_always_served=True),
    Route("GET", "/metrics", "read", metrics, returns=PROMETHEUS),
    Route("GET", "/openapi.json", None, openapi, returns=dict, is_always_served=True),
)
"""Of the API; pages have their own."""
