"""One row of nonsense, learned and forgotten, does not blind a bandit that has no rows to learn again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import DecisionError, LostDigitsWarning
from armlet.types import Float64

POLICIES: dict[str, Any] = {
    "default": None,
    "LinUCB": armlet.LinUCB(),
    "ThompsonSampling": armlet.ThompsonSampling(),
    "SharedOptimism": armlet.SharedOptimism(),
}
NAMES = ["age", "price", "hour"]


class Life:
    """Rows of three arms, whose rewards are linear in three features."""

    def __init__(self, policy: Any, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.theta = self.rng.normal(size=(3, 3))
        if isinstance(policy, armlet.SharedOptimism):
            self.bandit: Any = armlet.ActionBandit(3, 3, features=NAMES, policy=policy, seed=seed)
            self.actions: tuple[Any, ...] = (armlet.ActionTable(list("abc"), np.eye(3)),)
        else:
            more = {} if policy is None else {"policy": policy}
            self.bandit, self.actions = armlet.Bandit(list("abc"), features=NAMES, seed=seed, **more), ()

    def play(self, n: int) -> float:
        """Return how often the best arm is played."""
        best = 0
        for _ in range(n):
            x = self.rng.normal(size=3)
            best += self.learn(x).arm == "abc"[int(np.argmax(self.theta @ x))]
        return best / max(n, 1)

    def learn(self, x: Float64, **how: float) -> Any:
        decision = self.bandit.decide(x, *self.actions)
        reward = float(self.theta["abc".index(decision.arm)] @ np.minimum(x, 9.0)) + 0.1 * float(self.rng.normal())
        self.bandit.learn(decision, reward, **how)
        return decision


@pytest.mark.parametrize("at", [0, 150])
@pytest.mark.parametrize("policy", POLICIES)
def test_bandit_recovers_from_a_time_in_nanoseconds(policy: str, at: int) -> None:
    life = Life(POLICIES[policy], seed=31)
    life.play(at)
    bad = life.learn(np.array([0.1, 1.8e18, 0.2]))
    life.play(5)
    with pytest.warns(LostDigitsWarning, match="16 of 16 of price, so that it was emptied"):
        life.bandit.forget(bad, bad.reward)
    life.play(500)
    assert life.play(300) > 0.95  # without the bad row .97 or more; before arms were emptied .45 to .94


def test_ordinary_outlier_costs_no_digits() -> None:
    life, plain = Life(None, seed=1), Life(None, seed=1)
    life.play(100)
    plain.play(100)
    bad = life.learn(np.array([0.1, 1e3, 0.2]))
    life.bandit.forget(bad, bad.reward)
    assert not life.bandit.state.digits_lost.any()
    np.testing.assert_allclose(life.bandit.state.A, plain.bandit.state.A, rtol=1e-9, atol=1e-9)


def test_state_names_the_digits_that_are_lost() -> None:
    life = Life(armlet.LinUCB(), seed=1)
    life.play(100)
    bad = life.learn(np.array([0.1, 0.3, 1e12]))
    with pytest.warns(LostDigitsWarning, match=f"of arm {bad.arm!r} 16 of 16 of hour"):
        life.bandit.forget(bad, bad.reward)
    expected = np.zeros((3, 5))
    expected["abc".index(bad.arm), 4] = 16
    assert life.bandit.state.digits_lost.tolist() == expected.tolist()
    assert life.bandit.state.n["abc".index(bad.arm)] == 0


def test_row_of_an_emptied_arm_cannot_be_forgotten() -> None:
    life = Life(armlet.LinUCB(), seed=1)
    early = [life.learn(life.rng.normal(size=3)) for _ in range(60)]
    bad = life.learn(np.array([0.1, 0.3, 1e12]))
    with pytest.warns(LostDigitsWarning):
        life.bandit.forget(bad, bad.reward)
    life.play(60)
    gone, kept = (next(d for d in early if (d.arm == bad.arm) is same) for same in (True, False))
    with pytest.raises(DecisionError, match="was removed or emptied after decision"):
        life.bandit.forget(gone, gone.reward)
    life.bandit.forget(kept, kept.reward)


@pytest.mark.parametrize("policy", POLICIES)
def test_huge_weight_that_is_forgotten_is_reported(policy: str) -> None:
    life = Life(POLICIES[policy], seed=1)
    life.play(60)
    bad = life.learn(np.array([0.1, 0.3, 0.2]), weight=1e20)
    with pytest.warns(LostDigitsWarning, match="16 of 16 of n"):
        life.bandit.forget(bad, bad.reward)
    life.play(60)
    x = np.ones(3) if life.actions else np.ones((1, 3))
    assert np.isfinite(life.bandit.predict_expectations(x, *life.actions)).all()
