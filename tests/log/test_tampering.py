"""Whatever is changed in a log is found: at the event itself, or, if check values were mended, by replay or by seal."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import armlet
from armlet.kernel import json_bytes
from armlet.log import log as logs
from armlet.log.reader import LogFile
from armlet.record.jsonl import encode_event
from armlet.record.values import Event
from support.lives import Life, RouterLife, new_bandit, new_router

Lines = list[bytes]


@pytest.fixture(scope="module", params=["one reward", "outcomes"])
def honest(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Return the path of a log of some 600 events, a checkpoint after every 100."""
    path = tmp_path_factory.mktemp("logs") / "a.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "CHECKPOINT", 100)
        if request.param == "outcomes":
            with armlet.Log(path) as log:
                RouterLife(new_router(log), changes=0.1).live(350)
        else:
            bandit, log = new_bandit(armlet.ContextualEpsilonGreedy(p=20), path)
            Life(bandit).live(350)
            log.close()
    assert armlet.audit(path, path.with_name("a.start.armlet")).ok
    return path


def audited(honest: Path, tmp_path: Path, lines: Lines) -> armlet.log.Audit:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines))
    shutil.copy(honest.with_name("a.start.armlet"), tmp_path)
    return armlet.audit(path, tmp_path / "a.start.armlet")


def changed(value: object, rng: np.random.Generator) -> object:
    """Return another value of the same form."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return float(np.nextafter(value, np.inf))
    if isinstance(value, list):
        place = int(rng.integers(len(value))) if value else 0
        return [*value[:place], changed(value[place], rng), *value[place + 1 :]] if value else [1.0]
    if isinstance(value, dict):
        name = str(rng.choice(list(value))) if value else "more"
        return {**value, name: changed(value.get(name), rng)}
    text = str(value)
    place = int(rng.integers(len(text)))
    return text[:place] + ("1" if text[place] != "1" else "2") + text[place + 1 :]


def places(honest: Path, rng: np.random.Generator, each: int) -> list[tuple[int, str]]:
    """Draw some events for each field of each kind."""
    found: dict[tuple[str, str], list[int]] = {}
    for event in LogFile(honest):
        for name in event:
            found.setdefault((event["kind"], name), []).append(event["seq"])
    return [
        (int(seq), name)
        for (_, name), seqs in found.items()
        for seq in rng.choice(seqs, size=min(each, len(seqs)), replace=False)
    ]


def next_checkpoint(events: list[Event], seq: int) -> int:
    return int(next(event["seq"] for event in events[seq:] if event["kind"] == "checkpoint"))


def mended(events: list[Event]) -> Lines:
    """Write events with numbers and check values as they should be."""
    lines, crc = [], 0
    for seq, event in enumerate(events):
        line, crc = encode_event({**event, "seq": seq}, crc)
        lines.append(line)
    return lines


def test_a_changed_value_is_found_at_its_event(honest: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lines = honest.read_bytes().splitlines(keepends=True)
    drawn = places(honest, rng, 2)
    assert {"x", "reward", "at", "digest", "seal", "propensity", "eligible", "arm"} <= {name for _, name in drawn}
    for seq, name in drawn:
        event = json.loads(lines[seq])
        event[name] = changed(event[name], rng)
        found = audited(honest, tmp_path, [*lines[:seq], json_bytes(event) + b"\n", *lines[seq + 1 :]])
        assert found.mismatch is not None, (seq, name)
        assert found.mismatch.seq == found.events == seq, (seq, name)


def test_a_changed_digit_anywhere_is_found(honest: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    data = honest.read_bytes()
    digits = [place for place, byte in enumerate(data) if 48 <= byte < 58]
    for place in rng.choice(digits, size=40, replace=False):
        other = bytes([48 + (data[place] - 47) % 10])
        found = audited(honest, tmp_path, [data[:place] + other + data[place + 1 :]])
        assert found.mismatch is not None
        assert found.mismatch.seq == data.count(b"\n", 0, place)


def test_a_forger_who_mends_the_check_values_is_found_by_replay_or_seal(honest: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    events = list(LogFile(honest))
    exact = {
        "id",
        "t",
        "arm",
        "propensity",
        "explored",
        "optimistic",
        "exploration_rate",
        "exploration_propensity",
        "min_exploration_probability",
        "greedy",
        "design",
        "tag",
    }
    for seq, name in places(honest, rng, 1):
        if name == "seq" or (name == "kind" and events[seq]["kind"] == "start"):
            continue  # which mending puts right, or no log has
        forged = [*events]
        forged[seq] = {**events[seq], name: changed(events[seq][name], rng)}
        found = audited(honest, tmp_path, mended(forged))
        assert found.mismatch is not None, (seq, name)
        last = seq if events[seq]["kind"] == "decide" and name in exact else next_checkpoint(events, seq)
        assert seq <= found.mismatch.seq <= last, (seq, name, str(found))


def moves(seq: int) -> dict[str, Callable[[list[Event]], list[Event]]]:
    return {
        "dropped": lambda events: events[:seq] + events[seq + 1 :],
        "twice": lambda events: events[: seq + 1] + events[seq:],
        "swapped": lambda events: [*events[:seq], events[seq + 1], events[seq], *events[seq + 2 :]],
    }


@pytest.mark.parametrize("move", ["dropped", "twice", "swapped"])
def test_events_dropped_doubled_or_moved_are_found(honest: Path, tmp_path: Path, move: str) -> None:
    rng = np.random.default_rng(4)
    events = list(LogFile(honest))
    lines = honest.read_bytes().splitlines(keepends=True)
    by_line = dict(enumerate(lines))
    kinds = {event["kind"]: [] for event in events[1:-1]}  # type: dict[str, list[int]]
    for event in events[1:-2]:
        kinds[event["kind"]].append(event["seq"])
    for kind, seqs in kinds.items():
        seq = int(rng.choice(seqs))
        careless = [by_line[event["seq"]] for event in moves(seq)[move](events)]
        found = audited(honest, tmp_path, careless)
        assert found.mismatch is not None
        assert found.mismatch.seq == (seq + 1 if move == "twice" else seq), kind
        forged = audited(honest, tmp_path, mended(moves(seq)[move](events)))
        assert forged.mismatch is not None, kind
        assert seq <= forged.mismatch.seq <= next_checkpoint(events, seq + 1) + 1, kind


def test_another_start_model_is_found_at_once(honest: Path) -> None:
    other = armlet.load(honest.with_name("a.start.armlet"), seed=99)  # the same state, other coins
    found = armlet.audit(honest, other)
    assert found.mismatch is not None
    assert found.mismatch.seq == 1
    assert found.mismatch.what.startswith("id is ")
    other.decide([1.0, 0.0, 0.0])
    found = armlet.audit(honest, other)
    assert found.mismatch is not None
    assert (found.mismatch.seq, found.mismatch.kind) == (0, "start")


def test_a_log_without_its_end_is_incomplete(honest: Path, tmp_path: Path) -> None:
    lines = honest.read_bytes().splitlines(keepends=True)
    found = audited(honest, tmp_path, [*lines[:90], lines[90][:30]])
    assert (found.status, found.mismatch, found.ok) == ("incomplete", None, False)
    assert (found.events, found.unsealed) == (90, 90)
    assert found.note == "the last 30 bytes are no whole line, as after a crash, and were left out"
    assert str(found).startswith("incomplete: 90 events after the last checkpoint are not sealed")


def test_a_log_cut_at_a_checkpoint_is_not_closed(honest: Path, tmp_path: Path) -> None:
    events = list(LogFile(honest))
    lines = honest.read_bytes().splitlines(keepends=True)
    places = [event["seq"] for event in events if event["kind"] == "checkpoint"]
    for place in places[:-1]:
        found = audited(honest, tmp_path, lines[: place + 1])
        assert (found.status, found.unsealed) == ("incomplete", 0)
        assert "may have been cut after its last checkpoint" in str(found)
    only_start = audited(honest, tmp_path, lines[:1])
    assert (only_start.status, only_start.unsealed) == ("incomplete", 1)


def test_a_digest_that_was_noted_elsewhere_must_be_reached(honest: Path, tmp_path: Path) -> None:
    """Nobody can tell from a log alone that it was cut where it was closed once; anyone who knows a digest can."""
    path, start = tmp_path / "a.jsonl", honest.with_name("a.start.armlet")
    shutil.copy(honest, path)
    shutil.copy(start, tmp_path)
    with armlet.Log(path) as log:
        bandit = armlet.log.resume(log)
        bandit.decide([1.0, 0.0, 0.0])
    earlier, later = armlet.audit(honest, start).digest, bandit.digest()
    assert armlet.audit(path, start, digest=earlier).ok
    assert armlet.audit(path, start, digest=later).ok
    assert armlet.audit(honest, start).ok  # closed, and cut before it was continued
    cut = armlet.audit(honest, start, digest=later)
    assert (cut.status, str(cut.mismatch).partition(" which")[0]) == (
        "mismatch",
        f"event {cut.events:,} (the end): it does not lead to state {later},",
    )
    events = list(LogFile(honest))
    last = max(event["seq"] for event in events[:-1] if event["kind"] == "checkpoint")
    lines = honest.read_bytes().splitlines(keepends=True)[: last + 1]
    assert audited(honest, tmp_path, lines).status == "incomplete"
    assert armlet.audit(path, start, digest=events[last]["digest"]).ok  # not closed, but known to end there


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
@pytest.mark.parametrize("how", ["without start_model", "without checkpoints", "without seals"])
def test_a_file_cannot_say_that_it_need_not_be_sealed(honest: Path, tmp_path: Path, how: str, ending: str) -> None:
    events = [dict(event) for event in LogFile(honest)]
    for event in events:
        if event["kind"] == "decide":
            event["at"] += 1  # what no replay finds
    if how == "without start_model":
        del events[0]["start_model"]
    elif how == "without seals":
        for event in events:
            event.pop("seal", None)
    else:
        events = [event for event in events if event["kind"] != "checkpoint"]
    found = audited(honest, tmp_path, mended(events))
    if ending == ".parquet":
        found = armlet.audit(armlet.log.compact(tmp_path / "a.jsonl"), tmp_path / "a.start.armlet")
    assert not found.ok
    assert found.status == ("incomplete" if how == "without checkpoints" else "mismatch")


def test_a_key_that_is_there_twice_is_found_at_its_event(honest: Path, tmp_path: Path) -> None:
    lines = honest.read_bytes().splitlines(keepends=True)
    seq = next(event["seq"] for event in LogFile(honest) if event["kind"] == "learn")
    body = lines[seq][: lines[seq].rindex(b',"crc"')].replace(b'"reward"', b'"reward":0.0,"reward"')
    forged = rechained([*lines[:seq], body + b',"crc":""}\n', *lines[seq + 1 :]])
    found = audited(honest, tmp_path, forged)
    assert found.mismatch is not None
    assert (found.mismatch.seq, "a key is there twice" in found.mismatch.what) == (seq, True)


def rechained(lines: Lines) -> Lines:
    """Return lines the check values that they should have, whatever they hold."""
    out, crc = [], 0
    for line in lines:
        body = line[: line.rindex(b',"crc"')]
        crc = crc32(body, crc)
        out.append(body + b',"crc":"%08x"}\n' % crc)
    return out


def test_columns_of_a_compacted_log_that_only_people_read_are_audited_too(honest: Path, tmp_path: Path) -> None:
    """A reward that was corrected is in no event of its row: evaluate takes it from the column."""
    shutil.copy(honest, tmp_path)
    path = armlet.log.compact(tmp_path / "a.jsonl")
    table = pq.read_table(path)
    rows = table.to_pylist()
    first = next(name for name in reversed(table.column_names) if name.startswith("first_reward"))
    place = next(i for i, row in enumerate(rows) if row[first] is not None and row["reward"] is not None)
    assert armlet.audit(path, honest.with_name("a.start.armlet")).ok
    for name, value in (("reward", 99.0), ("source", "nobody")):
        changed = [{**row, name: value} if i == place else row for i, row in enumerate(rows)]
        pq.write_table(table.from_pylist(changed, schema=table.schema), path)
        found = armlet.audit(path, honest.with_name("a.start.armlet"))
        assert found.mismatch is not None
        assert (found.mismatch.seq, found.mismatch.kind) == (rows[place]["seq"], "decide")
        assert found.mismatch.what.startswith(f"its column {name} is {value!r}, but by its events ")
