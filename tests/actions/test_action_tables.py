"""Tables of actions: frozen, named by a hash, the same in any order, and restored from their records."""

from __future__ import annotations

import hashlib
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet import ActionTable
from armlet.actions.table import action_key
from armlet.errors import InvalidValueError, UnknownNameError

LABELS = st.lists(st.one_of(st.integers(-(10**20), 10**20), st.text(max_size=5)), min_size=1, max_size=8, unique=True)


@given(labels=LABELS, seed=st.integers(0, 2**32))
def test_order_never_matters(labels: list[str | int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(len(labels), 2))
    order = rng.permutation(len(labels))
    one = ActionTable(labels, Z)
    other = ActionTable([labels[place] for place in order], Z[order])
    assert one.hash == other.hash
    assert one == other
    numbers, texts = ([label for label in labels if isinstance(label, kind)] for kind in (int, str))
    assert one.labels == (*sorted(numbers), *sorted(texts))
    np.testing.assert_array_equal(one.keys, other.keys)
    np.testing.assert_array_equal(one.features, other.features)
    again = ActionTable.from_fields(json.loads(json.dumps(one.fields())))
    assert again.hash == one.hash
    assert pickle.loads(pickle.dumps(one)).hash == one.hash


def test_keys_are_eight_bytes_of_blake2b_of_label_and_features() -> None:
    z = np.array([1.0, -2.5])
    expected = int.from_bytes(hashlib.blake2b(b"stea" + z.tobytes(), digest_size=8).digest(), "little")
    assert action_key("tea", z) == expected
    assert int(ActionTable(["tea"], [z]).keys[0]) == expected
    assert action_key("7", z) != action_key(7, z)
    assert action_key("tea", np.array([0.0])) == int(ActionTable(["tea"], [[-0.0]]).keys[0])


def test_a_change_is_told_by_what_is_other() -> None:
    base = ActionTable(range(10), np.arange(20.0).reshape(10, 2), names=["a", "b"])
    new = base.changed(add={3: [0.5, 0.5], "x": {"b": 1.0, "a": 2.0}}, remove=[9])
    fields = json.loads(json.dumps(new.fields(base)))
    assert (fields["from"], fields["remove"]) == (base.hash, [9])
    assert fields["add"] == {"labels": [3, "x"], "Z": [[0.5, 0.5], [2.0, 1.0]]}
    assert ActionTable.from_fields(fields, {base.hash: base}.__getitem__).hash == new.hash
    assert "Z" in ActionTable(["y"], [[1.0, 2.0]], names=["a", "b"]).fields(base)
    with pytest.raises(InvalidValueError, match="hash"):
        ActionTable.from_fields({**fields, "remove": []}, {base.hash: base}.__getitem__)
    with pytest.raises(UnknownNameError, match="no action 11"):
        base.changed(remove=[11])


def test_a_changed_table_has_the_keys_of_one_made_anew() -> None:
    base = ActionTable(["c", 4, "a", 9], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    assert len(base.keys) == 4  # known from here on
    new = base.changed(add={"b": [-0.0, 1.0], "a": [0.5, 0.5]}, remove=[4])
    again = ActionTable(new.labels, new.features)
    assert new.keys.tolist() == again.keys.tolist()
    assert new.hash == again.hash
    assert not new.keys.flags.writeable


def test_a_table_cannot_be_changed() -> None:
    Z = np.array([[1.0]])
    table = ActionTable(["a"], Z)
    Z[0, 0] = 7.0
    assert table["a"].tolist() == [1.0]
    with pytest.raises(ValueError, match="read-only"):
        table.features[0, 0] = 2.0
    with pytest.raises(ValueError, match="read-only"):
        table.keys[0] = 2
