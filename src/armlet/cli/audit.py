"""The command line of `armlet audit`: replay a log from its start model; 0 if all is as written, 1 if not."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from armlet.cli.arguments import fail

EXAMPLES = """\
examples:
  armlet audit decisions.jsonl
  armlet audit decisions.parquet --start decisions.start.armlet
"""


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Give a parser the arguments of the command."""
    parser.description = (
        "Replay a log from the model that it starts from, and compare ids, arms, probabilities and states bit for bit. "
        "Ends with 1 at the first event that differs."
    )
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("log", type=Path, metavar="LOG", help="a log, .jsonl or .parquet")
    start = "default: the log's name with the ending .start.armlet"
    parser.add_argument("--start", type=Path, metavar="MODEL", help=f"the model that it starts from; {start}")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.set_defaults(command=_audit, parser=parser)


def _audit(arguments: argparse.Namespace) -> None:
    from armlet.core.errors import ArmletError
    from armlet.log.auditing import audit
    from armlet.log.recording import start_beside

    start = arguments.start or start_beside(arguments.log)
    try:
        found = audit(arguments.log, start)
    except ValueError as error:
        arguments.parser.error(str(error))
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "pyarrow")
    print(json.dumps({"ok": found.ok, **asdict(found)}) if arguments.json else found)
    if not found.ok:
        arguments.parser.exit(1)
