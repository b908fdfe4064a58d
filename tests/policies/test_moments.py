"""Times that callers name, for policies that forget by time: none may be far from the latest, and forgetting heals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import ArmletError, InvalidValueError
from armlet.policies import Greedy, LinUCB, OccasionalOptimism, ThompsonSampling
from armlet.types import Policy

WEEK = timedelta(days=7)
NOW = datetime(2026, 3, 2, tzinfo=UTC)
POLICIES: list[Policy] = [
    OccasionalOptimism(half_life=WEEK),
    LinUCB(half_life=WEEK),
    ThompsonSampling(half_life=WEEK),
    Greedy(half_life=WEEK, units="as given"),
]


def played(policy: Policy, n: int = 60, start: datetime = NOW) -> armlet.Bandit:
    bandit, rng = armlet.Bandit(["a", "b"], 2, policy=policy, seed=1), np.random.default_rng(1)
    for i in range(n):
        bandit.learn(bandit.decide(rng.normal(size=2), at=start + i * timedelta(hours=1)), float(rng.normal()))
    return bandit


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("away", [timedelta(days=365), timedelta(days=-365), 10.5 * WEEK])
def test_a_time_far_away_is_refused(policy: Policy, away: timedelta) -> None:
    bandit = played(policy)
    before = bandit.digest()
    with pytest.raises(
        InvalidValueError, match=r"at is .* half-lives .*; give the right time, or call bandit.set_time"
    ):
        bandit.decide([1.0, 0.0], at=NOW + away)
    assert bandit.digest() == before
    bandit.set_time(NOW + away)
    bandit.decide([1.0, 0.0], at=NOW + away)


@pytest.mark.parametrize(
    "refused",
    [{"x": [1.0, float("nan")]}, {"x": [1.0]}, {"eligible": ["c"]}, {"t": 1}, {"probabilities": "some"}],
    ids=str,
)
def test_a_refused_decision_leaves_the_time(refused: dict[str, Any]) -> None:
    bandit = played(POLICIES[0])
    before, seen = bandit.digest(), bandit.state.n.tolist()
    with pytest.raises(ArmletError):
        bandit.decide(**{"x": [1.0, 0.0], "at": NOW + 9 * WEEK, **refused})
    assert (bandit.digest(), bandit.state.n.tolist()) == (before, seen)
    with pytest.raises(InvalidValueError, match="a decision must say when it is made"):
        bandit.decide([1.0, 0.0])
    bandit.decide([1.0, 0.0], at=NOW - 2 * WEEK)  # 11 half-lives before the refused time


def test_a_decision_that_no_log_took_leaves_the_time() -> None:
    class Heard:
        is_full = False

        def open(self, *_: object) -> None:
            if self.is_full:
                raise OSError("no space left")

        def on_decision(self, *_: object) -> None:
            self.open()

        on_decisions = on_event = on_events = on_decision

    log: Any = Heard()
    bandit = armlet.Bandit(["a", "b"], 2, policy=POLICIES[0], seed=1, log=log)
    bandit.decide([1.0, 0.0], at=NOW)
    log.is_full = True
    with pytest.raises(OSError, match="no space left"):
        bandit.decide([1.0, 0.0], at=NOW + 9 * WEEK)
    log.is_full = False
    bandit.decide([1.0, 0.0], at=NOW - 2 * WEEK)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_forgetting_a_row_ahead_restores_what_is_seen(policy: Policy) -> None:
    bandit, other = played(policy), played(policy)
    decision = bandit.decide([1.0, 0.5], at=NOW + 9 * WEEK)
    bandit.learn(decision, 3.0)
    bandit.forget(decision, 3.0)
    for each in (bandit, other):
        state: Any = each.state
        state.as_of(0, int((NOW + timedelta(days=3)).timestamp()) // 60)
    np.testing.assert_allclose(bandit.state.n, other.state.n, rtol=1e-9)
    if not isinstance(policy, OccasionalOptimism):
        seen, expected = bandit.state.standard_estimates(), other.state.standard_estimates()
        np.testing.assert_allclose(seen, expected, rtol=1e-9, atol=1e-9)


def test_a_first_time_that_was_wrong_can_be_taken_back() -> None:
    bandit = armlet.Bandit(["a", "b"], 2, policy=POLICIES[1], seed=1)
    wrong = bandit.decide([1.0, 0.5], at=NOW + 300 * WEEK)
    bandit.learn(wrong, 1.0)
    with pytest.raises(InvalidValueError, match=r"300\.0 half-lives before the latest"):
        bandit.decide([1.0, 0.5], at=NOW)
    bandit.forget(wrong, 1.0)
    bandit.set_time(NOW)
    bandit.learn(bandit.decide([1.0, 0.5], at=NOW), 1.0)
    assert bandit.state.n.sum() == pytest.approx(1.0, abs=0.02)
    with pytest.raises(InvalidValueError, match=r"decision .* was made 300\.0 half-lives after"):
        bandit.learn(armlet.Decision.from_dict({**wrong.to_dict(), "reward": None}), 1.0)


def test_rows_of_elsewhere_are_held_to_the_same_rule() -> None:
    bandit, ahead = played(POLICIES[1]), played(POLICIES[1], start=NOW + 60 * WEEK)
    decision = played(POLICIES[1], 0).decide([1.0, 0.5], at=NOW + 60 * WEEK)
    record = {**decision.to_dict(), "reward": 1.0}
    names = ("t", "x", "arm", "reward", "propensity", "explored", "tag")
    table = {name: [record[name], record[name]] for name in names}
    table["tag"] = [int(NOW.timestamp()) // 60, table["tag"][0]]
    before = bandit.digest()
    with pytest.raises(ArmletError, match="half-lives after the latest"):
        bandit.partial_fit(table)
    with pytest.raises(ArmletError, match="half-lives after the latest"):
        bandit.merge(ahead)
    assert bandit.digest() == before
    bandit.set_time(NOW + 60 * WEEK)
    bandit.merge(ahead)


def test_rows_of_any_order_need_no_order_in_time() -> None:
    """Years of rows, shuffled: there is no gap of ten half-lives between them."""
    rng, n = np.random.default_rng(2), 200
    minutes = rng.permutation(n) * 10_080 + 29_000_000
    columns = {"t": range(1, n + 1), "x": rng.normal(size=(n, 2)), "arm": ["a"] * n, "reward": [1.0] * n}
    bandit = played(POLICIES[1], 0)
    bandit.partial_fit({**columns, "propensity": [1.0] * n, "explored": [True] * n, "tag": minutes})
    assert bandit.state.n.sum() == pytest.approx(2.0, rel=0.02)


def test_a_log_with_a_pause_is_played_again(tmp_path: Path) -> None:
    start = played(POLICIES[1], 0).to_bytes()
    with armlet.Log(tmp_path / "log.jsonl") as log:
        bandit = armlet.from_bytes(start, log=log)
        first = bandit.decide([1.0, 0.0], at=NOW)
        bandit.set_time(NOW + 40 * WEEK)
        bandit.learn(bandit.decide([0.0, 1.0], at=NOW + 40 * WEEK), 1.0)
        bandit.learn(first, 0.5)
        other = played(POLICIES[1], start=NOW + 60 * WEEK)
        bandit.set_time(NOW + 60 * WEEK)
        bandit.merge(other)
    audit = armlet.audit(tmp_path / "log.jsonl", start)
    assert (audit.ok, audit.digest) == (True, bandit.digest())
