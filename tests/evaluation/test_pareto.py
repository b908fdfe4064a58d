"""Pareto curves: values against a plain evaluation dial by dial, bands that hold together, frontiers, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import EvaluationError
from armlet.evaluation import ParetoCurve
from armlet.evaluation.dials.curve import standings
from armlet.evaluation.gate import gate
from armlet.evaluation.rows import HeldBlocks, Rows, rows_of
from armlet.evaluation.search import search
from armlet.types import Float64, Int64

ARMS = ["small", "medium", "large"]
PRICES: dict[str | int, float] = {"small": 0.001, "medium": 0.01, "large": 0.03}
CHANCE = np.array([0.5, 0.3, 0.2])
WEIGHTS = {"quality": 1.0, "cost": -5.0}


def drawn(n: int, seed: int) -> dict[str, Any]:
    """A table of requests that went to a model by chance: the dear ones pay where requests are deep."""
    rng = np.random.default_rng(seed)
    X, arm = rng.standard_normal((n, 2)), rng.choice(3, size=n, p=CHANCE)
    quality = 0.5 + np.array([0.0, 0.1, 0.2])[arm] * (1 + X[:, 0]) + 0.1 * rng.standard_normal(n)
    cost = np.array([*PRICES.values()])[arm] * np.exp(0.3 * rng.standard_normal(n))
    table = {"depth": X[:, 0], "length": X[:, 1], "model": [ARMS[each] for each in arm], "p": CHANCE[arm]}
    return table | {"reward": quality - 5.0 * cost, "reward_quality": quality, "reward_cost": cost}


def places(arms: Any) -> Int64:
    return np.array([ARMS.index(str(arm)) for arm in arms])


def log_of(table: dict[str, Any]) -> Any:
    return armlet.Table(table, features=["depth", "length"], arm="model", propensity="p")


def trained(*, known: bool = False, seed: int = 1, **more: Any) -> armlet.Bandit:
    """A bandit that learned from 400 other requests."""
    prices: Any = {"cost": PRICES} if known else None
    outcomes = more.pop("outcomes", WEIGHTS)
    bandit = armlet.Bandit(ARMS, features=["depth", "length"], outcomes=outcomes, known=prices, seed=1, **more)
    table = drawn(400, seed)
    X, rewards = np.column_stack([table["depth"], table["length"]]), {"quality": table["reward_quality"]}
    bandit.partial_fit(X, table["model"], rewards if known else rewards | {"cost": table["reward_cost"]})
    return bandit


DIALS = [{"cost": weight} for weight in (0.0, -2.0, -5.0, -10.0, -20.0, -100.0)]


def doubly_robust(X: Float64, arm: Int64, outcome: Float64, w: Float64, plays: Int64, learned: Any = True) -> float:
    """Return what is expected of the arms that are played, and by how much that is off in the rows that agree.

    A row's model has seen all rows but every fifth from its own on.
    """
    Z, fold, n = np.column_stack([np.ones(len(X)), X]), np.arange(len(X)) % 5, np.arange(len(X))
    expected = np.zeros((len(X), 3))
    for each in range(5):
        for k in range(3):
            some = learned & (arm == k) & (fold != each)
            theta = np.linalg.solve(Z[some].T @ Z[some] + np.eye(Z.shape[1]), Z[some].T @ outcome[some])
            expected[fold == each, k] = Z[fold == each] @ theta
    w = np.where(plays == arm, w, 0.0)
    return float(expected[n, plays].mean() + w @ (outcome - expected[n, arm]) / w.sum())


# ---- values


@pytest.mark.parametrize("known", [False, True])
def test_values_are_those_of_a_plain_evaluation_dial_by_dial(known: bool) -> None:
    bandit, table = trained(known=known), drawn(2000, 2)
    found = armlet.evaluate(log_of(table), bandit, dials=DIALS)
    X, played = np.column_stack([table["depth"], table["length"]]), places(table["model"])
    for place, dial in enumerate(DIALS, 1):
        arms = places(bandit.predict(X, weights=dial))
        w = 1.0 / table["p"]
        assert found.weights[place] == {"quality": 1.0, **dial}
        quality = doubly_robust(X, played, table["reward_quality"], w, arms)
        assert found.values["quality"][place] == pytest.approx(quality, rel=1e-10)
        spent = np.array([*PRICES.values()])[arms].mean()
        cost = spent if known else doubly_robust(X, played, table["reward_cost"], w, arms)
        assert found.values["cost"][place] == pytest.approx(cost, rel=1e-10)
        w = w[arms == played]
        assert found.effective_rows[place] == pytest.approx(w.sum() ** 2 / (w @ w), rel=1e-12)
    assert found.counted == (("cost",) if known else ())
    if known:  # counted, not estimated
        np.testing.assert_array_equal(found.low["cost"], found.high["cost"])


def test_what_ran_is_on_the_curve() -> None:
    table = drawn(1000, 3)
    found = armlet.evaluate(log_of(table), trained(), dials=DIALS)
    assert (found.policies[0], found.dials[0], found.weights[0]) == ("logged", "", None)
    assert found.values["quality"][0] == pytest.approx(table["reward_quality"].mean())
    assert found.values["cost"][0] == pytest.approx(table["reward_cost"].mean())
    assert found.low["cost"][0] < found.values["cost"][0] < found.high["cost"][0]
    prices = np.mean([PRICES[arm] for arm in table["model"]])
    known = armlet.evaluate(log_of(table), trained(known=True), dials=DIALS)
    assert known.values["cost"][0] == pytest.approx(prices)


def test_arrays_are_valued_as_the_bandit_that_they_are() -> None:
    bandit, table = trained(), drawn(1500, 4)
    zero, units = np.zeros((1, 2)), np.eye(2)
    thetas = []
    for name in WEIGHTS:
        only = {other: float(other == name) for other in WEIGHTS}
        base = bandit.predict_expectations(zero, weights=only)[0]
        thetas.append(np.column_stack([base, (bandit.predict_expectations(units, weights=only) - base).T]))
    scores = np.stack(thetas)  # (m, K, 1 + d)
    whole = [{"quality": 1.0, **dial} for dial in DIALS]
    mine = armlet.evaluate(log_of(table), {"one": bandit}, dials=whole)
    theirs = armlet.evaluate(log_of(table), {"one": scores}, arms=ARMS, dials=whole)
    for name in WEIGHTS:
        np.testing.assert_allclose(theirs.values[name], mine.values[name], rtol=1e-9)
    many = armlet.evaluate(log_of(table), np.stack([scores, -scores]), arms=ARMS, dials=whole)
    assert many.policies == ("logged", *["policy 0"] * 6, *["policy 1"] * 6)
    np.testing.assert_allclose(many.values["quality"][1:7], mine.values["quality"][1:], rtol=1e-9)


def test_an_arm_is_one_point() -> None:
    table = drawn(1000, 5)
    found = armlet.evaluate(log_of(table), {"new": trained(known=True), "always large": "large"}, dials=3)
    place = found.policies.index("always large")
    X, large = np.column_stack([table["depth"], table["length"]]), np.full(1000, 2)
    quality = doubly_robust(X, places(table["model"]), table["reward_quality"], 1.0 / table["p"], large)
    assert found.values["quality"][place] == pytest.approx(quality, rel=1e-10)
    assert found.values["cost"][place] == pytest.approx(0.03)
    assert (found.policies.count("always large"), found.weights[place]) == (1, None)


def test_eligible_arms_alone_are_played() -> None:
    rng = np.random.default_rng(6)
    n, bandit = 1200, trained()
    eligible = rng.random((n, 3)) < 0.7
    eligible[np.arange(n), rng.integers(3, size=n)] = True
    arm = np.array([rng.choice(np.flatnonzero(may)) for may in eligible])
    X, outcomes = rng.standard_normal((n, 2)), {name: rng.random(n) for name in WEIGHTS}
    rows = rows_of(X, arm, np.zeros(n), 1.0 / eligible.sum(axis=1), n_arms=3, eligible=eligible, outcomes=outcomes)
    found = armlet.evaluate(HeldBlocks(rows, ARMS), bandit, dials=DIALS)
    for place, dial in enumerate(DIALS, 1):
        scores = np.where(eligible, bandit.predict_expectations(X, weights=dial), -np.inf)
        quality = doubly_robust(X, arm, outcomes["quality"], eligible.sum(axis=1), scores.argmax(axis=1))
        assert found.values["quality"][place] == pytest.approx(quality, rel=1e-10)


def explored(n: int, seed: int, rate: Any, unit: Any = None) -> Rows:
    """Rows of a logger that plays the first arm and explores at a rate."""
    rng = np.random.default_rng(seed)
    X, tried = rng.standard_normal((n, 2)), rng.random(n) < rate
    arm = np.where(tried, rng.choice(3, size=n, p=CHANCE), 0)
    quality = 0.5 + np.array([0.0, 0.1, 0.2])[arm] * (1 + X[:, 0]) + 0.1 * rng.standard_normal(n)
    outcomes = {"quality": quality, "cost": np.array([*PRICES.values()])[arm] * (1 + 0.1 * rng.standard_normal(n))}
    known = {
        "explored": tried.astype(np.int8),
        "greedy": (arm == 0).astype(np.int8),
        "exploration_rate": np.broadcast_to(rate, n).astype(np.float64),
        "exploration_propensity": CHANCE[arm],
        "min_exploration_probability": np.full(n, CHANCE.min()),
    }
    chance = np.where(arm == 0, 1.0 - rate + rate * CHANCE[0], rate * CHANCE[arm])
    return rows_of(X, arm, np.zeros(n), chance, n_arms=3, outcomes=outcomes, unit=unit, **known)


def test_rows_weigh_rate_over_propensity_where_rates_are_known() -> None:
    rate = np.minimum(1.0, 600 / np.arange(1, 5001))
    rows, bandit = explored(5000, 7, rate), trained()
    found = armlet.evaluate(HeldBlocks(rows, ARMS), bandit, dials=DIALS)
    assert rows.outcomes is not None
    for place, dial in enumerate(DIALS, 1):
        arms, w = places(bandit.predict(rows.X, weights=dial)), rate / rows.propensity
        assert w.max() <= 1.0 / CHANCE.min()
        quality = doubly_robust(rows.X, rows.arm, rows.outcomes["quality"], w, arms, rows.explored == 1)
        assert found.values["quality"][place] == pytest.approx(quality, rel=1e-10)


# ---- dials


def test_a_sweep_goes_from_nothing_to_all_that_counts() -> None:
    bandit, table = trained(), drawn(2000, 8)
    found = armlet.evaluate(log_of(table), bandit, dials=20)
    swept = [each["cost"] for each in found.weights if each is not None]
    assert len(swept) <= 20
    assert swept[0] == 0.0
    assert swept == sorted(swept, reverse=True)
    assert -5.0 in swept  # as the bandit has it
    X = np.column_stack([table["depth"], table["length"]])
    least = bandit.predict(X, weights={"quality": 0.0, "cost": -1.0})
    assert np.mean(bandit.predict(X, weights={"cost": swept[-1]}) == least) > 0.999
    plays = np.array([bandit.predict(X, weights={"cost": weight}) for weight in swept])
    changed = (plays[1:] != plays[:-1]).mean(axis=1)
    assert changed.max() < 0.25  # no dial is far from the next


def test_a_sweep_has_the_price_of_a_budget() -> None:
    budget = armlet.Budget("cost", total=10.0, horizon=1000)
    bandit = trained(known=True, outcomes={"quality": 1.0, "cost": 0.0}, budget=budget)
    assert bandit.budget is not None
    found = armlet.evaluate(log_of(drawn(500, 9)), bandit, dials=5)
    swept = [each["cost"] for each in found.weights if each is not None]
    assert -bandit.budget.price in swept
    assert found.curve == ("quality", "cost")
    assert found.senses == (1.0, -1.0)


def test_three_outcomes_trade_the_two_that_are_asked_for() -> None:
    table = drawn(600, 10)
    table |= {"reward_delay": 5.0 * table["reward_cost"]}
    bandit = armlet.Bandit(ARMS, features=["depth", "length"], outcomes={**WEIGHTS, "delay": -0.1}, seed=1)
    parts = {name: table[f"reward_{name}"][:300] for name in ("quality", "cost", "delay")}
    X = np.column_stack([table["depth"], table["length"]])
    bandit.partial_fit(X[:300], table["model"][:300], parts)
    found = armlet.evaluate(log_of(table), bandit, dials=6, curve=("quality", "delay"))
    assert {each["cost"] for each in found.weights if each is not None} == {-5.0}
    assert len({each["delay"] for each in found.weights if each is not None}) > 3
    assert set(found.values) == {"quality", "cost", "delay"}


# ---- bands


def test_bands_hold_together() -> None:
    # All 26 intervals of 13 values hold in 95 % of logs. In 100 logs, if that is true, fewer than 87 do with a
    # probability of 0.001 (binomial); with intervals of 95 % each some 60 would.
    bandit, dials = trained(), [{"cost": weight} for weight in np.linspace(0.0, -40.0, 12)]
    truth = _means(armlet.evaluate(_held(drawn(200_000, 11)), bandit, dials=dials, checks="none"))
    logs = (_held(drawn(600, seed)) for seed in range(100, 200))
    assert sum(_covers(armlet.evaluate(log, bandit, dials=dials, checks="none"), truth) for log in logs) >= 87


def _held(table: dict[str, Any]) -> HeldBlocks:
    X, n = np.column_stack([table["depth"], table["length"]]), len(table["p"])
    arm = np.array([ARMS.index(each) for each in table["model"]])
    outcomes = {name: table[f"reward_{name}"] for name in WEIGHTS}
    return HeldBlocks(rows_of(X, arm, np.zeros(n), table["p"], n_arms=3, outcomes=outcomes), ARMS)


def _means(found: ParetoCurve) -> Float64:
    return np.column_stack([found.values[name] for name in WEIGHTS])


def _covers(found: ParetoCurve, truth: Float64) -> bool:
    low, high = (np.column_stack([ends[name] for name in WEIGHTS]) for ends in (found.low, found.high))
    return bool(((low <= truth) & (truth <= high)).all())


def test_a_band_is_wider_than_one_interval_and_narrower_than_bonferroni() -> None:
    table = drawn(3000, 12)
    one = armlet.evaluate(log_of(table), trained(), dials=DIALS[2:3])
    many = armlet.evaluate(log_of(table), trained(), dials=40)
    assert 0.95 < one.each < many.each < 1 - 0.05 / (2 * len(many))
    again = armlet.evaluate(log_of(table), trained(), dials=40)
    assert again.to_dict() == many.to_dict()


def test_decisions_of_a_unit_count_as_one() -> None:
    rng = np.random.default_rng(13)
    session = rng.permutation(np.repeat(np.arange(400), 5))
    table = drawn(2000, 13)
    arm = rng.choice(3, size=400, p=CHANCE)[session]  # one coin for each session, and one mood
    quality = rng.standard_normal(400)[session] + 0.1 * arm
    table |= {"model": [ARMS[each] for each in arm], "p": CHANCE[arm], "reward_quality": quality}
    by_row = armlet.evaluate(log_of(table), "small", dials=[WEIGHTS])
    by_unit = armlet.evaluate(log_of({**table, "unit": session}), "small", dials=[WEIGHTS])
    assert (by_row.units, by_unit.units) == (None, 400)
    widths = [float(found.high["quality"][1] - found.low["quality"][1]) for found in (by_row, by_unit)]
    assert 1.8 < widths[1] / widths[0] < 3.0  # sqrt 5, but for chance
    assert by_unit.effective_rows[1] < by_row.effective_rows[1] / 3


# ---- standings


def test_standings_are_those_of_all_pairs() -> None:
    rng = np.random.default_rng(14)
    values = rng.integers(0, 6, size=(80, 2)).astype(np.float64)
    reach = 0.8 * rng.random((80, 2))
    low, high, judged = values - reach, values + reach, rng.random(80) < 0.9
    found = standings(values, low, high, judged)
    for i in range(80):
        if not judged[i]:
            assert found[i] == "not judged"
            continue
        others = [j for j in range(80) if judged[j]]
        sure = any((low[j] >= high[i]).all() and (low[j] > high[i]).any() for j in others)
        beaten = any((values[j] >= values[i]).all() and (values[j] > values[i]).any() for j in others)
        assert found[i] == ("dominated" if sure else "behind" if beaten else "frontier")


def test_the_answer_names_the_dial_that_saves_most_at_the_quality_of_what_ran() -> None:
    found = armlet.evaluate(log_of(drawn(4000, 15)), trained(known=True), dials=DIALS)
    assert found.answer.startswith("On 4,000 decisions a dial of cost ")
    assert "of what ran spent; what ran had quality" in found.answer
    assert found.standing[0] == "dominated"
    assert [found.values["cost"][place] for place in found.frontier] == sorted(
        found.values["cost"][place] for place in found.frontier
    )


# ---- what cannot be valued


def test_what_the_log_could_not_have_played_has_no_value() -> None:
    table = drawn(800, 16)
    deep = table["depth"] > 1.0
    table["model"] = ["small" if sure else arm for sure, arm in zip(deep, table["model"], strict=True)]
    table["p"] = np.where(deep, 1.0, table["p"])
    found = armlet.evaluate(log_of(table), trained(known=True), dials=[{"cost": 0.0}, {"cost": -1e6}])
    assert np.isnan(found.values["quality"][1])
    assert "could not have played" in found.notes[1]
    assert found.standing[1] == "not judged"
    assert np.isfinite(found.values["quality"][2])  # it plays "small" everywhere, as the log did there


def test_a_dial_of_few_rows_is_not_judged() -> None:
    found = armlet.evaluate(log_of(drawn(60, 17)), {"large": "large", "small": "small"}, dials=[WEIGHTS])
    assert found.effective_rows[1] < 30
    assert (found.standing[1], found.notes[1]) == ("not judged", "too few effective rows")
    assert np.isnan(found.low["quality"][1])
    assert np.isfinite(found.values["quality"][1])
    assert [cell == "none" for cell in found.table()[0]["quality"]] == [
        False,
        True,
        False,
    ]  # no number without interval


def test_a_bandit_that_learned_these_rows_is_not_judged() -> None:
    table = drawn(400, 1)
    found = armlet.evaluate(log_of(table), trained(), dials=DIALS)
    assert set(found.notes[1:]) == {"trained on these rows"}
    assert found.answer == "On 400 decisions no dial can be judged: trained on these rows."


def test_rows_without_an_outcome_are_left_out_and_counted() -> None:
    table = drawn(900, 18)
    table["reward_quality"] = [None if i % 3 == 0 else value for i, value in enumerate(table["reward_quality"])]
    found = armlet.evaluate(log_of(table), trained(), dials=DIALS)
    assert (found.rows, found.told) == (900, 600)
    assert any("300 of 900 decisions lack an outcome" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dials": 1}, "dials is 1; give 2 or more"),
        ({"dials": []}, r"dials is \[\]; give how many, or a list of weights"),
        ({"dials": [{"speed": 1.0}]}, "dials has {'speed': 1.0}: .*'speed', which is no outcome"),
        ({"dials": 5, "curve": ("quality", "speed")}, "curve is .* give two of the outcomes"),
        ({"dials": 5, "estimator": "dr"}, "estimator is 'dr', which dials do not take"),
        ({"dials": 5, "baseline": "uniform"}, "baseline is 'uniform', which dials do not take"),
        ({"curve": ("quality", "cost")}, "curve is .*, but there are no dials"),
    ],
)
def test_wrong_options_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        armlet.evaluate(log_of(drawn(50, 19)), trained(), **options)


def test_targets_without_a_dial_are_refused() -> None:
    log = log_of(drawn(50, 20))
    one = armlet.Bandit(ARMS, features=["depth", "length"], seed=1)
    with pytest.raises(ValueError, match="which has one reward, so it has no dial"):
        armlet.evaluate(log, one, dials=5)
    wrong: list[Any] = ["uniform", "own", lambda _, eligible: eligible / eligible.sum()]
    for target in wrong:
        with pytest.raises(ValueError, match="with dials give a bandit with outcomes or its file"):
            armlet.evaluate(log, target, dials=5)
    other = trained(outcomes={"quality": 1.0, "cost": -7.0})
    with pytest.raises(ValueError, match="whose outcomes or their weights differ"):
        armlet.evaluate(log, {"one": trained(), "other": other}, dials=5)
    with pytest.raises(ValueError, match="with scores of 3 outcomes; there are"):
        armlet.evaluate(log, np.zeros((3, 3, 2)), arms=ARMS, dials=5)


def test_logs_that_tell_nothing_of_dials_are_refused() -> None:
    table = drawn(300, 21)
    plain = {name: column for name, column in table.items() if not name.startswith("reward_")}
    with pytest.raises(EvaluationError, match="has one reward and no outcomes, so there is no dial to value"):
        armlet.evaluate(log_of(plain), trained(), dials=5)
    wrong = table | {"p": np.where(np.array(table["model"]) == "large", 0.6, 0.2)}
    with pytest.raises(EvaluationError, match="the check of 'propensities' refuses this log"):
        armlet.evaluate(log_of(drawn(3000, 21) | {"p": np.resize(wrong["p"], 3000)}), trained(), dials=5)


# ---- files


def test_a_log_of_a_bandit_values_its_dials(tmp_path: Path) -> None:
    path, bandit = tmp_path / "decisions.jsonl", trained(known=True)
    rng = np.random.default_rng(22)
    policy = armlet.ContextualEpsilonGreedy(p=400)
    prices: Any = {"cost": PRICES}
    with armlet.Log(path) as log:
        live = armlet.Bandit(
            ARMS, features=["depth", "length"], policy=policy, outcomes=WEIGHTS, known=prices, seed=3, log=log
        )
        for x in rng.standard_normal((900, 2)):
            decision = live.decide(x)
            live.learn(decision, {"quality": float(0.5 + 0.1 * ARMS.index(str(decision.arm)) * (1 + x[0]))})
    bandit.save(tmp_path / "model.armlet")
    found = armlet.evaluate(path, {"model": bandit}, dials=8)
    saved = armlet.evaluate(path, {"model": str(tmp_path / "model.armlet")}, dials=8)
    assert saved.to_dict() == found.to_dict()
    armlet.log.compact(path, tmp_path / "decisions.parquet")
    again = armlet.evaluate(tmp_path / "decisions.parquet", {"model": bandit}, dials=8)
    for name in WEIGHTS:
        np.testing.assert_allclose(again.values[name], found.values[name], rtol=1e-12)
    assert again.standing == found.standing
    assert found.counted == ("cost",)
    found.save(tmp_path / "pareto.html")
    assert "Pareto curve" in (tmp_path / "pareto.html").read_text()


# ---- other evaluations of such logs


def test_other_evaluations_are_of_what_default_weights_make_of_outcomes() -> None:
    table, bandit = drawn(2000, 23), trained()
    plain = {name: column for name, column in table.items() if not name.startswith("reward_")}
    for target in (bandit, "large", "own"):
        with_parts, without = (armlet.evaluate(log_of(each), {"new": target}) for each in (table, plain))
        assert with_parts["new"].value == without["new"].value
    ends = (-2.0, 3.0)
    assert gate(log_of(table), bandit, reward_range=ends).gain == gate(log_of(plain), bandit, reward_range=ends).gain
    thetas = np.random.default_rng(1).standard_normal((20, 3, 3))
    both = [search(log_of(each), thetas, arms=ARMS, reward_range=ends).winner for each in (table, plain)]
    assert both[0] == both[1]
