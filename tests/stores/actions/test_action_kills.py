"""Processes that are killed: a loop with actions ends as one that never was; `make soak` kills more."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.actions import soak
from soak.oracle import LostError


def test_tables_and_decisions_survive_kill_9(tmp_path: Path) -> None:
    report = soak(tmp_path / "soak.db", 3, decisions=120)
    assert report.kills == 3
    assert report.tables > 15


def test_the_soak_finds_a_store_that_loses_actions(tmp_path: Path) -> None:
    with pytest.raises(LostError, match=r"was answered|never killed|by itself"):
        soak(tmp_path / "soak.db", 3, decisions=120, sabotage="snapshot off by one")
