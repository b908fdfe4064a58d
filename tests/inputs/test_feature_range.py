"""Values of features outside of a declared range are refused or clipped where contexts are read, and counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import armlet
from armlet import Algorithm1, Bandit, Encoder, LinUCB, Policy
from armlet.disk import decode_model, encode_model
from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.policies.fixed_epsilon import FixedEpsilon
from support.recorder import Notebook, replay

NANOSECONDS = 1.8e18  # in place of an age
POLICIES: list[Policy] = [Algorithm1(p=100), FixedEpsilon()]
CALLS: dict[str, Callable[[Bandit, float], object]] = {
    "decide a list": lambda bandit, age: bandit.decide([age, 2.0]),
    "decide an array": lambda bandit, age: bandit.decide(np.array([age, 2.0])),
    "decide a dict": lambda bandit, age: bandit.decide({"clicks": 2, "age": age}),
    "decide a Series": lambda bandit, age: bandit.decide(pd.Series({"age": age, "clicks": 2.0})),
    "decide_many": lambda bandit, age: bandit.decide_many([[30.0, 1.0], [age, 2.0]]),
    "decide_many of a table": lambda bandit, age: bandit.decide_many(pd.DataFrame({"clicks": [1.0], "age": [age]})),
    "partial_fit": lambda bandit, age: bandit.partial_fit(
        [[30.0, 1.0], [age, 2.0]], ["a", "b"], [0.5, 1.0], explored=True
    ),
    "partial_fit of a table": lambda bandit, age: bandit.partial_fit(_logged([[age, 2.0]])),
    "partial_fit of columns": lambda bandit, age: bandit.partial_fit(_logged(None) | {"age": [age], "clicks": [2.0]}),
    "fit": lambda bandit, age: bandit.fit([[age, 2.0]], ["a"], [0.5], explored=True),
    "predict": lambda bandit, age: bandit.predict([[age, 2.0]]),
    "predict_expectations": lambda bandit, age: bandit.predict_expectations([[age, 2.0]]),
    "predict_proba": lambda bandit, age: bandit.predict_proba([[age, 2.0]]),
}


def _logged(x: list[list[float]] | None) -> dict[str, Any]:
    columns = {"t": [1], "arm": ["a"], "reward": [0.5], "propensity": [0.5], "explored": [True]}
    return columns if x is None else columns | {"x": x}


def aged(policy: Policy | None = None, **options: Any) -> Bandit:
    ranges = options.pop("feature_range", {"age": (0, 120), "clicks": (0, 50, "clip")})
    return Bandit(["a", "b"], features=["age", "clicks"], policy=policy, feature_range=ranges, seed=1, **options)


def counts(bandit: Bandit) -> dict[str, dict[str, int]]:
    ranges = bandit.settings.feature_range
    return {} if ranges is None else ranges.counts


# ---- refused


@pytest.mark.parametrize("policy", POLICIES, ids=["compiled", "python"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("age", [NANOSECONDS, -0.5, 120.001])
def test_a_context_out_of_range_changes_nothing(policy: Policy, call: str, age: float) -> None:
    bandit = aged(policy)
    CALLS[call](bandit, 120.0)
    before = bandit.to_bytes()
    with pytest.raises(
        InvalidValueError, match=r"context\['age'\] is .* but feature_range has \(0\.0, 120\.0\)"
    ) as refused:
        CALLS[call](bandit, age)
    assert str(age) in str(refused.value)
    assert "replace(feature_range=...)" in str(refused.value)
    assert bandit.to_bytes() == before
    assert counts(bandit) == {"age": {"refused": 1, "clipped": 0}, "clicks": {"refused": 0, "clipped": 0}}


def test_a_refused_row_of_a_batch_is_named() -> None:
    with pytest.raises(InvalidValueError, match=r"row 1: context\['age'\] is -1\.0"):
        aged().decide_many([[1.0, 1.0], [-1.0, 1.0]])


# ---- clipped


def test_a_clipped_context_is_decided_as_its_end() -> None:
    bandit, other = aged(), aged(feature_range=None)
    for clicks in (NANOSECONDS, 7.0, -3.0):
        ours, theirs = bandit.decide([30.0, clicks]), other.decide([30.0, min(max(clicks, 0.0), 50.0)])
        assert ours.to_dict() == theirs.to_dict()
        bandit.learn(ours, 0.5)
        other.learn(theirs, 0.5)
    assert bandit.state.records().tobytes() == other.state.records().tobytes()
    assert counts(bandit)["clicks"] == {"refused": 0, "clipped": 2}


def test_a_callers_own_array_is_not_clipped() -> None:
    own = np.array([[30.0, 99.0]])
    assert aged().decide_many(own)[0].x.tolist() == [30.0, 50.0]
    assert own.tolist() == [[30.0, 99.0]]


def test_ranges_come_before_normalizing() -> None:
    bandit = aged(normalize="l2")
    assert bandit.decide([30.0, 99.0]).x.tolist() == [30.0, 50.0]
    with pytest.raises(InvalidValueError, match="feature_range"):
        bandit.predict([[121.0, 0.0]])


def test_ranges_are_of_encoded_numbers() -> None:
    encoder = Encoder().fit({"colour": ["red", "blue"], "price": [1.0, 2.0]})
    bandit = Bandit(["a", "b"], encoder=encoder, feature_range={"price": (0, 10, "clip")}, seed=1)
    assert bandit.decide({"colour": "red", "price": 11}).x[-1] == 10.0
    assert bandit.decide_many([{"colour": "red", "price": -1}])[0].x[-1] == 0.0
    bandit.replace(feature_range={"price": (0, 10)})
    for call in (bandit.decide, lambda row: bandit.predict([row])):
        with pytest.raises(InvalidValueError, match=r"context\['price'\] is 11"):
            call({"colour": "red", "price": 11})
        with pytest.raises(InvalidValueError, match=r"context\['price'\] is 12"):
            call([0.0, 0.0, 1.0, 12.0])


# ---- kept


def test_ranges_are_kept_in_files_and_copies() -> None:
    bandit = aged()
    for twin in (armlet.from_bytes(bandit.to_bytes()), bandit.copy(), bandit.copy(seed=2)):
        assert twin.settings.feature_range == {"age": (0.0, 120.0), "clicks": (0.0, 50.0, "clip")}
        assert counts(twin)["age"]["refused"] == 0
        with pytest.raises(InvalidValueError, match="feature_range"):
            twin.decide([200.0, 1.0])


def test_a_bandit_without_ranges_writes_no_word_of_them() -> None:
    plain, emptied = aged(feature_range=None), aged()
    emptied.replace(feature_range=None)
    assert b"feature_range" not in plain.to_bytes()
    assert (emptied.to_bytes(), emptied.digest()) == (plain.to_bytes(), plain.digest())
    assert plain.settings.feature_range is aged(feature_range={}).settings.feature_range is None


def test_a_log_tells_ranges_and_replays(tmp_path: Path) -> None:
    with armlet.Log(tmp_path / "log.jsonl") as log:
        bandit = aged(log=log)
        for clicks in (1.0, 99.0):
            bandit.learn(bandit.decide([30.0, clicks]), 0.5)
        bandit.replace(feature_range={"age": (0, 40, "clip")})
        bandit.learn(bandit.decide([50.0, 99.0]), 1.0)
        bandit.partial_fit([[90.0, 1.0]], ["a"], [0.5], explored=True)
        bandit.replace(feature_range=None)
        bandit.decide([NANOSECONDS, 99.0])
        with pytest.raises(InvalidValueError, match="feature_range has 'ages'"):
            bandit.replace(feature_range={"ages": (0, 1)})
    found = [event for event in armlet.log.read(log.path) if event["kind"] in ("start", "replace")]
    assert found[0]["feature_range"] == {"age": [0.0, 120.0], "clicks": [0.0, 50.0, "clip"]}
    assert [event["feature_range"] for event in found[1:]] == [{"age": [0.0, 40.0, "clip"]}, None]
    assert armlet.audit(log.path, log.start_path).ok
    assert armlet.log.resume(armlet.Log(log.path)).digest() == bandit.digest()


def test_a_recorder_receives_clipped_rows() -> None:
    notebook = Notebook()
    bandit = aged(log=notebook)
    bandit.learn(bandit.decide([30.0, 99.0]), 0.5)
    bandit.partial_fit([[30.0, 98.0]], ["a"], [0.5], explored=True)
    events = [json.loads(line) for line in notebook.lines]
    assert (events[0]["x"], events[-1]["X"]) == ([30.0, 50.0], [[30.0, 50.0]])
    assert replay(notebook).digest() == bandit.digest()


# ---- replaced


def test_pending_decisions_are_learned_under_new_ranges() -> None:
    bandit = aged(feature_range=None)
    pending = bandit.decide([NANOSECONDS, 1.0])
    bandit.replace(feature_range={"age": (0, 120)})
    bandit.learn(pending, 0.5)
    bandit.forget(pending, 0.5)
    assert bandit.state.n.sum() == 0


def test_features_that_stay_keep_their_ranges() -> None:
    bandit = aged()
    with pytest.raises(InvalidValueError, match="age"):
        bandit.decide([-1.0, 0.0])
    bandit.replace(features=["member", "age"])
    assert bandit.settings.feature_range == {"age": (0.0, 120.0)}
    assert counts(bandit) == {"age": {"refused": 1, "clipped": 0}}
    with pytest.raises(InvalidValueError, match=r"context\['age'\] is 121"):
        bandit.decide({"member": 1e9, "age": 121})
    bandit.replace(features=["member"])
    assert bandit.settings.feature_range is None


def test_counts_stay_when_a_policy_is_replaced() -> None:
    bandit = aged(LinUCB())
    bandit.decide([1.0, 60.0])
    bandit.replace(policy=LinUCB(alpha=2.0))
    bandit.decide([1.0, 60.0])
    assert counts(bandit)["clicks"]["clipped"] == 2


def test_bandits_of_different_ranges_merge() -> None:
    one, other = aged(), aged(feature_range=None)
    other.replace(seed=2)
    other.learn(other.decide([NANOSECONDS, 1.0]), 0.5)
    one.merge(other)
    assert one.state.n.sum() == 1


# ---- what is no range


@pytest.mark.parametrize(
    "wrong", [(1, 0), (0, 0), (0,), "01", 5, (0, float("nan")), (0, float("inf")), (0, 1e41), (0, 1, "clamp"), ("0", 1)]
)
def test_a_range_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"feature_range\['age'\] is .*; give \(lowest, highest\)"):
        aged(feature_range={"age": wrong})
    bandit = aged()
    with pytest.raises(InvalidValueError, match=r"feature_range\['age'\] is "):
        bandit.replace(feature_range={"age": wrong})
    assert bandit.settings.feature_range == {"age": (0.0, 120.0), "clicks": (0.0, 50.0, "clip")}


def test_ranges_need_names_of_features() -> None:
    with pytest.raises(InvalidValueError, match=r"features have no names; give features=\[...\]"):
        Bandit(["a"], 1, feature_range={"age": (0, 120)})
    with pytest.raises(InvalidValueError, match=r"feature_range has 'aeg', .* did you mean 'age'"):
        aged(feature_range={"aeg": (0, 1)})
    with pytest.raises(InvalidTypeError, match=r"feature_range is \(0, 1\); give ranges by feature name"):
        aged(feature_range=(0, 1))
    with pytest.raises(InvalidTypeError, match="replace got nothing"):
        aged().replace()


@pytest.mark.parametrize("damage", [[0.0], [1.0, 0.0], [0.0, 1.0, "refuse?"], None])
def test_a_file_with_impossible_ranges_is_refused(damage: Any) -> None:
    header, arrays = decode_model(aged(feature_range={"age": (0, 120)}).to_bytes())
    with pytest.raises(armlet.errors.ModelFileError, match=r"feature_range\['age'\] is "):
        armlet.from_bytes(encode_model({**header, "feature_range": {"age": damage}}, arrays))
