"""The search for p: runs of ContextualEpsilonGreedy on many problems, for one p after another, with the same seeds.

Every run is exact in law. On long horizons it goes in jumps from one exploration to the next, O(p log(T / p)) of them
for any T (`kernel.simulate_events`); on short ones, where few contexts come twice between two explorations, step by
step (`kernel.simulate_steps`), which is quicker and lets every p meet the same contexts, rewards and coins.

The search looks along a coarse grid, then tries every p near the best on the same runs. The look doubles p on a few
runs, up to where exploration alone, gap times explored steps, costs more than the best p so far, or regret has clearly
turned upwards. The trial runs p / 8 to 2 p, in steps of sqrt 2 round p; if another p turns out best, it widens until
p / 2 and 2 p are in it, on fewer runs if these cost more. How many problems and runs there are follows from a count of
operations, never from a clock: the answer is the same on any machine and for any number of workers. Runs on one problem
are alike, so intervals count problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from armlet.advice.problem import SampledProblem
from armlet.environments.environment import FiniteEnvironment
from armlet.inference.intervals import resampled, rough_t_quantile, spread
from armlet.parallel import Seeds
from armlet.policies.contextual_epsilon_greedy import ContextualEpsilonGreedy
from armlet.simulation.play import play_table, table_seeds
from armlet.types import Estimate, Float64, Int64, Interval

SHORT: Final = 1000  # steps for each context of a table
CHUNK: Final = 16  # runs in a task, so that several workers can share the runs on one problem

Progress: TypeAlias = Callable[[int, int], None]
"""Receives how much is done of how much."""


class PlayTask(NamedTuple):
    """Some runs of one p on one problem."""

    table: FiniteEnvironment
    p: float
    steps: Int64
    seeds: Sequence[tuple[int, int]]


def by_steps(n_contexts: int, horizon: int) -> bool:
    """Return whether a run is quicker step by step than in jumps, which draw how often each context comes in each."""
    return horizon <= SHORT * n_contexts


def play(task: PlayTask) -> Float64:
    """Run a task: regret, the part of it paid exploring, and explored steps, by run and checkpoint, (R, 3, C)."""
    policy = ContextualEpsilonGreedy(p=task.p)
    jumps = not by_steps(len(task.table.chances), int(task.steps[-1]))
    runs = [play_table(task.table, policy, task.steps, seeds, jumps=jumps) for seeds in task.seeds]
    return np.stack([np.stack([run.regret, run.exploring, run.explored]) for run in runs])


def explorations(p: float, n_arms: int, horizon: int) -> float:
    """Return about how many steps explore by evidence, where arms neither come nor go and rewards are prompt.

    All of the first p (1 + log K), by when every arm weighs 1 / K; from then on n rows make a step explore with
    probability exp(1 + log K - n / p), so that n grows with the logarithm of t.

    Examples
    --------
    >>> round(explorations(60, 6, 100)), round(explorations(60, 6, 100_000))
    (100, 613)
    """
    full = p * (1.0 + math.log(n_arms))
    return float(horizon) if horizon <= full else full + p * math.log1p((horizon - full) / p)


def explorations_as_printed(p: float, horizon: int) -> float:
    """Return the expected number of explored steps of Algorithm 1: all of the first ceil(p), then p/t.

    Examples
    --------
    >>> round(explorations_as_printed(2, 4), 6)  # 2 + 2/3 + 2/4
    3.166667
    """
    warm = math.ceil(p)
    if horizon <= warm:
        return float(horizon)
    return warm + p * (_harmonic(horizon) - _harmonic(warm))


def _harmonic(n: int) -> float:
    if n < 100:
        return sum(1 / i for i in range(1, n + 1))
    return math.log(n) + 0.5772156649015329 + 1 / (2 * n) - 1 / (12 * n * n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The problems to run on, and how."""

    problems: list[SampledProblem]
    steps: Int64  # (C,): checkpoints, the last of them the horizon
    seeds: Seeds
    executor: Executor

    @property
    def horizon(self) -> int:
        """The number of steps of a run, T."""
        return int(self.steps[-1])

    def run(
        self, ps: Sequence[float], problems: int, runs: int, on_share: Callable[[float], None] = lambda _: None
    ) -> Float64:
        """Play the first problems so often with each p, all with the same seeds: (p, problems, runs, 3, C).

        `on_share` receives the share that is done.
        """
        seeds = [[self.pair(i, r) for r in range(runs)] for i in range(problems)]
        tasks = [
            PlayTask(self.problems[i].table, p, self.steps, seeds[i][r : r + CHUNK])
            for p in ps
            for i in range(problems)
            for r in range(0, runs, CHUNK)
        ]
        curves = []
        for done, regrets in enumerate(self.executor.map(play, tasks), start=1):
            curves.append(regrets)
            on_share(done / len(tasks))
        shape = (len(ps), problems, runs, 3, len(self.steps))
        return np.concatenate(curves).reshape(shape) if curves else np.empty(shape)

    def pair(self, problem: int, run: int) -> tuple[int, int]:
        """Return the seeds of a run: the same for every p and policy."""
        return table_seeds(self.seeds, problem, run)


def checkpoints(horizon: int) -> Int64:
    """Return steps that grow by half each, up to the horizon.

    Examples
    --------
    >>> checkpoints(10).tolist()
    [1, 2, 3, 5, 7, 10]
    """
    n = 1 + math.ceil(math.log(horizon) / math.log(1.5)) if horizon > 1 else 1
    steps: Int64 = np.unique(np.geomspace(1, horizon, n).round().astype(np.int64))
    steps[-1] = horizon
    return steps


FEW_PROBLEMS: Final = 100  # below, the outer quantiles rest on a problem or two
RESAMPLES: Final = 1000


class Sample(NamedTuple):
    """Regrets of runs, and the problem that each was on: runs on one problem are alike."""

    values: Float64  # (n,)
    problems: Int64  # (n,)

    def independent(self) -> Float64:
        """Return the means of the problems, or the runs if there is one problem."""
        counts = np.bincount(self.problems)
        if np.count_nonzero(counts) == 1:
            return self.values
        means: Float64 = np.bincount(self.problems, self.values)[counts > 0] / counts[counts > 0]
        return means


def mean_interval(sample: Sample) -> Interval:
    """Return the 95 % interval of the mean regret; no regret is negative, so neither end is."""
    units, mean = sample.independent(), float(sample.values.mean())
    half = rough_t_quantile(len(units) - 1) * float(units.std(ddof=1)) / len(units) ** 0.5 if len(units) > 1 else np.inf
    return Interval(max(0.0, mean - half), mean + half)


def difference(first: Float64, second: Float64, together: int) -> Estimate:
    """Return the mean of first - second, runs on the same environments with the same seeds, (environments, runs).

    So many such intervals hold together with probability 95 %, whichever of them is looked at.

    Examples
    --------
    >>> print(f"{difference(np.array([[5.0], [9.0], [7.0]]), np.array([[4.0], [8.0], [6.0]]), 10):.1f}")
    1.0 [1.0 to 1.0]
    """
    each = first - second
    n, runs = each.shape
    units = Sample(each.ravel(), np.repeat(np.arange(n), runs)).independent()
    mean, z = float(each.mean()), NormalDist().inv_cdf(1 - 0.025 / together)
    half = (
        rough_t_quantile(len(units) - 1, z) * float(units.std(ddof=1)) / len(units) ** 0.5 if len(units) > 1 else np.inf
    )
    return Estimate(mean, mean - half, mean + half)


def single_run(sample: Sample, most: float = math.inf) -> Interval:
    """Return the 95 % interval of one more run on one more problem, of what may be negative.

    The quantiles of the runs. With few problems behind them these are too narrow: each end then goes as much further
    from the median as it would have to under a normal law, but not beyond `most` in size, where a bound is known. With
    one problem, runs take the place of problems.

    Examples
    --------
    >>> low, high = single_run(Sample(np.array([1.0, 2.0, 4.0]), np.arange(3)))
    >>> round(low, 1), round(high, 1)
    (-2.4, 10.8)
    """
    ends, middle = spread(sample.values, 0.95), float(np.median(sample.values))
    n = len(np.unique(sample.problems))
    n = len(sample.values) if n == 1 else n
    if not 1 < n < FEW_PROBLEMS:
        return Interval(*ends)
    normal = NormalDist()
    ideal = np.array([normal.inv_cdf((i - 0.375) / (n + 0.25)) for i in range(1, n + 1)])  # of a sample of n
    widen = rough_t_quantile(n - 1) * (1 + 1 / n) ** 0.5 / float(np.quantile(ideal, 0.975))
    low, high = (middle + max(1.0, widen) * (end - middle) for end in ends)
    return Interval(min(ends[0], max(low, -most)), max(ends[1], min(high, most)))


def predictive(sample: Sample, most: float) -> Interval:
    """Return the 95 % interval of one more run on one more problem.

    The quantiles of the runs; with few problems behind them these are too narrow, so then the prediction interval of a
    lognormal law, with as many degrees of freedom as there are problems, counts where it is wider, up to the most that
    random play may regret.
    """
    low, high = spread(sample.values, 0.95)
    n = len(np.unique(sample.problems))
    if not 1 < n < FEW_PROBLEMS or sample.values.min() <= 0:
        return Interval(low, high)
    logs = np.log(sample.values)
    half = rough_t_quantile(n - 1) * float(logs.std(ddof=1)) * (1 + 1 / n) ** 0.5
    down, up = float(np.exp(logs.mean() - half)), float(np.exp(logs.mean() + half))
    return Interval(min(low, down), max(high, min(most, up)))


def chance_within(rows: Float64, chosen: int, factor: float, rng: np.random.Generator) -> float:
    """Return the bootstrap probability that a row's mean is within a factor of the least one; rows (grid, units)."""
    counts = resampled(rows.shape[1], rng, RESAMPLES)
    sums = rows @ counts.T  # (grid, resamples)
    return float((sums[chosen] <= factor * sums.min(axis=0)).mean())


OWN: Final = (0.0, 0.1, 0.25, 0.5, 1.0)  # how much a problem's own runs count in the choice of its own p
CLOSE: Final = 1.1  # times the least regret: as good, for all that matters


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Runs with every p of a grid."""

    entries: tuple[int, ...]  # places on the grid K 2^(j/2), rising
    ps: tuple[float, ...]
    steps: Int64  # (C,): checkpoints, the last of them the horizon
    curves: Float64  # (grid, problems, runs, 3, C): regret, the part of it paid exploring, explored steps

    @property
    def problems(self) -> int:
        """How many problems were played."""
        return int(self.curves.shape[1])

    @property
    def runs(self) -> int:
        """How often each p played each problem."""
        return int(self.curves.shape[2])

    @property
    def regret(self) -> Float64:
        """Regret at the horizon, (grid, problems, runs)."""
        return self.curves[..., 0, -1]

    @property
    def means(self) -> Float64:
        """Mean regret of each p, (grid,)."""
        means: Float64 = self.regret.mean(axis=(1, 2))
        return means

    @property
    def best(self) -> int:
        """The place of the p of least mean regret."""
        return int(self.means.argmin())

    def place(self, halves: int) -> int | None:
        """Return the place of the best p times sqrt 2 to a power, or None if it was not tried."""
        entry = self.entries[self.best] + halves
        return self.entries.index(entry) if entry in self.entries else None

    def sample(self, place: int) -> Sample:
        """Return the regrets of one p, with their problems."""
        return Sample(self.regret[place].ravel(), np.repeat(np.arange(self.problems), self.runs))

    def close(self) -> tuple[float, float]:
        """Return the ends of the stretch round the best p in which every p is close to it."""
        good = self.means <= CLOSE * self.means[self.best]
        low = high = self.best
        while low > 0 and good[low - 1]:
            low -= 1
        while high + 1 < len(good) and good[high + 1]:
            high += 1
        return self.ps[low], self.ps[high]

    def chance(self, rng: np.random.Generator) -> float:
        """Return the bootstrap probability that the best p is close to the best of other such problems."""
        rows = np.stack([self.sample(place).independent() for place in range(len(self.ps))])
        return chance_within(rows, self.best, CLOSE, rng)

    def saving(self) -> float:
        """Estimate how much less the mean regret would be if every problem had its own p of the grid.

        That p is chosen on half of a problem's runs and judged on the others, and the other way round: the least of
        several noisy means would flatter it. How far to trust a problem's own few runs is tried out too.
        """
        if self.runs < 2:
            return 0.0
        even, odd = self.regret[:, :, ::2].mean(axis=2), self.regret[:, :, 1::2].mean(axis=2)
        shared = [(_judge(even, odd, own) + _judge(odd, even, own)) / 2 for own in OWN]
        return min(float(self.means[self.best]), max(0.0, shared[0] - min(shared)))


def _judge(choose: Float64, judge: Float64, own: float) -> float:
    """Choose by a problem's own runs, pulled towards all problems' average; judge by other runs."""
    score = own * choose + (1 - own) * choose.mean(axis=1, keepdims=True)
    return float(judge[score.argmin(axis=0), np.arange(choose.shape[1])].mean())


BUDGET: Final = 3e6  # microseconds of one core for the trial, by the estimate of `cost`
LOOK: Final = 0.05  # of that, for one p of the look
GLANCE: Final = 64  # runs of a p at the look, if they are cheap
TURNED: Final = 1.5  # times the least regret: so much more is no accident of 64 runs
MOST_PROBLEMS: Final = 256
MOST_RUNS: Final = 4096  # of one p
ENOUGH: Final = 128  # runs of one p; where there would be fewer, the steps of the trial are doublings
FEWEST_RUNS: Final = 12
DEAREST: Final = 0.5e6  # microseconds of a run; a p that takes longer is not tried, and the advice says so
NEAR: Final = (-2, -1, 0, 1, 2)  # what a trial has round its best p, in steps of sqrt 2
WIDE: Final = (-6, -4, *NEAR)  # and round the best p of the look: cheap, and some problems may want so little


def cost(problem: SampledProblem, p: float, horizon: int) -> float:
    """Estimate the microseconds that a run takes on one core, within a factor of about two."""
    M, d = len(problem.table.chances), problem.dim
    if by_steps(M, horizon):
        return 60 + 0.02 * horizon + (0.3 + M * (0.01 + 0.0013 * d)) * explorations(p, problem.n_arms, horizon)
    return 60 + (0.5 + M * (0.03 + 0.0012 * d)) * explorations(p, problem.n_arms, horizon)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Looks for the p of least mean regret over the problems of a bench."""

    bench: Bench
    n_arms: int
    problems: int | None  # None to take what the budget allows
    runs: int | None
    budget: float  # for the trial, in units of `cost`
    on_share: Callable[[float], None]

    def p_at(self, j: int) -> float:
        """Return entry j of the grid, K 2^(j/2), a whole number."""
        return float(round(self.n_arms * 2 ** (j / 2)))

    def cost_at(self, j: int) -> float:
        """Estimate the microseconds of a run with entry j, on average over problems."""
        some = self.bench.problems[:16]
        return sum(cost(problem, self.p_at(j), self.bench.horizon) for problem in some) / len(some)

    @property
    def natural_top(self) -> int:
        """The last entry that makes sense: p of half the horizon, or K."""
        return max(0, math.floor(2 * math.log2(self.bench.horizon / 2 / self.n_arms)))

    @property
    def top(self) -> int:
        """The last entry that is tried."""
        top = self.natural_top
        while top > 0 and self.cost_at(top) > DEAREST:
            top -= 1
        return top

    def note(self, trial: Trial) -> tuple[str, ...]:
        """Return whether the grid may have ended below the best p."""
        top = self.top
        if top == self.natural_top or trial.entries[trial.best] + 2 <= top:
            return ()
        return (
            f"the best p may be larger: p above {self.p_at(top):,.0f} was not tried, since a run of it takes too long "
            "to simulate",
        )

    def around(self, j: int, steps: tuple[int, ...]) -> list[int]:
        """Return the entries so many steps from entry j, without the odd ones if runs are dear."""
        top = self.top
        entries = [j + step for step in steps if 0 <= j + step <= top]
        return [i for i in entries if (i - j) % 2 == 0] if self._is_dear(entries) else entries

    def _is_dear(self, entries: list[int]) -> bool:
        return ENOUGH * sum(map(self.cost_at, entries)) > self.budget

    def settle(self) -> Trial:
        """Find the best p and all that is to be said of it."""
        j = self._look()
        problems, runs = self._afford(j)
        by_entry: dict[int, Float64] = {}
        wanted, start, end = self.around(j, WIDE), 0.3, 0.8
        while True:
            missing = [i for i in wanted if i not in by_entry]
            ps = [self.p_at(i) for i in missing]
            curves = self.bench.run(ps, problems, runs, self._between(start, end))
            by_entry |= dict(zip(missing, curves, strict=True))
            trial = self._trial(by_entry)
            best = trial.entries[trial.best]
            if best == j:
                return trial
            j, wanted, start, end = best, self.around(best, NEAR), end, (1 + end) / 2
            # a larger p costs more: fewer runs from here on, and of all p the same ones
            problems, runs = np.minimum((problems, runs), self._afford(j)).tolist()
            by_entry = {i: curves[:problems, :runs] for i, curves in by_entry.items()}

    def _trial(self, by_entry: dict[int, Float64]) -> Trial:
        entries = tuple(sorted(by_entry))
        curves = np.stack([by_entry[i] for i in entries])
        return Trial(entries=entries, ps=tuple(map(self.p_at, entries)), steps=self.bench.steps, curves=curves)

    def _between(self, start: float, end: float) -> Callable[[float], None]:
        return lambda share: self.on_share(start + (end - start) * share)

    def _look(self) -> int:
        """Run the coarse grid a little; give the entry of the best p."""
        bench, top = self.bench, self.top
        best, lowest = 0, np.empty((0, 0))
        for j in range(0, top + 1, 2):
            problems, runs = self._glance(j)
            here = bench.run([self.p_at(j)], problems, runs)[0][..., 0, -1]  # (problems, runs)
            least = lowest[:problems, :runs].mean() if j else math.inf  # on the same runs
            if here.mean() < least:
                best, lowest, least = j, here, here.mean()
            gap = float(np.mean([problem.table.gap for problem in bench.problems[:problems]]))
            too_dear = gap * explorations(self.p_at(j + 2), self.n_arms, bench.horizon) > least
            if too_dear or (j >= best + 4 and here.mean() > TURNED * least):
                break
            self.on_share(0.3 * j / (top + 1))
        return best

    def _glance(self, j: int) -> tuple[int, int]:
        """Return how many problems the look at entry j has, and how many runs on each."""
        total = int(np.clip(LOOK * self.budget / self.cost_at(j), 4, GLANCE))
        problems = min(len(self.bench.problems), total)
        return problems, max(1, total // problems)

    def _afford(self, j: int) -> tuple[int, int]:
        """Return the problems and runs that the budget allows near entry j, where the user does not say."""
        n = len(self.bench.problems)
        total = int(np.clip(self.budget / sum(map(self.cost_at, self.around(j, WIDE))), FEWEST_RUNS, MOST_RUNS))
        problems = min(n, max(1, total // 2)) if self.problems is None else n
        return problems, max(2, total // problems) if self.runs is None else self.runs
