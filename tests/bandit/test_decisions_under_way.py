"""Decisions under way: counted from decide to learn or expire, kept wherever the state is kept, and of use."""

from __future__ import annotations

import pickle
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
import armlet.log.replaying
from armlet import disk
from armlet.types import Arm, Float64, Policy

K, D = 3, 2


POLICIES: dict[str, Policy | None] = {
    "default": None,
    "LinUCB": armlet.LinUCB(),
    "Thompson": armlet.ThompsonSampling(),
    "auto": armlet.AutoEpsilonGreedy(),
}


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> Policy | None:
    return POLICIES[request.param]


def new(seed: int = 1, **how: Any) -> armlet.Bandit:
    return armlet.Bandit(["a", "b", "c"], D, seed=seed, **how)


def counts(bandit: armlet.Bandit) -> dict[Arm, int]:
    return dict(zip(bandit.arms, bandit.state.under_way.tolist(), strict=True))


def decided(bandit: armlet.Bandit, n: int, seed: int = 5) -> list[armlet.Decision]:
    return [bandit.decide(x) for x in np.random.default_rng(seed).normal(size=(n, D))]


def tally(decisions: list[armlet.Decision]) -> dict[Arm, int]:
    return {arm: sum(d.arm == arm for d in decisions) for arm in ("a", "b", "c")}


# ---- the count


def test_a_decision_is_under_way_until_it_is_learned_or_expired(policy: Policy | None) -> None:
    bandit = new(policy=policy)
    decisions = decided(bandit, 30)
    assert counts(bandit) == tally(decisions)
    bandit.learn(decisions[0], 1.0)
    bandit.learn_many(decisions[1:5], np.ones(4))
    bandit.expire(decisions[5])
    assert counts(bandit) == tally(decisions[6:])
    assert [d.expired for d in decisions[:7]] == [False] * 5 + [True, False]


def test_a_reward_counts_once_in_whatever_order_things_happen(policy: Policy | None) -> None:
    bandit = new(policy=policy)
    decisions = decided(bandit, 12)
    expired, forgotten, rest = decisions[0], decisions[1], decisions[2:]
    bandit.expire(expired)
    bandit.learn(expired, 0.5)  # it came after all
    bandit.learn(forgotten, 0.5)
    bandit.forget(forgotten, 0.5)
    assert forgotten.expired
    bandit.learn(forgotten, 0.25)
    bandit.correct(forgotten, 0.25, 0.75)
    assert counts(bandit) == tally(rest)
    assert [expired.expired, forgotten.expired] == [False, False]


@pytest.mark.parametrize("how", ["learned", "expired", "forgotten", "another's", "no decision"])
def test_what_nobody_waits_for_cannot_be_expired(how: str) -> None:
    bandit = new()
    d: Any = decided(bandit, 2)[0]
    if how == "learned":
        bandit.learn(d, 1.0)
    elif how == "forgotten":
        bandit.learn(d, 1.0)
        bandit.forget(d, 1.0)
    elif how == "expired":
        bandit.expire(d)
    else:
        d = new(seed=2).decide([0.0, 0.0]) if how == "another's" else "12-00"
    before = bandit.digest()
    with pytest.raises(TypeError if how == "no decision" else armlet.errors.DecisionError):
        bandit.expire(d)
    assert bandit.digest() == before


def test_questions_count_nothing(policy: Policy | None) -> None:
    bandit = new(policy=policy)
    decided(bandit, 7)
    before = bandit.digest()
    X = np.ones((5, D))
    bandit.predict(X), bandit.predict_proba(X), bandit.predict_expectations(X)
    with pytest.raises(ValueError, match="eligible leaves no arm"):
        bandit.decide([0.0, 0.0], eligible=[])
    assert bandit.digest() == before


def test_rows_that_others_decided_leave_the_count_alone() -> None:
    bandit = new()
    decisions = decided(bandit, 9)
    X, arms, rewards = np.ones((20, D)), ["a", "b"] * 10, np.arange(20.0)
    bandit.partial_fit(X, arms, rewards)
    rows = {"t": [1, 2], "x": [[1.0, 2.0], [3.0, 4.0]], "arm": ["a", "b"], "reward": [1.0, 2.0]}
    bandit.partial_fit({**rows, "propensity": [1.0, 1.0], "explored": [True, False]})
    assert counts(bandit) == tally(decisions)


def test_a_batch_is_decided_as_one_after_the_other(policy: Policy | None) -> None:
    one, many = new(policy=policy), new(policy=policy)
    for bandit in (one, many):
        for d in decided(bandit, 40, seed=8):
            bandit.learn(d, float(d.x[0]) if d.arm == "a" else 0.0)
    X = np.random.default_rng(9).normal(size=(200, D))
    for bandit in (one, many):
        bandit.add_arm("new")
    singly, batch = [one.decide(x) for x in X], many.decide_many(X)
    assert [repr(d) for d in singly] == [repr(d) for d in batch]
    assert one.digest() == many.digest()
    assert 1 < batch.arms.count("new") < 100


class Spoilt(armlet.OccasionalOptimism):
    """In Python, and refusing some contexts."""

    def rule(self) -> Any:
        return None

    def decide(self, state: Any, t: int, x: Float64, coins: Any, eligible: Any) -> Any:
        if x[0] > 3.0:
            raise ValueError("no such context")
        return super().decide(state, t, x, coins, eligible)


def test_a_batch_that_is_refused_has_nothing_under_way() -> None:
    bandit = new(policy=Spoilt())
    decisions = decided(bandit, 5)
    before = bandit.digest()
    with pytest.raises(ValueError, match="no such context"):
        bandit.decide_many([[0.0, 0.0], [1.0, 1.0], [4.0, 0.0]])
    assert bandit.digest() == before
    assert counts(bandit) == tally(decisions)


# ---- where it is kept


@pytest.mark.parametrize("spoilt", [np.zeros(4, dtype=np.int64), np.zeros(3), np.array([0, 2**60, 0]), None])
def test_a_file_with_counts_that_are_none_is_refused(policy: Policy | None, spoilt: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.armlet"
    new(policy=policy).save(path)
    header, arrays = disk.read_model(path)
    kept = {name: array for name, array in arrays.items() if name != "under_way"}
    disk.write_model(path, header, kept if spoilt is None else {**kept, "under_way": spoilt})
    with pytest.raises(armlet.errors.ModelFileError, match="under_way"):
        armlet.load(path)


def test_a_decision_remembers_that_it_was_expired() -> None:
    bandit = new()
    d, other = decided(bandit, 2)
    bandit.expire(d)
    assert d.to_dict()["expired"] is True
    assert "expired" not in other.to_dict()
    before = counts(bandit)
    for again in (pickle.loads(pickle.dumps(d)), armlet.Decision.from_dict(d.to_dict())):
        assert again.expired
        bandit.learn(again, 1.0)
    assert counts(bandit) == before


def test_arms_take_their_counts_along(policy: Policy | None) -> None:
    bandit = new(policy=policy)
    decisions = decided(bandit, 30)
    bandit.add_arm("d")
    bandit.retire_arm("b")
    bandit.remove_arm("a")
    left = {arm: n for arm, n in tally(decisions).items() if arm != "a"}
    assert counts(bandit) == {**left, "d": 0}
    gone = next(d for d in decisions if d.arm == "a")
    bandit.expire(gone)
    assert counts(bandit) == {**left, "d": 0}
    assert gone.expired


def test_merged_bandits_wait_for_the_rewards_of_both(policy: Policy | None) -> None:
    one, two = new(1, policy=policy), new(2, policy=policy)
    mine, theirs = decided(one, 20), decided(two, 30, seed=6)
    one.merge(two)
    assert counts(one) == tally(mine + theirs)
    for d in theirs:
        one.learn(d, 1.0)
    assert counts(one) == tally(mine)


def test_a_worker_ships_what_it_learned_of_the_model_s_decisions(policy: Policy | None) -> None:
    model = new(policy=policy)
    decisions = decided(model, 30)
    base, worker = model.copy(), model.copy(seed=9)
    for d in decisions[:20]:
        worker.learn(armlet.Decision.from_dict(d.to_dict()), 1.0)
    later, own = decided(model, 10, seed=7), decided(worker, 5, seed=8)
    news = worker.difference(base)
    assert sum(counts(news).values()) == 5 - 20
    model.merge(armlet.from_bytes(news.to_bytes()))
    assert counts(model) == tally(decisions[20:] + later + own)


# ---- the log


def test_a_decision_expired_long_ago_is_not_counted_twice_by_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(armlet.log.replaying, "RECENT", 4)
    path = tmp_path / "decisions.jsonl"
    with armlet.Log(path) as log:
        bandit = new(log=log)
        decisions = decided(bandit, 40)
        bandit.expire(decisions[0])
        decided(bandit, 40)
        bandit.learn(decisions[0], 1.0)
    assert armlet.audit(path, log.start_path).ok


def test_a_decision_that_the_log_refuses_is_not_under_way(tmp_path: Path) -> None:
    with armlet.Log(tmp_path / "decisions.jsonl") as log:
        bandit = new(log=log)
        decisions = decided(bandit, 5)
    for call in (lambda: bandit.decide([0.0, 0.0]), lambda: bandit.decide_many([[0.0, 0.0]] * 9)):
        with pytest.raises(armlet.errors.LogError):
            call()
    assert counts(bandit) == tally(decisions)


# ---- what it is good for


def traffic_of_newcomer(
    policy: Policy | None, seed: int, noise: float, *, delay: int | None, steps: int, dim: int = 5
) -> int:
    """Add a bad arm after 5,000 steps, and count how often it is played; without a delay its rewards never come.

    Features explain most of the rewards if the noise is small, and hardly anything if it is large; a single one is the
    same at every step.
    """
    rng = np.random.default_rng(seed)
    theta, X = rng.normal(size=(4, dim)), rng.normal(size=(5000 + steps, dim))
    noises, X = rng.normal(size=len(X)), X if dim > 1 else np.ones_like(X)
    bandit = armlet.Bandit(range(4), dim, policy=policy, seed=seed)
    pending: deque[tuple[armlet.Decision, float]] = deque()
    played = 0
    for t, x in enumerate(X):
        if t == 5000:
            bandit.add_arm(4)
        d = bandit.decide(x)
        arm = int(d.arm)
        played += arm == 4
        if arm == 4 and delay is None:
            continue
        pending.append((d, float((x @ theta[arm] if arm < 4 else -2.0) + noise * noises[t])))
        if len(pending) > (delay or 0):
            bandit.learn(*pending.popleft())
    return played


@pytest.mark.parametrize(("noise", "dim"), [(0.5, 5), (3.0, 5), (3.0, 1)])
def test_a_newcomer_whose_rewards_are_late_or_lost_does_not_take_the_traffic(
    policy: Policy | None, noise: float, dim: int
) -> None:
    """66 and 75 at most on these seeds; where only rows that came back count, up to all of 1,000 and of 5,000."""
    late = [traffic_of_newcomer(policy, seed, noise, delay=1000, steps=1000, dim=dim) for seed in range(3)]
    lost = [traffic_of_newcomer(policy, seed, noise, delay=None, steps=5000, dim=dim) for seed in range(3)]
    assert max(late) <= 100
    assert max(lost) <= 100


def test_no_arm_is_given_up_where_few_rewards_of_any_arm_ever_come() -> None:
    """A tenth come back. With each decision under way counted as a row to come, seed 0 never hears of an arm."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        bandit = armlet.Bandit(range(3), 2, seed=seed)
        for x in rng.normal(size=(1500, 2)):
            d = bandit.decide(x)
            if rng.random() < 0.1:
                bandit.learn(d, float(int(d.arm) + rng.normal()))
        assert (bandit.state.n > 0).all()
        assert bandit.state.under_way[2] > bandit.state.under_way[:2].max()
