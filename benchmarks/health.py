"""How often healthy loops raise an alarm, and how soon seeded faults are named.

    python benchmarks/health.py --loops 1000 --decisions 100000 --seed 80000       # a CPU second a loop
    python benchmarks/health.py --loops 20 --decisions 20000 --faults 5 --seed 1   # does it run
    python benchmarks/health.py --cost             # CPU time of the calls of a tally, in microseconds

Loops are those of `tests/support/watched.py`: real bandits, 2 to 20 arms, click rates of 1 to 30 % and real-valued
rewards, delays of seconds to a day, rewards that never come, windows with defaults, nights and weekends without
traffic, arms that are added and retired. Alarms are looked at after every 100 decisions. Thresholds were chosen on
seeds of 61000 to 69999, and judged once on 80000 and 80001.

A fault starts at a step between 5,000 and 20,000 of a loop in which it can be seen within 2,000 decisions: rewards come
50 decisions later on average at most, and
- silence: all rewards stop; at least 3 % of decisions had one;
- unknown, out_of_range, conflict: 3.1 % more answers with this status; rewards are reported for 85 % of decisions;
- missing_rewards: half of the rewards of an arm with 20 to 80 % of plays get lost, of 2 to 4 arms;
- defaults: twice as many windows close without a reward, 5 to 15 % before; windows last 200 decisions at most;
- propensities: every second exploration plays the first of 3 to 6 arms; 10 or 30 % of steps explore;
- exploration rates: those that are logged are half of the true ones, 10 or 30 %;
- change: click rates of 10 to 30 % become half of that; change of reals: rewards drop by 0.4 standard deviations of
  those of an arm;
- contexts: one feature is 1.8e18 once; constant: it has one value from then on.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from time import process_time
from typing import TypeVar, get_args

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from armlet.bandit import Bandit
from armlet.policies import AutoEpsilonGreedy, FixedEpsilon, LinUCB, OccasionalOptimism, Uniform
from armlet.stores.folds import Tally
from armlet.stores.health import RULES
from armlet.stores.ledger import Row
from armlet.stores.rows.decisions import bytes_of, fields_of
from armlet.types import Policy
from support.watched import FaultKind, Found, Noticed, Scenario, draw, draw_for, first_alarm, notice

KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
STRIDE = 100_000  # seeds of a run
START, DELAY = 1_700_000_000_000_000, 5_000_000  # microseconds
Task = TypeVar("Task")
Result = TypeVar("Result")


def healthy(n: int, seed: int) -> tuple[Scenario, Found | None]:
    scenario = draw(seed, n)
    return scenario, first_alarm(scenario, n)


def faulty(task: tuple[FaultKind, int]) -> tuple[FaultKind, int, Scenario, Noticed | None]:
    kind, seed = task
    scenario, fault = draw_for(kind, seed)
    return kind, seed, scenario, notice(scenario, fault)


def wilson(k: int, n: int) -> tuple[float, float]:
    """Return a 95 % interval of a share."""
    z = 1.96
    middle, half = (k + z * z / 2) / (n + z * z), z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def spread(work: Callable[[Task], Result], tasks: Iterable[Task], processes: int, name: str) -> Iterator[Result]:
    """Work on tasks in processes, and show progress."""
    todo = list(tasks)
    with ProcessPoolExecutor(processes) as pool:
        for done, result in enumerate(pool.map(work, todo), 1):
            if done % max(len(todo) // 20, 1) == 0:
                print(f"{name}: {done} of {len(todo)}", file=sys.stderr, flush=True)
            yield result


def judge_healthy(loops: int, decisions: int, seed: int, processes: int) -> None:
    counts: Counter[str] = Counter()
    seeds = range(seed * STRIDE, seed * STRIDE + loops)
    for scenario, found in spread(partial(healthy, decisions), seeds, processes, "healthy"):
        if found is not None:
            counts[found.alarm.rule] += 1
            print(f"  loop {scenario.seed} after {found.step:,}: {found.alarm}\n    {scenario}", flush=True)
    print(f"healthy loops, seed {seed}: {loops} of {decisions:,} decisions; the first alarm of each is counted")
    for rule in (*RULES, "any"):
        k = counts.total() if rule == "any" else counts[rule]
        low, high = wilson(k, loops)
        print(f"  {rule:16} {k:5} {k / loops:7.2%}  [{low:.2%}, {high:.2%}]")


def judge_faults(loops: int, seed: int, processes: int) -> None:
    """Play as many loops of each fault, leaving out those in which it cannot befall any arm."""
    tasks = [(kind, (seed + 1) * STRIDE - 1 - i) for kind in KINDS for i in range(loops)]
    found: dict[FaultKind, list[Noticed]] = {kind: [] for kind in KINDS}
    for kind, number, scenario, noticed in spread(faulty, tasks, processes, "faults"):
        if noticed is None:
            continue
        found[kind].append(noticed)
        if noticed.before:
            print(f"  {kind} of loop {number}: {noticed.before} before it started\n    {scenario}", flush=True)
        if noticed.named is None:
            print(f"  {kind} of loop {number} was not named, but {noticed.first}\n    {scenario}", flush=True)
    print(f"faults, seed {seed}: named within 2,000 decisions of their start")
    for kind, all_noticed in found.items():
        named = [one.named for one in all_noticed if one.named is not None]
        others = Counter(one.first.alarm.rule for one in all_noticed if one.first is not None)
        before = Counter(rule for one in all_noticed for rule in one.before)
        median = f"{statistics.median(named):,.0f}" if named else "-"
        last = f"{max(named):,}" if named else "-"
        print(
            f"  {kind:18} {len(named)} of {len(all_noticed)}; median {median}, last {last}; "
            f"first named {dict(others)}; before it started {dict(before)}"
        )


def cost(policy: Policy, n: int = 40_000, rounds: int = 4) -> str:
    """Measure the calls of a tally with 10 arms: the best of a few rounds."""
    rng, bandit = np.random.default_rng(1), Bandit([f"arm-{k}" for k in range(10)], dim=4, policy=policy, seed=1)
    X, values = rng.normal(size=(n, 4)), (rng.random(n) < 0.1).astype(np.float64).tolist()
    rows = []
    for at, (x, value) in enumerate(zip(X, values, strict=True)):
        decision, ts = bandit.decide(x, propensity="marginal"), START + at * 300_000
        decided = Row(at, ts, "decide", decision.t, fields_of(decision, decision.id), bytes_of(x))
        fields = {"of": at, "id": decision.id, "reward": value, "weight": 1.0, "status": "accepted"}
        rows.append((decided, Row(at, ts + DELAY, "learn", decision.t, fields)))
        bandit.learn(decision, value)
    best = np.min([timed(rows) for _ in range(rounds)], axis=0)
    return "decide {:.2f}, learn {:.2f}, to_json {:.1f} us".format(*best)


def timed(rows: list[tuple[Row, Row]]) -> list[float]:
    """Return microseconds of CPU: medians over hundreds of rows of each kind, and of one `to_json` after each."""
    tally, marks = Tally(), list[list[float]]()
    for first in range(0, len(rows), 100):
        block = rows[first : first + 100]
        marks.append([process_time()])
        for decided, _ in block:
            tally.see(decided, None)
        marks[-1].append(process_time())
        for decided, learned in block:
            tally.see(learned, decided)
        marks[-1].append(process_time())
        tally.to_json()
        marks[-1].append(process_time())
    medians: list[float] = np.median(np.diff(marks, axis=1), axis=0).tolist()
    return [1e6 * seconds / calls for seconds, calls in zip(medians, (100, 100, 1), strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", type=int, default=1000)
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--faults", type=int, default=100, help="loops of each fault")
    parser.add_argument("--seed", type=int, default=61000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--cost", action="store_true")
    asked = parser.parse_args()
    if asked.cost:
        for policy in (OccasionalOptimism(), FixedEpsilon(epsilon=0.1), AutoEpsilonGreedy(), LinUCB(), Uniform()):
            print(f"{type(policy).__name__:20} {cost(policy)}")
        return
    if asked.loops:
        judge_healthy(asked.loops, asked.decisions, asked.seed, asked.processes)
    if asked.faults:
        judge_faults(asked.faults, asked.seed, asked.processes)


if __name__ == "__main__":
    main()
