"""Loops: what they are made with, what they refuse, and what becomes of rewards."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import armlet
from armlet.stores import Aggregation, Loop, Memory, Pending, Store
from armlet.stores.ledger import REWARD
from armlet.stores.rewards import PartRules, Reward, RewardRules, judge
from armlet.types import Arm
from support.stores import rebuilt

MADE: dict[str, Any] = {"arms": ["a", "b"], "dim": 2, "policy": armlet.LinUCB(), "seed": 3}


def in_memory() -> Store:
    return Store(Memory())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": ""}, "name is ''"),
        ({"aggregation": "mean"}, "aggregation is 'mean'; choose 'first'"),
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


MADE_WITH, HAS = (
    "was made with .*; give that, or the name alone, or make a loop of another name",
    "has .*; to change it",
)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dim": 3}, MADE_WITH),
        ({"policy": armlet.LinUCB(alpha=2.0)}, rf"{HAS}: loop.change\(policy="),
        ({"objective": "min"}, MADE_WITH),
        ({"normalize": "l2"}, MADE_WITH),
        ({"aggregation": "last"}, rf"{HAS}: loop.change\(aggregation="),
        ({"window": 60.0, "default_reward": 0.0}, rf"{HAS}: loop.change\(window="),
        ({"reward_range": (0.0, 1.0)}, rf"{HAS}: loop.change\(reward_range="),
        ({"seed": 4}, MADE_WITH),
    ],
)
def test_a_loop_goes_on_only_with_what_it_has(given: dict[str, Any], words: str) -> None:
    with in_memory() as store:
        loop = store.loop("homepage", **MADE)
        loop.decide([1.0, 0.5])
        before, rows = loop.model().to_bytes(), list(loop.log)
        with pytest.raises(armlet.errors.StoreError, match=f"{next(iter(given))} is .*, but loop 'homepage' {words}"):
            store.loop("homepage", **(MADE | given))
        assert (loop.model().to_bytes(), list(loop.log)) == (before, rows)
        assert store.loop("homepage", **MADE).decide([1.0, 0.5]).t == 2
        assert store.loop("homepage").decide([1.0, 0.5]).t == 3


def arms_of(loop: Loop) -> dict[Arm, bool]:
    """Return the arms of a loop, and whether each is played."""
    model = loop.model()
    return {arm: arm not in model.arms.retired for arm in model.arms}


def test_a_list_of_arms_is_what_is_played_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with armlet.open_store(path) as store:
        loop = store.loop("homepage", **MADE)
        loop.add_arm("c")
        loop.reward(loop.decide([1.0, 0.5], eligible=["b"]).id, 1.0)
    lists: list[tuple[list[Arm] | None, dict[Arm, bool]]] = [
        (["a", "b", "c"], {"a": True, "b": True, "c": True}),  # after add_arm, the true list
        (["c", "b", "a"], {"a": True, "b": True, "c": True}),  # in any order
        (["c", "a"], {"a": True, "b": False, "c": True}),
        (None, {"a": True, "b": False, "c": True}),
        (["d", "b"], {"a": False, "b": True, "c": False, "d": True}),
    ]
    for arms, expected in lists:
        with armlet.open_store(path) as store:
            loop = store.loop("homepage", **(MADE | {"arms": arms})) if arms else store.loop("homepage")
            assert arms_of(loop) == expected
            assert loop.decide([1.0, 0.5]).arm in [arm for arm, plays in expected.items() if plays]
            after = loop.model().to_bytes()
            assert rebuilt(store).to_bytes() == after
            assert armlet.audit(loop.log.replayable, loop.log.start).ok
    with armlet.open_store(path) as store:
        loop = store.loop("homepage")
        assert loop.model().to_bytes() == after
        assert loop.model().state.n[1] == 1  # what was known of an arm that had gone
        kinds = [event["kind"] for event in loop.log if event["kind"] not in ("start", "decide", "learn")]
        assert kinds == ["add_arm", "retire_arm", "add_arm", "restore_arm", "retire_arm", "retire_arm"]


def test_a_list_that_a_loop_cannot_have_changes_no_arm() -> None:
    with in_memory() as store:
        loop = store.loop("homepage", **MADE)
        before = loop.model().to_bytes()
        for wrong in ({"arms": ["a", "c"], "dim": 3}, {"arms": ["a", "a"]}, {"arms": "ab"}, {"arms": ["a", 0.5]}):
            with pytest.raises(armlet.ArmletError):
                store.loop("homepage", **(MADE | wrong))
        assert loop.model().to_bytes() == before
        assert [event["kind"] for event in loop.log] == ["start"]


@pytest.mark.parametrize("how", ["memory", "file"])
def test_eligible_arms_have_no_order(how: str, tmp_path: Path) -> None:
    with in_memory() if how == "memory" else armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("homepage", **MADE)
        first = loop.decide([1.0, 0.5], event="e", eligible=["b", "a"])
        for again in (["a", "b"], ["b", "a"]):
            assert loop.decide([1.0, 0.5], event="e", eligible=again).id == first.id
        with pytest.raises(armlet.errors.EventError):
            loop.decide([1.0, 0.5], event="e", eligible=["b"])


def refusals(store: Store, loop: Loop) -> dict[str, tuple[type[Exception], Any]]:
    """Return calls that are refused, and what their errors are besides."""
    return {
        "an arm that is not there": (KeyError, lambda: loop.decide([1.0, 0.5], eligible=["nope"])),
        "no arm at all": (ValueError, lambda: loop.decide([1.0, 0.5], eligible=[])),
        "an arm that is no label": (TypeError, lambda: loop.decide([1.0, 0.5], eligible=[0.5])),  # type: ignore[list-item]
        "arms that are no list": (TypeError, lambda: loop.decide([1.0, 0.5], eligible=5)),  # type: ignore[call-overload]
        "text in a context": (TypeError, lambda: loop.decide(["x", 0.5])),  # type: ignore[arg-type]
        "a short context": (ValueError, lambda: loop.decide([1.0])),
        "an event that is no text": (ValueError, lambda: loop.decide([1.0, 0.5], event=5)),  # type: ignore[call-overload]
        "a reward that is text": (TypeError, lambda: loop.reward("e", "x")),  # type: ignore[arg-type]
        "a reward without a number": (ValueError, lambda: loop.reward("e", float("nan"))),
        "a name that is no text": (ValueError, lambda: loop.reward("e", 1.0, name=b"x")),  # type: ignore[arg-type]
        "a name of surrogates": (ValueError, lambda: loop.reward("e", 1.0, name="\ud800")),
        "a rank below none": (ValueError, lambda: loop.reward("e", 1.0, rank=-1)),
        "a rank that is no number": (ValueError, lambda: loop.reward("e", 1.0, rank="high")),  # type: ignore[arg-type]
        "retiring what is not there": (KeyError, lambda: loop.retire_arm("zz")),
        "adding what is there": (ValueError, lambda: loop.add_arm("a")),
        "a policy that is none": (TypeError, lambda: store.loop("x", **(MADE | {"policy": 5}))),
        "a window that is text": (
            ValueError,
            lambda: store.loop("x", **(MADE | {"window": "x", "default_reward": 0.0})),
        ),
        "a default that is text": (
            ValueError,
            lambda: store.loop("x", **(MADE | {"window": 1.0, "default_reward": "x"})),
        ),
        "a loop of surrogates": (ValueError, lambda: store.loop("\ud800", **MADE)),
        "a loop that is a number": (ValueError, lambda: store.loop(5, **MADE)),  # type: ignore[arg-type]
        "features that are numbers": (TypeError, lambda: store.loop("x", arms=["a"], features=5)),  # type: ignore[arg-type]
        "a time that is text": (ValueError, lambda: store.prune("x")),  # type: ignore[arg-type]
        "a backup nowhere": (armlet.errors.StoreError, lambda: store.backup("nowhere/copy.db")),
        "a backup to a number": (TypeError, lambda: store.backup(5)),  # type: ignore[arg-type]
    }


def test_whatever_a_loop_refuses_is_an_error_of_armlet(tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("homepage", **MADE)
        loop.decide([1.0, 0.5], event="e")
        before = loop.model().to_bytes()
        for what, (kind, call) in refusals(store, loop).items():
            with pytest.raises(armlet.ArmletError) as caught:
                call()
            assert isinstance(caught.value, kind), what
            assert not str(caught.value).startswith(("'", '"')), what
        assert loop.model().to_bytes() == before
        assert store.loops == ["homepage"]
        assert [event["kind"] for event in loop.log] == ["start", "decide"]


def test_a_loop_without_a_policy_has_that_of_a_bandit_without_one() -> None:
    with in_memory() as store:
        loop = store.loop("homepage", **(MADE | {"policy": None}))
        assert loop.model().policy == armlet.Bandit(["a", "b"], 2).policy
        assert store.loop("homepage", **(MADE | {"policy": None})).decide([1.0, 0.5]).t == 1


def test_a_loop_that_is_not_there_is_named() -> None:
    with in_memory() as store, pytest.raises(armlet.errors.StoreError, match="there is no loop 'homepage'; give arms"):
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
            with pytest.raises((ValueError, KeyError, TypeError, armlet.errors.EventError)):
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


class Mine(armlet.LinUCB):
    """A policy that Armlet does not know."""


def test_a_policy_of_ones_own_is_given_again(tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("homepage", **(MADE | {"policy": Mine()}))
        loop.reward(loop.decide([1.0, 0.5]).id, 1.0)
        before = loop.model().to_bytes()
    with armlet.open_store(tmp_path / "shop.db") as store:
        with pytest.raises(armlet.errors.ModelFileError, match="Mine"):
            store.loop("homepage")
        with pytest.raises(armlet.errors.ModelFileError, match="Mine"):
            store.prune(0.0)
        assert store.loop("homepage", policy=Mine()).model().to_bytes() == before
        assert store.prune(0.0) == 0


@pytest.mark.parametrize("aggregation", ["first", "last", "sum"])
@pytest.mark.parametrize("window", [None, 10])
def test_judging_keeps_to_a_plain_model_of_it(aggregation: Aggregation, window: int | None) -> None:
    """Random stories of one decision, next to what the words say: what counts is first, last or sum."""
    rng = random.Random(7)
    default = None if window is None else 0.0
    parts = {REWARD: PartRules(default=default, reward_range=(-2.0, 2.0))}
    rules = RewardRules(window=window, aggregation=aggregation, parts=parts)
    seen = set()
    for _ in range(300):
        values: list[float] = []
        pending = Pending(t=1, event="e", seq=1, phase="open", due=window)
        closes = rng.randrange(5)
        for i in range(5):
            if i == closes and window is not None:  # as a loop does when the window closes
                phase = "learned" if values else "default"
                pending = Pending(t=1, event="e", seq=1, phase=phase, value=pending.value or 0.0)  # type: ignore[arg-type]
            value = rng.choice([-1.0, -0.5, 0.5, 1.0, 9.0])
            judgement = judge(rules, pending, Reward(value))
            seen.add(judgement.status)
            if judgement.status in ("accepted", "late", "replaced"):
                values.append(value)
                counts = {"first": values[0], "last": values[-1], "sum": sum(values)}[aggregation]
                verdict = judgement.parts[REWARD]
                assert verdict.value == counts
                assert (verdict.act == "hold") == (pending.phase == "open")
                phase = "open" if pending.due is not None else "learned"
                pending = Pending(t=1, event="e", seq=1, phase=phase, value=counts, due=pending.due)  # type: ignore[arg-type]
            else:
                assert not judgement.parts
                if judgement.status == "duplicate":
                    assert value == pending.value
    expected = {"accepted", "out_of_range"} | ({"late"} if window else set())
    more: dict[str, set[str]] = {"first": {"duplicate", "conflict"}, "last": {"duplicate", "replaced"}, "sum": set()}
    assert seen == expected | more[aggregation]


def test_a_decision_is_repeated_after_features_have_changed() -> None:
    """Features that were dropped or added since cannot be compared; all others must be the same."""
    with Store(Memory()) as store:
        loop = store.loop("changing", arms=["a", "b"], features=["one", "age"], policy=armlet.LinUCB(), seed=3)
        first = loop.decide({"one": 1.0, "age": 0.5}, event="e")
        loop.change(features=["one", "visits"])
        assert loop.decide({"one": 1.0, "visits": 7.0}, event="e").id == first.id
        with pytest.raises(armlet.errors.EventError, match="another context"):
            loop.decide({"one": 2.0, "visits": 7.0}, event="e")
