"""What a decision and a reward cost inside the thread that writes, by the size of a batch, in two trees.

    python benchmarks/writer.py OLD/.venv/bin/python NEW/.venv/bin/python 5          # rounds; JSON at the end

CPU time of the whole process, in microseconds a call: K = 10 arms, d = 16, the default policy, SQLite with
synchronous=FULL, events of growing names, rewards of the decisions of the batch before. Both trees take turns, each in
a process and a file of its own, so that a busy machine hits both; a figure is the median of the rounds. Then what a
full replay costs, a row, of a loop whose rewards come up to 500 decisions late.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROWS = 20_000  # decisions of the loop that is played again

WORKER = """
import inspect, json, sys, tempfile, time
from pathlib import Path
import numpy as np
import armlet
from armlet.stores import Store, SQLite
from armlet.stores import writer as W
from armlet.stores.rewards import Reward

K, D = 10, 16
rng = np.random.default_rng(1)
X = list(np.ascontiguousarray(rng.normal(size=(512, D))))
is_new = hasattr(W, "Call")

def tickets_of(loop, kind, names):
    runner = loop._runner
    if is_new:
        if kind == "decide":
            reader, takes_ask = runner.reader, "ask" in inspect.signature(runner.decide).parameters
            def make(i, n):
                asked = ({"event": n},) if takes_ask else (n, {})  # of a tree before options were declared
                return lambda tx, draft, now: runner.decide(tx, draft, now, X[i % 512], *asked, reader)
        else:
            def make(i, n):
                reward = Reward(0.25 * (i % 4))
                return lambda tx, draft, now: runner.reward(tx, draft, now, n, reward)
        return [W.Call(runner, make(i, n), (n,)) for i, n in enumerate(names)]
    if kind == "decide":
        def make(i, n):
            return lambda tx, now: runner.decide(tx, now, X[i % 512], n, None)
    else:
        def make(i, n):
            reward = Reward(0.25 * (i % 4))
            return lambda tx, now: runner.reward(tx, now, n, reward)
    return [W.Ticket(make(i, n), runner) for i, n in enumerate(names)]

def serve(writer, tickets):
    writer._batch.extend(tickets)
    started = time.process_time()
    writer._serve()
    took = time.process_time() - started
    for ticket in tickets:
        assert ticket.error is None, ticket.error
    return took

def costs(path, batch, rounds):
    with Store(SQLite(path)) as store:
        loop = store.loop("bench", arms=list(range(K)), dim=D, seed=1)
        took, number = {"decide": 0.0, "reward": 0.0}, 0
        for turn in range(rounds + rounds // 4):
            names = [f"order-{number + i:09d}" for i in range(batch)]
            number += batch
            for kind in ("decide", "reward"):
                spent = serve(store._writer, tickets_of(loop, kind, names))
                if turn >= rounds // 4:
                    took[kind] += spent
        return {kind: 1e6 * spent / (batch * rounds) for kind, spent in took.items()}

def replay(path, n):
    with Store(SQLite(path)) as store:
        loop = store.loop("bench", arms=list(range(K)), dim=D, seed=1)
        writer, late = store._writer, []
        for first in range(0, n, 250):
            names = [f"order-{first + i:09d}" for i in range(250)]
            serve(writer, tickets_of(loop, "decide", names))
            late += names
            rng.shuffle(late)
            while len(late) > 500:
                serve(writer, tickets_of(loop, "reward", [late.pop() for _ in range(250)]))
        expected = loop.model().digest()
        def work(tx, *_):
            if is_new:
                try:
                    from armlet.stores.rows.replay import rebuild
                except ImportError:  # a tree in which it is elsewhere
                    from armlet.stores.rows.decisions import rebuild
                from armlet.stores.terms import Terms
                record = tx.session.find("bench")
                tx.enter([__import__("armlet.stores.ledger", fromlist=["Want"]).Want(record.id)])
                last = tx.draft(record.id).seq
                started = time.process_time()
                bandit = rebuild(tx.session, record, last, None, Terms.read(record).carry)
            else:
                from armlet.stores.runner import rebuild
                record = tx.find("bench")
                last = tx.last(record.id)
                started = time.process_time()
                bandit = rebuild(tx, record)
            took = time.process_time() - started
            assert bandit.digest() == expected
            return 1e6 * took / last
        return store._writer.do(work)

folder = Path(tempfile.mkdtemp(dir=sys.argv[1]))
sizes = ((1, 200), (16, 100), (64, 60), (256, 20))
out = {str(batch): costs(folder / f"{batch}.db", batch, rounds) for batch, rounds in sizes}
out["replay"] = replay(folder / "replay.db", int(sys.argv[2]))
print(json.dumps(out))
"""


Costs = dict[str, float]  # microseconds by call and batch, such as "decide 64", and a row of "replay"


def measure(python: str, folder: str, rows: int) -> Costs:
    """Measure one tree once, in a process of its own."""
    command = [python, "-c", WORKER, folder, str(rows)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if run.returncode:
        raise SystemExit(f"{python} cannot measure its tree: {run.stderr}")
    costs = json.loads(run.stdout)
    replay: float = costs.pop("replay")
    calls: Costs = {f"{kind} {batch}": cost for batch, by in costs.items() for kind, cost in by.items()}
    return {**calls, "replay": replay}


def measure_in_turns(pythons: Sequence[str], rounds: int) -> list[list[Costs]]:
    """Measure both trees once a round, the other one first each time."""
    taken: list[list[Costs]] = [[], []]
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk: /tmp may be memory
        for turn in range(rounds):
            for i in (0, 1) if turn % 2 else (1, 0):
                taken[i].append(measure(pythons[i], folder, ROWS))
    return taken


def medians(turns: Sequence[Costs]) -> Costs:
    """Return the median of every figure over rounds."""
    return {name: statistics.median(each[name] for each in turns) for name in turns[0]}


def compare(old: Costs, new: Costs) -> dict[str, dict[str, float]]:
    """Return both figures of everything, and the new one by the old one."""
    return {name: {"old": cost, "new": new[name], "ratio": new[name] / cost} for name, cost in old.items()}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="the Python of one tree")
    parser.add_argument("new", help="the Python of the other")
    parser.add_argument("rounds", type=int, nargs="?", default=3)
    options = parser.parse_args(arguments)
    report = compare(*map(medians, measure_in_turns((options.old, options.new), options.rounds)))
    for name, row in report.items():
        print(f"{name:12} {row['old']:8.1f} {row['new']:8.1f} us  {row['ratio']:.2f}", file=sys.stderr)
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
