"""Files of earlier versions are brought up to date when they are opened, and go on as if nothing had been.

`data/version_6.db.xz` and `version_7.db.xz` were left by Armlets whose files were of these versions, by `python -m
support.stores.lived`; what both had answered and learned is in `data/told.json`.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import apsw
import pytest

import armlet
from armlet.stores import Store
from armlet.stores.sqlite import ledger as sqlite_ledger
from armlet.stores.sqlite.ledger import SQLiteReader
from support.stores import rebuilt
from support.stores.files import check_values, edit, tools
from support.stores.lived import LOOPS, Ticks, context, live, opened, play, tell

DATA = Path(__file__).parent / "data"
ANSWERS: dict[str, Any] = json.loads((DATA / "told.json").read_text())
ONWARDS = 1000  # the number of the next decision


@pytest.fixture(params=[6, 7])
def version(request: pytest.FixtureRequest) -> int:
    """Return an earlier version."""
    found: int = request.param
    return found


@pytest.fixture
def path(version: int, tmp_path: Path) -> Path:
    """Return a file of that version, of one's own."""
    path = tmp_path / "shop.db"
    path.write_bytes(lzma.decompress((DATA / f"version_{version}.db.xz").read_bytes()))
    return path


def later() -> Ticks:
    """Return the clock as it was when the file was left."""
    ticks = Ticks()
    ticks.now = ANSWERS["now"]
    return ticks


def test_the_same_calls_are_answered_as_by_the_version_before(tmp_path: Path) -> None:
    """Arms, probabilities, ids and what was learned, bit for bit."""
    assert json.loads(json.dumps(live(tmp_path / "shop.db", Ticks()))) == ANSWERS


def test_a_file_of_an_earlier_version_is_opened_with_all_that_it_knew(path: Path) -> None:
    with opened(path, later()) as store:
        assert store.loops == list(LOOPS)
        for name, record in ANSWERS["loops"].items():
            loop = store.loop(name)
            assert json.loads(json.dumps(tell(loop, record["answers"]))) == record
            assert rebuilt(store, name).digest() == record["digest"]
            assert armlet.audit(loop.log.replayable, loop.log.start).digest == record["digest"]
            for event, answer in record["answers"].items():
                again = loop.decide(context(int(event[1:])), event=event)
                assert [again.id, again.arm, again.propensity, again.explored] == answer
            assert loop.model().t == record["t"]


def test_it_goes_on_exactly_as_a_file_that_was_never_brought_up_to_date(path: Path, tmp_path: Path) -> None:
    ticks, new = later(), tmp_path / "new.db"
    live(new, Ticks())
    answers, digests = [], []
    for file in (path, new):
        ticks.now = ANSWERS["now"]
        with opened(file, ticks) as store:
            answers.append(go_on(store, ticks))
        with opened(file, ticks) as store:
            digests.append([store.loop(name).model().digest() for name in LOOPS])
            assert [rebuilt(store, name).digest() for name in LOOPS] == digests[-1]
    assert answers[0] == answers[1]
    assert digests[0] == digests[1]


def go_on(store: Store, ticks: Ticks) -> list[Any]:
    """Reward what was decided before, let windows close, forget, prune, and play on."""
    plain, late = (store.loop(name) for name in LOOPS)
    answers: list[Any] = [loop.reward(f"e{i}", 0.5, name="later") for loop in (plain, late) for i in range(30, 48)]
    answers += [plain.reward("e52", 0.25, name="m52"), plain.forget("e46"), late.forget("e30")]
    answers += [play(loop, ticks, ONWARDS) for loop in (plain, late)]  # so that all windows of before close
    answers += [store.prune(ticks.now - 100.0), late.reward("e40", 1.0, rank=2)]
    return answers


def test_windows_that_were_open_close_when_they_would_have(path: Path) -> None:
    ticks = later()
    with opened(path, ticks) as store:
        loop = store.loop("late")
        before = loop.model()
        assert before.state.under_way.sum() == 24
        ticks.now += 120.0
        after = loop.model()
        assert after.state.under_way.sum() == 0
        assert after.state.n.sum() == before.state.n.sum() + 24


@pytest.mark.parametrize("version", [6])  # later ones count
def test_what_an_earlier_version_did_not_count_is_counted(path: Path) -> None:
    """From the rows that are left, once: later it is what the tally says."""
    connection = tools(path)
    phases = "SELECT phase, count(*) FROM outcome WHERE loop = ? GROUP BY phase"
    known: dict[str, dict[str, int]] = {}
    for i, name in enumerate(LOOPS, 1):
        found: Any = connection.execute(phases, (i,)).fetchall()
        known[name] = dict(found)
    connection.close()
    for _ in range(2):
        with opened(path, later()) as store:
            for name, phase in known.items():
                loop = store.loop(name)
                stats, learned = loop.stats(), phase["learned"] + phase.get("default", 0)
                assert stats.open == phase["open"]
                assert sum(arm.learned for arm in stats.arms) == learned
                assert sum(arm.defaults for arm in stats.arms) == phase.get("default", 0)
    with opened(path, later()) as store:
        loop = store.loop("plain")
        n = sum(arm.learned for arm in loop.stats().arms)
        assert loop.forget("e30")
        assert sum(arm.learned for arm in loop.stats().arms) == n - 1
        assert loop.health() == []


def test_a_file_is_brought_up_to_date_for_good(path: Path) -> None:
    opened(path, later()).close()
    connection = tools(path)
    assert connection.pragma("user_version") == sqlite_ledger.VERSION
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"loop", "head", "event", "outcome", "early", "snapshot", "tally"}
    connection.close()
    assert [each.name for each in SQLiteReader(path).loops()] == list(LOOPS)


def test_who_only_reads_changes_no_file(path: Path, version: int) -> None:
    before = path.read_bytes()
    words = f"a store of version {version}, and can be read once it is of version {sqlite_ledger.VERSION}"
    with pytest.raises(armlet.errors.StoreError, match=words):
        SQLiteReader(path)
    assert path.read_bytes() == before


def test_a_step_that_is_broken_off_leaves_the_file_as_it_was(
    path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = sqlite_ledger.VERSION - 1
    step = sqlite_ledger._STEPS[last]

    def fails(connection: apsw.Connection) -> None:
        step(connection)
        raise apsw.FullError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_ledger, "_STEPS", {**sqlite_ledger._STEPS, last: fails})
        with pytest.raises(armlet.errors.StoreError, match="the disk is full"):
            opened(path, later())
    connection = tools(path)
    assert connection.pragma("user_version") == version
    connection.close()
    with opened(path, later()) as store:
        assert store.loop("plain").model().digest() == ANSWERS["loops"]["plain"]["digest"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE {head} SET clock = 3", "is damaged"),
        ("UPDATE {head} SET outcomes = outcomes + 1", "is damaged"),
        ("DELETE FROM outcome WHERE event = 'e40'", "outcomes are missing"),
        ("CREATE TRIGGER spy AFTER INSERT ON event BEGIN DELETE FROM outcome; END", "see trigger 'spy'"),
        ("DROP INDEX outcome_by_due", "see index 'outcome_by_due'"),
    ],
)
def test_a_damaged_file_of_an_earlier_version_is_refused(path: Path, version: int, change: str, words: str) -> None:
    edit(path, change.replace("{head}", "loop" if version == 6 else "head"))
    with pytest.raises(armlet.errors.StoreError, match=words):
        opened(path, later())


def test_outcomes_of_earlier_versions_have_the_check_values_of_today(path: Path) -> None:
    columns = "loop, t, event, seq, phase, value, due, rank, names, crc"
    connection = tools(path)
    before = list(connection.execute(f"SELECT {columns} FROM outcome"))
    connection.close()
    opened(path, later()).close()
    connection = tools(path)
    assert list(connection.execute(f"SELECT {columns} FROM outcome")) == before
    connection.close()
    assert [check_values(*values) for *values, _ in before] == [crc for *_, crc in before]
