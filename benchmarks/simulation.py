"""The speed of simulation: Figure (a) step by step, in jumps from exploration to exploration, and on two workers.

    python benchmarks/simulation.py 4     # so many rounds; prints one line of JSON

Armlet runs 10 times 10^5 steps by `simulate(..., method="steps", engine="serial")`, environment, regret and results
included; so do the numpy loops with fewer runs. A peer is given contexts and rewards of the same environment, drawn
before its clock runs, and only decides and learns: what it leaves out counts in its favour. Everything is measured once
a round, so that a slow minute hits all of it, and the rounds are kept one by one. What runs on one thread is measured
in CPU time, the quickest repetition, the peers' median step and the workers by the wall clock.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import armlet
from armlet.environments import FigureA
from armlet.parallel import Pool, PoolLike, make_pool
from armlet.simulation.play import Method
from armlet.simulation.run import simulate
from loops import Loop, cached, only_draw, only_draw_philox, printed, stretches
from peers import RIVER, VOWPAL_WABBIT_NEXT, Peer, Row
from stream import ROWS, save_stream
from timing import SIZES, Cell, WorkerError, call
from venvs import InstallError, environment

P = 120
HORIZON, RUNS = 10**5, 10
REPEATS = 15  # of what takes milliseconds: a round keeps the quickest
FAR = 10**12
EVENT_RUNS = 20
LONG, LONG_RUNS = 10**6, 240  # six tasks of the runner, several seconds for one worker
WORKERS = (1, 2)
ENVIRONMENT = FigureA.draw(np.random.default_rng(1), n_arms=6, dim=3)
POLICY = armlet.Algorithm1(p=P)
# the fastest at (d, K) = (3, 6) in the table of all peers; LinUCB is slower by far
RIVALS = [(peer, row) for peer in (RIVER, VOWPAL_WABBIT_NEXT) for row in peer.rows if row.variant != "ucb"]

Rounds = dict[str, list[float]]
Work = Callable[[], object]


def cpu_seconds(works: dict[str, Work], repeats: int) -> dict[str, float]:
    """Take the quickest of some repetitions of each, in turn: a busy machine inflates even CPU time, and for all."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            started = process_time()
            work()
            best[name] = min(best[name], process_time() - started)
    return best


def run(method: Method, horizon: int, runs: int, where: PoolLike = "serial") -> None:
    simulate(ENVIRONMENT, POLICY, horizon=horizon, runs=runs, seed=1, method=method, engine=where)


def numpy_run(loop: Loop) -> Work:
    table = ENVIRONMENT.table()
    if table is None:
        raise ValueError("environment is not a table, which the numpy loops need; use fewer dimensions")
    return lambda: loop(table, HORIZON, P, 1)


def own_steps() -> dict[str, float]:
    """Measure nanoseconds per step of whole simulations, and of their random numbers alone."""
    steps = RUNS * HORIZON
    many: dict[str, Work] = {
        "armlet": lambda: run("steps", HORIZON, RUNS),
        "numbers": lambda: only_draw(steps),
        "philox": lambda: only_draw_philox(steps),
    }
    single = {"stretches": numpy_run(stretches), "cached": numpy_run(cached)}
    times = cpu_seconds(many | single, REPEATS) | cpu_seconds({"printed": numpy_run(printed)}, 1)
    return {name: time / (steps if name in many else HORIZON) * 1e9 for name, time in times.items()}


def jumps() -> dict[str, float]:
    """Measure microseconds per run of the event-driven simulation, at a usual and at a far horizon."""
    works: dict[str, Work] = {
        "near": lambda: run("events", HORIZON, EVENT_RUNS),
        "far": lambda: run("events", FAR, EVENT_RUNS),
    }
    return {name: time / EVENT_RUNS * 1e6 for name, time in cpu_seconds(works, REPEATS).items()}


def rivals() -> tuple[list[Cell], dict[str, str]]:
    """Find the environments of the fastest peers, and say why for those that cannot be installed."""
    cells: list[Cell] = []
    failed: dict[str, str] = {}
    for peer, row in RIVALS:
        try:
            cells.append(rival(peer, row))
        except InstallError as error:
            failed[row.label] = str(error)
    return cells, failed


def rival(peer: Peer, row: Row) -> Cell:
    return Cell(peer, row, SIZES[0], environment(peer).python)


def rival_steps(cells: list[Cell], rows: Path) -> dict[str, float]:
    """Measure nanoseconds per step of the peers' loops over rows of our environment: the median step."""
    times: dict[str, float] = {}
    for cell in cells:
        try:
            answer = call(cell.python, "worker.py", json.dumps({**cell.job, "rows": str(rows)}))
        except WorkerError as error:
            cell.failure = str(error)
        else:
            times[cell.row.label] = 1e3 * float(str(answer["median_us"]))
    return times


def write_rows(path: Path) -> None:
    contexts, noise = np.random.default_rng(1), np.random.default_rng(2)
    X = ENVIRONMENT.contexts(contexts, ROWS)
    save_stream(path, X, ENVIRONMENT.rewards(noise, X))


def started_engines(stack: ExitStack) -> dict[str, Pool]:
    """Start the pools and let every worker have a task, so that no start-up is timed."""
    engines = {
        f"{name} {workers}": stack.enter_context(make_pool(name, workers=workers))
        for name in ("processes", "threads")
        for workers in WORKERS
    }
    for pool in engines.values():
        run("steps", LONG, LONG_RUNS // 3, pool)
    return engines


def side_by_side(engines: dict[str, Pool]) -> dict[str, float]:
    """Measure nanoseconds per step of a job of several seconds on each engine, and the cores that threads got."""
    measured: dict[str, float] = {}
    for name, pool in engines.items():
        started, cpu_started = perf_counter(), process_time()
        run("steps", LONG, LONG_RUNS, pool)
        took = perf_counter() - started
        measured[name] = took / (LONG * LONG_RUNS) * 1e9
        if name == f"threads {WORKERS[-1]}":
            measured["cores"] = (process_time() - cpu_started) / took
    return measured


def collected(turns: list[dict[str, float]]) -> Rounds:
    names = dict.fromkeys(name for turn in turns for name in turn)
    return {name: [turn[name] for turn in turns if name in turn] for name in names}


def single_rounds(cells: list[Cell], rounds: int) -> dict[str, Rounds]:
    """Measure whatever needs one processor, each thing once a round."""
    steps, peers, events = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.npz")
        write_rows(rows)
        for _ in range(rounds):
            steps.append(own_steps())
            peers.append(rival_steps([cell for cell in cells if not cell.failure], rows))
            events.append(jumps())
    return {"steps": collected(steps), "peers": collected(peers), "events": collected(events)}


def report(rounds: int) -> dict[str, object]:
    cells, failed = rivals()
    single = single_rounds(cells, rounds)
    with ExitStack() as stack:  # afterwards, so that no pool stands by while one thread is measured
        engines = started_engines(stack)
        workers = collected([side_by_side(engines) for _ in range(rounds)])
    failed |= {cell.row.label: cell.failure for cell in cells if cell.failure}
    return {**single, "workers": workers, "failed": failed}


if __name__ == "__main__":
    print(json.dumps(report(rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 4)))
