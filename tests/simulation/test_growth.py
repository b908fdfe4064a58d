"""Words about growth: chosen by what the interval of the doubling ratio contains."""

from __future__ import annotations

import pytest

from armlet.core.intervals import Estimate
from armlet.simulation.growth import growth


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.5, 0.9, "slower than logarithmic"),
        (0.9, 1.1, "consistent with logarithmic"),
        (0.9, 1.5, "consistent with logarithmic or square-root"),
        (1.1, 1.3, "between logarithmic and square-root"),
        (1.5, 1.9, "between square-root and linear"),
        (1.9, 2.1, "consistent with linear"),
        (2.1, 2.2, "faster than linear"),
    ],
)
def test_words_about_growth_follow_the_interval(low: float, high: float, words: str) -> None:
    assert growth(Estimate((low + high) / 2, low, high)).endswith(f"], {words} growth")


def test_a_ratio_without_regret_to_divide_by_is_not_made_up() -> None:
    assert growth(None) == "not defined, too little regret after T/4"
