"""Call an ASGI application as a server would, without sockets: frames in, frames out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from armlet.service.app import Application
from armlet.service.http import Message

JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_complete: bool

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class Caller:
    """Calls an application from one event loop.

    Parameters
    ----------
    app
        The application.
    headers
        Of every request; a browser or a curl on this machine by default.
    """

    def __init__(self, app: Application, headers: Mapping[str, str] | None = None) -> None:
        self.app, self.headers = app, {"host": "127.0.0.1:8080", **(headers or {})}
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._runner.close()

    def run(self, coroutine: Any) -> Any:
        """Run anything else in the same event loop."""
        return self._runner.run(coroutine)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, value: object, headers: Mapping[str, str] | None = None) -> Answer:
        return self.send("POST", path, json.dumps(value).encode(), {**JSON, **(headers or {})})

    def send(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        return self.frames(method, path, [_frame(body)], headers)

    def frames(
        self, method: str, path: str, frames: Iterable[Message], headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a body in pieces, or anything else that a server may bring."""
        answer: Answer = self.run(exchange(self.app, method, path, list(frames), {**self.headers, **(headers or {})}))
        return answer


async def exchange(
    app: Application, method: str, target: str, frames: list[Message], headers: Mapping[str, str]
) -> Answer:
    """Send one request; after its last frame the client waits. Status 0: nothing was answered."""
    raw, _, query = target.partition("?")
    sent: list[Message] = []
    scope = {
        "type": "http",
        "method": method,
        "path": unquote(raw),
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
    }

    async def receive() -> Message:
        if frames:
            return frames.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    if not sent:
        return Answer(0, {}, b"", is_complete=False)
    assert sent[0]["type"] == "http.response.start"
    body = b"".join(message["body"] for message in sent[1:])
    shown = {name.decode("latin-1"): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], shown, body, len(sent) > 1 and not sent[-1].get("more_body", False))


def _frame(body: bytes) -> Message:
    return {"type": "http.request", "body": body, "more_body": False}


def problem(answer: Answer, status: int, slug: str, field: str | None = None) -> str:
    """Check that an answer is a problem of a kind; return its detail."""
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json
    assert (answer.status, told["status"], told["type"]) == (status, status, f"urn:armlet:problem:{slug}"), told
    assert told.get("field") == field, told
    detail: str = told["detail"]
    return detail
