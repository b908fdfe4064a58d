"""Times one policy at one size, in the environment of its own library; prints one line of JSON.

    python benchmarks/worker.py '{"adapter": "river", "variant": "ucb", "dim": 3, "n_arms": 6,
                                  "warm_steps": 2000, "warm_seconds": 2, "steps": 20000, "seconds": 2}'

A step is one decision and one update. Reading the clock costs about as much as the fastest step, so steps are
timed in blocks that last about 20 microseconds: up to 100 steps for a fast policy, a single one for a slow one.
The median is that of the blocks by the wall clock; the mean is the CPU time of the window over its steps, which
other processes on the machine cannot inflate. Some more steps, not timed, tell whether the policy learned anything.
With "fresh": N the first steps are timed instead, without warming up: the median of up to N new policies.
"""

import importlib
import itertools
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, perf_counter_ns, process_time_ns
from typing import SupportsIndex

from adapters.base import Policy
from stream import ROWS, Stream, load_stream, make_stream

BLOCK_NS = 20_000
LARGEST_BLOCK = 100
PILOT_NS = 1_000_000
PILOTS = 16
CHUNK_SECONDS = 0.05
SLOW_NS = 100_000_000
EARNING_STEPS = 256
EARNING_SECONDS = 0.5
FIRST_BLOCK = 50


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
    rows: str = ""  # a file of save_stream, instead of the usual environment
    fresh: int = 0  # policies whose first steps are timed, instead of one that was warmed up


class Payout(list[float]):
    """The rewards of one step, which remember the one that was asked for."""

    paid = 0.0

    def __getitem__(self, arm: SupportsIndex) -> float:  # type: ignore[override]
        self.paid = super().__getitem__(arm)
        return self.paid


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


def step_ns(policy: Policy, stream: Stream) -> float:
    """Get a first idea of what a step takes: the quickest of runs that grow to a millisecond."""
    size, best = 1, float("inf")
    for _ in range(PILOTS):
        started = perf_counter_ns()
        policy.play(*stream.take(0, size))
        took = perf_counter_ns() - started
        best = min(best, took / size)
        if took < PILOT_NS:
            size = min(2 * size, ROWS)
        elif took > SLOW_NS:
            break
    return best


def timed_blocks(policy: Policy, stream: Stream, block: int, job: Job) -> list[int]:
    """Take the nanoseconds of each block of the window."""
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


def earned(policy: Policy, stream: Stream) -> float:
    """Take the mean reward of some further steps."""
    paid: list[float] = []
    stop = perf_counter() + EARNING_SECONDS
    while len(paid) < EARNING_STEPS and (not paid or perf_counter() < stop):
        contexts, rewards = stream.take(len(paid), 1)
        payout = Payout(rewards[0])
        policy.play(contexts, [payout])
        paid.append(payout.paid)
    return statistics.fmean(paid)


def first_steps(job: Job, make: Callable[[str, int, int], Policy], stream: Stream) -> dict[str, float]:
    """Take the CPU time of the first steps of new policies, until the seconds of the job are used up."""
    means: list[float] = []
    fewest, stop = job.steps, perf_counter() + job.seconds
    while len(means) < job.fresh and (not means or perf_counter() < stop):
        policy, done = make(job.variant, job.dim, job.n_arms), 0
        started = process_time_ns()
        while done < job.steps and (not done or perf_counter() < stop):
            policy.play(*stream.take(done, FIRST_BLOCK))
            done += FIRST_BLOCK
        if done == job.steps or not means:  # one that was cut short counts if there is no other
            means.append((process_time_ns() - started) / done / 1e3)
            fewest = min(fewest, done)
    return {"mean_us": statistics.median(means), "warm_steps": 0, "steps": fewest}


def run(job: Job) -> dict[str, float]:
    adapter = importlib.import_module(f"adapters.{job.adapter}")
    if job.fresh:
        return first_steps(job, adapter.make, make_stream(job.dim, job.n_arms))
    policy: Policy = adapter.make(job.variant, job.dim, job.n_arms)
    stream = load_stream(Path(job.rows)) if job.rows else make_stream(job.dim, job.n_arms)
    warmed = warm_up(policy, stream, job)
    block = max(1, min(LARGEST_BLOCK, round(BLOCK_NS / step_ns(policy, stream))))
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
        "reward": earned(policy, stream),
    }


if __name__ == "__main__":
    print(json.dumps(run(Job(**json.loads(sys.argv[1])))))
