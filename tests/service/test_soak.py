"""A part of what `make soak` does to running servers: kills in traffic, odd requests, a clock that jumps."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.oracle import LostError
from soak.server import clock, due, fuzz, kill, maintenance, slow

pytestmark = pytest.mark.filterwarnings("ignore:the first 100 rewards:RuntimeWarning")  # defaults are all alike


def test_what_a_server_has_answered_survives_kill_9(tmp_path: Path) -> None:
    report = kill.soak(tmp_path, 6, filled=300)
    assert report.kills == 6
    assert min(report.decisions - 300, report.repeats, report.rewards, report.forgotten) > 0


BROKEN = {
    "answers too early": "and then|was decided, and|nobody asked|is not kept|is not the sum|could not be forgotten",
    "events lost": "and then|was decided, and|nobody asked|is not kept|was asked, and",
}


@pytest.mark.parametrize("sabotage", BROKEN)
def test_the_soak_finds_a_server_that_breaks_a_promise(sabotage: str, tmp_path: Path) -> None:
    with pytest.raises(LostError, match=BROKEN[sabotage]):
        kill.soak(tmp_path, 50, filled=200, patches=[sabotage])  # ends with the check that finds it


def test_broken_requests_are_refused_and_leave_nothing_behind(tmp_path: Path) -> None:
    report = fuzz.soak(tmp_path, 300)
    assert report.sent == 300
    assert report.decisions > 0
    assert min(report.statuses[status] for status in ("200", "400", "404", "422")) > 0


def test_slow_clients_are_cut_off_while_others_are_answered(tmp_path: Path) -> None:
    report = slow.soak(tmp_path, scale=0.1, seconds=0.3, rounds=1)
    assert len(report.kinds) == len(slow.KINDS)
    assert len(report.took) > 0


def test_a_server_answers_while_decisions_are_forgotten_and_pruned(tmp_path: Path) -> None:
    """How long decisions take is for `make soak` to judge, on a machine that does nothing else."""
    report = maintenance.soak(tmp_path, rows=3000, forgets=10, quiet=0.3)
    assert report.forgotten > 0  # the others were pruned before
    assert report.pruned > 2000
    assert set(report.statuses) <= {200, 503}


def test_windows_close_once_and_on_time_when_the_clock_of_a_server_jumps(tmp_path: Path) -> None:
    report = clock.soak(tmp_path, ["-1 day", "restart at -3 days"], filled=100)
    assert len(report.closed) == 2


def test_a_server_with_windows_that_are_due_is_alive_before_it_is_ready(tmp_path: Path) -> None:
    started = due.soak(tmp_path, 4000)
    assert started.not_ready > 0
