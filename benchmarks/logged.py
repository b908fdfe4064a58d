"""Logs at full size: what a logged step costs, and that every policy is replayed bit for bit, at which rate.

python benchmarks/logged.py                 all of it
python benchmarks/logged.py --only LinUCB   one policy
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import armlet

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.lives import Life, new_bandit  # the life that the tests log, too
from support.policies import every_policy

COMPILED, OTHERS = 20_000, 500
STEPS, DIM, ARMS = 20_000, 6, 3


def step_costs() -> None:
    """Print CPU microseconds of decide and learn, without a log and with one."""
    rng = np.random.default_rng(1)
    contexts, rewards = list(rng.normal(size=(STEPS, DIM))), rng.normal(size=STEPS).tolist()
    for flush in (None, "block", "line"):
        best = np.inf
        for _ in range(5):
            with tempfile.TemporaryDirectory() as folder:
                log = None if flush is None else armlet.Log(Path(folder) / "a.jsonl", flush=flush)
                policy = armlet.ContextualEpsilonGreedy(p=60)
                bandit = armlet.Bandit(range(ARMS), DIM, policy=policy, seed=1, log=log)
                begin = time.process_time()
                for x, reward in zip(contexts, rewards, strict=True):
                    bandit.learn(bandit.decide(x), reward)
                best = min(best, time.process_time() - begin)
                if log is not None:
                    log.close()
        print(f"decide and learn, d={DIM}, K={ARMS}, log {flush}: {best / STEPS * 1e6:.2f} us", flush=True)


def prove(policy: armlet.Policy) -> None:
    """Log a life, compact it, audit both, and print the rates."""
    n = COMPILED if policy.rule() is not None else OTHERS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        bandit, log = new_bandit(policy, path)
        Life(bandit).live(n)
        log.close()
        rates, sizes = [], []
        for each in (path, armlet.log.compact(path)):
            begin = time.process_time()
            found = armlet.audit(each, path.with_name("a.start.armlet"))
            rates.append(n / (time.process_time() - begin))
            sizes.append(each.stat().st_size / n)
            if not found.ok or found.digest != bandit.digest():
                raise SystemExit(f"{policy!r}: {found}")
    told = f"{n:7,} decisions  {rates[0]:8,.0f} /s JSON lines {sizes[0]:5.0f} bytes"
    print(f"{told}  {rates[1]:8,.0f} /s Parquet {sizes[1]:4.0f} bytes  {policy!r}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="NAME", help="the class of a policy")
    only = parser.parse_args().only
    if only is None:
        step_costs()
    for policy in every_policy():
        if only in (None, type(policy).__name__):
            prove(policy)


if __name__ == "__main__":
    main()
