"""What every route does the same: methods, bodies, limits, failures and streams."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest

from armlet.errors import PolicyError, QueueFullError, StoreError, UncertainError
from armlet.service.app import Service, create_app
from armlet.service.config import Limits
from armlet.stores import Loop, Store
from armlet.stores.folds import Tally
from armlet.stores.ledger import Row
from support.service.calls import Answer, Caller, exchange, problem

CONTEXT = {"age": 31.0, "basket": 2.5}
DECIDE, BATCH = "/v1/loops/home/decide", "/v1/loops/home/decide/batch"
JSON = {"content-type": "application/json"}


# ---- the server itself


def test_the_server_says_how_it_is(service: Service, caller: Caller) -> None:
    service.phase = "starting"
    assert caller.get("/healthz").json == {"status": "ok"}
    answer = caller.get("/readyz")
    problem(answer, 503, "unavailable")
    assert answer.headers["retry-after"] == "1"
    problem(caller.post(DECIDE, {"context": CONTEXT}), 503, "unavailable")
    service.phase = "ready"
    assert caller.get("/readyz").json == {"status": "ready"}
    service.phase = "draining"
    problem(caller.get("/readyz"), 503, "unavailable")
    assert caller.post(DECIDE, {"context": CONTEXT}).status == 200  # requests under way are served


def test_head_is_a_get_without_a_body(caller: Caller) -> None:
    got, head = caller.get("/healthz"), caller.send("HEAD", "/healthz")
    assert (head.status, head.body) == (200, b"")
    assert head.headers == got.headers


def test_other_methods_are_refused_with_those_that_are_there(caller: Caller) -> None:
    for path, allow in (("/v1/loops", "GET, HEAD, POST"), (DECIDE, "POST"), ("/v1/loops/home", "DELETE")):
        answer = caller.send("PUT", path)
        problem(answer, 405, "method-not-allowed")
        assert set(allow.split(", ")) <= set(answer.headers["allow"].split(", "))


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/loops/home/", "/v1/loops/", "/v1/loops//stats", "/v1/loops/home/decide/", "/v1/loops/%FF"]
)
def test_other_paths_are_not_there(caller: Caller, path: str) -> None:
    problem(caller.send("GET", path), 404, "not-found")


# ---- bodies


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b"\xff", b'{"context": [NaN]}', b"[" * 100_000, b"[1] x"])
def test_what_is_not_json_is_refused(caller: Caller, body: bytes) -> None:
    answer = caller.send("POST", DECIDE, body, JSON)
    assert answer.status in (400, 422)
    assert answer.json["type"].endswith(("malformed", "invalid"))


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; a=b", ""])
def test_only_json_is_taken(caller: Caller, kind: str) -> None:
    problem(caller.send("POST", DECIDE, b'{"context": [1, 2]}', {"content-type": kind}), 415, "unsupported-media-type")
    taken = caller.send("POST", DECIDE, b'{"context": [1, 2]}', {"content-type": "Application/JSON; charset=utf-8"})
    assert taken.status == 200


def frames(*pieces: bytes) -> list[Any]:
    """Return a body in pieces."""
    return [{"type": "http.request", "body": piece, "more_body": i < len(pieces)} for i, piece in enumerate(pieces, 1)]


def test_bodies_are_limited_by_what_is_said_and_by_what_is_sent(store: Store) -> None:
    service = Service(store, limits=Limits(body=100, batch_body=300))
    with Caller(create_app(service)) as caller:
        assert caller.frames("POST", DECIDE, frames(b'{"context"', b": [1,", b" 2]}"), JSON).status == 200
        for sent in ([b" " * 60, b" " * 60], [b" " * 101]):
            answer = caller.frames("POST", DECIDE, frames(*sent), JSON)
            problem(answer, 413, "too-large")
            assert answer.headers["connection"] == "close"
        for length in ("101", "9" * 30, "-1", "x"):
            problem(caller.frames("POST", DECIDE, [], {**JSON, "content-length": length}), 413, "too-large")
        problem(caller.send("POST", BATCH, b" " * 301, JSON), 413, "too-large")
        assert caller.send("POST", BATCH, b" " * 300, JSON).status == 400
    service.close()


def test_a_body_that_never_comes_is_not_waited_for(store: Store) -> None:
    service = Service(store, limits=Limits(body_seconds=0.01))
    with Caller(create_app(service)) as caller:
        half = [{"type": "http.request", "body": b"{", "more_body": True}]
        answer = caller.frames("POST", DECIDE, half, JSON)
        problem(answer, 408, "request-timeout")
        assert answer.headers["connection"] == "close"
    service.close()


def test_a_batch_has_a_most(store: Store) -> None:
    service = Service(store, limits=Limits(batch=2))
    with Caller(create_app(service)) as caller:
        problem(caller.post(BATCH, {"items": [{"context": CONTEXT}] * 3}), 422, "invalid", "items")
        item = {"loop": "home", "event": "e", "value": 1}
        problem(caller.post("/v1/rewards", {"items": [item] * 3}), 422, "invalid", "items")
    service.close()


# ---- failures


@pytest.mark.parametrize(
    ("error", "slug", "status"),
    [
        (StoreError("nothing of this call was kept: /var/lib/secret/shop.db is full"), "unavailable", "unavailable"),
        (QueueFullError("4,096 calls wait"), "unavailable", "unavailable"),
        (UncertainError("no answer from postgresql://secret"), "outcome-unknown", "outcome_unknown"),
    ],
)
def test_a_store_that_fails_is_a_503_that_says_what_was_kept(
    caller: Caller, store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception, slug: str, status: str
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise error

    async def fail_each(_: object, rewards: list[dict[str, Any]]) -> list[Any]:
        return [error if item["loop"] == "home" else "accepted" for item in rewards]

    store.loop("other", arms=["a", "b"], dim=1)
    for name in ("adecide", "adecide_many", "areward"):
        monkeypatch.setattr(Loop, name, fail)
    monkeypatch.setattr(Store, "areward_many", fail_each)
    reward = {"loop": "home", "event": "e", "value": 1}
    for path, asked in (
        (DECIDE, {"context": CONTEXT}),
        (BATCH, {"items": [{"context": CONTEXT}]}),
        ("/v1/rewards", {"items": [reward]}),
        ("/v1/rewards", {"items": [reward, reward]}),
    ):
        answer = caller.post(path, asked)
        assert "secret" not in answer.text
        problem(answer, 503, slug)
        assert answer.headers["retry-after"] == "1"
    items = caller.post("/v1/rewards", {"items": [reward, {**reward, "loop": "other"}]}).json["items"]
    assert [each["status"] for each in items] == [status, "accepted"]


def test_rewards_of_which_one_may_have_been_kept_are_not_called_lost(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail_each(_: object, __: object) -> list[Exception]:
        return [StoreError("the deadline passed before it was begun"), UncertainError("... and after")]

    monkeypatch.setattr(Store, "areward_many", fail_each)
    reward = {"loop": "home", "event": "e", "value": 1}
    problem(caller.post("/v1/rewards", {"items": [reward, reward]}), 503, "outcome-unknown")


def test_labels_that_cannot_be_read_after_a_decision_leave_its_outcome_unknown(
    caller: Caller, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Loop) -> None:
        raise StoreError("full")

    asked = {"context": CONTEXT, "event": "e", "probabilities": "all"}
    with monkeypatch.context() as broken:
        broken.setattr(Loop, "model", fail)
        problem(caller.post(DECIDE, asked), 503, "unavailable")
    assert store.loop("home").stats().decisions == 0  # nothing was kept, as it says
    first = caller.post(DECIDE, asked).json
    assert "probabilities" not in caller.post(DECIDE, {"context": CONTEXT, "event": "e"}).json
    store.loop("home").add_arm("later")
    with monkeypatch.context() as broken:
        broken.setattr(Loop, "model", fail)
        problem(caller.post(DECIDE, {**asked, "event": "f"}), 503, "outcome-unknown")
    assert store.loop("home").stats().decisions == 2
    assert len(caller.post(DECIDE, {**asked, "event": "f"}).json["probabilities"]) == 5
    assert caller.post(DECIDE, asked).json == first


def test_what_nobody_thought_of_is_a_500_without_a_word(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret 31.0")

    monkeypatch.setattr(Loop, "adecide", fail)
    answer = caller.post(DECIDE, {"context": CONTEXT})
    problem(answer, 500, "internal")
    assert "secret" not in answer.text + caplog.text
    assert "RuntimeError at" in caplog.text


def test_fault_inside_the_store_is_a_500_that_is_counted(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen, failing = Tally.see, set[str]()

    def see(tally: Tally, row: Row, *about: Any, **how: Any) -> None:
        if row.kind in failing:
            raise ValueError("not enough values to unpack, secret 31.0")
        seen(tally, row, *about, **how)

    caller.post(DECIDE, {"context": CONTEXT, "event": "e"})
    reward = {"loop": "home", "event": "e", "value": 1.0}
    calls: list[tuple[tuple[str, ...], str, Any]] = [
        (("decide",), DECIDE, {"context": CONTEXT, "event": "f"}),
        (("reward", "learn"), "/v1/rewards", {"items": [reward]}),
        (("change",), "/v1/loops/home/change", {"aggregation": "last"}),
        (("reward", "learn"), "/v1/rewards", {"items": [reward, {**reward, "event": "unknown"}]}),
    ]
    answers = []
    for kinds, path, asked in calls:
        with monkeypatch.context() as patched:
            failing = set(kinds)
            patched.setattr(Tally, "see", see)
            answers.append(caller.post(path, asked))
    mixed = answers.pop()
    for answer in answers:
        problem(answer, 500, "internal")
        assert "secret" not in answer.text + caplog.text
    assert [item["status"] for item in mixed.json["items"]] == ["failed", "unknown"]
    assert caplog.text.count("rolled back: ValueError at armlet.stores") == 4
    metrics = caller.get("/metrics").text
    assert "armlet_faults_total 4" in metrics
    assert 'route="/v1/loops/{name}/decide",status="500"} 1' in metrics
    assert caller.post(DECIDE, {"context": CONTEXT, "event": "f"}).status == 200
    assert caller.post("/v1/rewards", {"items": [reward]}).json["items"] == [{"status": "accepted"}]


def test_a_policy_that_fails_is_a_500_that_names_no_value(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise PolicyError("the policy answered secret")

    monkeypatch.setattr(Loop, "adecide", fail)
    for asked in ({"context": CONTEXT}, {"context": CONTEXT, "eligible": ["sale"]}):
        answer = caller.post(DECIDE, asked)
        problem(answer, 500, "internal")
        assert "secret" not in answer.text + caplog.text
    assert "the policy of loop home failed: PolicyError" in caplog.text


def test_threads_are_not_waited_for_without_end(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    caller.post(DECIDE, {"context": CONTEXT})
    monkeypatch.setattr("armlet.service.app.WAITING", 0)
    problem(caller.get("/v1/loops/home/stats"), 503, "unavailable")
    assert caller.post(DECIDE, {"context": CONTEXT}).status == 200  # decisions need none


def test_a_stream_ends_when_nobody_reads_it(service: Service, store: Store) -> None:
    """The client takes one piece and goes; the log is not read to its end."""
    store.loop("home").decide_many(np.ones((5000, 2)).tolist())
    app = create_app(service)

    async def read_one() -> int:
        gone, pieces = asyncio.Event(), []

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message.get("body"):
                pieces.append(message)
                gone.set()
                await asyncio.sleep(0)  # the client's end of the connection is seen

        path = "/v1/loops/home/log"
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }
        await app(scope, receive, send)
        return len(pieces)

    assert asyncio.run(read_one()) <= 2


def test_requests_at_the_same_time_are_decided_one_by_one(store: Store, service: Service) -> None:
    app = create_app(service)

    async def many() -> list[Answer]:
        body = json.dumps({"context": CONTEXT}).encode()
        headers = {**JSON, "host": "localhost"}
        frame = {"type": "http.request", "body": body, "more_body": False}
        return await asyncio.gather(*(exchange(app, "POST", DECIDE, [dict(frame)], headers) for _ in range(64)))

    answers = asyncio.run(many())
    assert {answer.status for answer in answers} == {200}
    assert len({answer.json["event"] for answer in answers}) == 64
    assert store.loop("home").stats().decisions == 64
