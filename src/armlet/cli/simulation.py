"""The commands `armlet list`, `compare`, `advise` and `simulate`: policies in environments by name."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Callable, Iterable

from armlet.cli.command import JSON, Work, arg, between, command, count, engine, group, names
from armlet.errors import InvalidValueError, choices

WIDTH = 100
PAIR = "NAME=VALUE"
LISTED = "one of those that armlet list names"
GOES_ON = "goes on where it was if the same command is given again."


@command(
    "list",
    "name every environment and policy, or describe some",
    arg("names", nargs="*", metavar="NAME", help="describe these; default: name all"),
)
def list_names(arguments: argparse.Namespace) -> None:
    """Name every environment and policy; or say in a line what some of them are, and their settings."""
    lines = [line for name in arguments.names for line in described(name)] if arguments.names else listing()
    print(*lines, sep="\n")


def listing() -> list[str]:
    """Return the names of all, from the registries alone: no policy is imported.

    Examples
    --------
    >>> listing()[0]
    'environments (armlet simulate --environment NAME):'
    """
    from armlet.environments import ENVIRONMENTS
    from armlet.policies import POLICIES, plugged_policies

    lines = ["environments (armlet simulate --environment NAME):", *_wrapped(ENVIRONMENTS)]
    lines += ["", "policies (armlet simulate --policy NAME):", *_wrapped(POLICIES)]
    if brought := plugged_policies():
        lines += ["", "policies of other packages:", *_wrapped(brought)]
    return [*lines, "", "armlet list NAME says what one of them is, and its settings"]


def described(name: str) -> list[str]:
    """Return what one of them is.

    Examples
    --------
    >>> described("LinUCB")[2]
    'settings: alpha=None, delta=0.05, ridge=1.0, units=free, origin=None'
    """
    from armlet.environments import ENVIRONMENTS
    from armlet.policies import POLICIES, plugged_policies

    if name in ENVIRONMENTS:
        return _entry(name, ENVIRONMENTS[name], ENVIRONMENTS[name].draw)
    known = {**POLICIES, **plugged_policies()}
    if name in known:
        return _entry(name, known[name], known[name])
    raise InvalidValueError(f"NAME is {name!r}; {choices(name, [*ENVIRONMENTS, *known])}")


def _wrapped(names: Iterable[str]) -> list[str]:
    return textwrap.wrap(", ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ")


def _entry(name: str, kind: type, maker: Callable[..., object]) -> list[str]:
    first = (inspect.getdoc(kind) or "").partition("\n")[0]
    settings = [
        each.name if each.default is each.empty else f"{each.name}={each.default}"
        for each in inspect.signature(maker).parameters.values()
        if each.name != "rng"
    ]
    return [name, first, f"settings: {', '.join(settings) or 'none'}"]


@command(
    "compare",
    "run several policies on the same runs of an environment, and rank them",
    arg("--environment", default="FigureA", metavar="NAME", help="as armlet list names it; default: FigureA"),
    arg("--environment-set", action="append", default=[], metavar=PAIR, help="of the environment; may be repeated"),
    arg(
        "--policy",
        action="append",
        default=[],
        metavar="POLICY",
        help="NAME or NAME:KEY=VALUE,...; may be repeated; default: OccasionalOptimism and six others",
    ),
    arg("--horizon", type=count, default=10_000, metavar="T", help="steps in a run; default: 10000"),
    arg("--runs", type=count, default=20, metavar="N", help="independent runs; default: 20"),
    arg("--seed", type=int, default=2013, metavar="N", help="of the environment and all runs; default: 2013"),
    *engine(),
    arg("--out", default="results/compare", metavar="DIR", help="default: results/compare"),
    extras=("matplotlib", "pyarrow", "distributed"),
)
def compare(a: argparse.Namespace) -> Work:
    """Run several policies on the same runs of one environment; rank them and draw their regret.

    examples:
      armlet compare
      armlet compare --policy Algorithm1:p=24 --policy Algorithm1:p=600 --horizon 1e5
      armlet compare --environment DisplayAds --policy Algorithm1:p=200 --policy LinUCB:alpha=0.5 --runs 50
      armlet compare --environment Linear --environment-set dim=10 --policy OFUL --policy ThompsonSampling:v=1

    A comparison that was interrupted or killed goes on where it was if the same command is given again.
    """
    from armlet import parallel
    from armlet.simulation import compare

    jobs = compare.make_jobs(a.environment, a.environment_set, a.policy, a.horizon, a.runs, a.seed)
    where = parallel.make_pool(a.engine, workers=a.workers)
    return lambda: compare.compare(jobs, engine=where, out=a.out)


@command(
    "advise",
    "say how much to explore, what it costs and how sure that is",
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
        arg("--level", type=between, metavar="X", help="the mean reward of a random arm; default: 0"),
        arg("--clicks", type=between, metavar="X", help="rewards are 0 or 1: the share of 1 at random"),
    ),
    group(
        "what is known: an environment",
        arg("--environment", metavar="NAME", help=f"{LISTED}; every problem draws again"),
        arg("--environment-set", action="append", default=[], metavar=PAIR, help="of the environment; may be repeated"),
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
        arg("--propensity", metavar="NAME", help="the column of the probability with which it was played"),
        arg("--arm-names", type=names, metavar="NAMES", help="all arms there will be; default: those played"),
        arg("--objective", choices=("max", "min"), help="min if rewards are costs; default: max"),
    ),
    arg("--unit", default="rewards", metavar="WORD", help="what rewards are counted in; default: rewards"),
    arg("--seed", type=int, default=2013, metavar="N", help="of everything that is drawn; default: 2013"),
    arg("--problems", type=count, metavar="N", help="problems to sample; default: what a budget allows"),
    arg("--runs", type=count, metavar="N", help="runs of a p on each; default: what a budget allows"),
    JSON,
    arg("--out", metavar="FILE", help="also write a page, such as advice.html"),
    options={"n_arms": "--arms", "base_rate": "--clicks"},
    extras=("matplotlib", "pyarrow"),
    interrupted="nothing was written",
)
def advise(arguments: argparse.Namespace) -> Work:
    """Describe which policy to take, what it will lose, and how much to explore for a log to evaluate from.

    examples:
      armlet advise --horizon 100k --environment FigureA
      armlet advise --horizon 100000 --arms 5 --dim 8 --effect 0.005..0.02 --clicks 0.02..0.05 --unit clicks
      armlet advise --per-day 20000 --days 30 --arms 3..6 --dim 4 --effect 0.2 --noise 0.5..1 --out advice.html
      armlet advise --horizon 1e6 --log pilot.csv --features age,country --arm ad --reward click --propensity prob
    """
    from armlet.advice import command

    request = command.read_request(vars(arguments))
    advice = command.ask(request)
    return lambda: command.tell(request, advice)


@command(
    "simulate",
    "run a policy in an environment, many times, on any engine",
    arg("--environment", required=True, metavar="NAME", help=LISTED),
    arg("--environment-set", action="append", default=[], metavar=PAIR, help="of the environment; may be repeated"),
    arg("--policy", required=True, metavar="NAME", help=LISTED),
    arg("--set", action="append", default=[], metavar=PAIR, help="of the policy; may be repeated"),
    arg("--horizon", type=count, default=100_000, metavar="T", help="steps in a run; default: 100000"),
    arg("--runs", type=count, default=20, metavar="N", help="independent runs; default: 20"),
    arg("--seed", type=int, default=2013, metavar="N", help="of the environment and all runs; default: 2013"),
    arg(
        "--method", choices=("auto", "steps", "events", "python"), default="auto", help="how to compute; default: auto"
    ),
    *engine(),
    arg("--out", default="results/simulate", metavar="DIR", help="default: results/simulate"),
    extras=("pyarrow", "distributed"),
)
def simulate(a: argparse.Namespace) -> Work:
    """Run a policy in an environment; keep the regret of every run in a table.

    examples:
      armlet simulate --environment FigureA --policy Algorithm1 --set p=120 --out results/a
      armlet simulate --environment FigureB --environment-set I=100 --policy Uniform --runs 100 --workers 2
      armlet simulate --environment FigureA --policy Algorithm1 --set p=600 --horizon 1e12
      armlet simulate --environment Linear --policy Oracle --engine tcp://host:8786

    A run that was interrupted or killed goes on where it was if the same command is given again.
    """
    from armlet import parallel
    from armlet.simulation import compare

    settings = {"horizon": a.horizon, "runs": a.runs, "seed": a.seed, "method": a.method}
    job = compare.make_job(a.environment, a.environment_set, a.policy, a.set, **settings)
    where = parallel.make_pool(a.engine, workers=a.workers)
    return lambda: compare.simulate(job, engine=where, out=a.out)
