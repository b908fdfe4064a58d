"""Intervals where the decisions of a session share a coin: by rows they fail, by units they cover."""

from __future__ import annotations

import pytest

from armlet_lab.validation.sessions import Design, coverage, ever_wrong


@pytest.mark.parametrize(("design", "estimator"), [("by chance", "dr"), ("at a known rate", "weighted")])
def test_intervals_by_rows_fail_and_by_units_cover(design: Design, estimator: str) -> None:
    """100 runs: a coverage of 0.95 has a standard error of 0.022; three of them are left to chance."""
    assert coverage(design, "units", range(100))[estimator] >= 0.95 - 3 * 0.022
    assert coverage(design, "rows", range(100))[estimator] < 0.95 - 3 * 0.022


def test_a_gate_by_units_holds_after_every_epoch() -> None:
    assert max(ever_wrong("units", range(20)).values()) <= 0.05
