"""Events in columns: the quick reader of lines and the exact one give the same events or refusals."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np
import pytest

import armlet
from armlet.errors import LogError
from armlet.log.exporting import compact
from armlet.log.parquet import ParquetLog
from armlet.log.reader import LogFile
from armlet.log.replaying import LoggedPast, replay
from armlet.record import block as blocks
from armlet.record.block import DECIDE, LEARN, OTHER, Block
from armlet.record.contradictions import Shape
from armlet.record.events import shape_after
from armlet.record.jsonl import BATCH, PIECE, decode, encode_event, read_lines
from armlet.record.kinds import EXPLORATION
from armlet.record.parquet import Contexts
from armlet.record.values import Event
from armlet.types import Policy
from support.actions.lives import made_action_events
from support.lives import Life, new_bandit
from support.logs import made_events

REWARDS = (-0.0, 1e22, 5e-324, 123456789.0, 1e-7, {"clicks": 1.0})
LABELS = (("north", "south"), (1, 2), ("Zürich", -7), ("a b", 'say "x"'), (0, 2**70))


def exactly(data: bytes) -> Iterator[tuple[bytes, Event]]:
    """Yield the lines of a log and their events, by the exact reader alone."""
    crc, shape = 0, None
    for seq, line in enumerate(read_lines(io.BytesIO(data), "a.jsonl")):
        if not line.endswith(b"\n"):
            return
        event, crc = decode(line, seq, crc, "a.jsonl", shape)
        shape = shape_after(event, shape)
        yield line, event


def outcome(read: Iterator[tuple[bytes, Event]]) -> tuple[list[tuple[bytes, Event]], str | None]:
    """Return what a reader reads, and why it stops before the end, if it does."""
    events: list[tuple[bytes, Event]] = []
    try:
        events.extend(read)
    except LogError as error:
        return events, str(error)
    return events, None


def quickly(data: bytes, folder: Path) -> Iterator[tuple[bytes, Event]]:
    path = folder / "a.jsonl"
    path.write_bytes(data)
    yield from LogFile(path).with_lines()


def lines_of(case: int, rewards: tuple[object, ...] = REWARDS) -> list[bytes]:
    """Return a sound log: of arms of all kinds of labels, or of actions."""
    rng, crc, out = Random(case), 0, []
    events = made_action_events(40, seed=case) if case % 3 == 0 else made_events(40, seed=case, arms=rng.choice(LABELS))
    for event in events:
        if event["kind"] == "decide" and case % 3 and rng.random() < 0.3:
            event |= {"unit": f"session {rng.randrange(5)}", "epoch": rng.randrange(3)}
        if event["kind"] == "learn" and rng.random() < 0.1:
            event["reward"] = rng.choice(rewards)
        line, crc = encode_event(event, crc)
        out.append(line)
    return out


def chained(lines: list[bytes]) -> bytes:
    """Return lines with check values that are right, whatever they hold."""
    out, crc = [], 0
    for line in lines:
        body = line[: line.rindex(b',"crc":')]
        crc = crc32(body, crc)
        out.append(body + b',"crc":"%08x"}\n' % crc)
    return b"".join(out)


def edited(rng: Random, line: bytes) -> bytes:
    """Change one value, name or sign of a line, and perhaps nothing that it says."""
    token = rng.choice(list(re.finditer(rb'"[^"]*"|-?[0-9][-+.e0-9]*|null|true|false|[\[\]{},:]', line)))
    others = [b"1", b"-1", b"0", b"-0", b"-0.0", b"01", b"1.0", b"1.50", b"0.1", b"1e5", b"1e+05", b"100000.0", b"1e41"]
    others += [b"2e-400", b"NaN", b"Infinity", b"null", b"true", b"false", b"[]", b"[0.5]", b"{}", b'""', b'"a"']
    others += [b'"north"', b'"\\u0061"', b'"\\n"', b'"\xff"', b'"\xed\xa0\x80"', b'"\xc3\xbc"', b"99999999999999999999"]
    others += [b"9223372036854775808", b"1234567890123456789", b",", b" ", b'"t":7,', b'"0-0123456789abcdef"']
    others += [token[0] + b" ", token[0] + token[0], token[0] + b"0", token[0][:-1], token[0].upper(), b'"crc":5,']
    return line[: token.start()] + rng.choice(others) + line[token.end() :]


@pytest.mark.parametrize("case", range(60))
def test_both_readers_read_the_same_events(case: int, tmp_path: Path) -> None:
    data = b"".join(lines_of(case))
    events, error = outcome(quickly(data, tmp_path))
    assert error is None
    assert events == list(exactly(data))


@pytest.mark.parametrize("case", range(60))
def test_damaged_lines_are_refused_with_the_same_words(case: int, tmp_path: Path) -> None:
    rng, lines = Random(case), lines_of(case)
    texts = set()
    for _ in range(30):
        damaged, place = list(lines), rng.randrange(1, len(lines))
        head, mark, tail = lines[place].rpartition(b',"crc":')
        damaged[place] = edited(rng, head) + mark + tail
        data = b"".join(damaged) if rng.random() < 0.1 else chained(damaged)
        expected = outcome(exactly(data))
        assert outcome(quickly(data, tmp_path)) == expected
        texts.add(expected[1])
    assert len(texts) > 3  # most edits are refused, for one reason or another


@pytest.mark.parametrize("case", range(1, 40, 2))
def test_columns_say_what_events_say(case: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MOST", 16)
    path = tmp_path / "a.jsonl"
    path.write_bytes(data := b"".join(lines_of(case)))
    events, seq = [event for _, event in exactly(data)], 0
    for block in LogFile(path).blocks():
        some = events[seq : seq + len(block)]
        assert block.first == seq
        assert block.at.tolist() == [event["at"] for event in some]
        of_kind = [[some[place] for place in block.places(kind)] for kind in (OTHER, DECIDE, LEARN)]
        assert block.others == of_kind[OTHER]
        check_decisions(block, of_kind[DECIDE])
        ids = [f"{t}-{mark:016x}" for t, mark in zip(block.learn_t, block.learn_mark, strict=True)]
        assert ids == [event["id"] for event in of_kind[LEARN]]
        assert block.reward.tolist() == [event["reward"] for event in of_kind[LEARN]]
        assert block.weight.tolist() == [event["weight"] for event in of_kind[LEARN]]
        seq += len(block)
    assert seq == len(events)


def check_decisions(block: Block, events: list[Event]) -> None:
    """Compare the columns of decisions with their events."""
    text = [*block.texts, None]
    for i, event in enumerate(events):
        assert f"{block.t[i]}-{block.mark[i]:016x}" == event["id"]
        for name, columns, has in (("x", block.X, block.has_x), ("z", block.Z, block.has_z)):
            if name in event:
                assert (columns[i].tolist() if has[i] else None) == event[name]
        assert block.labels[block.arm[i]] == event["arm"]
        for name in ("propensity", *EXPLORATION):
            assert np.array_equal(getattr(block, name)[i], np.float64(event[name]), equal_nan=True)
        for name in ("explored", "optimistic", "greedy"):
            assert getattr(block, name)[i] == (-1 if event[name] is None else event[name])
        assert (text[block.design[i]], block.tag[i]) == (event["design"], event["tag"])
        assert (text[block.unit[i]], text[block.event[i]]) == (event.get("unit"), event.get("event"))
        assert block.epoch[i] == event.get("epoch", -1)
        eligible = block.eligible[block.eligible_ends[i] : block.eligible_ends[i + 1]]
        assert [block.labels[place] for place in eligible] == (event["eligible"] or [])
        chances = block.probabilities[block.probabilities_ends[i] : block.probabilities_ends[i + 1]]
        assert chances.tolist() == event.get("probabilities", [])
        if "actions" in event:
            assert (text[block.actions[i]], block.n_actions[i]) == (event["actions"], event["n_actions"])
            which = slice(block.support_ends[i], block.support_ends[i + 1])
            labels = [block.labels[place] for place in block.support[which]]
            pairs = zip(labels, block.support_chances[which].tolist(), strict=True)
            assert [list(pair) for pair in pairs] == (event["support"] or [])


@pytest.mark.parametrize("size", [PIECE - 1, PIECE, BATCH - 20, BATCH, 2 * BATCH + 1])
@pytest.mark.parametrize("begin", [b"", b'{"seq":'])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_long_lines_are_refused_with_the_same_words(size: int, begin: bytes, end: bytes, tmp_path: Path) -> None:
    lines = lines_of(1)
    data = b"".join(lines[:5]) + begin + b"x" * (size - len(begin)) + end
    assert outcome(quickly(data, tmp_path)) == outcome(exactly(data))


def test_contexts_follow_features_that_are_replaced(tmp_path: Path) -> None:
    head = {"kind": "decide", "at": 7}
    decide = {**next(e for e in made_events(9) if e["kind"] == "decide" and e["x"] is not None), **head}
    start = next(made_events(9))
    replace = {"seq": 2, "kind": "replace", "at": 7, "features": ["a", "b"], "fill": {}}
    after = {**decide, "seq": 3, "id": f"9-{1:016x}", "t": 9, "x": [0.5, 2.0]}
    crc, lines = 0, []
    for event in (start, {**decide, "seq": 1}, replace, after):
        line, crc = encode_event(event, crc)
        lines.append(line)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines))
    read = list(LogFile(path).blocks())
    assert [(len(block), block.X.shape[1]) for block in read if len(block.t)] == [(2, 3), (1, 2)]
    assert Shape.of(start).dim == 3
    wrong = encode_event({**after, "x": [0.5, 2.0, 1.0]}, 0)[0]
    path.write_bytes(chained([*lines[:3], wrong]))
    with pytest.raises(LogError, match="x has 3 values, but contexts have 2"):
        list(LogFile(path).blocks())


# ---- played and compacted: the quick ways end where the exact ones do

POLICIES: list[Policy] = [
    armlet.ContextualEpsilonGreedy(p=20),
    armlet.OccasionalOptimism(),
    armlet.LinUCB(discount=0.9),
]


def never(*_: object) -> None:
    pytest.fail("the exact way was taken")


def by_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every event played by itself."""
    monkeypatch.setattr(LoggedPast, "play_run", lambda *given: (given[-1], None))


def lived(policy: Policy, path: Path) -> str:
    """Let a bandit live with a log; return the digest of its state."""
    bandit, log = new_bandit(policy, path)
    Life(bandit).live(300)
    log.close()
    return bandit.digest()


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_blocks_lead_to_the_state_of_events(policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.log.replaying.RECENT", 16)
    digest = lived(policy, tmp_path / "a.jsonl")
    quick, exact = (armlet.load(tmp_path / "a.start.armlet") for _ in range(2))
    n = replay(LogFile(tmp_path / "a.jsonl"), quick)
    by_events(monkeypatch)
    assert replay(LogFile(tmp_path / "a.jsonl"), exact) == n
    assert quick.digest() == exact.digest() == digest


@pytest.mark.parametrize("case", range(20))
def test_audits_by_blocks_and_by_events_find_the_same(
    case: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, rng = tmp_path / "a.jsonl", Random(case)
    lived(POLICIES[case % len(POLICIES)], path)
    lines, found = path.read_bytes().splitlines(keepends=True), []
    for _ in range(10):
        damaged, place = list(lines), rng.randrange(1, len(lines))
        head, mark, tail = lines[place].rpartition(b',"crc":')
        damaged[place] = edited(rng, head) + mark + tail
        path.write_bytes(chained(damaged))
        quick = armlet.audit(path, tmp_path / "a.start.armlet")
        with monkeypatch.context() as patch:
            by_events(patch)
            assert armlet.audit(path, tmp_path / "a.start.armlet").to_dict() == quick.to_dict()
        found.append(quick.mismatch)
    assert any(found)


@pytest.mark.parametrize("case", range(1, 24))
@pytest.mark.parametrize("contexts", ["binary", "columns"])
def test_columns_of_a_compacted_log_tell_all_lines(
    case: int, contexts: Contexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"".join(lines_of(case, rewards=(-0.0, 1e22, 5e-324)))
    (tmp_path / "a.jsonl").write_bytes(data)
    monkeypatch.setattr("armlet.log.parquet.MOST", 16)
    monkeypatch.setattr(blocks, "MOST", 16)
    log = ParquetLog(compact(tmp_path / "a.jsonl", contexts=contexts))
    monkeypatch.setattr(ParquetLog, "_exact_lines", never)
    assert b"".join(line for line, _ in log.with_lines()) == data
    log.check_columns()
