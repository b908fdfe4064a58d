"""The command line of `armlet gate`: keep, kill or not yet, as an exit code for CI."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from armlet.cli.arguments import between, fail

CODES: Final = {"keep": 0, "kill": 3, "not yet": 4}
EXAMPLES = """\
exit codes:
  0 keep, 3 kill, 4 not yet; 1 the log or the model cannot be read, 2 wrongly called

examples:
  armlet gate decisions.jsonl --candidate new.armlet --against live --reward-range 0..1
  armlet gate decisions.parquet --candidate new.armlet --against always:north --worth 0.01
"""


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Give a parser the arguments of the command."""
    parser.description = (
        "Say whether a candidate is better than what plays now: keep, kill or not yet. Ask as often as you like while "
        "the log grows; all answers together are wrong with at most the chance that --level leaves."
    )
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("log", type=Path, metavar="LOG", help="a log, .jsonl or .parquet")
    policy = "a model file, always:ARM, or uniform"
    parser.add_argument("--candidate", required=True, metavar="POLICY", help=policy)
    parser.add_argument("--against", default="live", metavar="POLICY", help=f"live (default), {policy}")
    parser.add_argument("--reward-range", type=between, metavar="LOW..HIGH", help="default: that of the log")
    parser.add_argument("--worth", type=float, default=0.0, help="the gain that it takes to be kept; default: 0")
    parser.add_argument("--level", type=float, default=0.95, help="how often it is right at all looks; default: 0.95")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.set_defaults(command=_gate, parser=parser)


def _gate(arguments: argparse.Namespace) -> None:
    from armlet.errors import ArgumentError, ArmletError
    from armlet.evaluation.gate import gate
    from armlet.evaluation.log import open_rows

    try:
        blocks = open_rows(arguments.log)
        candidate, against = (_policy(text, blocks.arms) for text in (arguments.candidate, arguments.against))
        given = arguments.reward_range
        if given is not None and not isinstance(given, tuple):
            arguments.parser.error(f"--reward-range is {given}; write two numbers as in 0..1")
        found = gate(
            blocks, candidate, against=against, reward_range=given, worth=arguments.worth, level=arguments.level
        )
    except ArgumentError as error:
        arguments.parser.error(error.told({"reward_range": "--reward-range", "candidate": "--candidate"}))
    except ValueError as error:
        arguments.parser.error(str(error))
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "pyarrow")
    print(json.dumps(asdict(found)) if arguments.json else found)
    if code := CODES[found.answer]:
        arguments.parser.exit(code)


def _policy(text: str, arms: tuple[str | int, ...]) -> str | int | Path:
    """Read a policy as it is written at the command line."""
    kind, colon, label = text.partition(":")
    if colon and kind == "always":
        return next((arm for arm in arms if str(arm) == label), label)
    return Path(text) if text.endswith(".armlet") else text
