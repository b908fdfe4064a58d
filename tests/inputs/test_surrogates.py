"""Half of a surrogate pair is refused wherever text enters: no file, log or store could be written with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

import armlet
from armlet.errors import ArmletError, InvalidValueError

HALF: Final = "a\ud800"
TABLE: Final = {"age": [1.0, 2.0], "arm": ["a", "b"], "reward": [0.0, 1.0]}
ROLES: Final[dict[str, Any]] = {"features": ["age"], "propensity": 0.5}
BORDERS: Final[dict[str, Callable[[], object]]] = {
    "arms": lambda: armlet.Bandit([HALF, "b"], 1),
    "add_arm": lambda: armlet.Bandit(["a", "b"], 1).add_arm(HALF),
    "features": lambda: armlet.Bandit(["a", "b"], features=[HALF]),
    "replace features": lambda: armlet.Bandit(["a", "b"], features=["x"]).replace(features=["x", HALF]),
    "outcomes": lambda: armlet.Bandit(["a", "b"], 1, outcomes={"quality": 1.0, HALF: -1.0}),
    "known": lambda: armlet.Bandit(
        ["a", "b"], 1, outcomes={"quality": 1.0, "cost": -1.0}, known={"cost": {"a": 1.0, "b": 2.0, HALF: 3.0}}
    ),
    "unit": lambda: armlet.Bandit(["a", "b"], 1, epoch=9).decide([1.0], unit=HALF),
    "prepare": lambda: armlet.ActionBandit(1, 1).prepare(HALF, {"a": [1.0], "b": [2.0]}),
    "labels": lambda: armlet.ActionBandit(1, 1).prepare("all", {HALF: [1.0], "b": [2.0]}),
    "decide among": lambda: armlet.ActionBandit(1, 1).decide([1.0], {HALF: [1.0], "b": [2.0]}),
    "action features": lambda: armlet.ActionBandit(1, action_features=[HALF]),
    "a column of actions": lambda: armlet.ActionBandit(1, 1).partial_fit(
        {"x": [[1.0]], "z": [[1.0]], "arm": [HALF], "reward": [1.0]}
    ),
    "a record": lambda: armlet.Decision.from_dict(
        {**armlet.Bandit(["a", "b"], 1, seed=1).decide([1.0]).to_dict(), "eligible": ["a", HALF]}
    ),
    "a table of a record": lambda: armlet.ActionDecision.from_dict(
        {**armlet.ActionBandit(1, 1, seed=1).decide([1.0], {"a": [1.0]}).to_dict(), "actions": HALF}
    ),
    "arms of a table": lambda: armlet.Table(TABLE, **ROLES, arms=["a", "b", HALF]),
    "the path of a model": lambda: armlet.Bandit(["a", "b"], 1).save(f"{HALF}.armlet"),
    "the path of a log": lambda: armlet.Log(f"{HALF}.jsonl"),
    "the path of a store": lambda: armlet.open_store(f"{HALF}.db"),
    "a note": lambda: noted({"source": HALF}),
    "a column of a data frame": lambda: armlet.Bandit(["a", "b"], features=["age"]).decide_many(frame([1.0, 2.0])),
    "a frame of actions": lambda: armlet.ActionBandit(1, action_features=["age"]).decide([1.0], frame([1.0, 2.0])),
    "the name of a target": lambda: armlet.evaluate(armlet.Table(TABLE, **ROLES), {HALF: "a"}),
    "fit": lambda: armlet.ActionBandit(1, 1).prepare("all", {"a": [1.0]}).changed(add={HALF: [1.0]}),
}


def frame(values: list[float]) -> pd.DataFrame:
    """Return a data frame with one column of a bad name."""
    return pd.DataFrame(np.array(values)[:, None], columns=pd.Index([HALF], dtype=object))


def noted(fields: dict[str, str]) -> None:
    """Add a note to the log of a decision."""
    with TemporaryDirectory() as folder, armlet.Log(f"{folder}/log.jsonl") as log:
        bandit = armlet.Bandit(["a", "b"], 1, seed=1, log=log)
        log.note(bandit.decide([1.0]), **fields)


@pytest.mark.parametrize("border", BORDERS)
def test_half_a_surrogate_pair_is_refused(border: str) -> None:
    with pytest.raises(ArmletError, match="UTF-8"):
        BORDERS[border]()


def test_loops_refuse_half_a_surrogate_pair(tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("l", arms=["a", "b"], dim=1, epoch=9, seed=1)
        films = store.loop("films", dim=1, action_dim=1, seed=1)
        calls: list[Callable[[], Any]] = [
            lambda: store.loop(HALF, arms=["a", "b"], dim=1),
            lambda: loop.decide([1.0], event=HALF),
            lambda: loop.decide([1.0], unit=HALF),
            lambda: loop.reward(HALF, 1.0),
            lambda: loop.reward("e", 1.0, name=HALF),
            lambda: loop.forget(HALF),
            lambda: loop.add_arm(HALF),
            lambda: loop.change(arms=["a", HALF]),
            lambda: films.prepare(HALF, {"a": [1.0]}),
            lambda: films.prepare("all", {HALF: [1.0]}),
        ]
        for call in calls:
            with pytest.raises(InvalidValueError, match="UTF-8"):
                call()
        assert loop.model().t == 0
