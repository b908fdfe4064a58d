"""Logs: what a logged step costs, rows learned from a log at once, and audits of every policy, bit for bit.

    python benchmarks/logged.py quick     # audits Algorithm 1 and the default; prints one line of JSON
    python benchmarks/logged.py full      # audits every policy: 20,000 decisions if it is compiled, else 500
    python benchmarks/logged.py LinUCB    # audits one

All figures are CPU time. A logged step is the best of many short windows, with and without a log in turn. An audit that
finds a difference ends the run.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa

import armlet
from armlet.log.writer import Flush

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from report import AuditReport
from support.lives import Life, new_bandit  # the life that the tests log, too
from support.policies import every_policy

COMPILED, OTHERS = 20_000, 500  # decisions
ROUNDS, WINDOW, DIM, ARMS = 30, 1_000, 6, 3
LEARNED, LEARNED_DIM, LEARNED_ARMS = 50_000, 32, 8
USUAL = ("Algorithm1", "OccasionalOptimism")
FLUSHES: tuple[Flush, ...] = ("block", "line")


def seconds(work: Callable[[], object]) -> float:
    started = process_time()
    work()
    return process_time() - started


def step_costs() -> dict[str, float]:
    """Return the microseconds of decide and learn, without a log and with one."""
    rng = np.random.default_rng(1)
    rows = list(zip(rng.normal(size=(WINDOW, DIM)), rng.normal(size=WINDOW).tolist(), strict=True))

    def play(bandit: armlet.Bandit) -> None:
        for x, reward in rows:
            bandit.learn(bandit.decide(x), reward)

    with tempfile.TemporaryDirectory() as folder:
        logs = {flush: armlet.Log(Path(folder) / f"{flush}.jsonl", flush=flush) for flush in FLUSHES}
        bandits = {name: logged_bandit(log) for name, log in {"none": None, **logs}.items()}
        turns = [{name: seconds(lambda: play(bandit)) for name, bandit in bandits.items()} for _ in range(ROUNDS)]  # noqa: B023
        for log in logs.values():
            log.close()
    return {name: 1e6 * min(turn[name] for turn in turns) / WINDOW for name in bandits}


def logged_bandit(log: armlet.Log | None) -> armlet.Bandit:
    return armlet.Bandit(range(ARMS), DIM, policy=armlet.ContextualEpsilonGreedy(p=60), seed=1, log=log)


def learning_costs() -> dict[str, float]:
    """Return the microseconds a row of `partial_fit` of a table, where every row is one that Algorithm 1 learns."""
    rng = np.random.default_rng(1)
    decisions = learner().decide_many(rng.normal(size=(LEARNED, LEARNED_DIM)))
    table = decisions.to_arrow().append_column("reward", pa.array(rng.normal(size=LEARNED)))
    columns = {name: table.column(name).to_numpy(zero_copy_only=False) for name in ("t", "propensity", "explored")}
    columns |= {"x": decisions.X, "arm": table.column("arm").to_pylist(), "reward": table.column("reward").to_numpy()}
    forms = {"Arrow": table, "columns": columns}
    turns = [{name: seconds(lambda: learner().partial_fit(form)) for name, form in forms.items()} for _ in range(5)]  # noqa: B023
    return {name: 1e6 * min(turn[name] for turn in turns) / LEARNED for name in forms}


def learner() -> armlet.Bandit:
    arms = [f"arm-{i}" for i in range(LEARNED_ARMS)]
    return armlet.Bandit(arms, LEARNED_DIM, policy=armlet.Algorithm1(p=1_000), seed=1)


def audit(policy: armlet.Policy) -> AuditReport:
    """Log a life, compact it, audit both, and give decisions a second and bytes a decision."""
    n = COMPILED if policy.rule() is not None else OTHERS
    rates, sizes = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        bandit, log = new_bandit(policy, path)
        Life(bandit).live(n)
        log.close()
        for each in (path, armlet.log.compact(path)):
            started = process_time()
            found = armlet.audit(each, path.with_name("a.start.armlet"))
            rates.append(n / (process_time() - started))
            sizes.append(each.stat().st_size / n)
            if not found.ok or found.digest != bandit.digest():
                raise SystemExit(f"{policy!r}: {found}")
    return {
        "policy": repr(policy),
        "decisions": n,
        "compiled": policy.rule() is not None,
        "rates": rates,
        "bytes": sizes,
    }


def audits(which: str) -> list[AuditReport]:
    """Audit those that are asked for, and say so on the way, since it takes a while."""
    out: list[AuditReport] = []
    for policy in every_policy():
        name = type(policy).__name__
        if which == "full" or (name in USUAL if which == "quick" else name == which):
            out.append(audit(policy))
            print(json.dumps(out[-1]), file=sys.stderr, flush=True)
    return out


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "quick"
    print(json.dumps({"steps": step_costs(), "learned": learning_costs(), "audits": audits(asked)}))
