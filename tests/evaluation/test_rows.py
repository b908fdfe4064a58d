"""A log as blocks of columns: the same from JSON lines, Parquet and events, and what each column holds."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import armlet
from armlet.errors import LogError
from armlet.evaluation import compacted, spooled
from armlet.evaluation.rows import Rows
from armlet.evaluation.sources import open_rows
from armlet.log import compact, from_dsjson, from_obp
from armlet.log.imported import ImportedColumns
from armlet.log.reader import LogFile, read
from armlet.record.contradictions import SCHEMA
from armlet.record.kinds import FORMAT
from armlet.record.values import Event


def same(one: Rows, other: Rows) -> bool:
    """Return whether two blocks hold the same bits."""
    for name in Rows.__slots__:
        a, b = getattr(one, name), getattr(other, name)
        if (a is None) != (b is None) or (a is not None and (a.dtype != b.dtype or a.tobytes() != b.tobytes())):
            return False
    return True


def whole(log: object) -> Rows:
    """Read a log of one block."""
    (block,) = open_rows(log)  # type: ignore[arg-type]
    return block


def write_eventful_log(path: Path) -> None:
    """Log late, corrected, forgotten and missing rewards, weights, sets of arms, and arms that come and go."""
    rng = np.random.default_rng(5)
    with armlet.Log(path) as log:
        policy = armlet.Algorithm1(p=30)
        bandit = armlet.Bandit(["a", "b", "c"], 2, policy=policy, seed=4, log=log, objective="min", reward_range=(0, 9))
        late = []
        for step in range(200):
            x = rng.normal(size=2)
            if step == 60:
                bandit.retire_arm("b")
            if step == 90:
                bandit.add_arm("d")
            if step == 120:
                bandit.restore_arm("b")
            if step == 150:
                bandit.remove_arm("a")
            eligible = ["c", "b"] if step % 7 == 0 and not 60 <= step < 120 else None
            decision = bandit.decide(x, eligible=eligible, probabilities="all" if step % 3 == 0 else None)
            if step % 5 == 0:
                late.append(decision)
            elif step % 11 != 0:
                bandit.learn(decision, float(step % 4), weight=2.0 if step == 34 else 1.0)
                if step % 6 == 0:
                    bandit.correct(decision, float(step % 4), 7.0)
                if step % 8 == 1:
                    bandit.forget(decision, float(step % 4))
        for decision in late:
            if decision.arm in bandit.arms:
                bandit.learn(decision, 5.0)


def test_parquet_and_json_lines_give_the_same_columns(tmp_path: Path) -> None:
    write_eventful_log(tmp_path / "log.jsonl")
    compact(tmp_path / "log.jsonl")
    (tmp_path / "wide").mkdir()
    compact(tmp_path / "log.jsonl", tmp_path / "wide" / "log.parquet", contexts="columns")
    lines, binary, wide = (open_rows(tmp_path / name) for name in ("log.jsonl", "log.parquet", "wide/log.parquet"))
    assert lines.arms == binary.arms == ("a", "b", "c", "d")
    assert lines.objective == binary.objective == "min"
    assert lines.reward_range == binary.reward_range == (0.0, 9.0)
    assert lines.policy is not None
    assert lines.policy["name"] == "Algorithm1"
    assert lines.about.get("start_model") == binary.about.get("start_model")
    assert same(whole(lines), whole(binary))
    assert same(whole(lines), whole(wide))


def test_blocks_cut_anywhere_hold_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_eventful_log(tmp_path / "log.jsonl")
    once = whole(tmp_path / "log.jsonl")
    monkeypatch.setattr(spooled, "BLOCK", 64)
    monkeypatch.setattr(spooled, "_PART", 16)
    monkeypatch.setattr(compacted, "BLOCK", 64)
    monkeypatch.setattr("armlet.log.exporting.ROWS", 32)
    monkeypatch.setattr(compacted, "_BATCH", 24)
    compact(tmp_path / "log.jsonl")
    for name in ("log.jsonl", "log.parquet"):
        blocks = open_rows(tmp_path / name)
        assert [len(block) for block in blocks] == [64, 64, 64, 8]
        for _ in range(2):  # again and again
            t = np.concatenate([block.t for block in blocks])
            reward = np.concatenate([block.reward for block in blocks])
            eligible = np.concatenate([block.eligible for block in blocks])
        assert t.tobytes() == once.t.tobytes()
        assert reward.tobytes() == once.reward.tobytes()
        assert eligible.tobytes() == once.eligible.tobytes()


def test_columns_are_what_the_decisions_said(tmp_path: Path) -> None:
    write_eventful_log(tmp_path / "log.jsonl")
    block = whole(tmp_path / "log.jsonl")
    decided = [event for event in armlet.Log(tmp_path / "log.jsonl") if event["kind"] == "decide"]
    assert block.t.tolist() == [event["t"] for event in decided]
    assert block.X.tolist() == [event["x"] for event in decided]
    assert [("a", "b", "c", "d")[arm] for arm in block.arm] == [event["arm"] for event in decided]
    assert block.propensity.tolist() == [event["propensity"] for event in decided]
    assert block.explored.tolist() == [int(event["explored"]) for event in decided]
    assert block.turn.tolist() == [event["design"] == "turn" for event in decided]
    assert block.exploration_rate.tolist() == [event["exploration_rate"] for event in decided]
    assert block.eligible[np.arange(len(block)), block.arm].all()


def test_the_last_reward_counts_and_a_missing_one_is_no_number(tmp_path: Path) -> None:
    write_eventful_log(tmp_path / "log.jsonl")
    block = whole(tmp_path / "log.jsonl")
    by_step = block.reward[:50]
    assert np.isnan(by_step[22])  # never came
    assert np.isnan(by_step[1])  # forgotten
    assert by_step[6] == 7.0  # corrected
    late = [step for step in range(0, 50, 5) if block.arm[step] != 0]  # arm "a" had gone when they came
    assert late
    assert (by_step[late] == 5.0).all()
    assert by_step[2] == 2.0
    assert block.weight[34] == 2.0
    assert (np.delete(block.weight, 34) == 1.0).all()


def test_arms_may_be_played_while_they_are_there(tmp_path: Path) -> None:
    write_eventful_log(tmp_path / "log.jsonl")
    eligible = whole(tmp_path / "log.jsonl").eligible
    assert eligible[1].tolist() == [True, True, True, False]
    assert eligible[0].tolist() == [False, True, True, False]
    assert eligible[61].tolist() == [True, False, True, False]
    assert eligible[91].tolist() == [True, False, True, True]
    assert eligible[122].tolist() == [True, True, True, True]
    assert eligible[151].tolist() == [False, True, True, True]


def test_probabilities_stay_with_their_arms(tmp_path: Path) -> None:
    write_eventful_log(tmp_path / "log.jsonl")
    block = whole(tmp_path / "log.jsonl")
    assert block.probabilities is not None
    said = ~np.isnan(block.probabilities[:, 0])
    assert said.tolist() == [step % 3 == 0 for step in range(200)]
    assert np.allclose(block.probabilities[said].sum(axis=1), 1.0)
    assert (block.probabilities[said, block.arm[said]] == block.propensity[said]).all()
    assert (block.probabilities[said][~block.eligible[said]] == 0).all()


def test_a_log_of_another_system_has_what_it_can_have() -> None:
    feedback = {"action": [1, 0, 1], "reward": [0, 1, 1], "pscore": [0.5, 0.25, 0.5], "context": [[1.0], [2.0], [3.0]]}
    blocks = open_rows(from_obp(feedback))
    block = whole(blocks)
    assert blocks.policy is None
    assert block.explored.tolist() == [-1, -1, -1]
    assert np.isnan(block.exploration_rate).all()
    assert block.probabilities is None
    assert block.reward.tolist() == [0.0, 1.0, 1.0]


def test_dsjson_brings_weights_and_sets(tmp_path: Path) -> None:
    line = (
        '{"_label_cost":-1.0,"_label_probability":0.8,"_labelIndex":%d,"a":%s,"p":%s,"pdrop":0.5,"c":{"u":{"age":3}}}\n'
    )
    (tmp_path / "log.json").write_text(line % (1, "[2,1]", "[0.8,0.2]") + line % (0, "[1,2,3]", "[0.8,0.1,0.1]"))
    block = whole(from_dsjson(tmp_path / "log.json"))
    assert block.weight.tolist() == [2.0, 2.0]
    assert block.eligible.tolist() == [[True, True, False], [True, True, True]]
    assert block.probabilities is not None
    assert block.probabilities.tolist() == [[0.2, 0.8, 0.0], [0.8, 0.1, 0.1]]


class Events:
    """Events that are made up."""

    def __init__(self, *events: dict[str, object]) -> None:
        self.about = {"kind": "start", "format": FORMAT, "schema": SCHEMA, "arms": ["a", "b"], "dim": 1, "policy": None}
        self._events = events

    def __iter__(self) -> object:
        yield dict(self.about)
        yield from self._events


def decide(t: int, **changed: object) -> dict[str, object]:
    """Make up a decision."""
    event: dict[str, object] = {"kind": "decide", "seq": t, "id": f"{t}-{t:016x}", "t": t, "x": [1.0], "eligible": None}
    event |= {"arm": "a", "propensity": 0.5, "explored": True, "exploration_rate": 1.0}
    event |= {"exploration_propensity": 0.5, "min_exploration_probability": 0.5}
    return event | {"greedy": None, "design": "coin"} | changed


def learn(t: int, reward: float) -> dict[str, object]:
    """Make up its reward."""
    return {"kind": "learn", "seq": 100 + t, "id": f"{t}-{t:016x}", "reward": reward, "weight": 1.0}


def test_steps_need_not_rise() -> None:
    block = whole(Events(decide(9), decide(3), decide(5), learn(3, 0.3), learn(9, 0.9), learn(4, 0.4), learn(12, 1.2)))
    assert block.t.tolist() == [9, 3, 5]
    assert block.reward.tolist()[:2] == [0.9, 0.3]
    assert np.isnan(block.reward[2])


def test_an_erased_context_is_zero_where_no_reward_is_and_refused_where_one_is() -> None:
    assert whole(Events(decide(1, x=None))).X.tolist() == [[0.0]]
    with pytest.raises(LogError, match=r"step 1 has a reward but no context"):
        list(open_rows(Events(decide(1, x=None), learn(1, 1.0))))  # type: ignore[arg-type]


def test_an_empty_log_has_no_blocks() -> None:
    blocks = open_rows(Events())  # type: ignore[arg-type]
    assert blocks.n == 0
    assert list(blocks) == []


def test_an_unknown_arm_is_named() -> None:
    with pytest.raises(LogError, match="names arm 'z'"):
        open_rows(Events(decide(1, arm="z")))  # type: ignore[arg-type]


def test_a_copy_that_was_pickled_reads_the_same(tmp_path: Path) -> None:
    write_eventful_log(tmp_path / "log.jsonl")
    compact(tmp_path / "log.jsonl")
    for name in ("log.jsonl", "log.parquet"):
        blocks = open_rows(tmp_path / name)
        assert same(pickle.loads(pickle.dumps(blocks))[0], blocks[0])


def test_a_loop_is_read_as_a_log(tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("home", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8), seed=1)
        for i in range(5):
            loop.decide([1.0], event=f"e{i}")
        loop.reward("e1", 1.0)
        loop.reward("e3", 0.5)
        block = whole(loop.log)
    assert len(block) == 5
    assert block.rewarded.tolist() == [False, True, False, True, False]


def test_some_rows_can_be_taken() -> None:
    block = whole(Events(decide(1), decide(2), learn(2, 0.5)))
    assert block.take(block.rewarded).t.tolist() == [2]


def a_table(n: int = 700) -> dict[str, list[object]]:
    """Return columns of all kinds, with gaps where there may be some."""
    rng = np.random.default_rng(8)
    gaps = [None if each < 0.1 else each for each in rng.random(n).tolist()]
    return {
        "age": rng.integers(18, 80, n).tolist(),
        "country": rng.choice(["no", "se", "dk"], n).tolist(),
        "member": (rng.random(n) < 0.5).tolist(),
        "ad": rng.choice(["b", "a", "c"], n).tolist(),
        "click": gaps,
        "chance": rng.uniform(0.2, 0.9, n).tolist(),
        "reward_cost": [None if each < 0.2 else each for each in rng.random(n).tolist()],
        "reward_late": [None] * 40 + rng.random(n - 40).tolist(),
        "unit": [None if i % 9 == 0 else f"s{i // 4}" for i in range(n)],
        "epoch": [i // 100 for i in range(n)],
    }


WORTH = {"cost": -2.0, "late": 1.0, "price": -1.0}


@pytest.mark.parametrize("outcomes", [None, WORTH], ids=["reward", "outcomes"])
@pytest.mark.parametrize("left_out", [(), ("unit", "epoch"), ("reward_cost", "reward_late", "unit", "epoch")])
def test_columns_and_events_of_a_table_give_the_same_rows(
    outcomes: dict[str, float] | None, left_out: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if outcomes is not None and "reward_cost" in left_out:
        outcomes = None
    table = pa.table({name: column for name, column in a_table().items() if name not in left_out})
    roles: dict[str, Any] = {"features": ["age", "country", "member", "1"], "arm": "ad", "propensity": "chance"}
    known: Any = None if outcomes is None else {"price": {"a": 0.1, "b": 0.2, "c": 0.3}}
    log = read(armlet.Table(table, **roles, reward="click", outcomes=outcomes, known=known))
    events = spooled.SpooledBlocks(log)
    monkeypatch.setattr(ImportedColumns, "_rows", None)  # no event is made
    columns = open_rows(log)
    assert (columns.arms, columns.n, columns.dim, columns.period) == (events.arms, events.n, events.dim, events.period)
    assert (columns.name, columns.outcomes, columns.has_units) == (events.name, events.outcomes, events.has_units)
    (one,), (other,) = columns, events
    assert columns.digest == events.digest
    assert list(one.outcomes or {}) == list(other.outcomes or {})
    parts = [{name: column.tobytes() for name, column in (rows.outcomes or {}).items()} for rows in (one, other)]
    assert parts[0] == parts[1]
    assert same(replace(one, outcomes=None), replace(other, outcomes=None))


class Plainly:
    """The events of a log one by one, from whatever they are read."""

    def __init__(self, log: LogFile) -> None:
        self.about, self.name, self._log = log.about, log.name, log

    def __iter__(self) -> Iterator[Event]:
        return iter(self._log)


def write_log_of_outcomes(path: Path) -> None:
    """Log parts of rewards that come late and are corrected, units, times and other weights."""
    rng = np.random.default_rng(6)
    with armlet.Log(path) as log:
        outcomes: Any = {"quality": 1.0, "cost": -2.0, "late": 0.5}
        known: Any = {"cost": {"a": 0.1, "b": 0.4}}
        settings: Any = {"outcomes": outcomes, "known": known, "epoch": 30, "reward_range": {"quality": (0, 1)}}
        bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.ContextualEpsilonGreedy(p=40), seed=3, log=log, **settings)
        for step in range(150):
            decision = bandit.decide(rng.normal(size=2), unit=None if step % 5 == 0 else f"s{step % 7}")
            if step % 4:
                bandit.learn(decision, {"quality": float(rng.random()), "late": 0.25})
            if step == 70:
                bandit.replace(outcomes={"quality": 2.0})


@pytest.mark.parametrize("write", [write_eventful_log, write_log_of_outcomes])
@pytest.mark.parametrize(("rows", "events"), [(2**16, 2**14), (64, 2**14), (50, 7)])
def test_blocks_of_lines_and_single_events_give_the_same_rows(
    write: Callable[[Path], None], rows: int, events: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "log.jsonl")
    monkeypatch.setattr(spooled, "BLOCK", rows)
    monkeypatch.setattr("armlet.record.block.MOST", events)
    one, other = open_rows(tmp_path / "log.jsonl"), open_rows(Plainly(LogFile(tmp_path / "log.jsonl")))
    assert (one.arms, one.n, len(one), one.period, one.has_units) == (
        *(other.arms, other.n, len(other)),
        *(other.period, other.has_units),
    )
    assert one.about == other.about
    for mine, theirs in zip(one, other, strict=True):
        assert same(replace(mine, outcomes=None), replace(theirs, outcomes=None))
        parts = [{name: part.tobytes() for name, part in (each.outcomes or {}).items()} for each in (mine, theirs)]
        assert parts[0] == parts[1]
    assert one.digest == other.digest
