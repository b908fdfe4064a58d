"""The size of logs of actions with features: a catalogue of 200 of which one is replaced at every second step.

    python benchmarks/action_logs.py          # prints bytes a decision, in lines and compacted

Contexts have five features and actions six, all of them normal, with all of their digits. Sizes do not depend on the
machine; a small bandit decides, and what it decides does not matter here.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import armlet
from armlet.log.parquet import events_beside

ACTIONS, DIM, ACTION_DIM, EVERY, STEPS = 200, 5, 6, 2, 2_000


def write(path: Path) -> None:
    rng = np.random.default_rng(1)
    table = armlet.ActionTable([f"item {i}" for i in range(ACTIONS)], rng.normal(size=(ACTIONS, ACTION_DIM)))
    with armlet.Log(path) as log:
        bandit = armlet.ActionBandit(DIM, ACTION_DIM, seed=1, log=log)
        for step in range(STEPS):
            if step % EVERY == 0:
                new = {f"item {ACTIONS + step}": rng.normal(size=ACTION_DIM)}
                table = table.changed(add=new, remove=[table.labels[int(rng.integers(ACTIONS))]])
            bandit.learn(bandit.decide(rng.normal(size=DIM), table), float(rng.normal()))


def sizes(path: Path) -> dict[str, float]:
    """Return bytes a decision: of each kind of event, of both files of a compacted log; and those of a whole table."""
    lines: Counter[str] = Counter()
    whole = 0
    for line in path.read_bytes().splitlines(keepends=True):
        event = json.loads(line)
        lines[event["kind"]] += len(line)
        whole = max(whole, len(line) if "Z" in event else 0)
    rows = armlet.log.compact(path)
    return {
        "a decision": sum(lines.values()) / STEPS,
        **{f"of it {kind}": size / STEPS for kind, size in lines.most_common()},
        "compacted": rows.stat().st_size / STEPS,
        "tables and the like next to it": events_beside(rows).stat().st_size / STEPS,
        "a table told whole": float(whole),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "a.jsonl")
        for name, size in sizes(Path(folder) / "a.jsonl").items():
            print(f"{name:32}{size:8,.0f} bytes")


if __name__ == "__main__":
    main()
