"""Files of stores that were edited, damaged, linked or half written: refused by name, and nothing is left behind."""

from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

import armlet
from armlet.stores import Loop, Store
from armlet.stores.sqlite import ledger
from support.stores.files import MEND_EVENT, MEND_HEAD, MEND_LOOP, MEND_OUTCOME, MEND_TALLY, MENDS, edit

SECONDS = 1e9
BARE = "UPDATE event SET fields = json_remove(fields, '$.exploration_rate')"


def make(store: Store) -> Loop:
    return store.loop("homepage", arms=["a", "b"], dim=2, policy=armlet.Algorithm1(p=4), seed=3)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a store with thirty decisions, all but the last rewarded."""
    path = tmp_path_factory.mktemp("sound") / "shop.db"
    with opened(path) as store:
        loop = make(store)
        for i in range(30):
            loop.decide([1.0, i / 8], event=f"e{i}")
            if i < 29:
                loop.reward(f"e{i}", 0.5)
    return path.read_bytes()


@pytest.fixture
def path(sound: bytes, tmp_path: Path) -> Path:
    """Return a file of one's own."""
    path = tmp_path / "shop.db"
    path.write_bytes(sound)
    return path


def opened(path: Path) -> Store:
    return armlet.open_store(path, wall=lambda: SECONDS, elapsed=lambda: SECONDS)


def test_check_values_are_those_of_the_files_of_before(path: Path) -> None:
    """Mending a sound file changes nothing in it."""
    before = everything(path)
    edit(path, *MENDS)
    assert everything(path) == before
    use(path)


def everything(path: Path) -> Sequence[object]:
    """Return all rows of all tables."""
    connection = apsw.Connection(str(path))
    tables = sorted(name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
    found = [list(connection.execute(f"SELECT * FROM {table}")) for table in tables]
    connection.close()
    return found


def use(path: Path) -> None:
    """Do what a service does after a restart."""
    with opened(path) as store:
        loop = store.loop("homepage")
        loop.decide([1.0, 5 / 8], event="e5")
        loop.reward("e5", 0.25)
        loop.reward("e29", 0.5)
        list(loop.log)
        loop.model()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE outcome SET phase = 'open', value = NULL WHERE event = 'e5'",  # its reward would count again
        "UPDATE outcome SET value = 0.25 WHERE event = 'e5'",
        "UPDATE outcome SET value = 'abc' WHERE event = 'e5'",
        "UPDATE outcome SET seq = 1 WHERE event = 'e5'",
        "UPDATE outcome SET names = '[\"x\"]', rank = 7 WHERE event = 'e5'",
        "UPDATE event SET ts = 9223372036854775807",
        "DELETE FROM outcome WHERE event = 'e5'",
        "UPDATE outcome SET played = '\"b\"' WHERE event = 'e5'",
        "UPDATE head SET clock = 3",
        "UPDATE head SET seq = 3",
        "UPDATE head SET steady = 0",
        "UPDATE head SET epoch = 7",
        "UPDATE head SET outcomes = 29",
        "UPDATE head SET early = 1",
        "UPDATE head SET tallied = 7",
        "UPDATE tally SET counts = '{}'",
        "DELETE FROM head",
        "UPDATE loop SET about = replace(about, 'first', 'last')",
        "UPDATE loop SET base = 7",
        "UPDATE loop SET name = 'homepage' || char(0)",
        "UPDATE loop SET start = zeroblob(100)",
    ],
)
def test_a_row_of_any_table_that_was_changed_is_refused(path: Path, change: str) -> None:
    edit(path, change)
    with pytest.raises(armlet.errors.StoreError, match=r"is damaged|there is no loop"):
        use(path)


@pytest.mark.parametrize(
    "change",
    [
        ("UPDATE outcome SET value = 'abc'", *MEND_OUTCOME),
        ("UPDATE outcome SET phase = 'shut'", *MEND_OUTCOME),
        ("UPDATE outcome SET names = '{}'", *MEND_OUTCOME),
        ("UPDATE outcome SET names = '[1]'", *MEND_OUTCOME),
        ("UPDATE outcome SET seq = 2", *MEND_OUTCOME),  # which is no decision
        ("UPDATE outcome SET seq = 1000", *MEND_OUTCOME),
        ("UPDATE outcome SET phase = 'open', value = NULL", *MEND_OUTCOME),  # as on a page that is older than others
        ("DELETE FROM snapshot", "UPDATE event SET fields = '{}'", *MEND_EVENT),
        ("DELETE FROM snapshot", "UPDATE event SET fields = '[]'", *MEND_EVENT),
        ("DELETE FROM snapshot", "UPDATE event SET fields = '{\"of\": 1e400}' WHERE kind = 'learn'", *MEND_EVENT),
        (f"UPDATE event SET fields = '{'[' * 100_000}'", *MEND_EVENT),
        ("UPDATE event SET fields = replace(fields, '0.5', '\"half\"')", "DELETE FROM snapshot", *MEND_EVENT),
        ("UPDATE event SET x = zeroblob(7)", *MEND_EVENT),
        ("UPDATE event SET kind = 'unheard of'", "DELETE FROM snapshot", *MEND_EVENT),
        ("UPDATE event SET t = NULL", "DELETE FROM snapshot", *MEND_EVENT),
        ("DELETE FROM event WHERE seq = 9", "DELETE FROM snapshot"),
        ("DELETE FROM event WHERE seq < 12",),
        ("UPDATE loop SET about = 'no JSON'", *MEND_LOOP, *MEND_HEAD),
        ("UPDATE loop SET about = '5'", *MEND_LOOP, *MEND_HEAD),
        (f"UPDATE loop SET about = '{'[' * 100_000}'", *MEND_LOOP, *MEND_HEAD),
        ("UPDATE loop SET about = replace(about, 'null', '\"x\"')", *MEND_LOOP, *MEND_HEAD),
        ("UPDATE loop SET about = replace(about, 'first', 'best')", *MEND_LOOP, *MEND_HEAD),
        ("UPDATE loop SET start = zeroblob(100)", "DELETE FROM snapshot", *MEND_LOOP, *MEND_HEAD),
        ("UPDATE tally SET counts = '{}'", *MEND_TALLY),
        ("UPDATE tally SET counts = replace(counts, 'format', 'form')", *MEND_TALLY),
        ("UPDATE head SET outcomes = 29", MEND_HEAD[1]),
        ("UPDATE head SET loop = 7", MEND_HEAD[1]),
        ("UPDATE head SET seq = 7, epoch = -1", "DELETE FROM snapshot", *MEND_HEAD),
        ("DELETE FROM snapshot", "UPDATE head SET tallied = 0", "DELETE FROM tally", BARE, *MEND_EVENT, *MEND_HEAD),
        ("UPDATE loop SET name = CAST(x'ff' AS TEXT)",),
        ("UPDATE event SET fields = CAST(x'ff' AS TEXT) WHERE kind = 'decide'",),
    ],
)
def test_a_row_that_says_nonsense_with_a_right_checksum_is_refused(path: Path, change: tuple[str, ...]) -> None:
    before = descriptors()
    edit(path, *change)
    with pytest.raises(armlet.ArmletError):
        use(path)
    assert descriptors() == before


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("CREATE TRIGGER spy AFTER INSERT ON event BEGIN DELETE FROM outcome; END", "trigger 'spy'"),
        ("CREATE VIEW spy AS SELECT * FROM event", "view 'spy'"),
        ("CREATE TABLE spy (x)", "table 'spy'"),
        ("CREATE INDEX spy ON event (kind)", "index 'spy'"),
        ("DROP INDEX outcome_by_event", "index 'outcome_by_event'"),
        ("ALTER TABLE outcome ADD COLUMN spy", "table 'outcome'"),
        ("ALTER TABLE outcome DROP COLUMN names", "table 'outcome'"),
        ("DROP TABLE snapshot", "table 'snapshot'"),
    ],
)
def test_another_schema_is_refused_before_anything_of_it_runs(path: Path, change: str, what: str) -> None:
    edit(path, change)
    before, held = path.read_bytes(), descriptors()
    with pytest.raises(armlet.errors.StoreError, match=f"another schema than a store of Armlet's: see {what}"):
        armlet.open_store(path)
    assert path.read_bytes() == before
    assert descriptors() == held


def test_an_index_that_hides_a_row_is_refused(path: Path) -> None:
    """As a damaged page does: the event would be decided again, and its reward counted again."""
    edit(
        path,
        "PRAGMA writable_schema = ON",
        "CREATE TABLE aside AS SELECT sql FROM sqlite_master WHERE name = 'outcome_by_event'",
        "UPDATE sqlite_master SET sql = sql || ' WHERE event <> ''e5''' WHERE name = 'outcome_by_event'",
        "PRAGMA writable_schema = RESET",
        "REINDEX outcome_by_event",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = (SELECT sql FROM aside) WHERE name = 'outcome_by_event'",
        "PRAGMA writable_schema = RESET",
        "DROP TABLE aside",
    )
    with pytest.raises(armlet.errors.StoreError, match=r"is damaged: wrong # of entries in index outcome_by_event"):
        armlet.open_store(path)


def test_a_snapshot_of_other_rows_is_made_again(path: Path) -> None:
    with opened(path) as store:
        before = store.loop("homepage").model().to_bytes()
    edit(path, "UPDATE snapshot SET seq = 30")
    with opened(path) as store:
        assert store.loop("homepage").model().to_bytes() == before


def test_what_is_refused_leaves_neither_descriptors_nor_files(path: Path, tmp_path: Path) -> None:
    other, text = tmp_path / "other.db", tmp_path / "notes.txt"
    edit(other, "CREATE TABLE people (name)")
    text.write_text("no database at all " * 100)
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(path.read_bytes()[:20_000])
    before, held = sorted(tmp_path.iterdir()), descriptors()
    bytes_before = other.read_bytes()
    for name in (other, text, damaged, tmp_path, tmp_path / "nowhere" / "shop.db"):
        with pytest.raises(armlet.errors.StoreError):
            armlet.open_store(name)
    assert sorted(tmp_path.iterdir()) == before
    assert other.read_bytes() == bytes_before  # not even its journal mode
    assert descriptors() == held


@pytest.mark.parametrize("name", ["", ":memory:", "file:shop.db", "mysql://localhost/shop", "a\0b"])
def test_what_names_no_file_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(armlet.errors.StoreError, match=r"give the path of a file.*Memory\(\)"):
        armlet.open_store(name)
    with pytest.raises(armlet.ArmletError, match="path is 5"):
        armlet.open_store(5)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_open_once_through_all_its_links(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link, link_to_folder = tmp_path / "elsewhere" / "link.db", tmp_path / "folder"
    link.symlink_to(path)
    link_to_folder.symlink_to(tmp_path)
    with opened(path):
        for name in (link, link_to_folder / "shop.db"):
            with pytest.raises(armlet.errors.StoreError, match="open already"):
                armlet.open_store(name)
    with opened(link) as store:
        assert store.loop("homepage").model().t == 30
    assert [each.name for each in link.parent.iterdir()] == ["link.db"]


@contextmanager
def no_larger_than(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_backup_that_fails_leaves_nothing_and_can_be_tried_again(path: Path, tmp_path: Path) -> None:
    with opened(path) as store:
        before, held = sorted(tmp_path.iterdir()), descriptors()
        with (
            no_larger_than(path.stat().st_size // 2),
            pytest.raises(armlet.errors.StoreError, match=r"copy.db cannot be"),
        ):
            store.backup(tmp_path / "copy.db")
        assert descriptors() == held
        with pytest.raises(armlet.errors.StoreError, match="cannot be written"):
            store.backup(tmp_path / "nowhere" / "copy.db")
        assert sorted(tmp_path.iterdir()) == before
        store.backup(tmp_path / "copy.db")
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith((".", "copy.db-"))] == []
    with opened(tmp_path / "copy.db") as store:
        assert store.loop("homepage").model().t == 30


def test_a_full_disk_can_be_opened_read_and_pruned(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk where SQLite finds no room until the store gives back what it has kept for that."""
    allocate, is_full = os.posix_fallocate, True
    connect, lock = ledger._connect, path.with_name("shop.db.lock")

    def allocated(*given: int) -> None:
        if is_full:
            raise OSError(errno.ENOSPC, "no space left")
        allocate(*given)

    def connected(file: Path, *flags: int) -> apsw.Connection:
        if lock.stat().st_size:
            raise apsw.IOError("disk I/O error")
        return connect(file, *flags)

    with opened(path) as store:
        before = store.loop("homepage").model().to_bytes()
    assert lock.stat().st_size == ledger.RESERVE
    monkeypatch.setattr(os, "posix_fallocate", allocated)
    monkeypatch.setattr(ledger, "_connect", connected)
    size = path.stat().st_size
    with opened(path) as store:
        loop = store.loop("homepage")
        assert loop.model().to_bytes() == before
        assert json.dumps(list(loop.log))
        record = fill(loop)
        assert store.prune(SECONDS + 1) > 20
        loop.decide([1.0, 0.5], event="after")  # in the room of what is gone
    assert path.stat().st_size <= size
    with opened(path) as store:
        assert store.loop("homepage").model().t == 30 + record + 1
        is_full = False
        monkeypatch.setattr(ledger, "_connect", connect)
        loop = store.loop("homepage")
        for i in range(200):
            loop.decide([1.0, 0.5], event=f"room {i}")
    assert (path.stat().st_size > size, lock.stat().st_size) == (True, ledger.RESERVE)


def fill(loop: Loop) -> int:
    """Decide until that is refused; give how often it was not."""
    for i in range(1000):
        try:
            loop.decide([1.0, 0.5], event=f"more {i}")
        except armlet.errors.StoreError:
            return i
    raise AssertionError("the disk was never full")
