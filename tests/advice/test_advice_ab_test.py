"""The A/B test that a policy is compared with: played again in plain numpy, and held against the sentences."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from armlet import kernel
from armlet.advice import Pilot, Prior, advise, comparison, words
from armlet.advice.ab_test import ABTask, plan, play_test
from armlet.advice.comparison import DEFAULT, StepTask, play_steps
from armlet.advice.pilot import SourceLike
from armlet.advice.problem import stakes
from armlet.environments.environment import FiniteEnvironment, Noise
from armlet.inputs.settings import Objective
from armlet.reference.choice import below, coins
from armlet.report.numbers import common_places, show
from armlet.types import Estimate, Float64, Int64

LANE = 1 << 64  # the second word of a Philox counter


@pytest.fixture(scope="module", autouse=True)
def _short_comparisons() -> Iterator[None]:
    """A tenth of the budget: sentences are held against numbers here, however few runs these have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "BUDGET", comparison.BUDGET / 10)
        yield


def uniforms(seed: int, counter: int) -> list[float]:
    words = np.random.Philox(key=seed, counter=counter - 1).random_raw(4)
    return [int(word >> np.uint64(11)) * 2.0**-53 for word in words]


def draw(table: FiniteEnvironment, seed: int, T: int) -> tuple[Int64, Float64]:
    """Return the contexts' places and the rewards of all arms that a simulation draws; contexts are equally likely."""
    M, K = table.means.shape
    places = np.array([int(uniforms(seed, (t - 1) // 4 + LANE)[(t - 1) % 4] * M) for t in range(1, T + 1)])
    drawn = [uniforms(seed, t + 2 * LANE + a * LANE**2)[:2] for t, a in product(range(1, T + 1), range(K))]
    u, v = np.array(drawn).reshape(T, K, 2).transpose(2, 0, 1)
    means = table.means[places]
    if table.noise == "bernoulli":
        return places, (u < means).astype(float)
    return places, means + table.scale * np.sqrt(-2.0 * np.log1p(-u)) * np.cos(2.0 * np.pi * v)


def plain_test(table: FiniteEnvironment, n: int, T: int, seeds: tuple[int, int]) -> Float64:
    """Play every arm alike for n decisions, then the arm of the highest mean; return what is lost so far, (T,)."""
    places, rewards = draw(table, seeds[0], T)
    arms = np.array([below(coins(seeds[1], t).pick, table.means.shape[1]) for t in range(1, n + 1)])
    tested = rewards[np.arange(n), arms]
    means = [tested[arms == a].mean() if (arms == a).any() else -np.inf for a in range(table.means.shape[1])]
    played = np.concatenate([arms, np.full(T - n, np.argmax(means))])
    lost: Float64 = table.losses[places, played].cumsum()
    return lost


@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("n", [3, 40, 250, 300])
def test_an_ab_test_in_plain_numpy_loses_the_same_on_the_same_draws(noise: Noise, n: int) -> None:
    rng, T = np.random.default_rng(n), 300
    means = rng.random((8, 3))
    table = FiniteEnvironment(
        contexts=rng.random((8, 2)), chances=np.full(8, 1 / 8), means=means, noise=noise, scale=0.7
    )
    steps = np.array([1, 39, 40, 41, 250, 299, 300])
    found = play_test(ABTask(table, n, steps, (5, 9)))
    np.testing.assert_allclose(found, plain_test(table, n, T, (5, 9))[steps - 1], rtol=1e-12)


def test_an_ab_test_is_as_long_as_the_usual_sample_size_asks() -> None:
    """16 sigma^2 / delta^2 for each arm is the rule of thumb; 15.7 its exact factor."""
    few = Prior(n_arms=4, dim=1, effect=0.01, rewards="clicks", mean=0.03).sample(5, seed=1)
    found = plan(few, 10**6)
    assert found.difference == pytest.approx(0.01)
    rates = np.concatenate([problem.table.means.ravel() for problem in few])
    assert found.deviation == pytest.approx(np.sqrt((rates * (1 - rates)).mean()), rel=0.05)
    assert found.asked == found.decisions == 4 * np.ceil(15.698 * (found.deviation / found.difference) ** 2)
    assert (plan(few, 1000).decisions, plan(few, 1000).asked) == (500, found.asked)


def pilot_of_costs() -> Pilot:
    rng = np.random.default_rng(8)
    X, arms = np.column_stack([np.ones(800), rng.random((800, 2))]), rng.integers(3, size=800)
    costs = np.array([[9.0, 1.0, 3.0], [10.0, 3.0, 0.0], [10.5, 0.0, 2.0]])
    return Pilot(X, [f"route {a}" for a in arms], (X * costs[arms]).sum(axis=1) + rng.standard_normal(800))


CASES: dict[str, tuple[SourceLike, Objective]] = {
    "clicks": (Prior(n_arms=4, dim=3, effect=(0.005, 0.02), rewards="clicks", mean=(0.02, 0.05)), "max"),
    "numbers": (Prior(n_arms=3, dim=4, effect=0.3, noise=1.0, mean=5.0), "max"),
    "costs": (pilot_of_costs(), "min"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_sentence_is_true_of_the_numbers_below_it(case: str) -> None:
    source, objective = CASES[case]
    found = advise(source, horizon=4000, problems=8, runs=2, seed=31, unit="units", objective=objective)
    said, o = words.headline(found), found.policies
    best, places = o.recommended, common_places([Estimate(o.recommended.gain.value, *o.recommended.gain_range)])
    sign = 1.0 if objective == "max" else -1.0
    for row in (best, o.ab_test.played, o.nothing):
        assert f" {show(row.total, places)}" in said
    assert best.gain.value == pytest.approx(sign * (best.total - o.ab_test.played.total))
    better = (
        {"max": "more", "min": "less"}[objective] if best.gain.value >= 0 else {"max": "less", "min": "more"}[objective]
    )
    assert f" {show(abs(best.gain.value), places)} [" in said
    assert f"] {better}; doing nothing " in said
    frame = found.to_pandas()
    assert frame.choice[0].endswith(", recommended")
    assert (sign * frame.total[1:]).is_monotonic_decreasing


@pytest.mark.parametrize("case", ["clicks", "numbers"])
def test_totals_are_those_that_are_counted_in_fresh_environments(case: str) -> None:
    """On seeds that chose nothing: what the default is paid, reward by reward, and what an A/B test loses beyond it."""
    source, T = CASES[case][0], 2000
    assert isinstance(source, Prior)
    found = advise(source, horizon=T, problems=16, runs=2, seed=32).policies
    inside, gains = [], []
    for i, problem in enumerate(source.sample(40, seed=1_000_032)):
        t = problem.table
        total, best = count(t, T, i), stakes(t).best * T
        inside.append(found.default.total_range.low <= total <= found.default.total_range.high)
        assert total < best + 6 * np.sqrt(T) * stakes(t).deviation
        tested = play_test(ABTask(t, found.ab_test.plan.decisions, np.array([T]), (i, i)))[-1]
        gains.append(tested - play_steps(StepTask(t, DEFAULT, np.array([T]), (i, i)))[-1])
    # 38 of 40 promised, more with few environments behind it; 4 standard deviations of a binomial are 5.5
    assert sum(inside) >= 33
    low, high = found.default.gain_range
    assert sum(low <= gain <= high for gain in gains) >= 33
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert abs(np.mean(gains) - found.default.gain.value) <= 4 * error + (
        found.default.gain.high - found.default.gain.value
    )


def count(table: FiniteEnvironment, T: int, seed: int) -> float:
    """Play the default and add up what it is paid."""
    rng = np.random.default_rng([seed, 4])
    places = rng.choice(len(table.chances), size=T, p=table.chances)
    means = table.means[places]
    noisy = rng.random(means.shape) < means if table.noise == "bernoulli" else means + rng.normal(0, 1, means.shape)
    rewards = np.asarray(noisy, dtype=np.float64)
    start = DEFAULT.init(means.shape[1], table.contexts.shape[1])
    X = np.ascontiguousarray(table.contexts[places])
    arms = kernel.rollout(X, rewards, start=start, rule=DEFAULT.rule(), seed=seed).arms
    return float(rewards[np.arange(T), arms].sum())


def test_the_current_arm_is_what_doing_nothing_means() -> None:
    pilot = pilot_of_costs()
    found = advise(pilot, horizon=2000, problems=6, runs=2, seed=33, objective="min", current="route 0")
    label = "doing nothing: always route 0"
    assert label in list(found.to_pandas().choice)
    first = pilot.rewards[pilot.played == 0].mean() * 2000  # a pilot of 800 rows: to a few per cent
    assert found.policies.nothing.total == pytest.approx(first, rel=0.05)
    with pytest.raises(ValueError, match="current is 'route 7'; choose one of 'route 0', 'route 1', 'route 2'"):
        advise(pilot, horizon=2000, current="route 7")
    with pytest.raises(ValueError, match="in a guess or a law of environments no arm is known from another"):
        advise(CASES["clicks"][0], horizon=2000, current=0)


def test_without_a_mean_only_differences_are_told() -> None:
    guess = Prior(n_arms=3, dim=2, effect=0.3, noise=1.0)
    found = advise(guess, horizon=1000, problems=6, runs=2, seed=34, unit="points")
    o = found.policies
    said = words.headline(found)
    assert " points more than an A/B test over 1,000 decisions, and " in said
    assert "instead of" not in said
    assert o.nothing.total == pytest.approx(0.0, abs=1e-9)
    known = advise(
        guess.__class__(n_arms=3, dim=2, effect=0.3, noise=1.0, mean=2.0), horizon=1000, problems=6, runs=2, seed=34
    )
    assert known.policies.default.total - o.default.total == pytest.approx(2000.0, rel=0.01)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"value": 0.3}, "value is 0.3 but currency is missing; give one, such as 'EUR'"),
        ({"currency": "EUR"}, "currency is 'EUR' but value is missing; give what one unit of reward is worth"),
        ({"value": -1, "currency": "EUR"}, "value is -1; give what one unit of reward is worth, such as 0.30"),
        ({"value": float("nan"), "currency": "EUR"}, "value is nan; give what"),
        ({"value": 1.0, "currency": ""}, "currency is ''; give a word of at most 8 letters, such as EUR"),
    ],
)
def test_money_that_makes_no_sense_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        advise(CASES["numbers"][0], horizon=100, **given)  # type: ignore[arg-type]


def test_an_advice_saves_itself_as_what_the_name_asks_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("saved")
    found = advise(CASES["numbers"][0], horizon=500, problems=4, runs=2, seed=35)
    for ending, start in {"html": b"<!DOCTYPE html>", "json": b"{", "csv": b"choice,total", "png": b"\x89PNG"}.items():
        found.save(folder / f"advice.{ending}")
        assert (folder / f"advice.{ending}").read_bytes().startswith(start)
    assert str(found) == "\n".join(found.lines())
    assert len(repr(found)) < 500
