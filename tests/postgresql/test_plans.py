"""No statement of a batch reads a whole loop, whatever the planner knows of it.

A plan is made once for each connection. Here it is made when tables are empty, or when statistics know of small loops
only, and is then used on a loop of 100,000 decisions that they know nothing of.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from armlet.stores.postgresql import connection as connections
from armlet.stores.postgresql import session, view
from armlet.stores.postgresql.connection import Address, Connection
from armlet.stores.postgresql.schema import bring_up_to_date
from armlet.stores.postgresql.statements import Statement
from support.postgresql import Server

MANY = 100_000
LOOP = 5_000
FEW = ["e77", "e99123", "e50000", "none"]

TABLES = [psycopg.sql.Identifier(name) for name in ("event", "outcome", "early", "head", "snapshot", "tally")]

HOT: dict[str, tuple[Statement, Sequence[Any]]] = {
    "enter": (session.ENTER, ([LOOP, 7],)),
    "rows of others": (session.ROWS_OF_OTHERS, ([LOOP], [2 * MANY - 3])),
    "by event": (session.BY_EVENT, ([LOOP] * len(FEW), FEW)),
    "by due": (session.BY_DUE, ([LOOP], [MANY], [3])),
    "by step": (session.BY_STEP, (LOOP, 77)),
    "next steps": (session.NEXT_STEPS, (LOOP, 500, 4)),
    "row": (session.ROW, (LOOP, 500)),
    "picked rows": (session.PICKED, ([500, 99_000], LOOP)),
    "heard": (session.HEARD, (LOOP, 77)),
    "page of rows": (session.ROWS, (LOOP, 500, 4)),
    "early": (session.EARLY, (LOOP, "e77")),
    "snapshot": (session.SNAPSHOT, (LOOP,)),
    "head": (session.HEAD, (LOOP,)),
    "arrived": (session.ARRIVED, ([LOOP, LOOP], ["e77", "none"])),
    "needed": (session.NEEDED, ([5, 6, 99_000], LOOP, 10)),
    "drop early": (session.DROP_EARLY, (LOOP, MANY, 3)),
    "drop heard": (session.DROP_HEARD, ([5, 99_000], LOOP)),
    "drop outcomes": (session.DROP_OUTCOMES, ([5, 99_000], LOOP)),
    "drop events": (session.DROP_EVENTS, ([5, 99_000], LOOP)),
    "some events": (session.SOME["event"], (LOOP, 3)),
    "some outcomes": (session.SOME["outcome"], (LOOP, 3)),
    "some early": (session.SOME["early"], (LOOP, 3)),
    "erase": (session.ERASE, (LOOP, 77, "{}", 5)),
    "new events": (session.NEW_EVENTS, ([LOOP], [10**6], [1], ["decide"], [10**6], ["{}"], [None], [1])),
    "new outcomes": (
        session.NEW_OUTCOMES,
        ([LOOP], [10**6], ["new"], [10**6], ["open"], [None], [None], [0], ["[]"], [None], [None], [1]),
    ),
    "changed": (
        session.CHANGED,
        ([LOOP], [99_000], ["e99000"], [99_000], ["open"], [0.5], [None], [0], ["[]"], [None], [None], [1]),
    ),
    "heads": (session.NEW_HEADS, ([LOOP], *([1],) * 10)),
    "tally": (session.TALLY, (LOOP,)),
    "tallies": (session.NEW_TALLIES, ([LOOP], ["{}"], [1])),
    "snapshots": (session.NEW_SNAPSHOTS, ([LOOP], [1], [b"model"], [1])),
    "page of outcomes": (view.OUTCOME_RECORDS, (LOOP, 500, 4)),
    "counted rows": (view.COUNT_ROWS, (LOOP, 500, 4)),
    "counted outcomes": (view.COUNT_OUTCOMES, (LOOP, 500, 4)),
}

FILL = (
    """INSERT INTO event SELECT l, 2 * i - k, i, CASE k WHEN 1 THEN 'decide' ELSE 'learn' END, i, '{}', NULL, 1
    FROM generate_series(%(first)s::bigint, %(last)s) l, generate_series(1, %(n)s) i, generate_series(0, 1) k""",
    """INSERT INTO outcome SELECT l, i, 'e' || i, 2 * i - 1, 'open', NULL, i, 0, '[]', NULL, NULL, 1
    FROM generate_series(%(first)s::bigint, %(last)s) l, generate_series(1, %(n)s) i""",
    """INSERT INTO early (loop, event, until, fields, crc) SELECT l, 'e' || i, i, '{}', 1
    FROM generate_series(%(first)s::bigint, %(last)s) l, generate_series(1, %(n)s) i""",
    """INSERT INTO head SELECT l, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
    FROM generate_series(%(first)s::bigint, %(last)s) l""",
    "INSERT INTO tally SELECT l, '', 1 FROM generate_series(%(first)s::bigint, %(last)s) l",
    "INSERT INTO snapshot SELECT l, 1, '', 1 FROM generate_series(%(first)s::bigint, %(last)s) l",
)


def fill(database: psycopg.Connection[Any], first: int, last: int, n: int) -> None:
    for sql in FILL:
        database.execute(sql.encode(), {"first": first, "last": last, "n": n})


def literal(value: Any, kind: str) -> str:
    if isinstance(value, list):
        return f"ARRAY[{', '.join(literal(each, kind.removesuffix('[]')) for each in value)}]::{kind}"
    return f"{psycopg.sql.Literal(value).as_string()}::{kind}"


SEEN = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")


def looked_at(node: dict[str, Any]) -> float:
    """Count the rows that a plan has looked at in tables, those that it left out included."""
    own = 0.0
    if "Scan" in node["Node Type"] and node["Node Type"] != "Function Scan":
        seen = (
            node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        )
        own = seen * node["Actual Loops"]
    return own + sum(looked_at(each) for each in node.get("Plans", []))


def scanned(node: dict[str, Any]) -> set[str]:
    """Return the tables that a plan reads from end to end."""
    own = {node["Relation Name"]} if node["Node Type"] == "Seq Scan" else set()
    return own.union(*(scanned(each) for each in node.get("Plans", [])))


def explained(connection: Connection, statement: Statement, values: Sequence[Any]) -> dict[str, Any]:
    """Run a statement by the plan that the connection has already, and return what it did."""
    told = ", ".join(literal(value, kind.name) for value, kind in zip(values, statement.types, strict=True))
    execute = f"EXECUTE {statement.name.decode()}({told})" if told else f"EXECUTE {statement.name.decode()}"
    connection.run([Statement("BEGIN")()])
    [[(text,)]] = connection.run([Statement(f"EXPLAIN (ANALYZE, FORMAT JSON) {execute}")()])
    connection.run([Statement("ROLLBACK")()])
    found: dict[str, Any] = (json.loads(text) if isinstance(text, str) else text)[0]
    return found


def planned(server: Server, schema: str, known: str) -> Connection:
    """Return a connection that has planned everything, with tables in which there is little or nothing."""
    connection = Connection(Address(server.conninfo, schema, 60.0))
    bring_up_to_date(connection, schema)
    with in_schema(server, schema) as database:
        if known != "nothing":
            fill(database, 1, 2000, 5 if known == "small loops" else 1)
        for table in TABLES:  # no statistics come later by themselves
            database.execute(psycopg.sql.SQL("ALTER TABLE {} SET (autovacuum_enabled = off)").format(table))
            database.execute(psycopg.sql.SQL("VACUUM ANALYZE {}").format(table))
    for statement, values in HOT.values():
        connection.run([Statement("BEGIN")(), statement(*values), Statement("ROLLBACK")()])
    return connection


@contextmanager
def in_schema(server: Server, schema: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.conninfo, autocommit=True) as database:
        database.execute(psycopg.sql.SQL("SET search_path = {}").format(psycopg.sql.Identifier(schema)))
        yield database


def greedy(connection: Connection) -> set[str]:
    """Return the statements that look at more rows than they should."""
    return {name for name, asked in HOT.items() if looked_at(explained(connection, *asked)["Plan"]) > 20}


@pytest.mark.parametrize("known", ["nothing", "small loops", "one row each"])
def test_no_statement_of_a_batch_reads_a_whole_loop(known: str, server: Server, schema: str) -> None:
    with closing(planned(server, schema, known)) as connection, in_schema(server, schema) as database:
        fill(database, LOOP, LOOP, MANY)
        assert greedy(connection) == set()


def test_no_statement_is_compiled(server: Server, schema: str) -> None:
    """Compiling takes longer than a thousand rows."""
    with closing(planned(server, schema, "nothing")) as connection:
        assert {name for name, asked in HOT.items() if "JIT" in explained(connection, *asked)} == set()


@pytest.mark.parametrize("scans", ["off", "on"])
def test_scans_of_whole_tables_must_be_off(
    scans: str, server: Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan for empty tables would read all of them, and would be kept when they are large."""
    monkeypatch.setitem(connections.SETTINGS, "enable_seqscan", scans)
    with closing(planned(server, schema, "nothing")) as connection:
        scanning = {name for name, asked in HOT.items() if scanned(explained(connection, *asked)["Plan"]) - {"version"}}
    assert ({"by event", "by due", "by step", "rows of others"} <= scanning) == (scans == "on")
    assert bool(scanning) == (scans == "on")
