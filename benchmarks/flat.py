"""What Armlet promises of itself: time per step that does not grow with t, little memory, a quick start.

    python benchmarks/flat.py             # prints one line of JSON

Time is measured at (d, K) = (3, 6) with p = 32 K in windows from step t on, by several fresh bandits, so that
a short early window is not a single reading. Early windows explore more: p/t of their steps, all of them up to p.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter_ns

import armlet
from adapters.armlet import Armlet
from startup import cpu_turns
from stream import ROWS, Stream, make_stream

DIM, N_ARMS = 3, 6
ROUNDS = 12
# step t, how many fresh bandits are taken that far in a round, and how many readings each gives there
WINDOWS = ((10**2, 80, 1), (10**3, 80, 1), (10**4, 40, 2), (10**5, 4, 20), (10**6, 1, 80))
SIZES = ((3, 6), (32, 32), (128, 100))


def play(policy: Armlet, stream: Stream, start: int, steps: int) -> None:
    while steps > 0:
        size = min(steps, ROWS)
        policy.play(*stream.take(start, size))
        start, steps = start + size, steps - size


def reading_ns(policy: Armlet, stream: Stream, t: int) -> float:
    """Measure nanoseconds per step over the next fifth of t, at most ROWS steps."""
    steps = min(t // 5, ROWS)
    contexts, rewards = stream.take(0, steps)
    started = perf_counter_ns()
    policy.play(contexts, rewards)
    return (perf_counter_ns() - started) / steps


def window_ns(stream: Stream, t: int, bandits: int, readings: int) -> float:
    """Take the median of all readings from step t on."""
    times: list[float] = []
    for _ in range(bandits):
        policy = Armlet(DIM, N_ARMS)
        play(policy, stream, 0, t)
        times += [reading_ns(policy, stream, t) for _ in range(readings)]
    return statistics.median(times)


def windows(rounds: int) -> list[dict[str, float]]:
    """Measure every window once a round and keep its best round."""
    stream = make_stream(DIM, N_ARMS)
    taken = [[window_ns(stream, *window) for window in WINDOWS] for _ in range(rounds)]
    return [
        {"t": t, "ns": min(turn[i] for turn in taken), "explored": min(1.0, 32 * N_ARMS / t)}
        for i, (t, _, _) in enumerate(WINDOWS)
    ]


def state(dim: int, n_arms: int) -> dict[str, float]:
    """Count the bytes in the file (without its header) and in memory against the doubles that must be held."""
    policy = Armlet(dim, n_arms)
    play(policy, make_stream(dim, n_arms), 0, 64 * n_arms)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.armlet")
        policy.bandit.save(path)
        content = path.read_bytes()
    header = content.index(b"\n", content.index(b"\n") + 1) + 1  # two lines of text, then arrays
    return {
        "needed": 8 * n_arms * (dim * (dim + 1) // 2 + dim + 3),
        "saved": len(content) - header,
        "header": header,
        "memory": policy.bandit.state.nbytes,
    }


def start_up(repeats: int) -> dict[str, float]:
    """Measure the CPU milliseconds of whole processes."""
    python, command = sys.executable, str(Path(sys.executable).with_name("armlet"))
    commands = {
        "numpy": [python, "-c", "import numpy"],
        "armlet": [python, "-c", "import armlet"],
        "armlet --version": [command, "--version"],
        "armlet --help": [command, "--help"],
    }
    turns = cpu_turns(commands, repeats)
    medians = {name: 1e3 * statistics.median(turn[name] for turn in turns) for name in commands}
    extra = statistics.median(turn["armlet"] - turn["numpy"] for turn in turns)
    return {**medians, "armlet beyond numpy": 1e3 * extra}


def run(scale: float) -> dict[str, object]:
    return {
        "version": armlet.__version__,
        "windows": windows(max(3, round(ROUNDS * scale))),
        "state": {f"({dim}, {n_arms})": state(dim, n_arms) for dim, n_arms in SIZES},
        "start": start_up(max(5, round(15 * scale))),
    }


if __name__ == "__main__":
    print(json.dumps(run(scale=float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)))
