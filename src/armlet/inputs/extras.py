"""Packages that only some of the library needs, and the extra of ours that brings each.

Whoever needs one asks at the start, so that a computation of an hour does not end in a missing package.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Final

EXTRAS: Final = {"apsw": "store", "distributed": "cluster", "matplotlib": "plots", "pyarrow": "data"}
"""The extra that brings a package."""


def require(package: str, what: str) -> None:
    """Refuse if a package is missing, with the command that brings it; importing is left to whoever uses it.

    Examples
    --------
    >>> require("pyarrow", "tables need")
    """
    if importlib.util.find_spec(package) is None:
        raise missing(package, what)


def load(package: str, what: str) -> ModuleType:
    """Import a package, or refuse with the command that brings it.

    Examples
    --------
    >>> load("pyarrow", "tables need").__name__
    'pyarrow'
    """
    require(package, what)
    return importlib.import_module(package)


def missing(package: str, what: str) -> ModuleNotFoundError:
    """Make the error for a missing package.

    Examples
    --------
    >>> print(missing("pyarrow", "tables need"))
    tables need pyarrow; pip install 'armlet[data]'
    """
    return ModuleNotFoundError(f"{what} {package}; pip install 'armlet[{EXTRAS[package]}]'", name=package)
