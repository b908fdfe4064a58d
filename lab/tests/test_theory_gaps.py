"""The printed lemmas and steps of the proof: what they say, and that each fails where it is said to fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet_lab.paper import lemma_2, proof


@pytest.mark.parametrize("broken", proof.counterexamples(), ids=lambda broken: broken.says)
def test_each_printed_inequality_is_broken_by_more_than_rounding(broken: proof.Counterexample) -> None:
    assert broken.left > broken.right + 1e-3


# ---- Lemma 1


@pytest.mark.parametrize("C", [0.9, 3 / 7, 0.1])
def test_no_constant_saves_lemma_1(C: float) -> None:
    """The deviation is certain, which every draw shows, where the lemma allows a tenth."""
    broken = proof.lemma1_fails(C=C, epsilon=0.5)
    dim, n = (int(part.split(" = ")[1]) for part in broken.where.split(", "))
    assert n < dim / 2
    assert broken.right <= 0.1
    rng = np.random.default_rng(1)
    assert all(proof.deviation_of_unit_vectors(rng, dim=dim, n=n) > 1 for _ in range(200))


def test_the_deviation_of_unit_vectors_is_that_of_the_matrices() -> None:
    X = np.eye(5)[np.random.default_rng(9).integers(5, size=7)]
    direct = np.linalg.norm(X.T @ X / 7 - np.eye(5) / 5, ord=2) * 5
    assert proof.deviation_of_unit_vectors(np.random.default_rng(9), dim=5, n=7) == pytest.approx(direct)


@pytest.mark.parametrize(("dim", "n", "epsilon"), [(2, 60, 0.5), (4, 120, 0.5), (3, 30, 0.9), (20, 400, 0.9)])
def test_matrix_bernstein_bounds_the_same_deviation(dim: int, n: int, epsilon: float) -> None:
    """2,000 draws: five standard errors of a share above the bound."""
    rng = np.random.default_rng(dim)
    share = np.mean([proof.deviation_of_unit_vectors(rng, dim=dim, n=n) > epsilon for _ in range(2_000)])
    bound = proof.lemma1_repaired(n=n, epsilon=epsilon, norm=1 / dim, rank=dim)
    assert share <= bound + 5 * 0.5 / math.sqrt(2_000)


@given(norm=st.floats(0.01, 1.0), u=st.floats(0.001, 0.5))
def test_the_constant_for_the_printed_proof_is_within_matrix_bernstein(norm: float, u: float) -> None:
    """Exponents for each row: u^2 / 2 / (|Sigma| + u / 3) against C u^2 with C = 3/7."""
    assert u**2 / 2 / (norm + u / 3) >= 3 / 7 * u**2


# ---- Lemma 2


@pytest.mark.parametrize("t", [1_000, 5_000])
def test_lemma_2_promises_more_rows_than_there_are_on_average_up_to_its_turn(t: int) -> None:
    assert t < proof.lemma2_turn(300)
    assert proof.lemma2_printed(p=300, n_arms=6, t=t).rows > 50 * (1 + math.log(t / 300))
    broken = proof.lemma2_fails(p=300, n_arms=6, t=t)
    assert broken.left > 0.9
    assert broken.right < 1e-9


def test_at_its_turn_lemma_2_promises_just_the_mean() -> None:
    p, K, t = 300, 6, proof.lemma2_turn(300)
    assert proof.lemma2_printed(p=p, n_arms=K, t=t).rows == pytest.approx(p / K * (1 + math.log(t / p)))


def test_long_after_its_turn_lemma_2_holds() -> None:
    """Small p, so that long after is soon: (p / e)^2 is 5."""
    p, K, t = 6, 2, 20_000
    rows, chance = proof.lemma2_printed(p=p, n_arms=K, t=t)
    (exact,) = proof.count_chances(p=p, n_arms=K, steps=[t], rows=[rows])
    assert exact <= chance


def test_the_experiment_has_the_promises_of_both_lemmas_under_the_printed_chance() -> None:
    settings = lemma_2.Settings()  # p = 300, K = 6
    for t in (1_000, 5_000):
        assert settings.printed(t) == pytest.approx(25 * math.log(t))
        assert settings.repaired(t) == pytest.approx(25 * (1 + math.log(t / 300)))
        assert settings.bound(t) == pytest.approx(t**-3.125)


def test_the_repaired_lemma_gives_half_the_exponent_of_what_is_printed() -> None:
    """(e t / p)^(-p / 8K) against t^(-p / 16K): weaker until t reaches (p / e)^2, stronger from there on."""
    turn = proof.lemma2_turn(60)
    for t, stronger in ((turn / 2, False), (turn * 2, True)):
        printed, repaired = (
            lemma(p=60, n_arms=6, t=t).chance for lemma in (proof.lemma2_printed, proof.lemma2_repaired)
        )
        assert (repaired < printed) is stronger


def test_counts_refuse_what_they_cannot_compute() -> None:
    for p, steps, rows in ((7, [10], [1]), (6, [6], [1]), (6, [20, 10], [1, 1]), (6, [10], [1, 2])):
        with pytest.raises(ValueError, match="multiple of n_arms"):
            proof.count_chances(p=p, n_arms=3, steps=steps, rows=rows)
    with pytest.raises(ValueError, match="multiples of n_arms = 3"):
        proof.lemma2_repaired(p=7, n_arms=3, t=100)
    with pytest.raises(ValueError, match="after the warm-up"):
        proof.lemma2_printed(p=60, n_arms=3, t=10)


# ---- steps of the proof


def test_the_noise_splits_as_printed_only_along_the_context() -> None:
    """With one context alone the step is right, so it is the mixing of directions that breaks it."""
    x = np.array([1.0, 0.0])
    M, v = np.eye(2) / 2 + np.diag([1.0, 0.0]), np.array([0.25, 0.0])
    pulled = np.linalg.solve(M, x)
    assert abs(pulled @ v) <= np.linalg.norm(pulled) * abs(x @ v) * (1 + 1e-12)
    assert proof.splitting_fails().right == 0.0


def test_the_dropped_root_matters_more_the_more_rows_there_are() -> None:
    ratios = [broken.left / broken.right for broken in (proof.cross_term_fails(n=n) for n in (64, 256, 1024))]
    assert ratios == sorted(ratios)


def test_where_an_inequality_holds_there_is_no_counterexample() -> None:
    with pytest.raises(ValueError, match=r"t is 100000 .* choose another"):
        proof.lemma2_fails(p=60, n_arms=6, t=100_000)
    with pytest.raises(ValueError, match="n is 1 "):
        proof.cross_term_fails(n=1)
    with pytest.raises(ValueError, match="u is 2"):
        proof.tail_fails(u=2.0)


def test_the_tail_of_assumption_1_has_half_the_printed_exponent() -> None:
    """A gaussian of variance 2 L^2 stays below 2 exp(-u^2 / 4L^2), and above the printed tail at u = 3 L and more."""
    for u in (3.0, 4.0, 6.0):
        broken = proof.tail_fails(u=u)
        assert broken.right < broken.left <= 2 * math.exp(-(u**2) / 4)
