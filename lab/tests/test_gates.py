"""How often gates keep what gains nothing."""

from __future__ import annotations

from typing import Any

import pytest

from armlet_lab.validation.gates import gated


@pytest.mark.parametrize("against", ["live", "other", "other, weights bounded"])
def test_a_candidate_that_gains_nothing_is_seldom_kept_at_any_look(against: Any) -> None:
    assert gated(against, 0.0, range(60)).keep <= 0.05


def test_a_good_candidate_is_kept() -> None:
    assert gated("other, weights bounded", 0.3, range(10)).keep == 1.0
