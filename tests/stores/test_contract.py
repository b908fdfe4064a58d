"""The contract of stores over Armlet's own, and its own power to refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from armlet.stores import Ledger, Memory, Outcome, SQLite
from armlet.stores.memory import MemoryTransaction
from armlet.testing import STORE_CHECKS, check_store
from armlet.testing.stores import Place, StoreCheck

pytestmark = pytest.mark.spread


def in_memory(_: Path) -> Place:
    ledger = Memory()
    return lambda: ledger


def in_a_file(folder: Path) -> Place:
    return lambda: SQLite(folder / "shop.db")


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("new", [in_memory, in_a_file])
def test_stores_keep_the_contract(new: Callable[[Path], Place], check: StoreCheck, tmp_path: Path) -> None:
    check(new(tmp_path))


# --- the contract refuses --------------------------------------------------------------------------------------------


class KeepsWhatWasBrokenOff(Memory):
    @contextmanager
    def transaction(self) -> Iterator[MemoryTransaction]:
        error = None
        with super().transaction() as tx:
            try:
                yield tx
            except Exception as raised:
                error = raised
        if error is not None:
            raise error


class WithPen(Memory):
    tx: type[MemoryTransaction]

    @contextmanager
    def transaction(self) -> Iterator[MemoryTransaction]:
        with super().transaction() as tx:
            tx.__class__ = self.tx
            yield tx


class LeasesTwice(WithPen):
    class tx(MemoryTransaction):  # noqa: N801
        def lease(self, loop: int, steps: int) -> int:
            return super().lease(loop, 1) if steps > 1 else super().lease(loop, steps)


class ForgetsEvents(WithPen):
    class tx(MemoryTransaction):  # noqa: N801
        def outcome(self, loop: int, event: str) -> Outcome | None:
            return super().outcome(loop, f"not {event}")


class ClosesEarly(WithPen):
    class tx(MemoryTransaction):  # noqa: N801
        def due(self, loop: int, now: int, most: int) -> Sequence[Outcome]:
            return super().due(loop, now + 1_000_000, most)


class NeverCloses(WithPen):
    class tx(MemoryTransaction):  # noqa: N801
        def due(self, loop: int, now: int, most: int) -> Sequence[Outcome]:
            return super().due(loop, now, most)[:0]


class SnapshotsOffByOne(WithPen):
    class tx(MemoryTransaction):  # noqa: N801
        def keep(self, loop: int, seq: int, model: bytes) -> None:
            super().keep(loop, seq - 1, model)


class ShowsHalf(Memory):
    def rows(self, loop: int, after: int = 0):  # type: ignore[no-untyped-def]
        return iter([row for seq, row in self._books[loop].rows.items() if seq > after])


class LosesAllOnClosing(Memory):
    def close(self) -> None:
        self._books.clear()


@pytest.mark.parametrize(
    "kind",
    [
        KeepsWhatWasBrokenOff,
        LeasesTwice,
        ForgetsEvents,
        ClosesEarly,
        NeverCloses,
        SnapshotsOffByOne,
        ShowsHalf,
        LosesAllOnClosing,
    ],
)
def test_faulty_stores_are_refused(kind: type[Memory]) -> None:
    def new() -> Callable[[], Ledger]:
        ledger = kind()
        return lambda: ledger

    with pytest.raises(AssertionError):
        check_store(new)
