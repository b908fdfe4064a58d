"""Logs of bandits with several outcomes: what is written, and that replay gives it back bit for bit."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armlet
from armlet.errors import ArgumentError, InvalidValueError
from armlet.evaluation.sources import open_rows
from armlet.inputs.outcomes import Outcomes
from armlet.log import replaying
from armlet.log.reader import LogFile, read_file
from support.lives import RouterLife, new_router


def lived(path: Path, policy: Any = None, *, decisions: int = 60, seed: int = 1, **more: Any) -> armlet.Bandit:
    """Return a bandit whose life is in a log, which is closed."""
    with armlet.Log(path) as log:
        bandit = new_router(log, policy, **more)
        RouterLife(bandit, seed).live(decisions)
    return bandit


def replayed(path: Path) -> armlet.Bandit:
    again = armlet.load(path.with_name(f"{path.stem}.start.armlet"))
    replaying.replay(LogFile(path), again)
    return again


@given(seed=st.integers(0, 2**32))
def test_decisions_that_are_no_longer_in_memory_are_found_with_their_parts(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = tmp_path_factory.mktemp("logs") / "a.jsonl"
    bandit = lived(path, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replaying, "RECENT", 4)
        assert replayed(path).digest() == bandit.digest()


def test_a_correction_says_all_that_the_decision_has(tmp_path: Path) -> None:
    with armlet.Log(tmp_path / "a.jsonl") as log:
        bandit = new_router(log)
        decision = bandit.decide([1.0, 0.5, 0.0])
        bandit.learn(decision, {"cost": 0.25})
        bandit.learn(decision, {"quality": 0.5})
        bandit.correct(decision, {"quality": 0.5}, {"quality": 0.75})
    event = next(event for event in LogFile(log.path) if event["kind"] == "correct")
    assert event["old_reward"] == {"quality": 0.5, "cost": 0.25}
    assert event["new_reward"] == {"quality": 0.75, "cost": 0.25}


FORMS: dict[str, Any] = {
    "by name": lambda row, reward: {**row, "reward": {name: [part] for name, part in reward.items()}},
    "pandas": lambda row, reward: pd.DataFrame({**row, **{f"reward_{name}": [part] for name, part in reward.items()}}),
    "with prices": lambda row, reward: {
        **row,
        "reward_delay": [1.0],
        **{f"reward_{name}": [part] for name, part in reward.items()},
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_of_decisions_with_outcomes_is_learned_as_they_were(form: str) -> None:
    one, other = new_router(epoch=None, budget=None), new_router(epoch=None, budget=None)
    for _ in range(20):
        decision = one.decide([1.0, 0.5, 0.0])
        one.learn(decision, {"quality": 0.5, "cost": 0.1 * decision.t})
        fields = decision.to_dict()
        row = {name: [fields[name]] for name in ("t", "x", "arm", "propensity", "explored", "tag", "weight")}
        other.partial_fit(FORMS[form](row, fields["reward"]))
    other.replace(t=one.t)
    assert other.digest() == one.digest()


def test_a_table_that_replaces_some_outcomes_of_a_row_is_refused() -> None:
    row = {"t": [1], "x": [[1.0, 0.5, 0.0]], "arm": ["small"], "propensity": [0.5], "explored": [True]}
    reward = {"quality": [1.0], "cost": [2.0]}
    bandit = new_router()
    before = bandit.digest()
    with pytest.raises(InvalidValueError, match="replaces has some outcomes of row 0 and not others"):
        bandit.partial_fit({**row, "reward": reward, "replaces": {"quality": [0.5], "cost": [None]}})
    with pytest.raises(InvalidValueError, match="reward has no 'cost'; give a column for each of"):
        bandit.partial_fit({**row, "reward_quality": [1.0]})
    assert bandit.digest() == before


# ---- going on


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_a_log_that_was_cut_in_the_middle_of_a_line_is_continued(tmp_path: Path, cut: int) -> None:
    """As after a kill: the last lines may be gone, and one of them be there in part."""
    path = tmp_path / "a.jsonl"
    log = armlet.Log(path, flush="line")
    RouterLife(new_router(log)).live(40)
    data = path.read_bytes()
    log.close()
    path.write_bytes(data[: len(data) - cut])
    with warnings.catch_warnings(), armlet.Log(path) as going_on:
        warnings.simplefilter("ignore", UserWarning)
        bandit = armlet.log.resume(going_on)
        assert bandit.digest() == replayed(path).digest()
        RouterLife(bandit, seed=2).live(30)
        price, digest = bandit.budget, bandit.digest()
    found = armlet.audit(path, log.start_path)
    assert (found.ok, found.digest) == (True, digest)
    assert replayed(path).budget == price


def test_parts_that_come_after_a_restart_are_learned_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with armlet.Log(path) as log:
        bandit = new_router(log)
        decision = bandit.decide([1.0, 0.5, 0.0], weights={"cost": -9.0}, unit="session 1")
        bandit.learn(decision, {"cost": 0.5})
        kept = json.loads(json.dumps(decision.to_dict()))
    with armlet.Log(path) as log:
        again = armlet.log.resume(log)
        late = armlet.Decision.from_dict(kept)
        again.learn(late, {"quality": 1.0})
        assert late.reward == {"quality": 1.0, "cost": 0.5}
        assert again.state.n.sum() == 1.0
    bandit = armlet.from_bytes(bandit.to_bytes())
    bandit.learn(decision, {"quality": 1.0})
    assert replayed(path).digest() == again.digest() == bandit.digest()
    assert armlet.audit(path, log.start_path).ok


# ---- Parquet


@given(seed=st.integers(0, 2**32))
def test_a_compacted_log_is_the_log(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    path = tmp_path_factory.mktemp("logs") / "a.jsonl"
    lived(path, seed=seed, decisions=40)
    compacted = armlet.log.compact(path)
    assert b"".join(line for line, _ in read_file(compacted).with_lines()) == path.read_bytes()
    again = armlet.log.write(compacted, path.with_name("again.jsonl"))
    assert again.read_bytes() == path.read_bytes()
    assert armlet.audit(compacted, path.with_name("a.start.armlet")).ok
    lines, columns = open_rows(path), open_rows(compacted)
    assert (lines.outcomes, lines.reward_range) == (columns.outcomes, columns.reward_range)
    for one, other in zip(lines, columns, strict=True):
        assert one.reward.tobytes() == other.reward.tobytes()
        assert list(one.outcomes or {}) == list(other.outcomes or {})
    assert lines.digest == columns.digest


def test_a_row_of_a_compacted_log_has_every_outcome_and_the_dial(tmp_path: Path) -> None:
    with armlet.Log(tmp_path / "a.jsonl") as log:
        bandit = new_router(log)
        first, second = (
            bandit.decide([1.0, 0.5, 0.0], eligible=["small"]),
            bandit.decide([1.0, 0.5, 0.0], eligible=[3], weights={"cost": -9.0}),
        )
        bandit.learn(first, {"quality": 0.5, "cost": 0.25}, weight=2.0)
        bandit.learn(second, {"cost": 0.75})
        bandit.correct(first, {"cost": 0.25}, {"cost": 1.0})
        bandit.replace(outcomes={"quality": 2.0})
    one, two = pq.read_table(armlet.log.compact(log.path)).to_pylist()
    assert (one["reward_quality"], one["reward_cost"], one["reward_delay"]) == (0.5, 1.0, 1.0)
    assert one["reward"] == 2.0 * 0.5 - 4.0 * 1.0 - 0.1 * 1.0
    assert (one["first_reward_quality"], one["first_reward_cost"], one["weight"]) == (0.5, 0.25, 2.0)
    assert (two["reward"], two["reward_quality"], two["reward_cost"], two["reward_delay"]) == (None, None, 0.75, 4.0)
    assert one["weights"] is None
    assert json.loads(two["weights"]) == {"quality": 1.0, "cost": -9.0, "delay": -0.1}
    with_one = tmp_path / "one.jsonl"
    with armlet.Log(with_one) as log:
        armlet.Bandit(["a"], 1, log=log).decide([1.0])
    names = pq.read_table(armlet.log.compact(with_one)).column_names
    assert not {"weights", "reward_quality"} & set(names)


@pytest.mark.parametrize("column", ["reward", "reward_quality", "reward_cost", "reward_delay", "first_reward_cost"])
def test_a_changed_column_of_an_outcome_is_found(tmp_path: Path, column: str) -> None:
    path = tmp_path / "a.jsonl"
    lived(path, seed=3, decisions=400)
    compacted = armlet.log.compact(path)
    table = pq.read_table(compacted)
    rows = table.to_pylist()
    place = next(i for i, row in enumerate(rows) if row[column] is not None)
    rows[place][column] += 0.25
    pq.write_table(table.from_pylist(rows, schema=table.schema), compacted)
    found = armlet.audit(compacted, tmp_path / "a.start.armlet")
    assert found.mismatch is not None


# ---- learning from a log


def plain_life(path: Path, decisions: int = 50) -> armlet.Bandit:
    """Return a bandit that decided and learned, now and then in two parts, or one of them only."""
    rng = np.random.default_rng(4)
    with armlet.Log(path) as log:
        bandit = new_router(log, epoch=None, budget=None)
        for t in range(decisions):
            decision = bandit.decide(rng.standard_normal(3))
            parts = {"quality": float(rng.uniform(-1.0, 1.0)), "cost": float(rng.exponential())}
            if t % 7 == 0:
                bandit.learn(decision, {"cost": parts.pop("cost")}, weight=1.0 + t % 2)
            if t % 14:
                bandit.learn(decision, parts, weight=1.0 + t % 2)
    return bandit


@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_a_compacted_log_with_outcomes_is_fitted(tmp_path: Path, engine: Any) -> None:
    lived_on = plain_life(tmp_path / "a.jsonl")
    compacted = armlet.log.compact(tmp_path / "a.jsonl")
    rows = [row for row in pq.read_table(compacted).to_pylist() if row["reward"] is not None]
    wanted = new_router(epoch=None, budget=None, seed=1)
    wanted.partial_fit(
        [np.frombuffer(row["x"], "<f8") for row in rows],
        [json.loads(row["arm"]) for row in rows],
        {name: [row[f"reward_{name}"] for row in rows] for name in ("quality", "cost")},
        explored=[row["explored"] for row in rows],
        weights=[row["weight"] for row in rows],
        steps=lived_on.t,
    )
    found = armlet.fit(compacted, seed=1, engine=engine)
    assert found.settings.outcomes == wanted.settings.outcomes
    for name, array in wanted.state.arrays().items():
        np.testing.assert_allclose(found.state.arrays()[name], array, rtol=1e-9, atol=1e-12, err_msg=name)
    assert found.t == wanted.t
    assert found.to_bytes() == armlet.fit(compacted, seed=1).to_bytes()
    other = armlet.fit(compacted, seed=1, reward_range={"quality": (-1.0, 1.0)}, outcomes={"quality": 2.0})
    assert other.settings.outcomes == Outcomes({"quality": 2.0}, ranges={"quality": (-1.0, 1.0)})


def test_a_table_with_outcomes_and_prices_is_fitted_as_partial_fit_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    x, arm = rng.standard_normal(40), rng.choice(["small", "large"], size=40)
    quality = rng.uniform(0.0, 1.0, size=40)
    pq.write_table(pa.table({"x": x, "arm": arm, "reward_quality": quality}), tmp_path / "t.parquet")
    how: dict[str, Any] = {
        "outcomes": {"quality": 1.0, "cost": -4.0},
        "known": {"cost": {"small": 0.1, "large": 0.5}},
        "reward_range": {"quality": (0.0, 1.0)},
        "seed": 3,
    }
    found = armlet.fit(tmp_path / "t.parquet", features=["x"], **how)
    wanted = armlet.Bandit(["large", "small"], features=["x"], **how)
    wanted.partial_fit(x[:, None], arm.tolist(), {"quality": quality})
    assert found.to_bytes() == wanted.to_bytes()
    with pytest.raises(InvalidValueError, match=r"column 'reward_quality' is .*; reward_range is from 0.0 to 0.5"):
        armlet.fit(tmp_path / "t.parquet", features=["x"], **how | {"reward_range": {"quality": (0.0, 0.5)}})
    with pytest.raises(ArgumentError, match="outcomes names 'reward_cost', which is not a column"):
        armlet.fit(tmp_path / "t.parquet", features=["x"], outcomes=how["outcomes"])
