"""One server in a process of its own: ours, or one of those that it is compared with, all of them on uvicorn.

`serve.py` starts it with the name of a server and the place of a store. It prints its port, serves, and ends when its
standard input does. All of them take the same requests; what they answer is of about the same length.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import uvicorn

from serve_client import ARMS, FEATURES, LOOP

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


@contextmanager
def bare(_: str) -> Iterator[Application]:
    """Answer without a look at the request."""
    body = json.dumps(ANSWER).encode()

    async def app(_: Mapping[str, Any], __: Receive, send: Send) -> None:
        await _send(send, body)

    yield app


@contextmanager
def raw(_: str) -> Iterator[Application]:
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

    yield app


@contextmanager
def echo(_: str) -> Iterator[Application]:
    """Do the same with FastAPI."""
    import serve_peers

    yield serve_peers.echo()


@contextmanager
def mabwiser(_: str) -> Iterator[Application]:
    """Decide and learn in memory, with FastAPI and MABWiser."""
    import serve_peers

    yield serve_peers.mabwiser()


@contextmanager
def ours(place: str) -> Iterator[Application]:
    """Decide and learn with Armlet's default policy, durable in a file, or in a schema of a database."""
    from armlet.service.app import Service, create_app
    from armlet.service.config import Limits
    from armlet.stores import SQLite, Store

    limits = Limits()
    if conninfo := os.environ.get(VARIABLE):
        from armlet.stores.postgresql import PostgreSQL

        ledger = PostgreSQL(conninfo, schema=place, deadline=limits.deadline)
    else:
        ledger = SQLite(Path(place), synchronous="FULL")
    with Store(ledger, deadline=limits.deadline, queue=limits.queue) as store:
        loop = store.loop(LOOP, arms=ARMS, features=FEATURES, seed=1)
        service = Service(store, limits=limits, loops=[loop])
        yield create_app(service)
        service.close()


SERVERS = {server.__name__: server for server in (bare, raw, echo, mabwiser, ours)}


def main(name: str, place: str) -> None:
    with SERVERS[name](place) as app, socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="warning", access_log=False)
        server = uvicorn.Server(config)

        def end() -> None:
            sys.stdin.read()
            server.should_exit = True

        threading.Thread(target=end, daemon=True).start()
        server.run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
