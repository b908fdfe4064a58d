"""Other settings while a bandit runs: what was learned stays, and what does not fit is refused."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Algorithm1, Bandit, ContextualEpsilonGreedy, Decision, Encoder, LinUCB, Policy
from armlet.errors import DecisionError, InvalidValueError
from armlet.inputs.feature_change import FeatureChange
from armlet.policies import AutoEpsilonGreedy
from armlet.types import Float64, Interaction
from armlet.types import Policy as AnyPolicy
from support.features import ARMS, all_policies, eighths, is_free, learn, made
from support.in_python import InPython
from support.recorder import Notebook


def trained(policy: Policy, **settings: Any) -> Bandit:
    bandit = Bandit(["a", "b"], 2, policy=policy, seed=3, **settings)
    for x in np.random.default_rng(1).normal(size=(60, 2)):
        bandit.learn(bandit.decide(x), float(x[0]))
    return bandit


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Algorithm1(p=30), Algorithm1(p=5)),
        (InPython(p=30), InPython(p=5)),
        (ContextualEpsilonGreedy(p=30), ContextualEpsilonGreedy(p=5, floor=0.1)),
        (ContextualEpsilonGreedy(p=30), Algorithm1(p=30, units="free")),
        (LinUCB(alpha=1.0), LinUCB(alpha=0.1)),
        (armlet.ThompsonSampling(v=1.0), armlet.ThompsonSampling(v=0.1)),
        (armlet.FixedEpsilon(epsilon=0.5), armlet.FixedEpsilon(epsilon=0.1, ridge=3.0)),
    ],
    ids=str,
)
def test_a_bandit_goes_on_as_one_that_had_the_settings_and_the_state(old: Policy, new: Policy) -> None:
    bandit = trained(old)
    pending, arrays = bandit.decide([1.0, 2.0]), bandit.state.arrays()
    bandit.replace(policy=new)
    assert bandit.policy == new
    assert all(np.array_equal(bandit.state.arrays()[name], arrays[name]) for name in arrays)
    state = new.init(2, 2)
    state.restore_arrays(arrays)
    expected = Bandit(["a", "b"], 2, policy=new, seed=3)
    expected._restore(state, expected.arms, bandit.t)
    bandit.learn(pending, 0.5)
    expected.learn(armlet.Decision.from_dict(pending.to_dict() | {"reward": None}), 0.5)
    for x in np.random.default_rng(2).normal(size=(40, 2)):
        one, other = bandit.decide(x), expected.decide(x)
        assert one.to_dict() == other.to_dict()
        bandit.learn(one, 1.0)
        expected.learn(other, 1.0)
    assert bandit.digest() == expected.digest() == armlet.from_bytes(bandit.to_bytes(), policy=new).digest()


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (Algorithm1(p=30), LinUCB(), "state is one of Algorithm1"),
        (LinUCB(), LinUCB(units="as given"), "units are 'free'"),
        (ContextualEpsilonGreedy(p=30), AutoEpsilonGreedy(), "another state"),
        (Algorithm1(p=30), Algorithm1(p=1), None),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(old: Policy, new: Policy, match: str | None) -> None:
    notebook = Notebook()
    bandit = trained(old, log=notebook)
    before, lines = bandit.digest(), len(notebook.lines)
    if match is None:  # the clock is past the warm-up that would be too short
        bandit.replace(policy=new)
        return
    with pytest.raises(ValueError, match=match):
        bandit.replace(policy=new)
    with pytest.raises((TypeError, ValueError)):
        bandit.replace(policy="p=3")  # type: ignore[arg-type]  # refused
    assert (bandit.digest(), len(notebook.lines), bandit.policy) == (before, lines, old)


def test_a_log_tells_of_it() -> None:
    notebook = Notebook()
    bandit = trained(Algorithm1(p=30), log=notebook)
    new: AnyPolicy = Algorithm1(p=7)
    bandit.replace(policy=new)
    said = notebook.events[-1]
    assert said["kind"] == "replace"
    assert armlet.policies.POLICIES[said["policy"]["name"]](**said["policy"]["settings"]) == new
    notebook.is_full = True
    with pytest.raises(OSError, match="full"):
        bandit.replace(policy=Algorithm1(p=8))
    assert bandit.policy == new


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


def test_the_same_features_change_nothing() -> None:
    bandit = made(armlet.Greedy(), ["x", "y"])
    base, worker = bandit.copy(), armlet.from_bytes(bandit.copy(seed=4).to_bytes())
    late = worker.decide([1.0, 0.5])
    bandit.merge(worker.difference(base))
    digest = bandit.digest()
    bandit.replace(features=["x", "y"])
    assert bandit.digest() == digest
    bandit.learn(late, 1.0)
    with pytest.raises(InvalidValueError, match="fill has 'x', which is not a new feature"):
        bandit.replace(features=["x", "y"], fill={"x": 1.0})


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


# ---- encoders


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
