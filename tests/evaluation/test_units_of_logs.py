"""Logs whose decisions belong to units that share a draw: errors by units, checks by draws, bets once a unit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import armlet
from armlet.errors import ArgumentError, EvaluationError
from armlet.evaluation.gate import gate
from armlet.evaluation.rows import HeldBlocks, Rows, rows_of
from armlet.evaluation.search import search
from armlet.evaluation.sources import open_rows
from armlet.evaluation.units import FOLDS, OpenUnits, fold_of
from armlet.inputs.outcomes import Outcomes
from armlet.record.kinds import EXPLORATION

MOST = 6


def sessions(n: int, seed: int = 1, epochs: int = 10) -> Rows:
    """Draw sessions of up to six decisions with one arm of three each, those of an epoch mixed."""
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(n), rng.integers(1, MOST + 1, size=n))
    epoch = unit * epochs // n
    order = np.lexsort((rng.random(len(unit)), epoch))
    unit, epoch = unit[order], epoch[order]
    arm = rng.integers(3, size=n)[unit]
    chance = 0.2 + 0.6 * rng.beta(0.5, 0.5, size=(n, 3))[unit, arm]
    clicks = (rng.random(len(unit)) < chance).astype(np.float64)
    X = rng.standard_normal((len(unit), 2))
    return rows_of(X, arm, clicks, np.full(len(unit), 1 / 3), n_arms=3, unit=unit, epoch=epoch)


def held(rows: Rows, **about: Any) -> HeldBlocks:
    return HeldBlocks(rows, range(3), about)


def test_the_error_of_a_value_is_that_of_sums_over_units() -> None:
    rows = sessions(200)
    found = armlet.evaluate(held(rows), {"one": 1}, estimator="snips", interval="fixed")
    w = 3.0 * (rows.arm == 1)
    value = w @ rows.reward / w.sum()
    off = np.bincount(np.asarray(rows.unit), weights=w * (rows.reward - value)) / w.sum()
    assert found["one"].value == pytest.approx(value)
    assert found["one"].se == pytest.approx(np.sqrt(off @ off * 200 / 199))
    assert found.units == 200
    assert found["one"].ess <= 200
    naive = armlet.evaluate(held(replace(rows, unit=None)), {"one": 1}, estimator="snips", checks="none")
    assert naive.units is None
    assert naive["one"].value == found["one"].value
    assert naive["one"].se < 0.9 * found["one"].se


def test_units_of_one_decision_each_are_rows() -> None:
    rows = replace(sessions(300), unit=np.arange(len(sessions(300))))
    args: dict[str, Any] = {"estimator": "ips", "interval": "fixed"}
    by_unit = armlet.evaluate(held(rows), {"one": 1}, **args)
    by_row = armlet.evaluate(held(replace(rows, unit=None)), {"one": 1}, **args)
    assert by_unit["one"].interval == pytest.approx(by_row["one"].interval, rel=1e-12)
    assert by_unit.differences["one"].se == pytest.approx(by_row.differences["one"].se, rel=1e-12)


def test_where_blocks_end_and_who_sums_them_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sessions(400)
    whole = armlet.evaluate(held(rows), {"one": 1, "even": "uniform"}, reward_range=(0, 1), largest_unit=MOST)
    monkeypatch.setattr("armlet.evaluation.rows.BLOCK", 128)
    cut = armlet.evaluate(held(rows), {"one": 1, "even": "uniform"}, reward_range=(0, 1), largest_unit=MOST)
    for name in ("one", "even"):
        assert cut[name].se == pytest.approx(whole[name].se, rel=1e-9)
        assert cut[name].anytime == pytest.approx(whole[name].anytime, rel=1e-9)
    threads = armlet.evaluate(held(rows), {"one": 1, "even": "uniform"}, pool="threads", workers=2, largest_unit=MOST)
    serial = armlet.evaluate(held(rows), {"one": 1, "even": "uniform"}, largest_unit=MOST)
    assert threads.to_dict() == serial.to_dict()


def test_a_reward_model_has_not_seen_the_unit_that_it_predicts() -> None:
    """Rewards of one unit that are moved far off move no prediction of its own rows."""
    rows = sessions(60)
    mine = np.asarray(rows.unit) == 17
    moved = replace(rows, reward=np.where(mine, rows.reward + 1000.0, rows.reward))
    first, second = (armlet.evaluate(held(each), {"one": 1}, estimator="dm", checks="none") for each in (rows, moved))
    others = fold_of(np.asarray(rows.unit)) != fold_of(np.array([17]))
    assert others.sum() == pytest.approx(len(rows) * (FOLDS - 1) / FOLDS, rel=0.3)
    same_arm = rows.arm[mine][0] == 1
    assert (first["one"].value != second["one"].value) == same_arm  # what it teaches, it teaches others


def test_checks_count_a_unit_once() -> None:
    """Nine arms in ten repeat a draw: counted as draws of their own they accuse right propensities."""
    accused = {"units": 0, "rows": 0}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        unit = np.repeat(np.arange(30), 40)
        arm = rng.integers(3, size=30)[unit]
        X, rewards = rng.standard_normal((1200, 1)), rng.random(1200)
        rows = rows_of(X, arm, rewards, np.full(1200, 1 / 3), n_arms=3, unit=unit, epoch=unit // 10)
        for word, each in (("units", rows), ("rows", replace(rows, unit=None))):
            checks = armlet.evaluate(held(each), "uniform").checks
            accused[word] += any(check.name in ("propensities", "weights") and check.word != "fine" for check in checks)
    assert accused["units"] == 0
    assert accused["rows"] > 15


def test_a_gate_bets_once_a_unit_when_its_epoch_is_over() -> None:
    rows = sessions(2000)
    found = gate(held(rows), 1, against="live", reward_range=(0, 1), largest_unit=MOST)
    assert found.gain.low < 0.0 < found.gain.high
    done = rows.take(np.asarray(rows.epoch) < 9)  # the last epoch is not over
    assert gate(held(done), 1, reward_range=(0, 1), largest_unit=MOST).gain != found.gain
    early = rows.take((np.asarray(rows.epoch) < 9) | (np.arange(len(rows)) < len(done) + 50))
    assert gate(held(early), 1, against=2, reward_range=(0, 1), largest_unit=MOST).gain == (
        gate(held(rows), 1, against=2, reward_range=(0, 1), largest_unit=MOST).gain
    )


def test_what_cannot_be_right_is_refused_with_a_way_out() -> None:
    rows = sessions(200)
    with pytest.raises(ArgumentError, match="largest_unit is missing"):
        gate(held(rows), 1, reward_range=(0, 1))
    assert gate(held(rows, epoch=500), 1, reward_range=(0, 1)).answer == "not yet"
    with pytest.raises(EvaluationError, match="more than 3 decisions in an epoch; give largest_unit"):
        gate(held(rows), 1, reward_range=(0, 1), largest_unit=3)
    with pytest.raises(EvaluationError, match="give a column 'epoch'"):
        gate(held(replace(rows, epoch=None)), 1, reward_range=(0, 1), largest_unit=MOST)
    with pytest.raises(EvaluationError, match="epoch 3 begins after epoch 9"):
        gate(
            held(replace(rows, epoch=np.where(np.arange(len(rows)) < 9, 9, 3))), 1, reward_range=(0, 1), largest_unit=9
        )
    with pytest.raises(EvaluationError, match="'own', what these very rows teach, counts every decision"):
        armlet.evaluate(held(rows), "own")
    with pytest.raises(EvaluationError, match="rejection replay counts every decision"):
        armlet.evaluation.rejection_replay(held(rows), armlet.Uniform(), seed=1)
    with pytest.raises(EvaluationError, match="a search counts every decision"):
        search(held(rows), np.ones((1, 3, 2)), reward_range=(0, 1))
    found = armlet.evaluate(held(rows), {"one": 1}, reward_range=(0, 1))
    assert found["one"].anytime is None
    assert found["one"].interval is not None
    assert any("give largest_unit" in warning for warning in found.warnings)


def test_units_are_closed_in_the_order_of_their_first_rows_wherever_blocks_end() -> None:
    rows, ones = sessions(100), np.ones(len(sessions(100)))
    whole = OpenUnits(MOST).add(rows, ones)
    pieces, units = [], OpenUnits(MOST)
    for start in range(0, len(rows), 7):
        part = rows.take(slice(start, start + 7))
        pieces.append(units.add(part, ones[: len(part)]))
    assert np.array_equal(whole, np.concatenate(pieces))
    assert len(whole) == 90  # the tenth epoch is not over
    assert whole[:, 0].sum() == (np.asarray(rows.epoch) < 9).sum()


def test_columns_of_a_table_are_units_epochs_and_outcomes() -> None:
    columns = {
        "age": [31.0, 44.0, 31.0, 20.0],
        "model": ["a", "b", "a", "b"],
        "reward": [0.9, None, 0.4, 0.1],
        "reward_quality": [1.0, None, 0.5, 0.2],
        "reward_cost": [0.1, 0.2, 0.1, 0.1],
        "chance": [0.5, 0.5, 0.5, 0.5],
        "unit": ["s1", "s2", "s1", None],
        "epoch": [0, 0, 0, None],
    }
    roles: dict[str, Any] = {"features": ["age"], "arm": "model", "propensity": "chance"}
    blocks = open_rows(armlet.Table(pa.table(columns), **roles))
    assert blocks.has_units
    rows = blocks[0]
    assert rows.unit is not None
    assert rows.epoch is not None
    assert rows.outcomes is not None
    assert rows.unit[0] == rows.unit[2]
    assert len(set(rows.unit.tolist())) == 3
    assert rows.epoch.tolist() == [0, 0, 0, -1]
    assert rows.outcomes["cost"].tolist()[2:] == [0.1, 0.1]
    assert np.isnan(rows.outcomes["quality"][1])
    plain = open_rows(armlet.Table(pa.table(columns).drop_columns(["unit", "epoch"]), **roles))
    assert not plain.has_units
    assert plain[0].unit is None


class OutcomeLog:
    """Events of a bandit with outcomes, as a log keeps them."""

    def __init__(self) -> None:
        outcomes = Outcomes({"quality": 1.0, "cost": -10.0}, {"cost": {"a": 0.1, "b": 0.3}}).to_dict()
        self.about = {"arms": ["a", "b"], "dim": 1, "outcomes": outcomes}

    def __iter__(self) -> Any:
        yield {"seq": 0, "kind": "start", "at": 0, **self.about}
        for t, arm in enumerate("abba", 1):
            unknown = dict.fromkeys(("explored", "optimistic", *EXPLORATION, "greedy", "design"))
            fields = {
                "id": f"{t}-{t:016x}",
                "t": t,
                "x": [1.0],
                "eligible": None,
                "arm": arm,
                "propensity": 0.5,
                "tag": 0,
            }
            yield {"seq": t, "kind": "decide", "at": 0, **fields, **unknown, "unit": f"s{t % 2}", "epoch": 0}
        names = [f"{t}-{t:016x}" for t in range(5)]
        yield {"seq": 5, "kind": "learn", "at": 0, "id": names[1], "reward": {"quality": 0.5}, "weight": 1.0}
        yield {"seq": 6, "kind": "learn", "at": 0, "id": names[2], "reward": {"quality": 0.7}, "weight": 1.0}
        yield {
            "seq": 7,
            "kind": "correct",
            "at": 0,
            "id": names[1],
            "old_reward": {"quality": 0.5},
            "new_reward": {"quality": 0.6},
        }
        yield {"seq": 8, "kind": "learn", "at": 0, "id": names[3], "reward": {"quality": 0.1}, "weight": 1.0}
        yield {"seq": 9, "kind": "forget", "at": 0, "id": names[3], "reward": {"quality": 0.1}}


def test_parts_of_rewards_become_outcomes_and_their_worth() -> None:
    rows = open_rows(OutcomeLog())[0]
    assert rows.outcomes is not None
    assert rows.outcomes["quality"].tolist()[:2] == [0.6, 0.7]
    assert np.isnan(rows.outcomes["quality"][2:]).all()
    assert rows.outcomes["cost"].tolist() == [0.1, 0.3, 0.3, 0.1]
    assert rows.reward[:2] == pytest.approx([0.6 - 1.0, 0.7 - 3.0])
    assert np.isnan(rows.reward[2:]).all()
    assert rows.unit is not None
    assert rows.unit[0] == rows.unit[2] != rows.unit[1]
