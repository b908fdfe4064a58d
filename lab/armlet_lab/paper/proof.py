"""The two lemmas of Section 5, as printed and as they can be proved, and the steps of the proof that do not hold.

Lemma 1 is about the second moment of n contexts, Lemma 2 about how many explored rows an arm has by step t. A
`Counterexample` holds the two sides of an inequality that the proof states, computed where the left side is larger;
docs/explanation/theory.md repairs each. Bounds are O(1); the exact law of a count takes O(t m) for counts up to m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import number, positive, whole
from armlet.types import Float64


class Count(NamedTuple):
    """A promise: fewer rows than these with at most this chance."""

    rows: float
    chance: float


def lemma1_printed(*, n: int, epsilon: float, C: float) -> float:
    """Return the printed bound on P(|Sigma_hat - Sigma| > epsilon |Sigma|), 2 exp(-C epsilon^2 n). No such C exists.

    Examples
    --------
    >>> round(lemma1_printed(n=100, epsilon=0.5, C=3 / 7), 6)
    4.4e-05
    """
    _check_lemma1(n, epsilon)
    positive(1.0)("C", C)
    return 2 * math.exp(-C * epsilon**2 * n)


def lemma1_repaired(*, n: int, epsilon: float, norm: float, rank: int) -> float:
    """Bound the same chance by matrix Bernstein: 2 r exp(-(3/8) epsilon^2 |Sigma| n), for |x| <= 1.

    Rows xx' - Sigma have norm at most 1 and E (xx' - Sigma)^2 at most |Sigma|, and 2 (1 + epsilon / 3) <= 8 / 3. The
    exponent has |Sigma|, which is 1/d if all directions are alike, and the factor r in front.

    Examples
    --------
    >>> round(lemma1_repaired(n=100, epsilon=0.5, norm=0.5, rank=3), 6)
    0.055258
    """
    _check_lemma1(n, epsilon)
    positive(1.0)("norm", norm)
    whole()("rank", rank)
    return 2 * rank * math.exp(-3 / 8 * epsilon**2 * norm * n)


def eigenvalue_chance(*, n: int, sigma_min: float, rank: int, radius: float = 1.0) -> float:
    """Bound the chance that n contexts leave a direction half observed: r exp(-n Sigma_min / (8 B^2)).

    That is P(smallest eigenvalue of Sigma_hat within the span < Sigma_min / 2), by matrix Chernoff (Tropp 2012), where
    (e^-1/2 / (1/2)^1/2)^(n Sigma_min / B^2) is below this. It is all that the regret theorem needs of Lemma 1.

    Examples
    --------
    >>> round(eigenvalue_chance(n=100, sigma_min=0.5, rank=3), 6)
    0.005791
    """
    whole()("n", n)
    whole()("rank", rank)
    positive()("radius", radius)
    positive(radius**2)("sigma_min", sigma_min)
    return rank * math.exp(-n * sigma_min / (8 * radius**2))


def lemma2_printed(*, p: float, n_arms: int, t: float) -> Count:
    """Return what the paper promises by step t: at least (p / 2K) log t rows, but for a chance of t^(-p / 16K).

    Examples
    --------
    >>> rows, chance = lemma2_printed(p=300, n_arms=6, t=1000)
    >>> round(rows), f"{chance:.1e}"
    (173, '4.2e-10')
    """
    _check_lemma2(p, n_arms, t)
    return Count(p / (2 * n_arms) * math.log(t), t ** (-p / (16 * n_arms)))


def lemma2_repaired(*, p: float, n_arms: int, t: float) -> Count:
    """Return what is proved: at least n_c = (p / 2K) (1 + log(t / p)) rows, but for a chance of exp(-n_c / 4).

    n_c is half of what an arm has on average, p/K from the warm-up and p/(Ki) from each step i after it. For p >= 3 and
    p a multiple of K.

    Examples
    --------
    >>> rows, chance = lemma2_repaired(p=300, n_arms=6, t=1000)
    >>> round(rows), f"{chance:.1e}"
    (55, '1.0e-06')
    """
    _check_lemma2(p, n_arms, t)
    if p % n_arms or p < 3:
        raise InvalidValueError(
            f"p is {p:g} but the count is for multiples of n_arms = {n_arms} from 3 up; round p up to one"
        )
    rows = p / (2 * n_arms) * (1 + math.log(t / p))
    return Count(rows, math.exp(-rows / 4))


def lemma2_turn(p: float) -> float:
    """Return the step (p / e)^2 up to which Lemma 2 promises more rows than an arm has on average.

    Examples
    --------
    >>> round(lemma2_turn(300))
    12180
    """
    positive()("p", p)
    return float((p / math.e) ** 2)


def count_chances(*, p: int, n_arms: int, steps: Sequence[int], rows: Sequence[float]) -> Float64:
    """Compute exactly how likely an arm has fewer than `rows[i]` explored rows when step `steps[i]` comes: (steps,).

    The count is p/K from the warm-up plus independent coins p/(Ki), p < i < t, added one after the other. Nothing
    cancels: exact up to rounding even where the chance is as small as 1e-30.

    Parameters
    ----------
    p
        A multiple of the number of arms.
    n_arms
        K.
    steps
        Increasing, each above p.
    rows
        As many as there are steps.

    Examples
    --------
    >>> count_chances(p=2, n_arms=2, steps=[3, 4], rows=[2, 2]).round(4)
    array([1.    , 0.6667])
    """
    if p % n_arms or len(steps) != len(rows) or list(steps) != sorted(set(steps)) or min(steps) <= p:
        raise InvalidValueError(
            f"p, n_arms, steps and rows are {p}, {n_arms}, {steps} and {rows}; give a multiple of n_arms, increasing "
            f"steps above p, and as many rows"
        )
    warmup, asked = p // n_arms, [math.ceil(each) for each in rows]
    law = np.zeros(max(*asked, warmup + 1) - warmup)  # of the count after the warm-up, as far as it is needed
    law[0] = 1.0
    chances, done = np.zeros(len(steps)), p
    for column, (t, fewer) in enumerate(zip(steps, asked, strict=True)):
        for i in range(done + 1, t):
            moved = law * (p / (n_arms * i))
            law -= moved
            law[1:] += moved[:-1]
        done = t - 1
        chances[column] = law[: max(fewer - warmup, 0)].sum()
    return chances


def _check_lemma1(n: int, epsilon: float) -> None:
    whole()("n", n)
    positive(1.0)("epsilon", epsilon)


def _check_lemma2(p: float, n_arms: int, t: float) -> None:
    whole()("n_arms", n_arms)
    positive()("p", p)
    number(p, fix=f"give a step after the warm-up of p = {p:g} steps")("t", t)


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
    """Return all of them, in the order of the proof.

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
