"""What the tests of stores share: loops made again from their rows; a store with a past, and tools for its file."""

from __future__ import annotations

from armlet.cast.cast import Cast
from armlet.stores import Moment, Store
from armlet.stores.ledger import Want
from armlet.stores.rows.replay import rebuild
from armlet.stores.terms import Terms
from armlet.stores.transaction import Transaction
from armlet.types import Policy


def rebuilt(store: Store, name: str = "homepage", policy: Policy | None = None) -> Cast:
    """Return the cast of a loop from its start model and its rows, without its snapshot."""

    def work(tx: Transaction, _: Moment) -> Cast:
        record = tx.session.find(name)
        found = None if record is None else tx.session.enter([Want(record.id)])[0]
        if record is None or found is None:
            raise AssertionError(f"loop {name!r} is gone")
        return rebuild(tx.session, record, found.head.seq, policy, Terms.read(record).carry)

    return store._writer.do(work)
