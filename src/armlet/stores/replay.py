"""The state of a loop is its start model and its rows, one after the other; a snapshot saves reading the first."""

from __future__ import annotations

from collections.abc import Callable

from armlet.bandit import Bandit, from_bytes
from armlet.errors import ArmletError, ModelFileError, StoreError
from armlet.stores.decisions import checked, decision_of
from armlet.stores.ledger import Kept, Pen, Row
from armlet.types import Policy


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
        _check_next(row.seq - 1, after)
        try:
            apply(bandit, checked(row), pen.row(kept.id, row.fields["of"]) if row.kind in _LEARNS else None)
        except StoreError:
            raise
        except (ArmletError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise StoreError(
                f"row {row.seq} of the loop cannot be played again: {error}; go back to a backup"
            ) from error
        after = row.seq
    _check_next(pen.last(kept.id), after)
    return after


def _check_next(before: int, after: int) -> None:
    if before != after:
        raise StoreError(f"row {after + 1} of the loop is missing; go back to a backup")


def _newest_model(pen: Pen, kept: Kept, policy: Policy | None) -> tuple[int, Bandit]:
    found = pen.snapshot(kept.id)
    if found is not None and found[0] >= kept.base:
        try:
            return found[0], from_bytes(found[1], policy=policy)
        except ModelFileError:
            pass  # a snapshot is only a cache: the rows say the same
    return kept.base, from_bytes(kept.start, policy=policy)


def apply(bandit: Bandit, row: Row, decided: Row | None) -> None:
    """Do what a row says was done; `decided` is the row of the decision that it is about, if it is about one."""
    if row.kind == "decide":
        bandit.advance_to(_step(row))
        bandit._begin_decision(row.fields["arm"])
    elif row.kind in _CHANGES:
        _CHANGES[row.kind](bandit, row)
    elif row.kind in _LEARNS:
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
    unlearn(bandit, decided, row.fields["reward"])


def unlearn(bandit: Bandit, decided: Row, reward: float) -> None:
    """Take back what was learned from a decision."""
    bandit.forget(decision_of(decided, reward), reward)


_LEARNS: dict[str, Callable[[Bandit, Row, Row], None]] = {"learn": _learn, "correct": _correct, "forget": _forget}
_CHANGES: dict[str, Callable[[Bandit, Row], None]] = {
    "add_arm": lambda bandit, row: bandit.add_arm(row.fields["arm"]),
    "retire_arm": lambda bandit, row: bandit.retire_arm(row.fields["arm"]),
    "restore_arm": lambda bandit, row: bandit.restore_arm(row.fields["arm"]),
}
