"""Arms that come, rest and go: eligible, add_arm, retire_arm, restore_arm, remove_arm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet import Algorithm1, AllDataEpsilonGreedy, Bandit, Decision, Policy, Uniform
from armlet.policies import Oracle
from armlet.types import Arm, Float64
from support.bandits import play, snapshot
from support.examples import scaled
from support.in_python import InPython
from support.streams import Stream, make_stream, streams

ARMS: list[Arm] = ["north", 1, "1", -5]
THETA = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]]
POLICIES: list[Policy] = [
    Algorithm1(p=20),
    Algorithm1(p=20, warmup="uniform"),
    AllDataEpsilonGreedy(p=20),
    Uniform(),
    InPython(p=20),
    Oracle(theta=THETA),
]


def make(policy: Policy | None = None, *, seed: int = 7, **settings: Any) -> Bandit:
    return Bandit(ARMS, 2, policy=policy or Algorithm1(p=20), seed=seed, **settings)


def each_arm_once(bandit: Bandit) -> dict[Arm, Decision]:
    """Take one explored decision for every arm of a bandit that plays them by turns."""
    decisions = [bandit.decide([1.0, 2.0]) for _ in bandit.arms]
    assert {decision.arm for decision in decisions} == set(bandit.arms)
    return {decision.arm: decision for decision in decisions}


def seen(bandit: Bandit) -> dict[Arm, float]:
    return dict(zip(bandit.arms, bandit.state.n.tolist(), strict=True))


# ---- eligible


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_only_eligible_arms_are_played_in_every_phase(policy: Policy) -> None:
    bandit, rng = make(policy), np.random.default_rng(1)
    phases = set()
    for x in rng.normal(size=(400, 2)):
        eligible = [ARMS[i] for i in np.flatnonzero(rng.integers(0, 2, size=4))] or ["1"]
        chances = bandit.predict_proba([x], eligible=eligible)[0]
        decision = bandit.decide(x, eligible=eligible)
        phases.add((bandit.t <= 20, decision.explored))
        assert decision.arm in eligible
        assert decision.propensity == chances[ARMS.index(decision.arm)]
        bandit.learn(decision, float(rng.normal()))
    if isinstance(policy, Algorithm1):
        assert phases == {(True, True), (False, True), (False, False)}


def exact_chances(bandit: Bandit, t: int, x: Float64, playable: list[Arm]) -> dict[Arm, float]:
    """The probabilities of Algorithm 1, written down once more: p / t, eligibility and ties."""
    policy = bandit.policy
    assert isinstance(policy, Algorithm1)
    scores = dict(zip(bandit.arms, bandit.state.scores(x), strict=True))
    rate = policy.exploration_rate(t)
    best = [arm for arm in playable if scores[arm] == max(scores[other] for other in playable)]
    return {arm: rate / len(playable) + (arm in best) * (1 - rate) / len(best) for arm in playable}


@settings(max_examples=scaled(60))
@given(stream=streams(max_dim=5, max_arms=7, work=2000), spare=st.floats(0, 5), seed=st.integers(0, 99), data=st.data())
def test_propensity_counts_eligible_and_tied_arms_only(
    stream: Stream, spare: float, seed: int, data: st.DataObject
) -> None:
    policy = Algorithm1(p=stream.n_arms + spare, warmup="uniform")
    bandit = Bandit(range(stream.n_arms), stream.dim, policy=policy, seed=seed)
    arms = st.lists(st.sampled_from(bandit.arms), min_size=1, unique=True)
    for x, rewards in zip(stream.contexts[:60], stream.rewards, strict=False):
        eligible = data.draw(st.none() | arms)
        expected = exact_chances(bandit, bandit.t + 1, x, eligible or bandit.arms)
        row = bandit.predict_proba([x], eligible=eligible)[0]
        decision = bandit.decide(x, eligible=eligible)
        # three operations, each rounded: 3 units of 2^-53
        assert abs(decision.propensity - expected[decision.arm]) <= 1e-15
        np.testing.assert_allclose(row, [expected.get(arm, 0.0) for arm in bandit.arms], rtol=0, atol=1e-15)
        bandit.learn(decision, float(rewards[int(decision.arm)]))


def test_single_eligible_arm_has_propensity_one() -> None:
    for policy in POLICIES:
        bandit = make(policy)
        decisions = [bandit.decide([1.0, 2.0], eligible=["1"]) for _ in range(60)]
        assert {(decision.arm, decision.propensity) for decision in decisions} == {("1", 1.0)}


@pytest.mark.parametrize("given_as", [list, tuple, set, iter, lambda arms: dict.fromkeys(arms)])
def test_eligible_may_be_any_iterable_and_repeat_arms(given_as: Callable[[list[Arm]], Any]) -> None:
    bandit, other = make(), make()
    for _ in range(30):
        decision = bandit.decide([1.0, 2.0], eligible=given_as(["1", 1, "1"]))
        assert repr(decision) == repr(other.decide([1.0, 2.0], eligible=[1, "1"]))


CALLS: dict[str, Callable[[Bandit, Any], object]] = {
    "decide": lambda bandit, eligible: bandit.decide([1.0, 2.0], eligible=eligible),
    "decide_many": lambda bandit, eligible: bandit.decide_many([[1.0, 2.0]], eligible=eligible),
    "predict": lambda bandit, eligible: bandit.predict([[1.0, 2.0]], eligible=eligible),
    "predict_proba": lambda bandit, eligible: bandit.predict_proba([[1.0, 2.0]], eligible=eligible),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("eligible", "error", "message"),
    [
        ([], ValueError, "eligible leaves no arm"),
        (["retired"], ValueError, "eligible leaves no arm .*not retired"),
        (["north", "south"], KeyError, r"no arm 'south'; the arms are \['north', 1, '1', -5, 'retired'\]"),
        ([5], KeyError, "no arm 5"),
        ("north", TypeError, r"eligible is the string 'north'; give a list of labels such as \['north'\]"),
        ([None], TypeError, "None"),
        ([True], TypeError, "True"),
        ([1.0], TypeError, r"1\.0"),
    ],
)
def test_eligible_that_names_no_arm_to_play_is_refused(
    call: str, eligible: object, error: type[Exception], message: str
) -> None:
    for policy in POLICIES[:5]:
        bandit = make(policy)
        bandit.add_arm("retired")
        bandit.retire_arm("retired")
        before = snapshot(bandit)
        with pytest.raises(error, match=message):
            CALLS[call](bandit, eligible)
        assert snapshot(bandit) == before


@pytest.mark.parametrize("policy_type", [Algorithm1, InPython])
def test_scores_that_overflow_still_choose_among_the_eligible_arms(policy_type: type[Algorithm1]) -> None:
    """With a smaller ridge x' theta could be inf - inf: |theta| <= |r| / (2 sqrt(ridge)), here 5e59."""
    with pytest.raises(ValueError, match="ridge is 1e-41"):
        policy_type(p=3, ridge=1e-41)
    bandit = Bandit(["a", "b", "c"], 2, policy=policy_type(p=3, ridge=1e-40), seed=1)
    bandit.decide_many(np.zeros((300, 2)))
    for arm in bandit.arms:
        bandit.partial_fit([[1e-20, 0.0], [0.0, 1e-20]], [arm] * 2, [1e40, -1e40], explored=True)
    x = [1e40, 1e40]
    chances = bandit.predict_proba([x], eligible=["b", "c"])[0]
    decisions = [bandit.decide(x, eligible=["b", "c"]) for _ in range(20)]
    decisions.append(bandit.decide_many([x], eligible=["b", "c"])[0])
    assert np.isfinite(bandit.predict_expectations([x])).all()
    assert {decision.arm for decision in decisions} <= {"b", "c"}
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)


# ---- adding


def test_new_arm_knows_nothing_and_leaves_the_others_alone() -> None:
    bandit, stream = make(), make_stream(60, 2, 4, seed=1)
    play(bandit, stream)
    records, theta = bandit.state.records(), bandit.state.estimates()
    bandit.add_arm("new")
    assert bandit.arms == [*ARMS, "new"]
    np.testing.assert_array_equal(bandit.state.records()[:4], records)
    np.testing.assert_array_equal(bandit.state.estimates()[:4], theta)
    assert not bandit.state.records()[4].any()
    assert not bandit.state.estimates()[4].any()
    bandit.learn(bandit.decide([1.0, 2.0], eligible=["new"]), 5.0)  # exploited, or explored with luck
    assert bandit.predict_expectations([[1.0, 2.0]]).shape == (1, 5)


def test_decisions_from_before_an_addition_learn_to_their_own_arms() -> None:
    bandit = make()
    pending = each_arm_once(bandit)
    bandit.add_arm("new")
    for arm, decision in pending.items():
        bandit.learn(decision, float(ARMS.index(arm)))
    assert bandit.state.sum_r.tolist() == [0.0, 1.0, 2.0, 3.0, 0.0]


@pytest.mark.parametrize("arm", ARMS)
def test_arm_that_exists_is_not_added_again(arm: Arm) -> None:
    bandit = make()
    for retired in (False, True):
        if retired:
            bandit.retire_arm(arm)
        before = snapshot(bandit)
        with pytest.raises(ValueError, match=f"there is an arm {arm!r} already; restore_arm"):
            bandit.add_arm(arm)
        assert snapshot(bandit) == before


def test_labels_keep_their_types() -> None:
    labels: list[Any] = [np.int64(3), "3", np.str_("x")]
    bandit = Bandit(labels, 1, policy=Uniform(), seed=1)
    assert bandit.arms == [3, "3", "x"]
    assert [type(arm) for arm in bandit.arms] == [int, str, str]  # numpy's become Python's own
    assert {type(bandit.decide([1.0]).arm) for _ in range(50)} == {int, str}
    bandit.partial_fit([[1.0]] * 30, labels * 10, [0.0, 9.0, 1.0] * 10)
    assert bandit.predict([[1.0], [-1.0]]).tolist() == ["3", 3]


@pytest.mark.parametrize(
    "labels",
    [["b", "a"], [2, 1], [1, "a"], ["1", 1], [2**63, -1], [2**70, 0], ["a\0", "b"], ["", "x"], ["süd", "😀"]],
    ids=ascii,
)
def test_predict_gives_labels_that_name_arms(labels: list[Arm]) -> None:
    bandit = Bandit(labels, 1, policy=Uniform(), seed=1)
    bandit.partial_fit([[1.0], [1.0]], labels, [1.0, 2.0])
    predicted = bandit.predict([[1.0], [-1.0]]).tolist()
    assert predicted == [labels[1], labels[0]]
    assert [type(arm) for arm in predicted] == [type(labels[1]), type(labels[0])]


@pytest.mark.parametrize(
    ("arms", "error"),
    [
        ([], ValueError),
        (["a", "b", "a"], ValueError),
        ([1, np.int64(1)], ValueError),
        ("ab", TypeError),
        (["a", None], TypeError),
        (["a", 1.0], TypeError),
        ([True, False], TypeError),
        ([("a",)], TypeError),
    ],
)
def test_labels_that_are_not_distinct_names_are_refused(arms: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="arm"):
        Bandit(arms, 1, policy=Uniform())


# ---- retiring


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_retired_arm_is_never_played_nor_predicted(policy: Policy) -> None:
    bandit, rng = make(policy), np.random.default_rng(3)
    bandit.partial_fit([[1.0, 1.0]] * 4, ARMS, [9.0, 0.0, 9.0, 0.0], explored=True)  # two look best
    bandit.retire_arm("north")
    bandit.retire_arm("1")
    assert bandit.arms.retired == ["north", "1"]
    X = rng.normal(size=(300, 2))
    X[::10] = 0.0
    assert set(bandit.predict(X).tolist()) <= {1, -5}
    chances = bandit.predict_proba(X)
    assert not chances[:, [0, 2]].any()
    played = {bandit.decide(x).arm for x in X} | set(bandit.decide_many(X).arms)
    assert played <= {1, -5}
    assert not bandit.predict_proba(X)[:, [0, 2]].any()
    assert bandit.predict(X, eligible=["north", 1]).tolist() == [1] * 300


def test_late_reward_of_a_retired_arm_is_learned() -> None:
    bandit, twin = make(), make()
    pending, same = each_arm_once(bandit), each_arm_once(twin)
    bandit.retire_arm("1")
    for arm in ARMS:
        bandit.learn(pending[arm], 2.5)
        twin.learn(same[arm], 2.5)
    bandit.correct(pending["1"], 2.5, 3.5)
    twin.correct(same["1"], 2.5, 3.5)
    np.testing.assert_array_equal(bandit.state.records(), twin.state.records())
    bandit.restore_arm("1")
    assert snapshot(bandit) == snapshot(twin)
    assert [repr(bandit.decide([1.0, 1.0])) for _ in range(99)] == [repr(twin.decide([1.0, 1.0])) for _ in range(99)]


def test_retired_arm_keeps_learning_from_logs() -> None:
    bandit = make()
    bandit.retire_arm("1")
    bandit.partial_fit([[1.0, 2.0]], ["1"], [4.0], explored=True)
    assert seen(bandit)["1"] == 1


def test_retiring_and_restoring_twice_is_harmless() -> None:
    bandit = make()
    for _ in range(2):
        bandit.retire_arm(1)
        assert bandit.arms.retired == [1]
    for _ in range(2):
        bandit.restore_arm(1)
        assert bandit.arms.retired == []


# ---- removing


@pytest.mark.parametrize("removed", ARMS)
@pytest.mark.parametrize("many", ["learn", "learn_many"])
def test_late_rewards_after_a_removal_find_their_own_arms(removed: Arm, many: str) -> None:
    bandit = make()
    pending = each_arm_once(bandit)
    bandit.remove_arm(removed)
    left = [arm for arm in ARMS if arm != removed]
    assert bandit.arms == left
    rewards = [float(10 + ARMS.index(arm)) for arm in left]
    if many == "learn_many":
        bandit.learn_many([pending[arm] for arm in left], rewards)
    else:
        for arm, reward in zip(left, rewards, strict=True):
            bandit.learn(pending[arm], reward)
    assert bandit.state.sum_r.tolist() == rewards


@pytest.mark.parametrize("call", ["learn", "learn_many", "correct", "forget"])
def test_late_reward_of_a_removed_arm_is_refused_and_points_to_retiring(call: str) -> None:
    bandit = make()
    pending = each_arm_once(bandit)
    decision = pending["1"]
    if call in ("correct", "forget"):
        bandit.learn(decision, 1.0)
    bandit.remove_arm("1")
    before, learned = snapshot(bandit), decision.learned
    calls: dict[str, Callable[[], None]] = {
        "learn": lambda: bandit.learn(decision, 1.0),
        "learn_many": lambda: bandit.learn_many([pending["north"], decision], [1.0, 1.0]),
        "correct": lambda: bandit.correct(decision, 1.0, 2.0),
        "forget": lambda: bandit.forget(decision, 1.0),
    }
    with pytest.raises(KeyError, match="retire_arm"):
        calls[call]()
    assert (snapshot(bandit), decision.learned, pending["north"].learned) == (before, learned, False)


@pytest.mark.parametrize("looked_at", [True, False])
def test_batch_from_before_a_removal_keeps_its_labels_and_learns_to_them(looked_at: bool) -> None:
    bandit = make()
    together = bandit.decide_many([[1.0, 2.0]] * 4)
    played = together.arms
    if looked_at:
        assert [together[row].arm for row in range(4)] == played
    bandit.remove_arm("north")
    bandit.add_arm("south")
    assert together.arms == [together[row].arm for row in range(4)] == played
    for row, arm in enumerate(played):
        if arm != "north":
            bandit.learn(together[row], float(10 + ARMS.index(arm)))
    assert dict(zip(bandit.arms, bandit.state.sum_r.tolist(), strict=True)) == {
        1: 11.0,
        "1": 12.0,
        -5: 13.0,
        "south": 0.0,
    }


def test_lists_of_labels_are_the_callers_own() -> None:
    labels: list[Arm] = ["a", "b"]
    bandit = Bandit(labels, 1, policy=Uniform(), seed=1)
    together = bandit.decide_many([[1.0]])
    for handed_out in (labels, bandit.arms, bandit.arms.retired, together.arms):
        handed_out.append("mine")
    assert (bandit.arms, bandit.arms.retired, len(together.arms)) == (["a", "b"], [], 1)


def test_removal_takes_the_sums_of_one_arm_only() -> None:
    bandit = make()
    play(bandit, make_stream(80, 2, 4, seed=5))
    records, theta = bandit.state.records(), bandit.state.estimates()
    bandit.retire_arm(-5)
    bandit.remove_arm(1)
    assert (bandit.arms, bandit.arms.retired) == (["north", "1", -5], [-5])
    np.testing.assert_array_equal(bandit.state.records(), records[[0, 2, 3]])
    np.testing.assert_array_equal(bandit.state.estimates(), theta[[0, 2, 3]])
    assert {bandit.decide([1.0, 1.0]).arm for _ in range(200)} <= {"north", "1"}


@pytest.mark.parametrize("policy", [Uniform(), InPython(p=4)])
def test_removed_arm_comes_back_empty(policy: Policy) -> None:
    bandit = make(policy)
    bandit.partial_fit([[1.0, 1.0]] * 4, ARMS, [1.0] * 4, explored=True)
    bandit.remove_arm("north")
    bandit.add_arm("north")
    assert seen(bandit) == {1: 1.0, "1": 1.0, -5: 1.0, "north": 0.0}


@pytest.mark.parametrize("verb", ["retire_arm", "remove_arm"])
def test_last_arm_to_play_stays(verb: str) -> None:
    bandit = make()
    for arm in ARMS[:3]:
        bandit.retire_arm(arm)
    before = snapshot(bandit)
    with pytest.raises(ValueError, match="arm -5 is the only one left to play; add another"):
        getattr(bandit, verb)(-5)
    assert snapshot(bandit) == before
    bandit.remove_arm("north")  # a retired one may go
    assert bandit.decide([1.0, 1.0]).arm == -5


@pytest.mark.parametrize("verb", ["retire_arm", "restore_arm", "remove_arm"])
def test_arm_that_does_not_exist_cannot_go_or_come(verb: str) -> None:
    bandit = make()
    before = snapshot(bandit)
    with pytest.raises(KeyError, match="no arm 'south'; the arms are"):
        getattr(bandit, verb)("south")
    with pytest.raises(TypeError, match="None"):
        getattr(bandit, verb)(None)
    assert snapshot(bandit) == before


def test_oracle_keeps_the_arms_of_its_theta() -> None:
    bandit = make(Oracle(theta=THETA))
    before = snapshot(bandit)
    for verb, arm in (("add_arm", "new"), ("remove_arm", "north")):
        with pytest.raises(ValueError, match=r"theta has shape \(4, 2\) but there are"):
            getattr(bandit, verb)(arm)
        assert snapshot(bandit) == before


# ---- probabilities


@settings(max_examples=scaled(60))
@given(
    stream=streams(max_dim=6, max_arms=8, work=2000),
    kind=st.integers(0, 4),
    steps=st.integers(0, 60),
    data=st.data(),
)
def test_probabilities_sum_to_one_and_spare_whoever_may_not_play(
    stream: Stream, kind: int, steps: int, data: st.DataObject
) -> None:
    policies: list[Policy] = [
        Algorithm1(p=stream.n_arms),
        Algorithm1(p=stream.n_arms + 9.5, warmup="uniform"),
        AllDataEpsilonGreedy(p=stream.n_arms),
        Uniform(),
        InPython(p=stream.n_arms),
    ]
    policy = policies[kind]
    bandit = Bandit(range(stream.n_arms), stream.dim, policy=policy, seed=2)
    for x, rewards in zip(stream.contexts[:steps], stream.rewards, strict=False):
        decision = bandit.decide(x)
        bandit.learn(decision, float(rewards[int(decision.arm)]))
    retired = data.draw(st.lists(st.sampled_from(bandit.arms), max_size=stream.n_arms - 1, unique=True))
    for arm in retired:
        bandit.retire_arm(arm)
    active = [arm for arm in bandit.arms if arm not in retired]
    eligible = data.draw(
        st.none() | st.lists(st.sampled_from(bandit.arms), unique=True).map(lambda arms: [*arms, active[0]])
    )
    playable = [arm for arm in active if eligible is None or arm in eligible]
    chances = bandit.predict_proba(stream.contexts, eligible=eligible)
    assert chances.shape == (len(stream.contexts), stream.n_arms)
    # K <= 8 shares of which each is rounded: far below 1e-12
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    outside = [arm for arm in bandit.arms if arm not in playable]
    assert not chances[:, [int(arm) for arm in outside]].any()
    rotates = kind in (0, 2, 4) and bandit.t < stream.n_arms  # the next step is one of a round-robin warm-up
    assert rotates or (chances[:, [int(arm) for arm in playable]] > 0).all()
