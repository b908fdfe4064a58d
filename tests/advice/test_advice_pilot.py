"""Pilots: how logs are read, what is made of them, and when the model is doubted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from armlet.advice import Pilot, advise, comparison
from armlet.advice.pilot import Posterior
from armlet.environments import Linear, LinearArms, Scheduling
from armlet.environments.families import draw_problem
from armlet.inputs.table import Table
from armlet.parallel import Seeds
from armlet.types import Float64, Int64


@pytest.fixture(scope="module", autouse=True)
def _short_comparisons() -> Iterator[None]:
    """Return the other policies a fortieth of their budget: what they play is not in question here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "BUDGET", comparison.BUDGET / 40)
        yield


def log(environment: LinearArms, n: int, seed: int) -> tuple[Float64, Int64, Float64]:
    rng = np.random.default_rng(seed)
    X, arms = environment.contexts(rng, n), rng.integers(0, environment.n_arms, n)
    return X, arms, environment.rewards(rng, X)[np.arange(n), arms]


def gaps(posterior: Posterior) -> Float64:
    return np.array([problem.table.gap for problem in posterior.sample(100, seed=1)])


def test_a_large_pilot_finds_the_problem() -> None:
    environment = Linear(theta=((1.0, 0.0, 0.5), (0.0, 1.0, 0.5)), law="bits", scale=0.5)
    posterior = Posterior.of(Pilot(*log(environment, 20_000, 1)), "max")
    # 10,000 rows an arm, noise 0.5, sigma_min 1/4: an error of 0.5 / sqrt(2500) = 0.01 a coefficient
    # and a constant that is not there
    np.testing.assert_allclose(posterior.theta(), np.column_stack([np.zeros(2), environment.theta]), atol=0.04)
    assert posterior.noise == "gaussian"
    assert posterior.scale == pytest.approx(0.5, rel=0.03)


def test_a_small_pilot_does_not_overstate_gaps_as_separate_regressions_do() -> None:
    environment = draw_problem("clicks 3 % or 4 %", Seeds(1), 0)
    X, arms, rewards = log(environment, 400, 2)
    posterior = Posterior.of(Pilot(X, arms, rewards), "max")
    alone = np.stack([np.linalg.lstsq(X[arms == a], rewards[arms == a], rcond=None)[0] for a in range(2)])
    spread = np.abs(alone[0] - alone[1]).mean() / 2  # what the separate regressions think a random arm loses
    shrunk = posterior.theta()
    assert np.abs(shrunk[0] - shrunk[1]).mean() / 2 < 0.8 * spread
    low, high = np.quantile(gaps(posterior), [0.025, 0.975])
    assert low < 0.005 < high  # the truth


@pytest.mark.parametrize("family", ["scheduling", "group activity", "display ads"])
def test_the_true_gap_lies_among_the_sampled_ones(family: str) -> None:
    inside = 0
    for index in range(12):
        environment = draw_problem(family, Seeds(31), index)
        X, arms, rewards = log(environment, 2000, index)
        sampled = gaps(Posterior.of(Pilot(X, arms, rewards), "max"))
        means = environment.means(X)
        low, high = np.quantile(sampled, [0.025, 0.975])
        inside += bool(low <= (means.max(axis=1) - means.mean(axis=1)).mean() <= high)
    assert inside >= 8  # of 11.4 expected; 3 standard deviations of a binomial are 2.3, and one for the model


def test_noise_in_proportion_to_the_mean_is_recognised() -> None:
    environment = Scheduling.draw(np.random.default_rng(3))
    posterior = Posterior.of(Pilot(*log(environment, 2000, 3)), "max")
    assert posterior.noise == "proportional"
    assert posterior.scale == pytest.approx(0.5, rel=0.1)


def test_costs_are_rewards_with_the_other_sign() -> None:
    environment = Scheduling.draw(np.random.default_rng(3))
    X, arms, rewards = log(environment, 500, 3)
    as_rewards = advise(Pilot(X, arms, rewards), horizon=1000, problems=8, runs=2)
    as_costs = advise(Pilot(X, arms, -rewards), horizon=1000, problems=8, runs=2, objective="min")
    assert as_costs.grid == as_rewards.grid
    assert [row.lost for row in as_costs.policies.rows] == [row.lost for row in as_rewards.policies.rows]
    assert [row.total for row in as_costs.policies.rows] == [-row.total for row in as_rewards.policies.rows]


def test_tables_of_three_libraries_read_alike() -> None:
    columns = {
        "day": [1, 1, 2],
        "load": [0.5, 1.0, 2.0],
        "arm": ["a", "b", "a"],
        "paid": [1, 0, 1],
        "p": [0.5, 0.5, 1.0],
    }
    for rows in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        pilot = Pilot.from_table(Table(rows, features=["load"], reward="paid", propensity="p"))
        assert pilot.X.tolist() == [[0.5], [1.0], [2.0]]
        assert (pilot.arm_names, pilot.played.tolist()) == (["a", "b"], [0, 1, 0])
        assert pilot.rewards.tolist() == [1.0, 0.0, 1.0]
        assert pilot.propensities is not None
    waiting = Table({**columns, "paid": [1, None, 1], "arm": ["a", "b", "b"]}, features=["load"], reward="paid")
    assert Pilot.from_table(waiting).n_rows == 2
    with pytest.raises(ValueError, match="features of the table cannot be a pilot's; name features"):
        Pilot.from_table(Table(columns, reward="paid"))


def test_a_table_is_advised_on_as_its_pilot_is() -> None:
    rng = np.random.default_rng(6)
    country = rng.choice(["no", "fr"], 60)
    rows = {"country": country, "arm": rng.choice(["b", "a"], 60), "reward": rng.normal(size=60)}
    table = Table(rows, features=["country"])
    pilot = Pilot(np.column_stack([country == "fr", country == "no"]).astype(float), rows["arm"], rows["reward"])
    sizes: dict[str, Any] = {"horizon": 500, "problems": 4, "runs": 2, "seed": 1, "current": "b"}
    assert advise(table, **sizes).to_dict() == advise(pilot, **sizes).to_dict()


def test_faulty_logs_are_refused_by_name() -> None:
    X = [[1.0], [1.0], [1.0]]
    with pytest.raises(ValueError, match=r"never tried arm 'c'.*play it at random"):
        Pilot(X, ["a", "b", "a"], [1, 2, 3], arm_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="arms has 'b', which arm_names lacks"):
        Pilot(X, ["a", "b", "a"], [1, 2, 3], arm_names=["a", "c"])
    with pytest.raises(ValueError, match=r"rewards\[1\] is nan"):
        Pilot(X, ["a", "b", "a"], [1, float("nan"), 3])
    with pytest.raises(ValueError, match=r"propensities\[2\] is 0.0"):
        Pilot(X, ["a", "b", "a"], [1, 2, 3], [0.5, 0.5, 0.0])
    with pytest.raises(ValueError, match="the one arm 'a'"):
        Pilot(X, ["a", "a", "a"], [1, 2, 3])
    with pytest.raises(ValueError, match=r"X has shape \(3,\)"):
        Pilot([1.0, 1.0, 1.0], ["a", "b", "a"], [1, 2, 3])


def biased_log(n: int) -> tuple[Float64, Int64, Float64, Float64]:
    """Arm 1 is played mostly where x is large; its reward is x squared there, which no line fits."""
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, n)
    chance = np.where(x > 0, 0.9, 0.1)
    arms = (rng.random(n) < chance).astype(np.int64)
    rewards = np.where(arms == 1, 3 * x**2, x) + 0.1 * rng.standard_normal(n)
    return np.column_stack([np.ones(n), x]), arms, rewards, np.where(arms == 1, chance, 1 - chance)


def test_propensities_raise_the_alarm_where_the_model_is_wrong() -> None:
    X, arms, rewards, propensities = biased_log(4000)
    checks = Posterior.of(Pilot(X, arms, rewards, propensities), "max").checks()
    assert [check.agrees for check in checks] == [True, False]
    # E 3 x^2 = 1; the interval of two arms is 2.24 standard errors to either side, and 4 of them hardly ever miss
    error = (checks[1].interval[1] - checks[1].weighted) / 2.24
    assert abs(checks[1].weighted - 1.0) < 4 * error
    advice = advise(Pilot(X, arms, rewards, propensities), horizon=500, problems=4, runs=2)
    assert any(note.startswith("WARNING") for note in advice.notes)


def test_propensities_are_content_with_a_linear_environment() -> None:
    environment = Linear(theta=((1.0, 0.0), (0.0, 1.0)), law="bits", scale=0.5)
    X, arms, rewards = log(environment, 2000, 4)
    pilot = Pilot(X, arms, rewards, np.full(2000, 0.5))
    assert all(check.agrees for check in Posterior.of(pilot, "max").checks())


def test_a_pilot_whose_rewards_never_change_is_still_answered() -> None:
    advice = advise(Pilot(np.ones((10, 1)), [0, 1] * 5, [2.0] * 10), horizon=100, problems=4, runs=2)
    assert advice.n_arms == 2
