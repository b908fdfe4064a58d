"""One virtual environment per peer under .venvs/, made with plain pip and kept until its pins change."""

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from peers import Peer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PINS = HERE / "peers.txt"
NOT_THE_PEER = ("pip", "setuptools", "_distutils_hack", "distutils-precedence.pth", "__pycache__")


class InstallError(Exception):
    """A peer that pip could not install; the message is pip's last word."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a peer's Python is, and the megabytes that its installation takes."""

    python: Path
    megabytes: float


def environment(peer: Peer) -> Environment:
    """Find the environment of a peer, installed now unless that was done before with the same pins."""
    folder = ROOT / ".venvs" / peer.name
    stamp = folder / "stamp.json"
    python = folder / "bin" / "python"
    wanted = fingerprint(peer)
    if stamp.exists() and (held := json.loads(stamp.read_text()))["pins"] == wanted:
        print(f"    {peer.name}: already installed, {held['megabytes']:.0f} MB")
        return Environment(python, held["megabytes"])
    print(f"    {peer.name}: installing (seconds for a small wheel, minutes where it compiles) ...", flush=True)
    started = perf_counter()
    shutil.rmtree(folder, ignore_errors=True)
    megabytes = install(peer, folder, python)
    stamp.write_text(json.dumps({"pins": wanted, "megabytes": megabytes}))
    print(f"    {peer.name}: {megabytes:.0f} MB in {perf_counter() - started:.0f} s")
    return Environment(python, megabytes)


def fingerprint(peer: Peer) -> str:
    """Digest whatever decides what gets installed; another digest means another environment."""
    asked = (peer.without_dependencies, peer.requires, peer.for_the_worker, sys.version, PINS.read_text())
    return hashlib.sha256(repr(asked).encode()).hexdigest()


def install(peer: Peer, folder: Path, python: Path) -> float:
    run([sys.executable, "-m", "venv", str(folder)])
    if peer.without_dependencies:
        pip(python, "--no-deps", *peer.without_dependencies)
    pip(python, *peer.requires)
    megabytes = folder_megabytes(site_packages(folder))
    if peer.for_the_worker:
        pip(python, *peer.for_the_worker)
    return megabytes


def pip(python: Path, *arguments: str) -> None:
    options = ("--quiet", "--disable-pip-version-check", "--constraint", str(PINS))
    run([str(python), "-m", "pip", "install", *options, *arguments])


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise InstallError(last_line(done.stderr))


def last_line(text: str) -> str:
    """Find the line that says what went wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]  # pip's first says more than its last
    return (errors[:1] or lines[-1:] or ["no message"])[0][:200]


def site_packages(folder: Path) -> Path:
    return next(folder.glob("lib/python*/site-packages"))


def folder_megabytes(folder: Path) -> float:
    """Count megabytes (10^6 bytes) on disk, without what every new environment has."""
    parts = [part for part in folder.iterdir() if not part.name.startswith(NOT_THE_PEER)]
    return sum(tree_bytes(part) for part in parts) / 1e6


def tree_bytes(part: Path) -> int:
    if part.is_file():
        return part.stat().st_size
    return sum(path.stat().st_size for path in part.rglob("*") if path.is_file())
