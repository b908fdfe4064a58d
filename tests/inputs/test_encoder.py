"""The encoder: the same numbers from every kind of table, refusals by name, files, and scikit-learn's contract."""

from __future__ import annotations

import copy
import datetime
import decimal
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import armlet

ROWS: list[dict[str, Any]] = [
    {"colour": "red", "price": 3.0, "size": 1, "new": True},
    {"colour": "blue", "price": 4.5, "size": 2, "new": False},
    {"colour": "red", "price": -1.0, "size": 1, "new": True},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
WANTED = [[0, 1, 0, 3.0, 1, 1], [1, 0, 0, 4.5, 2, 0], [0, 1, 0, -1.0, 1, 1]]
TABLES: dict[str, Callable[[], Any]] = {
    "rows": lambda: ROWS,
    "columns": lambda: COLUMNS,
    "numpy columns": lambda: {name: np.array(column) for name, column in COLUMNS.items()},
    "pandas": lambda: pd.DataFrame(COLUMNS, index=[7, 8, 9]),
    "pandas categories": lambda: pd.DataFrame(COLUMNS).astype({"colour": "category", "size": "Int64"}),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars categories": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("colour").cast(pl.Categorical)),
    "arrow": lambda: pa.table(COLUMNS),
    "arrow dictionary": lambda: pa.table({**COLUMNS, "colour": pa.array(COLUMNS["colour"]).dictionary_encode()}),
    "arrow chunks": lambda: pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)]),
    "arrow batch": lambda: pa.record_batch(COLUMNS),
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_gives_the_same_numbers(kind: str) -> None:
    encoder = armlet.Encoder().fit(TABLES[kind]())
    assert encoder.features == ("colour=blue", "colour=red", "colour=other", "price", "size", "new")
    assert encoder.transform(TABLES[kind]()).tolist() == WANTED
    assert encoder == armlet.Encoder().fit(ROWS)


def test_a_row_is_encoded_as_in_a_table() -> None:
    encoder = armlet.Encoder().fit(ROWS)
    assert [encoder.encode(row).tolist() for row in ROWS] == WANTED
    assert encoder.encode({**ROWS[0], "colour": "green"})[:3].tolist() == [0, 0, 1]


def test_texts_that_are_rare_or_new_share_a_flag_unless_told() -> None:
    table = {"colour": ["red", "red", "blue", "blue", "green", "pink"]}
    shared = armlet.Encoder(most=2).fit(table)
    assert shared.features == ("colour=blue", "colour=red", "colour=other")
    assert shared.transform(table)[:, 2].tolist() == [0, 0, 0, 0, 1, 1]
    silent = armlet.Encoder(most=2, other="zeros").fit(table)
    assert silent.transform(table).sum(axis=1).tolist() == [1, 1, 1, 1, 0, 0]
    with pytest.raises(ValueError, match="column 'colour' has 4 different texts; group them into 2 or fewer"):
        armlet.Encoder(most=2, other="refuse").fit(table)
    strict = armlet.Encoder(other="refuse").fit(table)
    with pytest.raises(ValueError, match=r"row 1: column 'colour' is 'black', which is none of \['blue'"):
        strict.transform({"colour": ["red", "black"]})
    with pytest.raises(ValueError, match=r"context\['colour'\] is 'black', which is none of"):
        strict.encode({"colour": "black"})


def test_a_text_called_other_is_that_of_all_others() -> None:
    encoder = armlet.Encoder().fit({"colour": ["other", "red"]})
    assert encoder.features == ("colour=other", "colour=red")
    assert encoder.encode({"colour": "green"}).tolist() == encoder.encode({"colour": "other"}).tolist() == [1, 0]


def test_buckets_are_the_same_for_ever_and_for_every_text() -> None:
    encoder = armlet.Encoder(hashed={"city": 8}).fit({"city": ["Oslo"], "n": [1.0]})
    assert encoder.dim == 9
    assert int(encoder.encode({"city": "Oslo", "n": 0})[:8].argmax()) == 5  # so that models of today load forever
    cities = [f"city {i}" for i in range(4000)]
    counts = encoder.transform({"city": cities, "n": [0.0] * 4000})[:, :8].sum(axis=0)
    assert counts.sum() == 4000
    assert counts.min() > 400  # 500 expected, with a deviation of 21


def test_whole_numbers_may_be_categories_and_a_constant_may_be_asked_for() -> None:
    encoder = armlet.Encoder(["1", "zip"], categories=["zip"], other="zeros").fit({"zip": [10, 20], "arm": [0, 1]})
    assert encoder.features == ("1", "zip=10", "zip=20")
    assert encoder.transform({"zip": [20, 30]}).tolist() == [[1, 0, 1], [1, 0, 0]]
    assert encoder.encode({"zip": "10"}).tolist() == [1, 1, 0]
    held = armlet.Encoder(["1"]).fit({"1": [5.0]})
    assert held.encode({"1": 7.0}).tolist() == [7.0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"colour": "red"}, "context lacks 'price'; give each column once$"),
        ({"colour": "red", "price": 1, "size": 2}, "context has the unknown 'size'; .* or set extra='ignore'"),
        ({"colour": "red", "prize": 1}, "context lacks 'price' and has the unknown 'prize'"),
        ({"colour": "red", "price": float("nan")}, r"context\['price'\] is nan; give a finite number"),
        ({"colour": "red", "price": "3"}, r"context\['price'\] is '3' \(str\); give a real number"),
        ({"colour": None, "price": 1}, r"context\['colour'\]: there is no value; fill it in"),
        ({"colour": 1.5, "price": 1}, r"context\['colour'\]: it is 1.5 \(float\); give text, or a whole number"),
    ],
)
def test_bad_rows_are_refused_by_name(row: dict[str, Any], message: str) -> None:
    encoder = armlet.Encoder().fit({"colour": ["red"], "price": [1.0]})
    with pytest.raises((ValueError, TypeError), match=message):
        encoder.encode(row)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"colour": ["red", None], "price": [1, 2]}, "row 1: column 'colour' has no value; fill it in"),
        (pd.DataFrame({"colour": ["red", None], "price": [1, 2]}), "row 1: column 'colour' has no value"),
        (pl.DataFrame({"colour": ["red", None], "price": [1, 2]}), "row 1: column 'colour' has no value"),
        (pa.table({"colour": ["red", None], "price": [1, 2]}), "row 1: column 'colour' has no value"),
        ({"colour": ["red", 2.5], "price": [1, 2]}, r"row 1: column 'colour': it is 2.5 \(float\); give text"),
        ({"colour": ["red", "red"], "price": [1, None]}, r"row 1: column 'price' is None"),
        (pa.table({"colour": ["red", "red"], "price": [1, None]}), r"row 1: column 'price' is (nan|None)"),
        ({"colour": ["red", "red"], "price": np.array(["2026-01-01"] * 2, "M8[D]")}, "row 0: column 'price' is "),
        ({"colour": ["red"], "price": [1, 2]}, "column 'price' has 2 values and 'colour' has 1"),
        ({"colour": "red", "price": 1}, "column 'colour' is 'red' .* use encode for a single row"),
        ([{"colour": "red", "price": 1}, {"colour": "red"}], "row 1 and row 0 do not both have 'price'"),
        ([{"colour": "red", "price": 1}, ["red", 1]], "row 1 is .* give each row as a mapping"),
        ({"colour": ["red"], "price": [1], "size": [2]}, "the table has the unknown 'size'"),
        (7, "the table is 7 .int.; give a mapping of columns"),
    ],
)
def test_bad_tables_are_refused_by_row_and_column(table: Any, message: str) -> None:
    encoder = armlet.Encoder().fit({"colour": ["red"], "price": [1.0]})
    with pytest.raises((ValueError, TypeError), match=message):
        encoder.transform(table)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"other": "ignore"}, "other is 'ignore'; choose one of 'flag', 'zeros', 'refuse'"),
        ({"extra": "drop"}, "extra is 'drop'; choose one of 'refuse', 'ignore'"),
        ({"most": 0}, "most is 0; give a whole number of at least 1"),
        ({"columns": "colour"}, "columns is the string 'colour'; give a list"),
        ({"columns": ["size"]}, "the table lacks 'size'"),
        ({"columns": []}, "there are no columns"),
        ({"columns": ["price", "price"]}, "'price' more than once"),
        ({"hashed": {"city": 4}}, "hashed names 'city', but the columns are colour, price"),
        ({"hashed": {"colour": 0}}, r"hashed\['colour'\] is 0; give the number of buckets"),
    ],
)
def test_bad_settings_are_refused_and_the_fit_before_stays(settings: dict[str, Any], message: str) -> None:
    table = {"colour": ["red"], "price": [1.0]}
    encoder = armlet.Encoder().fit(table)
    encoder.set_params(**settings)
    with pytest.raises((ValueError, TypeError), match=message):
        encoder.fit(table)
    assert encoder.features == ("colour=red", "colour=other", "price")


def test_unknown_columns_may_be_ignored() -> None:
    encoder = armlet.Encoder(["price"], extra="ignore").fit(ROWS)
    assert encoder.encode(ROWS[0]).tolist() == [3.0]
    assert encoder.transform(pd.DataFrame(ROWS)).tolist() == [[3.0], [4.5], [-1.0]]


def test_no_rows_and_no_fit() -> None:
    with pytest.raises(armlet.errors.NotFittedError, match=r"call encoder\.fit"):
        armlet.Encoder().encode({"price": 1.0})
    with pytest.raises(ValueError, match="the table has no rows"):
        armlet.Encoder().fit([])
    encoder = armlet.Encoder().fit(ROWS)
    assert encoder.transform([]).shape == encoder.transform(pd.DataFrame(ROWS)[:0]).shape == (0, 6)


def test_it_comes_back_from_json_pickle_and_copies() -> None:
    encoder = armlet.Encoder(hashed={"size": 3}, categories=["new"], extra="ignore", most=1).fit(ROWS)
    for twin in (
        armlet.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict()))),
        pickle.loads(pickle.dumps(encoder)),
        copy.deepcopy(encoder),
        encoder.copy(),
    ):
        assert twin == encoder
        assert twin.extra == "ignore"
        assert twin.transform(ROWS).tolist() == encoder.transform(ROWS).tolist()
    assert encoder != armlet.Encoder().fit(ROWS)


@pytest.mark.parametrize(
    "saved",
    [
        {},
        {"columns": [], "extra": "refuse"},
        {"columns": [{"kind": "number"}], "extra": "refuse"},
        {"columns": [{"kind": "number", "column": "a"}], "extra": "maybe"},
        {"columns": [{"kind": "number", "column": "a"}] * 2, "extra": "refuse"},
        {"columns": [{"kind": "buckets", "column": "a", "n": 10**9}], "extra": "refuse"},
        {"columns": [{"kind": "flags", "column": "a", "texts": [1], "other": "flag"}], "extra": "refuse"},
        {"columns": [{"kind": "flags", "column": "a", "texts": ["x", "x"], "other": "flag"}], "extra": "refuse"},
        {"columns": "price", "extra": "refuse"},
    ],
)
def test_what_no_encoder_said_is_refused(saved: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"encoder|more than once|extra"):
        armlet.Encoder.from_dict(saved)


# ---- cells without a value, dates, identifiers

GAPS: dict[str, Callable[[], Any]] = {
    "None": lambda: {"price": [3.0, None, 5.0], "colour": ["red", None, "red"]},
    "NaN": lambda: {"price": np.array([3.0, np.nan, 5.0]), "colour": ["red", float("nan"), "red"]},
    "pandas": lambda: pd.DataFrame({"price": [3.0, None, 5.0], "colour": ["red", None, "red"]}),
    "pandas NA": lambda: pd.DataFrame({"price": pd.array([3, None, 5], "Int64"), "colour": ["red", pd.NA, "red"]}),
    "polars": lambda: pl.DataFrame({"price": [3.0, None, 5.0], "colour": ["red", None, "red"]}),
    "arrow": lambda: pa.table({"price": [3.0, None, 5.0], "colour": ["red", None, "red"]}),
}


@pytest.mark.parametrize("kind", GAPS)
def test_cells_without_a_value_have_a_flag_and_the_mean(kind: str) -> None:
    encoder = armlet.Encoder(missing="flag").fit(GAPS[kind]())
    assert encoder.features == ("price", "price=missing", "colour=red", "colour=other", "colour=missing")
    wanted = [[3.0, 0, 1, 0, 0], [4.0, 1, 0, 0, 1], [5.0, 0, 1, 0, 0]]
    assert encoder.transform(GAPS[kind]()).tolist() == wanted
    assert encoder.encode({"price": None, "colour": None}).tolist() == wanted[1]
    assert armlet.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder


@pytest.mark.parametrize("kind", GAPS)
def test_fit_refuses_the_gaps_that_transform_refuses(kind: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"row 1: column '(price|colour)'"):
        armlet.Encoder().fit(GAPS[kind]())


@pytest.mark.parametrize("bad", [decimal.Decimal(3), 1e300, b"red", object()])
def test_fit_refuses_the_values_that_transform_refuses(bad: object) -> None:
    with pytest.raises((TypeError, ValueError), match="row 1: column 'price'"):
        armlet.Encoder().fit({"price": [3.0, bad]})


MOMENT = datetime.datetime(2026, 11, 17, 18, 30)
DATES: dict[str, Callable[[], Any]] = {
    "datetimes": lambda: {"seen": [MOMENT, MOMENT]},
    "time zones": lambda: {"seen": [MOMENT.replace(tzinfo=datetime.UTC)] * 2},
    "numpy": lambda: {"seen": np.array([MOMENT, MOMENT], dtype="datetime64[us]")},
    "pandas": lambda: pd.DataFrame({"seen": [MOMENT, MOMENT]}),
    "pandas time zones": lambda: pd.DataFrame({"seen": pd.to_datetime([MOMENT, MOMENT]).tz_localize("UTC")}),
    "polars": lambda: pl.DataFrame({"seen": [MOMENT, MOMENT]}),
    "arrow": lambda: pa.table({"seen": pa.array([MOMENT, MOMENT], pa.timestamp("ns"))}),
}


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_days_hours_and_weekdays(kind: str) -> None:
    encoder = armlet.Encoder().fit(DATES[kind]())
    days = (MOMENT - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
    wanted = [days, 18.5, 0, 1, 0, 0, 0, 0, 0]  # a Tuesday
    assert encoder.transform(DATES[kind]()).tolist() == [wanted, wanted]
    assert encoder.encode({"seen": MOMENT}).tolist() == wanted
    assert encoder.features[:2] == ("seen.days", "seen.hour")
    assert armlet.Encoder.from_dict(encoder.to_dict()) == encoder


def test_dates_without_a_time_are_midnight_and_may_be_missing() -> None:
    table = {"seen": [datetime.date(1970, 1, 1), None, datetime.date(1969, 12, 31)]}
    encoder = armlet.Encoder(missing="flag").fit(table)
    found = encoder.transform(table)
    assert found[:, 0].tolist() == [0.0, -0.5, -1.0]
    assert found[:, 1].tolist() == [0.0, 0.0, 0.0]
    assert found[0, 2:9].argmax() == 3  # a Thursday
    assert found[:, 9].tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="row 1: column 'seen': there is no value"):
        armlet.Encoder().fit(table)


def test_a_text_of_its_own_in_every_row_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="column 'id' has 300 different texts in 300 rows, of which 50 get a flag"):
        armlet.Encoder().fit({"id": [f"u{i}" for i in range(300)]})
    armlet.Encoder().fit({"id": [f"u{i % 60}" for i in range(300)]})
