"""Rewards outside of a declared range are refused at the border, and the clock ends where it must."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Algorithm1, Bandit, Policy
from armlet.policies.fixed_epsilon import FixedEpsilon
from support.recorder import Notebook

POLICIES: list[Policy] = [Algorithm1(p=100), FixedEpsilon()]
WILD: dict[str, Callable[[Bandit, float], object]] = {
    "learn": lambda bandit, r: bandit.learn(bandit.decide([1.0]), r),
    "learn_many": lambda bandit, r: bandit.learn_many(bandit.decide_many([[1.0]] * 3), [0.5, r, 0.5]),
    "partial_fit": lambda bandit, r: bandit.partial_fit([[1.0]] * 3, ["a"] * 3, [0.5, r, 0.5], explored=True),
    "fit": lambda bandit, r: bandit.fit([[1.0]] * 3, ["a"] * 3, [0.5, r, 0.5], explored=True),
}


@pytest.mark.parametrize("policy", POLICIES, ids=["compiled", "python"])
@pytest.mark.parametrize("call", WILD)
@pytest.mark.parametrize("wild", [1e20, -0.001, 10.001])
def test_wild_reward_is_refused_and_leaves_no_trace(policy: Policy, call: str, wild: float) -> None:
    bandit = Bandit(["a", "b"], 1, policy=policy, reward_range=(0, 10), seed=1)
    WILD[call](bandit, 10.0)
    before = bandit.state.arrays()
    with pytest.raises(ValueError, match=r"reward is .* but reward_range is \(0\.0, 10\.0\)"):
        WILD[call](bandit, wild)
    assert all(np.array_equal(before[name], found) for name, found in bandit.state.arrays().items())


def test_wild_correction_is_refused() -> None:
    bandit = Bandit(["a", "b"], 1, policy=Algorithm1(p=100), reward_range=(0, 1), seed=1)
    bandit.learn(decision := bandit.decide([1.0]), 0.5)
    before = bandit.to_bytes()
    with pytest.raises(ValueError, match=r"reward is 7\.0 but reward_range is"):
        bandit.correct(decision, 0.5, 7.0)
    assert (bandit.to_bytes(), decision.reward) == (before, 0.5)


def test_range_is_kept_in_files_and_copies() -> None:
    bandit = Bandit(["a", "b"], 1, policy=armlet.LinUCB(), reward_range=[-1, 2], seed=1)  # type: ignore[arg-type]
    assert bandit.settings.reward_range == (-1.0, 2.0)
    for twin in (armlet.from_bytes(bandit.to_bytes()), bandit.copy()):
        assert twin.settings.reward_range == (-1.0, 2.0)
        with pytest.raises(ValueError, match="but reward_range is"):
            twin.learn(twin.decide([1.0]), 3.0)


@pytest.mark.parametrize("wrong", [(1, 0), (0, 0), (0,), "01", 5, (0, float("nan")), (0, float("inf"))])
def test_range_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"reward_range is .*; give \(lowest, highest\)"):
        Bandit(["a", "b"], 1, policy=armlet.LinUCB(), reward_range=wrong)


# ---- replaced


def test_a_range_is_replaced_from_now_on() -> None:
    notebook = Notebook()
    bandit = Bandit(["a", "b"], 1, policy=armlet.LinUCB(), reward_range=(0, 1), seed=1, log=notebook)
    pending, records = bandit.decide([1.0]), bandit.state.records()
    with pytest.raises(ValueError, match=r"reward is 2\.0 but reward_range is .*replace\(reward_range="):
        bandit.learn(pending, 2.0)
    bandit.replace(reward_range=(-1, 5))
    assert bandit.settings.reward_range == armlet.from_bytes(bandit.to_bytes()).settings.reward_range == (-1.0, 5.0)
    assert bandit.state.records().tobytes() == records.tobytes()
    assert notebook.events[-1] == {"kind": "replace", "reward_range": [-1.0, 5.0]}
    bandit.learn(pending, 2.0)
    bandit.replace(reward_range=(0, 1))
    with pytest.raises(ValueError, match=r"reward is 2\.0 but reward_range is \(0\.0, 1\.0\)"):
        bandit.learn(bandit.decide([1.0]), 2.0)
    bandit.correct(pending, 2.0, 0.5)  # what was learned before may lie outside


@pytest.mark.parametrize("wrong", [(1, 0), "01", (0, float("inf"))])
def test_a_range_that_is_none_replaces_nothing(wrong: Any) -> None:
    bandit = Bandit(["a", "b"], 1, policy=armlet.LinUCB(), reward_range=(0, 1), seed=1)
    with pytest.raises(ValueError, match=r"reward_range is .*; give \(lowest, highest\)"):
        bandit.replace(reward_range=wrong)
    assert bandit.settings.reward_range == (0.0, 1.0)


def test_a_range_stays_within_that_of_the_policy() -> None:
    bandit = Bandit(["a", "b"], 1, policy=Bounded(), seed=1)
    bandit.replace(reward_range=(0.0, 0.5))
    with pytest.raises(ValueError, match=r"reward_range is \(0\.0, 2\.0\), but Bounded learns from 0\.0 to 1\.0 only"):
        bandit.replace(reward_range=(0.0, 2.0))
    assert bandit.settings.reward_range == (0.0, 0.5)


class Bounded(FixedEpsilon):
    """Epsilon-greedy that learns from 0 to 1 only."""

    reward_range = (0.0, 1.0)


# ---- the clock

END = 2**63 - 1


def at(t: int, policy: Policy | None = None, seed: int = 1) -> Bandit:
    bandit = Bandit(["a", "b"], 1, policy=policy or armlet.LinUCB(), seed=seed)
    bandit._advance(t)
    return bandit


@pytest.mark.parametrize("policy", [armlet.LinUCB(), FixedEpsilon()], ids=["compiled", "python"])
def test_clock_ends_without_wrapping(policy: Policy) -> None:
    bandit = at(END - 2, policy)
    assert bandit.decide([1.0]).t == END - 1
    calls: list[Callable[[], object]] = [
        lambda: bandit.decide_many([[1.0]] * 2),
        lambda: bandit.merge(at(2, policy, seed=2)),
    ]
    for call in calls:
        before = bandit.to_bytes()
        with pytest.raises(ValueError, match=rf"the clock stands at {END - 1} and cannot take 2 more steps"):
            call()
        assert bandit.to_bytes() == before
    assert bandit.decide([1.0]).t == bandit.t == END
    with pytest.raises(ValueError, match="cannot take 1 more steps"):
        bandit.decide([1.0])
    assert armlet.from_bytes(bandit.to_bytes()).t == END
