"""Who may call which route, and what a key without propensities gets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from armlet.service.app import Service, create_app
from armlet.service.keys import Grant, Keyring, Scope, digest
from armlet.service.routes import ROUTES
from armlet.stores import Store
from support.service.calls import Caller, problem

CONTEXT = {"age": 31.0, "basket": 2.5}
DECIDE, BATCH = "/v1/loops/home/decide", "/v1/loops/home/decide/batch"
JSON = {"content-type": "application/json"}


WHO: dict[str, Grant] = {
    "web": Grant(name="web", scopes=frozenset({"decide"}), loops=frozenset({"home"}), propensity=False),
    "shop": Grant(name="shop", scopes=frozenset({"decide", "reward"}), loops=frozenset({"home"})),
    "ops": Grant(name="ops", scopes=frozenset({"read"})),
    "root": Grant(name="root", scopes=frozenset({"decide", "reward", "read", "admin"})),
    "old": Grant(name="old", scopes=frozenset({"decide"}), expires=1.0),
}


@pytest.fixture
def locked(store: Store) -> Iterator[Caller]:
    store.loop("other", arms=["a", "b"], dim=1)
    service = Service(store, keyring=Keyring({digest(name): grant for name, grant in WHO.items()}))
    with Caller(create_app(service)) as caller:
        yield caller
    service.close()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer guess"},
        {"authorization": "Basic root"},
        {"authorization": "root"},
        {"authorization": "Bearer old"},
        {"authorization": "Bearer \xff"},
        {"cookie": "armlet_key=root"},
    ],
)
def test_without_a_key_nothing_is_read_or_done(locked: Caller, headers: dict[str, str]) -> None:
    for route in ROUTES:
        if route.scope is not None and (route.method != "GET" or "cookie" not in headers):
            path = route.path.replace("{name}", "home")
            answer = locked.frames(route.method, path, [], headers)  # a body would be waited for
            problem(answer, 401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"


def scopes_of(name: str) -> frozenset[Scope]:
    """Return what a key may do to the loop "home"."""
    return WHO[name].scopes


@pytest.mark.parametrize("name", ["web", "shop", "ops", "root"])
def test_a_key_opens_the_routes_of_its_scopes_and_no_others(locked: Caller, name: str) -> None:
    for route in ROUTES:
        if route.scope is None or route.method == "DELETE":
            continue
        path = route.path.replace("{name}", "home")
        answer = locked.send(route.method, path, b"{}", {**JSON, "authorization": f"Bearer {name}"})
        assert (answer.status == 403) == (route.scope not in scopes_of(name)), (route, answer)


def test_a_key_is_bound_to_its_loops(locked: Caller) -> None:
    shop = {"authorization": "Bearer shop"}
    problem(locked.post("/v1/loops/other/decide", {"context": [1]}, shop), 403, "forbidden")
    problem(locked.post("/v1/loops/nowhere/decide", {"context": [1]}, shop), 403, "forbidden")
    items = [{"loop": name, "event": "e", "value": 1} for name in ("home", "other", "nowhere")]
    answers = locked.post("/v1/rewards", {"items": items}, shop).json["items"]
    assert [each["status"] for each in answers] == ["unknown", "forbidden", "forbidden"]
    answer = locked.post("/v1/loops", {"name": "x", "arms": ["a"], "dim": 1}, {"authorization": "Bearer root"})
    assert answer.status == 201


def test_who_administers_a_loop_is_logged_by_the_name_of_the_key(
    locked: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "armlet.service")
    root = {"authorization": "Bearer root"}
    assert locked.post("/v1/loops/home/arms", {"action": "retire", "arm": "sale"}, root).status == 200
    assert locked.post("/v1/loops/home/arms", {"action": "retire", "arm": "nothing"}, root).status == 422
    assert locked.get("/v1/loops/home/stats", root).status == 200
    messages = [record.getMessage() for record in caplog.records if record.name == "armlet.service"]
    assert messages == ["key root: POST /v1/loops/{name}/arms 'home'"]


def test_a_key_sees_only_its_loops(store: Store) -> None:
    store.loop("other", arms=["a", "b"], dim=1)
    bound = Grant(name="one", scopes=frozenset({"read", "admin"}), loops=frozenset({"other"}))
    service = Service(store, keyring=Keyring({digest("one"): bound}))
    with Caller(create_app(service), {"authorization": "Bearer one"}) as caller:
        assert caller.get("/v1/loops").json == {"items": [{"name": "other"}]}
        problem(caller.get("/metrics"), 403, "forbidden")
        problem(caller.post("/v1/loops", {"name": "x", "arms": ["a"], "dim": 1}), 403, "forbidden", "name")
        problem(caller.send("DELETE", "/v1/loops/home"), 403, "forbidden")
        problem(caller.post("/v1/prune", {"before": 0}), 403, "forbidden")
    service.close()


def test_a_key_without_propensities_gets_none(locked: Caller, store: Store) -> None:
    web = {"authorization": "Bearer web"}
    assert locked.post(DECIDE, {"context": CONTEXT, "event": "e"}, web).json.keys() == {"event", "arm"}
    items = locked.post(BATCH, {"items": [{"context": CONTEXT}]}, web).json["items"]
    assert items[0].keys() == {"event", "arm"}
    asked = {"context": CONTEXT, "probabilities": "all"}
    problem(locked.post(DECIDE, asked, web), 403, "forbidden", "probabilities")
    assert all("propensity" in event for event in store.loop("home").log if event["kind"] == "decide")


def test_a_cookie_shows_but_does_not_change(locked: Caller) -> None:
    cookie = {"cookie": "theme=dark; armlet_key=root"}
    assert locked.get("/v1/loops/home/stats", cookie).status == 200
    problem(locked.post(DECIDE, {"context": CONTEXT}, cookie), 401, "unauthorized")
    problem(locked.send("DELETE", "/v1/loops/home", headers=cookie), 401, "unauthorized")


@pytest.mark.parametrize(
    "headers", [{"host": "shop.example"}, {"x-forwarded-for": "192.0.2.1"}, {"origin": "https://evil.example"}]
)
def test_without_keys_only_this_machine_is_served(caller: Caller, headers: dict[str, str]) -> None:
    problem(caller.post(DECIDE, {"context": CONTEXT}, headers), 401, "unauthorized")
    assert caller.get("/healthz", headers).status == 200
