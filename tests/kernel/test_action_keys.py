"""Keys of actions are those that hashlib computes, and dicts of numbers are read as Python reads them."""

from __future__ import annotations

from hashlib import blake2b
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet.inputs.actions import read_actions
from armlet.inputs.contexts import ContextReader
from armlet.kernel import action_keys, read_action_dicts
from armlet.types import Arm
from support.examples import scaled

LABELS = st.one_of(st.text(max_size=40), st.integers(), st.sampled_from(["", "\ud800", "x" * 300, 7, "7", -1, 10**30]))
NUMBERS = st.floats(-1e40, 1e40, allow_nan=False) | st.integers(-(2**20), 2**20)
ROWS = st.fixed_dictionaries({"a": NUMBERS, "b": NUMBERS})
TABLES = st.dictionaries(st.text("abc", max_size=3) | st.integers(), ROWS)


def key(label: Arm, z: list[float]) -> int:
    text = b"s" + label.encode(errors="surrogatepass") if isinstance(label, str) else f"i{label}".encode()
    return int.from_bytes(blake2b(text + np.array(z, dtype="<f8").tobytes(), digest_size=8).digest(), "little")


@settings(max_examples=scaled(200))
@given(st.lists(LABELS, max_size=4), st.integers(0, 40), st.randoms(use_true_random=False))
def test_keys_are_those_of_hashlib(labels: list[Arm], width: int, random: Random) -> None:
    rows = [[random.uniform(-9.0, 9.0) for _ in range(width)] for _ in labels]
    Z = np.array(rows).reshape(len(labels), width)
    assert action_keys(labels, Z).tolist() == [key(label, z) for label, z in zip(labels, rows, strict=True)]


@settings(max_examples=scaled(100))
@given(TABLES.filter(bool))
def test_dicts_are_read_as_python_reads_them(actions: dict[Arm, dict[str, float]]) -> None:
    labels, Z = read_actions(actions, ContextReader(2, ("a", "b"), "action"))
    plain = read_action_dicts(actions, ("a", "b"), 2)
    assert plain is not None
    assert (plain[0], plain[1].tolist()) == (labels, Z.tolist())


def test_other_tables_are_left_to_python() -> None:
    plain = {"tea": {"a": 1.0}}
    assert read_action_dicts(plain, ("a",), 1) is not None
    rows: list[object] = [[1.0], {"b": 1.0}, {"a": float("nan")}, {"a": "1"}, {"a": 1.0, "b": 2.0}]
    others = [{}, {"t\u00e9": {"a": 1.0}}, {1.5: {"a": 1.0}}, {True: {"a": 1.0}}, *({"tea": row} for row in rows)]
    assert [read_action_dicts(each, ("a",), 1) for each in (*others, list(plain), None)] == [None] * 11
    assert read_action_dicts(plain, None, 1) is None
