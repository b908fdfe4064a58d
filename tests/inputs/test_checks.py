"""Settings of policies: numpy's numbers are taken and stored as Python's own, and what is wrong is named."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from armlet.inputs.settings import chance, ends, number, one_of, optional, positive, whole
from armlet.types import Policy
from support.policies import REGISTRY, of_registry

NEEDED: dict[str, dict[str, object]] = {
    "EXP4": {"gamma": 0.1, "n_contexts": 4},
    "EXP4P": {"horizon": 100, "p_min": 0.01},
    "EpsilonNGreedy": {"gap": 0.5},
    "EpochGreedy": {"log_class": 2.0, "gap": 0.5},
    "Exp3": {"horizon": 100},
    "GreedyFirst": {"t0": 3},
    "HybridLinUCB": {"alpha": 1.0},
    "LinRel": {"horizon": 100},
    "RealLinExp3": {"horizon": 100, "eta": 0.1, "gamma": 0.1, "ridge": 1.0},
    "SCRiBLe": {"eta": 0.1},
    "SquareCB": {"gamma": 3.0},
    "SupLinRel": {"horizon": 100, "n_stages": 2},
    "SupLinUCB": {"horizon": 100},
    "UncertaintyEllipsoid": {"alpha": 0.1, "n_contexts": 4},
}
ALIKE = (
    "Banditron",
    "ConfidenceBall1",
    "ConfidenceBall2",
    "Confidit",
    "FixedEpsilon",
    "Greedy",
    "Newtron",
    "PEGE",
    "PolicyElimination",
    "FeasibleRandomizedUCB",
    "RarelySwitchingOFUL",
    "UCB1",
)


def settings(policy: Policy) -> dict[str, object]:
    return {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}  # type: ignore[arg-type]


def by_numpy(value: object) -> object:
    """Return a number or a pair of numbers as numpy would."""
    if isinstance(value, tuple):
        return [by_numpy(each) for each in value]
    if isinstance(value, (int, float)):
        return np.int64(value) if isinstance(value, int) else np.float64(value)
    return value


@pytest.mark.parametrize("name", of_registry([*NEEDED, *ALIKE]))
def test_numbers_of_numpy_are_stored_as_plain_ones(name: str) -> None:
    policy = REGISTRY[name](**NEEDED.get(name, {}))
    twin = REGISTRY[name](**{key: by_numpy(value) for key, value in settings(policy).items()})
    assert twin == policy
    assert json.dumps(settings(twin)) == json.dumps(settings(policy))
    assert not any(isinstance(value, np.generic) for value in settings(twin).values())


@pytest.mark.parametrize("value", [True, None, "1", math.nan, math.inf, -math.inf, 1j, np.bool_(True), [1.0]])
def test_what_is_no_finite_number_is_refused(value: object) -> None:
    for check in (number(0), positive(), chance(), whole()):
        with pytest.raises(ValueError, match=r"p is .*; give a"):
            check("p", value)


def test_ends_belong_to_a_range_but_not_to_a_chance() -> None:
    assert [number(0, 1)("p", end) for end in (0, 1)] == [0, 1]
    assert positive(1.0)("p", 1.0) == 1.0
    for end in (0.0, 1.0):
        with pytest.raises(ValueError, match="p is"):
            chance()("p", end)


def test_fix_is_the_one_that_was_given() -> None:
    with pytest.raises(ValueError, match="p is 2; give a share"):
        number(0, 1, fix="give a share")("p", 2)
    with pytest.raises(ValueError, match="p is 2; give a share, or None"):
        optional(positive(1.0, fix="give a share"))("p", 2)
    assert optional(whole())("p", None) is None


@pytest.mark.parametrize("value", [(1.0,), (1.0, 1.0), (0.0, math.inf), ("low", "high"), None, 3])
def test_range_has_two_ends_that_differ(value: object) -> None:
    with pytest.raises(ValueError, match=r"reward_range is .*; give \(lowest, highest\), two numbers that differ"):
        ends("reward_range", value)


def test_words_are_listed() -> None:
    with pytest.raises(ValueError, match="axes is 3; choose 'a', 'b' or 'c'"):
        one_of("a", "b", "c")("axes", 3)
