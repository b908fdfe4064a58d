"""A bandit that carries an encoder: contexts by column, in ones and in batches, through files and merges."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import armlet

ROWS: list[dict[str, Any]] = [{"colour": colour, "price": price} for price in (1.0, 2.5) for colour in ("red", "blue")]
ENCODER = armlet.Encoder().fit(ROWS)


def make(encoder: armlet.Encoder = ENCODER, seed: int = 7) -> armlet.Bandit:
    return armlet.Bandit(["a", "b"], encoder=encoder, policy=armlet.LinUCB(), seed=seed)


def test_a_row_is_decided_by_its_numbers() -> None:
    named, plain = make(), armlet.Bandit(["a", "b"], ENCODER.dim, policy=armlet.LinUCB(), seed=7)
    for row in ROWS * 5:
        by_name, by_place = named.decide(row), plain.decide(ENCODER.encode(row))
        assert by_name.x.tolist() == ENCODER.encode(row).tolist()
        assert (by_name.id, by_name.arm) == (by_place.id, by_place.arm)
        for bandit, decision in ((named, by_name), (plain, by_place)):
            bandit.learn(decision, float(row["colour"] == "red") + (decision.arm == "b"))
    assert named.decide(ENCODER.encode(ROWS[0])).x.tolist() == ENCODER.encode(ROWS[0]).tolist()  # numbers stay numbers
    assert named.settings.features == ENCODER.features
    assert named.settings.encoder == ENCODER


@pytest.mark.parametrize(
    "table", [list, pd.DataFrame, pl.DataFrame, pa.Table.from_pylist, lambda rows: pd.DataFrame(rows).to_dict("list")]
)
def test_batches_are_the_same_as_one_by_one(table: Callable[[Any], Any]) -> None:
    one_by_one, batch = make(), make()
    decisions = batch.decide_many(table(ROWS))
    assert [each.id for each in decisions] == [one_by_one.decide(row).id for row in ROWS]
    for bandit, X in ((batch, table(ROWS)), (one_by_one, ENCODER.transform(ROWS))):
        bandit.partial_fit(X, ["a", "b", "a", "b"], [1.0, 2.0, 3.0, 4.0])
    assert batch.state.records().tobytes() == one_by_one.state.records().tobytes()
    assert batch.predict(table(ROWS)).tolist() == one_by_one.predict(ENCODER.transform(ROWS)).tolist()
    assert np.array_equal(batch.predict_expectations(table(ROWS)), one_by_one.predict_expectations(ROWS))


def test_a_list_may_mix_rows_and_numbers() -> None:
    mixed: Any = [ROWS[0], ENCODER.encode(ROWS[1]), list(ENCODER.encode(ROWS[2]))]
    assert np.array_equal(make().predict_expectations(mixed), make().predict_expectations(ROWS[:3]))
    series = pd.DataFrame(ROWS).iloc[1]
    assert make().decide(series).x.tolist() == ENCODER.encode(ROWS[1]).tolist()


def test_bad_rows_are_named_and_change_nothing() -> None:
    bandit = make()
    before = bandit.to_bytes()
    rows: list[tuple[Any, str]] = [
        ({"colour": "red"}, "context lacks 'price'"),
        ({"colour": "red", "price": 1.0, "size": 2}, "context has the unknown 'size'; .*extra='ignore'"),
        ({"colour": 1.5, "price": 1.0}, "give text"),
        (["red", 1.0], "dim is 4 but the context has 2 values|context.0. is 'red'"),
    ]
    for row, message in rows:
        with pytest.raises((TypeError, ValueError), match=message):
            bandit.decide(row)
    with pytest.raises(ValueError, match="the table lacks 'price'"):
        bandit.decide_many(pd.DataFrame({"colour": ["red"]}))
    assert bandit.to_bytes() == before


def test_the_file_has_the_encoder(tmp_path: Path) -> None:
    bandit = make(armlet.Encoder(hashed={"colour": 4}, extra="ignore").fit(ROWS))
    bandit.learn(bandit.decide(ROWS[0]), 1.0)
    bandit.save(tmp_path / "model.armlet")
    row = {**ROWS[1], "unknown": "column"}
    for twin in (armlet.load(tmp_path / "model.armlet"), pickle.loads(pickle.dumps(bandit)), bandit.copy()):
        assert twin.settings.encoder == bandit.settings.encoder
        assert twin.to_bytes() == bandit.to_bytes()
        assert twin.decide(row).x.tolist() == ENCODER_OF_FILE.encode(ROWS[1]).tolist()


ENCODER_OF_FILE = armlet.Encoder(hashed={"colour": 4}).fit(ROWS)


def test_a_file_without_an_encoder_is_what_it_was() -> None:
    assert b"encoder" not in armlet.Bandit(["a"], 1, policy=armlet.LinUCB(), seed=1).to_bytes()


def test_merging_takes_the_same_encoder() -> None:
    same = make(seed=8)
    same.learn(same.decide(ROWS[0]), 1.0)
    whole = make() + same
    assert whole.t == 1
    assert same.difference(make()).settings.encoder == ENCODER
    for other in (
        armlet.Bandit(["a", "b"], features=ENCODER.features, policy=armlet.LinUCB(), seed=9),
        make(armlet.Encoder().fit({"colour": ["red", "green"], "price": [1.0, 2.0]}), seed=9),
        make(_twisted(), seed=9),
    ):
        with pytest.raises(armlet.errors.MergeError, match="only sums of the same kind add up"):
            whole.merge(other)


def _twisted() -> armlet.Encoder:
    """The same names, but other texts behind them."""
    saved = ENCODER.to_dict()
    saved["columns"][0] = {"column": "colour", "kind": "flags", "texts": ["blue", "red", "other"], "other": "zeros"}
    return armlet.Encoder.from_dict(saved)


def test_a_bandit_keeps_the_encoder_that_it_was_given() -> None:
    encoder = armlet.Encoder().fit(ROWS)
    bandit = make(encoder)
    encoder.fit({"size": [1.0]})
    assert bandit.decide(ROWS[0]).x.tolist() == ENCODER.encode(ROWS[0]).tolist()


def test_what_does_not_go_with_an_encoder_is_refused() -> None:
    for settings, error, message in (
        ({"encoder": armlet.Encoder()}, armlet.errors.NotFittedError, "call encoder.fit"),
        ({"encoder": "one-hot"}, TypeError, "encoder is 'one-hot'; give an armlet.Encoder"),
        ({"encoder": ENCODER, "features": ["x"]}, ValueError, "features is .*leave features out"),
        ({"encoder": ENCODER, "dim": 3}, ValueError, "dim is 3 but features has 4 names"),
    ):
        with pytest.raises(error, match=message):
            armlet.Bandit(["a"], policy=armlet.LinUCB(), **settings)
