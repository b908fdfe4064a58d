"""The command line of `armlet log`: compact, show, tail, export and import."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armlet.cli.arguments import count, fail, names

if TYPE_CHECKING:
    from armlet.log.imports import Imported
    from armlet.log.schema import Event

EXAMPLES = """\
examples:
  armlet log show decisions.jsonl
  armlet log tail decisions.jsonl -n 3
  armlet log compact decisions.jsonl                   decisions.parquet, one row a decision
  armlet log export decisions.parquet decisions.csv    or .jsonl, .arrow, .feather
  armlet log import train.json log.jsonl --kind dsjson
  armlet log import pilot.csv log.parquet --features age,country --arm ad --reward click --propensity prob
"""


def add_log(parser: argparse.ArgumentParser) -> None:
    """Give a parser the actions of the command."""
    parser.description = "Read, compact, export and import logs of decisions."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(title="actions", metavar="action", required=True)
    shown = _action(actions, "show", "say what a log holds", _show)
    shown.add_argument("--json", action="store_true", help="print JSON and nothing else")
    tail = _action(actions, "tail", "print the last events", _tail)
    tail.add_argument("-n", type=count, default=10, metavar="N", help="how many; default: 10")
    compacted = _action(actions, "compact", "write JSON lines as Parquet, one row a decision", _compact)
    compacted.add_argument("--out", type=Path, metavar="FILE", help="default: the log's name with the ending .parquet")
    columns = "a column for each feature, in place of one value for a whole context"
    compacted.add_argument("--columns", action="store_true", help=columns)
    exported = _action(actions, "export", "write a log as .jsonl, .csv, .arrow or .feather", _export)
    exported.add_argument("target", type=Path, metavar="OUT", help="must not be there yet")
    _add_import(_action(actions, "import", "make a log of what others logged", _import))


def _action(
    actions: Any, name: str, about: str, command: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=about, description=about.capitalize() + ".")
    parser.add_argument("log", type=Path, metavar="LOG", help="a file")
    parser.set_defaults(command=lambda arguments: _run(command, arguments), parser=parser)
    return parser


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", type=Path, metavar="OUT", help=".jsonl or .parquet; must not be there yet")
    kinds = "dsjson, of Vowpal Wabbit; table: .csv, .parquet, .arrow or .feather; default: table"
    parser.add_argument("--kind", choices=("dsjson", "table"), default="table", help=kinds)
    parser.add_argument("--features", type=names, metavar="NAMES", help="values of a context, separated by commas")
    parser.add_argument("--arm", metavar="NAME", help="the column of what was played")
    parser.add_argument("--reward", metavar="NAME", help="the column of what it paid")
    parser.add_argument("--propensity", metavar="NAME", help="the column of the probability with which it was played")
    parser.add_argument("--arm-names", type=names, metavar="NAMES", help="all arms there are; default: those played")
    encoder = "read the columns by the encoder of this model, in place of --features"
    parser.add_argument("--encoder", type=Path, metavar="MODEL", help=encoder)


def _run(command: Callable[[argparse.Namespace], None], arguments: argparse.Namespace) -> None:
    from armlet.errors import ArgumentError, ArmletError

    try:
        command(arguments)
    except ArgumentError as error:
        words = {"log": "LOG", "target": "OUT", "path": "LOG", "table": "LOG", "arms": "--arm-names"}
        roles = ("features", "arm", "reward", "propensity", "arm_names", "encoder")
        options = {name: f"--{name.replace('_', '-')}" for name in roles}
        arguments.parser.error(error.told(words | options))
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "pyarrow")


def _show(arguments: argparse.Namespace) -> None:
    from armlet.log.reader import read

    kinds: Counter[str] = Counter()
    events = read(arguments.log)
    last: Event = {}
    for event in events:
        kinds[event["kind"]] += 1
        last = event
    about = {name: value for name, value in events.about.items() if name not in ("seq", "kind", "at")}
    found = {**about, "events": dict(kinds), "from": events.about["at"], "to": last["at"]}
    if arguments.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:12} {_words(name, value)}")
    if left := getattr(events, "unfinished", 0):
        print(f"{'unfinished':12} {left:,} bytes after the last whole line")


def _words(name: str, value: object) -> str:
    from datetime import UTC, datetime

    if name in ("from", "to") and isinstance(value, int):
        return datetime.fromtimestamp(value / 1e6, UTC).isoformat(timespec="seconds")
    if isinstance(value, dict) and name == "events":
        return ", ".join(f"{n:,} {kind}" for kind, n in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _tail(arguments: argparse.Namespace) -> None:
    from armlet.log.reader import read

    last: Iterable[Event] = deque(read(arguments.log), maxlen=arguments.n)
    for event in last:
        print(json.dumps(event, ensure_ascii=False))


def _compact(arguments: argparse.Namespace) -> None:
    from armlet.log.exporting import compact

    form = "columns" if arguments.columns else "binary"
    path = compact(arguments.log, arguments.out, contexts=form)  # type: ignore[arg-type]
    before, after = arguments.log.stat().st_size, path.stat().st_size
    print(f"{path}: {after:,} bytes, where {arguments.log.name} has {before:,}", file=sys.stderr)


def _export(arguments: argparse.Namespace) -> None:
    from armlet.log.exporting import write

    print(write(arguments.log, arguments.target), file=sys.stderr)


def _import(arguments: argparse.Namespace) -> None:
    from armlet.log.exporting import write

    print(write(_imported(arguments), arguments.target), file=sys.stderr)


def _imported(arguments: argparse.Namespace) -> Imported:
    from armlet.bandit import load
    from armlet.errors import ArgumentError
    from armlet.log.imports import from_dsjson, from_table
    from armlet.log.tables import Roles

    if arguments.kind == "dsjson":
        return from_dsjson(arguments.log, features=arguments.features, arms=arguments.arm_names)
    encoder = None if arguments.encoder is None else load(arguments.encoder).encoder
    if arguments.encoder is not None and encoder is None:
        raise ArgumentError("{encoder} is {path}, a model without an encoder; leave it out", path=arguments.encoder)
    for name in ("arm", "reward") if encoder is not None else ("features", "arm", "reward"):
        if getattr(arguments, name) is None:
            raise ArgumentError("{" + name + "} is missing; a table needs it")
    chosen = ("features", "arm", "reward", "propensity", "arm_names")
    roles = {name: getattr(arguments, name) for name in chosen}
    return from_table(arguments.log, Roles(**roles | {"features": roles["features"] or ()}), encoder=encoder)
