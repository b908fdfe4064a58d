"""Rows of a log are steps that somebody took: a bandit that was trained on them exploits at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armlet
from armlet.kernel import Statistics
from armlet.types import Interaction, Policy
from support.in_python import InPython

X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
ARMS, REWARDS = ["a", "b", "a"], [0.0, 1.0, 0.5]


def make(policy: Policy | None = None) -> armlet.Bandit:
    return armlet.Bandit(["a", "b"], 2, policy=policy or armlet.Algorithm1(p=4), seed=1)


@pytest.mark.parametrize("explored", [True, False, [True, False, True]])
def test_every_row_advances_the_clock_explored_or_not(explored: bool | list[bool]) -> None:
    bandit = make()
    bandit.partial_fit(X, ARMS, REWARDS, explored=explored)
    assert bandit.t == 3
    bandit.fit(X, ARMS, REWARDS, explored=explored)
    assert bandit.t == 6, "ids and coins of earlier steps must not come again"


@pytest.mark.parametrize("policy", [armlet.Algorithm1(p=4), InPython(p=4)])
def test_steps_say_how_many_decisions_a_log_stands_for(policy: Policy) -> None:
    bandit = make(policy)
    bandit.partial_fit(X, ARMS, REWARDS, explored=True, steps=0)
    assert bandit.t == 0
    bandit.partial_fit(X, ARMS, REWARDS, explored=True, steps=1000)
    assert bandit.t == 1000
    bandit.fit(X, ARMS, REWARDS, explored=True, steps=7)
    assert bandit.t == 1007


@pytest.mark.parametrize("steps", [-1, 1.5, True, 2**63, "many"])
def test_impossible_steps_are_refused_and_change_nothing(steps: Any) -> None:
    bandit = make()
    before = bandit.to_bytes()
    for learn in (bandit.partial_fit, bandit.fit):
        with pytest.raises(ValueError, match=r"steps is .*; give how many decisions"):
            learn(X, ARMS, REWARDS, explored=True, steps=steps)
    assert bandit.to_bytes() == before


@pytest.mark.parametrize("policy", [armlet.Algorithm1(p=4), InPython(p=4)])
def test_a_log_beyond_the_end_of_the_clock_is_refused_whole(policy: Policy) -> None:
    bandit = make(policy)
    bandit._advance(2**63 - 3)
    before = bandit.state.arrays()["records"]
    for learn in (bandit.partial_fit, bandit.fit):
        with pytest.raises(ValueError, match="the clock stands at"):
            learn(X, ARMS, REWARDS, explored=True)
    assert bandit.t == 2**63 - 3
    assert np.array_equal(bandit.state.arrays()["records"], before)


class Noting(InPython):
    """Notes the step of every row."""

    def update(self, state: Statistics, interaction: Interaction) -> None:
        STEPS.append(interaction.t)
        super().update(state, interaction)


STEPS: list[int] = []


@pytest.mark.parametrize(("steps", "expected"), [(None, [6, 7, 8]), (0, [5, 5, 5]), (30, [15, 25, 35]), (2, [5, 6, 7])])
def test_rows_are_of_the_steps_that_they_stand_for(steps: int | None, expected: list[int]) -> None:
    bandit = make(Noting(p=4))
    bandit._advance(5)
    STEPS.clear()
    bandit.partial_fit(X, ARMS, REWARDS, explored=True, steps=steps)
    assert expected == STEPS


class Stopping(InPython):
    """Fails at the second row."""

    def update(self, state: Statistics, interaction: Interaction) -> None:
        if interaction.t % 3 == 2:
            raise RuntimeError("no more")
        super().update(state, interaction)


def test_a_log_that_fails_half_way_leaves_the_clock() -> None:
    bandit = make(Stopping(p=4))
    for learn in (bandit.partial_fit, bandit.fit):
        with pytest.raises(RuntimeError, match="no more"):
            learn(X, ARMS, REWARDS, explored=True)
        assert bandit.t == 0
        assert not bandit.state.arrays()["records"].any()
