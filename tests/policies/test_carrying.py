"""States are carried to other features exactly: they are those of a bandit all of whose rows had had these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit, Encoder, Policy
from armlet.policies import POLICIES
from support.features import ARMS, REFUSED, SETTINGS, all_policies, eighths, is_free, learn, made


def solved_again(bandit: Bandit) -> dict[str, Any]:
    """Return the arrays of a state, with what is solved for some rows only solved for all of them."""
    state = bandit.state.copy()
    if hasattr(state, "deviations"):
        state.restore(state.records())
    arrays: dict[str, Any] = state.arrays()
    if "tuning" in arrays:
        arrays["tuning"] = arrays["tuning"][:1]  # p; when to look again is now
    return arrays


def assert_same_sums(one: Bandit, other: Bandit, *but: str) -> None:
    found, expected = solved_again(one), solved_again(other)
    assert found.keys() == expected.keys()
    for name in found.keys() - set(but):
        assert found[name].shape == expected[name].shape, name
        if getattr(one.policy, "half_life", None) is not None:  # weights have all their digits, so products are rounded
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-9, err_msg=name)
        else:
            assert found[name].tobytes() == expected[name].tobytes(), name


@pytest.mark.parametrize("policy", all_policies(), ids=str)
@pytest.mark.parametrize("fill", [0.0, 1.5, 5000.125])
def test_a_new_feature_is_as_if_all_rows_had_had_it(policy: Policy, fill: float) -> None:
    X = eighths(300, 2)
    bandit, expected = made(policy, ["x", "y"]), made(policy, ["z", "y", "x"])
    learn(bandit, X)
    learn(expected, np.column_stack([np.full(len(X), fill), X[:, 1], X[:, 0]]))
    if fill and not is_free(policy):
        before = bandit.digest()
        with pytest.raises(ValueError, match=r"fill\['z'\] is .* no constant.*refit it from the log"):
            bandit.replace(features=["z", "y", "x"], fill={"z": fill})
        assert (bandit.digest(), bandit.settings.features) == (before, ("x", "y"))
        return
    bandit.replace(features=["z", "y", "x"], fill={"z": fill})
    assert_same_sums(bandit, expected)
    assert (bandit.settings.dim, bandit.settings.features, bandit.t) == (3, ("z", "y", "x"), len(X))


@pytest.mark.parametrize("policy", all_policies(), ids=str)
def test_a_dropped_feature_is_as_if_no_row_had_had_it(policy: Policy) -> None:
    X = eighths(300, 3)
    bandit, expected = made(policy, ["x", "y", "z"]), made(policy, ["z", "x"])
    learn(bandit, X)
    learn(expected, X[:, [2, 0]])
    bandit.replace(features=["z", "x"])
    # what it learned the p, and the units, from are rows in which there was another feature
    assert_same_sums(bandit, expected, "tuning", "shares", "units")
    if is_free(policy):
        bandit.state.renew()
        expected.state.renew()
        assert_same_sums(bandit, expected, "tuning", "shares")


@pytest.mark.parametrize("policy", all_policies(), ids=str)
def test_a_changed_bandit_goes_on_as_one_from_its_file(policy: Policy) -> None:
    bandit = made(policy, ["x", "y"])
    for x in eighths(120, 2):
        bandit.learn(bandit.decide(x), float(x[0]))
    bandit.retire_arm("c")
    bandit.replace(features=["y", "new", "x"])
    twin = armlet.from_bytes(bandit.to_bytes(), policy=policy)
    assert twin.settings == bandit.settings
    for x in eighths(120, 3, seed=9):
        one, other = bandit.decide(x), twin.decide(x)
        assert one.to_dict() == other.to_dict()
        bandit.learn(one, float(x[1]))
        twin.learn(other, float(x[1]))
    assert bandit.digest() == twin.digest()
    assert bandit.arms.retired == ["c"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_carried_is_refused_by_name(name: str) -> None:
    bandit = made(POLICIES[name](**SETTINGS.get(name, {})), ["x", "y"])
    before = bandit.digest()
    for features in (["x", "y", "z"], ["y", "x"]):
        with pytest.raises(ValueError, match=f"features cannot be replaced: {name} .*refit it from the log"):
            bandit.replace(features=features)
    assert bandit.digest() == before


@pytest.mark.parametrize("policy", all_policies(), ids=str)
def test_estimates_at_the_fill_stay(policy: Policy) -> None:
    """To rounding: a value that never varied is looked at as 0. Where solves are rare, those of all rows are compared.

    A ridge that is found from the sums is the same, since a feature that never varied is none of its features.
    """
    X, at = eighths(300, 2), eighths(50, 2, seed=8)
    fill = 1.5 if is_free(policy) else 0.0
    bandit = made(policy, ["x", "y"])
    learn(bandit, X)
    bandit._restore(_solved(policy, bandit), bandit.arms, 0)
    before = bandit.predict_expectations(at)
    bandit.replace(features=["x", "y", "z"], fill={"z": fill})
    after = bandit.predict_expectations(np.column_stack([at, np.full(len(at), fill)]))
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)


def _solved(policy: Policy, bandit: Bandit) -> Any:
    state: Any = policy.init(len(ARMS), 2)
    state.restore_arrays(solved_again(bandit) | {"tuning": np.zeros(2)})
    return state


def test_lengths_allow_no_more_than_zeros() -> None:
    X = eighths(100, 2)
    bandit, expected = (made(armlet.LinUCB(), names, normalize="l2") for names in (["x", "y"], ["x", "y", "z"]))
    learn(bandit, X)
    learn(expected, np.column_stack([X, np.zeros(len(X))]))
    with pytest.raises(ValueError, match="features lacks 'y', but contexts were divided by their lengths"):
        bandit.replace(features=["x", "z"])
    with pytest.raises(ValueError, match=r"fill\['z'\] is 1.0, but contexts were divided by their lengths"):
        bandit.replace(features=["x", "y", "z"], fill={"z": 1.0})
    bandit.replace(features=["x", "y", "z"])
    assert_same_sums(bandit, expected)
    assert bandit.decide([3.0, 0.0, 4.0]).x.tolist() == [3.0, 0.0, 4.0]


def test_the_features_of_another_encoder_are_matched_by_name() -> None:
    rows: dict[str, Any] = {"colour": ["red", "blue", "red", "blue"], "price": [1.0, 2.0, 0.5, 0.25]}
    old = Encoder(other="zeros").fit(rows)
    new = Encoder(["price", "colour"], other="zeros").fit(
        {"colour": ["red", "blue", "green"], "price": [1.0, 2.0, 3.0]}
    )
    bandit, expected = (Bandit(ARMS, encoder=encoder, policy=armlet.LinUCB(), seed=3) for encoder in (old, new))
    for each in (bandit, expected):
        each.partial_fit(rows, ["a", "b", "a", "c"], [1.0, 0.5, 0.25, 0.75])
    bandit.replace(encoder=new)
    assert_same_sums(bandit, expected)
    assert bandit.settings == expected.settings
    context = {"colour": "green", "price": 1.5}
    assert bandit.decide(context).to_dict() | {"id": "", "t": 0} == expected.decide(context).to_dict() | {
        "id": "",
        "t": 0,
    }
    with pytest.raises(ValueError, match="the bandit's encoder names them; give encoder"):
        bandit.replace(features=["price"])
