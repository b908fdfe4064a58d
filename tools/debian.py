"""Debian's packages of another release or processor, unpacked into a folder and installed nowhere.

Nothing is named but the release: where packages come from is what the machine's own apt is set to.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

KEYS: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"


def available() -> bool:
    """Return whether this machine can fetch Debian's packages."""
    return bool(shutil.which("apt-get") and shutil.which("dpkg-deb") and mirrors())


def mirrors() -> list[str]:
    """List where the machine's apt finds Debian's releases, security updates apart."""
    asked = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)"]
    lines = subprocess.run(asked, capture_output=True, text=True).stdout.split("\n")
    found = (line.partition(" ")[2] for line in lines if line.startswith("Debian "))
    return sorted({uri for uri in found if not uri.rstrip("/").endswith("-security")})


def unpack(folder: Path, packages: Iterable[str], *, release: str, architecture: str) -> Path:
    """Fetch packages with all that they need and unpack them; give the root of the files."""
    root, done = folder / "root", folder / "done"
    if done.exists():
        return root
    for name in ("state/lists/partial", "cache/archives/partial", "etc", "root"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    lines = [f"deb [signed-by={KEYS}] {mirror} {release} main" for mirror in mirrors()]
    (folder / "etc" / "sources.list").write_text("\n".join(lines) + "\n")
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "1",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "etc" / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    run(*apt, "update")
    run(*apt, "install", "--yes", "--download-only", "--no-install-recommends", *packages)
    for package in sorted((folder / "cache" / "archives").glob("*.deb")):
        run("dpkg-deb", "--extract", package, root)
    done.touch()
    return root


def run(*words: object) -> None:
    """Run a command; on failure show what it printed."""
    command = list(map(str, words))
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout, flush=True)
        raise subprocess.CalledProcessError(done.returncode, command)
