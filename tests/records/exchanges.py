"""The part `http`: exchanges with a server, byte for byte, by a clock and seeds of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import armlet
from armlet.service.app import Service, create_app
from armlet.service.config import LoopConfig, PersonalizerConfig
from armlet.service.keys import Grant, Keyring, digest
from armlet.stores import Memory, Store
from records.record import Texts, facts, portable, short
from support.service.calls import Answer, Caller
from support.stores.lived import Ticks

JSON: Final = {"content-type": "application/json"}
HOME, ROUTER, FILMS = "/v1/loops/home", "/v1/loops/router", "/v1/loops/films"
RANK, EVENTS = "/personalizer/v1.0/rank", "/personalizer/v1.0/events"
TIMED: Final = re.compile(r"^(armlet_\w*seconds\w*(?:\{.*\})?) \S+$", re.MULTILINE)  # by the machine's own clock
ALIEN: Final = {"Alien": {"genre": 1.0, "year": 0.5}, "Heat": {"genre": 0.0, "year": 1.5}}
RANKED: Final[dict[str, Any]] = {
    "actions": [
        {"id": "cup", "features": [{"topic": "sport"}, {"length": 6}]},
        {"id": "album", "features": [{"topic": "music", "length": 2.5}]},
        {"id": "vote", "features": [{"topic": "politics", "length": 4}]},
    ],
    "contextFeatures": [{"timeOfDay": "morning"}, {"user": {"age": 31, "visits": 4}}],
}
ARTICLES: Final = LoopConfig(
    name="articles",
    features=("user.age", "user.visits"),
    categories={"timeOfDay": ("morning", "evening")},
    action_features=("length",),
    action_categories={"topic": ("sport", "music")},
    reward_range=(0.0, 1.0),
    seed=7,
)
MADE: Final = {
    "name": "made",
    "arms": ["a", "b", 1],
    "features": ["age"],
    "categories": {"country": ["de", "fr"]},
    "policy": "ContextualEpsilonGreedy",
    "policy_settings": {"p": 6.0, "floor": 0.1},
    "window": 60,
    "default_reward": 0.25,
    "aggregation": "last",
    "early_window": 30,
    "reward_range": [0, 1],
    "feature_range": {"age": [0, 120, "clip"]},
    "control": {"arm": "a", "share": 0.2},
    "epoch": {"seconds": 60},
    "seed": 3,
}
WORTH: Final = {
    "name": "worth",
    "arms": ["small", "large"],
    "dim": 1,
    "outcomes": {"quality": 1.0, "cost": -1.0},
    "known": {"cost": {"small": 0.5, "large": 1.0}},
    "budget": {"outcome": "cost", "total": 1.0, "horizon": 10, "hard": True},
    "seed": 4,
}


class Exchanges:
    """Sends requests, and writes down what was sent and answered."""

    def __init__(self, service: Service, ticks: Ticks) -> None:
        self.caller, self.ticks = Caller(create_app(service)), ticks
        self.lines: list[str] = []
        self.n = 0

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.send("GET", path, b"", headers)

    def post(self, path: str, body: object, method: str = "POST", headers: Mapping[str, str] | None = None) -> Answer:
        return self.send(method, path, json.dumps(body).encode(), {**JSON, **(headers or {})})

    def send(self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        self.ticks.now += 1.0
        self.n += 1
        answer = self.caller.send(method, path, body, headers)
        sent = [f"{name}: {value}" for name, value in (headers or {}).items() if (name, value) not in JSON.items()]
        self.lines += [f"=== {self.n:02} {method} {path}", *sent, *([body.decode()] if body else [])]
        self.lines += [f"--- {answer.status}"]
        length = {"content-length": "(right)"} if answer.headers.get("content-length") == str(len(answer.body)) else {}
        self.lines += [f"{name}: {value}" for name, value in {**answer.headers, **length}.items()]
        self.lines += [_body(answer), ""]
        return answer


def _body(answer: Answer) -> str:
    if answer.headers.get("content-type") == "application/octet-stream":
        return f"({short(answer.body)}, {len(answer.body):,} bytes)"
    text = portable(TIMED.sub(r"\1 (seconds)", answer.body.decode())).replace(f'"{armlet.__version__}"', '"(version)"')
    return text if len(text) < 20_000 else f"({short(text)}, {len(text):,} characters)"


def make() -> Texts:
    """Send all requests."""
    ticks = Ticks()
    with Store(Memory(), wall=ticks, elapsed=ticks) as store:
        _loops(store)
        service = Service(store, personalizer=PersonalizerConfig(loop="articles"))
        talk = Exchanges(service, ticks)
        try:
            with talk.caller:
                _arms(talk)
                _outcomes(talk)
                _actions(talk)
                _admin(talk)
                _personalizer(talk)
                _server(talk)
                described = json.loads(talk.caller.get("/openapi.json").body)
        finally:
            service.close()
        keyed = _keys(store, ticks)
    version = {**described, "info": {**described["info"], "version": "(version)"}}
    return {"http.txt": "\n".join(talk.lines), "http_keys.txt": keyed, "http_openapi.json": facts(version)}


def _loops(store: Store) -> None:
    policy = armlet.ContextualEpsilonGreedy(p=6, floor=0.2)
    store.loop("home", arms=["sale", "new", 1, "1"], features=["age", "basket"], policy=policy, seed=7)
    store.loop(
        "router",
        arms=["small", "large"],
        features=["tokens"],
        policy=policy,
        outcomes={"quality": 1.0, "cost": -1.0, "delay": -0.01},
        known={"delay": {"small": 0.5, "large": 2.0}},
        budget=armlet.Budget("cost", total=20.0, horizon=100),
        epoch=10,
        seed=8,
    )
    names: dict[str, Any] = {"features": ["age"], "action_features": ["genre", "year"]}
    store.loop("films", **names, early_window=60.0, seed=9)
    store.open(ARTICLES.spec)


def _arms(talk: Exchanges) -> None:
    one = {"age": 31.0, "basket": 2.5}
    talk.post(f"{HOME}/decide", {"context": one, "event": "v1"})
    talk.post(f"{HOME}/decide", {"context": one, "event": "v1"})
    talk.post(f"{HOME}/decide", {"context": {**one, "age": 32}, "event": "v1"})
    talk.post(f"{HOME}/decide", {"context": [31, 2.5]})
    talk.post(f"{HOME}/decide", {"context": one, "event": "v2", "eligible": [1, "new"], "probabilities": "all"})
    talk.post(f"{HOME}/decide", {"context": one, "eligible": ["nwe"]})
    talk.post(f"{HOME}/decide", {"context": {"age": "old"}})
    talk.post(f"{HOME}/decide", {"contxt": one})
    talk.post(f"{HOME}/decide", {"context": one, "unit": "session 1"})
    talk.post(f"{HOME}/decide", {"context": one, "baseline": "sale"})
    talk.post(f"{HOME}/decide", {"context": one, "defer": True})
    talk.post(f"{HOME}/decide", {"context": one, "weights": {"cost": -2}})
    talk.post(f"{HOME}/decide/batch", {"items": [{"context": one, "event": f"b{i}"} for i in range(3)]})
    talk.post(f"{HOME}/decide/batch", {"items": [{"context": one, "event": "b4"}, {"context": one}]})
    rewards = [("v1", 1), ("v1", 1), ("v1", 0.5), ("v2", 7), ("nowhere", 1)]
    items: list[dict[str, Any]] = [{"loop": "home", "event": event, "value": value} for event, value in rewards]
    items += [{"loop": "nowhere", "event": "v1", "value": 1}, {"loop": "home", "event": "b0", "value": {"cost": 1}}]
    items += [{"loop": "home", "event": "b1", "value": 0.5, "rank": 1, "name": "n", "played": "new"}]
    talk.post("/v1/rewards", {"items": items})
    talk.post("/v1/rewards", {"items": []})
    talk.post(f"{HOME}/bill", {"event": "v1", "cost": 1})
    talk.get(f"{HOME}/stats")
    talk.get(HOME)


def _outcomes(talk: Exchanges) -> None:
    talk.post(f"{ROUTER}/decide", {"context": [0.5], "event": "r1", "unit": "s1", "weights": {"cost": -4}})
    talk.post(f"{ROUTER}/decide", {"context": [0.5], "event": "r2", "unit": "s1", "probabilities": "all"})
    talk.post(f"{ROUTER}/decide", {"context": [0.5], "weights": {"price": -4}})
    talk.post(f"{ROUTER}/decide/batch", {"items": [{"context": [1], "unit": "s2"}], "weights": {"quality": 2}})
    items = [
        {"loop": "router", "event": "r1", "value": {"cost": 0.5}},
        {"loop": "router", "event": "r1", "value": {"quality": 0.75}},
        {"loop": "router", "event": "r2", "value": 1},
        {"loop": "router", "event": "r2", "value": {"delay": 1}},
    ]
    talk.post("/v1/rewards", {"items": items})
    talk.post(f"{ROUTER}/bill", {"event": "r2", "cost": 0.25})
    talk.post(f"{ROUTER}/bill", {"event": "nowhere", "cost": 0.25})
    talk.get(f"{ROUTER}/stats")
    talk.get(ROUTER)


def _actions(talk: Exchanges) -> None:
    one = {"age": 31.0}
    talk.post(f"{FILMS}/actions/all", {"actions": ALIEN}, "PUT")
    talk.post(f"{FILMS}/decide", {"context": one, "actions": "all", "event": "f1", "probabilities": "all"})
    talk.post(f"{FILMS}/decide", {"context": [31], "actions": ALIEN, "event": "f2", "baseline": "Heat"})
    talk.post(f"{FILMS}/decide", {"context": one, "actions": ALIEN, "event": "f3", "defer": True})
    talk.post(f"{FILMS}/decide", {"context": one, "actions": "none", "event": "f4"})
    talk.post(f"{FILMS}/decide", {"context": one, "event": "f4"})
    talk.post(f"{FILMS}/decide", {"context": one, "actions": {"Alien": {"genre": 1.0}}})
    talk.post(f"{FILMS}/decide/batch", {"items": [{"context": one, "event": "f5"}], "actions": "all"})
    talk.post("/v1/rewards", {"items": [{"loop": "films", "event": name, "value": 0.5} for name in ("f1", "f3", "f9")]})
    talk.post(f"{FILMS}/activate", {"event": "f3"})
    talk.post(f"{FILMS}/activate", {"event": "nowhere"})
    talk.send("DELETE", f"{FILMS}/actions/all", b"")
    talk.send("DELETE", f"{FILMS}/actions/all", b"")
    talk.get(FILMS)


def _admin(talk: Exchanges) -> None:
    talk.post("/v1/loops", MADE)
    talk.post("/v1/loops", MADE)
    talk.post("/v1/loops", WORTH)
    talk.post("/v1/loops", {"name": "worse", "arms": ["a"], "dim": 1, "policy": "LinUBC"})
    talk.post("/v1/loops", {"name": "worse", "arms": ["a"], "dim": 1, "policy_settings": {"p": 1}})
    talk.post("/v1/loops", {"name": "worse", "arms": ["a"], "action_dim": 1, "dim": 1})
    talk.get("/v1/loops")
    for i in range(3):
        body = {"context": {"age": 200.0, "country": "fr"}, "event": f"m{i}", "unit": "user 1"}
        talk.post("/v1/loops/made/decide", body)
        talk.post("/v1/loops/worth/decide", {"context": [1], "event": f"w{i}"})
    talk.post(f"{HOME}/change", {"policy": "ContextualEpsilonGreedy", "policy_settings": {"p": 9.0, "floor": 0.2}})
    talk.post(f"{HOME}/change", {"window": 60, "default_reward": 0.0})
    talk.post(f"{HOME}/change", {"window": 60, "default_reward": 0.0})
    talk.post(f"{HOME}/change", {"features": ["age", "basket", "visits"], "fill": {"visits": 1.0}})
    talk.post(f"{HOME}/change", {"policy": "LinUCB"})
    talk.post(f"{HOME}/change", {"shadow": {"policy": "LinUCB"}, "how": "refit"})
    talk.post(f"{HOME}/promote", {"gate": "better"})
    talk.post(f"{HOME}/promote", {"gate": "off", "control": 0.25})
    talk.post(f"{HOME}/promote", {"gate": "off"})
    talk.post(f"{HOME}/change", {})
    talk.post(f"{HOME}/arms", {"action": "add", "arm": "fresh"})
    talk.post(f"{HOME}/arms", {"action": "retire", "arm": "nowhere"})
    talk.send("POST", f"{HOME}/freeze", b"")
    talk.send("POST", f"{HOME}/thaw", b"")
    talk.post(f"{HOME}/forget", {"events": ["v1", "nowhere"]})
    talk.get(f"{HOME}/health")
    talk.get(f"{HOME}/log")
    talk.get(f"{HOME}/model")
    talk.get(HOME)
    talk.post("/v1/prune", {"before": talk.ticks.now - 60.0})
    talk.send("DELETE", "/v1/loops/worth", b"")
    talk.send("DELETE", "/v1/loops/worth", b"")


def _personalizer(talk: Exchanges) -> None:
    talk.post(RANK, {**RANKED, "eventId": "p1"})
    talk.post(RANK, {**RANKED, "eventId": "p2", "deferActivation": True, "excludedActions": ["vote"]})
    talk.post(RANK, {**RANKED, "actions": []})
    talk.post(f"{EVENTS}/p1/reward", {"value": 1.0}, headers={"x-ms-client-request-id": "try 1"})
    talk.post(f"{EVENTS}/p1/reward", {"value": 7.0})
    talk.post(f"{EVENTS}/nowhere/reward", {"value": 1.0})
    talk.send("POST", f"{EVENTS}/p2/activate", b"")
    talk.get("/personalizer/v1.0/model")


def _server(talk: Exchanges) -> None:
    talk.get("/healthz")
    talk.get("/readyz")
    talk.get("/nowhere")
    talk.get("/v1/loops/nowhere/stats")
    talk.send("PATCH", "/v1/loops", b"")
    talk.send("POST", f"{HOME}/decide", b"{")
    talk.send("POST", f"{HOME}/decide", b"{}", {"content-type": "text/plain"})
    talk.get("/openapi.json")
    talk.get("/metrics")


def _keys(store: Store, ticks: Ticks) -> str:
    """Ask with keys that may do some of it."""
    grants = {
        "armlet_decides": Grant(name="shop", scopes=frozenset({"decide", "reward"}), loops=frozenset({"home"})),
        "armlet_reads": Grant(name="board", scopes=frozenset({"read"})),
    }
    service = Service(store, keyring=Keyring({digest(key): grant for key, grant in grants.items()}))
    talk = Exchanges(service, ticks)
    one = {"context": [31, 2.5, 1], "event": "k1"}
    try:
        with talk.caller:
            for key in ("", "armlet_decides", "armlet_reads", "armlet_unknown"):
                headers = {"authorization": f"Bearer {key}"} if key else {}
                talk.post(f"{HOME}/decide", one, headers=headers)
                talk.post(f"{ROUTER}/decide", {"context": [1]}, headers=headers)
                talk.get("/v1/loops", headers)
                talk.post("/v1/prune", {"before": 0}, headers=headers)
    finally:
        service.close()
    return "\n".join(talk.lines)
