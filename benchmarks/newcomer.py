"""The path of a new user, timed: from nothing to a first decision, a first evaluation and a durable loop.

    make newcomer                                   # a wheel of this tree, else the one in WHEEL=
    .venv/bin/python benchmarks/newcomer.py dist/armlet-0.1.0-cp311-cp311-linux_x86_64.whl

An empty environment in an empty folder, the clone out of sight. Each step is what its tutorial asks a reader to run,
and starts Python again. Downloads come from the package index, or from pip's cache if they are there already.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", nargs="?", type=Path, help="default: one that is built first, which is not counted")
    wheel = parser.parse_args().wheel
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as place:
        wheel, folder = wheel_of(wheel, Path(made)), Path(place)
        python = folder / "env" / "bin" / "python"
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        steps: list[tuple[str, tuple[str | Path, ...]]] = [
            ("an environment", (sys.executable, "-m", "venv", folder / "env")),
            ("pip install armlet", (*pip, wheel)),
            ("a first decision", (python, "-c", DECISION)),
            ("a first evaluation", (python, "-c", EVALUATION)),
            ("pip install 'armlet[store]'", (*pip, f"{wheel}[store]")),
            ("a durable loop, and a restart", (python, "-c", LOOP)),
        ]
        print(f"{wheel.name}, {wheel.stat().st_size / 1e6:.2f} MB\n")
        print("| step | s | since the start, s | |\n|---|---|---|---|")
        start = time.perf_counter()
        for name, command in steps:
            before = time.perf_counter()
            said = run(*command, folder=folder)
            now = time.perf_counter()
            print(f"| {name} | {now - before:.1f} | {now - start:.1f} | {said} |", flush=True)


if __name__ == "__main__":
    main()
