"""Count the modules that a reader of a main path has to open.

    python tools/walks.py                modules entered by evaluate, a restart of a store, requests, and Figure (a)
    python tools/walks.py --only page    one walk

A walk is called twice: the first call imports and warms caches, the second is counted by `sys.setprofile`, in every
thread that was started for it. A module counts if a Python frame of its file is entered, in the library or in the
laboratory. `tools/rooms.py` counts lines, files, words and imports.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, Self

import numpy as np

import armlet
import armlet_lab

ROOTS: Final = {package.__name__: Path(str(package.__file__)).parent for package in (armlet, armlet_lab)}
"""Where the files of each package are, by its name."""


class Frames:
    """Collects the files in which a Python frame is entered, in this thread and in those that are started meanwhile."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __enter__(self) -> Self:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            self.files.add(frame.f_code.co_filename)


def modules(files: set[str]) -> list[str]:
    """Name the modules of both packages among files.

    Examples
    --------
    >>> modules({str(ROOTS["armlet"] / "inputs" / "settings.py"), os.__file__})
    ['armlet.inputs.settings']
    """
    names = []
    for path in map(Path, files):
        for name, root in ROOTS.items():
            if path.is_relative_to(root):
                parts = path.relative_to(root).with_suffix("").parts
                names.append(".".join([name, *parts]).removesuffix(".__init__"))
    return sorted(names)


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


def request_walk(method: str, path: str, body: object = None) -> Callable[[Path], Callable[[], object]]:
    """Prepare a request to a server with a loop in a file, called as uvicorn would call it."""

    def prepare(folder: Path) -> Callable[[], object]:
        from armlet.service.app import Service, create_app
        from support.service.calls import Caller

        store = armlet.open_store(folder / "loops.db")
        loop = store.loop("homepage", arms=["a", "b"], dim=2, seed=7)
        for i in range(50):
            loop.reward(loop.decide([1.0, i % 5], event=f"order-{i}").id, float(i % 2))
        loop.decide([1.0, 2.0], event="order-51"), loop.decide([1.0, 3.0], event="order-52")
        caller, events = Caller(create_app(Service(store, loops=[loop]))), iter(("order-51", "order-52"))

        def ask() -> None:
            data = b"" if body is None else json.dumps(body).replace("EVENT", next(events)).encode()
            answer = caller.send(method, path, data, {"content-type": "application/json"} if data else {})
            if answer.status != HTTPStatus.OK:
                raise SystemExit(f"{method} {path} is answered with {answer.status}: {answer.text}")

        return ask

    return prepare


WALKS: Final[dict[str, Callable[[Path], Callable[[], object]]]] = {
    "evaluate": evaluate_walk,
    "restart": restart_walk,
    "http-decide": request_walk("POST", "/v1/loops/homepage/decide", {"context": [1.0, 2.0]}),
    "http-reward": request_walk(
        "POST", "/v1/rewards", {"items": [{"loop": "homepage", "event": "EVENT", "value": 1.0}]}
    ),
    "page": request_walk("GET", "/loops/homepage"),
    "fig-a": figure_walk,
}


def walk(name: str) -> list[str]:
    """Take a walk twice and name the modules that the second one entered."""
    with tempfile.TemporaryDirectory() as folder, Frames() as frames:
        call = WALKS[name](Path(folder))
        call()
        frames.files.clear()
        call()
        return modules(frames.files.copy())


def main(arguments: list[str] | None = None) -> int:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(prog="tools/walks.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=tuple(WALKS), help="one walk; default: all")
    options = parser.parse_args(arguments)
    for name in WALKS if options.only is None else (options.only,):
        entered = walk(name)
        print(f"{name}: {len(entered)} modules", *entered, sep=f"{os.linesep}    ")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # what calls an application without a socket
    sys.exit(main())
