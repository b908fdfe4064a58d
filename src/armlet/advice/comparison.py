"""What the default and other policies earn on the environments and seeds of the search for p, and an A/B test too.

In free units all; LinUCB and Thompson sampling with a few widths, of which some environments choose and all judge.
Every step is drawn (`kernel.simulate_steps`), so the cost grows with T. There is a budget of operations: costly
environments get fewer runs, and horizons that do not fit are cut short, which is said. What is earned follows from what
is lost: the best arm of every context pays so much, and a policy that much less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from armlet.advice.ab_test import LENGTHS, ABTask, Plan, play_test
from armlet.advice.ab_test import plan as plan_test
from armlet.advice.problem import SampledProblem, Stakes, stakes
from armlet.advice.runs import Bench, Sample, Trial, cost, difference, predictive, single_run
from armlet.environments.environment import FiniteEnvironment
from armlet.policies.contextual_epsilon_greedy import ContextualEpsilonGreedy
from armlet.policies.linucb import LinUCB
from armlet.policies.occasional_optimism import OccasionalOptimism
from armlet.policies.thompson_sampling import ThompsonSampling
from armlet.simulation.play import play_table
from armlet.types import Estimate, Float64, Int64, Interval

BUDGET: Final = 1e10  # nanoseconds of one core, by the estimate of `_cost`
FEWEST: Final = 4  # environments
MOST: Final = 128
WORTH: Final = 0.05  # of the default's loss: what another policy must save at least to be named before it
WIDTHS: Final = (0.25, 0.5, 1.0, 2.0)  # times the noise
FLOOR: Final = 0.02
MARKS: Final = 40  # decisions at which the picture over time has a point

Compiled: TypeAlias = OccasionalOptimism | LinUCB | ThompsonSampling | ContextualEpsilonGreedy

DEFAULT: Final = OccasionalOptimism()
FLOORED: Final = OccasionalOptimism(floor=FLOOR)
TUNED: Final[tuple[tuple[Compiled, ...], ...]] = (
    tuple(LinUCB(alpha=width) for width in WIDTHS),
    tuple(ThompsonSampling(v=width) for width in WIDTHS),
)
SETTINGS: Final = 2 + sum(map(len, TUNED))  # that are held against the default: the floor, p and every width


class StepTask(NamedTuple):
    """One run of a policy."""

    table: FiniteEnvironment
    policy: Compiled
    steps: Int64  # at which regret is kept, the last of them the horizon
    seeds: tuple[int, int]


def play_steps(task: StepTask) -> Float64:
    """Run a task and return its regret at each step that is asked for, (C,)."""
    return play_table(task.table, task.policy, task.steps, task.seeds, jumps=False).regret


@dataclass(frozen=True, slots=True, kw_only=True)
class Earnings:
    """What one choice earns, and what it loses against the best arm of every context."""

    name: str
    setting: str  # empty for the default, and for what is no policy
    code: str  # that makes it; empty for what is no policy
    total: float  # earned, on average over environments and runs; spent, if rewards are costs
    total_range: Interval  # 95 %, of a single run in a single environment, with the luck of its rewards
    gain: Estimate  # beyond the A/B test, on average, more is better; the intervals of all choices hold together
    gain_range: Interval  # 95 %, of a single run
    lost: float  # regret, on average
    lost_range: Interval  # 95 %, of a single run: where the user's own will lie
    difference: Estimate | None  # mean regret beyond the default's; the intervals of all settings hold together


@dataclass(frozen=True, slots=True, kw_only=True)
class ABTest:
    """An A/B test of planned length, and what another length would have done."""

    plan: Plan
    played: Earnings
    best_decisions: int  # of the lengths tried, the one that earned most in these very environments
    best_total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What is earned beyond doing nothing up to each decision: the average, and the range of a single run."""

    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """What is earned beyond doing nothing, as time goes by."""

    steps: tuple[int, ...]
    policy: Line  # the recommended one
    ab_test: Line
    most: tuple[float, ...]  # by always playing the best arm of every context, on average


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyComparison:
    """Policies, an A/B test and doing nothing, in the same environments with the same seeds."""

    horizon: int  # the advice's, or an earlier checkpoint if that costs too much
    problems: int
    runs: int  # on each
    rows: tuple[Earnings, ...]  # the default first, exploring by p last
    best: int  # the row to take: the default's unless another is clearly better
    price: Estimate  # what exploring by p loses beyond that row, on average
    price_range: Interval  # 95 %, in a single run
    ab_test: ABTest
    nothing: Earnings  # the current arm for every decision; if none is named, one arm that may be any
    random: Earnings  # every arm equally likely at every decision
    over_time: OverTime

    @property
    def default(self) -> Earnings:
        """What is played where policy= is left out."""
        return self.rows[0]

    @property
    def recommended(self) -> Earnings:
        """The policy to take."""
        return self.rows[self.best]

    @property
    def exploring(self) -> Earnings:
        """ContextualEpsilonGreedy with the recommended p, whose log tells what other policies would have earned."""
        return self.rows[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """What was lost by all that was played, at some steps, and what the environments pay."""

    steps: Int64  # (C,)
    policies: Sequence[tuple[Compiled, Float64]]  # regret, (n, runs, C): the default's first, exploring by p last
    test: Plan
    tests: Sequence[tuple[int, Float64]]  # regret of the A/B test by its length, the planned one first
    stakes: Sequence[Stakes]  # of each environment
    luck: Float64  # (n, runs): of rewards and contexts, in standard deviations
    sign: float  # -1 if rewards are costs
    current: int | None = None  # the arm that is played today

    @property
    def horizon(self) -> int:
        """The last step."""
        return int(self.steps[-1])

    def best(self) -> Float64:
        """Return what the best arm of every context pays a decision, (n,)."""
        return np.array([each.best for each in self.stakes])

    def worst(self) -> float:
        """Return the most that one arm for all contexts loses a decision, in any environment."""
        return max(float(each.losses.max()) for each in self.stakes)

    def nothing(self) -> list[Float64]:
        """Return what doing nothing loses a decision: by environment, of every arm that it may mean."""
        return [each.losses if self.current is None else each.losses[[self.current]] for each in self.stakes]


def compare(
    bench: Bench, trial: Trial, on_share: Callable[[float], None], sign: float = 1.0, current: int | None = None
) -> PolicyComparison:
    """Play the default, the others, an A/B test and exploring by p in some of the environments of a bench."""
    best_p = trial.ps[trial.best]
    horizon, n, runs = _plan(bench, trial)
    few = min(n, max(FEWEST, n // 4))
    steps = np.unique(np.linspace(0, horizon, MARKS + 1).round().astype(np.int64)[1:])
    tasks = (sum(map(len, TUNED)) * few + 2 * n + len(TUNED) * (n - few)) * runs
    arena = _Arena(bench, steps, runs, _Counter(tasks, on_share))
    exploring = bench.run([best_p], n, runs)[0][:, :, 0]  # (n, runs, checkpoints)
    return compared(
        Contest(
            steps=steps,
            policies=[
                (DEFAULT, arena.play(DEFAULT, range(n))),
                (FLOORED, arena.play(FLOORED, range(n))),
                *(_best_width(arena, policies, few, n) for policies in TUNED),
                (ContextualEpsilonGreedy(p=best_p), _at(steps, bench.steps, exploring)),
            ],
            test=(test := plan_test(bench.problems, horizon)),
            tests=[(length, arena.play_test(length, n)) for length in _lengths(test, horizon)],
            stakes=[stakes(problem.table) for problem in bench.problems[:n]],
            luck=bench.seeds.rng("luck").standard_normal((n, runs)),
            sign=sign,
            current=current,
        )
    )


def _lengths(test: Plan, horizon: int) -> list[int]:
    """Return the lengths of A/B tests, the planned one first."""
    others = {min(horizon, max(test.n_arms, round(test.decisions * times))) for times in LENGTHS}
    return [test.decisions, *sorted(others - {test.decisions})]


def _at(steps: Int64, known: Int64, curves: Float64) -> Float64:
    """Return curves at other steps than they are known at; the last of those steps is among these, and exact."""
    flat = curves.reshape(-1, len(known))
    start, rows = np.concatenate([[0], known]), [np.concatenate([[0.0], row]) for row in flat]
    return np.array([np.interp(steps, start, row) for row in rows]).reshape(*curves.shape[:-1], len(steps))


class _Counter:
    """Tells which share is done."""

    def __init__(self, total: int, on_share: Callable[[float], None]) -> None:
        self.done, self.total, self.on_share = 0, total, on_share

    def add(self) -> None:
        self.done += 1
        self.on_share(self.done / self.total)


class _Arena(NamedTuple):
    bench: Bench
    steps: Int64
    runs: int
    counter: _Counter

    def play(self, policy: Compiled, problems: Iterable[int]) -> Float64:
        """Return regrets, (problems, runs, C)."""
        bench = self.bench
        tasks = [
            StepTask(bench.problems[i].table, policy, self.steps, bench.pair(i, r))
            for i in problems
            for r in range(self.runs)
        ]
        regrets = []
        for regret in bench.executor.map(play_steps, tasks):
            regrets.append(regret)
            self.counter.add()
        return np.array(regrets).reshape(-1, self.runs, len(self.steps))

    def play_test(self, length: int, n: int) -> Float64:
        """Return regrets of an A/B test, (n, runs, C)."""
        bench = self.bench
        tasks = [
            ABTask(bench.problems[i].table, length, self.steps, bench.pair(i, r))
            for i in range(n)
            for r in range(self.runs)
        ]
        return np.array(list(bench.executor.map(play_test, tasks))).reshape(n, self.runs, len(self.steps))


def _plan(bench: Bench, trial: Trial) -> tuple[int, int, int]:
    """Return the horizon, and how many environments and runs on each fit into the budget."""
    each = float(np.mean([_cost(problem) for problem in bench.problems]))
    steps = bench.steps[bench.steps * each * FEWEST <= BUDGET]
    horizon = int(steps[-1]) if len(steps) else int(bench.steps[0])
    by_p = 1e3 * float(np.mean([cost(problem, trial.ps[trial.best], bench.horizon) for problem in bench.problems]))
    total = int(np.clip(BUDGET / (each * horizon + by_p), FEWEST, MOST))
    n = min(total, len(bench.problems))
    return horizon, n, min(trial.runs, max(1, total // n))


def _cost(problem: SampledProblem) -> float:
    """Estimate the nanoseconds of one step of all policies, within a factor of about two."""
    K, Kd = problem.n_arms, problem.n_arms * problem.dim
    widths = sum(map(len, TUNED)) / 4 + len(TUNED) * 3 / 4  # a quarter of the environments plays all widths
    return 2 * (250 + 5 * Kd) + widths * (200 + 30 * K + 15 * Kd)


def _best_width(arena: _Arena, policies: tuple[Compiled, ...], few: int, n: int) -> tuple[Compiled, Float64]:
    """Choose among widths on a few environments, and play the best one on the others too."""
    first = [arena.play(policy, range(few)) for policy in policies]
    best = int(np.argmin([regret[..., -1].mean() for regret in first]))
    return policies[best], np.concatenate([first[best], arena.play(policies[best], range(few, n))])


def compared(contest: Contest) -> PolicyComparison:
    """Return what everybody earns, and whom to take."""
    judge = _Judge(contest)
    default = contest.policies[0][1][..., -1]
    rows = tuple(
        judge.played(policy, curves[..., -1], None if place == 0 else difference(curves[..., -1], default, SETTINGS))
        for place, (policy, curves) in enumerate(contest.policies)
    )
    clear = [place for place, row in enumerate(rows) if row.difference is not None and _is_clear(row, rows[0])]
    best = min(clear, key=lambda place: rows[place].lost, default=0)
    taken = contest.policies[best][1]
    n, runs = default.shape
    random = contest.horizon * np.array([each.losses.mean() for each in contest.stakes])
    return PolicyComparison(
        horizon=contest.horizon,
        problems=n,
        runs=runs,
        rows=rows,
        best=best,
        price=difference(contest.policies[-1][1][..., -1], taken[..., -1], SETTINGS),
        price_range=single_run(
            _paired(contest.policies[-1][1][..., -1] - taken[..., -1]), contest.horizon * contest.worst()
        ),
        ab_test=judge.ab_test(),
        nothing=judge.nothing(),
        random=judge.row("random play", np.broadcast_to(random[:, None], (n, runs))),
        over_time=_over_time(contest, taken),
    )


def _is_clear(row: Earnings, default: Earnings) -> bool:
    """Return whether a policy saves enough to matter, and surely saves something."""
    d = row.difference
    return d is not None and d.high < 0 and -d.value >= WORTH * default.lost


class _Judge:
    """Turns what was lost into what was earned, and holds it against the A/B test."""

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self.tested = contest.tests[0][1][..., -1]  # (n, runs)
        self.best = contest.horizon * contest.best()
        deviations = np.array([each.deviation for each in contest.stakes])
        self.luck = contest.horizon**0.5 * deviations[:, None] * contest.luck  # (n, runs)
        self.most = contest.horizon * max(float(each.losses.mean()) for each in contest.stakes)
        self.shares = all(each.noise == "bernoulli" for each in contest.stakes)

    def played(self, policy: Compiled, values: Float64, beyond: Estimate | None) -> Earnings:
        """Put what a policy lost, (environments, runs), into words and numbers."""
        name, setting = type(policy).__name__, given(policy)
        code = f"armlet.{name}({setting})"
        return self._row(name, setting.replace("=", " = "), code, values, _paired(values), beyond)

    def row(self, name: str, values: Float64) -> Earnings:
        """Return what something that is no policy earns and loses."""
        return self._row(name, "", "", values, _paired(values), None)

    def nothing(self) -> Earnings:
        """Return what one arm for every decision earns: the current one or, on average and in its range, any."""
        losses, runs = [self.contest.horizon * each for each in self.contest.nothing()], self.luck.shape[1]
        means = np.array([each.mean() for each in losses])[:, None].repeat(runs, axis=1)
        which = np.repeat(np.arange(len(losses)), [runs * len(each) for each in losses])
        return self._row("doing nothing", "", "", means, Sample(np.concatenate(losses).repeat(runs), which), None)

    def ab_test(self) -> ABTest:
        """Return the planned test, and which length did best in hindsight."""
        length, curves = min(self.contest.tests, key=lambda test: float(test[1][..., -1].mean()))
        best = self.contest.sign * float(self.best.mean() - curves[..., -1].mean())
        return ABTest(
            plan=self.contest.test,
            played=self.row("A/B test", self.tested),
            best_decisions=length,
            best_total=best,
        )

    def _row(
        self, name: str, setting: str, code: str, means: Float64, runs: Sample, beyond: Estimate | None
    ) -> Earnings:
        """Return a row, from mean losses by environment and run, and from those of all single runs that may be."""
        which = np.arange(runs.values.size) % self.luck.shape[1]
        gained = Sample(self.tested[runs.problems, which] - runs.values, runs.problems)
        earned = self.best[runs.problems] - runs.values + self.luck[runs.problems, which]
        return Earnings(
            name=name,
            setting=setting,
            code=code,
            total=self.contest.sign * float(self.best.mean() - means.mean()),
            total_range=self._inside(single_run(Sample(self.contest.sign * earned, runs.problems))),
            gain=difference(self.tested, means, SETTINGS),
            gain_range=single_run(gained, self.contest.horizon * self.contest.worst()),
            lost=float(means.mean()),
            lost_range=predictive(runs, self.most),
            difference=beyond,
        )

    def _inside(self, ends: Interval) -> Interval:
        """Return an interval of totals; where rewards are 0 or 1, no more of it than there can be."""
        return Interval(max(0.0, ends.low), min(float(self.contest.horizon), ends.high)) if self.shares else ends


def _paired(values: Float64) -> Sample:
    n, runs = values.shape
    return Sample(values.ravel(), np.repeat(np.arange(n), runs))


def _over_time(contest: Contest, taken: Float64) -> OverTime:
    """Return what is earned beyond doing nothing, up to each step."""
    idle = np.array([each.mean() for each in contest.nothing()])  # (n,): lost a decision
    zero = idle[:, None, None] * contest.steps  # (n, 1, C)
    return OverTime(
        steps=tuple(contest.steps.tolist()),
        policy=_line(zero - taken, contest),
        ab_test=_line(zero - contest.tests[0][1], contest),
        most=tuple((idle.mean() * contest.steps).tolist()),
    )


def _line(gains: Float64, contest: Contest) -> Line:
    worst, steps = contest.worst(), contest.steps.tolist()
    ranges = [single_run(_paired(gains[..., at]), worst * step) for at, step in enumerate(steps)]
    low, high = zip(*ranges, strict=True)
    return Line(mean=tuple(gains.mean(axis=(0, 1)).tolist()), low=low, high=high)


def given(policy: Compiled) -> str:
    """Return the setting that makes a policy, as code.

    Examples
    --------
    >>> given(ContextualEpsilonGreedy(p=64.0)), given(DEFAULT)
    ('p=64', '')
    """
    match policy:
        case LinUCB(alpha=float(width)):
            return f"alpha={_exact(width)}"
        case ThompsonSampling(v=float(width)):
            return f"v={_exact(width)}"
        case ContextualEpsilonGreedy(p=float(p)):
            return f"p={_exact(p)}"
        case OccasionalOptimism(floor=floor) if floor:
            return f"floor={_exact(floor)}"
    return ""


def _exact(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
