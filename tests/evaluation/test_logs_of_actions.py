"""Off-policy evaluation of logs whose actions have features: what is in reach, what is bounded, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import ActionBandit, ActionTable
from armlet.errors import ArmletError, EvaluationError
from armlet.evaluation.gate import gate
from armlet.log import Log
from armlet.types import Arm, Float64

K, DX, DZ = 12, 2, 3


class World:
    """Twelve fresh actions a step; means are bilinear in (1, x) and (1, z) up to their ends, rewards lie in [0, 1]."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 7])
        self.theta = np.random.default_rng(3).normal(size=(1 + DX, 1 + DZ)) / 20

    def step(self) -> tuple[Float64, ActionTable]:
        return self.rng.normal(size=DX), ActionTable(range(K), self.rng.normal(size=(K, DZ)))

    def means(self, x: Float64, table: ActionTable) -> Float64:
        ones = np.column_stack([np.ones(len(table)), table.features])
        return np.clip(0.5 + np.append(1.0, x) @ self.theta @ ones.T, 0.1, 0.9)

    def reward(self, x: Float64, table: ActionTable, arm: Arm) -> float:
        return float(self.means(x, table)[table.place(arm)] + self.rng.uniform(-0.1, 0.1))


Seen = list[tuple[Float64, ActionTable]]
Play = Callable[[Float64, ActionTable], Arm]


def logged(tmp_path: Path, n: int, policy: Any, seed: int = 1, **options: Any) -> tuple[World, Seen, Path]:
    world, log = World(seed), Log(tmp_path / f"{seed}.jsonl")
    bandit = ActionBandit(DX, DZ, policy=policy, seed=seed, log=log, **options)
    seen = []
    for _ in range(n):
        x, table = world.step()
        decision = bandit.decide(x, table)
        bandit.learn(decision, world.reward(x, table, decision.arm))
        seen.append((x, table))
    log.close()
    return world, seen, tmp_path / f"{seed}.jsonl"


def greedy_by(theta: Float64) -> Play:
    def play(x: Float64, table: ActionTable) -> Arm:
        ones = np.column_stack([np.ones(len(table)), table.features])
        return table.labels[int(np.argmax(np.append(1.0, x) @ theta @ ones.T))]

    return play


def true_value(world: World, seen: Seen, play: Play) -> float:
    return float(np.mean([world.means(x, table)[table.place(play(x, table))] for x, table in seen]))


def test_a_target_near_the_log_is_valued_with_bounds_where_it_was_out_of_reach(tmp_path: Path) -> None:
    world, seen, path = logged(tmp_path, 400, armlet.SharedThompson(draws=20), reward_range=(0.0, 1.0))
    best = greedy_by(world.theta)
    result = armlet.evaluate(path, {"best": best})
    found, truth = result["best"], true_value(world, seen, best)
    assert found.estimator == "dr"
    assert found.interval is not None
    assert found.interval.low < truth < found.interval.high
    coverage = next(check for check in result.checks if check.name == "coverage")
    assert 0.5 < coverage.number < 1.0
    assert "could not have played" in found.note
    assert result.differences["best"].verdict in ("better", "not clear")


def test_without_a_range_what_was_out_of_reach_has_no_value(tmp_path: Path) -> None:
    world, _, path = logged(tmp_path, 60, armlet.SharedOptimism())
    result = armlet.evaluate(path, {"worst": greedy_by(-world.theta)})
    assert np.isnan(result["worst"].value)
    assert "tells nothing of the rest" in result["worst"].note
    assert result.differences["worst"].verdict.startswith("not judged")


def test_the_log_itself_has_the_mean_of_its_rewards(tmp_path: Path) -> None:
    _, _, path = logged(tmp_path, 50, armlet.SharedThompson(draws=5))
    result = armlet.evaluate(path, "logged")
    rewards = [event["reward"] for event in armlet.log.read(path) if event["kind"] == "learn"]
    assert result["logged"].value == pytest.approx(np.mean(rewards), rel=1e-12)


def test_a_function_that_plays_what_the_log_plays_has_the_mean_of_the_log_by_snips(tmp_path: Path) -> None:
    _, _, path = logged(tmp_path, 50, armlet.SharedThompson(draws=5))
    supports = {
        event["t"]: dict(event["support"] or {}) for event in armlet.log.read(path) if event["kind"] == "decide"
    }
    laws = iter([supports[t] or None for t in sorted(supports)])

    def same(_: Float64, table: ActionTable) -> dict[Arm, float]:
        law = next(laws)
        return dict.fromkeys(table.labels, 1 / len(table)) if law is None else dict(law)

    result = armlet.evaluate(path, {"same": same}, estimator="snips")
    assert result["same"].value == pytest.approx(result["logged"].value, rel=1e-12)
    assert next(check for check in result.checks if check.name == "coverage").number == 1.0


def test_a_compacted_log_has_the_same_values(tmp_path: Path) -> None:
    world, _, path = logged(tmp_path, 60, armlet.SharedThompson(draws=5), reward_range=(0.0, 1.0))
    armlet.log.compact(path, tmp_path / "log.parquet")
    one, other = (armlet.evaluate(each, {"best": greedy_by(world.theta)}) for each in (path, tmp_path / "log.parquet"))
    assert one["best"] == other["best"]
    assert one.made is not None
    assert other.made is not None
    assert one.made.digest == other.made.digest


def test_a_bandit_that_learned_these_rows_is_marked(tmp_path: Path) -> None:
    _, _, path = logged(tmp_path, 80, armlet.SharedThompson(draws=20), reward_range=(0.0, 1.0))
    learner = ActionBandit(DX, DZ, policy=armlet.SharedOptimism(), seed=9)
    world = World(1)
    for _ in range(80):
        x, table = world.step()
        decision = learner.decide(x, table)
        learner.learn(decision, world.reward(x, table, decision.arm))
    result = armlet.evaluate(path, {"same rows": learner})
    assert result["same rows"].interval is None
    assert result["same rows"].doubtful == "trained on these rows"


def test_words_and_functions_that_are_wrong_are_refused(tmp_path: Path) -> None:
    _, _, path = logged(tmp_path, 30, armlet.SharedOptimism())
    with pytest.raises(ArmletError, match="give an ActionBandit"):
        armlet.evaluate(path, {"arm": 3})
    with pytest.raises(ArmletError, match="was not eligible"):
        armlet.evaluate(path, {"stranger": lambda _, __: "nobody"})
    with pytest.raises(ArmletError, match="sum to 1"):
        armlet.evaluate(path, {"half": lambda _, table: {table.labels[0]: 0.5}})
    with pytest.raises(ArmletError, match="leave it out"):
        armlet.evaluate(path, "uniform", largest_unit=3)
    with pytest.raises(EvaluationError, match="no column for every arm"):
        armlet.evaluation.rejection_replay(path, armlet.LinUCB())


def test_anytime_intervals_allow_any_reward_where_the_log_could_not_have_played(tmp_path: Path) -> None:
    world, seen, path = logged(tmp_path, 400, armlet.SharedThompson(draws=20), reward_range=(0.0, 1.0))
    for theta in (world.theta, -world.theta):
        play = greedy_by(theta)
        found, truth = armlet.evaluate(path, {"it": play})["it"], true_value(world, seen, play)
        assert found.anytime is not None
        assert found.anytime.low < truth < found.anytime.high
    assert armlet.evaluate(path, {"it": play}, interval="fixed")["it"].anytime is None


def test_the_gate_keeps_and_kills_targets_over_actions(tmp_path: Path) -> None:
    world, path = World(1), tmp_path / "even.jsonl"
    with Log(path) as log:
        policy = armlet.SharedThompson(draws=200)  # which plays every action as long as it has learned nothing
        bandit = ActionBandit(DX, DZ, policy=policy, seed=1, log=log, reward_range=(0.0, 1.0))
        for decision in [bandit.decide(*world.step()) for _ in range(1800)]:
            bandit.learn(decision, float(int(decision.arm) % 2))
    odd, even = (lambda _, __, label=label: label for label in (1, 2))
    found = gate(path, odd)
    assert (found.answer, found.notes) == ("keep", ())
    assert gate(path, even).answer == "kill"
    kept = gate(path, odd, against=even)
    assert kept.answer == "keep"
    assert kept.gain.low < 1.0 <= kept.gain.high


def test_the_gate_allows_any_reward_where_the_log_could_not_have_played(tmp_path: Path) -> None:
    world, _, path = logged(tmp_path, 1500, armlet.SharedThompson(draws=20), reward_range=(0.0, 1.0))
    worst = gate(path, greedy_by(-world.theta), against=greedy_by(world.theta))
    assert worst.gain.high > 0.0 > worst.gain.low
    assert any("could not have played" in note for note in worst.notes)
    even = gate(path, "uniform")
    assert (even.rows, even.drawn, even.waiting) == (1500, 1500, 0)
    with pytest.raises(ArmletError, match=r"largest_weight is 9\.0, which a log of actions does not take"):
        gate(path, "uniform", against="uniform", largest_weight=9.0)
    learner = ActionBandit(DX, DZ, policy=armlet.SharedOptimism(), seed=9)
    again = World(1)
    for _ in range(1500):
        x, table = again.step()
        decision = learner.decide(x, table)
        learner.learn(decision, again.reward(x, table, decision.arm))
    with pytest.raises(EvaluationError, match="was trained on them"):
        gate(path, learner)
