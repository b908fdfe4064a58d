"""The commands `armlet compare`, `advise` and `simulate`: policies in environments by name."""

from __future__ import annotations

import argparse

from armlet import parallel
from armlet.advice.command import ask, read_request
from armlet.cli.answer import Answer
from armlet.cli.command import (
    PROPENSITY,
    REPEATED,
    Work,
    arg,
    between,
    command,
    count,
    engine,
    group,
    named_environment,
    named_policy,
    names,
    out_folder,
    progress,
    seed,
)
from armlet.simulation import compare as runs

RUNS = arg("--runs", type=count, default=20, metavar="N", help="independent runs; default: 20")
SEED = seed("the environment and all runs", 2013)
VERBOSE = arg("--verbose", action="store_true", help="also print the environment's constants and what theory says")


@command(
    named_environment("default: FigureA", default="FigureA"),
    named_policy(REPEATED, "default: OccasionalOptimism and six others", action="append", default=[]),
    arg("--horizon", type=count, default=10_000, metavar="T", help="steps in a run; default: 10000"),
    RUNS,
    SEED,
    *engine(),
    out_folder("results/compare"),
    VERBOSE,
    extras=("matplotlib", "pyarrow", "distributed"),
)
def compare(a: argparse.Namespace) -> Work:
    """Run several policies on the same runs of one environment; rank them and draw their regret.

    examples:
      armlet compare
      armlet compare --policy Algorithm1:p=24 --policy Algorithm1:p=600 --horizon 1e5
      armlet compare --environment DisplayAds --policy LinUCB:alpha=0.5 --policy OFUL --runs 50
      armlet compare --environment Linear:dim=10 --policy OFUL --policy ThompsonSampling:v=1

    A comparison that was interrupted or killed continues if the same command is given again.
    """
    jobs = runs.make_jobs(a.environment, a.policy, a.horizon, a.runs, a.seed)
    where = parallel.make_pool(a.engine, workers=a.workers)

    def work() -> Answer:
        ranking = runs.compare(jobs, engine=where, out=a.out, progress=progress(a, "simulating"))
        return Answer(ranking, ranking.lines(theory=a.verbose))

    return work


@command(
    group(
        "how many decisions there will be",
        arg("--horizon", type=count, metavar="T", help="in all, such as 50000, 50k or 5e4"),
        arg("--per-day", type=count, metavar="N", help="decisions a day; times are then told in days too"),
        arg("--days", type=count, metavar="N", help="with --per-day, in place of --horizon"),
    ),
    group(
        "what is known: a guess",
        arg("--arms", type=between, metavar="K", help="how many arms: a number, or a range as in 3..6"),
        arg("--dim", type=between, metavar="D", help="values in a context, a constant 1 among them"),
        arg(
            "--effect",
            type=between,
            metavar="X",
            help="what playing at random loses against the best arm, a decision: "
            "a number, or a range as in 0.005..0.02",
        ),
        arg("--noise", type=between, metavar="X", help="standard deviation of a reward around its mean"),
        arg("--mean", type=between, metavar="X", help="what a random arm earns a decision, for real totals"),
        arg("--clicks", type=between, metavar="X", help="rewards are 0 or 1: the share of 1 at random"),
    ),
    group(
        "what is known: an environment",
        named_environment("every problem draws again"),
    ),
    group(
        "what is known: a log of earlier decisions",
        arg("--log", metavar="FILE", help="a table, .csv, .parquet or .arrow: a row for each decision"),
        arg(
            "--features",
            type=names,
            metavar="NAMES",
            help="its columns that make a context, separated by commas: "
            "numbers, texts (a flag for each), 1 for a constant",
        ),
        arg("--arm", metavar="NAME", help="the column of what was played"),
        arg("--reward", metavar="NAME", help="the column of what it paid"),
        PROPENSITY,
        arg("--arm-names", type=names, metavar="NAMES", help="all arms there will be; default: those played"),
        arg("--current", metavar="NAME", help="the arm that is played today; default: none is known"),
    ),
    group(
        "what it is worth",
        arg("--value", type=float, metavar="X", help="of one unit of reward in money, such as 0.30; with --currency"),
        arg("--currency", metavar="WORD", help="such as EUR; with --value"),
    ),
    arg("--objective", choices=("max", "min"), help="min if rewards are costs; default: max"),
    arg("--unit", default="rewards", metavar="WORD", help="what rewards are counted in; default: rewards"),
    seed("everything that is drawn", 2013),
    arg("--problems", type=count, metavar="N", help="problems to sample; default: what a budget allows"),
    arg("--runs", type=count, metavar="N", help="runs of a p on each; default: what a budget allows"),
    arg("--out", metavar="FILE", help="also write a page, such as advice.html"),
    options={"n_arms": "--arms", "mean": "--clicks", "data": "--log", "arms": "--arm-names"},
    extras=("matplotlib", "pyarrow"),
    interrupted="nothing was written",
)
def advise(arguments: argparse.Namespace) -> Work:
    """Say which policy to take and what it earns, next to an A/B test and to doing nothing.

    examples:
      armlet advise --horizon 100k --environment FigureA
      armlet advise --horizon 1e5 --arms 5 --dim 8 --effect 0.005..0.02 --clicks 0.02..0.05
      armlet advise --horizon 67k --environment DisplayAds --value 0.30 --currency EUR
      armlet advise --per-day 20000 --days 30 --arms 3..6 --dim 4 --effect 0.2 --noise 0.5..1
      armlet advise --horizon 1e6 --log pilot.csv --features age,country --arm ad --reward click
    """
    request = read_request(vars(arguments))
    advice = ask(request, progress(arguments, "simulating"))

    def work() -> Answer:
        if request.out is not None:
            request.out.parent.mkdir(parents=True, exist_ok=True)
            advice.save(request.out)
        page = [] if request.out is None else [f"Page: {request.out}"]
        return Answer(advice, [*advice.lines(), *page])

    return work


@command(
    named_environment(required=True),
    named_policy(required=True),
    arg("--horizon", type=count, default=100_000, metavar="T", help="steps in a run; default: 100000"),
    RUNS,
    SEED,
    arg(
        "--method", choices=("auto", "steps", "events", "python"), default="auto", help="how to compute; default: auto"
    ),
    *engine(),
    out_folder("results/simulate"),
    VERBOSE,
    extras=("pyarrow", "distributed"),
)
def simulate(a: argparse.Namespace) -> Work:
    """Run a policy in an environment; keep the regret of every run in a table.

    examples:
      armlet simulate --environment FigureA --policy Algorithm1:p=120 --out results/a
      armlet simulate --environment FigureB:I=100 --policy Uniform --runs 100 --workers 2
      armlet simulate --environment FigureA --policy Algorithm1:p=600 --horizon 1e12
      armlet simulate --environment Linear --policy Oracle --engine tcp://host:8786

    A run that was interrupted or killed continues if the same command is given again.
    """
    settings = {"horizon": a.horizon, "runs": a.runs, "seed": a.seed, "method": a.method}
    job = runs.make_job(a.environment, a.policy, **settings)
    where = parallel.make_pool(a.engine, workers=a.workers)

    def work() -> Answer:
        result = runs.simulate(job, engine=where, out=a.out, progress=progress(a, "simulating"))
        return Answer(result, result.lines(theory=a.verbose))

    return work
