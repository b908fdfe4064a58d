"""A loop whose sums lost digits by a reward that was corrected learns its rows again, by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import armlet
from armlet.errors import LostDigitsWarning, StoreError
from armlet.stores import Memory, Store
from armlet.testing.stores import Place

POLICIES: dict[str, Any] = {
    "default": armlet.OccasionalOptimism(),
    "LinUCB": armlet.LinUCB(),
    "ThompsonSampling": armlet.ThompsonSampling(),
}
WIDE = (-1e20, 1e20)


@pytest.mark.parametrize("aggregation", ["last", "sum"])
@pytest.mark.parametrize("policy", POLICIES)
def test_loop_learns_a_corrected_reward_as_corrected(place: Place, policy: str, aggregation: Any) -> None:
    made: dict[str, Any] = {"arms": ["a", "b"], "dim": 2, "seed": 1, "policy": POLICIES[policy]}
    made |= {"aggregation": aggregation, "reward_range": WIDE}
    rng = np.random.default_rng(3)
    with Store(place()) as store, Store(Memory()) as other:
        loop, never = store.loop("home", **made), other.loop("home", **made)
        for i in range(80):
            x, reward = rng.normal(size=2), float(rng.integers(-9, 9))
            arm = loop.decide(x, event=f"order-{i}").arm
            never.decide(x, event=f"order-{i}", eligible=[arm])
            loop.reward(f"order-{i}", 1e18 if i == 20 else reward)
            never.reward(f"order-{i}", 512.0 if i == 20 else reward)
        loop.reward("order-20", 512.0 if aggregation == "last" else 512.0 - 1e18, name="mended")
        expected = cast("Any", never.model().state)
    with Store(place()) as store:  # a store that is closed has learned the rows again
        loop = store.loop("home")
        state = cast("Any", loop.model().state)
        assert not state.digits_lost.any()
        assert [alarm.rule for alarm in loop.health()] == []
        if policy == "default":  # which explores by itself
            assert state.n.sum() == 80
        else:
            np.testing.assert_allclose(state.b, expected.b, rtol=1e-9)
        loop.forget("order-20")
        assert loop.model().state.n.sum() == pytest.approx(state.n.sum() - 1)


def test_loop_learns_corrected_outcomes_as_corrected(place: Place) -> None:
    ranges = {"gain": WIDE, "cost": (-9, 9)}
    made: dict[str, Any] = {"arms": ["a", "b"], "dim": 2, "seed": 1, "aggregation": "last", "policy": armlet.LinUCB()}
    made |= {"outcomes": {"gain": 1.0, "cost": -1.0}, "reward_range": ranges}
    rng = np.random.default_rng(5)
    with Store(place()) as store:
        loop = store.loop("home", **made)
        for i in range(40):
            loop.decide(rng.normal(size=2), event=f"order-{i}")
            loop.reward(f"order-{i}", {"gain": 1e18 if i in (9, 11) else 2.0})
            if i != 11:
                loop.reward(f"order-{i}", {"cost": 1.0})
        loop.reward("order-11", {"gain": 2.0})  # before its row is learned
        loop.reward("order-11", {"cost": 1.0})
        loop.reward("order-9", {"gain": 2.0})
    with Store(place()) as store:
        state = cast("Any", store.loop("home").model().state)
        assert state.n.sum() == 40
        assert (state.sum_rr / state.n).max() < 9.0  # of gains of 2, less costs of 1
        assert not state.digits_lost.any()


def test_opening_learns_corrected_rows_again_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    monkeypatch.setattr(Store, "_mend", lambda *_: None)  # the process ends before it begins
    crashed = armlet.open_store(tmp_path / "shop.db")
    loop = crashed.loop("home", arms=["a"], dim=1, policy=armlet.LinUCB(), aggregation="last", reward_range=WIDE)
    for i in range(30):
        loop.decide(rng.normal(size=1), event=f"order-{i}")
        loop.reward(f"order-{i}", 1e18 if i == 3 else 1.0)
    loop.reward("order-3", 1.0)
    crashed.backup(tmp_path / "copy.db")
    crashed.close()
    monkeypatch.undo()
    with armlet.open_store(tmp_path / "copy.db") as store:
        assert cast("Any", store.loop("home").model().state).n.sum() == 30


def test_thawing_learns_rows_again(place: Place) -> None:
    rng = np.random.default_rng(7)
    with Store(place()) as store:
        loop = store.loop("home", arms=["a", "b"], dim=2, policy=armlet.LinUCB(), seed=1)
        for i in range(40):
            loop.decide([rng.normal(), 1.8e18 if i == 9 else rng.normal()], event=f"order-{i}")
            loop.reward(f"order-{i}", 0.5)
        loop.freeze()
        with pytest.warns(LostDigitsWarning, match="cannot learn its rows again"):
            loop.forget("order-9")
        loop.thaw()
        assert cast("Any", loop.model().state).n.sum() == 39
        assert [alarm.rule for alarm in loop.health()] == []


@pytest.mark.parametrize("kind", ["arms", "outcomes", "actions"])
def test_many_rows_of_nonsense_are_forgotten_at_once(place: Place, kind: str) -> None:
    """The first of them empties an arm, from which the others cannot be taken back any more."""
    made: dict[str, Any] = {"dim": 2, "seed": 1}
    made |= {"action_dim": 2} if kind == "actions" else {"arms": ["a", "b"], "policy": armlet.LinUCB()}
    made |= {"outcomes": {"gain": 1.0, "cost": -1.0}} if kind == "outcomes" else {}
    how: dict[str, Any] = {"actions": armlet.ActionTable(["a", "b"], np.eye(2))} if kind == "actions" else {}
    rng = np.random.default_rng(8)
    with Store(place()) as store:
        loop = store.loop("home", **made)
        wrong = [f"order-{i}" for i in (0, 1, 7, 8, 9, 30)]
        for i in range(60):
            event = f"order-{i}"
            loop.decide(rng.normal(size=2) * (1e18 if event in wrong else 1.0), event=event, **how)
            loop.reward(event, {"gain": 0.5, "cost": 0.1} if kind == "outcomes" else 0.5)
        assert loop.forget_many(wrong) == 6
        state = cast("Any", loop.model().state)
        assert (state.n if kind == "actions" else state.n.sum()) == 54
        assert not state.digits_lost.any()
        assert sum(arm.learned for arm in loop.stats().arms) == 54


def test_a_correction_in_an_emptied_arm_may_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, mend = np.random.default_rng(10), Store._mend
    with Store(Memory()) as store:
        loop = store.loop("home", arms=["a"], dim=2, policy=armlet.LinUCB(), aggregation="last", reward_range=WIDE)
        for i in range(20):
            loop.decide(rng.normal(size=2), event=f"order-{i}")
            loop.reward(f"order-{i}", 1e18 if i == 3 else 0.5)
        with monkeypatch.context() as patched:
            patched.setattr(Store, "_mend", lambda *_: None)  # its thread has not begun yet
            loop.reward("order-3", 0.5)
            with pytest.raises(StoreError, match="until its rows are learned again; ask again"):
                loop.reward("order-5", 0.7)
        mend(store, loop._runner)
        assert loop.reward("order-5", 0.7) == "replaced"
        assert cast("Any", loop.model().state).n.sum() == 20
