"""Rewards and contexts of the types that programs hold: read by the kernel, as Python's readers would read them."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet.inputs import columns
from armlet.inputs.contexts import ContextReader
from support.examples import scaled

FEATURES = ("age", "height")
SCALARS: list[Any] = [float, bool, int, np.float64, np.float32, np.bool_, np.int8, np.uint8, np.int16, np.uint16]
SCALARS += [np.int32, np.uint32, np.int64, np.uint64, np.longlong, np.ulonglong]
DTYPES = [np.dtype(kind) for kind in SCALARS[3:]]


def new_bandit() -> armlet.Bandit:
    return armlet.Bandit(["a", "b"], features=FEATURES, policy=armlet.Algorithm1(p=4), seed=1)


def python_calls(step: Any) -> list[str]:
    """Name the Python functions that run inside a call, which is not Python itself."""
    found: list[str] = []
    gc.disable()  # callbacks of a collection, which other libraries have, are no part of the call
    sys.setprofile(lambda frame, event, _: found.append(frame.f_code.co_name) if event == "call" else None)
    try:
        step()
    finally:
        sys.setprofile(None)
        gc.enable()
    return [name for name in found if name != "<lambda>"]


def outcome(read: Any, x: Any) -> list[float] | str:
    """Return the values that were read, or how they were refused."""
    try:
        values: list[float] = read(x).tolist()
    except (TypeError, ValueError) as error:
        return repr(error)
    return values


ROWS = {
    "list": [1.0, 0.5],
    "tuple": (1.0, 0.5),
    "float64": np.array([1.0, 0.5]),
    "strided": np.array([[1.0, 0.5], [2.0, 3.0]])[:, 1],
    "dict": {"age": 1.0, "height": 0.5},
    "dict in another order": {"height": 0.5, "age": np.float32(1.0)},
    **{f"array of {dtype}": np.array([1, 0]).astype(dtype) for dtype in DTYPES},
    **{f"list of {kind.__name__}": [kind(1), kind(0)] for kind in SCALARS},
}


@pytest.mark.parametrize("x", ROWS.values(), ids=ROWS.keys())
def test_an_everyday_context_meets_no_python_and_is_read_as_python_would(x: Any) -> None:
    bandit = new_bandit()
    assert python_calls(lambda: bandit.decide(x)) == []
    assert bandit.decide(x).x.tolist() == ContextReader(2, FEATURES).row(x).tolist()


@pytest.mark.parametrize("kind", SCALARS, ids=lambda kind: kind.__name__)
def test_an_everyday_reward_or_weight_meets_no_python(kind: Any) -> None:
    bandit = new_bandit()
    first, second = bandit.decide([1.0, 0.5]), bandit.decide([1.0, 0.5])
    assert python_calls(lambda: bandit.learn(first, kind(1))) == []
    assert python_calls(lambda: bandit.learn(second, kind(0), weight=kind(1))) == []
    assert python_calls(lambda: bandit.correct(first, kind(1), kind(0))) == []
    assert (first.reward, second.reward, second.weight) == (0.0, 0.0, 1.0)


class Loud(float):
    """Says another number than it holds."""

    def __float__(self) -> float:
        return 7.0


class Other(dict[str, float]):
    """Holds other values than it says."""

    def __getitem__(self, _: str) -> float:
        return 7.0


def test_a_subclass_says_its_own_number() -> None:
    bandit = new_bandit()
    decision = bandit.decide(Other(age=1.0, height=2.0))
    bandit.learn(decision, Loud(1.0))
    assert (decision.x.tolist(), decision.reward) == ([7.0, 7.0], 7.0)


@pytest.mark.parametrize(
    "x",
    [
        [2**53 + 1, 1],
        np.array([2**53 + 1, 1]),
        np.array([1, 2**64 - 1], dtype=np.uint64),
        [1.0, np.int64(2**60)],
        {"age": 2**53 + 1, "height": 1},
        {"age": 1.0, "height": np.float32("nan")},
        {"age": 1.0, "height": "1"},
        {"age": 1.0},
        {"age": 1.0, "hight": 1.0},
        {"age": 1.0, "height": 1.0, "weight": 1.0},
        np.array([1.0, np.inf], dtype=np.float32),
        np.array([1.0, 2.0, 3.0], dtype=np.float32),
        np.array(["1", "2"]),
        np.array([1.0, 2.0j]),
        [np.timedelta64(1), 1.0],
        [None, 1.0],
    ],
    ids=repr,
)
def test_a_context_is_refused_in_the_words_of_pythons_reader(x: Any) -> None:
    bandit = new_bandit()
    read = outcome(ContextReader(2, FEATURES).row, x)
    assert outcome(lambda given: bandit.decide(given).x, x) == read
    assert bandit.t == (0 if isinstance(read, str) else 1)


@pytest.mark.parametrize(
    "reward",
    [2**53 + 1, np.int64(2**53 + 1), np.float32("inf"), np.float64("nan"), 1e41, "1", None, np.timedelta64(1), 1j],
    ids=repr,
)
def test_a_reward_is_refused_in_the_words_of_pythons_reader(reward: Any) -> None:
    bandit = new_bandit()
    decision = bandit.decide([1.0, 0.5])
    with pytest.raises((TypeError, ValueError)) as said:
        columns.reward(reward)
    with pytest.raises(said.type) as refused:
        bandit.learn(decision, reward)
    assert str(refused.value) == str(said.value)
    assert not decision.learned


@settings(max_examples=scaled(100))
@given(
    st.sampled_from(DTYPES),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2),
    st.sampled_from([1, 2, -1]),
)
def test_any_array_is_read_as_python_would(dtype: np.dtype[Any], words: list[int], step: int) -> None:
    values = np.repeat(np.array(words).view(dtype)[:2], abs(step))[::step]  # any bytes, apart or backwards
    bandit = new_bandit()
    assert outcome(lambda given: bandit.decide(given).x, values) == outcome(ContextReader(2, FEATURES).row, values)


class Awkward:
    """Shares the hash of a feature's name and refuses to be compared."""

    def __hash__(self) -> int:
        return hash("height")

    def __eq__(self, _: object) -> bool:
        raise RuntimeError("not with me")


def test_a_key_that_refuses_to_be_compared_is_heard() -> None:
    bandit = new_bandit()
    with pytest.raises(RuntimeError, match="not with me"):
        bandit.decide({Awkward(): 1.0, "age": 1.0})  # type: ignore[dict-item]
    assert bandit.t == 0


def test_a_dict_of_an_encoder_goes_through_it() -> None:
    encoder = armlet.Encoder().fit({"size": [1.0, 3.0]})
    bandit = armlet.Bandit(["a", "b"], encoder=encoder, policy=armlet.Algorithm1(p=4), seed=1)
    x: Any = {"size": 3.0}
    assert bandit.decide(x).x.tolist() == encoder.encode(x).tolist()
