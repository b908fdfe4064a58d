"""What the server says of itself: every route is described, and schemathesis finds it as it is described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

import armlet
from armlet.service.app import Service, create_app
from armlet.service.config import Limits
from armlet.service.http import Request, Response, Route, json_response
from armlet.service.keys import SCOPES, Grant, Keyring, digest
from armlet.service.problems import KINDS
from armlet.service.routes import ROUTES, describe, problems_of
from armlet.stores import Memory, Store
from support.examples import scaled
from support.service.calls import Caller

KEY = "armlet_root"
EXCLUDED: Any = [positive_data_acceptance]  # a 422 may say what no schema can: what this loop's features and arms are


def described() -> Any:
    """Return the description, as a client reads it; names of loops are those of one that is there, and of none."""
    found = json.loads(json.dumps(describe(ROUTES)))
    for operations in found["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = {"enum": ["home", "router", "films", "nowhere"]}
    return found


def test_every_route_is_described_with_its_problems(caller: Caller) -> None:
    description = caller.get("/openapi.json").json
    assert description["openapi"] == "3.1.0"
    listed = {(method.upper(), path) for path, operations in description["paths"].items() for method in operations}
    assert listed == {(route.method, route.path) for route in ROUTES}
    for route in ROUTES:
        operation = description["paths"][route.path][route.method.lower()]
        statuses = {str(kind.status) for kind in problems_of(route)} | {str(route.status)}
        assert operation["responses"].keys() == statuses
        assert ("security" in operation) == (route.scope is not None)
        assert operation["summary"]


def test_problems_of_all_kinds_are_described() -> None:
    """But for a method that is not there, which no route can be asked for."""
    kinds = {kind for route in ROUTES for kind in problems_of(route)}
    assert {kind.slug for kind in KINDS if kind not in kinds} == {"method-not-allowed"}
    assert len({kind.slug for kind in KINDS}) == len(KINDS)


def test_limits_are_told_by_the_schemas() -> None:
    schemas = described()["components"]["schemas"]
    event = schemas["Decide"]["properties"]["event"]["anyOf"][0]
    assert (event["minLength"], event["maxLength"]) == (1, 256)
    assert schemas["Rewards"]["properties"]["items"]["maxItems"] == 10_000
    assert schemas["RewardItem"]["properties"]["rank"]["anyOf"][0]["minimum"] == 0
    assert schemas["Decide"]["additionalProperties"] is False


async def _describe(_: Service, __: Request) -> Response:
    return json_response(described())


@pytest.fixture(scope="module")
def api() -> Iterator[tuple[Any, Store]]:
    """Serve all routes to one key."""
    routes = [replace(route, handler=_describe) if route.path == "/openapi.json" else route for route in ROUTES]
    grant = Grant(name="root", scopes=frozenset(SCOPES))
    with Store(Memory()) as store:
        large = Limits(body=1 << 30, batch_body=1 << 30)  # a 413 is not what schemathesis expects of a long list
        service = Service(store, keyring=Keyring({digest(KEY): grant}), limits=large)
        yield schemathesis.openapi.from_asgi("/openapi.json", create_app(service, routes)), store
        service.close()


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_the_server_is_as_described(api: tuple[Any, Store], route: Route, mode: GenerationMode) -> None:
    """All checks of schemathesis, on requests that fit the description and on those that do not."""
    described, store = api
    if "home" not in store.loops:  # not yet, or another test has deleted it
        store.loop("home", arms=["sale", "new", 1, "1"], features=["age", "basket"], seed=7)
    if "router" not in store.loops:
        budget = armlet.Budget("cost", total=5.0, period=100)
        store.loop("router", arms=["a", 1], dim=1, outcomes={"quality": 1.0, "cost": -2.0}, budget=budget, epoch=9)
    if "films" not in store.loops:
        store.loop("films", dim=1, action_features=["year"])

    @given(case=described[route.path][route.method].as_strategy(generation_mode=mode))
    @settings(max_examples=scaled(10), database=None, suppress_health_check=list(HealthCheck))
    def check(case: Any) -> None:
        case.call_and_validate(headers={"Authorization": f"Bearer {KEY}"}, excluded_checks=EXCLUDED)

    if (
        mode is GenerationMode.POSITIVE or route.takes is not None
    ):  # there is nothing to get wrong in a request for less
        check()
