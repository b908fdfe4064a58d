"""Real SIGINTs to processes that write logs, in each flush mode: every log audits, or is incomplete and resumes.

python -m soak.interrupts --interrupts 500
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import sleep

import armlet

WORKER = """
import signal, sys, armlet
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
folder, flush, kind, n = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
drinks = {"tea": [2.0, 0.0], "cocoa": [3.0, 1.0], "milk": [1.0, 0.5]}
for i in range(n):
    with armlet.Log(f"{folder}/{i}.jsonl", flush=flush) as log:
        if kind == "actions":
            bandit = armlet.ActionBandit(1, 2, seed=i, log=log)
            decide = lambda: bandit.decide([0.5], drinks)
        else:
            bandit = armlet.Bandit(["a", "b"], 1, seed=i, log=log)
            decide = lambda: bandit.decide([0.5])
        print(i, flush=True)
        step = 0
        try:
            while True:
                step += 1
                decision = decide()
                bandit.learn(decision, step % 2)
                if step % 5 == 0:
                    bandit.correct(decision, step % 2, 2.0)
                elif step % 7 == 0:
                    bandit.forget(decision, step % 2)
        except KeyboardInterrupt:
            pass
"""


def interrupt(folder: Path, flush: str, kind: str, n: int, rng: random.Random) -> Counter[str]:
    """Interrupt a process n times, once a log; count how the audits end."""
    run = [sys.executable, "-c", WORKER, str(folder), flush, kind, str(n)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for _ in process.stdout:
            sleep(rng.uniform(0.0, 0.02))
            process.send_signal(signal.SIGINT)
    found: Counter[str] = Counter()
    for path in sorted(folder.glob("*.jsonl")):
        start = path.with_name(f"{path.stem}.start.armlet")
        status: str = armlet.audit(path, start).status
        if status == "incomplete":
            with armlet.Log(path) as log:
                armlet.log.resume(log)
            status = "incomplete, resumed" if armlet.audit(path, start).ok else "mismatch"
        found[status] += 1
    found["not begun"] += n - sum(found.values())
    return found


def soak(interrupts: int, seed: int = 0) -> Counter[str]:
    """Interrupt processes so many times in all, over flush modes and kinds of bandits; refuse a log that is torn."""
    rng, total = random.Random(seed), Counter[str]()
    cells = [(flush, kind) for flush in ("block", "line", "disk") for kind in ("arms", "actions")]
    for place, (flush, kind) in enumerate(cells):
        n = interrupts * (place + 1) // len(cells) - interrupts * place // len(cells)
        with tempfile.TemporaryDirectory() as folder:
            found = interrupt(Path(folder), flush, kind, n, rng)
        print(f"{flush:5} {kind:8} {dict(found)}", flush=True)
        total += found
    assert not total["mismatch"], total
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interrupts", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(dict(soak(given.interrupts, given.seed)))
