"""The rows of a loop as events of a log: whatever reads an `armlet.Log` reads a store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from armlet.bandit import from_bytes
from armlet.log.schema import FORMAT, SCHEMA, Event
from armlet.model_file.model import describe
from armlet.stores.decisions import checked, context_of
from armlet.stores.ledger import Kept, Ledger, Row
from armlet.types import Policy

INTERNAL = ("of",)  # what only a store needs
LONGEST = 19  # digits of a step


class LoopLog:
    """The events of a loop, the start first; read anew, and in bounded memory, each time.

    After rows were pruned or erased, what is left cannot be played again from the first one on; from the model that the
    loop goes on from, it can: `replayable`.
    """

    def __init__(self, ledger: Ledger, kept: Kept, policy: Policy | None, after: int = 0) -> None:
        self._ledger, self._kept, self._policy, self._after = ledger, kept, policy, after

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start: arms, features, policy and the like, but not the seed."""
        head = {"seq": 0, "kind": "start", "at": 0, "format": FORMAT, "schema": SCHEMA, "loop": self._kept.name}
        told = describe(from_bytes(self._kept.start, policy=self._policy)._model())
        if self._after != self._kept.base:
            told["digest"] = None  # the rows are older than the model that there is
        return {**head, **told, "start_model": hashlib.sha256(self._kept.start).hexdigest()}

    @property
    def replayable(self) -> LoopLog:
        """The events that go on from the loop's start model, and lead to what it knows."""
        return LoopLog(self._ledger, self._kept, self._policy, self._kept.base)

    @property
    def start(self) -> bytes:
        """The model that `replayable` goes on from. It holds the seed: keep it to yourself."""
        return self._kept.start

    def __iter__(self) -> Iterator[Event]:
        yield dict(self.about)
        for seq, row in enumerate(self._ledger.rows(self._kept.id, self._after), 1):
            yield event_of(row, seq)

    def find(self, decision: str) -> Event | None:
        """Find a decision by its id."""
        step = decision.partition("-")[0]
        row = self._ledger.decided(self._kept.id, int(step)) if step.isdecimal() and len(step) < LONGEST else None
        return None if row is None or checked(row, "decide").fields["id"] != decision else event_of(row, row.seq)


def event_of(row: Row, seq: int) -> Event:
    """Give a row as an event with another number; a reward that waits for its window to close is a note.

    Examples
    --------
    >>> event_of(Row(seq=9, ts=5, kind="reward", t=1, fields={"of": 1, "id": "1-0f", "reward": 0.5}), 3)
    {'seq': 3, 'kind': 'note', 'at': 5, 'id': '1-0f', 'told': 0.5}
    """
    head = {"seq": seq, "kind": row.kind, "at": row.ts}
    checked(row)
    fields = {name: value for name, value in row.fields.items() if name not in INTERNAL}
    if row.kind == "reward":
        return {**head, "kind": "note", "id": fields["id"], "told": fields["reward"]}
    if row.kind == "decide":
        return {**head, "id": fields.pop("id"), "t": row.t, "x": context_of(row), **fields}
    return {**head, **fields}
