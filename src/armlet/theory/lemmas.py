"""The two lemmas of Section 5, as printed and as they can be proved.

Lemma 1 is about the second moment of n contexts, Lemma 2 about how many explored rows an arm has by step t.
`armlet.theory.gaps` shows where the printed ones fail. Bounds are O(1); the exact law of a count takes O(t m) for
counts up to m.
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
    """Give the printed bound on P(|Sigma_hat - Sigma| > epsilon |Sigma|), 2 exp(-C epsilon^2 n). No such C exists.

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
    """Give what the paper promises by step t: at least (p / 2K) log t rows, but for a chance of t^(-p / 16K).

    Examples
    --------
    >>> rows, chance = lemma2_printed(p=300, n_arms=6, t=1000)
    >>> round(rows), f"{chance:.1e}"
    (173, '4.2e-10')
    """
    _check_lemma2(p, n_arms, t)
    return Count(p / (2 * n_arms) * math.log(t), t ** (-p / (16 * n_arms)))


def lemma2_repaired(*, p: float, n_arms: int, t: float) -> Count:
    """Give what is proved: at least n_c = (p / 2K) (1 + log(t / p)) rows, but for a chance of exp(-n_c / 4).

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
    """Give the step (p / e)^2 up to which Lemma 2 promises more rows than an arm has on average.

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
