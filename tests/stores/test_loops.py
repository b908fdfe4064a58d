"""Loops: what they are made with, what they refuse, and what becomes of rewards."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import armlet
from armlet.stores import Aggregation, Memory, Outcome, Store
from armlet.stores.rewards import Terms, Told, judge

MADE: dict[str, Any] = {"arms": ["a", "b"], "dim": 2, "policy": armlet.LinUCB(), "seed": 3}


def in_memory() -> Store:
    return Store(Memory())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": ""}, "name is ''"),
        ({"aggregation": "mean"}, "aggregation is 'mean'; choose one of"),
        ({"window": 60.0}, "window is 60.0 and default_reward is None; give both or neither"),
        ({"default_reward": 0.0}, "window is None and default_reward is 0.0; give both or neither"),
        ({"window": 0.0, "default_reward": 0.0}, "window is 0.0; give seconds"),
        ({"window": float("nan"), "default_reward": 0.0}, "window is nan; give seconds"),
        ({"window": 60.0, "default_reward": 5.0}, "default_reward is 5.0, but rewards are from -1.0 to 1.0"),
        ({"reward_range": (1.0, 0.0)}, "reward_range is"),
        ({"arms": None, "dim": None, "seed": None, "window": 60.0, "default_reward": 0.0}, "window is given, but arms"),
        ({"arms": []}, "arms"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_a_loop_that_cannot_be_is_refused_and_not_made(given: dict[str, Any], words: str) -> None:
    with in_memory() as store:
        with pytest.raises(ValueError, match=words):
            store.loop(**({"name": "homepage"} | MADE | given))
        assert store.loops == []


@pytest.mark.parametrize(
    "given",
    [
        {"dim": 3},
        {"policy": armlet.LinUCB(alpha=2.0)},
        {"objective": "min"},
        {"normalize": "l2"},
        {"aggregation": "last"},
        {"window": 60.0, "default_reward": 0.0},
        {"reward_range": (0.0, 1.0)},
        {"seed": 4},
    ],
)
def test_a_loop_goes_on_only_with_what_it_was_made_with(given: dict[str, Any]) -> None:
    with in_memory() as store:
        loop = store.loop("homepage", **MADE)
        loop.decide([1.0, 0.5])
        with pytest.raises(armlet.StoreError, match=f"{next(iter(given))} is .*, but loop 'homepage' was made with"):
            store.loop("homepage", **(MADE | given))
        assert store.loop("homepage", **MADE).decide([1.0, 0.5]).t == 2
        assert store.loop("homepage").decide([1.0, 0.5]).t == 3


def test_a_loop_without_a_policy_has_that_of_a_bandit_without_one() -> None:
    with in_memory() as store:
        loop = store.loop("homepage", **(MADE | {"policy": None}))
        assert loop.model().policy == armlet.Bandit(["a", "b"], 2).policy
        assert store.loop("homepage", **(MADE | {"policy": None})).decide([1.0, 0.5]).t == 1


def test_a_loop_that_is_not_there_is_named() -> None:
    with in_memory() as store, pytest.raises(armlet.StoreError, match="there is no loop 'homepage'; give arms"):
        store.loop("homepage")


def test_refused_calls_take_no_step_and_leave_no_row() -> None:
    with in_memory() as store:
        loop = store.loop("homepage", **MADE)
        loop.decide([1.0, 0.5], event="e")
        calls: list[Any] = [
            lambda: loop.decide([1.0]),
            lambda: loop.decide([1.0, float("nan")]),
            lambda: loop.decide([1.0, 0.5], eligible=["z"]),
            lambda: loop.decide([1.0, 0.5], eligible=[]),
            lambda: loop.decide([1.0, 0.5], event="x" * 257),
            lambda: loop.decide([1.0, 0.5], event="\ud800"),
            lambda: loop.decide([1.0, 0.5], event="e", eligible=["a"]),
            lambda: loop.reward("e", float("nan")),
            lambda: loop.reward("e", "1.0"),  # type: ignore[arg-type]
            lambda: loop.retire_arm("z"),
            lambda: loop.add_arm("a"),
        ]
        before = loop.model().to_bytes()
        for call in calls:
            with pytest.raises((ValueError, KeyError, TypeError, armlet.EventError)):
                call()
        assert loop.model().to_bytes() == before
        assert [event["kind"] for event in loop.log] == ["start", "decide"]
        assert loop.decide([1.0, 0.5]).t == 2


def test_a_decision_without_an_event_is_rewarded_by_its_id() -> None:
    with in_memory() as store:
        loop = store.loop("homepage", **MADE)
        assert loop.reward(loop.decide([1.0, 0.5]).id, 1.0) == "accepted"


def test_costs_are_learned_as_costs() -> None:
    with in_memory() as store:
        loop = store.loop("homepage", **(MADE | {"objective": "min", "policy": armlet.LinUCB(units="as given")}))
        loop.reward(loop.decide([1.0, 0.5]).id, 0.75)
        bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.LinUCB(units="as given"), objective="min", seed=3)
        bandit.learn(bandit.decide([1.0, 0.5]), 0.75)
        assert loop.model().state.b.tolist() == bandit.state.b.tolist()


def test_policies_with_a_range_of_their_own_need_not_be_told_it() -> None:
    with in_memory() as store:
        loop = store.loop("bits", arms=["a", "b"], dim=1, policy=armlet.Banditron(), seed=1)
        name = loop.decide([1.0]).id
        assert [loop.reward(name, value) for value in (0.5, -1.0, 2.0, 1.0)] == [*["out_of_range"] * 3, "accepted"]


class Mine(armlet.LinUCB):
    """A policy that Armlet does not know."""


def test_a_policy_of_ones_own_is_given_again(tmp_path: Path) -> None:
    with armlet.open(tmp_path / "shop.db") as store:
        loop = store.loop("homepage", **(MADE | {"policy": Mine()}))
        loop.reward(loop.decide([1.0, 0.5]).id, 1.0)
        before = loop.model().to_bytes()
    with armlet.open(tmp_path / "shop.db") as store:
        with pytest.raises(armlet.ModelFileError, match="Mine"):
            store.loop("homepage")
        with pytest.raises(armlet.ModelFileError, match="Mine"):
            store.prune(0.0)
        assert store.loop("homepage", policy=Mine()).model().to_bytes() == before
        assert store.prune(0.0) == 0


@pytest.mark.parametrize("aggregation", ["first", "last", "sum"])
@pytest.mark.parametrize("window", [None, 10])
def test_judging_keeps_to_a_plain_model_of_it(aggregation: Aggregation, window: int | None) -> None:
    """Random stories of one decision, beside what the words say: what counts is first, last or sum."""
    rng = random.Random(7)
    default = None if window is None else 0.0
    terms = Terms(window=window, default=default, aggregation=aggregation, reward_range=(-2.0, 2.0))
    seen = set()
    for _ in range(300):
        told: list[float] = []
        outcome = Outcome(t=1, event="e", seq=1, phase="open", due=window)
        closes = rng.randrange(5)
        for i in range(5):
            if i == closes and window is not None:  # as a loop does when the window closes
                phase = "learned" if told else "default"
                outcome = Outcome(t=1, event="e", seq=1, phase=phase, value=outcome.value or 0.0)  # type: ignore[arg-type]
            value = rng.choice([-1.0, -0.5, 0.5, 1.0, 9.0])
            verdict = judge(terms, outcome, Told(value))
            seen.add(verdict.status)
            if verdict.status in ("accepted", "late", "replaced"):
                told.append(value)
                counts = {"first": told[0], "last": told[-1], "sum": sum(told)}[aggregation]
                assert verdict.value == counts
                assert (verdict.act == "hold") == (outcome.due is not None)
                phase = "open" if verdict.act == "hold" else "learned"
                outcome = Outcome(t=1, event="e", seq=1, phase=phase, value=counts, due=outcome.due)  # type: ignore[arg-type]
            else:
                assert verdict.act == "nothing"
                if verdict.status == "duplicate":
                    assert value == outcome.value
    expected = {"accepted", "out_of_range"} | ({"late"} if window else set())
    more: dict[str, set[str]] = {"first": {"duplicate", "conflict"}, "last": {"duplicate", "replaced"}, "sum": set()}
    assert seen == expected | more[aggregation]
