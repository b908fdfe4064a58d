"""Loops that start from a trained model, and contexts with categories."""

from __future__ import annotations

from typing import Any

import pytest

import armlet
from armlet.errors import StoreError
from armlet.inputs.encoder import Encoder
from armlet.stores import Store
from armlet.testing.stores import Place
from support.loops import Learned, assert_learned, assert_replays, context, everything, reward

UCB = armlet.LinUCB(units="as given")
POLICIES = [UCB, armlet.Algorithm1(p=20), armlet.ThompsonSampling(), armlet.AutoEpsilonGreedy(), None]


def trained(policy: armlet.Policy | None = UCB, n: int = 30, **given: Any) -> armlet.Bandit:
    """Return a bandit that has decided and learned n times, with a retired arm."""
    options: dict[str, Any] = {"features": ["one", "u"], "seed": 3} | given
    bandit = armlet.Bandit(["a", "b", "c"], policy=policy, **options)
    for i in range(n):
        x: Any = dict(zip(("one", "u"), context(i, 2), strict=True)) if "encoder" not in given else CUSTOMERS[i % 3]
        bandit.learn(bandit.decide(x), reward(i))
    bandit.retire_arm("c")
    return bandit


CUSTOMERS = [{"city": "Oslo", "age": 1.0}, {"city": "Rome", "age": 0.5}, {"city": "Bern", "age": 0.25}]
CITIES = Encoder().fit({"city": ["Oslo", "Rome"] * 9, "age": [1.0, 0.5] * 9})


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_loop_goes_on_where_its_model_stood(place: Place, policy: armlet.Policy | None) -> None:
    bandit = trained(policy)
    with Store(place()) as store:
        loop = store.loop("homepage", model=bandit, reward_range=(-1.0, 1.0))
        model = loop.model()
        assert (model.t, model.arms, model.arms.retired) == (30, bandit.arms, bandit.arms.retired)
        assert model.settings.features == ("one", "u")
        assert model.state.records().tobytes() == bandit.state.records().tobytes()
        decisions = [loop.decide(context(i, 2), event=f"e{i}") for i in range(10)]
        assert [decision.t for decision in decisions] == list(range(31, 41))
        twin = bandit.copy()
        expected = [twin.decide(context(i, 2), propensity="marginal") for i in range(10)]
        assert [repr(decision) for decision in decisions] == [repr(decision) for decision in expected]
        for i, decision in enumerate(expected):
            assert loop.reward(f"e{i}", reward(i)) == "accepted"
            twin.learn(decision, reward(i))
        twin.replace(reward_range=(-1.0, 1.0))
        assert loop.model().digest() == twin.digest()
        assert_replays(store, loop)
    assert bandit.t == 30  # the loop has a copy
    with Store(place()) as store:
        loop = store.loop("homepage", model=bandit, reward_range=(-1.0, 1.0))
        assert loop.model().digest() == twin.digest()
        assert loop.decide(context(0, 2)).t == 41


def test_two_loops_of_one_model_do_not_know_of_each_other(place: Place) -> None:
    bandit = trained()
    with Store(place()) as store:
        loops = [store.loop(name, model=bandit) for name in ("one", "two")]
        decisions = [loop.decide(context(1, 2)) for loop in loops]
        assert decisions[0].id == decisions[1].id
        assert loops[0].reward(decisions[0].id, 0.5) == "accepted"
        assert [loop.model().state.n.sum() for loop in loops] == [31.0, 30.0]
        assert loops[1].reward(decisions[1].id, 0.25) == "accepted"


def test_decisions_of_the_model_itself_are_not_those_of_the_loop(place: Place) -> None:
    bandit = trained()
    before = bandit.decide(context(0, 2))
    with Store(place()) as store:
        loop = store.loop("homepage", model=bandit)
        assert loop.reward(before.id, 0.5) == "unknown"
        assert loop.decide(context(0, 2), event=before.id).t == 32
        twin = loop.model()
        later = [twin.decide(context(0, 2)).id for _ in range(2)]
        for name in later:
            with pytest.raises(armlet.errors.EventError, match="the id of a decision that is still to come"):
                loop.decide(context(0, 2), event=name)


def test_a_model_brings_its_range_objective_and_encoder(place: Place) -> None:
    bandit = trained(armlet.LinUCB(), features=None, encoder=CITIES, objective="min", reward_range=(-1.5, 1.25))
    with Store(place()) as store:
        loop = store.loop("homepage", model=bandit)
        settings = loop.model().settings
        assert (settings.objective, settings.reward_range) == ("min", (-1.5, 1.25))
        assert settings.encoder is not None
        assert settings.encoder.to_dict() == CITIES.to_dict()
        loop.decide(CUSTOMERS[2], event="e")
        assert [loop.reward("e", value) for value in (1.5, -1.5)] == ["out_of_range", "accepted"]
        other = store.loop("narrow", model=bandit, reward_range=(0.0, 1.0), aggregation="sum", early_window=9.0)
        assert other.model().settings.reward_range == (0.0, 1.0)
        assert other.reward("e", 0.5) == "early"
        assert_replays(store, loop)


def test_a_model_that_names_no_range_takes_rewards_from_minus_one_to_one(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", model=trained())
        loop.decide(context(0, 2), event="e")
        assert [loop.reward("e", value) for value in (1.25, -1.25, 1.0)] == ["out_of_range", "out_of_range", "accepted"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"arms": ["a"]}, "arms is given, but the model has its own"),
        ({"policy": UCB}, "policy is given, but the model has its own"),
        ({"seed": 3}, "seed is given, but the model has its own"),
        ({"features": ["one", "u"]}, "features is given, but the model has its own"),
        ({"objective": "min"}, "objective is given, but the model has its own"),
        ({"window": 9.0}, "give both or neither"),
        ({"window": 9.0, "default_reward": 2.0}, "default_reward is 2.0, but rewards are from -1.0 to 1.0"),
        ({"model": "a file"}, "model is 'a file'; give an armlet.Bandit"),
    ],
)
def test_what_a_model_has_is_not_given_again(place: Place, given: dict[str, Any], words: str) -> None:
    with Store(place()) as store:
        with pytest.raises((ValueError, TypeError), match=words):
            store.loop("homepage", **({"model": trained()} | given))
        assert store.loops == []


def test_a_loop_that_is_there_keeps_what_it_learned_but_says_if_its_rules_differ(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", model=trained())
        loop.decide(context(0, 2), event="e")
        loop.reward("e", 0.5)
        before = everything(store, loop)
        assert store.loop("homepage", model=trained(n=5)).model().state.n.sum() == 31
        assert everything(store, loop) == before
        rules: dict[str, Any] = {"window": 60.0, "default_reward": 0.0}
        with pytest.raises(StoreError, match=r"window is 60.0, but loop 'homepage' has None.*loop\.change\(window"):
            store.loop("homepage", model=trained(), **rules)
        with pytest.raises(StoreError, match="reward_range is"):
            store.loop("homepage", model=trained(), reward_range=(0.0, 1.0))
        assert everything(store, loop) == before
        store.loop("homepage", model=trained(), **rules, reward_range=(0.0, 1.0), on_change="apply")
        assert loop._runner.terms.window == 60.0
        assert loop.model().settings.reward_range == (0.0, 1.0)


def test_contexts_are_told_by_categories(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", arms=["a", "b"], encoder=CITIES, policy=UCB, seed=3)
        arms = [loop.decide(customer, event=f"e{i}").arm for i, customer in enumerate(CUSTOMERS)]
        more = loop.decide_many(CUSTOMERS, events=["f0", "f1", "f2"])
        for i in range(3):
            loop.reward(f"e{i}", reward(i))
            loop.reward(f"f{i}", reward(i + 3))
        X = CITIES.matrix(CUSTOMERS).tolist()
        rows = [Learned(X[i], arms[i], reward(i)) for i in range(3)]
        rows += [Learned(X[i], more[i].arm, reward(i + 3)) for i in range(3)]
        assert_learned(loop.model(), rows)
        assert_replays(store, loop)
        with pytest.raises(ValueError, match="city"):
            loop.decide({"age": 1.0})
        assert loop.decide(CUSTOMERS[0], event="e0").arm == arms[0]
    with Store(place()) as store:
        loop = store.loop("homepage", arms=["a", "b"], encoder=CITIES, policy=UCB, seed=3)
        assert_learned(loop.model(), rows)
        assert loop.decide(CUSTOMERS[0], event="e0").arm == arms[0]
