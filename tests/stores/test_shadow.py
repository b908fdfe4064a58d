"""A second bandit of a loop: a shadow, the policy before as the control, and what learns while a loop is frozen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.cast.cast import CONTROL, SECOND
from armlet.errors import ArmletError, InvalidValueError, StoreError
from armlet.kernel import coins
from armlet.stores import Control, Loop, Store, maintenance
from armlet.testing.stores import Place, _Failing
from armlet.types import Policy
from support.loops import Ticks, context, reward, ticking, traffic
from support.stores.guards import SEED, assert_guarded, everything_guarded, play, relearned, rows_of, second

ARMS = ["old", "new", "third"]
UCB = armlet.LinUCB(units="as given")
EPSILON = armlet.FixedEpsilon(epsilon=0.3)
MADE: dict[str, Any] = {"arms": ARMS, "features": ["one", "u"], "seed": SEED, "policy": EPSILON}
SECONDS: list[Policy] = [
    armlet.OccasionalOptimism(),
    armlet.AutoEpsilonGreedy(),
    armlet.Algorithm1(p=12),
    UCB,
    armlet.ThompsonSampling(),
]


def kind_of(policy: Policy) -> str:
    return type(policy).__name__


# ---- a shadow


@pytest.mark.parametrize("policy", SECONDS, ids=kind_of)
def test_a_shadow_learns_what_a_refit_would_and_changes_nothing_of_the_live_policy(
    place: Place, policy: Policy
) -> None:
    with Store(place()) as store:
        loop, alone = (store.loop(name, **MADE, aggregation="last") for name in ("homepage", "alone"))
        for each in (loop, alone):
            play(each, 0, 30)
        loop.change(shadow=policy, how="refit")
        for each in (loop, alone):
            play(each, 30, 30)
            each.reward("e7", 0.5)
            each.retire_arm("third")
            each.add_arm("fourth")
            play(each, 60, 20)
        assert loop.model().to_bytes() == alone.model().to_bytes()
        assert second(loop).digest() == relearned(loop, policy).digest()
        assert_guarded(store, loop)
        before = loop._runner.cast.to_bytes()
    with Store(place()) as store:
        loop = store.loop("homepage")
        loop.model()
        assert loop._runner.cast.to_bytes() == before
        play(loop, 80, 5)
        assert_guarded(store, loop)


@pytest.mark.parametrize("policy", SECONDS, ids=kind_of)
def test_the_choice_of_a_shadow_is_logged_and_made_by_coins_of_its_own(place: Place, policy: Policy) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        loop.change(shadow=policy, how="refit")
        for i in range(40):
            shadow = second(loop).copy()
            assert shadow.seed == SEED ^ SECOND
            loop.decide(context(i, 2), event=f"e{i}")
            expected = shadow.decide(context(i, 2), t=i + 1).arm
            assert rows_of(loop, "decide")[-1].fields["shadow"] == {"arm": expected}
            loop.reward(f"e{i}", reward(i))
        assert [row.fields["shadow"]["arm"] for row in rows_of(loop, "decide")] != [
            row.fields["arm"] for row in rows_of(loop, "decide")
        ]


def test_what_a_shadow_plays_says_nothing_of_the_coins_of_the_live_policy() -> None:
    """Both explore always, uniformly over 3 arms: they agree in 1/3 of 3,000 steps, within 5 standard errors of 0.0086.
    With the same coins they would always agree, and no estimate by propensities would be right."""
    with Store(armlet.stores.Memory()) as store:
        loop = store.loop("homepage", **{**MADE, "policy": armlet.Uniform()})
        loop.change(shadow=armlet.Uniform())
        loop.decide_many(np.ones((3000, 2)))
        same = [row.fields["shadow"]["arm"] == row.fields["arm"] for row in rows_of(loop, "decide")]
        assert abs(np.mean(same) - 1 / 3) < 5 * 0.0086


def test_a_shadow_goes_on_from_the_live_state_where_it_is_of_the_same_kind(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **{**MADE, "policy": UCB})
        play(loop, 0, 20)
        loop.forget("e5")  # which a refit could not learn, but the state knows how to be without
        loop.change(shadow=armlet.LinUCB(alpha=0.25, units="as given"))
        assert second(loop).state.n.tolist() == loop.model().state.n.tolist()
        play(loop, 20, 20)
        assert second(loop).policy == armlet.LinUCB(alpha=0.25, units="as given")
        assert second(loop).state.n.tolist() == loop.model().state.n.tolist()
        assert_guarded(store, loop)


def test_a_shadow_and_a_control_arm_go_together_through_all_changes(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **MADE, aggregation="last", control=Control(arm="old", share=0.25))
        play(loop, 0, 20)
        loop.change(shadow=UCB, how="refit")
        play(loop, 20, 10)
        loop.change(features=["u", "v", "one"], reward_range=(-2.0, 2.0))
        loop.decide([context(8, 2)[1], 0.0, 1.0], event="e8")
        loop.reward("e8", reward(8))  # of a decision from before
        assert loop.reward("e24", reward(24)) == "accepted"  # of one from before that audit decides again
        assert loop.reward("e25", 0.5) == "replaced"
        loop.change(policy=armlet.FixedEpsilon(epsilon=0.2))
        play(loop, 30, 10, dim=3)
        assert_guarded(store, loop)
        loop.forget_many(["e9", "e10", "e12"])
        loop.change(policy=armlet.OFUL(), how="refit")
        play(loop, 40, 10, dim=3)
        assert_guarded(store, loop)
        assert loop.model().policy == armlet.OFUL()
        assert second(loop).state.n.sum() == sum(row.kind == "learn" for row in rows_of(loop))
        ticks.now += 100.0
        loop.change(window=60.0, default_reward=0.0)
        for i in range(50, 60):
            loop.decide(context(i, 3), event=f"e{i}")
        ticks.now += 100.0
        assert store.prune(ticks.now - 150.0) > 0
        play(loop, 60, 5, dim=3)
        assert_guarded(store, loop)
        loop.change(shadow=None)
        assert loop.log.replayable.about["guards"] == {"control": {"arm": "old", "share": 0.25}}
        assert "guards" not in loop.log.about  # which is of the first row, before there was a shadow
        play(loop, 65, 5, dim=3)
        assert_guarded(store, loop)


def test_rewards_of_another_arm_than_decided_reach_both(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        loop.change(shadow=UCB, how="refit")
        for i in range(12):
            loop.decide(context(i, 2), event=f"e{i}")
            loop.reward(f"e{i}", reward(i), played="third")
        assert second(loop).state.n.tolist() == [0.0, 0.0, 12.0]
        assert second(loop).state.under_way.tolist() == [0, 0, 0]
        assert_guarded(store, loop)


def test_a_refused_decision_leaves_both_as_they_were(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE, control=Control(arm="old"))
        loop.change(shadow=UCB, how="refit")
        play(loop, 0, 10)
        before = everything_guarded(store, loop)
        living = loop._runner.cast
        with pytest.raises(ArmletError, match="nobody"):
            loop.decide(context(0, 2), eligible=["nobody"])
        assert loop._runner.cast is living  # nothing has to be read again
        with pytest.raises(ArmletError, match="e3"):
            loop.decide_many([context(i, 2) for i in (10, 11)], events=["e10", "e3"])
        assert everything_guarded(store, loop) == before
        play(loop, 10, 5)
        assert_guarded(store, loop)


@pytest.mark.parametrize("call", ["decide", "learn"])
def test_a_call_that_only_the_shadow_refuses_is_undone(
    place: Place, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        loop.change(shadow=UCB, how="refit")
        play(loop, 0, 10)
        before = everything_guarded(store, loop)

        def refuse(*_: object, **__: object) -> None:
            raise InvalidValueError("no")

        with monkeypatch.context() as patch:
            patch.setattr(second(loop), call, refuse, raising=False)
            with pytest.raises(ArmletError, match="one bandit of the loop refused it: no"):
                loop.decide(context(10, 2), event="e10") if call == "decide" else loop.reward("e8", 1.0)
        assert everything_guarded(store, loop) == before
        play(loop, 10, 5)
        assert_guarded(store, loop)


# ---- a policy as the control


@pytest.mark.parametrize("policy", SECONDS, ids=kind_of)
def test_a_policy_as_the_control_plays_its_share_with_the_propensities_of_the_mixture(
    place: Place, policy: Policy
) -> None:
    share = 0.4
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE, control=Control(policy=policy, share=share))
        for i in range(60):
            x = context(i, 2)
            live = loop.model().decide(x, probabilities="all", propensity="marginal")
            other = second(loop).copy().decide(x, t=i + 1, probabilities="all", propensity="marginal")
            decision = loop.decide(x, event=f"e{i}", probabilities="all" if i % 2 else None)
            control = rows_of(loop, "decide")[-1].fields["control"]
            is_due = coins(SEED ^ CONTROL, i + 1).coin < share
            assert (control["played"], control["live"], control["arm"]) == (is_due, live.arm, other.arm)
            assert decision.arm == (other.arm if is_due else live.arm)
            mixed = (1 - share) * np.asarray(live.probabilities) + share * np.asarray(other.probabilities)
            assert decision.propensity == mixed[ARMS.index(str(decision.arm))]
            if i % 2:
                np.testing.assert_array_equal(np.asarray(decision.probabilities), mixed)
            loop.reward(f"e{i}", reward(i))
        assert second(loop).digest() == relearned(loop, policy).digest()
        assert loop.model().digest() == relearned(loop, EPSILON).digest()
        assert_guarded(store, loop)
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE, control=Control(policy=policy, share=share))
        play(loop, 60, 5)
        assert_guarded(store, loop)
        loop.change(control=Control(policy=policy, share=0.1))
        assert second(loop).digest() == relearned(loop, policy).digest()  # another share, and the same bandit
        loop.change(control=Control(arm="old"))
        play(loop, 65, 5)
        assert_guarded(store, loop)


# ---- a loop that is frozen


@pytest.mark.parametrize("policy", [EPSILON, *SECONDS], ids=kind_of)
def test_a_frozen_loop_decides_from_the_state_it_had_and_goes_on_with_what_it_learned(
    place: Place, policy: Policy
) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **{**MADE, "policy": policy}, aggregation="last")
        play(loop, 0, 30)
        still = loop.model()
        loop.freeze()
        loop.freeze()  # once is enough
        for i in range(30, 60):
            expected = still.copy().decide(context(i, 2), t=i + 1, propensity="marginal", probabilities="all")
            decision = loop.decide(context(i, 2), event=f"e{i}", probabilities="all")
            assert (decision.arm, decision.propensity) == (expected.arm, expected.propensity)
            loop.reward(f"e{i}", reward(i))
        loop.reward("e5", 0.25)  # of a decision from before
        loop.reward("e8", 0.25)
        assert loop.model().state.n.tolist() == still.state.n.tolist()
        assert second(loop).digest() == relearned(loop, policy).digest()
        assert_guarded(store, loop)
    with Store(place()) as store:
        loop = store.loop("homepage")
        assert_guarded(store, loop)
        learned = second(loop).to_bytes()
        loop.thaw()
        loop.thaw()
        assert loop.model().to_bytes() == learned
        assert loop.model().digest() == relearned(loop, policy).digest()
        play(loop, 60, 10)
        assert_guarded(store, loop)


def test_decisions_under_way_do_not_pile_up_in_a_frozen_policy(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", arms=ARMS, dim=2, seed=SEED)
        for i in range(8):
            loop.decide(context(i, 2), event=f"e{i}")
        before = loop.model().state.under_way.tolist()
        loop.freeze()
        for i in range(8, 40):
            loop.decide(context(i, 2), event=f"e{i}")
        assert loop.model().state.under_way.tolist() == before
        assert sum(second(loop).state.under_way.tolist()) == 40
        assert_guarded(store, loop)


def test_a_frozen_policy_forgets_what_it_knew_when_it_was_frozen(place: Place) -> None:
    """Rewards in quarters and contexts in eighths: sums are exact, so that a bandit that never knew is the same."""
    with Store(place()) as store:
        loop = store.loop("homepage", **{**MADE, "policy": UCB}, aggregation="last")
        rows: dict[int, tuple[str, float]] = {}
        for i in range(20):
            arm = str(loop.decide(context(i, 2), event=f"e{i}").arm)
            if i % 3:
                rows[i] = arm, reward(i)
                loop.reward(f"e{i}", reward(i))
        loop.decide(context(20, 2), event="e20")
        loop.freeze()
        loop.reward("e3", 0.5)  # open when it was frozen
        loop.reward("e4", 0.5)  # corrected since
        loop.decide(context(21, 2), event="e21")
        loop.reward("e21", 1.0)  # nothing that it knows of
        gone = [3, 4, 5, 20, 21, 6]
        assert loop.forget_many([f"e{i}" for i in gone]) == 6
        left = {i: row for i, row in rows.items() if i not in gone}
        model = loop.model()
        for place_of, arm in enumerate(ARMS):
            mine = [i for i, row in left.items() if row[0] == arm]
            assert model.state.n[place_of] == len(mine)
            X = np.array([context(i, 2) for i in mine]).reshape(len(mine), 2)
            np.testing.assert_array_equal(model.state.b[place_of], np.array([left[i][1] for i in mine]) @ X)
        assert sum(model.state.under_way.tolist()) == sum(i % 3 == 0 for i in range(20) if i not in gone)
        assert_guarded(store, loop)
        loop.thaw()
        assert loop.model().state.n.sum() == len(left)
        assert_guarded(store, loop)


def test_a_frozen_policy_that_waited_for_no_reward_forgets_nothing(place: Place) -> None:
    """After the first pass of a prune decisions without a reward are expired, and not yet deleted."""
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **{**MADE, "policy": UCB})
        for i in range(6):
            loop.decide(context(i, 2), event=f"e{i}", eligible=["new"])
        ticks.now += 100.0
        store._writer.maintain(maintenance._prune(loop._runner, int((ticks.now - 50.0) * 1e6)))
        for i in range(6, 10):
            loop.decide(context(i, 2), event=f"e{i}", eligible=["new"])
        loop.freeze()
        assert sum(loop.model().state.under_way.tolist()) == 4
        assert loop.forget_many(["e2", "e7"]) == 2
        assert sum(loop.model().state.under_way.tolist()) == 3
        assert_guarded(store, loop)


def test_a_frozen_loop_changes_features_arms_and_settings(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE, control=Control(arm="old"))
        play(loop, 0, 20)
        loop.freeze()
        loop.add_arm("fourth")
        loop.change(features=["u", "one", "v"])
        loop.change(policy=armlet.FixedEpsilon(epsilon=0.1))
        play(loop, 20, 20, dim=3)
        loop.retire_arm("new")
        assert_guarded(store, loop)
        loop.thaw()
        assert loop.model().policy == armlet.FixedEpsilon(epsilon=0.1)
        assert_guarded(store, loop)


# ---- refused


def frozen(loop: Loop) -> None:
    loop.freeze()


def shadowed(loop: Loop) -> None:
    loop.change(shadow=UCB, how="refit")


def shadowed_and_frozen(loop: Loop) -> None:
    loop.change(shadow=UCB, how="refit")
    loop.freeze()


REFUSED: dict[str, tuple[Callable[[Loop], None], Callable[[Loop], object], str]] = {
    "refit while frozen": (
        frozen,
        lambda loop: loop.change(policy=UCB, how="refit"),
        "is frozen, so its policy cannot",
    ),
    "another kind": (frozen, lambda loop: loop.change(policy=UCB), "other units|another policy|how='refit'"),
    "promote nothing": (frozen, lambda loop: loop.promote(gate="off"), "there is no shadow to promote"),
    "promote while frozen": (shadowed_and_frozen, lambda loop: loop.promote(gate="off"), "thaw it first"),
    "promote by an unknown gate": (shadowed, lambda loop: loop.promote(gate="best"), "gate is 'best'"),  # type: ignore[arg-type]
    "promote with a share of 2": (shadowed, lambda loop: loop.promote(gate="off", control=2.0), "control is 2.0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_change_of_cast_changes_nothing(place: Place, case: str) -> None:
    first, then, words = REFUSED[case]
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        play(loop, 0, 10)
        first(loop)
        play(loop, 10, 5)
        before = everything_guarded(store, loop)
        with pytest.raises(ArmletError, match=words):
            then(loop)
        assert everything_guarded(store, loop) == before
        play(loop, 15, 3)
        assert_guarded(store, loop)


def test_a_shadow_of_nobodys_list_is_refused(place: Place) -> None:
    class Own(armlet.Uniform):
        """A policy of one's own."""

    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        before = everything_guarded(store, loop)
        with pytest.raises(ValueError, match=r"shadow is .*not one of Armlet's own"):
            loop.change(shadow=Own())
        with pytest.raises(ValueError, match=r"control is .*not one of Armlet's own"):
            loop.change(control=Control(policy=Own()))
        assert everything_guarded(store, loop) == before


# ---- promotion


def test_a_promoted_shadow_is_the_live_policy_with_what_it_has_learned(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        play(loop, 0, 30)
        loop.change(shadow=UCB, how="refit")
        play(loop, 30, 10)
        shadow = second(loop).digest()
        found = loop.promote(gate="off", control=0.3)
        assert found.promoted
        assert (loop.model().policy, loop.model().digest(), loop.model().seed) == (UCB, shadow, SEED)
        play(loop, 40, 40)
        assert second(loop).policy == EPSILON
        assert second(loop).digest() == relearned(loop, EPSILON).digest()
        controls = [row.fields["control"] for row in rows_of(loop, "decide")[40:]]
        assert {control["share"] for control in controls} == {0.3}
        assert 0 < sum(control["played"] for control in controls) < 40
        assert_guarded(store, loop)
    with Store(place()) as store:
        loop = store.loop("homepage")
        assert_guarded(store, loop)
        loop.change(control=None)
        assert loop.model().digest() == relearned(loop, UCB).digest()
        loop.change(shadow=armlet.OFUL(), how="refit")
        assert second(loop).seed == SEED ^ SECOND
        assert loop.promote(gate="off").promoted
        assert loop.model().policy == armlet.OFUL()
        play(loop, 80, 5)
        assert_guarded(store, loop)
        with pytest.raises(StoreError, match="there is no shadow to promote"):
            loop.promote()


GUARDS: dict[str, Callable[[Loop], object]] = {
    "control": lambda loop: loop.change(control=Control(arm="new", share=0.5)),
    "shadow": lambda loop: loop.change(shadow=UCB, how="refit"),
    "freeze": lambda loop: loop.freeze(),
    "promote": lambda loop: loop.promote(gate="off", control=0.3),
}


@pytest.mark.parametrize("name", GUARDS)
def test_guards_that_are_not_kept_leave_the_loop_as_it_was(place: Place, name: str) -> None:
    failing = _Failing(place())
    with Store(failing) as store:
        loop = store.loop("homepage", **MADE)
        play(loop, 0, 20)
        if name == "promote":
            loop.change(shadow=UCB, how="refit")
        before = everything_guarded(store, loop)
        failing.fails = True
        with pytest.raises(StoreError, match="nothing of this call was kept"):
            GUARDS[name](loop)
        failing.fails = False
        assert everything_guarded(store, loop) == before
        assert_guarded(store, loop)
        GUARDS[name](loop)
        play(loop, 20, 5)
        assert_guarded(store, loop)


def test_guards_come_and_go_while_others_decide(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        with traffic(loop):
            loop.change(control=Control(arm="old", share=0.2))
            loop.freeze()
            loop.thaw()
            loop.change(shadow=UCB, how="refit")
            loop.promote(gate="off", control=0.3)
            loop.change(control=Control(arm="new"))
            loop.change(shadow=armlet.OFUL(), how="refit")
        assert loop.model().digest() == relearned(loop, UCB).digest()
        assert second(loop).digest() == relearned(loop, armlet.OFUL()).digest()
        assert_guarded(store, loop)


CROSSED = armlet.FixedEpsilon(epsilon=0.3, ridge=1e9)  # it learns a mean of each arm, and no slope
STRAIGHT = armlet.FixedEpsilon(epsilon=0.3)


def crossing(store: Store, live: Policy, shadow: Policy) -> Loop:
    """Play a loop where the better arm depends on the sign of the context, so that one without slopes earns 0.5."""
    rng = np.random.default_rng(4)
    loop = store.loop("homepage", arms=["left", "right"], dim=1, policy=live, seed=SEED, reward_range=(0.0, 1.0))
    loop.change(shadow=shadow)
    for i in range(1200):
        u = float(rng.choice([-1.0, 1.0]))
        decision = loop.decide([u], event=f"e{i}")
        loop.reward(f"e{i}", float(rng.random() < (0.9 if (decision.arm == "right") == (u > 0) else 0.1)))
    return loop


def test_the_gate_promotes_a_shadow_that_is_better_and_no_other() -> None:
    """The gain of one over the other is 0.8 in half of the contexts; of 1,200 steps about 360 explore."""
    with Store(armlet.stores.Memory()) as store:
        loop = crossing(store, live=STRAIGHT, shadow=CROSSED)
        before = everything_guarded(store, loop)
        for gate in ("better", "not worse"):
            found = loop.promote(gate=gate)
            assert (found.promoted, found.gain and found.gain.answer) == (False, "no")
        assert everything_guarded(store, loop) == before
    with Store(armlet.stores.Memory()) as store:
        loop = crossing(store, live=CROSSED, shadow=STRAIGHT)
        found = loop.promote()
        assert (found.promoted, found.gain and found.gain.answer) == (True, "yes")
        assert found.to_dict()["gain"]["answer"] == "yes"
        assert loop.model().policy == STRAIGHT
        assert_guarded(store, loop)


def test_a_shadow_of_which_nothing_is_known_is_not_better(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        loop.change(shadow=EPSILON)
        found = loop.promote()
        assert (found.promoted, found.gain and found.gain.interval) == (False, None)
        assert loop.promote(gate="not worse").promoted


def test_a_refused_promotion_takes_back_the_windows_that_it_closed(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = store.loop("homepage", **MADE, window=1.0, default_reward=0.0)
        loop.decide([1.0, 0.5], event="e")
        ticks.now += 1.0  # its window is closed by whatever is called next
        with pytest.raises(ArmletError, match="shadow"):
            loop.promote()
        assert loop.decide([1.0, 0.5], event="f").t == 2
        assert [row.kind for row in rows_of(loop)] == ["decide", "learn", "decide"]
        assert_guarded(store, loop)
