"""The command line of `armlet summary` and `armlet intervals`: what a model file knows, and how surely."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armlet.cli.arguments import fail

if TYPE_CHECKING:
    from armlet.bandit import Bandit

EXAMPLES = """\
examples:
  armlet summary model.armlet
  armlet summary model.armlet --interval anytime --plot model.svg
  armlet intervals model.armlet --json
"""


def add_summary(parser: argparse.ArgumentParser) -> None:
    """Give a parser the arguments of `armlet summary`."""
    parser.description = "Print a model: rows, mean rewards and coefficients by arm, with errors and intervals."
    _add_common(parser)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the coefficients too: .svg, .png or .pdf")
    parser.set_defaults(command=_summary, parser=parser)


def add_intervals(parser: argparse.ArgumentParser) -> None:
    """Give a parser the arguments of `armlet intervals`."""
    parser.description = "Print every coefficient of a model with its interval."
    _add_common(parser)
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.set_defaults(command=_intervals, parser=parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model file, .armlet")
    looks = "fixed: for one look that was fixed beforehand (default); anytime: for all looks at once"
    parser.add_argument("--interval", choices=["fixed", "anytime"], default="fixed", help=looks)
    parser.add_argument("--level", type=float, default=0.95, help="how often intervals cover; default: 0.95")
    scale = "the scale of noise, for policies that chose their rows by what they learned"
    parser.add_argument("--noise-scale", type=float, metavar="R", help=scale)


def _summary(arguments: argparse.Namespace) -> None:
    try:
        found = _bandit(arguments).summary(**_asked(arguments))
        print(found)
        if arguments.plot is not None:
            found.plot().savefig(arguments.plot)
    except (ValueError, TypeError) as error:
        arguments.parser.error(str(error))
    except (ModuleNotFoundError, OSError) as error:
        fail(arguments, error, "matplotlib")


def _intervals(arguments: argparse.Namespace) -> None:
    try:
        found = _bandit(arguments).intervals(**_asked(arguments))
    except (ValueError, TypeError) as error:
        arguments.parser.error(str(error))
    columns = found.columns()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    print(json.dumps({"level": found.level, "words": found.words, "coefficients": rows}) if arguments.json else found)


def _asked(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"interval": arguments.interval, "level": arguments.level, "noise_scale": arguments.noise_scale}


def _bandit(arguments: argparse.Namespace) -> Bandit:
    from armlet.bandit import load
    from armlet.errors import ArmletError

    try:
        return load(arguments.model)
    except (OSError, ArmletError) as error:
        fail(arguments, error)
