"""The command line of `armlet advise`: its arguments, its help, and how it ends."""

from __future__ import annotations

import argparse
import sys

from armlet.cli.arguments import between, count, fail, names

EXAMPLES = """\
examples:
  armlet advise --horizon 100k --world FigureA
  armlet advise --horizon 100000 --arms 5 --dim 8 --effect 0.005..0.02 --clicks 0.02..0.05 --unit clicks
  armlet advise --per-day 20000 --days 30 --arms 3..6 --dim 4 --effect 0.2 --noise 0.5..1 --level 20 --out advice.html
  armlet advise --horizon 1e6 --log pilot.csv --features age,country --arm ad --reward click --propensity prob
"""


def add_advise(parser: argparse.ArgumentParser) -> None:
    """Give a parser the arguments of the command."""
    parser.description = (
        "Say which policy to take, what it will lose, and how much to explore for a log to evaluate from."
    )
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    _add_traffic(parser.add_argument_group("how many decisions there will be"))
    _add_guess(parser.add_argument_group("what is known: a guess"))
    _add_world(parser.add_argument_group("what is known: a world"))
    _add_log(parser.add_argument_group("what is known: a log of earlier decisions"))
    add = parser.add_argument
    add("--unit", default="rewards", metavar="WORD", help="what rewards are counted in; default: rewards")
    add("--seed", type=int, default=2013, metavar="N", help="of everything that is drawn; default: 2013")
    add("--problems", type=count, metavar="N", help="problems to sample; default: what a budget allows")
    add("--runs", type=count, metavar="N", help="runs of a p on each; default: what a budget allows")
    add("--json", action="store_true", help="print JSON and nothing else")
    add("--out", metavar="FILE", help="also write a page, such as advice.html")
    parser.set_defaults(command=_advise, parser=parser)


def _add_traffic(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--horizon", type=count, metavar="T", help="in all, such as 50000, 50k or 5e4")
    group.add_argument("--per-day", type=count, metavar="N", help="decisions a day; times are then told in days too")
    group.add_argument("--days", type=count, metavar="N", help="with --per-day, in place of --horizon")


def _add_guess(group: argparse._ArgumentGroup) -> None:
    either = "a number, or a range as in "
    group.add_argument("--arms", type=between, metavar="K", help=f"how many arms: {either}3..6")
    group.add_argument("--dim", type=between, metavar="D", help="values in a context, a constant 1 among them")
    effect = "what playing at random loses against the best arm, a decision"
    group.add_argument("--effect", type=between, metavar="X", help=f"{effect}: {either}0.005..0.02")
    group.add_argument("--noise", type=between, metavar="X", help="standard deviation of a reward around its mean")
    level = "the mean reward of a random arm; default: 0"
    group.add_argument("--level", type=between, metavar="X", help=level)
    group.add_argument("--clicks", type=between, metavar="X", help="rewards are 0 or 1: the share of 1 at random")


def _add_world(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--world", metavar="NAME", help="one of those that armlet list names; every problem draws anew")
    repeated = "of the world; may be repeated"
    group.add_argument("--world-set", action="append", default=[], metavar="NAME=VALUE", help=repeated)


def _add_log(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--log", metavar="FILE", help="a table, .csv, .parquet or .arrow: a row for each decision")
    features = (
        "its columns that make a context, separated by commas: numbers, texts (a flag for each), 1 for a constant"
    )
    group.add_argument("--features", type=names, metavar="NAMES", help=features)
    group.add_argument("--arm", metavar="NAME", help="the column of what was played")
    group.add_argument("--reward", metavar="NAME", help="the column of what it paid")
    group.add_argument("--propensity", metavar="NAME", help="the column of the probability with which it was played")
    group.add_argument("--arm-names", type=names, metavar="NAMES", help="all arms there will be; default: those played")
    group.add_argument("--objective", choices=("max", "min"), help="min if rewards are costs; default: max")


def _advise(arguments: argparse.Namespace) -> None:
    from armlet.advice import command
    from armlet.errors import ArmletError

    try:
        request = command.read_request(vars(arguments))
        advice = command.ask(request)
    except (ValueError, TypeError) as error:
        arguments.parser.error(command.explain(error))
    except KeyboardInterrupt:
        print("\ninterrupted: nothing was written", file=sys.stderr)
        raise
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "matplotlib", "pyarrow")
    try:
        command.tell(request, advice)
    except OSError as error:
        fail(arguments, error)
