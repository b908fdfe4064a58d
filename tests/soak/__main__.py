"""`make soak`: maintain a store in traffic, kill workers of a file, and let two replicas suffer faults.

With `--server`, the same and more to processes of `armlet serve` that answer over HTTP; `--only` picks some of it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from soak import actions, interrupts, kill, outcomes, traffic

sys.path.append(str(Path(__file__).parents[2] / "tools"))  # where the private cluster is made
START = monotonic()
SERVER = ("kill", "snapshots", "replicas", "disk", "clock", "slow", "fuzz", "maintenance", "due")


def say(text: object) -> None:
    """Print a line with the time since the start."""
    print(f"{monotonic() - START:7.1f} s  {text}", flush=True)


def read_command() -> argparse.Namespace:
    """Read what to do."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--server", action="store_true", help="soak running servers, and not stores in a process")
    parser.add_argument("--only", choices=SERVER, nargs="+", default=SERVER, help="of what is done to servers")
    parser.add_argument("--kills", type=int, default=200, help="of workers of a file, or of a server")
    parser.add_argument("--interrupts", type=int, default=60, help="of processes that write logs")
    parser.add_argument("--faults", type=int, help="of two replicas in PostgreSQL; default: 60, of servers 30")
    parser.add_argument("--requests", type=int, default=10_000, help="that are fuzzed")
    parser.add_argument("--rows", type=int, default=1_000_000, help="that are pruned in traffic")
    parser.add_argument("--windows", type=int, default=100_000, help="that are due when a server starts")
    parser.add_argument("--rounds", type=int, default=8, help="of traffic with maintenance")
    parser.add_argument("--seconds", type=float, default=1.5, help="of a round")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def soak_file(given: argparse.Namespace) -> None:
    """Soak a store in a file."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk: /tmp may be memory
        if given.interrupts:
            say(f"logs after interrupts: {dict(interrupts.soak(given.interrupts, given.seed))}")
        if given.rounds:
            report = traffic.soak(Path(folder) / "traffic.db", given.rounds, given.seconds, given.seed)
            say(report)
            report.check()
        if given.kills:
            say(kill.soak(Path(folder) / "soak.db", given.kills, given.seed, say=say))
            decisions = 20 * given.kills + 100  # more than all workers can make
            say(outcomes.soak(Path(folder) / "outcomes.db", given.kills, given.seed, decisions=decisions))
            say(actions.soak(Path(folder) / "actions.db", given.kills, given.seed, decisions=2 * decisions))


def soak_replicas(given: argparse.Namespace) -> None:
    """Soak replicas, in the database that the environment names or in a private cluster."""
    from soak import replicas
    from support.postgresql import running_server

    with running_server() as server:
        say(replicas.soak(server, 60 if given.faults is None else given.faults, given.seed, say=say))


def soak_servers(given: argparse.Namespace) -> None:
    """Soak running servers, in one way after the other."""
    for name in given.only:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            say(f"server: {name}")
            say(soak_server(name, Path(folder), given))


def soak_server(name: str, folder: Path, given: argparse.Namespace) -> object:
    """Soak servers in one way, and return what was survived."""
    from soak.server import clock, disk, due, fuzz, maintenance, slow
    from soak.server import kill as kill_server

    if name == "maintenance":
        report = maintenance.soak(folder, given.rows)
        say(report)
        report.check()
        return "at most 5 times as long under maintenance"
    soaks: dict[str, Callable[[], object]] = {
        "kill": lambda: kill_server.soak(folder, given.kills, given.seed, say=say),
        "snapshots": lambda: kill_server.soak(
            folder, given.kills // 4, given.seed + 1, patches=["snapshots often"], say=say
        ),
        "replicas": lambda: soak_server_replicas(folder, given),
        "disk": lambda: disk.soak(folder, 10, given.seed, say=say),
        "clock": lambda: clock.soak(folder, 2 * tuple(clock.JUMPS), given.seed, say=say),
        "slow": lambda: slow.soak(folder),
        "fuzz": lambda: fuzz.soak(folder, given.requests, given.seed),
        "due": lambda: due.soak(folder, given.windows),
    }
    return soaks[name]()


def soak_server_replicas(folder: Path, given: argparse.Namespace) -> object:
    """Soak two servers of one database."""
    from soak.server import replicas
    from support.postgresql import running_server

    with running_server() as server:
        return replicas.soak(server, folder, 30 if given.faults is None else given.faults, given.seed, say=say)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "the first 100 rewards", RuntimeWarning)  # defaults are all alike
    given = read_command()
    if given.server:
        soak_servers(given)
    else:
        soak_file(given)
        if given.faults != 0:
            soak_replicas(given)
