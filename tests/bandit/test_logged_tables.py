"""Rows of a log learned at once: bit for bit what learn and correct make of them one by one, from any table."""

from __future__ import annotations

import gc
import random
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from armlet import Algorithm1, Bandit, Policy
from armlet.errors import DecisionError
from armlet.testing.policies import sample_run
from support.in_python import InPython
from support.policies import DIM, N_ARMS, every_policy

NAMES = ("t", "x", "arm", "reward", "propensity", "explored", "tag", "weight", "replaces")


def new(policy: Policy, **settings: Any) -> Bandit:
    return Bandit([f"arm {i}" for i in range(N_ARMS)], DIM, policy=policy, seed=5, **settings)


def can_correct(policy: Policy) -> bool:
    bandit = new(policy)
    decision = bandit.decide(np.ones(DIM))
    bandit.learn(decision, 1.0)
    try:
        bandit.correct(decision, 1.0, 0.0)
    except (DecisionError, NotImplementedError, TypeError, ValueError):
        return False
    return True


def live(policy: Policy, bandit: Bandit) -> dict[str, list[Any]]:
    """Play, with late rewards and corrections, and write down the rows in the order of learning."""
    X, rewards = sample_run(policy, N_ARMS, DIM, 150)
    rng, pending, done, rows = random.Random(1), [], [], []
    corrects = can_correct(policy)
    for x, row in zip(X, rewards, strict=True):
        eligible = rng.sample(bandit.arms, rng.randint(2, N_ARMS)) if rng.random() < 0.3 else None
        pending.append((bandit.decide(x, eligible=eligible), row))
        while pending and rng.random() < 0.6:
            decision, row = pending.pop(rng.randrange(len(pending)))
            reward = float(row[bandit.arms.index(decision.arm)])
            bandit.learn(decision, reward)
            rows.append({**decision.to_dict(), "replaces": None})
            done.append(decision)
        if corrects and done and rng.random() < 0.1:
            decision = rng.choice(done)
            old, fresh = decision.reward, float(row[0])
            assert old is not None
            try:
                bandit.correct(decision, old, fresh)
            except DecisionError:  # a policy that counted the row elsewhere
                continue
            rows.append({**decision.to_dict(), "replaces": old})
    for decision, _ in pending:  # which is no row of a log
        bandit.expire(decision)
    return {name: [row[name] for row in rows] for name in NAMES}


@pytest.mark.parametrize("policy", every_policy(), ids=str)
def test_a_log_is_learned_bit_for_bit_like_its_decisions(policy: Policy) -> None:
    objective = "min" if policy.rewards == "any" else "max"
    one, other = new(policy, objective=objective), new(policy, objective=objective)
    table = live(policy, one)
    other.partial_fit(table)
    assert other.t == 0
    other.replace(t=one.t)
    assert other.digest() == one.digest()


def test_some_policies_are_tried_with_corrections() -> None:
    assert can_correct(Algorithm1(p=8))
    assert sum(can_correct(policy) for policy in every_policy()) >= 10


def binary(rows: list[list[float]]) -> list[bytes]:
    return [np.array(row, dtype="<f8").tobytes() for row in rows]


FORMS: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "lists": dict,
    "arrays": lambda table: {
        name: np.array(column, dtype=float if name == "replaces" else None) for name, column in table.items()
    },
    "pandas": pd.DataFrame,
    "pandas of bytes": lambda table: pd.DataFrame({**table, "x": binary(table["x"])}),
    "pandas categories": lambda table: pd.DataFrame(table).astype({"arm": "category"}),
    "polars": lambda table: pl.DataFrame(table, strict=False),
    "polars arrays": lambda table: pl.DataFrame(table, strict=False).with_columns(
        pl.col("x").list.to_array(DIM), pl.col("arm").cast(pl.Categorical)
    ),
    "arrow": pa.table,
    "arrow of fixed lists": lambda table: pa.table({**table, "x": pa.array(table["x"], pa.list_(pa.float64(), DIM))}),
    "arrow of bytes": lambda table: pa.table({**table, "x": pa.array(binary(table["x"]), pa.binary(8 * DIM))}),
    "arrow in chunks": lambda table: pa.concat_tables(
        [pa.table(table).slice(0, 7), pa.table(table).slice(7)], promote_options="default"
    ),
    "arrow, sliced": lambda table: pa.table(
        {**table, "x": pa.array([b"\0" * 8 * DIM, *binary(table["x"])], pa.binary(8 * DIM)).slice(1)}
    ),
    "feature columns": lambda table: {
        **{name: column for name, column in table.items() if name != "x"},
        **{f"f{j}": [row[j] for row in table["x"]] for j in range(DIM)},
        "seq": list(range(len(table["t"]))),
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_table_is_read_alike(form: str) -> None:
    policy = Algorithm1(p=20)
    features = {"dim": None, "features": [f"f{j}" for j in range(DIM)]}
    one, other = (Bandit([f"arm {i}" for i in range(N_ARMS)], policy=policy, seed=5, **features) for _ in range(2))  # type: ignore[arg-type]  # dim or features
    table = live(policy, one)
    other.partial_fit(FORMS[form](table))
    other.replace(t=one.t)
    assert other.digest() == one.digest()


def small(**columns: Any) -> dict[str, Any]:
    rows = {"t": [1, 2], "x": [[1.0, 2.0], [0.5, 1.0]], "arm": ["a", "b"], "reward": [1.0, 0.5]}
    return {**rows, "propensity": [0.5, 1.0], "explored": [True, True], **columns}


@pytest.mark.parametrize("policy", [Algorithm1(p=4), InPython(p=4)], ids=["compiled", "in Python"])
@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"t": [0, 1]}, r"t\[0\] is 0"),
        ({"t": [1, 2**63]}, r"t\[1\] is"),
        ({"t": [1.0, 1.5]}, r"t\[1\] is 1.5"),
        ({"t": [1, None]}, r"t\[1\] is None"),
        ({"t": [True, True]}, r"t\[0\] is"),
        ({"x": [[1.0, 2.0]]}, r"x has"),
        ({"x": [[1.0, 2.0], [1.0]]}, r"row 1"),
        ({"x": [[1.0, 2.0], [1.0, float("nan")]]}, r"row 1"),
        ({"x": [b"12345678", b"1234567890123456"]}, r"x has rows of bytes"),
        ({"arm": ["a", "z"]}, r"no arm 'z'"),
        ({"arm": ["a"]}, r"arms has 1"),
        ({"reward": [1.0, None]}, r"reward\[1\] is None"),
        ({"reward": [1.0, 9.0]}, r"reward_range"),
        ({"propensity": [1.0, 0.0]}, r"propensity\[1\] is 0.0"),
        ({"propensity": [1.0, 1.5]}, r"propensity\[1\] is 1.5"),
        ({"explored": [True, 2]}, r"explored\[1\]"),
        ({"tag": [0, 2**31]}, r"tag\[1\]"),
        ({"weight": [1.0, -1.0]}, r"weights\[1\]"),
        ({"weights": [1.0, 1.0]}, r"call it weight"),
        ({"replaces": [None, "0.5"]}, r"replaces"),
        ({"replaces": [None]}, r"replaces has shape"),
    ],
)
def test_a_log_that_cannot_be_is_refused_and_nothing_learned(
    policy: Policy, columns: dict[str, Any], match: str
) -> None:
    bandit = Bandit(["a", "b"], 2, policy=policy, seed=1, reward_range=(0, 2))
    before = bandit.digest()
    with pytest.raises((ValueError, TypeError, KeyError), match=match):
        bandit.partial_fit(small(**columns))
    assert bandit.digest() == before
    bandit.partial_fit(small())
    assert bandit.state.n.sum() == 2


@pytest.mark.parametrize("name", ["t", "x", "arm", "reward", "propensity", "explored"])
def test_a_column_that_is_missing_is_named(name: str) -> None:
    bandit = Bandit(["a", "b"], 2, policy=Algorithm1(p=4), seed=1)
    with pytest.raises(ValueError, match=f"no column {name}"):
        bandit.partial_fit({key: column for key, column in small().items() if key != name})
    with pytest.raises(TypeError, match="give a mapping of columns"):
        bandit.partial_fit([1, 2])


@pytest.mark.parametrize("policy", [Algorithm1(p=4), InPython(p=4)], ids=["compiled", "in Python"])
def test_a_log_of_no_rows_changes_nothing(policy: Policy) -> None:
    bandit = Bandit(["a", "b"], 2, policy=policy, seed=1)
    before = bandit.digest()
    bandit.partial_fit({name: [] for name in NAMES})
    assert bandit.digest() == before


def test_a_correction_of_what_is_not_there_takes_all_rows_back() -> None:
    bandit = Bandit(["a", "b"], 2, policy=Algorithm1(p=4), seed=1)
    before = bandit.digest()
    with pytest.raises(DecisionError, match="nothing to correct"):
        bandit.partial_fit(small(arm=["a", "b"], replaces=[None, 0.5]))
    assert bandit.digest() == before
    bandit.partial_fit(small(arm=["a", "a"], replaces=[None, 0.5]))  # it comes after the row that it corrects
    assert bandit.state.n.tolist() == [1.0, 0.0]


def test_an_interrupted_log_is_taken_back_to_the_bit() -> None:
    n, d = 300_000, 64  # a billion multiplications: a tenth of a second of CPU and more; the signal comes after 0.01
    rng = np.random.default_rng(1)
    table = {
        "t": np.arange(1, n + 1),
        "x": rng.normal(size=(n, d)),
        "arm": rng.integers(0, 4, size=n),
        "reward": rng.normal(size=n),
        "propensity": np.full(n, 0.25),
        "explored": np.ones(n, dtype=bool),
    }
    bandit = Bandit(range(4), d, policy=Algorithm1(p=8), seed=1)
    bandit.partial_fit({name: column[:100] for name, column in table.items()})
    before = bandit.digest()

    def stop(*_: object) -> None:
        raise InterruptedError("stopped")

    gc.disable()  # what a handler raises in a callback of a collection is lost
    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.01)  # once: another could come while the first is on its way
    try:
        with pytest.raises(InterruptedError, match="stopped"):
            bandit.partial_fit(table)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
        gc.enable()
    assert bandit.digest() == before
    bandit.partial_fit(table)
    assert bandit.digest() != before


def test_a_log_that_is_refused_at_its_last_row_leaves_what_was_solved() -> None:
    rng = np.random.default_rng(7)
    bandit = Bandit(["a", "b", "c"], 2, seed=1)
    for x in rng.normal(size=(60, 2)):
        bandit.learn(bandit.decide(x), float(rng.normal()), weight=2.0)
    n = 40
    table: dict[str, Any] = {"t": range(1, n + 1), "x": rng.normal(size=(n, 2)), "arm": ["a", "b"] * (n // 2)}
    table |= {"reward": rng.normal(size=n), "propensity": [0.5] * n, "explored": [True] * n}
    table |= {"weight": [1.0] * (n - 1) + [1e6], "replaces": [None] * (n - 1) + [0.3]}
    before = bandit.to_bytes()
    with pytest.raises(DecisionError, match="there is nothing to correct"):
        bandit.partial_fit(table)
    assert bandit.to_bytes() == before
