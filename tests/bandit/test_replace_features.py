"""Features that come and go while a bandit runs: exactly as if all rows had had those of now.

Contexts are in eighths and rewards in quarters, so that sums are exact in any order: one row that was lost, doubled or
changed would show.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit, Decision, Encoder, Policy
from armlet.errors import DecisionError
from armlet.inputs.feature_change import FeatureChange
from armlet.inputs.settings import in_units
from armlet.policies import POLICIES
from armlet.types import Array, Float64, Interaction
from support.in_python import InPython
from support.recorder import Notebook

ARMS = ["a", "b", "c"]
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "Algorithm1": {"p": 60},
    "AutoAlgorithm1": {"horizon": 10_000},
    "ScheduledEpsilonGreedy": {"p": 60},
    "ContextualEpsilonGreedy": {"p": 60},
    "AllDataEpsilonGreedy": {"p": 60},
    "Oracle": {"theta": [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]},
}
REFUSED = ("ContextualUCB", "Oracle")
"""Policies that keep rows, or a setting for every feature."""


def all_policies() -> list[Policy]:
    """Return every policy that can change features, in both units where it has both."""
    found: list[Policy] = [InPython(p=60)]
    for name, kind in POLICIES.items():
        if name in REFUSED:
            continue
        policy = kind(**SETTINGS.get(name, {}))
        has_both = "units" in {field.name for field in fields(policy)}  # type: ignore[arg-type]
        found += [in_units(policy, units) for units in ("free", "as given")] if has_both else [policy]
    return found


def is_free(policy: Policy) -> bool:
    return getattr(policy, "units", "as given") == "free"


def made(policy: Policy | None, features: list[str], **settings: Any) -> Bandit:
    return Bandit(ARMS, features=features, policy=policy, seed=3, **settings)


def eighths(rows: int, dim: int, seed: int = 5) -> Float64:
    return np.random.default_rng(seed).integers(-16, 17, size=(rows, dim)) / 8


def learn(bandit: Bandit, X: Float64, seed: int = 6) -> None:
    """Learn the same rows of the same arms for any width."""
    rng = np.random.default_rng(seed)
    arms = np.array(ARMS)[rng.integers(0, 3, size=len(X))]
    bandit.partial_fit(X, arms, rng.integers(-8, 9, size=len(X)) / 4, explored=True)


def solved_again(bandit: Bandit) -> dict[str, Array]:
    """Return the arrays of a state, with what is solved for some rows only solved for all of them."""
    state = bandit.state.copy()
    if hasattr(state, "deviations"):
        state.restore(state.records())
    arrays: dict[str, Array] = state.arrays()
    if "tuning" in arrays:
        arrays["tuning"] = arrays["tuning"][:1]  # p; when to look again is now
    return arrays


def assert_same_sums(one: Bandit, other: Bandit, *but: str) -> None:
    found, expected = solved_again(one), solved_again(other)
    assert found.keys() == expected.keys()
    for name in found.keys() - set(but):
        assert found[name].shape == expected[name].shape, name
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


# ---- pending decisions


@pytest.mark.parametrize("policy", all_policies(), ids=str)
@pytest.mark.parametrize("how", ["learn", "learn_many"])
def test_pending_decisions_are_carried_through_several_changes(policy: Policy, how: str) -> None:
    fill = 0.5 if is_free(policy) else 0.0
    bandit, expected = made(policy, ["x", "y"]), made(policy, ["y", "v", "z"])
    pending = [bandit.decide(x) for x in eighths(40, 2)] + list(bandit.decide_many(eighths(20, 2, seed=7)))
    bandit.replace(features=["z", "x", "y"], fill={"z": fill})
    pending += [bandit.decide(x) for x in eighths(40, 3)]
    bandit.replace(features=["y", "x", "z"])
    bandit.replace(features=["y", "v", "z"])  # as wide as before
    rows = [d.x[[1, 1, 1]] * [1, 0, 0] + [0, 0, fill] if len(d.x) == 2 else d.x[[2, 2, 0]] * [1, 0, 1] for d in pending]
    rewards = [round(float(x[0]) * 4) / 4 for x in rows]
    if how == "learn":
        for decision, reward in zip(pending, rewards, strict=True):
            bandit.learn(decision, reward)
    else:
        bandit.learn_many(pending, rewards)
    for decision, x, reward in zip(pending, rows, rewards, strict=True):
        _update(expected, decision, x, reward)
    assert bandit.state.arrays()["records"].tobytes() == expected.state.arrays()["records"].tobytes()


def _update(bandit: Bandit, decision: Decision, x: Float64, reward: float) -> None:
    """Learn a decision as the policy itself does, with another context."""
    is_row = decision.explored or bandit.policy.learns_from == "every step"
    row = Interaction(t=decision.t, x=x, arm=ARMS.index(str(decision.arm)), reward=reward, explored=decision.explored)
    if is_row:
        bandit.policy.update(bandit.state, row)


def test_a_reward_from_before_is_corrected_and_forgotten() -> None:
    bandit, other = (made(armlet.LinUCB(units="as given"), ["x", "y"]) for _ in range(2))
    decision = bandit.decide([1.0, 0.5])
    bandit.learn(decision, 1.0)
    bandit.replace(features=["y", "x"])
    other.replace(features=["y", "x"])
    bandit.correct(decision, 1.0, 0.25)
    assert bandit.state.b[ARMS.index(str(decision.arm))].tolist() == [0.125, 0.25]
    bandit.forget(decision, 0.25)
    assert bandit.state.records().tobytes() == other.state.records().tobytes()


def test_an_expired_decision_from_before_is_expired() -> None:
    bandit = made(armlet.LinUCB(), ["x"])
    decision = bandit.decide([1.0])
    bandit.replace(features=["y", "x"])
    assert bandit.state.under_way.sum() == 1
    bandit.expire(decision)
    assert bandit.state.under_way.sum() == 0


def test_a_copy_carries_what_was_decided_before_it() -> None:
    bandit = made(armlet.Greedy(units="as given"), ["x", "y"])
    decision, other = bandit.decide([1.0, 0.5]), bandit.decide([1.0, 0.5])
    bandit.replace(features=["y", "x"])
    twin = bandit.copy()
    bandit.learn(decision, 1.0)
    twin.learn(other, 1.0)
    arm = ARMS.index(str(other.arm))
    assert twin.state.b[arm].tolist() == [0.5, 1.0]


def test_a_merged_bandit_brings_its_changes() -> None:
    policy = armlet.Greedy(units="as given")
    worker, bandit = Bandit(ARMS, features=["x", "y"], policy=policy, seed=4), made(policy, ["y", "x"])
    decision = worker.decide([1.0, 0.5])
    worker.replace(features=["y", "x"])
    bandit.merge(worker)
    bandit.learn(decision, 1.0)
    assert bandit.state.b[ARMS.index(str(decision.arm))].tolist() == [0.5, 1.0]


def test_a_record_from_before_is_learned_with_its_context_carried() -> None:
    bandit = made(armlet.Greedy(units="as given"), ["x", "y"])
    record = bandit.decide([1.0, 0.5]).to_dict()
    change = FeatureChange.between(["x", "y"], ["y", "z", "x"])
    bandit.replace(features=["y", "z", "x"])
    with pytest.raises(ValueError, match=r"2 values but dim is 3.*recorded before features were replaced: carry its x"):
        bandit.learn(Decision.from_dict(record), 1.0)
    bandit.learn(Decision.from_dict(record | {"x": change.carry(record["x"]).tolist()}), 1.0)
    assert bandit.state.b.sum(axis=0).tolist() == [0.5, 0.0, 1.0]


def test_a_decision_of_another_bandit_in_this_process_is_refused_after_a_change() -> None:
    """Nobody can tell whether it is about the features of before or of now."""
    bandit = made(armlet.Greedy(), ["x", "y"])
    decision = armlet.from_bytes(bandit.to_bytes()).decide([1.0, 0.5])
    bandit.replace(features=["y", "x"])
    with pytest.raises(DecisionError, match="made by another bandit, perhaps before features were replaced"):
        bandit.learn(decision, 1.0)


# ---- names


def test_features_without_names_are_named_first() -> None:
    bandit = Bandit(ARMS, 2, policy=armlet.LinUCB(), seed=3)
    learn(bandit, eighths(50, 2))
    before = bandit.state.records()
    with pytest.raises(ValueError, match="features has 3 names, but the bandit has 2 features without names"):
        bandit.replace(features=["x", "y", "z"])
    bandit.replace(features=["x", "y"])
    assert bandit.state.records().tobytes() == before.tobytes()
    bandit.replace(features=["y"])
    assert bandit.decide({"y": 1.0}).x.tolist() == [1.0]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"features": ["x", "x"]}, "'x' more than once"),
        ({"features": []}, "at least one value"),
        ({"features": "xy"}, "features is the string|features is 'xy'"),
        ({"features": ["x", "z"], "fill": {"q": 1.0}}, "fill has 'q', which is not a new feature; new are: 'z'"),
        ({"features": ["x"], "fill": {"x": 1.0}}, "fill has 'x'.*there is none"),
        ({"features": ["x", "z"], "fill": {"z": float("nan")}}, r"fill\['z'\] is nan; give a finite number"),
        ({"features": ["x", "z"], "fill": {"z": "1"}}, r"fill\['z'\] is '1'"),
        ({"features": ["x", "z"], "fill": [1.0]}, r"fill is \[1.0\]; give a mapping"),
        ({"fill": {"z": 1.0}}, "replace got nothing"),
        ({"t": 5, "fill": {"z": 1.0}}, "but no feature is new"),
        ({"features": ["x"], "t": 5}, "replace got t and features; give one of"),
    ],
)
def test_what_is_no_change_is_refused_and_changes_nothing(given: dict[str, Any], match: str) -> None:
    notebook = Notebook()
    bandit = made(armlet.LinUCB(), ["x", "y"], log=notebook)
    bandit.learn(bandit.decide([1.0, 0.5]), 1.0)
    before, lines, settings = bandit.digest(), len(notebook.lines), bandit.settings
    with pytest.raises((ValueError, TypeError), match=match):
        bandit.replace(**given)
    assert (bandit.digest(), len(notebook.lines), bandit.settings) == (before, lines, settings)


def test_a_policy_with_an_origin_is_refused() -> None:
    bandit = made(armlet.LinUCB(origin=(0.0, 1.0, 2.0)), ["x", "y"])
    with pytest.raises(ValueError, match=r"LinUCB has origin=.*a value for every feature; start a new bandit"):
        bandit.replace(features=["y", "x"])


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


# ---- encoders


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


def test_an_encoder_takes_the_place_of_names() -> None:
    bandit = made(armlet.LinUCB(), ["price"])
    bandit.learn(bandit.decide({"price": 2.0}), 1.0)
    bandit.replace(encoder=Encoder().fit({"price": [1.0], "colour": ["red"]}), fill={"colour=red": 1.0})
    assert bandit.decide({"price": 1.0, "colour": "red"}).x.tolist() == [1.0, 1.0, 0.0]


def test_other_buckets_are_refused() -> None:
    one, other = (Encoder(hashed={"city": n}).fit({"city": ["Oslo"]}) for n in (4, 8))
    bandit = Bandit(ARMS, encoder=one, seed=3)
    with pytest.raises(ValueError, match="hashes 'city' to 8 buckets, but the bandit has 4"):
        bandit.replace(encoder=other)


# ---- logs and threads


def test_a_recorder_receives_the_change_and_may_refuse_it() -> None:
    notebook = Notebook()
    bandit = made(armlet.LinUCB(), ["x"], log=notebook)
    bandit.replace(features=["x", "y"], fill={"y": 0.5})
    bandit.replace(encoder=Encoder().fit({"y": [1.0]}))
    first, second = notebook.events
    assert first == {"kind": "replace", "features": ["x", "y"], "fill": {"y": 0.5}}
    encoder = {"columns": [{"column": "y", "kind": "number"}], "extra": "refuse"}
    assert second == {"kind": "replace", "features": ["y"], "fill": {}, "encoder": encoder}
    notebook.is_full = True
    before = bandit.digest()
    with pytest.raises(OSError, match="full"):
        bandit.replace(encoder=Encoder().fit({"z": [1.0]}))
    assert (bandit.digest(), bandit.settings.features) == (before, ("y",))


def test_threads_that_decide_meanwhile_get_whole_answers() -> None:
    """Every context is read, decided and learned with the features of one moment, or the call is refused."""
    widths = [["x"], ["x", "y"], ["x", "y", "z"]]
    bandit = made(armlet.LinUCB(), widths[0])
    stop = threading.Event()
    wrong: list[Exception] = []

    def decide() -> None:
        while not stop.is_set():
            for names in widths:
                try:
                    decision = bandit.decide(dict.fromkeys(names, 0.5))
                    assert len(decision.x) == len(names)
                    bandit.learn(decision, 0.5)
                    bandit.decide_many(np.full((3, len(names)), 0.5))
                except (armlet.ArmletError, ValueError):
                    pass
                except Exception as error:
                    wrong.append(error)

    threads = [threading.Thread(target=decide) for _ in range(3)]
    for thread in threads:
        thread.start()
    for step in range(300):
        bandit.replace(features=widths[step % 3])
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- a column of noise


def test_a_column_of_noise_costs_little() -> None:
    """The default policy loses at most 5 % of the reward after the change, compared with no change.

    Rewards are x'theta_a + noise of deviation 0.5 for 3 arms and 4 features; the column comes after 1,000 of 3,000
    steps. Paired: both bandits have the same seeds, contexts and noise. The mean relative loss over 20 seeds, 1,000 to
    1,019, and two standard errors more must stay below the limit.
    """
    losses = [_loss_by_noise(seed) for seed in range(1000, 1020)]
    assert np.mean(losses) + 2 * np.std(losses) / np.sqrt(len(losses)) <= 0.05


def _loss_by_noise(seed: int) -> float:
    rng = np.random.default_rng(seed)
    theta, X = rng.normal(size=(3, 4)), rng.normal(size=(3000, 4))
    noise, column = 0.5 * rng.normal(size=3000), rng.normal(size=3000)
    earned = []
    for changes in (False, True):
        bandit = Bandit(ARMS, features=["a", "b", "c", "d"], seed=seed)
        total = 0.0
        for t, x in enumerate(X):
            if t == 1000 and changes:
                bandit.replace(features=["a", "b", "c", "d", "noise"])
            given = np.append(x, column[t]) if t >= 1000 and changes else x
            decision = bandit.decide(given)
            mean = float(x @ theta[ARMS.index(str(decision.arm))])
            bandit.learn(decision, mean + noise[t])
            total += mean if t >= 1000 else 0.0
        earned.append(total)
    return 1.0 - earned[1] / earned[0]
