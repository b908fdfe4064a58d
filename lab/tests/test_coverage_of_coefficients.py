"""Whether intervals of coefficients cover as often as they say."""

from __future__ import annotations

from armlet_lab.validation.coverage.coefficients import coverage


def test_coefficients_and_contrasts_cover_as_often_as_they_say() -> None:
    found = coverage("gaps", "evidence", range(60))
    # 720 intervals, those of a run nearly independent: an error of .008; four of them. Contrasts: 180, .016
    assert abs(found.coefficients - 0.95) < 0.033
    assert abs(found.contrasts - 0.95) < 0.065
    assert found.anytime >= 0.95
