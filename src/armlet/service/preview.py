"""What starting a server would do to the loops of its store; nothing is opened to be written, made or changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from armlet.errors import ArmletError, StoreError
from armlet.service.config import LoopConfig, ServerConfig
from armlet.stores.maintenance import differences
from armlet.stores.rows.replay import recover
from armlet.stores.store import load_ledger
from armlet.stores.terms import Terms

if TYPE_CHECKING:
    from armlet.bandit import Bandit
    from armlet.cast.cast import Cast
    from armlet.stores.ledger import LedgerReader, LoopRecord, View


@dataclass(frozen=True, slots=True)
class Plan:
    """What would become of a loop: `refusal` says why the server would not start."""

    name: str
    what: str
    refusal: bool = False

    def __str__(self) -> str:
        return f"loop {self.name!r} {self.what}"


def preview(config: ServerConfig) -> tuple[bool, list[Plan]]:
    """Return whether the store is there, and what would become of each loop, of the file and of the store."""
    with _view(config) as view:
        records = {} if view is None else {record.name: record for record in view.loops()}
        plans = [_plan(loop, view, records.get(loop.name)) for loop in config.loops]
        named = {loop.name for loop in config.loops}
        plans += [Plan(name, "is in the store, and is served as it is") for name in records if name not in named]
        return view is not None, plans


@contextmanager
def _view(config: ServerConfig) -> Iterator[View | None]:
    reader = _database(config.store) if config.is_database else _file(Path(config.store))
    if reader is None:
        yield None
        return
    with closing(reader) as ledger, ledger.view() as view:
        yield view


def _file(path: Path) -> LedgerReader | None:
    reader: LedgerReader | None = load_ledger("sqlite", "apsw").SQLiteReader(path) if path.exists() else None
    return reader


def _database(address: str) -> LedgerReader | None:
    module = load_ledger("postgresql", "psycopg")
    import psycopg

    try:
        with psycopg.connect(address) as connection:
            row = connection.execute("SELECT to_regclass('armlet.version')").fetchone()
    except psycopg.Error as error:
        raise StoreError(f"the database cannot be opened: {error}") from error
    if row is None or row[0] is None:  # to open it would make its tables
        return None
    reader: LedgerReader = module.PostgreSQL(address)
    return reader


def _plan(loop: LoopConfig, view: View | None, record: LoopRecord | None) -> Plan:
    if view is None or record is None:
        return Plan(loop.name, "would be made")
    try:
        terms = Terms.read(record)
        cast = _cast(view, record, terms)
        spec = loop.spec
        made = spec.cast()
        change = None if made is None else differences(spec, made.live, terms, cast)
    except ArmletError as error:
        return Plan(loop.name, f"would be refused: {error}", refusal=True)
    changes = [*([] if change is None else change.names), *(() if loop.has_actions else _arms(loop, cast.live))]
    return Plan(loop.name, f"would change: {', '.join(changes)}" if changes else "stays as it is")


def _cast(view: View, record: LoopRecord, terms: Terms) -> Cast:
    head = view.head(record.id)
    if head is None:
        raise StoreError(f"the head of loop {record.name!r} is missing; go back to a backup")
    return recover(view, record, head, None, terms.carry)[0]


def _arms(loop: LoopConfig, bandit: Bandit) -> Iterator[str]:
    retired = set(bandit.arms.retired)
    for arm in loop.arms:
        if arm not in bandit.arms:
            yield f"arm {arm!r} is new"
        elif arm in retired:
            yield f"arm {arm!r} is restored"
    for arm in bandit.arms:
        if arm not in loop.arms and arm not in retired:
            yield f"arm {arm!r} is retired"
