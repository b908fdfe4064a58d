"""Logs of other origin become events, with nothing made up; what cannot be told is refused."""

from __future__ import annotations

import json
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
from armlet.errors import ArgumentError, InvalidValueError
from armlet.evaluation.gate import gate
from armlet.evaluation.sources import open_rows
from armlet.inputs.outcomes import Outcomes
from armlet.log.exporting import write
from armlet.log.imports import from_dsjson, from_obp
from armlet.log.reader import read
from support.logs import made_events, write_events

LINE: dict[str, Any] = {
    "_label_cost": -0.5,
    "_label_probability": 0.7,
    "_label_Action": 2,
    "_labelIndex": 1,
    "Timestamp": "2026-11-15T17:09:31.8350000Z",
    "EventId": "e1",
    "a": [2, 1],
    "p": [0.7, 0.3],
    "c": {"User": {"age": 31, "kind": "new"}, "_multi": [{"id": "x"}, {"id": "y"}]},
}


def dsjson(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_dsjson_lines_become_decisions_and_rewards(tmp_path: Path) -> None:
    path = dsjson(
        tmp_path / "log.json",
        LINE,
        {**LINE, "EventId": "e2", "pdrop": 0.5, "a": [1, 3, 2], "p": [0.2, 0.2, 0.6], "_labelIndex": 0},
        {**LINE, "_skipLearn": True, "c": {"User": {"kind": "old"}, "_multi": [{}, {}]}},
        {"RewardValue": 3.0, "EventId": "e1"},
    )
    log = from_dsjson(path)
    events = list(log)
    assert log.about["features"] == ["User.age", "User.kind=new", "User.kind=old"]
    assert log.about["arms"] == [1, 2, 3]
    first, reward, second, heavier, third = events[1:]
    assert (first["x"], first["arm"], first["propensity"], first["event"]) == ([31.0, 1.0, 0.0], 2, 0.7, "e1")
    assert (first["eligible"], first["probabilities"]) == ([1, 2], [0.3, 0.7, 0.0])
    assert first["at"] == 1_794_762_571_835_000
    assert (reward["id"], reward["reward"], reward["weight"]) == (first["id"], 0.5, 1.0)
    assert (second["arm"], second["eligible"], heavier["weight"]) == (1, None, 2.0)
    assert (third["kind"], third["x"]) == ("decide", [0.0, 0.0, 1.0])


def test_dsjson_takes_names_and_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    path = dsjson(tmp_path / "log.json", LINE)
    named = list(from_dsjson(path, features=["User.age"], arms=["a", "b"]))
    assert (named[1]["x"], named[1]["arm"]) == ([31.0], "b")
    with pytest.raises(ArgumentError, match="arms has 1 names, but a line has 2 actions"):
        from_dsjson(path, arms=["a"])
    path.write_text("no json\n")
    with pytest.raises(ArgumentError, match="path is not dsjson: line 1 is not a JSON object"):
        from_dsjson(path)


def test_rounds_of_the_open_bandit_pipeline_become_events() -> None:
    rng = np.random.default_rng(1)
    feedback: dict[str, Any] = {
        "n_rounds": 6,
        "n_actions": 4,
        "action": rng.integers(0, 4, 6),
        "reward": rng.integers(0, 2, 6),
        "pscore": np.full(6, 0.25),
        "context": rng.normal(size=(6, 2)),
        "position": np.array([0, 1, 0, 1, 1, 1]),
    }
    with pytest.raises(ArgumentError, match=r"slot is missing, and rows are of the slots \[0, 1\]; choose one"):
        from_obp(feedback)
    with pytest.raises(ArgumentError, match=r"slot is 2, but rows are of the slots \[0, 1\]"):
        from_obp(feedback, slot=2)
    events = list(from_obp(feedback, slot=1))
    decisions = [event for event in events if event["kind"] == "decide"]
    rewards = [event["reward"] for event in events if event["kind"] == "learn"]
    chosen = feedback["position"] == 1
    assert [event["arm"] for event in decisions] == feedback["action"][chosen].tolist()
    assert [event["x"] for event in decisions] == feedback["context"][chosen].tolist()
    assert rewards == feedback["reward"][chosen].tolist()
    assert events[0]["arms"] == [0, 1, 2, 3]
    with pytest.raises(ArgumentError, match="feedback has no pscore"):
        from_obp({**feedback, "pscore": None})
    with pytest.raises(ArgumentError, match="give one row for each round"):
        from_obp({**feedback, "reward": [1.0]})


TABLE = {"age": [31, 44, 20], "country": ["no", "se", "no"], "ad": [7, 9, 7], "click": [1, None, 0], "prob": [0.5] * 3}
ROLES: dict[str, Any] = {"features": ["age", "country"], "arm": "ad", "reward": "click", "propensity": "prob"}


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow", ""])
def test_tables_become_events_by_the_roles_of_columns(tmp_path: Path, ending: str) -> None:
    table = pa.table(TABLE)
    path = tmp_path / f"pilot{ending}"
    if ending == ".csv":
        pa.csv.write_csv(table, path)
    elif ending == ".parquet":
        pq.write_table(table, path)
    elif ending:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    events = list(read(armlet.Table(path if ending else table, **ROLES)))
    assert events[0]["arms"] == [7, 9]
    assert events[0]["features"] == ["age", "country=no", "country=se", "country=other"]
    assert [event["x"] for event in events if event["kind"] == "decide"] == [
        [31, 1, 0, 0],
        [44, 0, 1, 0],
        [20, 1, 0, 0],
    ]
    assert [event["reward"] for event in events if event["kind"] == "learn"] == [1.0, 0.0]


def test_tables_need_a_propensity() -> None:
    rows = {name: values for name, values in TABLE.items() if name != "prob"}
    with pytest.raises(ArgumentError, match=r"propensity is missing; name the column .* such as 1/3"):
        read(armlet.Table(rows, features=["age"], arm="ad", reward="click"))


def test_an_imported_log_is_written_and_read_as_any_other(tmp_path: Path) -> None:
    log = read(armlet.Table(pa.table(TABLE), **ROLES))
    lines = write(log, tmp_path / "pilot.jsonl")
    rows = write(log, tmp_path / "pilot.parquet")
    assert list(read(lines)) == list(read(rows)) == list(log)
    assert pq.read_table(rows)["reward"].to_pylist() == [1.0, None, 0.0]


@pytest.mark.parametrize("ending", [".csv", ".arrow"])
def test_an_exported_table_has_a_column_a_feature(tmp_path: Path, ending: str) -> None:
    path = write_events(tmp_path / "a.jsonl", made_events(50))
    before = {each.name for each in tmp_path.iterdir()}
    out = write(path, tmp_path / f"table{ending}")
    table = pa.csv.read_csv(out) if ending == ".csv" else pa.ipc.open_file(out).read_all()
    assert {"id", "arm", "reward", "x.0", "x.1", "x.2"} <= set(table.column_names)
    assert "crc" not in table.column_names
    assert table["id"].to_pylist() == [event["id"] for event in made_events(50) if event["kind"] == "decide"]
    assert {each.name for each in tmp_path.iterdir()} == before | {out.name}
    with pytest.raises(ArgumentError, match="which is there already; move it away"):
        write(path, out)
    with pytest.raises(ArgumentError, match=r"target is a\.txt; give a name that ends in \.jsonl"):
        write(path, tmp_path / "a.txt")


# ---- raw columns, and models that carry an encoder


def _raw(n: int = 400) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    country, ad = rng.choice(["no", "se", "dk"], n), rng.choice(["a", "b"], n)
    click = (rng.random(n) < np.where((country == "no") == (ad == "a"), 0.7, 0.2)).astype(float)
    return {"age": rng.normal(40, 9, n), "country": country, "ad": ad, "click": click, "prob": np.full(n, 0.5)}


def _model(**settings: Any) -> armlet.Bandit:
    raw = _raw()
    encoder = armlet.Encoder(["age", "country"], **settings).fit({name: raw[name] for name in ("age", "country")})
    model = armlet.Bandit(["a", "b"], encoder=encoder, policy=armlet.Greedy(), seed=1)
    model.partial_fit({name: raw[name][:100] for name in ("age", "country")}, raw["ad"][:100], raw["click"][:100])
    return model


ADS = ROLES


@pytest.mark.parametrize(
    "frame", [pa.table, pd.DataFrame, pl.DataFrame, dict], ids=["arrow", "pandas", "polars", "dict"]
)
def test_a_model_is_valued_on_raw_columns_by_its_own_encoder(frame: Any, tmp_path: Path) -> None:
    model, raw = _model(), _raw()  # the encoder has a flag for other countries, which the table lacks
    model.save(tmp_path / "model.armlet")
    log = armlet.Table(frame(raw), **ADS)
    found = armlet.evaluate(log, {"model": model, "file": tmp_path / "model.armlet"}, reward_range=(0, 1))
    X = model.settings.encoder.matrix({name: raw[name] for name in ("age", "country")})  # type: ignore[union-attr]
    best = np.array(model.predict(X))
    by_hand = (raw["click"] * (raw["ad"] == best) / 0.5).mean()
    assert armlet.evaluate(log, {"m": model}, estimator="ips", reward_range=(0, 1))["m"].value == pytest.approx(by_hand)
    assert found["model"].value == found["file"].value
    assert gate(log, model, against="a", reward_range=(0, 1)).rows == 400
    roles = {name: value for name, value in ADS.items() if name != "features"}
    encoded = read(armlet.Table(frame(raw), **roles, encoder=model.settings.encoder))
    assert encoded.about["features"] == list(model.settings.features or ())


def test_models_with_different_encoders_are_valued_apart() -> None:
    log = armlet.Table(pa.table(_raw()), **ADS)
    with pytest.raises(ArgumentError, match="whose encoders differ; value them apart"):
        armlet.evaluate(log, {"one": _model(), "other": _model(other="zeros")})


# ---- several outcomes

ROUTED = {
    "length": [1.0, 2.0, 3.0],
    "model": [7, 9, 7],
    "p": [0.5, 0.25, 1.0],
    "reward_quality": [0.5, None, 1.0],
    "reward_delay": [2.0, 1.0, 4.0],
    "unit": [31, 32, 31],
}
ROUTES: dict[str, Any] = {"features": ["length"], "arm": "model", "propensity": "p"}


@pytest.mark.parametrize("arms", [(7, 9), ("7", "9")])
def test_columns_of_outcomes_become_rewards_by_name(tmp_path: Path, arms: Any) -> None:
    prices = {"cost": {arms[0]: 0.1, arms[1]: 0.3}}
    weights = {"quality": 1.0, "cost": -10.0, "delay": -0.5}
    log = read(armlet.Table(pa.table(ROUTED), **ROUTES, outcomes=weights, known=prices))
    assert log.about["outcomes"] == Outcomes(weights, {"cost": {7: 0.1, 9: 0.3}}).to_dict()
    learned = [event["reward"] for event in log if event["kind"] == "learn"]
    assert learned == [{"quality": 0.5, "delay": 2.0}, {"delay": 1.0}, {"quality": 1.0, "delay": 4.0}]
    lines, rows = write(log, tmp_path / "a.jsonl"), write(log, tmp_path / "a.parquet")
    assert list(read(lines)) == list(read(rows)) == list(log)
    for found in (open_rows(log), open_rows(lines), open_rows(rows)):
        assert found.outcomes == weights
        assert found[0].reward[[0, 2]].tolist() == [0.5 - 10.0 * 0.1 - 1.0, 1.0 - 10.0 * 0.1 - 2.0]
        assert np.isnan(found[0].reward[1])
        assert found.has_units


def test_outcomes_need_their_columns_and_prices() -> None:
    with pytest.raises(ArgumentError, match="outcomes names 'reward_cost', which is not a column of the table"):
        armlet.Table(pa.table(ROUTED), **ROUTES, outcomes={"quality": 1.0, "cost": -10.0})
    with pytest.raises(InvalidValueError, match="known has no cost of arm 9"):
        armlet.Table(pa.table(ROUTED), **ROUTES, outcomes={"quality": 1.0, "cost": -10.0}, known={"cost": {7: 0.1}})
    with pytest.raises(InvalidValueError, match="give outcomes too"):
        armlet.Table(pa.table(ROUTED), **ROUTES, known={"cost": {7: 0.1, 9: 0.3}})


def test_events_with_half_a_surrogate_pair_are_refused(tmp_path: Path) -> None:
    line = {
        "_label_cost": 0,
        "_label_probability": 0.5,
        "_label_Action": 1,
        "_labelIndex": 0,
        "EventId": "a\ud800",
        "a": [1, 2],
        "c": {"age": 31, "_multi": [{"z": 1}, {"z": 2}]},
        "p": [0.5, 0.5],
    }
    (tmp_path / "log.json").write_text(json.dumps(line))
    with pytest.raises(ArgumentError, match=r"line 1 that cannot be read: EventId is .*; give text that can be"):
        list(from_dsjson(tmp_path / "log.json"))


def test_a_propensity_may_be_the_same_in_every_row() -> None:
    table = {"age": [31.0, 44.0], "ad": ["a", "b"], "click": [1.0, None], "prob": [0.25, 0.25]}
    column, constant = (
        list(read(armlet.Table(table, features=["age"], arm="ad", propensity=chance))) for chance in ("prob", 0.25)
    )
    assert column == constant
    wrongs: tuple[Any, ...] = (0.0, 1.5, True, [0.5])
    for wrong in wrongs:
        with pytest.raises(ArgumentError, match=r"propensity is .*; give the name of a column, or a number"):
            armlet.Table(table, arm="ad", propensity=wrong)
