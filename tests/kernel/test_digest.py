"""Every compiled policy plays the same bits on every system, and on every level of one processor."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from armlet import _kernel
from support import digest as recorded
from support.digest import RECORD, digests, numbers


@pytest.fixture
def oldest_processor() -> Iterator[None]:
    """Run the code that any processor can."""
    _kernel._use_level(0)
    yield
    _kernel._use_level(2)


def test_decisions_have_the_bits_on_record() -> None:
    """After a change that is meant to change them: cd tests && python -m support.digest --record."""
    assert digests() == json.loads(RECORD.read_text())


@pytest.mark.usefixtures("oldest_processor")
def test_the_oldest_processor_decides_with_the_same_bits() -> None:
    assert digests() == json.loads(RECORD.read_text())


def test_another_stream_and_seed_give_every_policy_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest that could not change would prove nothing."""
    monkeypatch.setattr(recorded, "SEED", 1)
    monkeypatch.setattr(recorded, "numbers", lambda key, n: numbers(key + 10, n))
    kept = json.loads(RECORD.read_text())
    assert [name for name, found in recorded.digests().items() if found == kept[name]] == []
