"""Wealth: equal to slow, readable forms, the same bits row by row, and rarely large against the truth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, special

from armlet.inference.sequences import GRID, SWITCH, Betting, GammaExponential, Hedge, mixed_margin, mixed_wealth
from armlet.types import Float64

Bets = GammaExponential | Betting | Hedge
KINDS: list[Callable[[float], Bets]] = [GammaExponential, Betting, Hedge]


def weighted(n: int, seed: int = 0) -> Float64:
    """Scores w u with w 0 or 3: mean .6, largest 3."""
    rng = np.random.default_rng(seed)
    return np.asarray(np.where(rng.random(n) < 1 / 3, 3.0, 0.0) * np.minimum(1.0, rng.gamma(2.0, 0.3, n)))


@pytest.mark.parametrize("v", [0.0, 0.01, 0.5, 1.0, 3.0, 10.0, 100.0, 1e3])
@pytest.mark.parametrize("t", [-0.3, 0.0, 0.5, 1.0, 3.0, 8.0])
def test_the_mixture_is_the_integral_over_bets(v: float, t: float) -> None:
    s = t * math.sqrt(v + 1)

    def wealth(lam: float) -> float:
        gamma_law = math.exp(-(1.0 - lam)) / (1.0 - math.exp(-1.0))
        return gamma_law * math.exp(lam * s + v * (math.log1p(-lam) + lam))

    peak = max(0.0, s / (s + v + 1))
    slow, _ = integrate.quad(wealth, 0.0, 1.0, points=[peak], epsabs=0.0, epsrel=1e-12, limit=500)
    assert float(mixed_wealth(s, v)) == pytest.approx(math.log(slow), abs=1e-9)


@pytest.mark.parametrize("v", [0.0, 1.0, 40.0, 1e4, 1e6])
def test_the_margin_is_that_of_incomplete_gamma_functions(v: float) -> None:
    s = float(mixed_margin(v, math.log(40)))
    a, x = v + 1.0, s + v + 1.0
    log_wealth = s + v - a * math.log(x) + math.log(special.gammainc(a, x)) + special.gammaln(a)
    # logarithms of gamma functions of 1e6 are 1e7 in size, known to 1e-9
    assert log_wealth - math.log(special.gammainc(1.0, 1.0)) == pytest.approx(math.log(40), abs=1e-8)


def test_margins_of_many_are_those_of_each() -> None:
    squares = np.array([0.0, 3.0, 70.0, 1e5])
    each = [float(mixed_margin(v, 3.0)) for v in squares]
    assert mixed_margin(squares, 3.0).tolist() == pytest.approx(each, rel=1e-11)


def test_squares_are_about_a_guess_made_before_the_row() -> None:
    X, bets = weighted(200), GammaExponential(0.05)
    bets.add(X)
    total = squares = 0.0
    for t, x in enumerate(X.tolist()):
        guess = min(1.0, (0.5 + total) / (t + 1))
        squares += (x - guess) ** 2
        total += x
    assert (bets.sums.rows, float(bets.sums.total)) == (200, total)
    assert float(bets.sums.squares) == pytest.approx(squares, rel=1e-14)


def test_a_bettor_has_what_its_bets_left() -> None:
    X, bets = weighted(300), Betting(0.025)
    bets.add(X)
    for place in (0, 40, 128, 255):
        nu, wealth, total, squares = float(GRID[place]), 1.0, 0.0, 0.0
        for t, x in enumerate(X.tolist(), start=1):
            variance = (0.25 + squares) / t
            size = math.sqrt(2 * math.log(1 / 0.025) / (variance * t * math.log(1 + t)))
            wealth *= 1 + min(size, 0.5 / nu) * (x - nu)
            squares += (x - min(1.0, (0.5 + total) / t)) ** 2
            total += x
        assert float(bets.log_wealth[place]) == pytest.approx(math.log(wealth), abs=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_wealth_falls_as_the_guess_grows(seed: int) -> None:
    bets = Betting(0.025)
    bets.add(weighted(200, seed))
    assert (np.diff(bets.log_wealth) <= 1e-12).all()


@pytest.mark.parametrize("n", [1, 30, 400, SWITCH, 3000])
def test_a_hedge_refutes_what_the_mean_of_both_wealths_refutes(n: int) -> None:
    X, hedge = weighted(n), Hedge(0.025)
    hedge.add(X)
    bettor, mixture = Betting(0.025), GammaExponential(0.025)
    bettor.add(X[:SWITCH])
    mixture.add(X)

    def is_refuted(nu: float) -> bool:
        above = np.flatnonzero(nu <= GRID)
        money = math.exp(bettor.log_wealth[above[0]]) if above.size else 0.0
        return (money + math.exp(float(mixture.log_wealth(nu)))) / 2 >= 1 / 0.025

    low, high = 0.0, 1.0
    for _ in range(50):
        nu = (low + high) / 2
        low, high = (nu, high) if is_refuted(nu) else (low, nu)
    assert hedge.bound() == pytest.approx(low, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_one_by_one_are_rows_at_once_to_the_last_bit(kind: Callable[[float], Bets]) -> None:
    X = weighted(700)
    whole, parts, single = kind(0.025), kind(0.025), kind(0.025)
    whole.add(X)
    for part in np.split(X, [1, 300, 640]):
        parts.add(part)
    for x in X:
        single.add(np.array([x]))
    assert whole.bound() == parts.bound() == single.bound()


def test_many_means_at_once_are_each_alone() -> None:
    X = np.column_stack([weighted(400, seed) for seed in range(3)])
    together = GammaExponential(0.025)
    together.add(X)
    for j, column in enumerate(X.T):
        alone = GammaExponential(0.025)
        alone.add(column)
        assert float(alone.sums.squares) == float(together.sums.squares[j])
        assert float(alone.bound()) == pytest.approx(float(together.bound()[j]), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_seen_bounds_nothing(kind: Callable[[float], Bets]) -> None:
    assert float(kind(0.025).bound()) == 0.0
