"""One labelled table: the same rows from every library and file, roles by name, and refusals by row and column."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import armlet
from armlet.errors import ArgumentError
from armlet.inputs import tables
from armlet.inputs.tables import Texts

ROWS: dict[str, list[Any]] = {
    "age": [31.0, None, 28.0, 50.5],
    "country": ["no", "fr", None, "no"],
    "seen": [datetime.date(2026, 3, day) for day in (1, 2, 3, 4)],
    "member": [True, False, True, True],
    "variant": ["b", "a", "c", "b"],
    "click": [1, 0, None, 1],
    "prob": [0.5, 0.25, 0.25, 0.5],
}
FEATURES = ("age", "country", "seen", "member")
JSON_ROWS = [
    {
        name: value.isoformat() if isinstance(value, datetime.date) else value
        for name, value in zip(ROWS, row, strict=True)
    }
    for row in zip(*ROWS.values(), strict=True)
]


def as_csv(folder: Path) -> Path:
    pa.csv.write_csv(pa.table(ROWS), folder / "ab.csv")
    return folder / "ab.csv"


def as_parquet(folder: Path) -> Path:
    pq.write_table(pa.table(ROWS), folder / "ab.parquet")
    return folder / "ab.parquet"


def as_arrow(folder: Path) -> Path:
    with pa.ipc.new_file(folder / "ab.arrow", pa.table(ROWS).schema) as writer:
        writer.write_table(pa.table(ROWS))
    return folder / "ab.arrow"


def as_lines(folder: Path) -> Path:
    (folder / "ab.jsonl").write_text("\n".join(map(json.dumps, JSON_ROWS)))
    return folder / "ab.jsonl"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "columns": lambda _: ROWS,
    "rows": lambda _: [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)],
    "pandas": lambda _: pd.DataFrame(ROWS),
    "nullable pandas": lambda _: pd.DataFrame(ROWS).convert_dtypes(),
    "pandas with dates": lambda _: pd.DataFrame(ROWS).assign(seen=pd.to_datetime(pd.Series(ROWS["seen"]), utc=True)),
    "polars": lambda _: pl.DataFrame(ROWS),
    "arrow": lambda _: pa.table(ROWS),
    "chunks": lambda _: pa.concat_tables([pa.table(ROWS).slice(0, 1), pa.table(ROWS).slice(1)]),
    "csv": as_csv,
    "parquet": as_parquet,
    "arrow file": as_arrow,
    "json lines": as_lines,
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_arrays(source: str, tmp_path: Path) -> None:
    wanted = armlet.Table(ROWS, features=FEATURES)
    table = armlet.Table(SOURCES[source](tmp_path), features=FEATURES)
    assert (len(table), table.columns, table.arms) == (4, tuple(ROWS), ("a", "b", "c"))
    assert table.played.tolist() == [1, 0, 2, 1]
    assert table.labels() == ROWS["variant"]
    assert np.array_equal(table.rewards, [[1.0], [0.0], [np.nan], [1.0]], equal_nan=True)
    assert table.rewarded.tolist() == [True, True, False, True]
    assert table.propensities is not None
    assert table.propensities.tolist() == ROWS["prob"]
    assert table.encoder == wanted.encoder
    assert np.array_equal(table.X, wanted.X)


def test_contexts_are_those_of_its_encoder_with_a_flag_for_gaps() -> None:
    table = armlet.Table(ROWS, features=FEATURES)
    encoder = armlet.Encoder(FEATURES, missing="flag").fit({name: ROWS[name] for name in FEATURES})
    assert table.encoder == encoder
    assert table.features == encoder.features
    X = dict(zip(encoder.features, table.X.T.tolist(), strict=True))
    assert X["age"] == [31.0, 36.5, 28.0, 50.5]
    assert X["age=missing"] == [0.0, 1.0, 0.0, 0.0]
    assert X["country=missing"] == [0.0, 0.0, 1.0, 0.0]
    assert X["seen.days"] == [20513.0, 20514.0, 20515.0, 20516.0]
    assert X["seen=Sun"] == [1.0, 0.0, 0.0, 0.0]


def test_numbers_need_no_encoder_and_nothing_named_is_a_constant() -> None:
    table = armlet.Table(ROWS, features=["member", "1"])
    assert table.encoder is None
    assert (table.features, table.X.tolist()) == (("member", "1"), [[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    assert armlet.Table(ROWS).X.tolist() == [[1.0]] * 4


@pytest.mark.parametrize("form", ["binary", "list", "array", "lists", "bytes"])
def test_a_column_may_hold_whole_contexts(form: str) -> None:
    X = np.arange(6.0).reshape(3, 2)
    column: Any = {
        "binary": pa.array([row.tobytes() for row in X], pa.binary(16)),
        "list": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 2),
        "array": X,
        "lists": X.tolist(),
        "bytes": [row.tobytes() for row in X],
    }[form]
    table = armlet.Table({"x": column, "arm": ["a", "b", "a"], "reward": [1, 0, 1]}, features="x")
    assert table.X.tolist() == X.tolist()
    assert table.features is None
    assert armlet.Bandit(table.arms, 2, seed=1).partial_fit(table).t == 3


def test_names_in_other_words_are_recognised_and_two_are_refused() -> None:
    rows = {"Action": ["a", "b"], "converted": [1, 0], "pscore": [0.5, 0.5]}
    table = armlet.Table(rows)
    assert (table.roles.arm, table.roles.rewards, table.roles.propensity) == ("Action", ("converted",), "pscore")
    with pytest.raises(ArgumentError, match=r"^reward may be 'converted' or 'click' of the table; name one$"):
        armlet.Table({**rows, "click": [0, 1]})
    assert armlet.Table({**rows, "click": [0, 1]}, reward="click").roles.rewards == ("click",)
    assert armlet.Table({**rows, "reward": [0, 1]}).roles.rewards == ("reward",)
    assert armlet.Table({**rows, "treatment": [0, 1]}, features=["treatment"]).roles.arm == "Action"


def test_other_roles_become_arrays() -> None:
    rows = {
        **ROWS,
        "random": [True, None, False, True],
        "size": [1.0, 2.0, None, 0.5],
        "unit": ["u", None, "v", "u"],
        "epoch": [0, None, 1, 2],
        "may": ["b|a", None, "c", "a|b"],
    }
    table = armlet.Table(rows, explored="random", weight="size", time="seen", eligible="may")
    assert table.explored is not None
    assert table.explored.tolist() == [True, False, False, True]
    assert table.weights is not None
    assert table.weights.tolist() == [1.0, 2.0, 1.0, 0.5]
    assert table.times is not None
    assert table.times[0] == 20513 * 86_400_000_000
    assert isinstance(table.units, Texts)
    assert (table.units.texts, table.units.codes.tolist()) == (["u", "v"], [0, -1, 1, 0])
    assert table.epochs is not None
    assert table.epochs.tolist() == [0, -1, 1, 2]
    assert table.eligible is not None
    assert table.eligible.tolist() == [[True, True, False], [True] * 3, [False, False, True], [True, True, False]]


def test_outcomes_are_columns_by_name_and_prices_are_read_by_the_kind_of_labels() -> None:
    rows = {"arm": [9, 7], "reward_quality": [0.5, None], "delay": [2.0, 1.0]}
    weights = {"quality": 1.0, "delay": -0.5, "cost": -10.0}
    table = armlet.Table(rows, outcomes=weights, known={"cost": {"7": 0.1, "9": 0.3}})
    assert table.roles.rewards == ("reward_quality", "delay")
    assert np.array_equal(table.rewards, [[0.5, 2.0], [np.nan, 1.0]], equal_nan=True)
    assert table.outcomes is not None
    assert table.outcomes.known == {"cost": {7: 0.1, 9: 0.3}}
    observed = armlet.Table({**rows, "reward": [1, 0]}).observed
    assert list(observed) == ["quality"]


def test_a_bandit_learns_it_as_it_learns_rows() -> None:
    table = armlet.Table({**ROWS, "size": [1.0, 2.0, 3.0, 0.5]}, features=FEATURES, weight="size", explored=True)
    one, other = (armlet.Bandit(["c", "b", "a"], encoder=table.encoder, seed=1) for _ in range(2))
    one.partial_fit(table, design="randomized")
    kept = [0, 1, 3]
    arms = [ROWS["variant"][i] for i in kept]
    weights = [1.0, 2.0, 0.5]
    other.partial_fit(table.X[kept], arms, [1, 0, 1], explored=True, weights=weights, steps=4, design="randomized")
    assert one.to_bytes() == other.to_bytes()
    assert one.fit(table).t == 8
    with pytest.raises(ValueError, match=r"weights is .*, but a Table says that itself"):
        one.partial_fit(table, weights=[1.0] * 4)
    with pytest.raises(ValueError, match=r"the table was read with \('click',\) as rewards; give Table\(outcomes="):
        armlet.Bandit(["a", "b", "c"], 1, outcomes={"quality": 1.0}, seed=1).partial_fit(table)


def test_a_model_reads_its_own_features_of_any_table() -> None:
    table = armlet.Table(ROWS)  # without features
    bandit = armlet.Bandit(table.arms, features=["member"], seed=1).partial_fit(table)
    assert bandit.state.arrays()["records"].shape[0] == 3
    assert table.reading(["member"]).X[:, 0].tolist() == [1.0, 0.0, 1.0, 1.0]
    encoder = armlet.Encoder(["country"], missing="flag").fit(ROWS)
    encoded = table.encoded(encoder)
    assert encoded.features == encoder.features
    assert encoded.encoded(armlet.Encoder(["age"], missing="flag").fit(ROWS)) is encoded


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        ({}, {"arm": "add"}, "arm names 'add', which is not a column of the table; choose one of age, country"),
        (
            {},
            {"arm": "age", "features": ["age"]},
            "arm names 'age', which features names before; give every column one",
        ),
        ({}, {"features": ["age", "age"]}, "features names a column twice: age"),
        ({"variant": None}, {}, "arm is missing; name the column of what was played: one of age, country"),
        ({"click": None}, {}, "reward is missing; name the column of what it paid: one of"),
        ({"variant": ["a", None, "b", "a"]}, {}, "row 1: column 'variant' has no value; fill it in, or leave the row"),
        ({"variant": ["a", 1.5, "b", "a"]}, {}, "row 1: column 'variant': an arm is named 1.5"),
        (
            {},
            {"arms": ["a", "b"]},
            "row 2: column 'variant' is 'c', which is none of the arms; name all of them with ar",
        ),
        ({"variant": [1, 2, 1, 2]}, {"arms": ["1", "b"]}, "arms has 'b', but the table names arms by whole numbers"),
        ({"click": [1, 0, "often", 1]}, {}, r"row 2: column 'click' is 'often' \(str\); give a real number"),
        ({"click": [1, None, float("inf"), 1]}, {}, "row 2: column 'click' is inf; give a finite number"),
        ({"prob": [0.5, 1.3, 0.5, 0.5]}, {}, "row 1: column 'prob' is 1.3; give the probability of the arm, above 0"),
        ({"prob": [0.5, None, 0.5, 0.5]}, {}, r"row 1: column 'prob' is None \(NoneType\)"),
        ({}, {"propensity": 1.5}, "propensity is 1.5; give the name of a column, or a number above 0, at most 1"),
        ({"size": [1, 1, 1, 0]}, {"weight": "size"}, "row 3: column 'size' is 0.0; give a positive number"),
        ({"random": [0, 2, 0, 0]}, {"explored": "random"}, "row 1: column 'random' is 2.0; give true or false"),
        ({"may": ["a|b", "b", "c", "b"]}, {"eligible": "may"}, "row 1: column 'may' leaves out 'a', which was played"),
        (
            {"may": ["b", "a", "c|d", "b"]},
            {"eligible": "may"},
            "row 2: column 'may' has 'd', which is none of the arms",
        ),
        ({}, {"time": "age"}, "row 0: column 'age': it is 31.0"),
        ({}, {"outcomes": {"cost": 1.0}}, "outcomes|reward names 'reward_cost', which is not a column"),
        ({"marginal": [True, False, True, False], "propensity": [0.5] * 4}, {}, "over all coins in 2 rows"),
    ],
)
def test_refusals_name_the_role_or_the_row_and_the_column(
    change: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    rows = {name: values for name, values in {**ROWS, **change}.items() if values is not None}
    with pytest.raises((ValueError, TypeError), match=message):
        armlet.Table(rows, **settings)


def test_a_refused_cell_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "ab.csv"
    path.write_text("age,ad,click\n31,a,1\n44,b,x\n")
    with pytest.raises(TypeError, match=r"^ab.csv, row 1: column 'click' is 'x'|^ab.csv, row 0: column 'click' is '1'"):
        armlet.Table(path, arm="ad", reward="click")
    with pytest.raises(ArgumentError, match=r"^arm names 'add', which is not a column of ab.csv; did you mean 'ad'"):
        armlet.Table(path, arm="add")
    path.write_text("age,ad,click\n")
    with pytest.raises(ArgumentError, match=r"^data is ab.csv, which has no rows"):
        armlet.Table(path)


def test_files_that_are_not_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"no table")
    with pytest.raises(ArgumentError, match=r"^data is broken.parquet, which cannot be read: "):
        armlet.Table(tmp_path / "broken.parquet")
    with pytest.raises(ArgumentError, match=r"^data is pilot.txt; give a file that ends in .csv, .parquet, "):
        armlet.Table(tmp_path / "pilot.txt")
    with pytest.raises(FileNotFoundError, match=r"^the table is .*none.csv, which does not exist$"):
        armlet.Table(tmp_path / "none.csv")


def test_an_empty_cell_of_a_csv_file_has_no_value_and_words_stay(tmp_path: Path) -> None:
    (tmp_path / "ab.csv").write_text("country,arm,reward\nNA,a,1\n,b,\nno,a,0\n")
    table = armlet.Table(tmp_path / "ab.csv", features=["country"])
    assert table.features == ("country=NA", "country=no", "country=other", "country=missing")
    assert table.X[:, 3].tolist() == [0.0, 1.0, 0.0]
    assert table.rewarded.tolist() == [True, False, True]


def test_the_repr_says_what_was_read() -> None:
    assert repr(armlet.Table(ROWS, features=FEATURES)) == (
        "<Table: 4 rows; features age (1 missing), country (text; 1 missing), seen (date), member; "
        "arm variant (a, b, c); reward click (1 missing); propensity prob>"
    )


@pytest.mark.parametrize("source", ["arrow", "chunks", "pandas", "parquet", "csv"])
def test_no_cell_becomes_an_object(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(values: object) -> None:
        raise AssertionError(f"{values!r} is read cell by cell")

    data = SOURCES[source](tmp_path)
    if source == "pandas":
        data = data.assign(seen=pd.to_datetime(data["seen"]), click=data["click"].astype(float))
    monkeypatch.setattr(tables, "python_values", refuse)
    table = armlet.Table(data, features=FEATURES, time="seen")
    assert table.X.shape == (4, 18)
    assert repr(table)
