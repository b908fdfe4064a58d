"""The advice, and how it is found: from what is known of a problem to the policy and the p that lose least.

Plays the default and other policies step by step, and ContextualEpsilonGreedy (free units, evidence as the clock)
exactly in law, in jumps, so that long horizons cost little more than short ones. About ten seconds on two cores for
K, d <= 10 and T = 10^5.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from armlet.advice import words
from armlet.advice.comparison import Comparison, compare
from armlet.advice.pilot import ArmCheck, Posterior, SourceLike, as_source
from armlet.advice.problem import PLACE, SampledProblem, Source, theorem_p
from armlet.advice.runs import BUDGET, MOST_PROBLEMS, Bench, Progress, Search, Trial, checkpoints, mean_interval
from armlet.errors import InvalidValueError
from armlet.inference.intervals import spread
from armlet.inputs.settings import Objective, check_seed, one_of, optional, whole
from armlet.parallel import Seeds
from armlet.types import Float64, Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one p came to."""

    p: float
    mean: float  # regret, averaged over problems and runs
    interval: Interval  # 95 %, of the mean over such problems: what more simulation would narrow
    spread: Interval  # 5 to 95 % of single runs on single problems
    runs: int  # in all


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What exploration takes."""

    explored: float  # decisions, on average over runs
    share: float  # of the horizon
    lost: float  # reward, in the user's units


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """What another p would cost."""

    p: float
    mean: float
    extra: float  # relative to the recommended p: 0.2 is 20 % more regret


@dataclass(frozen=True, slots=True, kw_only=True)
class Sureness:
    """How sure the recommendation is."""

    low: float  # p from here
    high: float  # to here regret within 10 % of the best on the grid
    chance: float  # bootstrap probability that the recommended p does


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """The most that knowing the problem could save through another p of the grid, from an eighth to twice."""

    regret: float
    share: float  # of what the recommended p loses


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Which policy to take, what it loses, and how much to explore by p; `armlet.advise` makes one."""

    policies: Comparison  # the policy to take among them
    p: float  # of ContextualEpsilonGreedy, for a log to evaluate other policies from
    horizon: int
    n_arms: int  # the largest, if problems differ
    dim: int
    unit: str
    source: str
    problems: int
    runs: int  # all p of the grid together
    grid: tuple[Row, ...]  # every p on the same problems and seeds; every number below is taken from these runs
    bill: Bill
    found_by: int | None  # from here on 95 % of the runs earn 95 % of what is to be gained over random play
    half: Wrong | None  # None if half of p would not try every arm
    double: Wrong | None
    theorem_p: float | None  # what Theorem 2 asks for as printed: the median over problems
    theorem_reason: str  # why there is none, else empty
    sureness: Sureness
    more_data: Saving
    checks: tuple[ArmCheck, ...]  # of a pilot with propensities
    notes: tuple[str, ...]  # approximations and warnings

    def to_json(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold, with the answer in the words of the terminal and the page."""
        document = {"answer": words.headline(self), "for_a_log": words.for_a_log(self), **asdict(self)}
        for check, values in zip(self.checks, document["checks"], strict=True):
            values["agrees"] = check.agrees
        plain: dict[str, Any] = _plain(document)
        return plain

    @property
    def row(self) -> Row:
        """The recommended p on all problems and runs."""
        return next(row for row in self.grid if row.p == self.p)

    def lines(self, per_day: int | None = None) -> list[str]:
        """Put the advice into words; with traffic, times are told in days too."""
        return words.lines(self, per_day)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    return value


def silent(done: int, total: int) -> None:
    """Describe nothing."""


def advise(
    source: SourceLike,
    *,
    horizon: int,
    seed: int = 0,
    problems: int | None = None,
    runs: int | None = None,
    unit: str = "rewards",
    objective: Objective = "max",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Advice:
    """Recommend a policy, say what it will lose, and how much to explore for a log to evaluate other policies from.

    Parameters
    ----------
    source
        What is known: an environment, a function that draws environments from a generator (`FigureA.draw`), a `Prior`
        of ranges, or a `Pilot`, a log.
    horizon
        How many decisions there will be.
    seed
        Of everything that is drawn; the same seed gives the same advice, on any executor.
    problems, runs
        How many problems are sampled, and how often each is played with each p near the best; left out, as many as
        about ten seconds on two cores allow, by a count of operations.
    unit
        What rewards are counted in, for the words.
    objective
        "min" if a pilot's rewards are costs; environments and priors are rewards anyway.
    executor
        Where runs take place; threads, one for each processor, if left out.
    progress
        Told (done, total) as it goes, in hundredths.

    Examples
    --------
    >>> from armlet.environments import Customers
    >>> advice = advise(Customers.draw(np.random.default_rng(1)), horizon=10_000, runs=20, unit="clicks")
    >>> advice.policies.recommended.code, round(advice.policies.random)
    ('armlet.OccasionalOptimism()', 50)
    """
    horizon = whole(2)("horizon", horizon)  # type: ignore[assignment]
    optional(whole(1))("problems", problems)
    optional(whole(2))("runs", runs)
    one_of("max", "min")("objective", objective)
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(os.cpu_count())) if executor is None else executor
        drawn = as_source(source, horizon, objective)
        search = prepare(drawn, horizon, check_seed(seed), pool, problems, runs, BUDGET, _part(progress, 0, 50))
        trial = search.settle()
        policies = compare(search.bench, trial, _part(progress, 50, 99))
    advice = _answer(drawn, search.bench, trial, policies, unit)
    advice = replace(advice, notes=(*advice.notes, *search.note(trial)))
    progress(100, 100)
    return advice


def prepare(
    source: Source,
    horizon: int,
    seed: int,
    executor: Executor,
    problems: int | None,
    runs: int | None,
    budget: float,
    told: Callable[[float], None],
) -> Search:
    """Draw the problems and make ready to search for p on them."""
    listed = source.sample(problems or MOST_PROBLEMS, seed)
    n_arms = max(problem.n_arms for problem in listed)
    if horizon < n_arms:
        raise InvalidValueError(f"horizon is {horizon} but each of {n_arms} arms must be tried; give {n_arms} or more")
    bench = Bench(problems=listed, steps=checkpoints(horizon), seeds=Seeds(seed, PLACE), executor=executor)
    return Search(bench=bench, n_arms=n_arms, problems=problems, runs=runs, budget=budget, told=told)


def _part(progress: Progress, start: int, end: int) -> Callable[[float], None]:
    return lambda share: progress(round(start + (end - start) * share), 100)


def _answer(source: Source, bench: Bench, trial: Trial, policies: Comparison, unit: str) -> Advice:
    used = bench.problems[: trial.problems]
    p, mean = trial.ps[trial.best], float(trial.means[trial.best])
    asked, reason = _theorem(used)
    checks = source.checks() if isinstance(source, Posterior) else ()
    low, high = trial.close()
    saved = trial.saving()
    return Advice(
        policies=policies,
        p=p,
        horizon=bench.horizon,
        n_arms=max(problem.n_arms for problem in used),
        dim=max(problem.dim for problem in used),
        unit=unit,
        source=source.words(),
        problems=len(used),
        runs=trial.regret.size,
        grid=tuple(_row(trial, place) for place in range(len(trial.ps))),
        bill=_bill(trial, _gap(used)),
        found_by=found_by(trial, np.array([problem.table.gap for problem in used])),
        half=_wrong(trial, -2),
        double=_wrong(trial, 2),
        theorem_p=asked,
        theorem_reason=reason,
        sureness=Sureness(low=low, high=high, chance=trial.chance(bench.seeds.rng("chance"))),
        more_data=Saving(regret=saved, share=saved / mean if mean > 0 else 0.0),
        checks=checks,
        notes=(*_warnings(checks), *dict.fromkeys(note for problem in used for note in problem.notes)),
    )


def _gap(problems: list[SampledProblem]) -> float:
    return float(np.mean([problem.table.gap for problem in problems]))


def _row(trial: Trial, place: int) -> Row:
    sample = trial.sample(place)
    return Row(
        p=trial.ps[place],
        mean=float(trial.means[place]),
        interval=mean_interval(sample),
        spread=spread(sample.values, 0.9),
        runs=sample.values.size,
    )


def _bill(trial: Trial, gap: float) -> Bill:
    explored = float(trial.curves[trial.best, :, :, 2, -1].mean())
    return Bill(explored=explored, share=explored / float(trial.steps[-1]), lost=explored * gap)


def found_by(trial: Trial, gaps: Float64) -> int | None:
    """Return the step from which on exploitation is good in 95 % of the runs.

    Good: between any two later checkpoints, exploiting steps lose at most 5 % of what random play would have lost in
    as many steps. None if fewer than 95 % of the runs get there before the last stretch. `gaps` is what random play
    loses a step, by problem.
    """
    curves = trial.curves[trial.best]
    lost = np.diff(curves[:, :, 0] - curves[:, :, 1], axis=-1, prepend=0.0)
    exploiting = np.diff(trial.steps - curves[:, :, 2], axis=-1, prepend=0.0)
    bad = lost > 0.05 * gaps[:, None, None] * exploiting
    last = np.where(bad.any(axis=-1), bad.shape[-1] - bad[..., ::-1].argmax(axis=-1), 0)  # stretches up to the last bad
    worst = int(np.quantile(last, 0.95, method="higher"))
    if worst >= len(trial.steps):
        return None
    return 1 if worst == 0 else int(trial.steps[worst - 1]) + 1


def _wrong(trial: Trial, halves: int) -> Wrong | None:
    place = trial.place(halves)
    if place is None:
        return None
    mean, ours = float(trial.means[place]), float(trial.means[trial.best])
    return Wrong(p=trial.ps[place], mean=mean, extra=mean / ours - 1 if ours > 0 else 0.0)


def _theorem(problems: list[SampledProblem]) -> tuple[float | None, str]:
    asked: list[float] = []
    for problem in problems:
        try:
            asked.append(theorem_p(problem))
        except ValueError as reason:
            return None, str(reason)
    return median(asked), ""


def _warnings(checks: tuple[ArmCheck, ...]) -> list[str]:
    wrong = ", ".join(str(check.arm) for check in checks if not check.agrees)
    if not wrong:
        return []
    return [
        f"WARNING: the linear model and the propensities disagree about {wrong}: rewards may not be linear in the "
        "features, or the propensities are not those that were used; the advice leans on the model"
    ]
