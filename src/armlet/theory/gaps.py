"""Steps of the paper's proof that do not hold, each with numbers that break it: Section 5.

Each function gives a `Counterexample`: the two sides of an inequality that the proof states, computed where the left
side is larger. docs/explanation/theory.md says how each step is repaired. O(1) each, but for the count of Lemma 2,
O(t p / K).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import positive
from armlet.theory.lemmas import count_chances, lemma1_printed, lemma2_printed
from armlet.types import Float64


class Counterexample(NamedTuple):
    """An inequality of the proof, left <= right, and its two sides at a place where it fails."""

    says: str
    where: str
    left: float
    right: float


def lemma1_fails(*, C: float, epsilon: float = 0.5) -> Counterexample:
    """Break Lemma 1 for any constant C: contexts uniform on the unit vectors of R^d, fewer than d/2 of them.

    Sigma = I/d. Some unit vector is drawn, so |Sigma_hat| >= 1/n, and the deviation is at least 1/n - 1/d > 1/d for
    n < d/2: surely more than epsilon |Sigma|. Yet the lemma lets its chance fall with n alone.

    Examples
    --------
    >>> lemma1_fails(C=0.01).where, lemma1_fails(C=0.01).left
    ('d = 2399, n = 1199', 1.0)
    """
    positive(1.0)("C", C)
    positive(0.99)("epsilon", epsilon)
    n = math.ceil(math.log(20) / (C * epsilon**2))  # the lemma then allows a tenth
    dim = 2 * n + 1
    says = "P(|Sigma_hat - Sigma| > epsilon |Sigma|) <= 2 exp(-C epsilon^2 n)"
    return Counterexample(says, f"d = {dim}, n = {n}", 1.0, lemma1_printed(n=n, epsilon=epsilon, C=C))


def deviation_of_unit_vectors(rng: np.random.Generator, *, dim: int, n: int) -> float:
    """Draw n unit vectors of R^d and give |Sigma_hat - Sigma| / |Sigma|, to see `lemma1_fails` happen.

    Examples
    --------
    >>> deviation_of_unit_vectors(np.random.default_rng(1), dim=101, n=50) > 1
    True
    """
    counts = np.bincount(rng.integers(dim, size=n), minlength=dim)
    return float(np.abs(counts / n - 1 / dim).max() * dim)  # both matrices are diagonal


def lemma2_fails(*, p: int = 300, n_arms: int = 6, t: int = 1_000) -> Counterexample:
    """Break Lemma 2 where p < t < (p / e)^2: it promises more rows than an arm has on average.

    Examples
    --------
    >>> broken = lemma2_fails()
    >>> round(broken.left, 6), f"{broken.right:.1e}"
    (1.0, '4.2e-10')
    """
    rows, chance = lemma2_printed(p=p, n_arms=n_arms, t=t)
    (true,) = count_chances(p=p, n_arms=n_arms, steps=[t], rows=[rows])
    says = "P(fewer than (p / 2K) log t rows) <= t^(-p / 16K)"
    broken = Counterexample(says, f"p = {p}, K = {n_arms}, t = {t}", float(true), chance)
    return _checked(broken, "t", t)


def splitting_fails() -> Counterexample:
    """Break |x' M^-1 v| <= |M^-1 x| |x' v|, by which the proof takes the matrix out of the noise.

    Four explored contexts, e1, e2 and (1, 1) / sqrt 2 twice, so that M = I / 2 + Sigma_hat, and noise 1 in the second
    row only. At x = e1 the right side is 0: Cauchy-Schwarz gives |M^-1 x| |v| and no more.

    Examples
    --------
    >>> broken = splitting_fails()
    >>> round(broken.left, 4), broken.right
    (0.0667, 0.0)
    """
    half = math.sqrt(0.5)
    X, noise = np.array([[1.0, 0.0], [0.0, 1.0], [half, half], [half, half]]), np.array([0.0, 1.0, 0.0, 0.0])
    n, x = len(X), np.array([1.0, 0.0])
    M: Float64 = np.eye(2) / math.sqrt(n) + X.T @ X / n
    v, pulled = X.T @ noise / n, np.linalg.solve(M, x)
    left, right = abs(float(pulled @ v)), float(np.linalg.norm(pulled)) * abs(float(x @ v))
    return Counterexample("|x' M^-1 v| <= |M^-1 x| |x' v|", "four rows in the plane, x = e1", left, right)


def cross_term_fails(*, n: int = 64) -> Counterexample:
    """Break the step that loses a sqrt n, at Q = L = Delta_min = Sigma_min = 1.

    In n (Delta Sigma / 4 - lambda_n Q)^2 / (2 L^2) the cross term has n lambda_n = sqrt n, which the proof drops.

    Examples
    --------
    >>> broken = cross_term_fails()
    >>> round(broken.left, 3), round(broken.right, 3)
    (0.607, 0.174)
    """
    left = math.exp(-n / 2 * max(1 / 4 - 1 / math.sqrt(n), 0.0) ** 2)
    right = math.exp(1 / 4) * math.exp(-n / 32)
    says = (
        "exp(-n (Delta Sigma / 4 - Q / sqrt n)^2 / 2L^2) <= exp(Q Delta Sigma / 4L^2) exp(-n (Delta Sigma)^2 / 32L^2)"
    )
    return _checked(Counterexample(says, f"Q = L = Delta = Sigma = 1, n = {n}", left, right), "n", n)


def tail_fails(*, u: float = 4.0) -> Counterexample:
    """Break the tail 2 exp(-n u^2 / 2L^2) for noise with E exp(g Z) <= exp(g^2 L^2), as Assumption 1 defines L.

    A gaussian of variance 2 L^2 has that constant, and the larger tail erfc(u / 2L). L = 1 and n = 1 here.

    Examples
    --------
    >>> broken = tail_fails()
    >>> round(broken.left, 4), round(broken.right, 4)
    (0.0047, 0.0007)
    """
    says, left, right = "P(|Z| >= u) <= 2 exp(-u^2 / 2L^2)", math.erfc(u / 2), 2 * math.exp(-(u**2) / 2)
    return _checked(Counterexample(says, f"a gaussian of variance 2, L = 1, u = {u:g}", left, right), "u", u)


def counterexamples() -> tuple[Counterexample, ...]:
    """Give all of them, in the order of the proof.

    Examples
    --------
    >>> [broken.left > broken.right for broken in counterexamples()]
    [True, True, True, True, True]
    """
    return splitting_fails(), tail_fails(), lemma1_fails(C=3 / 7), cross_term_fails(), lemma2_fails()


def _checked(broken: Counterexample, name: str, value: float) -> Counterexample:
    if not broken.left > broken.right:
        raise InvalidValueError(
            f"{name} is {value} but there the inequality holds, {broken.left:g} <= {broken.right:g}; choose another"
        )
    return broken
