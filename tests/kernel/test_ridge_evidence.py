"""The ridge that sums make likely is finite on any table, and the kernel has the bits of its oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet.inputs.settings import Ridge
from armlet.loading import from_bytes
from armlet.reference import ridge_evidence
from armlet.reference.log_bonus import PacedReference
from armlet.reference.ridge_evidence import likely_ridge
from armlet.types import Float64
from support.examples import scaled

KINDS = ("one-hot", "few", "constant", "counts", "rare", "normal", "huge", "tiny")


def oracle(n_arms: int, dim: int) -> PacedReference:
    return PacedReference(
        n_arms=n_arms,
        dim=dim,
        p=0.1 * n_arms,
        seed=1,
        ridge=Ridge("constant", 1.0),
        finds_ridge=True,
        units="free",
        clock="evidence",
        learns_from="every step",
    )


def columns(kind: str, rows: int, rng: np.random.Generator) -> Float64:
    """(rows, 1 to 56): columns as tables of categories, counts and money have them; or the same few rows again."""
    if kind == "one-hot":
        return np.eye(9, dtype=np.float64)[rng.integers(9, size=rows)]
    if kind == "few":
        return rng.integers(3, size=(3, 56))[rng.integers(3, size=rows)].astype(np.float64)
    width = int(rng.integers(1, 8))
    made: dict[str, Float64] = {
        "constant": np.full((rows, width), rng.choice([0.0, 1.0, 0.1, 1e6, 1234.5])),
        "counts": rng.poisson(0.3, size=(rows, width)) * rng.choice([1.0, 0.01, 0.1, 1000.0], size=width),
        "rare": (rng.random((rows, width)) < 0.05) * rng.lognormal(0.0, 2.0, size=(rows, width)),
        "normal": rng.normal(size=(rows, width)),
        "huge": (rng.normal(size=(rows, width)) + rng.choice([0.0, 30.0])) * 1e12,
        "tiny": (rng.normal(size=(rows, width)) + rng.choice([0.0, 30.0])) * 1e-9,
    }
    return made[kind]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Float64, Float64, int]:
    """Contexts, rewards and the number of arms."""
    rng, rows = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(2, 16))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    X = np.column_stack([columns(kind, rows, rng) for kind in kinds])
    rewards = draw(st.sampled_from([rng.integers(2, size=rows) * 1.0, rng.normal(size=rows) * 1e5, np.ones(rows)]))
    return X, rewards, draw(st.integers(1, 3))


@settings(max_examples=scaled(120), deadline=None)
@given(tables())
def test_everything_solved_of_sparse_tables_is_finite(table: tuple[Float64, Float64, int]) -> None:
    """After every row, and as the oracle has it to the last bit."""
    X, rewards, n_arms = table
    state, plain = armlet.OccasionalOptimism().init(n_arms, X.shape[1]), oracle(n_arms, X.shape[1])
    for i, (x, reward) in enumerate(zip(X, rewards.tolist(), strict=True)):
        state.add(min(i, n_arms - 1), x, reward)
        plain.add(min(i, n_arms - 1), x, reward)
        assert state.ridge == plain.ridge.value
        for name, array in state.arrays().items():
            assert np.isfinite(array).all(), name
        np.testing.assert_array_equal(state.standard_estimates(), plain.theta)
        assert np.isfinite(state.scores(x)).all()
        assert np.isfinite(state.widths(x)).all()


def test_a_bandit_of_few_sparse_rows_can_be_saved() -> None:
    """Where rows of an arm are alike, they leave rounding of its slopes: no evidence."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        bandit, X = armlet.Bandit(["ham", "spam"], 56, seed=1), columns("few", 40, rng)
        bandit.learn_many([bandit.decide(x, eligible=["spam" if i else "ham"]) for i, x in enumerate(X[:4])], range(4))
        assert from_bytes(bandit.to_bytes()).state.ridge == bandit.state.ridge


def test_a_single_row_has_no_evidence() -> None:
    x = np.array([1.0, 0.1, -0.7, 1e-3])
    alone = (np.outer(x, x), 0.3 * x, 1.0, 0.09)
    assert likely_ridge([alone], 3, 1.0) == likely_ridge([], 3, 1.0)


def test_likelihoods_that_are_not_finite_leave_the_prior() -> None:
    A, b = np.full((3, 3), 5e307) + 5e307 * np.eye(3), np.full(3, 1e200)
    with np.errstate(all="ignore"):
        assert likely_ridge([(A, b, 5.0, 1e300)], 2, 1.0) == pytest.approx(2.0**0.5)


def test_equal_rows_skip_the_full_tridiagonal_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many features, rows that are all alike leave a matrix of rank 0, which is as low as rank can be."""
    sizes: list[int] = []
    full = ridge_evidence.tridiagonal

    def counted(M: Float64, g: Float64) -> tuple[Float64, Float64, Float64]:
        sizes.append(len(M))
        return full(M, g)

    monkeypatch.setattr(ridge_evidence, "tridiagonal", counted)
    x = np.concatenate([[1.0], np.random.default_rng(1).normal(size=1536)])
    likely_ridge([(3.0 * np.outer(x, x), 0.9 * x, 3.0, 0.5)], 1536, 1.0)
    assert sizes == [0]
