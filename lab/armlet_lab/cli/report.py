"""The command line of `armlet-lab report`: its argument, and how it ends."""

from __future__ import annotations

import argparse

from armlet.cli.arguments import fail

EXAMPLES = """\
examples:
  armlet-lab report results/paper      judge the claims anew from what was computed
  armlet-lab report results/simulate   plot what armlet simulate found, finished or not
"""


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Write DIR/report.html anew from the results in DIR; nothing is computed again."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", metavar="DIR", help="where armlet-lab paper or armlet simulate wrote")
    parser.set_defaults(command=_report, parser=parser)


def _report(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArmletError
    from armlet_lab.cli import rebuild

    try:
        code = rebuild.report(arguments.folder)
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "matplotlib", "pyarrow")
    if code:
        arguments.parser.exit(code)
