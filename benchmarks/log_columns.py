"""What is read from logs of 10^5 decisions: microseconds of CPU a row, or decisions a second, of each way to read them.

    python benchmarks/log_columns.py            # prints a table
    python benchmarks/log_columns.py 2e4        # of fewer decisions

Contexts of six normal numbers, three arms, a reward for every decision, Algorithm 1; action logs have a catalogue of
200, of which one is replaced at every 20th step, contexts of five and actions of six.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np

import armlet
from armlet.evaluation.sources import open_rows

DIM, ARMS, P = 6, 3, 60
ACTIONS, ACTION_CONTEXT, ACTION_DIM, EVERY = 200, 5, 6, 20
BARS = {
    "read JSON lines into columns, us a row": "",
    "evaluate from JSON lines, us a row": "8",
    "evaluate from Parquet, us a row": "0.8",
    "rows of an action log from JSON lines, us a row": "15",
    "audit of JSON lines, decisions a second": "200,000",
    "audit of Parquet, decisions a second": "300,000",
    "replay of JSON lines, decisions a second": "",
    "for event in JSON lines, us an event": "",
    "compaction, us a decision": "10",
    "step with a log, us": "",
}


def seconds(work: Callable[[], object]) -> float:
    started = process_time()
    work()
    return process_time() - started


def write_arms(path: Path, n: int) -> float:
    """Log decisions and rewards; return the seconds that it took."""
    rng = np.random.default_rng(1)
    rows = list(zip(rng.normal(size=(n, DIM)), rng.normal(size=n).tolist(), strict=True))
    with armlet.Log(path) as log:
        bandit = armlet.Bandit([f"arm {i}" for i in range(ARMS)], DIM, policy=armlet.Algorithm1(p=P), seed=1, log=log)
        started = process_time()
        for x, reward in rows:
            bandit.learn(bandit.decide(x), reward)
        return process_time() - started


def write_actions(path: Path, n: int) -> None:
    rng = np.random.default_rng(1)
    table = armlet.ActionTable([f"item {i}" for i in range(ACTIONS)], rng.normal(size=(ACTIONS, ACTION_DIM)))
    with armlet.Log(path) as log:
        bandit = armlet.ActionBandit(ACTION_CONTEXT, ACTION_DIM, seed=1, log=log)
        for step in range(n):
            if step % EVERY == 0:
                new = {f"item {ACTIONS + step}": rng.normal(size=ACTION_DIM)}
                table = table.changed(add=new, remove=[table.labels[int(rng.integers(len(table)))]])
            bandit.learn(bandit.decide(rng.normal(size=ACTION_CONTEXT), table), float(rng.normal()))


def main(n: int) -> None:
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path, start = Path(folder) / "a.jsonl", Path(folder) / "a.start.armlet"
        figures["step with a log, us"] = 1e6 * write_arms(path, n) / n
        bandit, candidate = armlet.load(start), armlet.load(start)
        armlet.log.replay(armlet.log.read(path), candidate)

        def evaluate(log: Path) -> None:
            armlet.evaluate(log, candidate)

        def check(log: Path) -> None:
            if not armlet.audit(log, start).ok:
                raise SystemExit(f"{log.name} does not pass its audit")

        figures["compaction, us a decision"] = 1e6 * seconds(lambda: armlet.log.compact(path)) / n
        parquet = path.with_suffix(".parquet")
        read = 1e6 * seconds(lambda: sum(len(block) for block in armlet.log.read(path).blocks())) / n
        figures["read JSON lines into columns, us a row"] = read
        figures["evaluate from JSON lines, us a row"] = 1e6 * seconds(lambda: evaluate(path)) / n
        figures["evaluate from Parquet, us a row"] = 1e6 * seconds(lambda: evaluate(parquet)) / n
        figures["audit of JSON lines, decisions a second"] = n / seconds(lambda: check(path))
        figures["audit of Parquet, decisions a second"] = n / seconds(lambda: check(parquet))
        log = armlet.log.read(path)
        figures["replay of JSON lines, decisions a second"] = n / seconds(lambda: armlet.log.replay(log, bandit))
        events = seconds(lambda: sum(1 for _ in armlet.log.read(path)))
        figures["for event in JSON lines, us an event"] = 1e6 * events / (2 * n)
        write_actions(Path(folder) / "b.jsonl", n)
        rows = seconds(lambda: open_rows(Path(folder) / "b.jsonl"))
        figures["rows of an action log from JSON lines, us a row"] = 1e6 * rows / n
    print(f"{'of ' + format(n, ',') + ' decisions':52}{'now':>12}{'bar':>12}")
    for name, bar in BARS.items():
        print(f"{name:52}{figures[name]:12,.1f}{bar:>12}")


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000)
