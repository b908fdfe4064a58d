"""Sums of many rows at once: bit for bit those of the same additions in numpy, and to rounding those of row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armlet import _kernel, kernel
from armlet.kernel import Statistics
from armlet.types import Float64, Int64


def record_size(size: int) -> int:
    return 3 + size + size * (size + 1) // 2


def summed(
    records: Float64, X: Float64, arms: Int64, rewards: Float64, weights: Float64 | None, origin: Float64 | None
) -> Float64:
    """The same in numpy: blocks of an arm's rows, each summed from zero in their order, then added."""
    n = len(X)
    w = np.ones(n) if weights is None else weights
    Y = X if origin is None else np.column_stack([np.ones(n), X - origin[1:]])
    r = rewards if origin is None else rewards - origin[0]
    size = Y.shape[1]
    block = min(max(2**19 // (len(records) * (-(-size // 16) * 16)), 8), 64)
    out = records.copy()
    for arm in range(len(records)):
        rows = np.flatnonzero(arms == arm)
        for start in range(0, len(rows), block):
            part = np.zeros(3 + size + size * size)
            for i in rows[start : start + block]:
                pay = w[i] * r[i]
                part[:3] += [w[i], pay, pay * r[i]]
                part[3 : 3 + size] += pay * Y[i]
                part[3 + size :] += np.outer(Y[i], w[i] * Y[i]).ravel()
            square = part[3 + size :].reshape(size, size)
            out[arm] += np.concatenate([part[: 3 + size], square[np.triu_indices(size)]])
    return out


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("dim", [1, 3, 7, 8, 16, 17, 32, 33])
@pytest.mark.parametrize("n_arms", [1, 3, 2000])
def test_sums_are_those_of_numpy_on_every_processor(level: int, dim: int, n_arms: int) -> None:
    rng = np.random.default_rng([dim, n_arms])
    n = 300
    X, rewards = rng.normal(size=(n, dim)), rng.normal(size=n)
    arms = rng.integers(-1, min(n_arms, 3), n)
    try:
        _kernel._use_level(level)
        for weights in (None, rng.uniform(0.5, 2.0, n)):
            for origin in (None, rng.normal(size=dim + 1)):
                size = dim + (origin is not None)
                start = np.zeros((n_arms, record_size(size)))
                start[: min(n_arms, 3)] = rng.normal(size=(min(n_arms, 3), record_size(size)))
                wanted = summed(start, X, arms, rewards, weights, origin)
                for given in (X, [column.copy() for column in X.T]):
                    records = start.copy()
                    kernel.add_rows(records, given, arms, rewards, weights, origin)
                    assert records.tobytes() == wanted.tobytes()
    finally:
        _kernel._use_level(2)


def test_sums_are_those_of_row_by_row_to_rounding() -> None:
    rng = np.random.default_rng(1)
    X, rewards, arms = rng.normal(size=(5000, 6)), rng.normal(size=5000), rng.integers(0, 4, 5000)
    weights = rng.uniform(0.5, 2.0, 5000)
    state, records = Statistics(4, 6), np.zeros((4, record_size(6)))
    for i in range(5000):
        state.add(int(arms[i]), X[i], rewards[i], weights[i])
    kernel.add_rows(records, X, arms, rewards, weights)
    # a sum of n terms is exact to n eps times the sum of their sizes, at most 4 * 4 * 2 a row here
    assert np.abs(records - state.records()).max() < 5000 * 2.3e-16 * 5000 * 32


def test_nothing_is_added_of_no_rows() -> None:
    records = np.zeros((2, record_size(3)))
    kernel.add_rows(records, np.empty((0, 3)), np.empty(0, dtype=np.int64), np.empty(0))
    assert not records.any()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": np.array([[1.0, np.nan]])}, ValueError, "X holds a value that is not a finite number"),
        ({"X": np.array([[1.0, 1e41]])}, ValueError, "X holds a value that is not a finite number"),
        ({"rewards": np.array([np.inf])}, ValueError, "rewards holds"),
        ({"weights": np.array([0.0])}, ValueError, "weights holds a value that is not a positive number"),
        ({"arms": np.array([2])}, ValueError, "arms holds a number beyond the records"),
        ({"arms": np.array([0.0])}, TypeError, "arms must be"),
        ({"X": np.ones((2, 2))}, TypeError, "X must be"),
        ({"X": np.ones((1, 4))[:, ::2]}, TypeError, "X must be a C-contiguous float64 matrix, or a list of"),
        ({"X": np.ones((1, 0))}, TypeError, "X must be a C-contiguous float64 matrix, or a list of"),
        ({"X": [[1.0], [2.0]]}, TypeError, "a column of X must be"),
        ({"X": [np.ones(1), np.ones(2)]}, TypeError, "a column of X must be"),
        ({"X": [np.ones(1), np.array([np.nan])]}, ValueError, "X holds a value that is not a finite number"),
        ({"X": []}, ValueError, "X has no columns"),
        ({"X": np.ones((1, 3))}, TypeError, "records must be"),
        ({"origin": np.zeros(2)}, TypeError, "origin must be"),
    ],
)
def test_bad_rows_are_refused_and_change_nothing(change: dict[str, Any], error: type, message: str) -> None:
    records = np.zeros((2, record_size(2)))
    given = {"X": np.ones((1, 2)), "arms": np.array([0]), "rewards": np.ones(1), "weights": None, "origin": None}
    with pytest.raises(error, match=message):
        kernel.add_rows(records, **{**given, **change})
    assert not records.any()


def test_records_that_cannot_be_written_are_refused() -> None:
    records = np.zeros((1, record_size(1)))
    records.flags.writeable = False
    with pytest.raises(ValueError, match="records cannot be written to"):
        kernel.add_rows(records, np.ones((1, 1)), np.array([0]), np.ones(1))
