"""The settings of a budget are checked when it is made."""

from __future__ import annotations

import numpy as np
import pytest

import armlet
from armlet.errors import InvalidTypeError, InvalidValueError


@pytest.mark.parametrize(
    ("given", "refused", "words"),
    [
        ({"total": 0.0, "horizon": 10}, InvalidValueError, "total is 0.0; give a positive number"),
        ({"total": float("nan"), "horizon": 10}, InvalidValueError, "total is nan; give a positive number"),
        ({"total": "1", "horizon": 10}, InvalidValueError, "total is '1'; give a positive number"),
        ({"total": 1.0, "horizon": 0}, InvalidValueError, "horizon is 0; give a whole number of at least 1, or None"),
        ({"total": 1.0, "period": 1.5}, InvalidValueError, "period is 1.5; give a whole number of at least 1, or None"),
        ({"total": 1.0}, InvalidTypeError, "neither horizon nor period; give one of them, in decisions"),
        ({"total": 1.0, "horizon": 5, "period": 6}, InvalidTypeError, "horizon is 5 and period is 6; give one"),
        ({"total": 1.0, "horizon": 5, "hard": 1}, InvalidTypeError, "hard is 1; give True or False"),
    ],
)
def test_refused_settings_are_named(given: dict[str, object], refused: type[Exception], words: str) -> None:
    with pytest.raises(refused, match=words):
        armlet.Budget("cost", **given)  # type: ignore[arg-type]


def test_the_outcome_is_a_name() -> None:
    with pytest.raises(InvalidTypeError, match="outcome is 3; give the name of an outcome"):
        armlet.Budget(3, total=1.0, horizon=10)  # type: ignore[arg-type]


def test_numbers_of_numpy_become_plain_ones_that_files_can_hold() -> None:
    budget = armlet.Budget("cost", total=np.float32(0.5), period=np.int64(7))  # type: ignore[arg-type]
    assert budget.to_dict() == {"outcome": "cost", "total": 0.5, "horizon": None, "period": 7, "hard": False}
    assert armlet.Budget.from_dict(budget.to_dict()) == budget


@pytest.mark.parametrize("saved", [None, [], {"outcome": "cost"}, {"outcome": "cost", "total": 1.0, "speed": 2}])
def test_what_is_not_a_saved_budget_is_refused(saved: object) -> None:
    with pytest.raises(InvalidValueError, match=r"budget is .*; give outcome, total and horizon or period"):
        armlet.Budget.from_dict(saved)
