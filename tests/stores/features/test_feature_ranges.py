"""Ranges of features in loops: contexts outside are refused or clipped before a row is written, and counted."""

from __future__ import annotations

from typing import Any

import pytest

import armlet
from armlet.errors import ArmletError, InvalidValueError, LoopStateError
from armlet.inputs.ranges import GivenRanges
from armlet.stores import Control, Loop, Memory, Store
from armlet.stores.stats import WriterStats, prometheus
from armlet.testing.stores import Place
from support.stores import rebuilt

NANOSECONDS = 1.8e18
MADE: dict[str, Any] = {"arms": ["a", "b"], "features": ["age", "clicks"], "seed": 3}
RANGES: GivenRanges = {"age": (0.0, 120.0), "clicks": (0.0, 50.0, "clip")}
IDLE = WriterStats(commits=0, calls=0, failed=0, largest_batch=0, commit_seconds=0.0, queue_depth=0)


def counts(loop: Loop) -> dict[str, list[int]]:
    return {name: list(each.values()) for name, each in (loop.stats().out_of_range or {}).items()}


def test_a_refused_context_writes_no_row(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("shop", **MADE, feature_range=RANGES)
        loop.decide([30.0, 1.0], event="good")
        before = len(list(loop.log))
        for _ in range(2):
            with pytest.raises(InvalidValueError, match=r"context\['age'\] is 1\.8e\+18 .*change\(feature_range="):
                loop.decide({"age": NANOSECONDS, "clicks": 1.0}, event="bad")
        with pytest.raises(InvalidValueError, match="row 1: "):
            loop.decide_many([[30.0, 1.0], [-1.0, 1.0]])
        assert len(list(loop.log)) == before
        assert counts(loop) == {"age": [3, 0], "clicks": [0, 0]}
        assert "age 3 and 0" in str(loop.stats())
        exposed = prometheus([loop.stats()], IDLE)
        assert 'armlet_out_of_range_total{loop="shop",feature="age",outcome="refused"} 3' in exposed


def test_a_clipped_context_is_the_one_of_its_row(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("shop", **MADE, feature_range=RANGES)
        first = loop.decide([30.0, NANOSECONDS], event="one")
        assert first.x.tolist() == [30.0, 50.0]
        assert loop.decide([30.0, NANOSECONDS], event="one").to_dict() == first.to_dict()  # a retry
        loop.reward("one", 1.0)
        assert counts(loop) == {"age": [0, 0], "clicks": [0, 2]}
        assert next(event for event in loop.log if event["kind"] == "decide")["x"] == [30.0, 50.0]
        assert loop.details().feature_range == RANGES
        digest = loop.model().digest()
    with Store(place()) as store:
        again = store.loop("shop")
        assert again.model().digest() == digest
        assert again.model().settings.feature_range == RANGES
        with pytest.raises(InvalidValueError, match="feature_range"):
            again.decide([NANOSECONDS, 1.0])


def test_ranges_are_changed_by_a_row_and_audited(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop("shop", **MADE)
        loop.decide([NANOSECONDS, 1.0], event="before")
        assert loop.change(feature_range=RANGES)
        assert not loop.change(feature_range={"clicks": [0, 50, "clip"], "age": [0, 120]})  # type: ignore[dict-item]
        loop.reward("before", 1.0)
        assert loop.change(features=["clicks", "member"])
        assert loop.model().settings.feature_range == {"clicks": (0.0, 50.0, "clip")}
        assert loop.change(features=["clicks", "member", "age"], feature_range={"age": (0, 120)})
        assert loop.change(feature_range=None)
        assert not loop.change(feature_range=None)
        ranges = [event["feature_range"] for event in loop.log if "feature_range" in event]
        assert ranges == [{"age": [0.0, 120.0], "clicks": [0.0, 50.0, "clip"]}, {"age": [0.0, 120.0]}, None]
        assert armlet.audit(loop.log.replayable, loop.log.start).ok
        digest = loop.model().digest()
    with Store(place()) as store:
        assert store.loop("shop").model().digest() == digest


def test_a_refused_change_of_ranges_changes_nothing() -> None:
    with Store(Memory()) as store:
        loop = store.loop("shop", **MADE, feature_range=RANGES)
        before = list(loop.log)
        for wrong in ({"aeg": (0, 1)}, {"age": (1, 0)}, (0, 1)):
            with pytest.raises(ArmletError, match="feature_range"):
                loop.change(feature_range=wrong, window=60.0, default_reward=0.0)  # type: ignore[arg-type]
        assert list(loop.log) == before


def test_a_loop_keeps_ranges_unless_others_are_given() -> None:
    with Store(Memory()) as store:
        store.loop("shop", **MADE, feature_range=RANGES)
        assert store.loop("shop", **MADE).model().settings.feature_range == RANGES
        with pytest.raises(LoopStateError, match=r"feature_range is .* but loop 'shop' has .*change\(feature_range="):
            store.loop("shop", **MADE, feature_range={"age": (0, 99)})
        loop = store.loop("shop", **MADE, feature_range={"age": (0, 99)}, on_change="apply")
        assert loop.model().settings.feature_range == {"age": (0.0, 99.0)}


def test_a_model_brings_its_ranges_or_gets_some() -> None:
    model = armlet.Bandit(["a", "b"], features=["age"], feature_range={"age": (0, 99)}, seed=1)
    with Store(Memory()) as store:
        assert store.loop("own", model=model).model().settings.feature_range == {"age": (0.0, 99.0)}
        other = store.loop("given", model=model, feature_range={"age": (0, 50)})
        assert other.model().settings.feature_range == {"age": (0.0, 50.0)}


def test_guards_and_refits_keep_ranges() -> None:
    with Store(Memory()) as store:
        loop = store.loop("shop", **MADE, policy=armlet.LinUCB(), feature_range=RANGES)
        for i in range(20):
            loop.decide([i, 2.0 * i], event=f"e{i}")
            loop.reward(f"e{i}", 0.5)
        loop.change(control=Control(policy=armlet.FixedEpsilon(), share=0.3), how="refit")
        loop.change(control=None, shadow=armlet.ThompsonSampling(), how="refit")
        loop.change(feature_range={"age": (0, 99)})
        assert loop.decide([50.0, 1e6]).x.tolist() == [50.0, 1e6]
        loop.promote(gate="off")
        loop.change(policy=armlet.OccasionalOptimism(), how="refit")
        assert loop.model().settings.feature_range == {"age": (0.0, 99.0)}
        with pytest.raises(InvalidValueError, match="feature_range"):
            loop.decide([100.0, 0.0])


def test_a_refit_learns_rows_from_before_their_range() -> None:
    with Store(Memory()) as store:
        loop = store.loop("shop", **MADE, policy=armlet.LinUCB())
        loop.decide([1e6, 1.0], event="old")
        loop.reward("old", 1.0)
        loop.change(feature_range=RANGES)
        loop.change(policy=armlet.ThompsonSampling(), how="refit")
        assert loop.model().state.n.sum() == 1
        assert loop.model().settings.feature_range == RANGES


def test_a_loop_of_actions_names_ranges_it_refuses() -> None:
    with Store(Memory()) as store:
        with pytest.raises(InvalidValueError, match=r"feature_range is .* which a loop of actions"):
            store.loop("films", features=["age"], action_features=["year"], feature_range={"age": (0, 120)})
        loop = store.loop("films", features=["age"], action_features=["year"])
        with pytest.raises(LoopStateError, match="feature_range is for loops with arms"):
            loop.change(feature_range={"age": (0, 120)})


@pytest.mark.parametrize("ranges", [{"age": (0.0, 40.0)}, {"age": (0.0, 40.0, "clip")}], ids=["refuse", "clip"])
def test_decisions_from_before_a_range_are_replayed_as_they_were_made(ranges: GivenRanges, place: Place) -> None:
    """Their rows were once read with the ranges of now: a loop was not opened again, or had another state."""
    with Store(place()) as store:
        loop = store.loop("shop", **MADE)
        loop.decide([90.0, 1.0], event="early")
        loop.decide([80.0, 1.0], event="late")
        loop.reward("early", 1.0)
        loop.change(feature_range=ranges)
        loop.reward("late", 1.0)
        before = loop.model().to_bytes()
        assert rebuilt(store, "shop").to_bytes() == before
        assert loop.change(policy=loop.model().policy, how="refit")
        assert loop.model().state.A.sum() == armlet.from_bytes(before).state.A.sum()
