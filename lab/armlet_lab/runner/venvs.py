"""An environment of its own for a package whose pins are not ours: made once with venv and pip, and run by path.

FOLDER/bin/python     what runs a worker script
FOLDER/stamp.json     what decided what was installed; another recipe, or another Python, means another environment

It is made next to its place and then renamed into it: whole or not at all, even if another process makes it too.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from armlet.errors import ArmletError

NOT_THE_PACKAGE = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence.pth", "__pycache__")


class InstallError(ArmletError):
    """What pip could not install; the message is pip's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What is installed."""

    name: str
    requires: tuple[str, ...]
    without_dependencies: tuple[str, ...] = ()  # installed first, with --no-deps
    for_the_worker: tuple[str, ...] = ()  # needed to run it, not counted in its size
    constraints: str = ""  # the text of a pip constraints file

    @property
    def fingerprint(self) -> str:
        """A digest of everything that decides what gets installed."""
        parts = (self.without_dependencies, self.requires, self.for_the_worker, sys.version, self.constraints)
        return hashlib.sha256(repr(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Venv:
    """Where a Python is, and the megabytes that what was installed for it takes."""

    python: Path
    megabytes: float


def environment(recipe: Recipe, folder: Path, tell: Callable[[str], None] = print) -> Venv:
    """Find an environment, installed now unless that was done before by the same recipe.

    Parameters
    ----------
    folder
        Where it is, or is to be; one made by another recipe is replaced.
    tell
        Receives what is being done.
    """
    if (held := _held(recipe, folder)) is not None:
        tell(f"{recipe.name}: already installed, {held.megabytes:.0f} MB")
        return held
    tell(f"{recipe.name}: installing (seconds for a small wheel, minutes where it compiles) ...")
    started = perf_counter()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as beside:
        made = Path(beside) / "made"
        megabytes = _install(recipe, made)
        (made / "stamp.json").write_text(json.dumps({"pins": recipe.fingerprint, "megabytes": megabytes}))
        _put(made, folder, recipe)
    tell(f"{recipe.name}: {megabytes:.0f} MB in {perf_counter() - started:.0f} s")
    return Venv(_python(folder), megabytes)


def last_line(text: str) -> str:
    """Find the line that says what went wrong.

    Examples
    --------
    >>> last_line(chr(10).join(["ERROR: no such package", "ERROR: see above"]))
    'ERROR: no such package'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]  # pip's first says more than its last
    return (errors[:1] or lines[-1:] or ["no message"])[0][:200]


def tree_bytes(part: Path) -> int:
    """Count the bytes of a file, or of all files in a folder."""
    if part.is_file():
        return part.stat().st_size
    return sum(path.stat().st_size for path in part.rglob("*") if path.is_file())


def _held(recipe: Recipe, folder: Path) -> Venv | None:
    try:
        stamp = json.loads((folder / "stamp.json").read_text())
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return None
    return Venv(_python(folder), stamp["megabytes"]) if stamp["pins"] == recipe.fingerprint else None


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _put(made: Path, folder: Path, recipe: Recipe) -> None:
    """Rename it into its place; if another process was faster, theirs is as good."""
    if _held(recipe, folder) is not None:
        return
    shutil.rmtree(folder, ignore_errors=True)
    try:
        made.rename(folder)
    except OSError:
        if _held(recipe, folder) is None:
            raise


def _install(recipe: Recipe, folder: Path) -> float:
    _run([sys.executable, "-m", "venv", str(folder)])
    pins = folder / "constraints.txt"
    pins.write_text(recipe.constraints)
    if recipe.without_dependencies:
        _pip(folder, pins, "--no-deps", *recipe.without_dependencies)
    _pip(folder, pins, *recipe.requires)
    megabytes = _megabytes(next(folder.glob("[Ll]ib/**/site-packages")))
    if recipe.for_the_worker:
        _pip(folder, pins, *recipe.for_the_worker)
    return megabytes


def _pip(folder: Path, pins: Path, *arguments: str) -> None:
    options = ("--quiet", "--disable-pip-version-check", "--constraint", str(pins))
    _run([str(_python(folder)), "-m", "pip", "install", *options, *arguments])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise InstallError(last_line(done.stderr or done.stdout))


def _megabytes(folder: Path) -> float:
    """Count megabytes (10^6 bytes) on disk, without what every new environment has."""
    parts = [part for part in folder.iterdir() if not part.name.startswith(NOT_THE_PACKAGE)]
    return sum(tree_bytes(part) for part in parts) / 1e6
