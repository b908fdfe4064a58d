"""Loops whose rewards are discounted by time, while the wall clock is wrong: it moves only the stamps of rows."""

from __future__ import annotations

import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import InvalidValueError
from armlet.stores import ClockWarning, Loop, Memory, Store
from armlet.testing.stores import Place
from armlet.types import Policy
from support.loops import Ticks, assert_replays, context, reward

DAY = 86_400.0
YEAR = 365 * DAY
POLICIES: list[Policy] = [
    armlet.OccasionalOptimism(half_life="7 days"),
    armlet.LinUCB(half_life="36 hours"),
    armlet.ThompsonSampling(half_life="2 days"),
]


class Clocks:
    """A wall clock that may be off, and a steady one."""

    def __init__(self) -> None:
        self.steady, self.wall = Ticks(), Ticks()
        self.wall.now = self.steady.now = 1.75e9

    def store(self, ledger: Any, **options: Any) -> Store:
        return Store(ledger, wall=self.wall, elapsed=self.steady, **options)

    def pass_time(self, seconds: float) -> None:
        self.wall.now += seconds
        self.steady.now += seconds


def made(store: Store, policy: Policy) -> Loop:
    return store.loop("homepage", arms=["a", "b", "c"], features=["one", "u"], policy=policy, seed=3)


def live(loop: Loop, clocks: Clocks, first: int, n: int, hours: float = 1.0) -> None:
    for i in range(first, first + n):
        clocks.pass_time(3600 * hours)
        loop.decide(context(i, 2), event=f"e{i}")
        loop.reward(f"e{i}", reward(i))


def records(loop: Loop) -> Any:
    return loop.model().state.arrays()["records"]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("jump", [YEAR, -YEAR, 30 * DAY])
def test_a_wrong_wall_clock_moves_no_sums(place: Place, policy: Policy, jump: float) -> None:
    clocks, right = Clocks(), Clocks()
    with clocks.store(place()) as store, right.store(Memory()) as other:
        loop, twin = made(store, policy), made(other, policy)
        for each, times in ((loop, clocks), (twin, right)):
            live(each, times, 0, 40)
            times.wall.now += jump if times is clocks else 0.0
            live(each, times, 40, 1)
            times.wall.now -= jump if times is clocks else 0.0
            live(each, times, 41, 40)
        np.testing.assert_array_equal(records(loop), records(twin))
        assert loop.model().state.clock == twin.model().state.clock
        assert_replays(store, loop)
        assert [alarm.rule for alarm in loop.health()] == ["clock"]
        assert twin.health() == []
        for each in (loop, twin):
            each.forget("e40")
        np.testing.assert_array_equal(records(loop), records(twin))


def test_a_replica_a_year_ahead_moves_no_sums() -> None:
    """Both opened an empty store, so that neither knew the other's clock."""
    ledger, clocks, wrong = Memory(), Clocks(), Clocks()
    wrong.wall.now += YEAR
    with clocks.store(ledger) as store:
        late = wrong.store(ledger)
        loop = made(store, armlet.LinUCB(half_life="7 days"))
        live(loop, clocks, 0, 40)
        before = float(loop.model().state.n.sum())
        wrong.steady.now += 3600 * 40
        other = late.loop("homepage")
        other.decide(context(40, 2), event="e40")
        other.reward("e40", 1.0)
        assert other.model().state.n.sum() == pytest.approx(before + 1, abs=0.5)


def test_a_loop_follows_rows_of_a_later_clock() -> None:
    """Rows that an earlier version stamped a year ahead discount what comes now no more than they must."""
    clocks = Clocks()
    with clocks.store(Memory()) as store:
        loop = made(store, armlet.LinUCB(half_life="7 days"))
        live(loop, clocks, 0, 5)
        loop._runner._ahead = int(YEAR) // 60
        live(loop, clocks, 5, 1)
        loop._runner._ahead = 0
        live(loop, clocks, 6, 40)
        assert loop.model().state.n.sum() == pytest.approx(41, abs=6)


def test_a_long_pause_counts_where_it_is_named(tmp_path: Path) -> None:
    left = []
    for name, options in (("short", {}), ("long", {"longest_stop": timedelta(days=60)})):
        clocks = Clocks()
        with armlet.open_store(tmp_path / name, wall=clocks.wall, elapsed=clocks.steady) as store:
            live(made(store, armlet.LinUCB(half_life="10 days")), clocks, 0, 20)
        clocks.wall.now += 30 * DAY
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", ClockWarning)
            store = armlet.open_store(tmp_path / name, wall=clocks.wall, elapsed=clocks.steady, **options)  # type: ignore[arg-type]
        with store:
            loop = store.loop("homepage")
            loop.decide(context(1, 2), event="later")
            left.append((len(heard), round(float(loop._runner.bandit.state.n.sum()))))
    assert left == [(1, 20), (0, 2)]
    with pytest.raises(InvalidValueError, match="longest_stop is"):
        armlet.open_store(tmp_path / "short", longest_stop=timedelta(days=1))


def test_a_refit_refuses_rows_stamped_ahead() -> None:
    clocks = Clocks()
    with clocks.store(Memory()) as store:
        loop = made(store, armlet.OccasionalOptimism())
        live(loop, clocks, 0, 10)
        clocks.wall.now += YEAR
        live(loop, clocks, 10, 1)
        clocks.wall.now -= YEAR
        live(loop, clocks, 11, 10)
        with pytest.raises(InvalidValueError, match="half-lives after the latest"):
            loop.change(policy=POLICIES[0], how="refit")
        loop.forget("e10")
        loop.change(policy=POLICIES[0], how="refit")
        assert loop.model().state.n.sum() == pytest.approx(20, abs=2)
