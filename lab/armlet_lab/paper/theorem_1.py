"""Theorem 1, Section 4: what a step costs, in time and in bytes, against t, d and K.

A step is `decide` and `learn` of a Bandit, as a user calls them, in CPU time of the thread, while nothing else runs. A
busy machine only ever adds time, so each number is the best of several tries, and the tries of all settings take
turns, so that a slow spell hits all of them alike. The theorem's O(K d^3) is an upper bound: slopes may be smaller,
and on small problems they are, because a call costs something at any size.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.bandit import Bandit
from armlet.inference.intervals import bootstrap, power_slope
from armlet.parallel import Seeds
from armlet.policies import Algorithm1
from armlet.report import plots
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.types import Estimate, Float64
from armlet_lab.runner.experiment import (
    Claim,
    Criterion,
    Experiment,
    Findings,
    Outcome,
    Role,
    Section,
    Statistic,
    Verdict,
    certain,
    conclude,
)
from armlet_lab.runner.formulas import two_digits

N_ARMS, DIM, P = 6, 8, 60  # where they are not varied
BUSY: Final = 400  # p, and so the warm-up, of the runs against d and K
FLAT: Final = 0.05  # a slope of this size is a factor of 1.6 over four decades
Axis: TypeAlias = Literal["t", "rows", "d", "K"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to time: `runs` numbers for each setting, each the best of `tries`."""

    times: tuple[int, ...] = (100, 1_000, 10_000, 100_000, 1_000_000)
    dims: tuple[int, ...] = (4, 8, 16, 32, 64, 128)
    arms: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 128)
    stored: tuple[int, ...] = (100, 1_000, 10_000)  # rows, of the control
    window: int = 2_000  # most steps timed at each t
    busy_steps: int = 800  # steps timed for each d and K
    runs: int = 8
    tries: int = 2


SCALES: Final[dict[Scale, Settings]] = {"quick": Settings(), "full": Settings(runs=20, tries=4)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """A task: one try at all settings of what is varied."""

    seeds: Seeds
    attempt: int
    varied: Axis
    given: tuple[int, ...]
    steps: int  # timed at each of them, at most; or estimates that are refitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A task: the bytes of state against t, d and K."""

    seeds: Seeds
    times: tuple[int, ...]
    dims: tuple[int, ...]
    arms: tuple[int, ...]


def make(n_arms: int, dim: int, p: float, seeds: Seeds, attempt: int) -> tuple[Bandit, list[Float64]]:
    """Return a fresh bandit, and 256 contexts of length 1 for it."""
    X = seeds.rng("unit contexts", attempt, dim).standard_normal((256, dim))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return Bandit(range(n_arms), dim, policy=Algorithm1(p=p), seed=seeds.seed("bandits", attempt)), list(X)


def steps(bandit: Bandit, contexts: Sequence[Float64], n: int) -> float:
    """Let a bandit decide and learn n times; give the seconds of one step."""
    start = time.thread_time()
    for i in range(n):
        bandit.learn(bandit.decide(contexts[i & 255]), 0.5 if i & 1 else 1.0)
    return (time.thread_time() - start) / n


def along_time(times: Sequence[int], window: int, seeds: Seeds, attempt: int) -> Float64:
    """Bring a bandit to each t, then time stretches of each in turn, and take the best of five: (times,)."""
    bandits = []
    for t in times:
        bandit, contexts = make(N_ARMS, DIM, P, seeds, attempt)
        steps(bandit, contexts, t)
        bandits.append((bandit, contexts, min(window, t) // 5))
    # all turns of a round lie within a millisecond, so that a slow spell of the machine slows every t alike
    best: Float64 = np.array([[steps(*each) for each in bandits] for _ in range(5)]).min(axis=0)
    return best


def busy(n_arms: int, dim: int, n: int, seeds: Seeds, attempt: int) -> float:
    """Time n steps right after the warm-up, where many explore and so most decisions have to solve again."""
    bandit, contexts = make(n_arms, dim, BUSY, seeds, attempt)
    steps(bandit, contexts, BUSY)
    return steps(bandit, contexts, n)


def refit(n: int, repeats: int, seeds: Seeds, attempt: int) -> float:
    """Time what the algorithm avoids: summing n stored rows again for one estimate."""
    X = seeds.rng("stored rows", attempt, n).standard_normal((n, DIM))
    start = time.thread_time()
    for _ in range(repeats):
        np.linalg.solve(np.eye(DIM) + np.einsum("ni,nj->ij", X, X), X.sum(axis=0))
    return (time.thread_time() - start) / repeats


def measure(task: Timing) -> Arrays:
    """Return the seconds of a step, or of refitting, at each setting."""
    given, drawn = task.given, (task.seeds, task.attempt)
    match task.varied:
        case "t":
            return {"seconds": along_time(given, task.steps, *drawn)}
        case "rows":
            return {"seconds": np.array([refit(n, task.steps, *drawn) for n in given])}
        case "d":
            return {"seconds": np.array([busy(N_ARMS, d, task.steps, *drawn) for d in given])}
        case "K":
            return {"seconds": np.array([busy(k, DIM, task.steps, *drawn) for k in given])}


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Time steps and count bytes, and judge both parts of the theorem.

    Examples
    --------
    >>> few = (100, 200, 400)
    >>> tiny = Settings(times=few, dims=(4, 8), arms=(2, 4), stored=few, busy_steps=20, runs=2, tries=1)
    >>> [verdict.claim.key for verdict in find(tiny, Lab(seed=1)).verdicts]
    ['theorem-1-time', 'theorem-1-space']
    """
    seconds = _measured(settings, lab)
    task = Sizes(seeds=lab.seeds, times=settings.times, dims=settings.dims, arms=settings.arms)
    (found,) = lab.alone("bytes", sizes, [task], "Theorem 1: bytes of state")
    nbytes = {name: as_floats(array) for name, array in found.items()}
    return judge(settings, seconds, nbytes, lab.rng("intervals"))


def judge(
    settings: Settings, seconds: Mapping[Axis, Float64], nbytes: Mapping[str, Float64], rng: np.random.Generator
) -> Findings:
    """Judge both parts of the theorem."""
    return Findings.of([_judge_time(settings, seconds, rng), _judge_space(settings, nbytes)])


def _measured(settings: Settings, lab: Lab) -> dict[Axis, Float64]:
    """Return the best of the tries, for each run, by what is varied: (settings, runs)."""
    tries, window, busy_steps = settings.runs * settings.tries, settings.window, settings.busy_steps
    varied: dict[Axis, tuple[tuple[int, ...], int]] = {
        "t": (settings.times, window),
        "rows": (settings.stored, 5),
        "d": (settings.dims, busy_steps),
        "K": (settings.arms, busy_steps),
    }
    tasks = [
        Timing(seeds=lab.seeds, attempt=attempt, varied=axis, given=given, steps=steps)
        for attempt in range(tries)
        for axis, (given, steps) in varied.items()
    ]
    found = lab.alone("time", measure, tasks, f"Theorem 1: time of a step up to t = {settings.times[-1]:,}")
    best = {}
    for index, axis in enumerate(varied):
        seconds = np.array([as_floats(arrays["seconds"]) for arrays in found[index :: len(varied)]])
        best[axis] = seconds.reshape(settings.runs, settings.tries, -1).min(axis=1).T
    return best


def _judge_time(
    settings: Settings, seconds: Mapping[Axis, Float64], rng: np.random.Generator
) -> tuple[Verdict, Section]:
    by_time, by_dim, by_arm = seconds["t"], seconds["d"], seconds["K"]
    along, late = _series("t", settings.times, by_time, rng), len(settings.times) // 2
    control = _series("rows", settings.stored, seconds["rows"], rng)
    d, K = _series("d", settings.dims, by_dim, rng), _series("K", settings.arms, by_arm, rng)
    statistics = (
        Statistic("exponent of the time in $t$", along.slope, Criterion("below", FLAT)),
        _tail("t", settings.times, by_time, late, Criterion("below", FLAT), rng),
        Statistic("exponent of the time in $d$", d.slope, Criterion("below", 3)),
        _tail("d", settings.dims, by_dim, -2, Criterion("below", 3), rng),
        Statistic("exponent of the time in $K$", K.slope, Criterion("below", 1)),
        _tail("K", settings.arms, by_arm, -2, Criterion("below", 1), rng),
        Statistic("exponent of refitting stored rows", control.slope, Criterion("above", FLAT), Role.CONTROL),
    )
    verdict = Verdict(claim=TIME, statistics=statistics, explanations=TIME_WHY, conclusions=TIME_CONCLUSIONS)
    pictures = (
        _picture("theorem-1-time-t", along, "step t", "time in µs"),
        _picture("theorem-1-time-d", d, "dimension d", "time in µs"),
        _picture("theorem-1-time-k", K, "arms K", "time in µs"),
    )
    notes = (f"A step takes {two_digits(along.outcomes[-1].value)} microseconds at $t = {settings.times[-1]:,}$ here.",)
    return verdict, Section(
        claim=TIME.key,
        heading="The time of a step does not grow with the number of steps",
        pictures=pictures,
        notes=notes,
    )


def sizes(task: Sizes) -> Arrays:
    """Count the bytes of a bandit's state against t, d and K: the same on every run."""
    bandit, contexts = make(N_ARMS, DIM, P, task.seeds, 0)
    along = []
    for t in task.times:
        steps(bandit, contexts, t - bandit.t)
        along.append(bandit.state.nbytes)
    return {
        "t": np.array(along),
        "d": np.array([make(N_ARMS, d, P, task.seeds, 0)[0].state.nbytes for d in task.dims]),
        "K": np.array([make(k, DIM, BUSY, task.seeds, 0)[0].state.nbytes for k in task.arms]),
    }


def _judge_space(settings: Settings, found: Mapping[str, Float64]) -> tuple[Verdict, Section]:
    growth = float(np.ptp(found["t"]))
    d, K = _exponent(settings.dims, found["d"]), _exponent(settings.arms, found["K"])
    statistics = (
        Statistic("bytes gained over all $t$", certain(growth), Criterion("within", 0, 0)),
        Statistic("exponent of the bytes in $d$", d, Criterion("within", 0, 2)),
        Statistic("over the last doubling of $d$", _last(settings.dims, found["d"]), Criterion("within", 0, 2)),
        Statistic("exponent of the bytes in $K$", K, Criterion("within", 0, 1)),
        Statistic("over the last doubling of $K$", _last(settings.arms, found["K"]), Criterion("within", 0, 1)),
    )
    verdict = Verdict(claim=SPACE, statistics=statistics, explanations=SPACE_WHY, conclusions=SPACE_CONCLUSIONS)
    pictures = tuple(
        _picture(f"theorem-1-space-{name.lower()}", _exact(name, given, found[name], slope), label, "bytes of state")
        for name, given, slope, label in (
            ("d", settings.dims, d, "dimension d"),
            ("K", settings.arms, K, "arms K"),
        )
    )
    last = f"{found['t'][-1]:,.0f} bytes with $K = {N_ARMS}$ and $d = {DIM}$, at $t = {settings.times[-1]:,}$ as at "
    "the start."
    return verdict, Section(
        claim=SPACE.key, heading="Memory does not grow with the number of steps", pictures=pictures, notes=(last,)
    )


def _series(label: str, given: Sequence[int], seconds: Float64, rng: np.random.Generator) -> plots.Series:
    slope = power_slope(given, list(seconds), rng, average="median")
    middles = [bootstrap(lambda each: np.median(each, axis=-1), row * 1e6, rng=rng) for row in seconds]
    return plots.Series(label, tuple(map(float, given)), tuple(middles), slope)


def _tail(
    name: str, given: Sequence[int], seconds: Float64, first: int, criterion: Criterion, rng: np.random.Generator
) -> Statistic:
    """Take the exponent over the last settings only, where what a call costs anyhow weighs least."""
    slope = power_slope(given[first:], list(seconds[first:]), rng, average="median")
    return Statistic(f"the same, ${name}$ from {given[first]:,} to {given[-1]:,}", slope, criterion)


def _exact(label: str, given: Sequence[int], values: Float64, slope: Estimate) -> plots.Series:
    return plots.Series(label, tuple(map(float, given)), tuple(certain(v) for v in values.tolist()), slope)


def _exponent(given: Sequence[int], values: Float64) -> Estimate:
    slope = round(float(np.polyfit(np.log(given), np.log(values), 1)[0]), 9)  # bytes that double have 1, not 1 + 1e-16
    return certain(slope)


def _last(given: Sequence[int], values: Float64) -> Estimate:
    return _exponent(given[-2:], values[-2:])


def _picture(key: str, series: plots.Series, xlabel: str, ylabel: str) -> plots.Picture:
    alt = f"{ylabel.capitalize()} against {xlabel}, on log-log scales, with the fitted slope."
    return plots.picture(plots.power_law([series], xlabel=xlabel, ylabel=ylabel), key=key, alt=alt, caption=alt)


TIME: Final = Claim(
    key="theorem-1-time",
    where="Theorem 1",
    says="A step costs $O(K d^3)$ time, regardless of how many steps came before it.",
    reading=(
        "Decide and learn, CPU time, medians over runs of the best of several attempts that take turns. Exponents are "
        f"log-log slopes: below {FLAT} in $t$, since a machine that others use cannot tell less from nothing; at most "
        "3 in $d$ and 1 in $K$, measured after the warm-up of $p = 400$ steps, where most decisions solve again. "
        "Each also over the last settings alone: early steps explore more and so cost more, and a call has a price "
        "regardless of its size, so that the whole range could hide growth at its end."
    ),
)
SPACE: Final = Claim(
    key="theorem-1-space",
    where="Theorem 1",
    says="What is kept takes $O(K d^2)$ space in expectation, and does not grow with the number of steps.",
    reading="Bytes of the state, counted, not estimated: equal at all $t$; exponents at most 2 in $d$ and 1 in $K$.",
)
TIME_WHY: Final = {
    Outcome.HOLDS: "Only arms that were explored since the last decision are solved again, so a step costs less.",
    Outcome.UNSETTLED: "Timings on this machine were too noisy to tell; run it again with nothing else running.",
}
TIME_CONCLUSIONS: Final = conclude("the time of a step does not grow with the number of steps", "steps get slower")
SPACE_CONCLUSIONS: Final = conclude("memory stays constant", "memory grows with the number of steps")
SPACE_WHY: Final = {Outcome.HOLDS: "Not only in expectation: the state is a few sums for each arm, of fixed size."}


EXPERIMENT: Final = Experiment("theorem-1", "Theorem 1: time and space of a step", run)
