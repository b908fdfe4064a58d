"""Two servers of one database and what can happen to them: twelve faults, and one of ours that the soak must find."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.oracle import LostError
from soak.server.replicas import soak
from support.postgresql import Server

pytestmark = pytest.mark.filterwarnings("ignore:the first 100 rewards:RuntimeWarning")  # defaults are all alike


def test_two_servers_survive_twelve_faults(server: Server, tmp_path: Path) -> None:
    found = soak(server, tmp_path, 12, filled=300)
    assert found.faults.total() == 12
    assert min(found.faults.values()) == 2
    assert found.heard["outcome unknown"] > 0
    assert min(found.heard["refused"], found.report.repeats, found.report.forgotten, found.report.changes) > 0


def test_the_soak_finds_a_server_that_calls_an_unknown_outcome_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(
        LostError, match=r"nobody asked|was reported for the first time|is not the sum|nothing outranks"
    ):
        soak(server, tmp_path, 30, filled=100, patches=["unknown called refused"])
