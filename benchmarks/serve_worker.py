"""One server in a process of its own: ours, or one of those that it is compared with, all of them on uvicorn.

`serve.py` starts it with the name of a server and the place of a store. It prints its port, serves, and ends when its
standard input does. All of them take the same requests; what they answer is of about the same length.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import uvicorn

from serve_client import ARMS, FEATURES, KEY, LOOP

if TYPE_CHECKING:
    from armlet.stores import Store

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Mapping[str, Any], Receive, Send], Awaitable[None]]

ANSWER = {"event": "", "arm": "arm-0", "propensity": 0.5, "explored": False}
VARIABLE = "ARMLET_POSTGRESQL"  # where the database is


async def _send(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def bare() -> Application:
    """Answer without a look at the request."""
    body = json.dumps(ANSWER).encode()

    async def app(_: Mapping[str, Any], __: Receive, send: Send) -> None:
        await _send(send, body)

    return app


def raw() -> Application:
    """Parse the request, and answer with its event."""

    async def app(_: Mapping[str, Any], receive: Receive, send: Send) -> None:
        message = await receive()
        body: bytes = message["body"]
        while message.get("more_body"):
            message = await receive()
            body += message["body"]
        asked = json.loads(body)
        item = asked["items"][0] if "items" in asked else asked
        await _send(send, json.dumps({**ANSWER, "event": item["event"]}).encode())

    return app


def peer(name: str) -> Application:
    """Return an application of `serve_peers.py`, which takes seconds to import."""
    import serve_peers

    return serve_peers.echo() if name == "echo" else serve_peers.mabwiser()


def serve(app: Application) -> None:
    """Serve an application with uvicorn, as quick as it gets."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        print(listening.getsockname()[1], flush=True)
        log: dict[str, Any] = {"log_level": "warning", "access_log": False}
        uvicorn.run(app, fd=listening.fileno(), loop="uvloop", http="httptools", lifespan="off", **log)


def serve_ours(place: str) -> None:
    """Serve with Armlet's default policy, durable in a file, or in a schema of a database."""
    from armlet.service import server
    from armlet.service.config import KeyConfig, Listen, LogConfig, LoopConfig, ServerConfig
    from armlet.service.keys import digest

    if conninfo := os.environ.get(VARIABLE):
        server.open_store = partial(_open_schema, conninfo)
    loop = LoopConfig(name=LOOP, arms=tuple(ARMS), features=tuple(FEATURES), seed=1)
    key = KeyConfig(name="bench", sha256=digest(KEY).hex(), scopes=("decide", "reward"))
    config = ServerConfig(
        store=place, listen=Listen(port=0), loops=(loop,), keys=(key,), log=LogConfig(level="warning")
    )
    server.run(config, lambda url, _: print(url.rpartition(":")[2], flush=True))


def _open_schema(conninfo: str, schema: str, *, deadline: float, queue: int) -> Store:
    """Open a store as `open_store` does, in a schema that can be dropped."""
    from armlet.stores import Store
    from armlet.stores.postgresql import PostgreSQL

    return Store(PostgreSQL(conninfo, schema=schema, deadline=deadline), deadline=deadline, queue=queue)


def end_with_input() -> None:
    """Stop as soon as whoever started this has gone."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main(name: str, place: str) -> None:
    threading.Thread(target=end_with_input, daemon=True).start()
    if name == "ours":
        serve_ours(place)
    else:
        serve({"bare": bare, "raw": raw}[name]() if name in ("bare", "raw") else peer(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
