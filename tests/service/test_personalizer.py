"""Personalizer's routes: what they answer, what they refuse, and in which words."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import armlet
from armlet.errors import StoreError, UncertainError
from armlet.service.app import Service, create_app
from armlet.service.config import LoopConfig, PersonalizerConfig
from armlet.service.keys import Grant, Keyring, digest
from armlet.stores import Loop, Memory, Store
from support.examples import scaled
from support.service.calls import Answer, Caller

ARTICLES = LoopConfig(
    name="articles",
    features=("user.age", "user.visits"),
    categories={"timeOfDay": ("morning", "evening")},
    action_features=("length",),
    action_categories={"topic": ("sport", "music")},
    reward_range=(0.0, 1.0),
    seed=7,
)
ACTIONS: list[dict[str, Any]] = [
    {"id": "cup", "features": [{"topic": "sport"}, {"length": 6}]},
    {"id": "album", "features": [{"topic": "music", "length": 2.5}]},
    {"id": "vote", "features": [{"topic": "politics", "length": 4}]},
]
CONTEXT: list[dict[str, Any]] = [{"timeOfDay": "morning"}, {"user": {"age": 31, "visits": 4}}]
ASKED: dict[str, Any] = {"actions": ACTIONS, "contextFeatures": CONTEXT}
BASES = ["/personalizer/v1.0", "/personalizer/v1.1-preview.3", "/v1/loops/articles/personalizer/v1.0"]
QUERY = "?api-version=2022-09-01-preview"
RANK = "/personalizer/v1.0/rank"
EVENTS = "/personalizer/v1.0/events"


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(Memory()) as store:
        store.open(ARTICLES.spec)
        yield store


@pytest.fixture
def hashed(store: Store) -> Store:
    store.open(LoopConfig(name="hashed", hashed=8, action_hashed=6, seed=1).spec)
    return store


def error(answer: Answer, status: int, code: str, target: str | None = None) -> str:
    """Check that an answer is an error as Azure writes it; return its message."""
    assert answer.headers["content-type"] == "application/json"
    fields = answer.json["error"]
    assert (answer.status, fields["code"], fields.get("target")) == (status, code, target), fields
    message: str = fields["message"]
    return message


# ---- rank


@pytest.mark.parametrize("path", [*(f"{base}/rank" for base in BASES), f"/personalizer/rank{QUERY}"])
def test_a_rank_is_the_decision_that_the_loop_makes(caller: Caller, path: str) -> None:
    with Store(Memory()) as other:
        twin = other.open(ARTICLES.spec)
        for i in range(12):
            answer = caller.post(path, {**ASKED, "eventId": f"visit-{i}"})
            same: Any = twin.decide(
                {"timeOfDay": "morning", "user.age": 31, "user.visits": 4},
                actions={
                    "cup": {"topic": "sport", "length": 6},
                    "album": {"topic": "music", "length": 2.5},
                    "vote": {"topic": "politics", "length": 4},
                },
                event=f"visit-{i}",
            )
            assert answer.status == 201
            assert answer.json["eventId"] == f"visit-{i}"
            assert answer.json["rewardActionId"] == answer.json["ranking"][0]["id"] == same.arm
            shares = {each["id"]: each["probability"] for each in answer.json["ranking"]}
            assert shares.keys() == {"cup", "album", "vote"}
            assert sum(shares.values()) == pytest.approx(1.0)
            assert shares[same.arm] == same.propensity
            reward = float(same.arm == "album")
            assert caller.post(f"{EVENTS}/visit-{i}/reward", {"value": reward}).status == 204
            twin.reward(f"visit-{i}", reward)


def test_an_event_is_made_where_none_is_given_and_repeated_where_one_is(caller: Caller, store: Store) -> None:
    first = caller.post(RANK, ASKED).json
    assert caller.post(f"{EVENTS}/{first['eventId']}/reward", {"value": 1}).status == 204
    named = {**ASKED, "eventId": "visit/1 é"}
    again = [caller.post(RANK, named).json for _ in range(2)]
    assert again[0] == again[1]
    message = error(caller.post(RANK, {**named, "contextFeatures": []}), 409, "EventIdConflict", "eventId")
    assert "another context" in message
    assert caller.post(f"{EVENTS}/visit%2F1%20%C3%A9/reward", {"value": 0.5}).status == 204
    stats = store.loop("articles").stats()
    assert (stats.decisions, stats.learned) == (2, 2)


def test_excluded_actions_are_never_chosen_and_keep_their_places(caller: Caller) -> None:
    asked = {**ASKED, "excludedActions": ["cup", "unheard of"]}
    for _ in range(20):
        answer = caller.post(RANK, asked).json
        assert answer["ranking"][0] == {"id": "cup", "probability": 0.0}
        assert answer["rewardActionId"] == answer["ranking"][1]["id"] != "cup"
    everything = {**ASKED, "excludedActions": ["cup", "album", "vote"]}
    error(caller.post(RANK, everything), 400, "InvalidRankRequest", "excludedActions")


def test_a_key_without_propensities_is_told_no_probability(store: Store) -> None:
    grant = Grant(name="web", scopes=frozenset({"decide"}), propensity=False)
    service = Service(store, keyring=Keyring({digest("web"): grant}))
    with Caller(create_app(service), {"ocp-apim-subscription-key": "web"}) as caller:
        answer = caller.post(RANK, ASKED).json
        assert {frozenset(each) for each in answer["ranking"]} == {frozenset({"id"})}
        assert answer["rewardActionId"] == answer["ranking"][0]["id"]
    service.close()


def test_an_action_that_was_never_seen_is_known_by_its_features(caller: Caller) -> None:
    """Every action is offered once; readers want music in the evening and sport in the morning."""
    coin, wanted = random.Random(1), {"morning": "sport", "evening": "music"}
    for i in range(150):
        hour = coin.choice(list(wanted))
        topics = {f"{topic}-{i}": topic for topic in ("sport", "music", "politics")}
        actions = [
            {"id": name, "features": [{"topic": topic, "length": coin.random()}]} for name, topic in topics.items()
        ]
        context = [{"timeOfDay": hour}, {"user": {"age": coin.random(), "visits": 1}}]
        answer = caller.post(RANK, {"actions": actions, "contextFeatures": context, "eventId": f"v{i}"}).json
        value = float(topics[answer["rewardActionId"]] == wanted[hour])
        assert caller.post(f"{EVENTS}/v{i}/reward", {"value": value}).status == 204
    for hour, topic in wanted.items():
        actions = [
            {"id": name, "features": [{"topic": name, "length": 0.5}]} for name in ("politics", "music", "sport")
        ]
        context = [{"timeOfDay": hour}, {"user": {"age": 0.5, "visits": 1}}]
        answer = caller.post(RANK, {"actions": actions, "contextFeatures": context}).json
        assert {each["id"]: each["probability"] for each in answer["ranking"]}[topic] >= 0.8  # the greedy share


# ---- features


def test_what_does_not_fit_is_counted_and_shown(caller: Caller, service: Service) -> None:
    context = [{"timeOfDay": "morning", "user": {"agee": 31, "visits": 4}}, {"weather": {"sky": ["blue"]}}]
    actions = [{"id": "cup", "features": [{"topic": "sport", "colour": "red"}]}, {"id": "album", "features": []}]
    assert caller.post(RANK, {"actions": actions, "contextFeatures": context}).status == 201
    counts = service.features["articles"]
    assert counts.totals == {
        ("context", "unknown"): 2,
        ("context", "missing"): 1,
        ("actions", "unknown"): 1,
        ("actions", "missing"): 3,
    }
    assert counts.names["context", "unknown", "user.agee"] == 1
    metrics = caller.get("/metrics").text
    assert 'armlet_personalizer_features_total{loop="articles",of="context",what="unknown"} 2' in metrics
    page = caller.get("/loops/articles").text
    assert "Features that do not fit" in page
    assert "weather.sky=blue" in page


def test_an_absent_feature_is_zero_or_no_known_text(caller: Caller, store: Store) -> None:
    assert caller.post(RANK, {"actions": [{"id": "a", "features": []}]}).status == 201
    found = [event for event in store.loop("articles").log if event["kind"] == "decide"]
    assert found[0]["x"] == [0.0, 0.0, 0.0, 0.0, 1.0]  # the flag of other texts
    assert found[0]["z"] == [0.0, 0.0, 0.0, 1.0]


def test_a_loop_without_a_context_takes_any_request(store: Store, caller: Caller) -> None:
    store.loop("bare", dim=0, action_features=["length"], seed=1)
    assert caller.post(f"/v1/loops/bare{RANK}", ASKED).status == 201
    assert caller.post(f"/v1/loops/bare{RANK}", {"actions": ACTIONS}).status == 201
    store.loop("plain", dim=1, action_dim=1, seed=1)
    assert "no names" in error(caller.post(f"/v1/loops/plain{RANK}", ASKED), 400, "InvalidRankRequest")


def test_any_names_are_hashed_where_the_loop_says_so(hashed: Store, caller: Caller) -> None:
    answer = caller.post("/v1/loops/hashed/personalizer/v1.0/rank", {**ASKED, "contextFeatures": [{"a": {"b": "c"}}]})
    assert answer.status == 201
    [found] = [event for event in hashed.loop("hashed").log if event["kind"] == "decide"]
    assert found["x"] == armlet.HashedFeatures(8).encode({"a": {"b": "c"}}).tolist()


@pytest.mark.parametrize(
    ("changes", "target", "words"),
    [
        ({"actions": []}, "actions", "length >= 1"),
        ({"actions": None}, "actions", "array"),
        ({"actions": [{"features": []}]}, "actions[0]", "id"),
        ({"actions": [{"id": "", "features": []}]}, "actions[0].id", "length"),
        ({"actions": [*ACTIONS, ACTIONS[0]]}, "actions[3].id", "already"),
        ({"contextFeatures": [1]}, "contextFeatures[0]", "object"),
        ({"contextFeatures": {"user": 1}}, "contextFeatures", "array"),
        ({"contextFeatures": [{"user": {"age": "s3cr3t"}}]}, "contextFeatures.user.age", "finite number"),
        ({"contextFeatures": [{"user": {"age": 1e41}}]}, "contextFeatures.user.age", "1e+40"),
        ({"contextFeatures": [{"user": {"age": 10**400}}]}, "contextFeatures.user.age", "1e+40"),
        (
            {"actions": [ACTIONS[0], {"id": "b", "features": [{"length": "s3cr3t"}]}]},
            "actions[1].features.length",
            "finite number",
        ),
        ({"eventId": "x" * 300}, "eventId", "length"),
        ({"deferActivation": "yes"}, "deferActivation", "bool"),
    ],
)
def test_a_refused_rank_names_the_field_without_its_value(
    caller: Caller, store: Store, changes: dict[str, Any], target: str, words: str
) -> None:
    before = list(store.loop("articles").log)
    answer = caller.post(RANK, {**ASKED, **changes})
    assert words in error(answer, 400, "InvalidRankRequest", target)
    assert "s3cr3t" not in answer.text
    assert list(store.loop("articles").log) == before


MARKER = "s3cr3t"
NESTED = st.recursive(
    st.sampled_from([None, True, 1, 2.5, 1e41, 8675309.25, 10**400, MARKER, f"{MARKER}\0", ""]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["user", "age", "length", "timeOfDay", "topic", MARKER, ""]), inner, max_size=3
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=scaled(100), database=None, suppress_health_check=list(HealthCheck))
@given(context=NESTED, features=NESTED, cut=st.integers(0, 40), whole=st.booleans())
def test_no_features_break_the_server_and_none_are_told(
    hashed: Store, caller: Caller, caplog: pytest.LogCaptureFixture, context: Any, features: Any, cut: int, whole: bool
) -> None:
    asked = {"contextFeatures": context, "actions": [{"id": "a", "features": features}, ACTIONS[0]], "eventId": "e"}
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    assert len(hashed.loops) == 2
    for path in (f"/v1/loops/articles{RANK}", f"/v1/loops/hashed{RANK}"):
        body = json.dumps(asked).encode()
        answer = caller.send("POST", path, body if whole else body[:-cut], {"content-type": "application/json"})
        assert answer.status in (201, 400, 404, 409)
        assert not any(secret in answer.text + caplog.text for secret in (MARKER, "8675309"))


def test_too_deep_features_are_refused(caller: Caller) -> None:
    deep: Any = {"a": 1}
    for _ in range(100):
        deep = {"a": deep}
    assert "deep" in error(
        caller.post(RANK, {**ASKED, "contextFeatures": [deep]}), 400, "InvalidRankRequest", "contextFeatures"
    )


# ---- activation


def test_a_deferred_decision_counts_once_it_is_activated(caller: Caller, store: Store) -> None:
    for event in ("shown", "hidden"):
        asked = {**ASKED, "eventId": event, "deferActivation": True}
        assert caller.post(RANK, asked).status == 201
        assert caller.post(f"{EVENTS}/{event}/reward", {"value": 1.0}).status == 204
    loop = store.loop("articles")
    assert loop.stats().learned == 0
    answer = caller.send("POST", f"{EVENTS}/shown/activate")
    assert (answer.status, answer.body) == (204, b"")
    assert "content-length" not in answer.headers
    assert caller.send("POST", f"{EVENTS}/shown/activate").status == 204  # again is no harm
    assert (loop.stats().learned, loop.stats().deferred) == (1, 1)
    error(caller.send("POST", f"{EVENTS}/unheard/activate"), 404, "ResourceNotFound", "eventId")


def test_an_apprentice_plays_the_first_action_and_keeps_what_the_policy_would_have_played(store: Store) -> None:
    service = Service(store, personalizer=PersonalizerConfig(apprentice=("articles",)))
    with Caller(create_app(service)) as caller:
        for i in range(10):
            asked = {**ASKED, "eventId": f"v{i}", "excludedActions": ["cup"] if i % 2 else []}
            answer = caller.post(RANK, asked).json
            first = "album" if i % 2 else "cup"
            assert answer["rewardActionId"] == first
            assert {each["id"]: each["probability"] for each in answer["ranking"]}[first] == 1.0
            assert caller.post(f"{EVENTS}/v{i}/reward", {"value": 0.5}).status == 204
        found = store.loop("articles").stats().baseline
        assert found is not None
        assert found.decisions == 10
        assert 0 <= found.agreed <= 10
        assert "what you play" in caller.get("/loops/articles").text
    service.close()


# ---- rewards


@pytest.mark.parametrize(
    ("event", "body", "status", "code", "target"),
    [
        ("unheard", {"value": 1.0}, 404, "ResourceNotFound", "eventId"),
        ("visit", {"value": 7.0}, 400, "InvalidRewardRequest", "value"),
        ("visit", {"value": "1"}, 400, "InvalidRewardRequest", "value"),
        ("visit", {}, 400, "InvalidRewardRequest", None),
        ("visit", [], 400, "InvalidRewardRequest", None),
    ],
)
def test_a_refused_reward_says_why(
    caller: Caller, event: str, body: object, status: int, code: str, target: str | None
) -> None:
    caller.post(RANK, {**ASKED, "eventId": "visit"})
    error(caller.post(f"{EVENTS}/{event}/reward", body), status, code, target)
    assert caller.post(f"{EVENTS}/visit/reward", {"value": 1}).status == 204
    assert caller.post(f"{EVENTS}/visit/reward", {"value": 0}).status == 204  # the first one counts, as in Azure


def test_a_reward_that_a_client_repeats_counts_once_in_a_sum(store: Store, caller: Caller) -> None:
    store.loop("sums", dim=0, action_dim=1, aggregation="sum", reward_range=(0, 10), seed=1)
    store.loop("sums").decide([], actions={"a": [1.0]}, event="visit")
    path = "/v1/loops/sums/personalizer/events/visit/reward?api-version=2022-09-01-preview"
    for attempt in ("first", "first", "second"):
        assert caller.post(path, {"value": 1.0}, {"x-ms-client-request-id": attempt}).status == 204
    assert store.loop("sums").details().by_arm[0].rewards == 1
    assert store.loop("sums").stats().arms[0].mean == 2.0


# ---- where it is, and who may


def test_loops_are_found_by_the_settings_by_the_endpoint_or_alone(store: Store, caller: Caller) -> None:
    store.loop("home", arms=["a", "b"], dim=1)
    assert "there are 2 loops" in error(caller.post(RANK, ASKED), 404, "ResourceNotFound")
    assert caller.post(f"/v1/loops/articles{RANK}", ASKED).status == 201
    assert "action_features" in error(caller.post(f"/v1/loops/home{RANK}", ASKED), 400, "InvalidRankRequest", "loop")
    error(caller.post(f"/v1/loops/nowhere{RANK}", ASKED), 404, "ResourceNotFound", "loop")
    service = Service(store, personalizer=PersonalizerConfig(loop="articles"))
    with Caller(create_app(service)) as named:
        assert named.post(RANK, ASKED).status == 201
    service.close()


def test_a_loop_that_was_made_again_is_found_again(store: Store, caller: Caller) -> None:
    calls = [(RANK, ASKED), (f"{EVENTS}/e/reward", {"value": 1.0}), (f"{EVENTS}/e/activate", {})]
    for path, body in calls:
        assert caller.post(RANK, {**ASKED, "eventId": "e"}).status == 201
        store.delete("articles")
        error(caller.post(path, body), 404, "ResourceNotFound", "loop")
        store.open(ARTICLES.spec)


def test_keys_are_those_of_the_server(store: Store) -> None:
    grants = {
        "all": Grant(name="all", scopes=frozenset({"decide", "reward"})),
        "other": Grant(name="other", scopes=frozenset({"decide"}), loops=frozenset({"home"})),
        "old": Grant(name="old", scopes=frozenset({"decide"}), expires=0.0),
    }
    service = Service(store, keyring=Keyring({digest(name): grant for name, grant in grants.items()}))
    with Caller(create_app(service)) as caller:
        keyed = {"ocp-apim-subscription-key": "all"}
        ranked = caller.post(RANK, {**ASKED, "eventId": "visit"}, keyed)
        assert ranked.status == 201
        assert caller.post(RANK, ASKED, {"authorization": "Bearer all"}).status == 201
        assert caller.post(f"{EVENTS}/visit/reward", {"value": 1}, keyed).status == 204
        for headers in ({}, {"ocp-apim-subscription-key": "guess"}, {"ocp-apim-subscription-key": "old"}):
            message = error(caller.post(RANK, ASKED, headers), 401, "Unauthorized")
            assert "Ocp-Apim-Subscription-Key" in message
        for path in (RANK, f"/v1/loops/articles{RANK}"):
            answer = caller.post(path, ASKED, {"ocp-apim-subscription-key": "other"})
            error(answer, 403, "OperationNotAllowed")
        # it opens nothing else
        assert caller.get("/v1/loops", keyed).status == 401
    service.close()


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("POST", "/personalizer/v1.1-preview.3/multislot/rank", "one slot at a time"),
        ("POST", "/personalizer/multislot/rank?api-version=2022-09-01-preview", "one slot at a time"),
        ("POST", "/personalizer/multislot/events/e/reward?api-version=2022-09-01-preview", "one slot at a time"),
        ("POST", "/personalizer/v1.1-preview.1/multislot/events/e/activate", "one slot at a time"),
        ("GET", "/personalizer/configurations/service?api-version=2022-09-01-preview", "armlet.toml"),
        ("PUT", "/personalizer/v1.0/configurations/policy", "armlet.toml"),
        ("DELETE", "/personalizer/model?api-version=2022-09-01-preview", "/v1/loops/NAME/model"),
        ("GET", "/v1/loops/articles/personalizer/logs/properties", "/v1/loops/NAME/log"),
        ("PUT", "/personalizer/evaluations/one", "armlet evaluate"),
        ("GET", "/personalizer/featureImportances/one", "explain"),
        ("POST", "/personalizer/v2.0/rank", "rank, activate and reward"),
        ("GET", "/personalizer/" + "x/" * 3000, "rank, activate and reward"),
    ],
)
def test_what_is_not_served_says_so_and_what_to_do(caller: Caller, method: str, path: str, words: str) -> None:
    assert words in error(caller.send(method, path, b"{}", {"content-type": "application/json"}), 501, "NotImplemented")


def test_versions_are_those_of_azure(caller: Caller) -> None:
    for query in ("", "?api-version=2023-01-01", "?other=1"):
        error(caller.post(f"/personalizer/rank{query}", ASKED), 400, "InvalidRankRequest", "api-version")


@pytest.mark.parametrize(
    ("failure", "words"), [(StoreError("secret"), "could not write"), (UncertainError("secret"), "repeat it")]
)
def test_a_store_that_fails_is_a_503_to_be_repeated(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, failure: Exception, words: str
) -> None:
    caller.post(RANK, ASKED)

    async def fail(*_: object, **__: object) -> None:
        raise failure

    for name, path, body in (
        ("adecide", RANK, ASKED),
        ("areward", f"{EVENTS}/e/reward", {"value": 1}),
        ("aactivate", f"{EVENTS}/e/activate", {}),
    ):
        with monkeypatch.context() as broken:
            broken.setattr(Loop, name, fail)
            answer = caller.post(path, body)
        assert words in error(answer, 503, "ServiceUnavailable")
        assert answer.headers["retry-after"] == "1"
        assert "secret" not in answer.text


def test_bodies_must_be_json(caller: Caller) -> None:
    assert caller.send("POST", RANK, b"{", {"content-type": "application/json"}).status == 400
    assert caller.send("POST", RANK, json.dumps(ASKED).encode(), {"content-type": "text/plain"}).status == 415
