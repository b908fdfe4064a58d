"""A call that is refused leaves everything as it was: state, clock, arms and the next decisions, in every policy.

Each case plays the same history into two bandits, makes a bad call to one, and asks that nobody can tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

import armlet
from armlet.errors import ArmletError
from armlet.types import Policy
from support.alike import DIM, N_ARMS, STEPS, assert_alike, assert_same, contexts, fair
from support.policies import every_policy

pytestmark = pytest.mark.spread

REFUSALS = (ArmletError, ValueError, TypeError, KeyError, IndexError)

Refusal: TypeAlias = Callable[[armlet.Bandit], object]


def unfair(policy: Policy) -> float:
    """Return a number that no policy takes: nan, or one beyond what it is defined for."""
    if policy.rewards == "binary":
        return 0.5
    return float(policy.reward_range[1] + 1.0) if policy.rewards == "bounded" else float("nan")  # type: ignore[attr-defined]


def played(policy: Policy, seed: int = 3) -> armlet.Bandit:
    """Make a bandit with a past: decisions, rewards, and a retired arm."""
    bandit = armlet.Bandit([f"arm {i}" for i in range(N_ARMS)], DIM, policy=policy, seed=seed)
    for step, x in enumerate(contexts(STEPS)):
        if step == STEPS // 2:
            bandit.retire_arm("arm 1")
        bandit.learn(bandit.decide(x), fair(policy, step))
    return bandit


def assert_refused(policy: Policy, bad: Refusal) -> None:
    bandit, twin = played(policy), played(policy)
    with pytest.raises(REFUSALS):
        bad(bandit)
    assert_same(bandit, twin)


def rows(bandit: armlet.Bandit, at: int, value: float, n: int = 5) -> dict[str, Any]:
    """Return a log of which one row has another reward."""
    rewards = [fair(bandit.policy, step) for step in range(n)]
    rewards[at] = value
    return {"X": contexts(n, seed=4), "arms": ["arm 0", "arm 2", "arm 3", "arm 0", "arm 2"], "rewards": rewards}


# ---- what every policy refuses

ALWAYS: dict[str, Refusal] = {
    "a context of the wrong length": lambda b: b.decide([1.0] * (DIM + 1)),
    "a context with nan": lambda b: b.decide([1.0, float("nan"), 0.0]),
    "contexts with nan in the middle": lambda b: b.decide_many([[1.0] * DIM, [float("nan")] * DIM, [1.0] * DIM]),
    "no arm eligible": lambda b: b.decide([1.0] * DIM, eligible=["arm 1"]),
    "an unknown arm eligible": lambda b: b.decide([1.0] * DIM, eligible=["arm 9"]),
    "an unknown arm eligible in a read": lambda b: b.predict_proba([[1.0] * DIM], eligible=["arm 9"]),
    "what is no decision": lambda b: b.learn("a decision", 1.0),  # type: ignore[arg-type]
    "decisions that are none": lambda b: b.learn_many([1, 2], [0.0, 0.0]),  # type: ignore[list-item]
    "a log of an unknown arm": lambda b: b.partial_fit(
        **{**rows(b, 0, 0.0), "arms": ["arm 0", "arm 2", "arm 9", "arm 0", "arm 2"]}, explored=False
    ),
    "a log with too few rewards": lambda b: b.partial_fit(**{**rows(b, 0, 0.0), "rewards": [0.0, 1.0]}, explored=False),
    "a log with a negative weight": lambda b: b.partial_fit(
        **rows(b, 0, 0.0), explored=False, weights=[1.0, 1.0, -1.0, 1.0, 1.0]
    ),
    "a log with nan in the middle": lambda b: b.partial_fit(**rows(b, 2, float("nan")), explored=False),
    "a fit with nan in the middle": lambda b: b.fit(**rows(b, 2, float("nan")), explored=False),
    "an arm that is there": lambda b: b.add_arm("arm 2"),
    "a label that is none": lambda b: b.add_arm(1.5),  # type: ignore[arg-type]
    "an arm to retire that is not there": lambda b: b.retire_arm("arm 9"),
    "an arm to restore that is not there": lambda b: b.restore_arm("arm 9"),
    "an arm to remove that is not there": lambda b: b.remove_arm("arm 9"),
    "what is no bandit": lambda b: b.merge("a bandit"),  # type: ignore[arg-type]
    "a bandit with another policy": lambda b: b.merge(
        armlet.Bandit(b.arms, DIM, policy=armlet.FixedEpsilon(epsilon=0.125), seed=1)
    ),
    "a bandit of costs": lambda b: b.merge(armlet.Bandit(b.arms, DIM, policy=b.policy, objective="min", seed=1)),
    "a bandit with other features": lambda b: b.merge(
        armlet.Bandit(b.arms, DIM, policy=b.policy, features=["u", "v", "w"], seed=1)
    ),
}


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_refused_calls_change_nothing(policy: Policy) -> None:
    bandit, twin = played(policy), played(policy)
    for name, bad in ALWAYS.items():
        with pytest.raises(REFUSALS):
            bad(bandit)
        assert_alike(bandit, twin, name)
    assert_same(bandit, twin)


# ---- the same with a decision that is waiting for its reward

WITH_A_DECISION: dict[str, Callable[[armlet.Bandit, armlet.Decision], object]] = {
    "a reward of nan": lambda b, d: b.learn(d, float("nan")),
    "a reward without bound": lambda b, d: b.learn(d, float("inf")),
    "a reward that is no number": lambda b, d: b.learn(d, "high"),  # type: ignore[arg-type]
    "no reward": lambda b, d: b.learn(d, None),  # type: ignore[arg-type]
    "a reward that the policy is not defined for": lambda b, d: b.learn(d, unfair(b.policy)),
    "a negative weight": lambda b, d: b.learn(d, fair(b.policy, 0), weight=-1.0),
    "a weight of nan": lambda b, d: b.learn(d, fair(b.policy, 0), weight=float("nan")),
    "a correction of what was not learned": lambda b, d: b.correct(d, 0.0, 1.0),
    "forgetting what was not learned": lambda b, d: b.forget(d, 0.0),
    "one decision twice": lambda b, d: b.learn_many([d, d], [fair(b.policy, 0)] * 2),
}


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_refused_rewards_change_nothing_and_the_decision_can_be_learned(policy: Policy) -> None:
    bandit, twin, x = played(policy), played(policy), contexts(1, seed=7)[0]
    decision, same = bandit.decide(x), twin.decide(x)
    for name, bad in WITH_A_DECISION.items():
        with pytest.raises(REFUSALS):
            bad(bandit, decision)
        assert not decision.learned, name
        assert_alike(bandit, twin, name)
    for one, made in ((bandit, decision), (twin, same)):
        one.learn(made, fair(policy, 1))
    assert_same(bandit, twin)


AFTER_LEARNING: dict[str, Callable[[armlet.Bandit, armlet.Decision], object]] = {
    "learning a second time": lambda b, d: b.learn(d, fair(b.policy, 1)),
    "a correction of another reward": lambda b, d: b.correct(d, fair(b.policy, 1) + 1.0, fair(b.policy, 2)),
    "forgetting another reward": lambda b, d: b.forget(d, fair(b.policy, 1) + 1.0),
    "a correction to what the policy is not defined for": lambda b, d: b.correct(
        d, fair(b.policy, 1), unfair(b.policy)
    ),
}


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_refused_second_thoughts_change_nothing(policy: Policy) -> None:
    bandit, twin, x = played(policy), played(policy), contexts(1, seed=7)[0]
    decision = bandit.decide(x)
    bandit.learn(decision, fair(policy, 1))
    twin.learn(twin.decide(x), fair(policy, 1))
    for name, bad in AFTER_LEARNING.items():
        with pytest.raises(REFUSALS):
            bad(bandit, decision)
        assert decision.learned, name
        assert_alike(bandit, twin, name)
    waiting = bandit.decide(x)
    twin.decide(x)
    with pytest.raises(REFUSALS):
        bandit.learn_many([waiting, decision], [fair(policy, 1)] * 2)
    assert not waiting.learned
    assert_same(bandit, twin)


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_what_left_with_its_arm_is_not_taken_back_or_changed(policy: Policy) -> None:
    pair = played(policy), played(policy)
    decisions = [bandit.decide(contexts(1, seed=7)[0]) for bandit in pair]
    for bandit, decision in zip(pair, decisions, strict=True):
        bandit.learn(decision, fair(policy, 1))
        try:
            bandit.remove_arm(decision.arm)
            bandit.add_arm(decision.arm)
        except ValueError:  # for a fixed set of arms
            return
    with pytest.raises(REFUSALS):
        pair[0].forget(decisions[0], fair(policy, 1))
    with pytest.raises(REFUSALS):
        pair[0].correct(decisions[0], fair(policy, 1), fair(policy, 3))
    assert_same(*pair)


# ---- batches with one bad row in the middle


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_a_batch_of_rewards_with_one_that_is_refused_is_not_learned(policy: Policy) -> None:
    bandit, twin, X = played(policy), played(policy), contexts(5, seed=8)
    decisions = list(bandit.decide_many(X))
    twin.decide_many(X)
    rewards = [fair(policy, step) for step in range(5)]
    rewards[2] = unfair(policy)
    with pytest.raises(REFUSALS):
        bandit.learn_many(decisions, rewards)
    assert not any(decision.learned for decision in decisions)
    assert_same(bandit, twin)


@pytest.mark.parametrize("call", ["partial_fit", "fit"])
@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_a_log_with_one_row_that_is_refused_is_not_learned(policy: Policy, call: str) -> None:
    def bad(bandit: armlet.Bandit) -> None:
        # policies that learn from their own explored steps only need not look at the reward of any other
        getattr(bandit, call)(**rows(bandit, 2, unfair(policy)), explored=[False, False, True, False, False])

    assert_refused(policy, bad)


def whole_rows_only() -> list[Policy]:
    return [policy for policy in every_policy() if isinstance(policy, armlet.ContextualUCB)]


@pytest.mark.parametrize("policy", whole_rows_only(), ids=repr)
def test_a_log_with_a_weight_that_is_refused_is_not_learned(policy: Policy) -> None:
    assert_refused(policy, lambda b: b.partial_fit(**rows(b, 0, 0.0), explored=True, weights=[1.0, 2.0, 0.5, 1.0, 1.0]))


# ---- what some policies refuse


def outcome(bandit: armlet.Bandit, twin: armlet.Bandit, call: Refusal) -> str:
    """Try a call that some policies refuse; if refused, nothing may have changed."""
    try:
        call(bandit)
    except REFUSALS:
        assert_same(bandit, twin)
        return "refused"
    return "done"


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_forgetting_is_done_or_changes_nothing(policy: Policy) -> None:
    bandit, twin, x = played(policy), played(policy), contexts(1, seed=7)[0]
    decision = bandit.decide(x)
    bandit.learn(decision, fair(policy, 1))
    twin.learn(twin.decide(x), fair(policy, 1))
    done = outcome(bandit, twin, lambda b: b.forget(decision, fair(policy, 1))) == "done"
    assert decision.learned != done


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_a_correction_is_done_or_changes_nothing(policy: Policy) -> None:
    bandit, twin, x = played(policy), played(policy), contexts(1, seed=7)[0]
    decision = bandit.decide(x)
    bandit.learn(decision, fair(policy, 1))
    twin.learn(twin.decide(x), fair(policy, 1))
    done = outcome(bandit, twin, lambda b: b.correct(decision, fair(policy, 1), fair(policy, 3))) == "done"
    assert decision.reward == fair(policy, 3 if done else 1)


@pytest.mark.parametrize("arms", [["arm 0", "new"], ["new", "newer", "arm 3"], ["arm 0", "arm 1", "arm 2", "arm 3"]])
@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_a_merge_is_done_or_changes_nothing(policy: Policy, arms: list[str]) -> None:
    bandit, twin = played(policy), played(policy)
    try:
        other = armlet.Bandit(arms, DIM, policy=policy, seed=9)
    except ValueError:  # an oracle knows how many arms there are
        assert isinstance(policy, armlet.Oracle)
        return
    for step, x in enumerate(contexts(10, seed=6)):
        other.learn(other.decide(x), fair(policy, step))
    other.retire_arm(arms[0])
    if outcome(bandit, twin, lambda b: b.merge(other)) == "done":
        assert bandit.t == twin.t + other.t
        assert set(bandit.arms) == set(twin.arms) | set(arms)


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_arms_come_and_go_or_nothing_changes(policy: Policy) -> None:
    bandit, twin = played(policy), played(policy)
    if outcome(bandit, twin, lambda b: b.add_arm("new")) == "done":
        assert bandit.arms == [*twin.arms, "new"]
    bandit, twin = played(policy), played(policy)
    if outcome(bandit, twin, lambda b: b.remove_arm("arm 2")) == "done":
        assert bandit.arms == ["arm 0", "arm 1", "arm 3"]


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_the_last_arm_to_play_stays(policy: Policy) -> None:
    bandit, twin = played(policy), played(policy)
    for one in (bandit, twin):
        one.retire_arm("arm 0")
        one.retire_arm("arm 3")
    for call in (bandit.retire_arm, bandit.remove_arm):
        with pytest.raises(ValueError, match="is the only one left to play"):
            call("arm 2")
    assert_same(bandit, twin)


# ---- states by themselves


def damages(array: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Return arrays that cannot be this one: of another shape, and without numbers."""
    bad = [np.zeros((*array.shape, 2), dtype=array.dtype), array[None]]
    if array.dtype == np.float64 and array.size:
        bad.append(np.full_like(array, np.nan))
    return bad


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_a_state_that_refuses_arrays_keeps_its_own(policy: Policy) -> None:
    bandit, twin, other = played(policy), played(policy), played(policy, seed=4)
    arrays = other.state.arrays()
    for name in arrays:
        for bad in damages(arrays[name]):
            with pytest.raises(REFUSALS):
                bandit.state.restore_arrays({**arrays, name: bad})
        with pytest.raises(KeyError):
            bandit.state.restore_arrays({other: array for other, array in arrays.items() if other != name})
    assert_same(bandit, twin)


@pytest.mark.parametrize("into", [[0, 1, 2, 9], [0, 1, 2]])
@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_a_state_that_refuses_another_stays_as_it_was(policy: Policy, into: list[int]) -> None:
    bandit, twin, other = played(policy), played(policy), played(policy, seed=4)
    with pytest.raises(REFUSALS):
        bandit.state.merge(other.state, into)
    assert_same(bandit, twin)


# ---- files


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_a_bandit_outlives_a_file_that_is_damaged(policy: Policy, tmp_path: Path) -> None:
    bandit, twin, path = played(policy), played(policy), tmp_path / "model.armlet"
    bandit.save(path)
    whole = path.read_bytes()
    for damaged in (b"", whole[:20], whole[:-1], whole[:60] + b"?" + whole[61:], whole + b"x"):
        path.write_bytes(damaged)
        with pytest.raises(armlet.errors.ModelFileError):
            armlet.load(path)
    assert_same(bandit, twin)


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_a_file_that_cannot_be_written_leaves_the_old_one(policy: Policy, tmp_path: Path) -> None:
    bandit, twin, path = played(policy), played(policy), tmp_path / "model.armlet"
    bandit.save(path)
    whole = path.read_bytes()
    with pytest.raises(OSError, match="folder"):
        bandit.save(tmp_path / "no folder" / "model.armlet")
    assert path.read_bytes() == whole
    assert_same(bandit, twin)
