"""Every route of the API: what it answers, and what it refuses."""

from __future__ import annotations

import datetime
import json
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.service.app import Service, create_app
from armlet.service.keys import Grant, Keyring, digest
from armlet.stores import Memory, SQLite, Store
from support.service.calls import Caller, problem

CONTEXT = {"age": 31.0, "basket": 2.5}
DECIDE, BATCH = "/v1/loops/home/decide", "/v1/loops/home/decide/batch"
JSON = {"content-type": "application/json"}


# ---- decisions


def test_a_decision_is_the_one_that_the_loop_makes(caller: Caller) -> None:
    with Store(Memory()) as store:
        twin = store.loop("home", arms=["sale", "new", 1, "1"], features=["age", "basket"], seed=7)
        for i in range(20):
            answer = caller.post(DECIDE, {"context": CONTEXT, "event": f"visit-{i}"})
            same = twin.decide(CONTEXT, event=f"visit-{i}")
            body = {"event": f"visit-{i}", "arm": same.arm, "propensity": same.propensity, "explored": same.explored}
            assert answer.status == 200
            assert answer.json == body
            assert type(answer.json["arm"]) is type(same.arm)  # 1 and "1" are two arms


def test_a_context_may_be_a_list_and_an_event_is_made_up(caller: Caller, store: Store) -> None:
    answer = caller.post(DECIDE, {"context": [31, 2.5]}).json
    assert answer["event"] == list(store.loop("home").log)[1]["id"]
    assert caller.post("/v1/rewards", {"items": [{"loop": "home", "event": answer["event"], "value": 1}]}).json == {
        "items": [{"status": "accepted"}]
    }


def test_an_event_that_is_sent_again_is_answered_the_same(caller: Caller, store: Store) -> None:
    first = caller.post(DECIDE, {"context": CONTEXT, "event": "visit"}).json
    assert caller.post(DECIDE, {"context": CONTEXT, "event": "visit"}).json == first
    answer = caller.post(DECIDE, {"context": {**CONTEXT, "age": 32}, "event": "visit"})
    assert "another context" in problem(answer, 409, "conflict", "event")
    assert store.loop("home").stats().decisions == 1


def test_only_eligible_arms_are_played(caller: Caller) -> None:
    arms = {caller.post(DECIDE, {"context": CONTEXT, "eligible": [1, "new"]}).json["arm"] for _ in range(40)}
    assert arms == {1, "new"}
    answer = caller.post(DECIDE, {"context": CONTEXT, "eligible": [1, "nwe"]})
    assert "'nwe'" in problem(answer, 422, "invalid", "eligible")


def test_probabilities_are_told_by_arm(caller: Caller) -> None:
    answer = caller.post(DECIDE, {"context": CONTEXT, "probabilities": "all"}).json
    shares = {(type(each["arm"]), each["arm"]): each["probability"] for each in answer["probabilities"]}
    assert shares.keys() == {(str, "sale"), (str, "new"), (int, 1), (str, "1")}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares[type(answer["arm"]), answer["arm"]] == answer["propensity"]
    caller.post("/v1/loops/home/arms", {"action": "retire", "arm": "sale"})
    caller.post("/v1/loops/home/arms", {"action": "add", "arm": "later"})
    items = [{"context": CONTEXT}, {"context": CONTEXT}]
    for each in caller.post(BATCH, {"items": items, "probabilities": "all"}).json["items"]:
        assert [one["arm"] for one in each["probabilities"]] == ["sale", "new", 1, "1", "later"]
        assert each["probabilities"][0]["probability"] == 0


@pytest.mark.parametrize(
    ("context", "field", "words"),
    [
        ({"age": 1.0}, "context.basket", "missing"),
        ({**CONTEXT, "size": 1.0}, "context", "age, basket"),
        ({**CONTEXT, "age": "old"}, "context.age", "finite number"),
        ({**CONTEXT, "age": None}, "context.age", "finite number"),
        ({**CONTEXT, "age": 1e41}, "context.age", "1e+40"),
        ([1.0], "context", "give 2"),
        ([1.0, 1e41], "context[1]", "1e+40"),
        ([1.0, "x"], "context[1]", "Expected"),
        ("x", "context", "Expected"),
        ({**CONTEXT, "age": [1]}, "context", "Expected"),
    ],
)
def test_a_refused_context_is_named_by_its_field(
    caller: Caller, store: Store, context: object, field: str, words: str
) -> None:
    before = list(store.loop("home").log)
    assert words in problem(caller.post(DECIDE, {"context": context}), 422, "invalid", field)
    where = field.replace("context", "items[1].context")
    answer = caller.post(BATCH, {"items": [{"context": CONTEXT}, {"context": context}]})
    problem(answer, 422, "invalid", where)
    assert list(store.loop("home").log) == before


def test_a_context_out_of_range_is_named_by_field(caller: Caller, store: Store) -> None:
    asked = {"name": "aged", "arms": ["a", "b"], "features": ["age", "clicks"]}
    ranges = {"age": [0, 120], "clicks": [0, 50, "clip"]}
    assert caller.post("/v1/loops", {**asked, "feature_range": ranges}).status == 201
    path, secret = "/v1/loops/aged/decide", 1.8e18
    assert caller.post(path, {"context": {"age": 31, "clicks": secret}}).status == 200
    for context, field in (({"age": secret, "clicks": 1}, "context.age"), ([secret, 1.0], "context[0]")):
        detail = problem(caller.post(path, {"context": context}), 422, "invalid", field)
        assert detail == "it lies outside of the feature_range of the loop; give a number from 0 to 120"
    loop = store.loop("aged")
    assert loop.stats().out_of_range == {
        "age": {"refused": 2, "clipped": 0},
        "clicks": {"refused": 0, "clipped": 1},
    }
    problem(caller.post("/v1/loops/aged/change", {"feature_range": {"aeg": [0, 1]}}), 422, "invalid", "feature_range")
    assert caller.post("/v1/loops/aged/change", {"feature_range": ranges}).json == {"status": "unchanged"}
    assert caller.post("/v1/loops/aged/change", {"feature_range": None}).json == {"status": "done"}
    assert loop.model().settings.feature_range is None


def test_a_context_may_have_texts(store: Store, service: Service) -> None:
    table = {"country": ["de", "fr"], "age": [1.0, 2.0]}
    store.loop("words", arms=["a", "b"], encoder=armlet.Encoder(other="refuse").fit(table), seed=1)
    with Caller(create_app(service)) as caller:
        path = "/v1/loops/words/decide"
        assert caller.post(path, {"context": {"country": "de", "age": 3}}).status == 200
        detail = problem(
            caller.post(path, {"context": {"country": "secret", "age": 3}}), 422, "invalid", "context.country"
        )
        assert "secret" not in detail
        problem(caller.post(path, {"context": {"country": "de", "age": "secret"}}), 422, "invalid", "context.age")
        problem(caller.post(path, {"context": {"country": "de"}}), 422, "invalid", "context.age")


def test_dates_are_text(store: Store, caller: Caller) -> None:
    days = [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in (1, 2)]
    twin = store.loop("twin", arms=["a", "b"], encoder=armlet.Encoder().fit({"seen": days}), seed=1)
    store.loop("days", arms=["a", "b"], encoder=armlet.Encoder().fit({"seen": days}), seed=1)
    texts = ["2026-11-17T18:30:00Z", "2026-11-17T20:00:00+01:30", "2026-11-17"]
    for text in texts:
        asked = {"context": {"seen": text}}
        assert caller.post("/v1/loops/days/decide", asked).status == 200
        twin.decide({"seen": datetime.datetime.fromisoformat(text)})
    items = {"items": [{"context": {"seen": text}} for text in texts]}
    assert caller.post("/v1/loops/days/decide/batch", items).status == 200
    seen = [event["x"] for event in store.loop("days").log if event["kind"] == "decide"]
    assert seen[:3] == seen[3:] == [event["x"] for event in twin.log if event["kind"] == "decide"]
    answer = caller.post("/v1/loops/days/decide", {"context": {"seen": "yesterday"}})
    assert "2026-11-17T18:30:00Z" in problem(answer, 422, "invalid", "context.seen")


def test_names_of_features_are_asked_for_only_where_there_are_some(store: Store, caller: Caller) -> None:
    store.loop("plain", arms=["a", "b"], dim=2)
    detail = problem(caller.post("/v1/loops/plain/decide", {"context": CONTEXT}), 422, "invalid", "context")
    assert "array of 2 numbers" in detail


def test_a_batch_is_decided_as_one_by_one(caller: Caller) -> None:
    contexts = [{"age": float(i), "basket": 1.0} for i in range(30)]
    with Store(Memory()) as store:
        twin = store.loop("home", arms=["sale", "new", 1, "1"], features=["age", "basket"], seed=7)
        expected = [twin.decide(x, event=f"v{i}") for i, x in enumerate(contexts)]
    items = [{"context": x, "event": f"v{i}"} for i, x in enumerate(contexts)]
    answers = caller.post(BATCH, {"items": items}).json["items"]
    assert [(each["event"], each["arm"], each["propensity"]) for each in answers] == [
        (f"v{i}", decision.arm, decision.propensity) for i, decision in enumerate(expected)
    ]
    assert caller.post(BATCH, {"items": items}).json["items"] == answers


def test_a_batch_is_decided_all_or_none(caller: Caller, store: Store) -> None:
    caller.post(DECIDE, {"context": CONTEXT, "event": "taken"})
    before = list(store.loop("home").log)
    taken = [{"context": CONTEXT, "event": "free"}, {"context": [1, 1], "event": "taken"}]
    problem(caller.post(BATCH, {"items": taken}), 409, "conflict", "event")
    some = [{"context": CONTEXT, "event": "free"}, {"context": CONTEXT}]
    problem(caller.post(BATCH, {"items": some}), 422, "invalid", "items[1].event")
    problem(caller.post(BATCH, {"items": []}), 422, "invalid", "items")
    assert list(store.loop("home").log) == before


# ---- rewards


def test_each_reward_has_its_own_answer(caller: Caller, store: Store) -> None:
    store.loop("other", arms=["a", "b"], dim=1).decide([1.0], event="e")
    caller.post(BATCH, {"items": [{"context": CONTEXT, "event": f"e{i}"} for i in range(3)]})
    items: list[dict[str, Any]] = [
        {"loop": "home", "event": "e0", "value": 1},
        {"loop": "other", "event": "e", "value": 0.5},
        {"loop": "home", "event": "e0", "value": 0.5},
        {"loop": "nowhere", "event": "e0", "value": 1},
        {"loop": "home", "event": "e9", "value": 1},
        {"loop": "home", "event": "e1", "value": 7},
        {"loop": "home", "event": "e1", "value": 1, "played": "nothing"},
        {"loop": "home", "event": "e1", "value": 1, "name": "paid", "rank": 1, "played": "sale"},
    ]
    answer = caller.post("/v1/rewards", {"items": items})
    assert answer.status == 200
    answers = answer.json["items"]
    statuses = ["accepted", "accepted", "conflict", "no_loop", "unknown", "out_of_range", "refused"]
    assert [each["status"] for each in answers[:-1]] == statuses
    assert answers[-1]["status"] in ("accepted", "counted")  # by the arm that was drawn
    assert "'nothing'" in answers[6]["detail"]
    again = caller.post("/v1/rewards", {"items": items[:2]}).json["items"]
    assert again == [{"status": "duplicate"}, {"status": "duplicate"}]


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"loop": "home", "event": "e", "value": "1"}, "items[1].value"),
        ({"loop": "home", "event": "", "value": 1}, "items[1].event"),
        ({"loop": "home", "event": "e" * 257, "value": 1}, "items[1].event"),
        ({"loop": "home", "event": "e", "value": 1e41}, "items[1].value"),
        ({"loop": "home", "event": "e", "value": 1, "rank": -1}, "items[1].rank"),
        ({"loop": "home", "event": "e", "value": 1, "vlaue": 1}, "items[1]"),
        ({"loop": "home", "event": "e"}, "items[1]"),
    ],
)
def test_rewards_that_cannot_be_read_are_refused_together(
    caller: Caller, store: Store, item: object, field: str
) -> None:
    caller.post(DECIDE, {"context": CONTEXT, "event": "e"})
    before = list(store.loop("home").log)
    good = {"loop": "home", "event": "e", "value": 1}
    answer = caller.post("/v1/rewards", {"items": [good, item]})
    problem(answer, 422, "invalid", field)
    assert list(store.loop("home").log) == before


# ---- what there is to see


def test_loops_are_listed_and_counted(caller: Caller, store: Store) -> None:
    store.loop("a/b ü", arms=["x"], dim=1).decide([1.0])
    caller.post(DECIDE, {"context": CONTEXT, "event": "e"})
    assert caller.get("/v1/loops").json == {"items": [{"name": "home"}, {"name": "a/b ü"}]}
    stats = caller.get("/v1/loops/home/stats").json
    same = json.loads(json.dumps(store.loop("home").stats().to_dict()))
    assert {**stats, "oldest_open": 0} == {**same, "oldest_open": 0}
    assert caller.get("/v1/loops/a%2Fb%20%C3%BC/stats").json["decisions"] == 1
    assert caller.get("/v1/loops/home/health").json == {"items": []}


def test_the_log_is_streamed_as_it_is(tmp_path: Any) -> None:
    with Store(SQLite(tmp_path / "shop.db")) as store:
        loop = store.loop("home", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8))
        loop.decide_many(np.ones((1200, 1)).tolist())
        service = Service(store)
        with Caller(create_app(service)) as caller:
            answer = caller.get("/v1/loops/home/log")
        service.close()
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert answer.is_complete
        events = [json.loads(line) for line in answer.body.splitlines()]
        assert events == json.loads(json.dumps(list(loop.log)))


def test_the_model_can_be_loaded(caller: Caller, store: Store) -> None:
    caller.post(DECIDE, {"context": CONTEXT, "event": "e"})
    caller.post("/v1/rewards", {"items": [{"loop": "home", "event": "e", "value": 1}]})
    bandit = armlet.from_bytes(caller.get("/v1/loops/home/model").body)
    assert bandit.digest() == store.loop("home").model().digest()


def test_metrics_count_requests_by_route_and_status(caller: Caller) -> None:
    caller.post(DECIDE, {"context": CONTEXT})
    caller.post(DECIDE, {"context": CONTEXT, "event": ""})
    caller.get('/v1/"\n}')
    answer = caller.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4"
    lines = answer.text.splitlines()
    route = "/v1/loops/{name}/decide"
    assert f'armlet_http_requests_total{{method="POST",route="{route}",status="200"}} 1' in lines
    assert f'armlet_http_requests_total{{method="POST",route="{route}",status="422"}} 1' in lines
    assert 'armlet_http_requests_total{method="",route="",status="404"} 1' in lines
    assert 'armlet_open_decisions{loop="home"} 1' in lines


# ---- changes


def test_a_loop_is_made_once(caller: Caller, store: Store) -> None:
    asked = {
        "name": "new",
        "arms": ["a", 1],
        "features": ["age"],
        "categories": {"country": ["de", "fr"]},
        "policy": "LinUCB",
        "policy_settings": {"alpha": 0.5},
        "window": 60,
        "default_reward": 0,
        "reward_range": [0, 1],
    }
    answer = caller.post("/v1/loops", asked)
    assert (answer.status, answer.json) == (201, {"name": "new"})
    assert caller.post("/v1/loops/new/decide", {"context": {"age": 3, "country": "it"}}).status == 200
    model = store.loop("new").model()
    assert (list(model.arms), model.policy, model.settings.reward_range) == (
        ["a", 1],
        armlet.LinUCB(alpha=0.5),
        (0.0, 1.0),
    )
    problem(caller.post("/v1/loops", asked), 409, "conflict", "name")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"arms": ["a", "a"]}, "arms"),
        ({"arms": []}, "arms"),
        ({"features": [], "dim": None}, "dim"),
        ({"policy": "LinUBC"}, None),
        ({"policy": "LinUCB", "policy_settings": {"alpah": 1}}, "policy_settings"),
        ({"policy": "LinUCB", "policy_settings": {"alpha": "much"}}, None),
        ({"window": 5}, "window"),
        ({"reward_range": [1, 0]}, "reward_range"),
        ({"features": [], "dim": 10_000}, "arms"),
        ({"colour": "red"}, None),
    ],
)
def test_a_loop_that_cannot_be_is_not_made(
    caller: Caller, store: Store, wrong: dict[str, object], field: str | None
) -> None:
    asked = {"name": "new", "arms": ["a", "b"], "features": ["age"], **wrong}
    problem(caller.post("/v1/loops", asked), 422, "invalid", field)
    assert store.loops == ["home"]


def test_a_loop_is_changed_all_or_nothing(caller: Caller, store: Store) -> None:
    path = "/v1/loops/home/change"
    asked = {"window": 60, "default_reward": 0, "features": ["age", "basket", "visits"], "fill": {"visits": 1}}
    assert caller.post(path, asked).json == {"status": "done"}
    assert caller.post(DECIDE, {"context": {**CONTEXT, "visits": 2}}).status == 200
    assert caller.post(path, {"window": None, "default_reward": None}).status == 200
    assert caller.post(path, {"arms": ["sale", "later"]}).status == 200
    assert list(store.loop("home").model().arms.retired) == ["new", 1, "1"]
    before = store.loop("home").model().digest()
    problem(caller.post(path, {"arms": ["sale"], "window": 5}), 422, "invalid", "window")
    problem(caller.post(path, {}), 422, "invalid", None)
    problem(caller.post(path, {"policy": "Uniform"}), 422, "invalid", "policy")
    assert store.loop("home").model().digest() == before


def test_arms_come_and_go(caller: Caller, store: Store) -> None:
    path = "/v1/loops/home/arms"
    for action, arm in (("add", "later"), ("retire", 1), ("retire", "sale"), ("restore", 1)):
        assert caller.post(path, {"action": action, "arm": arm}).json == {"status": "done"}
    assert list(store.loop("home").model().arms.retired) == ["sale"]
    problem(caller.post(path, {"action": "retire", "arm": "nothing"}), 422, "invalid", "arm")
    problem(caller.post(path, {"action": "add", "arm": "later"}), 422, "invalid", "arm")
    problem(caller.post(path, {"action": "remove", "arm": "later"}), 422, "invalid", "action")


def test_decisions_are_forgotten(caller: Caller, store: Store) -> None:
    caller.post(BATCH, {"items": [{"context": CONTEXT, "event": f"e{i}"} for i in range(4)]})
    assert caller.post("/v1/loops/home/forget", {"events": ["e1", "e3", "e9"]}).json == {"forgotten": 2}
    assert sum(event.get("x") is not None for event in store.loop("home").log) == 2


def test_old_decisions_that_did_not_explore_are_pruned(caller: Caller, store: Store) -> None:
    caller.post(BATCH, {"items": [{"context": CONTEXT, "event": f"e{i}"} for i in range(40)]})
    explored = store.loop("home").stats().explored
    problem(caller.post("/v1/prune", {"before": "now"}), 422, "invalid", "before")
    assert caller.post("/v1/prune", {"before": 0}).json == {"pruned": 0}
    assert caller.post("/v1/prune", {"before": 4e9}).json == {"pruned": 40 - explored}


def test_what_was_deleted_but_not_cleared_from_all_files_is_not_called_refused(
    caller: Caller, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> bool:
        raise OSError("no space left")

    caller.post(DECIDE, {"context": CONTEXT, "event": "e"})
    monkeypatch.setattr(store._ledger, "scrub", fail)
    problem(caller.post("/v1/loops/home/forget", {"events": ["e"]}), 503, "outcome-unknown", None)
    assert caller.post("/v1/rewards", {"items": [{"loop": "home", "event": "e", "value": 1}]}).json == {
        "items": [{"status": "unknown"}]
    }
    monkeypatch.undo()
    assert caller.post("/v1/loops/home/forget", {"events": ["e"]}).json == {"forgotten": 0}


def test_a_control_plays_its_share_from_the_start(caller: Caller) -> None:
    asked = {"name": "new", "arms": ["a", "b"], "dim": 1, "control": {"arm": "a", "share": 0.5}}
    assert caller.post("/v1/loops", asked).status == 201
    shares = caller.post("/v1/loops/new/decide", {"context": [1], "probabilities": "all"}).json["probabilities"]
    assert [each["probability"] for each in shares] == [0.75, 0.25]
    assert caller.post("/v1/loops/new/change", {"control": None}).status == 200
    shares = caller.post("/v1/loops/new/decide", {"context": [1], "probabilities": "all"}).json["probabilities"]
    assert sum(each["probability"] for each in shares) == pytest.approx(1.0)
    detail = problem(caller.post("/v1/loops/new/change", {"control": {"share": 0.5}}), 422, "invalid", "control")
    assert "neither arm nor policy" in detail
    problem(caller.post("/v1/loops", {**asked, "name": "x", "control": {"arm": "c"}}), 422, "invalid", "control")


def test_a_shadow_runs_along_and_is_promoted(caller: Caller, store: Store) -> None:
    path = "/v1/loops/home"
    problem(caller.post(f"{path}/promote", {}), 409, "conflict")
    asked = {"shadow": {"policy": "LinUCB", "policy_settings": {"alpha": 0.5}}, "how": "refit"}
    assert caller.post(f"{path}/change", asked).status == 200
    caller.post(DECIDE, {"context": CONTEXT})
    assert "shadow" in list(store.loop("home").log)[-1]
    assert caller.send("POST", f"{path}/freeze").status == 200
    problem(caller.post(f"{path}/promote", {"gate": "off"}), 409, "conflict")
    assert caller.send("POST", f"{path}/thaw").status == 200
    answer = caller.post(f"{path}/promote", {}).json
    assert answer["promoted"] is False
    answer = caller.post(f"{path}/promote", {"gate": "off", "control": 0.1}).json
    assert answer["promoted"] is True
    assert store.loop("home").model().policy == armlet.LinUCB(alpha=0.5)


def test_several_shadows_run_beside_control_and_freeze(caller: Caller, store: Store) -> None:
    path, bold = "/v1/loops/home", {"policy": "LinUCB", "policy_settings": {"alpha": 2.0}}
    both = {"shadow": bold, "shadows": {"bold": bold}}
    problem(caller.post(f"{path}/change", both), 422, "invalid", "shadow")
    asked = {"shadows": {"bold": bold, "shy": {"policy": "Greedy"}}, "control": {"policy": "LinUCB"}, "how": "refit"}
    assert caller.post(f"{path}/change", asked).status == 200
    assert caller.send("POST", f"{path}/freeze").status == 200
    caller.post(DECIDE, {"context": CONTEXT})
    decided = list(store.loop("home").log)[-1]
    assert decided["shadows"].keys() == {"bold", "shy"}
    assert decided["control"]["share"] == 0.1
    gains = caller.get(path).json["gains"]
    assert [(gain["against"], gain.get("shadow")) for gain in gains][-2:] == [("shadow", "bold"), ("shadow", "shy")]
    assert caller.send("POST", f"{path}/thaw").status == 200
    assert "choose one of ['bold', 'shy']" in problem(caller.post(f"{path}/promote", {"gate": "off"}), 422, "invalid")
    assert caller.post(f"{path}/promote", {"gate": "off", "shadow": "shy"}).json["promoted"] is True
    loop = store.loop("home")
    assert loop.model().policy == armlet.Greedy()
    assert [gain.shadow for gain in loop.gains()][-1] == "bold"


def test_a_frozen_loop_decides_from_what_it_knew(caller: Caller, store: Store) -> None:
    assert caller.send("POST", "/v1/loops/home/freeze").json == {"status": "done"}
    caller.post(DECIDE, {"context": CONTEXT, "event": "e"})
    caller.post("/v1/rewards", {"items": [{"loop": "home", "event": "e", "value": 1}]})
    frozen = store.loop("home").model().state.n.sum()
    assert caller.send("POST", "/v1/loops/home/thaw").json == {"status": "done"}
    assert (frozen, store.loop("home").model().state.n.sum()) == (0, 1)


def test_details_show_contexts_and_events_to_admins_only(store: Store) -> None:
    store.loop("home").decide(CONTEXT, event="visit")
    grants = {
        digest("see"): Grant(name="see", scopes=frozenset({"read"})),
        digest("all"): Grant(name="all", scopes=frozenset({"read", "admin"})),
    }
    service = Service(store, keyring=Keyring(grants))
    with Caller(create_app(service)) as caller:
        seen = caller.get("/v1/loops/home", {"authorization": "Bearer see"}).json
        known = caller.get("/v1/loops/home", {"authorization": "Bearer all"}).json
    service.close()
    assert (known["last"][0]["event"], known["last"][0]["context"]) == ("visit", [31.0, 2.5])
    assert (seen["last"][0]["event"], seen["last"][0]["context"]) == (None, None)
    assert seen["arms"] == ["sale", "new", 1, "1"]
    assert [gain["against"] for gain in seen["gains"]] == [gain.against for gain in store.loop("home").gains()]


def test_a_loop_that_another_replica_deletes_and_makes_again_is_found(caller: Caller, store: Store) -> None:
    caller.post(DECIDE, {"context": CONTEXT})
    reward = {"items": [{"loop": "home", "event": "e", "value": 1}, {"loop": "home", "event": "f", "value": 1}]}
    store.delete("home")
    problem(caller.post(DECIDE, {"context": CONTEXT}), 404, "not-found", "loop")
    assert caller.post("/v1/rewards", reward).json["items"] == [{"status": "no_loop"}] * 2
    store.loop("home", arms=["a"], dim=1)
    assert caller.post(DECIDE, {"context": [1]}).json["arm"] == "a"
    store.delete("home")
    assert caller.post("/v1/rewards", {"items": reward["items"][:1]}).json["items"] == [{"status": "no_loop"}]
    store.loop("home", arms=["a"], dim=1)
    assert caller.post(DECIDE, {"context": [1]}).json["arm"] == "a"
    store.delete("home")
    assert caller.post("/v1/rewards", reward).json["items"] == [{"status": "no_loop"}] * 2


def test_a_deleted_loop_is_gone(caller: Caller, store: Store) -> None:
    caller.post(DECIDE, {"context": CONTEXT})
    assert caller.send("DELETE", "/v1/loops/home").status == 200
    assert store.loops == []
    problem(caller.post(DECIDE, {"context": CONTEXT}), 404, "not-found", "loop")
    problem(caller.send("DELETE", "/v1/loops/home"), 404, "not-found", "loop")
