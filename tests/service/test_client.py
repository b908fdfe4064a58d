"""The client: what it sends, what it repeats and what it does not. Its server is a function, and its clock a number."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any
from uuid import UUID

import httpx2
import numpy as np
import pytest

from armlet.errors import InvalidTypeError, InvalidValueError, ServiceError
from armlet.service import client as module
from armlet.service.client import Answer, AsyncClient, Client, Judgement, new_event

URL = "http://armlet.test"
DECIDED = {"event": "order-1", "arm": "sale", "propensity": 0.5, "explored": True, "later": "a field of tomorrow"}
BUSY = (503, {"type": "urn:armlet:problem:unavailable", "detail": "try again"}, {"retry-after": "3"})


class Clock:
    """Goes on only when somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.slept = 1000.0, list[float]()
        self.time_ns = time.time_ns

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Server:
    """Answers what it was told to, one after the other; the last one again and again."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.answers, self.requests = clock, list[Any](), list[httpx2.Request]()

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, type):
            if issubclass(answer, httpx2.TimeoutException):  # at the last moment
                self.clock.now += sum(request.extensions["timeout"].values())
            raise answer("it failed")
        status, body, headers = answer if isinstance(answer, tuple) else (200, answer, {})
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx2.Response(status, content=content, headers=headers)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests if request.content]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("armlet.service.client.time", clock)
    return clock


@pytest.fixture
def server(clock: Clock) -> Server:
    return Server(clock)


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(URL, "armlet_secret", transport=httpx2.MockTransport(server)) as client:
        yield client


def refused(call: Callable[[], object]) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        call()
    return caught.value


# ---- what is sent


def test_a_decision_is_asked_for_with_an_event_and_a_key(server: Server, client: Client) -> None:
    server.answers = [DECIDED]
    assert client.decide("home", {"age": 31}, eligible=["sale", 3]) == Answer("order-1", "sale", 0.5, True)
    [request], [body] = server.requests, server.bodies
    assert (request.method, str(request.url)) == ("POST", f"{URL}/v1/loops/home/decide")
    assert request.headers["authorization"] == "Bearer armlet_secret"
    assert request.headers["content-type"] == "application/json"
    assert UUID(body.pop("event")).version == 7
    assert body == {"context": {"age": 31}, "eligible": ["sale", 3]}


def test_an_answer_to_a_key_without_propensities_has_none(server: Server, client: Client) -> None:
    server.answers = [{"event": "order-1", "arm": 7}]
    assert client.decide("home", [1.0], event="order-1") == Answer("order-1", 7, None, None)


def test_events_are_uuids_that_grow_with_time(clock: Clock) -> None:
    times = [1_790_000_000_000_000_000 + 500 * step for step in range(5000)]  # nanoseconds; a step of the field is 244
    clock.time_ns = iter(times).__next__
    events = [new_event() for _ in times]
    assert events == sorted(events)
    assert len(set(events)) == len(events)
    assert {(UUID(event).version, UUID(event).variant) for event in events} == {(7, "specified in RFC 4122")}
    assert int(events[-1].replace("-", "")[:12], 16) == times[-1] // 1_000_000


def test_names_of_loops_are_quoted(server: Server, client: Client) -> None:
    server.answers = [DECIDED]
    client.decide("a/b?c ü", [1.0])
    assert server.requests[0].url.raw_path == b"/v1/loops/a%2Fb%3Fc%20%C3%BC/decide"


def test_a_path_before_the_routes_is_kept(server: Server) -> None:
    server.answers = [DECIDED]
    with Client(f"{URL}/armlet", transport=httpx2.MockTransport(server)) as client:
        client.decide("home", [1.0])
    assert server.requests[0].url.path == "/armlet/v1/loops/home/decide"


def test_contexts_may_be_of_numpy(server: Server, client: Client) -> None:
    server.answers = [DECIDED]
    client.decide("home", np.array([0.5, 2.0]))
    client.decide("home", {"age": np.float64(0.5), "visits": np.int64(3)})
    assert [body["context"] for body in server.bodies] == [[0.5, 2.0], {"age": 0.5, "visits": 3}]
    with pytest.raises(InvalidTypeError, match="a complex cannot be sent; give numbers, text"):
        client.decide("home", {"age": 1j})
    assert len(server.requests) == 2


def test_each_of_many_has_an_event(server: Server, client: Client) -> None:
    server.answers = [{"items": [DECIDED, DECIDED]}]
    assert client.decide_many("home", iter([[1.0], [2.0]])) == [Answer("order-1", "sale", 0.5, True)] * 2
    client.decide_many("home", [[1.0], [2.0]], events=["a", "b"])
    made, given = ([item["event"] for item in body["items"]] for body in server.bodies)
    assert len(set(made)) == 2
    assert given == ["a", "b"]
    with pytest.raises(InvalidValueError, match="events has 1 names for 2 contexts"):
        client.decide_many("home", [[1.0], [2.0]], events=["a"])


def test_units_are_sent_and_told(server: Server, client: Client) -> None:
    server.answers = [{**DECIDED, "unit": "session-1", "epoch": 3}]
    answer = client.decide("home", [1.0], unit="session-1")
    assert (answer.unit, answer.epoch) == ("session-1", 3)
    server.answers = [{"items": [{**DECIDED, "unit": "session-1", "epoch": 3}, DECIDED]}]
    answers = client.decide_many("home", [[1.0], [2.0]], units=["session-1", None])
    assert [(each.unit, each.epoch) for each in answers] == [("session-1", 3), (None, None)]
    one, many = server.bodies
    assert one["unit"] == "session-1"
    assert [item.get("unit") for item in many["items"]] == ["session-1", None]
    with pytest.raises(InvalidValueError, match="units has 1 names for 2 contexts"):
        client.decide_many("home", [[1.0], [2.0]], units=["session-1"])


def test_a_bill_is_sent(server: Server, client: Client) -> None:
    server.answers = [BUSY, {"billed": True}]
    assert client.bill("a/b", "e", np.float64(0.25))
    assert server.bodies == [{"event": "e", "cost": 0.25}] * 2
    assert server.requests[1].url.raw_path == b"/v1/loops/a%2Fb/bill"

    async def bill() -> bool:
        async with AsyncClient(URL, transport=httpx2.MockTransport(server)) as client:
            return await client.bill("home", "e", 0.0)

    server.answers = [{"billed": False}]
    assert not asyncio.run(bill())


def test_actions_are_sent_prepared_and_activated(server: Server, client: Client) -> None:
    server.answers = [DECIDED]
    films: Any = {"Up": {"year": np.int64(2009)}, "Heat": np.array([1995.0])}
    client.decide("films", [1.0], event="e", actions=films, baseline="Up", defer=True)
    client.decide("films", [1.0], event="e", actions="cinema")
    server.answers = [{"items": [DECIDED]}]
    client.decide_many("films", [[1.0]], events=["e"], actions="cinema")
    server.answers = [BUSY, {"status": "done"}]
    client.prepare("films", "a/b", films)
    server.answers = [{"activated": True}]
    assert client.activate("films", "e")
    server.answers = [{"status": "done"}]
    client.remove_table("films", "a/b")
    one, other, many, _, table, activated = server.bodies
    rows = {"Up": {"year": 2009}, "Heat": [1995.0]}
    same = {"context": [1.0], "event": "e"}
    assert one == {**same, "actions": rows, "baseline": "Up", "defer": True}
    assert other == {**same, "actions": "cinema"}
    assert many["actions"] == "cinema"
    assert (table, activated) == ({"actions": rows}, {"event": "e"})
    assert [request.method for request in server.requests] == [*["POST"] * 3, "PUT", "PUT", "POST", "DELETE"]
    assert server.requests[4].url.raw_path == b"/v1/loops/films/actions/a%2Fb"
    assert server.requests[5].url.path == "/v1/loops/films/activate"
    assert (server.requests[6].url.raw_path, server.requests[6].content) == (b"/v1/loops/films/actions/a%2Fb", b"")


def test_weights_and_several_outcomes_are_sent_and_told(server: Server, client: Client) -> None:
    weights = {"quality": 1.0, "cost": -400.0}
    server.answers = [{**DECIDED, "weights": weights}]
    dial = MappingProxyType({"cost": np.float64(-400.0)})
    assert client.decide("router", [1.0], weights=dial).weights == weights
    server.answers = [{"items": [{**DECIDED, "weights": weights}]}]
    assert client.decide_many("router", [[1.0]], weights={"cost": -400})[0].weights == weights
    server.answers = [{"items": [{"status": "accepted"}]}]
    assert client.reward("router", "order-1", {"quality": 0.9}, name="judge") == "accepted"
    one, many, reward = server.bodies
    assert one["weights"] == many["weights"] == {"cost": -400.0}
    assert reward["items"][0]["value"] == {"quality": 0.9}


def test_a_reward_has_a_name_so_that_a_sum_counts_it_once(server: Server, client: Client) -> None:
    server.answers = [(503, {"type": module.UNKNOWN, "detail": "who knows"}, {}), {"items": [{"status": "duplicate"}]}]
    assert client.reward("home", "order-1", 1.0) == "duplicate"
    first, second = server.bodies
    assert first == second
    assert first["items"][0].pop("name")
    assert first == {"items": [{"loop": "home", "event": "order-1", "value": 1.0}]}
    client.reward("home", "order-1", 1.0, name="click", rank=2, played="new")
    assert server.bodies[-1]["items"][0] == {
        "loop": "home",
        "event": "order-1",
        "value": 1.0,
        "name": "click",
        "rank": 2,
        "played": "new",
    }


# ---- what is repeated


@pytest.mark.parametrize(
    "failure",
    [httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ReadTimeout, httpx2.RemoteProtocolError, BUSY, (502, b"", {})],
)
def test_what_has_no_final_answer_is_sent_again_as_it_was(failure: Any, server: Server, client: Client) -> None:
    server.answers = [failure, failure, DECIDED]
    assert client.decide("home", [1.0]).event == "order-1"
    assert len(server.requests) == 3
    assert len({request.content for request in server.requests}) == 1  # the event too


def test_pauses_double_and_are_drawn_by_chance(server: Server, client: Client, clock: Clock) -> None:
    server.answers = [httpx2.ConnectError] * 6 + [DECIDED]
    client.decide("home", [1.0])
    assert [0.025 * 2**i <= pause <= 0.05 * 2**i for i, pause in enumerate(clock.slept)] == [True] * 6
    assert len({pause / 2**i for i, pause in enumerate(clock.slept)}) == 6


def test_a_pause_is_as_long_as_the_server_asks(server: Server, client: Client, clock: Clock) -> None:
    server.answers = [BUSY, DECIDED]
    client.decide("home", [1.0])
    assert 3.0 < clock.slept[0] <= 3.05


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500])
def test_what_is_refused_is_sent_once(status: int, server: Server, client: Client) -> None:
    server.answers = [(status, {"type": "urn:x", "detail": "give a number", "field": "context.age"}, {})]
    error = refused(lambda: client.decide("home", {"age": "x"}))
    assert (error.status, error.type, error.field) == (status, "urn:x", "context.age")
    assert str(error) == f"context.age: give a number ({status})"
    assert len(server.requests) == 1


@pytest.mark.parametrize("failure", [httpx2.ReadTimeout, httpx2.ConnectTimeout, httpx2.ConnectError, BUSY])
def test_a_call_ends_in_time(failure: Any, server: Server, client: Client, clock: Clock) -> None:
    server.answers = [failure]
    begun = clock.now
    refused(lambda: client.decide("home", [1.0]))
    assert clock.now - begun <= 10.0
    assert 2 < len(server.requests) < 20


def test_an_attempt_leaves_time_for_another(server: Server, client: Client) -> None:
    server.answers = [httpx2.ReadTimeout, DECIDED]
    client.decide("home", [1.0])
    waits = [sum(request.extensions["timeout"].values()) for request in server.requests]
    assert waits[0] == pytest.approx(5.0)
    assert waits[1] < 2.5


def test_an_error_says_whether_the_call_may_have_been_kept(server: Server, client: Client) -> None:
    server.answers = [httpx2.ConnectError]
    error = refused(lambda: client.decide("home", [1.0]))
    assert (error.status, error.type) == (None, module.UNAVAILABLE)
    assert str(error) == f"no answer from {URL}: ConnectError: it failed"
    server.answers = [httpx2.ReadTimeout, BUSY]  # the first attempt may have been kept, whatever the last one was told
    error = refused(lambda: client.decide("home", [1.0]))
    assert (error.status, error.type) == (503, module.UNKNOWN)
    server.answers = [httpx2.ReadTimeout, (422, {"type": "urn:x", "detail": "no"}, {})]  # it cannot have been
    assert refused(lambda: client.decide("home", [1.0])).type == "urn:x"


def test_only_rewards_that_were_not_kept_are_sent_again(server: Server, client: Client) -> None:
    statuses = ["accepted", "unavailable", "no_loop", "outcome_unknown"]
    server.answers = [
        {"items": [{"status": status} for status in statuses]},
        {"items": [{"status": "accepted"}, {"status": "duplicate"}]},
    ]
    items = [{"loop": f"loop-{i}", "event": "e", "value": 1.0} for i in range(4)]
    assert client.rewards(items) == [Judgement(word) for word in ("accepted", "accepted", "no_loop", "duplicate")]
    first, second = (body["items"] for body in server.bodies)
    assert second == [first[1], first[3]]  # with their names
    assert items[0] == {"loop": "loop-0", "event": "e", "value": 1.0}  # the caller's own is left alone


def test_rewards_that_could_not_be_written_in_time_say_so(server: Server, client: Client, clock: Clock) -> None:
    server.answers = [{"items": [{"status": "unavailable"}]}]
    begun = clock.now
    assert client.rewards([{"loop": "home", "event": "e", "value": 1.0}]) == [Judgement("unavailable")]
    assert clock.now - begun <= 10.0


def test_what_is_known_of_rewards_is_told_when_time_runs_out(server: Server, client: Client) -> None:
    items = [{"loop": loop, "event": "e", "value": 1.0} for loop in ("a", "b")]
    mixed = {"items": [{"status": "accepted"}, {"status": "unavailable"}]}
    for failure, word in ((BUSY, "unavailable"), (httpx2.ReadTimeout, "outcome_unknown")):
        server.answers = [mixed, failure]
        assert client.rewards(items) == [Judgement("accepted"), Judgement(word)]


@pytest.mark.parametrize(
    ("word", "status"),
    [("refused", 422), ("no_loop", 404), ("forbidden", 403), ("unavailable", 503), ("outcome_unknown", 503)],
)
def test_a_reward_that_is_not_recorded_is_an_error(word: str, status: int, server: Server, client: Client) -> None:
    server.answers = [{"items": [{"status": word}]}]
    error = refused(lambda: client.reward("home", "order-1", 1.0))
    assert error.status == status
    assert str(error) == f"the reward for loop 'home' is {word} ({status})"
    assert len(server.requests) == 1 or status == 503


def test_a_call_that_waits_for_its_turn_ends_in_time() -> None:
    async def play() -> tuple[ServiceError, int]:
        go_on, all_busy, asked = asyncio.Event(), asyncio.Event(), list[httpx2.Request]()

        async def answer(request: httpx2.Request) -> httpx2.Response:
            asked.append(request)
            if len(asked) == module.CONNECTIONS:
                all_busy.set()
            await go_on.wait()
            return httpx2.Response(200, json=DECIDED)

        async with AsyncClient(URL, timeout=0.1, transport=httpx2.MockTransport(answer)) as client:
            under_way = [asyncio.create_task(client.decide("home", [1.0])) for _ in range(module.CONNECTIONS)]
            await all_busy.wait()
            with pytest.raises(ServiceError) as caught:
                await client.decide("home", [1.0])
            go_on.set()
            return caught.value, len(await asyncio.gather(*under_way))

    error, answered = asyncio.run(play())
    assert (error.status, error.type) == (None, module.UNAVAILABLE)
    assert "32 other calls of this client are pending" in str(error)
    assert answered == 32


# ---- what is wrong


def test_an_answer_of_somebody_else_is_said(server: Server, client: Client) -> None:
    server.answers = [b"<html>Sign in"]
    assert "not that of an Armlet server" in str(refused(lambda: client.decide("home", [1.0])))
    server.answers = [(404, b"<html>", {})]
    assert refused(lambda: client.decide("home", [1.0])).status == 404


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"url is '127.0.0.1:8080'; give one such as 'http://127.0.0.1:8080'"):
        Client("127.0.0.1:8080")
    for timeout in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InvalidValueError, match=r"timeout is .*; give seconds"):
            Client(URL, timeout=timeout)


def test_a_key_is_never_shown(server: Server, client: Client) -> None:
    server.answers = [httpx2.ConnectError]
    assert "secret" not in repr(client) + str(refused(lambda: client.decide("home", [1.0])))


def test_the_client_loads_nothing_of_the_server() -> None:
    code = "import armlet.service.client, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "httpx2" in loaded
    assert loaded.isdisjoint(
        {"uvicorn", "uvloop", "httptools", "apsw", "psycopg", "armlet.stores", "armlet.service.app"}
    )
