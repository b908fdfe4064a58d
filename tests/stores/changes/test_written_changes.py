"""Changes of loops are the playing of their rows: every kind, on every kind of loop, once, twice and with faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.cast.cast import Cast
from armlet.errors import InternalError, StoreError
from armlet.stores import Control, Loop, Memory, Store
from support.loops import assert_replays, everything
from support.stores import rebuilt

ARMS: dict[str, Any] = {"arms": ["a", "b"], "features": ["u", "v"], "policy": armlet.LinUCB(), "seed": 3}
OUTCOMES: dict[str, Any] = {**ARMS, "outcomes": {"quality": 1.0, "cost": -2.0}}
KNOWN: dict[str, Any] = {**OUTCOMES, "known": {"cost": {"a": 0.1, "b": 0.2}}}
BUDGET = armlet.Budget("cost", total=30.0, period=100)
ENCODER = armlet.Encoder().fit({"u": [1.0, 2.0], "v": ["red", "blue"]})
LOOPS: dict[str, dict[str, Any]] = {
    "arms": ARMS,
    "discounted": {**ARMS, "policy": armlet.LinUCB(half_life=20)},
    "encoded": {"arms": ["a", "b"], "encoder": ENCODER, "policy": armlet.LinUCB(), "seed": 3},
    "outcomes": OUTCOMES,
    "known": KNOWN,
    "budget": {**OUTCOMES, "budget": BUDGET},
    "known budget": {**KNOWN, "budget": BUDGET},
    "actions": {"features": ["u", "v"], "action_features": ["w"], "seed": 3},
}

Change = Mapping[str, Any]
ANY: list[Change] = [
    {"window": 60.0, "early_window": 5.0, "aggregation": "last"},
    {"early_window": None},
    {"aggregation": "sum"},
]
ONE: list[Change] = [{"reward_range": (-2.0, 3.0)}, {"default_reward": 0.5, "window": 60.0}]
OF_ARMS: list[Change] = [
    {"features": ["v", "w", "u"]},
    {"features": ["u", "v"]},
    {"arms": ["b", "c"]},
    {"arms": ["a", "b"]},
    {"control": Control(arm="a", share=0.2)},
    {"control": None},
    {"shadow": armlet.LinUCB(alpha=2.0)},
    {"shadow": None},
]
SEVERAL: list[Change] = [
    {"reward_range": {"quality": (0.0, 2.0)}},
    {"outcomes": {"quality": 3.0}, "reward_range": {"quality": (-1.0, 2.0)}},
    {"outcomes": {"quality": 1.0, "cost": -1.0}},
]
PRICES: list[Change] = [
    {"known": {"cost": {"a": 0.4}}},
    {"known": {"cost": {"a": 0.1, "b": 0.3}}, "outcomes": {"cost": -5.0}, "reward_range": {"quality": (0.0, 1.0)}},
]
TOTALS: list[Change] = [{"budget": armlet.Budget("cost", total=40.0, period=100)}, {"budget": BUDGET}]
CHANGES: dict[str, list[Change]] = {
    "arms": [*OF_ARMS, *ONE, ANY[2]],
    "discounted": [*OF_ARMS[:6], *ONE, {"policy": armlet.LinUCB(half_life=20, alpha=2.0)}],
    "encoded": [{"encoder": armlet.Encoder().fit({"u": [1.0] * 3, "v": ["red", "blue", "green"]})}, *OF_ARMS[2:], *ONE],
    "outcomes": [*ANY, *SEVERAL, *OF_ARMS],
    "known": [*ANY, *SEVERAL, *PRICES, *OF_ARMS[:2], *OF_ARMS[4:]],
    "budget": [*ANY, *SEVERAL, *TOTALS, *OF_ARMS],
    "known budget": [*ANY, *SEVERAL, *PRICES, *TOTALS, *OF_ARMS[:2], *OF_ARMS[4:]],
    "actions": [
        *ONE,
        ANY[2],
        {"policy": armlet.SharedOptimism(share=0.4)},
    ],
}


def step(kind: str, loop: Loop, i: int) -> None:
    """Decide and reward."""
    x: Any = {"u": 0.1 * (i % 7), "v": 1.0, "w": 0.5}
    if kind == "encoded":
        x["v"] = "red" if i % 2 else "blue"
    x = {name: x[name] for name in (("u", "v") if kind == "encoded" else loop.model().settings.features or ())}
    more: Any = {"actions": {"p": {"w": 1.0}, "q": {"w": 0.2 * i}}} if kind == "actions" else {}
    loop.decide(x, event=f"e{i}", **more)
    value: Any = 0.01 * (i % 50)
    several = getattr(loop._runner.bandit.settings, "outcomes", None)
    if several is not None:
        value = dict.fromkeys(several.learned, value)
    assert loop.reward(f"e{i}", value) in ("accepted", "late")


def check(store: Store, loop: Loop) -> None:
    """Hold a loop against its rows; one with guards, or of actions, has more than its model."""
    assert rebuilt(store, loop.name).digest() == loop._runner.cast.digest()
    if not loop._runner.terms.guards and loop.action_reader is None:
        assert_replays(store, loop)


@pytest.mark.parametrize("kind", LOOPS)
def test_changes_replay_and_repeated_ones_write_nothing(kind: str) -> None:
    with Store(Memory()) as store:
        loop = store.loop("homepage", **LOOPS[kind])
        for i, change in enumerate(CHANGES[kind]):
            step(kind, loop, 2 * i)
            assert loop.change(**change) is True, change
            check(store, loop)
            before = everything(store, loop)
            assert loop.change(**change) is False, change
            assert everything(store, loop) == before
            step(kind, loop, 2 * i + 1)
            check(store, loop)


def test_prepared_tables_are_those_of_their_rows() -> None:
    with Store(Memory()) as store:
        loop = store.loop("homepage", **LOOPS["actions"])
        films = loop.prepare("all", {i: [0.1 * i] for i in range(50)})
        loop.prepare("all", films.changed({3: [9.0]}, remove=[7]))
        held = loop._runner.tables["all"].table
        assert np.array_equal(held[3], [9.0])
        loop._runner.let_go()
        assert loop.tables()["all"] == held
        loop.remove_table("all")
        assert loop.tables() == {}
        loop._runner.let_go()
        assert loop.tables() == {}


# --- what is written wrong is never committed ------------------------------------------------------------------------

FAULTS: dict[str, tuple[str, str, Any, Change]] = {
    "range of one reward": ("known", "outcome_fields", lambda _: {"reward_range": [-0.4, 1.8]}, SEVERAL[0]),
    "no range": ("outcomes", "outcome_fields", lambda _: {"reward_range": []}, SEVERAL[0]),
    "other weights": (
        "outcomes",
        "outcome_fields",
        lambda several: {"outcomes": {**several.to_dict(), "weights": [["quality", 9.0], ["cost", -2.0]]}},
        SEVERAL[1],
    ),
    "fill left out": ("arms", "feature_fields", lambda moved, _: {"features": list(moved.after)[::-1]}, OF_ARMS[0]),
    "not JSON": ("arms", "feature_fields", lambda moved, _: {"features": moved}, OF_ARMS[0]),
    "another policy": (
        "discounted",
        "policy_fields",
        lambda _: {"policy": {"name": "LinUCB", "settings": {}}},
        {"policy": armlet.LinUCB(half_life=20, alpha=2.0)},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_row_that_says_something_else_is_not_committed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, name, wrong, change = FAULTS[fault]
    with Store(Memory()) as store:
        loop = store.loop("homepage", **LOOPS[kind])
        step(kind, loop, 0)
        before = everything(store, loop)
        with monkeypatch.context() as patched:
            patched.setattr(f"armlet.stores.spec.{name}", wrong)
            with pytest.raises(InternalError, match="nothing of this call was kept"):
                loop.change(**change)
        assert everything(store, loop) == before
        assert loop.change(**change)
        step(kind, loop, 1)
        check(store, loop)


def test_model_that_is_read_back_otherwise_is_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(Memory()) as store:
        loop = store.loop("homepage", **ARMS)
        step("arms", loop, 0)
        before = everything(store, loop)
        with monkeypatch.context() as patched:
            other = Cast(armlet.Bandit(["a", "b"], 2, seed=1))
            patched.setattr("armlet.stores.runner.read_cast", lambda *_, **__: other)
            with pytest.raises(StoreError, match="leads to another state of loop 'homepage'"):
                loop.freeze()
        assert everything(store, loop) == before
        loop.freeze()
        check(store, loop)


class Mine(armlet.LinUCB):
    """A policy that no registry knows, so that no row can name it."""


def test_policies_of_users_change_and_replay() -> None:
    with Store(Memory()) as store:
        made = {**ARMS, "policy": Mine()}
        loop = store.loop("homepage", **made)
        step("arms", loop, 0)
        assert loop.change(policy=Mine(alpha=2.0))
        step("arms", loop, 1)
        assert rebuilt(store, policy=Mine(alpha=2.0)).digest() == loop.model().digest()
        assert loop.model().policy == Mine(alpha=2.0)
