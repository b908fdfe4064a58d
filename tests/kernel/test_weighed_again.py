"""Rows learned, merged, corrected and forgotten leave the estimates of the rows that remain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet.types import Float64
from support.examples import scaled

ARMS = ["a", "b", "c"]
DIM = 4
POLICIES: dict[str, Any] = {
    "default": armlet.OccasionalOptimism(),
    "as given": armlet.OccasionalOptimism(units="as given"),
    "LinUCB": armlet.LinUCB(),
    "ThompsonSampling": armlet.ThompsonSampling(),
}
STEPS = ("learn", "partial_fit", "merge", "merge_none", "forget", "correct")


def make(policy: str, seed: int = 1) -> armlet.Bandit:
    return armlet.Bandit(ARMS, DIM, policy=POLICIES[policy], seed=seed)


class Life:
    """A bandit, and next to it the rows that it should have learned."""

    def __init__(self, policy: str, seed: int) -> None:
        self.policy, self.bandit, self.rng = policy, make(policy), np.random.default_rng(seed)
        self.learned: list[tuple[armlet.Decision, Float64, str, float]] = []  # one by one, so that they can be undone
        self.others: list[tuple[Float64, str, float]] = []

    def _rows(self, n: int) -> list[tuple[Float64, str, float]]:
        X = self.rng.normal(size=(n, DIM)) * [0.1, 1.0, 10.0, 3.0] + [0.0, 5.0, -3.0, 1.0]
        arms = self.rng.integers(len(ARMS), size=n)
        rewards = X @ [1.0, 0.3, -0.1, 0.0] + arms * X[:, 3] + self.rng.normal(size=n)
        return [(x, ARMS[arm], float(r)) for x, arm, r in zip(X, arms, rewards, strict=True)]

    def learn(self, n: int) -> None:
        for x, arm, reward in self._rows(n):
            decision = self.bandit.decide(x, eligible=[arm])
            self.bandit.learn(decision, reward)
            self.learned.append((decision, x, arm, reward))

    def partial_fit(self, n: int) -> None:
        rows = self._rows(n)
        self.bandit.partial_fit(*columns(rows))
        self.others += rows

    def merge(self, n: int) -> None:
        rows, worker = self._rows(n), make(self.policy, seed=int(self.rng.integers(2**40)))
        worker.partial_fit(*columns(rows))
        self.bandit.merge(worker)
        self.others += rows

    def merge_none(self, _: int) -> None:
        self.bandit.merge(make(self.policy, seed=int(self.rng.integers(2**40))))

    def forget(self, n: int) -> None:
        for _ in range(min(n, len(self.learned))):
            decision, _, _, reward = self.learned.pop(int(self.rng.integers(len(self.learned))))
            self.bandit.forget(decision, reward)

    def correct(self, n: int) -> None:
        for place in self.rng.permutation(len(self.learned))[:n].tolist():
            decision, x, arm, reward = self.learned[place]
            self.bandit.correct(decision, reward, -reward)
            self.learned[place] = (decision, x, arm, -reward)

    def check(self) -> None:
        """The last step has weighed everything again."""
        rows = [row[1:] for row in self.learned] + self.others
        whole, X = make(self.policy, seed=2), np.random.default_rng(1).normal(size=(8, DIM)) * 3.0
        if rows:
            whole.partial_fit(*columns(rows))
        expected = whole.predict_expectations(X)
        np.testing.assert_allclose(
            self.bandit.predict_expectations(X), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
        )


def columns(rows: list[tuple[Float64, str, float]]) -> tuple[Any, Any, Any]:
    x, arms, rewards = zip(*rows, strict=True)
    return np.stack(x), list(arms), list(rewards)


lives = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 30)), min_size=1, max_size=6)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=scaled(60), deadline=None)
@given(lives, st.sampled_from(["partial_fit", "merge", "merge_none"]), st.integers(0, 2**32))
def test_estimates_are_those_of_remaining_rows(policy: str, steps: list[tuple[str, int]], last: str, seed: int) -> None:
    life = Life(policy, seed)
    for step, n in [*steps, (last, 3)]:
        getattr(life, step)(n)
    life.check()


@pytest.mark.parametrize("policy", POLICIES)
def test_forgetting_most_rows_leaves_the_others(policy: str) -> None:
    life = Life(policy, 3)
    life.learn(300)
    life.correct(20)
    life.forget(270)
    life.check()


@pytest.mark.parametrize("policy", POLICIES)
def test_merged_workers_have_one_bandits_estimates(policy: str) -> None:
    life = Life(policy, 4)
    for _ in range(4):
        life.merge(250)
    life.check()


@pytest.mark.parametrize("policy", POLICIES)
def test_an_empty_merge_changes_no_estimate(policy: str) -> None:
    life = Life(policy, 5)
    life.partial_fit(500)
    X = np.random.default_rng(1).normal(size=(8, DIM))
    before = life.bandit.predict_expectations(X)
    life.bandit.merge(make(policy, seed=9))
    np.testing.assert_array_equal(life.bandit.predict_expectations(X), before)


@pytest.mark.parametrize("dim", [3, 70])
def test_looking_in_between_changes_no_bit(dim: int) -> None:
    """What is put off is solved by the first look, or before the next row."""
    rng = np.random.default_rng(2)
    looked, blind = (armlet.Bandit(ARMS, dim, seed=1) for _ in range(2))
    decisions: list[list[armlet.Decision]] = []
    for i in range(80):
        x, reward = rng.normal(size=dim), float(rng.normal())
        pair = [bandit.decide(x, eligible=[ARMS[i % 3]]) for bandit in (looked, blind)]
        for bandit, decision in zip((looked, blind), pair, strict=True):
            bandit.learn(decision, reward)
        decisions.append(pair)
        for step in ("forget", "correct", "partial_fit") if i % 20 == 19 else ():
            X, old = rng.normal(size=(5, dim)), decisions[-9 if step == "forget" else -5]
            for bandit, decision in zip((looked, blind), old, strict=True):
                if step == "forget":
                    bandit.forget(decision, decision.reward)
                elif step == "correct":
                    bandit.correct(decision, decision.reward, 2.0)
                else:
                    bandit.partial_fit(X, ARMS[:2] * 2 + ["a"], np.arange(5.0))
            looked.predict_proba(X)
    assert looked.digest() == blind.digest()


class Pairs:
    """The same of a bandit among actions."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.Z = self.rng.normal(size=(9, 2)) * [1.0, 5.0]
        self.table = {f"film {i}": z.tolist() for i, z in enumerate(self.Z)}
        self.bandit = armlet.ActionBandit(2, 2, seed=1)
        self.learned: list[tuple[armlet.ActionDecision, float]] = []
        self.others: list[tuple[Float64, int, float]] = []

    def _reward(self, x: Float64, place: int) -> float:
        return float(x[0] * self.Z[place, 0] + place % 3 + 0.3 * self.rng.normal())

    def _rows(self, n: int) -> list[tuple[Float64, int, float]]:
        rows = [(self.rng.normal(size=2) + 2.0, int(self.rng.integers(9))) for _ in range(n)]
        return [(x, place, self._reward(x, place)) for x, place in rows]

    def _columns(self, rows: list[tuple[Float64, int, float]]) -> dict[str, Any]:
        x, places, rewards = zip(*rows, strict=True)
        return {"x": x, "z": self.Z[list(places)], "arm": [f"film {i}" for i in places], "reward": rewards}

    def learn(self, n: int) -> None:
        for x, place, reward in self._rows(n):
            decision = self.bandit.decide(x, self.table, eligible=[f"film {place}"])
            self.bandit.learn(decision, reward)
            self.learned.append((decision, reward))

    def partial_fit(self, n: int) -> None:
        rows = self._rows(n)
        self.bandit.partial_fit(self._columns(rows))
        self.others += rows

    def merge(self, n: int) -> None:
        rows, worker = self._rows(n), armlet.ActionBandit(2, 2, seed=int(self.rng.integers(2**40)))
        worker.partial_fit(self._columns(rows))
        self.bandit.merge(worker)
        self.others += rows

    def merge_none(self, _: int) -> None:
        self.bandit.merge(armlet.ActionBandit(2, 2, seed=int(self.rng.integers(2**40))))

    def forget(self, n: int) -> None:
        for _ in range(min(n, len(self.learned))):
            decision, reward = self.learned.pop(int(self.rng.integers(len(self.learned))))
            self.bandit.forget(decision, reward)

    def correct(self, n: int) -> None:
        for place in self.rng.permutation(len(self.learned))[:n].tolist():
            decision, reward = self.learned[place]
            self.bandit.correct(decision, reward, -reward)
            self.learned[place] = (decision, -reward)

    def check(self) -> None:
        """The last step has weighed everything again."""
        rows = [(d.x, int(str(d.arm)[5:]), reward) for d, reward in self.learned] + self.others
        whole = armlet.ActionBandit(2, 2, seed=2)
        if rows:
            whole.partial_fit(self._columns(rows))
        for x in np.random.default_rng(1).normal(size=(4, 2)):
            expected = whole.predict_expectations(x, self.table)
            size = 1e-9 * np.abs(expected).max()
            np.testing.assert_allclose(self.bandit.predict_expectations(x, self.table), expected, rtol=1e-9, atol=size)


@settings(max_examples=scaled(60), deadline=None)
@given(lives, st.sampled_from(["partial_fit", "merge", "merge_none"]), st.integers(0, 2**32))
def test_estimates_of_actions_are_those_of_remaining_rows(steps: list[tuple[str, int]], last: str, seed: int) -> None:
    life = Pairs(seed)
    for step, n in [*steps, (last, 3)]:
        getattr(life, step)(n)
    life.check()


@pytest.mark.parametrize("left", [100, 30, 10, 3])
def test_forgetting_most_rows_of_actions_leaves_the_others(left: int) -> None:
    life = Pairs(3)
    life.learn(300)
    life.correct(20)
    life.forget(300 - left)
    life.check()
