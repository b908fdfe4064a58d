"""Files whose parts of rewards were damaged, or edited by somebody who mends check values too, are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import armlet
from armlet.errors import StoreError
from armlet.stores.sqlite.ledger import SQLiteReader
from armlet.stores.verify import verify
from support.stores.files import MEND_EVENT, MEND_OUTCOME, edit

PARTS = "'{{\"cost\":{}}}'"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file with a decision of which one part has come, and one of which all have."""
    path = tmp_path / "shop.db"
    with armlet.open_store(path) as store:
        loop = store.loop("router", arms=["a", "b"], dim=1, outcomes={"quality": 1.0, "cost": -4.0}, seed=5)
        for event in ("half", "whole"):
            loop.decide([1.0], event=event)
            loop.reward(event, {"cost": 0.25}, name="bill", rank=1)
        loop.reward("whole", {"quality": 0.5})
    return path


def test_what_was_not_touched_is_proved(path: Path) -> None:
    edit(path, *MEND_EVENT, *MEND_OUTCOME)
    assert verify(SQLiteReader(path), "router").outcomes == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE outcome SET parts = replace(parts, '0.25', '0.75')", r"'open' with the value \{'cost': 0.75\}"),
        ("UPDATE outcome SET parts = NULL WHERE event = 'half'", "'open' with the value None, but row 2 is a 'learn'"),
        ("UPDATE outcome SET parts = replace(parts, 'cost', 'quality')", "row 2 is a 'learn'"),
        ("UPDATE outcome SET parts = replace(parts, 'learned', 'held')", "row 2 is a 'learn'"),
        ("UPDATE outcome SET phase = 'learned' WHERE event = 'half'", "row 2 is a 'learn'"),
        ("UPDATE outcome SET parts = replace(parts, 'learned', 'lent')", "is damaged"),
        (f"UPDATE outcome SET parts = {PARTS.format('[0.25]')}", "is damaged"),
        (f"UPDATE outcome SET parts = {PARTS.format('3')}", "is damaged"),
        ("UPDATE outcome SET parts = '['", "is damaged"),
        ("UPDATE outcome SET parts = 3", "is damaged"),
        ("UPDATE event SET fields = replace(fields, '\"waits\":true,', '') WHERE seq = 2", "row 2 is a 'learn'"),
        ('UPDATE event SET fields = replace(fields, \'"had":{"cost":0.25}\', \'"had":{"cost":0.5}\')', "lead to"),
        ('UPDATE event SET fields = replace(fields, \'"had":{"cost":0.25}\', \'"had":3\')', "cannot be played again"),
        ("UPDATE event SET fields = replace(fields, '{\"cost\":0.25}', '{\"speed\":0.25}')", "cannot be played again"),
    ],
)
def test_parts_that_were_edited_are_refused(change: str, words: str, path: Path) -> None:
    edit(path, change, *MEND_EVENT, *MEND_OUTCOME)
    with pytest.raises(StoreError, match=words):
        verify(SQLiteReader(path), "router")


def test_a_check_value_covers_parts(path: Path) -> None:
    edit(path, "UPDATE outcome SET parts = replace(parts, '0.25', '0.75')")
    with armlet.open_store(path) as store:
        loop = store.loop("router")
        with pytest.raises(StoreError, match="its checksum is wrong"):
            loop.reward("half", {"quality": 0.5})


def test_a_part_that_was_lost_is_noticed_when_it_is_asked_for(path: Path) -> None:
    edit(path, "UPDATE outcome SET parts = NULL WHERE event = 'half'", *MEND_OUTCOME)
    with armlet.open_store(path) as store:
        loop = store.loop("router")
        with pytest.raises(StoreError, match="is older than its rows"):
            loop.reward("half", {"cost": 0.25})
