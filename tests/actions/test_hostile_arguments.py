"""Every argument of bandits of actions refuses nonsense with an error that names it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import armlet
from armlet import ActionBandit, ActionDecision, ActionTable, SharedOptimism, SharedThompson
from armlet.errors import ArmletError, InvalidTypeError
from support.faults.hostile import HOSTILE, fault_in

TABLE: Any = {"a": [1.0, 0.5], "b": [0.0, 1.5]}
Given = tuple[Callable[..., Any], dict[str, Any]]


def calls() -> dict[str, Given]:
    """Return calls with good arguments, by name."""
    bandit = ActionBandit(1, 2, seed=1)
    fresh, learned = (bandit.decide([1.0], TABLE) for _ in range(2))
    bandit.learn(learned, 1.0)
    table = bandit.prepare("other", TABLE)
    rows = {"x": [[1.0]], "z": [[1.0, 2.0]], "arm": ["a"], "reward": [1.0]}
    one: dict[str, Any] = {"x": [1.0], "actions": TABLE}
    features: dict[str, Any] = {"features": None, "action_features": None, "encoder": None, "action_encoder": None}
    given: list[Given] = [
        (bandit.decide, {**one, "eligible": None, "t": None, "propensity": None, "probabilities": None}),
        (bandit.decide_many, {"X": [[1.0]], "actions": TABLE, "eligible": None, "propensity": None}),
        (bandit.learn, {"decision": fresh, "reward": 1.0, "weight": 1.0}),
        (bandit.learn_many, {"decisions": [fresh], "rewards": [1.0], "weights": None}),
        (bandit.correct, {"decision": learned, "old_reward": 1.0, "new_reward": 0.5, "folded": "refuse"}),
        (bandit.forget, {"decision": learned, "reward": 1.0, "folded": "refuse"}),
        (bandit.expire, {"decision": fresh}),
        (bandit.partial_fit, {"table": rows}),
        (bandit.prepare, {"name": "films", "table": TABLE}),
        (bandit.remove_table, {"name": "other"}),
        (bandit.table, {"actions": TABLE}),
        (bandit.to_bytes, {"tables": "all"}),
        (bandit.predict, one),
        (bandit.predict_proba, {**one, "eligible": None}),
        (bandit.predict_expectations, one),
        (bandit.explain, {**one, "n": 2}),
        (bandit.merge, {"other": ActionBandit(1, 2, seed=2)}),
        (bandit.replace, {"t": None, "seed": None, "policy": None, "reward_range": None}),
        (ActionBandit, {"dim": 1, "action_dim": 2, **features, "policy": SharedOptimism(), "objective": "max"}),
        (ActionTable, {"labels": ["a", "b"], "Z": np.eye(2), "names": None}),
        (ActionTable.from_fields, {"fields": table.fields(), "find": None}),
        (table.changed, {"add": {"a": [1.0, 2.0]}, "remove": ["b"]}),
        (ActionDecision.from_dict, {"record": fresh.to_dict()}),
        (SharedOptimism, {"share": 0.2, "interactions": "all", "intercepts": True}),
        (SharedThompson, {"draws": 3, "v": 1.0, "interactions": "all", "intercepts": True}),
        (armlet.HashedFeatures, {"n": 4}),
    ]
    return {call.__name__: (call, arguments) for call, arguments in given}


@pytest.mark.parametrize("name", calls())
def test_nonsense_is_refused_with_the_name_of_its_argument(name: str) -> None:
    for argument in calls()[name][1]:
        for kind, value in HOSTILE.items():
            call, given = calls()[name]
            assert argument in inspect.signature(call).parameters
            fault = fault_in(call, {**given, argument: value}, {"table", "decision", "bandit"})
            assert fault is None, f"{argument} is a {kind}: {fault}"


@pytest.mark.parametrize("table", [TABLE, ActionTable(["a", "b"], np.eye(2)), (["a", "b"], np.eye(2))])
@pytest.mark.parametrize("features", [None, ("u", "v")])
def test_exchanged_context_and_actions_are_said(table: Any, features: Any) -> None:
    bandit = ActionBandit(None if features else 2, 2, features=features, seed=1)
    reads: list[Callable[..., object]] = [bandit.decide, bandit.predict, bandit.explain]
    for call in reads:
        with pytest.raises(InvalidTypeError, match="x and actions are exchanged"):
            call(table, [1.0, 2.0])


def test_exchanged_frames_are_said_where_features_have_names() -> None:
    bandit = ActionBandit(features=["age"], action_features=["u", "v"], seed=1)
    frame = pd.DataFrame(np.eye(2), columns=["u", "v"], index=["a", "b"])
    for table in (frame, pa.table({"arm": ["a", "b"], "u": [1.0, 0.0], "v": [0.0, 1.0]})):
        for x in ([1.0], {"age": 1.0}, pd.DataFrame({"age": [1.0]})):
            with pytest.raises(InvalidTypeError, match="x and actions are exchanged"):
                bandit.decide(cast(Any, table), cast(Any, x))
    bandit.prepare("home", frame)
    with pytest.raises(InvalidTypeError, match="x and actions are exchanged"):
        bandit.decide(cast(Any, "home"), cast(Any, [1.0]))
    with pytest.raises(ArmletError, match="context is a table of 2 rows"):
        bandit.decide(pd.DataFrame({"age": [1.0, 2.0]}), frame)


def test_ranges_of_features_are_refused_with_what_to_do() -> None:
    calls: list[Callable[..., Any]] = [ActionBandit, ActionBandit(1, 1, seed=1).replace]
    for call in calls:
        with pytest.raises(InvalidTypeError, match=r"feature_range.*keeps no ranges of features, so check values"):
            call(feature_range={"age": (0, 120)})
