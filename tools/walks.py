"""Count the modules that a reader of a main path has to open, and what the two packages consist of.

    python tools/walks.py               modules entered by evaluate, by a restart of a store, and by Figure (a)
    python tools/walks.py --imports     modules with one importer, and the lines and files of both packages

A walk is called twice: the first call imports and warms caches, the second is counted by `sys.setprofile`, in every
thread that it starts. A module counts if a Python frame of its file is entered, in the library or in the laboratory.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np

import armlet
import armlet_lab

ROOTS: Final = {package.__name__: Path(str(package.__file__)).parent for package in (armlet, armlet_lab)}
"""Where the files of each package are, by its name."""


@contextlib.contextmanager
def entered() -> Iterator[set[str]]:
    """Collect the files in which a Python frame is entered, in this thread and in those that it starts."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def modules(files: set[str]) -> list[str]:
    """Name the modules of both packages among files.

    Examples
    --------
    >>> modules({str(ROOTS["armlet"] / "inputs" / "settings.py"), os.__file__})
    ['armlet.inputs.settings']
    """
    found = []
    for path in map(Path, files):
        for name, root in ROOTS.items():
            if path.is_relative_to(root):
                parts = path.relative_to(root).with_suffix("").parts
                found.append(".".join([name, *parts]).removesuffix(".__init__"))
    return sorted(found)


def evaluate_walk(folder: Path) -> Callable[[], object]:
    """Prepare `armlet.evaluate` on a compacted log."""
    rng = np.random.default_rng(3)
    with armlet.Log(folder / "decisions.jsonl") as log:
        policy = armlet.Algorithm1(p=200, warmup="uniform")
        bandit = armlet.Bandit(["north", "south"], 2, policy=policy, seed=7, log=log, reward_range=(0, 1))
        for _ in range(1500):
            x = [1.0, rng.uniform(-1, 1)]
            decision = bandit.decide(x)
            bandit.learn(decision, float(rng.random() < 0.5 + 0.3 * x[1] * (1 if decision.arm == "north" else -1)))
    path = armlet.log.compact(folder / "decisions.jsonl")
    return lambda: armlet.evaluate(path, {"always north": "north", "model": bandit})


def restart_walk(folder: Path) -> Callable[[], object]:
    """Prepare a restart of a store: open it, find the loop, decide."""
    path = folder / "loops.db"
    with armlet.open_store(path) as store:
        loop = store.loop("homepage", arms=["a", "b"], dim=2, seed=7)
        for i in range(50):
            loop.reward(loop.decide([1.0, i % 5]).id, float(i % 2))

    def restart() -> None:
        with armlet.open_store(path) as store:
            store.loop("homepage").decide([1.0, 2.0])

    return restart


def figure_walk(folder: Path) -> Callable[[], object]:
    """Prepare what `armlet-lab paper --only fig-a` does, in this process and at a tiny scale."""
    from armlet_lab.paper import figure_a
    from armlet_lab.runner.reproduce import reproduce

    tiny = replace(figure_a.SCALES["quick"], thetas=1, runs=4, long_runs=4, long_p_runs=2, long_p=1200)

    def draw() -> None:
        figure_a.SCALES["quick"] = tiny
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            reproduce(["fig-a"], out=folder / "paper", engine="serial")

    return draw


WALKS: Final[dict[str, Callable[[Path], Callable[[], object]]]] = {
    "evaluate": evaluate_walk,
    "restart": restart_walk,
    "fig-a": figure_walk,
}


def walk(name: str) -> list[str]:
    """Take a walk twice and name the modules that the second one entered."""
    with tempfile.TemporaryDirectory() as folder:
        call = WALKS[name](Path(folder))
        call()
        with entered() as files:
            call()
    return modules(files)


def print_imports() -> None:
    """Print the modules with exactly one importer, and lines and files, of each package."""
    import grimp

    graph = grimp.build_graph("armlet", "armlet_lab")
    for name, root in ROOTS.items():
        files = sorted(root.rglob("*.py"))
        lines = sum(len(path.read_text().splitlines()) for path in files)
        mine = {module for module in graph.modules if module == name or module.startswith(f"{name}.")}
        single = [module for module in sorted(mine) if len(graph.find_modules_that_directly_import(module)) == 1]
        print(f"{name}: {lines:,} lines in {len(files)} files; {len(single)} modules have one importer")
        for module in single:
            (importer,) = graph.find_modules_that_directly_import(module)
            print(f"    {module} <- {importer}")


def main(arguments: list[str] | None = None) -> int:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(prog="tools/walks.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--imports", action="store_true", help="modules with one importer, lines and files")
    parser.add_argument("--only", choices=tuple(WALKS), help="one walk; default: all")
    given = parser.parse_args(arguments)
    if given.imports:
        print_imports()
        return 0
    for name in WALKS if given.only is None else (given.only,):
        found = walk(name)
        print(f"{name}: {len(found)} modules", *found, sep=f"{os.linesep}    ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
