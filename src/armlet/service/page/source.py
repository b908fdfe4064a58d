"""Where pages get what they show from: the loops of a server, or a store next to the process that runs it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from armlet.service.app import no_loop
from armlet.stores.overview import Details, details

if TYPE_CHECKING:
    from armlet.service.app import Service
    from armlet.service.personalizer.features import FeatureCounts
    from armlet.stores.ledger import LedgerReader, LoopRecord


class Source(Protocol):
    """What pages are made from; what waits for a store does so in a thread."""

    async def names(self) -> Sequence[str]:
        """Return the names of all loops, the oldest first."""

    async def details(self, name: str) -> Details:
        """Return what there is to see of a loop; a Problem says that there is none of this name."""

    async def version(self, name: str) -> str:
        """Return a short text that is another one if the loop has changed; a Problem as well."""

    def features(self, name: str) -> FeatureCounts | None:
        """Return how often features did not fit, as far as it is known."""


class Loops:
    """The loops of a server, from memory."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def names(self) -> Sequence[str]:
        """Return the names of all loops, the oldest first."""
        service = self._service
        return await service.ask(lambda: service.store.loops)

    async def details(self, name: str) -> Details:
        """Return what there is to see of a loop."""
        loop = await self._service.loop(name)
        return await self._service.ask(loop.details)

    async def version(self, name: str) -> str:
        """Return how far the loop has come."""
        loop = await self._service.loop(name)
        seq, epoch = await self._service.ask(loop.version)
        return f"{seq}.{epoch}"

    def features(self, name: str) -> FeatureCounts | None:
        """Return how often features did not fit, since the server started."""
        return self._service.features.get(name)


class Reader:
    """A store next to the process that has it open, or without one; nothing is locked by looking."""

    def __init__(self, service: Service, ledger: LedgerReader) -> None:
        self._service, self._ledger = service, ledger

    async def names(self) -> Sequence[str]:
        """Return the names of all loops, the oldest first."""
        return [record.name for record in await self._service.ask(self._ledger.loops)]

    async def details(self, name: str) -> Details:
        """Return what there is to see of a loop; rows since its snapshot are played again."""
        return await self._service.ask(self._read, name)

    def _read(self, name: str) -> Details:
        with self._ledger.view() as view:
            return details(view, _record(view.loops(), name), time.time_ns() // 1000)

    async def version(self, name: str) -> str:
        """Return how far the loop has come."""
        return await self._service.ask(self._head, name)

    def _head(self, name: str) -> str:
        head = self._ledger.head(_record(self._ledger.loops(), name).id)
        if head is None:
            raise no_loop(name)
        return f"{head.seq}.{head.epoch}"

    def features(self, _: str) -> FeatureCounts | None:
        """Return nothing: only a server knows what it was sent."""


def _record(records: Sequence[LoopRecord], name: str) -> LoopRecord:
    for record in records:
        if record.name == name:
            return record
    raise no_loop(name)
