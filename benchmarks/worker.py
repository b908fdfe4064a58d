"""Times one policy at one size, in the environment of its own library; prints one line of JSON.

    python benchmarks/worker.py '{"adapter": "river", "variant": "linucb", "dim": 3, "n_arms": 6,
                                  "warm_steps": 1000, "warm_seconds": 2, "steps": 20000, "seconds": 2}'

A step is one decision and one update. Reading the clock costs about as much as the fastest step, so steps are
timed in blocks that last about 20 microseconds: up to 100 steps for a fast policy, a single one for a slow one.
The median is that of the blocks by the wall clock; the mean is the CPU time of the window over its steps, which
other processes on the machine cannot inflate.
"""

import importlib
import itertools
import json
import statistics
import sys
from dataclasses import dataclass
from time import perf_counter, perf_counter_ns, process_time_ns

from adapters.base import Policy
from stream import ROWS, Stream, make_stream

BLOCK_NS = 20_000
LARGEST_BLOCK = 100
PILOT_NS = 1_000_000
CHUNK_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to time and for how long: whichever of steps and seconds ends first."""

    adapter: str
    variant: str
    dim: int
    n_arms: int
    warm_steps: int
    warm_seconds: float
    steps: int
    seconds: float


def warm_up(policy: Policy, stream: Stream, job: Job) -> int:
    """Play up to `warm_steps` steps, in chunks that let the budget of seconds be kept; return how many."""
    done, chunk = 0, 1
    stop = perf_counter() + job.warm_seconds
    while done < job.warm_steps and perf_counter() < stop:
        chunk = min(chunk, job.warm_steps - done)
        started = perf_counter()
        policy.warm(*stream.take(done, chunk))
        done += chunk
        if perf_counter() - started < CHUNK_SECONDS:
            chunk = min(2 * chunk, ROWS)
    return done


def block_size(policy: Policy, stream: Stream) -> int:
    """How many steps last about 20 microseconds, found by playing a millisecond."""
    size = 1
    while True:
        started = perf_counter_ns()
        policy.play(*stream.take(0, size))
        took = perf_counter_ns() - started
        if took > PILOT_NS or size == ROWS:
            return max(1, min(LARGEST_BLOCK, round(BLOCK_NS * size / took)))
        size *= 2


def timed_blocks(policy: Policy, stream: Stream, block: int, job: Job) -> list[int]:
    """Nanoseconds of each block of the window."""
    marks: list[int] = []
    n_blocks = -(-job.steps // block)
    stop = perf_counter_ns() + int(job.seconds * 1e9)
    for contexts, rewards in itertools.islice(itertools.cycle(stream.blocks(block)), n_blocks):
        start = perf_counter_ns()
        policy.play(contexts, rewards)
        end = perf_counter_ns()
        marks.append(end - start)
        if end > stop:
            break
    return marks


def run(job: Job) -> dict[str, float]:
    adapter = importlib.import_module(f"adapters.{job.adapter}")
    policy: Policy = adapter.make(job.variant, job.dim, job.n_arms)
    stream = make_stream(job.dim, job.n_arms)
    warmed = warm_up(policy, stream, job)
    block = block_size(policy, stream)
    cpu_started = process_time_ns()
    marks = timed_blocks(policy, stream, block, job)
    cpu = process_time_ns() - cpu_started
    steps = block * len(marks)
    return {
        "median_us": statistics.median(marks) / block / 1e3,
        "mean_us": cpu / steps / 1e3,
        "mean_wall_us": sum(marks) / steps / 1e3,
        "warm_steps": warmed,
        "steps": steps,
        "block": block,
        "state_bytes": policy.state_bytes(),
    }


if __name__ == "__main__":
    print(json.dumps(run(Job(**json.loads(sys.argv[1])))))
