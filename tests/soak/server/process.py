"""A process of `armlet serve` at a port of its own, which can be killed, stopped, looked at and started again.

With patches it is the same command, run by `soak.server.patched`, which changes the library first.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Final

from soak.oracle import LostError, require
from soak.server.connections import PATIENCE, Address, CutError, NotSentError, ask

TESTS: Final = Path(__file__).parents[2]
LIMITS: Final[Mapping[str, object]] = {"drain_seconds": 2.0, "notice_seconds": 0.0}


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Process:
    """A server.

    Parameters
    ----------
    folder
        Where its settings and its log are.
    store
        Its file, by its whole path, or the address of its database.
    limits
        Settings of `[limits]`.
    patches
        Names of `soak.server.patched`.
    variables
        Of its environment, besides those that there are.
    """

    def __init__(
        self,
        folder: Path,
        store: str,
        *,
        limits: Mapping[str, object] = LIMITS,
        patches: Sequence[str] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.address: Address = ("127.0.0.1", free_port())
        self._patches, self._environment = list(patches), {**_environment(), **variables}
        folder = folder.resolve()
        self._config, self._log = folder / f"{self.address[1]}.toml", folder / f"{self.address[1]}.log"
        self._config.write_text(_settings(store, self.address[1], limits))
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    @property
    def pid(self) -> int:
        """Its number."""
        return self._running.pid

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise AssertionError("the server was not started")
        return self._process

    @property
    def said(self) -> str:
        """What it has written about itself."""
        return self._log.read_text()

    def start(self) -> None:
        """Start it; it is not ready yet."""
        command = [sys.executable, "-m", "armlet"]
        if self._patches:
            command = [sys.executable, "-m", "soak.server.patched", *self._patches, "--"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "serve", str(self._config)], stdout=log, stderr=log, cwd=TESTS, env=self._environment
            )
        self.starts += 1

    async def ready(self) -> None:
        """Wait until it is ready."""
        end = monotonic() + PATIENCE
        while await self.status("/readyz") != 200:
            self.check_alive()
            require(monotonic() < end, f"the server is not ready after {PATIENCE:g} seconds: {self.said}")
            await asyncio.sleep(0.01)

    async def status(self, path: str) -> int | None:
        """Return the status of a GET; None if nobody answers."""
        try:
            return (await ask(self.address, "GET", path)).status
        except (NotSentError, CutError):
            return None

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._running.poll() is None

    def check_alive(self) -> None:
        """Refuse a process that has ended by itself."""
        if not self.is_alive:
            raise LostError(f"the server has ended by itself with {self._running.returncode}: {self.said}")

    def kill(self) -> None:
        """Kill it."""
        self.check_alive()
        self._running.kill()
        self._running.wait()

    def send(self, which: signal.Signals) -> None:
        """Stop it, or let it go on."""
        self._running.send_signal(which)

    async def stop(self) -> None:
        """Ask it to stop, and wait; it must end well."""
        self.check_alive()
        self._running.terminate()
        status = await asyncio.to_thread(self._running.wait, PATIENCE)
        require(status == 0, f"the server ended with {status}: {self.said}")

    def close(self) -> None:
        """End it, however it is."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def memory(self) -> int:
        """Bytes that it has in memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def connections(self) -> int:
        """How many connections to it are open, those that it has not accepted yet included."""
        lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
        states = [line.split()[3] for line in lines if line.split()[1].endswith(f":{self.address[1]:04X}")]
        return sum(state in ("01", "08") for state in states)  # established, or closed by the client alone

    @property
    def cpu(self) -> float:
        """CPU seconds that its threads have taken."""
        return time.clock_gettime(~self.pid << 3 | 2)  # as clock_getcpuclockid of POSIX has it on Linux


def _settings(store: str, port: int, limits: Mapping[str, object]) -> str:
    lines = [f"store = {json.dumps(store)}", "[listen]", f"port = {port}", "[limits]"]
    return "\n".join([*lines, *(f"{name} = {json.dumps(value)}" for name, value in limits.items()), ""])


def _environment() -> dict[str, str]:
    """Return the environment without settings of other servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ARMLET_")}
