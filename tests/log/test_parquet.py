"""A compacted log holds every event of the log, and columns that people can read."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from armlet.errors import ArgumentError, LogError
from armlet.log import exporting
from armlet.log.exporting import compact
from armlet.log.parquet import ParquetLog, events_beside
from armlet.log.reader import LogFile, read
from armlet.record.faults import DamagedLineError, InvalidEventError
from armlet.record.parquet import Contexts
from armlet.types import Arm
from support.logs import DIM, made_events, write_events


@pytest.mark.parametrize("contexts", ["binary", "columns"])
@pytest.mark.parametrize("arms", [("north", "süd"), (1, 2), (1, "1"), (2**70, 3)])
def test_a_compacted_log_gives_every_event_back(
    tmp_path: Path, arms: tuple[Arm, ...], contexts: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "ROWS", 64)
    path = write_events(tmp_path / "a.jsonl", made_events(300, arms=arms))
    again = write_events(tmp_path / "again.jsonl", read(compact(path, contexts=contexts)))
    assert again.read_bytes() == path.read_bytes()


def test_rows_say_what_became_of_each_decision(tmp_path: Path) -> None:
    events = list(made_events(400))
    path = write_events(tmp_path / "a.jsonl", events)
    rows = pq.read_table(compact(path)).to_pylist()
    decided = [event for event in events if event["kind"] == "decide"]
    latest: dict[str, float | None] = {}
    notes = {event["id"]: event for event in events if event["kind"] == "note"}
    for event in events:
        if event["kind"] in ("learn", "correct", "forget"):
            latest[event["id"]] = {"learn": event.get("reward"), "correct": event.get("new_reward")}.get(event["kind"])
    assert {"learn", "correct", "forget", "note"} <= {event["kind"] for event in events}
    assert [row["id"] for row in rows] == [event["id"] for event in decided]
    assert [row["reward"] for row in rows] == [latest.get(event["id"]) for event in decided]
    assert [row["source"] for row in rows] == [notes.get(event["id"], {}).get("source") for event in decided]
    for row, event in zip(rows, decided, strict=True):
        x = None if row["x"] is None else list(struct.unpack(f"<{DIM}d", row["x"]))
        assert (x, row["arm"], row["eligible"]) == (event["x"], event["arm"], event["eligible"])
        assert row["decided_at"].timestamp() == pytest.approx(event["at"] / 1e6, abs=1e-6)
    names = pq.read_table(tmp_path / "a.parquet").column_names
    assert names[:5] == ["id", "seq", "decided_at", "t", "x"]


def test_features_are_columns_if_asked_for(tmp_path: Path) -> None:
    events = list(made_events(20))
    events[0]["features"] = ["age", "x", "arm"]  # names that other columns have too
    table = pq.read_table(compact(write_events(tmp_path / "a.jsonl", events), contexts="columns"))
    assert {"x.age", "x.x", "x.arm", "arm"} <= set(table.column_names)
    assert table["x.arm"].to_pylist() == [
        None if event["x"] is None else event["x"][2] for event in events if event["kind"] == "decide"
    ]


def test_decisions_are_found_again_by_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "ROWS", 32)
    monkeypatch.setattr("armlet.record.block.MOST", 16)
    path = write_events(tmp_path / "a.jsonl", made_events(300))
    live, compacted = LogFile(path), ParquetLog(compact(path))
    decisions = [event for event in live if event["kind"] == "decide"]
    for event in decisions:
        found = live.find(event["id"])
        assert found is not None
        assert {name: found[name] for name in event} == event
        assert compacted.find(event["id"]) == event
    for name in ("1-0000000000000000", f"{decisions[50]['t']}-0000000000000000", "9999999-0000000000000000"):
        assert live.find(name) is None
        assert compacted.find(name) is None


def test_a_changed_value_in_a_row_is_found_at_its_event(tmp_path: Path) -> None:
    path = compact(write_events(tmp_path / "a.jsonl", made_events(200)))
    table = pq.read_table(path)
    rows = table.to_pylist()
    place = next(i for i, row in enumerate(rows) if i > 100 and row["learned_crc"] and row["first_reward"] is None)
    for name, value, seq in [
        ("propensity", 0.123, rows[place]["seq"]),
        ("reward", 0.123, rows[place]["learned_seq"]),
        ("id", rows[0]["id"], rows[place]["seq"]),
    ]:
        changed = [{**row, name: value} if i == place else row for i, row in enumerate(rows)]
        pq.write_table(table.from_pylist(changed, schema=table.schema), path)
        with pytest.raises(InvalidEventError) as found:
            list(ParquetLog(path))
        assert found.value.seq == seq
    pq.write_table(table.from_pylist(rows[:place] + rows[place + 1 :], schema=table.schema), path)
    with pytest.raises(DamagedLineError) as found:
        list(ParquetLog(path))
    assert found.value.seq == rows[place]["seq"]


def test_refusals_of_compacting(tmp_path: Path) -> None:
    path = write_events(tmp_path / "a.jsonl", made_events(10))
    with pytest.raises(ArgumentError, match=r"target is a.arrow; give a name that ends in .parquet"):
        compact(path, tmp_path / "a.arrow")
    target = compact(path)
    with pytest.raises(ArgumentError, match=r"target is a.parquet, which is there already; move it away"):
        compact(path)
    events_beside(target).unlink()
    with pytest.raises(FileNotFoundError, match=r"holds the events of a\.parquet that have no row; bring it along"):
        list(ParquetLog(target))
    pq.write_table(pq.read_table(target).replace_schema_metadata(None), tmp_path / "b.parquet")
    with pytest.raises(LogError, match=r"b\.parquet is not a compacted log of Armlet"):
        read(tmp_path / "b.parquet")
    damaged = path.read_bytes().replace(b'"exploration_rate":0.1,', b'"exploration_rate":0.2,', 1)
    (tmp_path / "c.jsonl").write_bytes(damaged)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DamagedLineError, match=r"event 1 of c\.jsonl"):
        compact(tmp_path / "c.jsonl")
    assert sorted(tmp_path.iterdir()) == before
