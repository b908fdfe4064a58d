"""Another kind of policy for a loop: it learns the loop's own log, as far as it is left, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import armlet
from armlet.errors import StoreError
from armlet.stores import Loop, Store
from armlet.testing.stores import Place, _Failing
from armlet.types import RewardKind
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
    traffic,
)

UCB = armlet.LinUCB(units="as given")
MADE: dict[str, Any] = {"arms": ["a", "b"], "features": ["one", "u"], "policy": UCB, "seed": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded(armlet.Uniform):
    """A policy of nobody's list, which learns rewards from 0 to 1 only."""

    reward_range: tuple[float, float] = (0.0, 1.0)
    rewards: ClassVar[RewardKind] = "bounded"


KINDS = [armlet.ThompsonSampling(), armlet.Algorithm1(p=8), armlet.AutoEpsilonGreedy(), armlet.OFUL(), None]


def relearned(loop: Loop, policy: armlet.Policy, features: tuple[str, ...] | None) -> armlet.Bandit:
    """Return a bandit that learns what is left of a loop's log, row by row, as the log tells it."""
    model, carry = loop.model(), loop._runner.terms.carry
    bandit = armlet.Bandit(model.arms, features=features, policy=policy, seed=model.seed)
    decided = {row.t: row for row in loop._ledger.rows(loop._runner.id) if row.kind == "decide" and row.x}
    under_way = {}
    for row in loop._ledger.rows(loop._runner.id):
        if row.kind == "decide" and row.x:
            fields = {**row.fields, "t": row.t, "x": context_of(carry.row(row).x)}
            under_way[row.t] = armlet.Decision.from_dict(fields)
            bandit._begin_decision(row.fields["arm"], row.fields["explored"])
        elif row.kind == "learn" and row.t in decided:
            bandit.learn(under_way[row.t], row.fields["reward"])
        elif row.kind == "correct" and row.t in decided:
            bandit.correct(under_way[row.t], row.fields["old_reward"], row.fields["new_reward"])
    bandit.replace(t=model.t)
    bandit.replace(reward_range=model.settings.reward_range)
    for arm in model.arms.retired:
        bandit.retire_arm(arm)
    return bandit


def context_of(x: bytes | None) -> list[float]:
    values: list[float] = np.frombuffer(x or b"", dtype="<f8").tolist()
    return values


@pytest.mark.parametrize("policy", KINDS, ids=str)
def test_a_refit_is_a_fresh_bandit_that_learns_the_log(place: Place, policy: armlet.Policy | None) -> None:
    policy = armlet.Bandit(["a"], 1, seed=1).policy if policy is None else policy
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE, aggregation="last")
        play(loop, 0, 40)
        decide(loop, 40, 5)
        loop.reward("e7", 0.5)
        loop.change(policy=policy, how="refit")
        assert loop.model().policy == policy
        assert loop.model().digest() == relearned(loop, policy, ("one", "u")).digest()
        assert_replays(store, loop)
        assert loop.reward("e41", 0.25) == "accepted"
        assert loop.reward("e9", 0.75) == "replaced"
        play(loop, 45, 20)
        assert_replays(store, loop)
        before = loop.model().to_bytes()
    with Store(place()) as store:
        loop = store.loop("homepage")
        assert loop.model().to_bytes() == before
        assert loop.decide(context(3, 2)).t == 66


def test_a_refit_learns_what_is_left_after_a_prune_and_a_forget(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **MADE | {"policy": armlet.Algorithm1(p=12)}, aggregation="last")
        play(loop, 0, 40)
        ticks.now += 10.0
        play(loop, 40, 10)
        decide(loop, 50, 5)
        loop.forget("e45")
        assert store.prune(ticks.now - 5.0) > 0
        loop.add_arm("c")
        loop.retire_arm("a")
        play(loop, 55, 5)
        loop.change(policy=UCB, how="refit")
        model = loop.model()
        assert model.digest() == relearned(loop, UCB, ("one", "u")).digest()
        rows = list(loop._ledger.rows(loop._runner.id))
        decided = {row.t: row for row in rows if row.kind == "decide"}
        left = [(decided[row.t], row.fields["reward"]) for row in rows if row.kind == "learn"]
        learned = [Learned(context_of(row.x), row.fields["arm"], value) for row, value in left]
        assert 15 <= len(learned) < 54
        assert_learned(model, learned)
        assert_replays(store, loop)


def test_a_refit_comes_after_features_have_changed(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE, aggregation="last")
        arms = play(loop, 0, 10)
        decide(loop, 10, 3)
        loop.change(features=["u", "v", "one"])
        arms |= {10: loop.decide([context(10, 2)[1], 0.0, 1.0], event="e10").arm}
        loop.reward("e10", reward(10))
        loop.forget("e4")
        arms |= play(loop, 20, 5, dim=3)
        loop.change(policy=armlet.LinUCB(alpha=0.5), how="refit", features=["one", "u"])
        model = loop.model()
        assert model.settings.features == ("one", "u")
        fresh = relearned(loop, armlet.LinUCB(alpha=0.5), ("one", "u"))
        assert (model.state.n.tolist(), model.t) == (fresh.state.n.tolist(), 18)
        assert model.state.n.sum() == 15
        assert_replays(store, loop)
    with Store(place()) as store:
        assert_replays(store, store.loop("homepage"))


def test_a_refit_learns_rewards_of_a_range_that_was_left(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        arms = {i: loop.decide(context(i, 2), event=f"e{i}").arm for i in range(4)}
        for i in arms:
            loop.reward(f"e{i}", 1.0)
        loop.change(reward_range=(0.0, 0.5))
        loop.forget("e3")
        loop.change(policy=armlet.OFUL(), how="refit")
        assert_learned(loop.model(), [Learned(context(i, 2), arms[i], 1.0) for i in range(3)])
        assert loop.reward("e3", 1.0) == "unknown"
        assert_replays(store, loop)


def test_a_policy_that_cannot_learn_the_log_is_refused_and_nothing_changes(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        play(loop, 0, 10)
        before = everything(store, loop)
        for reward_range in (None, (0.0, 1.0)):
            with pytest.raises(ValueError, match=r"policy is Bounded.*cannot learn the log of loop 'homepage': reward"):
                loop.change(policy=Bounded(), how="refit", reward_range=reward_range)
            assert everything(store, loop) == before


def test_a_policy_with_a_range_learns_a_log_that_lies_in_it(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        for i in range(10):
            loop.decide(context(i, 2), event=f"e{i}")
            loop.reward(f"e{i}", abs(reward(i)))
        with pytest.raises(ValueError, match=r"reward_range is .-1.0, 1.0., but Bounded learns from 0.0 to 1.0"):
            loop.change(policy=Bounded(), how="refit")
        loop.change(policy=Bounded(), how="refit", reward_range=(0.0, 1.0))
        assert loop.reward("e3", -1.0) == "out_of_range"
        assert loop.model().state.n.sum() == 10


def test_a_refit_goes_on_while_others_decide(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        play(loop, 0, 200)
        with traffic(loop):
            for policy in (armlet.OFUL(), armlet.LinUCB(alpha=0.5, units="as given"), armlet.Algorithm1(p=9), UCB):
                loop.change(policy=policy, how="refit")
        assert loop.model().policy == UCB
        assert loop.model().digest() == relearned(loop, UCB, ("one", "u")).digest()
        assert_replays(store, loop)


def test_a_refit_that_is_not_kept_leaves_a_policy_of_ones_own(place: Place) -> None:
    failing = _Failing(place())
    with Store(failing) as store:
        loop = store.loop("homepage", **(MADE | {"policy": Bounded()}), reward_range=(0.0, 1.0))
        for i in range(6):
            loop.decide(context(i, 2), event=f"e{i}")
            loop.reward(f"e{i}", abs(reward(i)))
        before = loop.model().digest()
        failing.fails = True
        with pytest.raises(StoreError, match="nothing of this call was kept"):
            loop.change(policy=UCB, how="refit")
        failing.fails = False
        assert (loop.model().policy, loop.model().digest()) == (Bounded(), before)
        loop.change(policy=UCB, how="refit")
        assert loop.model().policy == UCB
        assert loop.model().state.n.sum() == 6
        assert loop.decide(context(7, 2)).t == 7
