"""Makes the requests of a fuzzer: sound ones of every route, and what can go wrong with them on the way."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any, Final, NamedTuple

from soak.environment import ARMS, LOOPS, named_context

ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1.5, -0.0, 1e308, -1e308, 2**53, 2**64, 10**400, float("nan"), float("inf")),
    *("", "a", "\0", "\ud800", "\u202e", "é" * 3, "x" * 70_000, "../../etc", "%00", "' OR 1=1 --", "<script>"),
    *([], {}, [[]], [None], {"": None}, [0.5] * 5_000, {"a": {"b": {}}}),
)
NAMES: Final = (
    "plain",
    "late",
    "none",
    "%2e%2e",
    "a%2Fb",
    "%ff",
    "%00",
    "plain%20",
    "PLAIN",
    "é",
    "{name}",
    "x" * 3000,
)
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "post", "BREW")
READ: Final = ("stats", "health", "log", "model", "", "none", "page/../..", "log?after=-1", "log?x=%ff&x", "stats#a")
PLAIN: Final = (
    "/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/v1/loops",
    "/loops",
    "/loops/plain",
    "/loops/late?x=%ff",
    "/login",
    "/login?next=//evil.example",
    "/logout",
    "/static/%2e%2e/routes.py",
    "//",
    "/v1/../v1",
    "*",
)
TYPES: Final = ("application/json", "application/json; charset=latin-1", "text/plain", "", "multipart/form-data", "é")
HEADERS: Final = (
    "authorization: Bearer é",
    "authorization: Basic eDp5",
    "cookie: armlet_key=x; a=b; =; ;;",
    "expect: 100-continue",
    "expect: nonsense",
    "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==",
    "upgrade: h2c\r\nconnection: upgrade",
    "accept-encoding: gzip;q=nonsense",
    "x-forwarded-for: 192.0.2.1",
    "origin: https://evil.example",
    "content-encoding: gzip",
    "transfer-encoding: identity",
    "host: other.example",
    "x: " + "y" * 20_000,
    "\r\n".join(f"x{i}: y" for i in range(300)),
    "last-event-id: é",
    "range: bytes=0-1",
    "if-none-match: *",
)


CHANGES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("change", {"window": 0.2}),
    ("change", {"arms": [*ARMS, "d"]}),
    ("change", {"arms": ARMS}),
    ("change", {"policy": "LinUCB"}),
    ("change", {"reward_range": [0, 1]}),
    ("change", {"control": {"arm": "a", "share": 0.25}}),
    ("change", {"control": None}),
    ("change", {"shadow": {"policy": "LinUCB", "policy_settings": {"alpha": 1.0}}}),
    ("change", {"shadow": None}),
    ("freeze", {}),
    ("thaw", {}),
    ("promote", {"gate": "off"}),
    ("promote", {"gate": "off", "control": 0.1}),
)


class Request(NamedTuple):
    """A request; `is_counted`: a reward of a loop in which nothing else happens, so that it is sent as it is."""

    method: str
    path: str
    body: bytes = b""
    is_counted: bool = False


def make_request(rng: random.Random, number: int) -> Request:
    """Make a request, which may be sound."""
    what = rng.random()
    if what < 0.1:
        name = rng.choice(NAMES[2:])
        return Request(rng.choice(METHODS), f"/v1/loops/{name}/{rng.choice(('decide', *READ))}", _body(rng, {"a": 1}))
    if what < 0.2:
        return Request("GET", f"/v1/loops/{rng.choice(NAMES)}/{rng.choice(READ)}")
    if what < 0.25:
        return Request(rng.choice(METHODS[:5]), rng.choice(PLAIN), _body(rng, {}))
    if what < 0.35:
        return Request("POST", "/v1/rewards", _body(rng, {"items": [_reward(rng, number, "still")]}), is_counted=True)
    path, content = _sound(rng, number)
    return Request("POST", path, _body(rng, content))


def _sound(rng: random.Random, number: int) -> tuple[str, dict[str, Any]]:
    name, admin = rng.choice(LOOPS), rng.choice(LOOPS[:2])
    known = [f"f{rng.randrange(number + 1)}" for _ in range(3)]
    items = [{"context": named_context(f"f{number}.{k}", 0), "event": f"f{number}.{k}"} for k in range(3)]
    route, change = rng.choice(CHANGES)
    sound: list[tuple[str, dict[str, Any]]] = [
        (f"/v1/loops/{name}/decide", {"context": named_context(f"f{number}", 0), "event": f"f{number}"}),
        (f"/v1/loops/{name}/decide", {"context": [1.0, 0.5, 0.25, 0.0], "probabilities": "all"}),
        (f"/v1/loops/{name}/decide", {"context": [1.0, 0.5, 0.25, 0.0], "eligible": ARMS[:2]}),
        (f"/v1/loops/{name}/decide/batch", {"items": items}),
        ("/v1/rewards", {"items": [_reward(rng, number, name) for name in LOOPS[:2]]}),
        (f"/v1/loops/{admin}/{route}", change),
        (f"/v1/loops/{admin}/arms", {"action": rng.choice(["add", "retire", "restore"]), "arm": "d"}),
        (f"/v1/loops/{admin}/forget", {"events": known}),
        ("/v1/loops", {"name": f"made {number % 7}", "arms": ["a", "b"], "dim": 2}),
    ]
    return rng.choice(sound)


def _reward(rng: random.Random, number: int, name: str) -> dict[str, Any]:
    return {
        "loop": name,
        "event": f"f{rng.randrange(number + 1)}",
        "value": rng.randrange(5) / 4,
        "rank": rng.randrange(2),
    }


# ---- bodies


def _body(rng: random.Random, content: dict[str, Any]) -> bytes:
    """Return JSON, which is mostly broken."""
    if rng.random() < 0.6:
        content = json.loads(json.dumps(content))
        _break(rng, content)
    body = json.dumps(content, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    what = rng.random()
    if what < 0.03:
        return gzip.compress(body)
    if what < 0.06:
        return body.replace(b"{", b"[" * rng.choice([10, 500, 50_000]), 1)
    if what < 0.09:
        return body.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-32"]))
    if what < 0.12:
        return body * 2
    return mutate(rng, body) if what < 0.2 else body


def _break(rng: random.Random, content: Any) -> None:
    """Change something somewhere in a JSON value."""
    while True:
        places = list(content) if isinstance(content, dict) else list(range(len(content)))
        if not places:
            return
        at = rng.choice(places)
        if not isinstance(content[at], (dict, list)) or rng.random() < 0.3:
            break
        content = content[at]
    what = rng.random()
    if what < 0.7:
        content[at] = rng.choice(ODD)
    elif what < 0.85:
        del content[at]
    elif isinstance(content, dict):
        content[f"{at}x"] = rng.choice(ODD)
    else:
        content.extend(content)


# ---- frames


def frame(rng: random.Random, made: Request) -> bytes:
    """Return the bytes of a request, with headers that may be odd."""
    path = made.path if rng.random() < 0.9 else f"http://127.0.0.1{made.path}?{rng.choice(['', 'a=%', 'é'])}"
    lines = [f"{made.method} {path} HTTP/{'1.0' if rng.random() < 0.05 else '1.1'}", "host: 127.0.0.1"]
    if rng.random() < 0.95:
        lines.append("connection: close")
    lines += [rng.choice(HEADERS)] if rng.random() < 0.3 and not made.is_counted else []
    lines.append(f"content-type: {TYPES[0] if rng.random() < 0.95 else rng.choice(TYPES)}")
    body = made.body
    if rng.random() < 0.2:
        lines.append("transfer-encoding: chunked")
        body = _chunked(rng, body)
    elif body or rng.random() < 0.5:
        length = (
            len(body) if rng.random() < 0.95 or made.is_counted else rng.choice([-1, 0, len(body) // 2, 10**9, 10**30])
        )
        lines.append(f"content-length: {length}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def _chunked(rng: random.Random, body: bytes) -> bytes:
    size = rng.choice([1, 7, 1000]) if len(body) < 5000 else 5000
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def mutate(rng: random.Random, raw: bytes) -> bytes:
    """Return bytes that were changed a little: some flipped, lost, doubled or put in."""
    data = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(data) + 1)
        what = rng.random()
        if what < 0.4 and at < len(data):
            data[at] = rng.randrange(256)
        elif what < 0.6:
            del data[at : at + rng.randrange(1, 30)]
        elif what < 0.8:
            data[at:at] = bytes(rng.choices(b'\0\r\n :,{}[]"\\%/?#\x7f\xff0A', k=rng.randrange(1, 8)))
        else:
            data[at:at] = data[at : at + rng.randrange(1, 200)]
    return bytes(data)
