"""Batches of decisions as tables: Arrow, pandas and polars take them as they are."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from armlet import Algorithm1, Bandit, Decisions, LinUCB, OccasionalOptimism, Policy


def decided(policy: Policy, arms: list[Any] | None = None, **settings: Any) -> Decisions:
    bandit = Bandit(arms or ["a", "b", "c"], 2, policy=policy, seed=1)
    X = np.random.default_rng(1).normal(size=(30, 2))
    bandit.partial_fit(X, [bandit.arms[i % 2] for i in range(30)], X[:, 0], explored=True, steps=0)
    return bandit.decide_many(X, **settings)


@pytest.mark.parametrize("policy", [Algorithm1(p=12), LinUCB()], ids=str)
@pytest.mark.parametrize("eligible", [None, ["a", "c"]])
def test_a_table_has_the_records_of_its_decisions(policy: Policy, eligible: list[str] | None) -> None:
    decisions = decided(policy, eligible=eligible)
    records = [decision.to_dict() for decision in decisions]
    assert decisions.to_arrow().to_pylist() == records
    assert pa.table(decisions).to_pylist() == records
    assert pl.DataFrame(decisions).to_dicts() == records
    frame = pd.DataFrame.from_arrow(decisions)  # type: ignore[attr-defined]  # the stubs are older
    assert frame["id"].tolist() == decisions.ids == [record["id"] for record in records]
    assert decisions.designs == [record["design"] for record in records]
    assert decisions.greedy == [record["greedy"] for record in records]
    assert decisions.X.tolist() == [record["x"] for record in records]
    assert decisions.tags.tolist() == [record["tag"] for record in records]


def test_a_table_says_if_propensities_are_not_marginal() -> None:
    asked = decided(OccasionalOptimism(), propensity="marginal")
    plain = decided(OccasionalOptimism())
    assert asked.to_arrow().to_pylist() == [decision.to_dict() for decision in asked]
    assert asked.optimistic.any()
    assert [asked.marginal.all(), plain.marginal.all(), plain.marginal.any()] == [True, False, True]  # sure to explore
    assert plain.to_arrow().to_pylist() == [decision.to_dict() | {"marginal": decision.marginal} for decision in plain]
    assert [asked.arms, asked.optimistic.tolist()] == [plain.arms, plain.optimistic.tolist()]


def test_numbers_name_arms_too_but_not_both() -> None:
    assert decided(Algorithm1(p=12), [3, 4, 5]).to_arrow().schema.field("arm").type == pa.int64()
    with pytest.raises(TypeError, match="by str and by int"):
        decided(Algorithm1(p=12), [3, "4", "5"]).to_arrow()


def test_a_batch_of_none_is_a_table_of_no_rows() -> None:
    bandit = Bandit(["a"], 2, policy=Algorithm1(p=1), seed=1)
    assert bandit.decide_many(np.empty((0, 2))).to_arrow().num_rows == 0


def test_a_table_can_be_learned_from_once_it_has_rewards() -> None:
    bandit = Bandit(["a", "b"], 2, policy=Algorithm1(p=12), seed=1)
    decisions = bandit.decide_many(np.random.default_rng(1).normal(size=(20, 2)))
    other = bandit.copy()
    bandit.learn_many(decisions, np.arange(20.0))
    other.partial_fit(decisions.to_arrow().append_column("reward", pa.array(np.arange(20.0))))
    assert other.digest() == bandit.digest()


def test_without_pyarrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    decisions = decided(Algorithm1(p=12))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'armlet\[data\]'"):
        decisions.to_arrow()
