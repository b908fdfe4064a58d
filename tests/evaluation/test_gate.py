"""The gate and the holdout: the right answer, in the sense of the objective, and seldom a wrong one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import cli
from armlet.errors import ArgumentError, DecisionError, EvaluationError
from armlet.evaluation.gate import Holdout, gate
from armlet.evaluation.rows import HeldBlocks, randomized_rows, rows_of


def held(n: int = 3000, objective: str = "max", **columns: Any) -> HeldBlocks:
    rng = np.random.default_rng(0)
    arms = rng.integers(2, size=n)
    rewards = (rng.random(n) < 0.2 + 0.3 * arms).astype(np.float64)
    rows = rows_of(np.ones((n, 1)), arms, rewards, np.full(n, 0.5), **columns)
    return HeldBlocks(rows, ["a", "b"], {"objective": objective, "reward_range": (0.0, 1.0)})


@pytest.mark.parametrize(("objective", "answer"), [("max", "keep"), ("min", "kill")])
@pytest.mark.parametrize("against", ["a", "live"])
def test_the_better_arm_is_kept_and_the_dearer_one_killed(objective: str, answer: str, against: str) -> None:
    assert gate(held(objective=objective), "b", against=against).answer == answer
    back = gate(held(objective=objective), "a", against="b" if against == "a" else "live").answer
    assert {answer, back} == {"keep", "kill"}


def test_few_rows_are_not_enough() -> None:
    found = gate(held(20), "b", against="a")
    assert found.answer == "not yet"
    assert found.gain.low < 0 < found.gain.high


def test_a_candidate_must_gain_what_it_is_worth() -> None:
    assert gate(held(), "b", against="a", worth=0.5).answer == "kill"
    assert gate(held(), "b", against="a", worth=0.3).answer == "not yet"


def test_a_bound_on_weights_narrows_the_gain_and_keeps_its_sign() -> None:
    free, bounded = (gate(held(), "b", against="a", largest_weight=most).gain for most in (None, 2.0))
    assert bounded.high - bounded.low < free.high - free.low
    cost = gate(held(objective="min"), "b", against="a", largest_weight=2.0).gain
    assert (cost.low, cost.high) == pytest.approx((-bounded.high, -bounded.low), abs=1e-9)


def test_only_rows_that_were_drawn_speak_of_the_candidate() -> None:
    n = 400
    explored = np.zeros(n, dtype=np.int8)
    explored[:100] = 1
    turn = np.zeros(n, dtype=np.bool_)
    turn[:10] = True
    blocks = held(n, explored=explored, turn=turn, exploration_propensity=np.full(n, 0.5))
    assert randomized_rows(blocks[0])[0].sum() == 90
    found = gate(blocks, "b", against="a")
    assert (found.rows, found.drawn) == (400, 90)
    assert "10 rows had their turn" in str(found)
    greedy = gate(held(n, explored=np.zeros(n, dtype=np.int8)), "b")
    assert greedy.answer == "not yet"
    assert "No row was drawn by chance" in str(greedy)


def test_rewards_that_have_not_come_are_counted() -> None:
    rows = held(100)[0]
    rows.reward[:30] = np.nan
    found = gate(HeldBlocks(rows, ["a", "b"]), "b", against="a", reward_range=(0, 1))
    assert (found.rows, found.waiting) == (70, 30)


def test_what_no_gate_can_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="reward_range is missing"):
        gate(HeldBlocks(held()[0], ["a", "b"]), "b")
    with pytest.raises(ValueError, match="candidate is 'logged'"):
        gate(held(), "logged")
    with pytest.raises(EvaluationError, match="weight other than 1"):
        gate(held(weight=np.full(3000, 2.0)), "b")


def test_a_candidate_that_was_trained_on_the_log_is_refused() -> None:
    log = held(400)
    rows = log[0]
    candidate = armlet.Bandit(["a", "b"], 1, policy=armlet.Greedy(), seed=1)
    candidate.fit(rows.X, np.array(["a", "b"])[rows.arm], rows.reward)
    with pytest.raises(EvaluationError, match="so it was trained on them"):
        gate(log, candidate)
    candidate.partial_fit([[1.0]], ["a"], [0.0])
    assert gate(log, candidate).rows == 400


def environment(trial: Holdout, steps: int, gain: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        one = trial.decide([1.0])
        trial.learn(one, float(rng.random() < 0.4 + gain * (one.arm == "new")))


def trial(seed: int = 3, **settings: Any) -> Holdout:
    policy = armlet.ContextualEpsilonGreedy(p=20)
    bandit = armlet.Bandit(["old", "new"], 1, policy=policy, seed=seed, reward_range=(0.0, 1.0), **settings)
    return Holdout(bandit, "old", seed=seed)


def test_a_holdout_ramps_and_stops() -> None:
    good = trial()
    assert good.chance == 0.5
    environment(good, 4000, 0.4, 1)
    assert (good.answer, good.chance) == ("keep", 0.0)
    assert good.gain.low > 0
    bad = trial(objective="min")  # the new arm costs more, but the policy learns to leave it alone
    environment(bad, 2000, 0.4, 2)
    assert bad.answer in ("not yet", "kill")


def test_propensities_of_a_holdout_mix_both_players() -> None:
    one = trial()
    shares = {"old": 0, "new": 0}
    for _ in range(400):
        held = one.decide([1.0])
        expected = held.chance * held.baseline_chance + (1 - held.chance) * held.policy_chance
        assert held.propensity == pytest.approx(expected)
        assert (held.decision is None) == (held.player == "baseline")
        shares[str(held.arm)] += 1
    # no reward came, so the policy explores all the time: old is played with 1/2 + 1/4; five standard errors
    assert abs(shares["old"] / 400 - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 400)


def test_the_coins_of_a_holdout_follow_from_its_seed() -> None:
    players = [[trial(seed).decide([1.0]).player for _ in range(1)] + _players(seed) for seed in (3, 3, 4)]
    assert players[0] == players[1] != players[2]


def _players(seed: int) -> list[str]:
    one = trial(seed)
    return [one.decide([1.0]).player for _ in range(60)]


def test_a_reward_counts_once() -> None:
    one = trial()
    held = one.decide([1.0])
    one.learn(held, 1.0)
    with pytest.raises(DecisionError, match="learn each once"):
        one.learn(held, 1.0)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    rng = np.random.default_rng(2)
    with armlet.Log(path) as kept:
        policy = armlet.Algorithm1(p=400, warmup="uniform", units="free")
        bandit = armlet.Bandit(["a", "b"], 1, policy=policy, seed=1, reward_range=(0.0, 1.0), log=kept)
        for _ in range(1000):
            decision = bandit.decide([1.0])
            bandit.learn(decision, float(rng.random() < 0.1 + 0.6 * (decision.arm == "b")))
        bandit.save(tmp_path / "same.armlet")
    new = armlet.Bandit(["a", "b"], 1, policy=armlet.Greedy(), seed=1)
    new.fit(np.ones((40, 1)), ["a", "b"] * 20, [0.0, 1.0] * 20)
    new.save(tmp_path / "new.armlet")
    return path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--candidate", "always:b", "--against", "always:a"], 0),
        (["--candidate", "always:a"], 3),
        (["--candidate", "uniform", "--against", "uniform"], 4),
        (["--candidate", "nobody"], 2),
        (["--candidate", "missing.armlet"], 1),
    ],
)
def test_exit_codes_are_the_answer(log: Path, arguments: list[str], code: int) -> None:
    if code == 0:
        assert cli.main(["gate", str(log), *arguments]) == 0
        return
    with pytest.raises(SystemExit) as ended:
        cli.main(["gate", str(log), *arguments])
    assert ended.value.code == code


def test_the_model_that_learned_the_log_gets_no_answer(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["gate", str(log), "--candidate", str(log.with_name("same.armlet"))])
    assert ended.value.code == 1
    assert "so it was trained on them" in capsys.readouterr().err


def test_the_gate_prints_json(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = log.with_name("new.armlet")
    cli.main(["gate", str(log), "--candidate", str(model), "--against", "always:a", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["answer"] == "keep"
    assert found["gain"][0] > 0


def test_a_candidate_that_plays_otherwise_where_nothing_was_left_to_chance_is_refused() -> None:
    rng, n = np.random.default_rng(3), 1000
    arms, chances = rng.integers(2, size=n), np.full(n, 0.5)
    arms[:100], chances[:100] = 0, 1.0
    feedback = {"action": arms, "reward": np.ones(n), "pscore": chances, "context": np.ones((n, 1))}
    log = armlet.log.from_obp(feedback)
    assert gate(log, 0, reward_range=(0, 1)).rows == n
    for against in ("live", 0):
        with pytest.raises(EvaluationError, match=r"100 rows could not have been otherwise.*plays another arm"):
            gate(log, 1, against=against, reward_range=(0, 1))


def test_a_propensity_too_small_to_weigh_is_refused() -> None:
    feedback = {"action": [0, 1], "reward": [1.0, 1.0], "pscore": [5e-324, 0.5], "context": [[1.0], [1.0]]}
    with pytest.raises(ArgumentError, match=r"propensity of 5e-324 at step 1; .* at most 1 \(1e-100 or more\)"):
        gate(armlet.log.from_obp(feedback), 0, reward_range=(0, 1))
