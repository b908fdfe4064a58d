"""The path of a new user, timed: from nothing to a first decision, a first evaluation, a durable loop, a server.

    make newcomer                                   # a wheel of this tree, else the one in WHEEL=
    .venv/bin/python benchmarks/newcomer.py dist/armlet-0.1.0-cp311-cp311-linux_x86_64.whl

An empty environment in an empty folder, the clone out of sight. Each step is what its tutorial asks a reader to run,
and starts Python again. Then, in another empty environment, the lines of the README: `armlet serve`, until it says
where it is, and a first decision by curl. Downloads come from the package index, or from pip's cache.
"""

from __future__ import annotations

import argparse
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent

DECISION = """
import armlet
bandit = armlet.Bandit(["tea", "coffee"], features=["hour", "celsius"], seed=1)
decision = bandit.decide({"hour": 8, "celsius": 15})
bandit.learn(decision, reward=1.0)
print(f"{decision.arm}, with probability {decision.propensity}")
"""
EVALUATION = """
import numpy, armlet
rng, log = numpy.random.default_rng(0), armlet.Log("pilot.jsonl")
pilot = armlet.Bandit(["tea", "coffee"], dim=2, policy=armlet.Uniform(), seed=1, log=log)
for x in rng.normal(size=(2000, 2)):
    decision = pilot.decide(x)
    pilot.learn(decision, float(x[0] if decision.arm == "tea" else x[1]))
log.close()
print(armlet.evaluation.rejection_replay("pilot.jsonl", armlet.LinUCB(), seed=3))
"""
LOOP = """
import armlet
store = armlet.open_store("shop.db")
loop = store.loop("drinks", arms=["tea", "coffee"], dim=1, policy=armlet.OccasionalOptimism(), seed=1)
loop.decide([0.5], event="guest-1")
store.close()
print("after a restart:", armlet.open_store("shop.db").loop("drinks").reward("guest-1", 1.0))
"""


def run(*command: str | Path, folder: Path) -> str:
    """Return the last line that a command prints."""
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return (done.stdout.strip().splitlines() or [""])[-1]


def wheel_of(given: Path | None, folder: Path) -> Path:
    if given is not None:
        return given.resolve()
    print("building a wheel, which a user would not have to ...", flush=True)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT, folder=folder)
    return next(folder.glob("*.whl"))


Step = tuple[str, Callable[[], str]]


def table(steps: Iterable[Step]) -> None:
    """Print what each step takes and says, and the time since the first began."""
    print("| step | s | since the start, s | |\n|---|---|---|---|")
    start = time.perf_counter()
    for name, step in steps:
        before = time.perf_counter()
        said = step()
        now = time.perf_counter()
        print(f"| {name} | {now - before:.1f} | {now - start:.1f} | {said} |", flush=True)


def installed(wheel: Path, folder: Path, extra: str = "") -> Callable[[], str]:
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    return partial(run, folder / "env" / "bin" / "python", *pip, f"{wheel}{extra}", folder=folder)


def environment(folder: Path) -> Step:
    return "an environment", partial(run, sys.executable, "-m", "venv", folder / "env", folder=folder)


def learn_the_library(wheel: Path, folder: Path) -> None:
    python = folder / "env" / "bin" / "python"
    table(
        [
            environment(folder),
            ("pip install armlet", installed(wheel, folder)),
            ("a first decision", partial(run, python, "-c", DECISION, folder=folder)),
            ("a first evaluation", partial(run, python, "-c", EVALUATION, folder=folder)),
            ("pip install 'armlet[store]'", installed(wheel, folder, "[store]")),
            ("a durable loop, and a restart", partial(run, python, "-c", LOOP, folder=folder)),
        ]
    )


# ---- the server


def readme_lines() -> tuple[list[str], list[str]]:
    """Return the command that serves, and the requests, as the README has them; at a port that is free."""
    block = re.search(r"^```bash\n(armlet serve .*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    if block is None:
        raise SystemExit("the README has no lines that begin with: armlet serve")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    first, *requests = block[1].splitlines()
    serve = [*shlex.split(first, comments=True)[1:], "--port", port]
    return serve, [line.replace(":8080/", f":{port}/") for line in requests]


@contextmanager
def served(folder: Path) -> Iterator[list[Step]]:
    """Give the steps of the README that follow the installation, and end the server."""
    serve, requests = readme_lines()
    started: list[subprocess.Popen[str]] = []

    def start() -> str:
        command = [str(folder / "env" / "bin" / "armlet"), *serve]
        with (folder / "stderr.txt").open("w") as errors:
            process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True)
        started.append(process)
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        if not said:
            raise SystemExit((folder / "stderr.txt").read_text())
        return said

    asked = [("sh", "-c", line) for line in requests]
    try:
        yield [
            ("armlet serve, until it is ready", start),
            *(("curl", partial(run, *words, folder=folder)) for words in asked),
        ]
    finally:
        for process in started:
            process.terminate()
            process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", nargs="?", type=Path, help="default: one that is built first, which is not counted")
    given = parser.parse_args().wheel
    with (
        tempfile.TemporaryDirectory() as made,
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as two,
    ):
        wheel = wheel_of(given, Path(made))
        print(f"{wheel.name}, {wheel.stat().st_size / 1e6:.2f} MB\n")
        learn_the_library(wheel, Path(one))
        print("\nFrom nothing to a first decision by curl, by the lines of the README:\n")
        with served(Path(two)) as steps:
            table(
                [
                    environment(Path(two)),
                    ("pip install 'armlet[service]'", installed(wheel, Path(two), "[service]")),
                    *steps,
                ]
            )


if __name__ == "__main__":
    main()
