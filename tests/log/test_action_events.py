"""Events of actions with features: what they may hold, the tables that readers keep, and their rows in Parquet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armlet
from armlet.actions.table import ActionTable
from armlet.errors import ArgumentError, LogError
from armlet.log import action_tables
from armlet.log.action_tables import Tables
from armlet.log.exporting import compact
from armlet.log.parquet import ParquetLog
from armlet.log.reader import LogFile
from armlet.record.contradictions import Shape
from armlet.record.events import check_event
from armlet.record.faults import InvalidEventError
from armlet.record.kinds import ACTION_DECIDE, KINDS, fields_of
from armlet.record.parquet import Contexts
from armlet.record.values import Event
from support.actions.lives import ACTION_DIM, DIM, drawn_table, made_action_events, next_table
from support.logs import made_events, write_events

SHAPE = Shape(DIM, ACTION_DIM)


@pytest.fixture(scope="module")
def by_kind() -> dict[str, Event]:
    """Return an event of each kind, those of actions with all that they may have."""
    found: dict[str, Event] = {event["kind"]: event for event in made_action_events(300)}
    whole = next(e for e in made_action_events(300) if e["kind"] == "actions" and "Z" in e)
    changed = next(e for e in made_action_events(300) if e["kind"] == "actions" and "from" in e)
    choice = next(e for e in made_action_events(300) if e.get("support") and e["eligible"] and e["z"])
    return {**found, "decide": choice, "whole": whole, "changed": changed}


def test_events_of_actions_are_what_their_kinds_allow() -> None:
    for seq, event in enumerate(made_action_events(200)):
        check_event(event, seq, "a.jsonl", SHAPE)


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.mark])
def test_what_a_kind_does_not_allow_is_refused_by_field(by_kind: dict[str, Event], kind: str) -> None:
    event = by_kind[kind]
    for name, field in fields_of(kind, "actions").items():
        with pytest.raises(InvalidEventError, match=f"{name} is "):
            check_event({**event, name: [{}]}, event["seq"], "a.jsonl")
        without = {other: value for other, value in event.items() if other != name}
        if field.is_optional:
            check_event(without, event["seq"], "a.jsonl")
        elif name != KINDS[kind].mark:
            with pytest.raises(InvalidEventError, match=f"{name} is missing"):
                check_event(without, event["seq"], "a.jsonl")


@pytest.mark.parametrize(
    ("which", "changed", "why"),
    [
        ("start", {"schema": 3}, "schema is 3, but a log with actions has 4"),
        ("start", {"action_features": ["a", "b"]}, "action_features has 2 names"),
        ("decide", {"z": [1.0]}, "z has 1 values, but actions have 3"),
        ("decide", {"x": [1.0]}, "x has 1 values, but contexts have 2"),
        ("decide", {"arm": "nobody"}, "arm is 'nobody', which is not among eligible"),
        ("decide", {"eligible": None, "arm": "nobody"}, "propensity is 0.75, but by support None"),
        ("decide", {"propensity": 0.5}, "propensity is 0.5, but by support 0.75"),
        ("decide", {"support": [["a", 0.5], ["a", 0.5]]}, "support is .*, not a list of pairs"),
        ("decide", {"support": [["a", 0.0], ["b", 1.0]]}, "support is .*, not a list of pairs"),
        ("decide", {"support": []}, "support is .*, not a list of pairs"),
        ("decide", {"actions": "0" * 63}, "actions is .*, not 64 hexadecimal digits"),
        ("whole", {"hash": 5}, "hash is 5, not 64 hexadecimal digits"),
        ("whole", {"Z": [[1.0, 2.0, 3.0]]}, "it has 8 labels, but 1 rows in Z"),
        ("whole", {"Z": [[1.0]] * 8}, "Z has rows of 1 and 3 values"),
        ("whole", {"Z": [[1.0, float("inf"), 0.0]] * 8}, "Z is .*, not a list of rows of numbers"),
        ("whole", {"labels": ["a"] * 8}, "labels is .*, not a list of at least one arm, no two alike"),
        ("whole", {"from": "0" * 64}, "it has Z and from and labels; give labels and Z, or from, add and remove"),
        ("changed", {"add": {"labels": ["a"]}}, "add is .*, not an object with labels"),
        ("changed", {"add": {"labels": ["a"], "Z": [[1.0]]}}, "Z has rows of 1 and 3 values"),
        ("changed", {"remove": "b"}, "remove is 'b', not a list of arms"),
        ("changed", {"name": 5}, "name is 5, not a text"),
    ],
)
def test_contradictions_are_refused(by_kind: dict[str, Event], which: str, changed: Event, why: str) -> None:
    event = by_kind[which]
    check_event(event, event["seq"], "a.jsonl", SHAPE)
    with pytest.raises(InvalidEventError, match=why) as refused:
        check_event({**event, **changed}, event["seq"], "a.jsonl", SHAPE)
    assert "\n" not in str(refused.value)


def test_probabilities_of_a_support_add_up(by_kind: dict[str, Event]) -> None:
    event = by_kind["decide"]
    first, (other, _) = event["support"]
    with pytest.raises(InvalidEventError, match=r"the probabilities of support add up to 0\.95"):
        check_event({**event, "support": [first, [other, 0.2]]}, event["seq"], "a.jsonl")
    with pytest.raises(InvalidEventError, match=r"propensity is 0\.75, but one of 3 that are alike has 1/3"):
        check_event({**event, "support": None}, event["seq"], "a.jsonl")
    with pytest.raises(InvalidEventError, match="support has 'nobody', which is not among eligible"):
        check_event({**event, "support": [first, ["nobody", 0.25]]}, event["seq"], "a.jsonl")


def test_events_of_the_other_kind_of_log_are_refused(by_kind: dict[str, Event]) -> None:
    arms = {event["kind"]: event for event in made_events(300)}
    for event in (by_kind["decide"], by_kind["whole"], by_kind["start"]):
        with pytest.raises(InvalidEventError, match="it is about actions with features, but the log has arms"):
            check_event(event, event["seq"], "a.jsonl", Shape(DIM))
    bill = {"seq": 9, "kind": "bill", "at": 0, "id": arms["decide"]["id"], "cost": 1.0}
    for event in (arms["decide"], arms["retire_arm"], bill):
        with pytest.raises(InvalidEventError, match="it is about arms, but the log has actions with features"):
            check_event(event, event["seq"], "a.jsonl", Shape(3, ACTION_DIM))


def test_logs_with_arms_keep_their_schema(tmp_path: Path) -> None:
    with armlet.Log(tmp_path / "a.jsonl") as log:
        armlet.Bandit(["a", "b"], 1, seed=1, log=log)
    assert (log.about["schema"], "action_dim" in log.about) == (3, False)
    assert fields_of("decide").keys() & {"z", "support", "actions"} == set()


# ---- tables


@given(data=st.data())
def test_writers_and_readers_keep_the_same_tables(data: st.DataObject) -> None:
    """Whatever is used, named, changed or comes back, a reader finds it, and keeps no more than it is meant to."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    pool = [drawn_table(rng, int(rng.integers(1, 12))) for _ in range(3)]
    writer, reader = Tables(), Tables()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(action_tables, "KEPT", 3)
        patch.setattr(action_tables, "VALUES", data.draw(st.sampled_from([1, 100, 10**6])))
        for seq in range(40):
            kind = data.draw(st.integers(0, 3))
            if kind == 0:
                pool.append(next_table(rng, pool[-1]))
            table = pool[data.draw(st.integers(0, len(pool) - 1))]
            name = data.draw(st.sampled_from([None, None, None, "a", "b"]))
            if (fields := writer.fields(table, name)) is not None:
                event = json.loads(json.dumps({"seq": seq, "kind": "actions", "at": 0, **fields}))
                check_event(event, seq, "a.jsonl", SHAPE)
                writer.take(table, name)
                reader.take(reader.decode(event), event.get("name"))
            assert reader.get(table.hash, {"seq": seq}) == table
            writer.use(table)
            reader.use(reader.get(table.hash, {"seq": seq}))
            assert list(writer._used) == list(reader._used)
            assert len(reader._used) <= 3
            assert {n: t.hash for n, t in writer.named.items()} == {n: t.hash for n, t in reader.named.items()}


def test_a_table_is_told_by_what_changed_against_the_nearest() -> None:
    rng = np.random.default_rng(1)
    tables, seen = Tables(), []
    shops = [drawn_table(rng, 50), drawn_table(rng, 50)]
    for shop in shops:
        tables.take(shop)
    for step in range(20):  # two catalogues in turn, each of which changes slowly
        shops[step % 2] = next_table(rng, shops[step % 2])
        fields = tables.fields(shops[step % 2])
        assert fields is not None
        seen.append((len(fields["add"]["labels"]), len(fields["remove"])))
        tables.take(shops[step % 2])
    assert seen == [(1, 1)] * 20


def test_a_table_of_another_hash_or_of_none_is_refused() -> None:
    table = ActionTable(["a", "b", "c"], [[1.0], [2.0], [3.0]])
    event: Event = {"seq": 7, **(Tables().fields(table) or {})}
    with pytest.raises(LogError, match="event 7 is not a table of actions: a table of actions has hash"):
        Tables().decode({**event, "Z": [[1.0], [2.0], [4.0]]})
    with pytest.raises(LogError, match="event 7 is not a table of actions"):
        Tables().decode({**event, "labels": ["a", "b", "d"]})
    tables = Tables()
    tables.take(table)
    change: Event = {"seq": 8, **(tables.fields(table.changed(remove=["b"])) or {})}
    with pytest.raises(LogError, match=r"event 8 names the table .*, which is not told before it, or too long ago"):
        Tables().decode(change)
    with pytest.raises(LogError, match="event 8 is not a table of actions"):
        tables.decode({**change, "remove": ["d"]})


# ---- Parquet


@pytest.mark.parametrize("contexts", ["binary", "columns"])
@pytest.mark.parametrize(("dim", "action_dim"), [(DIM, ACTION_DIM), (0, 1), (1, 0)])
def test_a_compacted_log_has_every_byte(tmp_path: Path, contexts: Contexts, dim: int, action_dim: int) -> None:
    path = write_events(tmp_path / "a.jsonl", made_action_events(300, dim=dim, action_dim=action_dim))
    found = ParquetLog(compact(path, contexts=contexts))
    assert list(found) == list(LogFile(path))
    assert b"".join(line for line, _ in found.with_lines()) == path.read_bytes()
    found.check_columns()
    decided = next(event for event in LogFile(path) if event["kind"] == "decide")
    assert found.find(decided["id"]) == decided


def test_columns_of_actions_read_well(tmp_path: Path) -> None:
    path = write_events(tmp_path / "a.jsonl", made_action_events(100))
    decisions = [event for event in LogFile(path) if event["kind"] == "decide"]
    frame = pq.read_table(compact(path)).to_pandas()
    assert set(ACTION_DECIDE) <= set(frame.columns)
    kept = [i for i, event in enumerate(decisions) if event["z"] is not None]
    assert np.stack(frame.z[kept]).tolist() == [decisions[i]["z"] for i in kept]
    assert [None if s is None else s.tolist() for s in frame.support_probabilities] == [
        None if event["support"] is None else [p for _, p in event["support"]] for event in decisions
    ]
    assert frame.actions.tolist() == [event["actions"] for event in decisions]
    table = pq.read_table(compact(path, tmp_path / "b.parquet", contexts="columns"))
    assert {"x.0", "x.1", "z.0", "z.1", "z.2"} <= set(table.column_names)


def test_a_changed_value_in_a_row_is_found(tmp_path: Path) -> None:
    path = compact(write_events(tmp_path / "a.jsonl", made_action_events(100)))
    table = pq.read_table(path)
    rows = table.to_pylist()
    place = next(i for i, row in enumerate(rows) if i > 50 and row["support"] is not None and row["z"] is not None)
    for change in (
        {"z": [0.0] * 3},
        {"n_actions": 9},
        {"actions": "0" * 64},
        {"support": rows[place]["support"][::-1]},
    ):
        changed = [{**row, **change} if i == place else row for i, row in enumerate(rows)]
        pq.write_table(table.from_pylist(changed, schema=table.schema), path)
        with pytest.raises(InvalidEventError) as found:
            list(ParquetLog(path))
        assert found.value.seq == rows[place]["seq"]


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".arrow", ".feather"])
def test_a_log_of_actions_is_written_in_every_form(tmp_path: Path, ending: str) -> None:
    path = write_events(tmp_path / "a.jsonl", made_action_events(50))
    written = armlet.log.write(compact(path), tmp_path / f"b{ending}")
    assert written.stat().st_size > 0
    assert ending != ".jsonl" or written.read_bytes() == path.read_bytes()


def test_a_log_of_actions_is_not_learned_as_if_it_had_arms(tmp_path: Path) -> None:
    path = compact(write_events(tmp_path / "a.jsonl", made_action_events(20)))
    with pytest.raises(ArgumentError, match=r"data is a\.parquet, a log of actions with features; read it"):
        armlet.fit(path)
