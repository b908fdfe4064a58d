"""HTTP as clients speak it that keep count: what was not sent, what was answered, and what nobody knows."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Address: TypeAlias = tuple[str, int]
PATIENCE: Final = 60.0  # seconds for any answer
UNKNOWN: Final = "urn:armlet:problem:outcome-unknown"


class NotSentError(Exception):
    """There is nobody at the address."""


class CutError(Exception):
    """The connection ended before the answer: nobody knows what became of the request."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a body."""

    status: int
    body: bytes
    closes: bool = False

    @property
    def json(self) -> Any:
        """What the body says."""
        return json.loads(self.body)

    @property
    def is_unavailable(self) -> bool:
        """Whether nothing was kept, and the request may be sent again."""
        return self.status == 503 and self.json["type"] != UNKNOWN

    @property
    def is_uncertain(self) -> bool:
        """Whether the server does not know what became of the request."""
        return self.status == 503 and self.json["type"] == UNKNOWN


class Connection:
    """A connection that is opened when it is used, and stays open."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, content: object = None, seconds: float = PATIENCE) -> Answer:
        """Send a request and wait for its answer."""
        body = b"" if content is None else json.dumps(content).encode()
        reader, writer = await self._opened()
        try:
            writer.write(request(method, path, body))
            async with asyncio.timeout(seconds):
                answer = await read_answer(reader)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            raise CutError(str(error)) from error
        except BaseException:
            self.close()
            raise
        if answer.closes:
            self.close()
        return answer

    async def _opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None or self._streams[1].is_closing() or self._streams[0].at_eof():
            self.close()
            try:
                self._streams = await asyncio.open_connection(*self.address, limit=1 << 22)
            except OSError as error:
                raise NotSentError(str(error)) from error
        return self._streams

    def close(self) -> None:
        """Close it; the next request opens another one."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """Return the bytes of a request."""
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    if body:
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + body


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read an answer, which says its length or comes in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    line, *lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines if line)
    if headers.get("transfer-encoding") == "chunked":
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Answer(int(line.split()[1]), body, headers.get("connection") == "close")


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    chunks = []
    while size := int(await reader.readline(), 16):
        chunks.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(chunks)


async def ask(address: Address, method: str, path: str, content: object = None, seconds: float = PATIENCE) -> Answer:
    """Ask once, by a connection of its own."""
    connection = Connection(address)
    try:
        return await connection.ask(method, path, content, seconds)
    finally:
        connection.close()
