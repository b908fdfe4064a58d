"""`python -m soak.server.patched NAME... -- serve armlet.toml`: the command, with the library changed first."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from armlet.cli import main
from armlet.errors import StoreError, UncertainError
from armlet.service import decisions, problems
from armlet.stores import Loop, runner, store
from armlet.stores.rewards import Value
from soak.sabotage import SABOTAGES
from soak.worker import SPACING

CLOCK: Final = "SOAK_CLOCK"  # names a file with the seconds that the wall clock is ahead


def keep_snapshots_often() -> None:
    """Keep a snapshot every few rows."""
    runner.SPACING = SPACING  # type: ignore[misc]


def read_clock_from_file() -> None:
    """Let a file say how far the wall clock is ahead."""
    ahead = Path(os.environ[CLOCK])
    defaults = store.open_store.__kwdefaults__ or {}
    defaults["wall"] = lambda: time.time() + float(ahead.read_text())


def know_events_of_this_process_only() -> None:
    """Lose the memory of events with the process."""
    decide, reward = Loop.adecide, Loop.areward

    async def adecide(self: Loop, x: Any, actions: Any = None, **options: Any) -> Any:
        if options.get("event") is not None:
            options["event"] = f"{options['event']} {os.getpid()}"
        return await decide(self, x, actions, **options)

    async def areward(self: Loop, event: str, value: Value, **options: Any) -> Any:
        return await reward(self, f"{event} {os.getpid()}", value, **options)

    Loop.adecide, Loop.areward = adecide, areward  # type: ignore[method-assign]


def call_the_unknown_refused() -> None:
    """Say that nothing was kept where nobody knows."""
    refusal = problems.refusal

    def told(error: Any, **options: Any) -> problems.Problem:
        return refusal(StoreError(str(error)) if isinstance(error, UncertainError) else error, **options)

    decisions.refusal = told  # type: ignore[attr-defined]


PATCHES: Final[Mapping[str, Callable[[], None]]] = {
    **SABOTAGES,
    "snapshots often": keep_snapshots_often,
    "clock from a file": read_clock_from_file,
    "events lost": know_events_of_this_process_only,
    "unknown called refused": call_the_unknown_refused,
}


if __name__ == "__main__":
    end = sys.argv.index("--")
    for name in sys.argv[1:end]:
        PATCHES[name]()
    sys.exit(main(sys.argv[end + 1 :]))
