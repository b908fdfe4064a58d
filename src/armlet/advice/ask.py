"""`armlet.advise`: from what is known of a problem to the p that regrets least on such problems.

Simulates Algorithm 1 (Section 4) exactly in law, in jumps, so long horizons cost little more than short ones. About ten
seconds on two cores for K, d <= 10 and T = 10^5.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from statistics import median
from typing import Final

import numpy as np

from armlet.advice.answer import Advice, Bill, Regret, Row, Saving, Sureness, Wrong
from armlet.advice.others import Comparison, compare
from armlet.advice.pilot import ArmCheck
from armlet.advice.posterior import Posterior
from armlet.advice.problem import Problem, Source, theorem_p
from armlet.advice.runs import Bench, Progress, checkpoints, explorations, pairs
from armlet.advice.search import MOST_PROBLEMS, Found, Search
from armlet.advice.sources import SourceLike, as_source
from armlet.advice.spread import Sample, chance_within, mean_interval, predictive, spread
from armlet.core.checks import one_of, optional, whole
from armlet.core.settings import Objective, check_seed
from armlet.core.types import Float64

OWN: Final = (0.0, 0.1, 0.25, 0.5, 1.0)  # how much a problem's own runs count in the choice of its own p


def silent(done: int, total: int) -> None:
    """Say nothing."""


def advise(
    source: SourceLike,
    *,
    horizon: int,
    seed: int = 0,
    problems: int | None = None,
    runs: int | None = None,
    unit: str = "reward",
    objective: Objective = "max",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Advice:
    """Recommend how much to explore, and say what it will cost.

    Parameters
    ----------
    source
        What is known: a world, a function that draws worlds from a generator (`FigureA.draw`), a `Prior` of ranges, or
        a `Pilot`, a log.
    horizon
        How many decisions there will be.
    seed
        Of everything that is drawn; the same seed gives the same advice, whatever the executor.
    problems, runs
        How many problems are sampled, and how often each is played with each p near the best; left out, as many as
        about ten seconds on two cores allow, by a count of operations.
    unit
        What rewards are counted in, for the words.
    objective
        "min" if a pilot's rewards are costs; worlds and priors are rewards anyway.
    executor
        Where runs take place; threads, one for each processor, if left out.
    progress
        Told (done, total) as it goes, in hundredths.

    Examples
    --------
    >>> from armlet.environments import Customers
    >>> advice = advise(Customers.draw(np.random.default_rng(1)), horizon=10_000, runs=20, unit="clicks")
    >>> advice.horizon, advice.n_arms, round(advice.regret.random)
    (10000, 2, 50)
    """
    horizon = whole(2)("horizon", horizon)  # type: ignore[assignment]
    optional(whole(1))("problems", problems)
    optional(whole(2))("runs", runs)
    one_of("max", "min")("objective", objective)
    drawn = as_source(source, horizon, objective)
    listed = drawn.sample(problems or MOST_PROBLEMS, check_seed(seed))
    n_arms = max(problem.n_arms for problem in listed)
    if horizon < n_arms:
        raise ValueError(f"horizon is {horizon} but each of {n_arms} arms must be tried; give {n_arms} or more")
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(os.cpu_count())) if executor is None else executor
        bench = Bench(problems=listed, steps=checkpoints(horizon), seed=seed, executor=pool)
        told = _part(progress, 0, 60)
        search = Search(bench=bench, n_arms=n_arms, horizon=horizon, problems=problems, runs=runs, told=told)
        found = search.settle()
        others = compare(bench, found, _part(progress, 60, 99))
    advice = _answer(drawn, bench, found, others, unit)
    advice = replace(advice, notes=(*advice.notes, *search.note()))
    progress(100, 100)
    return advice


def _part(progress: Progress, start: int, end: int) -> Callable[[float], None]:
    return lambda share: progress(round(start + (end - start) * share), 100)


def _answer(source: Source, bench: Bench, found: Found, others: Comparison, unit: str) -> Advice:
    used = bench.problems[: found.problems]
    horizon, p = int(bench.steps[-1]), found.p
    asked, reason = _theorem(used)
    checks = source.checks() if isinstance(source, Posterior) else ()
    return Advice(
        p=p,
        horizon=horizon,
        n_arms=max(problem.n_arms for problem in used),
        dim=max(problem.dim for problem in used),
        unit=unit,
        source=source.words(),
        problems=len(used),
        runs=sum(map(len, bench.results.values())),
        grid=tuple(_row(bench, q) for q in sorted(bench.results)),
        regret=_regret(bench, found),
        bill=_bill(used, p, horizon),
        found_by=found_by(bench, found),
        half=_wrong(bench, found, p / 2),
        double=_wrong(bench, found, p * 2),
        theorem_p=asked,
        theorem_reason=reason,
        sureness=_sureness(bench, found),
        more_data=_saving(bench, found),
        others=others,
        checks=checks,
        notes=(*_warnings(checks), *dict.fromkeys(note for problem in used for note in problem.notes)),
    )


def _row(bench: Bench, p: float) -> Row:
    sample = bench.sample(p)
    v = sample.values
    return Row(p=p, mean=float(v.mean()), interval=mean_interval(sample), spread=spread(v, 0.9), runs=v.size)


def _regret(bench: Bench, found: Found) -> Regret:
    sample = bench.sample(found.p)
    gap = float(np.mean([problem.table.gap for problem in bench.problems[: found.problems]]))
    random = gap * int(bench.steps[-1])
    return Regret(
        mean=float(sample.values.mean()),
        interval=mean_interval(sample),
        predictive=predictive(sample, random),
        random=random,
        best=best_apart(bench, found),
    )


def _bill(problems: list[Problem], p: float, horizon: int) -> Bill:
    explored = explorations(p, horizon)
    lost = explored * float(np.mean([problem.table.gap for problem in problems]))
    return Bill(explored=explored, share=explored / horizon, lost=lost)


def best_apart(bench: Bench, found: Found) -> float:
    """Estimate the mean regret if every problem had its own p.

    That p is chosen on half of a problem's runs and judged on the others, and the other way round: the least of
    several noisy means would flatter it. How far to trust a problem's own few runs is tried out too.
    """
    runs = max(2, found.runs // 2)  # what the p further off have, too
    known = _grid_with(bench, found.problems, runs)
    values = np.stack([bench.curves(q, found.problems, runs)[:, :, 0, -1] for q in known])  # (grid, problems, runs)
    even, odd = values[:, :, ::2].mean(axis=2), values[:, :, 1::2].mean(axis=2)
    shared = [(_judge(even, odd, own) + _judge(odd, even, own)) / 2 for own in OWN]
    return bench.mean(found.p) - max(0.0, shared[0] - min(shared))


def _judge(choose: Float64, judge: Float64, own: float) -> float:
    """Choose by a problem's own runs, pulled towards all problems' average; judge by other runs."""
    score = own * choose + (1 - own) * choose.mean(axis=1, keepdims=True)
    return float(judge[score.argmin(axis=0), np.arange(choose.shape[1])].mean())


def _grid_with(bench: Bench, problems: int, runs: int) -> list[float]:
    wanted = pairs(problems, runs)
    return [p for p in sorted(bench.results) if bench.has(p, wanted)]


def found_by(bench: Bench, found: Found) -> int | None:
    """Give the step from which on exploitation is good in 95 % of the runs.

    Good: between any two later checkpoints, exploiting steps lose at most 5 % of what random play would have lost in
    as many steps. None if fewer than 95 % of the runs get there before the last stretch.
    """
    curves = bench.curves(found.p, found.problems, found.runs)
    lost = np.diff(curves[:, :, 0] - curves[:, :, 1], axis=-1, prepend=0.0)
    exploiting = np.diff(bench.steps - curves[:, :, 2], axis=-1, prepend=0.0)
    gaps = np.array([problem.table.gap for problem in bench.problems[: found.problems]])[:, None, None]
    bad = lost > 0.05 * gaps * exploiting
    last = np.where(bad.any(axis=-1), bad.shape[-1] - bad[..., ::-1].argmax(axis=-1), 0)  # stretches up to the last bad
    worst = int(np.quantile(last, 0.95, method="higher"))
    if worst >= len(bench.steps):
        return None
    return 1 if worst == 0 else int(bench.steps[worst - 1]) + 1


def _wrong(bench: Bench, found: Found, other: float) -> Wrong | None:
    wanted = pairs(found.problems, found.runs)
    near = [q for q in bench.results if q != found.p and abs(q - other) <= 1 and bench.has(q, wanted)]
    if not near:
        return None
    mean, ours = bench.mean(near[0], wanted), bench.mean(found.p, wanted)
    return Wrong(p=near[0], mean=mean, extra=mean / ours - 1 if ours > 0 else 0.0)


def _theorem(problems: list[Problem]) -> tuple[float | None, str]:
    asked: list[float] = []
    for problem in problems:
        try:
            asked.append(theorem_p(problem))
        except ValueError as reason:
            return None, str(reason)
    return median(asked), ""


def _sureness(bench: Bench, found: Found) -> Sureness:
    means = {q: bench.mean(q) for q in sorted(bench.results)}
    good = [q for q in means if means[q] <= 1.1 * means[found.p]]
    grid = _grid_with(bench, found.problems, found.runs)
    wanted = pairs(found.problems, found.runs)
    places = np.array([i for i, _ in wanted])
    finals = [np.array([bench.results[q][pair][0, -1] for pair in wanted]) for q in grid]
    rows = np.stack([Sample(values, places).independent() for values in finals])
    return Sureness(low=min(good), high=max(good), chance=chance_within(rows, grid.index(found.p), 1.1, bench.seed))


def _saving(bench: Bench, found: Found) -> Saving:
    mean = bench.mean(found.p)
    saved = mean - best_apart(bench, found)
    return Saving(regret=saved, share=saved / mean if mean > 0 else 0.0)


def _warnings(checks: tuple[ArmCheck, ...]) -> list[str]:
    wrong = ", ".join(str(check.arm) for check in checks if not check.agrees)
    if not wrong:
        return []
    return [
        f"WARNING: the linear model and the propensities disagree about {wrong}: rewards may not be linear in the "
        "features, or the propensities are not those that were used; the advice leans on the model"
    ]
