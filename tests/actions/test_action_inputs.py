"""Contexts and actions of any kind at the border, and what is refused there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import scipy.sparse

import armlet
from armlet import ActionBandit, ActionTable, HashedFeatures
from armlet.actions.decision import ActionDecision
from armlet.errors import ArmletError, InvalidTypeError, InvalidValueError, UnknownNameError

ROWS: dict[str | int, dict[str, float]] = {
    "tea": {"price": 2.5, "sweet": 0.0},
    "cocoa": {"price": 3.0, "sweet": 1.0},
    7: {"price": 1.0, "sweet": 0.5},
}
NAMES = ["price", "sweet"]
LABELS = list(ROWS)
Z = np.array([[row["price"], row["sweet"]] for row in ROWS.values()])


def bandit(**options: Any) -> ActionBandit:
    return ActionBandit(1, action_features=NAMES, seed=1, **options)


def frame() -> pd.DataFrame:
    return pd.DataFrame(Z, columns=NAMES)


GIVEN: dict[str, Any] = {
    "mappings by name": ROWS,
    "mappings in another order": {label: dict(reversed(row.items())) for label, row in ROWS.items()},
    "lists": {label: list(row.values()) for label, row in ROWS.items()},
    "arrays": dict(zip(LABELS, Z, strict=True)),
    "labels and a matrix": (LABELS, Z),
    "labels and integers": (LABELS, Z.tolist()),
    "labels and a frame": (LABELS, frame()),
    "labels and a sparse matrix": (LABELS, scipy.sparse.csr_matrix(Z)),
    "sparse rows": {label: scipy.sparse.csr_matrix(row[np.newaxis]) for label, row in zip(LABELS, Z, strict=True)},
    "a frame with an index": frame().set_index(pd.Index(LABELS, dtype=object)),
    "turned around": (LABELS[::-1], Z[::-1]),
    "a table": ActionTable(LABELS, Z, names=NAMES),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_tables_of_any_kind_are_one_table(kind: str) -> None:
    table = bandit().table(GIVEN[kind])
    assert table.labels == (7, "cocoa", "tea")
    np.testing.assert_array_equal(table.features, Z[[2, 1, 0]])
    assert table.hash == ActionTable(LABELS, Z, names=NAMES).hash


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_frames_have_a_column_of_labels(make: Any) -> None:
    columns = {"sweet": [0.0, 1.0], "arm": ["tea", "cocoa"], "price": [2.5, 3.0]}
    assert bandit().table(make(columns)).hash == bandit().table({label: ROWS[label] for label in ("tea", "cocoa")}).hash


def test_a_frame_without_labels_names_the_column() -> None:
    with pytest.raises(InvalidValueError, match="no column 'arm'"):
        bandit().table(pl.DataFrame({"price": [1.0], "sweet": [0.0]}))


def test_an_encoder_reads_rows_of_text() -> None:
    rows = [{"colour": "red", "price": 2.0}, {"colour": "blue", "price": 3.0}]
    encoder = armlet.Encoder().fit(rows)
    chooser = ActionBandit(action_encoder=encoder, encoder=armlet.Encoder().fit({"city": ["Oslo", "Rome"]}), seed=1)
    decision = chooser.decide({"city": "Rome"}, {"a": rows[0], "b": rows[1]})
    assert decision.z.tolist() == encoder.encode(rows["ab".index(str(decision.arm))]).tolist()
    twin = armlet.from_bytes(chooser.to_bytes(), kind=ActionBandit)
    assert twin.settings == chooser.settings
    frame = pl.DataFrame({"arm": ["a", "b"], "colour": ["red", "blue"], "price": [2.0, 3.0]})
    assert twin.table(frame).hash == chooser.table({"a": rows[0], "b": rows[1]}).hash
    with pytest.raises(InvalidValueError, match=r"actions\['b'\]|row 1|price"):
        chooser.table({"a": rows[0], "b": {"colour": "red", "price": float("nan")}})


def test_hashed_names_fill_a_fixed_number_of_features() -> None:
    chooser = ActionBandit(encoder=HashedFeatures(4), action_encoder=HashedFeatures(16), seed=2)
    items: dict[str, dict[str, object]] = {
        "a": {"title": "blue shoes", "tags": ["new"], "price": 3.5},
        "b": {"brand": {"name": "Acme", "age": 3}},
    }
    decision = chooser.decide({"country": "NO", "hour": 7}, items)
    chooser.learn(decision, 1.0)
    assert decision.z.shape == (16,)
    assert decision.x.sum() == 8.0
    twin = armlet.from_bytes(chooser.to_bytes(), kind=ActionBandit)
    assert twin.digest() == chooser.digest()
    assert twin.decide({"never seen": True}, items).n_actions == 2
    with pytest.raises(InvalidValueError, match="Vowpal Wabbit"):
        HashedFeatures(100_000)
    with pytest.raises(InvalidTypeError, match=r"actions\['a'\].*price"):
        chooser.table({"a": {"price": object()}})


def test_sparse_contexts_are_filled_in() -> None:
    chooser = ActionBandit(3, 1, seed=1)
    X = scipy.sparse.csr_matrix(np.eye(3))
    actions = {"a": [1.0], "b": [2.0]}
    assert chooser.decide(X[1], actions).x.tolist() == [0.0, 1.0, 0.0]
    assert [d.x.tolist() for d in chooser.decide_many(X, actions)] == np.eye(3).tolist()
    with pytest.raises(InvalidValueError, match="Vowpal Wabbit"):
        chooser.decide(scipy.sparse.csr_matrix((1, 100_000)), actions)


def test_each_context_may_have_its_own_table() -> None:
    chooser = ActionBandit(1, 1, seed=1)
    made = chooser.decide_many([[0.0], [1.0]], [{"a": [1.0]}, {"b": [1.0], "c": [2.0]}])
    assert [d.n_actions for d in made] == [1, 2]
    with pytest.raises(InvalidValueError, match="1 tables for 2 contexts"):
        chooser.decide_many([[0.0], [1.0]], [{"a": [1.0]}])


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"tea": {"price": 1.0}}, InvalidValueError, r"actions\['tea'\]: action lacks 'sweet'"),
        ({"tea": [1.0, "x"]}, InvalidTypeError, r"actions\['tea'\]: action\['sweet'\] is 'x'"),
        ({"tea": [1.0]}, InvalidValueError, r"actions\['tea'\]: dim is 2 but the action has 1 values"),
        ({1.5: [1.0, 2.0]}, InvalidTypeError, "named 1.5"),
        ((["a", "a"], [[1.0, 2.0], [1.0, 2.0]]), InvalidValueError, "'a' more than once"),
        ((["a"], [[1.0, 2.0], [1.0, 2.0]]), InvalidValueError, "1 labels and 2 rows"),
        ("nothing", UnknownNameError, "no table 'nothing' was prepared"),
        (3, InvalidTypeError, "actions is 3"),
        (ActionTable(["a"], [[1.0]]), InvalidValueError, "action_dim is 2 but the table has 1"),
        (ActionTable(["a"], [[1.0, 2.0]], names=["cost", "sweet"]), InvalidValueError, "the table's features are"),
    ],
)
def test_what_is_not_a_table_of_actions_is_refused(given: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        bandit().table(given)


def test_an_eligible_mask_is_in_the_order_of_the_table() -> None:
    chooser = bandit()
    decision = chooser.decide([0.0], ROWS, eligible=np.array([False, False, True]))
    assert (decision.arm, decision.eligible) == ("tea", ("tea",))
    with pytest.raises(InvalidTypeError, match="cannot be replayed"):
        chooser.decide([0.0], ROWS, eligible=lambda label: True)  # type: ignore[arg-type]  # noqa: ARG005
    with pytest.raises(InvalidValueError, match="shape"):
        chooser.decide([0.0], ROWS, eligible=np.array([True]))


def test_labels_that_come_once_serve_every_row() -> None:
    made = bandit().decide_many([[0.1], [0.2]], ROWS, eligible=(label for label in ("tea", 7)))
    assert [decision.eligible for decision in made] == [(7, "tea"), (7, "tea")]


COLUMNS: dict[str, Any] = {"x": [[0.1]], "z": [[1.0, 2.0]], "arm": ["tea"], "reward": [1.0]}


@pytest.mark.parametrize("name", list(COLUMNS))
@pytest.mark.parametrize("value", [1.5, "tea", None])
def test_a_column_has_a_value_for_each_row(name: str, value: Any) -> None:
    learner = bandit()
    before = learner.digest()
    with pytest.raises(InvalidTypeError, match=f"column {name} is .*; give a list, one value for each row"):
        learner.partial_fit({**COLUMNS, name: value})
    assert learner.digest() == before


@pytest.mark.parametrize("value", [1.5, "ab", b"ab", [["tea"]], [1j]])
@pytest.mark.parametrize("name", ["x", "z", "actions", "n_actions", "eligible", "support"])
def test_a_record_of_a_decision_is_checked(name: str, value: Any) -> None:
    if (name, value) == ("actions", "ab"):
        return
    record = bandit().decide([0.1], ROWS).to_dict()
    with pytest.raises(ArmletError):
        ActionDecision.from_dict({**record, name: value})


def test_features_of_actions_are_called_so() -> None:
    for options, text in (
        ({"action_dim": 0}, "action_dim is 0; an action has"),
        ({"action_features": 1.5}, "action_features is 1.5"),
        ({"action_features": ["a", "a"]}, "action_features has 'a' more than once"),
    ):
        with pytest.raises(ArmletError, match=text):
            ActionBandit(1, **options)
    for names in (1.5, "ab", [1]):
        with pytest.raises(InvalidTypeError, match="names"):
            ActionTable(["tea"], [[1.0]], names=names)  # type: ignore[arg-type]


def test_the_last_step_is_decided_one_by_one_and_with_others() -> None:
    learner = bandit()
    learner.replace(t=2**63 - 3)
    before = learner.digest()
    with pytest.raises(InvalidValueError, match="t is 9223372036854775808"):
        learner.decide_many([[0.1]] * 3, ROWS)
    assert learner.digest() == before
    assert [decision.t for decision in learner.decide_many([[0.1]] * 2, ROWS)] == [2**63 - 2, 2**63 - 1]


def test_the_step_of_a_record_is_in_plain_digits() -> None:
    record = bandit().decide([0.1], ROWS).to_dict()
    with pytest.raises(InvalidValueError, match="id is"):
        ActionDecision.from_dict({**record, "id": record["id"].replace("1-", "\u0661-", 1)})
