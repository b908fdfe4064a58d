"""A private PostgreSQL cluster: made in a temporary folder, reached through a socket there, removed at the end.

It runs Debian's programs as another user where it is started by root, since PostgreSQL refuses to be root. The kernel
interrupts it when its parent dies, so that tests that are killed leave no server behind. `python
tools/postgresql.py` makes sure that the programs are there; with a command, it runs that with a cluster.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

VARIABLE: Final = "ARMLET_POSTGRESQL"  # a conninfo or URL of a database that is there already
PACKAGE: Final = "postgresql"
USER: Final = "armlet"
PATIENCE: Final = 30.0  # seconds to start or to stop
SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": "",
    "fsync": "on",
    "recovery_init_sync_method": "syncfs",
    "max_connections": "60",
    "shared_buffers": "64MB",
}


def find_programs() -> Path | None:
    """Return the folder of the newest PostgreSQL's programs; None if there is none."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda path: float(path.parent.name))
    path = shutil.which("initdb")
    return None if path is None else Path(path).resolve().parent


def install_programs() -> Path:
    """Find PostgreSQL's programs; as root on Debian, install them if they are missing."""
    if (found := find_programs()) is not None:
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"==> no PostgreSQL found: installing Debian's {PACKAGE}", flush=True)
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        _install_without_a_cluster()
    if (found := find_programs()) is None:
        raise SystemExit(f"the tests need PostgreSQL: install its server, or set {VARIABLE} to a database's URL")
    return found


def _install_without_a_cluster() -> None:
    """Install the package; by default, Debian's would also start a cluster for the whole machine."""
    settings = Path("/etc/postgresql-common/createcluster.conf")
    if not settings.exists():
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text("create_main_cluster = false\n")
    options = ["-qq", "--yes", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold"]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "install", *options, PACKAGE], check=True, stdout=subprocess.DEVNULL, env=quiet)


def _owner() -> str | None:
    """Return who runs the server: oneself, which is None, but for root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


class Cluster:
    """A server that is running, with one database; `conninfo` leads there."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder, self._programs, self._owner = folder, programs, _owner()
        self._log = folder / "log"
        self._data = folder / "data"
        self._server: subprocess.Popen[bytes] | None = None
        if self._owner is not None:
            shutil.chown(folder, self._owner)
        folder.chmod(0o755)  # for the socket
        self._make()

    @property
    def conninfo(self) -> str:
        """Where to connect to."""
        return f"host={self._folder} user={USER} dbname=postgres"

    def _make(self) -> None:
        made = subprocess.run(
            self._as_owner("initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stdout.decode(errors='replace')}")

    def _as_owner(self, program: str, *words: object, dies_with: str | None = None) -> list[str]:
        owner = [] if self._owner is None else [f"--reuid={self._owner}", *self._group(), "--clear-groups"]
        death = [] if dies_with is None or not shutil.which("setpriv") else ["--pdeathsig", dies_with]
        prefix = ["setpriv", *owner, *death] if owner or death else []
        return [*prefix, str(self._programs / program), *map(str, words)]

    def _group(self) -> list[str]:
        return [] if self._owner is None else [f"--regid={pwd.getpwnam(self._owner).pw_gid}"]

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        words = self._as_owner("postgres", "-D", self._data, "-k", self._folder, *options, dies_with="INT")
        with self._log.open("ab") as log:
            self._server = subprocess.Popen(words, stdout=log, stderr=log, cwd=self._folder)
        end = time.monotonic() + PATIENCE
        while subprocess.run([self._programs / "pg_isready", "-q", "-h", self._folder]).returncode:
            if self._server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL did not start: {self._log.read_text(errors='replace')}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT breaks off what is under way, SIGQUIT is as a crash."""
        server, self._server = self._server, None
        if server is not None:
            server.send_signal(how)
            server.wait(PATIENCE)

    def restart(self) -> None:
        """Let the server crash, and start it again."""
        self.stop(signal.SIGQUIT)
        self.start()


@contextmanager
def private_cluster() -> Iterator[Cluster]:
    """Make a cluster and start it; at the end it is stopped and removed."""
    programs = install_programs()
    with tempfile.TemporaryDirectory(prefix="armlet-pg-") as folder:
        cluster = Cluster(Path(folder), programs)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def main(command: Sequence[str]) -> int:
    """Run a command with the cluster's address in the environment; return how it ended."""
    if not command:
        print(install_programs())
        return 0
    with private_cluster() as cluster:
        return subprocess.run(command, env={**os.environ, VARIABLE: cluster.conninfo}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
