"""Details of a loop: what was counted, the same from memory and from the ledger, at a cost that rows do not change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import pytest

import armlet
from armlet.bandit import Bandit
from armlet.policies import POLICIES
from armlet.stores import Control, Ledger, Loop, Memory, Row, Store
from armlet.stores.folds import LAST
from armlet.stores.ledger import View
from armlet.stores.overview import LOOKED_AT, Details, _linear, details, digest
from armlet.testing.stores import Place
from armlet.types import Arm
from support.features import REFUSED, SETTINGS
from support.loops import Ticks, ticking
from support.stores.guards import rows_of

HOSTILE: list[Arm] = ['<script>alert("1")</script>', "\u202eevil", "x" * 256, "a\nb", 1, "1"]


def play(loop: Loop, ticks: Ticks, n: int, seed: int = 1) -> None:
    """Decide n times, a second apart; a third of the decisions is rewarded at once."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        ticks.now += 1.0
        decision = loop.decide(rng.normal(size=2))
        if rng.random() < 1 / 3:
            loop.reward(decision.id, float(i % 2))


def make(store: Store, **options: Any) -> Loop:
    given: dict[str, Any] = {"arms": ["a", "b", "c"], "features": ["age", "visits"], "seed": 2, **options}
    return store.loop("home", **{"policy": armlet.OccasionalOptimism(floor=0.2), **given})


def seen_by_others(ledger: Ledger, now: int) -> Details:
    with ledger.view() as view:
        (record,) = view.loops()
        return details(view, record, now)


@pytest.mark.parametrize("window", [None, 20.0])
def test_details_are_the_same_from_memory_and_from_the_ledger(place: Place, window: float | None) -> None:
    ticks, ledger = Ticks(), place()
    with ticking(ledger, ticks) as store:
        loop = make(store, window=window, default_reward=None if window is None else 0.0)
        play(loop, ticks, 100)
        loop.change(control=Control(arm="b", share=0.2))
        loop.change(shadow=armlet.LinUCB(), how="refit")
        play(loop, ticks, 60, seed=2)
        loop.retire_arm("c")
        found = loop.details()
        others = seen_by_others(ledger, found.at)
        assert others.to_dict() == found.to_dict()
        assert [gain.against for gain in found.gains] == ["uniform", "control", "shadow"]
        assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
        with ledger.view() as view:
            assert digest(view, view.loops()[0]) == loop._runner.cast.digest()


def test_details_say_what_was_counted() -> None:
    ticks = Ticks()
    with ticking(Memory(), ticks) as store:
        loop = make(store, reward_range=(0.0, 1.0))
        play(loop, ticks, 200)
        ticks.now += 7.0
        found, stats = loop.details(), loop.stats()
        rows = rows_of(loop)
    decided = [row for row in rows if row.kind == "decide"]
    values = [row.fields["reward"] for row in rows if row.kind == "learn"]
    assert (found.decisions, found.open, found.seconds_idle) == (200, stats.open, 7.0)
    assert found.pace == pytest.approx(86_400.0)
    assert sum(span.decisions for span in found.exploring.spans) == 200
    assert found.exploring.explored == stats.explored == sum(span.explored for span in found.exploring.spans)
    assert found.exploring.expected == pytest.approx(sum(row.fields["exploration_rate"] for row in decided))
    assert found.exploring.rate == decided[-1].fields["exploration_rate"]
    missing = found.missing
    assert (missing.open, missing.defaulted, missing.share) == (200 - len(values), 0, (200 - len(values)) / 200)
    assert missing.mean == pytest.approx(np.mean(values))
    assert missing.lowest == pytest.approx(sum(values) / 200)
    assert missing.highest == pytest.approx((sum(values) + 200 - len(values)) / 200)
    for arm in found.by_arm:
        assert arm.decisions == sum(row.fields["arm"] == arm.arm for row in decided)
        assert arm.coverage == pytest.approx(arm.rewards / arm.decisions)
        assert arm.value_rows == sum(
            row.kind == "learn" and rows[row.fields["of"] - 1].fields["explored"] and about(rows, row) == arm.arm
            for row in rows
        )
    assert np.sum([arm.shares for arm in found.by_arm], axis=0) == pytest.approx(1.0)


def test_rewards_that_come_late_are_not_missing() -> None:
    ticks = Ticks()
    with ticking(Memory(), ticks) as store:
        loop = make(store, window=10.0, default_reward=-0.25, reward_range=(-1.0, 1.0))
        for i in range(6):
            loop.decide([1.0, 0.0], event=f"e{i}")
        loop.reward("e0", 0.5)
        ticks.now += 11.0
        assert loop.reward("e1", 1.0) == "late"
        loop.decide([1.0, 0.0])
        missing = loop.details().missing
    assert (missing.open, missing.defaulted, missing.share) == (1, 4, 5 / 7)
    assert (missing.mean, missing.lowest, missing.highest) == pytest.approx((0.75, -3.5 / 7, 6.5 / 7))


def about(rows: list[Row], row: Row) -> Arm:
    arm: Arm = rows[row.fields["of"] - 1].fields["arm"]
    return arm


def test_the_price_of_exploring_is_the_gain_times_the_explored_decisions() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        for _ in range(300):
            decision = loop.decide([1.0, 0.0])
            loop.reward(decision.id, float(decision.arm == "b"))
        found = loop.details()
        gain, price = found.gains[0], found.exploring.price
        assert gain.interval is not None
        assert price == (gain.compared * gain.interval.low, gain.compared * gain.interval.high)
        assert 0 < gain.compared <= found.exploring.explored
        quiet = store.loop("quiet", arms=["a", "b"], dim=1, policy=armlet.LinUCB()).details().exploring
    assert (quiet.price, quiet.expected, quiet.note) == (None, None, "The policy does not explore at random.")


def test_the_last_decisions_come_with_what_is_known_of_their_rewards() -> None:
    ticks, ledger = Ticks(), Memory()
    with ticking(ledger, ticks) as store:
        loop = make(store, control=Control(arm="b", share=0.3), aggregation="last")
        for i in range(30):
            loop.decide([float(i), 0.0], event=f"e{i}")
            if i % 2:
                loop.reward(f"e{i}", 0.25)
        loop.reward("e29", 0.75)
        loop.forget("e28")
        found = loop.details()
        assert seen_by_others(ledger, found.at).last == found.last
        rows = {row.t: row for row in rows_of(loop, "decide")}
    assert [each.t for each in found.last] == list(range(30, 30 - LAST, -1))
    assert [each.reward for each in found.last[:4]] == [0.75, None, 0.25, None]
    assert (found.last[1].event, found.last[1].context) == (None, None)
    assert found.last[2].context == (27.0, 0.0)
    for each in found.last:
        fields = rows[each.t].fields
        by = "control" if fields["control"]["played"] else "exploration" if fields["explored"] else "live"
        assert (each.arm, each.propensity, each.played_by) == (fields["arm"], fields["propensity"], by)
    assert {each.played_by for each in found.last} == {"control", "exploration", "live"}


def test_the_value_of_an_arm_rests_on_rows_that_no_context_chose() -> None:
    with Store(Memory()) as store:
        loop = make(store, policy=armlet.LinUCB(), control=Control(arm="b", share=0.3))
        for i in range(200):
            decision = loop.decide([float(i % 3), 1.0])
            loop.reward(decision.id, 0.5)
        found = {arm.arm: arm for arm in loop.details().by_arm}
        played = sum(row.fields["control"]["played"] for row in rows_of(loop, "decide"))
        loop.change(control=Control(policy=armlet.FixedEpsilon(epsilon=0.5), share=0.3), how="refit")
        for i in range(50):
            decision = loop.decide([float(i % 3), 1.0])
            loop.reward(decision.id, 0.5)
        assert {arm.arm: arm.value_rows for arm in loop.details().by_arm} == {"a": 0, "b": played, "c": 0}
    assert found["b"].value is not None
    assert found["b"].value.low < 0.5 < found["b"].value.high
    assert found["b"].value_rows == played
    assert (found["a"].value, found["a"].value_rows) == (None, 0)
    assert "No decision that explored" in found["a"].value_note


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in REFUSED])
@pytest.mark.parametrize("objective", ["max", "min"])
def test_coefficients_are_those_of_the_predictions(name: str, objective: Literal["max", "min"]) -> None:
    rng, policy = np.random.default_rng(4), POLICIES[name](**SETTINGS.get(name, {}))
    bandit = Bandit(["a", "b"], features=["f", "g"], policy=policy, objective=objective, seed=1)
    for _ in range(40):
        bandit.learn(bandit.decide(rng.normal(size=2)), float(rng.random() < 0.5))
    x, found = rng.normal(size=2), _linear(bandit)
    linear = [at + sum(x[j] * slope for j, (_, slope) in enumerate(slopes)) for at, slopes in found.values()]
    assert linear == pytest.approx(bandit.predict_expectations([x])[0].tolist(), abs=1e-9)
    assert [feature for feature, _ in found["a"][1]] == ["f", "g"]


@pytest.mark.parametrize("options", [{"normalize": "l2"}, {"policy": armlet.ContextualUCB()}])
def test_what_is_not_linear_in_features_has_no_coefficients(options: dict[str, Any]) -> None:
    with Store(Memory()) as store:
        loop = make(store, **options)
        loop.decide([3.0, 4.0])
        found = loop.details()
    assert [(arm.intercept, arm.coefficients) for arm in found.by_arm] == [(None, ())] * 3


def test_hostile_labels_are_data() -> None:
    ledger = Memory()
    with Store(ledger) as store:
        loop = store.loop("home", arms=HOSTILE, dim=1, control=Control(arm=HOSTILE[0]), seed=1)
        for arm in HOSTILE[1:3]:
            loop.retire_arm(arm)
        for i in range(40):
            loop.decide([1.0], event=f"<b>{i}")
        found = loop.details()
    assert [arm.arm for arm in found.by_arm] == [HOSTILE[0], *HOSTILE[3:], *HOSTILE[1:3]]
    assert found.guards.control == f'always "{HOSTILE[0]}"'
    assert max(len(change.text) for change in found.changes) <= 300
    assert json.loads(json.dumps(found.to_dict()))["by_arm"][2]["arm"] == 1


def test_a_loop_without_decisions_has_details() -> None:
    ledger = Memory()
    with Store(ledger) as store:
        found = make(store).details()
        assert seen_by_others(ledger, found.at).to_dict() == found.to_dict()
    assert (found.decisions, found.last_decision, found.seconds_idle, found.pace, found.last) == (
        0,
        None,
        None,
        None,
        (),
    )
    assert found.gains[0].answer == "nothing to say"
    assert [arm.share for arm in found.by_arm] == [0.0] * 3
    assert (found.missing.share, found.missing.mean, found.missing.lowest) == (None, None, None)


class Counting:
    """A view that counts the rows that are read."""

    def __init__(self, view: View) -> None:
        self._view, self.read = view, 0

    def __getattr__(self, name: str) -> Any:
        if name in ("outcomes", "usage", "check"):
            raise AssertionError(f"{name} reads everything")
        return getattr(self._view, name)

    def row(self, loop: int, seq: int) -> Row | None:
        self.read += 1
        return self._view.row(loop, seq)

    def rows(self, loop: int, after: int) -> Iterator[Row]:
        for row in self._view.rows(loop, after):
            self.read += 1
            yield row


@contextmanager
def counting(ledger: Ledger) -> Iterator[Counting]:
    with ledger.view() as view:
        yield Counting(view)


def test_details_read_no_more_rows_of_a_long_loop_than_of_a_short_one() -> None:
    """1,000 rows since the last snapshot at most, as many for the tally, and those of the last decisions."""
    ledger, read = Memory(), []
    with Store(ledger) as store:
        loop = make(store, policy=armlet.FixedEpsilon(epsilon=0.2))
        for _ in range(6):
            for _ in range(2):
                decisions = loop.decide_many(np.ones((500, 2)))
                loop.reward_many([(each.id, 0.5) for each in decisions])
            with counting(ledger) as view:
                found = details(view, view.loops()[0], 0)
                read.append(view.read)
            size = len(json.dumps(found.to_dict()))
    assert max(read) <= 2 * 1500 + LOOKED_AT + LAST
    assert read[-1] <= read[0] + 600  # a batch may end anywhere between two snapshots
    assert size < 40_000
