"""Actions with features over HTTP: decisions among them, tables with a name, and what is deferred."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

import armlet
from armlet.service.app import Service, create_app
from armlet.service.client import AsyncClient
from armlet.service.keys import Grant, Keyring, digest
from armlet.stores import Memory, Store
from support.service.calls import Answer, Caller, problem

FILMS: dict[str, Any] = {
    "Alien": {"genre": "horror", "year": 79},
    "Heat": {"genre": "crime", "year": 95},
    "Up": {"genre": "family", "year": 109},
}
DECIDE, BATCH, TABLE = "/v1/loops/films/decide", "/v1/loops/films/decide/batch", "/v1/loops/films/actions/all"
SETTINGS: dict[str, Any] = {
    "name": "films",
    "features": ["age"],
    "action_features": ["year"],
    "action_categories": {"genre": ["crime", "horror"]},
    "seed": 7,
}
ASKED: dict[str, Any] = {"context": {"age": 31.0}, "actions": FILMS}


@pytest.fixture
def films(caller: Caller) -> Caller:
    assert caller.post("/v1/loops", SETTINGS).status == 201
    return caller


@pytest.fixture
def twin() -> Iterator[Any]:
    encoder = armlet.Encoder.from_dict(
        {
            "columns": [
                {"column": "year", "kind": "number"},
                {"column": "genre", "kind": "flags", "texts": ["crime", "horror"], "other": "flag"},
            ],
            "extra": "refuse",
        }
    )
    with Store(Memory()) as store:
        yield store.loop("films", features=["age"], action_encoder=encoder, seed=7)


def put(caller: Caller, path: str, actions: object) -> Answer:
    return caller.send("PUT", path, json.dumps({"actions": actions}).encode(), {"content-type": "application/json"})


def test_a_decision_is_the_one_that_the_loop_makes(films: Caller, twin: Any) -> None:
    for i in range(12):
        answer = films.post(DECIDE, {**ASKED, "event": f"visit-{i}", "probabilities": "all"}).json
        same = twin.decide({"age": 31.0}, actions=FILMS, event=f"visit-{i}")
        assert (answer["event"], answer["arm"], answer["propensity"]) == (f"visit-{i}", same.arm, same.propensity)
        shares = {each["arm"]: each["probability"] for each in answer["probabilities"]}
        assert shares == (dict(same.support) if same.support is not None else dict.fromkeys(FILMS, same.propensity))
        films.post("/v1/rewards", {"items": [{"loop": "films", "event": f"visit-{i}", "value": float(i % 2)}]})
        twin.reward(f"visit-{i}", float(i % 2))
    assert films.post(DECIDE, {**ASKED, "event": "visit-3"}).json["event"] == "visit-3"


def test_a_table_with_a_name_is_chosen_from_and_replaced(films: Caller, store: Store) -> None:
    problem(films.post(DECIDE, {"context": [31.0], "actions": "all"}), 422, "invalid", "actions")
    assert put(films, TABLE, FILMS).json == {"status": "done"}
    answer = films.post(DECIDE, {"context": [31.0], "actions": "all", "event": "first"}).json
    assert answer["arm"] in FILMS
    assert put(films, TABLE, {"Up": FILMS["Up"]}).status == 200
    assert films.post(DECIDE, {"context": [31.0], "actions": "all"}).json["arm"] == "Up"
    assert films.post(DECIDE, {"context": [31.0], "actions": "all", "event": "first"}).json["arm"] == answer["arm"]
    assert list(store.loop("films").tables()) == ["all"]


def test_a_removed_table_leaves_its_decisions(films: Caller, store: Store) -> None:
    put(films, TABLE, FILMS)
    asked = {"context": [31.0], "actions": "all", "event": "first"}
    answer = films.post(DECIDE, asked).json
    assert films.send("DELETE", TABLE).json == {"status": "done"}
    assert store.loop("films").tables() == {}
    problem(films.post(DECIDE, {**asked, "event": "second"}), 422, "invalid", "actions")
    problem(films.send("DELETE", TABLE), 404, "not-found", "table")
    assert films.post(DECIDE, asked).json == answer
    paid = films.post("/v1/rewards", {"items": [{"loop": "films", "event": "first", "value": 1.0}]}).json
    assert paid["items"][0]["status"] == "accepted"


def test_only_eligible_actions_are_played(films: Caller) -> None:
    arms = {films.post(DECIDE, {**ASKED, "eligible": ["Up", "Heat"]}).json["arm"] for _ in range(20)}
    assert arms <= {"Up", "Heat"}
    problem(films.post(DECIDE, {**ASKED, "eligible": ["Upp"]}), 422, "invalid", "eligible")


def test_a_batch_is_decided_as_one_by_one(films: Caller, twin: Any) -> None:
    items = [{"context": {"age": float(i)}, "event": f"v{i}"} for i in range(8)]
    answers = films.post(BATCH, {"items": items, "actions": FILMS, "probabilities": "all"}).json["items"]
    same = [twin.decide({"age": float(i)}, actions=FILMS, event=f"v{i}") for i in range(8)]
    assert [(each["arm"], each["propensity"]) for each in answers] == [(each.arm, each.propensity) for each in same]
    assert all(sum(p["probability"] for p in each["probabilities"]) == pytest.approx(1.0) for each in answers)
    assert put(films, TABLE, FILMS).status == 200
    assert len(films.post(BATCH, {"items": items[:2], "actions": FILMS}).json["items"]) == 2
    assert films.post(BATCH, {"items": [{"context": [1.0]}], "actions": "all"}).status == 200


def test_a_baseline_is_played_and_the_agreement_is_counted(films: Caller) -> None:
    for _ in range(5):
        answer = films.post(DECIDE, {**ASKED, "baseline": "Heat"}).json
        assert (answer["arm"], answer["propensity"]) == ("Heat", 1.0)
    found = films.get("/v1/loops/films/stats").json["baseline"]
    assert found["decisions"] == 5
    assert "what you play" in films.get("/loops/films").text
    problem(films.post(DECIDE, {**ASKED, "baseline": "Haet"}), 422, "invalid", "baseline")


def test_a_deferred_decision_waits_to_be_activated(films: Caller) -> None:
    films.post(DECIDE, {**ASKED, "event": "visit", "defer": True})
    films.post("/v1/rewards", {"items": [{"loop": "films", "event": "visit", "value": 1.0}]})
    assert films.get("/v1/loops/films/stats").json["learned"] == 0
    path = "/v1/loops/films/activate"
    assert films.post(path, {"event": "visit"}).json == {"activated": True}
    assert films.post(path, {"event": "visit"}).json == {"activated": False}
    assert films.get("/v1/loops/films/stats").json["learned"] == 1
    problem(films.post(path, {"event": "unheard of"}), 409, "conflict", "event")


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"context": {"age": "s3cr3t"}}, "context.age", "finite number"),
        ({"actions": {"Up": {"genre": "x", "year": "s3cr3t"}}}, "actions.Up.year", "finite number"),
        ({"actions": {"Up": {"genre": "x"}}}, "actions.Up.year", "missing"),
        ({"actions": {"Up": {**FILMS["Up"], "s3cr3t": 1}}}, "actions.Up", "year, genre"),
        ({"actions": {"Up": [1.0]}}, "actions.Up", "give 4"),
        ({"actions": {}}, "actions", "length"),
        ({"actions": {"Up": 1}}, "actions", "Expected"),
        ({"actions": [1]}, "actions", "Expected"),
        ({"actions": ""}, "actions", "length"),
        ({"unit": "u"}, "unit", "leave it out"),
        ({"weights": {"a": 1.0}}, "weights", "leave it out"),
    ],
)
def test_a_refused_decision_names_the_field_without_its_value(
    films: Caller, store: Store, changes: dict[str, Any], field: str, words: str
) -> None:
    before = list(store.loop("films").log)
    answer = films.post(DECIDE, {**ASKED, **changes})
    assert words in problem(answer, 422, "invalid", field)
    assert "s3cr3t" not in answer.text
    assert list(store.loop("films").log) == before


@pytest.mark.parametrize(
    ("actions", "field"),
    [({}, "actions"), ({"Up": [1.0]}, "actions.Up"), ({"Up": {"genre": "x", "year": None}}, "actions.Up.year")],
)
def test_a_refused_table_names_the_action(films: Caller, store: Store, actions: object, field: str) -> None:
    problem(put(films, TABLE, actions), 422, "invalid", field)
    assert store.loop("films").tables() == {}


def test_loops_with_arms_have_no_actions_and_the_other_way_round(films: Caller) -> None:
    home = "/v1/loops/home/decide"
    context = {"age": 1.0, "basket": 2.0}
    problem(films.post(home, {"context": context, "actions": {"a": [1.0]}}), 422, "invalid", "actions")
    problem(films.post(home, {"context": context, "baseline": "sale"}), 422, "invalid", "baseline")
    problem(films.post(home, {"context": context, "defer": True}), 422, "invalid", "defer")
    problem(put(films, "/v1/loops/home/actions/all", {"a": [1.0]}), 422, "invalid", "actions")
    problem(films.post(DECIDE, {"context": {"age": 31.0}}), 422, "invalid", "actions")
    problem(films.post(DECIDE, {"context": {"age": 31.0}, "probabilities": "all"}), 422, "invalid", "actions")
    for path, body in (
        ("arms", {"action": "add", "arm": "later"}),
        ("change", {"arms": ["a", "b"]}),
        ("change", {"control": {"arm": "Up"}}),
    ):
        answer = films.post(f"/v1/loops/films/{path}", body)
        assert answer.status in (409, 422), answer.text


def test_dates_of_actions_are_text(store: Store, caller: Caller) -> None:
    days = [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in (1, 2)]
    store.loop("news", dim=0, action_encoder=armlet.Encoder().fit({"seen": days}), seed=1)
    asked: dict[str, Any] = {
        "context": [],
        "actions": {"a": {"seen": "2026-11-17T18:30:00Z"}, "b": {"seen": "2026-11-16"}},
    }
    assert caller.post("/v1/loops/news/decide", asked).status == 200
    assert put(caller, "/v1/loops/news/actions/all", asked["actions"]).status == 200
    asked["actions"]["b"] = {"seen": "yesterday"}
    store.loop("days", arms=["a"], encoder=armlet.Encoder().fit({"seen": days}), seed=1)
    other = {"context": {"seen": "2026-11-16"}, "actions": {"a": [1.0]}}
    problem(caller.post("/v1/loops/days/decide", other), 422, "invalid", "actions")
    problem(caller.post("/v1/loops/news/decide", asked), 422, "invalid", "actions.b.seen")


def test_a_key_without_propensities_is_told_none(store: Store) -> None:
    store.loop("films", dim=1, action_dim=1, seed=1)
    grant = Grant(name="web", scopes=frozenset({"decide"}), propensity=False)
    service = Service(store, keyring=Keyring({digest("web"): grant}))
    with Caller(create_app(service), {"authorization": "Bearer web"}) as caller:
        asked = {"context": [1.0], "actions": {"a": [1.0], "b": [2.0]}}
        assert caller.post(DECIDE, asked).json.keys() == {"event", "arm"}
        problem(caller.post(DECIDE, {**asked, "probabilities": "all"}), 403, "forbidden", "probabilities")
        batch = {"items": [{"context": [1.0]}], "actions": asked["actions"]}
        assert caller.post(BATCH, batch).status == 200
        problem(caller.post(BATCH, {**batch, "probabilities": "all"}), 403, "forbidden", "probabilities")
        problem(put(caller, TABLE, {"a": [1.0]}), 403, "forbidden")
    service.close()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arms": ["a", "b"]}, "arms and action"),
        ({"action_features": [], "action_categories": {}}, "arms is missing"),
        ({"action_dim": 3}, "leave action_dim out"),
        ({"hashed": 4}, "leave one out"),
        ({"hashed": 4, "features": [], "policy": "SharedOptimism", "policy_settings": {"share": 2.0}}, "share"),
        ({"policy": "LinUCB"}, "LinUCB"),
        ({"outcomes": {"a": 1.0}}, "outcomes"),
    ],
)
def test_a_loop_that_cannot_be_is_not_made(caller: Caller, store: Store, changes: dict[str, Any], words: str) -> None:
    answer = caller.post("/v1/loops", {**SETTINGS, **changes})
    assert answer.status == 422
    assert words in answer.json["detail"]
    assert "films" not in store.loops


def test_a_loop_is_made_with_a_policy_and_pairs_of_features(caller: Caller, store: Store) -> None:
    policy = {"policy": "SharedThompson", "policy_settings": {"draws": 5, "interactions": [["age", "year"]]}}
    assert caller.post("/v1/loops", {**SETTINGS, **policy}).status == 201
    made: object = store.loop("films").model().policy
    assert made == armlet.SharedThompson(draws=5, interactions=[("age", "year")])


def test_clients_choose_prepare_and_activate(store: Store) -> None:
    store.loop("films", dim=1, action_features=["year"], seed=7)

    async def work(service: Service) -> tuple[str, bool]:
        app = httpx2.ASGITransport(create_app(service))
        async with AsyncClient("http://127.0.0.1", transport=app) as client:
            await client.prepare("films", "cinema", {"Up": {"year": 109}, "Heat": [95.0]})
            answer = await client.decide("films", [1.0], actions="cinema", eligible=["Up"], defer=True)
            [other] = await client.decide_many("films", [[1.0]], actions={"Alien": {"year": 79}})
            assert (answer.arm, other.arm) == ("Up", "Alien")
            activated = await client.activate("films", answer.event)
            return await client.reward("films", answer.event, 1.0), activated

    service = Service(store)
    assert asyncio.run(work(service)) == ("accepted", True)
    service.close()


def test_the_page_of_a_catalogue_is_bounded(store: Store, caller: Caller) -> None:
    loop = store.loop("large", dim=1, action_dim=1, seed=1)
    table = {f"item-{i}": [float(i % 7)] for i in range(500)}
    loop.prepare("all", table)
    for i in range(300):
        loop.decide([1.0], actions="all", event=f"v{i}", eligible=[f"item-{i}"])
        loop.reward(f"v{i}", float(i % 2))
    page = caller.get("/loops/large").text
    assert page.count("item-") < 200
    assert "All others together" in page
    assert caller.get("/v1/loops/large").status == 200
    assert caller.get("/loops").status == 200
