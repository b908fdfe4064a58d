"""A ledger that can be held up, and that counts what it is asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from armlet.stores import Ledger, Session


class Held:
    """Passes everything on; while it is held, no transaction is committed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._may_go = threading.Event()
        self._may_go.set()
        self.is_waiting = threading.Event()  # a transaction has done all it can
        self.sessions = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def hold(self) -> None:
        """Let nothing be committed from now on."""
        self.is_waiting.clear()
        self._may_go.clear()

    def let_go(self) -> None:
        """Commit what waits."""
        self._may_go.set()

    @contextmanager
    def session(self) -> Iterator[Session]:
        self.sessions += 1
        with self._ledger.session() as session:
            yield session
            self.is_waiting.set()
            self._may_go.wait()
