"""The command line of `armlet audit`: replay a log from its start model, and say by the exit code what was found.

0: all is as written, and proved. 1: something differs. 3: nothing differs, but the end is not proved. 2: no audit could
be made.
"""

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
  armlet audit decisions.jsonl --digest 0123abcd...      as it was noted elsewhere

exit codes:
  0  everything is as written, sealed, and the log was closed or ends with the digest
  1  something differs: an event was changed, dropped, added or moved, or the digest is not reached
  2  no audit could be made: a file is missing, or is not a log
  3  incomplete: nothing differs, but events at the end are not sealed, or the log was not closed: it was killed, is
     being written, or was cut; armlet.log.resume continues it
"""

_INCOMPLETE = 3


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Give a parser the arguments of the command."""
    parser.description = (
        "Replay a log from the model that it starts from, and compare ids, arms, probabilities and states bit for bit. "
        "Ends with 1 at the first event that differs, with 3 if the end of the log is not proved."
    )
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("log", type=Path, metavar="LOG", help="a log, .jsonl or .parquet")
    start = "default: the log's name with the ending .start.armlet"
    parser.add_argument("--start", type=Path, metavar="MODEL", help=f"the model that it starts from; {start}")
    noted = "a digest that was noted elsewhere, which the log must lead to: a log that was cut before is found"
    parser.add_argument("--digest", metavar="DIGEST", help=noted)
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.set_defaults(command=_audit, parser=parser)


def _audit(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArmletError
    from armlet.log.auditing import audit
    from armlet.log.log import start_beside

    start = arguments.start or start_beside(arguments.log)
    try:
        if arguments.start is None and not start.exists():
            arguments.parser.error(f"{start}, the model that the log starts from, is missing; name it by --start")
        found = audit(arguments.log, start, digest=arguments.digest)
    except (ModuleNotFoundError, OSError, ArmletError, ValueError) as error:
        fail(arguments, error, "pyarrow", code=2)
    print(json.dumps({"ok": found.ok, "status": found.status, **asdict(found)}) if arguments.json else found)
    if not found.ok:
        arguments.parser.exit(1 if found.status == "mismatch" else _INCOMPLETE)
