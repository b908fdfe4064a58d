"""`make soak`: maintain a store in traffic, kill workers of a file, and let two replicas suffer faults."""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path
from time import monotonic

from soak import kill, traffic

sys.path.append(str(Path(__file__).parents[2] / "tools"))  # where the private cluster is made
START = monotonic()


def say(text: object) -> None:
    """Print a line with the time since the start."""
    print(f"{monotonic() - START:7.1f} s  {text}", flush=True)


def read_command() -> argparse.Namespace:
    """Read what to do."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of workers of a file")
    parser.add_argument("--faults", type=int, default=60, help="of two replicas in PostgreSQL")
    parser.add_argument("--rounds", type=int, default=8, help="of traffic with maintenance")
    parser.add_argument("--seconds", type=float, default=1.5, help="of a round")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def soak_file(given: argparse.Namespace) -> None:
    """Soak a store in a file."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk: /tmp may be memory
        if given.rounds:
            report = traffic.soak(Path(folder) / "traffic.db", given.rounds, given.seconds, given.seed)
            say(report)
            report.check()
        if given.kills:
            say(kill.soak(Path(folder) / "soak.db", given.kills, given.seed, say=say))


def soak_replicas(given: argparse.Namespace) -> None:
    """Soak replicas, in the database that the environment names or in a private cluster."""
    from soak import replicas
    from support.postgresql import running_server

    with running_server() as server:
        say(replicas.soak(server, given.faults, given.seed, say=say))


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "the first 100 rewards", RuntimeWarning)  # defaults are all alike
    given = read_command()
    soak_file(given)
    if given.faults:
        soak_replicas(given)
