"""A database is looked at as it is at one moment, by the library and by commands, next to replicas that write."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

import armlet
from armlet.cli import main
from armlet.errors import StoreError
from armlet.stores import Store
from armlet.stores.overview import details, overview
from armlet.stores.postgresql import PostgreSQL, view
from armlet.stores.verify import verify
from support.postgresql import Server

pytestmark = pytest.mark.spread


def play(store: Store, n: int) -> armlet.stores.Loop:
    loop = store.loop("home", arms=["a", "b"], dim=1, policy=armlet.LinUCB(), seed=3)
    loop.decide_many([[(i % 8) / 8] for i in range(n)], events=[f"e{i}" for i in range(n)])
    loop.reward_many([(f"e{i}", (i % 4) / 4) for i in range(0, n, 2)])
    return loop


def test_a_loop_is_proved_next_to_a_replica(server: Server, schema: str, ledger: PostgreSQL) -> None:
    with Store(PostgreSQL(server.conninfo, schema=schema)) as store:
        loop = play(store, 1400)
        found = verify(ledger, "home")
        assert (found.rows, found.outcomes, found.digest) == (2100, 1400, loop.model().digest())
        loop.change(window=60.0, default_reward=0.0, arms=["a", "b", "c"])
        loop.forget("e7")
        assert verify(ledger, "home").digest == loop.model().digest()


def test_a_view_stays_as_it_was(ledger: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "COUNTED", 4)  # so that counts take several pages
    with Store(ledger) as store:
        loop = play(store, 10)
        with ledger.view() as looked:
            record = looked.loops()[0]
            rows = [list(looked.rows(record.id, 0)), list(looked.outcomes(record.id)), looked.usage(record.id)]
            line = overview(looked, record)
            store.delete("home")
            assert rows == [list(looked.rows(record.id, 0)), list(looked.outcomes(record.id)), looked.usage(record.id)]
            assert overview(looked, record) == line
            found = details(looked, record, 0)
        assert (line.decisions, line.rewards, line.rows) == (10, 5, 15)
        assert (found.open, found.arms) == (5, ("a", "b"))
        assert loop.name not in store.loops


def test_what_was_changed_behind_its_back_is_named(server: Server, schema: str, ledger: PostgreSQL) -> None:
    with Store(ledger) as store:
        play(store, 10)
        for sql, message in (
            ("UPDATE {}.event SET ts = ts + 1 WHERE seq = 4", "row 4 of the loop is damaged: its checksum is wrong"),
            ("UPDATE {}.event SET ts = ts - 1 WHERE seq = 4", ""),
            ("DELETE FROM {}.outcome WHERE t = 3", "there are 9 outcomes, but 10 were written"),
        ):
            server.run(sql.format(schema))
            if message:
                with pytest.raises(StoreError, match=message):
                    verify(ledger, "home")
            else:
                verify(ledger, "home")


@pytest.fixture
def address(server: Server) -> Iterator[str]:
    """Give the address of a new database."""
    name = f"armlet_{uuid.uuid4().hex[:12]}"
    server.run(f"CREATE DATABASE {name}")
    told = {key: value for key, value in conninfo_to_dict(server.conninfo).items() if key != "dbname"}
    try:
        yield f"postgresql:///{name}?{urlencode(told)}"
    finally:
        server.run(f"DROP DATABASE {name} WITH (FORCE)")


def test_commands_take_the_address_of_a_database(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that write too, since replicas share it."""
    with armlet.open_store(address) as store:
        digest = play(store, 30).model().digest()
        for words in (
            ["store", address, "list", "--json"],
            ["store", address, "verify", "--json"],
            ["store", address, "show", "home", "--json"],
            ["log", "show", address, "--json"],
        ):
            assert main(words) == 0
        listed, verified, shown, log = map(json.loads, capsys.readouterr().out.splitlines())
        assert [each["decisions"] for each in listed["loops"]] == [30]
        assert verified["loops"][0]["digest"] == shown["digest"] == digest
        assert log["events"] == {"start": 1, "decide": 30, "learn": 15}
        assert main(["store", address, "forget", "home", "e0", "none"]) == 0
        assert main(["store", address, "change", "home", "--aggregation", "last"]) == 0
        assert store.loop("home").reward("e0", 1.0) == "unknown"
        with closing(PostgreSQL(address)) as ledger:
            assert verify(ledger, "home").outcomes == 29
