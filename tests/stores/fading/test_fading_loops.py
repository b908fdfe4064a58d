"""Loops whose rows fade, by steps or by time: replayed bit for bit, refitted, shadowed, with rewards of any delay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import InvalidValueError
from armlet.stores import Loop, Memory, Store
from armlet.testing.stores import Place
from armlet.types import Policy
from support.loops import Ticks, assert_replays, context, reward, ticking

DAY = 86_400.0
START = 1.75e9  # seconds since 1970
FADING: list[Policy] = [
    armlet.OccasionalOptimism(half_life="7 days"),
    armlet.LinUCB(half_life="36 hours"),
    armlet.ThompsonSampling(half_life=40),
    armlet.Greedy(discount=0.97),
]


def clock() -> Ticks:
    ticks = Ticks()
    ticks.now = START
    return ticks


def made(store: Store, policy: Policy, **others: Any) -> Loop:
    return store.loop("homepage", arms=["a", "b", "c"], features=["one", "u"], policy=policy, seed=3, **others)


def live(loop: Loop, ticks: Ticks, first: int, n: int, hours: float = 5.0) -> None:
    """Decide every few hours; the reward of every second decision comes three decisions later."""
    for i in range(first, first + n):
        ticks.now += 3600 * hours
        loop.decide(context(i, 2), event=f"e{i}")
        late = i if i % 2 else max(i - 3, first)
        if (late + i) % 2 == 0 or i % 2 == 0:
            loop.reward(f"e{late}", reward(late))


def by_hand(loop: Loop, policy: Policy) -> Any:
    """Return the sums of a loop's rewards, by the time of each decision, in the order in which they were learned."""
    model: Any = loop.model()
    state, decided = policy.init(len(model.arms), 2), {}
    for row in loop._ledger.rows(loop._runner.id):
        if row.kind == "decide":
            decided[row.seq] = row
        elif row.kind == "learn":
            of = decided[row.fields["of"]]
            x, arm = np.frombuffer(of.x or b""), list(model.arms).index(of.fields["arm"])
            state.add(arm, x, row.fields["reward"], t=of.t, tag=of.ts // 60_000_000)
    return state


@pytest.mark.parametrize("policy", FADING, ids=repr)
def test_a_row_fades_by_the_time_of_its_decision(policy: Policy) -> None:
    ticks = clock()
    with ticking(Memory(), ticks) as store:
        loop = made(store, policy)
        live(loop, ticks, 0, 80)
        found, expected = loop.model().state.arrays(), by_hand(loop, policy).arrays()
        for name in ("records", "clock"):
            np.testing.assert_array_equal(found[name], expected[name])


def test_evidence_halves_while_nobody_asks() -> None:
    ticks = clock()
    with ticking(Memory(), ticks) as store:
        loop = made(store, armlet.LinUCB(half_life="7 days"))
        live(loop, ticks, 0, 100, hours=1.0)
        before = loop.model().state.n.sum()
        ticks.now += 7 * DAY
        loop.decide(context(1, 2), event="later")
        now = loop._runner.bandit.state
        assert now.n.sum() == pytest.approx(before / 2, rel=0.02)


@pytest.mark.parametrize("policy", FADING[:2], ids=repr)
def test_a_loop_that_did_not_forget_learns_its_log_again_by_time(place: Place, policy: Policy) -> None:
    ticks = clock()
    with ticking(place(), ticks) as store:
        loop = made(store, armlet.OccasionalOptimism())
        live(loop, ticks, 0, 60)
        with pytest.raises(InvalidValueError):
            loop.change(policy=policy)
        loop.change(policy=policy, how="refit")
        live(loop, ticks, 60, 30)
        assert loop.reward("e50", 1.0) in ("accepted", "duplicate", "conflict")  # decided before, without a time
        assert_replays(store, loop)
        np.testing.assert_array_equal(loop.model().state.arrays()["records"], by_hand(loop, policy).arrays()["records"])


def test_a_shadow_forgets_though_the_loop_does_not(place: Place) -> None:
    ticks, policy = clock(), armlet.LinUCB(half_life="7 days")
    with ticking(place(), ticks) as store:
        loop = made(store, armlet.FixedEpsilon(epsilon=0.3))
        live(loop, ticks, 0, 40)
        loop.change(shadow=policy, how="refit")
        live(loop, ticks, 40, 60)
        shadow: Any = loop._runner.cast.shadows["shadow"]
        np.testing.assert_array_equal(shadow.state.arrays()["records"], by_hand(loop, policy).arrays()["records"])


def test_a_log_has_the_time_of_decisions(tmp_path: Path) -> None:
    policy = armlet.OccasionalOptimism(half_life="2 days")
    start = armlet.Bandit(["a", "b"], 1, policy=policy, seed=1).to_bytes()
    with armlet.Log(tmp_path / "log.jsonl") as log:
        bandit = armlet.from_bytes(start, log=log)
        for i in range(40):
            decision = bandit.decide([i % 3 - 1.0], at=START + i * 7200)
            bandit.learn(decision, float(i % 2))
        with pytest.raises(InvalidValueError, match="forgets by time"):
            bandit.decide_many([[1.0]])
        with pytest.raises(InvalidValueError, match="forgets by time"):
            bandit.partial_fit([[1.0]], ["a"], [1.0])
    audit = armlet.audit(tmp_path / "log.jsonl", start)
    assert (audit.ok, audit.digest) == (True, bandit.digest())
