"""Nested JSON as rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet.errors import ArmletError, InvalidTypeError, InvalidValueError
from armlet.inputs.nested import DEEPEST, MOST, flatten

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("nested", "row"),
    [
        ([], {}),
        ({}, {}),
        ([{"a": 1}, {"a": 2, "b": "x"}], {"a": 2.0, "b": "x"}),
        ({"user": {"device": {"os": "ios"}}}, {"user.device.os": "ios"}),
        ({"a": None, "b": {"c": None}}, {}),
        ({"on": True, "off": False}, {"on": 1.0, "off": 0.0}),
        ({"tags": ["x", "y", "x"]}, {"tags=x": 1.0, "tags=y": 1.0}),
        ({"v": [0.5, None, 2]}, {"v.0": 0.5, "v.2": 2.0}),
        ({"v": [{"a": 1}, {"b": 2}]}, {"v.a": 1.0, "v.b": 2.0}),
        ({"v": [[1, 2], [3]]}, {"v.0.0": 1.0, "v.0.1": 2.0, "v.1.0": 3.0}),
        ({"": {"a": 1}}, {"a": 1.0}),
    ],
)
def test_values_go_by_where_they_stand(nested: object, row: object) -> None:
    assert flatten(nested) == row


@pytest.mark.parametrize("nested", ["x", 1.0, True, ["x"], [1.0], {"": "x"}, {"a": {1, 2}}])
def test_values_without_a_name_are_refused_without_their_text(nested: object) -> None:
    with pytest.raises(InvalidTypeError, match="give objects of texts and numbers"):
        flatten(nested)


def test_what_is_too_deep_or_too_much_is_refused() -> None:
    deep: Any = {"a": 1}
    for _ in range(DEEPEST - 1):
        deep = {"a": deep}
    with pytest.raises(InvalidValueError, match="deep"):
        flatten(deep)
    assert list(flatten(deep["a"])) == [".".join("a" * (DEEPEST - 1))]
    with pytest.raises(InvalidValueError, match="more than"):
        flatten({str(i): i for i in range(MOST + 1)})


@given(VALUES)
def test_anything_becomes_a_row_of_texts_and_numbers_or_is_refused(nested: Any) -> None:
    try:
        row = flatten(json.loads(json.dumps(nested)))
    except ArmletError:
        return
    assert all(type(name) is str and type(value) in (str, float) for name, value in row.items())
