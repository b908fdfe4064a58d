"""Events as lines: written and read back exactly, and no change goes unnoticed."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet.kernel import json_bytes, json_line
from armlet.record.faults import DamagedLineError, InvalidEventError
from armlet.record.jsonl import decode, encode_event
from armlet.record.values import Event

texts = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def same(a: object, b: object) -> bool:
    """Equal, with types and the signs of zeros."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return type(a) is type(b) and a == b


@given(plain)
def test_plain_values_read_back_as_they_were(value: object) -> None:
    assert same(json.loads(json_bytes(value)), value)


@pytest.mark.parametrize("value", [math.nan, math.inf, {1: 2}, {"a": {3}}, b"bytes", "\ud800"])
def test_what_json_has_no_word_for_is_refused(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        json_bytes(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nests too deeply"):
        json_bytes(loop)


EVENT: Event = {"seq": 7, "kind": "learn", "at": 1_700_000_000_000_000, "id": "3-00ff00ff00ff00ff", "reward": 0.25}
EVENT["weight"] = 1.0


def test_an_event_that_was_read_is_written_as_it_was() -> None:
    line = encode_event(EVENT, 99)
    event, crc = decode(line[0], 7, 99, "a.jsonl")
    assert event == EVENT
    assert encode_event(event, 99) == line == (line[0], crc)


def test_every_changed_byte_is_found() -> None:
    line = encode_event(EVENT, 99)[0]
    for place in range(len(line)):
        for byte in {line[place] ^ 1, ord("0"), ord("7"), ord(" ")} - {line[place]}:
            changed = line[:place] + bytes([byte]) + line[place + 1 :]
            with pytest.raises(DamagedLineError) as refused:
                decode(changed, 7, 99, "a.jsonl")
            assert refused.value.seq == 7


def test_a_line_that_follows_another_one_is_refused() -> None:
    line = json_line(1, "advance", 5, {"t": 3}, 10)[0]
    with pytest.raises(DamagedLineError, match="its check value differs"):
        decode(line, 1, 11, "a.jsonl")
    with pytest.raises(InvalidEventError, match="its number is 1"):
        decode(line, 2, 10, "a.jsonl")
