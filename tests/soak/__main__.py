"""`make soak`: maintain a store in traffic, then kill a hundred workers, or as many as asked."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from soak import kill, traffic

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1.5, help="of a round")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk: /tmp may be memory
        report = traffic.soak(Path(folder) / "traffic.db", given.rounds, given.seconds, given.seed)
        print(report, flush=True)
        report.check()
        print(kill.soak(Path(folder) / "soak.db", given.kills, given.seed, say=lambda text: print(text, flush=True)))
