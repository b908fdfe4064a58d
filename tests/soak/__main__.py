"""`make soak`: kill a hundred workers, or as many as asked."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from soak.kill import soak

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(soak(Path(folder) / "soak.db", given.kills, given.seed, say=lambda text: print(text, flush=True)))
