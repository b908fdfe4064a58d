"""What commands read: logs in files, tables of decisions, and the logs of loops in stores, next to what runs these.

A file is known by what it holds: a store begins as SQLite's do, a log of Armlet says so, and other files are tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from armlet.cli.command import PROPENSITY, Argument, arg, group, names
from armlet.cli.outcomes import outcome_options
from armlet.errors import ArgumentError, StoreError, choices, load_pyarrow
from armlet.inputs.files import READERS
from armlet.inputs.table import Table
from armlet.stores.rows.log import LoopLog
from armlet.stores.store import load_ledger

if TYPE_CHECKING:
    from armlet.log.reader import Source
    from armlet.stores.ledger import LedgerReader, LoopRecord, View

ADDRESSES: Final = ("postgresql://", "postgres://")
MAGIC: Final = b"SQLite format 3\0"
LONGEST: Final = 2**26  # bytes of a line

Place: TypeAlias = Path | str
"""A file, or the address of a database."""


def place(text: str) -> Place:
    """Read a path, or the address of a database, whose slashes stay.

    Examples
    --------
    >>> place("shop.db").name, place("postgresql://db.example/shop")
    ('shop.db', 'postgresql://db.example/shop')
    """
    return text if text.startswith(ADDRESSES) else Path(text)


LOG_OR_STORE: Final = arg(
    "log", type=place, metavar="LOG", help="a log, .jsonl or .parquet; a table, .csv too; or a store with --loop"
)
LOOP: Final = arg("--loop", metavar="NAME", help="of a store: whose log to read; default: the only one there is")
STORE: Final = arg("store", type=place, metavar="STORE", help="a file, such as shop.db, or postgresql://...")


def column(name: str, about: str) -> Argument:
    """Declare the column of a role."""
    return arg(f"--{name}", metavar="NAME", help=f"the column {about}")


FEATURES: Final = arg(
    "--features", type=names, metavar="NAMES", help="columns that were known before, with commas; of a model, its own"
)
ROLES: Final = group(
    "which column is what, where LOG is a table",
    FEATURES,
    column("arm", "of what was played; default: arm, action, variant or treatment"),
    column("reward", "of what it paid; default: reward, click, clicked, conversion or converted"),
    *outcome_options(),
    PROPENSITY,
    column("weight", "of how much a row counts; default: all alike"),
    column("time", "of the date of a decision"),
    column("unit", "that names rows which share a draw; default: unit"),
    column("epoch", "of their epoch; default: epoch"),
    column("eligible", "of the arms that might be played, with | between them; default: all"),
    arg("--arm-names", type=names, metavar="NAMES", help="all arms there are; default: those played"),
)
NAMED: Final = ("features", "arm", "reward", "outcomes", "known", "propensity", "weight", "time", "unit", "epoch")
"""The roles that options of the same name give."""


def read_table(a: argparse.Namespace, path: Path, **more: Any) -> Table:
    """Read a table by the roles that a command was given."""
    return Table(path, **roles_of(a), **more)


def roles_of(a: argparse.Namespace) -> dict[str, Any]:
    """Return the roles that a command was given, as `armlet.Table` takes them."""
    values = vars(a)
    named = {name: values.get(name) for name in (*NAMED, "eligible")} | {"arms": values.get("arm_names")}
    return {name: value for name, value in named.items() if value is not None}


def is_table(path: Path) -> bool:
    """Whether a file holds a table of decisions rather than a log of Armlet's own."""
    ending = path.suffix.lower()
    if ending == ".parquet" and path.is_file():
        pa, parquet = load_pyarrow()
        try:
            return b"armlet" not in (parquet.read_schema(path).metadata or {})
        except (OSError, pa.ArrowException):  # the reader of logs says what is wrong with it
            return False
    if ending == ".jsonl" and path.is_file():
        with path.open("rb") as file:
            line = file.readline(LONGEST).strip()
        return line.startswith(b"{") and b'"kind"' not in line
    return ending in READERS and ending not in (".parquet", ".jsonl")


def is_store(where: Place) -> bool:
    """Whether a place is a store rather than a log."""
    if isinstance(where, str):
        return True
    if not where.is_file():
        return False
    with where.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


@contextmanager
def open_log(a: argparse.Namespace) -> Iterator[Source]:
    """Give the log that a command was given: its path, or the events of a loop in a store."""
    if not is_store(a.log):
        if a.loop is not None:
            raise ArgumentError("{loop} is {name!r}, but {log} is not a store; leave it out", name=a.loop)
        path = Path(a.log)
        if "features" in vars(a) and is_table(path):  # a command that knows roles
            yield read_table(a, path)
            return
        for name, value in roles_of(a).items():
            text = "{" + name + "} is {value!r}, but {log} is a log, which says that itself; leave it out"
            raise ArgumentError(text, value=value)
        yield path
        return
    with open_reader(a.log) as ledger:
        yield LoopLog(ledger, choose(ledger.loops(), a.loop, "loop"), None)


@contextmanager
def open_reader(where: Place) -> Iterator[LedgerReader]:
    """Open a store to be read, next to the process that writes in it."""
    ledger: LedgerReader
    if isinstance(where, str):
        ledger = load_ledger("postgresql", "psycopg").PostgreSQL(where)
    else:
        ledger = load_ledger("sqlite", "apsw").SQLiteReader(where)
    with closing(ledger):
        yield ledger


@contextmanager
def open_view(where: Place) -> Iterator[View]:
    """Look at a store as it is at one moment."""
    with open_reader(where) as ledger, ledger.view() as view:
        yield view


def choose(records: Iterable[LoopRecord], name: str | None, argument: str) -> LoopRecord:
    """Return the loop of a name, or the only one there is."""
    by_name = {record.name: record for record in records}
    if not by_name:
        raise StoreError("the store has no loops yet; store.loop(name, arms=...) makes one")
    if name is None and len(by_name) == 1:
        return next(iter(by_name.values()))
    if name is None:
        raise ArgumentError("{" + argument + "} is missing; give one of {names}", names=", ".join(by_name))
    if name not in by_name:
        raise ArgumentError("{" + argument + "} is {name!r}; {fix}", name=name, fix=choices(name, by_name))
    return by_name[name]
