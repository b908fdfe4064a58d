"""The interpreters that wheels are built for: those of this machine, and those that Debian's packages bring."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import debian

RELEASE: Final = "testing"
"""Of Debian; its Pythons are newer than those that most machines have."""
LAUNCHER: Final = """\
#!/bin/sh
usr={usr}
exec $usr/lib64/ld-linux-x86-64.so.2 --argv0 "$0" --library-path $usr/lib/x86_64-linux-gnu $usr/bin/python{version} "$@"
"""
"""Starts an interpreter with the loader and the libraries of its own release, also by a link from an environment."""


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter to build for."""

    version: str
    path: Path
    origin: str  # in words


def find(wanted: Sequence[str], folder: Path) -> dict[str, Python]:
    """Find interpreters: pyenv's, those on the path, and where neither has one, Debian's, unpacked into a folder."""
    on_path = [Path(path) for version in wanted if (path := shutil.which(f"python{version}"))]
    here = [*sorted(Path.home().glob(".pyenv/versions/3.*/bin/python")), *on_path]
    found = {version: Python(version, path, "found here") for path in here if (version := version_of(path))}
    for version in wanted:
        if version not in found and debian.available():
            found.update({each.version: each for each in of_debian(version, folder / version)})
    return {version: found[version] for version in wanted if version in found}


def version_of(path: Path) -> str:
    """Ask an interpreter for its version; "" if it does not run."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([path, "-c", code], capture_output=True, text=True).stdout.strip()


def of_debian(version: str, folder: Path) -> list[Python]:
    """Unpack a Python with its headers; an empty list where Debian has none."""
    packages = (f"python{version}", f"libpython{version}-dev", f"python{version}-venv", "libstdc++6")
    try:
        root = debian.unpack(folder, packages, release=RELEASE, architecture="amd64")
    except subprocess.CalledProcessError:
        return []
    headers = root / "usr" / "include"  # Debian's pyconfig.h leads to one for each processor, by a path of the system
    shutil.copy(headers / "x86_64-linux-gnu" / f"python{version}" / "pyconfig.h", headers / f"python{version}")
    launcher = root / "usr" / "bin" / "python"
    launcher.write_text(LAUNCHER.format(usr=root / "usr", version=version))
    launcher.chmod(0o755)
    return [Python(version, launcher, f"Debian {RELEASE}, unpacked alongside")]
