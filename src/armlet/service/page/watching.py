"""Pages of a store for people without the server: next to the process that has it open, or without one.

It listens on this machine only, reads and never writes, and locks nothing.
"""

from __future__ import annotations

import signal
import socket
from types import FrameType
from typing import TYPE_CHECKING, Final, cast

import uvicorn

from armlet.service.app import Service, create_app
from armlet.service.page.routes import page_routes
from armlet.service.page.source import Reader

if TYPE_CHECKING:
    from armlet.stores import Store
    from armlet.stores.ledger import LedgerReader

GRACE: Final = 3  # seconds for what is under way at the end


class Watch(uvicorn.Server):
    """A server of pages that reads a ledger."""

    def __init__(self, ledger: LedgerReader) -> None:
        # handlers of pages reach what they show through a source, and never touch the store of the service
        self.service = Service(cast("Store", None))
        app = create_app(self.service, page_routes(lambda service: Reader(service, ledger)))
        super().__init__(
            uvicorn.Config(
                app,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE,
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop: streams end first, since browsers would keep them open."""
        self.service.phase = "draining"
        super().handle_exit(sig, frame)


def watch(ledger: LedgerReader, listener: socket.socket) -> None:
    """Serve pages until the process is asked to stop, by SIGTERM or SIGINT."""
    server = Watch(ledger)
    # uvicorn raises the signal again when it has ended, which would make an error of it
    before = {sig: signal.signal(sig, lambda *_: None) for sig in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listener])
    finally:
        for sig, handler in before.items():
            signal.signal(sig, handler)
        server.service.close()
