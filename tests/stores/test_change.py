"""Loops that change: every argument alone and together, what is refused, and what becomes of decisions under way."""

from __future__ import annotations

from typing import Any

import pytest

import armlet
from armlet.errors import ArmletError, StoreError
from armlet.inputs.encoder import Encoder
from armlet.stores import Loop, Store
from armlet.testing.stores import Place
from support.loops import (
    Learned,
    Ticks,
    assert_learned,
    assert_replays,
    context,
    decide,
    everything,
    play,
    reward,
    ticking,
)

UCB = armlet.LinUCB(units="as given")
MADE: dict[str, Any] = {"arms": ["a", "b"], "features": ["one", "u"], "policy": UCB, "seed": 3}


# --- one argument at a time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"policy": armlet.LinUCB(alpha=2.0, units="as given")},
        {"window": 60.0, "default_reward": 0.25},
        {"aggregation": "last"},
        {"early_window": 60.0},
        {"reward_range": (-2.0, 1.5)},
        {"features": ["u", "v", "one"]},
        {"arms": ["c", "a"]},
        {"policy": armlet.LinUCB(alpha=2.0, units="as given"), "aggregation": "sum", "reward_range": (0.0, 1.0)},
        {"features": ["v"], "window": 60.0, "default_reward": 0.0, "early_window": 9.0, "arms": ["z"]},
    ],
    ids=lambda given: "+".join(given),
)
def test_a_change_is_there_for_those_who_decide_and_after_a_restart(place: Place, given: dict[str, Any]) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        play(loop, 0, 10)
        loop.change(**given)
        check_has(loop, given)
        dim = loop.model().settings.dim
        loop.decide([1.0] * dim, event="later")
        loop.reward("later", 0.5)
        assert_replays(store, loop)
        before = loop.model().to_bytes()
    with Store(place()) as store:
        loop = store.loop("homepage")
        check_has(loop, given)
        assert loop.model().to_bytes() == before
        assert_replays(store, loop)


def check_has(loop: Loop, given: dict[str, Any]) -> None:
    model, terms = loop.model(), loop._runner.terms
    for name, value in given.items():
        if name == "arms":
            assert {arm for arm in model.arms if arm not in model.arms.retired} == set(value)
        elif name in ("policy", "reward_range", "features"):
            assert getattr(model.settings, name) == (tuple(value) if name == "features" else value)
        else:
            assert getattr(terms, name) == value


def test_rules_that_were_changed_judge_the_next_reward(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        decide(loop, 0, 1)
        assert [loop.reward("e0", value) for value in (0.25, 0.5, 1.5)] == ["accepted", "conflict", "out_of_range"]
        loop.change(aggregation="last")
        assert [loop.reward("e0", value) for value in (0.5, 1.5)] == ["replaced", "out_of_range"]
        loop.change(reward_range=(0.0, 2.0))
        assert loop.reward("e0", 1.5) == "replaced"
        loop.change(aggregation="sum")
        assert [loop.reward("e0", value) for value in (0.25, 0.5)] == ["accepted", "out_of_range"]
        assert loop.reward("nobody", 0.5) == "unknown"
        loop.change(early_window=1.0)
        assert loop.reward("nobody", 0.5) == "early"
        loop.change(early_window=None)
        assert loop.reward("nobody", 0.5) == "unknown"
        assert loop.model().state.b.sum() == 1.75 * sum(context(0, 2))
        assert_replays(store, loop)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "nothing to change"),
        ({"window": 60.0}, "window is 60.0 and default_reward is None; give both"),
        ({"window": -1.0, "default_reward": 0.0}, "window is -1.0; give seconds"),
        ({"window": 60.0, "default_reward": 3.0}, "default_reward is 3.0, but rewards are from -1.0 to 1.0"),
        ({"early_window": 0.0}, "early_window is 0.0; give seconds"),
        ({"aggregation": "mean"}, "aggregation is 'mean'; choose 'first'"),
        ({"reward_range": (1.0, 0.0)}, "reward_range is"),
        ({"policy": armlet.ThompsonSampling()}, "how='refit'"),
        ({"policy": UCB, "how": "refit again"}, "how is 'refit again'"),
        ({"aggregation": "last", "how": "refit"}, "policy is not given"),
        ({"features": ["one", "one"]}, "features"),
        ({"features": []}, "at least one"),
        ({"features": ["one", "u", "v"], "fill": {"v": 1.0}}, "fill\\['v'\\] is 1.0, but sums in units as given"),
        ({"features": ["one", "u", "v"], "fill": {"u": 0.0}}, "fill has 'u', which is not a new feature"),
        ({"aggregation": "last", "fill": {"v": 1.0}}, "fill is .*; give features or encoder"),
        ({"arms": []}, "arms"),
        ({"arms": ["a", "a"]}, "arms"),
        ({"reward_range": (0.0, 1.0), "window": 60.0, "default_reward": -1.0}, "default_reward is -1.0"),
        ({"reward_range": (0.0, 2.0), "features": ["w"], "policy": armlet.ThompsonSampling()}, "how='refit'"),
    ],
)
def test_a_change_that_is_refused_leaves_everything_as_it_was(place: Place, given: dict[str, Any], words: str) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        play(loop, 0, 5)
        decide(loop, 5, 2)
        before = everything(store, loop)
        with pytest.raises((ValueError, TypeError), match=words) as raised:
            loop.change(**given)
        assert isinstance(raised.value, ArmletError)
        assert everything(store, loop) == before
        assert loop.reward("e5", 0.25) == "accepted"
        assert loop.decide(context(9, 2)).t == 8
        assert_replays(store, loop)
    with Store(place()) as store:
        assert_replays(store, store.loop("homepage"))


def test_a_loop_that_is_given_other_terms_names_the_call_that_applies_them(place: Place) -> None:
    other: dict[str, dict[str, Any]] = {
        "policy": {"policy": armlet.LinUCB(alpha=2.0, units="as given")},
        "window": {"window": 60.0, "default_reward": 0.0},
        "aggregation": {"aggregation": "sum"},
        "early_window": {"early_window": 60.0},
        "features": {"features": ["u", "v"]},
        "reward_range": {"reward_range": (0.0, 1.0)},
    }
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        play(loop, 0, 5)
        for name, given in other.items():
            before = everything(store, loop)
            with pytest.raises(StoreError, match=rf"{name} is .*loop\.change\({name}=\.\.\.\).*on_change='apply'"):
                store.loop("homepage", **(MADE | given))
            assert everything(store, loop) == before
            store.loop("homepage", **(MADE | given), on_change="apply")
            check_has(loop, given)
            assert_replays(store, loop)
            store.loop("homepage", **MADE, on_change="apply")
        assert loop.model().settings.features == ("one", "u")
        assert loop._runner.terms.window == 60.0  # which was not said
        store.loop("homepage", **MADE, window=None, default_reward=None, on_change="apply")
        assert loop._runner.terms.window is None
        with pytest.raises(ValueError, match="on_change is 'maybe'"):
            store.loop("homepage", **MADE, on_change="maybe")


def test_what_is_not_said_stays_as_it_is(place: Place) -> None:
    made: dict[str, Any] = {"arms": ["a", "b"], "dim": 1, "seed": 3}
    with Store(place()) as store:
        loop = store.loop("homepage", **made)
        loop.change(window=60.0, default_reward=0.5, early_window=9.0, aggregation="sum", reward_range=(-2.0, 2.0))
        loop.change(shadow=armlet.LinUCB(), how="refit")
        loop.promote(gate="off", control=0.25)
        before = everything(store, loop)
        assert everything(store, store.loop("homepage", **made)) == before
        assert everything(store, store.loop("homepage", **made, on_change="apply")) == before
        with pytest.raises(
            StoreError, match=r"early_window is None, but loop 'homepage' has 9.0; .* or leave early_win"
        ):
            store.loop("homepage", **made, early_window=None)
        with pytest.raises(StoreError, match=r"control is None, but loop 'homepage' has Control\("):
            store.loop("homepage", **made, control=None)
        assert everything(store, loop) == before
        store.loop("homepage", **made, early_window=None, control=None, on_change="apply")
        assert loop._runner.terms.early_window is None
        assert loop._runner.terms.window == 60.0
        assert type(loop.model().policy) is armlet.LinUCB


def test_what_can_never_change_is_refused_where_changes_are_applied(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        for given in ({"objective": "min", "reward_range": (-1.0, 1.0)}, {"normalize": "l2"}, {"seed": 4}):
            before = everything(store, loop)
            with pytest.raises(StoreError, match="but loop 'homepage' was made with"):
                store.loop("homepage", **(MADE | given), on_change="apply")
            assert everything(store, loop) == before


# --- features and decisions under way --------------------------------------------------------------------------------


def test_decisions_under_way_are_rewarded_corrected_and_forgotten_with_the_features_of_now(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE, aggregation="last")
        arms = decide(loop, 0, 12)
        values = {i: reward(i) for i in range(4)}
        for i in values:
            loop.reward(f"e{i}", values[i])
        loop.change(features=["u", "v", "one"])
        values |= {i: reward(i) for i in range(4, 8)} | {0: 0.75, 1: -0.25}
        for i in (0, 1, *range(4, 8)):
            loop.reward(f"e{i}", values[i])
        loop.change(features=["one", "v", "w", "u"])
        values |= {i: reward(i) for i in range(8, 12)} | {1: 0.5, 5: -0.75}
        for i in (1, 5, *range(8, 12)):
            loop.reward(f"e{i}", values[i])
        assert_replays(store, loop)
        seen = {i: [context(i, 2)[0], 0.0, 0.0, context(i, 2)[1]] for i in arms}
        assert_learned(loop.model(), [Learned(seen[i], arms[i], values[i]) for i in arms])
        for event in ("e1", "e6", "e9"):
            assert loop.forget(event)
        left = [i for i in arms if i not in (1, 6, 9)]
        assert_learned(loop.model(), [Learned(seen[i], arms[i], values[i]) for i in left])
        loop.change(features=["u"])
        assert loop.reward("e0", 0.25) == "replaced"
        values[0] = 0.25
        assert_learned(loop.model(), [Learned(seen[i][3:], arms[i], values[i]) for i in left])
        assert_replays(store, loop)
    with Store(place()) as store:
        assert_learned(store.loop("homepage").model(), [Learned(seen[i][3:], arms[i], values[i]) for i in left])


def test_an_event_that_is_asked_again_after_a_change_of_features_has_the_same_answer(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        first = loop.decide({"one": 1.0, "u": 0.5}, event="e")
        loop.change(features=["v", "u", "one"])
        for v in (0.0, 0.125):  # which was not there when it was decided
            again = loop.decide({"one": 1.0, "u": 0.5, "v": v}, event="e")
            assert (again.id, again.arm, again.propensity, again.x.tolist()) == (first.id, first.arm, 0.5, [1.0, 0.5])
        with pytest.raises(armlet.errors.EventError):
            loop.decide({"one": 1.0, "u": 0.625, "v": 0.0}, event="e")
        assert loop.model().t == 1


def test_a_new_feature_had_its_fill_in_all_rows_before(place: Place) -> None:
    """In free units a fill may be any number: the state is that of a bandit whose rows had it from the start."""
    policy = armlet.LinUCB()
    with Store(place()) as store:
        loop = store.loop("homepage", **(MADE | {"policy": policy}))
        arms = play(loop, 0, 8)
        loop.change(features=["one", "u", "v"], fill={"v": 0.5})
        oracle = armlet.Bandit(["a", "b"], features=["one", "u", "v"], policy=policy, seed=3)
        X = [[*context(i, 2), 0.5] for i in arms]
        oracle.partial_fit(X, list(arms.values()), [reward(i) for i in arms])
        state, expected = loop.model().state, oracle.state
        assert (state.n.tolist(), state.b.tolist()) == (expected.n.tolist(), expected.b.tolist())
        assert state.A.tolist() == expected.A.tolist()
        assert_replays(store, loop)


def test_an_encoder_can_learn_a_new_category(place: Place) -> None:
    small = Encoder().fit({"city": ["Oslo", "Rome"], "age": [1.0, 2.0]})
    large = Encoder().fit({"city": ["Oslo", "Rome", "Bern"], "age": [1.0, 2.0, 3.0]})
    with Store(place()) as store:
        loop = store.loop("homepage", arms=["a", "b"], encoder=small, policy=UCB, seed=3)
        arms = {i: loop.decide({"city": ["Oslo", "Rome"][i % 2], "age": i / 8}, event=f"e{i}").arm for i in range(8)}
        for i in range(4):
            loop.reward(f"e{i}", reward(i))
        loop.change(encoder=large)
        for i in range(4, 8):
            loop.reward(f"e{i}", reward(i))
        arms[8] = loop.decide({"city": "Bern", "age": 1.0}, event="e8").arm
        loop.reward("e8", reward(8))
        assert_replays(store, loop)
        cities = ["Oslo", "Rome"] * 4 + ["Bern"]
        contexts = [{"city": city, "age": i / 8} for i, city in enumerate(cities)]
        X = [dict(zip(large.features, x, strict=True)) for x in large.matrix(contexts)]
        names = loop.model().settings.features or ()
        rows = [Learned([X[i][name] for name in names], arms[i], reward(i)) for i in arms]
        assert set(names) == set(large.features)
        assert_learned(loop.model(), rows)
    with Store(place()) as store:
        loop = store.loop("homepage")
        assert_learned(loop.model(), rows)
        loop.decide({"city": "Bern", "age": 0.0})


# --- windows ---------------------------------------------------------------------------------------------------------


def test_windows_that_are_open_keep_their_end_and_have_the_default_of_then(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **MADE, window=60.0, default_reward=0.0)
        arms = decide(loop, 0, 2)
        loop.change(window=10.0, default_reward=0.25)
        arms |= decide(loop, 2, 2)
        loop.reward("e1", 0.75)
        loop.reward("e3", 0.5)
        ticks.now += 11.0
        learned = [Learned(context(2, 2), arms[2], 0.25), Learned(context(3, 2), arms[3], 0.5)]
        assert_learned(loop.model(), learned)
        loop.change(default_reward=-0.5)
        ticks.now += 50.0
        learned += [Learned(context(0, 2), arms[0], -0.5), Learned(context(1, 2), arms[1], 0.75)]
        assert_learned(loop.model(), learned)
        assert loop.reward("e0", 1.0) == "late"
        assert_replays(store, loop)


def test_windows_close_with_the_last_default_when_there_are_to_be_none(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **MADE, window=60.0, default_reward=0.25)
        arms = decide(loop, 0, 3)
        loop.reward("e1", 0.5)
        loop.change(window=None, default_reward=None)
        arms |= decide(loop, 3, 1)
        assert loop.reward("e3", 1.0) == "accepted"
        assert_learned(loop.model(), [Learned(context(3, 2), arms[3], 1.0)])
        assert loop.reward("e2", 0.75) == "accepted"
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage")
        ticks.now += 61.0
        values = [0.25, 0.5, 0.75, 1.0]
        assert_learned(loop.model(), [Learned(context(i, 2), arms[i], values[i]) for i in arms])
        assert loop.reward("e0", 1.0) == "late"
        assert_replays(store, loop)
        decide(loop, 4, 1)
        ticks.now += 1000.0
        assert loop.model().state.n.sum() == 4


def test_a_window_whose_reward_left_the_range_closes_with_the_default(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **MADE, window=60.0, default_reward=0.25)
        arms = decide(loop, 0, 2)
        loop.reward("e0", 1.0)
        loop.reward("e1", 0.5)
        loop.change(reward_range=(0.0, 0.5))
        ticks.now += 61.0
        assert_learned(loop.model(), [Learned(context(i, 2), arms[i], [0.25, 0.5][i]) for i in arms])
        assert loop.reward("e0", 0.0) == "late"
        assert_replays(store, loop)


# --- ten changes in traffic ------------------------------------------------------------------------------------------
