"""Why hashed text belongs to Vowpal Wabbit: guessing which package of the standard library eight lines come from.

    python benchmarks/text.py            # prints a table; two minutes

Every snippet is a context of some twenty words out of tens of thousands, the packages are the arms, and the right one
pays 1. Vowpal Wabbit has a weight for each word and arm, 2^18 of them. Armlet keeps d (d + 1) / 2 numbers for each arm,
so the words are hashed into a few hundred columns first, where different words meet in one column.
"""

from __future__ import annotations

import re
import resource
import sysconfig
import tempfile
import zlib
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np

import armlet
from armlet.types import Float64, Int64
from armlet_lab.contests import vowpal, vowpal_worker
from armlet_lab.contests.rival import ask
from router_report import table

PACKAGES = ("asyncio", "email", "http", "importlib", "json", "logging", "multiprocessing", "unittest", "urllib", "xml")
LINES, ROWS, SEED = 8, 8_000, 1
COLUMNS = (128, 256)
WORD = re.compile(r"[A-Za-z_]{2,}")
VOWPAL = {
    "Vowpal Wabbit, RegCB-opt": "--regcbopt --mellowness 0.001",
    "Vowpal Wabbit, SquareCB": "--squarecb",
    "Vowpal Wabbit, epsilon 0.05": "--epsilon 0.05",
}


class Snippets(NamedTuple):
    """Words of every snippet, and the place of its package."""

    words: list[set[str]]
    y: Int64


def read() -> Snippets:
    """Cut the sources of the packages into snippets, in a random order."""
    home, found = Path(sysconfig.get_path("stdlib")), []
    for label, name in enumerate(PACKAGES):
        for path in sorted((home / name).rglob("*.py")):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            parts = ("\n".join(lines[start : start + LINES]) for start in range(0, len(lines), LINES))
            found += [(words, label) for part in parts if (words := set(WORD.findall(part)) - {name})]
    order = np.random.default_rng(SEED).permutation(len(found))[:ROWS]
    return Snippets([found[at][0] for at in order], np.array([found[at][1] for at in order]))


def hashed(words: list[set[str]], columns: int) -> Float64:
    """Count the words of each snippet in the columns that they are hashed to."""
    X = np.zeros((len(words), columns))
    for row, each in zip(X, words, strict=True):
        for word in each:
            row[zlib.crc32(word.encode()) % columns] += 1.0
    return X


def play(snippets: Snippets, columns: int) -> tuple[Float64, float]:
    """Let Armlet's default guess; return its mistakes, and microseconds of CPU a snippet."""
    X, wrong = hashed(snippets.words, columns), np.empty(len(snippets.y))
    bandit, started = armlet.Bandit(range(len(PACKAGES)), columns, seed=SEED), process_time()
    for t, (x, label) in enumerate(zip(X, snippets.y, strict=True)):
        decision = bandit.decide(x)
        wrong[t] = decision.arm != label
        bandit.learn(decision, float(decision.arm == label))
    return wrong, 1e6 * (process_time() - started) / len(X)


def ask_vowpal(snippets: Snippets, options: str) -> tuple[Float64, float]:
    """Let Vowpal Wabbit guess, from a file; its time has the start of a Python in it."""
    frame = f"--cbify {len(PACKAGES)} --cb_explore_adf --random_seed {SEED} -b 18"
    python, before = vowpal.prepare(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.vw"
        lines = (f"{label + 1} | {' '.join(sorted(words))}\n" for words, label in zip(*snippets, strict=True))
        path.write_text("".join(lines))
        (chosen,) = ask("Vowpal Wabbit", python, vowpal_worker.__file__, [[str(path), f"{frame} {options}"]])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (np.array(chosen) - 1 != snippets.y).astype(float), 1e6 * spent / len(snippets.y)


def main() -> None:
    snippets = read()
    known = len(set().union(*snippets.words))
    played = {f"Armlet's default, {columns} columns": play(snippets, columns) for columns in COLUMNS}
    played |= {name: ask_vowpal(snippets, options) for name, options in VOWPAL.items()}
    last = len(snippets.y) // 4
    rows = {
        name: [f"{wrong.mean():.3f}", f"{wrong[-last:].mean():.3f}", f"{us:,.0f}"]
        for name, (wrong, us) in played.items()
    }
    print(f"{len(snippets.y):,} snippets, {len(PACKAGES)} packages, {known:,} words; seed {SEED}\n")
    print(table("", ["mistakes", "in the last quarter", "CPU a snippet, us"], rows))
    numbers = len(PACKAGES) * known * (known + 1) / 2
    print(f"\nWithout hashing Armlet would keep {8e-9 * numbers:,.0f} GB: {known:,} words squared, for each arm.")


if __name__ == "__main__":
    main()
