"""Where a coin chose between two arms, the propensity over the coin values both; the one given the coin is biased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import ArgumentError
from armlet.types import Float64

N, K, D = 3000, 3, 2
THETA = np.array([[1.0, 0.0], [0.0, 1.0], [-0.7, -0.7]])
LEVEL = 3.0  # of all rewards, so that a share that is lost shows


def trained(floor: float = 0.0) -> armlet.Bandit:
    """Few rows, and far fewer of one arm: the highest estimate and the highest bound are often of two arms."""
    rng = np.random.default_rng(4)
    X, arms = rng.normal(size=(60, D)), np.r_[np.zeros(35), np.ones(20), np.full(5, 2)].astype(int)
    bandit = armlet.Bandit(range(K), D, policy=armlet.OccasionalOptimism(floor=floor), seed=71_001)
    bandit.partial_fit(X, arms, LEVEL + (X * THETA[arms]).sum(axis=1) + 0.5 * rng.normal(size=60))
    return bandit


def decided(bandit: armlet.Bandit, X: Float64, **asked: str) -> list[armlet.Decision]:
    """Decide without learning: the policy stays the same, so that there is one truth about it."""
    made = []
    for x in X:
        made.append(bandit.decide(x, **asked))  # type: ignore[arg-type]
        bandit.expire(made[-1])
    return made


def z_of(ips: Float64, truth: Float64) -> float:
    lost = ips - truth
    return float(lost.mean() / (lost.std() / np.sqrt(len(lost))))


def test_the_greedy_policy_is_valued_without_bias_by_marginal_propensities_alone() -> None:
    """Inverse propensity scoring of 3,000 rows, within four standard errors; given the coin it is more than six off."""
    rng, bandit = np.random.default_rng(71_002), trained()
    X = rng.normal(size=(N, D))
    truth = LEVEL + X @ THETA.T
    greedy = np.argmax(bandit.predict_expectations(X), axis=1)
    twin = bandit.copy()
    marginal, conditional = decided(bandit, X, propensity="marginal"), decided(twin, X)
    arms = np.array([d.arm for d in marginal])
    assert arms.tolist() == [d.arm for d in conditional]
    chances = np.array([d.propensity for d in marginal])
    two = (chances > 0.15) & (chances < 0.85)
    assert two.sum() > N / 10
    assert np.isclose(chances[two & (arms == greedy)], 0.8, atol=0.01).all()
    assert np.isclose(chances[two & (arms != greedy)], 0.2, atol=0.01).all()
    assert all(d.marginal for d in marginal)
    assert not any(d.marginal for d in conditional)
    assert min(d.propensity for d in conditional if not d.explored) > 0.99
    rewards = truth[np.arange(N), arms] + 0.5 * rng.normal(size=N)
    hits, best = arms == greedy, truth[np.arange(N), greedy]
    assert abs(z_of(hits / chances * rewards, best)) < 4
    assert z_of(hits / np.array([d.propensity for d in conditional]) * rewards, best) < -6


def test_a_table_of_decisions_is_evaluated_if_its_propensities_are_marginal_and_else_refused() -> None:
    """With a floor, since a table does not say what explored: weights of every arm must then average 1."""
    rng, bandit = np.random.default_rng(71_003), trained(floor=0.3)
    X = rng.normal(size=(400, D))
    greedy = np.argmax(bandit.predict_expectations(X), axis=1)
    roles: dict[str, Any] = {"features": ["u", "v"], "reward": "paid"}
    for asked in ("marginal", None):
        made = bandit.copy().decide_many(X, propensity=asked)
        rewards = LEVEL + (X * THETA[made.indices]).sum(axis=1)
        table = made.to_arrow()
        for name, column in (("u", X[:, 0]), ("v", X[:, 1]), ("paid", rewards)):
            table = table.append_column(name, [column])
        if asked is None:
            with pytest.raises(ArgumentError, match=r"which is not over all coins in \d+ rows, where"):
                armlet.Table(table, **roles)
            continue
        labelled = armlet.Table(table, **roles)
        found = armlet.evaluate(labelled, {"greedy": bandit}, estimator="ips", reward_range=(-20, 20))
        by_hand = ((made.indices == greedy) / made.propensities * rewards).mean()
        assert found["greedy"].value == pytest.approx(by_hand, rel=1e-12)


def test_a_log_has_the_marginal_propensity_and_the_kind_of_every_step(tmp_path: Path) -> None:
    rng, probabilities = np.random.default_rng(71_004), []
    with armlet.Log(tmp_path / "log.jsonl") as log:
        bandit = armlet.Bandit(range(K), D, policy=armlet.OccasionalOptimism(floor=0.1), seed=71_004, log=log)
        for x in rng.normal(size=(600, D)):
            probabilities.append(bandit.predict_proba([x])[0])
            decision = bandit.decide(x)
            bandit.learn(decision, LEVEL + float(x @ THETA[int(decision.arm)]) + 2.0 * rng.normal())
        many = bandit.decide_many(rng.normal(size=(5, D)))
    assert many.marginal.all()
    events = [event for event in armlet.log.read(tmp_path / "log.jsonl") if event["kind"] == "decide"][:600]
    assert [event["propensity"] for event in events] == [
        row[event["arm"]] for row, event in zip(probabilities, events, strict=True)
    ]
    assert sum(0.15 < event["propensity"] < 0.85 for event in events) > 10
    assert 70 < sum(event["optimistic"] for event in events) < 146  # 108 are expected, give or take four deviations
    assert not any(event["explored"] and event["optimistic"] for event in events)
    assert armlet.log.audit(tmp_path / "log.jsonl", log.start_path).ok
    explored = [event for event in events if event["explored"] and event["exploration_rate"] < 1]
    assert {event["greedy"] for event in explored} == {True, False}
    assert {check.name: check.word for check in armlet.evaluate(tmp_path / "log.jsonl", "uniform").checks}[
        "possible"
    ] == "fine"
    armlet.log.compact(tmp_path / "log.jsonl", tmp_path / "log.parquet")
    assert list(armlet.log.read(tmp_path / "log.parquet")) == list(armlet.log.read(tmp_path / "log.jsonl"))
    assert armlet.log.audit(tmp_path / "log.parquet", log.start_path).ok
