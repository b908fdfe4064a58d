"""OpenAPI 3.1 of the routes: made from their Structs, so that it cannot differ from what is decoded and answered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from armlet.inputs.columns import LONGEST
from armlet.service.http import Route
from armlet.service.problems import (
    FORBIDDEN,
    INTERNAL,
    INVALID,
    MALFORMED,
    MEDIA_TYPE,
    NOT_FOUND,
    TOO_LARGE,
    TOO_SLOW,
    UNAUTHORIZED,
    UNAVAILABLE,
    UNSUPPORTED,
    Kind,
)
from armlet.service.schemas import ProblemDetails
from armlet.types import __version__

REF: Final = "#/components/schemas/{name}"
BODY: Final = (MALFORMED, TOO_SLOW, TOO_LARGE, UNSUPPORTED, INVALID)


def describe(routes: Iterable[Route]) -> Mapping[str, Any]:
    """Return the description of an API.

    Parameters
    ----------
    routes
        Those that return nothing that can be described, such as pages, are left out.
    """
    listed = [route for route in routes if route.returns is not None]
    given = (each for route in listed for each in (route.takes, route.returns) if isinstance(each, type))
    types: list[type[Any]] = [*dict.fromkeys(given), ProblemDetails]
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
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


def _operation(route: Route, schemas: Mapping[type[Any], Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{route.path.replace('/', '_').replace('{', '').replace('}', '')}",
        "summary": (route.handler.__doc__ or "").partition("\n")[0],
        "responses": _responses(route, schemas),
    }
    if names := re.findall(r"\{(\w+)\}", route.path):
        found["parameters"] = [_parameter(name) for name in names]
    if route.takes is not None:
        content = {"application/json": {"schema": schemas[route.takes]}}
        found["requestBody"] = {"required": True, "content": content}
    if route.scope is not None:
        found["security"] = [{"key": []}]
        found["description"] = f"Takes a key with the scope `{route.scope}`."
    return found


def _parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": LONGEST}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _responses(route: Route, schemas: Mapping[type[Any], Any]) -> dict[str, Any]:
    returns = route.returns
    if isinstance(returns, str):
        media_type = returns.partition(";")[0]
        content: dict[str, Any] = {media_type: {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": schemas[returns] if returns is not None else {}}}
    found: dict[str, Any] = {str(route.status): {"description": "Done.", "content": content}}
    by_status: dict[int, list[str]] = {}
    for kind in problems_of(route):
        by_status.setdefault(kind.status, []).append(f"{kind.title}.")
    problem = {MEDIA_TYPE.decode(): {"schema": schemas[ProblemDetails]}}
    for status, titles in sorted(by_status.items()):
        found[str(status)] = {"description": " Or: ".join(titles), "content": problem}
    return found


def problems_of(route: Route) -> list[Kind]:
    """Return all kinds of problems that a route may answer with."""
    found = [INTERNAL, *route.refuses]
    found += () if route.scope is None else (UNAUTHORIZED, FORBIDDEN)
    found += () if route.takes is None else BODY
    found += () if "{" not in route.path else (NOT_FOUND,)
    found += () if route.is_always_served else (UNAVAILABLE,)
    return list(dict.fromkeys(found))
