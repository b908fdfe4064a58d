"""What a store in PostgreSQL promises beyond the contract: round trips, time limits, answers that were lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from armlet.errors import InvalidValueError, StoreError, UncertainError
from armlet.stores.ledger import Early, LoopRecord, Moment, Pending, Want
from armlet.stores.postgresql import PostgreSQL
from armlet.stores.postgresql.connection import Address, Connection
from armlet.stores.postgresql.schema import COMMIT, VERSION, bring_up_to_date
from armlet.stores.postgresql.session import ENTER
from armlet.stores.postgresql.statements import Statement
from armlet.stores.transaction import Draft, Transaction, transaction
from support.postgresql import Proxy, Server

MOST_TRIPS = 6
HANGS = 30.0  # seconds: what waits for longer waits for ever
WAITS = "bool_or(wait_event_type = 'Lock')"


def new_loop(ledger: PostgreSQL, name: str = "homepage") -> LoopRecord:
    with transaction(ledger) as tx, tx.savepoint() as session:
        found = session.find(name)
        return session.create(name, "{}", b"a model", 0) if found is None else found


def entered(tx: Transaction, want: Want) -> Draft:
    tx.enter([want])
    draft = tx.draft(want.loop)
    assert draft is not None
    return draft


def decide(draft: Draft, event: str) -> None:
    t = draft.clock + 1
    seq = draft.append(Moment(t, t), "decide", t, {"event": event, "explored": False}, bytes(8))
    draft.insert(Pending(t=t, event=event, seq=seq, phase="open", due=t))


def decide_once(ledger: PostgreSQL, loop: int, event: str) -> int:
    """Decide an event, or find that it was decided; return its step."""
    with transaction(ledger) as tx:
        draft = entered(tx, Want(loop, after=0, events=[event], due=0, most=9))
        if draft.entered.decided:
            return draft.entered.decided[0].pending.t
        decide(draft, event)
        return draft.clock


def events_of(ledger: PostgreSQL, loop: int) -> list[str]:
    return [row.fields["event"] for row in ledger.rows(loop) if row.kind == "decide"]


@contextmanager
def opened(conninfo: str, schema: str, **settings: Any) -> Iterator[PostgreSQL]:
    """Open a ledger whose sessions bear the name of its schema."""
    ledger = PostgreSQL(make_conninfo(conninfo, application_name=schema), schema=schema, **settings)
    try:
        yield ledger
    finally:
        ledger.close()


# --- round trips -----------------------------------------------------------------------------------------------------


def a_batch(tx: Transaction, loops: Sequence[int], start: int) -> None:
    """Decide, reward what was decided before, and write one of everything else, in several loops."""
    wants = [Want(loop, after=0, events=[f"e{i}" for i in range(start)], due=start, most=9) for loop in loops]
    tx.enter(wants)
    for loop in loops:
        draft = tx.draft(loop)
        assert draft is not None
        assert len(draft.entered.decided) == start
        for each in draft.entered.decided:
            draft.change(each.pending._replace(phase="learned", value=0.5, due=None))
        for i in range(start, start + 64):
            decide(draft, f"e{i}")
        draft.early.append(Early("soon", 10**9, {"value": 0.5}))
        draft.arrived.append(("soon", 1))
        draft.snapshot = (draft.seq, b"model")


def test_a_batch_of_several_loops_is_two_round_trips(proxy: Proxy, schema: str) -> None:
    with opened(proxy.conninfo, schema) as ledger:
        loops = [new_loop(ledger, name).id for name in ("one", "two", "three")]
        trips = []
        for start in (0, 64, 128):
            before = proxy.trips
            with transaction(ledger) as tx:
                a_batch(tx, loops, start)
            trips.append(proxy.trips - before)
        assert trips == [2, 2, 2]  # what is prepared for the first time rides along
        assert [len(events_of(ledger, loop)) for loop in loops] == [192] * 3


def test_a_batch_with_maintenance_stays_within_six_round_trips(proxy: Proxy, schema: str) -> None:
    with opened(proxy.conninfo, schema) as ledger:
        loop = new_loop(ledger).id
        kinds = ("new", "rules", "forget")
        for name in kinds:
            before = proxy.trips
            with transaction(ledger) as tx:
                decide(entered(tx, Want(loop, after=0)), f"before {name}")
                with tx.savepoint() as session:
                    if name == "rules":
                        session.describe(loop, "{}")
                    elif name == "forget":
                        session.rebase(loop, 0, b"other")
                    elif session.find(name) is None:
                        session.create(name, "{}", b"", 0)
                decide(entered(tx, Want(loop)), f"after {name}")
            assert proxy.trips - before <= MOST_TRIPS
        assert events_of(ledger, loop) == [
            f"{when} {name}" for name in ("new", "rules", "forget") for when in ("before", "after")
        ]


def test_a_transaction_without_a_question_is_no_round_trip(proxy: Proxy, schema: str) -> None:
    with opened(proxy.conninfo, schema) as ledger:
        before = proxy.trips
        with ledger.session():
            pass
        assert proxy.trips == before


# --- who waits for whom ----------------------------------------------------------------------------------------------


def test_loops_are_locked_one_by_one(server: Server, schema: str) -> None:
    with opened(server.conninfo, schema) as one, opened(server.conninfo, schema, deadline=0.5) as two:
        mine, other = new_loop(one).id, new_loop(one, "other").id
        with one.session() as session:
            session.enter([Want(mine)])
            assert decide_once(two, other, "e") == 1
            with pytest.raises((psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled)):
                decide_once(two, mine, "e")
        assert decide_once(two, mine, "e") == 1


def test_who_waited_for_a_loop_gets_the_rows_of_the_other(server: Server, schema: str) -> None:
    with opened(server.conninfo, schema) as one, opened(server.conninfo, schema) as two, ThreadPoolExecutor(1) as pool:
        loop = new_loop(one).id
        with transaction(one) as tx:
            decide(entered(tx, Want(loop)), "e")
            waiting = pool.submit(decide_once, two, loop, "e")
            server.until(WAITS, schema)
        assert waiting.result() == 1
        assert events_of(one, loop) == ["e"]


def test_a_loop_that_two_make_at_once_is_made_once(server: Server, schema: str) -> None:
    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        ledgers = [stack.enter_context(opened(server.conninfo, schema)) for _ in range(4)]
        for round_ in range(5):
            found = list(pool.map(lambda ledger, name=f"loop {round_}": new_loop(ledger, name), ledgers))
            assert len({record.id for record in found}) == 1


def test_two_processes_make_the_tables_at_once(server: Server, schema: str) -> None:
    gate = threading.Barrier(4)

    def enter() -> int:
        gate.wait()
        with opened(server.conninfo, schema) as ledger:
            return len(ledger.loops())

    with ThreadPoolExecutor(4) as pool:
        assert [each.result() for each in [pool.submit(enter) for _ in range(4)]] == [0] * 4
    assert server.run(f"SELECT number FROM {schema}.version") == [(VERSION,)]


# --- time limits -----------------------------------------------------------------------------------------------------


def test_a_database_that_is_silent_is_given_up_in_time(proxy: Proxy, schema: str) -> None:
    with opened(proxy.conninfo, schema, deadline=2.0) as ledger:
        loop = new_loop(ledger).id
        proxy.is_silent = True
        start = monotonic()
        with pytest.raises(psycopg.OperationalError, match="has not answered within 2 s"):
            decide_once(ledger, loop, "e")
        with pytest.raises(StoreError, match="cannot be read"):  # it does not answer a new connection either
            ledger.loops()
        assert monotonic() - start < HANGS  # twice 2 s on a machine that does nothing else
        proxy.is_silent = False
        assert decide_once(ledger, loop, "e") == 1


REPLICA = """
import sys
from armlet.stores.transaction import transaction
from armlet.stores.ledger import Moment, Want
from armlet.stores.postgresql import PostgreSQL
ledger = PostgreSQL(sys.argv[1], schema=sys.argv[2], deadline=3.0)
print("ready", flush=True)
sys.stdin.readline()
try:
    with transaction(ledger) as tx:
        tx.enter([Want(int(sys.argv[3]), after=int(sys.argv[4]))])
        tx.draft(int(sys.argv[3])).append(Moment(1, 1), "decide", 1, {"event": "mine"}, None)
        print("locked", flush=True)
        sys.stdin.readline()
except Exception as error:
    print(type(error).__name__)
"""


@contextmanager
def replica(server: Server, schema: str, loop: int, after: int) -> Iterator[subprocess.Popen[str]]:
    """Start a process that enters a loop when it is told to; it ends with the error that it gets."""
    words = [
        sys.executable,
        "-c",
        REPLICA,
        make_conninfo(server.conninfo, application_name=schema),
        schema,
        str(loop),
        str(after),
    ]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert heard(process) == "ready"  # before anybody holds a lock: it takes a while to start
            yield process
        finally:
            process.kill()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_replica_that_was_stopped_loses_its_lock_in_time(server: Server, schema: str) -> None:
    with opened(server.conninfo, schema, deadline=3.0) as ledger:
        loop = new_loop(ledger).id
        with replica(server, schema, loop, 0) as other:
            print(file=other.stdin, flush=True)
            assert heard(other) == "locked"
            other.send_signal(signal.SIGSTOP)
            assert decide_once(ledger, loop, "e") == 1  # within its deadline, after which it is refused
            other.send_signal(signal.SIGCONT)
            print(file=other.stdin, flush=True)
            assert heard(other) == "OperationalError"  # it knows that nothing was kept
        assert events_of(ledger, loop) == ["e"]


def test_a_replica_that_was_stopped_while_it_reads_loses_its_lock(server: Server, schema: str) -> None:
    """The server is then writing to it, so that it does not count as idle: others end its session."""
    with opened(server.conninfo, schema, deadline=3.0) as ledger:
        loop = new_loop(ledger).id
        with transaction(ledger) as tx:
            draft = entered(tx, Want(loop))
            for i in range(20):
                draft.append(Moment(1, 1), "decide", i + 1, {"event": f"e{i}"}, bytes(10**5))
        with replica(server, schema, loop, 0) as other:
            with transaction(ledger) as tx:
                entered(tx, Want(loop))
                print(file=other.stdin, flush=True)
                server.until(WAITS, schema)
                other.send_signal(signal.SIGSTOP)
            server.until("bool_or(wait_event = 'ClientWrite')", schema)
            with pytest.raises((psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled)):
                decide_once(ledger, loop, "e")
            assert decide_once(ledger, loop, "e") == 21  # within its deadline, after which it is refused


# --- a database that goes away ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["before", "after"])
def test_a_commit_whose_answer_is_lost_is_uncertain(how: str, proxy: Proxy, server: Server, schema: str) -> None:
    with opened(proxy.conninfo, schema) as ledger, opened(server.conninfo, schema) as other:
        loop = new_loop(ledger).id
        assert decide_once(ledger, loop, "first") == 1
        setattr(proxy, f"cuts_{how}", COMMIT.name)
        with pytest.raises(UncertainError, match="repeat it with the same event"):
            decide_once(ledger, loop, "e")
        assert (events_of(other, loop) == ["first", "e"]) == (how == "after")
        setattr(proxy, f"cuts_{how}", None)
        assert decide_once(ledger, loop, "e") == 2
        assert events_of(other, loop) == ["first", "e"]


def test_a_cut_before_commit_is_no_uncertainty(proxy: Proxy, schema: str) -> None:
    with opened(proxy.conninfo, schema) as ledger:
        loop = new_loop(ledger).id
        assert decide_once(ledger, loop, "first") == 1
        proxy.cuts_after = ENTER.name
        with pytest.raises(psycopg.OperationalError):
            decide_once(ledger, loop, "e")
        proxy.cuts_after = None
        with pytest.raises(psycopg.OperationalError, match="before anything was committed"):
            decide_and_be_cut(ledger, loop, proxy)
        proxy.accept()
        assert decide_once(ledger, loop, "e") == 2


def decide_and_be_cut(ledger: PostgreSQL, loop: int, proxy: Proxy) -> None:
    with transaction(ledger) as tx:
        decide(entered(tx, Want(loop)), "e")
        proxy.refuse()


def test_connections_are_made_again_after_the_database_was_away(proxy: Proxy, schema: str) -> None:
    with opened(proxy.conninfo, schema) as ledger:
        loop = new_loop(ledger).id
        for i in range(3):
            proxy.refuse()
            with pytest.raises(psycopg.OperationalError):
                decide_once(ledger, loop, f"e{i}")
            with pytest.raises(StoreError):
                ledger.loops()
            proxy.accept()
            assert decide_once(ledger, loop, f"e{i}") == i + 1


def test_a_restart_between_transactions_is_not_noticed(server: Server, schema: str) -> None:
    with opened(server.conninfo, schema) as ledger:
        loop = new_loop(ledger).id
        for i in range(2):
            assert decide_once(ledger, loop, f"e{i}") == i + 1
            server.restart(schema)
        assert events_of(ledger, loop) == ["e0", "e1"]


def test_a_fork_leaves_the_connection_to_the_parent(ledger: PostgreSQL) -> None:
    loop = new_loop(ledger).id
    assert decide_once(ledger, loop, "parent") == 1
    child = os.fork()
    if not child:
        os._exit(0 if decide_once(ledger, loop, "child") == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert decide_once(ledger, loop, "parent again") == 3


# --- what is refused -------------------------------------------------------------------------------------------------


def insert_alone(ledger: PostgreSQL, loop: int, event: str) -> None:
    """Write a decision whose event is in its outcome only."""
    with transaction(ledger) as tx:
        draft = entered(tx, Want(loop))
        seq = draft.append(Moment(1, 1), "decide", 1, {}, None)
        draft.insert(Pending(t=1, event=event, seq=seq, phase="open"))


@pytest.mark.parametrize("event", ["nul \0", "half of a pair \ud800", os.urandom(40_000).hex()])
def test_what_the_database_cannot_keep_is_a_refusal(event: str, ledger: PostgreSQL) -> None:
    loop = new_loop(ledger).id
    with pytest.raises(PostgreSQL.refusals):
        insert_alone(ledger, loop, event)
    assert decide_once(ledger, loop, "e") == 1


def read_all(ledger: PostgreSQL, loop: int) -> None:
    list(ledger.loops())
    decide_once(ledger, loop, "e")
    list(ledger.rows(loop))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ('UPDATE event SET fields = \'{"event": "other"}\'', "row 1 of the loop is damaged"),
        ("UPDATE outcome SET value = 0.25", "the outcome of step 1 of the loop is damaged"),
        ("UPDATE head SET clock = 7", "the head of loop 1 is damaged"),
        ("UPDATE loop SET start = 'other'", "loop 'homepage' is damaged"),
        ("DELETE FROM event", "row 1 of the loop is missing"),  # or its event would be decided again
    ],
)
def test_a_row_that_was_edited_is_refused(
    damage: str, told: str, ledger: PostgreSQL, server: Server, schema: str
) -> None:
    loop = new_loop(ledger).id
    decide_once(ledger, loop, "e")
    server.run(damage.replace("UPDATE ", f"UPDATE {schema}.").replace("FROM ", f"FROM {schema}."))
    with pytest.raises(StoreError, match=told):
        read_all(ledger, loop)


def test_an_address_that_is_not_valid_is_not_shown(schema: str) -> None:
    for conninfo in ("host=nowhere secret", "postgresql://me:sec ret@nowhere:port/", "password=secret sslmod=x"):
        with pytest.raises(InvalidValueError) as caught:
            PostgreSQL(conninfo, schema=schema)
        shown = "".join(map(str, (caught.value, caught.value.__cause__)))
        assert "secret" not in shown
        assert "ret@" not in shown
        assert caught.value.__suppress_context__


def test_a_password_is_in_no_error(server: Server, schema: str) -> None:
    for other in ({"port": 1, "host": "127.0.0.1"}, {"user": "nobody at all"}, {"dbname": "not there"}):
        with pytest.raises(StoreError) as caught:
            PostgreSQL(make_conninfo(server.conninfo, password="my secret", **other), schema=schema)
        assert "secret" not in f"{caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"deadline": 0.0}, "deadline is 0.0"), ({"schema": ""}, "schema is ''"), ({"schema": "pg_mine"}, "'pg_mine'")],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], told: str, server: Server) -> None:
    with pytest.raises(InvalidValueError, match=told):
        PostgreSQL(server.conninfo, **settings)


def test_a_schema_may_have_any_name(server: Server, schema: str) -> None:
    name = f'{schema} "ü"'
    with opened(server.conninfo, name) as ledger:
        assert decide_once(ledger, new_loop(ledger).id, "e") == 1
        assert ledger.size() > 0
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(name)))


# --- versions --------------------------------------------------------------------------------------------------------


def test_tables_of_another_version_are_refused(ledger: PostgreSQL, server: Server, schema: str) -> None:
    loop = new_loop(ledger).id
    server.run(f"UPDATE {schema}.version SET number = {VERSION + 6}")
    told = f"is a store of version {VERSION + 6}; this Armlet reads .*{VERSION} only"
    with pytest.raises(StoreError, match=told):
        PostgreSQL(server.conninfo, schema=schema)
    for call in (lambda: decide_once(ledger, loop, "e"), lambda: new_loop(ledger, "other")):
        with pytest.raises(StoreError, match=told):  # it was open before
            call()


def test_tables_of_others_are_refused(server: Server, schema: str) -> None:
    server.run(f"CREATE SCHEMA {schema}")
    server.run(f"CREATE TABLE {schema}.head (title text)")
    with pytest.raises(StoreError, match="has tables that are not Armlet's"):
        PostgreSQL(server.conninfo, schema=schema)
    assert server.run(f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'") == [(1,)]


def add_a_column(connection: Connection) -> None:
    connection.run([Statement("ALTER TABLE head ADD COLUMN colour text")()])


def fail(connection: Connection) -> None:
    add_a_column(connection)
    connection.run([Statement("SELECT 1 / 0")()])


def test_an_earlier_version_is_brought_up_to_date_once(ledger: PostgreSQL, server: Server, schema: str) -> None:
    """Replicas of the next version start while one of this version is in a transaction."""
    loop = new_loop(ledger).id
    versions = VERSION + 2
    steps = {VERSION: lambda _: None, VERSION + 1: add_a_column}

    def start() -> None:
        named = make_conninfo(server.conninfo, application_name=schema)
        connection = Connection(Address(named, schema, 10.0))
        bring_up_to_date(connection, schema, steps, versions)
        connection.close()

    with ThreadPoolExecutor(2) as pool:
        with transaction(ledger) as tx:
            decide(entered(tx, Want(loop)), "e")
            starting = [pool.submit(start) for _ in range(2)]
            server.until("count(*) FILTER (WHERE wait_event_type = 'Lock') = 2", schema)
        assert [each.result() for each in starting] == [None, None]
    assert server.run(f"SELECT number, colour FROM {schema}.version, {schema}.head") == [(versions, None)]
    assert events_of(ledger, loop) == ["e"]
    with pytest.raises(StoreError, match=f"is a store of version {versions}"):
        decide_once(ledger, loop, "f")


def test_a_step_that_fails_leaves_the_tables_as_they_were(ledger: PostgreSQL, server: Server, schema: str) -> None:
    loop = new_loop(ledger).id
    connection = Connection(Address(server.conninfo, schema, 10.0))
    with pytest.raises(psycopg.errors.DivisionByZero):
        bring_up_to_date(connection, schema, {VERSION: fail}, VERSION + 1)
    connection.close()
    assert decide_once(ledger, loop, "e") == 1
