"""A row of nonsense that a loop forgets leaves what would be there without it: the loop learns its rows again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import armlet
from armlet.stores.loop import Loop

POLICIES: dict[str, Any] = {
    "default": None,
    "LinUCB": armlet.LinUCB(),
    "ThompsonSampling": armlet.ThompsonSampling(),
}


@pytest.mark.parametrize("at", [0, 60])
@pytest.mark.parametrize("policy", POLICIES)
def test_loop_learns_its_rows_again(tmp_path: Path, policy: str, at: int) -> None:
    given = {} if POLICIES[policy] is None else {"policy": POLICIES[policy]}
    rng = np.random.default_rng(3)
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("home", arms=["a", "b"], dim=2, seed=1, **given)
        for i in range(80):
            x = rng.normal(size=2)
            if i == at:
                x[1] = 1.8e18
            loop.decide(x, event=f"order-{i}")
            loop.reward(f"order-{i}", float(rng.normal()))
        before = loop.model().state.n.sum()  # of those that its policy learns
        assert loop.forget(f"order-{at}")
        learned = loop.model()
    state: Any = learned.state
    assert before - 1 <= state.n.sum() <= before
    assert not state.digits_lost.any()
    with armlet.open_store(tmp_path / "shop.db") as store:
        assert store.loop("home").model().digest() == learned.digest()


def test_loop_of_actions_learns_its_rows_again(tmp_path: Path) -> None:
    rng, table = np.random.default_rng(3), armlet.ActionTable(["a", "b"], np.eye(2))
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("home", dim=2, action_dim=2, policy=armlet.SharedOptimism(), seed=1)
        for i in range(40):
            x = rng.normal(size=2)
            if i == 0:
                x[1] = 1.8e18
            loop.decide(x, actions=table, event=f"order-{i}")
            loop.reward(f"order-{i}", float(rng.normal()))
        before = cast("Any", loop.model().state).n_rows
        assert loop.forget("order-0")
        state: Any = loop.model().state
        assert state.n_rows == before - 1
        assert not state.digits_lost.any()


def test_opening_learns_rows_again_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("home", arms=["a", "b"], dim=2, policy=armlet.LinUCB(), seed=1)
        for i in range(40):
            loop.decide([rng.normal(), 1.8e18 if i == 0 else rng.normal()], event=f"order-{i}")
            loop.reward(f"order-{i}", float(rng.uniform(-1, 1)))
        with monkeypatch.context() as crash:
            crash.setattr(Loop, "_mend", lambda _: "")
            loop.forget("order-0")
        (alarm,) = (each for each in loop.health() if each.rule == "digits")
        assert "how='refit'" in alarm.text
        assert loop.model().state.n.sum() < 39
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("home")
        assert loop.model().state.n.sum() == 39
        assert [each for each in loop.health() if each.rule == "digits"] == []
