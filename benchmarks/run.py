"""Measures Armlet against its peers, each installed from PyPI into an environment of its own.

Prints progress, one table per size and each goal with what was measured; writes results/bench.json and
results/bench.md. See worker.py for what a step is and how it is timed, and peers.py for what is compared.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from goals import (
    Goal,
    batch_goals,
    clicks_goals,
    cold_goals,
    default_goals,
    evaluate_goals,
    files_goals,
    flat_goals,
    growth_goals,
    inputs_goals,
    logged_goals,
    rule_goals,
    serve_goals,
    simulation_goals,
    speed_goals,
    store_goals,
    units_goals,
)
from peers import ARMLET, OURS, PEERS, Peer
from report import (
    METHOD,
    Footprint,
    clicks_table,
    cold_table,
    default_table,
    inputs_table,
    logged_table,
    simulation_table,
    size_table,
    units_table,
)
from serve_report import serve_table
from startup import distribution_megabytes, import_seconds, package_megabytes
from store_report import growth_table, store_table
from timing import SIZES, Cell, WorkerError, call, measure
from venvs import ROOT, Environment, InstallError, environment, last_line

ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A script next to this one, which prints a report; only its own table and goals know what is in it."""

    about: str
    quick: str  # its argument
    full: str
    goals: Callable[[Any], list[Goal]]
    table: Callable[[Any], list[str]] = lambda _: []
    timeout: float = 900.0  # seconds


PARTS = {
    "flat": Part(
        about="time against t, bytes of state, start-up (about a minute)", quick="0.2", full="1", goals=flat_goals
    ),
    "inputs": Part(
        about="a step by the kind of its reward and of its context (a few seconds)",
        quick="5",
        full="25",
        table=inputs_table,
        goals=inputs_goals,
    ),
    "batch": Part(
        about="a million decisions at once (about a minute, 2 GB of memory)", quick="2", full="5", goals=batch_goals
    ),
    "units": Part(
        about="what free units cost a late step (about two minutes)",
        quick="3",
        full="9",
        table=units_table,
        goals=units_goals,
    ),
    "default": Part(
        about="what a step of the default costs, early and late (about two minutes)",
        quick="3",
        full="9",
        table=default_table,
        goals=default_goals,
    ),
    "cold": Part(
        about="the first steps with 384 features, and a log learned at once (about a minute)",
        quick="2",
        full="5",
        table=cold_table,
        goals=cold_goals,
    ),
    "files": Part(
        about="learning from Parquet, rows a second and memory (3 GB of disk)",
        quick="1e6",
        full="1e7",
        goals=files_goals,
    ),
    "logged": Part(
        about="logged steps, rows learned from a log, and audits of every policy (about 5 minutes)",
        quick="quick",
        full="full",
        table=logged_table,
        goals=logged_goals,
        timeout=2700.0,
    ),
    "simulation": Part(
        about="whole simulations, against peers, numpy and random numbers alone (about 3 minutes)",
        quick="2",
        full=str(ROUNDS),
        table=simulation_table,
        goals=simulation_goals,
    ),
    "clicks": Part(
        about="what default settings earn (about eight minutes)",
        quick="3",
        full="10",
        table=clicks_table,
        goals=clicks_goals,
        timeout=2700.0,
    ),
    "evaluate": Part(
        about="a policy valued from a million rows, next to OBP (about a minute, 2 GB of memory)",
        quick="1e5",
        full="1e6",
        goals=evaluate_goals,
    ),
    "store": Part(
        about="durable decisions and rewards, SQLite and PostgreSQL, one replica and two (about ten minutes)",
        quick="--quick",
        full="--rounds=3",
        table=store_table,
        goals=store_goals,
        timeout=2700.0,
    ),
    "serve": Part(
        about="a request over HTTP next to bare uvicorn, FastAPI and MABWiser in it (about ten minutes)",
        quick="--quick",
        full="--rounds=5",
        table=serve_table,
        goals=serve_goals,
        timeout=2700.0,
    ),
    "growth": Part(
        about="a loop of a million rows, and ten thousand loops (about five minutes)",
        quick="--pairs=20000",
        full="--pairs=500000",
        table=growth_table,
        goals=growth_goals,
        timeout=2700.0,
    ),
}
EXAMPLES = """examples:
  make bench                                      everything: about 75 minutes, 3 more the first time
  .venv/bin/python benchmarks/run.py --quick      everything once: about 13 minutes
  .venv/bin/python benchmarks/run.py --only river coba      Armlet, numpy and these peers
  .venv/bin/python benchmarks/run.py --only batch flat      only what concerns Armlet alone
  .venv/bin/python benchmarks/run.py --only inputs          rewards and contexts of other kinds than float
  .venv/bin/python benchmarks/run.py --only units           free units next to units as given
  .venv/bin/python benchmarks/run.py --only default         a step of the default next to LinUCB
  .venv/bin/python benchmarks/run.py --only files           rows a second of learning from Parquet
  .venv/bin/python benchmarks/run.py --only logged          logged steps, learning from logs, audits
  .venv/bin/python benchmarks/run.py --only simulation      steps per second of whole simulations
  .venv/bin/python benchmarks/run.py --only clicks          clicks earned by default settings
  .venv/bin/python benchmarks/run.py --only evaluate        values from a log, next to OBP
  .venv/bin/python benchmarks/run.py --only store           durable decisions a second, and what they cost
  .venv/bin/python benchmarks/run.py --only serve           what a request over HTTP costs
  .venv/bin/python benchmarks/run.py --only growth          memory, files and replay of a store that grows
  .venv/bin/python benchmarks/run.py --only armlet          what a step costs, no peers
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    names = [peer.name for peer in (*OURS, *PEERS)] + list(PARTS)
    parser = argparse.ArgumentParser(
        prog="benchmarks/run.py",
        description="Measure Armlet against its peers.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"one or more of: {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="one round instead of four, fewer repetitions")
    return parser.parse_args(arguments)


def chosen_peers(only: list[str] | None) -> list[Peer]:
    """Choose the peers to measure; Armlet and numpy are always among them, for the ratios."""
    if only is None:
        return [*OURS, *PEERS]
    named = [peer for peer in PEERS if peer.name in only]
    wanted = named or any(peer.name in only for peer in OURS)
    return [*OURS, *named] if wanted else []


def install(peers: list[Peer]) -> tuple[dict[str, Environment], dict[str, str]]:
    """Make an environment for each peer that pip can install, and say why for the others."""
    ready: dict[str, Environment] = {}
    failed: dict[str, str] = {}
    numpy_megabytes = distribution_megabytes("numpy")
    for peer in peers:
        if peer in OURS:
            own = package_megabytes("armlet") if peer is ARMLET else 0.0
            ready[peer.name] = Environment(Path(sys.executable), own + numpy_megabytes)
            continue
        try:
            ready[peer.name] = environment(peer)
        except InstallError as error:
            failed[peer.name] = str(error)
            print(f"    {peer.name}: cannot be installed, {error}")
    return ready, failed


def footprints(peers: list[Peer], ready: dict[str, Environment], repeats: int) -> dict[str, Footprint]:
    """Measure import time and size of each library that could be installed."""
    found: dict[str, Footprint] = {}
    for peer in peers:
        if peer.name not in ready:
            continue
        place = ready[peer.name]
        try:
            seconds = import_seconds(place.python, peer.import_line, repeats)
        except subprocess.CalledProcessError as error:
            print(f"    {peer.name}: cannot be imported, {last_line(error.stderr.decode())}")
            continue
        found[peer.name] = Footprint(1e3 * seconds, place.megabytes)
        print(f"    {peer.name}: {1e3 * seconds:.0f} ms", flush=True)
    return found


def measure_part(name: str, part: Part, quick: bool) -> Any:
    """Get the report of one of the parts, or None with the reason printed."""
    heading(f"{name}.py: {part.about}")
    argument = part.quick if quick else part.full
    try:
        return call(Path(sys.executable), f"{name}.py", argument, timeout=part.timeout)
    except WorkerError as error:
        print(f"    {name}.py failed: {error}")
        return None


def heading(text: str) -> None:
    print(f"==> {text}", flush=True)


def measure_peers(peers: list[Peer], quick: bool) -> tuple[list[Cell], dict[str, Footprint], dict[str, str]]:
    """Measure the cells of the table and what each library costs to have; say why some are missing."""
    heading(f"environments of {len(peers) - len(OURS)} peers, under .venvs/")
    ready, failed = install(peers)
    heading("imports: CPU time in fresh processes")
    held = footprints(peers, ready, 3 if quick else 7)
    cells = [
        Cell(peer, row, size, ready[peer.name].python)
        for peer in peers
        for row in peer.rows
        for size in SIZES
        if peer.name in ready
    ]
    rounds = 1 if quick else ROUNDS
    heading(f"steps: {len(cells)} cells, {rounds} rounds, about {len(cells) * rounds * 3.5 / 60:.0f} minutes")
    measure(cells, rounds)
    return cells, held, failed


def tables(cells: list[Cell], held: dict[str, Footprint], failed: dict[str, str]) -> list[str]:
    """Lay out all there is to say about the peers."""
    if not cells:
        return []
    rounds = max(len(cell.rounds) for cell in cells)
    lines = [METHOD.format(rounds="one round" if rounds == 1 else f"{rounds} shuffled rounds")]
    lines += [line for size in SIZES for line in size_table(size, cells, held)]
    missing = [f"- {name}: cannot be installed, {reason}" for name, reason in failed.items()]
    return [*lines, *missing, ""] if missing else lines


def write(folder: Path, lines: list[str], raw: dict[str, object]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "bench.md").write_text("\n".join(["# Armlet against its peers", "", *lines, ""]))
    (folder / "bench.json").write_text(json.dumps(raw, indent=1))


def raw_cells(cells: list[Cell]) -> list[dict[str, object]]:
    return [
        {
            "peer": cell.peer.name,
            "policy": cell.row.label,
            "learner": cell.row.learner.value,
            "rule": cell.row.rule.value,
            "size": [cell.size.dim, cell.size.n_arms],
            "rounds": cell.rounds,
            "failure": cell.failure,
        }
        for cell in cells
    ]


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    started = perf_counter()
    peers = chosen_peers(options.only)
    cells, held, failed = measure_peers(peers, options.quick) if peers else ([], {}, {})
    goals: list[Goal] = [*speed_goals(cells), *rule_goals(cells)]
    raw: dict[str, object] = {"python": platform.python_version(), "cores": os.cpu_count()}
    lines = tables(cells, held, failed)
    for name, part in PARTS.items():
        if (options.only is None or name in options.only) and (found := measure_part(name, part, options.quick)):
            lines += part.table(found)
            goals += part.goals(found)
            raw[name] = found
    lines += ["## Goals", "", *(goal.line for goal in goals)]
    raw |= {"cells": raw_cells(cells), "footprints": {name: asdict(item) for name, item in held.items()}}
    raw |= {"failed": failed, "goals": [asdict(goal) for goal in goals]}
    write(ROOT / "results", lines, raw)
    print("", *lines, "", sep="\n")
    print(f"written to results/bench.md and results/bench.json after {(perf_counter() - started) / 60:.0f} minutes")


if __name__ == "__main__":
    main(sys.argv[1:])
