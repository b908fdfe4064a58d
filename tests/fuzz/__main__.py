"""The command line of the fuzzer."""

from __future__ import annotations

import argparse
import faulthandler
import sys

from armlet.cli.command import count
from fuzz import runner, threads

SHARES = {"calls": 0.75, "actions": 0.05, "pieces": 0.2}
SLOW = ("stores", "logs", "compacted", "commands")  # each file is opened, used and closed, some by several readers


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Attack the library; exit code 1 if it gives way."
    )
    parser.add_argument("kind", choices=[*runner.KINDS, "threads", "all"])
    parser.add_argument("--calls", type=count, default=1_000_000, help="calls in all, one in five of kernel objects")
    parser.add_argument(
        "--files",
        type=count,
        default=100_000,
        help="damaged files, or commands; with all, a tenth of logs and stores",
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="how long the threads are at it, all policies together"
    )
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--case", type=int, help="play one case here and now")
    parser.add_argument("--from", dest="first", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--stride", type=int, default=1, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Run what was asked for."""
    faulthandler.enable()
    given = parse()
    if given.first is not None:
        runner.work(given.kind, given.first, given.stride)
    if given.case is not None:
        print(runner.KINDS[given.kind](given.case), "done, no fault")
        return 0
    faults = 0
    for kind in runner.KINDS:
        if given.kind in (kind, "all"):
            wanted = round(given.calls * SHARES[kind]) if kind in SHARES else given.files
            if given.kind == "all" and kind in SLOW:
                wanted //= 10
            faults += len(runner.run(kind, wanted, given.seed, given.workers).faults)
    if given.kind in ("threads", "all"):
        faults += threads.run(given.seconds, given.threads, given.seed)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
