"""A change of features matches them by name, and carries rows of before to those of now."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet.inputs.feature_change import FeatureChange

NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True)


@given(before=NAMES, after=NAMES)
def test_a_row_is_carried_by_name(before: list[str], after: list[str]) -> None:
    new = {name: float(ord(name)) / 8 for name in after if name not in before}
    row = dict(zip(before, np.arange(1.0, 1.0 + len(before)), strict=True))
    change = FeatureChange.between(before, after, new)
    expected = [{**new, **row}[name] for name in after]
    assert change.carry(list(row.values())).tolist() == expected
    assert change.carry([list(row.values())] * 3).tolist() == [expected] * 3
    assert change.added == new
    assert change.dropped == tuple(name for name in before if name not in after)
    assert change.dim == len(after)


def test_what_is_left_out_is_zero() -> None:
    assert FeatureChange.between(["a"], ["b", "a", "c"], {"c": 2}).carry([5.0]).tolist() == [0.0, 5.0, 2.0]


def test_features_without_names_get_those_of_now() -> None:
    assert FeatureChange.between(None, ["a", "b"], dim=2).carry([1.0, 2.0]).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="features has 2 names, but the bandit has 3 features without names"):
        FeatureChange.between(None, ["a", "b"], dim=3)


@pytest.mark.parametrize("x", [[1.0], [[1.0, 2.0, 3.0]], 1.0])
def test_rows_of_another_width_are_refused(x: object) -> None:
    with pytest.raises(ValueError, match="give rows of the 2 features that there were before"):
        FeatureChange.between(["a", "b"], ["a"]).carry(x)  # type: ignore[arg-type]
