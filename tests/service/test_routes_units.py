"""Units over HTTP: a session keeps its arm, and what is said of that."""

from __future__ import annotations

import datetime

import pytest

from armlet.service.app import Service, create_app
from armlet.service.keys import Grant, Keyring, digest
from armlet.stores import Memory, Store
from support.service.calls import Caller, problem

ARMS = ["sale", "new", "old"]
DECIDE, BATCH = "/v1/loops/sticky/decide", "/v1/loops/sticky/decide/batch"


@pytest.fixture
def sticky(store: Store, caller: Caller) -> Caller:
    store.loop("sticky", arms=ARMS, dim=1, seed=7, epoch=50)
    return caller


def test_a_unit_keeps_its_arm_and_the_answer_says_in_which_epoch(sticky: Caller) -> None:
    with Store(Memory()) as store:
        twin = store.loop("sticky", arms=ARMS, dim=1, seed=7, epoch=50)
        for i in range(120):
            unit = f"session-{i % 7}"
            answer = sticky.post(DECIDE, {"context": [1.0], "unit": unit}).json
            same = twin.decide([1.0], unit=unit)
            assert (answer["arm"], answer["propensity"], answer["unit"]) == (same.arm, same.propensity, unit)
            assert answer["epoch"] == same.epoch == i // 50
        counts = twin.stats().units
        assert counts is not None
        assert sticky.get("/v1/loops/sticky/stats").json["units"] == {
            "decisions": 120,
            "repeats": counts.repeats,
            "switches": 0,
        }
    assert "armlet_unit_switches_total" in sticky.get("/metrics").text


def test_units_of_a_batch_are_those_of_its_items(sticky: Caller) -> None:
    units = ["a", None, "b", "a", "b"]
    items = [{"context": [1.0], **({} if unit is None else {"unit": unit})} for unit in units]
    answers = sticky.post(BATCH, {"items": items}).json["items"]
    assert [one.get("unit") for one in answers] == units
    assert [one.get("epoch") for one in answers] == [0, None, 0, 0, 0]
    assert answers[0]["arm"] == answers[3]["arm"]
    assert answers[2]["arm"] == answers[4]["arm"]


def test_a_unit_of_a_loop_without_epochs_is_refused_and_changes_nothing(caller: Caller, store: Store) -> None:
    before = list(store.loop("home").log)
    answer = caller.post("/v1/loops/home/decide", {"context": [1.0, 2.0], "unit": "session-1"})
    assert "has no epochs; make it with epoch=1000" in problem(answer, 422, "invalid", "unit")
    items = [{"context": [1.0, 2.0]}, {"context": [1.0, 2.0], "unit": "session-1"}]
    problem(caller.post("/v1/loops/home/decide/batch", {"items": items}), 422, "invalid", "items[1].unit")
    problem(caller.post("/v1/loops/home/decide", {"context": [1.0, 2.0], "unit": ""}), 422, "invalid", "unit")
    assert list(store.loop("home").log) == before


def test_a_wrong_context_of_a_unit_is_named_without_its_values(sticky: Caller) -> None:
    problem(sticky.post(DECIDE, {"context": [1.0, 8675309.0], "unit": "a"}), 422, "invalid", "context")


def test_an_event_of_another_unit_is_a_conflict(sticky: Caller) -> None:
    first = sticky.post(DECIDE, {"context": [1.0], "unit": "a", "event": "visit"}).json
    assert sticky.post(DECIDE, {"context": [1.0], "unit": "a", "event": "visit"}).json == first
    answer = sticky.post(DECIDE, {"context": [1.0], "unit": "b", "event": "visit"})
    assert "another context, unit" in problem(answer, 409, "conflict", "event")


def test_a_key_without_propensities_is_told_no_epoch(store: Store) -> None:
    store.loop("sticky", arms=ARMS, dim=1, seed=7, epoch=50)
    grant = Grant(name="web", scopes=frozenset({"decide"}), propensity=False)
    service = Service(store, keyring=Keyring({digest("web"): grant}))
    with Caller(create_app(service), {"authorization": "Bearer web"}) as caller:
        assert caller.post(DECIDE, {"context": [1.0], "unit": "a"}).json.keys() == {"event", "arm"}
        [one] = caller.post(BATCH, {"items": [{"context": [1.0], "unit": "a"}]}).json["items"]
        assert one.keys() == {"event", "arm"}
    service.close()


@pytest.mark.parametrize(
    ("epoch", "made"), [(1000, 1000), ({"seconds": 3600}, datetime.timedelta(hours=1)), (None, None)]
)
def test_a_loop_is_made_with_epochs(caller: Caller, store: Store, epoch: object, made: object) -> None:
    asked = {"name": "made", "arms": ARMS, "dim": 1, "epoch": epoch}
    assert caller.post("/v1/loops", asked).status == 201
    assert store.loop("made").model().settings.epoch == made


@pytest.mark.parametrize("epoch", [0, -1, 1.5, "1h", {"seconds": 0}, {"minutes": 1}, {}, 2**60], ids=str)
def test_a_wrong_epoch_is_refused(caller: Caller, store: Store, epoch: object) -> None:
    answer = caller.post("/v1/loops", {"name": "made", "arms": ARMS, "dim": 1, "epoch": epoch})
    problem(answer, 422, "invalid", "epoch.seconds" if epoch == {"seconds": 0} else "epoch")
    assert "made" not in store.loops
