"""The tally of a catalogue: bounded, the most played arms by themselves, and all sums exact."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from armlet.errors import StoreError
from armlet.stores import Memory, Store
from armlet.stores.folds import Tally
from armlet.stores.folds.arms import MOST, TABLES
from armlet.stores.health import alarms
from armlet.stores.ledger import Row
from stores.actions.action_life import films, make
from support.loops import Ticks, ticking
from support.stores.tally_rows import of_arm, tell

HOUR = 3_600_000_000


def played(tally: Tally, arm: str, seq: int, **more: Any) -> Row:
    table = {"actions": f"{seq % 3:064x}", "table": seq % 3, "dim": 0}
    chance = {"propensity": 1.0, "support": None, "explored": False, "exploration_rate": None}
    row = Row(seq, seq * HOUR, "decide", seq, {"arm": arm, **table, **chance, **more}, b"")
    tally.see(row, None)
    return row


def test_arms_of_a_catalogue_are_counted_in_bounded_memory() -> None:
    tally, rng = Tally(), np.random.default_rng(1)
    for seq in range(1, 3001):
        arm = "hit" if seq > 1500 and seq % 10 == 0 else f"item {rng.integers(1000)}"
        row = played(tally, arm, seq)
        if seq % 2:
            tell(tally, row, "learn", seq * HOUR, reward=0.5)
        if seq % 7 == 0:
            other = of_arm(f"item {seq % 1000}", seq * HOUR, explored=False)
            tell(tally, other, "correct", seq * HOUR, old_reward=0.5, new_reward=0.25)
    assert len(tally.counts) == MOST
    others = tally.others
    assert others is not None
    everyone = [*tally.counts, others]
    assert sum(one.decisions for one in everyone) == tally.traffic.decisions == 3000
    assert sum(one.rewards for one in everyone) == tally.arms.rewarded == 1500
    assert sum(one.learned for one in everyone) == tally.arms.learned == 1500
    hit = next(one for one in tally.counts if one.arm == "hit")  # which came late
    assert hit.decisions > 100
    assert len(tally.to_json()) < 100_000


def test_a_tally_of_a_catalogue_is_kept_whole() -> None:
    tally = Tally()
    tally.see(Row(1, HOUR, "actions", None, {"hash": "0" * 64, "name": "all"}), None)
    for seq in range(2, 400):
        shadow = {"shadow": {"arm": "item 3"}} if seq % 5 == 0 else {}
        played(tally, f"item {seq * seq % 211}", seq, **shadow, **({"deferred": True} if seq % 9 == 0 else {}))
    text = tally.to_json()
    again = Tally.from_json(text)
    assert again.to_json() == text
    for each in (tally, again):
        tell(each, played(each, "new", 400), "activate", 400 * HOUR)
    assert again.to_json() == tally.to_json()
    assert again.catalogue is not None
    assert again.catalogue.prepared["all"].seq == 1
    state = json.loads(text)
    state["catalogue"]["bonus"].pop()
    with pytest.raises(StoreError, match="is damaged"):
        Tally.from_json(json.dumps(state))


def test_a_label_may_be_empty() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        for i in range(3):
            loop.reward(loop.decide([0.5], actions={"": [1.0, 0.0]}, event=f"e{i}").id, 0.5)
        assert [(one.arm, one.decisions) for one in loop.stats().arms] == [("", 3)]
        assert loop.stats().others is None


def test_tables_that_are_remembered_are_the_last_ones_that_were_used() -> None:
    clock = Ticks(1e9)
    with ticking(Memory(), clock) as store:
        loop = make(store)
        for i in range(TABLES + 20):
            loop.decide([0.5], actions=films(2, i))
            loop.decide([0.5], actions=films(2, 0))
        rows = list(store._ledger.rows(1))
        assert sum(row.kind == "actions" for row in rows) == TABLES + 20
        loop.decide([0.5], actions=films(2, 1))  # which was forgotten, and is written again
        assert sum(row.kind == "actions" for row in store._ledger.rows(1)) == TABLES + 21


def test_draws_that_are_not_what_they_are_said_to_be_are_found() -> None:
    for share, is_found in ((0.2, False), (0.4, True)):
        tally, rng = Tally(), np.random.default_rng(2)
        for seq in range(1, 4001):
            best, other = (f"item {rng.integers(10_000)}" for _ in range(2))
            arm, p = (other, 0.2) if rng.random() < share else (best, 0.8)
            played(tally, arm, seq, support=[[best, 0.8], [other, 0.2]], propensity=p)
        found = [alarm for alarm in alarms(tally, 0) if alarm.rule == "propensities"]
        assert bool(found) is is_found
        assert not found or "number 2 by probability is played more often" in found[0].text


def test_stats_and_details_of_a_catalogue() -> None:
    with Store(Memory()) as store:
        loop = make(store)
        for first in range(0, 300, 3):
            decision = loop.decide([0.5], actions=films(3, first), event=f"e{first}", baseline=f"film {first}")
            loop.reward(f"e{first}", 0.5)
        loop.decide([0.5], actions=films(300), eligible=["film 0"], defer=True)
        for label in films(20, 500):
            loop.decide([0.5], actions=films(20, 500), eligible=[label])
        stats, details = loop.stats(), loop.details()
        assert len(stats.arms) == MOST
        assert stats.others == details.others
        assert stats.others is not None
        assert stats.others.decisions == 20
        assert "all others" in str(stats)
        assert (details.action_dim, details.action_features, details.deferred) == (2, ("genre", "year"), 1)
        assert details.baseline == stats.baseline
        assert details.last[-1].context == (0.5,)
        assert details.gains[0].answer == "nothing to say"
        assert "armlet.evaluate" in details.gains[0].note
        assert json.dumps(details.to_dict())
        assert json.dumps(stats.to_dict())
        text = store.metrics()
        assert 'armlet_decisions_total{loop="films",arm="",arm_type="others"} 20' in text
        assert 'armlet_baseline_decisions_total{loop="films"} 100' in text
        assert decision.propensity == 1.0
