"""The state of a loop is its start model and its rows, one after the other; a snapshot saves reading the first."""

from __future__ import annotations

from collections.abc import Callable

from armlet.bandit import Bandit, from_bytes
from armlet.core.errors import ModelFileError, StoreError
from armlet.core.types import Policy
from armlet.stores.decisions import decision_of
from armlet.stores.ledger import Kept, Pen, Row


def recover(pen: Pen, kept: Kept, policy: Policy | None = None) -> tuple[Bandit, int, int]:
    """Give the bandit of a loop as its rows made it, and the numbers of the last row in its snapshot and of the last.

    Parameters
    ----------
    pen
        What reads the rows.
    kept
        The loop.
    policy
        The policy, if it is not one of Armlet's own.
    """
    snapshot, bandit = _newest_model(pen, kept, policy)
    return bandit, snapshot, _go_on(bandit, pen, kept, snapshot)


def rebuild(pen: Pen, kept: Kept, policy: Policy | None = None) -> Bandit:
    """Give the bandit of a loop from its rows alone, without a snapshot."""
    bandit = from_bytes(kept.start, policy=policy)
    _go_on(bandit, pen, kept, kept.base)
    return bandit


def _go_on(bandit: Bandit, pen: Pen, kept: Kept, after: int) -> int:
    for row in pen.rows(kept.id, after):
        apply(bandit, pen, kept.id, row)
        after = row.seq
    return after


def _newest_model(pen: Pen, kept: Kept, policy: Policy | None) -> tuple[int, Bandit]:
    found = pen.snapshot(kept.id)
    if found is not None and found[0] >= kept.base:
        try:
            return found[0], from_bytes(found[1], policy=policy)
        except ModelFileError:
            pass  # a snapshot is only a cache: the rows say the same
    return kept.base, from_bytes(kept.start, policy=policy)


def apply(bandit: Bandit, pen: Pen, loop: int, row: Row) -> None:
    """Do again what a row says was done."""
    if row.kind == "decide":
        bandit.advance_to(_step(row))
        bandit._begin_decision(row.fields["arm"])
    elif row.kind in _CHANGES:
        _CHANGES[row.kind](bandit, row)
    elif row.kind in _LEARNS:
        decided = pen.row(loop, row.fields["of"])
        if decided is None:
            raise StoreError(f"row {row.seq} of the loop is about row {row.fields['of']}, which is missing")
        _LEARNS[row.kind](bandit, decided, row)
    elif row.kind != "reward":
        raise StoreError(
            f"row {row.seq} of the loop is of kind {row.kind!r}, which this version of Armlet does not know"
        )


def _step(row: Row) -> int:
    if row.t is None:
        raise StoreError(f"row {row.seq} of the loop is a decision without its step")
    return row.t


def _learn(bandit: Bandit, decided: Row, row: Row) -> None:
    bandit.learn(decision_of(decided), row.fields["reward"])


def _correct(bandit: Bandit, decided: Row, row: Row) -> None:
    old = row.fields["old_reward"]
    bandit.correct(decision_of(decided, old), old, row.fields["new_reward"])


def _forget(bandit: Bandit, decided: Row, row: Row) -> None:
    bandit.forget(decision_of(decided, row.fields["reward"]), row.fields["reward"])


def _expire(bandit: Bandit, decided: Row, row: Row) -> None:  # noqa: ARG001
    bandit.expire(decision_of(decided))


_LEARNS: dict[str, Callable[[Bandit, Row, Row], None]] = {
    "learn": _learn,
    "correct": _correct,
    "forget": _forget,
    "expire": _expire,
}
_CHANGES: dict[str, Callable[[Bandit, Row], None]] = {
    "add_arm": lambda bandit, row: bandit.add_arm(row.fields["arm"]),
    "retire_arm": lambda bandit, row: bandit.retire_arm(row.fields["arm"]),
    "restore_arm": lambda bandit, row: bandit.restore_arm(row.fields["arm"]),
}
