"""A row of nonsense that a bandit with a log forgets leaves no trace: the log is learned again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import LostDigitsWarning
from armlet.lost_digits import keeping_rows

POLICIES: dict[str, Any] = {
    "default": armlet.OccasionalOptimism(),
    "LinUCB": armlet.LinUCB(),
    "ThompsonSampling": armlet.ThompsonSampling(),
    "half-life": armlet.LinUCB(half_life=200),
    "SharedOptimism": armlet.SharedOptimism(),
}
pytestmark = pytest.mark.filterwarnings("error::armlet.errors.LostDigitsWarning")


class Life:
    """Decisions of a bandit, with a log if there is a path."""

    def __init__(self, policy: str, path: Path | None, **others: Any) -> None:
        self.log = None if path is None else armlet.Log(path)
        if policy == "SharedOptimism":
            self.bandit: Any = armlet.ActionBandit(2, 2, policy=POLICIES[policy], seed=1, log=self.log)
            self.actions: tuple[Any, ...] = (armlet.ActionTable(["a", "b"], np.eye(2)),)
        else:
            self.bandit = armlet.Bandit(["a", "b"], 2, policy=POLICIES[policy], seed=1, log=self.log, **others)
            self.actions = ()
        self.rng = np.random.default_rng(3)

    def learn(self, x: Any, reward: Any) -> Any:
        decision = self.bandit.decide(x, *self.actions)
        self.bandit.learn(decision, reward)
        return decision

    def play(self, n: int) -> list[Any]:
        return [self.learn(self.rng.normal(size=2), float(self.rng.normal())) for _ in range(n)]

    def expectations(self, bandit: Any = None) -> Any:
        x = [0.3, -0.7] if self.actions else [[0.3, -0.7]]
        return (bandit or self.bandit).predict_expectations(x, *self.actions)

    def check_log(self) -> None:
        """Close the log: it audits, and is resumed in the state of the bandit."""
        assert self.log is not None
        self.log.close()
        assert armlet.audit(self.log, self.log.start_path).status == "ok"
        again: Any = armlet.log.resume(self.log.path, kind=type(self.bandit))
        assert again.digest() == self.bandit.digest()
        assert self.expectations(again).tolist() == self.expectations().tolist()


def rows_of(decisions: list[Any]) -> dict[str, list[Any]]:
    records = [d.to_dict() for d in decisions]
    names = ("t", "x", "z", "arm", "reward", "propensity", "explored")
    return {name: [record[name] for record in records] for name in names if name in records[0]}


@pytest.mark.parametrize("bad", [1e8, 1.8e18])
@pytest.mark.parametrize("at", [0, 60])
@pytest.mark.parametrize("policy", POLICIES)
def test_bandit_learns_its_log_again(tmp_path: Path, policy: str, at: int, bad: float) -> None:
    life, never = Life(policy, tmp_path / "log.jsonl"), Life(policy, None)
    before = life.play(at)
    row = life.learn(np.array([0.1, bad]), 0.5)
    after = life.play(60)
    life.bandit.forget(row, 0.5)
    assert not life.bandit.state.digits_lost.any()
    never.bandit.partial_fit(rows_of([*before, *after]))
    if hasattr(never.bandit.state, "renew"):  # from sums, as after `forget`
        never.bandit.state.renew()
    if hasattr(life.bandit.state, "n"):
        np.testing.assert_allclose(life.bandit.state.n, never.bandit.state.n, rtol=1e-9)
    np.testing.assert_allclose(life.expectations(), never.expectations(), rtol=1e-9, atol=1e-9)
    life.bandit.forget(after[0], after[0].reward)  # of an arm that was emptied, and learned again
    life.play(20)
    life.check_log()


def test_reward_corrected_from_nonsense_is_learned_as_corrected(tmp_path: Path) -> None:
    life, never = Life("LinUCB", tmp_path / "log.jsonl"), Life("LinUCB", None)
    before = life.play(20)
    row = life.learn(np.array([0.1, 0.2]), 1e18)
    life.bandit.correct(row, 1e18, 0.5)
    never.bandit.partial_fit(rows_of([*before, row]))
    never.bandit.state.renew()
    np.testing.assert_allclose(life.expectations(), never.expectations(), rtol=1e-9)
    life.check_log()


def test_outcomes_and_arms_of_a_log_are_learned_again(tmp_path: Path) -> None:
    life = Life("LinUCB", tmp_path / "log.jsonl", outcomes={"gain": 1.0, "cost": -1.0})
    first = life.bandit.decide([0.5, 0.5])
    life.bandit.learn(first, {"gain": 1.0})
    row = life.learn(np.array([0.1, 1e15]), {"gain": 0.1, "cost": 0.2})
    life.bandit.learn(first, {"cost": 0.5})
    life.bandit.add_arm("c")
    others = [life.learn(life.rng.normal(size=2), {"gain": 1.0, "cost": float(i)}) for i in range(20)]
    life.bandit.correct(others[3], others[3].reward, {"gain": 2.0, "cost": 1.0})
    life.bandit.forget(row, row.reward)
    assert life.bandit.state.n.sum() == 21
    life.check_log()


def test_row_from_before_the_log_cannot_be_left_out(tmp_path: Path) -> None:
    plain = Life("LinUCB", None)
    row = plain.learn(np.array([0.1, 1e15]), 0.5)
    plain.play(20)
    bandit = armlet.from_bytes(plain.bandit.to_bytes(), log=armlet.Log(tmp_path / "log.jsonl"))
    with pytest.warns(LostDigitsWarning, match="its log cannot be learned again: .* before the log began"):
        bandit.forget(row, 0.5)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("is_wild", [False, True])
def test_log_may_grow_while_it_is_learned_again(tmp_path: Path, policy: str, is_wild: bool) -> None:
    life, never = Life(policy, tmp_path / "log.jsonl"), Life(policy, None)
    before = life.play(40)
    row = life.learn(np.array([0.1, 1.8e18 if is_wild else 0.2]), 0.5)
    assert life.log is not None
    relearning = life.log.relearning()  # another thread does, which does not keep others from the bandit
    after = life.play(20)
    life.bandit.forget(before[3], before[3].reward)
    life.bandit.correct(after[5], after[5].reward, 1.0)
    keeping_rows(lambda: life.bandit.forget(row, 0.5))
    learned = relearning.finish()
    never.bandit.partial_fit(rows_of([*before[:3], *before[4:], *after]))
    for each in (learned, never.bandit):
        each._state.solve() if life.actions else each.state.renew()
    np.testing.assert_allclose(life.expectations(learned), never.expectations(), rtol=1e-9, atol=1e-9)
    assert learned.t == life.bandit.t
