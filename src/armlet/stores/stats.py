from dataclasses import dataclass


@dataclass
class Stats: ...


@dataclass
class WriterStats:
    commits: int
    calls: int
    failed: int
    largest_batch: int
    seconds: float
    queue: int


def prometheus(loops, writer):
    return ""
