"""Requests as nobody should send them: no 5xx, nothing changed by what is refused, and no word of a context."""

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
from armlet.service.app import Service, create_app
from armlet.service.keys import SCOPES, Grant, Keyring, digest
from armlet.service.routes import ROUTES
from armlet.stores import Memory, Store
from support.examples import scaled
from support.service.calls import Answer, Caller

SEEDS = 300
KEY = "armlet_root"
CONTEXT: dict[str, Any] = {"age": 31.0, "basket": 2.5}
REWARD: dict[str, Any] = {"loop": "home", "event": "e", "value": 1}
BODIES: dict[str, Any] = {
    "/v1/loops/{name}/decide": {"context": CONTEXT, "event": "e", "eligible": ["sale", 1], "probabilities": "all"},
    "/v1/loops/{name}/decide/batch": {"items": [{"context": CONTEXT, "event": "f"}, {"context": [1, 2], "event": "g"}]},
    "/v1/rewards": {"items": [REWARD, {**REWARD, "name": "n", "rank": 1, "played": "sale"}]},
    "/v1/loops": {"name": "new", "arms": ["a", 1], "features": ["x"], "categories": {"c": ["d"]}, "window": 1},
    "/v1/loops/{name}/change": {"features": ["age", "basket", "x"], "fill": {"x": 1.0}, "control": {"arm": 1}},
    "/v1/loops/{name}/arms": {"action": "add", "arm": "later"},
    "/v1/loops/{name}/forget": {"events": ["e", "h"]},
    "/v1/loops/{name}/promote": {"gate": "off", "control": 0.1},
}
WEIGHTS = {"quality": 1.0, "cost": -2}
BUDGET = {"outcome": "cost", "total": 5, "horizon": 100, "hard": True}
PRICES = {"sale": 0.1, "new": 0.2}
SEVERAL: dict[str, Any] = {
    "/v1/loops/{name}/decide": {"context": CONTEXT, "event": "e", "unit": "u", "weights": WEIGHTS},
    "/v1/loops/{name}/decide/batch": {"items": [{"context": CONTEXT, "unit": "u"}], "weights": WEIGHTS},
    "/v1/rewards": {"items": [{**REWARD, "loop": "router", "value": {"quality": 0.5}}, REWARD]},
    "/v1/loops": {
        "name": "new",
        "arms": ["a", 1],
        "dim": 1,
        "outcomes": WEIGHTS,
        "known": {"cost": [["a", 1], [1, 2]]},
        "budget": BUDGET,
        "epoch": {"seconds": 60},
        "reward_range": {"quality": [0, 1]},
    },
    "/v1/loops/{name}/change": {"outcomes": WEIGHTS, "known": {"cost": PRICES}, "budget": BUDGET},
    "/v1/loops/{name}/arms": {"action": "add", "arm": "later", "known": {"cost": 0.1}},
}
"""For loops with several outcomes, a budget and epochs."""
FILMS: dict[str, Any] = {"Up": {"year": 109}, "Heat": [95.0]}
CATALOGUE: dict[str, Any] = {
    "/v1/loops/{name}/decide": {"context": [1.0], "event": "e", "actions": FILMS, "baseline": "Up", "defer": True},
    "/v1/loops/{name}/decide/batch": {"items": [{"context": [1.0]}], "actions": "all", "probabilities": "all"},
    "/v1/loops": {"name": "new", "features": ["x"], "action_features": ["y"], "action_categories": {"c": ["d"]}},
    "/v1/loops/{name}/actions/{table}": {"actions": FILMS},
    "/v1/loops/{name}/activate": {"event": "e"},
}
"""For loops whose actions come with each decision."""
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 2**53 + 1, 2**70, -(2**63) - 1, 1e308, -0.0, 5e-324, 0.5, "", "1", "home", "é" * 300, "\0",
    "\u202e", "'; DROP TABLE event; --", "../../etc/passwd", "{}", "NaN", [], {}, [[]], [None], {"": None}, ["x"] * 300,
    {"age": {"age": 1}}, [1e400, "x"], {str(i): i for i in range(300)},
)  # fmt: skip
PATHS = (
    "/", "//", "/v1//loops", "/v1/loops/%00/decide", "/v1/loops/%2e%2e/decide", "/v1/loops/home%2Fdecide", "/%ff",
    "/v1/loops/" + "x" * 3000 + "/decide", "/v1/loops/home/decide?context=1", "/v1/loops/home/stats?a=1&a=2",
    "/V1/loops", "/v1/loops/home/../home/stats", "/v1/loops/home;x/stats", "/v1/loops/%C3%28/stats", "*",
)  # fmt: skip
METHODS: list[str] = ["GET", "PUT", "PATCH", "OPTIONS", "TRACE", "DELETE", "HEAD", "get", "\0"]
HEADERS: tuple[dict[str, str], ...] = (
    {"content-type": "text/plain"}, {"content-type": "application/json;" + "x" * 2000}, {"content-length": "9" * 11},
    {"content-length": "-1"}, {"content-length": "1e3"}, {"transfer-encoding": "chunked"}, {"accept-encoding": "br"},
    {"authorization": ""}, {"authorization": "Bearer"}, {"authorization": "Bearer \xff\x00"},
    {"cookie": "armlet_key=\x00;;="}, {"authorization": "Basic " + "x" * 5000}, {"x-forwarded-for": "127.0.0.1"},
    {"expect": "100-continue"}, {"host": ""},
)  # fmt: skip


class Fuzz:
    """Makes requests of valid ones, by a few changes each."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def request(self) -> tuple[str, str, list[Any], dict[str, str]]:
        """Return a method, a path, the frames of a body, and headers."""
        route = self.random.choice(ROUTES)
        bodies = self.random.choice((BODIES, {**BODIES, **SEVERAL}, {**BODIES, **CATALOGUE}))
        body = json.dumps(bodies.get(route.path, {})).encode() if route.method in ("POST", "PUT") else b""
        path = route.path.replace("{name}", self.random.choice(("home", "home", "router", "films", "nowhere")))
        method: str = route.method
        headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
        for _ in range(self.random.randint(1, 3)):
            match self.random.randrange(6):
                case 0 | 1:
                    body = self.other_json(body)
                case 2:
                    body = self.other_bytes(body)
                case 3:
                    headers |= self.random.choice(HEADERS)
                case 4 if self.random.random() < 0.3:
                    path = self.random.choice(PATHS)
                case 5 if self.random.random() < 0.3:
                    method = self.random.choice(METHODS)
        return method, path, self.frames(body), headers

    def other_json(self, body: bytes) -> bytes:
        """Put something hostile at one place of a value."""
        try:
            value = json.loads(body or b"{}")
        except (ValueError, RecursionError):
            return body
        return json.dumps(self.changed(value)).encode()

    def changed(self, value: Any) -> Any:
        if self.random.random() < 0.25 or not isinstance(value, (dict, list)) or not value:
            return self.random.choice(HOSTILE)
        if isinstance(value, list):
            at = self.random.randrange(len(value))
            return [*value[:at], self.changed(value[at]), *value[at + 1 :]]
        name = self.random.choice(sorted(value))
        rest = {key: each for key, each in value.items() if key != name}
        match self.random.randrange(6):
            case 0:
                return rest
            case 1:
                return {**rest, self.random.choice(("", "x", name.upper(), name * 99)): value[name]}
            case _:
                return {**rest, name: self.changed(value[name])}

    def other_bytes(self, body: bytes) -> bytes:
        """Change, cut or add bytes."""
        at = self.random.randrange(len(body) + 1)
        match self.random.randrange(5):
            case 0:
                return body[:at]
            case 1:
                return body[:at] + self.random.randbytes(self.random.randint(1, 4)) + body[at + 1 :]
            case 2:
                return body[:at] + b"\xed\xa0\x80" + body[at:]
            case 3:
                return body + self.random.choice((b"\0", b"{}", b" " * 1000))
            case _:
                return self.random.choice((b"[", b'{"context":', b'{"items":[')) * self.random.choice((10, 5000))

    def frames(self, body: bytes) -> list[Any]:
        """Cut a body into pieces; sometimes the client goes before the last one."""
        cuts = sorted(self.random.randrange(len(body) + 1) for _ in range(self.random.choice((0, 0, 1, 3))))
        ends = [*cuts, len(body)]
        pieces = [body[a:b] for a, b in zip([0, *cuts], ends, strict=True)]
        frames: list[Any] = [
            {"type": "http.request", "body": piece, "more_body": i < len(pieces)} for i, piece in enumerate(pieces, 1)
        ]
        if self.random.random() < 0.05:
            frames[-1] = {"type": "http.disconnect"}
        return frames


def state(ledger: Memory) -> list[Any]:
    """Return all loops and how far their rows go."""
    return [(record, ledger.head(record.id)) for record in ledger.loops()]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Caller, Memory, Store]]:
    ledger = Memory()
    with Store(ledger) as store:
        grant = Grant(name="root", scopes=frozenset(SCOPES))
        service = Service(store, keyring=Keyring({digest(KEY): grant}))
        with Caller(create_app(service)) as caller:
            yield caller, ledger, store
        service.close()


def check(answer: Answer) -> None:
    """Refuse answers that no client could make sense of."""
    assert answer.status < 500 or answer.status == 503, answer
    assert answer.is_complete
    if answer.status >= 400 and answer.body:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json["status"] == answer.status


def test_no_request_breaks_the_server_or_changes_what_it_should_not(served: tuple[Caller, Memory, Store]) -> None:
    caller, ledger, store = served
    statuses: dict[int, int] = {}
    for seed in range(SEEDS):
        if "home" not in store.loops:  # one of them has deleted it
            store.loop("home", arms=["sale", "new", 1, "1"], features=["age", "basket"], seed=7).decide(
                CONTEXT, event="h"
            )
        if "router" not in store.loops:
            store.loop(
                "router",
                arms=["sale", "new"],
                features=["age", "basket"],
                outcomes=WEIGHTS,
                known={"cost": {"sale": 0.1, "new": 0.2}},
                budget=armlet.Budget("cost", total=5, horizon=100, hard=True),
                epoch=10,
                seed=7,
            )
        if "films" not in store.loops:
            store.loop("films", dim=1, action_features=["year"], seed=7)
        before = state(ledger)
        method, path, frames, headers = Fuzz(seed).request()
        is_whole = all(frame["type"] == "http.request" for frame in frames)
        answer = caller.frames(method, path, frames, headers)
        if is_whole:
            check(answer)
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
        if not 200 <= answer.status < 300 or method in ("GET", "HEAD"):
            assert state(ledger) == before, (seed, answer)
    assert {200, 400, 401, 404, 405, 413, 415, 422} <= statuses.keys()  # all that this reaches
    assert caller.get("/healthz").status == 200


# ---- nothing of a context is told

MARKER = "s3cr3t"
LEAVES = st.one_of(
    st.just(MARKER),
    st.just(f"{MARKER}\0{MARKER}"),
    st.text(max_size=5).map(lambda text: text + MARKER),
    st.sampled_from([None, True, 1, 2.5, 1e41, 8675309.25, 10**400]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["age", "basket", MARKER, "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
SECRETS = (MARKER, "8675309", "\\u0073")


@settings(max_examples=scaled(150), database=None, suppress_health_check=list(HealthCheck))
@given(context=VALUES, cut=st.integers(0, 60), whole=st.booleans())
def test_what_a_context_holds_is_in_no_answer_and_in_no_log(
    served: tuple[Caller, Memory, Store], caplog: pytest.LogCaptureFixture, context: Any, cut: int, whole: bool
) -> None:
    caller, _, store = served
    names = {"named": {"features": ["age", "basket"]}, "plain": {"dim": 2}}
    for name, how in names.items():
        store.loop(name, arms=["a", "b"], **how)  # type: ignore[arg-type]
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    for name in names:
        for path, asked in (
            ("decide", {"context": context, "event": "e"}),
            ("decide/batch", {"items": [{"context": CONTEXT if name == "named" else [1, 2]}, {"context": context}]}),
        ):
            body = json.dumps(asked).encode()
            answer = caller.send("POST", f"/v1/loops/{name}/{path}", body if whole else body[:-cut], headers)
            check(answer)
            text = answer.text + caplog.text
            assert not any(secret in text for secret in SECRETS), text


def test_a_key_is_in_no_answer_and_in_no_log(
    served: tuple[Caller, Memory, Store], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for headers in (
        {"authorization": f"Bearer {MARKER}"},
        {"authorization": MARKER},
        {"cookie": f"armlet_key={MARKER}"},
    ):
        answer = served[0].get("/v1/loops", headers)
        assert answer.status == 401
        assert MARKER not in answer.text + caplog.text + str(answer.headers)
