"""Student's law: as many digits as scipy has, from one degree of freedom on."""

from __future__ import annotations

import pytest
from scipy import stats

from armlet.inference.intervals import t_quantile, t_tail

FREEDOM = (0.5, 1, 1.5, 2, 3, 4, 5.7, 10, 30, 100, 999, 5000, 1e4, 10_001, 1e6, 1e12)


@pytest.mark.parametrize("freedom", FREEDOM)
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9999, 1 - 1e-8])
def test_quantiles_are_those_of_scipy(freedom: float, probability: float) -> None:
    # the last level leaves 1e-8 of 1 - probability in float64, which is known to 1e-8 of itself
    assert t_quantile(probability, freedom) == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("freedom", FREEDOM)
@pytest.mark.parametrize("t", [-30.0, -2.0, 0.0, 0.01, 1.0, 3.0, 50.0])
def test_tails_are_those_of_scipy(freedom: float, t: float) -> None:
    assert t_tail(t, freedom) == pytest.approx(stats.t.sf(t, freedom), abs=2e-15, rel=1e-10)


@pytest.mark.parametrize(("probability", "freedom"), [(0.0, 3), (1.0, 3), (0.9, 0), (0.9, float("nan"))])
def test_what_has_no_quantile_is_refused(probability: float, freedom: float) -> None:
    with pytest.raises(ValueError, match=r"must lie between|positive number"):
        t_quantile(probability, freedom)
