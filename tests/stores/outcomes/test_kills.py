"""Processes that are killed: a loop with outcomes and a budget ends as one that never was; `make soak` kills more."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.oracle import LostError
from soak.outcomes import soak


def test_parts_and_the_price_survive_kill_9(tmp_path: Path) -> None:
    report = soak(tmp_path / "soak.db", 5, decisions=120)
    assert report.kills == 5


@pytest.mark.parametrize("sabotage", ["answers too early", "rank ignored", "snapshot off by one"])
def test_the_soak_finds_a_store_that_loses_parts(sabotage: str, tmp_path: Path) -> None:
    with pytest.raises(LostError, match=r"was answered|never killed|the budget is"):
        soak(tmp_path / "soak.db", 5, decisions=120, sabotage=sabotage)
