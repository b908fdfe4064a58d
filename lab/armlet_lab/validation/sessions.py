"""How often 95 % intervals cover where the decisions of a session share a coin: counted by rows, and by units.

Sessions of 1 to 16 decisions; every session likes every arm more or less, so its decisions resemble each other. "by
chance": a session has one arm, drawn uniformly, and nothing else is known. "at a known rate": three in ten sessions
explore with an arm of their own, the others play by the context. The policy that is valued plays arm 1 where x > 0,
else arm 0. Rewards are clicks. Intervals of a fixed sample, and gates that look after every epoch.
Run as a module it prints a table: python -m armlet_lab.validation.sessions --runs 1000
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np

import armlet
from armlet.evaluation.gate import AgainstLive, AgainstOther, Compared, UnitsAgainstOther
from armlet.evaluation.rows import HeldBlocks, Rows, rows_of
from armlet.evaluation.targets import Always, FunctionTarget
from armlet.parallel import Seeds
from armlet.types import Float64, Int64, Interval

Design: TypeAlias = Literal["by chance", "at a known rate"]

DESIGNS: Final[tuple[Design, ...]] = ("by chance", "at a known rate")
SESSIONS: Final = 500
LARGEST: Final = 16
EPOCHS: Final = 20
RATE: Final = 0.3
ARMS: Final = 3
VALUE: Final = 0.5  # of the policy: 0.45 on average, and 0.1 more where x > 0
OTHER: Final = 0.45  # of any arm alone
NAME: Final = "by context"


def drawn(rng: np.random.Generator, design: Design) -> Rows:
    """Draw a log of sessions, one epoch after the other; the sessions of an epoch are mixed."""
    sizes = rng.integers(1, LARGEST + 1, size=SESSIONS)
    session = np.repeat(np.arange(SESSIONS), sizes)
    epoch = session * EPOCHS // SESSIONS
    order = np.lexsort((rng.random(len(session)), epoch))
    session, epoch = session[order], epoch[order]
    x = rng.standard_normal(SESSIONS)[session] + rng.standard_normal(len(session))
    arm, columns = _played(rng, design, session, x)
    liking = rng.beta(0.5, 0.5, size=(SESSIONS, ARMS))  # by session and arm, and so shared by its decisions
    chance = 0.2 + 0.5 * liking[session, arm] + 0.1 * (arm == 1) * np.sign(x)
    clicks = (rng.random(len(session)) < chance).astype(np.float64)
    return rows_of(x[:, None], arm, clicks, n_arms=ARMS, unit=session, epoch=epoch, **columns)


def log_of(seed: int, design: Design) -> Rows:
    """Return the log of a seed."""
    return drawn(Seeds(seed, "sessions").rng("sessions"), design)


def _played(rng: np.random.Generator, design: Design, session: Int64, x: Float64) -> tuple[Int64, dict[str, Any]]:
    """Return arms, and the columns that say how they were drawn."""
    n, own = len(session), rng.integers(ARMS, size=SESSIONS)[session]
    if design == "by chance":
        return own, {"propensities": np.full(n, 1 / ARMS)}
    explored = (rng.random(SESSIONS) < RATE)[session]
    best = np.where(x > 0.5, 2, 1)
    arm = np.where(explored, own, best)
    even = np.full(n, 1 / ARMS)
    return arm, {
        "propensities": np.where(arm == best, 1 - RATE + RATE / ARMS, RATE / ARMS),
        "explored": explored.astype(np.int8),
        "greedy": (arm == best).astype(np.int8),
        "exploration_rate": np.full(n, RATE),
        "exploration_propensity": even,
        "min_exploration_probability": even,
    }


def policy() -> FunctionTarget:
    """Play arm 1 where x is positive, else arm 0."""
    return FunctionTarget(NAME, lambda X, _: np.eye(ARMS)[(X[:, 0] > 0).astype(np.int64)], tuple(range(ARMS)))


def by_rows(rows: Rows) -> Rows:
    """Return rows that do not say that they belong together."""
    return replace(rows, unit=None, epoch=None)


def intervals(rows: Rows) -> Iterator[tuple[str, bool]]:
    """Yield every estimator that has an interval, and the difference to an arm, with whether it covers."""
    blocks = HeldBlocks(rows, range(ARMS))
    found = armlet.evaluate(blocks, {NAME: policy()}, baseline=2, checks="none", interval="fixed")
    for name, point in found.estimates[NAME].items():
        if point.interval is not None:
            yield name, covers(point.interval, VALUE)
    difference = found.differences[NAME].interval
    if difference is not None:
        yield "difference", covers(difference, VALUE - OTHER)


def covers(interval: Interval, value: float) -> bool:
    """Return whether an interval holds a value."""
    return interval.low <= value <= interval.high


def coverage(design: Design, counted: Literal["rows", "units"], seeds: Iterable[int]) -> dict[str, float]:
    """Return how often intervals cover, by estimator.

    Examples
    --------
    >>> sorted(coverage("by chance", "units", range(2)))
    ['difference', 'dr', 'ips', 'sndr', 'snips']
    """
    hits: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for seed in seeds:
        rows = log_of(seed, design)
        for name, hit in intervals(rows if counted == "units" else by_rows(rows)):
            hits[name] += hit
            runs[name] += 1
    return {name: hits[name] / n for name, n in runs.items()}


def ever_wrong(counted: Literal["rows", "units"], seeds: Iterable[int]) -> dict[str, float]:
    """Return how often a gate's interval misses the gain after any epoch, against what ran and against an arm.

    Examples
    --------
    >>> ever_wrong("units", range(2))
    {'live': 0.0, 'other': 0.0}
    """
    missed, runs = Counter({"live": 0, "other": 0}), 0
    for seed in seeds:
        rows = log_of(seed, "by chance")
        for name, compared, gain in _gates(counted):
            missed[name] += _misses(compared, rows, gain)
        runs += 1
    return {name: count / runs for name, count in missed.items()}


def _gates(counted: Literal["rows", "units"]) -> Iterator[tuple[str, Compared, float]]:
    ends, other, gain = (0.0, 1.0), Always("other", 2), VALUE - OTHER
    if counted == "units":
        yield "live", AgainstLive(policy(), ends, 0.95, LARGEST), gain
        yield "other", UnitsAgainstOther(policy(), other, ends, 0.95, LARGEST), gain
    else:
        yield "live", AgainstLive(policy(), ends, 0.95), gain
        yield "other", AgainstOther(policy(), other, ends, 0.95, float(ARMS)), gain


def _misses(compared: Compared, rows: Rows, gain: float) -> bool:
    epochs = np.asarray(rows.epoch)
    for epoch in range(EPOCHS):
        compared.add(rows.take(epochs == epoch))
        if not covers(compared.interval(), gain):
            return True
    return False


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Coverage where the decisions of a session share a coin.")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    a = parser.parse_args()
    seeds = range(a.first, a.first + a.runs)
    print(f"coverage of 95 % intervals in {a.runs:,} runs of {SESSIONS} sessions, seeds from {a.first}")
    print(f"{'design':<16} {'interval of':<12} {'by rows':>8} {'by units':>8}")
    for design in DESIGNS:
        naive, clustered = (coverage(design, counted, seeds) for counted in ("rows", "units"))
        for name, share in clustered.items():
            print(f"{design:<16} {name:<12} {naive[name]:8.3f} {share:8.3f}", flush=True)
    few = seeds[: max(1, a.runs // 5)]
    print(f"\nruns of {len(few):,} in which a gate at 95 % misses the gain after one of {EPOCHS} epochs")
    naive, clustered = (ever_wrong(counted, few) for counted in ("rows", "units"))
    for name, share in clustered.items():
        print(f"{'against ' + name:<29} {naive[name]:8.3f} {share:8.3f}", flush=True)


if __name__ == "__main__":
    main()
