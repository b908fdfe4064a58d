"""Servers to send requests to: in a process of their own, as users start them, or in a thread, with other parts."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from armlet.service.app import Service
from armlet.service.config import ServerConfig
from armlet.service.server import Server, listening, url_of

PATIENCE = 60.0  # seconds, on a machine that is busy
LISTENING = re.compile(r"listening at (\S+)")
ROUTER = """
[loops.router]
arms = ["small", "large"]
features = ["tokens"]
outcomes = { quality = 1.0, cost = -1.0, delay = -0.01 }
known = { cost = { small = 0.001, large = 0.03 } }
budget = { outcome = "cost", total = 0.5, horizon = 200 }
epoch = 1000
seed = 7
"""
"""A loop with several outcomes, a budget that binds, and epochs, in a file of settings."""


@dataclass
class Answer:
    """What a server has answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


def ask(url: str, method: str, path: str, body: object = None, **headers: str) -> Answer:
    """Send one request on a connection of its own."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(cast("str", place.hostname), place.port, timeout=PATIENCE)
    sent = None if body is None else msgspec.json.encode(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, sent, {"content-type": "application/json", **named})
        found = connection.getresponse()
        return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
    finally:
        connection.close()


# ---- a process


class ServerProcess:
    """`armlet serve` with arguments of a test; what it writes to standard error is kept in a file."""

    def __init__(self, *arguments: str, folder: Path, **environ: str) -> None:
        self.errors = folder / f"stderr-{threading.get_native_id()}-{id(self):x}.txt"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ARMLET_")}
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "armlet", "serve", *arguments],
                cwd=folder,
                env={**clean, **environ},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.banner: list[str] = []
        self.url = ""

    def wait_until_ready(self) -> None:
        """Read its banner, which it prints as soon as it answers."""
        for line in cast("Any", self.process.stdout):
            self.banner.append(line.rstrip("\n"))
            if found := re.match(r"armlet serves .* at (\S+)$", self.banner[-1]):
                self.url = found[1]
            if line.startswith(("  http", "there is no loop", "end of banner")):
                return
        raise AssertionError(f"the server has ended with {self.process.wait()}: {self.errors.read_text()}")

    def stop(self, sig: int = signal.SIGTERM) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.send_signal(sig)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """End it at once, if it runs."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def serving(*arguments: str, folder: Path, **environ: str) -> Iterator[ServerProcess]:
    """Run a server in a process of its own, at any free port."""
    server = ServerProcess(*arguments, "--port", "0", folder=folder, **environ)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.kill()


# ---- a thread


class ServerThread:
    """A server in this process, for what a test must change inside."""

    def __init__(self, config: ServerConfig) -> None:
        self.ready = threading.Event()
        self.service: Service | None = None
        self._socket = listening(config.listen)
        self._listener = self._socket.__enter__()
        self.url = url_of(self._listener)
        self.server = Server(config, self.url, self._on_ready)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self._listener]}, daemon=True)
        self._thread.start()

    def _on_ready(self, _: str, service: Service) -> None:
        self.service = service
        self.ready.set()

    def stop(self) -> None:
        """Ask it to stop, and wait for its end."""
        self.server.should_exit = True
        self.wait()

    def wait(self) -> None:
        """Wait for its end."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self._socket.__exit__(None, None, None)


@contextmanager
def serving_here(config: ServerConfig) -> Iterator[ServerThread]:
    """Run a server in a thread, and wait until it is ready."""
    server = ServerThread(config)
    try:
        assert server.ready.wait(PATIENCE)
        yield server
    finally:
        server.stop()
