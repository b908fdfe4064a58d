"""Tables that scikit-learn carries: read through it where it is installed."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

import numpy as np

from armlet.datasets.table import DatasetError, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """Tables of a package that users have, or install; nothing is fetched."""

    name: str
    package: str
    tables: tuple[str, ...]
    about: str
    licence: str

    def is_here(self) -> bool:
        """Say whether the package is installed."""
        return find_spec(self.name) is not None


SKLEARN: Final = Installed(
    name="sklearn",
    package="scikit-learn",
    tables=("breast_cancer", "digits", "iris", "wine"),
    about="classification tables that scikit-learn carries: digits, iris, wine, breast cancer; most of them from UCI",
    licence="the package is under BSD-3-Clause; each table has the terms of its source",
)


def load_installed(source: Installed, name: str) -> Table:
    """Read a table of scikit-learn."""
    if name not in source.tables:
        raise DatasetError(f"{source.name} has no table {name!r}; it has {', '.join(source.tables)}")
    if not source.is_here():
        raise DatasetError(
            f"table {name!r} is in {source.package}, which is not installed: pip install {source.package}"
        )
    module = importlib.import_module(f"{source.name}.datasets")
    found = getattr(module, f"load_{name}")()
    return Table(
        f"{source.name}/{name}",
        np.ascontiguousarray(found.data, dtype=np.float64),
        np.asarray(found.target, dtype=np.int64),
        tuple(str(label) for label in found.target_names),
        tuple(str(each) for each in found.feature_names),
    )
