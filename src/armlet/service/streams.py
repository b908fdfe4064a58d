"""Server-sent events: a page receives one when what it shows has changed, every two seconds at most.

An event is the version of a loop, a few bytes; the page then asks for itself again. While nothing changes, nothing is
sent but a comment now and then, and looking costs one row of a table a second, for all who watch a loop together.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable
from typing import Final

from armlet.service.problems import Problem

PERIOD: Final = 2.0  # seconds between two events
AGE: Final = 1.0  # seconds for which a version that was read will do for others too
LISTENING: Final = 0.5  # seconds until a stream notices that the server is about to stop
BEAT: Final = 15.0  # seconds between comments, by which proxies see that the stream is alive
LONGEST: Final = 3600.0  # seconds of a stream: then the browser asks again, and its key is looked at again
RETRY: Final = b"retry: 3000\n\n"  # milliseconds until a browser asks again
BEATING: Final = b":\n\n"
SHARED: Final = 64  # pages that are kept


class Shared:
    """Pages that are made once for all who refresh them: what they show takes the time of the thread that decides."""

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[str, asyncio.Future[bytes]]] = {}

    async def page(self, key: Hashable, version: str, make: Callable[[], Coroutine[object, object, bytes]]) -> bytes:
        """Return a page of a version, or a newer one; one that cannot be made is tried again."""
        entry = self._found.get(key)
        if entry is None or entry[0] != version:
            while len(self._found) >= SHARED:
                del self._found[next(iter(self._found))]
            entry = self._found[key] = (version, asyncio.ensure_future(make()))
        try:
            return await asyncio.shield(entry[1])  # one of those who wait may go away
        except Problem:
            self._found.pop(key, None)
            raise


class Streams:
    """The streams of a server: how many are open, and the versions of loops that they tell.

    Parameters
    ----------
    most
        That may be open at once.
    period, age
        Seconds between two looks of a stream, and for which one look will do for all.
    """

    def __init__(self, most: int, *, period: float = PERIOD, age: float = AGE) -> None:
        self.most, self.period, self.age = most, period, age
        self.open = 0
        self.shared = Shared()
        self._versions: dict[str, tuple[float, str]] = {}

    @property
    def is_full(self) -> bool:
        """Whether no other stream may be opened."""
        return self.open >= self.most

    async def events(
        self, name: str, read: Callable[[], Awaitable[str]], is_ending: Callable[[], bool]
    ) -> AsyncGenerator[bytes]:
        """Yield events of a loop until the server is about to stop, or an hour is over.

        Parameters
        ----------
        name
            Of the loop.
        read
            Reads a short text that differs if anything has changed. The first one is sent at once.
        is_ending
            Whether the server is about to stop.
        """
        started = sent_at = time.monotonic()
        last: str | None = None
        self.open += 1
        try:
            yield RETRY
            while not is_ending() and time.monotonic() - started < LONGEST:
                try:
                    version = await self.version(name, read)
                except Problem:  # the loop is gone, or the store is busy: the browser asks again, and gets the reason
                    return
                if version != last or time.monotonic() - sent_at >= BEAT:
                    yield BEATING if version == last else b"event: version\ndata: %s\n\n" % version.encode()
                    last, sent_at = version, time.monotonic()
                await self._pause(is_ending)
        finally:
            self.open -= 1

    async def version(self, name: str, read: Callable[[], Awaitable[str]]) -> str:
        """Return the version of a loop as of now, or of a second ago if another stream has read it then."""
        now = time.monotonic()
        at, version = self._versions.get(name, (-math.inf, ""))
        if now - at >= self.age:
            version = await read()
            fresh = {each: old for each, old in self._versions.items() if now - old[0] < self.age}
            self._versions = {**fresh, name: (now, version)}
        return version

    async def _pause(self, is_ending: Callable[[], bool]) -> None:
        end = time.monotonic() + self.period
        while not is_ending() and (left := end - time.monotonic()) > 0.0:
            await asyncio.sleep(min(LISTENING, left))
