"""Two replicas and what can happen to them: twenty faults, and faults of ours that the soak must find."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from armlet.errors import StoreError
from armlet.policies import LinUCB
from armlet.stores import Store
from armlet.stores.postgresql import PostgreSQL
from soak.oracle import LostError
from soak.replicas import soak
from support.postgresql import Server


def test_two_replicas_survive_twenty_faults(server: Server) -> None:
    found = soak(server, 20, filled=1000)
    assert sum(found.faults.values()) == 20
    assert min(found.faults.values()) >= 3
    counts = found.report
    assert min(counts.decisions, counts.repeats, counts.rewards, counts.learned) > 200
    assert min(counts.forgotten, counts.pruned, counts.changes, found.refused, found.uncertain) > 0


def test_the_soak_finds_a_replica_that_does_not_follow_others(server: Server) -> None:
    with pytest.raises(LostError, match=r"replicas differ|is not what its rows say|is not the sum"):
        soak(server, 30, filled=100, sabotage="no catch-up")  # ends with the check that finds it


@contextmanager
def half_a_question(server: Server, schema: str) -> Iterator[None]:
    """Lock all loops as a replica does that was stopped, or cut off, after half of what it had to send."""
    conninfo = make_conninfo(server.conninfo, application_name=schema, options=f"-c search_path={schema}")
    with closing(psycopg.connect(conninfo, autocommit=True)) as connection:
        libpq = connection.pgconn
        libpq.enter_pipeline_mode()
        for sql in (b"BEGIN", b"SELECT FROM head FOR UPDATE"):
            libpq.send_query_params(sql, None)
        libpq.send_flush_request()  # and no end of the pipeline
        libpq.flush()
        server.until("bool_or(state = 'active' AND wait_event = 'ClientRead')", schema)
        yield


def test_a_replica_that_was_stopped_while_it_writes_loses_its_lock(server: Server, schema: str) -> None:
    """The server waits for the rest of what it has begun to say, so that it does not count as idle."""
    with Store(PostgreSQL(server.conninfo, schema=schema, deadline=2.0)) as store:
        loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=LinUCB(), seed=5)
        with half_a_question(server, schema):
            with pytest.raises(StoreError, match="nothing of this call was kept"):
                loop.decide([1.0], event="e")
            assert loop.decide([1.0], event="e").t == 1
