"""Guardrails of a loop: a control's share, its coin and propensities, and that all of it is replayed bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.cast.cast import CONTROL
from armlet.errors import ArmletError, StoreError
from armlet.kernel import Decision, coins
from armlet.log.exporting import write
from armlet.log.reader import read
from armlet.stores import Control, Loop, Store
from armlet.stores.ledger import Row
from armlet.stores.rows.decisions import checked
from armlet.testing.stores import Place
from armlet.types import Policy
from support.loops import Ticks, context, reward, ticking
from support.stores.guards import SEED, assert_guarded, everything_guarded, play, rows_of

ARMS = ["old", "new", "third"]
POLICIES: list[Policy] = [
    armlet.OccasionalOptimism(floor=0.1),
    armlet.FixedEpsilon(epsilon=0.3),
    armlet.AutoEpsilonGreedy(),
    armlet.Algorithm1(p=12),
    armlet.LinUCB(),
    armlet.ThompsonSampling(),
]
MADE: dict[str, Any] = {"arms": ARMS, "features": ["one", "u"], "seed": SEED}


def kind_of(policy: Policy) -> str:
    return type(policy).__name__


def made(store: Store, **given: Any) -> Loop:
    return store.loop("homepage", **{**MADE, "control": Control(arm="old", share=0.25), **given})


@pytest.mark.parametrize("policy", POLICIES, ids=kind_of)
def test_propensities_are_those_of_the_mixture(place: Place, policy: Policy) -> None:
    """The oracle is the live policy alone, in the state that it had: asked for all of its probabilities."""
    share = 0.25
    with Store(place()) as store:
        loop = made(store, policy=policy)
        for i in range(80):
            x = context(i, 2)
            live = loop.model().decide(x, probabilities="all", propensity="marginal")
            decision = loop.decide(x, event=f"e{i}", probabilities="all")
            control = rows_of(loop, "decide")[-1].fields["control"]
            is_due = coins(SEED ^ CONTROL, i + 1).coin < share
            mixed = live.design != "turn"
            assert control["share"] == (share if mixed else 0.0)
            assert (control["live"], control["arm"], control["propensity"]) == (live.arm, "old", live.propensity)
            assert control["played"] == (is_due and mixed)
            assert decision.arm == ("old" if control["played"] else live.arm)
            p = np.asarray(live.probabilities)
            expected = p if not mixed else (1 - share) * p + share * np.array([1.0, 0.0, 0.0])
            found = np.asarray(decision.probabilities)
            np.testing.assert_array_equal(found, expected)
            assert abs(found.sum() - 1.0) < 1e-12
            assert decision.propensity == found[ARMS.index(str(decision.arm))]
            assert decision.explored == (live.explored and not control["played"])
            if mixed and live.exploration_rate is not None:
                assert decision.exploration_rate == (1 - share) * live.exploration_rate
            loop.reward(f"e{i}", reward(i))


def test_probabilities_are_logged_only_where_they_are_asked_for(place: Place) -> None:
    with Store(place()) as store:
        loop = made(store, policy=armlet.FixedEpsilon(epsilon=0.3))
        decisions = [loop.decide(context(i, 2)) for i in range(40)]
        rows = rows_of(loop, "decide")
        assert any(row.fields["control"]["played"] for row in rows)
        assert all(decision.probabilities is None for decision in decisions)
        assert all(row.fields.get("probabilities") is None for row in rows)


def test_a_control_that_is_retired_or_not_eligible_has_no_share(place: Place) -> None:
    with Store(place()) as store:
        loop = made(store, policy=armlet.LinUCB(), control=Control(arm="old", share=0.9))
        for i in range(10):
            assert loop.decide(context(i, 2), eligible=["new", "third"]).arm != "old"
        loop.retire_arm("old")
        for i in range(10):
            loop.decide(context(i, 2))
        assert {row.fields["control"]["share"] for row in rows_of(loop, "decide")} == {0.0}
        loop.restore_arm("old")
        assert {loop.decide(context(i, 2)).arm for i in range(20)} >= {"old"}
        assert_guarded(store, loop)


def test_the_coin_of_the_control_falls_as_often_as_its_share_and_apart_from_others() -> None:
    """Of 20,000 coins at share 0.1 the frequency has a standard error of 0.0021; 5 of them are 0.0106. The coin of the
    policy, below 0.3, falls together with it with probability 0.03: 5 standard errors are 0.0061."""
    n = 20_000
    control = np.array([coins(SEED ^ CONTROL, t).coin < 0.1 for t in range(1, n + 1)])
    own = np.array([coins(SEED, t).coin < 0.3 for t in range(1, n + 1)])
    assert abs(control.mean() - 0.1) < 0.0106
    assert abs((control & own).mean() - 0.03) < 0.0061


def test_decisions_under_way_are_those_of_the_arm_that_is_played(place: Place) -> None:
    with Store(place()) as store:
        loop = made(store)
        decisions = [loop.decide(context(i, 2), event=f"e{i}") for i in range(40)]
        counts = [sum(decision.arm == arm for decision in decisions) for arm in ARMS]
        assert loop.model().state.under_way.tolist() == counts
        assert any(row.fields["control"]["played"] for row in rows_of(loop, "decide"))
        loop.reward("e0", 1.0)
        assert sum(loop.model().state.under_way.tolist()) == 39


def test_a_policy_that_learns_from_exploration_does_not_learn_what_the_control_plays(place: Place) -> None:
    with Store(place()) as store:
        loop = made(store, policy=armlet.Algorithm1(p=8))
        play(loop, 0, 80)
        explored = [row for row in rows_of(loop, "decide") if row.fields["explored"]]
        assert not any(row.fields["control"]["played"] for row in explored)
        assert loop.model().state.n.sum() == sum((row.t or 0) % 4 != 1 for row in explored)  # others have no reward


def test_a_control_comes_changes_and_goes_by_rows(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE, aggregation="last")
        play(loop, 0, 20)
        loop.change(control=Control(arm="new", share=0.5))
        play(loop, 20, 20)
        loop.change(control=Control(arm="third", share=0.25), window=60.0, default_reward=0.0)
        play(loop, 40, 10)
        loop.change(features=["u", "v", "one"])
        loop.decide([0.5, 0.25, 1.0])
        assert_guarded(store, loop)
        loop.change(control=None, window=None, default_reward=None)
        play(loop, 50, 10, dim=3)
        changes = [row.fields for row in rows_of(loop, "change")]
        guards = [next((each["guards"] for each in row["replaces"] if "guards" in each), None) for row in changes]
        first, second = {"arm": "new", "share": 0.5}, {"arm": "third", "share": 0.25}
        assert guards == [{"control": first}, {"control": second}, None, {}]
        controls = [row.fields.get("control", {}).get("arm") for row in rows_of(loop, "decide")]
        assert controls == [None] * 20 + ["new"] * 20 + ["third"] * 11 + [None] * 10
        assert_guarded(store, loop)
        assert [event["guards"] for event in loop.log if event["kind"] == "replace" and "guards" in event][-1] == {}
    with Store(place()) as store:
        assert_guarded(store, store.loop("homepage"))


def test_a_loop_without_guards_writes_what_it_did_before(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("homepage", **MADE)
        play(loop, 0, 5)
        assert loop._runner.cast.is_alone
        assert all(not {"control", "shadow"} & row.fields.keys() for row in rows_of(loop))
        record = next(iter(store._ledger.loops()))
        assert "guards" not in record.about


def test_a_window_closes_and_a_prune_comes_with_a_control(place: Place) -> None:
    ticks = Ticks()
    with ticking(place(), ticks) as store:
        loop = made(store, window=60.0, default_reward=0.0, policy=armlet.FixedEpsilon(epsilon=0.3))
        for i in range(40):
            loop.decide(context(i, 2), event=f"e{i}")
            if i % 3:
                loop.reward(f"e{i}", reward(i))
        ticks.now += 100.0
        play(loop, 40, 5)
        assert_guarded(store, loop)
        assert store.prune(ticks.now - 50.0) > 0
        play(loop, 45, 5)
        assert_guarded(store, loop)


def test_a_loop_is_opened_with_the_control_that_it_has_or_none(place: Place) -> None:
    with Store(place()) as store:
        made(store)
        made(store)
        store.loop("homepage", **MADE)
        with pytest.raises(StoreError, match=r"control is Control.arm='new'.*loop 'homepage' has Control.arm='old'"):
            made(store, control=Control(arm="new"))
        loop = made(store, control=Control(arm="new"), on_change="apply")
        assert loop.decide(context(0, 2)).t == 1
        assert rows_of(loop, "decide")[-1].fields["control"]["arm"] == "new"


REFUSED: dict[str, tuple[Callable[[Loop], object], str]] = {
    "unknown arm": (lambda loop: loop.change(control=Control(arm="none")), "which is not an arm; give one of"),
    "not a control": (lambda loop: loop.change(control="old"), "give an armlet.stores.Control"),  # type: ignore[arg-type]
    "both": (lambda loop: loop.change(control=Control(arm="old", policy=armlet.LinUCB())), "both arm and policy"),
    "share 0": (lambda loop: loop.change(control=Control(arm="old", share=0.0)), "above 0 and below 1"),
    "share 1": (lambda loop: loop.change(control=Control(arm="old", share=1.0)), "above 0 and below 1"),
    "other kind": (lambda loop: loop.change(control=Control(policy=armlet.LinUCB())), "how='refit'"),
    "no shadows": (lambda loop: loop.change(shadow={}), "give a policy, or policies by name"),
    "no policy": (lambda loop: loop.change(shadow={"a": 3}), "policy is 3"),  # type: ignore[dict-item]
    "no name": (lambda loop: loop.change(shadow={"": armlet.LinUCB()}), "a name in shadow is ''"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_everything_as_it_was(place: Place, case: str) -> None:
    call, words = REFUSED[case]
    with Store(place()) as store:
        loop = made(store)
        play(loop, 0, 10)
        before = everything_guarded(store, loop)
        with pytest.raises(ArmletError, match=words):
            call(loop)
        assert everything_guarded(store, loop) == before
        play(loop, 10, 3)
        assert_guarded(store, loop)


# ---- what others make of it


def simulated(policy: Policy, seed: int) -> tuple[float, float]:
    """Play 150 steps with a control, where the reward of an arm is known; return both estimates of always "new"."""
    rng = np.random.default_rng(seed)
    with Store(armlet.stores.Memory()) as store:
        loop = store.loop("homepage", arms=["old", "new"], dim=2, policy=policy, seed=seed, control=Control(arm="old"))
        clicks = []
        for i in range(150):
            x = [1.0, float(rng.integers(2))]
            decision = loop.decide(x, event=f"e{i}")
            clicks.append(float(rng.random() < (0.3 + 0.4 * x[1] if decision.arm == "new" else 0.5)))
            loop.reward(f"e{i}", clicks[-1])
        rows = [row.fields for row in rows_of(loop, "decide")]
        new = [(row, click) for row, click in zip(rows, clicks, strict=True) if row["arm"] == "new"]
        weighted = sum(click / row["propensity"] for row, click in new)
        return weighted / 150, sum(click / row["control"]["propensity"] for row, click in new) / 150


def test_an_estimate_from_a_loop_with_a_control_is_unbiased() -> None:
    """IPS of always "new", worth 0.5, in 60 loops. Its weights are at most 1/(0.9 * 0.25) < 4.5, so a row's variance is
    below 4.5 * 0.5, and the mean's standard error below sqrt(2.25 / 9,000) = 0.0158: 4 of them are 0.0633. With the
    live policy's own propensities a tenth of it would be missing: the two differ by exactly 0.9."""
    found = np.array([simulated(armlet.FixedEpsilon(epsilon=0.5), seed) for seed in range(60)])
    assert abs(found[:, 0].mean() - 0.5) < 4 * math.sqrt(2.25 / 9000)
    np.testing.assert_allclose(found[:, 1], 0.9 * found[:, 0], rtol=1e-12)


@pytest.mark.parametrize(
    "policy", [armlet.AutoEpsilonGreedy(floor=0.3), armlet.FixedEpsilon(epsilon=0.3), armlet.LinUCB()], ids=kind_of
)
def test_evaluation_and_health_believe_the_log_of_a_loop_with_a_control(policy: Policy) -> None:
    """Where exploration favours some arms, nobody knows how likely it draws the control's; no row may fail for that."""
    rng = np.random.default_rng(5)
    with Store(armlet.stores.Memory()) as store:
        loop = made(store, policy=policy, control=Control(arm="old", share=0.4))
        for first in range(0, 4000, 100):
            names = [f"e{i}" for i in range(first, first + 100)]
            X = np.column_stack([np.ones(100), rng.random(100)])
            decisions = loop.decide_many(X, events=names)
            clicks = [float(rng.random() < (0.6 if decision.arm == "new" else 0.2)) for decision in decisions]
            loop.reward_many(zip(names, clicks, strict=True))
        unknown = [row.fields["exploration_propensity"] is None for row in rows_of(loop, "decide")]
        assert any(unknown) == (not isinstance(policy, armlet.FixedEpsilon))
        assert loop.health() == []
        checks = armlet.evaluate(loop.log, {"old": "old", "new": "new"}).checks
        words = {check.name: check.word for check in checks}
        assert {words[name] for name in ("possible", "propensities", "explored share")} == {"fine"}


def test_an_audit_names_a_control_that_was_changed(place: Place) -> None:
    with Store(place()) as store:
        loop = made(store, policy=armlet.LinUCB())
        play(loop, 0, 20)
        events = list(loop.log.replayable)
        for change in ({"share": 0.5}, {"played": True}, {"live": "third"}, {"arm": "new"}, {"propensity": 0.5}):
            at = next(
                i for i, event in enumerate(events) if event["kind"] == "decide" and _differs(event["control"], change)
            )
            changed = [*events]
            changed[at] = {**events[at], "control": {**events[at]["control"], **change}}
            found = armlet.audit(_Events(loop, changed), loop.log.start)
            assert found.mismatch is not None
            assert (found.mismatch.seq, "control is" in found.mismatch.what) == (at, True)


def _differs(control: dict[str, Any], change: dict[str, Any]) -> bool:
    return any(control[name] != value for name, value in change.items())


class _Events:
    def __init__(self, loop: Loop, events: list[dict[str, Any]]) -> None:
        self.about, self._events = dict(loop.log.replayable.about), events

    def __iter__(self) -> Any:
        return iter(self._events)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_log_of_a_loop_with_guards_is_exported_and_evaluated_alike(ending: str, tmp_path: Path) -> None:
    with Store(armlet.stores.Memory()) as store:
        loop = made(store, policy=armlet.FixedEpsilon(epsilon=0.3), reward_range=(-1.0, 1.0))
        loop.change(shadow=armlet.LinUCB(), how="refit")
        play(loop, 0, 80)
        path = tmp_path / f"log.{ending}"
        write(loop.log, path)
        events = list(read(path))
        assert [event for event in events if event["kind"] == "decide"] == [
            event for event in loop.log if event["kind"] == "decide"
        ]
        assert all({"control", "shadow"} & event.keys() for event in events if event["kind"] == "decide")
        there, here = (armlet.evaluate(each, {"new": "new"}) for each in (path, loop.log))
        assert str(there) == str(here)


def test_a_decision_asked_for_again_is_the_one_that_was_played(place: Place) -> None:
    with Store(place()) as store:
        loop = made(store, policy=armlet.LinUCB(), control=Control(arm="old", share=0.5))
        first = [loop.decide(context(i, 2), event=f"e{i}") for i in range(20)]
        again = [loop.decide(context(i, 2), event=f"e{i}") for i in range(20)]
        assert [_fields(decision) for decision in again] == [_fields(decision) for decision in first]


def _fields(decision: Decision) -> dict[str, Any]:
    return decision.to_dict()


def test_a_control_may_be_a_number_of_any_kind(place: Place) -> None:
    with Store(place()) as store:
        control = Control(arm=int(np.int64(2)), share=np.float64(0.5))
        assert control == Control(arm=np.int64(2), share=0.5)  # type: ignore[arg-type]
        loop = store.loop("homepage", arms=[1, 2], dim=2, seed=SEED, control=control)
        play(loop, 0, 10)
        assert_guarded(store, loop)


def test_a_row_whose_guards_were_damaged_is_named(place: Place) -> None:
    with Store(place()) as store:
        loop = made(store)
        loop.decide(context(0, 2))
        row: Row = rows_of(loop, "decide")[0]
        assert sorted(row.fields["control"]) == ["arm", "live", "played", "propensity", "share"]
        whole = row.fields["control"]
        for damaged in (None, 3, {}, {**whole, "share": 2.0}, {**whole, "played": "yes"}, {**whole, "live": None}):
            with pytest.raises(
                StoreError, match=r"row 1 of the loop is not a valid 'decide': control is not an object"
            ):
                checked(row._replace(fields={**row.fields, "control": damaged}))
        with pytest.raises(StoreError, match="shadow is not an object with an arm"):
            checked(row._replace(fields={**row.fields, "shadow": {}}))
