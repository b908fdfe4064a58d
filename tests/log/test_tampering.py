"""Whatever is changed in a log is found: at the event itself, or, if check values were mended, by replay or by seal."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import armlet
from armlet.core.kernel import json_bytes
from armlet.log import recording
from armlet.log.lines import encode_event
from armlet.log.reading import LogFile
from armlet.log.schema import Event
from support.lives import Life, new_bandit

Lines = list[bytes]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the path of a log of some 600 events, a checkpoint after every 100."""
    path = tmp_path_factory.mktemp("logs") / "a.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "CHECKPOINT", 100)
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
    """Give another value of the same form."""
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
        return {**value, "more": 1}
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
        "rate",
        "given_exploring",
        "smallest",
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
    other.learn(other.decide([1.0, 0.0, 0.0]), 1.0)
    found = armlet.audit(honest, other)
    assert found.mismatch is not None
    assert (found.mismatch.seq, found.mismatch.kind) == (0, "start")


def test_a_log_without_its_end_is_a_shorter_log(honest: Path, tmp_path: Path) -> None:
    """Nobody can tell from the log alone; whoever knows a later digest can."""
    lines = honest.read_bytes().splitlines(keepends=True)
    found = audited(honest, tmp_path, [*lines[:90], lines[90][:30]])
    assert found.ok
    assert (found.events, found.unsealed) == (90, 90)
    assert found.note == "the last 30 bytes are no whole line, as after a crash, and were left out"
    assert "90 events after the last checkpoint bear no seal" in str(found)
