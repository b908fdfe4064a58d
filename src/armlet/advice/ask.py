"""The advice, and how it is found: from what is known of a problem to the policy that earns most, and to p.

Plays the default and other policies step by step, and ContextualEpsilonGreedy (free units, evidence as the clock)
exactly in law, in jumps, so that long horizons cost little more than short ones. About ten seconds on two cores for
K, d <= 10 and T = 10^5.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from html import escape
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from armlet.advice import words
from armlet.advice.comparison import PolicyComparison, compare
from armlet.advice.pilot import ArmCheck, Pilot, Posterior, SourceLike, as_source
from armlet.advice.problem import PLACE, Prior, SampledProblem, Source, theorem_p
from armlet.advice.runs import BUDGET, MOST_PROBLEMS, Bench, Progress, Search, Trial, checkpoints, mean_interval
from armlet.errors import InvalidValueError
from armlet.inference.intervals import spread
from armlet.inputs.settings import Objective, check_seed, one_of, optional, positive, whole
from armlet.inputs.table import Table
from armlet.parallel import Seeds, notebook_bar
from armlet.report import notebook
from armlet.report.result import Columns, Result, fields_of
from armlet.types import Arm, Float64, Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST_CURRENCY: Final = 8


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
class Money:
    """What one unit of reward is worth."""

    value: float
    currency: str

    def __post_init__(self) -> None:
        self.check(self.value, self.currency)

    @staticmethod
    def check(value: object, currency: object, names: tuple[str, str] = ("value", "currency")) -> None:
        """Refuse what is no amount of money."""
        positive(fix="give what one unit of reward is worth, such as 0.30")(names[0], value)
        if not (isinstance(currency, str) and 1 <= len(currency.strip()) <= LONGEST_CURRENCY):
            text = f"give a word of at most {LONGEST_CURRENCY} letters, such as EUR"
            raise InvalidValueError(f"{names[1]} is {currency!r}; {text}")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Advice(Result):
    """Which policy to take, what it earns, and how much to explore by p; `armlet.advise` makes one."""

    policies: PolicyComparison  # the policy to take among them, an A/B test and doing nothing
    p: float  # of ContextualEpsilonGreedy, for a log to evaluate other policies from
    horizon: int
    n_arms: int  # the largest, if problems differ
    dim: int
    unit: str
    objective: Objective
    money: Money | None
    mean: Literal["known", "unknown"]  # of a random arm; where unknown, totals are counted from there
    current: Arm | None  # the arm that is played today
    per_day: int | None  # decisions
    source: str
    problems: int
    runs: int  # all p of the grid together
    seed: int
    command: str  # that asked
    grid: tuple[Row, ...]  # every p on the same problems and seeds; all that is said of p is taken from these runs
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

    @property
    def row(self) -> Row:
        """The recommended p on all problems and runs."""
        return next(row for row in self.grid if row.p == self.p)

    def columns(self) -> Columns:
        """Return what every choice earns, by columns."""
        return words.frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types, with the answer in the words of the terminal and the page."""
        answer = {"answer": words.headline(self), "in_money": words.in_money(self), "for_a_log": words.for_a_log(self)}
        document = {**answer, "policy": self.policies.recommended.code, **fields_of(self)}
        for check, values in zip(self.checks, document["checks"], strict=True):
            values["agrees"] = check.agrees
        if self.per_day is not None:
            document["found_by_day"] = None if self.found_by is None else words.day(self.found_by, self.per_day)
        return document

    def plot(self) -> Figure:
        """Draw what is earned beyond doing nothing over time, by the policy to take and by an A/B test."""
        from armlet.advice.page import over_time  # matplotlib is heavy

        return over_time(self)

    def lines(self) -> list[str]:
        """Put the advice into words for a terminal; with traffic, times are in days too."""
        return words.lines(self)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return "\n".join(words.answer(self))

    def _title(self) -> str:
        return words.title(self)

    def _html(self) -> list[str]:
        said = [f"<p>{escape(sentence)}</p>" for sentence in words.answer(self)]
        return [*said, notebook.table(self.columns()), notebook.note(words.basis(self))]

    def _page(self) -> str:
        from armlet.advice.page import render  # matplotlib is heavy

        return render(self)


def advise(
    source: SourceLike,
    *,
    horizon: int,
    seed: int = 0,
    problems: int | None = None,
    runs: int | None = None,
    unit: str = "rewards",
    objective: Objective = "max",
    value: float | None = None,
    currency: str | None = None,
    current: Arm | None = None,
    per_day: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Recommend a policy, and say what it earns next to an A/B test and to doing nothing.

    Parameters
    ----------
    source
        What is known: an environment, a function that draws environments from a generator (`FigureA.draw`), a `Prior`
        of ranges, or a log: a `Pilot`, or an `armlet.Table` with features.
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
        "min" if rewards are costs.
    value, currency
        What one unit of reward is worth, such as 0.30 and "EUR"; both or neither.
    current
        The arm that is played today, if one of a pilot or of a single environment is; else doing nothing means one arm
        that may be any.
    per_day
        Decisions a day, to give times in days too.
    executor
        Where runs take place; threads, one for each processor, if left out.
    progress
        Receives (done, total) as it goes, in hundredths; a bar in a notebook and nothing elsewhere if left out.

    Examples
    --------
    >>> from armlet.environments import Customers
    >>> advice = advise(Customers.draw(np.random.default_rng(1)), horizon=10_000, runs=20, unit="clicks")
    >>> advice.policies.recommended.code, round(advice.policies.random.lost)
    ('armlet.OccasionalOptimism()', 50)
    """
    horizon = whole(2)("horizon", horizon)  # type: ignore[assignment]
    optional(whole(1))("problems", problems)
    optional(whole(2))("runs", runs)
    optional(whole(1))("per_day", per_day)
    one_of("max", "min")("objective", objective)
    source = Pilot.from_table(source) if isinstance(source, Table) else source
    money, place, sign = check_money(value, currency), place_of(current, source), 1.0 if objective == "max" else -1.0
    progress = notebook_bar("advising") if progress is None else progress
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(os.cpu_count())) if executor is None else executor
        drawn = as_source(source, horizon, objective)
        search = prepare(drawn, horizon, check_seed(seed), pool, problems, runs, BUDGET, _part(progress, 0, 40))
        trial = search.settle()
        policies = compare(search.bench, trial, _part(progress, 40, 99), sign, place)
    request = AdviceRequest(
        unit=unit,
        objective=objective,
        money=money,
        mean="unknown" if isinstance(source, Prior) and source.mean is None else "known",
        current=current,
        per_day=per_day,
        seed=seed,
    )
    advice = _answer(drawn, search.bench, trial, policies, request)
    advice = replace(advice, notes=(*advice.notes, *search.note(trial)))
    progress(100, 100)
    return advice


class AdviceRequest(NamedTuple):
    """The arguments of a call that only words depend on."""

    unit: str
    objective: Objective
    money: Money | None
    mean: Literal["known", "unknown"]
    current: Arm | None
    per_day: int | None
    seed: int


def place_of(arm: Arm | None, source: SourceLike) -> int | None:
    """Return the place of the arm that is played today; refuse one that cannot be distinguished from the others."""
    if arm is None:
        return None
    names: list[Arm]
    if isinstance(source, Table):
        names = list(source.arms)
    elif isinstance(source, Pilot):
        names = source.arm_names
    elif isinstance(source, Prior) or not hasattr(source, "n_arms"):
        raise InvalidValueError(
            f"current is {arm!r}, but in a guess or a law of environments no arm is known from another; leave it out"
        )
    else:
        names = list(range(source.n_arms))
    if arm not in names:
        raise InvalidValueError(f"current is {arm!r}; choose one of {', '.join(map(repr, names))}")
    return names.index(arm)


def check_money(value: float | None, currency: str | None) -> Money | None:
    """Return what a unit of reward is worth; refuse one of both without the other."""
    if value is None and currency is None:
        return None
    if value is None:
        raise InvalidValueError(f"currency is {currency!r} but value is missing; give what one unit of reward is worth")
    if currency is None:
        raise InvalidValueError(f"value is {value!r} but currency is missing; give one, such as 'EUR'")
    return Money(value=value, currency=currency)


def prepare(
    source: Source,
    horizon: int,
    seed: int,
    executor: Executor,
    problems: int | None,
    runs: int | None,
    budget: float,
    on_share: Callable[[float], None],
) -> Search:
    """Draw the problems and make ready to search for p on them."""
    listed = source.sample(problems or MOST_PROBLEMS, seed)
    n_arms = max(problem.n_arms for problem in listed)
    if horizon < n_arms:
        raise InvalidValueError(f"horizon is {horizon} but each of {n_arms} arms must be tried; give {n_arms} or more")
    bench = Bench(problems=listed, steps=checkpoints(horizon), seeds=Seeds(seed, PLACE), executor=executor)
    return Search(bench=bench, n_arms=n_arms, problems=problems, runs=runs, budget=budget, on_share=on_share)


def _part(progress: Progress, start: int, end: int) -> Callable[[float], None]:
    return lambda share: progress(round(start + (end - start) * share), 100)


def _answer(source: Source, bench: Bench, trial: Trial, policies: PolicyComparison, request: AdviceRequest) -> Advice:
    used = bench.problems[: trial.problems]
    p, mean = trial.ps[trial.best], float(trial.means[trial.best])
    theorem, reason = _theorem(used)
    checks = source.checks() if isinstance(source, Posterior) else ()
    low, high = trial.close()
    saved = trial.saving()
    return Advice(
        policies=policies,
        p=p,
        horizon=bench.horizon,
        n_arms=max(problem.n_arms for problem in used),
        dim=max(problem.dim for problem in used),
        **request._asdict(),
        command=f"armlet.advise(..., horizon={bench.horizon}, seed={request.seed})",
        source=source.words(),
        problems=len(used),
        runs=trial.regret.size,
        grid=tuple(_row(trial, place) for place in range(len(trial.ps))),
        bill=_bill(trial, _gap(used)),
        found_by=found_by(trial, np.array([problem.table.gap for problem in used])),
        half=_wrong(trial, -2),
        double=_wrong(trial, 2),
        theorem_p=theorem,
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
    ps: list[float] = []
    for problem in problems:
        try:
            ps.append(theorem_p(problem))
        except ValueError as reason:
            return None, str(reason)
    return median(ps), ""


def _warnings(checks: tuple[ArmCheck, ...]) -> list[str]:
    wrong = ", ".join(str(check.arm) for check in checks if not check.agrees)
    if not wrong:
        return []
    return [
        f"WARNING: the linear model and the propensities disagree about {wrong}: rewards may not be linear in the "
        "features, or the propensities are not those that were used; the advice leans on the model"
    ]
