"""What is billed is spent in loops too, and a hard budget outlasts windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import BudgetError, InvalidValueError
from armlet.stores import Loop, Store
from armlet.testing.stores import Place
from support.loops import Ticks, assert_replays, ticking
from support.stores import rebuilt

HARD = armlet.Budget("cost", total=20.0, horizon=10_000, hard=True)
SOFT = armlet.Budget("cost", total=20.0, horizon=10_000)


def made(store: Store, budget: armlet.Budget | None = HARD, **how: Any) -> Loop:
    given: dict[str, Any] = {"outcomes": {"quality": 1.0, "cost": 0.0}, "reward_range": {"cost": (0.0, 5.0)}}
    return store.loop("router", arms=["small", "large"], dim=1, budget=budget, seed=1, **given | how)


def spent(loop: Loop) -> tuple[float, int]:
    now = loop.model().budget
    assert now is not None
    return now.spent, now.waiting


def decided(loop: Loop, n: int, first: int = 0) -> list[str]:
    found: list[str] = []
    for i in range(first, first + n):
        try:
            loop.decide([0.5], event=f"e{i}")
        except BudgetError:
            break
        found.append(f"e{i}")
    return found


@pytest.mark.parametrize("default", [None, {"cost": 0.0}, {"cost": 0.0, "quality": 0.0}], ids=str)
def test_a_hard_budget_outlasts_windows(default: Any, place: Place) -> None:
    """Costs of 5 that came 30 windows late once spent 170 of 20."""
    clock, late = Ticks(1e9), list[str]()
    with ticking(place(), clock) as store:
        loop = made(store, window=60.0, default_reward=default)
        for window in range(30):
            late += decided(loop, 3, 3 * window)
            clock.now += 61.0
        assert len(late) == 4
        assert_replays(store, loop)
    with ticking(place(), clock) as store:
        loop = store.loop("router")
        for event in late:
            loop.reward(event, {"cost": 5.0})
        assert spent(loop) == (20.0, 0)
        assert_replays(store, loop)


def test_a_bill_of_nothing_releases_what_is_kept_back(place: Place) -> None:
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        loop = made(store, window=60.0)
        waiting = decided(loop, 9)
        clock.now += 61.0
        assert [loop.bill(event, 0.0) for event in (*waiting[:3], "nobody")] == [True, True, True, False]
        assert_replays(store, loop)
    with ticking(place(), clock) as store:
        loop = store.loop("router")
        assert loop.bill(waiting[0], 0.0)  # a retry
        assert spent(loop) == (0.0, 1)
        assert len(decided(loop, 9, 10)) == 3
        assert loop.reward(waiting[0], {"cost": 4.0}) == "accepted"
        assert spent(loop) == (4.0, 4)
        assert_replays(store, loop)
        with pytest.raises(InvalidValueError, match="has no budget of a cost that is learned"):
            made_plain(store).bill("e0", 1.0)


def made_plain(store: Store) -> Loop:
    return store.loop("plain", arms=["a", "b"], dim=1, outcomes={"quality": 1.0, "cost": 0.0}, seed=1)


@pytest.mark.parametrize("ranges", [{"cost": (0.0, 0.1)}, None], ids=["range", "usual"])
def test_a_loop_spends_bills_outside_the_range(ranges: Any, place: Place) -> None:
    cost = 0.5 if ranges else 1.5
    with ticking(place(), clock := Ticks(1e9)) as store:
        loop = made(store, SOFT, reward_range=ranges)
        for event in decided(loop, 12):
            assert loop.reward(event, {"quality": 1.0, "cost": cost}) == "out_of_range"
            assert loop.reward(event, {"quality": 1.0, "cost": cost}) == "out_of_range"  # a retry
        assert spent(loop) == (12 * cost, 0)
        assert store._runners["router"].tally.traffic.statuses["out_of_range"] == 24
        assert loop.model().state.n.sum() == 0.0
        assert_replays(store, loop)
    with ticking(place(), clock) as store:
        loop = store.loop("router")
        loop.change(reward_range={"cost": (0.0, 10.0)})
        assert loop.reward("e0", {"quality": 1.0, "cost": cost}) == "accepted"
        assert loop.reward("e1", {"quality": 9.0, "cost": 1.0}) == "out_of_range"  # of quality: the bill counts
        assert spent(loop) == (11 * cost + 1.0, 0)
        assert loop.model().state.n.sum() == 1.0
        assert_replays(store, loop)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("aggregation", ["first", "last", "sum"])
@pytest.mark.parametrize("hard", [False, True])
def test_any_bills_can_be_played_again(hard: bool, aggregation: Any, place: Place) -> None:
    rng, clock, budget = np.random.default_rng(3), Ticks(1e9), armlet.Budget("cost", total=90.0, period=30, hard=hard)
    with ticking(place(), clock) as store:
        loop = made(store, budget, aggregation=aggregation, window=20.0, default_reward={"cost": 0.5})
        for i in range(120):
            decided(loop, 1, i)
            clock.now += float(rng.integers(8))
            for _ in range(3):
                event, cost = f"e{rng.integers(i + 1)}", float(rng.uniform(0.0, 7.0))
                some = (
                    {"cost": cost} if rng.random() < 0.6 else {"cost": cost, "quality": float(rng.uniform(-1.5, 1.5))}
                )
                played = {"played": "large"} if rng.random() < 0.1 else {}
                loop.reward(event, some, rank=int(rng.integers(2)), **played)
            if rng.random() < 0.2:
                loop.bill(f"e{rng.integers(i + 1)}", float(rng.uniform(0.0, 7.0)))
            if rng.random() < 0.05:
                store._runners["router"].let_go()
        assert_replays(store, loop)
        loop.change(budget=None)
        assert loop.model().budget is None
        assert_replays(store, loop)


def test_a_bill_ends_with_the_cost_learned(place: Place) -> None:
    """The default of a window is confirmed after a bill of another cost; once a sound store did not verify then."""
    clock = Ticks(1e9)
    with ticking(place(), clock) as store:
        loop = made(store, SOFT, window=60.0, default_reward={"cost": 0.25, "quality": 0.0})
        (event,) = decided(loop, 1)
        clock.now += 61.0
        assert loop.bill(event, 2.0)
        assert spent(loop) == (2.0, 0)
        loop.reward(event, {"cost": 0.25, "quality": 1.0})
        assert spent(loop) == (0.25, 0)
        assert_replays(store, loop)


@pytest.mark.parametrize("aggregation", ["first", "last", "sum"])
@pytest.mark.parametrize("cost", [3.0, 1.0])
@pytest.mark.parametrize("budget", [SOFT, HARD], ids=["soft", "hard"])
def test_cost_of_higher_rank_ends_a_bill(budget: armlet.Budget, cost: float, aggregation: Any, place: Place) -> None:
    """Also if it is the one that was learned, or the one that was billed: once a sound store did not verify then."""
    with ticking(place(), clock := Ticks(1e9)) as store:
        loop = made(store, budget, aggregation=aggregation)
        (event,) = decided(loop, 1)
        loop.reward(event, {"cost": 3.0, "quality": 1.0})
        loop.bill(event, 1.0)
        assert loop.reward(event, {"cost": cost}, rank=1) == "replaced"
        assert spent(loop) == (cost, 0)
        assert_replays(store, loop)
    with ticking(place(), clock) as store:
        loop = store.loop("router")
        assert loop.reward(event, {"cost": 2.0}, rank=2) == "replaced"
        assert spent(loop) == (2.0, 0)
        assert_replays(store, loop)


@pytest.mark.parametrize("how", [{"shadow": armlet.Greedy()}, {"policy": armlet.LinUCB()}], ids=list)
def test_policies_learn_a_log_with_bills_again(how: Any, place: Place) -> None:
    with ticking(place(), clock := Ticks(1e9)) as store:
        loop = made(store, SOFT)
        for event in decided(loop, 6):
            loop.reward(event, {"quality": 1.0, "cost": 1.5})
        loop.bill("e0", 2.0)
        assert loop.reward("e1", {"cost": 7.0}, rank=1) == "out_of_range"  # billed
        loop.change(**how, how="refit")
        assert spent(loop) == (2.0 + 7.0 + 4 * 1.5, 0)
        loop.model()
        assert rebuilt(store, "router").digest() == loop._runner.cast.digest()
    with ticking(place(), clock) as store:
        loop = store.loop("router")
        loop.bill("e2", 0.5)
        assert spent(loop) == (2.0 + 7.0 + 0.5 + 3 * 1.5, 0)
        loop.model()
        assert rebuilt(store, "router").digest() == loop._runner.cast.digest()


def test_a_budget_of_a_loop_can_be_removed(place: Place) -> None:
    with ticking(place(), Ticks(1e9)) as store:
        loop = made(store, SOFT)
        decided(loop, 3)
        loop.change(budget=None)
        loop.change(budget=None)  # a deploy script that runs twice
        assert loop.model().settings.budget is None
        assert_replays(store, loop)
