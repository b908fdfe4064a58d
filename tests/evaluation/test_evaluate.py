"""`armlet.evaluate`: numbers computed by hand, equal forms, hard logs, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit
from armlet.errors import ArgumentError, EvaluationError
from armlet.evaluation import compacted
from armlet.evaluation.estimators import Estimated, Estimator, EstimatorLike, Gram, Shrunk, Switch
from armlet.evaluation.evaluate import evaluate
from armlet.evaluation.rows import HeldBlocks, Rows, rows_of
from armlet.evaluation.sources import open_rows
from armlet.evaluation.targets import read_arm_target
from armlet.parallel import make_pool
from armlet.record.kinds import EXPLORATION
from armlet.reference.evaluate import Parts
from armlet.types import Bool, Float64


def held(rows: Rows, arms: list[Any] | None = None, **about: Any) -> HeldBlocks:
    """Return rows as a log."""
    return HeldBlocks(rows, range(rows.eligible.shape[1]) if arms is None else arms, about)


def small(**known: Any) -> Rows:
    """Return four rows of two arms."""
    X, arms = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([0, 1, 0, 1])
    return rows_of(X, arms, np.array([1.0, 0.0, 2.0, 4.0]), np.array([0.5, 0.5, 0.25, 0.8]), **known)


def logged_by(policy: armlet.Policy, steps: int, seed: int = 1, **settings: Any) -> tuple[Bandit, HeldBlocks]:
    """Let a policy decide, and give it with its log."""
    rng = np.random.default_rng(seed)
    bandit = Bandit(["a", "b", "c"], 2, policy=policy, seed=seed, **settings)
    taken = []
    for _ in range(steps):
        x = np.array([1.0, rng.uniform(-1, 1)])
        decision = bandit.decide(x)
        reward = float(rng.random() < 0.5 + 0.3 * x[1] * (1 if decision.arm == "a" else -1))
        bandit.learn(decision, reward)
        taken.append((x, ["a", "b", "c"].index(str(decision.arm)), reward, decision))
    return bandit, held(_rows(taken), ["a", "b", "c"], policy={"name": type(policy).__name__, "settings": {}})


def _rows(taken: list[Any]) -> Rows:
    X, arms, rewards = (np.array([each[i] for each in taken]) for i in range(3))
    said = [each[3] for each in taken]
    known: dict[str, Any] = {
        name: np.array([math.nan if getattr(d, name) is None else getattr(d, name) for d in said])
        for name in EXPLORATION
    }
    known["explored"] = np.array([d.explored for d in said], dtype=np.int8)
    known["turn"] = np.array([d.design == "turn" for d in said])
    return rows_of(X, arms, rewards, np.array([d.propensity for d in said]), n_arms=3, **known)


def test_ips_and_snips_are_those_of_the_textbook() -> None:
    result = evaluate(held(small()), {"always 0": 0}, estimator="ips")
    # weights 2, 0, 4, 0: (2 * 1 + 4 * 2) / 4, and / 6
    assert result["always 0"].value == 10.0 / 4
    assert evaluate(held(small()), {"always 0": 0}, estimator="snips")["always 0"].value == 10.0 / 6
    assert result["always 0"].ess == 36.0 / 20.0
    assert result["always 0"].largest_weight == 4.0
    assert result["logged"].value == 7.0 / 4


def test_standard_errors_are_those_of_the_formulas() -> None:
    w, r = np.array([2.0, 0.0, 4.0, 0.0]), np.array([1.0, 0.0, 2.0, 4.0])
    ips = evaluate(held(small()), {"always 0": 0}, estimator="ips")["always 0"]
    assert ips.se == pytest.approx((w * r).std(ddof=1) / 2)
    snips = evaluate(held(small()), {"always 0": 0}, estimator="snips")["always 0"]
    V = (w * r).sum() / w.sum()
    assert snips.se == pytest.approx(math.sqrt((w**2 * (r - V) ** 2).sum() * 4 / 3) / w.sum())


def test_a_paired_difference_is_of_the_same_rows() -> None:
    w0, w1, r = np.array([2.0, 0.0, 4.0, 0.0]), np.array([0.0, 2.0, 0.0, 1.25]), np.array([1.0, 0.0, 2.0, 4.0])
    found = evaluate(held(small()), {"zero": 0}, baseline=1, estimator="ips", checks="none").differences["zero"]
    d = (w0 - w1) * r
    assert found.value == pytest.approx(d.mean())
    assert found.se == pytest.approx(d.std(ddof=1) / 2)


def test_doubly_robust_leaves_each_row_out_of_its_own_model() -> None:
    rows = small()
    found = evaluate(held(rows), {"zero": 0}, estimator="dr")["zero"].value
    psi = []
    Y = np.column_stack([np.ones(4), rows.X])
    for i in range(4):
        some = [j for j in range(4) if rows.arm[j] == 0 and j != i]
        theta = np.linalg.solve(Y[some].T @ Y[some] + np.eye(2), Y[some].T @ rows.reward[some])
        w = (rows.arm[i] == 0) / rows.propensity[i]
        psi.append(Y[i] @ theta + w * (rows.reward[i] - Y[i] @ theta))
    assert found == pytest.approx(np.mean(psi), abs=1e-12)


@pytest.mark.parametrize("n", [1, 4, 50])
@pytest.mark.parametrize("reward", [1.0, -100.0])
@pytest.mark.parametrize("target", [0, "uniform"])
def test_a_constant_reward_is_the_value_of_what_was_played_for_certain(n: int, reward: float, target: Any) -> None:
    rows = rows_of(np.ones((n, 1)), np.zeros(n, dtype=np.int64), np.full(n, reward), np.ones(n), n_arms=1)
    for word in ("dr", "sndr", "ips", "snips"):
        found = evaluate(held(rows), {"it": target}, estimator=word)["it"]
        assert found.value == pytest.approx(reward, rel=1e-14), word
        span = evaluate(held(rows), {"it": target}, estimator=word, reward_range=(-200.0, 200.0))["it"].interval
        assert span is not None
        assert span.low < reward < span.high, word


def test_switch_and_shrunk_are_points_between_dm_and_dr() -> None:
    log = held(small())
    asked: dict[str, EstimatorLike] = {
        "dr": "dr",
        "shrunk": Shrunk(1e12),
        "dm": "dm",
        "none": Switch(0.0),
        "all": Switch(9.0),
    }
    values = {name: evaluate(log, {"zero": 0}, estimator=each)["zero"] for name, each in asked.items()}
    assert values["shrunk"].value == pytest.approx(values["dr"].value)  # hardly shrunk
    dm = values["dm"]
    assert values["none"].value == pytest.approx(dm.value)
    assert values["all"].value == pytest.approx(values["dr"].value)
    assert dm.interval is None
    assert "bias" in dm.note


class Clipped(Estimator):
    """S min(w, 1.5) r / n, which the kernel does not know."""

    name = "clipped"

    def column(self, parts: Parts) -> Float64:
        return np.minimum(parts.pi / parts.chance, 1.5) * parts.rewards

    def solve(self, sums: Gram) -> Estimated:
        return sums.mean("clipped")


@pytest.mark.parametrize("baseline", ["logged", "uniform"])
def test_an_estimator_with_a_column_of_its_own_is_one_class(baseline: str) -> None:
    rows = small()
    found = evaluate(held(rows), {"zero": 0}, estimator=Clipped(), baseline=baseline, checks="none")
    scores = np.minimum((rows.arm == 0) / rows.propensity, 1.5) * rows.reward
    assert found["zero"].value == pytest.approx(scores.mean())
    assert found["zero"].se == pytest.approx(scores.std(ddof=1) / 2)
    base = np.minimum(1 / rows.eligible.sum(axis=1) / rows.propensity, 1.5) if baseline == "uniform" else 1.0
    apart = scores - base * rows.reward
    assert found.differences["zero"].value == pytest.approx(apart.mean())
    assert found.differences["zero"].se == pytest.approx(apart.std(ddof=1) / 2)
    usual = evaluate(held(rows), {"zero": 0}, baseline=baseline, checks="none").estimates["zero"]
    assert {name: point for name, point in found.estimates["zero"].items() if name != "clipped"} == usual


def test_weighted_is_plain_where_all_rows_explore_alike() -> None:
    known: dict[str, Any] = {
        "explored": np.ones(4, dtype=np.int8),
        "exploration_rate": np.ones(4),
        "exploration_propensity": np.full(4, 0.5),
    }
    rows = rows_of(small().X, small().arm, small().reward, np.full(4, 0.5), **known)
    weighted, dr = (
        evaluate(held(rows), {"zero": 0}, estimator=word, checks="none")["zero"].value for word in ("weighted", "dr")
    )
    assert weighted == pytest.approx(dr)


def test_the_default_goes_by_what_is_known() -> None:
    _, log = logged_by(armlet.Algorithm1(p=60), 400)
    found = evaluate(log, {"always a": "a"})["always a"]
    assert found.estimator == "weighted"
    assert "known" in found.why
    assert found.interval is not None
    assert evaluate(held(small()), 0, checks="none")["0"].estimator == "dr"


def test_weights_of_rows_do_not_know_their_own_arm() -> None:
    """Whatever arm row t drew, its h is the same: rows after it may differ."""
    _, log = logged_by(armlet.Algorithm1(p=40, warmup="uniform"), 200)
    rows = log[0]
    from armlet.evaluation.model import RUNNING, contributions, row_weights
    from armlet.evaluation.rows import Design
    from armlet.evaluation.targets import prob_of_played

    law = np.zeros(len(rows), dtype=np.int64)

    def weights(arm: Any) -> Float64:
        design = Design.of(rows)
        return row_weights(contributions(law, prob_of_played(law, arm), design), np.zeros(RUNNING), design)

    plain = weights(rows.arm)
    for t in (3, 50, 120, 199):
        other = rows.arm.copy()
        other[t] = (other[t] + 1) % 3
        assert (weights(other)[: t + 1] == plain[: t + 1]).all()


def test_weights_of_rows_do_not_know_which_arms_were_eligible_there() -> None:
    """A target is worth more where more may be played, and the rate goes with the set: weights must not."""
    from armlet.evaluation.model import RUNNING, contributions, row_weights
    from armlet.evaluation.rows import Design
    from armlet.evaluation.targets import prob_of_played

    _, log = logged_by(armlet.ContextualEpsilonGreedy(p=40), 200)
    eligible = log[0].eligible.copy()
    eligible[5] = eligible[5] & (np.arange(3) != (log[0].arm[5] + 1) % 3)  # so sets differ
    rows = replace(log[0], eligible=eligible)
    law = np.zeros(len(rows), dtype=np.int64)

    def weights(each: Rows) -> Float64:
        design = Design.of(each)
        return row_weights(contributions(law, prob_of_played(law, each.arm), design), np.zeros(RUNNING), design)

    plain = weights(rows)
    for t in (3, 50, 120, 199):
        sets, rate = rows.eligible.copy(), rows.exploration_rate.copy()
        sets[t], rate[t] = np.arange(3) == rows.arm[t], rate[t] / 2
        other = weights(replace(rows, eligible=sets, exploration_rate=rate))
        assert (other[: t + 1] == plain[: t + 1]).all()
        assert t == 199 or (other[t + 1 :] != plain[t + 1 :]).any()


def test_a_value_that_weights_carry_out_of_the_range_keeps_the_width_of_its_error() -> None:
    """Ten arms drawn alike, nearly all clicks: S wr / n is above 1 in half of the logs, and must not seem sure."""
    rng = np.random.default_rng(2)
    covered = []
    for _ in range(300):
        arms = rng.integers(10, size=400)
        rows = rows_of(np.ones((400, 1)), arms, (rng.random(400) < 0.97).astype(float), np.full(400, 0.1), n_arms=10)
        span = evaluate(held(rows), 0, estimator="ips", interval="fixed", checks="none")["0"].interval
        assert span is not None
        assert 0.0 <= span.low < span.high <= 1.0
        covered.append(span.low <= 0.97 <= span.high)
    assert np.mean(covered) > 0.91  # .95 less three standard errors


def test_blocks_and_pools_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    _, log = logged_by(armlet.Algorithm1(p=60), 500)
    monkeypatch.setattr("armlet.evaluation.rows.BLOCK", 64)
    several = [evaluate(log, ["a", "uniform"], pool=pool, workers=2).to_dict() for pool in ("serial", "threads")]
    assert several[0] == several[1]
    monkeypatch.undo()
    once = evaluate(log, ["a", "uniform"])
    assert once["a"].value == pytest.approx(several[0]["values"]["a"]["value"], rel=1e-12)
    assert once["a"].se == pytest.approx(several[0]["values"]["a"]["se"], rel=1e-9)


def test_processes_and_dask_give_the_same_bytes_from_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with armlet.Log(tmp_path / "log.jsonl") as log:
        bandit = Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=60), seed=3, log=log)
        for i in range(300):
            bandit.learn(bandit.decide([i / 300]), float(i % 3))
    monkeypatch.setattr("armlet.log.exporting.ROWS", 32)
    monkeypatch.setattr(compacted, "BLOCK", 64)
    blocks = open_rows(armlet.log.compact(tmp_path / "log.jsonl"))
    assert len(blocks) == 5
    here, there = (evaluate(blocks, ["a", bandit], pool=pool, workers=2) for pool in ("serial", "processes"))
    assert here.to_dict() == there.to_dict()
    with make_pool("dask", workers=1) as dask:
        assert evaluate(blocks, ["a", bandit], pool=dask).to_dict() == here.to_dict()


def test_costs_are_costs_and_less_is_better() -> None:
    rng = np.random.default_rng(3)
    arms = rng.integers(2, size=2000)
    rows = rows_of(np.ones((2000, 1)), arms, rng.random(2000) + arms, np.full(2000, 0.5))
    for objective, verdict in (("max", "worse"), ("min", "better")):
        found = evaluate(held(rows, objective=objective), {"zero": 0})
        assert found["zero"].value == pytest.approx(0.5, abs=0.05)
        assert found.differences["zero"].verdict == verdict


def test_a_bandit_of_costs_plays_the_cheapest() -> None:
    bandit = Bandit([0, 1], 1, policy=armlet.Algorithm1(p=4), seed=1, objective="min")
    bandit.partial_fit(np.ones((4, 1)), [0, 0, 1, 1], [1.0, 1.0, 5.0, 5.0], explored=True)
    found = evaluate(held(small(), objective="min"), {"model": bandit, "zero": 0}, estimator="ips", checks="none")
    assert found["model"].value == found["zero"].value


def test_targets_are_renormalised_over_eligible_arms() -> None:
    eligible = np.array([[True, True, True], [True, True, False], [False, True, True], [True, True, True]])
    rows = rows_of(
        np.ones((4, 1)), np.array([0, 1, 1, 2]), np.arange(4.0), 1 / eligible.sum(1), n_arms=3, eligible=eligible
    )
    found = evaluate(held(rows), {"zero": 0, "even": "uniform"}, estimator="ips", checks="none")
    # row 2 cannot play arm 0: the others share it, 0.5 / 0.5
    assert found["zero"].value == pytest.approx((3 * 0.0 + 0 + 1 * 2.0 + 0) / 4)
    assert found["even"].value == found["logged"].value == 1.5

    def first(_: Float64, may: Bool) -> Float64:
        return np.asarray(np.eye(3)[may.argmax(axis=1)])

    assert evaluate(held(rows), {"first": first}, estimator="ips", checks="none")["first"].value == pytest.approx(1.0)


def test_a_bandit_is_asked_for_each_set_of_arms(tmp_path: Path) -> None:
    bandit, log = logged_by(armlet.Algorithm1(p=60), 300)
    rows = log[0]
    eligible = np.ones((300, 3), dtype=np.bool_)
    eligible[::2, 2] = False
    eligible[np.arange(300), rows.arm] = True
    one = HeldBlocks(Rows(**{**{n: getattr(rows, n) for n in Rows.__slots__}, "eligible": eligible}), "abc", log.about)

    def same(X: Float64, may: Bool) -> Float64:
        scores = bandit.predict_expectations(X)
        return np.asarray(np.eye(3)[np.where(may, scores, -np.inf).argmax(axis=1)])

    bandit.save(tmp_path / "model.armlet")
    found = evaluate(one, {"bandit": bandit, "function": same, "file": tmp_path / "model.armlet"}, arms=list("abc"))
    assert found["bandit"].value == found["function"].value == found["file"].value


def test_functions_that_give_no_probabilities_are_named() -> None:
    def half(_: Float64, may: Bool) -> Float64:
        return may / 4

    def shy(X: Float64, _: Bool) -> Float64:
        return np.ones((len(X), 5))

    with pytest.raises(ArgumentError, match=r"'half', which gives .* that sum to 1"):
        evaluate(held(small()), half)
    with pytest.raises(ArgumentError, match=r"'shy', which gives shape \(4, 5\)"):
        evaluate(held(small()), shy)
    with pytest.raises(ArgumentError, match=r"targets has 'west', which is 'west'; give an arm"):
        evaluate(held(small()), "west")


def test_weights_are_refused_unless_told() -> None:
    rows = small(weight=np.array([1.0, 2.0, 1.0, 1.0]))
    with pytest.raises(EvaluationError, match="1 rows have a weight other than 1"):
        evaluate(held(rows), 0)
    assert evaluate(held(rows), 0, weights="ignore", estimator="ips")["0"].value == 2.5


def test_missing_rewards_are_counted_not_imputed() -> None:
    rows = rows_of(np.ones((3, 1)), np.array([0, 1, 0]), np.array([1.0, math.nan, 3.0]), np.full(3, 0.5), n_arms=2)
    found = evaluate(held(rows), 0, estimator="snips")
    assert found["0"].value == 2.0
    assert (found.rows, found.rewarded, found.missing) == (3, 2, {1: 1})
    assert any("missing" in warning for warning in found.warnings)


def test_an_empty_log_and_one_without_rewards_say_so() -> None:
    empty = rows_of(np.ones((0, 1)), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0), n_arms=2)
    with pytest.raises(EvaluationError, match="has no decisions"):
        evaluate(held(empty), 0)
    lost = rows_of(np.ones((2, 1)), np.array([0, 1]), np.full(2, math.nan), np.full(2, 0.5))
    with pytest.raises(EvaluationError, match="no reward for any of its 2 decisions"):
        evaluate(held(lost), 0)


def test_one_row_has_a_value_and_no_clean_interval() -> None:
    rows = rows_of(np.ones((1, 1)), np.array([0]), np.array([2.0]), np.array([0.5]), n_arms=2)
    found = evaluate(held(rows), 0, estimator="ips", checks="none")["0"]
    assert found.value == 4.0
    assert found.interval is None
    assert found.note.startswith("every reward is 2")


def test_one_arm_is_what_was_played() -> None:
    rows = rows_of(np.ones((5, 1)), np.zeros(5, dtype=np.int64), np.arange(5.0), np.ones(5))
    found = evaluate(held(rows), ["uniform", 0], estimator="ips", checks="none")
    assert found["uniform"].value == found["0"].value == found["logged"].value == 2.0


def test_no_click_is_no_interval_from_0_to_0() -> None:
    rng = np.random.default_rng(1)
    rows = rows_of(np.ones((200, 1)), rng.integers(2, size=200), np.zeros(200), np.full(200, 0.5))
    for word in ("snips", "dr", "ips"):
        span = evaluate(held(rows), {"zero": 0}, estimator=word, checks="none")["zero"].interval
        assert span is None or (span.low == 0.0 and 0.01 < span.high < 0.1), word


def test_rewards_that_never_differ_have_no_known_interval() -> None:
    rows = rows_of(np.ones((50, 1)), np.arange(50) % 2, np.full(50, 7.0), np.full(50, 0.5))
    assert evaluate(held(rows), 0, estimator="snips", checks="none")["0"].interval is None
    span = evaluate(held(rows), 0, estimator="snips", reward_range=(0.0, 10.0), checks="none")["0"].interval
    assert span is not None
    assert 0.0 < span.low < 7.0 < span.high < 10.0


def test_turns_of_a_round_robin_are_read_as_drawn() -> None:
    _, log = logged_by(armlet.Algorithm1(p=30), 30)  # nothing but turns
    rows = log[0]
    assert rows.turn.all()
    found = evaluate(log, {"always a": "a"}, estimator="snips")
    assert found["always a"].value == pytest.approx(rows.reward[rows.arm == 0].mean())
    assert any("round-robin" in warning for warning in found.warnings)


def test_a_logger_that_does_not_explore_is_refused() -> None:
    for policy in (armlet.LinUCB(), armlet.Greedy()):
        _, log = logged_by(policy, 200)
        with pytest.raises(EvaluationError, match="could not have been otherwise"):
            evaluate(log, "a")


def test_a_logger_that_explores_by_what_it_learned_gets_no_interval() -> None:
    _, log = logged_by(armlet.ThompsonSampling(), 200)
    found = evaluate(log, "a")
    assert found["a"].interval is None
    assert found["a"].note
    assert found.differences["a"].interval is None
    assert found["logged"].interval is not None


def test_wrong_propensities_leave_no_interval_of_any_kind() -> None:
    rng = np.random.default_rng(4)
    arms, rewards = rng.integers(2, size=2000), rng.random(2000)
    honest, lied = (
        evaluate(held(rows_of(np.ones((2000, 1)), arms, rewards, said)), {"always 0": 0}, reward_range=(0.0, 1.0))
        for said in (np.full(2000, 0.5), np.where(arms == 0, 0.35, 0.65))
    )
    assert honest["always 0"].interval is not None
    assert honest["always 0"].anytime is not None
    assert lied["always 0"].interval is None
    assert lied["always 0"].anytime is None


def test_an_arm_without_a_click_is_not_called_worse_for_certain() -> None:
    arms, clicks = np.arange(600) % 20, np.zeros(600)
    clicks[[1, 202, 403]] = 1.0  # of the arms 1, 2 and 3
    log = held(rows_of(np.ones((600, 1)), arms, clicks, np.full(600, 0.05), n_arms=20))
    found = evaluate(log, {"always 0": 0, "again": "logged"}, estimator="snips", baseline="uniform")
    low, high = found.differences["always 0"].interval or (0.0, 0.0)
    # 30 rows without a click: up to a tenth of its contexts may click
    assert low < 0.0
    assert high > 0.05
    assert found.differences["always 0"].verdict == "not clear"


def test_too_few_explored_rows_give_no_interval() -> None:
    _, log = logged_by(armlet.OccasionalOptimism(), 300)
    found = evaluate(log, "a")
    assert found["a"].interval is None
    assert any("explored" in warning for warning in found.warnings)


def test_corrected_rewards_are_those_that_count(tmp_path: Path) -> None:
    with armlet.Log(tmp_path / "log.jsonl") as log:
        bandit = Bandit([0, 1], 1, policy=armlet.Algorithm1(p=60, warmup="uniform"), seed=3, log=log)
        for i in range(60):
            decision = bandit.decide([1.0])
            bandit.learn(decision, 0.0)
            if i % 2:
                bandit.correct(decision, 0.0, 1.0)
    assert evaluate(tmp_path / "log.jsonl", 0)["logged"].value == 0.5
    armlet.log.compact(tmp_path / "log.jsonl")
    lines, parquet = (evaluate(tmp_path / f"log.{end}", [0, "uniform"]).to_dict() for end in ("jsonl", "parquet"))
    made = [each.pop("made") for each in (lines, parquet)]
    assert lines == parquet
    assert [each["log"] for each in made] == ["log.jsonl", "log.parquet"]
    assert made[0]["rows_sha256"] == made[1]["rows_sha256"]
    assert made[0]["period"] == made[1]["period"]


def test_sequences_hold_the_value_and_are_wider() -> None:
    _, log = logged_by(armlet.Algorithm1(p=200, warmup="uniform"), 1000)
    found = evaluate(log, {"always a": "a"}, reward_range=(0, 1))["always a"]
    assert found.anytime is not None
    assert found.interval is not None
    assert found.anytime.low < found.interval.low < found.interval.high < found.anytime.high
    assert evaluate(log, "a", reward_range=(0, 1), interval="fixed")["a"].anytime is None
    for interval in ("both", "fixed"):
        with pytest.raises(ValueError, match="reward_range"):
            evaluate(log, "a", reward_range=(2, 3), interval=interval)


def test_own_value_of_noise_is_not_flattered() -> None:
    """Where arms are alike every policy is worth 0: the same rows say more, leaving out says about 0 (se 0.15)."""
    values, flattered = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, k = 150, 5
        rows = rows_of(rng.normal(size=(n, 5)), rng.integers(k, size=n), rng.normal(size=n), np.full(n, 1 / k))
        log = held(rows)
        values.append(evaluate(log, "own")["own"].value)
        bandit = Bandit(range(k), 5, policy=armlet.Algorithm1(p=5), seed=1)
        bandit.partial_fit(rows.X, rows.arm, rows.reward, explored=True)
        flattered.append(evaluate(log, {"b": bandit}, estimator="snips", checks="none")["b"].value)
    assert np.mean(flattered) > 0.2
    assert abs(np.mean(values)) < 3 * 0.3 / math.sqrt(40)  # one log has a standard error of about 0.25 at n = 150


def test_own_says_what_its_interval_is_of() -> None:
    _, log = logged_by(armlet.Algorithm1(p=100, warmup="uniform"), 500)
    found = evaluate(log, ["own", "uniform"])
    assert "progressive" in found["own"].note
    assert found["own"].interval is not None


def test_own_has_no_interval_where_hardly_a_row_explored() -> None:
    _, log = logged_by(armlet.OccasionalOptimism(), 500)
    found = evaluate(log, "own")["own"]
    assert found.interval is None
    assert "only 7 explored decisions have a reward" in found.note


def test_own_refuses_a_log_of_arms_that_were_chosen_by_what_was_learned() -> None:
    _, log = logged_by(armlet.ThompsonSampling(), 200)
    with pytest.raises(EvaluationError, match=r"200 rows chose their arm by what had been learned.*floor"):
        evaluate(log, "own")


def test_the_interval_of_own_lies_within_the_range_of_rewards() -> None:
    rng = np.random.default_rng(3)
    rows = rows_of(rng.normal(size=(9, 2)), rng.integers(3, size=9), rng.uniform(-1, 1, size=9), np.full(9, 1 / 3))
    assert evaluate(held(rows), "own", reward_range=(-1, 1))["own"].interval == (-1.0, 1.0)
    free = evaluate(held(rows), "own")["own"].interval
    assert free is not None
    assert free.low < -1 or free.high > 1


def test_results_are_read_by_name_and_as_data() -> None:
    found = evaluate(held(small()), {"zero": 0}, estimator="snips", checks="none")
    assert list(found) == ["logged", "zero"]
    assert len(found) == 2
    assert "difference in reward from logged (higher is better)" in str(found)
    assert found.to_dict()["values"]["zero"]["estimator"] == "snips"
    with pytest.raises(KeyError, match="there is no policy 'one'; there are logged, zero"):
        found["one"]


def test_one_pass_gives_all_estimators() -> None:
    _, log = logged_by(armlet.Algorithm1(p=60), 400)
    every = evaluate(log, "a").estimates["a"]
    for word in ("ips", "snips", "dm", "dr", "sndr", "replay", "explored", "weighted", "switch", "shrunk"):
        alone = evaluate(log, "a", estimator=word, checks="none")["a"]
        assert every[word].value == alone.value
        assert every[word].interval == alone.interval


def test_ties_of_a_bandit_are_shared() -> None:
    bandit = Bandit([0, 1], 1, policy=armlet.Algorithm1(p=4), seed=1)  # knows nothing
    found = evaluate(held(small()), {"new": bandit, "even": "uniform"}, estimator="ips", checks="none")
    assert found["new"].value == found["even"].value


@pytest.mark.parametrize("policy", [armlet.Greedy(units="as given"), armlet.Greedy(), armlet.Algorithm1(p=9)])
@pytest.mark.parametrize("ties", [0, 3])
def test_a_bandit_is_valued_as_the_function_that_plays_as_it_does(policy: armlet.Policy, ties: int) -> None:
    rng = np.random.default_rng(ties)
    X, arms, n = rng.normal(size=(400, 3)), rng.integers(4, size=400), 400
    X[:ties] = 0.0
    bandit = Bandit(range(4), 3, policy=policy, seed=1)
    bandit.partial_fit(X, arms, rng.random(n), explored=True)
    bandit.retire_arm(2)
    rows = rows_of(X, arms, (rng.random(n) < 0.4).astype(np.float64), np.full(n, 0.25), n_arms=4)

    def plays(contexts: Float64, _: Bool) -> Float64:
        return bandit.predict_proba(contexts, mode="greedy")

    found = evaluate(held(rows), {"bandit": bandit, "function": plays}, checks="none").estimates
    for word, point in found["bandit"].items():
        assert point.value == pytest.approx(found["function"][word].value, rel=1e-12, nan_ok=True), word
        assert point.se == pytest.approx(found["function"][word].se, rel=1e-9, nan_ok=True), word


def test_contexts_that_are_no_numbers_are_refused_by_a_bandit() -> None:
    X = np.ones((3, 2))
    X[1, 1] = np.nan
    bandit = Bandit(range(2), 2, policy=armlet.Greedy(units="as given"), seed=1)
    rows = rows_of(X, np.zeros(3, dtype=np.int64), np.array([1.0, np.nan, 0.0]), np.full(3, 0.5), n_arms=2)
    with pytest.raises(ValueError, match="nan"):
        read_arm_target("it", bandit, (0, 1), "greedy").action_dist(rows)


def test_words_are_checked() -> None:
    log = open_rows(held(small()))
    for wrong, message in (
        ({"estimator": "best"}, "estimator is 'best'"),
        ({"interval": "wide"}, "interval is 'wide'"),
        ({"weights": "use"}, "weights is 'use'"),
        ({"level": 1.5}, "level is 1.5"),
        ({"mode": "well"}, "mode is 'well'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            evaluate(log, 0, **wrong)


def test_a_page_is_written(tmp_path: Path) -> None:
    _, log = logged_by(armlet.Algorithm1(p=100, warmup="uniform"), 300)
    evaluate(log, ["a", "uniform"], reward_range=(0, 1)).save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "What this cannot tell" in page
    assert "uniform" in page
