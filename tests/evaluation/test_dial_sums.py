"""Sums of dials: those of the rows that each plays alike, and estimates that are weighted means of them."""

from __future__ import annotations

import numpy as np
import pytest

from armlet.evaluation.dials.sums import dial_arms, sum_dials, sum_played
from armlet.evaluation.rows import Rows, rows_of
from armlet.types import Float64


def routed(n: int, seed: int) -> tuple[Rows, Float64, Float64]:
    """Rows of three arms drawn at random, weights, and two outcomes each."""
    rng = np.random.default_rng(seed)
    X, arms = rng.standard_normal((n, 2)), rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    chance = np.array([0.5, 0.3, 0.2])[arms]
    outcomes = np.column_stack([0.3 * arms + 0.2 * X[:, 0] + 0.1 * rng.standard_normal(n), 10.0 ** (arms - 2.0)])
    return rows_of(X, arms, np.zeros(n), chance, n_arms=3), 1.0 / chance, outcomes


def policies(n: int, seed: int = 1) -> Float64:
    """Policies that know the quality of each arm more or less, and its price."""
    rng = np.random.default_rng(seed)
    thetas = np.zeros((n, 2, 3, 3))
    thetas[:, 0] = rng.standard_normal((n, 3, 3))
    thetas[:, 1, :, 0] = [0.01, 0.1, 1.0]
    return thetas


DIALS = np.column_stack([np.ones(7), [0.0, -0.1, -0.5, -1.0, -3.0, -30.0, 2.0]])


def test_sums_are_those_of_the_rows_that_a_dial_plays_alike() -> None:
    rows, w, outcomes = routed(500, 1)
    sums, agrees = sum_dials(rows, w, outcomes, policies(4), DIALS), dial_arms(rows, policies(4), DIALS) == rows.arm
    y = np.column_stack([np.ones(500), outcomes])
    for j in range(4):
        for k in range(7):
            here = agrees[j, k]
            assert sums.agreed[j, k] == here.sum()
            np.testing.assert_allclose(sums.totals[j, k], (w[here, None] * y[here]).sum(axis=0), rtol=1e-12)
            weighted = w[here, None] * y[here]
            np.testing.assert_allclose(sums.squares[j, k], weighted.T @ weighted, rtol=1e-12)
    weights = np.where(agrees, w, 0.0)
    np.testing.assert_allclose(sums.effective_rows, weights.sum(axis=2) ** 2 / (weights**2).sum(axis=2), rtol=1e-12)


def test_estimates_are_weighted_means_with_the_spread_of_their_rows() -> None:
    rows, w, outcomes = routed(400, 2)
    sums = sum_dials(rows, w, outcomes, policies(2), DIALS)
    agrees = dial_arms(rows, policies(2), DIALS)[1, 2] == rows.arm
    weights = np.where(agrees, w, 0.0)
    values, covariances = sums.estimate()
    means = weights @ outcomes / weights.sum()
    off = weights[:, None] * (outcomes - means)
    np.testing.assert_allclose(values[1, 2], means, rtol=1e-12)
    np.testing.assert_allclose(covariances[1, 2], off.T @ off / weights.sum() ** 2, rtol=1e-9, atol=1e-15)
    values, covariances = sums.plain()
    np.testing.assert_allclose(values[1, 2], (weights[:, None] * outcomes).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        covariances[1, 2], np.cov(weights[:, None] * outcomes, rowvar=False, bias=True) / 400, rtol=1e-9, atol=1e-15
    )


def test_plays_are_counted_arm_by_arm_and_what_they_have_is_summed() -> None:
    rows = routed(300, 7)[0]
    half = np.arange(0, 300, 2)
    rows.eligible[half, (rows.arm[half] + 1) % 3] = False
    arms = dial_arms(rows, policies(3), DIALS)
    wanted = np.stack([(arms == arm).sum(axis=2) for arm in range(3)], axis=2)
    columns = np.random.default_rng(8).random((3, 300, 2))
    counts, sums = sum_played(rows, columns, policies(3), DIALS)
    np.testing.assert_array_equal(counts, wanted)
    np.testing.assert_allclose(sums, columns[arms, np.arange(300)].sum(axis=2), rtol=1e-12)
    assert (wanted.sum(axis=2) == 300).all()
    assert (wanted > 0).any(axis=(0, 1)).all()


def test_blocks_add_up() -> None:
    rows, w, outcomes = routed(300, 3)
    parts = [slice(0, 100), slice(100, 300)]
    whole = sum_dials(rows, w, outcomes, policies(3), DIALS)
    first, second = (sum_dials(rows.take(part), w[part], outcomes[part], policies(3), DIALS) for part in parts)
    both = first + second
    assert both.rows == whole.rows == 300
    np.testing.assert_array_equal(both.agreed, whole.agreed)
    np.testing.assert_allclose(both.totals, whole.totals, rtol=1e-13)
    np.testing.assert_allclose(both.squares, whole.squares, rtol=1e-13)


def test_a_dial_does_not_depend_on_the_others() -> None:
    rows, w, outcomes = routed(200, 4)
    together = sum_dials(rows, w, outcomes, policies(5), DIALS)
    alone = sum_dials(rows, w, outcomes, policies(5)[3:4], DIALS[2:3])
    assert alone.totals[0, 0].tobytes() == together.totals[3, 2].tobytes()
    assert alone.squares[0, 0].tobytes() == together.squares[3, 2].tobytes()


def test_where_no_row_counts_there_is_no_estimate() -> None:
    rows, w, outcomes = routed(50, 5)
    never = np.zeros((1, 2, 3, 3))
    never[:, 0, 2, 0] = 1.0  # plays the third arm always
    some = rows.arm != 2
    sums = sum_dials(rows.take(some), w[some], outcomes[some], never, DIALS[:1])
    assert sums.agreed.tolist() == [[0]]
    assert sums.effective_rows.tolist() == [[0.0]]
    assert np.isnan(sums.estimate()[0]).all()


def test_what_cannot_be_summed_is_refused() -> None:
    rows, w, outcomes = routed(10, 6)
    with pytest.raises(ValueError, match=r"thetas has shape \(2, 3, 3\); give \(J, m, 3, 2\), or \(J, m, 3, 3\)"):
        sum_dials(rows, w, outcomes, np.ones((2, 3, 3)), DIALS)
    with pytest.raises(ValueError, match=r"dials has shape \(7, 1\); give \(D, 2\)"):
        sum_dials(rows, w, outcomes, policies(1), DIALS[:, :1])
    with pytest.raises(ValueError, match="dials has a weight that is not finite"):
        sum_dials(rows, w, outcomes, policies(1), DIALS + np.inf)
    with pytest.raises(ValueError, match=r"weights has shape \(10,\); give \(10,\) positive finite numbers"):
        sum_dials(rows, 0.0 * w, outcomes, policies(1), DIALS)
    with pytest.raises(ValueError, match=r"outcomes has shape \(9, 2\); give \(10, q\) finite numbers"):
        sum_dials(rows, w, outcomes[1:], policies(1), DIALS)
