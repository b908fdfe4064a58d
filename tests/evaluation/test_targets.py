"""Functions as targets: what they return is read by the labels of arms, never by a place that only the log knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import armlet
from armlet.errors import ArgumentError
from armlet.evaluation.gate import gate
from armlet.evaluation.search import search
from armlet.log.reader import read
from armlet.types import Bool, Float64

ARMS = ("control", "ten_off", "free_ship")  # not in the order of the alphabet, which a table without arms has
WORTH = {"control": 0.0, "ten_off": 1.0, "free_ship": 0.5}


def shop(n: int = 300) -> Any:
    """Return the log of an A/B test whose arms are worth just what `WORTH` says."""
    played = np.random.default_rng(1).choice(ARMS, n)
    rewards = [WORTH[arm] for arm in played]
    table = {"age": np.ones(n), "offer": played, "bought": rewards, "p": np.full(n, 1 / 3)}
    return armlet.Table(table, features=["age"], arm="offer", reward="bought", propensity="p")


def as_label(X: Float64, eligible: Bool) -> Any:
    """Return one label a row."""
    del eligible
    return ["ten_off"] * len(X)


def as_mapping(X: Float64, eligible: Bool) -> Any:
    """Return a column for some arms."""
    del eligible
    return {"ten_off": np.ones(len(X)), "control": np.zeros(len(X))}


def as_frame(X: Float64, eligible: Bool) -> Any:
    """Return a column for each arm."""
    del eligible
    return pd.DataFrame({arm: np.full(len(X), float(arm == "ten_off")) for arm in ARMS})


def as_matrix(X: Float64, eligible: Bool, arms: tuple[str, ...]) -> Any:
    """Return a matrix in the order that it is given."""
    assert eligible.shape == (len(X), len(arms))
    return np.tile([float(arm == "ten_off") for arm in arms], (len(X), 1))


def as_arrow(X: Float64, eligible: Bool) -> Any:
    """Return an Arrow table."""
    return pa.Table.from_pandas(as_frame(X, eligible))


def as_named(X: Float64, eligible: Bool) -> Any:
    """Return an array whose columns are named."""
    del eligible
    dist = np.zeros(len(X), dtype=[(arm, np.float64) for arm in ARMS])
    dist["ten_off"] = 1.0
    return dist


def as_column(X: Float64, eligible: Bool) -> Any:
    """Return labels as a column of an Arrow table."""
    return pa.table({"arm": as_label(X, eligible)})["arm"]


def unlabelled(X: Float64, eligible: Bool) -> Any:
    """Return a matrix whose second column is meant to be the second of `ARMS`."""
    del eligible
    return np.tile([0.0, 1.0, 0.0], (len(X), 1))


@pytest.mark.parametrize("function", [as_label, as_mapping, as_frame, as_arrow, as_named, as_matrix, as_column])
def test_functions_are_read_by_label(function: Any) -> None:
    found = armlet.evaluate(shop(), function, estimator="snips")
    assert found[function.__name__].value == pytest.approx(1.0)


def test_numbers_and_texts_are_labels_together(tmp_path: Path) -> None:
    with armlet.Log(tmp_path / "a.jsonl") as log:
        bandit = armlet.Bandit([3, "b"], 1, policy=armlet.Uniform(), seed=1, log=log)
        for _ in range(40):
            decision = bandit.decide([1.0])
            bandit.learn(decision, float(decision.arm == 3))
    found = armlet.evaluate(log.path, {"f": lambda X, _: [3, "b"] * (len(X) // 2)}, estimator="snips", checks="none")
    assert 0.0 < found["f"].value < 1.0


def test_a_matrix_without_labels_is_refused() -> None:
    with pytest.raises(
        ArgumentError, match=r"'unlabelled'.* a matrix has no labels of arms; give arms=, the labels \['con"
    ):
        armlet.evaluate(shop(), unlabelled, reward_range=(0, 1))
    with pytest.raises(ArgumentError, match="has no labels of arms"):
        gate(shop(), unlabelled, reward_range=(0, 1))
    with pytest.raises(ArgumentError, match="thetas has no labels of arms"):
        search(shop(), np.ones((1, 3, 1)), reward_range=(0, 1))


def test_a_matrix_has_the_order_of_the_call() -> None:
    right = armlet.evaluate(shop(), unlabelled, arms=ARMS, estimator="snips")
    assert right["unlabelled"].value == pytest.approx(1.0)
    reverse = armlet.evaluate(shop(), unlabelled, arms=("free_ship", "control", "ten_off"), estimator="snips")
    assert reverse["unlabelled"].value == pytest.approx(0.0)
    assert gate(shop(3000), unlabelled, against="control", arms=ARMS, reward_range=(0, 1)).answer == "keep"
    thetas = [[[0.0], [1.0], [0.0]], [[1.0], [0.0], [0.0]]]  # always the second, always the first
    assert search(shop(3000), thetas, arms=ARMS, reward_range=(0, 1)).winner == 0
    with pytest.raises(ArgumentError, match=r"arms is \['control', 'ten_off'\]; name each of"):
        armlet.evaluate(shop(), unlabelled, arms=ARMS[:2], reward_range=(0, 1))


def test_columns_of_eligible_have_the_order_of_the_call() -> None:
    seen = []

    def first(X: Float64, eligible: Bool, arms: tuple[str, ...]) -> Any:
        seen.append((arms, eligible[0].tolist()))
        return [arms[0]] * len(X)

    n = 30
    table = {"age": np.ones(n), "offer": ["ten_off"] * n, "bought": np.ones(n), "p": np.full(n, 0.5)}
    labelled = armlet.Table(table, features=["age"], arm="offer", reward="bought", propensity="p", arms=ARMS)
    armlet.evaluate(labelled, first, checks="none")
    assert {arms for arms, _ in seen} == {ARMS}


def test_unknown_labels_are_named() -> None:
    with pytest.raises(ArgumentError, match="'west', which returns 'west'; return labels of"):
        armlet.evaluate(shop(), {"west": lambda X, _: ["west"] * len(X)}, reward_range=(0, 1))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"ten_off": [0.5, 0.5]}, "whose column 'ten_off' has shape .2,. for 300 rows"),
        ({"ten_off": ["a"] * 300}, "return probabilities"),
        ([["ten_off"], ["control", "ten_off"]] * 150, "return one label of"),
        (pd.DataFrame(np.full((300, 2), 0.5), columns=["ten_off", "ten_off"]), "has shape .300, 2."),
        (None, "which returns None; return one label"),
        (["ten_off"] * 5, "gives shape .5, 3. for 300 rows and 3 arms; return one a row"),
        (np.array([["a", "b", "c"]] * 300), "return probabilities"),
    ],
)
def test_what_has_no_probabilities_is_refused(answer: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=f"^targets has 'f', .*{text}"):
        armlet.evaluate(shop(), {"f": lambda X, eligible, arms: answer}, reward_range=(0, 1))  # noqa: ARG005


def test_logs_tell_their_arms(tmp_path: Path) -> None:
    assert shop().arms == ("control", "free_ship", "ten_off")
    assert repr(read(shop())) == "<TableLog of table: arms ['control', 'free_ship', 'ten_off'], 1 features>"
    with armlet.Log(tmp_path / "log.jsonl") as log:
        bandit = armlet.Bandit(["b", "a"], 1, seed=1, log=log)
        bandit.add_arm("0")
        bandit.learn(bandit.decide([1.0]), 1.0)
    assert log.arms == ("b", "a", "0")
    armlet.log.compact(log.path, tmp_path / "log.parquet")
    assert armlet.Log(tmp_path / "log.parquet").arms == ("b", "a", "0")
