"""Several outcomes over HTTP: the dial of a decision, rewards in parts, known prices, and budgets."""

from __future__ import annotations

from typing import Any

import pytest

import armlet
from armlet.service.app import Service, create_app
from armlet.service.keys import Grant, Keyring, digest
from armlet.stores import Loop, Memory, Store
from support.service.calls import Caller, problem

ARMS = ["small", "large"]
PRICES: dict[str | int, float] = {"small": 0.001, "large": 0.03}
LOOP: dict[str, Any] = {
    "arms": ARMS,
    "features": ["tokens"],
    "outcomes": {"quality": 1.0, "cost": -40.0, "delay": -0.1},
    "reward_range": {"quality": [0, 1], "delay": [0, 60]},
    "seed": 7,
}
BUDGET: dict[str, Any] = {"outcome": "cost", "total": 2.5, "horizon": 300}
DECIDE, BATCH, REWARDS = "/v1/loops/router/decide", "/v1/loops/router/decide/batch", "/v1/rewards"


def make(caller: Caller, **more: Any) -> None:
    made = caller.post("/v1/loops", {"name": "router", **LOOP, "known": {"cost": PRICES}, "budget": BUDGET, **more})
    assert (made.status, made.json) == (201, {"name": "router"})


def twin(store: Store, **more: Any) -> Loop:
    how = {**LOOP, "known": {"cost": PRICES}, "budget": armlet.Budget(**BUDGET), **more}
    return store.loop("router", **how)


def item(event: str, value: object, **more: object) -> dict[str, object]:
    return {"loop": "router", "event": event, "value": value, **more}


def statuses(caller: Caller, *items: dict[str, object]) -> list[str]:
    return [one["status"] for one in caller.post(REWARDS, {"items": items}).json["items"]]


# ---- decisions


def test_a_decision_with_weights_is_the_one_that_the_loop_makes(caller: Caller) -> None:
    make(caller)
    with Store(Memory()) as store:
        loop = twin(store)
        for i in range(60):
            dial = {"cost": -4000.0 * (i % 2)} if i % 3 else None
            asked = {"context": [float(i % 5)], "event": f"r-{i}", **({} if dial is None else {"weights": dial})}
            body = caller.post(DECIDE, asked).json
            same = loop.decide([float(i % 5)], event=f"r-{i}", weights=dial)
            assert (body["arm"], body["propensity"], body.get("weights")) == (same.arm, same.propensity, same.weights)
            reward = {"quality": 0.5 if body["arm"] == "large" else 0.4, "delay": 1.0}
            assert statuses(caller, item(f"r-{i}", reward)) == [loop.reward(f"r-{i}", reward)] == ["accepted"]
        digest = loop.model().digest()
    assert armlet.from_bytes(caller.get("/v1/loops/router/model").body).digest() == digest


def test_weights_of_a_batch_are_for_all_of_it(caller: Caller) -> None:
    make(caller)
    items = caller.post(BATCH, {"items": [{"context": [1]}, {"context": [2]}], "weights": {"cost": -9}}).json["items"]
    assert [one["weights"] for one in items] == [{"quality": 1.0, "cost": -9.0, "delay": -0.1}] * 2


@pytest.mark.parametrize(
    ("weights", "field", "words"),
    [
        ({"price": 1.0}, "weights", "'price'"),
        ({}, "weights", "length >= 1"),
        ({"cost": "much"}, "weights", "Expected"),
        ({"cost": 1e41}, "weights", "1e+40"),
        ({"cost": 0, "quality": 0, "delay": 0}, None, ""),
        ([1.0], "weights", "Expected"),
    ],
)
def test_wrong_weights_are_refused_and_change_nothing(
    caller: Caller, store: Store, weights: object, field: str | None, words: str
) -> None:
    make(caller)
    before = list(store.loop("router").log)
    for path, asked in ((DECIDE, {"context": [1]}), (BATCH, {"items": [{"context": [1]}]})):
        answer = caller.post(path, {**asked, "weights": weights})
        if field is None:
            assert answer.status == 200  # weights of nothing are a tie, not a mistake
        else:
            assert words in problem(answer, 422, "invalid", field)
            assert list(store.loop("router").log) == before


def test_weights_of_a_loop_with_one_reward_are_refused(caller: Caller, store: Store) -> None:
    before = list(store.loop("home").log)
    answer = caller.post("/v1/loops/home/decide", {"context": [1, 2], "weights": {"cost": 1}})
    assert "one reward" in problem(answer, 422, "invalid", "weights")
    assert list(store.loop("home").log) == before


def test_an_event_asked_for_again_with_another_dial_is_a_conflict(caller: Caller) -> None:
    make(caller)
    asked = {"context": [1], "event": "r", "weights": {"cost": -9}}
    first = caller.post(DECIDE, asked).json
    assert caller.post(DECIDE, asked).json == first
    problem(caller.post(DECIDE, {**asked, "weights": {"cost": -8}}), 409, "conflict", "event")
    problem(caller.post(DECIDE, {"context": [1], "event": "r"}), 409, "conflict", "event")


def test_a_key_without_propensities_is_told_no_weights(store: Store) -> None:
    twin(store)
    grant = Grant(name="web", scopes=frozenset({"decide"}), propensity=False)
    service = Service(store, keyring=Keyring({digest("web"): grant}))
    with Caller(create_app(service), {"authorization": "Bearer web"}) as caller:
        assert caller.post(DECIDE, {"context": [1], "weights": {"cost": -9}}).json.keys() == {"event", "arm"}
    service.close()


# ---- rewards


def test_outcomes_of_a_decision_come_one_by_one(caller: Caller, store: Store) -> None:
    make(caller)
    caller.post(DECIDE, {"context": [1], "event": "r"})
    assert statuses(caller, item("r", {"delay": 2.0})) == ["accepted"]
    assert store.loop("router").stats().learned == 0
    assert statuses(caller, item("r", {"quality": 0.25, "delay": 2.0})) == ["accepted"]
    assert store.loop("router").stats().learned == 1
    assert statuses(caller, item("r", {"quality": 0.25})) == ["duplicate"]
    assert statuses(caller, item("r", {"quality": 0.75}, rank=1)) == ["replaced"]
    assert statuses(caller, item("r", {"quality": 0.5, "delay": 61.0}, rank=2)) == ["out_of_range"]


def test_rewards_that_do_not_fit_a_loop_are_refused_one_by_one(caller: Caller) -> None:
    make(caller)
    for loop in ("router", "home"):
        caller.post(f"/v1/loops/{loop}/decide", {"context": [1] if loop == "router" else [1, 2], "event": "r"})
    items = caller.post(
        REWARDS,
        {
            "items": [
                item("r", 1.0),
                item("r", {"price": 1.0}),
                item("r", {"cost": 1.0}),
                {**item("r", {"quality": 1.0}), "loop": "home"},
                item("r", {"quality": 1.0}),
            ]
        },
    ).json["items"]
    assert [one["status"] for one in items] == ["refused"] * 4 + ["accepted"]
    for one, words in zip(items, ("has outcomes", "no outcome", "is known", "one reward"), strict=False):
        assert words in one["detail"]
    answer = caller.post(REWARDS, {"items": [item("r", {})]})
    problem(answer, 422, "invalid", "items[0].value")


# ---- a budget


def test_a_hard_budget_that_allows_no_arm_is_a_problem_of_its_own(caller: Caller, store: Store) -> None:
    make(caller, budget={"outcome": "cost", "total": 0.0305, "period": 1000, "hard": True})
    assert caller.post(DECIDE, {"context": [1], "eligible": ["large"]}).status == 200
    before = list(store.loop("router").log)
    answer = caller.post(DECIDE, {"context": [8675309], "eligible": ["large"], "event": "r"})
    detail = problem(answer, 409, "over-budget")
    assert "hard budget" in detail
    assert "8675309" not in answer.text
    assert "0.03" not in answer.text  # nor what is left, which is not for every key
    items = [{"context": [1]}, {"context": [1]}]
    problem(caller.post(BATCH, {"items": items, "eligible": ["large"]}), 409, "over-budget")
    problem(caller.post(DECIDE, {"context": [1]}), 409, "over-budget")  # the small one costs too much as well
    assert list(store.loop("router").log) == before
    terms = {"outcome": "cost", "total": 0.5, "period": 1000, "hard": True}
    assert caller.post("/v1/loops/router/change", {"budget": terms}).status == 200
    assert caller.post(DECIDE, {"context": [1]}).status == 200


def test_a_bill_releases_what_a_hard_budget_keeps_back(caller: Caller) -> None:
    learned = {"known": {}, "reward_range": {**LOOP["reward_range"], "cost": [0, 5]}}
    make(caller, budget={"outcome": "cost", "total": 5.0, "horizon": 100, "hard": True}, **learned)
    assert caller.post(DECIDE, {"context": [1], "event": "first"}).status == 200
    problem(caller.post(DECIDE, {"context": [1]}), 409, "over-budget")
    path = "/v1/loops/router/bill"
    for _ in range(2):
        assert caller.post(path, {"event": "first", "cost": 0}).json == {"billed": True}
    assert caller.post(DECIDE, {"context": [1], "event": "second"}).status == 200
    assert caller.post(path, {"event": "second", "cost": 2.5}).json == {"billed": True}
    stats = caller.get("/v1/loops/router/stats").json
    assert (stats["budget"]["spent"], stats["learned"]) == (2.5, 0)
    assert caller.post(path, {"event": "unheard of", "cost": 1}).json == {"billed": False}
    problem(caller.post(path, {"event": "first", "cost": "1"}), 422, "invalid", "cost")
    assert "has no budget" in problem(caller.post("/v1/loops/home/bill", {"event": "e", "cost": 1}), 422, "invalid")


def test_stats_details_and_metrics_show_outcomes_and_budget(caller: Caller) -> None:
    make(caller)
    for i in range(10):
        caller.post(DECIDE, {"context": [1], "event": f"r-{i}"})
        assert statuses(caller, item(f"r-{i}", {"quality": 0.5, "delay": 3})) == ["accepted"]
    stats, details = caller.get("/v1/loops/router/stats").json, caller.get("/v1/loops/router").json
    for answer in (stats, details):
        means = {one["outcome"]: (one["values"], one["mean"]) for one in answer["outcomes"] if one["arm"] is None}
        assert means["quality"] == (10, 0.5)
        assert means["delay"] == (10, 3.0)
        assert means["cost"][0] == 10
        assert answer["budget"]["spent"] == pytest.approx(10 * means["cost"][1])
    assert stats["budget"]["decisions_left"] == 290
    metrics = caller.get("/metrics").text
    assert 'armlet_budget_spent{loop="router"' in metrics
    assert 'armlet_budget_price{loop="router"' in metrics


# ---- making and changing


def test_a_loop_is_made_as_the_store_makes_it(caller: Caller, store: Store) -> None:
    make(caller)
    with Store(Memory()) as other:
        assert store.loop("router").model().settings == twin(other).model().settings


@pytest.mark.parametrize(
    ("known", "prices"),
    [
        ({"cost": {"small": 1, "1": 2}}, {"small": 1.0, 1: 2.0}),
        ({"cost": [["small", 1], [1, 2]]}, {"small": 1.0, 1: 2.0}),
    ],
)
def test_prices_of_arms_are_by_their_text_or_in_pairs(
    caller: Caller, store: Store, known: object, prices: dict[str | int, float]
) -> None:
    make(caller, arms=["small", 1], known=known)
    outcomes = store.loop("router").model().settings.outcomes
    assert outcomes is not None
    assert outcomes.known == {"cost": prices}
    assert caller.post("/v1/loops/router/change", {"known": {"cost": {"1": 3}}}).status == 200
    outcomes = store.loop("router").model().settings.outcomes
    assert outcomes is not None
    assert outcomes.known == {"cost": {**prices, 1: 3.0}}


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        ({"known": {"cost": {"small": 1}}}, "known", "no cost of arm 'large'"),
        ({"known": {"price": PRICES}}, "known", "'price', which is no outcome"),
        ({"arms": ["1", 1], "known": {"cost": {"1": 1}}}, "known", "the text of two arms; give pairs"),
        ({"outcomes": {"quality": 0.0}}, "outcomes", "weighs nothing"),
        ({"outcomes": None}, "known", "no outcomes"),
        ({"outcomes": {}}, "outcomes", "length >= 1"),
        ({"budget": {**BUDGET, "outcome": "price"}}, "budget", "'price', which is no outcome"),
        ({"budget": {**BUDGET, "period": 5}}, "budget", "give one of them"),
        ({"budget": {"outcome": "cost", "total": 1}}, "budget", "neither horizon nor period"),
        ({"budget": {**BUDGET, "total": 0}}, "budget.total", "> 0"),
        ({"budget": {**BUDGET, "totle": 1}}, "budget", "totle"),
        ({"reward_range": [0, 1]}, "reward_range", "give one for each by name"),
        ({"reward_range": {"quality": [1, 0]}}, "reward_range", "two numbers that differ"),
        ({"window": 60, "default_reward": 0}, "default_reward", "has outcomes"),
        ({"window": 60, "default_reward": {"cost": 0}}, "default_reward", "not learned"),
        ({"objective": "min"}, "objective", "outcomes have weights"),
        (
            {"arms": list(range(10_000)), "outcomes": {str(at): 1.0 for at in range(64)}, "dim": 80, "features": []},
            "arms",
            "80 features and 64 outcomes would need",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_field(
    caller: Caller, store: Store, wrong: dict[str, object], field: str | None, words: str
) -> None:
    asked = {"name": "router", **LOOP, "known": {"cost": PRICES}, "budget": BUDGET, **wrong}
    answer = caller.post("/v1/loops", asked)
    body = answer.json
    assert answer.status == 422
    assert words in body["detail"], body
    assert body.get("field") == field, body
    assert "router" not in store.loops


def test_weights_prices_and_budget_are_changed(caller: Caller, store: Store) -> None:
    make(caller)
    change = {"outcomes": {"cost": -20.0}, "known": {"cost": {"large": 0.02}}, "budget": {**BUDGET, "total": 3.0}}
    assert caller.post("/v1/loops/router/change", change).json == {"status": "done"}
    settings = store.loop("router").model().settings
    assert settings.outcomes is not None
    assert dict(settings.outcomes.weights) == {"quality": 1.0, "cost": -20.0, "delay": -0.1}
    assert settings.outcomes.known == {"cost": {"small": 0.001, "large": 0.02}}
    assert settings.budget == armlet.Budget("cost", total=3.0, horizon=300)
    before = list(store.loop("router").log)
    answer = caller.post("/v1/loops/router/change", {"outcomes": {"price": 1.0}})
    assert "'price'" in problem(answer, 422, "invalid", "outcomes")
    answer = caller.post("/v1/loops/home/change", {"budget": BUDGET})
    assert "one reward" in problem(answer, 422, "invalid", "budget")
    assert list(store.loop("router").log) == before


def test_a_new_arm_comes_with_its_price(caller: Caller, store: Store) -> None:
    make(caller)
    path = "/v1/loops/router/arms"
    problem(caller.post(path, {"action": "add", "arm": "tiny"}), 422, "invalid", "known")
    problem(caller.post(path, {"action": "retire", "arm": "small", "known": {"cost": 1}}), 422, "invalid", "known")
    assert caller.post(path, {"action": "add", "arm": "tiny", "known": {"cost": 0.0001}}).status == 200
    assert list(store.loop("router").model().arms) == ["small", "large", "tiny"]
