"""What router.py, dial.py and proxy.py say of what was played: hulls, prices, equal money, scenes and proxies."""

import numpy as np
import pytest

from dial import Requests
from proxy import Rows, apart, play, play_loop, relearned, sums_of
from router import (
    ACTS,
    COLD,
    COMES,
    FALLS,
    KNOWN,
    LEARNED,
    RISES,
    STILL,
    Data,
    Played,
    Run,
    Scene,
    score,
)
from router import (
    play as route,
)
from router_report import Report, best_mix, best_price

QUALITY, COST = np.array([0.8, 0.92, 0.93]), np.array([1.0, 2.0, 30.0])


@pytest.fixture(scope="module")
def data() -> Data:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(500, 3)), np.ones(500)])
    quality = QUALITY + 0.05 * X[:, :1] + 0.02 * rng.normal(size=(500, 3))
    return Data(X, quality, COST * np.exp(0.1 * rng.normal(size=(500, 3))), 200)


def test_the_best_mix_lies_on_the_hull_and_its_price_is_the_slope() -> None:
    assert best_mix(QUALITY, COST, 1.5) == pytest.approx((0.86, 0.12))
    assert best_mix(QUALITY, COST, 16.0) == pytest.approx((0.925, 0.01 / 28.0))
    assert best_mix(QUALITY, COST, 0.5) == pytest.approx((0.8, 0.12))  # no mix is as cheap
    assert best_mix(QUALITY, COST, 99.0) == (0.93, 0.0)
    assert best_mix(np.array([0.8, 0.7, 0.93]), COST, 15.5) == pytest.approx((0.865, 0.13 / 29.0))  # a bad model


def test_the_best_price_is_the_lowest_that_keeps_the_budget() -> None:
    quality, cost = np.array([[0.5, 1.0], [0.5, 0.6]]), np.array([[0.0, 1.0], [0.0, 1.0]])
    assert best_price(quality, cost, (quality, cost), 1.0) == pytest.approx(0.8)
    assert best_price(quality, cost, (quality, cost), 0.5) == pytest.approx(0.75)  # the dear one where it pays most
    assert np.isnan(best_price(quality, cost + 2.0, (quality, cost), 0.5))


def test_money_that_was_not_spent_counts_what_it_buys(data: Data) -> None:
    report, price = Report(STILL, data, (1.5,), 2), best_mix(*Report(STILL, data, (1.5,), 2).means, 1.5).price
    played = [Played(0.8, 1.5, np.ones(3), 1.0), Played(0.8, 1.0, np.ones(3), 1.0)]
    assert report.at_equal_money(played)[0] == pytest.approx([0.8, 0.8 + 0.5 * price])
    assert report.spends(played)[0] == pytest.approx([1.0, 2.0 / 3.0])


def test_scenes_share_the_order_of_a_seed_and_change_half_way(data: Data) -> None:
    whole, cold = STILL.order(data, 3), COLD.order(data, 3)
    assert sorted(whole) == list(range(500))
    assert whole[:200].max() < 200
    np.testing.assert_array_equal(whole[200:], cold)
    assert not np.array_equal(whole, STILL.order(data, 4))
    ratio = FALLS.costs(data, whole) / data.cost[whole]
    assert FALLS.change_at(data) == 350
    assert np.allclose(ratio[:350], 1.0)
    assert np.allclose(ratio[350:], [1.0, 1.0, 0.1])


@pytest.mark.parametrize("scene", ACTS, ids=lambda scene: scene.key)
@pytest.mark.parametrize("player", [LEARNED, KNOWN], ids=lambda player: player.name)
def test_armlet_plays_every_scene(scene: Scene, player: object, data: Data) -> None:
    run = Run(scene, player, 1.7, 5)  # type: ignore[arg-type]
    arms, us = route(run, data)
    assert (arms[: scene.change_at(data)] != 1).all() or scene is not COMES
    played = score(run, arms, us, data)
    assert played.shares.sum() == pytest.approx(1.0)
    assert scene is RISES or 0.7 < played.quality < 1.1


def test_proxies_explain_half_of_the_variance() -> None:
    rows = Rows.draw("gaussian d = 10", 7, 20_000)
    noise = rows.rewards - rows.means

    def r2(one: np.ndarray, other: np.ndarray) -> float:
        return float(np.corrcoef(one.ravel(), other.ravel())[0, 1] ** 2)

    # the deviation of an R2 of .5 from 200,000 independent pairs is .0016; arms share contexts, which widens it
    assert r2(noise, rows.proxies["part"] - rows.means) == pytest.approx(0.5, abs=0.01)
    assert r2(noise, rows.proxies["noise"] - rows.means) == pytest.approx(0.5, abs=0.01)
    assert r2(rows.rewards, rows.proxies["spread"]) == pytest.approx(0.5, abs=0.01)
    bias = (rows.proxies["taste"] - rows.rewards).mean(axis=0)
    assert bias.std() == pytest.approx(rows.rewards.std(), rel=0.05)


def test_nothing_is_left_of_a_proxy_but_rounding() -> None:
    rows = Rows.draw("scheduling", 3, 300)
    for arms, corrected in (play(rows, 30, rows.proxies["spread"], 3), play_loop(rows, 30, rows.proxies["spread"])):
        plain = relearned(rows, arms, 3)
        np.testing.assert_array_equal(corrected.state.A, plain.state.A)
        assert apart(sums_of(corrected), sums_of(plain)) < 1e-13


def test_regret_is_in_worth_of_the_moment() -> None:
    given = Requests.draw(1, 100)
    assert given.regret(given.worth.argmax(axis=1)).max() == 0.0
    dearest = given.regret(np.full(100, 9))
    assert dearest[50:].mean() > 5.0 * dearest[:50].mean()
