"""Objects that break Python's protocols, and types that the kernel does not take, are refused in Armlet's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import armlet
from armlet import Bandit, Decision
from armlet.inference import regression
from armlet.inference.view import Inference
from armlet.testing import arguments_of, fault_of


class NoFloat(float):
    """A float that does not say which."""

    def __float__(self) -> float:
        return "one"  # type: ignore[return-value]


class NoInt(int):
    """An int that says text where a float is asked for."""

    def __float__(self) -> float:
        return "one"  # type: ignore[return-value]


class NoArray:
    """Says that it is an array, and a whole number, and is neither; equal to everything at its first comparison."""

    def __init__(self) -> None:
        self.compared = 0

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return "no array"

    def __len__(self) -> int:
        return 1

    def __index__(self) -> int:
        return "one"  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        self.compared += 1
        return self.compared == 2

    __hash__ = None  # type: ignore[assignment]


class NoStream:
    """Says that it hands over an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return "no capsule"

    def __len__(self) -> int:
        return 1


class NoHash(str):
    """A label whose hash differs from that of its text once it is armed."""

    armed = False

    def __hash__(self) -> int:
        if NoHash.armed:
            raise TypeError("unhashable type: 'NoHash'")
        return str.__hash__(self)


def new(**given: Any) -> Bandit:
    return Bandit(["a", "b"], features=["age"], policy=armlet.Algorithm1(p=5), seed=1, **given)


def table(**columns: Any) -> dict[str, Any]:
    """Return a log of one row, with other columns."""
    row = {"t": [1], "x": [[1.0]], "arm": ["a"], "reward": [1.0], "propensity": [0.5], "explored": [True]}
    return row | columns


def reader() -> Any:
    return pa.table({"age": [1.0]}).to_reader()


CASES: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "reward": (Bandit.learn, lambda: (b := new()).learn(b.decide([1.0]), NoFloat(0.5))),
    "weight": (Bandit.learn, lambda: (b := new()).learn(b.decide([1.0]), 1.0, weight=NoInt(1))),
    "rewards": (Bandit.partial_fit, lambda: new().partial_fit([[1.0]], ["a"], NoArray(), explored=True)),
    "arms": (Bandit.partial_fit, lambda: new().partial_fit([[1.0]], NoArray(), [1.0], explored=True)),
    "explored": (Bandit.partial_fit, lambda: new().partial_fit([[1.0]], ["a"], [1.0], explored=NoArray())),
    "t of a table": (Decision.to_dict, lambda: new().partial_fit(table(t=[1, [2]]))),
    "x of a table": (Decision.restore, lambda: new().partial_fit(table(x=NoArray()))),
    "a stream of rows": (Bandit.decide, lambda: new().decide(reader())),
    "no stream": (Bandit.predict, lambda: new().predict(NoStream())),
    "dim": (Bandit, lambda: Bandit(["a"], NoArray())),  # type: ignore[arg-type]
    "level": (Inference.summary, lambda: new().inference.summary(level=np.zeros(2))),  # type: ignore[arg-type]
    "path": (Bandit.save, lambda: new().save("a\0b")),
    "path of load": (armlet.load, lambda: armlet.load("a\0b")),
    "theta": (armlet.Oracle, lambda: armlet.Oracle(theta="free")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", CASES)
def test_broken_objects_are_refused_by_the_argument(case: str) -> None:
    called, act = CASES[case]
    with pytest.raises(armlet.ArmletError) as caught:
        act()
    assert fault_of(caught.value, arguments_of(called) | {"t"}) is None, caught.value


def restored(**parts: Any) -> Decision:
    plain: dict[str, Any] = {"id": f"1-{'0' * 16}", "arm": "a", "propensity": 0.5, "explored": True, "x": [1.0]}
    return Decision.restore(**plain | parts)


@pytest.mark.parametrize("value", [None, "word", 1j, [], object(), 2**70])
@pytest.mark.parametrize("name", ["id", "propensity", "explored", "tag", "expired", "optimistic", "marginal"])
def test_restore_refuses_every_type_by_name(name: str, value: Any) -> None:
    with pytest.raises(armlet.ArmletError) as caught:
        restored(**{name: value})
    assert fault_of(caught.value, [name]) is None, caught.value


@pytest.mark.parametrize("value", ["word", 1j, [], object()])
@pytest.mark.parametrize(
    "name", ["exploration_propensity", "exploration_rate", "min_exploration_probability", "greedy", "learned"]
)
def test_restore_refuses_what_is_neither_known_nor_none(name: str, value: Any) -> None:
    with pytest.raises(armlet.ArmletError) as caught:
        restored(**{name: value})
    assert fault_of(caught.value, [name]) is None, caught.value
    assert restored(**{name: None}).arm == "a"


def test_difference_reads_labels_as_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = Bandit([NoHash("a"), "b"], 1, policy=armlet.LinUCB(), seed=1)
    base = bandit.copy()
    bandit.learn(bandit.decide([1.0]), 1.0)
    monkeypatch.setattr(NoHash, "armed", True)
    assert bandit.difference(base).t == 1


def test_contrast_compares_a_label_once() -> None:
    bandit = new()
    for arm in ("a", "b"):
        bandit.partial_fit([[1.0], [2.0], [4.0]], [arm] * 3, [0.0, 1.0, 1.0], explored=True)
    found = bandit.inference.contrast(NoArray(), "b", [1.0])  # type: ignore[arg-type]
    assert found.value == pytest.approx(0.0)


def test_settings_of_a_policy_are_plain_numbers() -> None:
    policy = armlet.Algorithm1(p=NoInt(5))
    assert type(policy.p) is int
    Bandit(["a", "b"], 1, policy=policy)


def test_deviation_exists_though_rows_were_taken_back() -> None:
    nothing, one = np.zeros(1), np.ones(1)
    found = regression._solved(10.0, np.eye(1), nothing, -1e-9, one, nothing, None)
    assert found.deviation == 0.0


def test_width_is_infinite_where_sums_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = Bandit(["a", "b"], 1, policy=armlet.LinUCB(), seed=1)
    bandit.partial_fit([[float(i)] for i in range(9)], ["a"] * 9, [0.0, 1.0, 1.0] * 3)
    monkeypatch.setattr(regression.Regression, "spread", lambda *_: -1e300)
    assert "inf" in str(bandit.inference.intervals(interval="anytime", noise_scale=1.0))
